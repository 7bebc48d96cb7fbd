"""Substitution matrices: the bundled data, NCBI's format, and match and mismatch scores."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.align.scoring import (
    MAX_LETTERS,
    NO_CODE,
    SubstitutionMatrix,
    bundled_matrices,
    load_matrix,
    make_scoring,
    match_mismatch,
    parse_matrix,
)
from plait.errors import FormatError, InvalidInput

AMINO_ACIDS = "ARNDCQEGHILKMFPSTWYV"
PROTEIN = ("BLOSUM45", "BLOSUM50", "BLOSUM62", "BLOSUM80", "BLOSUM90", "PAM250", "PAM30", "PAM70")

# Scores of each amino acid against itself, in the order of AMINO_ACIDS. blastp 2.12 gives a protein that is
# aligned to itself the sum of these (-comp_based_stats 0 -seg no).
DIAGONALS = {
    "BLOSUM45": [5, 7, 6, 7, 12, 6, 6, 7, 10, 5, 5, 5, 6, 8, 9, 4, 5, 15, 8, 5],
    "BLOSUM50": [5, 7, 7, 8, 13, 7, 6, 8, 10, 5, 5, 6, 7, 8, 10, 5, 5, 15, 8, 5],
    "BLOSUM62": [4, 5, 6, 6, 9, 5, 5, 6, 8, 4, 4, 5, 5, 6, 7, 4, 5, 11, 7, 4],
    "BLOSUM80": [5, 6, 6, 6, 9, 6, 6, 6, 8, 5, 4, 5, 6, 6, 8, 5, 5, 11, 7, 4],
    "BLOSUM90": [5, 6, 7, 7, 9, 7, 6, 6, 8, 5, 5, 6, 7, 7, 8, 5, 6, 11, 8, 5],
    "PAM250": [2, 6, 2, 4, 12, 4, 4, 5, 6, 5, 6, 5, 6, 9, 6, 2, 3, 17, 10, 4],
    "PAM30": [6, 8, 8, 8, 10, 8, 8, 6, 9, 8, 7, 7, 11, 9, 8, 6, 7, 13, 10, 7],
    "PAM70": [5, 8, 6, 6, 9, 7, 6, 6, 8, 7, 6, 6, 10, 8, 7, 5, 6, 13, 9, 6],
}
# CRC-32 of the scores as signed bytes. First the twenty amino acids, from NCBI's C Toolkit (BLOSUM45 and so
# on in the Debian package ncbi-data 6.1). Then the whole table, from Biopython 1.88 and EMBOSS 6.6, which are
# equal; that of BLOSUM80 is from the NCBI C++ Toolkit (sm_blosum80.c before J was added).
CHECKSUMS = {
    "BLOSUM45": (0x88846EB7, 0x51D00B9A),
    "BLOSUM50": (0xFFDA75F5, 0x46FD2D14),
    "BLOSUM62": (0x1697BF51, 0xE441A494),
    "BLOSUM80": (0xE672B830, 0xF9E48471),
    "BLOSUM90": (0x2CB06284, 0xDA41877E),
    "PAM250": (0xAF254635, 0xEA9F2154),
    "PAM30": (0x18977FB4, 0x2CC85810),
    "PAM70": (0x3DAA2F29, 0x97E47B98),
}

SMALL = "# a comment\n  A C *\nA 2 -1 -4\nC -1 3 -4\n* -4 -4 1\n"


def scores_of(matrix: SubstitutionMatrix, letters: str) -> np.ndarray:
    codes = matrix.codes[np.frombuffer(letters.encode(), np.uint8)]
    return matrix.scores[np.ix_(codes, codes)]


def checksum(scores: np.ndarray) -> int:
    return zlib.crc32(scores.astype(np.int8).tobytes())


def test_what_is_bundled() -> None:
    assert set(bundled_matrices()) == {*PROTEIN, "NUC.4.4"}


@pytest.mark.parametrize("name", PROTEIN)
def test_the_protein_matrices_have_the_published_scores(name: str) -> None:
    matrix = load_matrix(name)
    assert (matrix.name, matrix.kind, matrix.letters) == (name, "protein", AMINO_ACIDS + "BZX*")
    assert np.diag(scores_of(matrix, AMINO_ACIDS)).tolist() == DIAGONALS[name]
    assert (checksum(scores_of(matrix, AMINO_ACIDS)), checksum(matrix.scores)) == CHECKSUMS[name]
    assert matrix.symmetric


@pytest.mark.parametrize(
    ("name", "pair", "score"),
    [
        ("BLOSUM62", "WC", -2), ("BLOSUM62", "IV", 3), ("BLOSUM62", "XA", 0), ("BLOSUM62", "**", 1),
        ("BLOSUM45", "DE", 2), ("BLOSUM50", "FY", 4), ("BLOSUM80", "DW", -6), ("BLOSUM90", "CE", -6),
        ("PAM30", "EW", -17), ("PAM70", "CL", -10), ("PAM250", "FY", 7), ("NUC.4.4", "AT", -4),
        ("NUC.4.4", "NN", -1), ("NUC.4.4", "SW", -4), ("NUC.4.4", "AR", 1), ("NUC.4.4", "BN", -1),
    ],
)  # fmt: skip
def test_single_scores(name: str, pair: str, score: int) -> None:
    assert scores_of(load_matrix(name), pair)[0, 1] == score


def test_the_nucleotide_matrix() -> None:
    matrix = load_matrix("nuc.4.4")
    assert (matrix.kind, matrix.letters) == ("dna", "ATGCSWRYKMBVHDN")
    assert np.array_equal(scores_of(matrix, "ACGT"), np.where(np.eye(4, dtype=bool), 5, -4))
    assert checksum(matrix.scores) == 0x1438D1A1  # Biopython 1.88 and EMBOSS 6.6
    assert matrix.symmetric


@pytest.mark.parametrize("name", [*PROTEIN, "NUC.4.4"])
def test_equal_to_biopython(name: str) -> None:
    matrices = pytest.importorskip("Bio.Align.substitution_matrices", reason="Biopython is the second source")
    theirs, ours = matrices.load(name), load_matrix(name)
    assert theirs.alphabet == ours.letters
    if name == "BLOSUM80":  # theirs is in thirds of a bit, ours (BLAST's) in half bits: see SOURCES.md
        ratio = np.diag(ours.scores)[:20].sum() / np.diag(np.asarray(theirs))[:20].sum()
        assert 0.62 < ratio < 0.7
    else:
        assert np.array_equal(np.asarray(theirs).astype(np.int64), ours.scores)


def test_codes_of_proteins() -> None:
    codes = load_matrix("BLOSUM62").codes
    assert codes.shape == (256,)
    assert codes.dtype == np.uint8
    assert [codes[ord(c)] for c in "ARNarn*"] == [0, 1, 2, 0, 1, 2, 23]
    assert {int(codes[ord(c)]) for c in "XxUuOoJj"} == {22}
    assert {int(codes[ord(c)]) for c in "-.1 \n?"} == {NO_CODE}
    assert (codes[128:] == NO_CODE).all()
    assert load_matrix("BLOSUM62").accepted == "ARNDCQEGHILKMFPSTWYVBZX*JOU"


def test_rare_amino_acids_need_x_in_the_matrix() -> None:
    matrix = match_mismatch(1, -1, letters=AMINO_ACIDS)
    assert matrix.kind == "protein"
    assert matrix.codes[ord("U")] == NO_CODE
    own = match_mismatch(1, -1, letters=AMINO_ACIDS + "XJ")
    assert own.codes[ord("J")] == 21


@pytest.mark.parametrize(("letters", "same"), [("ACGT", "TU"), ("ACGU", "UT"), ("ACGTN", "tu")])
def test_uracil_is_thymine_either_way(letters: str, same: str) -> None:
    codes = match_mismatch(1, -1, letters=letters).codes
    assert codes[ord(same[0])] == codes[ord(same[1])] == 3


def test_arrays_are_read_only_and_own(tmp_path: Path) -> None:
    scores = np.array([[1, 0], [0, 1]])
    matrix = SubstitutionMatrix("mine", "ac", scores, "protein")
    scores[0, 0] = 9
    assert matrix.scores.tolist() == [[1, 0], [0, 1]]
    assert matrix.letters == "AC"
    assert matrix.scores.dtype == np.int32
    assert not matrix.scores.flags.writeable
    assert not matrix.codes.flags.writeable


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_bytes(SMALL.replace("\n", "\r\n").encode())
    for given_path in (path, str(path)):
        matrix = load_matrix(given_path)
        assert (matrix.name, matrix.letters, matrix.kind) == ("mine", "AC*", "protein")
        assert matrix.scores.tolist() == [[2, -1, -4], [-1, 3, -4], [-4, -4, 1]]


def test_a_bundled_name_goes_before_a_file_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "BLOSUM62").write_text(SMALL)
    monkeypatch.chdir(tmp_path)
    assert len(load_matrix("BLOSUM62").letters) == 24
    assert len(load_matrix("./BLOSUM62").letters) == 3
    assert len(load_matrix(Path("BLOSUM62")).letters) == 3


def test_an_asymmetric_file_is_read_and_said_so() -> None:
    matrix = parse_matrix("x", " A C\nA 2 -1\nC -3 2\n", name="x")
    assert not matrix.symmetric
    assert matrix.scores.tolist() == [[2, -1], [-3, 2]]


@pytest.mark.parametrize("letters", ["ACGT", "ACGTN", "ACGTUNRYSWKMBDHV*", "acgu"])
def test_a_file_of_nucleotides_is_known_by_its_letters(letters: str) -> None:
    rows = "\n".join(f"{a} " + " ".join("1" for _ in letters) for a in letters)
    assert parse_matrix("x", f"{' '.join(letters)}\n{rows}\n", name="x").kind == "dna"


@pytest.mark.parametrize(
    ("text", "line", "found", "expected"),
    [
        ("", None, "no line of letters", "a substitution matrix"),
        ("# only a comment\n\n", None, "no line of letters", "a substitution matrix"),
        (" A C\nA 1 0\n", 3, "the end after 1 rows", "2 rows, the next for 'C', as line 1 says"),
        (" A C\nA 1 0\nC 0 1 5\n", 3, "3 scores for 'C'", "2, one for each letter of line 1"),
        ("#\n A C\nA 1\n", 3, "1 scores for 'A'", "2, one for each letter of line 2"),
        (" A C\nC 0 1\nA 1 0\n", 2, "a row for 'C'", "the row for 'A', as line 1 says"),
        (" A C\n1 0\n0 1\n", 2, "a row for '1'", "the row for 'A', as line 1 says"),
        (" A C\nA 1 0\nC 0 1\nG 0 0\n", 4, "a row for 'G'", "the end after 2 rows, as line 1 says"),
        (" A C\nA 1 0.5\nC 0 1\n", 2, "'0.5'", "a whole number from -32767 to 32767"),
        (" A C\nA 1 x\nC 0 1\n", 2, "'x'", "a whole number from -32767 to 32767"),
        (" A C\nA 1 40000\nC 0 1\n", 2, "'40000'", "a whole number from -32767 to 32767"),
        (" A C a\n", 1, "the letter 'A' twice", "1 to 31 different letters"),
        (" A CC\n", 1, "'CC' as a letter", "1 to 31 different letters"),
        ("1 2\n", 1, "'1' as a letter", "1 to 31 different letters"),
        ("A B C D E F G H I J K L M N O P Q R S T U V W X Y Z * + = ! ? @\n", 1, "32 letters", "1 to 31"),
    ],
)
def test_what_is_no_matrix_is_told(
    tmp_path: Path, text: str, line: int | None, found: str, expected: str
) -> None:
    path = tmp_path / "bad.mat"
    path.write_text(text)
    with pytest.raises(FormatError) as caught:
        load_matrix(path)
    assert (caught.value.path, caught.value.line) == (str(path), line)
    assert caught.value.found == found
    assert caught.value.expected.startswith(expected)


def test_a_bad_score_is_told_with_its_column() -> None:
    with pytest.raises(FormatError, match=r"^x, line 2, column 'C': found '1e3', expected a whole number"):
        parse_matrix("x", " A C\nA 1 1e3\nC 0 1\n", name="x")


def test_unreadable_files(tmp_path: Path) -> None:
    path = tmp_path / "m"
    path.write_bytes(b" A C\nA 1 \xe9\n")
    with pytest.raises(FormatError, match=r"line 2: found the byte 0xE9"):
        load_matrix(path)
    path.write_bytes(b"#" * (1 << 20) + b"\n")
    with pytest.raises(FormatError, match="found more than 1048576 bytes"):
        load_matrix(path)
    with pytest.raises(FormatError, match="found Is a directory"):
        load_matrix(tmp_path)


def test_an_unknown_name_is_told_with_the_known_ones() -> None:
    with pytest.raises(
        InvalidInput, match=r"found 'BLOSUM61', expected one of BLOSUM45, .*, or a file; did you"
    ):
        load_matrix("BLOSUM61")


def test_ambiguity_codes_score_as_in_blastn() -> None:
    # By hand from the rule of BLAST's BlastScoreBlkNuclMatrixCreate for reward 1, penalty -2.
    matrix = match_mismatch(1, -2)
    assert matrix.letters == "ACGTRYSWKMBDHVN"
    table = scores_of(matrix, "ARBNCGT")
    assert table[0].tolist() == [1, -1, -2, -1, -2, -2, -2]
    assert table[1].tolist() == [-1, -1, -1, -1, -2, -1, -2]
    assert table[2].tolist() == [-2, -1, -1, -1, -1, -1, -1]
    assert table[3].tolist() == [-1, -1, -1, -1, -1, -1, -1]
    assert matrix.symmetric


@given(match=st.integers(0, 40), mismatch=st.integers(-40, -1))
def test_ambiguity_scores_are_rounded_means(match: int, mismatch: int) -> None:
    matrix = match_mismatch(match, mismatch)
    for code, choices in (("A", 1), ("R", 2), ("B", 3), ("N", 4)):
        mean = (match + (choices - 1) * mismatch) / choices
        score = int(scores_of(matrix, f"{code}G" if code != "A" else "AA")[0, 1])
        assert abs(score - mean) <= 0.5
        assert abs(score) == int(abs(mean) + 0.5)
    assert scores_of(matrix, "AC")[0, 1] == scores_of(matrix, "RY")[0, 1] == mismatch


@pytest.mark.parametrize(
    ("match", "mismatch", "message"),
    [
        (2, 3, "mismatch: found 3, expected a whole number from -32767 to 0; did you mean -3?"),
        (-1, -3, "match: found -1, expected a whole number from 0 to 32767; did you mean 1?"),
        (1.5, -3, "match: found 1.5, expected a whole number from 0 to 32767"),
        (True, -3, "match: found True, expected a whole number from 0 to 32767"),
        (40000, -3, "match: found 40000, expected a whole number from 0 to 32767"),
        (0, 0, "match: found 0, as mismatch, expected a score above that of a mismatch"),
    ],
)
def test_wrong_match_and_mismatch(match: int, mismatch: int, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        match_mismatch(match, mismatch)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("letters", "scores", "kind", "found"),
    [
        ("", np.zeros((0, 0), int), "dna", "the letters ''"),
        ("AA", np.zeros((2, 2), int), "dna", "the letters 'AA'"),
        ("A b", np.zeros((3, 3), int), "dna", "the letters 'A b'"),
        ("A\xc5", np.zeros((2, 2), int), "dna", "the letters 'A\xc5'"),
        ("".join(map(chr, range(33, 33 + MAX_LETTERS + 1))), np.zeros((32, 32), int), "dna", "the letters"),
        ("AC", np.zeros((2, 3), int), "dna", "scores of shape (2, 3)"),
        ("AC", np.zeros((2, 2)), "dna", "scores of shape (2, 2) and type float64"),
        ("AC", np.full((2, 2), -40000), "dna", "the score -40000"),
        ("AC", np.zeros((2, 2), int), "rna", "the kind 'rna'"),
    ],
)
def test_wrong_parts(letters: str, scores: np.ndarray, kind: str, found: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        SubstitutionMatrix("m", letters, scores, kind)  # type: ignore[arg-type]
    assert caught.value.what == "matrix 'm'"
    assert str(caught.value.found).startswith(found)


def test_a_byte_order_mark_is_no_letter(tmp_path: Path) -> None:
    text = b"   A  C\nA  1 -1\nC -1  1\n"
    for name, start in (("plain.txt", b""), ("marked.txt", b"\xef\xbb\xbf")):
        (tmp_path / name).write_bytes(start + text)
    plain, marked = (load_matrix(tmp_path / name) for name in ("plain.txt", "marked.txt"))
    assert marked.letters == plain.letters and np.array_equal(marked.scores, plain.scores)


def test_a_kind_that_is_said_is_that_of_letters_that_leave_it_open() -> None:
    pairs = {("A", "A"): 2, ("A", "C"): -1, ("C", "C"): 3}
    assert make_scoring(pairs, 3, 1).matrix.kind == "protein"
    assert make_scoring(pairs, 3, 1, kind="dna").matrix.kind == "dna"
