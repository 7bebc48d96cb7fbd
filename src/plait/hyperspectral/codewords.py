"""The sample-adaptive and the block-adaptive coder over rows and bands: residuals to bits and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from plait.errors import PlaitError
from plait.hyperspectral.parameters import BlockAdaptive, SampleAdaptive, StreamParameters
from plait.schedules.adaptive_codes import AdaptiveCode, initial_sums, next_count
from plait.schedules.bit_words import BitCursor
from plait.schedules.block_codes import BlockCode
from plait.targets.band_kernels import (
    code_blocks_kernel,
    code_row_kernel,
    decode_blocks_kernel,
    decode_row_kernel,
)

__all__ = ["BodyEnd", "BodyReader", "BodyWriter", "RowCoder", "make_coder"]

_WINDOW_WORDS = 1 << 19
_LABELS = {1: 0, 2: 2, 3: 6, 4: 14, 5: 30}


class BodyEnd(PlaitError):
    """A body ends before its last sample, or holds what no compressor writes."""


class BodyWriter:
    """Bits of a body as bytes."""

    def __init__(self) -> None:
        self._state = np.zeros(3, np.int64)
        self._words = np.zeros(0, np.uint32)

    def room(self, numbers: int) -> BitCursor:
        """Where to write codewords of so many numbers; `take` what is there before asking again."""
        if self._words.size < 2 * numbers + 4:
            self._words = np.zeros(2 * numbers + 4, np.uint32)
        return BitCursor(self._words, self._state)

    def take(self) -> bytes:
        """The whole words written since the last time."""
        count = int(self._state[2])
        self._state[2] = 0
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
    """

    def __init__(self, body: Any) -> None:
        self._body = memoryview(body)
        self._state = np.zeros(3, np.int64)
        self._words = np.zeros(0, np.uint32)
        self._bits = 0
        self._next = 0

    def window(self, numbers: int) -> BitCursor:
        """Where to read codewords of so many numbers.

        Parameters
        ----------
        numbers
            Each takes at most 64 bits.
        """
        needed = 2 * numbers + 4
        at = int(self._state[2])
        if self._words.size - at < needed and self._next < len(self._body):
            start = self._next - 4 * (self._words.size - at) if at < self._words.size else self._next
            size = 4 * max(needed, _WINDOW_WORDS)
            data = bytes(self._body[start : start + size])
            self._next = start + len(data)
            self._bits = 8 * len(data)
            data += b"\0" * (-len(data) % 4)
            self._words = np.frombuffer(data, ">u4").astype(np.uint32)
            self._state[2] = 0
        return BitCursor(self._words, self._state)

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


class RowCoder(Protocol):
    """Codewords of the residuals of an image, a row of all bands or a band after the other."""

    def put(self, residuals: NDArray[np.int64], row: int) -> None:
        """Append the residuals of a row, shape (columns, bands)."""
        ...

    def put_band(self, residuals: NDArray[np.int64], band: int) -> None:
        """Append the residuals of a band, shape (rows, columns)."""
        ...

    def get(self, residuals: NDArray[np.int64], row: int) -> None:
        """Read the residuals of a row; changed in place."""
        ...

    def get_band(self, residuals: NDArray[np.int64], band: int) -> None:
        """Read the residuals of a band; changed in place."""
        ...

    def finish(self) -> None:
        """Write what is still open."""
        ...


def make_coder(parameters: StreamParameters, stream: BodyWriter | BodyReader) -> RowCoder:
    """The coder of a stream.

    Parameters
    ----------
    parameters
        With a sample-adaptive or a block-adaptive coder.
    stream
        Where its codewords go, or come from.
    """
    if isinstance(parameters.coder, SampleAdaptive):
        return _SampleAdaptiveRows(parameters, parameters.coder, stream)
    if isinstance(parameters.coder, BlockAdaptive):
        return _BlockAdaptiveRows(parameters, parameters.coder, stream)
    raise TypeError(f"{parameters.coder!r} has no rows")


