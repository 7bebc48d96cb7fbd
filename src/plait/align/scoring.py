"""Scoring, and modes of alignment: which ends of which sequence may be left out at no cost."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from plait.align.matrices import NO_CODE, Kind, SubstitutionMatrix, load_matrix, match_mismatch
from plait.dp.pairs.lists import FreeEnds
from plait.errors import FormatError, InvalidInput

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
        raw = [_ascii(s) if isinstance(s, str) else s for s in sequences]
        starts = np.zeros(len(raw) + 1, np.int64)
        np.cumsum([len(letters) for letters in raw], out=starts[1:])
        codes = self.matrix.codes[np.frombuffer(b"".join(raw), np.uint8)]
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


def _cost(what: str, value: object) -> int:
    expected = f"a whole number from 0 to {MAX_GAP_COST}"
    try:
        cost = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise InvalidInput(what, found=repr(value), expected=expected) from None
    if 0 <= cost <= MAX_GAP_COST and not isinstance(value, bool):
        return cost
    hint = f"costs are positive: give {-cost}" if -MAX_GAP_COST <= cost < 0 else None
    raise InvalidInput(what, found=repr(value), expected=expected, hint=hint)


def make_scoring(
    matrix: str | os.PathLike[str] | SubstitutionMatrix | None = None,
    gap_open: int | None = None,
    gap_extend: int | None = None,
    *,
    kind: Kind | None = None,
) -> Scoring:
    """A scoring, with defaults for what is not given.

    Parameters
    ----------
    matrix
        A matrix, the name of a bundled one, or a file in NCBI's format. By default BLOSUM62 for proteins, and
        2 for a match and -3 for a mismatch for nucleotides.
    gap_open, gap_extend
        Costs of the first and of every further residue of a gap; see `Scoring`. By default those of BLAST for
        the matrix: 12 and 1 with BLOSUM62 (BLAST's 11/1), 7 and 2 for nucleotides (BLAST's 5/2). Matrices of
        your own have no default.
    kind
        What the sequences are: ``"protein"`` or ``"dna"`` (RNA too). By default what the matrix is for, and
        proteins without a matrix.

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
    if matrix is None:
        chosen = match_mismatch(2, -3) if kind == "dna" else load_matrix("BLOSUM62")
    else:
        chosen = matrix if isinstance(matrix, SubstitutionMatrix) else load_matrix(matrix)
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


#: How much of the sequences has to be aligned.
Mode = Literal["global", "local", "semiglobal", "overlap", "extension"]
#: An end of a sequence.
FreeEnd = Literal["query_start", "query_end", "target_start", "target_end"]
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
    if mode not in _MODES:
        raise InvalidInput("mode", found=repr(mode), expected=f"one of {', '.join(_MODES)}")
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
