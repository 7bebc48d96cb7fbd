"""Substitution matrices: the bundled ones, files in NCBI's format, and match and mismatch scores."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from plait.errors import FormatError, InvalidInput

Kind = Literal["protein", "dna"]

#: Most letters a matrix may have: codes fit five bits, with one code left for padding.
MAX_LETTERS: Final = 31
#: Largest score and smallest negative score, as a magnitude.
MAX_SCORE: Final = 32767
#: Entry of `SubstitutionMatrix.codes` for a byte that is no letter of the matrix.
NO_CODE: Final = 255

_BASES: Final = {
    "A": "A", "C": "C", "G": "G", "T": "T", "U": "T",
    "R": "AG", "Y": "CT", "S": "CG", "W": "AT", "K": "GT", "M": "AC",
    "B": "CGT", "D": "AGT", "H": "ACT", "V": "ACG", "N": "ACGT",
}  # fmt: skip
_IUPAC: Final = "ACGTRYSWKMBDHVN"
_SUFFIX: Final = ".txt"
_MAX_BYTES: Final = 1 << 20
#: What some editors begin a text with.
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,9}")
_A_MATRIX: Final = "a substitution matrix in NCBI's format: a line of letters, then a line of scores for each"


@dataclass(frozen=True, eq=False)
class SubstitutionMatrix:
    """The score of every pair of letters.

    Parameters
    ----------
    name
        What it is called in outputs.
    letters
        The letters in the order of rows and columns: 1 to 31 different printable ASCII characters.
    scores
        Score of a letter of the query (row) against one of the target (column), at most 32767 either way.
        Shape (K, K); kept as read-only int32.
    kind
        Whether the letters are amino acids or nucleotides (DNA or RNA).

    Attributes
    ----------
    codes
        Row or column of every byte value, 255 for bytes that are no letter. Upper and lower case are alike.
        In nucleotides U and T are the same; in proteins the rare U, O and J count as X where the matrix has
        X and not them. Shape (256,), uint8, read-only.

    Raises
    ------
    InvalidInput
        If the letters or the scores are not as described.
    """

    name: str
    letters: str
    scores: NDArray[np.int32] = field(repr=False)
    kind: Kind
    codes: NDArray[np.uint8] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        what = f"matrix {self.name!r}"
        upper = self.letters.upper()
        if not (0 < len(upper) <= MAX_LETTERS and len(set(upper)) == len(upper) and _printable(upper)):
            raise InvalidInput(
                what,
                found=f"the letters {self.letters!r}",
                expected=f"1 to {MAX_LETTERS} different printable ASCII characters",
            )
        scores = _checked_scores(what, self.scores, len(upper))
        if self.kind not in ("protein", "dna"):
            raise InvalidInput(what, found=f"the kind {self.kind!r}", expected="'protein' or 'dna'")
        for name, value in (("letters", upper), ("scores", scores), ("codes", _codes(upper, self.kind))):
            object.__setattr__(self, name, value)

    @property
    def symmetric(self) -> bool:
        """Whether every pair scores the same either way round; all bundled matrices are."""
        return bool(np.array_equal(self.scores, self.scores.T))

    @property
    def accepted(self) -> str:
        """The letters that sequences may have: those of the matrix, then those that count as one of them."""
        others = (chr(byte) for byte in range(ord("A"), ord("Z") + 1) if self.codes[byte] != NO_CODE)
        return self.letters + "".join(letter for letter in others if letter not in self.letters)


def _printable(letters: str) -> bool:
    return all("!" <= letter <= "~" for letter in letters)


def _checked_scores(what: str, scores: object, size: int) -> NDArray[np.int32]:
    given = np.asarray(scores)
    if given.shape != (size, size) or not np.issubdtype(given.dtype, np.integer):
        raise InvalidInput(
            what,
            found=f"scores of shape {given.shape} and type {given.dtype}",
            expected=f"integers of shape ({size}, {size}), one for each pair of letters",
        )
    if given.max() > MAX_SCORE or given.min() < -MAX_SCORE:
        worst = max(int(given.max()), int(given.min()), key=abs)
        raise InvalidInput(
            what, found=f"the score {worst}", expected=f"scores from {-MAX_SCORE} to {MAX_SCORE}"
        )
    kept = np.array(given, np.int32, order="C")
    kept.setflags(write=False)
    return kept


def _kind_of(letters: str) -> Kind:
    return "dna" if set("ACG") <= set(letters) <= set(_BASES) | {"*"} else "protein"


def _codes(letters: str, kind: Kind) -> NDArray[np.uint8]:
    table = np.full(256, NO_CODE, np.uint8)
    code = {letter: index for index, letter in enumerate(letters)}
    same = {"U": "T", "T": "U"} if kind == "dna" else {"U": "X", "O": "X", "J": "X"}
    for letter, alike in same.items():
        if letter not in code and alike in letters:
            code[letter] = letters.index(alike)
    for letter, index in code.items():
        table[ord(letter)] = table[ord(letter.lower())] = index
    table.setflags(write=False)
    return table


def match_mismatch(match: int, mismatch: int, *, letters: str = _IUPAC) -> SubstitutionMatrix:
    """The matrix of one score for equal letters and one for different letters.

    A nucleotide ambiguity code against a letter that it may stand for scores what is expected when the more
    ambiguous of the two stands for each of its n bases equally often, ``(match + (n - 1) * mismatch) / n``
    rounded to the nearest integer, halves away from zero. That is how blastn scores them.

    Parameters
    ----------
    match
        Score of a letter against itself, 0 or more.
    mismatch
        Score of two different letters, 0 or less and below `match`.
    letters
        The letters: by default the four bases and the IUPAC ambiguity codes.

    Returns
    -------
    SubstitutionMatrix
        Named ``match/mismatch``.

    Raises
    ------
    InvalidInput
        If a score has the wrong sign.

    Examples
    --------
    >>> match_mismatch(2, -3, letters="ACGTN").scores.tolist()[-1]
    [-2, -2, -2, -2, -2]
    """
    _check_pair(match, mismatch)
    upper = letters.upper()
    nucleotides = set("ACG") <= set(upper) <= set(_BASES)
    scores = np.full((len(upper), len(upper)), mismatch, np.int64)
    for i, a in enumerate(upper):
        for j, b in enumerate(upper):
            if nucleotides and set(_BASES[a]) & set(_BASES[b]):
                choices = max(len(_BASES[a]), len(_BASES[b]))
                scores[i, j] = _nearest(match + (choices - 1) * mismatch, choices)
            elif a == b:
                scores[i, j] = match
    return SubstitutionMatrix(f"{match}/{mismatch}", upper, scores.astype(np.int32), _kind_of(upper))


def _check_pair(match: int, mismatch: int) -> None:
    for what, value, low, high in (
        ("match", match, 0, MAX_SCORE),
        ("mismatch", mismatch, -MAX_SCORE, 0),
    ):
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not (whole and low <= value <= high):
            hint = f"did you mean {-value}?" if whole and low <= -value <= high else None
            expected = f"a whole number from {low} to {high}"
            raise InvalidInput(what, found=repr(value), expected=expected, hint=hint)
    if match == mismatch:
        raise InvalidInput("match", found="0, as mismatch", expected="a score above that of a mismatch")


def _nearest(numerator: int, denominator: int) -> int:
    sign = 1 if numerator >= 0 else -1
    return sign * ((2 * abs(numerator) + denominator) // (2 * denominator))


@cache
def bundled_matrices() -> tuple[str, ...]:
    """Names of the matrices that come with plait.

    Examples
    --------
    >>> "BLOSUM62" in bundled_matrices()
    True
    """
    folder = resources.files("plait.align").joinpath("data")
    names = (item.name for item in folder.iterdir() if item.name.endswith(_SUFFIX))
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in names))


@cache
def _bundled(name: str) -> SubstitutionMatrix:
    file = resources.files("plait.align").joinpath("data", name + _SUFFIX)
    return parse_matrix(file, file.read_text("ascii"), name=name)


def load_matrix(name_or_path: str | os.PathLike[str]) -> SubstitutionMatrix:
    """Load a substitution matrix.

    Parameters
    ----------
    name_or_path
        Name of a bundled matrix in any case, such as ``"BLOSUM62"``; or a file in NCBI's format. A bundled
        name means the bundled matrix even where a file is called so: write ``./BLOSUM62`` for the file.
        BLOSUM80 is BLAST's, in half bits; EMBOSS, parasail and Biopython have another of that name, in
        thirds of a bit.

    Returns
    -------
    SubstitutionMatrix
        The matrix, named as the file.

    Raises
    ------
    InvalidInput
        If there is neither a bundled matrix of that name nor a file.
    FormatError
        If the file is no such matrix.

    Examples
    --------
    >>> load_matrix("blosum62").scores[0, 0].item()
    4
    """
    known = bundled_matrices()
    if isinstance(name_or_path, str) and name_or_path.upper() in known:
        return _bundled(name_or_path.upper())
    path = Path(name_or_path)
    if not path.exists():
        near = difflib.get_close_matches(str(path).upper(), known, n=1, cutoff=0.7)
        raise InvalidInput(
            "matrix",
            found=repr(str(path)),
            expected=f"one of {', '.join(known)}, or a file",
            hint=f"did you mean {near[0]}?" if near else None,
        )
    return parse_matrix(path, _read(path), name=path.name.removesuffix(_SUFFIX))


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(_MAX_BYTES + 1).removeprefix(_BYTE_ORDER_MARK)
    except OSError as error:
        raise FormatError(path, expected=_A_MATRIX, found=error.strerror or str(error)) from error
    if len(raw) > _MAX_BYTES:
        raise FormatError(path, expected=_A_MATRIX, found=f"more than {_MAX_BYTES} bytes")
    if not raw.isascii() or b"\0" in raw:
        at = next(i for i, byte in enumerate(raw) if byte == 0 or byte > 127)
        line = raw.count(b"\n", 0, at) + 1
        raise FormatError(path, line=line, expected=_A_MATRIX, found=f"the byte 0x{raw[at]:02x}")
    return raw.decode("ascii")


def parse_matrix(path: object, text: str, *, name: str) -> SubstitutionMatrix:
    """A matrix from text in NCBI's format; `FormatError`, with `path`, if it is not of that form.

    Comments start with ``#``. The first other line has the letters of the columns; each further line a letter
    and its scores. Rows stand in the order of the columns. The matrix need not be symmetric.
    """
    letters = ""
    header_line = number = 0
    rows: list[list[int]] = []
    for number, line in enumerate(text.split("\n"), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if not letters:
            letters, header_line = _letters(path, number, words), number
        else:
            rows.append(_row(path, number, words, letters, len(rows), header_line))
    if not letters:
        raise FormatError(path, expected=_A_MATRIX, found="no line of letters")
    if len(rows) < len(letters):
        raise FormatError(
            path,
            line=number,
            found=f"the end after {len(rows)} rows",
            expected=f"{len(letters)} rows, the next for {letters[len(rows)]!r}, as line {header_line} says",
        )
    return SubstitutionMatrix(name, letters, np.array(rows, np.int32), _kind_of(letters))


def _letters(path: object, number: int, words: Sequence[str]) -> str:
    expected = f"1 to {MAX_LETTERS} different letters, one for each column"
    found = None
    bad = next((word for word in words if len(word) > 1 or word.isdigit() or not _printable(word)), None)
    upper = [word.upper() for word in words]
    twice = next((letter for i, letter in enumerate(upper) if letter in upper[:i]), None)
    if bad is not None:
        found = f"{bad[:40]!r} as a letter"
    elif twice is not None:
        found = f"the letter {twice!r} twice"
    elif len(words) > MAX_LETTERS:
        found = f"{len(words)} letters"
    if found:
        raise FormatError(path, line=number, found=found, expected=expected)
    return "".join(upper)


def _row(
    path: object, number: int, words: Sequence[str], letters: str, index: int, header_line: int
) -> list[int]:
    if letters[index : index + 1] != words[0].upper():
        last = index == len(letters)
        expected = f"the end after {index} rows" if last else f"the row for {letters[index]!r}"
        expected += f", as line {header_line} says"
        raise FormatError(path, line=number, found=f"a row for {words[0]!r}", expected=expected)
    if len(words) - 1 != len(letters):
        raise FormatError(
            path,
            line=number,
            found=f"{len(words) - 1} scores for {words[0]!r}",
            expected=f"{len(letters)}, one for each letter of line {header_line}",
        )
    for letter, word in zip(letters, words[1:], strict=True):
        if not _INTEGER.fullmatch(word) or abs(int(word)) > MAX_SCORE:
            raise FormatError(
                path,
                line=number,
                column=letter,
                found=repr(word),
                expected=f"a whole number from {-MAX_SCORE} to {MAX_SCORE}",
            )
    return [int(word) for word in words[1:]]
