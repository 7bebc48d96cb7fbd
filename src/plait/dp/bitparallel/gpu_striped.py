"""Striped text and sites on GPUs: the recurrences of the CPU on words of 32 lanes, a word a thread.

A thread looks at one pattern in the columns of 32 segments, or at 32 sites. Words stay 32 bits wide because
every value that lives on is made one again; the compiler then computes with nothing wider.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.devices.cuda import cuda, cuda_kernel
from plait.devices.cuda_devices import on_device, uploaded
from plait.devices.cuda_target import CudaTarget
from plait.devices.target import over_threads
from plait.dp.bitparallel.launches import (
    LONGEST,
    MARGIN,
    PatternSets,
    Places,
    SiteBatch,
    TextBatch,
    in_order,
    numbered,
)
from plait.dp.bitparallel.recurrences import (
    LARGEST_SUM,
    ErrorLevels,
    MismatchSum,
    UnitEdits,
    add_four,
    begin_sum,
    cell,
    count_bit,
    reached,
)
from plait.dp.bitparallel.striped import ErrorLimits, PatternRows
from plait.lang.algebras import HALF_BITS, choice, opposite
from plait.lang.compile import shared

_THREADS: Final = 128
#: Columns of a segment, and hits that there is room for at first.
_WIDTH: Final = 256
_FIRST_ROOM: Final = 1 << 16
#: Rows of a thread's memory: of edits two a letter, of levels as many as there are.
_ROWS: Final = 128


class DevicePlanes(NamedTuple):
    """As `plait.dp.bitparallel.striped.Planes`, with int32 words, (columns * sets, words)."""

    words: Any
    sets: Any
    step: Any
    width: Any
    by_lane: Any
    by_column: Any


class DeviceHits(NamedTuple):
    """Hits on a device: int64 ``pattern * span + place``, in any order, and their number, int64 (1,)."""

    hits: Any
    count: Any
    span: Any


def _planes() -> DevicePlanes:
    number = np.int64(0)
    return DevicePlanes(np.zeros((1, 1), np.int32), number, number, number, number, number)


def _patterns() -> PatternRows:
    return PatternRows(np.zeros((1, 1), np.int32), np.zeros(1, np.int32), np.zeros(1, np.int32))


def _hits() -> DeviceHits:
    return DeviceHits(np.zeros(1, np.int64), np.zeros(1, np.int64), np.int64(0))


def _stripe_examples() -> list[tuple[Any, ...]]:
    starts, words = np.zeros((1, 1), np.int64), np.zeros((1, 1), np.int32)
    return [(np.zeros(1, np.uint8), starts, np.int64(1), np.int64(1), np.zeros(1, np.uint8), words)]


@cuda_kernel(_stripe_examples)
def stripe_words(codes: Any, starts: Any, onward: Any, columns: Any, sets: Any, words: Any) -> None:
    """Planes of the text from each of `starts` on, (groups, lanes), as `plait.dp.bitparallel.striped.stripe`.

    A thread makes the words of 32 lanes and a column.
    """
    word, at = cuda.grid(2)
    if word < words.shape[1] and at < starts.shape[0] * columns:
        group, column = at // columns, at % columns
        for k in range(sets.size):
            bits = np.int32(0)
            for lane in range(32):
                code = codes[starts[group, word * 32 + lane] + onward * column]
                if code & sets[k] == 0:
                    bits = np.int32(bits | (np.int32(1) << np.int32(lane)))
            words[at * sets.size + k, word] = bits


@shared
def _put(bits: Any, planes: Any, word: Any, pattern: Any, column: Any, found: Any) -> None:
    """Append the places of a word of hits."""
    for lane in range(32):
        if (bits >> lane) & 1:
            at = cuda.atomic.add(found.count, 0, 1)
            if at < found.hits.size:
                place = (word * 32 + lane) * planes.by_lane + column * planes.by_column
                found.hits[at] = pattern * found.span + place


def _mismatch_examples() -> list[tuple[Any, ...]]:
    return [(HALF_BITS, _planes(), _patterns(), _hits())]


@cuda_kernel(_mismatch_examples)
def mismatch_words(alg: Any, planes: Any, patterns: Any, found: Any) -> None:
    """Places where patterns begin with few mismatches; a thread a word and pattern."""
    word, g = cuda.grid(2)
    if word >= planes.words.shape[1] or g >= patterns.lengths.size:
        return
    p = MismatchSum()
    words = planes.words
    for w in range(planes.width):
        at = w * planes.step
        a, b, c, d, e, f = begin_sum(p, alg, LARGEST_SUM - patterns.limits[g])
        for i in range(0, patterns.lengths[g], 4):
            x = (
                words[at + i * planes.sets + patterns.sets[g, i], word],
                words[at + (i + 1) * planes.sets + patterns.sets[g, i + 1], word],
                words[at + (i + 2) * planes.sets + patterns.sets[g, i + 2], word],
                words[at + (i + 3) * planes.sets + patterns.sets[g, i + 3], word],
            )
            y = add_four(p, alg, (a, b, c, d, e, f), x)
            a, b, c = np.int32(y[0]), np.int32(y[1]), np.int32(y[2])
            d, e, f = np.int32(y[3]), np.int32(y[4]), np.int32(y[5])
        good = np.int32(opposite(alg, f))
        if good != 0:
            _put(good, planes, word, g, w, found)


@shared
def _column(alg: Any, planes: Any, at: Any, word: Any, sets: Any, length: Any, state: Any) -> Any:
    """A column of a pattern, from the free start down to the last row: where distances grow and shrink."""
    p = UnitEdits()
    right = alg.zero
    left = alg.zero
    for i in range(length):
        mismatch = planes.words[at + sets[i], word]
        up, down, more, less = cell(p, alg, state[2 * i], state[2 * i + 1], right, left, mismatch)
        state[2 * i] = np.int32(up)
        state[2 * i + 1] = np.int32(down)
        right = np.int32(more)
        left = np.int32(less)
    return right, left


def _edit_examples() -> list[tuple[Any, ...]]:
    return [(HALF_BITS, _planes(), _patterns(), np.int64(0), _hits())]


@cuda_kernel(_edit_examples)
def edit_words(alg: Any, planes: Any, patterns: Any, warm: Any, found: Any) -> None:
    """Places where patterns end within few edits; the first `warm` columns only lead in."""
    word, g = cuda.grid(2)
    if word >= planes.words.shape[1] or g >= patterns.lengths.size:
        return
    p = UnitEdits()
    length, limit = patterns.lengths[g], patterns.limits[g]
    state = cuda.local.array(_ROWS, np.int32)
    score = cuda.local.array(8, np.int32)
    for i in range(length):
        state[2 * i] = alg.one
        state[2 * i + 1] = alg.zero
    half = 1
    bits = 1
    while half < length - limit or half <= limit:
        half *= 2
        bits += 1
    start = length + half - 1 - limit
    for k in range(bits):
        score[k] = alg.one if (start >> k) & 1 else alg.zero
    for w in range(planes.width):
        more, less = _column(alg, planes, w * planes.step, word, patterns.sets[g], length, state)
        last = alg.zero
        for k in range(bits):
            changed, carried, borrowed = count_bit(p, alg, score[k], more, less)
            last = np.int32(changed)
            more = np.int32(carried)
            less = np.int32(borrowed)
            score[k] = last
        good = np.int32(opposite(alg, last))
        if good != 0 and w >= warm:
            _put(good, planes, word, g, w - warm, found)


def _level_examples() -> list[tuple[Any, ...]]:
    number = np.int64(0)
    return [(HALF_BITS, _planes(), _patterns(), ErrorLimits(number, number, number), _hits())]


@shared
def _levels_of_row(alg: Any, mismatch: Any, at: Any, levels: Any, beside: Any, state: Any) -> None:
    """New levels of one number of extra and of missing letters; `beside` where those with one less begin."""
    p = ErrorLevels()
    diagonal = state[at + levels - 1]
    for k in range(levels - 1, -1, -1):
        others = state[at + k - 1] if k > 0 else alg.zero
        before = others
        if beside[0] >= 0:
            others = np.int32(choice(alg, others, state[beside[0] + k]))
        if beside[1] >= 0:
            others = np.int32(choice(alg, others, state[beside[1] + k]))
        state[at + k] = np.int32(reached(p, alg, diagonal, mismatch, others))
        diagonal = before


@cuda_kernel(_level_examples)
def level_words(alg: Any, planes: Any, patterns: Any, limits: Any, found: Any) -> None:
    """Sites at which patterns are within limits of mismatches and bulges; levels within a thread's memory."""
    word, g = cuda.grid(2)
    if word >= planes.words.shape[1] or g >= patterns.lengths.size:
        return
    mismatches = patterns.limits[g]
    levels, across = mismatches + 1, limits.missing + 1
    state = cuda.local.array(_ROWS, np.int32)
    for w in range(planes.width):
        for at in range((limits.extra + 1) * across * levels):
            state[at] = alg.one if at // levels % across == 0 else alg.zero
        for i in range(patterns.lengths[g]):
            row = w * planes.step + i * planes.sets + patterns.sets[g, i]
            for extra in range(limits.extra + 1):
                for missing in range(limits.missing, -1, -1):
                    at = (extra * across + missing) * levels
                    beside = (at - levels if missing > 0 else -1, at - across * levels if extra > 0 else -1)
                    mismatch = planes.words[max(row + (extra - missing) * planes.sets, 0), word]
                    _levels_of_row(alg, mismatch, at, levels, beside, state)
        good = alg.zero
        for extra in range(limits.extra + 1):
            for missing in range(across):
                most = min(mismatches, limits.errors - extra - missing)
                if most >= 0:
                    good = np.int32(choice(alg, good, state[(extra * across + missing) * levels + most]))
        if good != 0:
            _put(good, planes, word, g, w, found)


