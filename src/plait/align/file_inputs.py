"""FASTA files as codes of a matrix, and what their sequences are scored with."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from plait.align.codes import ALPHABETS, CodeList, common_kind, count_sample
from plait.align.matrices import Kind, match_mismatch
from plait.align.scoring import Scoring, make_scoring
from plait.errors import InvalidInput
from plait.formats.fasta import Sequences, read_fasta

_Path = str | os.PathLike[str]

#: Scores of equal and of different letters where only one of the two is given.
_MATCH: Final = 2
_MISMATCH: Final = -3


def scoring_of_files(
    paths: Sequence[_Path],
    *,
    matrix: _Path | None = None,
    match: int | None = None,
    mismatch: int | None = None,
    gap_open: int | None = None,
    gap_extend: int | None = None,
    kind: Kind | None = None,
) -> Scoring:
    """The scoring that is asked for, with defaults that suit the sequences of FASTA files.

    As `plait.align.scoring.make_scoring`, but `match` and `mismatch` may stand in the place of a matrix, 2
    and -3 if one is left out. Without `matrix` and `kind`, the first letters of all files say what they are,
    see `plait.align.codes.kind_of`. `InvalidInput` if a setting is wrong or does not go with another, or the
    files hold different kinds of sequences, or what may be of either; `FormatError` if a file cannot be read.
    """
    by_letters = match is not None or mismatch is not None
    if by_letters and matrix is not None:
        raise InvalidInput(
            "matrix", found="a matrix and match or mismatch scores", expected="one or the other"
        )
    if matrix is not None:
        return make_scoring(matrix, gap_open, gap_extend, kind=kind)
    chosen = kind or common_kind({os.fspath(path): count_sample(path) for path in paths})
    if not by_letters:
        return make_scoring(None, gap_open, gap_extend, kind=chosen)
    scores = (_MATCH if match is None else match, _MISMATCH if mismatch is None else mismatch)
    letters = match_mismatch(*scores, letters=ALPHABETS[chosen])
    return make_scoring(letters, gap_open, gap_extend, kind=chosen)


#: Bytes of text in a block.
_BLOCK_BYTES: Final = 1 << 24
#: A file is kept in memory up to so many residues, names taken as so many more each.
_MOST_KEPT: Final = 1 << 26
_NAME_RESIDUES: Final = 64


@dataclass(frozen=True, slots=True, eq=False)
class CodedBlock:
    """Consecutive records of a file, from number `first` (0-based); `codes` are indices into the matrix."""

    sequences: Sequences
    codes: CodeList
    first: int

    def __len__(self) -> int:
        return len(self.codes)


class CodedFile:
    """A FASTA file that is read as often as needed; a small one is kept when it has been read once.

    It is small if it has at most `most_kept` residues, each name taken as 64 more.
    """

    def __init__(
        self, path: str | os.PathLike[str], scoring: Scoring, *, most_kept: int = _MOST_KEPT
    ) -> None:
        self.path = os.fspath(path)
        self._scoring = scoring
        self._most_kept = most_kept
        self._kept: list[CodedBlock] | None = None

    def blocks(self) -> Iterator[CodedBlock]:
        """All records; `FormatError` if it is no FASTA file, or a letter is not in the matrix."""
        if self._kept is not None:
            yield from self._kept
            return
        kept: list[CodedBlock] = []
        first = size = 0
        for sequences in read_fasta(self.path, block_residues=_BLOCK_BYTES):
            codes = self._scoring.encode_letters(
                sequences.letters,
                offsets=sequences.offsets,
                names=sequences.names,
                path=self.path,
                lines=sequences.lines,
            )
            block = CodedBlock(sequences, CodeList(codes, sequences.offsets), first)
            first += len(block)
            size += codes.size + _NAME_RESIDUES * len(block)
            if size <= self._most_kept:
                kept.append(block)
            else:
                kept.clear()
            yield block
        if size <= self._most_kept:
            self._kept = kept
