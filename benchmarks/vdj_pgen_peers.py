"""Generation probabilities and generation beside vdjtools, OLGA, olha and righor: one run, core and table.

    python benchmarks/vdj_pgen_peers.py --model FOLDER --peers VENV [--install] [--rows 20000] [--repeat 3]
        [--only NAME ...] [--json OUT.json]

FOLDER is a model of IGoR or OLGA. VENV is a virtual environment with the other programs; with ``--install``
it is made where it is missing, from PyPI, with the versions of `PACKAGES`. They run as programs of their own;
those that are missing are left out and said to be. The rows are productive junctions drawn from the model by
plait, the same for all, with their V and J alleles. A figure is the best of the repeats, rows per second of
processor time with one thread; compilation and loading are not counted. Values are compared with plait's: the
greatest relative difference where both are above 0, and how often only one is.

Files of what is generated are Parquet, plait's with 17 columns and vdjtools' with 7. righor, which does not
read models in which a gene lacks an anchor, makes whole sequences of its own model of mouse TRB.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from vdj_pgen import CASES, best, drawn, ours

from plait import __version__
from plait.lang.lanes import host_lanes
from plait.vdj.model import JunctionSampler, RecombinationModel, read_model
from plait.vdj.model.sampling import generate_file

#: What ``--install`` brings. All but righor are under the GPL: plait neither needs nor contains them.
PACKAGES = ("vdjtools==5.2.2", "olga==1.3.0", "numba", "olha==0.1.2", "righor==0.2.97")
#: Junctions that are generated.
DRAWS = 1 << 18
#: Found by every program: the cases, timed, and their values.
BEGIN = """
import importlib.metadata, json, sys, time

given = json.load(open(sys.argv[1]))
found = {}

def best(run):
    times = []
    for _ in range(given["repeat"]):
        start = time.process_time()
        values = run()
        times.append(time.process_time() - start)
    return min(times), values

def case(name, run, few):
    rows = given["cases"][name]
    run(rows[:few])
    seconds, values = best(lambda: run(rows))
    found[name] = {"seconds": seconds, "rows": len(rows), "values": [float(value) for value in values]}

def draws(name, count, run):
    run(100)
    seconds, _ = best(lambda: run(count))
    found[name] = {"seconds": seconds, "rows": count}

folder = given["model"]
names = [f"{folder}/{name}" for name in (
    "model_params.txt", "V_gene_CDR3_anchors.csv", "J_gene_CDR3_anchors.csv", "model_marginals.txt")]

def olga_model():
    from olga import load_model
    kind = "VDJ" if given["d"] else "VJ"
    genes = getattr(load_model, "GenomicData" + kind)()
    model = getattr(load_model, "GenerativeModel" + kind)()
    genes.load_igor_genomic_data(*names[:3])
    model.load_and_process_igor_model(names[3])
    return kind, genes, model
"""
END = """
version = importlib.metadata.version(given["package"])
json.dump({"version": version, "found": found}, open(sys.argv[2], "w"))
"""
PROGRAMS: Mapping[str, str] = {
    "vdjtools": """
        from vdjtools.model import from_olga
        from vdjtools.model.generate import generate
        from vdjtools.model.native import pgen_aa_batch, pgen_nt_batch
        model = from_olga(folder, locus=given["locus"], organism=given["organism"])
        for name in given["cases"]:
            one = pgen_nt_batch if name.startswith("nt") else pgen_aa_batch
            case(name, lambda rows: one(model, *map(list, zip(*rows)), threads=1), 100)
        native = dict(seed=1, engine="native", threads=1)
        draws("generation, a table", given["draws"], lambda n: generate(model, n, **native))
        out = sys.argv[2] + ".parquet"
        draws("generation, a file", given["draws"], lambda n: generate(model, n, **native).write_parquet(out))
        draws("generation, by default", 20_000, lambda n: generate(model, n, seed=1))
    """,
    "olga": """
        import numpy
        from olga import generation_probability, sequence_generation
        from olga.performance.fast_pgen import FastPgen
        kind, genes, model = olga_model()
        engine = FastPgen(getattr(generation_probability, "GenerationProbability" + kind)(model, genes))
        for name in given["cases"]:
            one = engine.compute_nt_CDR3_pgen if name.startswith("nt") else engine.compute_aa_CDR3_pgen
            case(name, lambda rows: [one(*row) for row in rows], 20)
        # A model of its own: the sampler changes the one that it is given.
        numpy.random.seed(1)
        kind, genes, model = olga_model()
        one = getattr(sequence_generation, "SequenceGeneration" + kind)(model, genes).gen_rnd_prod_CDR3
        draws("generation, one by one", 20_000, lambda n: [one() for _ in range(n)])
    """,
    "olha": """
        from olha import SequenceGeneration
        kind, genes, model = olga_model()
        one = SequenceGeneration(genes, model, seed=1).gen_rnd_prod_CDR3
        draws("generation, one by one", given["draws"], lambda n: [one() for _ in range(n)])
    """,
    "righor": """
        import righor
        righor.set_number_threads(1)
        sampler = righor.load_model(given["organism"], given["locus"].lower()).generator(1)
        one, many = sampler.generate_without_errors, sampler.generate_many_without_errors
        draws("generation, one by one", 20_000, lambda n: [one(False) for _ in range(n)])
        draws("generation, a table", given["draws"], lambda n: many(n, False))
    """,
}
#: Ways of generating; those that plait has not are compared with its arrays.
GENERATION = (
    "generation, arrays",
    "generation, a table",
    "generation, one by one",
    "generation, by default",
    "generation, a file",
)


def python_of(venv: Path, install: bool) -> Path:
    """The interpreter of a virtual environment, which is made if that is asked for."""
    python = venv / "bin" / "python"
    if install and not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    if not python.exists():
        raise SystemExit(f"{venv}: no virtual environment; make it with --install")
    return python


def peer(python: Path, name: str, given: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What a program finds; or why it does not."""
    asked, answer = folder / f"{name}.json", folder / f"{name}.out.json"
    asked.write_text(json.dumps({**given, "package": name}))
    program = BEGIN + textwrap.dedent(PROGRAMS[name]) + END
    one = {
        key: "1"
        for key in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "RAYON_NUM_THREADS", "POLARS_MAX_THREADS")
    }
    done = subprocess.run(
        [str(python), "-c", program, str(asked), str(answer)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **one, "PYTHONPATH": ""},
    )
    if done.returncode:
        return {"missing": (done.stderr.strip().splitlines() or ["no message"])[-1][:200]}
    found: dict[str, Any] = json.loads(answer.read_text())
    return found


