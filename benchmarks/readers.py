"""Whether the tables that plait writes are read by other programs, with the same junctions and cells.

``python benchmarks/readers.py --peer PYTHON [CONTIGS...]``, where that interpreter has airr, scirpy,
dandelion (sc-dandelion), polars, pandas and pyimmunarch. For each table it prints what each reader says:
rows, or the error. Tables of rearrangements have all columns that the AIRR schema requires; that of shared
clonotypes is none. CONTIGS are contig annotations of 10x beside those that are drawn: scirpy has to find
the same cells in them, with the same pairing and the same chains.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.read_library import Library, simulate_reads
from support.read_simulation import Sequencing

from plait.vdj.germline import load_germline

READ = """
import json, sys, warnings
warnings.simplefilter("ignore")
import airr, dandelion, pandas, polars, pyimmunarch, scirpy

def junctions(column):
    return sorted(str(text).upper() for text in column if isinstance(text, str) and text)

def one(read):
    try:
        return read()
    except Exception as error:
        return f"{type(error).__name__}: {error}"

def text(path):
    return pandas.read_csv(path, sep="\\t", dtype=str, keep_default_na=False)

def of(path):
    rows = text(path)
    wanted = junctions(rows["junction"])
    def same(found):
        return "same junctions" if junctions(found) == wanted else "OTHER JUNCTIONS"
    return {
        "pandas": len(rows),
        "polars": one(lambda: same(polars.read_csv(path, separator="\\t")["junction"])),
        "airr": one(lambda: same(airr.load_rearrangement(path)["junction"])),
        "airr validate": one(lambda: bool(airr.validate_rearrangement(path))),
        "scirpy": one(lambda: f"{scirpy.io.read_airr(path).n_obs} cells"),
        "dandelion": one(lambda: f"{len(dandelion.read_airr(path).data)} contigs"),
        "pyimmunarch": one(lambda: same(next(iter(pyimmunarch.repLoad([path]).data.values()))["CDR3.nt"])),
    }

def cells(given, path):
    if given.endswith(".tsv"):
        there = scirpy.io.read_airr(given)
    else:
        there = scirpy.io.read_10x_vdj(given, filtered=False)
    scirpy.pp.index_chains(there)
    scirpy.tl.chain_qc(there)
    chains = scirpy.get.airr(there, ["junction", "locus"])
    there = there.obs[["chain_pairing", "receptor_subtype"]].astype(str).join(chains)
    there = there[there["chain_pairing"] != "no IR"].astype(object).fillna("").replace("None", "")
    here = text(path).set_index("cell_id")[list(there.columns)]
    if set(here.index) != set(there.index):
        return {"scirpy": f"OTHER CELLS, {len(here)} and {len(there)}"}
    other = {name: int((here.loc[there.index, name] != there[name]).sum()) for name in there.columns}
    return {"scirpy": f"{len(here)} cells, of which differ in", "": {k: n for k, n in other.items() if n}}

tables, pairs = json.loads(sys.argv[1])
found = {path: of(path) for path in tables}
found |= {path: one(lambda: cells(given, path)) for given, path in pairs}
print("RESULT " + json.dumps(found))
"""


def tables(folder: Path, rows: int) -> tuple[list[Path], Path]:
    """Outputs of commands on drawn junctions, as AIRR and as tables of other programs, and on reads.

    Also that of clonotypes, which has cells.
    """
    import pyarrow.csv as arrow_csv

    drawn = folder / "generate.tsv"
    plait("vdj", "generate", "--model", "human_TRB", "-n", str(rows), "-o", drawn)
    table = arrow_csv.read_csv(drawn, parse_options=arrow_csv.ParseOptions(delimiter="\t")).to_pylist()
    contigs = ["barcode,contig_id,chain,v_gene,d_gene,j_gene,c_gene,productive,cdr3,cdr3_nt,reads,umis"]
    clones = ["cloneId\treadCount\tallVHitsWithScore\tallJHitsWithScore\tnSeqCDR3\taaSeqCDR3"]
    for k, row in enumerate(table):
        v, j = row["v_call"].partition("*")[0], row["j_call"].partition("*")[0]
        nt, aa = row["junction"], row.get("junction_aa") or ""
        contigs.append(
            f"B{k // 2}-1,B{k // 2}-1_contig_{k % 2},TRB,{v},None,{j},TRBC1,True,{aa},{nt},9,{k % 5 + 1}"
        )
        clones.append(f"{k}\t{k % 7 + 1}.0\t{v}*00(100)\t{j}*00(50)\t{nt}\t{aa}")
    given = {"airr": drawn, "10x": folder / "contigs.csv", "mixcr": folder / "clones.tsv"}
    given["10x"].write_text("\n".join(contigs) + "\n")
    given["mixcr"].write_text("\n".join(clones) + "\n")
    made = [drawn]
    for name, path in given.items():
        for words in (["count", "--germline", "human_trb"], ["pgen", "--model", "human_TRB"], ["sharing"]):
            out = folder / f"{words[0]}_{name}.tsv"
            plait("vdj", words[0], path, *words[1:], "-o", out)
            made.append(out)
    reads, annotated, clonotypes = (folder / name for name in ("cells.fastq", "reads.tsv", "clonotypes.tsv"))
    reads.write_text("".join(tagged_reads(rows)))
    places = ("--cell", "tag:CB", "--umi", "tag:UB", "--clonotypes", clonotypes)
    plait("vdj", "annotate", reads, "--germline", "mouse_tra,mouse_trb", *places, "-o", annotated)
    return [*made, annotated, clonotypes], clonotypes


def tagged_reads(count: int) -> list[str]:
    """FASTQ of alpha and beta chains of some cells, with tags of cells and molecules."""
    germlines = [load_germline(name) for name in ("mouse_tra", "mouse_trb")]
    library = Library(reads=count, clones=count // 2, sequencing=Sequencing(placement="primer"))
    lines = []
    for k, one in enumerate(simulate_reads(germlines, library, seed=1)):
        cell, umi = ("".join("ACGT"[n // 4**i % 4] for i in range(10)) for n in (one.clone // 2, 11 * k))
        lines.append(f"@{k}\tCB:Z:{cell}-1\tUB:Z:{umi}\n{one.read.sequence}\n+\n{one.read.quality}\n")
    return lines


def plait(*words: object) -> None:
    """Run a command; its messages are shown where it fails."""
    line = [str(Path(sys.executable).with_name("plait")), *map(str, words)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(line)}\n{done.stderr}")


def main() -> None:
    """Print a table of readers and outputs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", required=True, help="Python with the readers")
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("contigs", nargs="*", type=Path, help="contig annotations of 10x, plain text")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        paths, clonotypes = tables(Path(folder), options.rows)
        pairs = []
        for k, given in enumerate([clonotypes, *options.contigs]):
            pairs.append((given, Path(folder) / f"cells_of_{k}_{given.stem}.tsv"))
            plait("vdj", "cells", given, "-o", pairs[-1][1])
        asked = json.dumps([[str(path) for path in paths], [[str(a), str(b)] for a, b in pairs]])
        words = [options.peer, "-c", READ, asked]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        told = next((line for line in done.stdout.splitlines() if line.startswith("RESULT ")), None)
        if told is None:
            raise SystemExit(done.stderr)
        for path, found in json.loads(told.removeprefix("RESULT ")).items():
            print(Path(path).name)
            for reader, answer in (found if isinstance(found, dict) else {"scirpy": found}).items():
                print(f"  {reader:17} {str(answer)[:150]}")


if __name__ == "__main__":
    main()
