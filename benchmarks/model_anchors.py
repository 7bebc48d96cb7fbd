"""What a gene with a wrong conserved codon does to a study, before and after ``--repair-anchors``.

    python benchmarks/model_anchors.py TABLE --model FOLDER [--germline mouse_trb] [--folder DIR]

Two studies of a table of rearrangements (``plait vdj study``) with a model that has such genes, as OLGA's
mouse_T_beta has one. With ``--folder``, studies that are there already are not made again.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import numpy as np
import pyarrow.dataset as ds

from plait.vdj.model import load_model
from plait.vdj.model.recombination_model import gene_faults


def study(folder: Path, arguments: argparse.Namespace, *words: str) -> None:
    """Make a study if it is not there."""
    if (folder / "study.json").exists():
        return
    sheet = folder.with_suffix(".csv")
    sheet.write_text(f"file\n{arguments.table.resolve()}\n")
    command = [sys.executable, "-m", "plait", "vdj", "study", str(sheet), "-o", str(folder)]
    command += ["--germline", arguments.germline, "--model", str(arguments.model), *words]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def tell(folder: Path, genes: list[str]) -> None:
    """The figures of a study."""
    table = ds.dataset(folder / "clonotypes").to_table(columns=["v_gene", "pgen_nt"])
    names = np.array(table["v_gene"].to_pylist(), object)
    pgen = table["pgen_nt"].to_numpy(zero_copy_only=False)
    for what, chosen in (("of these genes", np.isin(names, genes)), ("others", ~np.isin(names, genes))):
        above = pgen[chosen & (pgen > 0)]
        zero = int((pgen[chosen] == 0).sum())
        size, median = int(chosen.sum()), np.median(np.log10(above))
        print(f"  {what:<15}{size:>9,} clonotypes, median log10 Pgen {median:7.2f}, {zero:,} with 0")
    wanted = {"stratum_kind": "all", "scope": "all", "y": "subjects"}
    with open(folder / "tables" / "pgen_comparison.tsv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            if wanted.items() <= row.items() and row["measure"] != "kendall":
                pgen, paths, more, low, high = (
                    float(row[name])
                    for name in ("pgen", "path_count", "difference", "subjects_low", "subjects_high")
                )
                told = f"difference {more:.4f} ({low:.4f} to {high:.4f} over subjects)"
                print(f"  {row['measure']:<10} Pgen {pgen:.4f}, path count {paths:.4f}, {told}")
    facts = json.loads((folder / "study.json").read_text(encoding="utf-8"))
    answer = next(one for one in facts["answers"] if one["id"] == "pgen_comparison")
    print("\n".join(textwrap.wrap(f"{answer['headline']}. {answer['text']}", 116, initial_indent="  ")))


def main() -> None:
    """Make both studies and print what differs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("table", type=Path)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--germline", default="mouse_trb")
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    faults = gene_faults(load_model(arguments.model))
    for name, fault in faults.items():
        print(f"{arguments.model.name}: {name}, {fault}")
    genes = [name.partition("*")[0] for name in faults]
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.folder or Path(scratch)
        for name, words in (("plain", ()), ("mended", ("--repair-anchors",))):
            study(folder / name, arguments, *words)
            print(f"\n{' '.join(['plait vdj study', *words])}")
            tell(folder / name, genes)


if __name__ == "__main__":
    main()
