"""Compression on GPUs: residuals of `plait.dp.bands.gpu_prediction`, and their codewords.

The accumulators of the sample-adaptive coder depend on one another along the samples of a band, but
``(s + a) >> m`` is all that some samples in a row do to one, and what several such steps do is a step again.
So a thread finds the step of `SEGMENT` samples, one thread for each band goes from segment to segment, and
then all codewords are found at once. Sums of their lengths are their places in the stream.

A module of its own: what CUDA runs, which is imported where a GPU is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from plait.devices.cuda import cuda, cuda_kernel
from plait.devices.cuda_devices import POOL, Slot
from plait.dp.bands import gpu_prediction
from plait.dp.bands.gpu_prediction import (
    LEAST_COLUMNS,
    MOST_BANDS,
    STEPS,
    Differences,
    Stretch,
    Wing,
    find_differences,
    lag_of,
    learning_kernel,
    recovering_kernel,
    sample_at,
    steps_of,
    word_prediction,
)
from plait.dp.bands.narrow import NARROW_BITS
from plait.dp.bands.prediction import BandPrediction, mapped
from plait.dp.bands.wavefront import PAST
from plait.hyperspectral.codec import Entries, copy_rows, sample_type
from plait.hyperspectral.coders import AdaptiveCode, count_at, exponent, next_count, next_sum
from plait.hyperspectral.codewords import BodyEnd, BodyWriter, adaptive_constants, make_coder
from plait.hyperspectral.header import SUMS
from plait.hyperspectral.parameters import Predictor, SampleAdaptive, StreamParameters
from plait.hyperspectral.waves import initial_weights, is_narrow, prediction_of
from plait.lang.compile import shared
from plait.lang.warps import WARP, shuffle, synchronize_warp

#: Samples of a band that one thread takes.
SEGMENT: Final = 32
_THREADS: Final = 128
_WORD: Final = np.dtype(np.int32)
#: Segments of a band that are asked for at a time.
_AHEAD: Final = 16
#: Codewords of a thread where they are put one behind the other.
_RUN: Final = 8
#: Threads that add up the bits of blocks.
_ADDERS: Final = 256
#: Of a codeword: its bits, how many of them, and the zeros before them.
_SIZE_AT, _ZEROS_AT = 16, 21


def _examples(*names: str) -> list[tuple[Any, ...]]:
    number, long = np.int32(0), np.int64(0)
    table = np.zeros((1, 1), np.int32)
    known = {
        "p": BandPrediction(*(long,) * 12),
        "code": AdaptiveCode(*(long,) * 5),
        "stretch": Stretch(np.zeros((1, 1), np.uint16), number, number, long, long),
        "table": table,
        "residuals": np.zeros((1, 1), np.uint16),
        "codes": np.zeros((1, 1), np.uint32),
        "words": np.zeros(1, np.uint32),
        "steps": np.zeros((1, 1), np.int64),
        "row": np.zeros(1, np.int32),
        "bits": np.zeros(1, np.int64),
        "long": long,
        "pair": (long, long),
    }
    return [tuple(known[name] for name in names)]


@cuda_kernel(lambda: _examples("p", "code", "stretch", "long", "table", "residuals", "steps"))
def find_residuals(
    p: Any, code: Any, stretch: Any, before: Any, errors: Any, residuals: Any, steps: Any
) -> None:
    """Mapped residuals (samples, bands) and what a segment does to an accumulator (segments, bands).

    `before` is P, `errors` is e of the samples, see `plait.dp.bands.gpu_prediction`. Of a step
    ``(s + a) >> m`` it is ``a << 3 | m``: there are no more than 4 halvings in a segment.
    """
    bands = stretch.raw.shape[1]
    thread = cuda.grid(1)
    segment, z = thread // bands, thread % bands
    if segment >= steps.shape[0]:
        return
    first = segment * SEGMENT
    last = min(first + SEGMENT, stretch.count)
    count = count_at(code, stretch.first + first)
    added, halvings = np.int64(0), np.int64(0)
    for k in range(first, last):
        s = np.int64(sample_at(stretch, p.columns + k, z))
        if stretch.first + k == 0:
            double = p.zero
            if before > 0 and z > 0:
                double = 2 * np.int64(sample_at(stretch, p.columns, z - 1))
            residuals[k, z] = np.uint16(mapped(p, s, double))
            continue
        double = 2 * s + 1 + errors[k, z]
        double = min(max(double, 2 * p.least), 2 * p.largest + 1)
        residual = mapped(p, s, double)
        residuals[k, z] = np.uint16(residual)
        added += residual << halvings
        if count == code.most:
            added += np.int64(1) << halvings
            halvings += 1
        count = next_count(code, count)
    steps[segment, z] = added << 3 | halvings


@cuda_kernel(lambda: _examples("steps", "row", "table"))
def follow_sums(steps: Any, sums: Any, starts: Any) -> None:
    """Accumulators before each segment, (segments, bands), and after the last one; a thread has a band."""
    z = cuda.grid(1)
    taken = cuda.local.array(_AHEAD, np.int64)
    if z < sums.size:
        total, segments, band = np.int64(sums[z]), np.int32(steps.shape[0]), np.uint32(z)
        for first in range(0, segments, _AHEAD):
            # All are asked for before the first is needed.
            for k in range(_AHEAD):
                taken[k] = steps[np.uint32(min(np.int32(first + k), np.int32(segments - 1))), band]
            for k in range(_AHEAD):
                if first + k < segments:
                    starts[np.uint32(first + k), band] = np.int32(total)
                    total = (total + (taken[k] >> 3)) >> (taken[k] & 7)
        sums[z] = np.int32(total)


@cuda_kernel(lambda: _examples("code", "stretch", "residuals", "table", "codes"))
def find_codewords(code: Any, stretch: Any, residuals: Any, starts: Any, codes: Any) -> None:
    """Codewords (samples, bands): the bits, at most 16, then their number and that of zeros before them."""
    bands = residuals.shape[1]
    thread = cuda.grid(1)
    segment, z = thread // bands, thread % bands
    if segment >= starts.shape[0]:
        return
    first = segment * SEGMENT
    count = count_at(code, stretch.first + first)
    total: Any = np.int64(starts[segment, z])
    for k in range(first, min(first + SEGMENT, stretch.count)):
        residual: Any = np.int64(residuals[k, z])
        zeros, bits, value = np.int64(0), code.depth, residual
        if stretch.first + k > 0:
            low = exponent(code, count, total)
            zeros = residual >> low
            if zeros < code.limit:
                bits, value = low + 1, np.int64(1) << low | residual & ((np.int64(1) << low) - 1)
            else:
                zeros = code.limit
            total = next_sum(code, count, total, residual)
            count = next_count(code, count)
        codes[k, z] = np.uint32(value | bits << _SIZE_AT | zeros << _ZEROS_AT)


@shared
def _code_at(code: Any, codes: Any, columns: Any, place: Any) -> Any:
    """The codeword at a place of the coding order."""
    bands = np.uint32(codes.shape[1])
    group = np.uint32(code.group)
    width, in_row = bands, np.uint32(place)
    row, low = np.uint32(0), np.uint32(0)
    if group < bands:
        whole = np.uint32(columns * bands)
        row = np.uint32(np.uint32(in_row // whole) * columns)
        in_row = np.uint32(in_row % whole)
        low = np.uint32(np.uint32(in_row // np.uint32(columns * group)) * group)
        in_row = np.uint32(in_row - np.uint32(low * columns))
        width = np.uint32(min(group, np.uint32(bands - low)))
    return codes[np.uint32(row + np.uint32(in_row // width)), np.uint32(low + np.uint32(in_row % width))]


@shared
def _bits_of(codeword: Any) -> Any:
    """Length of a codeword."""
    return np.int64((codeword >> _SIZE_AT & 31) + (codeword >> _ZEROS_AT))


@cuda_kernel(lambda: _examples("code", "codes", "long", "bits"))
def add_bits(code: Any, codes: Any, columns: Any, bits: Any) -> None:
    """Bits of the codewords of each block, `_RUN` for each thread."""
    sums = cuda.shared.array(_THREADS, np.int64)
    thread = cuda.threadIdx.x
    first = cuda.grid(1) * _RUN
    total = np.int64(0)
    for place in range(first, min(first + _RUN, codes.size)):
        total += _bits_of(_code_at(code, codes, columns, place))
    sums[thread] = total
    cuda.syncthreads()
    half = _THREADS // 2
    while half > 0:
        if thread < half:
            sums[thread] += sums[thread + half]
        cuda.syncthreads()
        half //= 2
    if thread == 0:
        bits[cuda.blockIdx.x] = sums[0]


@cuda_kernel(lambda: _examples("bits", "bits"))
def place_blocks(bits: Any, end: Any) -> None:
    """Turn bits of blocks into where each begins, from ``end[0]`` on, and that into the end of the last."""
    sums = cuda.shared.array(_ADDERS, np.int64)
    thread = cuda.threadIdx.x
    own = -(-bits.size // _ADDERS)
    first, last = min(thread * own, bits.size), min((thread + 1) * own, bits.size)
    total = np.int64(0)
    for k in range(first, last):
        total += bits[k]
    sums[thread] = total
    cuda.syncthreads()
    if thread == 0:
        at = end[0]
        for k in range(_ADDERS):
            size = sums[k]
            sums[k] = at
            at += size
        end[0] = at
    cuda.syncthreads()
    at = sums[thread]
    for k in range(first, last):
        size = bits[k]
        bits[k] = at
        at += size


@cuda_kernel(lambda: _examples("words"))
def clear_words(words: Any) -> None:
    """Set all to 0."""
    place = cuda.grid(1)
    if place < words.size:
        words[place] = 0


@shared
def _other_end(word: Any) -> Any:
    """A word of 32 bits with its bytes in the other order."""
    return (word >> 24 & 0xFF) | (word & 0xFF) << 24 | (word >> 8 & 0xFF00) | (word & 0xFF00) << 8


@shared
def _add_word(words: Any, place: Any, word: Any) -> None:
    """Set bits of a word of the stream, whose first byte is the highest."""
    if word:
        cuda.atomic.or_(words, place, np.uint32(_other_end(word)))


@cuda_kernel(lambda: _examples("code", "codes", "long", "bits", "words"))
def put_codewords(code: Any, codes: Any, columns: Any, starts: Any, words: Any) -> None:
    """Put codewords into `words`, which are 0, in big-endian order; `starts` is where each block begins."""
    sums = cuda.shared.array((2, _THREADS), np.int64)
    thread = cuda.threadIdx.x
    first = cuda.grid(1) * _RUN
    last = min(first + _RUN, codes.size)
    total = np.int64(0)
    for place in range(first, last):
        total += _bits_of(_code_at(code, codes, columns, place))
    side = 0
    sums[0, thread] = total
    cuda.syncthreads()
    step = 1
    while step < _THREADS:
        more = sums[side, thread - step] if thread >= step else np.int64(0)
        sums[1 - side, thread] = sums[side, thread] + more
        side = 1 - side
        cuda.syncthreads()
        step *= 2
    at = starts[cuda.blockIdx.x] + sums[side, thread] - total
    word, held = at >> 5, np.int64(0)
    for place in range(first, last):
        codeword = np.int64(_code_at(code, codes, columns, place))
        size = codeword >> _SIZE_AT & 31
        at += codeword >> _ZEROS_AT
        if at >> 5 != word:
            _add_word(words, word, held)
            word, held = at >> 5, np.int64(0)
        over = (at & 31) + size - 32
        value = codeword & 0xFFFF
        if over <= 0:
            held |= value << -over
        else:
            _add_word(words, word, held | value >> over)
            word, held = word + 1, value << (32 - over) & 0xFFFFFFFF
        at += size
    if first < last:
        _add_word(words, word, held)


@shared
def _refilled(cursor: Any, ring: Any) -> Any:
    """32 bits more; `ring` is (array, first place, places), and `cursor` knows the word that comes next."""
    held, size, word, following = cursor
    held |= np.uint64(following) << np.uint64(32 - size)
    word = np.int64(word + 1)
    # Asked for now, needed a few codewords later.
    following = np.uint32(ring[0][np.uint32(ring[1] + np.uint32(word & (ring[2] - 1)))])
    return held, np.int32(size + 32), word, following


@shared
def _take_sample(code: Any, room: Any, first: Any, cursor: Any, ring: Any) -> Any:
    """Read a sample of all bands, whose parameters are in `room`; residuals take their place there.

    `cursor` is bits, of which the first is the uppermost, more than 32 and their number, and the place and
    the value of the word of the body that comes next.
    """
    held, size, word, following = cursor
    place, last = np.uint32(ring[1] // 2), np.uint32(ring[1])
    limit, depth = np.int32(0 if first else code.limit), np.int32(code.depth)
    following_k = np.int32(room[place])
    while place < last:
        k, here = following_k, place
        place = np.uint32(place + 1)
        # Behind the last of them are words of the body.
        following_k = np.int32(room[place])
        zeros = np.int32(cuda.clz(np.uint32(held >> np.uint64(32))))
        escapes = zeros >= limit
        skipped, taken = limit if escapes else np.int32(zeros + 1), depth if escapes else k
        held, size = held << np.uint64(skipped), np.int32(size - skipped)
        if size < taken:
            held, size, word, following = _refilled((held, size, word, following), ring)
        # No shift by 32.
        low = np.uint32(np.uint32(held >> np.uint64(33)) >> np.uint32(31 - taken))
        room[here] = np.int32(low) if escapes else np.int32(np.int32(zeros << k) | np.int32(low))
        held, size = held << np.uint64(taken), np.int32(size - taken)
        if size <= 32:
            held, size, word, following = _refilled((held, size, word, following), ring)
    return held, size, word, following


@cuda_kernel(lambda: _examples("code", "words", "row", "bits", "table", "pair", "residuals", "bits", "row"))
def take_codewords(
    code: Any, body: Any, rows: Any, starts: Any, sums: Any, sizes: Any, values: Any, ends: Any, wrong: Any
) -> None:
    """Read the codewords of rows, a warp from each place where that may begin.

    Entry k begins in bit ``starts[k]`` with row ``rows[k]`` and the accumulators ``sums[k]``, int32, and ends
    before the next one, in bit ``ends[k]``. `sizes` are the columns and the words of the body that are held,
    a power of two. `values` is laid out as `plait.dp.bands.gpu_prediction.recovering_kernel` takes it. The
    threads of a warp find the parameters of the codewords of a sample; the first one reads them all.
    """
    room = cuda.shared.array(0, _WORD)
    lane, entry, bands = np.int32(cuda.threadIdx.x), cuda.blockIdx.x, sums.shape[1]
    columns, held_words = sizes
    ring = room, 2 * bands, held_words
    for z in range(lane, bands, WARP):
        room[np.uint32(z)] = sums[entry, z]
    word = starts[entry] >> 5
    filled, gone = word, starts[entry] & 31
    cursor = np.uint64(0), np.int32(0), word, np.uint32(0)
    count = count_at(code, rows[entry] * columns)
    for t in range(rows[entry] * columns, rows[entry + 1] * columns):
        for k in range(filled + lane, word + held_words, WARP):
            read = np.uint32(_other_end(body[k])) if k < body.size else np.uint32(0)
            room[np.uint32(2 * bands + (k & (held_words - 1)))] = np.int32(read)
        filled = word + held_words
        for z in range(lane, bands, WARP):
            room[np.uint32(bands + z)] = exponent(code, count, np.int64(room[np.uint32(z)]))
        synchronize_warp()
        if lane == 0:
            if t == rows[entry] * columns:
                read = np.uint32(room[np.uint32(2 * bands + (word & (held_words - 1)))])
                cursor = _refilled((np.uint64(0), np.int32(0), word, read), ring)
                cursor = cursor[0] << np.uint64(gone), np.int32(cursor[1] - gone), cursor[2], cursor[3]
                cursor = _refilled(cursor, ring)
            cursor = _take_sample(code, room, t == 0, cursor, ring)
        synchronize_warp()
        word = shuffle(cursor[2], 0)
        for z in range(lane, bands, WARP):
            residual = np.int64(room[np.uint32(bands + z)])
            if residual >> code.depth:
                wrong[0] = 1
            values[np.uint32(t + lag_of(z)), np.uint32(z)] = np.uint16(residual)
            if t > 0:
                total = next_sum(code, count, np.int64(room[np.uint32(z)]), residual)
                room[np.uint32(z)] = np.int32(total)
        if t > 0:
            count = next_count(code, count)
    if lane == 0:
        ends[entry] = 32 * cursor[2] - cursor[1]


@cuda_kernel(lambda: _examples("residuals", "long", "residuals"))
def order_samples(values: Any, middle: Any, found: Any) -> None:
    """Samples (samples, bands) of what `recovering_kernel` leaves."""
    thread = cuda.grid(1)
    t, z = thread // found.shape[1], thread % found.shape[1]
    if t < found.shape[0]:
        found[t, z] = np.uint16(values[t + lag_of(z), z] + middle)


def unserved(parameters: StreamParameters) -> str:
    """Why streams with these parameters are not made on a GPU, or nothing."""
    image, predictor = parameters.image, parameters.predictor
    if not isinstance(parameters.coder, SampleAdaptive):
        return "it has the sample-adaptive coder alone"
    if parameters.order != "bi":
        return "its codewords are band-interleaved"
    if predictor.error_limits is not None:
        return "it has lossless streams alone"
    if predictor.representatives is not None or predictor.weight_offsets is not None:
        return "it has neither sample representatives nor offsets of weight exponents"
    if not is_narrow(image, predictor):
        return f"it has samples of up to {NARROW_BITS} bits, and registers wide enough for every sum"
    return ""


class RowsOnGpu:
    """Compresses rows of an image that come in order; `devices` are those to choose from."""

    def __init__(self, parameters: StreamParameters, devices: tuple[int, ...]) -> None:
        image, predictor, coder = parameters.image, parameters.predictor, parameters.coder
        assert isinstance(coder, SampleAdaptive)
        self._image, self._devices = image, devices
        self._p, self._code = prediction_of(image, predictor), adaptive_constants(parameters, coder)
        self._kind = np.int32(SUMS.index(predictor.local_sum))
        self._before, self._directed = predictor.prediction_bands, predictor.mode == "full"
        self._learn = learning_kernel(self._before)
        self._width = -(-image.bands // WARP) * WARP
        self._weights = first_weights(predictor, image.bands, (3 + self._before, self._width))
        self._sums = make_coder(parameters, BodyWriter()).state(None).astype(np.int32)
        self._last_row = np.zeros((image.columns, image.bands), np.uint16)
        #: Rows that are done; bits that are not yet a whole word, and their number.
        self.done, self.held = 0, (0, 0)

    def compress(
        self, rows: NDArray[Any], row: int, step: int, write: Callable[[memoryview], object]
    ) -> bool:
        """Write the whole words that rows, shape (rows, columns, bands), from `row` on, add to the body.

        So many rows at a time: while some are computed, those before are written and the next ones brought.
        Rows are of 8 or 16 bits, signed as the image, or in their range; False if a sample is not. What is
        written is there for as long as `write` runs. `done` is the rows that are written when it ends or
        fails, and the state is that behind them.
        """
        waiting: memoryview | None = None
        self.done = row
        with POOL.slot(self._devices) as slot:
            staged = self._stage(slot, 0, rows[:step], self._last_row)
            try:
                for first in range(0, len(rows), step):
                    samples, raw = staged
                    count = len(raw) - self._image.columns
                    told, codes, starts = self._start(slot, samples, (row + first) * self._image.columns)
                    if first + step < len(rows):
                        part = rows[first + step : first + 2 * step]
                        staged = self._stage(slot, first // step + 1, part, raw[-self._image.columns :])
                    if waiting is not None:
                        write(waiting)
                        waiting = None
                    slot.wait()
                    if told["wrong"][0]:
                        return False
                    waiting, held = self._words(slot, codes, starts, int(told["end"][0]))
                    self._weights, self._sums = told["weights"].copy(), told["sums"].copy()
                    self._last_row, self.held = raw[-self._image.columns :].copy(), held
                    self.done += count // self._image.columns
            finally:
                if waiting is not None:
                    write(waiting)
        return True

    def _stage(
        self, slot: Slot, number: int, rows: NDArray[Any], before: NDArray[np.uint16]
    ) -> tuple[Any, NDArray[np.uint16]]:
        """Samples on their way to the device, and where they come from; two of them may be under way."""
        image, count = self._image, len(rows) * self._image.columns
        name = f"raw {number % 2}"
        raw = slot.pinned(name, (image.columns + count, image.bands), np.uint16)
        raw[: image.columns] = before
        own = raw[image.columns :].view(np.int16 if image.signed else np.uint16)
        copy_rows(rows, own.reshape(rows.shape))
        samples = slot.room(name, raw.shape, np.uint16)
        samples.copy_to_device(raw, stream=slot.stream)
        return samples, raw

    def _start(self, slot: Slot, samples: Any, first: int) -> tuple[dict[str, NDArray[Any]], Any, Any]:
        """Start all but the last step: what it will tell, the codewords, and where those of blocks begin."""
        image, count = self._image, samples.shape[0] - self._image.columns
        # Of signed samples, as bits, the uppermost one says that they are negative.
        flip, middle = (1 << 15, 1 << 15) if image.signed else (0, image.middle)
        stretch = Stretch(samples, np.int32(flip), np.int32(middle), np.int64(first), np.int64(count))
        given = {"wrong": np.zeros(1, np.int32), "weights": self._weights, "sums": self._sums}
        state = {name: slot.upload(name, values) for name, values in given.items()}
        residuals, steps = self._residuals(slot, stretch, state["weights"], state["wrong"])
        codes = self._codewords(slot, stretch, residuals, steps, state["sums"])
        starts, end = self._places(slot, codes)
        told = {name: slot.download(name, one) for name, one in (state | {"end": end}).items()}
        return told, codes, starts

    def state(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """What the CPU goes on from: see `BandWaves.state`, and the accumulators."""
        image, components = self._image, self._before + 3 * self._directed
        near = self._last_row.view(np.int16 if image.signed else np.uint16).astype(np.int64) - image.middle
        first = 0 if self._directed else 3
        weights = self._weights[first : first + max(components, 1), : image.bands].astype(np.int64)
        return near, weights, self._sums.astype(np.int64)

    def _residuals(self, slot: Slot, stretch: Stretch, weights: Any, wrong: Any) -> tuple[Any, Any]:
        """Residuals, and what segments of them do to accumulators."""
        count, bands, width = int(stretch.count), self._image.bands, self._width
        sides = slot.room("sides", (3, count if self._directed else 0, width), np.int32)
        found = Differences(slot.room("central", (count, PAST + width), np.int32), sides)
        blocks = -(-found.central.size // _THREADS)
        find_differences.launch(
            blocks, _THREADS, self._p, self._kind, stretch, found, wrong, stream=slot.stream
        )
        errors = slot.room("errors", -(-count // STEPS) * STEPS * width, np.int32)
        given = word_prediction(self._p), np.int32(stretch.first)
        threads = WARP * gpu_prediction.WARPS
        self._learn.launch(width // WARP, threads, *given, found, weights, errors, stream=slot.stream)
        segments = -(-count // SEGMENT)
        residuals = slot.room("residuals", (count, bands), np.uint16)
        steps = slot.room("steps", (segments, bands), np.int64)
        more = (
            self._p,
            self._code,
            stretch,
            np.int64(self._before),
            errors.reshape(-1, width),
            residuals,
            steps,
        )
        find_residuals.launch(-(-steps.size // _THREADS), _THREADS, *more, stream=slot.stream)
        return residuals, steps

    def _codewords(self, slot: Slot, stretch: Stretch, residuals: Any, steps: Any, sums: Any) -> Any:
        """Codewords, and the accumulators after them."""
        starts = slot.room("starts", steps.shape, np.int32)
        blocks = -(-sums.size // WARP)
        follow_sums.launch(blocks, WARP, steps, sums, starts, stream=slot.stream)
        codes = slot.room("codes", residuals.shape, np.uint32)
        given = self._code, stretch, residuals, starts, codes
        find_codewords.launch(-(-starts.size // _THREADS), _THREADS, *given, stream=slot.stream)
        return codes

    def _places(self, slot: Slot, codes: Any) -> tuple[Any, Any]:
        """Where the codewords of each block begin, and where the last ends, in bits."""
        end = slot.upload("end", np.array([self.held[1]], np.int64))
        starts = slot.room("bits", -(-codes.size // (_THREADS * _RUN)), np.int64)
        given = self._code, codes, np.int64(self._image.columns), starts
        add_bits.launch(starts.size, _THREADS, *given, stream=slot.stream)
        place_blocks.launch(1, _ADDERS, starts, end, stream=slot.stream)
        return starts, end

    def _words(self, slot: Slot, codes: Any, starts: Any, end: int) -> tuple[memoryview, tuple[int, int]]:
        """The whole words up to bit `end`, and what is left."""
        words = slot.room("words", -(-end // 32), np.uint32)
        clear_words.launch(-(-words.size // _THREADS), _THREADS, words, stream=slot.stream)
        given = self._code, codes, np.int64(self._image.columns), starts, words
        put_codewords.launch(starts.size, _THREADS, *given, stream=slot.stream)
        found = slot.download("words", words)
        slot.wait()
        held, bits = self.held
        big = found.view(">u4")
        big[0] |= held << (32 - bits)
        left = end % 32
        rest = (int(big[-1]) >> (32 - left), left) if left else (0, 0)
        return found[: end // 32].view(np.uint8).data, rest


def unserved_back(parameters: StreamParameters) -> str:
    """Why streams with these parameters are not read on a GPU, or nothing."""
    image = parameters.image
    if parameters.predictor.local_sum.startswith("narrow"):
        return "it has no narrow local sums"
    if parameters.interleaving_depth < image.bands:
        return "codewords of all bands of a sample follow one another"
    if image.columns < LEAST_COLUMNS or image.bands > MOST_BANDS:
        return f"it has images of {LEAST_COLUMNS} columns and more, and up to {MOST_BANDS} bands"
    return unserved(parameters)


def decompress_rows(
    parameters: StreamParameters, body: Any, entries: Entries, devices: tuple[int, ...]
) -> NDArray[Any]:
    """Samples, shape (rows, columns, bands), of the stream with this body; BodyEnd if it is damaged."""
    image = parameters.image
    count = image.rows * image.columns
    with POOL.slot(devices) as slot:
        values = slot.room("values", (steps_of(count), -(-image.bands // WARP) * WARP), np.uint16)
        ends, wrong = _start_reading(slot, parameters, body, entries, values)
        _start_recovering(slot, parameters, values)
        found = slot.room("found", (count, image.bands), np.uint16)
        blocks, middle = -(-found.size // _THREADS), np.int64(image.middle)
        order_samples.launch(blocks, _THREADS, values, middle, found, stream=slot.stream)
        samples, told = slot.download("found", found), slot.download("ends", ends)
        bad = slot.download("wrong", wrong)
        slot.wait()
        _check_ends(parameters, entries, told, len(body), bool(bad[0]))
        kept = samples.reshape(image.rows, image.columns, image.bands)
        out = np.empty(kept.shape, sample_type(image))
        copy_rows(kept.view(np.int16 if image.signed else np.uint16), out)
    return out


def _start_reading(
    slot: Slot, parameters: StreamParameters, body: Any, entries: Entries, values: Any
) -> tuple[Any, Any]:
    """Residuals become `values`; where entries end, and whether a residual is wrong."""
    image, size = parameters.image, len(body)
    assert isinstance(parameters.coder, SampleAdaptive)
    raw = slot.pinned("body", -(-size // 4), np.uint32)
    raw[-1:] = 0
    raw.view(np.uint8)[:size] = np.frombuffer(body, np.uint8)
    words = slot.room("body", raw.shape, np.uint32)
    words.copy_to_device(raw, stream=slot.stream)
    rows = np.append(entries.rows, image.rows).astype(np.int32)
    ends = slot.room("ends", len(entries.rows), np.int64)
    wrong = slot.upload("wrong", np.zeros(1, np.int32))
    # A codeword has up to 48 bits.
    held = 1 << (3 * image.bands // 2 + 2 * WARP).bit_length()
    places = slot.upload("rows", rows), slot.upload("starts", entries.positions)
    more = slot.upload("sums", entries.sums), (np.int64(image.columns), np.int64(held)), values, ends, wrong
    given = adaptive_constants(parameters, parameters.coder), words, *places, *more
    room = 4 * (2 * image.bands + held)
    take_codewords.launch(len(entries.rows), WARP, *given, stream=slot.stream, shared=room)
    return ends, wrong


def _start_recovering(slot: Slot, parameters: StreamParameters, values: Any) -> None:
    """Residuals become samples."""
    image, predictor = parameters.image, parameters.predictor
    width, count, before = values.shape[1], image.rows * image.columns, predictor.prediction_bands
    blocks = width // WARP
    edges = slot.room("edges", (blocks, count if blocks > 1 else 1, PAST), np.int32)
    wing = Wing(values, edges, slot.upload("progress", np.zeros(blocks, np.int32)))
    weights = slot.upload("weights", first_weights(predictor, image.bands, (3 + before, width)))
    kind = np.int32(SUMS.index(predictor.local_sum))
    how = kind, predictor.mode == "full", np.int32(image.bands)
    given = word_prediction(prediction_of(image, predictor)), how, np.int32(count), wing, weights
    threads = gpu_prediction.RECOVERING_WARPS * WARP
    recovering_kernel(before).launch(blocks, threads, *given, stream=slot.stream)


def _check_ends(parameters: StreamParameters, entries: Entries, ends: Any, size: int, wrong: bool) -> None:
    """BodyEnd if the entries do not meet, or anything follows the last but what fills its word."""
    if wrong or not np.array_equal(ends[:-1], entries.positions[1:]):
        raise BodyEnd("codewords of some rows end where they should not: the body or its index is damaged")
    left = 8 * size - int(ends[-1])
    if left < 0:
        raise BodyEnd("the body ends before its last sample")
    if left >= 8 * parameters.output_word_size:
        raise BodyEnd(f"{left // 8:,} bytes follow the last sample: they are none of the stream's")


def first_weights(predictor: Predictor, bands: int, shape: tuple[int, int]) -> NDArray[np.int32]:
    """Weights of all bands at the second sample, first those of directional differences."""
    found = np.zeros(shape, np.int32)
    for z in range(bands):
        own = initial_weights(predictor, z)
        found[0 if predictor.mode == "full" else 3 :, z][: len(own)] = own
    return found
