"""The entropy coders over rows and bands of an image: residuals to bits and back."""

from __future__ import annotations

import mmap
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from plait.errors import PlaitError, Unsupported
from plait.hyperspectral.coders import AdaptiveCode, BitCursor, BlockCode, initial_sums
from plait.hyperspectral.hybrid import HIGH_ENTROPY_THRESHOLD, HybridCodeArrays, flush_words, word_tables
from plait.hyperspectral.parameters import BlockAdaptive, HybridCoder, SampleAdaptive, StreamParameters
from plait.hyperspectral.waves import (
    code_bands_kernel,
    code_blocks_kernel,
    code_rows_kernel,
    code_small_rows_kernel,
    decode_blocks_kernel,
    decode_rows_kernel,
    decode_small_rows_kernel,
)

#: So many bytes are looked at before they are let go of.
PIECE_BYTES: Final = 1 << 24


def let_go(view: memoryview) -> None:
    """Drop the resident pages of the memory map that a view is of; nothing for other buffers.

    The pages would count as memory of the process; they are read again when needed.
    """
    file = view.obj
    if isinstance(file, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        file.madvise(mmap.MADV_DONTNEED)


def pieces(view: memoryview) -> Iterator[memoryview]:
    """The same bytes in pieces of `PIECE_BYTES`; the pages of each are dropped after use."""
    for first in range(0, len(view), PIECE_BYTES):
        yield view[first : first + PIECE_BYTES]
        let_go(view)


#: Words that are turned into numbers at a time, beside those that are needed.
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
        """Where to write so many 32-bit words; `take` what is there before asking again."""
        if self._words.size < words + 4:
            self._words = np.zeros(words + 4, np.uint32)
        return BitCursor(self._words, self._state)

    def put(self, value: int, bits: int) -> None:
        """Append a number of any number of bits."""
        held, size = (int(self._state[0]) << bits) | value, int(self._state[1]) + bits
        at = int(self._state[2])
        if self._words.size < at + size // 32 + 4:
            self._words = np.concatenate([self._words, np.zeros(at + size // 32 + 4, np.uint32)])
        while size >= 32:
            size -= 32
            self._words[at] = (held >> size) & 0xFFFFFFFF
            at += 1
        self._state[:] = held & ((1 << size) - 1), size, at

    def append(self, words: NDArray[np.uint32], held: int, bits: int) -> None:
        """Append words, and a number of fewer than 32 bits; `take` what is there before."""
        before, size = int(self._state[0]), int(self._state[1])
        own = self.room(words.size).words[: words.size]
        np.right_shift(words, size, out=own)
        if size and words.size:
            own[0] |= before << (32 - size)
            own[1:] |= words[:-1] << (32 - size)
            before = int(words[-1]) & ((1 << size) - 1)
        self._state[:] = before, size, words.size
        self.put(held, bits)

    def take(self) -> bytes:
        """The whole words written since the last time."""
        count = int(self._state[2])
        self._state[2] = 0
        self._taken += count
        return self._words[:count].astype(">u4").tobytes()

    def close(self, before: int, word: int) -> bytes:
        """The last bits, filled up with zeros to a multiple of `word` (B) bytes of the whole stream.

        `before` is the length of the stream without them, in bytes.
        """
        held, bits = int(self._state[0]), int(self._state[1])
        size = -(-bits // 8)
        size += -(before + size) % word
        return (held << (8 * size - bits)).to_bytes(size, "big")


class BodyReader:
    """Bits of a body from bit `position` on; no more than a window of it is turned into words at a time."""

    def __init__(self, body: Any, position: int = 0) -> None:
        self._body = memoryview(body)
        self._kept = 0
        self._state = np.zeros(3, np.int64)
        self._words = np.zeros(0, np.uint32)
        self._next = position // 32 * 4
        #: Bits of the words, and number of the bit that the first of them is.
        self._bits = 0
        self._first = 8 * self._next
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
            # What is left is read again, and there may be as much as is needed.
            size = 4 * (needed + _WINDOW_WORDS)
            data = self._piece(start, size)
            self._kept += len(data)
            if self._kept > PIECE_BYTES:
                # Of a mapped file, pages that were read would count as memory of this process.
                let_go(self._body)
                self._kept = 0
            self._next = start + len(data)
            self._bits = 8 * len(data)
            self._first = 8 * start
            self._words = self._as_words(bytes(data) + b"\0" * (4 - len(data) % 4) if len(data) % 4 else data)
            self._state[2] = 0
        return BitCursor(self._words, self._state)

    def _piece(self, start: int, size: int) -> bytes | memoryview:
        return self._body[start : start + size]

    def _as_words(self, data: bytes | memoryview) -> Any:
        return np.frombuffer(data, ">u4").astype(np.uint32)

    def take(self, bits: int) -> int:
        """The number in the next bits; BodyEnd if there are too few."""
        words, state = self.window(-(-bits // 32))
        held, size, at = (int(number) for number in state)
        while size < bits:
            held = (held << 32) | (int(words[at]) if at < words.size else 0)
            size, at = size + 32, at + 1
        size -= bits
        state[:] = held & ((1 << size) - 1), size, at
        self.check()
        return held >> size

    def check(self) -> None:
        """BodyEnd if bits were read beyond the end."""
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
    """Bits of a body from the last to the first."""

    def _piece(self, start: int, size: int) -> bytes:
        last = len(self._body) - start
        return bytes(self._body[max(last - size, 0) : last])[::-1]

    def _as_words(self, data: bytes | memoryview) -> Any:
        return np.frombuffer(data, "<u4").astype(np.uint32)

    def take(self, bits: int) -> int:
        """The number of `bits` bits that ends here; BodyEnd if there are too few."""
        words, state = self.window(-(-bits // 32))
        held, size, at = (int(number) for number in state)
        while size < bits:
            held |= (int(words[at]) if at < words.size else 0) << size
            size, at = size + 32, at + 1
        state[:] = held >> bits, size - bits, at
        self.check()
        return held & ((1 << bits) - 1)


_LABELS = {1: 0, 2: 2, 3: 6, 4: 14, 5: 30}


class ResidualCoder(ABC):
    """Codewords of the residuals of an image in coding order; the hybrid ones are read in reverse order.

    Residuals of rows from `row` on are (rows, columns, bands); those of rows of bands, from `band` on, which
    come in turn, (bands, rows, columns). The sample-adaptive coder takes rows where bands come in turn, too:
    then it keeps the codewords of each, and `finish` writes them all. `_stream` is written to or read from.
    What is read from its end has no `state` to `resume` from.
    """

    _stream: Any

    @abstractmethod
    def put(self, residuals: NDArray[np.int64], row: int, band: int | None = None) -> None:
        """Append residuals."""

    @abstractmethod
    def get(self, residuals: NDArray[np.int64], row: int, band: int | None = None) -> int:
        """Read residuals, changed in place; a number that has all bits of them."""

    def put_limits(self, limits: Sequence[int], bits: int) -> None:
        """Append error limits of so many bits, between rows."""
        for limit in limits:
            self._stream.put(limit, bits)

    def get_limits(self, count: int, bits: int) -> list[int]:
        """Read error limits."""
        return [self._stream.take(bits) for _ in range(count)]

    def finish(self) -> Iterator[None]:
        """Write what is still open, if anything may be; what is written is to be taken at every step."""
        yield

    def state(self, band: int | None) -> NDArray[np.int64]:
        """What reading goes on from, beside the place in the stream; of one band where they come in turn."""
        raise Unsupported("going on in a stream of the hybrid coder", why="it is read from its end")

    def resume(
        self, stream: BodyWriter | BodyReader, state: NDArray[np.int64], samples: int, band: int | None
    ) -> None:
        """Go on from a `state`, at a place of so many samples in coding order."""
        raise Unsupported("going on in a stream of the hybrid coder", why="it is read from its end")


def body_reader(parameters: StreamParameters, body: Any) -> BodyReader:
    """The reader of a body, in the direction of its coder; `body` goes up to the end of the stream.

    Of the hybrid coder, zero bytes at the end are left out.
    """
    if not isinstance(parameters.coder, HybridCoder):
        return BodyReader(body)
    # Whatever fills the last word is zero, and so is what some media append.
    size, piece = len(body), 1 << 16
    while size and not any(body[max(size - piece, 0) : size]):
        size = max(size - piece, 0)
    rest = bytes(body[max(size - piece, 0) : size]).rstrip(b"\0")
    return BackwardsReader(body[: max(size - piece, 0) + len(rest)])


def make_coder(parameters: StreamParameters, stream: BodyWriter | BodyReader) -> ResidualCoder:
    """The coder of a stream, which writes codewords to `stream` or reads them from it."""
    if isinstance(parameters.coder, SampleAdaptive):
        return _SampleAdaptiveRows(parameters, parameters.coder, stream)
    if isinstance(parameters.coder, BlockAdaptive):
        return _BlockAdaptiveRows(parameters, parameters.coder, stream)
    return _HybridRows(parameters, parameters.coder, stream)


def adaptive_constants(parameters: StreamParameters, coder: SampleAdaptive | HybridCoder) -> AdaptiveCode:
    """Constants of a coder that adapts to each sample."""
    numbers = (
        parameters.image.dynamic_range,
        coder.unary_length_limit,
        1 << coder.initial_count_exponent,
        (1 << coder.rescaling_counter_size) - 1,
        1 if parameters.order == "bsq" else parameters.interleaving_depth,
    )
    return AdaptiveCode(*(np.int64(number) for number in numbers))


def _stacks(
    residuals: NDArray[np.int64], sums: NDArray[np.int64], band: int | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Residuals as (stacks, rows, columns, bands), and their accumulators (stacks, bands)."""
    if band is None:
        return residuals[np.newaxis], sums[np.newaxis]
    return residuals[..., np.newaxis], sums[band : band + len(residuals), np.newaxis]


def _of(band: int | None) -> slice:
    return slice(None) if band is None else slice(band, band + 1)


class _SampleAdaptiveRows(ResidualCoder):
    def __init__(
        self, parameters: StreamParameters, coder: SampleAdaptive, stream: BodyWriter | BodyReader
    ) -> None:
        image, exponent = parameters.image, coder.initial_count_exponent
        self._stream = stream
        self._code = adaptive_constants(parameters, coder)
        #: Words of the longest codeword.
        self._longest = -(-(coder.unary_length_limit + image.dynamic_range) // 32)
        sums = {k: initial_sums(image.dynamic_range, exponent, k) for k in range(15)}
        self._sums = np.array([sums[coder.exponent(z)] for z in range(image.bands)], np.int64)
        whole = parameters.order == "bi" and parameters.interleaving_depth >= image.bands
        self._found = np.zeros((1 if whole else image.columns, image.bands), np.int64)
        self._in_turn = parameters.order == "bsq"
        #: Words of each band, and the state of its bits.
        self._words = np.zeros((image.bands, 0), np.uint32)
        self._states = np.zeros((3, image.bands), np.int64)

    def put(self, residuals: NDArray[np.int64], row: int, band: int | None = None) -> None:
        if self._in_turn and band is None:
            self._put_apart(residuals, row)
            return
        own, sums = _stacks(residuals, self._sums, band)
        cursor = self._stream.room(self._longest * residuals.size)
        code_rows_kernel(self._code, own, row, sums, cursor, self._found)

    def _put_apart(self, residuals: NDArray[np.int64], row: int) -> None:
        rows, columns, bands = residuals.shape
        used = int(self._states[2].max())
        needed = used + self._longest * rows * columns + 4
        if self._words.shape[1] < needed:
            # An odd number of them, so that bands do not meet in the same sets of a cache.
            words = np.empty((bands, 2 * needed | 1), np.uint32)
            words[:, :used] = self._words[:, :used]
            self._words = words
        code_bands_kernel(self._code, residuals, row, self._sums, self._words, self._states, self._found[0])

    def finish(self) -> Iterator[None]:
        yield
        for words, held, bits, count in zip(self._words, *self._states.tolist(), strict=True):
            self._stream.append(words[:count], held, bits)
            yield

    def get(self, residuals: NDArray[np.int64], row: int, band: int | None = None) -> int:
        own, sums = _stacks(residuals, self._sums, band)
        cursor = self._stream.window(self._longest * residuals.size)
        bits = int(decode_rows_kernel(self._code, own, row, sums, cursor, self._found))
        self._stream.check()
        return bits

    def state(self, band: int | None) -> NDArray[np.int64]:
        return self._sums[_of(band)].copy()

    def resume(
        self, stream: BodyWriter | BodyReader, state: NDArray[np.int64], samples: int, band: int | None
    ) -> None:
        self._stream = stream
        self._sums[_of(band)] = state


class _BlockAdaptiveRows(ResidualCoder):
    def __init__(
        self, parameters: StreamParameters, coder: BlockAdaptive, stream: BodyWriter | BodyReader
    ) -> None:
        image, depth = parameters.image, parameters.image.dynamic_range
        self._stream = stream
        self._depth = parameters.interleaving_depth
        label = 3 if depth <= 8 else 4 if depth <= 16 else 5
        if coder.restricted and depth <= 4:
            label = 1 if depth <= 2 else 2
        limits = parameters.predictor.error_limits
        numbers_coded = image.samples + (0 if limits is None else limits.updates(image.rows, image.bands))
        blocks = -(-numbers_coded // coder.block_size)
        numbers = (depth, coder.block_size, label, _LABELS[label], coder.reference_interval, blocks)
        self._code = BlockCode(*(np.int64(number) for number in numbers))
        self._size = coder.block_size
        self._progress = np.zeros(2, np.int64)
        self._rest = np.zeros(0, np.int64)

    def _groups(self, residuals: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Views of rows in coding order: whole groups of bands, and the bands that are left."""
        rows, columns, bands = residuals.shape
        whole = bands - bands % self._depth
        groups = residuals[:, :, :whole].reshape(rows, columns, whole // self._depth, self._depth)
        return [groups.transpose(0, 2, 1, 3), residuals[:, :, whole:]]

    def put(self, residuals: NDArray[np.int64], row: int, band: int | None = None) -> None:
        if band is None and self._depth < residuals.shape[2]:
            parts = [part.reshape(len(part), -1) for part in self._groups(residuals)]
            residuals = np.concatenate(parts, axis=1)
        self._put(residuals)

    def _put(self, own: NDArray[np.int64]) -> None:
        values = np.concatenate([self._rest, own.ravel()])
        whole = values.size - values.size % self._size
        code_blocks_kernel(self._code, values[:whole], self._stream.room(2 * whole), self._progress)
        self._rest = values[whole:]

    def get(self, residuals: NDArray[np.int64], row: int, band: int | None = None) -> int:
        rows, done = self._get(residuals.size).reshape(len(residuals), -1), 0
        for part in [residuals] if band is not None else self._groups(residuals):
            size = part.size // len(residuals)
            part[:] = rows[:, done : done + size].reshape(part.shape)
            done += size
        return int(np.bitwise_or.reduce(rows, axis=None))

    def _get(self, count: int) -> NDArray[np.int64]:
        missing = max(count - self._rest.size, 0)
        values = np.zeros(-(-missing // self._size) * self._size, np.int64)
        decode_blocks_kernel(self._code, values, self._stream.window(2 * values.size), self._progress)
        self._stream.check()
        values = np.concatenate([self._rest, values])
        self._rest = values[count:].copy()
        return values[:count]

    def put_limits(self, limits: Sequence[int], bits: int) -> None:
        # They are among the numbers of the blocks.
        self._put(np.array(limits, np.int64))

    def get_limits(self, count: int, bits: int) -> list[int]:
        found = [int(limit) for limit in self._get(count)]
        if any(limit < 0 or limit >> bits for limit in found):
            raise BodyEnd(f"the body holds an error limit of more than {bits} bits: it is damaged")
        return found

    def finish(self) -> Iterator[None]:
        if self._rest.size:
            self._put(np.zeros(self._size - self._rest.size, np.int64))
        yield

    def state(self, band: int | None) -> NDArray[np.int64]:
        return np.concatenate([self._progress[1:], self._rest])

    def resume(
        self, stream: BodyWriter | BodyReader, state: NDArray[np.int64], samples: int, band: int | None
    ) -> None:
        self._stream = stream
        self._rest = state[1:].copy()
        self._progress[:] = (samples + self._rest.size) // self._size, state[0]


class _HybridRows(ResidualCoder):
    def __init__(
        self, parameters: StreamParameters, coder: HybridCoder, stream: BodyWriter | BodyReader
    ) -> None:
        image, exponent = parameters.image, coder.initial_count_exponent
        self._stream = stream
        self._size = 2 + image.dynamic_range + coder.rescaling_counter_size
        self._code = HybridCodeArrays(
            *adaptive_constants(parameters, coder), threshold=np.int64(HIGH_ENTROPY_THRESHOLD)
        )
        self._tables = word_tables()
        self._open = self._tables.codes[:, 2].copy()
        sums = coder.initial_sums
        self._sums = np.array([4 << exponent] * image.bands if sums is None else sums, np.int64)
        if isinstance(stream, BackwardsReader):
            self._read_tail(stream)

    def _read_tail(self, stream: BackwardsReader) -> None:
        while stream.take(1) == 0:
            pass  # `body_reader` has left a byte that is not zero.
        self._sums[:] = [stream.take(self._size) for _ in self._sums][::-1]
        found = []
        for _, words in reversed(flush_words()):
            bits = ""
            while bits not in words:
                bits = f"{stream.take(1)}{bits}"
            found.append(words[bits])
        self._open = np.array(found[::-1], np.int64).T.copy()

    def put(self, residuals: NDArray[np.int64], row: int, band: int | None = None) -> None:
        (own, sums), cursor = _stacks(residuals, self._sums, band), self._stream.room(3 * residuals.size)
        code_small_rows_kernel(self._code, self._tables, own, row, sums, self._open, cursor)

    def get(self, residuals: NDArray[np.int64], row: int, band: int | None = None) -> int:
        (own, sums), cursor = _stacks(residuals, self._sums, band), self._stream.window(3 * residuals.size)
        decode_small_rows_kernel(self._code, self._tables, own, row, sums, self._open, cursor)
        self._stream.check()
        if int(self._sums.min()) < 0 or int(self._sums.max()) >> self._size:
            raise BodyEnd("the body holds sums that no residuals lead to: it is damaged")
        return int(np.bitwise_or.reduce(residuals, axis=None))

    def get_limits(self, count: int, bits: int) -> list[int]:
        return super().get_limits(count, bits)[::-1]

    def finish(self) -> Iterator[None]:
        for (words, _), node in zip(flush_words(), self._open, strict=True):
            self._stream.put(int(words[int(node)], 2), len(words[int(node)]))
        for total in self._sums:
            self._stream.put(int(total), self._size)
        self._stream.put(1, 1)
        yield
