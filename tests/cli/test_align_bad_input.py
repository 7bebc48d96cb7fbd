"""``plait align`` and bad input: exit status 2 and one message that says where, what and what instead."""

from __future__ import annotations

import gzip
import random
from pathlib import Path
from typing import Any

import pytest

SLOWLY = ("--device", "reference")

PROTEIN = "MKTAYIAKQRQISFVKSHFSRQ"


def left(folder: Path) -> list[str]:
    """Names in a folder but for the input."""
    return sorted(path.name for path in folder.iterdir() if path.suffix not in (".fa", ".mat"))


GOOD = b">q1\nACGT\n>q2\nACG\n"
FILES: dict[str, tuple[bytes, tuple[str, ...]]] = {
    "empty": (b"", ("found an empty file", "expected FASTA or FASTQ text")),
    "empty-gz": (gzip.compress(b""), ("found", "expected")),
    "truncated-gz": (gzip.compress(GOOD * 999)[:60], ("an early end", "copy or download the file again")),
    "no-header": (b"ACGT\n", (", line 1", "found 'ACGT'", "expected a header line")),
    "short-quality": (b"@r\nACGT\n+\nIII\n", (", line 4", "3 qualities", "4")),
    "strange-quality": (b"@r\nACGT\n+\nII\x1fI\n", (", line 4", "0x1F as the quality at position 3")),
    "cut-fastq": (b"@r\nACGT\n+\nIIII\n@s\nAC\n", (", line", "found", "expected")),
    "nameless": (b">\nACGT\n", (", line 1", "a header without a name")),
    "binary": (bytes(range(256)) * 9, ("found", "expected FASTA")),
    "letter": (b">q1\nACGT\n>q2\nAC\nG-T\n", (", line 3", "'-' at position 4 of sequence 'q2'", "gaps out")),
    "more": (GOOD + b">q3\nA\n", ("found sequences: 3 in ", "and 2 in ", "--pairs all")),
    "fewer": (b">q1\nACGT\n", ("found sequences: 1 in ", "and 2 in ", "--pairs one")),
}


@pytest.mark.parametrize("case", FILES)
@pytest.mark.parametrize("side", [0, 1])
def test_files(plait: Any, tmp_path: Path, case: str, side: int) -> None:
    content, told = FILES[case]
    paths = [tmp_path / "a.fa", tmp_path / "b.fa"]
    paths[side].write_bytes(content)
    paths[1 - side].write_bytes(GOOD)
    if case in ("more", "fewer") and side:
        told = (told[2],)
    found = plait("align", *paths, "--kind", "dna", *SLOWLY, "-o", tmp_path / "out.tsv")
    assert (found.status, found.out) == (2, "")
    assert found.err.startswith("plait: error: ") and found.err.count("\n") == 1
    assert str(paths[side]) in found.err
    assert [text for text in told if text not in found.err] == []
    assert left(tmp_path) == []


SETTINGS: dict[str, tuple[tuple[str, ...], str]] = {
    "negative": (
        ("--gap-open", "-3"),
        "gap_open: found -3, expected a whole number from 0 to 32767; costs are",
    ),
    "open-below": (
        ("--gap-open", "1"),
        "found 1, less than gap_extend 2, expected 2 or more; the first residue",
    ),
    "sign": (
        ("--mismatch", "3"),
        "mismatch: found 3, expected a whole number from -32767 to 0; did you mean -3?",
    ),
    "no-cost": (("--match", "1", "--mismatch", "-1"), "gap_open: found none, expected a cost"),
    "both": (("--match", "1", "--matrix", "NUC.4.4"), "expected one or the other"),
    "matrix": (("--matrix", "BLOSUM26"), "expected one of BLOSUM45"),
    "letterless": (
        ("--matrix", "a.mat", "--gap-open", "2", "--gap-extend", "1"),
        "'G' at position 3 of sequence",
    ),
    "broken": (("--matrix", "b.mat"), "b.mat, line 2, column 'C': found 'x', expected a whole number"),
    "kind": (("--matrix", "NUC.4.4", "--kind", "protein"), "found 'NUC.4.4', which is for nucleotides"),
    "mode": (("--mode", "glocal"), 'Invalid value "glocal" for --mode. Choose from: "global", "local"'),
    "format": (("--format", "bam"), 'Invalid value "bam" for --format'),
    "suffix": (("-o", "out.bam"), "found 'out.bam', expected a name that ends in .txt, .tsv, .sam"),
    "contradiction": (("-o", "out.tsv", "--format", "sam"), "expected a name that ends in .sam"),
    "printed": (("--format", "parquet"), "found standard output, expected the name of a file for Parquet"),
    "column": (("--format", "tsv", "--columns", "score,idenity"), "did you mean identity?"),
    "no-column": (("--format", "tsv", "--columns", ","), "columns: found no name"),
    "text-columns": (("--columns", "score"), "found columns for text"),
    "score-text": (("--score-only", "--format", "text"), "found text for scores alone"),
    "score-cigar": (("--score-only", "--columns", "cigar"), "found 'cigar' for scores alone"),
    "statistics": (("--format", "tsv", "--columns", "evalue"), "'evalue' in mode 'global'"),
    "ends": (("--free-ends", "query_end"), "found mode 'global', expected no free ends"),
    "end": (("--mode", "semiglobal", "--free-ends", "query"), "found 'query', expected any of query_start"),
    "x-drop": (
        ("--x-drop", "5"),
        "x_drop: found 5 in mode 'global', expected mode 'extension'",
    ),
    "negative-drop": (("--mode", "extension", "--x-drop", "-5"), "x_drop: found -5, expected a whole number"),
    "band": (("--band", "5:2"), "--band: found '5:2', expected a number such as 100, or two"),
    "no-band": (("--band", "x"), "--band: found 'x'"),
    "narrow": (("--band", "1:2"), "band for q1 and q1: found 1 to 2, expected a band that holds the start"),
    "threads": (("--threads", "0"), "threads: found 0, expected a whole number from 1 to 4096"),
    "pairs": (("--pairs", "one"), "expected a single one to pair with all targets"),
    "number": (("--gap-open", "1.5"), "--gap-open: found '1.5', expected a whole number"),
}


