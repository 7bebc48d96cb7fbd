"""Whether the tables that plait writes are read by other programs, and with the same junctions.

``python benchmarks/readers.py --peer PYTHON``, where that interpreter has airr, scirpy, polars, pandas and
pyimmunarch. For each table it prints what each reader says: rows, or the error. A table is valid for airr if
it has all columns that the AIRR schema requires, which tables of junctions do not.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

READ = """
import json, sys, warnings
warnings.simplefilter("ignore")
import airr, pandas, polars, pyimmunarch, scirpy

def junctions(column):
    return sorted(str(text).upper() for text in column if isinstance(text, str) and text)

def one(read):
    try:
        return read()
    except Exception as error:
        return f"{type(error).__name__}: {error}"

def of(path):
    text = lambda: pandas.read_csv(path, sep="\\t", dtype=str, keep_default_na=False)
    rows = text()
    wanted = junctions(rows["junction"])
    def same(found):
        return "same junctions" if junctions(found) == wanted else "OTHER JUNCTIONS"
    return {
        "pandas": len(rows),
        "polars": one(lambda: same(polars.read_csv(path, separator="\\t")["junction"])),
        "airr": one(lambda: same(airr.load_rearrangement(path)["junction"])),
        "airr validate": one(lambda: bool(airr.validate_rearrangement(path))),
        "scirpy": one(lambda: f"{scirpy.io.read_airr(path).n_obs} cells"),
        "pyimmunarch": one(lambda: same(next(iter(pyimmunarch.repLoad([path]).data.values()))["CDR3.nt"])),
    }

print("RESULT " + json.dumps({path: of(path) for path in sys.argv[1:]}))
"""


def tables(folder: Path, rows: int) -> list[Path]:
    """Outputs of commands on drawn junctions, as AIRR and as tables of other programs."""
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
    return made


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
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        paths = tables(Path(folder), options.rows)
        words = [options.peer, "-c", READ, *map(str, paths)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        told = next((line for line in done.stdout.splitlines() if line.startswith("RESULT ")), None)
        if told is None:
            raise SystemExit(done.stderr)
        for path, found in json.loads(told.removeprefix("RESULT ")).items():
            print(Path(path).name)
            for reader, answer in found.items():
                print(f"  {reader:14} {str(answer)[:150]}")


if __name__ == "__main__":
    main()
