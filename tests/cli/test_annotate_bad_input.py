"""Reads that are odd or damaged: a reason that is counted, or exit status 2 and one clear message."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

BASE = ("--germline", "mouse_trb")
#: A rearrangement of TRBV13-1 and TRBJ2-7, with 60 bases of V before its junction.
V = "CTGCTGGAGGACTCGGGGGATGAGTCAGTATTTATTTACTGCACAGCTCCAGCAGTTCAGACACTGCGGTGTACTTC"
GOOD = "GGAGTTGGCTACCCCCTCTCAGACATCTGTGTACTTCTGTGCCAGCAGTTGGGACTGGTATGAACAGTACTTCGGTCCCGGCACCAGGCTCACGGTTTTAG"


def record(name: str, sequence: str, quality: str | None = None, end: str = "\n") -> str:
    marks = "I" * len(sequence) if quality is None else quality
    return end.join([f"@{name}", sequence, "+", marks, ""])


def left(folder: Path) -> list[str]:
    """Names in a folder but for the inputs."""
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("in"))


@pytest.fixture
def annotated(plait: Any, tmp_path: Path) -> Callable[..., tuple[Any, dict[str, Any]]]:
    """Annotate a text: what the command said, and the summary."""

    def run(text: str, *options: object) -> tuple[Any, dict[str, Any]]:
        path, out = tmp_path / "in.fastq", tmp_path / "out.tsv"
        path.write_bytes(text.encode())
        found = plait("vdj", "annotate", path, *BASE, *options, "-o", out)
        assert found.status == 0
        told: dict[str, Any] = json.loads(Path(f"{out}.summary.json").read_text())
        return found, told["files"][0]

    return run


def test_an_empty_read_is_too_short(annotated: Any) -> None:
    found, told = annotated(record("a", "") + record("b", GOOD))
    assert told["statuses"] == {"ok": 1, "too_short": 1} and told["input"]["empty_reads"] == 1
    assert "1 reads without a base; they are too_short" in found.out


def test_a_very_long_read_is_too_long(annotated: Any) -> None:
    long = "ACGTTGCAAG" * 10_000
    _, told = annotated(record("a", long) + record("b", GOOD))
    assert told["statuses"] == {"ok": 1, "too_long": 1}
    _, told = annotated(record("a", long) + record("b", GOOD), "--max-length", "200000")
    assert told["statuses"] == {"ok": 1, "no_v": 1}


def test_line_ends_may_be_mixed(annotated: Any) -> None:
    _, told = annotated(record("a", GOOD, end="\r\n") + record("b", GOOD) + record("c", GOOD, end="\r\n"))
    assert told["statuses"] == {"ok": 3}


def test_iupac_letters_and_dots(annotated: Any, tmp_path: Path) -> None:
    some = GOOD[:10] + "." + GOOD[11:20] + "R" + GOOD[21:]
    found, told = annotated(record("a", some) + record("b", GOOD.lower()) + record("c", "." * 60))
    assert told["statuses"] == {"ok": 2, "no_v": 1} and told["input"]["dots"] == 61
    assert "61 bases written as a dot, and taken for N" in found.out
    rows = (tmp_path / "out.tsv").read_text().splitlines()[1:]
    assert rows[0].split("\t")[1] == some.replace(".", "N") and rows[1].split("\t")[1] == GOOD


def test_duplicated_names_are_counted(annotated: Any) -> None:
    found, told = annotated(record("a", GOOD) * 3 + record("b", GOOD))
    assert told["input"]["duplicate_names"] == 2 and told["statuses"] == {"ok": 4}
    assert "2 reads with the name of an earlier one" in found.out


def test_fasta_has_no_qualities(annotated: Any) -> None:
    _, told = annotated(f">a some words\n{GOOD[:50]}\n{GOOD[50:]}\n")
    assert told["statuses"] == {"ok": 1} and told["mean_quality"] is None


def test_low_quality_has_a_limit(annotated: Any) -> None:
    poor = record("a", GOOD, "#" * len(GOOD))
    assert annotated(poor)[1]["statuses"] == {"low_quality": 1}
    assert annotated(poor, "--min-junction-quality", "0")[1]["statuses"] == {"ok": 1}


def test_reads_lost_for_their_quality_are_told(plait: Any, tmp_path: Path) -> None:
    at = GOOD.index("TGTGCC") + 20
    one = "I" * at + "#" + "I" * (len(GOOD) - at - 1)
    path, out, table = tmp_path / "reads.fastq", tmp_path / "out.tsv", tmp_path / "clonotypes.tsv"
    words = ("vdj", "annotate", path, "--germline", "mouse_trb", "-o", out)
    path.write_text(record("a", GOOD, "I" * len(GOOD)) * 5 + record("b", GOOD, one))
    found = plait(*words)
    assert "warning: 16.7 % of 6 sequences with a junction are not written" in found.err
    found = plait(*words, "--clonotypes", table)
    assert "warning" not in found.err
    assert "1 of 1 rows of low quality are counted in the one clonotype" in found.out
    assert len(out.read_text().splitlines()) == 6
    header, only = (line.split("\t") for line in table.read_text().splitlines())
    assert only[header.index("duplicate_count")] == "6"
    found = plait(*words, "--clonotypes", table, "--keep-failed")
    assert len(out.read_text().splitlines()) == 7 and "1 of 1 rows" in found.out
    path.write_text(record("b", GOOD, one))
    found = plait(*words, "--clonotypes", table)
    assert "warning: 100 % of 1 sequences with a junction are in no clonotype" in found.err
    assert len(table.read_text().splitlines()) == 1


def test_a_file_of_foreign_reads(annotated: Any) -> None:
    found, told = annotated(record("a", "ACGTTGCAAG" * 10) * 3)
    assert told["statuses"] == {"no_v": 3}
    assert "No junction was found: is this the germline set of the reads?" in found.out


TRUNCATED = gzip.compress((record("a", GOOD) * 500).encode())[:-60]

FILES: dict[str, tuple[str, bytes, tuple[str, ...]]] = {
    "empty": ("in.fastq", b"", ("in.fastq", "found an empty file")),
    "truncated-gz": ("in.fastq.gz", TRUNCATED, ("in.fastq.gz", "early end of the gzip stream")),
    "not-gz": ("in.fastq.gz", b"\x1f\x8b\x08\x00 not gzip at all", ("in.fastq.gz", "found", "expected")),
    "quality-length": (
        "in.fastq",
        (record("a", GOOD) + record("b", GOOD, "III")).encode(),
        ("in.fastq, line 8", "3 qualities for the 101 bases of read 'b'"),
    ),
    "cut-record": ("in.fastq", record("a", GOOD)[:120].encode(), ("in.fastq", "found", "expected")),
    "no-letter": (
        "in.fastq",
        record("a", GOOD[:30] + "!" + GOOD[31:]).encode(),
        ("in.fastq", "found '!' at position 31 of read 'a'", "IUPAC"),
    ),
    "protein": ("in.fa", b">a\nMKTAYIAKQRQISFVKSHFSRQ\n", ("in.fa", "at position", "are these proteins?")),
    "table": (
        "in.tsv",
        b"sequence_id\tsequence\na\tACGT\n",
        ("in.tsv, line 1", "expected '@' (FASTQ) or '>' (FASTA)"),
    ),
    "binary": ("in.fastq", bytes(range(256)) * 20, ("in.fastq", "found", "FASTQ or FASTA")),
}


@pytest.mark.parametrize("case", FILES)
def test_a_bad_file(plait: Any, tmp_path: Path, case: str) -> None:
    name, content, told = FILES[case]
    (tmp_path / name).write_bytes(content)
    words = ("--clonotypes", tmp_path / "clonotypes.tsv", "-o", tmp_path / "out.tsv")
    found = plait("vdj", "annotate", tmp_path / name, *BASE, *words)
    assert found.status == 2
    assert found.err.startswith("plait: error: ") and len(found.err.splitlines()) == 1
    for text in told:
        assert text in found.err
    assert left(tmp_path) == []


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        (2, 1, ("in_2.fq", "in_1.fq")),
        (1, 2, ("in_2.fq", "in_1.fq")),
    ],
    ids=["too-few", "too-many"],
)
def test_unequal_mates(plait: Any, tmp_path: Path, first: int, second: int, told: tuple[str, ...]) -> None:
    paths = tmp_path / "in_1.fq", tmp_path / "in_2.fq"
    for path, n in zip(paths, (first, second), strict=True):
        path.write_text("".join(record(f"r{k}", GOOD) for k in range(n)))
    words = (paths[0], "--mate", paths[1], *BASE, "-o", tmp_path / "out.tsv")
    found = plait("vdj", "annotate", *words)
    assert found.status == 2 and "found" in found.err and "expected" in found.err
    assert all(text in found.err for text in told)
    assert left(tmp_path) == []


def test_mates_of_other_reads(plait: Any, tmp_path: Path) -> None:
    paths = tmp_path / "in_1.fq", tmp_path / "in_2.fq"
    for path, name in zip(paths, "ab", strict=True):
        path.write_text(record(f"r/{name}", GOOD) + record(f"x{name}", GOOD))
    found = plait("vdj", "annotate", paths[0], "--mate", paths[1], *BASE, "-o", tmp_path / "out.tsv")
    assert found.status == 2 and "the mate of" in found.err
    assert left(tmp_path) == []


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--germline", "mouse_trx"), "mouse_trb"),
        (("--germline", "mouse_trb,mouse_trb"), "mouse_trb twice"),
        (("--germline", "mouse_trb,mouse_tra", "--anchors", "x.csv"), "2 germline sets"),
        (("--max-error-rate", "2"), "a number from 0 to 1"),
        (("--max-error-rate", "-0.1"), "a number from 0 to 1"),
        (("--min-junction-quality", "94"), "0 to 93"),
        (("--min-junction-quality", "1.5"), "a whole number"),
        (("--min-length", "100", "--max-length", "50"), "at most max_length"),
        (("--merge-satellites", "1", "--clonotypes", "c.tsv"), "a number above 1"),
        (("--merge-satellites", "9"), "a table of clonotypes"),
        (("--min-umi-reads", "2"), "--umi"),
        (("--umi-ratio", "10"), "--umi"),
        (("--umi-ratio", "1", "--umi", "name"), "a number above 1"),
        (("--umi", "read3:0-4"), "read1:0-12"),
        (("--umi", "read2:0-4"), "second mates"),
        (("--min-umi-reads", "0", "--umi", "name"), "at least 1"),
        (("--repertoire-id", "x", "--repertoire-id", "y"), "one for each file"),
        (("--repertoire-id", ""), "a name"),
        (("--clonotypes", "out.tsv"), "a file for each"),
        (("--clonotypes", "out.tsv.summary.tsv"), "a file for each"),
        (("--clonotypes", "in.fastq"), "in.fastq"),
        (("--clonotypes", "c.xlsx"), ".parquet"),
        (("--threads", "0"), "from 1 to 4096"),
        (("-o", "in.fastq"), "ends in .parquet"),
        (("-o", "missing/out.tsv"), "a folder that does not exist"),
        (("--mate", "in.fastq"), "twice"),
    ],
)
def test_a_wrong_request(
    plait: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in.fastq").write_text(record("a", GOOD))
    words = [*BASE, "-o", "out.tsv"]
    for name in ("--germline", "-o"):
        if name in options:
            at = words.index(name)
            del words[at : at + 2]
    found = plait("vdj", "annotate", "in.fastq", *words, *options)
    assert found.status == 2 and told in found.err
    assert left(tmp_path) == []
    assert Path("in.fastq").read_text() == record("a", GOOD)


def test_the_output_is_no_input(plait: Any, tmp_path: Path) -> None:
    path = tmp_path / "in.tsv"
    path.write_text(f">a\n{GOOD}\n")
    found = plait("vdj", "annotate", path, *BASE, "-o", path)
    assert found.status == 2 and "which is also an input" in found.err
    assert path.read_text() == f">a\n{GOOD}\n" and left(tmp_path) == []


def test_files_of_one_name_need_names(plait: Any, tmp_path: Path) -> None:
    paths = [tmp_path / folder / "in.fastq" for folder in ("in1", "in2")]
    for path in paths:
        path.parent.mkdir()
        path.write_text(record("a", GOOD))
    words = ("vdj", "annotate", *paths, *BASE, "-o", tmp_path / "out.tsv")
    found = plait(*words)
    assert found.status == 2 and "'in' as the name of several files" in found.err
    assert plait(*words, "--repertoire-id", "one", "--repertoire-id", "two").status == 0


def test_no_reads_at_all(plait: Any, tmp_path: Path) -> None:
    found = plait("vdj", "annotate", *BASE, "-o", tmp_path / "out.tsv")
    assert found.status == 2 and "FASTQ or FASTA" in found.err


def test_a_missing_file(plait: Any, tmp_path: Path) -> None:
    found = plait("vdj", "annotate", tmp_path / "none.fastq", *BASE, "-o", tmp_path / "out.tsv")
    assert found.status == 2 and "none.fastq" in found.err and left(tmp_path) == []
