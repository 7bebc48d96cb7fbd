"""Position-specific scores: PSI-BLAST's ASCII matrices, and match states of HMMER's profiles.

A module of its own: a parser of files from strangers.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from plait.align.scoring import MAX_SCORE, NO_CODE, SubstitutionMatrix
from plait.errors import FormatError, InvalidInput, Unsupported
from plait.formats.fasta import sequence_file_kind
from plait.formats.files import ByteSource

_AMINO_ACIDS: Final = "ARNDCQEGHILKMFPSTWYV"
_HMMER_LETTERS: Final = "ACDEFGHIKLMNPQRSTVWY"
_PSSM_HEAD: Final = b"Last position-specific scoring matrix computed"
_HMMER_HEAD: Final = b"HMMER3/"
#: Frequencies of the amino acids in HMMER's null model (easel, esl_composition_SW50), in its order.
_BACKGROUND: Final = (
    *(0.0787945, 0.0151600, 0.0535222, 0.0668298, 0.0397062, 0.0695071, 0.0229198, 0.0590092, 0.0594422),
    *(0.0963728, 0.0237718, 0.0414386, 0.0482904, 0.0395639, 0.0540978, 0.0683364, 0.0540687, 0.0673417),
    *(0.0114135, 0.0304133),
)  # fmt: skip
#: What a score of BLOSUM62 is in nats, without gaps.
_UNIT: Final = 0.3176
_MOST_BYTES: Final = 1 << 28
_HEAD_BYTES: Final = 1 << 12
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,6}")
_A_PSSM: Final = "an ASCII position-specific scoring matrix, as psiblast -out_ascii_pssm writes it"
_EXPECTED: Final = "FASTA or FASTQ text, or a profile, plain or compressed with gzip or zstd"
_A_PROFILE: Final = "a HMMER3 profile of proteins"


@dataclass(frozen=True, eq=False)
class Profile:
    """Scores of every amino acid at every position of a query.

    Parameters
    ----------
    name
        What it is called in outputs.
    consensus
        A letter for each position, shown in alignments.
    letters
        The letters that have scores, in the order of the columns.
    scores
        In the units of BLOSUM62. Shape (positions, letters).
    k
        Karlin and Altschul's K with gaps, if it is not that of the matrix of the search.

    Raises
    ------
    InvalidInput
        If the shape is another one, there is no position, or a score is out of range.
    """

    name: str
    consensus: bytes
    letters: str
    scores: NDArray[np.int32]
    k: float | None = None

    def __post_init__(self) -> None:
        shape = (len(self.consensus), len(self.letters))
        if self.scores.shape != shape or not shape[0]:
            found, expected = f"scores of shape {self.scores.shape}", f"{shape}, with at least one position"
            raise InvalidInput("profile", found=found, expected=expected)
        if int(np.abs(self.scores.astype(np.int64)).max()) > MAX_SCORE:
            raise InvalidInput("profile", found="a larger score", expected=f"scores up to {MAX_SCORE}")

    def scores_for(self, matrix: SubstitutionMatrix) -> NDArray[np.int32]:
        """The scores in the order of the letters of a matrix.

        A letter that the profile has not scores as the matrix's for the consensus; B, Z and J the rounded
        mean of their two.

        Parameters
        ----------
        matrix
            One for proteins.
        """
        rows = matrix.codes[np.frombuffer(self.consensus, np.uint8)]
        if (rows == NO_CODE).any():
            letter = chr(self.consensus[int(np.argmax(rows == NO_CODE))])
            raise InvalidInput(
                f"profile {self.name!r}",
                found=f"{letter!r} as a consensus",
                expected=f"letters of {matrix.name}",
            )
        scores = matrix.scores[rows].copy()
        columns = {letter: self.scores[:, k] for k, letter in enumerate(self.letters)}
        for letter, one, other in (("B", "D", "N"), ("Z", "E", "Q"), ("J", "I", "L")):
            if letter not in columns and one in columns and other in columns:
                columns[letter] = np.floor((columns[one] + columns[other]) / 2 + 0.5).astype(np.int32)
        for k, letter in enumerate(matrix.letters):
            if letter in columns:
                scores[:, k] = columns[letter]
        return scores


def is_profile(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins as a profile does; `FormatError` if it cannot be read."""
    with ByteSource(path, sequence_file_kind(path, _EXPECTED)) as source:
        start = source.read(_HEAD_BYTES).lstrip()
    return start.startswith((_PSSM_HEAD, _HMMER_HEAD))


def read_profile(path: str | os.PathLike[str]) -> Profile:
    """Read one profile: PSI-BLAST's ASCII matrix, or the match states of a HMMER3 file.

    Scores of HMMER's states are ``ln(emission / background)`` in units of BLOSUM62, rounded; its insertions
    and deletions are not looked at. `FormatError`, with the line, if the file is neither or is not complete;
    `Unsupported` if it has several profiles or is for nucleotides.
    """
    with ByteSource(path, sequence_file_kind(path, _EXPECTED)) as source:
        raw = source.read(_MOST_BYTES + 1)
    if len(raw) > _MOST_BYTES:
        raise FormatError(path, found=f"more than {_MOST_BYTES:,} bytes", expected="one profile")
    text = raw.decode("utf-8", "backslashreplace")
    name = os.path.basename(os.fspath(path)).partition(".")[0] or "profile"
    lines = _Lines(path, text)
    if text.lstrip().startswith(_HMMER_HEAD.decode()):
        return _hmmer(lines, name)
    if text.lstrip().startswith(_PSSM_HEAD.decode()):
        return _pssm(lines, name)
    raise FormatError(path, found=repr(text[:40]), expected=f"{_A_PSSM}, or {_A_PROFILE}")


