"""Texts in blocks: files of any size, or sequences in memory, as codes with nothing between the sequences."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from plait.alphabets import IUPAC_MASK
from plait.devices.target import over_threads
from plait.dp.bitparallel.launches import MARGIN, encoded
from plait.errors import FormatError, InvalidInput
from plait.formats.fasta import fasta_pieces, first_text, sequence_file_kind
from plait.formats.files import ByteSource
from plait.formats.reads import ReadFile
from plait.formats.twobit import is_two_bit, read_two_bit
from plait.mapping.index import Index, is_index

_Path = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class Sequences:
    """Sequences ``[first, end)`` of a 2bit file."""

    path: _Path
    first: int
    end: int


#: Files, or sequences in memory, with their names or numbered.
Texts = _Path | bytes | Mapping[str, str | bytes] | Iterable[_Path | Sequences | tuple[str, str | bytes]]

T = TypeVar("T")

_EXPECTED: Final = "FASTA, FASTQ or 2bit, FASTA and FASTQ plain or compressed with gzip or zstd"
_BLOCK_READS: Final = 1 << 16
_BLOCK_BASES: Final = 1 << 22
#: Letters of a block, and pieces and blocks of texts that wait where they are read while others are searched.
BLOCK_LETTERS: Final = 1 << 25
_WAITING: Final = 16
BLOCKS_AHEAD: Final = 3
#: Threads that make a block.
_COPYING: Final = 4


class Piece(NamedTuple):
    """Letters of some sequences as bytes; the first goes on if `continues`, the last is complete if `ends`.

    `offsets` int64 (sequences + 1,) are places in `letters`.
    """

    names: list[str]
    letters: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    continues: bool = False
    ends: bool = True


def text_pieces(texts: Texts) -> Iterator[Piece]:
    """Sequences of files, or those given; `FormatError` or `InvalidInput` if one is not what it should be."""
    if isinstance(texts, bytes | Mapping):
        yield from _in_memory(texts.items() if isinstance(texts, Mapping) else [("text", texts)])
        return
    listed = [texts] if isinstance(texts, str | os.PathLike) else list(texts)
    if not listed:
        raise InvalidInput("text", found="none", expected="a file or sequences")
    if all(isinstance(item, tuple) for item in listed):
        yield from _in_memory(listed)  # type: ignore[arg-type]  # all of them are tuples
        return
    for path in listed:
        if isinstance(path, tuple):
            raise InvalidInput("text", found="files beside sequences", expected="either")
        yield from _of_file(path)


def ahead(items: Iterable[T], most: int, threads: int) -> Iterator[T]:
    """The items; with several threads `most` of them are made by another one while those before are used."""
    if threads == 1:
        yield from items
        return
    source, end = iter(items), object()
    pool = ThreadPoolExecutor(1, thread_name_prefix="plait")
    try:
        waiting: deque[Any] = deque(pool.submit(next, source, end) for _ in range(most))
        while (item := waiting.popleft().result()) is not end:
            waiting.append(pool.submit(next, source, end))
            yield item
            # What has been used is not held while the next one is waited for.
            del item
    finally:
        pool.shutdown(cancel_futures=True)


def _in_memory(items: Iterable[tuple[str, str | bytes]]) -> Iterator[Piece]:
    for name, sequence in items:
        raw = sequence.encode("utf-8", "replace") if isinstance(sequence, str) else bytes(sequence)
        letters = np.frombuffer(raw, np.uint8)
        if letters.size and letters.max() > 127:
            raise InvalidInput(f"sequence {name!r}", found="bytes above 127", expected="letters")
        yield Piece([name], letters, np.array([0, letters.size]))


def _of_file(path: _Path | Sequences) -> Iterator[Piece]:
    if isinstance(path, Sequences) or is_two_bit(path):
        for part in (
            read_two_bit(path.path, path.first, path.end)
            if isinstance(path, Sequences)
            else read_two_bit(path)
        ):
            offsets = np.array([0, part.letters.size])
            yield Piece([part.name], part.letters, offsets, part.start > 0, part.last)
        return
    if is_index(path):
        genome = Index.open(path).genome
        for contig, (name, size) in enumerate(zip(genome.names, genome.lengths.tolist(), strict=True)):
            for at in range(0, max(size, 1), _BLOCK_BASES):
                letters = genome.letters_of(contig, at, _BLOCK_BASES)
                yield Piece([name], letters, np.array([0, letters.size]), at > 0, at + letters.size >= size)
        return
    with ByteSource(path, sequence_file_kind(path, _EXPECTED)) as source:
        text, line = first_text(source, 1 << 10, _EXPECTED)
    if text.startswith(b"@"):
        with ReadFile(path).stream() as stream:
            while len(reads := stream.take(_BLOCK_READS, _BLOCK_BASES)):
                yield Piece(list(reads.names), reads.letters, reads.starts)
        return
    if not text.startswith(b">"):
        shown = (
            repr(text[:40].decode("ascii", "backslashreplace").splitlines()[0])
            if text
            else "only blank lines"
        )
        raise FormatError(path, line=line, found=shown, expected=_EXPECTED)
    for records, continues, ends in fasta_pieces(path):
        yield Piece(records.names, records.letters, records.offsets, continues, ends)


@dataclass(frozen=True, slots=True, eq=False)
class TextBlock:
    """Some sequences, or parts of them, side by side.

    `codes` uint8 are sets of letters with `ALWAYS`, with `MARGIN` codes of nothing before and behind;
    `letters` are the bytes themselves, (letters,). Record r is ``letters[begins[r]:ends[r]]``, the letters of
    sequence ``sequences[r]`` from `offsets` [r] on. The first `seen` [r] were in the block before. `complete`
    says of the last record whether it ends here; all others do. `gap` letters of nothing are between records.
    """

    codes: NDArray[np.uint8]
    letters: NDArray[np.uint8]
    sequences: NDArray[np.int64]
    begins: NDArray[np.int64]
    ends: NDArray[np.int64]
    offsets: NDArray[np.int64]
    seen: NDArray[np.int64]
    complete: bool

    def records_of(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """The last record that begins at a place or before it; the first one before any does."""
        if self.begins.size == 1:
            return np.zeros(places.size, np.int64)
        return np.maximum(np.searchsorted(self.begins, places, "right") - 1, 0)


def letter_sets(iupac: bool) -> NDArray[np.uint8]:
    """Sets of letters, (32,): of others than A, C, G, T and U none, unless `iupac` codes have theirs."""
    sets = IUPAC_MASK[64:96].copy()
    if not iupac:
        sets[np.isin(sets, (1, 2, 4, 8), invert=True)] = 0
    return sets


class TextBlocks:
    """Blocks of texts, each with the last `context` letters of a sequence that goes on.

    `names` and `lengths` of the sequences that have begun are kept. `gap` codes of nothing come between. A
    block is given as soon as it has `most` letters. With several threads, texts are read while blocks are
    made.
    """

    def __init__(
        self,
        texts: Texts,
        *,
        context: int,
        gap: int,
        iupac: bool,
        most: int = BLOCK_LETTERS,
        threads: int = 1,
    ) -> None:
        self.names: list[str] = []
        self.lengths: list[int] = []
        self._texts, self._context, self._gap, self.most = texts, context, gap, most
        self._sets, self._threads = letter_sets(iupac), threads
        self._begin()

    def _begin(self) -> None:
        self._parts: list[NDArray[np.uint8]] = []
        self._records: list[NDArray[np.int64]] = []
        self._size = 0

    def __iter__(self) -> Iterator[TextBlock]:
        """The blocks, in order; none is empty."""
        ends = True
        for piece in ahead(self._pieces(), _WAITING, self._threads):
            if piece.continues:
                self._go_on(piece.letters)
            else:
                self._add(piece)
            ends = piece.ends
            if self._size >= self.most:
                yield from self._block(ends)
                if not ends:
                    self._carry()
                else:
                    self._begin()
        yield from self._block(ends)

    def _pieces(self) -> Iterator[Piece]:
        """The pieces of the texts, those of long sequences cut to the letters of a block."""
        for piece in text_pieces(self._texts):
            at = 0
            while len(piece.names) == 1 and piece.letters.size - at > self.most:
                part = piece.letters[at : at + self.most]
                yield Piece(piece.names, part, np.array([0, part.size]), piece.continues or at > 0, False)
                at += part.size
            if at:
                rest = piece.letters[at:]
                piece = Piece(piece.names, rest, np.array([0, rest.size]), True, piece.ends)
            yield piece

    def _add(self, piece: Piece) -> None:
        """Append new sequences: rows of number, begin, end, offset, letters seen."""
        records = len(piece.names)
        lengths = np.diff(piece.offsets)
        gaps = self._gap * np.arange(records, dtype=np.int64)
        first = self._size + self._gap
        begins = first + piece.offsets[:-1] - piece.offsets[0] + gaps
        rows = np.zeros((records, 5), np.int64)
        rows[:, 0] = len(self.names) + np.arange(records)
        rows[:, 1], rows[:, 2] = begins, begins + lengths
        if records == 1:
            self._parts += [np.zeros(self._gap, np.uint8), piece.letters]
        else:
            spread = np.zeros(self._gap + piece.letters.size + (int(gaps[-1]) if records else 0), np.uint8)
            spread[np.arange(piece.letters.size) + self._gap + np.repeat(gaps, lengths)] = piece.letters
            self._parts.append(spread)
        self._records.append(rows)
        self._size += self._gap + piece.letters.size + (int(gaps[-1]) if records else 0)
        self.names += piece.names
        self.lengths += lengths.tolist()

    def _go_on(self, letters: NDArray[np.uint8]) -> None:
        self._parts.append(letters)
        self._size += letters.size
        self._records[-1][-1, 2] = self._size
        self.lengths[-1] += letters.size

    def _carry(self) -> None:
        """Begin with the last letters of a sequence that goes on."""
        last = self._records[-1][-1:].copy()
        known = int(last[0, 2] - last[0, 1])
        kept = min(self._context, known)
        parts: list[NDArray[np.uint8]] = []
        wanted = kept
        for part in reversed(self._parts):
            own = min(wanted, part.size)
            parts.insert(0, part[part.size - own :])
            wanted -= own
            if not wanted:
                break
        tail = np.concatenate([np.zeros(self._gap, np.uint8), *parts])
        last[0, 1:] = self._gap, tail.size, last[0, 3] + known - kept, kept
        self._parts, self._records, self._size = [tail], [last], tail.size

    def _block(self, complete: bool) -> Iterator[TextBlock]:
        if not self._records:
            return
        size = self._size + self._gap
        whole = np.zeros(2 * MARGIN + (size + 63 & -64), np.uint8)
        places = MARGIN + np.cumsum([0, *(part.size for part in self._parts)])

        def copy(place: int, part: NDArray[np.uint8]) -> None:
            whole[place : place + part.size] = part

        # Most of the time goes into memory that is touched for the first time.
        threads = min(self._threads, _COPYING)
        over_threads(threads, list(zip(places.tolist(), self._parts, strict=False)), lambda own: copy(*own))
        codes, letters = encoded(whole, self._sets, threads), whole[MARGIN : MARGIN + size]
        number, begins, ends, offsets, seen = np.ascontiguousarray(np.concatenate(self._records).T)
        yield TextBlock(codes, letters, number, begins, ends, offsets, seen, complete)
