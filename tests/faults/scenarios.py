"""Commands that write, each with small inputs of its own."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from plait.cli import main
from plait.states import HiddenMarkovModel
from plait.vdj.germline import load_germline

__all__ = ["SCENARIOS", "Scenario"]


@dataclass(frozen=True)
class Scenario:
    """A command, run in an empty folder beside its inputs, ``../in``.

    Attributes
    ----------
    words
        Its words.
    prepare
        Makes the inputs in a folder.
    resumable
        Whether it has ``--resume``.
    whole
        Names of results that are seen only when they are complete.
    changed
        Makes another input of the same size and time; None where nothing is resumed.
    copied
        Whether what it loads survives in a copy of the process; what draws figures does not.
    most
        Most operations to strike at, where each run takes many seconds.
    """

    words: Sequence[str]
    prepare: Callable[[Path], None]
    resumable: bool = False
    whole: Sequence[str] = ()
    changed: Callable[[Path], None] | None = None
    copied: bool = True
    most: int | None = None


def _run(*words: str) -> None:
    status = main(words)
    if status:
        raise RuntimeError(f"{' '.join(words)} ended with {status}")


def _table(folder: Path, rows: int = 60, name: str = "a.tsv", seed: int = 1) -> None:
    _run(
        "vdj",
        "generate",
        "--model",
        "human_TRB",
        "--count",
        str(rows),
        "--seed",
        str(seed),
        "-o",
        str(folder / name),
    )


def _other_order(path: Path, head: int, lines: int) -> None:
    """The same bytes in another order: records change their places, size and time stay."""
    stat = path.stat()
    text = path.read_bytes().splitlines(keepends=True)
    records = [b"".join(text[k : k + lines]) for k in range(head, len(text), lines)]
    path.write_bytes(b"".join([*text[:head], *reversed(records)]))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def _other_rows(folder: Path) -> None:
    _other_order(folder / "a.tsv", 1, 1)


def _other_reads(folder: Path) -> None:
    _other_order(folder / "a.fastq", 0, 4)


def _reads(folder: Path) -> None:
    _table(folder, 24)
    germline = load_germline("human_trb")
    v = {allele.name: allele for allele in germline.v}
    j = {allele.name: allele for allele in germline.j}
    with (
        open(folder / "a.tsv", encoding="utf-8") as file,
        open(folder / "a.fastq", "w", encoding="ascii") as reads,
    ):
        for k, row in enumerate(csv.DictReader(file, delimiter="\t")):
            first, last = v[row["v_call"]], j[row["j_call"]]
            before = first.sequence[: first.anchor][-120:]
            text = before + row["junction"] + last.sequence[last.anchor + 3 :]
            reads.write(f"@r{k}\n{text}\n+\n{'I' * len(text)}\n")


def _annotated(folder: Path) -> None:
    _reads(folder)
    _run(
        "vdj",
        "annotate",
        str(folder / "a.fastq"),
        "--germline",
        "human_trb",
        "-o",
        str(folder / "r.tsv"),
    )


def _samples(folder: Path) -> None:
    lines = ["file,subject_id"]
    for k in range(3):
        _table(folder, 40, f"s{k}.tsv", seed=k % 2)
        lines.append(f"s{k}.tsv,subject{k}")
    (folder / "sheet.csv").write_text("\n".join(lines) + "\n")


def _study(folder: Path) -> None:
    _samples(folder)
    _run(
        "vdj",
        "study",
        str(folder / "sheet.csv"),
        "--germline",
        "human_trb",
        "--no-regression",
        "-o",
        str(folder / "study"),
    )


def _fasta(folder: Path) -> None:
    rng = np.random.default_rng(3)
    for name, count in (("q.fasta", 3), ("t.fasta", 9)):
        letters = ["".join(rng.choice(list("ACGT"), 40)) for _ in range(count)]
        (folder / name).write_text("".join(f">{name[0]}{k}\n{text}\n" for k, text in enumerate(letters)))


def _hidden(folder: Path) -> None:
    _fasta(folder)
    model = HiddenMarkovModel(
        [0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], [[0.25] * 4, [0.1, 0.4, 0.4, 0.1]], ("a", "b"), tuple("ACGT")
    )
    model.write(folder / "m.json")


def _events(folder: Path) -> None:
    rng = np.random.default_rng(1)
    rows = (f"{kind}\t{time}\n" for time, kind in enumerate(rng.choice(list("ABC"), 400)))
    (folder / "e.tsv").write_text("type\ttime\n" + "".join(rows))


def _database(folder: Path) -> None:
    _fasta(folder)
    _run("search", "index", str(folder / "t.fasta"), "-o", str(folder / "t.plaitdb"))


def _genome(folder: Path) -> None:
    letters = np.random.default_rng(4).choice(list("ACGT"), 4000).tolist()
    (folder / "t.fa").write_text(">t\n" + "".join(letters) + "ACGTACCTACGT\n")


def _cube(folder: Path) -> None:
    steps = np.random.default_rng(5).integers(-5, 6, (24, 16, 6))
    np.save(folder / "c.npy", np.cumsum(steps, axis=1).clip(-400, 400).astype(np.int16))


def _stream(folder: Path) -> None:
    _cube(folder)
    _run("hsi", "compress", str(folder / "c.npy"), "-o", str(folder / "c.c123"))


def _container(folder: Path) -> None:
    _envi(folder)
    _run("hsi", "compress", str(folder / "e.img"), "-o", str(folder / "e.plaith"))


def _envi(folder: Path) -> None:
    cube = np.arange(24 * 16 * 6, dtype=np.uint16).reshape(24, 16, 6)
    (folder / "e.img").write_bytes(cube.tobytes())
    (folder / "e.hdr").write_text(
        "ENVI\nsamples = 16\nlines = 24\nbands = 6\ndata type = 12\ninterleave = bip\nbyte order = 0\n"
    )
    _run("hsi", "compress", str(folder / "e.img"), "-o", str(folder / "e.c123"))


_ROWS = ("o.tsv", "o.tsv.summary.json")
SCENARIOS: dict[str, Scenario] = {
    "count": Scenario(
        ("vdj", "count", "../in/a.tsv", "--germline", "human_trb", "-o", "o.tsv"),
        _table,
        True,
        _ROWS,
        _other_rows,
    ),
    "count-parts": Scenario(
        (
            *("vdj", "count", "../in/a.tsv", "--germline", "human_trb", "--threads", "1"),
            *("--part-rows", "16", "-o", "o/"),
        ),
        _table,
        True,
        ("o/_manifest.json", "o/_summary.json", *(f"o/part-0000000{k}.parquet" for k in range(4))),
        _other_rows,
    ),
    "pgen": Scenario(
        ("vdj", "pgen", "../in/a.tsv", "--model", "human_TRB", "-o", "o.parquet"),
        _table,
        True,
        ("o.parquet",),
        _other_rows,
    ),
    "scenarios": Scenario(
        ("vdj", "scenarios", "../in/a.tsv", "--model", "human_TRB", "-o", "o.tsv.gz"),
        lambda f: _table(f, 12),
        True,
        ("o.tsv.gz",),
        _other_rows,
    ),
    "generate": Scenario(
        ("vdj", "generate", "--model", "human_TRB", "--count", "200", "--seed", "4", "-o", "o.tsv.zst"),
        lambda folder: None,
        True,
        ("o.tsv.zst",),
    ),
    "annotate": Scenario(
        (
            "vdj",
            "annotate",
            "../in/a.fastq",
            "--germline",
            "human_trb",
            "-o",
            "o.tsv",
            "--clonotypes",
            "c.tsv",
        ),
        _reads,
        True,
        (*_ROWS, "c.tsv"),
        _other_reads,
    ),
    "alleles": Scenario(
        ("vdj", "alleles", "../in/r.tsv", "--germline", "human_trb", "-o", "o.tsv", "--extended", "x.json"),
        _annotated,
        False,
        ("o.tsv", "x.json"),
    ),
    "infer": Scenario(
        (
            "vdj",
            "infer",
            "../in/a.tsv",
            "--germline",
            "human_trb",
            "--rows",
            "all",
            "--iterations",
            "2",
            "--no-report",
            "-o",
            "o",
        ),
        _table,
        True,
        ("o/model.json", "o/inference.json"),
        _other_rows,
    ),
    "study": Scenario(
        ("vdj", "study", "../in/sheet.csv", "--germline", "human_trb", "--no-regression", "-o", "o"),
        _samples,
        True,
        ("o/study.json",),
    ),
    "sharing": Scenario(
        ("vdj", "sharing", "../in/s0.tsv", "../in/s1.tsv", "--subject", "v_call", "-o", "o.tsv"),
        _samples,
        False,
        ("o.tsv",),
    ),
    "diversity": Scenario(
        (
            *("vdj", "diversity", "../in/s0.tsv", "../in/s1.tsv", "-o", "o.tsv"),
            *("--rarefaction", "r.parquet", "--usage", "u.tsv.gz", "--replicates", "4", "--threads", "1"),
        ),
        _samples,
        False,
        ("o.tsv", "r.parquet", "u.tsv.gz"),
    ),
    "neighbours": Scenario(
        (
            *("vdj", "neighbours", "../in/s2.tsv", "../in/s0.tsv", "--control", "../in/s1.tsv"),
            *("--key", "cdr3nt", "--edits", "3", "--threads", "1", "-o", "o.tsv"),
        ),
        _samples,
        False,
        ("o.tsv",),
    ),
    "report": Scenario(
        ("vdj", "report", "../in/study", "-o", "o.html"), _study, False, ("o.html",), copied=False, most=2
    ),
    "align": Scenario(
        ("align", "../in/q.fasta", "../in/t.fasta", "--pairs", "all", "-o", "o.sam"),
        _fasta,
        False,
        ("o.sam",),
    ),
    "scores": Scenario(
        ("align", "../in/q.fasta", "../in/t.fasta", "--pairs", "all", "--score-only", "-o", "o.tsv"),
        _fasta,
        False,
        ("o.tsv",),
    ),
    "index": Scenario(("search", "index", "../in/t.fasta", "-o", "o.plaitdb"), _fasta, False, ("o.plaitdb",)),
    "search": Scenario(
        ("search", "../in/q.fasta", "../in/t.plaitdb", "--evalue", "1e6", "-o", "o.tsv"),
        _database,
        False,
        ("o.tsv",),
    ),
    "find": Scenario(
        ("find", "ACGTACGTACGT", "../in/t.fa", "--errors", "3", "--edits", "-o", "o.tsv"),
        _genome,
        False,
        ("o.tsv",),
    ),
    "fold": Scenario(
        ("fold", "../in/t.fasta", "--suboptimal", "1", "--plot", "o", "-o", "o.tsv"),
        _fasta,
        False,
        ("o.tsv", *(f"o/t{k}{end}" for k in (0, 8) for end in (".html", ".svg"))),
    ),
    "map_index": Scenario(
        ("index", "../in/t.fasta", "-o", "o.plait-index"), _fasta, False, ("o.plait-index",)
    ),
    "map": Scenario(
        ("map", "../in/q.fasta", "../in/t.fasta", "--errors", "2", "-o", "o.bam"), _fasta, False, ("o.bam",)
    ),
    "compress": Scenario(
        ("hsi", "compress", "../in/c.npy", "-o", "o.c123", "--index", "o.index"),
        _cube,
        False,
        ("o.c123", "o.index"),
    ),
    "container": Scenario(
        ("hsi", "compress", "../in/c.npy", "-o", "o.plaith", "--blocks", "tiles:8x8", "--checksum"),
        _cube,
        False,
        ("o.plaith",),
    ),
    "decompress": Scenario(
        ("hsi", "decompress", "../in/e.c123", "-o", "o.img"), _envi, False, ("o.img", "o.hdr")
    ),
    "restore": Scenario(
        ("hsi", "decompress", "../in/e.plaith", "-o", "back"),
        _container,
        False,
        ("back/e.img", "back/e.hdr"),
    ),
    "side-index": Scenario(
        ("hsi", "index", "../in/c.c123", "--every", "4", "-o", "o.index"), _stream, False, ("o.index",)
    ),
    "random": Scenario(
        ("random", "mt19937", "--count", "9000", "-o", "o.npy"), lambda folder: None, False, ("o.npy",)
    ),
    "similar": Scenario(("similar", "../in/t.fasta", "-q", "3", "-o", "o.tsv"), _fasta, False, ("o.tsv",)),
    "ldpc": Scenario(
        (
            *(
                "ldpc",
                "decode",
                "../in/w.npy",
                "--code",
                "wimax-576",
                "--method",
                "min-sum",
                "--threads",
                "1",
            ),
            *("-o", "o.npy", "--report", "o.tsv"),
        ),
        lambda folder: np.save(folder / "w.npy", np.random.default_rng(1).normal(2, 2, (40, 576))),
        False,
        ("o.npy", "o.tsv"),
    ),
    "encode": Scenario(
        ("ldpc", "encode", "../in/b.npy", "--code", "wimax-576", "-o", "o.npy"),
        lambda folder: np.save(folder / "b.npy", np.random.default_rng(1).integers(0, 2, (40, 288))),
        False,
        ("o.npy",),
    ),
    "simulate": Scenario(
        (
            *("ldpc", "simulate", "--code", "wimax-576", "--ebn0", "2", "--words", "20", "--threads", "1"),
            *("--iterations", "5", "-o", "o.tsv"),
        ),
        lambda folder: None,
        False,
        ("o.tsv",),
    ),
    "decode": Scenario(
        ("decode", "../in/m.json", "../in/t.fasta", "--threads", "1", "-o", "o.tsv"),
        _hidden,
        False,
        ("o.tsv",),
    ),
    "episodes": Scenario(
        (
            *("episodes", "../in/e.tsv", "--window", "0:3", "--support", "5", "--max-size", "3"),
            *("--threads", "1", "-o", "o.tsv"),
        ),
        _events,
        False,
        ("o.tsv",),
    ),
    "convert": Scenario(
        ("germline", "convert", "human_trb", "-o", "o.json"), lambda folder: None, False, ("o.json",)
    ),
    "convert-fasta": Scenario(
        ("germline", "convert", "human_trb", "-o", "o_"),
        lambda folder: None,
        False,
        ("o_V.fasta", "o_D.fasta", "o_J.fasta"),
    ),
}