# --- launches ---------------------------------------------------------------------------------------


def _blocks(words: int, others: int, threads: int) -> tuple[tuple[int, int], tuple[int, int]]:
    return (-(-words // threads), others), (threads, 1)


class _OnDevice:
    """A text and patterns on the current device."""

    def __init__(self, text: TextBatch, multiple: int) -> None:
        self.sets: PatternSets = numbered(text, multiple)
        rows = self.sets.patterns
        narrow = (values.astype(np.int32) for values in rows)
        self.patterns = PatternRows(*(uploaded(values) for values in narrow))
        self.codes, self.numbers = uploaded(text.codes), uploaded(self.sets.sets)

    def planes(self, starts: NDArray[np.int64], onward: int, columns: int, *, sites: bool) -> DevicePlanes:
        """Planes from each of `starts`, (groups, lanes), on."""
        groups, lanes = starts.shape
        count = self.sets.sets.size
        words = cuda.device_array((groups * columns * count, lanes // 32), np.int32)
        grid, block = _blocks(lanes // 32, groups * columns, min(_THREADS, lanes // 32))
        # The second dimension of a grid is short.
        assert grid[1] < 1 << 16
        where = uploaded(starts)
        stripe_words.launch(
            grid, block, self.codes, where, np.int64(onward), np.int64(columns), self.numbers, words
        )
        step = columns * count if sites else count
        width, by_lane, by_column = (groups, 1, lanes) if sites else (columns, columns, 1)
        return DevicePlanes(words, *map(np.int64, (count, step, width, by_lane, by_column)))

    def found(self, kernel: Any, planes: DevicePlanes, span: int, *how: Any) -> Places:
        """What a kernel finds, with room enough."""
        room = _FIRST_ROOM
        words = planes.words.shape[1]
        grid, block = _blocks(words, self.patterns.lengths.size, min(_THREADS, words))
        while True:
            hits = DeviceHits(
                cuda.device_array(room, np.int64), uploaded(np.zeros(1, np.int64)), np.int64(span)
            )
            kernel.launch(grid, block, HALF_BITS, planes, self.patterns, *how, hits)
            count = int(hits.count.copy_to_host()[0])
            if count <= room:
                found = np.sort(hits.hits.copy_to_host()[:count])
                return found // span, found % span
            room = count


def _shares(items: int, devices: int) -> list[tuple[int, int, int]]:
    """Number of a device, and first and last item of its share."""
    edges = [items * k // devices for k in range(devices + 1)]
    return [(k, edges[k], edges[k + 1]) for k in range(devices) if edges[k] < edges[k + 1]]


def _in_text(
    kernel: Any, batch: TextBatch, target: CudaTarget, *, multiple: int, before: int, behind: int
) -> Places:
    def run(share: tuple[int, int, int]) -> Places:
        number, first, last = share
        with on_device(target.devices[number]):
            search = _OnDevice(batch, multiple)
            width = min(batch.width, _WIDTH, -(-(last - first) // 32))
            lanes = -(-(last - first) // (32 * width)) * 32
            columns = before + width + behind
            starts = MARGIN + first - before + np.arange(lanes, dtype=np.int64)[None] * width
            np.minimum(starts, batch.codes.size - columns, out=starts)
            planes = search.planes(starts, 1, columns, sites=False)
            planes = planes._replace(width=np.int64(before + width), by_lane=np.int64(width))
            how = (np.int64(before),) if before else ()
            patterns, places = search.found(kernel, planes, lanes * width, *how)
        inside = places + first < last
        return patterns[inside], places[inside] + first

    shares = _shares(batch.letters, len(target.devices))
    return in_order(over_threads(len(shares), shares, run))


def mismatch_batch(batch: TextBatch, target: CudaTarget) -> Places:
    """Places where patterns begin with few mismatches."""
    behind = int(batch.lengths.max(initial=0)) + 4
    return _in_text(mismatch_words, batch, target, multiple=4, before=0, behind=behind)


def edit_batch(batch: TextBatch, target: CudaTarget) -> Places:
    """Places where patterns end within few edits."""
    before = int((batch.lengths + batch.limits).max(initial=0))
    return _in_text(edit_words, batch, target, multiple=1, before=before, behind=0)


def site_batch(batch: SiteBatch, target: CudaTarget) -> Places | None:
    """Sites at which patterns are within limits; None where a thread's memory cannot hold the levels."""
    text, sites, onward, limits = batch
    bulges = bool(limits.extra or limits.missing)
    levels = int(text.limits.max(initial=0)) + 1
    if bulges and levels * (limits.extra + 1) * (limits.missing + 1) > _ROWS:
        return None
    groups_of = 32 * 1024

    def run(share: tuple[int, int, int]) -> Places:
        number, first, last = share
        with on_device(target.devices[number]):
            search = _OnDevice(text, 1 if bulges else 4)
            columns = search.sets.patterns.sets.shape[1] + limits.extra
            lanes = min(groups_of, -(-(last - first) // 32) * 32)
            groups = -(-(last - first) // lanes)
            starts = np.full(groups * lanes, 2 * LONGEST, np.int64)
            starts[: last - first] = sites[first:last]
            planes = search.planes(starts.reshape(groups, lanes), onward, columns, sites=True)
            span = groups * lanes
            if not bulges:
                patterns, places = search.found(mismatch_words, planes, span)
            else:
                most = ErrorLimits(*map(np.int64, limits))
                patterns, places = search.found(level_words, planes, span, most)
        return patterns, places + first

    shares = _shares(sites.size, len(target.devices))
    return in_order(over_threads(len(shares), shares, run))
