"""Bodies of streams, bit by bit: written, read, and read backwards."""

from __future__ import annotations

from typing import Any

import numpy as np

from plait.errors import PlaitError
from plait.hyperspectral.mapped_bytes import PIECE_BYTES, let_go
from plait.schedules.bit_words import BitCursor

__all__ = ["BackwardsReader", "BodyEnd", "BodyReader", "BodyWriter"]

#: Words that are turned into numbers at a time.
_WINDOW_WORDS = 1 << 18


class BodyEnd(PlaitError):
    """A body ends before its last sample, or holds what no compressor writes."""


class BodyWriter:
    """Bits of a body as bytes."""

    def __init__(self) -> None:
        self._state = np.zeros(3, np.int64)
        self._words = np.zeros(0, np.uint32)
        self._taken = 0

    @property
    def position(self) -> int:
        """Bits written."""
        return 32 * (self._taken + int(self._state[2])) + int(self._state[1])

    def room(self, words: int) -> BitCursor:
        """Where to write so many words; `take` what is there before asking again."""
        if self._words.size < words + 4:
            self._words = np.zeros(words + 4, np.uint32)
        return BitCursor(self._words, self._state)

    def put(self, value: int, bits: int) -> None:
        """Append a number of any size."""
        held, size = (int(self._state[0]) << bits) | value, int(self._state[1]) + bits
        at = int(self._state[2])
        if self._words.size < at + size // 32 + 4:
            self._words = np.concatenate([self._words, np.zeros(at + size // 32 + 4, np.uint32)])
        while size >= 32:
            size -= 32
            self._words[at] = (held >> size) & 0xFFFFFFFF
            at += 1
        self._state[:] = held & ((1 << size) - 1), size, at

    def take(self) -> bytes:
        """The whole words written since the last time."""
        count = int(self._state[2])
        self._state[2] = 0
        self._taken += count
        return self._words[:count].astype(">u4").tobytes()

    def close(self, before: int, word: int) -> bytes:
        """The rest, filled up with zero bits.

        Parameters
        ----------
        before
            Bytes of the stream without this rest.
        word
            B: the length of the stream becomes a multiple of it.
        """
        held, bits = int(self._state[0]), int(self._state[1])
        size = -(-bits // 8)
        size += -(before + size) % word
        return (held << (8 * size - bits)).to_bytes(size, "big")


class BodyReader:
    """Bits of a body, of which no more than a window is turned into words at a time.

    Parameters
    ----------
    body
        Bytes from the start of the body on; a memory map for instance.
    position
        Bit to begin at.
    """

    def __init__(self, body: Any, position: int = 0) -> None:
        self._body = memoryview(body)
        self._kept = 0
        self._state = np.zeros(3, np.int64)
        self._words = np.zeros(0, np.uint32)
        #: Bits of the words, and number of the bit that the first of them is.
        self._bits = 0
        self._first = 0
        self._next = position // 32 * 4
        if position % 32:
            cursor = self.window(0)
            if self._words.size:
                self._state[:] = (
                    int(cursor.words[0]) & ((1 << (32 - position % 32)) - 1),
                    32 - position % 32,
                    1,
                )

    @property
    def position(self) -> int:
        """Bits read."""
        return self._first + 32 * int(self._state[2]) - int(self._state[1])

    def window(self, words: int) -> BitCursor:
        """Where to read so many words."""
        needed = words + 4
        at = int(self._state[2])
        if self._words.size - at < needed and self._next < len(self._body):
            start = self._next - 4 * (self._words.size - at) if at < self._words.size else self._next
            size = 4 * max(needed, _WINDOW_WORDS)
            data = self._piece(start, size)
            self._kept += len(data)
            if self._kept > PIECE_BYTES:
                # Of a mapped file, pages that were read would count as memory of this process.
                let_go(self._body)
                self._kept = 0
            self._next = start + len(data)
            self._bits = 8 * len(data)
            self._first = 8 * start
            self._words = self._as_words(data + b"\0" * (-len(data) % 4))
            self._state[2] = 0
        return BitCursor(self._words, self._state)

    def _piece(self, start: int, size: int) -> bytes:
        return bytes(self._body[start : start + size])

    def _as_words(self, data: bytes) -> Any:
        return np.frombuffer(data, ">u4").astype(np.uint32)

    def check(self) -> None:
        """Check that nothing was read behind the end.

        Raises
        ------
        BodyEnd
            If it was.
        """
        used = 32 * int(self._state[2]) - int(self._state[1])
        if used > self._bits:
            raise BodyEnd("the body ends before its last sample")

    @property
    def size(self) -> int:
        """Bytes of the body."""
        return len(self._body)

    @property
    def left(self) -> int:
        """Bits that were not read."""
        return 8 * len(self._body) - self.position


class BackwardsReader(BodyReader):
    """Bits of a body from the last to the first.

    Parameters
    ----------
    body
        Bytes of the body to its end.
    """

    def _piece(self, start: int, size: int) -> bytes:
        last = len(self._body) - start
        return bytes(self._body[max(last - size, 0) : last])[::-1]

    def _as_words(self, data: bytes) -> Any:
        return np.frombuffer(data, "<u4").astype(np.uint32)

    def take(self, bits: int) -> int:
        """The number whose bits end here.

        Raises
        ------
        BodyEnd
            If there are too few bits.
        """
        words, state = self.window(-(-bits // 32))
        held, size, at = (int(number) for number in state)
        while size < bits:
            held |= (int(words[at]) if at < words.size else 0) << size
            size, at = size + 32, at + 1
        state[:] = held >> bits, size - bits, at
        self.check()
        return held & ((1 << bits) - 1)
