"""Compress cubes into standard streams, and decompress them, a few rows at a time."""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.devices.cuda_target import CudaTarget, failed, leave
from plait.devices.target import Target, over_threads, resolve, stretches
from plait.errors import DeviceFailure, DeviceMemoryError, InvalidInput, Unsupported
from plait.hyperspectral.codewords import (
    BodyEnd,
    BodyReader,
    BodyWriter,
    ResidualCoder,
    body_reader,
    make_coder,
)
from plait.hyperspectral.header import parse_header, write_header
from plait.hyperspectral.parameters import (
    BlockAdaptive,
    ErrorLimits,
    HybridCoder,
    ImageLayout,
    SampleAdaptive,
    StreamParameters,
)
from plait.hyperspectral.waves import (
    BandsAbreast,
    BandWaves,
    apart,
    bands_at_a_time,
    rows_at_a_time,
)

#: Samples that are worth the start of a GPU which was not asked for by name, and those it takes at a time.
WORTH: Final = 1 << 22
_GPU_SAMPLES: Final = 1 << 25
#: Bytes that wait in memory; more wait in a file.
_MOST_BYTES = 1 << 26
#: Bands that are recovered at a time where they come in turn, pixels of which they may be, and of a stretch.
_BANDS = 48
_MOST_PIXELS: Final = 1 << 17
_STRETCH = 1 << 12
#: Threads that copy, and bytes for which they are worth their start.
_COPYING: Final = 4
_MANY_BYTES: Final = 1 << 22
#: Bytes of a large page of memory.
_LARGE_PAGE: Final = 1 << 21


def copy_rows(rows: NDArray[Any], to: NDArray[Any]) -> None:
    """Copy rows, by several threads if they are many."""
    parts = stretches(_COPYING if rows.nbytes >= _MANY_BYTES else 1, len(rows), 1)
    over_threads(
        _COPYING, parts, lambda part: np.copyto(to[slice(*part)], rows[slice(*part)], casting="unsafe")
    )


# Not `ctypes.pythonapi`, whose functions are everybody's: who declares them otherwise would do so here, too.
_PYTHON = ctypes.PyDLL(None)
_PYTHON.PyBytes_FromStringAndSize.restype = ctypes.c_void_p
_PYTHON.PyBytes_FromStringAndSize.argtypes = [ctypes.c_char_p, ctypes.c_ssize_t]
_PYTHON.PyBytes_AsString.restype = ctypes.c_void_p
_PYTHON.PyBytes_AsString.argtypes = _PYTHON.Py_DecRef.argtypes = [ctypes.c_void_p]


