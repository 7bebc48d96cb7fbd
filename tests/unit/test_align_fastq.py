"""FASTQ where sequences are read: the same as FASTA, and qualities in SAM."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from plait.align import make_aligner
from plait.align.files import align_files
from plait.align.scoring import make_scoring
from plait.align.settings import WhichAlignments
from plait.errors import FormatError
from plait.formats.fasta import read_fasta
from plait.formats.fastq import read_sequences

READS = [
    ("r1", "ACGTTGCAAC", "IIIIIHHH!~"),
    ("r2", "ttgcaNCGT", "ABCDEFGHI"),
    ("r3", "", ""),
    ("r4", "GGGG", "@@@@"),
]
TARGETS = ">t\nCCACGTTGCAACGG\n"


def fastq(path: Path, end: str = "\n") -> Path:
    text = "".join(f"@{name} more{end}{own}{end}+{end}{quality}{end}" for name, own, quality in READS)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def fasta(path: Path) -> Path:
    path.write_text("".join(f">{name}\n{own}\n" for name, own, _ in READS))
    return path


@pytest.mark.parametrize("name", ["a.fq", "a.fq.gz", "reads.txt"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("block", [1, 30, 1 << 20])
def test_records(name: str, end: str, block: int, tmp_path: Path) -> None:
    found = list(read_sequences(fastq(tmp_path / name, end), block_residues=block))
    told = [
        (own.names[k], own.sequence(k).decode(), own.quality(k).decode())
        for own in found
        for k in range(len(own))
    ]
    assert told == READS
    assert [int(line) for own in found for line in own.lines] == [1, 5, 9, 13]
    assert found[-1].bytes_read == (tmp_path / name).stat().st_size
    for plain, other in zip(
        read_fasta(fasta(tmp_path / "a.fa")), read_sequences(tmp_path / "a.fa"), strict=True
    ):
        assert (plain.names, plain.quality(0), plain.letters.tobytes()) == (
            other.names,
            b"",
            other.letters.tobytes(),
        )


def rows(queries: Path, targets: Path, out: Path, **more: Any) -> list[list[str]]:
    aligner = make_aligner(make_scoring(kind="dna"), mode="local", threads=1)
    align_files(queries, targets, out, aligner, pairs="all", **more)
    return [line.split("\t") for line in out.read_text().splitlines() if line[:1] != "@"]


@pytest.mark.parametrize("name", ["out.tsv", "out.sam", "out.paf", "out.txt"])
def test_reads_are_aligned_as_sequences(name: str, tmp_path: Path) -> None:
    targets = tmp_path / "t.fa"
    targets.write_text(TARGETS)
    of_reads = rows(fastq(tmp_path / "q.fq"), targets, tmp_path / name)
    expected = rows(fasta(tmp_path / "q.fa"), targets, tmp_path / name)
    if name == "out.sam":
        assert [row[10] for row in of_reads] == [quality or "*" for _, _, quality in READS]
        assert {row[10] for row in expected} == {"*"}
        of_reads = [row[:10] + row[11:] for row in of_reads]
        expected = [row[:10] + row[11:] for row in expected]
    assert of_reads == expected


def test_qualities_are_turned_with_the_strand(tmp_path: Path) -> None:
    queries, targets = tmp_path / "q.fq", tmp_path / "t.fa"
    queries.write_text("@r\nGTTGCAACGTGG\n+\nABCDEFGHIJKL\n")
    targets.write_text(TARGETS)
    (row,) = rows(queries, targets, tmp_path / "out.sam", which=WhichAlignments(strand="both"))
    assert (row[1], row[9], row[10]) == ("16", "CCACGTTGCAAC", "LKJIHGFEDCBA")


def test_targets_may_be_reads(tmp_path: Path) -> None:
    targets = tmp_path / "t.fa"
    targets.write_text(TARGETS)
    found = rows(targets, fastq(tmp_path / "q.fq"), tmp_path / "out.sam")
    assert [row[2] for row in found] == ["r1", "r2", "r4"]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("@r\nACGT\n+\nII I\n", "line 4.*0x20 as the quality at position 3"),
        ("@r\nACGT\n+\nIII\n", "line 4"),
        ("@r\nAC-T\n+\nIIII\n", "line 1: found '-' at position 3 of sequence 'r'"),
        ("@\nACGT\n+\nIIII\n", "line 1"),
        ("", "an empty file"),
    ],
    ids=str,
)
def test_reads_that_are_wrong(text: str, what: str, tmp_path: Path) -> None:
    targets = tmp_path / "t.fa"
    targets.write_text(TARGETS)
    (tmp_path / "q.fq").write_text(text)
    with pytest.raises(FormatError, match=what):
        rows(tmp_path / "q.fq", targets, tmp_path / "out.tsv")
