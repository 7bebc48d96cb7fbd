"""Generation probabilities under the models of the package righor, beside OLGA's of the same files.

    pip install 'plait[models]'
    python benchmarks/righor_models.py --peer-python PYTHON [--rows 100]

PYTHON is that of an environment with OLGA. Junctions are drawn from each model; nucleotides and amino acids
are computed by both, with and without V and J. OLGA's loops over insertions between V and J stop short of
the greatest numbers in some codons; with zeros behind its table of them they go on, which is how it is
asked here. A difference above 1e-12 of a value, or a zero in one alone, ends the script with
an error.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
from vdj_pgen import CASES, PEER, drawn, ours, peers

from plait.vdj.model import load_model
from plait.vdj.model.igor import MODEL_FILES, installed_models

MOST = 1e-12


def compared(name: str, rows: int, python: str, folder: Path) -> float:
    """Print a line for each kind of text under a model; the largest relative difference."""
    paths, _ = installed_models()[name]
    for path, file in zip(paths, MODEL_FILES, strict=True):
        shutil.copy(path, folder / file)
    model = load_model(name)
    table = drawn(model, rows, folder)
    cases = {
        case: list(zip(table[column], *((table["v_call"], table["j_call"]) if given else ()), strict=True))
        for case, column, given, _ in CASES
    }
    zeros = 0 if model.d else 6
    told = peers(python, PEER, {"model": str(folder), "d": bool(model.d), "cases": cases, "zeros": zeros})
    if "missing" in told:
        raise SystemExit(told["missing"])
    worst = 0.0
    for case, found in ours(model, table, 1).items():
        mine, other = np.array(found["values"]), np.array(told["found"][case]["values"])
        both = (mine > 0) & (other > 0)
        alone = int(((mine > 0) != (other > 0)).sum())
        largest = float((np.abs(mine - other) / other)[both].max(initial=0.0))
        print(f"{name:<18}{case:<18}{largest:>10.1e} over {int(both.sum())}; {alone} zero in one alone")
        worst = max(worst, largest if not alone else np.inf)
    return worst


def main() -> int:
    """Print the table; 1 if a difference is too large."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--peer-python", required=True, help="Python of an environment with OLGA")
    parser.add_argument("--rows", type=int, default=100, help="junctions drawn from each model")
    parser.add_argument("--models", nargs="*", help="names; by default all")
    options = parser.parse_args()
    worst = 0.0
    for name in options.models or sorted(installed_models()):
        with tempfile.TemporaryDirectory() as folder:
            worst = max(worst, compared(name, options.rows, options.peer_python, Path(folder)))
    return int(worst > MOST)


if __name__ == "__main__":
    sys.exit(main())