class NewBytes:
    """Bytes that are put together in the memory of the object which they become, `room` of them at first.

    To be given fresh memory page by page takes longer than the copy, and `io.BytesIO` does it while it holds
    Python's lock, so that streams made by several threads wait for each other. Here it comes in large pages.
    """

    _object: Any = None

    @staticmethod
    def of(image: ImageLayout) -> NewBytes:
        """With room for the stream of an image: as many bits as its samples have, and some more."""
        return NewBytes((image.samples * image.dynamic_range >> 3) + (1 << 16))

    def __init__(self, room: int) -> None:
        self._object = ctypes.c_void_p(_PYTHON.PyBytes_FromStringAndSize(None, room))
        self.size = 0
        self._map(room)

    def _map(self, room: int) -> None:
        """See the memory of the object, so many bytes."""
        place = _PYTHON.PyBytes_AsString(self._object)
        self._memory = np.ctypeslib.as_array((ctypes.c_uint8 * room).from_address(place))
        inner = -(-place // mmap.PAGESIZE) * mmap.PAGESIZE
        advice = getattr(mmap, "MADV_HUGEPAGE", None)
        if advice is not None and room >= _LARGE_PAGE:
            size = ctypes.c_size_t(place + room - inner)
            ctypes.CDLL(None).madvise(ctypes.c_void_p(inner), size, advice)

    def _resize(self, room: int) -> None:
        _PYTHON._PyBytes_Resize(ctypes.byref(self._object), ctypes.c_ssize_t(room))

    def write(self, data: Any) -> None:
        """Append bytes, of which nothing is kept."""
        own = np.frombuffer(data, np.uint8)
        end = self.size + own.size
        if end > self._memory.size:
            room = 2 * end
            self._resize(room)
            self._map(room)
        copy_rows(own, self._memory[self.size : end])
        self.size = end

    def take(self) -> bytes:
        """The bytes; the last call."""
        self._resize(self.size)
        found: Any = ctypes.py_object.from_buffer(self._object)
        return bytes(found.value)

    def __del__(self) -> None:
        if self._object:
            _PYTHON.Py_DecRef(self._object)


def _residual_type(image: ImageLayout) -> np.dtype[Any]:
    return np.dtype(np.uint16 if image.dynamic_range <= 16 else np.uint32)


def _fits_memory(image: ImageLayout) -> bool:
    """Whether the residuals of a whole image may wait in memory."""
    return image.samples * _residual_type(image).itemsize <= _MOST_BYTES


class ResidualStore:
    """Residuals of all rows of an image, or of `rows`, in memory or in an unnamed temporary file.

    It is a file where they take more than `most_bytes`; it vanishes when closed.
    """

    def __init__(self, image: ImageLayout, rows: int | None = None, most_bytes: int = _MOST_BYTES) -> None:
        self._kind = _residual_type(image)
        self._shape = (image.bands, image.rows if rows is None else rows, image.columns)
        self._file: Any = None
        self._memory: NDArray[Any] | None = None
        if math.prod(self._shape) * self._kind.itemsize <= most_bytes:
            self._memory = np.zeros(self._shape, self._kind)
        else:
            # Read and written by place: pages of a memory map would count as memory of this process.
            self._file = tempfile.TemporaryFile(prefix="plait-", buffering=0)  # noqa: SIM115  # see `close`

    def close(self) -> None:
        """Let go of what is stored."""
        self._memory = None
        if self._file is not None:
            self._file.close()

    def _place(self, band: int, row: int) -> int:
        _, rows, columns = self._shape
        return (band * rows + row) * columns * self._kind.itemsize

    def put(self, band: int, first: int, values: NDArray[np.int64]) -> None:
        """Store rows of bands, shape (bands, rows, columns), from `band` and row `first` on."""
        if self._memory is not None:
            bands, rows, _ = values.shape
            self._memory[band : band + bands, first : first + rows] = values
            return
        for k, own in enumerate(values, band):
            data = memoryview(np.ascontiguousarray(own, self._kind).tobytes())
            place = self._place(k, first)
            while data:
                written = os.pwrite(self._file.fileno(), data, place)
                data, place = data[written:], place + written

    def get(self, band: int, end: int, first: int, last: int) -> NDArray[np.int64]:
        """Rows of bands, `last` and `end` not among them, shape (bands, rows, columns)."""
        if self._memory is not None:
            return self._memory[band:end, first:last].astype(np.int64)
        return np.stack([self._read_band(k, first, last) for k in range(band, end)])

    def _read_band(self, band: int, first: int, last: int) -> NDArray[np.int64]:
        size = (last - first) * self._shape[2] * self._kind.itemsize
        place, pieces = self._place(band, first), []
        while size:
            piece = os.pread(self._file.fileno(), size, place)
            if not piece:
                raise OSError("the temporary file of residuals is shorter than what was written to it")
            pieces.append(piece)
            size, place = size - len(piece), place + len(piece)
        found = np.frombuffer(b"".join(pieces), self._kind).astype(np.int64)
        return found.reshape(last - first, self._shape[2])


class Checkpoint(NamedTuple):
    """What decoding resumes from, at the start of a row.

    `positions` are the bits of the body where the row begins, one for each band in band-sequential streams,
    and `coders` the coder's state at each. `near`, (columns, bands), are the representatives of the samples
    of the row before, relative to the middle of their range; `weights` is (components, bands).
    """

    row: int
    positions: tuple[int, ...]
    coders: tuple[NDArray[np.int64], ...]
    near: NDArray[np.int64]
    weights: NDArray[np.int64]


class Entries(NamedTuple):
    """Where reading codewords may begin, at the start of rows: more places than checkpoints, and light.

    `rows`, int64 (entries), rise from 0; `positions`, int64 (entries), are bits of the body; `sums`, int32
    (entries, bands), are the accumulators of the sample-adaptive coder.
    """

    rows: NDArray[np.int64]
    positions: NDArray[np.int64]
    sums: NDArray[np.int32]


#: Entries of a stream, at most: a GPU has no use for more.
MOST_ENTRIES: Final = 1024


def sample_type(image: ImageLayout) -> np.dtype[Any]:
    """The narrowest type of whole bytes that holds the samples of an image."""
    bits = next(size for size in (8, 16, 32) if size >= image.dynamic_range)
    return np.dtype(f"{'i' if image.signed else 'u'}{bits // 8}")


def update_rows(limits: ErrorLimits | None) -> int | None:
    """Rows of a period of error limits; None where limits are not updated."""
    return None if limits is None or limits.update_exponent is None else 1 << limits.update_exponent


def _row_steps(first: int, last: int, step: int, *multiples: int | None) -> Iterator[tuple[int, int]]:
    """Stretches of up to `step` rows, none of which goes on over a multiple of any of the numbers."""
    while first < last:
        ends = (first - first % every + every for every in multiples if every is not None)
        end = min(first + step, last, *ends)
        yield first, end
        first = end


def _ahead(read: Callable[[int], Any], count: int) -> Iterator[Any]:
    """What `read` gives for 0, 1, ...; another thread calls it for the next two."""
    with ThreadPoolExecutor(1) as pool:
        # Two of them, so that the thread goes on while this one wakes up.
        under_way = deque(pool.submit(read, number) for number in range(min(2, count)))
        for number in range(2, count + 2):
            found = under_way.popleft().result()
            if number < count:
                under_way.append(pool.submit(read, number))
            yield found


class StreamDecoder:
    """Decodes a standard stream, given as a buffer, such as bytes or a memory map.

    `tables` are those that the stream uses and does not carry, see `plait.hyperspectral.header.parse_header`.
    HeaderEnd or BodyEnd if it is truncated, InvalidInput if its header is not one of the standard.
    """

    def __init__(self, stream: Any, **tables: Any) -> None:
        view = memoryview(stream).cast("B")
        self.parameters, self.header_bytes = parse_header(view, **tables)
        self._image = self.parameters.image
        self._body = view[self.header_bytes :]
        self.dtype = sample_type(self._image)
        if len(self._body) < self._least_bytes():
            found = f"the body has {len(self._body):,} bytes"
            raise BodyEnd(f"{found}, too few for {self._image.samples:,} samples")

    def _least_bytes(self) -> int:
        """Bytes that a complete body has at least: no room is made for samples that cannot be there."""
        image, coder = self._image, self.parameters.coder
        first = image.bands * image.dynamic_range
        rest = image.samples - image.bands
        if isinstance(coder, BlockAdaptive):
            # A run of 64 blocks takes a label, of one bit or more, a bit and a count of five bits.
            return image.samples // (64 * coder.block_size) * 7 // 8
        if isinstance(coder, HybridCoder):
            # At most 256 numbers share an output word of a bit or more, with a bit at every rescaling.
            return (first + rest // 256) // 8
        return (first + rest) // 8

    def rows(
        self,
        start: Checkpoint | None = None,
        last: int | None = None,
        *,
        step: int | None = None,
        every: int | None = None,
        found: Callable[[Checkpoint], object] | None = None,
        errors: Callable[[NDArray[np.int64]], object] | None = None,
        threads: int = 1,
        into: NDArray[Any] | None = None,
    ) -> Iterator[NDArray[Any]]:
        """Samples, `step` rows at a time, shape (rows, columns, bands), from `start` to before row `last`.

        `found` is called with a checkpoint at each row that is a multiple of `every`, but the first; where
        error limits are updated, `every` is whole periods. `errors` is called, before rows of a near-lossless
        stream are given, with the largest errors of their samples. With two `threads`, codewords are read
        while the samples before are recovered, where nothing else is asked for. `into`, C order, has room for
        all of them, which are written there.
        BodyEnd if the stream is truncated or damaged; Unsupported for checkpoints of the hybrid coder,
        whose streams are read from their end.
        """
        image = self._image
        hybrid = isinstance(self.parameters.coder, HybridCoder)
        if hybrid and (start is not None or found is not None):
            raise Unsupported("a side index of the hybrid coder", why="its streams are read from their end")
        first, last = 0 if start is None else start.row, image.rows if last is None else last
        if start is None and last == image.rows and found is None and self._by_bands:
            yield from self._rows_of_bands(step, into, threads)
            return
        waves = BandWaves(image, self.parameters.predictor, backwards=True)
        if start is not None:
            waves.resume(start.row, start.near, start.weights)
        step = rows_at_a_time(image) if step is None else step
        every = every if found is not None else None
        limits = self.parameters.predictor.error_limits
        period = update_rows(limits)
        if period is not None and first % period:
            expected = f"a multiple of {period}, for error limits are updated so often"
            raise InvalidInput("row of a checkpoint", found=str(first), expected=expected)
        steps = _row_steps(first, last, step, every, period)
        stored = hybrid or self.parameters.order == "bsq"
        source = _Stored(self, first, last, start, every) if stored else _InTurn(self, start)
        if threads > 1 and found is None and limits is None and isinstance(source, _InTurn):
            yield from self._rows_ahead(source, waves, list(steps), into)
            return
        # Steps are no longer than so.
        room = np.zeros((min(step, last - first), image.columns, image.bands), np.int64)
        for row, end in steps:
            if period is not None and row % period == 0:
                waves.set_limits(source.limits(row))
            values = room[: end - row]
            source.get(values, row)
            samples = self._recover(waves, values, into, row - first, limits is None)
            if end == image.rows:
                source.check_end()
            if found is not None and every is not None and end % every == 0 and end < image.rows:
                found(Checkpoint(end, *source.state(end), *waves.state()))
            if limits is not None:
                largest = apart(values)
                if errors is not None:
                    errors(largest)
                np.add(values, image.least, out=samples, casting="unsafe")
            yield samples
        source.close()

    def _rows_ahead(
        self, source: _InTurn, waves: BandWaves, steps: list[tuple[int, int]], into: NDArray[Any] | None
    ) -> Iterator[NDArray[Any]]:
        """Samples of stretches of rows; the codewords of the next two are read by another thread."""
        image = self._image
        most = max((end - row for row, end in steps), default=0)
        rooms = [np.zeros((most, image.columns, image.bands), np.int64) for _ in range(3)]

        def read(number: int) -> NDArray[np.int64]:
            row, end = steps[number]
            values = rooms[number % 3][: end - row]
            source.get(values, row)
            return values

        for (first, end), values in zip(steps, _ahead(read, len(steps)), strict=True):
            samples = self._recover(waves, values, into, first - steps[0][0])
            if end == image.rows:
                source.check_end()
            yield samples

    @property
    def _by_bands(self) -> bool:
        """Whether some bands of all rows are recovered at a time: they come in turn, not too large."""
        image, parameters = self._image, self.parameters
        plain = parameters.predictor.error_limits is None and not isinstance(parameters.coder, HybridCoder)
        small = image.rows * image.columns <= _MOST_PIXELS and _fits_memory(image)
        return parameters.order == "bsq" and plain and small

    def _rows_of_bands(
        self, step: int | None, into: NDArray[Any] | None, threads: int
    ) -> Iterator[NDArray[Any]]:
        """Samples, recovered some bands at a time; another thread may read the codewords of the next."""
        image = self._image
        samples = np.empty((image.rows, image.columns, image.bands), self.dtype) if into is None else into
        out = samples.view(f"u{samples.itemsize}").reshape(-1, image.bands)
        plan = {"stretch": _STRETCH, "most_bands": _BANDS}
        waves = BandWaves(image, self.parameters.predictor, backwards=True, **plan)
        reader = self.reader()
        coder = make_coder(self.parameters, reader)
        # With those that are read ahead.
        shape = (3 if threads > 1 else 1, min(_BANDS, image.bands), image.rows, image.columns)
        rooms = np.empty(shape, _residual_type(image))
        few = bands_at_a_time(image)

        def read(number: int) -> NDArray[Any]:
            low, high = waves.bands[number]
            residuals = rooms[number % len(rooms), : high - low]
            for first in range(0, high - low, few):
                self.check(coder.get(residuals[first : first + few], 0, low + first))
            return residuals.reshape(high - low, -1)

        count = len(waves.bands)
        for number, residuals in enumerate(_ahead(read, count) if threads > 1 else map(read, range(count))):
            waves.run_bands(number, residuals, out, image.middle)
        self.check_end(reader.left)
        steps = _row_steps(0, image.rows, rows_at_a_time(image) if step is None else step)
        yield from (samples[row:end] for row, end in steps)

    def _recover(
        self,
        waves: BandWaves,
        values: NDArray[np.int64],
        into: NDArray[Any] | None,
        first: int,
        lossless: bool = True,
    ) -> NDArray[Any]:
        """Samples of the next residuals, from row `first` of `into` on; with error limits in `values`."""
        samples = np.empty(values.shape, self.dtype) if into is None else into[first : first + len(values)]
        # Without a sign there are fewer types; the bits are the same.
        bits = samples.view(f"u{samples.itemsize}").reshape(-1, self._image.bands) if lossless else None
        waves.run(values.reshape(-1, self._image.bands), bits, self._image.middle if lossless else 0)
        return samples

    def read_limits(self, coder: ResidualCoder, backwards: bool = False) -> dict[str, list[int]]:
        """The error limits that come next in the body."""
        limits = self.parameters.predictor.error_limits
        assert limits is not None
        kinds = limits.kinds(self._image.bands)
        ordered = reversed(kinds) if backwards else kinds
        return {name: coder.get_limits(count, bits) for name, bits, count in ordered}

    @property
    def body(self) -> memoryview:
        """What follows the header."""
        return self._body

    @property
    def body_bytes(self) -> int:
        """Length of the body, with all that follows it."""
        return len(self._body)

    def reader(self, position: int = 0) -> BodyReader:
        """A reader of the body."""
        return BodyReader(self._body, position) if position else body_reader(self.parameters, self._body)

    def check_end(self, bits: int) -> None:
        """BodyEnd if more bits follow the last sample than fill up an output word."""
        if bits >= 8 * self.parameters.output_word_size:
            raise BodyEnd(f"{bits // 8:,} bytes follow the last sample: they are none of the stream's")

    def check(self, bits: int) -> None:
        """BodyEnd if residuals, which have these bits together, are negative or have more than D bits."""
        depth = self._image.dynamic_range
        if bits >> depth:
            raise BodyEnd(f"the body holds a residual of more than {depth} bits: it is damaged")


class _InTurn:
    """Residuals of a band-interleaved stream, which come in the order that prediction needs."""

    def __init__(self, decoder: StreamDecoder, start: Checkpoint | None) -> None:
        self._decoder = decoder
        self._bits = decoder.reader(0 if start is None else start.positions[0])
        self._coder = make_coder(decoder.parameters, self._bits)
        if start is not None:
            image = decoder.parameters.image
            samples = start.row * image.columns * image.bands
            limits = decoder.parameters.predictor.error_limits
            if limits is not None:
                samples += limits.updates(start.row, image.bands)
            self._coder.resume(self._bits, start.coders[0], samples, None)

    def get(self, values: NDArray[np.int64], row: int) -> None:
        self._decoder.check(self._coder.get(values, row))

    def limits(self, row: int) -> dict[str, list[int]]:
        return self._decoder.read_limits(self._coder)

    def check_end(self) -> None:
        self._decoder.check_end(self._bits.left)

    def state(self, row: int) -> tuple[tuple[int, ...], tuple[NDArray[np.int64], ...]]:
        return (self._bits.position,), (self._coder.state(None),)

    def close(self) -> None:
        pass


def find_entries(decoder: StreamDecoder, every: int | None = None) -> Entries | None:
    """Read the codewords of a stream once, for entries at every so many rows.

    By default there are up to `MOST_ENTRIES`. None for other streams than band-interleaved ones of the
    sample-adaptive coder; BodyEnd if it is damaged.
    """
    parameters = decoder.parameters
    image = parameters.image
    if not isinstance(parameters.coder, SampleAdaptive) or parameters.order != "bi":
        return None
    every = -(-image.rows // MOST_ENTRIES) if every is None else every
    source, found = _InTurn(decoder, None), []
    for row in range(0, image.rows, every):
        found.append(source.state(row))
        last = min(row + every, image.rows)
        for first in range(row, last, rows_at_a_time(image)):
            size = min(rows_at_a_time(image), last - first)
            source.get(np.zeros((size, image.columns, image.bands), np.int64), first)
    source.check_end()
    positions = np.array([at for (at,), _ in found], np.int64)
    sums = np.array([state for _, (state,) in found]).astype(np.int32)
    return Entries(np.arange(0, image.rows, every), positions, sums)


class _Stored:
    """Residuals that have to be read before prediction can begin: of whole bands, or from the end on."""

    def __init__(
        self, decoder: StreamDecoder, first: int, last: int, start: Checkpoint | None, every: int | None
    ) -> None:
        self._decoder, self._first, self._last = decoder, first, last
        self._image, self._every = decoder.parameters.image, every
        self._positions: dict[int, list[int]] = {}
        self._states: dict[int, list[NDArray[np.int64]]] = {}
        self._limits: dict[int, dict[str, list[int]]] = {}
        self._store = ResidualStore(self._image, rows=last - first)
        self._bits = decoder.reader()
        coder = make_coder(decoder.parameters, self._bits)
        if isinstance(decoder.parameters.coder, HybridCoder):
            self._first, self._last = 0, self._image.rows
            self._store = ResidualStore(self._image)
            self._read_backwards(coder)
        else:
            self._read_bands(coder, start)

    def _steps(self, last: int) -> list[tuple[int, int]]:
        """Stretches of rows that are read at a time, up to row `last`."""
        step = rows_at_a_time(self._image, bands=1)
        return list(_row_steps(self._first, last, step, self._every))

    def _read(self, coder: ResidualCoder, band: int, row: int, end: int, bands: int = 1) -> None:
        residuals = np.zeros((bands, end - row, self._image.columns), np.int64)
        self._decoder.check(coder.get(residuals, row, band))
        self._store.put(band, row - self._first, residuals)

    def _bands(self, most: int) -> list[tuple[int, int]]:
        """Bands that are read at a time, and their number; one where there are checkpoints."""
        step = 1 if self._every is not None else min(most, bands_at_a_time(self._image))
        bands = self._image.bands
        return [(band, min(step, bands - band)) for band in range(0, bands, step)]

    def _read_bands(self, coder: ResidualCoder, start: Checkpoint | None) -> None:
        image = self._image
        # Without places to begin at, what follows the last row that is asked for has to be read all the same.
        steps = self._steps(image.rows if start is None else self._last)
        if start is None:
            self._store = ResidualStore(image)
        for band, bands in self._bands(image.bands if start is None else 1):
            if start is not None:
                samples = (band * image.rows + start.row) * image.columns
                bits = self._decoder.reader(start.positions[band])
                coder.resume(bits, start.coders[band], samples, band)
            for row, end in steps:
                if start is None and self._every is not None and row and row % self._every == 0:
                    self._positions.setdefault(row, []).append(self._bits.position)
                    self._states.setdefault(row, []).append(coder.state(band))
                self._read(coder, band, row, end, bands)
        if start is None:
            self._decoder.check_end(self._bits.left)

    def _read_backwards(self, coder: ResidualCoder) -> None:
        image = self._image
        if self._decoder.parameters.order == "bsq":
            for band, bands in reversed(self._bands(image.bands)):
                for row, end in reversed(self._steps(image.rows)):
                    self._read(coder, band, row, end, bands)
            self._check_begin()
            return
        period = update_rows(self._decoder.parameters.predictor.error_limits)
        for row, end in reversed(list(_row_steps(0, image.rows, rows_at_a_time(image), period))):
            values = np.zeros((end - row, image.columns, image.bands), np.int64)
            self._decoder.check(coder.get(values, row))
            self._store.put(0, row, values.transpose(2, 0, 1))
            if period is not None and row % period == 0:
                self._limits[row] = self._decoder.read_limits(coder, backwards=True)
        self._check_begin()

    def check_end(self) -> None:
        """What follows was looked at when the residuals were read."""

    def _check_begin(self) -> None:
        # Zeros that the reader has left out are of the last word, too.
        self._decoder.check_end(8 * (self._decoder.body_bytes - self._bits.size))
        if self._bits.left:
            found = f"the first sample begins {self._bits.left:,} bits behind the header"
            raise BodyEnd(f"{found}: the body is damaged, or its end is missing")

    def get(self, values: NDArray[np.int64], row: int) -> None:
        first = row - self._first
        values[:] = self._store.get(0, self._image.bands, first, first + len(values)).transpose(1, 2, 0)

    def limits(self, row: int) -> dict[str, list[int]]:
        return self._limits[row]

    def state(self, row: int) -> tuple[tuple[int, ...], tuple[NDArray[np.int64], ...]]:
        return tuple(self._positions[row]), tuple(self._states[row])

    def close(self) -> None:
        self._store.close()


def _rows_on_gpu(parameters: StreamParameters, target: Target | None) -> Any:
    """What compresses rows on the GPUs of a target; None if the CPU does it.

    Unsupported if a GPU was asked for by name that does not make such streams.
    """
    if not isinstance(target, CudaTarget) or (target.sparing and parameters.image.samples < WORTH):
        return None
    from plait.hyperspectral.gpu_codec import RowsOnGpu, unserved

    why = unserved(parameters)
    if why and not target.sparing:
        why = f"{why}; device='cpu' makes them all, and 'auto' leaves them to it"
        raise Unsupported("making such a stream on a GPU", why=why)
    return (
        None if why or (target.sparing and failed(target.devices)) else RowsOnGpu(parameters, target.devices)
    )


class Compressor:
    """Compresses an image whose rows come in order; `write` is called with pieces of the stream, in order.

    With `target` some are compressed on GPUs; where `write` does not keep what it is given (`keeps`), it may
    be given views of memory that is used again. With two `threads` some rows are coded while the next ones
    are predicted. Rows are best given `step` at a time, or many times as many.
    """

    def __init__(
        self,
        parameters: StreamParameters,
        write: Callable[[Any], object],
        target: Target | None = None,
        *,
        keeps: bool = True,
        threads: int = 1,
    ) -> None:
        self.parameters = parameters
        self._image = parameters.image
        self._give, self._keeps = write, keeps
        self._written = 0
        self._row = 0
        self._limits = parameters.predictor.error_limits
        self._period = update_rows(self._limits)
        self._bits = BodyWriter()
        self._coder = make_coder(parameters, self._bits)
        self._target, self._gpu = target, _rows_on_gpu(parameters, target)
        #: Rows that are compressed at a time.
        self.step = rows_at_a_time(self._image)
        if self._gpu is not None:
            self.step = max(_GPU_SAMPLES // (self._image.columns * self._image.bands), 1)
        # The sample-adaptive coder keeps codewords instead, which are mostly smaller.
        adaptive = isinstance(parameters.coder, SampleAdaptive) and _fits_memory(self._image)
        stored = parameters.order == "bsq" and not adaptive
        self._waiting = ResidualStore(self._image) if stored else None
        self._beside = ThreadPoolExecutor(1) if threads > 1 and self._limits is None else None
        self._coded: deque[Future[bytes]] = deque()
        self._put(write_header(parameters))

    @cached_property
    def _bands(self) -> BandsAbreast | BandWaves:
        predictor = self.parameters.predictor
        # What stands for samples is known in advance.
        exact = predictor.representatives is None and predictor.error_limits is None
        return (BandsAbreast if exact else BandWaves)(self._image, predictor)

    def _put(self, data: bytes | memoryview) -> None:
        if data:
            self._written += len(data)
            self._give(data)

    def write(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Append rows of integers, shape (rows, columns, bands); the rows as decoders will give them.

        InvalidInput if the shape or a sample does not go with the parameters, or there are too many rows.
        """
        image = self._image
        rows = np.asarray(rows)
        if rows.ndim != 3 or rows.shape[1:] != (image.columns, image.bands):
            expected = f"(rows, {image.columns}, {image.bands})"
            raise InvalidInput("shape of the rows", found=str(rows.shape), expected=expected)
        if self._row + len(rows) > image.rows:
            found = f"{self._row + len(rows)} of them"
            raise InvalidInput("rows", found=found, expected=f"{image.rows}, as the parameters say")
        if rows.dtype.kind not in "iu":
            found = f"samples of type {rows.dtype}"
            raise InvalidInput("rows", found=found, expected="integers, which are kept without loss")
        begin, done = self._row, []
        if self._gpu is not None:
            self._compress_on_gpu(rows)
        for first, end in _row_steps(self._row, begin + len(rows), self.step, self._period):
            done.append(self._compress(rows[first - begin : end - begin]))
            self._row = end
        return rows if self._limits is None else np.concatenate([rows[:0], *done])

    def _compress_on_gpu(self, rows: NDArray[Any]) -> None:
        """Compress rows; those that are left after a failure are for the CPU."""
        image, begin = self._image, self._row
        if rows.dtype.itemsize > 2 or (rows.dtype.kind == "i") != image.signed:
            _check_samples(rows, image, begin)
        try:
            fit = self._gpu.compress(rows, begin, self.step, self._put_view)
            self._row = self._gpu.done
        except (DeviceFailure, DeviceMemoryError) as error:
            assert isinstance(self._target, CudaTarget)
            if not self._target.sparing:
                raise
            leave(self._target.devices, error)
            near, weights, sums = self._gpu.state()
            self._row, self.step = self._gpu.done, rows_at_a_time(image)
            if self._row:
                self._bands.resume(self._row, near, weights)
            self._coder.resume(self._bits, sums, 0, None)
            self._bits.put(*self._gpu.held)
            self._gpu, fit = None, True
        if not fit:
            _check_samples(rows[self._row - begin :], image, self._row)

    def _put_view(self, view: memoryview) -> None:
        self._put(bytes(view) if self._keeps else view)

    def _compress(self, rows: NDArray[Any]) -> NDArray[Any]:
        image = self._image
        _check_samples(rows, image, self._row)
        if self._limits is not None and self._period is not None and self._row % self._period == 0:
            self._update(self._limits, self._row // self._period)
        if isinstance(self._bands, BandsAbreast):
            values = self._bands.run(rows)
        else:
            values = np.empty(rows.shape, np.int64)
            np.subtract(rows, image.middle, out=values, dtype=np.int64, casting="unsafe")
            self._bands.run(values.reshape(-1, image.bands))
        if self._limits is not None:
            samples = apart(values) + image.middle
            rows = samples.astype(rows.dtype)
        if self._waiting is not None:
            self._waiting.put(0, self._row, values.transpose(2, 0, 1))
        elif self._beside is None:
            self._put(self._code(values, self._row))
        else:
            self._coded.append(self._beside.submit(self._code, values, self._row))
            self._put_coded(1)
        return rows

    def _code(self, residuals: NDArray[Any], row: int) -> bytes:
        self._coder.put(np.ascontiguousarray(residuals, np.int64), row)
        return self._bits.take()

    def _put_coded(self, most: int) -> None:
        """Write what was coded beside, until no more than so many are under way."""
        while len(self._coded) > most:
            self._put(self._coded.popleft().result())

    def _update(self, limits: ErrorLimits, period: int) -> None:
        """Begin a period of error limits."""
        own = limits.of_period(period)
        assert isinstance(self._bands, BandWaves)
        self._bands.set_limits(own)
        for name, bits, _ in limits.kinds(self._image.bands):
            self._coder.put_limits(own[name], bits)
            self._put(self._bits.take())

    def close(self) -> None:
        """Write the end; InvalidInput if rows are missing."""
        image = self._image
        if self._row != image.rows:
            expected = f"{image.rows}, as the parameters say"
            raise InvalidInput("rows", found=f"{self._row} of them", expected=expected)
        if self._waiting is not None:
            step, bands = rows_at_a_time(image, bands=1), bands_at_a_time(image)
            for band in range(0, image.bands, bands):
                for row in range(0, image.rows, step):
                    end = min(band + bands, image.bands)
                    residuals = self._waiting.get(band, end, row, min(row + step, image.rows))
                    self._coder.put(residuals, row, band)
                    self._put(self._bits.take())
            self._waiting.close()
        self._put_coded(0)
        if self._beside is not None:
            self._beside.shutdown()
        if self._gpu is not None:
            self._bits.put(*self._gpu.held)
        for _ in self._coder.finish():
            self._put(self._bits.take())
        self._put(self._bits.close(self._written, self.parameters.output_word_size))


def _check_samples(rows: NDArray[Any], image: ImageLayout, first: int) -> None:
    """Check that samples are in their range."""
    bounds = np.iinfo(rows.dtype)
    if not rows.size or (image.least <= bounds.min and bounds.max <= image.largest):
        return
    least, largest = int(rows.min()), int(rows.max())
    if least >= image.least and largest <= image.largest:
        return
    worst = least if least < image.least else largest
    y, x, z = (int(k[0]) for k in np.nonzero(rows == worst))
    what = f"sample at row {first + y}, column {x}, band {z}"
    expected = f"{image.least} to {image.largest}, as {image.dynamic_range} bits hold"
    raise InvalidInput(what, found=str(worst), expected=expected)


def compress(
    cube: NDArray[Any], parameters: StreamParameters, *, device: str = "auto", threads: int = 1
) -> bytes:
    """Compress a whole image.

    Parameters
    ----------
    cube
        Integers, shape (rows, columns, bands).
    parameters
        Everything that the header says.
    device
        Name of a device, see `plait.devices.target`.
    threads
        Two or more: rows of a plain stream are coded while the next ones are predicted.

    Returns
    -------
    bytes
        The stream, the same from all devices and threads.

    Raises
    ------
    InvalidInput
        If the image does not go with the parameters.
    Unsupported
        If a GPU is asked for that does not make such streams.
    """
    stream = NewBytes.of(parameters.image)
    compressor = Compressor(parameters, stream.write, resolve(device), keeps=False, threads=threads)
    compressor.write(cube)
    compressor.close()
    return stream.take()


def decompress(stream: Any, *, threads: int = 1, **tables: Any) -> tuple[NDArray[Any], StreamParameters]:
    """Decompress a whole image.

    Parameters
    ----------
    stream
        The stream, as bytes or another buffer.
    threads
        Two or more: codewords are read while the samples before are recovered.
    **tables
        Tables that the stream uses and does not carry, see `plait.hyperspectral.header.parse_header`.

    Returns
    -------
    NDArray
        Samples, shape (rows, columns, bands).
    StreamParameters
        What the header says.

    Raises
    ------
    HeaderEnd, BodyEnd
        If the stream is truncated or damaged.
    InvalidInput
        If the header holds what the standard does not allow.
    """
    decoder = StreamDecoder(stream, **tables)
    image = decoder.parameters.image
    found = np.empty((image.rows, image.columns, image.bands), decoder.dtype)
    for _ in decoder.rows(threads=threads, into=found):
        pass
    return found, decoder.parameters