@pytest.mark.parametrize("case", SETTINGS)
def test_wrong_settings(plait: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    words, told = SETTINGS[case]
    monkeypatch.chdir(tmp_path)
    Path("a.fa").write_bytes(GOOD)
    Path("a.mat").write_text("A C\nA 1 -1\nC -1 1\n")
    Path("b.mat").write_text("A C\nA 1 x\nC -1 1\n")
    found = plait("align", "a.fa", "a.fa", *words, *SLOWLY)
    assert (found.status, found.out) == (2, "")
    assert found.err.startswith("plait: error: ") and told in found.err
    assert left(tmp_path) == []


def test_a_single_file_has_its_own_pairings(plait: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.fa"
    path.write_bytes(GOOD)
    assert "found 'order' and one file" in plait("align", path, "--pairs", "order").err
    path.write_bytes(b">q1\nACGT\n")
    assert f"found a single sequence in {path}" in plait("align", path).err


def test_absent_files_and_folders(plait: Any, fasta: Any, tmp_path: Path) -> None:
    inputs = fasta({"q": "ACGT"}, "a.fa"), fasta({"t": "ACGACG"}, "b.fa")
    found = plait("align", inputs[0], tmp_path / "nowhere.fa")
    assert f"{tmp_path / 'nowhere.fa'}: found no such file" in found.err
    found = plait("align", inputs[0], tmp_path)
    assert f"{tmp_path}: found a directory" in found.err
    found = plait("align", *inputs, "-o", tmp_path / "none" / "out.tsv")
    assert "in a folder that does not exist" in found.err
    found = plait("align", *inputs, "-o", inputs[1], "--format", "text")
    assert f"found '{inputs[1]}', which is also an input" in found.err
    assert "ACGACG" in inputs[1].read_text()


def test_two_kinds_of_sequences(plait: Any, fasta: Any) -> None:
    paths = fasta({"p": PROTEIN}, "a.fa"), fasta({"t": "ACGTTGA"}, "b.fa")
    found = plait("align", *paths)
    assert found.status == 2 and "expected sequences of one kind; say which with --kind" in found.err


def test_what_sam_cannot_hold(plait: Any, fasta: Any, tmp_path: Path) -> None:
    out = tmp_path / "out.sam"
    path = fasta({"p1": PROTEIN, "p2": PROTEIN}, "p.fa")
    found = plait("align", path, "-o", out)
    assert found.status == 2 and "SAM of proteins is not supported" in found.err
    path = tmp_path / "a.fa"
    path.write_text(">x\nACGT\n>y\nAC\n>x\nACG\n")
    found = plait("align", path, path, "-o", out)
    assert f"{path}, line 5: found a second sequence named 'x', after that of line 1" in found.err
    assert "SAM refers to targets by name" in found.err
    path.write_text(">x\nACGT\n>y,z\nAC\n")
    found = plait("align", path, "-o", out)
    assert found.status == 2 and "target name: found 'y,z'" in found.err
    assert left(tmp_path) == []


def test_quadratic_memory_is_refused(plait: Any, fasta: Any, tmp_path: Path) -> None:
    rng = random.Random(5)
    letters = "".join(rng.choices("ACGT", k=300_000))
    paths = fasta({"a": letters}, "a.fa"), fasta({"b": letters[::-1]}, "b.fa")
    found = plait("align", *paths, "--traceback", "full", "-o", tmp_path / "out.txt")
    assert found.status == 2
    assert "a and b: traceback='full' is not supported: it needs 4" in found.err
    assert "bytes of memory" in found.err and "traceback='linear' needs memory for the edges" in found.err
    assert left(tmp_path) == []
