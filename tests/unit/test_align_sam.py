"""Aligned pairs as SAM: line by line, and as pysam reads them."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plait.align.results import make_alignment
from plait.align.scoring import Scoring, load_matrix, match_mismatch
from plait.align.writers import AlignedPair, AlignmentWriter, open_alignments
from plait.errors import InvalidInput, Unsupported
from plait.types import Provenance

DNA = Scoring(match_mismatch(2, -3), 7, 2)
PROTEIN = Scoring(load_matrix("BLOSUM62"), 12, 1)
MADE = Provenance(
    version="9.9", device="cpu", schedule="tiled", algebra="MaxPlus", parameters={"gap_open": 7}
)


def pair(
    query: bytes,
    target: bytes,
    runs: list[tuple[int, int]],
    ends: tuple[int, int] | None = None,
    *,
    names: tuple[str, str] = ("q", "t"),
    score: int = 5,
    scoring: Scoring = DNA,
) -> AlignedPair:
    codes = scoring.encode(query), scoring.encode(target, "target")
    path = np.array(runs, np.int64).reshape(-1, 2)
    alignment = make_alignment(*codes, scoring, score, *(ends or (len(query), len(target))), path)
    return AlignedPair(
        query_name=names[0], target_name=names[1], query=query, target=target, score=score, mode="local",
        alignment=alignment,
    )  # fmt: skip


# Described by a kernel, and so not made before a test asks for one.
@functools.cache
def clipped() -> AlignedPair:
    """Clipped at both ends, with a mismatch, an insertion, and two letters that the query lacks."""
    return pair(b"ttACGTAGGACtt", b"GACGAGGCTACGG", [(0, 4), (2, 1), (0, 2), (1, 2), (0, 2)], (11, 11))


@functools.cache
def whole() -> AlignedPair:
    return pair(b"ACGT", b"ACGT", [(0, 4)], names=("q2", "t2"), score=8)


@functools.cache
def nothing() -> AlignedPair:
    return pair(b"AAAA", b"CCCC", [], (0, 0), names=("q3", "t"), score=0)


def opened(path: Path | str | None, *, scoring: Scoring = DNA, **options: Any) -> AlignmentWriter:
    return open_alignments(path, scoring=scoring, provenance=MADE, command="plait align a.fa b.fa", **options)


def written(path: Path, *pairs: AlignedPair, **options: Any) -> bytes:
    with opened(path, **options) as writer:
        for item in pairs:
            writer.write(item)
        assert writer.pairs == len(pairs)
    return path.read_bytes()


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_sam(tmp_path: Path) -> None:
    targets = [("t", 13), ("t2", 4), ("empty", 0)]
    lines = (
        written(tmp_path / "a.sam", clipped(), nothing(), whole(), targets=targets, md=True)
        .decode()
        .split("\n")
    )
    assert lines == [
        "@HD\tVN:1.6\tSO:unsorted\tGO:query",
        "@SQ\tSN:t\tLN:13",
        "@SQ\tSN:t2\tLN:4",
        "@PG\tID:plait\tPN:plait\tVN:9.9\tCL:plait align a.fa b.fa",
        "q\t0\tt\t2\t255\t2S3=1X1I2=2D2=2S\t*\t0\t0\tttACGTAGGACtt\t*\tAS:i:5\tNM:i:4\tMD:Z:3A2^CT2",
        "q3\t4\t*\t0\t0\t*\t*\t0\t0\tAAAA\t*",
        "q2\t0\tt2\t1\t255\t4=\t*\t0\t0\tACGT\t*\tAS:i:8\tNM:i:0\tMD:Z:4",
        "",
    ]


def test_one_primary_line_a_query(tmp_path: Path) -> None:
    """Targets to which a query does not align have no line, unless there is no other."""
    unaligned = pair(b"ACGT", b"TTTT", [], (0, 0), names=("q2", "t"))
    with opened(tmp_path / "a.sam") as writer:
        for item in (unaligned, whole(), unaligned, whole(), nothing(), nothing(), clipped()):
            writer.write(item)
        assert (writer.pairs, writer.left_out) == (7, 3)
    lines = [line.split("\t") for line in (tmp_path / "a.sam").read_text().splitlines()[2:]]
    assert [(line[0], int(line[1]), line[2]) for line in lines] == [
        ("q2", 0, "t2"), ("q2", 256, "t2"), ("q3", 4, "*"), ("q", 0, "t"),
    ]  # fmt: skip


def test_mates_of_one_name_have_a_primary_line_each(tmp_path: Path) -> None:
    mate = pair(b"GGGT", b"GGGT", [(0, 4)], names=("q2", "t2"), score=8)
    turned = pair(b"ACCC", b"ACCC", [(0, 4)], names=("q2", "t2"), score=8)._replace(strand="-")
    unlike = pair(b"CCCC", b"AAAA", [], (0, 0), names=("q2", "t2"), score=0)
    text = written(tmp_path / "a.sam", whole(), mate, turned, unlike, whole(), targets=[("t2", 4)]).decode()
    flags = [line.split("\t")[1] for line in text.splitlines() if not line.startswith("@")]
    assert flags == ["0", "0", "272", "4", "0"]


def test_an_empty_query_in_sam(tmp_path: Path) -> None:
    lines = written(tmp_path / "a.sam", pair(b"", b"ACG", [(1, 3)])).decode().splitlines()
    assert lines[-1] == "q\t4\t*\t0\t0\t*\t*\t0\t0\t*\t*"


def test_pysam_reads_it(tmp_path: Path) -> None:
    pysam = pytest.importorskip("pysam", reason="pysam is not installed")
    deleted = pair(b"ACGA", b"ACGTTAA", [(0, 3), (1, 2), (0, 1)], (4, 6), names=("q4", "t4"))
    changed = pair(b"CCGTA", b"acguu", [(0, 5)], names=("q5", "t5"))
    pairs = [clipped(), nothing(), whole(), deleted, changed]
    targets = [("t", 13), ("t2", 4), ("t4", 7), ("t5", 5)]
    written(tmp_path / "a.sam", *pairs, targets=targets, md=True)
    with pysam.AlignmentFile(str(tmp_path / "a.sam")) as file:
        assert dict(zip(file.references, file.lengths, strict=True)) == dict(targets)
        records = list(file)
    for item, record in zip(pairs, records, strict=True):
        alignment = item.alignment
        assert alignment is not None
        assert (record.query_name, record.is_unmapped) == (item.query_name, item is nothing())
        assert record.query_sequence.upper() == item.query.decode().upper()
        if item is nothing():
            continue
        assert (record.reference_name, record.mapping_quality) == (item.target_name, 255)
        assert (record.query_alignment_start, record.query_alignment_end) == (
            alignment.query_start, alignment.query_end,
        )  # fmt: skip
        assert (record.reference_start, record.reference_end) == (
            alignment.target_start,
            alignment.target_end,
        )
        assert (record.get_tag("AS"), record.get_tag("NM")) == (
            item.score,
            alignment.mismatches + alignment.gaps,
        )
        # Case tells mismatches in what pysam makes of MD; U and T are one letter of the query.
        target = item.target[alignment.target_start : alignment.target_end].decode().upper()
        assert record.get_reference_sequence().upper().replace("T", "U") == target.replace("T", "U")


def test_proteins_as_sam_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        Unsupported, match="SAM of proteins is not supported: it holds alignments of nucleotides"
    ):
        opened(tmp_path / "a.sam", scoring=PROTEIN)
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ([("a", 1), ("b", 2), ("a", 3)], "target name: found 'a' more than once"),
        ([("a,b", 1)], "target name: found 'a,b', expected a name that SAM allows"),
        ([("*", 1)], "found '*'"),
        ([("", 1)], "found ''"),
        ([("big", 2**31)], "target 'big': found 2147483648 residues, expected at most 2147483647"),
    ],
)
def test_targets_that_sam_cannot_hold(tmp_path: Path, targets: list[tuple[str, int]], message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        opened(tmp_path / "a.sam", targets=targets)
    assert message in str(caught.value)
    assert names(tmp_path) == []


@pytest.mark.parametrize("name", ["a@b", "x" * 255, "", "é"])
@pytest.mark.parametrize("runs", [[(0, 1)], [(2, 1), (1, 1)]], ids=["mapped", "unmapped"])
def test_query_names_that_sam_cannot_hold(tmp_path: Path, name: str, runs: list[tuple[int, int]]) -> None:
    with pytest.raises(InvalidInput, match=r"query name: .*without @, as SAM asks"):
        written(tmp_path / "a.sam", pair(b"A", b"A", runs, names=(name, "t")))
    assert names(tmp_path) == []


def test_letters_that_sam_cannot_hold(tmp_path: Path) -> None:
    odd = Scoring(match_mismatch(1, -1, letters="ACGT*"), 2, 1)
    with pytest.raises(Unsupported, match=r"the letter '\*' of query 'q' in SAM"):
        written(tmp_path / "a.sam", pair(b"AC*", b"ACA", [(0, 3)], scoring=odd), scoring=odd)
    assert names(tmp_path) == []
