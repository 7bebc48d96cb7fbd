"""What the folding of sequences launches: best structures, and ensembles of all of them."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from plait.devices.target import Problem, Target, interpreted, over_threads
from plait.dp.intervals.outside import outside_kernel, pairs_kernel
from plait.dp.intervals.rows import EDGE, Candidates, EveryStem, Filled, Part, Sweep, fill_kernel
from plait.dp.intervals.tables import Room, Strand, beside_letters, cells_kept, lay_codes
from plait.dp.intervals.walk import fold_kernel, walk_kernel
from plait.lang.compile import bound
from plait.lang.lanes import host_lanes, lanes_of

R = TypeVar("R")

#: Sequences of up to so many bases are worked on in lanes, one in each: of more, tables leave the cache.
_SHORT: Final = 160
#: What each thread has for these, from one call to the next.
_HELD: Final = threading.local()
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
#: Pairs of a base that there is room for at first.
_LISTED: Final = 32
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
    shares: Sequence[Sequence[NDArray[np.float64]]]


#: Best score, and a structure that has it, in brackets: a tuple that Python's garbage collector passes by.
Best = tuple[float, str]


class Summed(NamedTuple):
    """Logarithm of the sum, pairs int32 (pairs, 2), their probabilities, and structures that were drawn."""

    logarithm: float
    pairs: NDArray[np.int32]
    probabilities: NDArray[np.float64]
    drawn: list[str]


#: What is launched: compiled, or its definitions.
_ENTRIES: Final = (fold_kernel, fill_kernel, outside_kernel, pairs_kernel, walk_kernel)


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
    longer = threading.local()

    def one(numbers: list[int]) -> list[R]:
        held = _HELD if strands[numbers[-1]].codes.size <= _SHORT else longer
        # Values of one size have a room: sums that follow best structures leave theirs as they were.
        room = vars(held).setdefault(f"{width} lanes", Room())
        return run(room, numbers, width if len(numbers) > 1 else 1, max(1, threads // len(work)))

    found: dict[int, R] = {}
    # The largest first: rooms need not grow, and no thread is left with them at the end.
    for numbers, results in zip(work[::-1], over_threads(threads, work[::-1], one), strict=True):
        found.update(zip(numbers, results, strict=True))
    return [found[k] for k in range(len(strands))]


def _fold(compiled: bool, batch: FoldBatch, target: Target) -> list[Best]:
    fold, alg = _ENTRIES[0] if compiled else interpreted(_ENTRIES[0]), batch.algebra
    lanes = host_lanes(8 * alg.zero.itemsize) if compiled else lanes_of(1)

    def run(room: Room, numbers: list[int], group: int, threads: int) -> list[Best]:
        mine = [batch.strands[k] for k in numbers]
        sizes = [strand.codes.size for strand in mine]
        longest = max(sizes)

        def laid_out() -> Any:
            sweep = room.sweep(lanes, Candidates(), batch, mine, group)
            shares, left = np.full((1, 3 * longest + 8), alg.one), np.empty((3, longest + 2), np.int64)
            more = np.zeros(group, np.int64), shares, left, np.empty((group, longest), np.uint8)
            return sweep, more, bound(fold, sweep, *more)

        sweep, more, call = room.again(_same(fold, batch, mine, longest, group), laid_out)
        lengths, *_, signs = more
        lengths[: len(sizes)], lengths[len(sizes) :] = sizes, 0
        lay_codes(sweep.strands.codes, mine, group)
        with _followed(sweep.kept.exterior, group, alg.zero):
            parts = min(max(min(threads, longest // _PART), longest // _CACHED), _MOST_PARTS)
            if group == 1 and parts > 1:
                fold(_fold_in_parts(fold, room, sweep, parts, threads), *more)
            else:
                call()
        texts = zip(signs, sizes, sweep.kept.exterior[0].tolist(), strict=False)
        return [(score, row[:size].tobytes().decode()) for row, size, score in texts]

    return _in_groups(batch.strands, lanes.width, target.threads, run)


def _same(kernel: Any, batch: Any, strands: Sequence[Strand], longest: int, group: int) -> Any:
    """What is the same where arguments laid out serve again, if they may at all."""
    if longest > _SHORT or beside_letters(strands):
        return None
    # What has been laid out holds both, so that no other has their numbers.
    return kernel, id(batch.loops), id(batch.rule), longest, group


def _fold_in_parts(fold: Any, room: Room, sweep: Sweep, count: int, threads: int) -> Sweep:
    """Work out one sequence by threads, some columns each; what is left to do of it.

    Of every few rows, the columns before have to be done.
    """
    n, zero, nothing = sweep.strands.longest, sweep.alg.zero, np.empty(0, np.int64)
    parts = room.parts(n, count, zero)
    ready = [threading.Semaphore(0) for _ in parts]
    way_back = np.empty((1, 0), type(zero)), np.empty((3, 0), np.int64), np.empty((1, 0), np.uint8)
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


def _sum(compiled: bool, batch: EnsembleBatch, target: Target) -> list[Summed]:
    _, fill, derivatives, list_pairs, walk = _ENTRIES if compiled else map(interpreted, _ENTRIES)
    lanes, alg = host_lanes(64) if compiled and not batch.logarithms else lanes_of(1), batch.algebra

    def run(room: Room, numbers: list[int], group: int, threads: int) -> list[Summed]:
        mine = [batch.strands[k] for k in numbers]
        longest = max(strand.codes.size for strand in mine)

        def laid_out() -> Any:
            sweep = room.sweep(lanes, EveryStem(), batch, mine, group)
            outside = room.outside(sweep.kept, alg.zero) if batch.probabilities else None
            if outside is None:
                return sweep, outside, bound(fill, sweep), None, None
            sweep = sweep._replace(outside=outside)
            listing = _listing(list_pairs, room, sweep, _LISTED * longest * group, batch.logarithms)
            # Before there are derivatives, sums are the same for all who want them.
            return sweep, outside, bound(fill, sweep._replace(outside=())), bound(derivatives, sweep), listing

        key = _same((fill, batch.probabilities), batch, mine, longest, group)
        sweep, outside, call, derive, listing = room.again(key, laid_out)
        kept = sweep.kept
        lay_codes(sweep.strands.codes, mine, group)
        with _followed(kept.exterior, group, alg.zero):
            call()
        sums = kept.exterior[0, :group]
        tables = [(np.empty((0, 2), np.int32), np.empty(0))] * group
        if outside is not None:
            for table in outside:
                table[...] = alg.zero
            with np.errstate(divide="ignore"):
                outside.exterior[0, :group] = -sums if batch.logarithms else 1 / sums
            with _followed(outside.exterior, group, alg.zero):
                derive()
            while (count := int(listing.run())) > listing.values.size:
                listing = _listing(list_pairs, room, sweep, count, batch.logarithms)
            tables = _pairs_of(listing, count, batch.logarithms)
        with np.errstate(divide="ignore"):
            logarithms = (sums if batch.logarithms else np.log(sums)).tolist()
        found = []
        for g, k in enumerate(numbers):
            size = batch.strands[k].codes.size
            drawn = [_draw(walk, sweep.filled, (size, g), share) for share in batch.shares[k]]
            found.append(Summed(logarithms[g], *tables[g], drawn))
        return found

    return _in_groups(batch.strands, lanes.width, target.threads, run)


def _draw(walk: Any, filled: Filled, which: tuple[int, int], share: NDArray[np.float64]) -> str:
    """A structure of the g-th sequence, of n bases."""
    (n, g), strands = which, filled.strands
    lengths = np.zeros(strands.group, np.int64)
    lengths[g] = n
    signs = np.empty((strands.group, strands.longest), np.uint8)
    walk(filled, lengths, share.reshape(1, -1), np.empty((3, strands.longest + 2), np.int64), signs)
    return signs[g, :n].tobytes().decode()


class _Listing(NamedTuple):
    """What lists pairs and gives their number, what it writes, and where those of each sequence end."""

    run: Callable[[], int]
    pairs: NDArray[np.int32]
    values: NDArray[np.float64]
    ends: NDArray[np.int64]


def _listing(list_pairs: Any, room: Room, sweep: Sweep, most: int, logarithms: bool) -> _Listing:
    least, ends = math.log(LEAST) if logarithms else LEAST, np.empty(sweep.strands.group, np.int64)
    pairs, values = room.taken("pairs", (most, 2), np.int32(0)), room.taken("p", (most,), np.float64(0))
    known = sweep.alg, sweep.kept, sweep.outside, least, ends, pairs, values
    return _Listing(bound(list_pairs, *known), pairs, values, ends)


def _pairs_of(
    listing: _Listing, count: int, logarithms: bool
) -> list[tuple[NDArray[np.int32], NDArray[np.float64]]]:
    """Pairs of every sequence, and how probable each is."""
    pairs, values = listing.pairs[:count].copy(), listing.values[:count].copy()
    if logarithms:
        with np.errstate(over="ignore"):
            np.exp(values, out=values)
    return [(pairs[a:b], values[a:b]) for a, b in pairwise([0, *listing.ends.tolist()])]


def _worth(batch: FoldBatch | EnsembleBatch) -> bool:
    return sum(strand.codes.size**2 for strand in batch.strands) >= _WORTH


#: Best structures of sequences.
FOLDS: Final[Problem[FoldBatch, list[Best]]] = Problem(
    "best structures",
    cpu=partial(_fold, True),
    reference=partial(_fold, False),
    cuda="plait.dp.intervals.gpu_fold:fold_batch",
    worth=_worth,
)
#: Sums over all structures of sequences.
ENSEMBLES: Final[Problem[EnsembleBatch, list[Summed]]] = Problem(
    "sums over structures",
    cpu=partial(_sum, True),
    reference=partial(_sum, False),
    cuda="plait.dp.intervals.gpu_fold:sum_batch",
    worth=_worth,
)
