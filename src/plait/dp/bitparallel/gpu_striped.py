"""Striped text and sites on GPUs: the recurrences of the CPU on words of 32 lanes, a word a thread.

A warp looks at a group of 32 words with one pattern. The algebra is a constant, so that complements are part
of other instructions. Words stay 32 bits wide because every value that lives on is made one again; the
compiler then computes with nothing wider. Places in memory are unsigned, so that it need not look whether
they count from the end, and the words that a thread looks at together are 32 apart, which is part of the
instruction that loads them.

A device keeps the last text that it has searched, with its planes: the next patterns find them there.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from plait.devices.cuda import cuda, cuda_kernel
from plait.devices.cuda_devices import Slot, SlotPool, device_facts
from plait.devices.cuda_target import CudaTarget
from plait.devices.target import over_threads
from plait.dp.bitparallel.launches import (
    MARGIN,
    PamSites,
    PatternSets,
    Places,
    SiteBatch,
    SitePlaces,
    TextBatch,
    in_order,
    numbered,
)
from plait.dp.bitparallel.recurrences import (
    LARGEST_SUM,
    ErrorLevels,
    MismatchSum,
    UnitEdits,
    add_eight,
    add_four,
    begin_sum,
    cell,
    count_bit,
    few_levels,
    reached,
)
from plait.dp.bitparallel.striped import COLUMNS, ErrorLimits
from plait.lang.algebras import HALF_BITS, choice, opposite
from plait.lang.compile import shared, types
from plait.lang.warps import WARP

#: A word in shared memory; threads of a block, and places of a thread that looks for PAMs.
_WORD: Final[Any] = types.int32
_THREADS: Final = 128
_PLACES: Final = 16
#: Warps of a block that look at the same words, and blocks after which each looks at several patterns.
_WARPS: Final = 8
_BLOCKS: Final = 4096
_MOST_EACH: Final = 16
#: Columns of a segment, and of mismatches those that a block looks at.
_WIDTH: Final = 512
_CHUNK: Final = 64
#: Hits that there is room for at first, and the longest second dimension of a grid.
_FIRST_ROOM: Final = 1 << 20
_MOST_BLOCKS: Final = (1 << 16) - 1
#: Bytes of shared memory with which enough blocks are at work.
_USUAL_SHARED: Final = 40 << 10
#: Bits that the score of an edit distance has at most.
_SCORE_BITS: Final = 8
#: How far apart the words are that a thread looks at together, and those of a thread in shared memory.
_APART = tuple(np.uint64(WARP * k) for k in range(COLUMNS))
_NEXT: Final = np.uint64(WARP * _WARPS)
_AFTER: Final = np.uint64(2 * WARP * _WARPS)


class DevicePlanes(NamedTuple):
    """Mismatches of letters of a text with sets of letters, in words of 32 lanes; int64, but for `words`.

    `words` int32 are, flat, (groups, sets, columns, `across`): a row of a column is `across` words long, and
    a group `tile`. Words 32 w to 32 w + 31 of a group begin at the w-th of `width` places that a lane looks
    at. Lane l of word k there is the place ``group * by_group + (32 k + l) * by_lane + w * by_column``, if
    there are so many `lanes`.
    """

    words: Any
    tile: Any
    across: Any
    width: Any
    lanes: Any
    by_group: Any
    by_lane: Any
    by_column: Any


class DevicePatterns(NamedTuple):
    """Patterns as places of their letters in the tile of a group.

    `rows` uint32 (patterns * longest,); `lengths`, `limits` int32 (patterns,) as of `PatternRows`.
    """

    rows: Any
    lengths: Any
    limits: Any
    longest: Any


class DeviceHits(NamedTuple):
    """Hits on a device: int64 ``pattern * span + place``, in any order, and their number, int64 (1,).

    `sites` int64 are the places of sites; without any, places are what they are.
    """

    hits: Any
    count: Any
    span: Any
    sites: Any


_NUMBER: Final = np.int64(0)
_PLANES: Final = DevicePlanes(np.zeros(1, np.int32), *[_NUMBER] * 7)
_PATTERNS: Final = DevicePatterns(
    np.zeros(1, np.uint32), np.zeros(1, np.int32), np.zeros(1, np.int32), _NUMBER
)
_HITS: Final = DeviceHits(np.zeros(1, np.int64), np.zeros(1, np.int64), _NUMBER, np.zeros(1, np.int64))
_CODES: Final = np.zeros(1, np.uint8)


@shared
def _wide(place: Any) -> Any:
    """A place, not negative, as an address is wide."""
    return np.uint64(place)


@shared
def _in_ranges(place: Any, ranges: Any) -> Any:
    """Whether one of the ranges, first and last places in order, has a place."""
    low, high = 0, ranges.shape[0]
    while high - low > 1:
        middle = (low + high) >> 1
        if ranges[middle, 0] <= place:
            low = middle
        else:
            high = middle
    return ranges[low, 0] <= place <= ranges[low, 1]


@cuda_kernel(lambda: [(_CODES, np.zeros((1, 2), np.int64), _CODES, *[_NUMBER] * 3, _HITS.hits, _HITS.count)])
def pam_places(
    codes: Any, ranges: Any, pam: Any, most: Any, first: Any, behind: Any, sites: Any, count: Any
) -> None:
    """Append to `sites`, in any order, the sites of the places in `ranges` at which a PAM begins.

    A thread looks at some places, the first one from `first` on; a site is `behind` its PAM's place.
    """
    block = cuda.shared.array(2, np.int64)
    if cuda.threadIdx.x == 0:
        block[0] = 0
    cuda.syncthreads()
    begin = first + cuda.grid(1) * _PLACES
    end = ranges[ranges.shape[0] - 1, 1]
    found = 0
    for k in range(_PLACES):
        bad = 0
        if begin + k <= end:
            for j in range(pam.size):
                if codes[begin + k + j] & pam[j] == 0:
                    bad += 1
            if bad <= most and _in_ranges(begin + k, ranges):
                found |= 1 << k
    at = 0
    if found != 0:
        at = cuda.atomic.add(block, 0, cuda.popc(np.uint32(found)))
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        block[1] = cuda.atomic.add(count, 0, block[0])
    cuda.syncthreads()
    at += block[1]
    for k in range(_PLACES):
        if (found >> k) & 1:
            if at < sites.size:
                sites[at] = begin + k + behind
            at += 1


@shared
def _mark(word: Any, lane: Any, code: Any, letters: Any, k: Any) -> Any:
    """A word without the bit of a lane if its code is in a set."""
    if code & letters[min(k, letters.size - 1)] != 0:
        word = np.int32(word ^ np.int32(np.int32(1) << np.int32(lane)))
    return word


@cuda_kernel(lambda: [(_CODES, _HITS.sites, _NUMBER, _NUMBER, _CODES, _NUMBER, _PLANES)])
def stripe_words(
    codes: Any, starts: Any, by_lane: Any, onward: Any, sets: Any, columns: Any, planes: Any
) -> None:
    """Planes of the text from each of `starts` on, or from its first one on and then every `by_lane` letters.

    A thread makes the words of 32 lanes and a column; threads beside each other those of eight words, which
    are written together, then of neighbouring columns. Lanes that there are not match nothing.
    """
    at = cuda.grid(1)
    column, eight = at // 8 % columns, at // 8 // columns
    word = eight * 8 + at % 8
    group, own = word // planes.across, word % planes.across
    if (group + 1) * planes.tile > planes.words.size:
        return
    used = min(max(planes.lanes - word * 32, 0), 32)
    for k in range(0, sets.size, 5):
        a = b = c = d = e = np.int32(-1)
        for lane in range(used):
            number = word * 32 + lane
            start = starts[0] + number * by_lane if by_lane > 0 else starts[number]
            code = codes[start + onward * column]
            a = _mark(a, lane, code, sets, k)
            b = _mark(b, lane, code, sets, k + 1)
            c = _mark(c, lane, code, sets, k + 2)
            d = _mark(d, lane, code, sets, k + 3)
            e = _mark(e, lane, code, sets, k + 4)
        made = (a, b, c, d, e)
        for m in range(5):
            row = min(k + m, sets.size - 1) * columns + column
            planes.words[group * planes.tile + row * planes.across + own] = made[m]


@shared
def _put(bits: Any, planes: Any, group: Any, word: Any, w: Any, pattern: Any, found: Any) -> None:
    """Append the places of a word of hits."""
    rest = np.uint32(bits)
    at = cuda.atomic.add(found.count, 0, cuda.popc(rest))
    while rest != 0:
        lane = cuda.ffs(rest) - 1
        rest = np.uint32(rest & (rest - np.uint32(1)))
        place = group * planes.by_group + (word * 32 + lane) * planes.by_lane + w * planes.by_column
        if found.sites.size > 0:
            place = found.sites[place]
        if at < found.hits.size:
            found.hits[at] = pattern * found.span + place
        at += 1


@shared
def _put_words(good: Any, planes: Any, group: Any, word: Any, w: Any, pattern: Any, found: Any) -> None:
    """Append the places of hits in words that are looked at together."""
    for k in range(len(good)):
        if good[k] != 0:
            _put(good[k], planes, group, word, w + k, pattern, found)


@shared
def _narrow_sum(total: Any) -> Any:
    a, b, c, d, e, f = total
    return np.int32(a), np.int32(b), np.int32(c), np.int32(d), np.int32(e), np.int32(f)


@shared
def _eight(words: Any, at: Any, apart: Any) -> Any:
    return (
        words[at[0] + apart],
        words[at[1] + apart],
        words[at[2] + apart],
        words[at[3] + apart],
        words[at[4] + apart],
        words[at[5] + apart],
        words[at[6] + apart],
        words[at[7] + apart],
    )


@shared
def _four(words: Any, at: Any, apart: Any) -> Any:
    return words[at[0] + apart], words[at[1] + apart], words[at[2] + apart], words[at[3] + apart]


@shared
def _places_of_four(place: Any, rows: Any, first: Any) -> Any:
    """Places of the words of four letters of a pattern, whose rows begin at `first`."""
    return (
        place + rows[first],
        place + rows[first + np.uint64(1)],
        place + rows[first + np.uint64(2)],
        place + rows[first + np.uint64(3)],
    )


@shared
def _four_sums(alg: Any, words: Any, place: Any, rows: Any, first: Any, length: Any, begin: Any) -> Any:
    """Where a pattern has few enough mismatches, in four words from `place` on; sums begin at `begin`."""
    p = MismatchSum()
    a = begin
    b = begin
    c = begin
    d = begin
    letter = first
    for _ in range(length >> 3):
        at = _places_of_four(place, rows, letter) + _places_of_four(place, rows, letter + np.uint64(4))
        a = _narrow_sum(add_eight(p, alg, a, _eight(words, at, _APART[0])))
        b = _narrow_sum(add_eight(p, alg, b, _eight(words, at, _APART[1])))
        c = _narrow_sum(add_eight(p, alg, c, _eight(words, at, _APART[2])))
        d = _narrow_sum(add_eight(p, alg, d, _eight(words, at, _APART[3])))
        letter += np.uint64(8)
    if length & 4:
        last = _places_of_four(place, rows, letter)
        a = _narrow_sum(add_four(p, alg, a, _four(words, last, _APART[0])))
        b = _narrow_sum(add_four(p, alg, b, _four(words, last, _APART[1])))
        c = _narrow_sum(add_four(p, alg, c, _four(words, last, _APART[2])))
        d = _narrow_sum(add_four(p, alg, d, _four(words, last, _APART[3])))
    return (
        np.int32(opposite(alg, a[5])),
        np.int32(opposite(alg, b[5])),
        np.int32(opposite(alg, c[5])),
        np.int32(opposite(alg, d[5])),
    )


@cuda_kernel(lambda: [(_PLANES, _PATTERNS, _NUMBER, _HITS)])
def mismatch_words(planes: Any, patterns: Any, chunk: Any, found: Any) -> None:
    """Places where patterns begin with few mismatches.

    A block looks at `chunk` places, a multiple of 4, that the lanes of a group look at; a warp of it at some
    of the patterns.
    """
    alg, word = HALF_BITS, cuda.threadIdx.x
    chunks = (planes.width + chunk - 1) // chunk
    group = cuda.blockIdx.x // chunks
    if (group * planes.across + word) * 32 >= planes.lanes:
        return
    first = cuda.blockIdx.x % chunks * chunk
    last = min(first + chunk, planes.width)
    for g in range(cuda.grid(2)[1], patterns.lengths.size, cuda.gridsize(2)[1]):
        begin = _narrow_sum(begin_sum(MismatchSum(), alg, LARGEST_SUM - patterns.limits[g]))
        row, length = _wide(g * patterns.longest), patterns.lengths[g]
        place = _wide(group * planes.tile + first * 32 + word)
        for w in range(first, last, 4):
            good = _four_sums(alg, planes.words, place, patterns.rows, row, length, begin)
            if good[0] | good[1] | good[2] | good[3] != 0:
                _put_words(good, planes, group, word, w, g, found)
            place += np.uint64(128)


@shared
def _cell_below(alg: Any, rows: Any, step: Any, mismatch: Any) -> Any:
    """Differences of a column in a row, up and down, and of the row in it, right and left."""
    y = cell(UnitEdits(), alg, rows[0], rows[1], step[0], step[1], mismatch)
    return (np.int32(y[0]), np.int32(y[1])), (np.int32(y[2]), np.int32(y[3]))


@shared
def _four_columns(alg: Any, words: Any, place: Any, rows: Any, letter: Any, length: Any, state: Any) -> Any:
    """Four columns of a pattern, from the free start to the last row: differences to right and left.

    `state` is the differences up and down of all rows, and the place of this thread's.
    """
    kept, own = state
    a = b = c = d = (alg.zero, alg.zero)
    for _ in range(length):
        at = place + rows[letter]
        beside, a = _cell_below(alg, (kept[own], kept[own + _NEXT]), a, words[at])
        beside, b = _cell_below(alg, beside, b, words[at + _APART[1]])
        beside, c = _cell_below(alg, beside, c, words[at + _APART[2]])
        beside, d = _cell_below(alg, beside, d, words[at + _APART[3]])
        kept[own] = beside[0]
        kept[own + _NEXT] = beside[1]
        own += _AFTER
        letter += np.uint64(1)
    return a, b, c, d


@shared
def _count_step(alg: Any, bit: Any, step: Any) -> Any:
    changed, more, less = count_bit(UnitEdits(), alg, bit, step[0], step[1])
    return np.int32(changed), (np.int32(more), np.int32(less))


@shared
def _count_four(alg: Any, bits: Any, steps: Any, kept: Any, own: Any) -> Any:
    """Add the differences of four columns to a number that is kept: where its highest bit is 0 in each."""
    a, b, c, d = steps
    first = second = third = last = alg.zero
    for _ in range(bits):
        first, a = _count_step(alg, kept[own], a)
        second, b = _count_step(alg, first, b)
        third, c = _count_step(alg, second, c)
        last, d = _count_step(alg, third, d)
        kept[own] = last
        own += _NEXT
    return (
        np.int32(opposite(alg, first)),
        np.int32(opposite(alg, second)),
        np.int32(opposite(alg, third)),
        np.int32(opposite(alg, last)),
    )


@shared
def _begin_edits(alg: Any, length: Any, limit: Any, kept: Any, own: Any, score: Any) -> Any:
    """The column before the text, and the bits of the score, as of `plait.dp.bitparallel.striped`."""
    for _ in range(length):
        kept[own] = alg.one
        kept[own + _NEXT] = alg.zero
        own += _AFTER
    half = 1
    bits = 1
    while half < length - limit or half <= limit:
        half *= 2
        bits += 1
    start = length + half - 1 - limit
    for k in range(bits):
        kept[score] = alg.one if (start >> k) & 1 else alg.zero
        score += _NEXT
    return bits


@cuda_kernel(lambda: [(_PLANES, _PATTERNS, _NUMBER, _HITS)])
def edit_words(planes: Any, patterns: Any, warm: Any, found: Any) -> None:
    """Places where patterns end within few edits; `warm` columns before, a multiple of 4, only lead in.

    A thread goes along the segments of a word; shared memory has two words a letter and the score for each.
    """
    alg, word = HALF_BITS, cuda.threadIdx.x
    kept = cuda.shared.array(0, _WORD)
    group, own = cuda.blockIdx.x, _wide(cuda.threadIdx.y * WARP + word)
    if (group * planes.across + word) * 32 >= planes.lanes:
        return
    score = own + _wide(patterns.longest) * _AFTER
    for g in range(cuda.grid(2)[1], patterns.lengths.size, cuda.gridsize(2)[1]):
        row, length = _wide(g * patterns.longest), patterns.lengths[g]
        bits = _begin_edits(alg, length, patterns.limits[g], kept, own, score)
        place = _wide(group * planes.tile + word)
        for w in range(-warm, planes.width, 4):
            steps = _four_columns(alg, planes.words, place, patterns.rows, row, length, (kept, own))
            good = _count_four(alg, bits, steps, kept, score)
            if w >= 0 and good[0] | good[1] | good[2] | good[3] != 0:
                _put_words(good, planes, group, word, w, g, found)
            place += np.uint64(128)


@shared
def _levels_of_row(
    alg: Any, mismatch: Any, at: Any, levels: Any, beside: Any, kept: Any, threads: Any
) -> None:
    """New levels of one number of extra and of missing letters; `beside` where those with one less begin."""
    p = ErrorLevels()
    diagonal = kept[_wide(at + (levels - 1) * threads)]
    for k in range(levels - 1, -1, -1):
        others = kept[_wide(at + (k - 1) * threads)] if k > 0 else alg.zero
        before = others
        if beside[0] >= 0:
            others = np.int32(choice(alg, others, kept[_wide(beside[0] + k * threads)]))
        if beside[1] >= 0:
            others = np.int32(choice(alg, others, kept[_wide(beside[1] + k * threads)]))
        kept[_wide(at + k * threads)] = np.int32(reached(p, alg, diagonal, mismatch, others))
        diagonal = before


@shared
def _within(alg: Any, limits: Any, mismatches: Any, kept: Any, own: Any, threads: Any) -> Any:
    """Where some level within all limits has been reached."""
    good = alg.zero
    for extra in range(limits.extra + 1):
        for missing in range(limits.missing + 1):
            most = min(mismatches, limits.errors - extra - missing)
            if most >= 0:
                at = (extra * (limits.missing + 1) + missing) * (mismatches + 1) + most
                good = np.int32(choice(alg, good, kept[_wide(own + at * threads)]))
    return good


@cuda_kernel(lambda: [(_PLANES, _PATTERNS, ErrorLimits(*[_NUMBER] * 3), _HITS)])
def level_words(planes: Any, patterns: Any, limits: Any, found: Any) -> None:
    """Sites at which patterns are within limits of mismatches and bulges.

    Shared memory has a word for every level of each thread.
    """
    alg = HALF_BITS
    kept = cuda.shared.array(0, _WORD)
    word, threads = cuda.threadIdx.x, cuda.blockDim.x * cuda.blockDim.y
    group, own = cuda.blockIdx.x, cuda.threadIdx.y * 32 + word
    across = limits.missing + 1
    for g in range(cuda.grid(2)[1], patterns.lengths.size, cuda.gridsize(2)[1]):
        mismatches = patterns.limits[g]
        levels = mismatches + 1
        for w in range(planes.width):
            if (group * planes.across + w * 32 + word) * 32 < planes.lanes:
                for at in range((limits.extra + 1) * across * levels):
                    kept[_wide(own + at * threads)] = alg.one if at // levels % across == 0 else alg.zero
                for i in range(patterns.lengths[g]):
                    row = np.int64(patterns.rows[_wide(g * patterns.longest + i)])
                    row += group * planes.tile + w * 32 + word
                    for extra in range(limits.extra + 1):
                        for missing in range(limits.missing, -1, -1):
                            at = own + (extra * across + missing) * levels * threads
                            one, line = levels * threads, across * levels * threads
                            beside = (at - one if missing > 0 else -1, at - line if extra > 0 else -1)
                            place = max(row + (extra - missing) * planes.across, 0)
                            mismatch = planes.words[_wide(place)]
                            _levels_of_row(alg, mismatch, at, levels, beside, kept, threads)
                good = _within(alg, limits, mismatches, kept, own, threads)
                if good != 0:
                    _put(good, planes, group, word, w, g, found)


@shared
def _level_at(kept: Any, own: Any) -> Any:
    return kept[own], kept[own + _NEXT], kept[own + _AFTER], kept[own + _AFTER + _NEXT]


@shared
def _keep_level(kept: Any, own: Any, new: Any) -> None:
    kept[own] = np.int32(new[0])
    kept[own + _NEXT] = np.int32(new[1])
    kept[own + _AFTER] = np.int32(new[2])
    kept[own + _AFTER + _NEXT] = np.int32(new[3])


@shared
def _next_few_levels(alg: Any, planes: Any, row: Any, levels: Any, kept: Any, own: Any) -> None:
    """Levels after one more letter, which has the words `row`: as of `plait.dp.bitparallel.striped`."""
    across = planes.across
    mismatch = (
        planes.words[_wide(row)],
        planes.words[_wide(max(row - across, 0))],
        planes.words[_wide(row + across)],
    )
    at = own + _wide(levels - 1) * (_AFTER + _AFTER)
    old = _level_at(kept, at)
    for _ in range(levels - 1):
        less = _level_at(kept, at - (_AFTER + _AFTER))
        _keep_level(kept, at, few_levels(ErrorLevels(), alg, old, less, mismatch))
        old = less
        at -= _AFTER + _AFTER
    nothing = (alg.zero, alg.zero, alg.zero, alg.zero)
    _keep_level(kept, at, few_levels(ErrorLevels(), alg, old, nothing, mismatch))


@cuda_kernel(lambda: [(_PLANES, _PATTERNS, ErrorLimits(*[_NUMBER] * 3), _HITS)])
def few_level_words(planes: Any, patterns: Any, limits: Any, found: Any) -> None:
    """As `level_words`, for at most one extra and one missing letter: what they share stays in registers."""
    alg, word = HALF_BITS, cuda.threadIdx.x
    kept = cuda.shared.array(0, _WORD)
    group, own = cuda.blockIdx.x, _wide(cuda.threadIdx.y * WARP + word)
    for g in range(cuda.grid(2)[1], patterns.lengths.size, cuda.gridsize(2)[1]):
        mismatches = patterns.limits[g]
        for w in range(planes.width):
            if (group * planes.across + w * WARP + word) * 32 >= planes.lanes:
                break
            at = own
            for _ in range(mismatches + 1):
                _keep_level(kept, at, (alg.one, alg.zero, alg.one, alg.zero))
                at += _AFTER + _AFTER
            for i in range(patterns.lengths[g]):
                row = np.int64(patterns.rows[_wide(g * patterns.longest + i)])
                row += group * planes.tile + w * WARP + word
                _next_few_levels(alg, planes, row, mismatches + 1, kept, own)
            good = alg.zero
            for extra in range(limits.extra + 1):
                for missing in range(limits.missing + 1):
                    most = min(mismatches, limits.errors - extra - missing)
                    if most >= 0:
                        last = own + _wide(most * 4 + extra * 2 + missing) * _NEXT
                        good = np.int32(choice(alg, good, kept[last]))
            if good != 0:
                _put(good, planes, group, word, w, g, found)


# --- launches ---------------------------------------------------------------------------------------


class _Held:
    """What a device keeps: memory, the codes of the last text or of its share of it, and planes of these.

    `first` is the place of the text's that is `MARGIN` in the codes here. One batch at a time has it.
    """

    def __init__(self) -> None:
        self.slot = Slot()
        self.source: Any = None
        self.share = (0, 0)
        self.planes: tuple[Any, DevicePlanes] | None = None

    def take(self, batch: TextBatch, share: tuple[int, int]) -> None:
        """Bring the codes of some letters of a text to the device, if they are not there."""
        if self.source is batch.codes and self.share == share:
            return
        self.planes = self.source = None
        own = batch.codes[share[0] : share[1] + 2 * MARGIN]
        self.codes = self.slot.room("codes", own.size, np.uint8)
        self.codes.copy_to_device(own, stream=self.slot.stream)
        self.source, self.share = batch.codes, share

    def count(self) -> Any:
        """A number on the device that is 0."""
        return self.slot.upload("count", np.zeros(1, np.int64))

    def number(self, count: Any) -> int:
        """What it has become."""
        found = self.slot.download("count", count)
        self.slot.wait()
        return int(found[0])

    def sites(self, batch: SiteBatch) -> tuple[Any, int]:
        """Sites of a share of a text, on the device, and how many they are."""
        pam, (first, last), shift = batch.sites, self.share, MARGIN - self.share[0]
        if not isinstance(pam, PamSites):
            own = pam[(pam >= first + MARGIN) & (pam < last + MARGIN)] - first
            return self.slot.upload("sites", own), own.size
        ranges = np.clip(pam.ranges, [first, -1], [np.iinfo(np.int64).max, last - 1])
        ranges = ranges[ranges[:, 0] <= ranges[:, 1]] + shift
        if not len(ranges):
            return None, 0
        begin, places = int(ranges[0, 0]), int(ranges[-1, 1] - ranges[0, 0]) + 1
        behind = pam.letters.size if batch.onward == 1 else -1
        room = places // 8 + _THREADS
        while True:
            sites, count = self.slot.room("sites", room, np.int64), self.count()
            how = map(np.int64, (pam.mismatches, begin, behind))
            letters = self.slot.upload("pam", pam.letters)
            lines = self.slot.upload("ranges", ranges)
            grid = -(-places // (_THREADS * _PLACES))
            pam_places.launch(
                grid, _THREADS, self.codes, lines, letters, *how, sites, count, stream=self.slot.stream
            )
            found = self.number(count)
            if found <= room:
                return sites[:found], found
            room = found

    def stripe(
        self, starts: Any, by_lane: int, onward: int, sets: Any, columns: int, planes: DevicePlanes
    ) -> DevicePlanes:
        """Planes with their words, of `lanes` from `starts` on, of columns that are looked at."""
        self.planes = None
        groups, tile = _groups(planes), sets.size * columns * planes.across
        words = self.slot.room("words", groups * tile, np.int32)
        made = DevicePlanes(words, *map(np.int64, planes._replace(tile=tile)[1:]))
        stripe_words.launch(
            -(-groups * planes.across * columns // _THREADS),
            _THREADS,
            self.codes,
            starts,
            *map(np.int64, (by_lane, onward)),
            self.slot.upload("letters", sets),
            np.int64(columns),
            made,
            stream=self.slot.stream,
        )
        return made

    def patterns(self, sets: PatternSets, columns: int, across: int, *, along: bool) -> DevicePatterns:
        """Patterns with the places of their letters; `along`: each letter is a column further on."""
        numbers, lengths, limits = sets.patterns
        rows = (numbers * columns + along * np.arange(numbers.shape[1])) * across
        return DevicePatterns(
            self.slot.upload("rows", rows.ravel().astype(np.uint32)),
            self.slot.upload("lengths", lengths.astype(np.int32)),
            self.slot.upload("limits", limits.astype(np.int32)),
            np.int64(numbers.shape[1]),
        )

    def found(
        self, kernel: Any, shape: Any, *arguments: Any, span: int, sites: Any = None, shared: int = 0
    ) -> Places:
        """What a kernel finds, by pattern and place, with room enough."""
        room = _FIRST_ROOM
        stream = self.slot.stream
        where = self.slot.room("none", 1, np.int64)[:0] if sites is None else sites
        while True:
            hits = DeviceHits(self.slot.room("hits", room, np.int64), self.count(), np.int64(span), where)
            kernel.launch(*shape, *arguments, hits, stream=stream, shared=shared)
            count = self.number(hits.count)
            if count <= room:
                found = np.zeros(count, np.int64)
                if count:
                    hits.hits[:count].copy_to_host(found, stream=stream)
                    self.slot.wait()
                    found.sort()
                return found // span, found % span
            room = count


_HELD: Final = SlotPool(_Held, 1)


def _groups(planes: DevicePlanes) -> int:
    return -(-int(planes.lanes) // (32 * int(planes.across)))


def _shape(groups: int, patterns: int, warps: int = _WARPS) -> tuple[Any, Any]:
    """Blocks and threads for groups and patterns: where blocks are many, a warp has several patterns."""
    warps = min(warps, patterns)
    each = min(max(groups * patterns // (warps * _BLOCKS), 1), _MOST_EACH)
    return (groups, min(-(-patterns // (warps * each)), _MOST_BLOCKS)), (WARP, warps)


def _shares(items: int, devices: int) -> list[tuple[int, int, int]]:
    """Number of a device, and first and last item of its share."""
    edges = [items * k // devices for k in range(devices + 1)]
    return [(k, edges[k], edges[k + 1]) for k in range(devices) if edges[k] < edges[k + 1]]


def _text_planes(
    held: _Held, batch: TextBatch, sets: PatternSets, before: int, behind: int
) -> tuple[DevicePlanes, int]:
    """Planes of the share of a text that a device holds, and the columns of a set."""
    letters = held.share[1] - held.share[0]
    width = -(-min(batch.width, _WIDTH, -(-letters // WARP)) // COLUMNS) * COLUMNS
    columns = before + width + behind
    key = sets.sets.tobytes(), width, columns, before
    if held.planes is None or held.planes[0] != key:
        lanes = -(-letters // width)
        planes = DevicePlanes(None, 0, WARP, width, lanes, 1024 * width, width, 1)
        starts = held.slot.upload("starts", np.array([MARGIN - before]))
        held.planes = key, held.stripe(starts, width, 1, sets.sets, columns, planes)
    return held.planes[1], columns


def mismatch_batch(batch: TextBatch, target: CudaTarget) -> Places:
    """Places where patterns begin with few mismatches."""
    behind = int(batch.lengths.max(initial=0)) + COLUMNS
    sets = numbered(batch, 4)

    def run(share: tuple[int, int, int]) -> Places:
        number, first, last = share
        with _HELD.slot(target.devices[number : number + 1]) as held:
            held.take(batch, (first, last))
            planes, columns = _text_planes(held, batch, sets, 0, behind)
            patterns = held.patterns(sets, columns, WARP, along=True)
            groups = _groups(planes) * -(-int(planes.width) // _CHUNK)
            shape = _shape(groups, batch.lengths.size)
            span = _groups(planes) * int(planes.by_group)
            found = held.found(mismatch_words, shape, planes, patterns, np.int64(_CHUNK), span=span)
        return _inside(found, first, last)

    return _of_shares(batch.letters, target, run)


def edit_batch(batch: TextBatch, target: CudaTarget) -> Places | None:
    """Places where patterns end within few edits; None where a block has not the memory for a column."""
    before = -(-int((batch.lengths + batch.limits).max(initial=0)) // COLUMNS) * COLUMNS
    sets = numbered(batch, 1)
    shared = (2 * sets.patterns.sets.shape[1] + _SCORE_BITS) * WARP * _WARPS * 4
    if shared > _most_shared(target):
        return None

    def run(share: tuple[int, int, int]) -> Places:
        number, first, last = share
        with _HELD.slot(target.devices[number : number + 1]) as held:
            held.take(batch, (first, last))
            planes, columns = _text_planes(held, batch, sets, before, 0)
            patterns = held.patterns(sets, columns, WARP, along=False)
            shape = _shape(_groups(planes), batch.lengths.size)
            span = _groups(planes) * int(planes.by_group)
            how = planes, patterns, np.int64(before)
            found = held.found(edit_words, shape, *how, span=span, shared=shared)
        return _inside(found, first, last)

    return _of_shares(batch.letters, target, run)


def _inside(found: Places, first: int, last: int) -> Places:
    patterns, places = found
    inside = places + first < last
    return patterns[inside], places[inside] + first


def _of_shares(letters: int, target: CudaTarget, run: Any) -> Places:
    shares = _shares(letters, len(target.devices))
    return in_order(over_threads(len(shares), shares, run))


def _most_shared(target: CudaTarget) -> int:
    return min(device_facts(number).shared_per_block for number in target.devices)


def _site_kernel(batch: SiteBatch, most: int) -> tuple[Any, int, int] | None:
    """What compares at sites, the warps of its blocks, and the bytes of shared memory; None if that lacks."""
    limits = batch.limits
    levels = int(batch.text.limits.max(initial=0)) + 1
    if not (limits.extra or limits.missing):
        return mismatch_words, _WARPS, 0
    if limits.extra <= 1 and limits.missing <= 1 and levels * 16 * WARP * _WARPS <= most:
        return few_level_words, _WARPS, levels * 16 * WARP * _WARPS
    line = levels * (limits.extra + 1) * (limits.missing + 1) * WARP * 4
    warps = max(1, min(_WARPS, _USUAL_SHARED // line))
    return (level_words, warps, warps * line) if warps * line <= most else None


def site_batch(batch: SiteBatch, target: CudaTarget) -> SitePlaces | None:
    """Sites at which patterns are within limits; None where a block cannot have the levels."""
    text, limits = batch.text, batch.limits
    chosen = _site_kernel(batch, _most_shared(target))
    if chosen is None:
        return None
    kernel, warps, shared = chosen
    bulges = kernel is not mismatch_words
    sets = numbered(text, 1 if bulges else 4)
    counts = [0] * len(target.devices)

    def run(share: tuple[int, int, int]) -> Places:
        number, first, last = share
        with _HELD.slot(target.devices[number : number + 1]) as held:
            held.take(text, (first, last))
            sites, count = held.sites(batch)
            counts[number] = count
            if not count:
                return np.zeros(0, np.int64), np.zeros(0, np.int64)
            letters, across = sets.patterns.sets.shape[1] + max(limits.extra, int(bulges)), WARP * COLUMNS
            planes = DevicePlanes(None, 0, across, COLUMNS, count, 1024 * COLUMNS, 1, 1024)
            planes = held.stripe(sites, 0, batch.onward, sets.sets, letters, planes)
            patterns = held.patterns(sets, letters, across, along=True)
            how: Any = ErrorLimits(*map(np.int64, limits)) if bulges else np.int64(COLUMNS)
            shape = _shape(_groups(planes), text.lengths.size, warps)
            most = {"span": last - first + 2 * MARGIN, "sites": sites, "shared": shared}
            found = held.found(kernel, shape, planes, patterns, how, **most)
        return found[0], found[1] + first

    places = _of_shares(text.letters, target, run)
    return SitePlaces(*places, sum(counts))
