"""What the sequences of files are scored with by default."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plait.align.files import scoring_of_files
from plait.errors import InvalidInput

Records = Sequence[tuple[str, str]]

BASES = [("d", "ACGTNACGUacgtTTG"), ("e", "")]
PROTEIN = [("p", "MKVLAWERTY")]


@pytest.fixture
def fasta(tmp_path: Path) -> Callable[..., Path]:
    def write(records: Records, name: str = "a.fa") -> Path:
        path = tmp_path / name
        path.write_text("".join(f">{name}\n{letters}\n" for name, letters in records))
        return path

    return write


@pytest.mark.parametrize(
    ("records", "options", "chosen"),
    [
        (BASES, {}, ("2/-3", 7, 2)),
        (PROTEIN, {}, ("BLOSUM62", 12, 1)),
        (BASES, {"kind": "protein"}, ("BLOSUM62", 12, 1)),
        (BASES, {"matrix": "PAM30"}, ("PAM30", 10, 1)),
        (BASES, {"mismatch": -1, "gap_open": 4, "gap_extend": 1}, ("2/-1", 4, 1)),
        (PROTEIN, {"match": 5, "gap_open": 4, "gap_extend": 1}, ("5/-3", 4, 1)),
        ([("empty", "")], {}, ("BLOSUM62", 12, 1)),
    ],
)
def test_the_scoring(
    fasta: Any, records: Records, options: dict[str, Any], chosen: tuple[str, int, int]
) -> None:
    scoring = scoring_of_files([fasta(records)], **options)
    assert (scoring.matrix.name, scoring.gap_open, scoring.gap_extend) == chosen


def test_match_scores_suit_the_kind(fasta: Any) -> None:
    scoring = scoring_of_files([fasta(PROTEIN)], match=1, mismatch=-1, gap_open=2, gap_extend=1)
    assert scoring.matrix.kind == "protein"
    codes = scoring.encode("MKUOJ*")
    assert np.array_equal(np.diag(scoring.matrix.scores)[codes], np.ones(6))


def test_kinds_that_differ(fasta: Any) -> None:
    paths = fasta(BASES), fasta(PROTEIN, "b.fa"), fasta([("empty", "")], "c.fa")
    message = r"kind: found .* nucleotides in .*a\.fa and .* proteins in .*b\.fa"
    with pytest.raises(InvalidInput, match=message):
        scoring_of_files(paths)
    assert scoring_of_files(paths, kind="protein").matrix.name == "BLOSUM62"
    assert scoring_of_files([paths[0], paths[2]]).matrix.name == "2/-3"


def test_a_matrix_or_match_scores(fasta: Any) -> None:
    with pytest.raises(InvalidInput, match="expected one or the other"):
        scoring_of_files([fasta(BASES)], matrix="BLOSUM62", match=1)
