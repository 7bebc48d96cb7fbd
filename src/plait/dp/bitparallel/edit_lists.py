"""Lists of pairs of unit costs: a pair in each lane, or one after the other where they are few or long."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.devices.target import Problem, Target, interpreted, over_threads
from plait.dp.bitparallel.edits import (
    AHEAD,
    LETTER_BITS,
    PLANES,
    EditBatch,
    EditPairs,
    begin_walk,
    diagonals,
    differ,
    edit_memory,
    edit_pairs_kernel,
    fill_word,
    put_pair,
    spread,
    walk_words,
)
from plait.dp.bitparallel.recurrences import EditColumns, column
from plait.dp.pairs.lists import PairResults, lane_rows, offer, read_only, shares
from plait.dp.pairs.traceback import close_at_border
from plait.lang.compile import bound, kernel, shared
from plait.lang.lanes import (
    equal,
    greater,
    host_lanes,
    load,
    population,
    select,
    splat,
    store,
    width_of,
)

#: Residues of sequences of single pairs for which memory is kept, and most kinds of such memory.
KEPT_SIZES: Final = (1 << 10, 1 << 12, 1 << 14)
_MOST_IDLE: Final = 8
#: Words of choices of pairs side by side, two in each lane for 64 cells.
_MOST_WORDS: Final = 1 << 17
#: Blocks of rows of pairs side by side that are not worth a limit, and columns after which it is looked at;
#: columns after which blocks that are near are looked for.
_UNLIMITED: Final = 2
_LOOK: Final = 1024
_NEAR: Final = 32
#: More than any distance.
_FAR: Final = 1 << 40


class GroupWords(NamedTuple):
    """Choices of the pair in one lane: `offsets` are where columns begin, as if from the first word on."""

    row: Any
    column: Any
    lane: Any
    offsets: Any

    @staticmethod
    def word_of(place: GroupWords, row: Any, column: Any) -> Any:
        at = column - place.column
        return place.offsets[at] + 2 * ((row - place.row) // 64), place.lane


class GroupMemory(NamedTuple):
    """Memory of one thread for pairs side by side, a lane each, which all end in the last row and column.

    `planes` int64 (blocks * `PLANES`, lanes): words of the rows, see `fill_word`; `letters` int64 (words of
    columns * `PLANES`, lanes): the same of the columns. `state` int64 (2 * blocks, lanes): steps down and up
    of the rows; `counts` int64 (blocks, lanes): rows that begin with a step down. `lanes` int64 (5, lanes):
    where the columns begin, the distance below the last column, the least one below any, the column of that,
    and memory. `pairs` int64 (lanes,) are numbers of pairs. `offsets` int64 (columns,): where columns would
    begin in `bits` if all blocks were there; the others are as in `EditMemory`.
    """

    planes: Any
    letters: Any
    state: Any
    counts: Any
    lanes: Any
    pairs: Any
    offsets: Any
    bits: Any
    runs: Any
    cursor: Any
    best: Any


@shared
def _fill_group(task: Any, memory: Any, blocks: int, columns: int) -> None:
    for lane in range(memory.pairs.size):
        k = memory.pairs[lane]
        place, rows = task.query_starts[k], task.query_starts[k + 1] - task.query_starts[k]
        goal, size = task.target_starts[k], task.target_starts[k + 1] - task.target_starts[k]
        how = task.bits, bool(task.free.target_start)
        for b in range(blocks):
            first = 64 * (b - blocks) + rows
            fill_word(memory.planes, b * PLANES, lane, task.query, place, first, how)
            memory.counts[b, lane] = 0 if task.free.query_start else 64 - min(max(-first, 0), 64)
        memory.lanes[0, lane] = columns - size
        words = (columns - 1) // 64 + 1
        for w in range(words):
            first = 64 * (w - words) + size
            fill_word(memory.letters, w * PLANES, lane, task.target, goal, first, how)


@shared
def _begin_block(lanes: Any, task: Any, memory: Any, b: int) -> Any:
    """Steps down left of the columns."""
    inside = load(lanes, memory.planes, b * PLANES + LETTER_BITS, 0)
    return inside - inside if task.free.query_start else inside


@shared
def _rows_above(lanes: Any, memory: Any, zero: Any, blocks: int) -> Any:
    """Rows of the first blocks that begin with a step down."""
    rows = zero
    for b in range(blocks):
        rows = rows + load(lanes, memory.counts, b, 0)
    return rows


@shared
def _begin_lanes(lanes: Any, task: Any, memory: Any, blocks: Any, j: int, found: Any) -> Any:
    """Let some lanes begin with column j; what is known of all lanes, see `_sweep_group`, then.

    `blocks` are those that have been reached, and all.
    """
    value, least, where = found
    number = splat(lanes, j)
    begun = equal(load(lanes, memory.lanes, 0, 0), number)
    for b in range(blocks[0]):
        up = load(lanes, memory.state, 2 * b, 0)
        down = load(lanes, memory.state, 2 * b + 1, 0)
        store(lanes, memory.state, 2 * b, 0, select(begun, _begin_block(lanes, task, memory, b), up))
        store(lanes, memory.state, 2 * b + 1, 0, select(begun, up - up, down))
    value = select(begun, _rows_above(lanes, memory, number - number, blocks[0]), value)
    least = select(begun, _rows_above(lanes, memory, number - number, blocks[1]), least)
    return value, least, select(begun, splat(lanes, j - 1), where)


@shared
def _apart(lanes: Any, p: Any, task: Any, memory: Any, b: int, letters: Any, known: int) -> Any:
    """Where letters of a block are others; from the block `known` on all rows exist."""
    base = b * PLANES
    apart = differ(task.kind, lanes, memory.planes, base, letters)
    if b < known:
        apart = apart | (load(lanes, memory.planes, base + LETTER_BITS, 0) ^ p.full)
        apart = apart & (load(lanes, memory.planes, base + LETTER_BITS + 1, 0) ^ p.full)
    return apart


@shared
def _visit_columns(
    lanes: Any, p: Any, task: Any, memory: Any, letters: Any, blocks: Any, keep: bool, used: int
) -> Any:
    """The blocks of a column, or with a third of `letters` of two, which do not wait for each other.

    From the first of `blocks` to before the last; from the third on all rows exist. Returns the steps to the
    right below them.
    """
    less = p.unit - p.unit
    more = p.full if blocks[0] > 0 or not task.free.target_start else less
    next_more, next_less = more, less
    one, other, two = letters
    beside = 2 * (blocks[1] - blocks[0])
    for b in range(blocks[0], blocks[1]):
        up, down = load(lanes, memory.state, 2 * b, 0), load(lanes, memory.state, 2 * b + 1, 0)
        apart = _apart(lanes, p, task, memory, b, one, blocks[2])
        up, down, more, less, aside, right = column(p, up, down, apart, more, less)
        if keep:
            store(lanes, memory.bits, used, 0, aside)
            store(lanes, memory.bits, used + 1, 0, right)
        if two:
            apart = _apart(lanes, p, task, memory, b, other, blocks[2])
            up, down, next_more, next_less, aside, right = column(p, up, down, apart, next_more, next_less)
            if keep:
                store(lanes, memory.bits, used + beside, 0, aside)
                store(lanes, memory.bits, used + beside + 1, 0, right)
        store(lanes, memory.state, 2 * b, 0, up)
        store(lanes, memory.state, 2 * b + 1, 0, down)
        used += 2
    return less - more, next_less - next_more


@shared
def _least(memory: Any, lane: int, blocks: Any) -> int:
    """The least distance in the column at hand of a lane, of which that below is known."""
    value = memory.lanes[1, lane]
    least = value
    for b in range(blocks[1] - 1, blocks[0] - 1, -1):
        up, down = memory.state[2 * b, lane], memory.state[2 * b + 1, lane]
        for r in range(63, -1, -1):
            value += ((down >> r) & 1) - ((up >> r) & 1)
            least = min(least, value)
    return int(least)


@shared
def _again(memory: Any, blocks: Any, near: Any, j: int, size: Any, limit: int) -> int:
    """What the largest distance may come to if the limit is seen not to hold before column j, else 0.

    Where no lane has a block within the limit, all are far.
    """
    none, columns = near[0] >= near[1], size[1]
    if not none and (limit >= size[3] or j % _LOOK or j >= columns - _LOOK):
        return 0
    likely = 0
    for lane in range(memory.pairs.size):
        start = memory.lanes[0, lane]
        likely = max(likely, _least(memory, lane, blocks) * (columns - start) // (j - start))
        memory.lanes[1, lane] = _FAR if none else memory.lanes[1, lane]
    return max(likely * 17 // 16, 1) if none or likely * 15 // 16 > limit else 0


@shared
def _blocks_near(lanes: Any, memory: Any, blocks: Any, j: int, size: Any, limit: int) -> Any:
    """First block, and that behind the last, for the columns from j on until the next look.

    Others hold no cell of which the distance and the diagonals that are left to the end come within the limit
    (Ukkonen, Inf Control 64:100, 1985), given that no others than `blocks` did so far.
    """
    first, last = blocks[1], blocks[1]
    store(lanes, memory.lanes, 4, 0, load(lanes, memory.lanes, 1, 0))
    for b in range(blocks[1] - 1, blocks[0] - 1, -1):
        least = memory.lanes[4, 0]
        for lane in range(width_of(lanes)):
            below = memory.lanes[4, lane]
            least = min(least, below)
            steps = population(memory.state[2 * b, lane]) - population(memory.state[2 * b + 1, lane])
            memory.lanes[4, lane] = below - steps
        beyond = size[1] - j - 64 * (size[0] - 1 - b)
        if least - beyond <= limit:
            first = b
        # In a row the distance falls by one a column at the most, and so does what is left.
        if b == blocks[1] - 1 and least + beyond <= limit + 2 * _NEAR:
            last = min(last + 1, size[0])
    return first, last


@shared
def _begin_blocks(lanes: Any, task: Any, memory: Any, blocks: int) -> int:
    """Set the state left of all columns; returns the last column with which a pair begins."""
    for b in range(blocks):
        begun = _begin_block(lanes, task, memory, b)
        store(lanes, memory.state, 2 * b, 0, begun)
        store(lanes, memory.state, 2 * b + 1, 0, begun - begun)
    latest = 0
    for lane in range(memory.pairs.size):
        latest = max(latest, memory.lanes[0, lane])
    return int(latest)


@shared
def _lowest(memory: Any) -> int:
    """The least of the distances of all lanes below the last block."""
    least = memory.lanes[1, 0]
    for lane in range(1, memory.pairs.size):
        least = min(least, memory.lanes[1, lane])
    return int(least)


@shared
def _blocks_within(lanes: Any, task: Any, memory: Any, reached: int, fewest: int, most: int, cut: int) -> Any:
    """Leave blocks, but for the fewest, in which all distances are above `cut`.

    Returns how many there are, and how many of `most` the next two columns have.
    """
    fewest = min(fewest, most)
    below = _lowest(memory)
    while reached > fewest and below > cut + 64:
        reached -= 1
        up, down = 2 * reached, 2 * reached + 1
        for lane in range(memory.pairs.size):
            steps = population(memory.state[up, lane]) - population(memory.state[down, lane])
            memory.lanes[1, lane] -= steps
        begun = _begin_block(lanes, task, memory, reached)
        store(lanes, memory.state, up, 0, begun)
        store(lanes, memory.state, down, 0, begun - begun)
        below = _lowest(memory)
    return reached, min(most, max(fewest, reached + 1 if below <= cut + 1 else reached))


@shared
def _step_right(lanes: Any, step: Any, j: int, counts: bool, found: Any) -> Any:
    """What is known of all lanes, see `_sweep_group`, after the step of column j, which may not count."""
    value, least, where = found
    value = value + step
    if counts:
        better = greater(least, value)
        least, where = select(better, value, least), select(better, splat(lanes, j), where)
    return value, least, where


@shared
def _sweep_group(
    lanes: Any, task: Any, memory: Any, size: Any, band: Any, limit: int, cut: int, keep: bool
) -> int:
    """Visit the diagonals of a band, column by column; ``memory.lanes`` gets what is found.

    `size` is blocks, columns, the block from which on all rows exist, and the largest limit; `band` lowest
    and highest diagonal. Of fixed ends, only blocks near enough to them are visited; returns 0, or a larger
    limit if the one that is given is seen not to hold. Where both ends of the targets are free, blocks are
    left in which all distances are above `cut` (Ukkonen, J Algorithms 6:132, 1985). What is found is true up
    to either limit, and else larger; -1 is none.
    """
    p = EditColumns(splat(lanes, 1), splat(lanes, 63), splat(lanes, -1))
    latest = _begin_blocks(lanes, task, memory, size[0])
    # A pair that has not begun lets blocks neither be left nor come.
    found = splat(lanes, _FAR if cut >= 0 else 0), p.unit, p.unit
    store(lanes, memory.lanes, 1, 0, found[0])
    reached, first, used, j = 0, 0, 0, 0
    near = (0, size[0])
    # The last column has the highest bit of a word.
    ahead = -size[1] % 64
    while j < size[1]:
        two = j > latest and j % 2 == 0 and j + 1 < size[1]
        if cut >= 0:
            # Where pairs begin, all rows that are within.
            fewest = size[2] + cut // 64 + 1 if j <= latest else 1
            reached, coming = _blocks_within(lanes, task, memory, reached, fewest, size[0], cut)
        else:
            if limit >= 0 and j > latest and j % _NEAR == 0:
                near = _blocks_near(lanes, memory, (first, reached), j, size, limit)
                again = _again(memory, (first, reached), near, j, size, limit)
                if again:
                    return again
            first = max(near[0], (j - band[1]) // 64)
            coming = max(first + 1, min(near[1], (j + int(two) - band[0]) // 64 + 1))
        found = load(lanes, memory.lanes, 1, 0), found[1], found[2]
        while reached < coming:
            found = found[0] + load(lanes, memory.counts, reached, 0), found[1], found[2]
            reached += 1
        blocks, counts = (first, coming, size[2]), reached == size[0]
        if j <= latest:
            found = _begin_lanes(lanes, task, memory, (reached, size[0]), j, found)
        one = spread(task.kind, lanes, p, memory.letters, j + ahead)
        other = spread(task.kind, lanes, p, memory.letters, j + ahead + 1) if two else one
        steps = _visit_columns(lanes, p, task, memory, (one, other, two), blocks, keep, used)
        for k in range(2 if two else 1):
            if keep:
                memory.offsets[j] = used - 2 * first
            found = _step_right(lanes, steps[k], j, counts, found)
            used += 2 * (coming - first)
            j += 1
        store(lanes, memory.lanes, 1, 0, found[0])
    if reached < size[0]:
        store(lanes, memory.lanes, 1, 0, splat(lanes, _FAR))
    store(lanes, memory.lanes, 2, 0, found[1])
    store(lanes, memory.lanes, 3, 0, found[2])
    return 0


@shared
def _band_of(task: Any, memory: Any, size: Any, limit: int) -> Any:
    """Lowest and highest diagonal, counted from the last cell of all pairs, for a limit."""
    low, high = 64 * size[0] + size[1], -64 * size[0] - size[1]
    for lane in range(memory.pairs.size):
        k = memory.pairs[lane]
        rows = task.query_starts[k + 1] - task.query_starts[k]
        columns = task.target_starts[k + 1] - task.target_starts[k]
        own = diagonals(task.free, rows, columns, limit)
        shift = size[1] - 64 * size[0] - (columns - rows)
        low = min(low, own[0] + shift)
        high = max(high, own[1] + shift)
    return low, high


@shared
def _end_of_lane(task: Any, memory: Any, lane: int, size: Any, rows: int, columns: int) -> None:
    """Set ``memory.best`` to minus the distance, and where the alignment ends."""
    best, free = memory.best, task.free
    best[0] = -memory.lanes[1, lane]
    best[1] = rows - 1
    best[2] = columns - 1
    if free.query_end:
        value = 0 if free.target_start else columns
        offer(best, -value, -1, columns - 1)
        above = 64 * size[0] - rows
        for i in range(above, above + rows):
            value += (memory.state[2 * (i // 64), lane] >> (i % 64)) & 1
            value -= (memory.state[2 * (i // 64) + 1, lane] >> (i % 64)) & 1
            offer(best, -value, i - above, columns - 1)
    if free.target_end:
        offer(best, -memory.lanes[2, lane], rows - 1, memory.lanes[3, lane] - memory.lanes[0, lane])


@shared
def _trace_lane(task: Any, memory: Any, lane: int, above: int) -> None:
    cursor, start = memory.cursor, memory.lanes[0, lane]
    begin_walk(memory.best, cursor)
    cursor[0] += above
    cursor[1] += start
    walk_words(GroupWords(0, 0, lane, memory.offsets), memory.bits, above, start, cursor, memory.runs)
    cursor[0] -= above
    cursor[1] -= start
    close_at_border(task.free.query_start, task.free.target_start, cursor, memory.runs)


@shared
def _find_group(lanes: Any, task: Any, memory: Any, keep: bool) -> Any:
    """Sweep a group within a limit that grows until it holds; returns the size, as for `_sweep_group`."""
    rows, columns, fewest, most, apart = 0, 0, 1 << 60, 0, 0
    for lane in range(memory.pairs.size):
        k = memory.pairs[lane]
        m = task.query_starts[k + 1] - task.query_starts[k]
        n = task.target_starts[k + 1] - task.target_starts[k]
        rows, columns, fewest = max(rows, m), max(columns, n), min(fewest, m)
        apart, most = max(apart, abs(n - m)), max(most, min(task.limits[k], m + n))
    free = task.free
    blocks = (rows - 1) // 64 + 1
    _fill_group(task, memory, blocks, columns)
    loose = free.query_start or free.target_start or free.query_end or free.target_end
    within = free.target_start and free.target_end and not (free.query_start or free.query_end or keep)
    within = within and blocks > _UNLIMITED
    if within:
        most, apart = min(most, rows), max(rows // 16 - 64, 0)
    most = max(most, apart)
    limited = not (loose or blocks <= _UNLIMITED)
    size = (blocks, columns, blocks - fewest // 64, most)
    limit = min(apart + min(64, rows // 5), most) if within or limited else most
    again = 1
    while again:
        band = _band_of(task, memory, size, limit)
        near, cut = (-1, limit) if within else (limit, -1) if limited else (-1, -1)
        again = _sweep_group(lanes, task, memory, size, band, near, cut, keep)
        for lane in range(memory.pairs.size):
            if not again and memory.lanes[2 if within else 1, lane] > limit:
                again = most if within else 2 * limit
        if limit >= most:
            again = 0
        limit = min(max(again, limit + 64), most)
    return size


@shared
def edit_groups(
    lanes: Any, task: Any, order: Any, first: int, last: int, keep: bool, memory: Any, results: Any
) -> int:
    """As `edit_pairs`, of the pairs ``order[first:last]``, as many side by side as there are lanes."""
    width = width_of(lanes)
    written = 0
    for k in range(first, last, width):
        for lane in range(width):
            memory.pairs[lane] = order[min(k + lane, last - 1)]
        size = _find_group(lanes, task, memory, keep)
        for lane in range(min(width, last - k)):
            pair = memory.pairs[lane]
            rows = task.query_starts[pair + 1] - task.query_starts[pair]
            columns = task.target_starts[pair + 1] - task.target_starts[pair]
            _end_of_lane(task, memory, lane, size, rows, columns)
            distance = -memory.best[0]
            if distance > task.limits[pair]:
                distance = -1
            elif keep:
                _trace_lane(task, memory, lane, 64 * size[0] - rows)
            written += put_pair(pair, distance, keep, memory, written, results)
    return written


def _group_memory(width: int, rows: int, columns: int, words: int) -> GroupMemory:
    blocks = (rows - 1) // 64 + 1
    return GroupMemory(
        lane_rows(blocks * PLANES, width, np.int64),
        lane_rows(((columns - 1) // 64 + 1) * PLANES, width, np.int64),
        lane_rows(2 * blocks, width, np.int64),
        lane_rows(blocks, width, np.int64),
        lane_rows(5, width, np.int64),
        np.zeros(width, np.int64),
        np.zeros(columns, np.int64),
        lane_rows(words, width, np.int64),
        np.zeros((rows + columns + 2 if words else 0, 2), np.int64),
        np.zeros(5, np.int64),
        np.zeros(3, np.int64),
    )


def _side_by_side(
    rows: NDArray[np.int64], columns: NDArray[np.int64], width: int, keep: bool
) -> NDArray[np.bool_]:
    """Pairs that are best swept side by side."""
    chosen = np.ones(rows.size, np.bool_)
    if keep:
        chosen = (rows // 64 + 1) * columns <= _MOST_WORDS
    return chosen if 2 * np.count_nonzero(chosen) > width else np.zeros(rows.size, np.bool_)


class OneEdit:
    """One pair after the other, for one thread: the arguments are laid out once.

    `batch` says what pairs may leave out, how letters are told apart, and whether alignments are wanted;
    `size` is the most residues of a sequence. `codes` are those of query and target, `found` what was found.
    """

    def __init__(self, call: Callable[..., Any], batch: EditBatch, size: int) -> None:
        lanes, one, (task, keep) = host_lanes(), np.zeros(1, np.int64), batch
        padded = np.zeros((2, 1, AHEAD + size), np.uint8)
        self.codes = padded[0, 0, AHEAD:], padded[1, 0, AHEAD:]
        self._starts, self._limits = np.zeros((2, 2), np.int64), one.copy()
        runs = np.empty((2 * size + 2 if keep else 0, 2), np.int64)
        self.found = PairResults(one.copy(), np.zeros((1, 4), np.int64), runs, one.copy())
        sides = padded[0], self._starts[0], padded[1], self._starts[1]
        own = read_only(EditPairs(*sides, self._limits, *task[5:]))
        memory = edit_memory(lanes.width, size, size, task.bits, keep)
        self._call = bound(call, lanes, own, one, 0, 1, keep, memory, self.found)

    def find(self, query: NDArray[np.uint8], target: NDArray[np.uint8], limit: int) -> int:
        """Find the distance of a pair, see `edit_pairs`; returns the number of runs."""
        rows, columns = query.size, target.size
        self.codes[0][:rows], self.codes[1][:columns] = query, target
        self._starts[:, 1] = rows, columns
        self._limits[0], self.found.run_counts[0] = limit, 0
        return int(self._call())


_IDLE: Final[dict[Any, list[OneEdit]]] = {}


def _run_one(call: Callable[..., Any], batch: EditBatch) -> PairResults | None:
    """The only pair of a batch in memory that is kept; None if it is too long."""
    task, keep = batch
    longest = max(task.query.size, task.target.size) - AHEAD
    size = next((size for size in KEPT_SIZES if size >= longest), None)
    if size is None:
        return None
    if len(_IDLE) > _MOST_IDLE:
        _IDLE.clear()
    idle = _IDLE.setdefault((call, host_lanes().width, task.bits, tuple(task.free), size, keep), [])
    try:
        own = idle.pop()
    except IndexError:
        own = OneEdit(call, batch, size)
    used = own.find(task.query[0, AHEAD:], task.target[0, AHEAD:], task.limits[0])
    scores, ends, runs, counts = own.found
    found = PairResults(scores.copy(), ends.copy(), runs[:used].copy(), counts.copy())
    idle.append(own)
    return found


def run_edits(calls: tuple[Callable[..., Any], ...], batch: EditBatch, target: Target) -> PairResults:
    """Distances and alignments of pairs, in order.

    `calls` are `edit_pairs_kernel` and `edit_groups_kernel` or their definitions. Starts are only known with
    alignments, and nothing is where the distance is above the limit.
    """
    one = _run_one(calls[0], batch) if batch.pairs.limits.size == 1 else None
    if one is not None:
        return one
    task, keep, lanes = read_only(batch.pairs), batch.keep, host_lanes()
    rows, columns = np.diff(task.query_starts), np.diff(task.target_starts)
    scores, counts, starts = np.zeros((3, rows.size), np.int64)
    ends = np.zeros((rows.size, 4), np.int64)
    beside = _side_by_side(rows, columns, lanes.width, keep)
    order = np.concatenate([np.flatnonzero(~beside), np.flatnonzero(beside)])
    alone = int(order.size - np.count_nonzero(beside))
    order[alone:] = order[alone:][np.lexsort((columns[order[alone:]], rows[order[alone:]]))]

    def run(share: tuple[int, int]) -> Any:
        first, last = share
        own = order[first:last]
        longest = int(rows[own].max()), int(columns[own].max())
        size = int((rows[own] + columns[own] + 2).sum()) if keep else 0
        results = PairResults(scores, ends, np.empty((size, 2), np.int64), counts)
        if first >= alone:
            words = 2 * ((longest[0] - 1) // 64 + 1) * longest[1] if keep else 0
            memory: Any = _group_memory(lanes.width, *longest, words)
            used = calls[1](lanes, task, order, first, last, keep, memory, results)
        else:
            memory = edit_memory(lanes.width, *longest, task.bits, keep)
            used = calls[0](lanes, task, order, first, last, keep, memory, results)
        return results.runs[:used].copy()

    parts = [
        (first + begin, last + begin)
        for begin, which in ((0, order[:alone]), (alone, order[alone:]))
        for first, last in shares(rows[which], columns[which], target.threads)
    ]
    found = np.concatenate([np.zeros((0, 2), np.int64), *over_threads(target.threads, parts, run)])
    own = counts[order]
    starts[order] = np.cumsum(own) - own
    before = np.repeat(starts - (np.cumsum(counts) - counts), counts)
    return PairResults(scores, ends, found[before + np.arange(before.size)], counts)


edit_groups_kernel = kernel(edit_groups)
_KERNELS: Final = (edit_pairs_kernel, edit_groups_kernel)
#: Distances of unit costs, and alignments.
EDIT_LIST: Final[Problem[EditBatch, PairResults]] = Problem(
    "edit distances of a list of pairs",
    cpu=partial(run_edits, _KERNELS),
    reference=partial(run_edits, tuple(map(interpreted, _KERNELS))),
)