class _SampleAdaptiveRows:
    def __init__(
        self, parameters: StreamParameters, coder: SampleAdaptive, stream: BodyWriter | BodyReader
    ) -> None:
        image = parameters.image
        self._stream: Any = stream
        self._columns = image.columns
        numbers = (
            image.dynamic_range,
            coder.unary_length_limit,
            (1 << coder.rescaling_counter_size) - 1,
            1 if parameters.order == "bsq" else parameters.interleaving_depth,
        )
        self._code = AdaptiveCode(*(np.int64(number) for number in numbers))
        exponent = coder.initial_count_exponent
        sums = [initial_sums(image.dynamic_range, exponent, coder.exponent(z)) for z in range(image.bands)]
        self._sums = np.array(sums, np.int64)
        self._first_count = 1 << exponent
        self._counts, self._row, self._next = np.zeros(image.columns, np.int64), -1, self._first_count

    def _counts_of(self, row: int) -> NDArray[np.int64]:
        """The counter before each sample of a row; rows come in order."""
        if row == self._row:
            return self._counts
        if row == 0:
            self._next = self._first_count
        counts = []
        for x in range(self._columns):
            counts.append(self._next)
            # The counter begins with the second sample.
            if row or x:
                self._next = next_count(self._code, self._next)
        self._counts[:] = counts
        self._row = row
        return self._counts

    def put(self, residuals: NDArray[np.int64], row: int) -> None:
        cursor = self._stream.room(residuals.size)
        code_row_kernel(self._code, residuals, row, self._counts_of(row), self._sums, cursor)

    def get(self, residuals: NDArray[np.int64], row: int) -> None:
        cursor = self._stream.window(residuals.size)
        decode_row_kernel(self._code, residuals, row, self._counts_of(row), self._sums, cursor)
        self._stream.check()

    def put_band(self, residuals: NDArray[np.int64], band: int) -> None:
        cursor, sums = self._stream.room(residuals.size), self._sums[band : band + 1]
        for row, own in enumerate(residuals):
            code_row_kernel(self._code, own.reshape(-1, 1), row, self._counts_of(row), sums, cursor)

    def get_band(self, residuals: NDArray[np.int64], band: int) -> None:
        sums = self._sums[band : band + 1]
        for row, own in enumerate(residuals):
            cursor = self._stream.window(own.size)
            decode_row_kernel(self._code, own.reshape(-1, 1), row, self._counts_of(row), sums, cursor)
            self._stream.check()

    def finish(self) -> None:
        pass


class _BlockAdaptiveRows:
    def __init__(
        self, parameters: StreamParameters, coder: BlockAdaptive, stream: BodyWriter | BodyReader
    ) -> None:
        image, depth = parameters.image, parameters.image.dynamic_range
        self._stream: Any = stream
        self._depth, self._bands = parameters.interleaving_depth, image.bands
        label = 3 if depth <= 8 else 4 if depth <= 16 else 5
        if coder.restricted:
            label = 1 if depth <= 2 else 2
        blocks = -(-image.samples // coder.block_size)
        numbers = (depth, coder.block_size, label, _LABELS[label], coder.reference_interval, blocks)
        self._code = BlockCode(*(np.int64(number) for number in numbers))
        self._progress = np.zeros(2, np.int64)
        self._rest = np.zeros(0, np.int64)

    def _parts(self, residuals: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        for first in range(0, self._bands, self._depth):
            yield residuals[:, first : first + self._depth]

    def _put(self, *parts: NDArray[np.int64]) -> None:
        values = np.concatenate([self._rest, *(part.ravel() for part in parts)])
        whole = values.size - values.size % int(self._code.size)
        code_blocks_kernel(self._code, values[:whole], self._stream.room(whole), self._progress)
        self._rest = values[whole:]

    def put(self, residuals: NDArray[np.int64], row: int) -> None:
        self._put(*self._parts(residuals))

    def put_band(self, residuals: NDArray[np.int64], band: int) -> None:
        self._put(residuals)

    def _get(self, count: int) -> NDArray[np.int64]:
        missing = max(count - self._rest.size, 0)
        values = np.zeros(-(-missing // int(self._code.size)) * int(self._code.size), np.int64)
        decode_blocks_kernel(self._code, values, self._stream.window(values.size), self._progress)
        self._stream.check()
        values = np.concatenate([self._rest, values])
        self._rest = values[count:].copy()
        return values[:count]

    def get(self, residuals: NDArray[np.int64], row: int) -> None:
        values, start = self._get(residuals.size), 0
        for part in self._parts(residuals):
            part[:] = values[start : start + part.size].reshape(part.shape)
            start += part.size

    def get_band(self, residuals: NDArray[np.int64], band: int) -> None:
        residuals[:] = self._get(residuals.size).reshape(residuals.shape)

    def finish(self) -> None:
        if self._rest.size:
            self._put(np.zeros(int(self._code.size) - self._rest.size, np.int64))
