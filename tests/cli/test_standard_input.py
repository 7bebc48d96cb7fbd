"""Standard input and output in the place of files: ``-``."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.examples import often

from plait.cli.options import with_hyphens

QUERIES, TARGETS = {"a": "ACGTACGT", "b": "GGATTACA"}, {"c": "ACGTTCGT", "d": "GATTACA"}
QUICK = ("--device", "reference")


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let a file come by standard input."""

    def give(path: Path) -> str:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(path.read_bytes())))
        return "-"

    return give


@pytest.mark.parametrize("name", often(1, ["q.fa", "q.fa.gz"]))
def test_a_file_comes_by_standard_input(plait: Any, fasta: Any, given: Any, name: str) -> None:
    queries, targets = fasta(QUERIES, name), fasta(TARGETS, "t.fa")
    for words in (
        ("align", queries, targets, "--pairs", "all", "--score-only"),
        ("search", queries, targets, "--score-only"),
    ):
        wanted = plait(*words, *QUICK)
        for path in (queries, targets):
            assert wanted.status == 0 and wanted.out
            found = plait(*(given(path) if word == path else word for word in words), *QUICK)
            assert (found.status, found.out) == (0, wanted.out)


def test_one_file_with_itself(plait: Any, fasta: Any, given: Any) -> None:
    path = fasta(QUERIES, "q.fa")
    wanted = plait("align", path, "--score-only", *QUICK)
    assert plait("align", given(path), "--score-only", *QUICK).out == wanted.out != ""


def test_tables_and_reads_come_by_standard_input(plait: Any, given: Any, tmp_path: Path) -> None:
    inputs = Path(__file__).parents[1] / "golden" / "commands"
    rows, cells = inputs / "rows.tsv", inputs / "cells.csv"
    out = ("-o", tmp_path / "out.tsv")
    for words in (
        ("vdj", "count", rows, "--germline", "mouse_trb", *QUICK, *out),
        ("vdj", "sharing", rows, "--subject", "subject_id", *out),
        ("vdj", "diversity", rows, *out),
        ("vdj", "cells", cells, *out),
        ("vdj", "neighbours", inputs / "rows.tsv", rows, "--control", rows, *out),
        ("vdj", "annotate", inputs / "reads_1.fastq", "--germline", "mouse_trb", "--device", "cpu", *out),
    ):
        assert plait(*words).status == 0
        wanted = (tmp_path / "out.tsv").read_text()
        found = plait(*words[:2], given(words[2]), *words[3:])
        assert found.status == 0, found.err
        assert (tmp_path / "out.tsv").read_text().replace("standard-input", words[2].stem) == wanted != ""
    found = plait("vdj", "count", given(rows), "--germline", "mouse_trb", *QUICK, *out, "--resume")
    assert found.status == 2 and "resume: found standard input, expected files" in found.err


def test_standard_output_has_a_name(plait: Any, fasta: Any) -> None:
    words = ("align", fasta(QUERIES, "q.fa"), fasta(TARGETS, "t.fa"), "--score-only", *QUICK)
    wanted = plait(*words)
    for name in (("-o", "-"), ("--output", "-"), ("--output=-",)):
        assert plait(*words, *name).out == wanted.out != ""


def test_standard_input_that_is_closed(plait: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    found = plait("fold", "-")
    assert (found.status, found.out) == (2, "") and "-: found no standard input, which is closed" in found.err


def test_two_files_cannot_both_come_so(plait: Any, given: Any, fasta: Any) -> None:
    given(fasta(QUERIES, "q.fa"))
    found = plait("align", "-", "-", *QUICK)
    assert (found.status, found.out) == (2, "")
    assert "-: found standard input as two files" in found.err


def test_what_is_wrong_with_it_is_told(plait: Any, given: Any, tmp_path: Path) -> None:
    (tmp_path / "no.fa").write_text("ACGT\n")
    found = plait("align", given(tmp_path / "no.fa"), *QUICK)
    assert found.status == 2 and "error: standard input, line 1: found 'ACGT'" in found.err


def test_only_lone_hyphens_are_changed() -> None:
    words = ["align", "a-b", "--band", "-5:3", "--", "-x", "-o", "out.txt"]
    assert with_hyphens(words) == words
