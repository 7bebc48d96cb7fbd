"""Reads to rearrangements: how right, how few false ones, how fast.

    python benchmarks/vdj_annotate.py [--data FOLDER] [--part accuracy|genbank|quality|noise|speed|commands]

FOLDER holds the shared data (see the README there); parts that need a file which is not there are left out
and said to be. Simulated reads are made in the run. Published figures of other programs come from other
machines, as the text says.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
from collections.abc import Iterator
from pathlib import Path

from annotation_accuracy import genbank, own_reads, productive, shared_reads
from annotation_noise import noise
from annotation_quality import clonotype_curve
from annotation_speed import PUBLISHED, stages, whole_command, write_inputs
from support.read_library import Library
from support.read_simulation import Sequencing

from plait.vdj.germline import GermlineSet, load_germline
from plait.vdj.reads.annotator import ReadAnnotator

PARTS = ("accuracy", "genbank", "quality", "noise", "speed", "commands")
SHARED_READS = "sim_mouse_TRB_10k_150nt.fastq.gz"
#: Name, sets, what a library holds.
LIBRARIES = (
    ("no errors", Sequencing()),
    ("0.5 % substitutions", Sequencing(substitutions=0.005)),
    (
        "0.5 % substitutions, 0.1 % indels",
        Sequencing(substitutions=0.005, insertions=0.0005, deletions=0.0005),
    ),
    ("100 nt, 0.5 % substitutions", Sequencing(length=100, substitutions=0.005)),
    ("anywhere, 250 nt, no errors", Sequencing(length=250, placement="anywhere")),
)


def accuracy(data: Path, cases: list[str]) -> Iterator[str]:
    """Shared simulated reads, then own ones of all four sets."""
    if (data / SHARED_READS).exists():
        yield "-- shared simulated reads: mouse TRB, 150 nt, 0.5 % substitutions, half of them reversed"
        text, odd = shared_reads(data, ReadAnnotator([load_germline("mouse_trb")]))
        yield from text
        cases += [f"shared: {line}" for line in odd]
    else:
        yield f"-- {SHARED_READS} is not there: left out"
    for name in ("mouse_trb", "mouse_tra", "human_trb", "human_tra"):
        for what, sequencing in LIBRARIES:
            yield f"-- 5,000 reads of {name}, every gene and allele, {what}"
            library = Library(reads=5000, clones=5000, skew=0.0, sequencing=sequencing)
            text, odd = own_reads([load_germline(name)], library, seed=1)
            yield from text
            cases += [f"{name}, {what}: {line}" for line in odd]


def _germline(name: str) -> GermlineSet:
    """A bundled set, or that of a path."""
    return load_germline(Path(name) if "/" in name else name)


def run(options: argparse.Namespace, cases: list[str]) -> Iterator[str]:
    """All parts that were asked for."""
    data: Path = options.data
    if "accuracy" in options.part:
        yield from accuracy(data, cases)
    if "genbank" in options.part:
        yield "-- GenBank mouse mRNAs of TRA and TRB, both sets at once, beside IgBLAST"
        text, odd = genbank(data)
        yield from text
        cases += [f"GenBank: {line}" for line in odd]
        tables = [str(data / "genbank_mouse.igblast.airr.tsv.gz"), "mouse_tra,mouse_trb", "TRA,TRB"]
        for path, sets, loci in [tables, *(own.split(":") for own in options.igblast)]:
            yield f"-- productive, {Path(path).name}, {loci}, against {sets}"
            germlines = [_germline(name) for name in sets.split(",")]
            yield from productive(Path(path), germlines, loci.split(","))
    if "quality" in options.part:
        yield f"-- clonotypes of mouse TRB, 150 nt, scores of {options.qualities or 'the model'}"
        yield from clonotype_curve(load_germline("mouse_trb"), options.quality_reads, options.qualities, 1)
    if "noise" in options.part:
        for name in ("mouse_tra,mouse_trb", "human_tra,human_trb"):
            yield f"-- DNA without rearrangements, against {name}"
            sets = [load_germline(part) for part in name.split(",")]
            yield from noise(sets, options.noise_reads, options.genome)
    if {"speed", "commands"} & set(options.part):
        yield "-- speed, mouse TRB, 150-nt reads"
        with tempfile.TemporaryDirectory() as folder:
            inputs = write_inputs(Path(folder), data / SHARED_READS, options.reads)
            if "speed" in options.part:
                yield from stages(inputs, options.repeat)
            yield from whole_command(inputs, options.reads, options.repeat, Path(folder))
        yield "for comparison, not installable here and not run in the same run:"
        yield from (f"  {line}" for line in PUBLISHED)


def main() -> None:
    """Run everything and print it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--part", action="append", choices=PARTS, default=None)
    parser.add_argument("--reads", type=int, default=200_000, help="reads whose annotation is timed")
    parser.add_argument("--quality-reads", type=int, default=40_000)
    parser.add_argument("--qualities", type=Path, help="FASTQ file whose scores simulated reads get")
    parser.add_argument(
        "--igblast",
        action="append",
        default=[],
        metavar="TABLE:SETS:LOCI",
        help="AIRR table of IgBLAST's (.tsv.gz), names or paths of germline sets, and loci to compare",
    )
    parser.add_argument("--noise-reads", type=int, default=1_000_000)
    parser.add_argument("--genome", type=Path, help="FASTA of a genome without receptors, such as lambda's")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--cases", type=Path, help="write every read here that is not as it should be")
    options = parser.parse_args()
    options.part = options.part or PARTS
    cases: list[str] = []
    cores = len(os.sched_getaffinity(0))
    print(f"{platform.processor() or platform.machine()}, {cores} cores, Python {platform.python_version()}")
    for line in run(options, cases):
        print(line, flush=True)
    if options.cases:
        options.cases.write_text("".join(f"{line}\n" for line in cases))


if __name__ == "__main__":
    main()
