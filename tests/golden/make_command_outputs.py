"""Write command_outputs.json: digests of what command lines write and print for the inputs in commands/.

Run ``python tests/golden/make_command_outputs.py`` to write the file again; with ``--compare`` and beginnings
of command lines, to see which of them write the same on this machine. Tables in Parquet count by their
schema and rows, texts by their lines; times, versions, digests and paths are masked, and numbers with a point
count by nine digits, because the last ones depend on the processor.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from plait.cli import main

INPUTS = Path(__file__).parent / "commands"
OUTPUTS = Path(__file__).with_name("command_outputs.json")

_COUNT = "vdj count rows.tsv --germline mouse_trb --device cpu"
_READS = "vdj annotate reads_1.fastq --germline mouse_trb --min-junction-quality"
_ALIGN = "align proteins.fasta --pairs all"
_SEARCH = "search proteins.fasta proteins.fasta --device cpu"
_HSI = "hsi compress cube.npy"
_FIND = "find guides.tsv genome.fasta --device cpu"
_BARCODES = "find barcodes.txt barcoded.fastq --anchored --device cpu"
_MAP = "map short_1.fastq genome.fasta"
_FOLD = "fold rna.fasta --device cpu"
#: A command line each; later ones read what earlier ones wrote. Every output is named out*.
COMMANDS = (
    "vdj generate --model human_TRB -n 60 --seed 3 -o out-drawn.tsv",
    "vdj generate --model human_TRB -n 300 --seed 4 --keep all -o out-all.parquet",
    f"{_COUNT} -o out-dp2.tsv --threads 1",
    f"{_COUNT} -o out-dp2.parquet --threads 2 --strands 2 --sweep-pi 0:2 --sweep-nu 0,4",
    f"{_COUNT} -o out-few.tsv --columns path_count_sweep,junction,path_count --sweep-pi 0:2 --sweep-nu 0,4",
    f"{_COUNT} -o out-dp1.tsv --model dp1 --max-n 4 --long",
    f"{_COUNT} -o out-exhaustive.tsv --model exhaustive --max-n 1 --empty-d once",
    f"{_COUNT} -o out-wide.tsv.gz --overflow wide --ambiguous all --nu-vd 4",
    "vdj count rows.tsv --germline mouse_trb --device reference --pi 1 --nu 2 -o out-reference.tsv",
    f"{_COUNT} -o out-resumed.tsv --resume",
    f"{_COUNT} -o out-dask.parquet --executor dask --workers 1",
    "vdj explain TGTGCCAGCAGTTGGGACTGGTATGAACAGTACTTC --v TRBV13-1 --j TRBJ2-7 --germline mouse_trb"
    " --format json",
    "vdj pgen out-drawn.tsv --model human_TRB -o out-pgen.tsv --of nt,aa --threads 1",
    "vdj pgen out-all.parquet --model human_TRB -o out-pgen.parquet --calls use --log10 --threads 2",
    "vdj scenarios out-drawn.tsv --model human_TRB -o out-scenarios.tsv --best 3",
    "vdj scenarios out-drawn.tsv --model human_TRB -o out-posteriors.tsv --posteriors --calls use",
    "vdj infer out-all.parquet --start human_TRB --rows all --iterations 2 --no-report -o out-model",
    "vdj sharing rows.tsv -o out-sharing.tsv --by-subject out-subjects.parquet",
    "vdj sharing rows.tsv --key cdr3aa+v --mismatches 1 --list-subjects --overlap out-overlaps.tsv"
    " -o out-near-each-other.tsv",
    "vdj generate --model human_TRB -n 400 --seed 9 -o out-other.tsv",
    "vdj sharing out-drawn.tsv out-other.tsv --key cdr3aa --model human_TRB --selection 1 --draws 3000"
    " --device cpu -o out-expected.tsv",
    "vdj diversity rows.tsv -o out-diversity.tsv --rarefaction out-curves.tsv --usage out-usage.tsv"
    " --spectratypes out-lengths.tsv --replicates 5",
    "vdj neighbours out-drawn.tsv out-other.tsv --model human_TRB --draws 3000 --edits 1 -o out-near.tsv",
    "vdj study sheet.csv --germline mouse_trb --pi 1 --nu 4 --sweep-pi 0,1 --sweep-nu 4 --lambdas 5"
    " --halves 4 --device cpu -o out-study",
    f"{_READS} 0 -o out-reads.tsv --clonotypes out-clonotypes.tsv --threads 1 --keep-failed",
    "vdj annotate reads_1.fastq --mate reads_2.fastq --germline mouse_trb,mouse_tra --umi name"
    " -o out-mates.parquet --alignment-parts --threads 2",
    f"{_READS} 5 --productive --merge-satellites 10 --clonotypes out-merged.tsv -o out-productive.tsv",
    "vdj annotate reads_1.fastq --germline mouse_tr --regions --min-junction-quality 0 -o out-regions.tsv",
    "vdj alleles out-reads.tsv --germline mouse_trb -o out-alleles.tsv --min-clonotypes 1",
    f"{_ALIGN} -o out-local.txt --mode local --threads 1",
    f"{_ALIGN} -o out-global.tsv --mode global --gap-open 5 --gap-extend 5 --threads 2",
    "align nucleotides.fasta --pairs all -o out-semiglobal.sam --mode semiglobal --match 2 --mismatch -3"
    " --md",
    "align nucleotides.fasta --pairs all -o out-overlap.parquet --mode overlap",
    "align nucleotides.fasta --pairs all -o out-extension.jsonl --mode extension --x-drop 20",
    "align nucleotides.fasta --pairs all -o out-band.tsv --mode global --band=-120:120 --traceback linear",
    "align proteins.fasta --pairs all -o out-plain.tsv --mode local --score-only --device reference",
    f"{_SEARCH} -o out-hits.m8 --threads 1",
    f"{_SEARCH} -o out-hits.parquet --top 3 --matrix PAM30 --threads 2",
    "search nucleotides.fasta nucleotides.fasta -o out-hits.txt --evalue 1e-3 --device cpu",
    f"{_HSI} -o out-cube.c123 --index out-cube.index",
    f"{_HSI} -o out-blocks.c123 --blocks rows:5 --preset best --checksum --threads 2",
    f"{_HSI} -o out-hybrid.c123 --coder hybrid --order bi --interleaving-depth 1",
    f"{_HSI} -o out-adaptive.c123 --coder block-adaptive --order bsq --prediction-bands 1 --bare",
    f"{_HSI} -o out-near.c123 --max-error 2 --coder hybrid",
    "hsi decompress out-near.c123 -o out-near.npy",
    "hsi decompress out-cube.c123 --index out-cube.index -o out-back.npy",
    "hsi decompress out-blocks.c123 -o out-back.hdr --format envi --interleave bsq",
    "hsi info out-blocks.c123 --json",
    "hsi verify out-blocks.c123",
    "germline show mouse_trb --format csv",
    "germline convert human_tra -o out-germline.json",
    "germline convert mouse_trb -o out-fasta",
    "germline validate human_trb",
    f"{_FIND} -o out-mismatches.tsv --mismatches 4 --threads 1",
    f"{_FIND} -o out-guides.tsv --mismatches 3 --pam NGG --threads 1",
    f"{_FIND} -o out-bulges.parquet --mismatches 4 --pam NGG --dna-bulges 1 --rna-bulges 1 --threads 2",
    f"{_FIND} -o out-edits.bed --errors 4 --edits --threads 2",
    f"{_FIND} -o out-ends.jsonl --errors 3 --edits --report ends --text-iupac --strand +",
    f"{_FIND} -o out-best.txt --mismatches 6 --report best --strata 1 --max-hits 3",
    "find guides.tsv genome.fasta -o out-plain.paf --mismatches 2 --pam NGG --device reference",
    f"{_FIND} -o out-counts.tsv --mismatches 8 --count-only --overhang",
    "find primers.fasta genome.fasta -o out-products.tsv --mismatches 1 --pairs --device cpu",
    f"{_BARCODES} -o out-barcodes.tsv --errors 2 --edits",
    f"{_BARCODES} -o out-samples.tsv --mismatches 1 --demultiplex",
    f"{_MAP} -o out-map.sam --errors 4 --threads 1",
    f"{_MAP} -o out-map.bam --report best+1 --mapq unique --threads 2",
    f"{_MAP} -o out-map.parquet --errors 3 --substitutions-only --max-hits 2",
    "map short_1.fastq genome.fasta --mate short_2.fastq -o out-exact.paf --errors 0",
    "index genome.fasta -o out-genome.plait-index",
    "index genome.fasta --check out-genome.plait-index",
    "map short_2.fastq out-genome.plait-index -o out-index.sam --error-rate 6 --report best",
    f"{_FOLD} -o out-folds.txt --threads 1",
    f"{_FOLD} -o out-pairs.jsonl --mea --pairs out-pairs.tsv --samples 3 --seed 5 --threads 2",
    f"{_FOLD} -o out-folds.parquet --probabilities --dangles 0 --max-span 50",
    "fold barcodes.txt -o out-reference.db --probabilities --device reference",
    "fold eval structures.txt",
    "vdj study sheet.csv --germline mouse_trb --pi 1 --nu 4 --key cdr3aa+v+j --no-regression --device cpu"
    " -o out-public",
    "vdj cells cells.csv -o out-cells.tsv",
    f"{_ALIGN} -o out-best.tsv --mode local --best 3 --apart 5 --threads 1",
    "align nucleotides.fasta --pairs all -o out-disjoint.paf --mode local --best 2 --disjoint",
    f"{_SEARCH} -o out-several.m8 --hits-per-target 2 --threads 1",
    "search nucleotides.fasta nucleotides.fasta --strand both --device cpu -o out-strands.m8",
    "random mrg32k3a -n 100 --skip 1000 --device cpu -o out-mrg.npy",
    "random mt19937 -n 100 --distribution raw --device cpu -o out-words32.npy",
    "random sobol -n 64 --dimensions 3 --distribution normal --device cpu -o out-points.npy",
    "similar nucleotides.fasta --at-least 0.05 --device cpu -o out-similar.tsv",
    "similar rows.tsv --column junction -q 3 --nearest 2 --device cpu -o out-nearest.parquet",
    "ldpc encode bits.npy --code wimax-576 -o out-words.npy",
    "ldpc simulate --code wimax-576 --ebn0 2 --words 40 --device cpu -o out-rates.tsv",
    "ldpc simulate --code wimax-576 --ebn0 2 --words 40 --method min-sum --device cpu -o out-min-sum.tsv",
    "episodes events.tsv --window 0:5 --window 5:10 --support 20 --max-size 4 -o out-episodes.tsv",
    "episodes events.tsv --list out-episodes.tsv -o out-listed.parquet",
    "decode islands.json dna.fasta -o out-states.tsv",
    "decode islands.json dna.fasta --what posterior -o out-shares.tsv",
    "decode islands.json dna.fasta --what count -o out-paths.tsv",
    "decode graph.txt frames.npy --beam 6 --active 2 -o out-labels.tsv",
    "decode graph.txt frames.npy --what sum -o out-sum.tsv",
)

_MASKS = (
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ][\d:.]+(?:Z|[+-][\d:]+)?"), "<time>"),
    (
        re.compile(r'"(created|started|finished|version|plait|numpy|numba|pyarrow|created_by)": *"[^"]*"'),
        r'"\1": <>',
    ),
    (re.compile(r'"([a-z_]*(?:seconds|per_second|_mib|_ns|mtime|inode))": *[-\d.e+]+'), r'"\1": <>'),
    (re.compile(r'"timings": *\{[^}]*\}'), '"timings": <>'),
    (re.compile(r"\b\d[\d.,]* (?:s|min|GCUPS|MiB)\b|\b\d[\d.,]*(?: \w+)?/s\b"), "<amount>"),
    (re.compile(r"\b[0-9a-f]{16,128}\b"), "<digest>"),
)
_NUMBER = re.compile(r"(?<![\w.])-?\d+\.\d{6,}(?:e[-+]?\d+)?|(?<![\w.])-?\d+(?:\.\d+)?e[-+]?\d+(?!\w)")


def masked(text: str, folder: Path) -> str:
    """A text without what differs from run to run and from processor to processor."""
    for place in {str(folder), str(folder.resolve())}:
        text = text.replace(place, "<folder>")
    text = _NUMBER.sub(lambda found: f"{float(found[0]):.9g}", text)
    for pattern, mask in _MASKS:
        text = pattern.sub(mask, text)
    # There is no rate where all of the time went into compiling.
    return text.replace("<amount>, <amount>", "<amount>")


def _of_table(table: pa.Table, folder: Path) -> str:
    metadata = {key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()}
    facts = json.dumps({key: metadata[key] for key in sorted(metadata)})
    rows = "\n".join(map(str, table.to_pylist()))
    return masked("\n".join([str(table.schema.remove_metadata()), facts, rows]), folder)


def content(file: Path, folder: Path) -> bytes:
    """What of a file is golden."""
    if file.suffix == ".parquet":
        return _of_table(pq.read_table(file), folder).encode()
    if file.suffix == ".plait-index":
        # Whatever layout it has, later lines read it.
        return b""
    data = gzip.decompress(file.read_bytes()) if file.suffix in (".gz", ".bam") else file.read_bytes()
    if file.suffix == ".bam":
        return masked(data.decode("latin-1"), folder).encode()
    if file.suffix in (".c123", ".npy", ".img", ".index"):
        return data
    return masked(data.decode(), folder).encode()


@contextlib.contextmanager
def _within(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def run(command: str, folder: Path) -> dict[str, str]:
    """Run a command line in a folder; digests of its printed lines and of the files that it wrote."""
    before = {path for path in folder.rglob("*") if path.is_file()}
    printed = io.StringIO()
    with (
        _within(folder),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(io.StringIO()) as told,
    ):
        status = main(command.split())
    assert status == 0, f"plait {command}: exit status {status}\n{told.getvalue()}"
    found = {"(printed)": masked(printed.getvalue(), folder).encode()}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path not in before:
            found[path.relative_to(folder).as_posix()] = content(path, folder)
    return {name: hashlib.sha256(data).hexdigest()[:24] for name, data in found.items()}


def run_all(folder: Path, commands: Iterable[str] = COMMANDS) -> dict[str, dict[str, str]]:
    """Digests of all commands, or of some, in their order."""
    shutil.copytree(INPUTS, folder, dirs_exist_ok=True)
    return {command: run(command, folder) for command in commands}


def compare(folder: Path, beginnings: tuple[str, ...]) -> bool:
    """Print of command lines with these beginnings whether they do what is golden; whether all do."""
    shutil.copytree(INPUTS, folder, dirs_exist_ok=True)
    expected, alike = json.loads(OUTPUTS.read_text(encoding="utf-8")), True
    for command in COMMANDS:
        if command.startswith(beginnings or ""):
            try:
                found = run(command, folder)
                other = [name for name, digest in expected[command].items() if found.get(name) != digest]
            except AssertionError as error:
                other = [str(error).splitlines()[-1]]
            print(f"other ({', '.join(other)}):" if other else "same:", f"plait {command}", flush=True)
            alike = alike and not other
    return alike


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        if sys.argv[1:2] == ["--compare"]:
            sys.exit(not compare(Path(name) / "run", tuple(sys.argv[2:])))
        folder = Path(sys.argv[1]) if sys.argv[1:] else Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        OUTPUTS.write_text(json.dumps(run_all(folder), indent=1) + "\n", encoding="utf-8")
