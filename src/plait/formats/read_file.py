"""One file of reads, FASTQ or FASTA by what it holds, as blocks cut to measure."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from types import TracebackType
from typing import Final

import numpy as np

from plait.errors import FormatError
from plait.formats.compression import ByteSource
from plait.formats.fasta import read_fasta
from plait.formats.read_block import ReadBlock
from plait.formats.read_fastq import fastq_reads
from plait.formats.read_letters import RawReads, checked_reads
from plait.formats.sequence_text import first_text, sequence_file_kind, shown_start

__all__ = ["ReadFile", "ReadStream", "join_reads", "slice_reads"]

_HEAD_BYTES: Final = 1 << 16
_FASTA_RESIDUES: Final = 1 << 18
#: As much as qualities leave room for in a record of FASTQ.
_LONGEST_READ: Final = 1 << 24
_EXPECTED: Final = "FASTQ or FASTA, plain or compressed with gzip or zstd"


def slice_reads(reads: ReadBlock, first: int, last: int) -> ReadBlock:
    """Reads `first` to `last`, without copying their letters.

    Parameters
    ----------
    reads
        The reads.
    first, last
        Numbers of the first read and of the one behind the last.
    """
    begin, end = int(reads.starts[first]), int(reads.starts[last])
    qualities = reads.qualities
    return ReadBlock(
        reads.names[first:last],
        reads.letters[begin:end],
        reads.starts[first : last + 1] - begin,
        None if qualities is None else qualities[begin:end],
    )


def join_reads(parts: Sequence[ReadBlock]) -> ReadBlock:
    """Reads of several blocks in one; without qualities if a block has none.

    Parameters
    ----------
    parts
        The blocks.
    """
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return ReadBlock([], np.zeros(0, np.uint8), np.zeros(1, np.int64))
    starts = np.zeros(1 + sum(map(len, parts)), np.int64)
    np.cumsum(np.concatenate([part.lengths for part in parts]), out=starts[1:])
    qualities = [part.qualities for part in parts if part.qualities is not None]
    return ReadBlock(
        [name for part in parts for name in part.names],
        np.concatenate([part.letters for part in parts]),
        starts,
        np.concatenate(qualities) if len(qualities) == len(parts) else None,
    )


class ReadFile:
    """A file of reads.

    Parameters
    ----------
    path
        The file.

    Attributes
    ----------
    path
        The file.
    bytes_read : int
        Bytes read from disk so far.
    dots : int
        Bases written as a dot so far.

    Raises
    ------
    FormatError
        If it is empty or begins neither like FASTQ nor like FASTA.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path
        self.bytes_read = self.dots = 0
        self._kind = sequence_file_kind(path, _EXPECTED)
        with ByteSource(path, self._kind) as source:
            self._is_fasta = _start(source)[0].startswith(b">")

    def stream(self) -> ReadStream:
        """The reads from the first one on; to be closed."""
        self.bytes_read = self.dots = 0
        return ReadStream(self._blocks())

    def _blocks(self) -> Generator[ReadBlock, None, None]:
        for raw in self._fasta() if self._is_fasta else self._fastq():
            reads, dots = checked_reads(raw)
            self.dots += dots
            yield reads

    def _fastq(self) -> Iterator[RawReads]:
        with ByteSource(self.path, self._kind) as source:
            text, line = _start(source)
            for raw in fastq_reads(source, text, line):
                self.bytes_read = source.bytes_read
                yield raw
            self.bytes_read = source.bytes_read

    def _fasta(self) -> Iterator[RawReads]:
        first = 0
        for block in read_fasta(self.path, block_residues=_FASTA_RESIDUES, longest=_LONGEST_READ):
            self.bytes_read = block.bytes_read
            yield RawReads(self.path, first, block.names, block.letters, block.offsets, None, block.lines + 1)
            first += len(block)


class ReadStream:
    """Blocks of a file, cut anew as they are asked for; a context manager.

    Parameters
    ----------
    blocks
        The blocks as they come.
    """

    def __init__(self, blocks: Generator[ReadBlock, None, None]) -> None:
        self._blocks = blocks
        self._held: ReadBlock | None = None
        self._at = 0

    def take(self, reads: int, bases: int | None = None) -> ReadBlock:
        """The next reads.

        Parameters
        ----------
        reads
            How many; fewer only where the file ends, or as `bases` says.
        bases
            Most bases together, unless one read has more; None for any number.

        Returns
        -------
        ReadBlock
            The reads; none at the end of the file.
        """
        parts: list[ReadBlock] = []
        left = reads
        room = bases
        while left > 0:
            if self._held is None or self._at == len(self._held):
                self._held, self._at = next(self._blocks, None), 0
                if self._held is None:
                    break
            last = min(self._at + left, len(self._held))
            if room is not None:
                starts = self._held.starts[self._at : last + 1]
                fit = int(np.searchsorted(starts, starts[0] + room, "right")) - 1
                last = self._at + max(fit, 0 if parts else 1)
            if last == self._at:
                break
            part = slice_reads(self._held, self._at, last)
            parts.append(part)
            full = last < min(self._at + left, len(self._held))
            left -= len(part)
            self._at = last
            if room is not None:
                room -= part.letters.size
                if full or room <= 0:
                    break
        return join_reads(parts)

    def put_back(self, reads: ReadBlock) -> None:
        """Make reads that were taken the next ones again.

        Parameters
        ----------
        reads
            The last ones that were taken, or some of them from one on.
        """
        if self._held is not None:
            reads = join_reads([reads, slice_reads(self._held, self._at, len(self._held))])
        self._held, self._at = reads, 0

    def close(self) -> None:
        """Close the file."""
        self._blocks.close()

    def __enter__(self) -> ReadStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _start(source: ByteSource) -> tuple[bytes, int]:
    """Text from the first line on that is not blank, and its number."""
    text, line = first_text(source, _HEAD_BYTES, _EXPECTED)
    if not text:
        raise FormatError(source.path, found="no reads", expected=_EXPECTED, hint="leave an empty file out")
    if text[:1] not in (b"@", b">"):
        raise FormatError(
            source.path,
            line=line,
            found=shown_start(source.path, text, _EXPECTED),
            expected="'@' (FASTQ) or '>' (FASTA)",
        )
    return text, line
