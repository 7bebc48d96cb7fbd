"""What the folding of sequences launches: best structures, and ensembles of all of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from plait.devices.target import Problem, Target, interpreted, over_threads
from plait.dp.intervals.outside import Outside, outside_kernel, pairs_kernel
from plait.dp.intervals.rows import EDGE, Candidates, EveryStem, Filled, Part, Sweep, fill_kernel
from plait.dp.intervals.tables import Room, Strand, cells_kept
from plait.dp.intervals.walk import fold_kernel, walk_kernel
from plait.lang.lanes import host_lanes, lanes_of

R = TypeVar("R")

#: Sequences of up to so many bases are worked on in lanes, one in each: of more, tables leave the cache.
_SHORT: Final = 160
#: Cells that are worth the start of a GPU which was not asked for by name.
_WORTH: Final = 1 << 26
#: Pairs that are less probable are left out.
LEAST: Final = 1e-12


#: X of long sequences that are being worked out, or derivatives by it, and what stands where it is not known.
_UNDER_WAY: Final[dict[int, tuple[NDArray[Any], Any]]] = {}
_LONG: Final = 2000
#: Columns that are worth a thread of their own, and those of which the working memory stays in the cache.
_PART, _CACHED = 400, 3000
_MOST_PARTS: Final = 8
#: Rows after which the columns behind may go on.
_PART_ROWS: Final = 96


@contextmanager
def _followed(table: NDArray[Any], group: int, zero: Any) -> Iterator[None]:
    if group == 1 and table.size > _LONG:
        _UNDER_WAY[id(table)] = table, zero
    try:
        yield
    finally:
        _UNDER_WAY.pop(id(table), None)


def bases_done() -> int:
    """How far long sequences that are being worked out are: bases of them, if each took as long."""
    done = 0.0
    for table, zero in list(_UNDER_WAY.values()):
        rows = np.count_nonzero(table != zero) / table.size
        # The first rows are the longest: X is worked out towards them, derivatives from them on.
        done += table.size * (rows * (2 - rows) if table[0, 0] != zero else rows * rows)
    return int(done)


class FoldBatch(NamedTuple):
    """Sequences, and what their structures weigh in an algebra of scores."""

    rule: Any
    algebra: Any
    loops: Any
    strands: Sequence[Strand]


class EnsembleBatch(NamedTuple):
    """Sequences, and what their structures weigh in sums or logarithms (`logarithms`).

    `probabilities`: those of pairs are asked for. `shares`, (draws, steps), for each sequence: of what every
    step of a structure to be drawn takes, values of the algebra.
    """

    rule: Any
    algebra: Any
    loops: Any
    strands: Sequence[Strand]
    logarithms: bool
    probabilities: bool
    shares: Sequence[NDArray[np.float64]]


class Folded(NamedTuple):
    """Best score, and the partner of every base or -1, int32 (n,)."""

    score: float
    partners: NDArray[np.int32]


class Summed(NamedTuple):
    """Logarithm of the sum, pairs int32 (pairs, 2), their probabilities, and partners of drawn structures."""

    logarithm: float
    pairs: NDArray[np.int32]
    probabilities: NDArray[np.float64]
    drawn: list[NDArray[np.int32]]


class _Kernels(NamedTuple):
    """Entry points, compiled or their definitions, and the lanes of 32 and of 64 bits."""

    fold: Any
    fill: Any
    outside: Any
    pairs: Any
    walk: Any
    single: Any
    double: Any


_ENTRIES: Final = (fold_kernel, fill_kernel, outside_kernel, pairs_kernel, walk_kernel)


def _compiled() -> _Kernels:
    return _Kernels(*_ENTRIES, host_lanes(32), host_lanes(64))


def _definitions() -> _Kernels:
    return _Kernels._make([*map(interpreted, _ENTRIES), lanes_of(1), lanes_of(1)])


def bytes_needed(bases: int, *, ensemble: bool) -> int:
    """Memory of one sequence, about."""
    tables = cells_kept(bases, 1, 16)
    # Rings and sums of rows are few, for each part; pairs with their probabilities follow.
    parts = bases * (240 + EDGE) * min(max(bases // _PART, 1), _MOST_PARTS) * 4
    return tables * (4 * 8 + 16 if ensemble else 2 * 4) + max(bases * 240 * 16 if ensemble else 0, parts)


def _in_groups(
    strands: Sequence[Strand], width: int, threads: int, run: Callable[[Room, list[int], int, int], list[R]]
) -> list[R]:
    """Results of all sequences, in their order: of short ones a group at a time, of others one by one.

    `run` is told how many sequences there are side by side, and how many threads it may have.
    """
    order = sorted(range(len(strands)), key=lambda k: strands[k].codes.size)
    short = [k for k in order if strands[k].codes.size <= _SHORT] if width > 1 else []
    work = [short[at : at + width] for at in range(0, len(short), width)]
    work += [[k] for k in order[len(short) :]]
    mine = threading.local()

    def one(numbers: list[int]) -> list[R]:
        if not hasattr(mine, "room"):
            mine.room = Room()
        return run(mine.room, numbers, width if len(numbers) > 1 else 1, max(1, threads // len(work)))

    found: dict[int, R] = {}
    # The largest first: rooms need not grow, and no thread is left with them at the end.
    for numbers, results in zip(work[::-1], over_threads(threads, work[::-1], one), strict=True):
        found.update(zip(numbers, results, strict=True))
    return [found[k] for k in range(len(strands))]


def _fold(kernels: Callable[[], _Kernels], batch: FoldBatch, target: Target) -> list[Folded]:
    fold, *_, lanes, double = kernels()
    alg = batch.algebra
    if alg.zero.itemsize == 8:
        lanes = double

    def run(room: Room, numbers: list[int], group: int, threads: int) -> list[Folded]:
        mine = [batch.strands[k] for k in numbers]
        sweep = room.sweep(lanes, Candidates(), batch, mine, group)
        longest = sweep.strands.longest
        lengths = np.array([strand.codes.size for strand in mine] + [0] * (group - len(mine)), np.int64)
        partners, left = np.empty((group, longest), np.int32), np.empty((3, longest + 2), np.int64)
        with _followed(sweep.kept.exterior, group, alg.zero):
            parts = min(max(min(threads, longest // _PART), longest // _CACHED), _MOST_PARTS)
            if group == 1 and parts > 1:
                sweep = _fold_in_parts(fold, room, sweep, parts, threads)
            fold(sweep, lengths, np.full((1, 3 * longest + 8), alg.one), left, partners)
        scores = sweep.kept.exterior[0].tolist()
        return [Folded(scores[g], partners[g, : lengths[g]]) for g in range(len(mine))]

    return _in_groups(batch.strands, lanes.width, target.threads, run)


def _fold_in_parts(fold: Any, room: Room, sweep: Sweep, count: int, threads: int) -> Sweep:
    """Work out one sequence by threads, some columns each; what is left to do of it.

    Of every few rows, the columns before have to be done.
    """
    n, zero, nothing = sweep.strands.longest, sweep.alg.zero, np.empty(0, np.int64)
    parts = room.parts(n, count, zero)
    ready = [threading.Semaphore(0) for _ in parts]
    way_back = np.empty((1, 0), type(zero)), np.empty((3, 0), np.int64), np.empty((1, 0), np.int32)
    edges = range(n, 0, -_PART_ROWS)

    def work(part: Part) -> None:
        try:
            memory = Room().memory(n, 1, sweep.lanes.width, zero)
            for top in edges:
                if part.at > 0:
                    ready[part.at - 1].acquire()
                mine = part._replace(top=min(top, part.end), bottom=max(top - _PART_ROWS, 0))
                if mine.top > mine.bottom:
                    fold(sweep._replace(memory=memory, part=mine), nothing, *way_back)
                ready[part.at].release()
        finally:
            # What has failed is told by its thread; the others need not wait for it.
            ready[part.at].release(len(edges))

    over_threads(threads, parts, work)
    return sweep._replace(part=parts[-1]._replace(top=0))


def _sum(kernels: Callable[[], _Kernels], batch: EnsembleBatch, target: Target) -> list[Summed]:
    _, fill, outside, list_pairs, walk, _, lanes = kernels()
    alg = batch.algebra
    if batch.logarithms:
        lanes = lanes_of(1)

    def run(room: Room, numbers: list[int], group: int, threads: int) -> list[Summed]:
        sizes = [batch.strands[k].codes.size for k in numbers]
        sweep = room.sweep(lanes, EveryStem(), batch, [batch.strands[k] for k in numbers], group)
        kept, derivatives = sweep.kept, None
        with _followed(kept.exterior, group, alg.zero):
            fill(sweep)
        if batch.probabilities:
            derivatives = room.outside(kept, alg.zero)
            sums = kept.exterior[0, :group]
            with np.errstate(divide="ignore"):
                derivatives.exterior[0, :group] = -sums if batch.logarithms else 1 / sums
            with _followed(derivatives.exterior, group, alg.zero):
                outside(sweep._replace(outside=derivatives))
        found = []
        tables = _pairs_of(list_pairs, kept, derivatives, group, batch.logarithms)
        for g, k in enumerate(numbers):
            drawn = [_draw(walk, sweep.filled, (sizes[g], g), share) for share in batch.shares[k]]
            total = kept.exterior[0, g]
            with np.errstate(divide="ignore"):
                logarithm = float(total if batch.logarithms else np.log(total))
            found.append(Summed(logarithm, *tables[g], drawn))
        return found

    return _in_groups(batch.strands, lanes.width, target.threads, run)


def _draw(walk: Any, filled: Filled, which: tuple[int, int], share: NDArray[np.float64]) -> NDArray[np.int32]:
    """A structure of the g-th sequence, of n bases."""
    (n, g), strands = which, filled.strands
    lengths = np.zeros(strands.group, np.int64)
    lengths[g] = n
    partners = np.empty((strands.group, strands.longest), np.int32)
    walk(filled, lengths, share.reshape(1, -1), np.empty((3, strands.longest + 2), np.int64), partners)
    return partners[g, :n].copy()


def _pairs_of(
    list_pairs: Any, kept: Any, derivatives: Outside | None, group: int, logarithms: bool
) -> list[tuple[NDArray[np.int32], NDArray[np.float64]]]:
    """Pairs of every sequence, and how probable each is."""
    if derivatives is None:
        return [(np.empty((0, 2), np.int32), np.empty(0))] * group
    with np.errstate(over="ignore", invalid="ignore"):
        found = np.exp(kept.closed + derivatives.closed) if logarithms else kept.closed * derivatives.closed
    # What is no number, where sums do not fit, is kept to be noticed.
    count = found.size - int(np.count_nonzero(found <= LEAST))
    pairs, values, ends = np.empty((count, 2), np.int32), np.empty(count), np.empty(group, np.int64)
    list_pairs(found, kept.starts, group, LEAST, ends, pairs, values)
    edges = [0, *ends.tolist()]
    return [(pairs[a:b], values[a:b]) for a, b in pairwise(edges)]


def _worth(batch: FoldBatch | EnsembleBatch) -> bool:
    return sum(strand.codes.size**2 for strand in batch.strands) >= _WORTH


#: Best structures of sequences.
FOLDS: Final[Problem[FoldBatch, list[Folded]]] = Problem(
    "best structures",
    cpu=partial(_fold, _compiled),
    reference=partial(_fold, _definitions),
    cuda="plait.dp.intervals.gpu_fold:fold_batch",
    worth=_worth,
)
#: Sums over all structures of sequences.
ENSEMBLES: Final[Problem[EnsembleBatch, list[Summed]]] = Problem(
    "sums over structures",
    cpu=partial(_sum, _compiled),
    reference=partial(_sum, _definitions),
    cuda="plait.dp.intervals.gpu_fold:sum_batch",
    worth=_worth,
)