class _Lines:
    """The lines of a file, with blank ones left out, as words; and where they are."""

    def __init__(self, path: object, text: str) -> None:
        self.path = path
        self._lines = ((number, line.split()) for number, line in enumerate(text.splitlines(), 1))
        self.number = 0

    def __iter__(self) -> Iterator[list[str]]:
        for number, words in self._lines:
            self.number = number
            if words:
                yield words

    def wrong(self, found: str, expected: str) -> FormatError:
        return FormatError(self.path, line=self.number, found=found, expected=expected)


def _pssm(lines: _Lines, name: str) -> Profile:
    letters, k = "", None
    consensus: list[str] = []
    rows: list[list[int]] = []
    for words in lines:
        if not letters:
            # The header has the letters twice: of scores, and of percentages.
            if len(words) in (len(_AMINO_ACIDS), 2 * len(_AMINO_ACIDS)) and all(len(w) == 1 for w in words):
                letters = "".join(words[: len(_AMINO_ACIDS)])
                if sorted(letters) != sorted(_AMINO_ACIDS):
                    raise lines.wrong(f"the letters {letters!r}", "the twenty amino acids")
            continue
        if not words[0].isdecimal():
            k = _k_of(words) or k
            continue
        residue = words[1] if len(words) >= 2 + len(letters) else ""
        if words[0] != str(len(rows) + 1) or len(residue) != 1 or not residue.isascii():
            found = " ".join(words[:3])[:40]
            raise lines.wrong(repr(found), f"position {len(rows) + 1}, its letter and {len(letters)} scores")
        for other, word in zip(letters, words[2:], strict=False):
            if not _INTEGER.fullmatch(word) or abs(int(word)) > MAX_SCORE:
                found = f"{word!r} for {other!r}"
                raise lines.wrong(found, f"a whole number from {-MAX_SCORE} to {MAX_SCORE}")
        consensus.append(residue.upper())
        rows.append([int(word) for word in words[2 : 2 + len(letters)]])
    if not rows:
        raise lines.wrong("no row of scores", _A_PSSM)
    return Profile(name, "".join(consensus).encode("ascii"), letters, np.array(rows, np.int32), k)


def _k_of(words: list[str]) -> float | None:
    """K of the line of parameters that PSI-BLAST writes below the rows."""
    if words[:2] != ["PSI", "Gapped"] or len(words) < 3:
        return None
    try:
        k = float(words[2])
    except ValueError:
        return None
    return k if 0 < k < 1 else None


def _hmmer(lines: _Lines, name: str) -> Profile:
    size, state, done = 0, 0, False
    consensus: list[str] = []
    rows: list[NDArray[np.float64]] = []
    background = -np.log(_BACKGROUND)
    for words in lines:
        if done:
            raise Unsupported(
                "a file of several profiles", why="a search is for one; hmmfetch takes them apart"
            )
        if words[0] == "NAME" and len(words) > 1:
            name = words[1]
        elif words[0] == "LENG" and len(words) == 2 and _INTEGER.fullmatch(words[1]):
            size = int(words[1])
        elif words[0] == "ALPH" and words[-1] != "amino":
            raise Unsupported(f"a profile of {words[-1]!r}", why="profiles of proteins are searched for")
        elif words[0] == "HMM":
            if "".join(words[1:]) != _HMMER_LETTERS:
                raise lines.wrong(f"the letters {''.join(words[1:])!r}", _HMMER_LETTERS)
            state = 1
        elif words[0] == "//":
            done = True
        elif state and words[0] == str(state) and len(words) >= 1 + len(_HMMER_LETTERS):
            rows.append(_emissions(lines, words) - background)
            # A profile of HMMER 3.0 has no consensus letter.
            told = (words[2 + len(_HMMER_LETTERS) :] or ["-"])[0]
            best = _HMMER_LETTERS[int(np.argmin(rows[-1]))]
            consensus.append(told.upper() if len(told) == 1 and told.isascii() and told.isalpha() else best)
            state += 1
    if not done or not rows or len(rows) != size:
        found = f"{len(rows)} match states and {'the' if done else 'no'} line '//'"
        raise lines.wrong(found, f"{size} states, as LENG says, and '//'")
    scores = np.clip(np.rint(-np.array(rows) / _UNIT), -MAX_SCORE, MAX_SCORE).astype(np.int32)
    return Profile(name, "".join(consensus).encode("ascii"), _HMMER_LETTERS, scores)


#: In the place of the logarithm of 0: no emission is less likely.
_NEVER: Final = 20.0


def _emissions(lines: _Lines, words: list[str]) -> NDArray[np.float64]:
    """Negative natural logarithms of the emissions of a match state."""
    values = []
    for letter, word in zip(_HMMER_LETTERS, words[1:], strict=False):
        try:
            value = _NEVER if word == "*" else float(word)
        except ValueError:
            value = math.nan
        if not 0 <= value < math.inf:
            raise lines.wrong(f"{word!r} for {letter!r}", "the negative logarithm of a probability, or *")
        values.append(min(value, _NEVER))
    return np.array(values)
