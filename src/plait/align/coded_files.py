"""FASTA files as codes of a matrix, block by block."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from plait.align.codes import CodeList
from plait.align.scoring import Scoring
from plait.formats.fasta import Sequences, read_fasta

__all__ = ["CodedBlock", "CodedFile"]

#: Bytes of text in a block.
_BLOCK_BYTES: Final = 1 << 24
#: A file is kept in memory up to so many residues, names taken as so many more each.
_MOST_KEPT: Final = 1 << 26
_NAME_RESIDUES: Final = 64


@dataclass(frozen=True, slots=True, eq=False)
class CodedBlock:
    """Consecutive records of a file, and their codes.

    Attributes
    ----------
    sequences
        The records.
    codes
        Their letters as indices into the matrix.
    first
        Number of the first one in the file, from 0.
    """

    sequences: Sequences
    codes: CodeList
    first: int

    def __len__(self) -> int:
        return len(self.codes)


class CodedFile:
    """A FASTA file that is read as often as needed. A small one is kept when it has been read once.

    Parameters
    ----------
    path
        The file.
    scoring
        Whose matrix has the letters.
    most_kept
        Residues up to which it is kept in memory.
    """

    def __init__(
        self, path: str | os.PathLike[str], scoring: Scoring, *, most_kept: int = _MOST_KEPT
    ) -> None:
        self.path = os.fspath(path)
        self._scoring = scoring
        self._most_kept = most_kept
        self._kept: list[CodedBlock] | None = None

    def blocks(self) -> Iterator[CodedBlock]:
        """All records.

        Raises
        ------
        FormatError
            If it is no FASTA file, or a letter is not in the matrix.
        """
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
