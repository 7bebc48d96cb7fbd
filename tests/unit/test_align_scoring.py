"""Gap costs, defaults, and sequences as indices into a matrix."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.align.scoring import (
    DEFAULT_GAP_COSTS,
    Scoring,
    bundled_matrices,
    load_matrix,
    make_scoring,
    match_mismatch,
)
from plait.errors import FormatError, InvalidInput

LETTERS = "ARNDCQEGHILKMFPSTWYVBZX*"
ACCEPTED = LETTERS + "JOU"


def test_defaults() -> None:
    protein, dna = make_scoring(), make_scoring(kind="dna")
    assert (protein.matrix.name, protein.gap_open, protein.gap_extend) == ("BLOSUM62", 12, 1)
    assert (dna.matrix.name, dna.gap_open, dna.gap_extend) == ("2/-3", 7, 2)
    assert dna.matrix.kind == "dna"
    assert make_scoring(kind="protein") == protein


# What blastp 2.12 prints as "Gap Penalties: Existence, Extension" for -matrix alone.
@pytest.mark.parametrize(
    ("name", "existence", "extension"),
    [
        ("BLOSUM45", 14, 2), ("BLOSUM50", 13, 2), ("BLOSUM62", 11, 1), ("BLOSUM80", 10, 1),
        ("BLOSUM90", 10, 1), ("PAM30", 9, 1), ("PAM70", 10, 1), ("PAM250", 14, 2),
    ],
)  # fmt: skip
def test_default_gap_costs_are_those_of_blast(name: str, existence: int, extension: int) -> None:
    scoring = make_scoring(name)
    assert (scoring.gap_open, scoring.gap_extend) == (existence + extension, extension)


def test_every_bundled_matrix_has_default_gap_costs() -> None:
    assert set(DEFAULT_GAP_COSTS) == {*bundled_matrices(), "2/-3"}


def test_what_is_given_goes_before_the_default(tmp_path: Path) -> None:
    assert make_scoring("PAM30", gap_extend=3).gap_open == 10
    assert make_scoring(gap_open=20) == Scoring(load_matrix("BLOSUM62"), 20, 1)
    path = tmp_path / "mine"
    path.write_text(" A C\nA 1 0\nC 0 1\n")
    assert make_scoring(path, 2, 2).matrix.name == "mine"
    own = match_mismatch(1, -1)
    assert make_scoring(own, 1, 1).matrix is own
    assert make_scoring(gap_open=np.int64(20)).gap_open == 20
    assert type(make_scoring(gap_open=np.int64(20)).gap_open) is int


def test_linear() -> None:
    assert make_scoring(gap_open=4, gap_extend=4).linear
    assert make_scoring(gap_open=0, gap_extend=0).linear
    assert not make_scoring().linear


@pytest.mark.parametrize(
    ("gap_open", "gap_extend", "message"),
    [
        (-11, 1, "gap_open: found -11, expected a whole number from 0 to 32767; costs are positive: give 11"),
        (11, -1, "gap_extend: found -1, expected a whole number from 0 to 32767; costs are positive: give 1"),
        (40000, 1, "gap_open: found 40000, expected a whole number from 0 to 32767"),
        (11.0, 1, "gap_open: found 11.0, expected a whole number from 0 to 32767"),
        ("11", 1, "gap_open: found '11', expected a whole number from 0 to 32767"),
        (True, 1, "gap_open: found True, expected a whole number from 0 to 32767"),
        (
            1, 2, "gap_open: found 1, less than gap_extend 2, expected 2 or more; the first residue of a gap "
            "costs gap_open: BLAST's existence G and extension E are gap_open G + E",
        ),
    ],
)  # fmt: skip
def test_wrong_costs(gap_open: int, gap_extend: int, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        make_scoring("BLOSUM62", gap_open, gap_extend)
    assert str(caught.value) == message


def test_a_matrix_of_ones_own_needs_gap_costs() -> None:
    with pytest.raises(InvalidInput, match=r"^gap_extend: found none, expected a cost, .* matrix '1/-1'$"):
        make_scoring(match_mismatch(1, -1), 3)
    with pytest.raises(InvalidInput, match=r"^gap_open: found none"):
        make_scoring(match_mismatch(1, -1))


def test_the_matrix_must_be_for_the_sequences() -> None:
    with pytest.raises(
        InvalidInput, match=r"'NUC.4.4', which is for nucleotides, expected a matrix for proteins"
    ):
        make_scoring("NUC.4.4", kind="protein")
    with pytest.raises(
        InvalidInput, match="'PAM30', which is for proteins, expected a matrix for nucleotides"
    ):
        make_scoring("PAM30", kind="dna")
    with pytest.raises(InvalidInput, match=r"^kind: found 'rna', expected 'protein' or 'dna'"):
        make_scoring(kind="rna")  # type: ignore[arg-type]
    assert make_scoring("NUC.4.4").matrix.kind == "dna"


@given(st.text(LETTERS + LETTERS.lower()))
def test_encode_gives_the_row_of_each_letter(sequence: str) -> None:
    scoring = make_scoring()
    codes = scoring.encode(sequence)
    assert codes.dtype == np.uint8
    assert codes.tolist() == [LETTERS.index(letter) for letter in sequence.upper()]
    assert np.array_equal(scoring.encode(sequence.encode()), codes)
    assert np.array_equal(scoring.encode_letters(np.frombuffer(sequence.encode(), np.uint8)), codes)


def test_rna_is_dna() -> None:
    scoring = make_scoring(kind="dna")
    assert np.array_equal(scoring.encode("acguN"), scoring.encode("ACGTN"))


@pytest.mark.parametrize("kind", ["str", "bytes"])
def test_a_wrong_letter_is_told_with_its_position(kind: str) -> None:
    text = "ACDEFGHIKLMNPQRS1TVW"
    with pytest.raises(InvalidInput) as caught:
        make_scoring().encode(text if kind == "str" else text.encode(), "sequence 'x'")
    assert str(caught.value) == f"sequence 'x': found '1' at position 17, expected one of {ACCEPTED}"


@pytest.mark.parametrize(
    ("sequence", "found"),
    [
        ("A\u00e9", "'\u00e9' at position 2"),
        ("AC\U0001d538A", "'\U0001d538' at position 3"),
        ("?A", "'?' at position 1"),
        (b"A\xff", "'\u00ff' at position 2"),
        ("A C", "' ' at position 2"),
        ("A\n", "'\\n' at position 2"),
    ],
)
def test_letters_beyond_ascii_and_blanks(sequence: str | bytes, found: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        make_scoring().encode(sequence)
    assert (caught.value.what, caught.value.found, caught.value.hint) == ("query", found, None)


def test_gaps_in_a_sequence() -> None:
    with pytest.raises(InvalidInput, match=r"^query: found '-' at position 2, .*; take the gaps out first$"):
        make_scoring().encode("A-C")


def test_many_sequences_at_once() -> None:
    scoring = make_scoring()
    letters = np.frombuffer(b"ACDE1F", np.uint8)
    offsets = np.array([0, 2, 2, 6])
    with pytest.raises(InvalidInput) as caught:
        scoring.encode_letters(letters, offsets=offsets, names=["a", "b", "c"])
    assert str(caught.value) == f"sequence 'c': found '1' at position 3, expected one of {ACCEPTED}"
    with pytest.raises(InvalidInput, match=r"^sequence 3: found '1' at position 3"):
        scoring.encode_letters(letters, offsets=offsets)
    with pytest.raises(InvalidInput, match=r"^sequence 1: found '1' at position 5"):
        scoring.encode_letters(letters)
    with pytest.raises(FormatError) as told:
        scoring.encode_letters(
            letters, offsets=offsets, names=["a", "b", "c"], path="x.fa", lines=np.array([1, 3, 4])
        )
    assert str(told.value) == (
        f"x.fa, line 4: found '1' at position 3 of sequence 'c', expected one of {ACCEPTED}"
    )
    assert (told.value.path, told.value.line, told.value.record) == ("x.fa", 4, None)
    with pytest.raises(FormatError) as told:
        scoring.encode_letters(letters, offsets=offsets, path="x.fa")
    assert (told.value.line, told.value.record) == (None, 2)


def test_the_first_wrong_letter_is_told() -> None:
    letters = np.frombuffer(b"A?C" + b"1" * 5, np.uint8)
    with pytest.raises(InvalidInput, match="sequence 'a': found '\\?' at position 2"):
        make_scoring().encode_letters(letters, offsets=np.array([0, 3, 8]), names=["a", "b"])


def test_nothing_to_encode() -> None:
    scoring = make_scoring()
    assert scoring.encode("").shape == (0,)
    assert scoring.encode_letters(np.zeros(0, np.uint8), offsets=np.zeros(1, np.int64)).shape == (0,)