def generation(model: RecombinationModel, repeat: int, folder: Path) -> dict[str, dict[str, Any]]:
    """Seconds of plait's own ways of generating."""
    sampler = JunctionSampler(model, seed=1)
    sampler.block(0, 10)
    step = 1 << 15
    arrays, _ = best(lambda: [sampler.block(first, step) for first in range(0, DRAWS, step)], repeat)
    path = folder / "generated.parquet"
    file, _ = best(lambda: generate_file(model, path, DRAWS, seed=1, productive=False, threads=1), repeat)
    return {
        "generation, arrays": {"seconds": arrays, "rows": DRAWS},
        "generation, a file": {"seconds": file, "rows": DRAWS},
    }


def rate(found: Mapping[str, Any]) -> float:
    """Rows a second."""
    return float(found["rows"] / found["seconds"])


def compared(mine: Any, theirs: list[float]) -> str:
    """How far values are from plait's."""
    a, b = np.nan_to_num(np.array(mine, float)), np.nan_to_num(np.array(theirs))
    both = (a > 0) & (b > 0)
    apart = np.abs(b[both] / a[both] - 1).max(initial=0.0)
    alone = int(((a > 0) != (b > 0)).sum())
    return f"differs by {apart:.1e} at most, {both.sum():,} rows" + (
        f"; {alone} 0 in one alone" if alone else ""
    )


def report(found: dict[str, Any], others: dict[str, Any]) -> None:
    """Print rates, ratios and differences, a line for each case and program."""
    for name in (*(case[0] for case in CASES), *GENERATION):
        if name in found:
            print(f"{name:26}{'plait':10}{rate(found[name]):>12,.0f}/s")
        for program, theirs in others.items():
            one = theirs.get("found", {}).get(name)
            if one is None:
                continue
            beside = found.get(name, found["generation, arrays"])
            line = f"{name:26}{program:10}{rate(one):>12,.0f}/s  plait is {rate(beside) / rate(one):8,.1f} x"
            if "values" in one:
                line += f"  {compared(found[name]['values'], one['values'])}"
            print(line)
    for program, theirs in others.items():
        told = theirs.get("version") or f"left out: {theirs['missing']}"
        print(f"{program} {told}")


def main() -> None:
    """Run all of it and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--peers", type=Path, required=True, metavar="VENV")
    parser.add_argument("--install", action="store_true")
    parser.add_argument("--only", nargs="+", choices=tuple(PROGRAMS), default=tuple(PROGRAMS))
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--locus", default="TRB")
    parser.add_argument("--organism", default="mouse")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    python = python_of(options.peers, options.install)
    model = read_model(options.model)
    print(f"plait {__version__}, {platform.machine()}, {host_lanes().width} lanes; {model.name}", flush=True)
    with tempfile.TemporaryDirectory() as name:
        table = drawn(model, options.rows, Path(name))
        found = {**ours(model, table, options.repeat), **generation(model, options.repeat, Path(name))}
        lists = {
            case: [table[column], *([table["v_call"], table["j_call"]] if given else [])]
            for case, column, given, _ in CASES
        }
        asked = {
            "model": str(options.model.resolve()),
            "d": bool(model.d),
            "locus": options.locus,
            "organism": options.organism,
            "repeat": options.repeat,
            "draws": DRAWS,
            "cases": {case: list(zip(*columns, strict=True)) for case, columns in lists.items()},
        }
        others = {program: peer(python, program, asked, Path(name)) for program in options.only}
    report(found, others)
    if options.json:
        rates = {"plait": {case: rate(one) for case, one in found.items()}}
        for program, theirs in others.items():
            rates[program] = {case: rate(one) for case, one in theirs.get("found", {}).items()}
        options.json.write_text(
            json.dumps({"version": __version__, "model": model.name, "rates": rates}, indent=2)
        )


if __name__ == "__main__":
    main()
