"""Scoring: substitution matrices, costs of gaps, and which ends may be left out.

Codes of pairs are indices into a matrix; those of packed databases are the same for every matrix.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from plait.align.letters import ALPHABETS, UNKNOWN
from plait.align.settings import FreeEnd, Kind, Mode
from plait.alphabets import shown_letter
from plait.dp.pairs.lists import FreeEnds, looked_up
from plait.errors import FormatError, InvalidInput, one_of, whole
from plait.formats.fasta import Sequences

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

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SubstitutionMatrix) and self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)

    @cached_property
    def _content(self) -> tuple[object, ...]:
        return self.name, self.letters, self.kind, self.scores.tobytes(), self.codes.tobytes()

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
        turned = isinstance(value, int) and low <= -value <= high
        whole(what, value, low, high, hint=f"did you mean {-value}?" if turned else None)
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
    folder = Path(__file__).with_name("data")
    names = (item.name for item in folder.iterdir() if item.name.endswith(_SUFFIX))
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in names))


@cache
def _bundled(name: str) -> SubstitutionMatrix:
    file = Path(__file__).with_name("data") / (name + _SUFFIX)
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
        import difflib

        near = difflib.get_close_matches(str(path).upper(), known, n=1, cutoff=0.7)
        raise InvalidInput(
            "matrix",
            found=repr(str(path)),
            expected=f"one of {', '.join(known)}, or a file",
            hint=f"did you mean {near[0]}?" if near else None,
        )
    return parse_matrix(path, _read(path), name=path.name.removesuffix(_SUFFIX))


class LetterScores(Protocol):
    """A matrix of another library: letters, and scores in their order (Biopython's is an array of them)."""

    @property
    def alphabet(self) -> Any:
        """The letters, in the order of rows and columns."""


#: A matrix, the name of a bundled one, a file in NCBI's format, or what `to_matrix` takes besides.
Matrix = (
    str | os.PathLike[str] | SubstitutionMatrix | LetterScores | Mapping[Any, Any] | tuple[str, NDArray[Any]]
)
_NO_NAME: Final = "custom"


def to_matrix(source: Matrix, *, name: str | None = None, kind: Kind | None = None) -> SubstitutionMatrix:
    """A substitution matrix from what other programs and libraries call one.

    Parameters
    ----------
    source
        A matrix, the name of a bundled one, or a file, as for `load_matrix`; an object with letters as
        ``alphabet`` that is an array of scores (Biopython's ``substitution_matrices.Array``) or has them as
        ``matrix`` (``scoring_matrices.ScoringMatrix``); letters and a NumPy array of shape (K, K); or a
        mapping of pairs of letters, ``("A", "C")`` or ``"AC"``, to scores. A pair that is missing there
        scores as the two the other way round.
    name
        What it is called in outputs; otherwise its own name, or "custom".
    kind
        Whether the letters are amino acids or nucleotides; otherwise what they look like.

    Returns
    -------
    SubstitutionMatrix
        The matrix.

    Raises
    ------
    InvalidInput
        If it is none of these, a score is missing or no whole number, or letters are not as they should be.

    Examples
    --------
    >>> to_matrix({("A", "A"): 2, ("A", "C"): -1, ("C", "C"): 3}).scores.tolist()
    [[2, -1], [-1, 3]]
    """
    if isinstance(source, SubstitutionMatrix):
        return source
    if isinstance(source, str | os.PathLike):
        return load_matrix(source)
    letters: Any
    scores: Any
    if isinstance(source, Mapping) and not hasattr(source, "alphabet"):
        letters, scores = _of_pairs(source)
    elif isinstance(source, tuple) and len(source) == 2:
        letters, scores = source
    elif hasattr(source, "alphabet"):
        letters = source.alphabet
        scores = source if isinstance(source, np.ndarray) else getattr(source, "matrix", None)
        name = name or getattr(source, "name", None)
    else:
        expected = "a matrix, its name or file, letters and an array, or a mapping of pairs of letters"
        raise InvalidInput("matrix", found=f"a {type(source).__name__}", expected=expected)
    letters = "".join(letters).upper()
    values = np.asarray(scores)
    if values.dtype.kind == "f":
        odd = values[~(np.isfinite(values) & (values == np.rint(values)))]
        if odd.size:
            hint = "multiply all scores and the costs of gaps by one number, and round"
            raise InvalidInput("matrix", found=f"the score {odd[0]}", expected="whole numbers", hint=hint)
        values = np.rint(values).astype(np.int64)
    return SubstitutionMatrix(name or _NO_NAME, letters, values, kind or _kind_of(letters))


def _of_pairs(pairs: Mapping[Any, Any]) -> tuple[str, NDArray[Any]]:
    """Letters in the order in which they come, and their scores."""
    letters: dict[str, None] = {}
    for key in pairs:
        if not isinstance(key, str | tuple) or len(key) != 2 or not all(isinstance(one, str) for one in key):
            raise InvalidInput("matrix", found=f"the key {key!r}", expected="pairs of letters")
        letters |= dict.fromkeys(key)
    scores = []
    for one in letters:
        for other in letters:
            keys = ((one, other), one + other, (other, one), other + one)
            score = next((pairs[key] for key in keys if key in pairs), None)
            if score is None:
                raise InvalidInput("matrix", found=f"no score of {one!r} and {other!r}", expected="one")
            scores.append(score)
    return "".join(letters), np.array(scores).reshape(len(letters), len(letters))


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
        raise FormatError(path, line=line, expected=_A_MATRIX, found=shown_letter(raw, at))
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


#: Largest cost of a residue in a gap.
MAX_GAP_COST: Final = 32767
#: ``gap_open, gap_extend`` by name of the matrix: BLAST's defaults in the convention of `Scoring`.
DEFAULT_GAP_COSTS: Final = {
    "BLOSUM45": (16, 2),
    "BLOSUM50": (15, 2),
    "BLOSUM62": (12, 1),
    "BLOSUM80": (11, 1),
    "BLOSUM90": (11, 1),
    "PAM30": (10, 1),
    "PAM70": (11, 1),
    "PAM250": (16, 2),
    "NUC.4.4": (16, 6),
    "2/-3": (7, 2),
}
_BLAST: Final = (
    "the first residue of a gap costs gap_open: BLAST's existence G and extension E are gap_open G + E"
)


@dataclass(frozen=True)
class Scoring:
    """A substitution matrix and the costs of gaps.

    Parameters
    ----------
    matrix
        Score of every pair of letters.
    gap_open
        Cost of the first residue of a gap, 0 to 32767.
    gap_extend
        Cost of every further residue, 0 to `gap_open`. A gap of g residues costs
        ``gap_open + (g - 1) * gap_extend``, as in EMBOSS and parasail. BLAST counts the existence of a gap
        apart from its residues: existence G and extension E are ``gap_open = G + E`` and ``gap_extend = E``.

    Raises
    ------
    InvalidInput
        If a cost is negative, too large or no whole number, or `gap_open` is less than `gap_extend`.
    """

    matrix: SubstitutionMatrix
    gap_open: int
    gap_extend: int

    def __post_init__(self) -> None:
        for what in ("gap_open", "gap_extend"):
            object.__setattr__(self, what, _cost(what, getattr(self, what)))
        if self.gap_open < self.gap_extend:
            raise InvalidInput(
                "gap_open",
                found=f"{self.gap_open}, less than gap_extend {self.gap_extend}",
                expected=f"{self.gap_extend} or more",
                hint=_BLAST,
            )

    @property
    def linear(self) -> bool:
        """Whether every residue of a gap costs the same."""
        return self.gap_open == self.gap_extend

    def encode(self, sequence: str | bytes, what: str = "query") -> NDArray[np.uint8]:
        """A sequence as indices into the matrix.

        Parameters
        ----------
        sequence
            Letters of the matrix in either case; may be empty.
        what
            What the sequence is called in error messages.

        Returns
        -------
        NDArray[np.uint8]
            Row or column of each letter. Shape (len(sequence),).

        Raises
        ------
        InvalidInput
            If a letter is not in the matrix; it is named with its 1-based position.
        """
        raw = _ascii(sequence) if isinstance(sequence, str) else sequence
        codes = self.matrix.codes[np.frombuffer(raw, np.uint8)]
        if codes.max(initial=0) == NO_CODE:
            at = int(np.argmax(codes == NO_CODE))
            letter = sequence[at] if isinstance(sequence, str) else chr(sequence[at])
            found = f"{letter!r} at position {at + 1}"
            raise InvalidInput(what, found=found, expected=self._expected, hint=_hint(letter))
        return codes

    def encode_many(
        self, sequences: Sequence[str | bytes], what: str = "sequence"
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Many sequences as indices into the matrix, one after the other.

        Parameters
        ----------
        sequences
            As for `encode`.
        what
            What they are called in error messages, with their number from 1.

        Returns
        -------
        tuple
            Codes, shape (residues,), and where each begins and the last ends, shape (n + 1,).

        Raises
        ------
        InvalidInput
            As for `encode`.
        """
        texts: Sequence[Any] = sequences
        if {*map(type, texts)} == {str}:
            raw = _ascii("".join(texts))
        else:
            raw = b"".join([_ascii(s) if isinstance(s, str) else s for s in texts])
        starts = np.zeros(len(texts) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)), out=starts[1:])
        codes = looked_up(np.frombuffer(raw, np.uint8), self.matrix.codes)
        if codes.max(initial=0) == NO_CODE:
            for number, sequence in enumerate(sequences, 1):
                self.encode(sequence, f"{what} {number}")
        return codes, starts

    def encode_letters(
        self,
        letters: NDArray[np.uint8],
        *,
        offsets: NDArray[np.int64] | None = None,
        names: Sequence[str] | None = None,
        path: object = None,
        lines: NDArray[np.int64] | None = None,
    ) -> NDArray[np.uint8]:
        """Many sequences, one behind the other, as indices into the matrix.

        Parameters
        ----------
        letters
            ASCII bytes of all sequences. Shape (residues,).
        offsets
            Sequence i is ``letters[offsets[i]:offsets[i + 1]]``; by default there is one. Shape (n + 1,).
        names
            What the sequences are called, for error messages.
        path, lines
            The file they come from and the 1-based line where each begins, for error messages.

        Returns
        -------
        NDArray[np.uint8]
            Row or column of each letter. Shape (residues,).

        Raises
        ------
        InvalidInput
            If a letter is not in the matrix; it is named with its sequence and its 1-based position.
        FormatError
            The same, where `path` is given.
        """
        codes = self.matrix.codes[letters]
        if codes.max(initial=0) != NO_CODE:
            return codes
        at = int(np.argmax(codes == NO_CODE))
        record = 0 if offsets is None else int(np.searchsorted(offsets, at, "right")) - 1
        letter, place = chr(letters[at]), at - (0 if offsets is None else int(offsets[record]))
        what = f"sequence {names[record]!r}" if names else f"sequence {record + 1}"
        found = f"{letter!r} at position {place + 1}"
        if path is None:
            raise InvalidInput(what, found=found, expected=self._expected, hint=_hint(letter))
        raise FormatError(
            path,
            line=None if lines is None else int(lines[record]),
            record=record if lines is None else None,
            found=f"{found} of {what}",
            expected=self._expected,
            hint=_hint(letter),
        )

    def encode_records(self, path: object, records: Sequences) -> NDArray[np.uint8]:
        """The letters of records of a file as indices into the matrix.

        Parameters
        ----------
        path, records
            The file, for error messages, and what was read of it.

        Returns
        -------
        NDArray[np.uint8]
            Row or column of each letter. Shape (residues,).

        Raises
        ------
        FormatError
            If a letter is not in the matrix; it is named with its record, line and 1-based position.
        """
        offsets, names, lines = records.offsets, records.names, records.lines
        return self.encode_letters(records.letters, offsets=offsets, names=names, path=path, lines=lines)

    @property
    def _expected(self) -> str:
        return f"one of {self.matrix.accepted}"


def _ascii(sequence: str) -> bytes:
    """A byte for each letter; NUL, which no matrix has, for those that are not ASCII."""
    if not sequence.isascii():
        sequence = "".join(letter if letter.isascii() else "\0" for letter in sequence)
    return sequence.encode("ascii")


def _hint(letter: str) -> str | None:
    return "take the gaps out first" if letter in "-." else None


def _cost(what: str, value: Any) -> int:
    negative = isinstance(value, int) and -MAX_GAP_COST <= value < 0
    return whole(
        what, value, 0, MAX_GAP_COST, hint=f"costs are positive: give {-value}" if negative else None
    )


def masked(scoring: Scoring) -> Scoring:
    """The same with lower-case letters taken as X, of nucleotides as N; `InvalidInput` if there is none."""
    matrix = scoring.matrix
    unknown = UNKNOWN[matrix.kind]
    code = matrix.codes[ord(unknown)]
    if code == NO_CODE:
        raise InvalidInput(
            "mask_lower_case",
            found=f"{matrix.name} without {unknown}",
            expected=f"a matrix that has {unknown}",
        )
    codes = matrix.codes.copy()
    lower = slice(ord("a"), ord("z") + 1)
    codes[lower] = np.where(codes[lower] == NO_CODE, NO_CODE, code)
    codes.flags.writeable = False
    taken = replace(matrix)
    object.__setattr__(taken, "codes", codes)
    return replace(scoring, matrix=taken)


#: Scores of equal and of different letters where only one of the two is given.
_MATCH: Final = 2
_MISMATCH: Final = -3


def make_scoring(
    matrix: Matrix | None = None,
    gap_open: int | None = None,
    gap_extend: int | None = None,
    *,
    kind: Kind | None = None,
    match: int | None = None,
    mismatch: int | None = None,
) -> Scoring:
    """A scoring, with defaults for what is not given.

    Parameters
    ----------
    matrix
        A matrix, the name of a bundled one, a file in NCBI's format, or what `to_matrix` takes besides. By
        default BLOSUM62 for proteins, and 2 for a match and -3 for a mismatch for nucleotides.
    gap_open, gap_extend
        Costs of the first and of every further residue of a gap; see `Scoring`. By default those of BLAST for
        the matrix: 12 and 1 with BLOSUM62 (BLAST's 11/1), 7 and 2 for nucleotides (BLAST's 5/2). Matrices of
        your own have no default.
    kind
        What the sequences are: ``"protein"`` or ``"dna"`` (RNA too). By default what the matrix is for, with
        `match` or `mismatch` nucleotides, and else proteins.
    match, mismatch
        Scores of two equal and of two different letters, in the place of a matrix; 2 and -3 if one is left
        out.

    Returns
    -------
    Scoring
        The scoring.

    Raises
    ------
    InvalidInput
        If a cost is wrong or missing, or the matrix is for the other kind or is not there.
    FormatError
        If a matrix file is not what it should be.

    Examples
    --------
    >>> scoring = make_scoring()
    >>> scoring.matrix.name, scoring.gap_open, scoring.gap_extend
    ('BLOSUM62', 12, 1)
    >>> make_scoring("BLOSUM62").encode("WAR").tolist()
    [17, 0, 1]
    """
    if kind not in (None, "protein", "dna"):
        raise InvalidInput("kind", found=repr(kind), expected="'protein' or 'dna'")
    if match is not None or mismatch is not None:
        if matrix is not None:
            found = "a matrix and match or mismatch scores"
            raise InvalidInput("matrix", found=found, expected="one or the other")
        scores = (_MATCH if match is None else match, _MISMATCH if mismatch is None else mismatch)
        kind = kind or "dna"
        chosen = match_mismatch(*scores, letters=ALPHABETS[kind])
    elif matrix is None:
        chosen = match_mismatch(_MATCH, _MISMATCH) if kind == "dna" else load_matrix("BLOSUM62")
    else:
        chosen = to_matrix(matrix, kind=kind)
    return _scoring_of(chosen, gap_open, gap_extend, kind)


def _scoring_of(
    chosen: SubstitutionMatrix, gap_open: int | None, gap_extend: int | None, kind: Kind | None
) -> Scoring:
    """With BLAST's costs where there are usual ones."""
    if kind not in (None, chosen.kind):
        words = {"protein": "proteins", "dna": "nucleotides"}
        raise InvalidInput(
            "matrix",
            found=f"{chosen.name!r}, which is for {words[chosen.kind]}",
            expected=f"a matrix for {words[str(kind)]}",
        )
    defaults = DEFAULT_GAP_COSTS.get(chosen.name, (None, None))
    gap_open = defaults[0] if gap_open is None else gap_open
    gap_extend = defaults[1] if gap_extend is None else gap_extend
    if gap_open is None or gap_extend is None:
        raise InvalidInput(
            "gap_open" if gap_open is None else "gap_extend",
            found="none",
            expected=f"a cost, because there is no usual one for the matrix {chosen.name!r}",
        )
    return Scoring(chosen, gap_open, gap_extend)


END_NAMES: tuple[str, ...] = get_args(FreeEnd)
_MODES: tuple[str, ...] = get_args(Mode)
_DEFAULT_FREE = ("target_start", "target_end")


def free_ends_of(mode: Mode, free_ends: Iterable[FreeEnd] | None = None) -> FreeEnds:
    """What an alignment may leave out.

    ``"global"``: nothing. ``"local"``: anything outside the best stretch of both. ``"semiglobal"``: what
    `free_ends` says, any of query_start, query_end, target_start, target_end; by default the ends of the
    target: the query is found within it. ``"overlap"``: both ends of both, so that ends may overlap or one
    may lie within the other. ``"extension"``: both begin at their starts, and anything after the best cell is
    left out. `InvalidInput` if a word is unknown, or `free_ends` is given for another mode.
    """
    one_of("mode", mode, _MODES)
    if mode != "semiglobal":
        if free_ends is not None:
            hint = "mode='semiglobal' takes them"
            raise InvalidInput("free_ends", found=f"mode {mode!r}", expected="no free ends", hint=hint)
        free = mode == "overlap"
        local = mode == "local"
        return FreeEnds(free, free, free, free, local, local or mode == "extension")
    names = _DEFAULT_FREE if free_ends is None else tuple(free_ends)
    for name in names:
        if name not in END_NAMES:
            raise InvalidInput("free_ends", found=repr(name), expected=f"any of {', '.join(END_NAMES)}")
    query_start, query_end, target_start, target_end = (name in names for name in END_NAMES)
    return FreeEnds(query_start, query_end, target_start, target_end, False, False)
