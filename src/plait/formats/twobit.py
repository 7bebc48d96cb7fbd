"""Read UCSC's 2bit files, a piece of a sequence at a time.

A module of its own: a file format, which any subject may read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.errors import FormatError
from plait.formats.files import check_readable, unchanged

#: First bytes of a file, in either order.
SIGNATURES: Final = (b"\x43\x27\x41\x1a", b"\x1a\x41\x27\x43")
_EXPECTED: Final = "a complete 2bit file"
#: Letters of every byte, the first in the highest bits, and of every two: eight are looked up at once.
_LETTERS: Final = np.frombuffer(b"TCAG", np.uint8)[(np.arange(256)[:, None] >> np.array([6, 4, 2, 0])) & 3]
_PAIRS = np.arange(1 << 16, dtype=np.uint16)[:, None].view(np.uint8)
_LETTERS_OF_PAIR: Final = np.ascontiguousarray(_LETTERS[_PAIRS].reshape(-1, 8)).view(np.uint64).ravel()


class TwoBitPiece(NamedTuple):
    """Letters of a sequence from `start` on, uint8; `last` if they are its last ones."""

    name: str
    start: int
    letters: NDArray[np.uint8]
    last: bool


def is_two_bit(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins as a 2bit file does."""
    check_readable(path)
    with open(path, "rb") as file:
        return file.read(4) in SIGNATURES


def two_bit_lengths(path: str | os.PathLike[str]) -> list[int]:
    """Letters of each sequence; errors as of `read_two_bit`."""
    file = _File(path)
    return [int(file.numbers(offset, 1)[0]) for _, offset in file.index()]


def read_two_bit(
    path: str | os.PathLike[str], first: int = 0, end: int | None = None, *, piece: int = 1 << 22
) -> Iterator[TwoBitPiece]:
    """Letters of sequences ``[first, end)`` in order, at most `piece` at a time; runs of N, lower case as is.

    `FormatError` if the file is cut off, of another version, or its parts lie outside of it.
    """
    status = check_readable(path)
    with unchanged(path, status):
        file = _File(path)
        for name, offset in file.index()[first:end]:
            yield from file.sequence(name, offset, piece - piece % 4 or 4)


class _File:
    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path
        if not os.path.getsize(path):
            raise self.wrong("an empty file")
        self.data = np.memmap(path, np.uint8, "r")
        head = self.data[:4].tobytes()
        if head not in SIGNATURES:
            raise self.wrong(f"the first bytes {head.hex()}", "those of a 2bit file")
        self.kind = np.dtype("<u4" if head == SIGNATURES[0] else ">u4")
        version = int(self.numbers(4, 1)[0])
        if version > 1:
            raise self.wrong(f"version {version}", "version 0 or 1")
        self.wide = version == 1

    def wrong(self, found: str, expected: str = _EXPECTED) -> FormatError:
        return FormatError(self.path, found=found, expected=expected, hint="copy or download the file again")

    def bytes(self, offset: int, size: int) -> NDArray[np.uint8]:
        if offset + size > self.data.size:
            raise self.wrong(f"an end after {self.data.size:,} bytes, before byte {offset + size:,}")
        return self.data[offset : offset + size]

    def numbers(self, offset: int, count: int) -> NDArray[np.int64]:
        return self.bytes(offset, 4 * count).view(self.kind).astype(np.int64)

    def index(self) -> list[tuple[str, int]]:
        """Names of the sequences, and where each begins."""
        count, at = int(self.numbers(8, 1)[0]), 16
        found: list[tuple[str, int]] = []
        for _ in range(count):
            size = int(self.bytes(at, 1)[0])
            name = self.bytes(at + 1, size).tobytes().decode("utf-8", "backslashreplace")
            at += 1 + size
            parts = self.numbers(at, 2 if self.wide else 1)
            high = self.kind == np.dtype(">u4")
            offset = (
                int(parts[0])
                if not self.wide
                else int(parts[0] << 32 | parts[1] if high else parts[1] << 32 | parts[0])
            )
            at += 8 if self.wide else 4
            found.append((name, offset))
        return found

    def blocks(self, offset: int, size: int) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
        """Begins and ends of stretches, and what follows them."""
        count = int(self.numbers(offset, 1)[0])
        begins = self.numbers(offset + 4, count)
        ends = begins + self.numbers(offset + 4 + 4 * count, count)
        if count and (ends.max() > size or (begins[1:] < ends[:-1]).any()):
            raise self.wrong("stretches that overlap or end behind their sequence")
        return begins, ends, offset + 4 + 8 * count

    def sequence(self, name: str, offset: int, piece: int) -> Iterator[TwoBitPiece]:
        size = int(self.numbers(offset, 1)[0])
        unknown, unknown_ends, at = self.blocks(offset + 4, size)
        masked, masked_ends, at = self.blocks(at, size)
        packed = self.bytes(at + 4, -(-size // 4))
        for start in range(0, max(size, 1), piece):
            stop = min(start + piece, size)
            own = packed[start // 4 : -(-stop // 4)]
            pairs = np.append(own, np.zeros(own.size % 2, np.uint8)).view(np.uint16)
            letters = _LETTERS_OF_PAIR[pairs].view(np.uint8)[: stop - start]
            for k in _within(unknown, unknown_ends, start, stop):
                letters[max(unknown[k] - start, 0) : unknown_ends[k] - start] = ord("N")
            for k in _within(masked, masked_ends, start, stop):
                letters[max(masked[k] - start, 0) : masked_ends[k] - start] |= 32
            yield TwoBitPiece(name, start, letters, stop == size)


def _within(begins: NDArray[np.int64], ends: NDArray[np.int64], start: int, stop: int) -> range:
    """Stretches that reach into a piece."""
    return range(int(np.searchsorted(ends, start, "right")), int(np.searchsorted(begins, stop, "left")))
