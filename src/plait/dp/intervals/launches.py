"""What the folding of sequences launches: best structures, sums over all of them, and suboptimal ones.

Sequences are laid out for interval rows, and memory is kept from one to the next.
"""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from plait.devices.target import Problem, Target, over_threads
from plait.dp.intervals import rows, walk
from plait.dp.intervals.loops import BEYOND, SMALLEST_HAIRPIN, Strands
from plait.lang.compile import bound
from plait.lang.lanes import host_lanes, lanes_of

T = TypeVar("T")
R = TypeVar("R")

#: Sequences of up to so many bases are worked on in lanes, one in each: of more, tables leave the cache.
SHORT: Final = 160
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
#: Suboptimal structures that are found in one go.
_FOUND: Final = 1 << 12
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
        share = np.count_nonzero(table != zero) / table.size
        # The first rows are the longest: X is worked out towards them, derivatives from them on.
        done += table.size * (share * (2 - share) if table[0, 0] != zero else share * share)
    return int(done)


#: Bytes of a line of the cache.
_LINE: Final = 64


class Strand(NamedTuple):
    """A sequence: `codes`, int8 (n,), and as in `Strands` what is known of it; None stands for nothing."""

    codes: NDArray[np.int8]
    partners: NDArray[np.int32] | None = None
    stacked: NDArray[Any] | None = None
    paired: NDArray[Any] | None = None


def strands_of(sequences: Sequence[Strand], group: int, one: Any, *, apart: bool = False) -> Strands:
    """Lay out up to `group` sequences side by side, or each by itself (`apart`); `one` weighs nothing.

    A sequence by itself begins where `longest` bases of each before it end.
    """
    # Few passes: sequences are seldom in the cache.
    letters = list(map(itemgetter(0), sequences))
    sizes = list(map(len, letters))
    longest = max(sizes, default=0)
    # A small loop around is looked for up to three bases behind the last.
    size = longest + 4
    told = [(g, s) for g, s in enumerate(sequences) if not s.partners is s.stacked is s.paired is None]

    def laid_out(field: int, count: int, nothing: Any) -> NDArray[Any]:
        known: list[tuple[int, Any]] = [(g, one[field]) for g, one in told if one[field] is not None]
        table = filled((count, group, size if known else 0), nothing)
        for g, values in known:
            table[:, g, : values.shape[-1]] = values
        return (table if apart else table.swapaxes(1, 2)).reshape(count, -1)

    codes = np.empty((1, group * size), np.int8)
    lay_codes(codes.reshape(group, size) if apart else codes.reshape(size, group).T, letters, sizes)
    anything = np.array([[[0]], [[longest]]], np.int32)
    known = laid_out(1, 2, anything), laid_out(2, 1, one), laid_out(3, 2, one)
    return Strands(codes, *known, 1 if apart else group, size if apart else longest)


def lay_codes(places: NDArray[np.int8], letters: Sequence[NDArray[np.int8]], sizes: Sequence[int]) -> None:
    """Write letters of sequences of these sizes, each into a row of `places`, as those of `Strands`."""
    places[...], end = BEYOND, 0
    for bases, run in groupby(sizes):
        first, end = end, end + len(list(run))
        text = b"".join(letters[first:end])  # type: ignore[arg-type]  # arrays are buffers
        places[first:end, 1 : 1 + bases] = np.frombuffer(text, np.int8).reshape(end - first, bases)


def filled(shape: tuple[int, ...], value: Any) -> NDArray[Any]:
    """An array of a value of any algebra, a tuple included."""
    if isinstance(value, np.generic | np.ndarray):
        return np.full(shape, value)
    found = np.empty(shape, object)
    for at in np.ndindex(*shape):
        found[at] = value
    return found


@functools.lru_cache(maxsize=16)
def row_starts(longest: int, group: int) -> NDArray[np.int64]:
    """Where column 0 of every row would stand, and that of the end."""
    first = np.arange(longest + 2, dtype=np.int64)
    before = first * (longest + rows.BEFORE) - first * (first - 1) // 2
    starts: NDArray[np.int64] = (before - first + rows.BEFORE) * group
    return starts


def cells_kept(longest: int, group: int, width: int) -> int:
    """Elements of an array of all rows."""
    return int(row_starts(longest, group)[-1] + (longest + 1) * group + 4 * rows.BESIDE * width)


class Room:
    """Arrays in which sequences are worked out one after the other; new memory would cost as much time."""

    def __init__(self) -> None:
        self._arrays: dict[str, NDArray[Any]] = {}
        self._made: tuple[Any, Any] = (None, None)

    def again(self, key: Any, make: Callable[[], T]) -> T:
        """What was made last if it was for the same, since what is made next may be the same memory."""
        if key is None or self._made[0] != key:
            self._made = None, None
            self._made = key, make()
        found: T = self._made[1]
        return found

    def taken(self, name: str, shape: tuple[int, ...], value: Any) -> NDArray[Any]:
        """An array of values of any algebra, with anything in it; the next one may be the same memory."""
        size = math.prod(shape)
        found = self._arrays.get(name)
        if found is None or found.size < size or not isinstance(value, found.dtype.type):
            room = (size + _LINE,)
            found = np.empty(room, type(value)) if isinstance(value, np.generic) else filled(room, value)
            # Lanes that begin where a line of the cache does are loaded at once.
            first = -found.ctypes.data % _LINE // found.itemsize
            found = self._arrays[name] = found[first : first + size]
        return found[:size].reshape(shape)

    def intervals(self, longest: int, group: int, width: int, zero: Any) -> rows.Intervals:
        """Where C, M and X are kept."""
        cells = cells_kept(longest, group, width)
        exterior = self.taken("exterior", (1, (longest + 1) * group), zero)
        closed, multi = (self.taken(name, (1, cells), zero) for name in ("closed", "multi"))
        starts = row_starts(longest, group)
        # What is no number is new every time.
        if isinstance(zero, np.generic):
            exterior[...] = zero
            # What is behind the last base is read, and written by none.
            for table in (closed, multi):
                table[0, starts[longest] + (longest - rows.BEFORE) * group :] = zero
        return rows.Intervals(closed, multi, exterior, starts, group)

    def outside(self, tables: Sequence[Any], zero: Any) -> rows.Outside:
        """Derivatives by C, M and X, of the shapes of tables, to be made zero."""
        names = zip(("by closed", "by multi", "by exterior"), tables, strict=False)
        return rows.Outside(*(self.taken(name, table.shape, zero) for name, table in names))

    def sweep(self, lanes: Any, choose: Any, batch: Any, strands: Sequence[Strand], group: int) -> rows.Sweep:
        """What up to `group` sequences of a batch are worked out from."""
        rule, alg = batch.rule, batch.algebra
        laid_out = strands_of(strands, group, alg.one)
        kept = self.intervals(laid_out.longest, group, lanes.width, alg.zero)
        memory = self.memory(laid_out.longest, group, lanes.width, alg.zero)
        (part,) = self.parts(laid_out.longest, 1, alg.zero)
        return rows.Sweep(lanes, choose, rule, alg, batch.loops, laid_out, kept, (), memory, part)

    def parts(self, n: int, count: int, zero: Any) -> list[rows.Part]:
        """Columns in so many parts of about as many cells each."""
        # The last part has X besides, which counts where rows are short.
        ends = [round(n * (k / count) ** (0.45 if n < 3000 else 0.55)) for k in range(count + 1)]
        edges = self.taken("edges", (count, n, rows.EDGE) if count > 1 else (1, 1, 1), zero)
        return [rows.Part(a, b, b, 0, k, edges) for k, (a, b) in enumerate(pairwise(ends))]

    def memory(self, longest: int, group: int, width: int, zero: Any) -> rows.RowMemory:
        """Working memory of rows, with anything in it."""
        columns = (longest + 2 * rows.RING + SMALLEST_HAIRPIN) * group + 2 * rows.BESIDE * width
        places = self.taken("places", (2, (longest + 1) * group), np.int64(0))
        bits = self.taken("bits", (2 * rows.BASES, (longest * group >> 6) + 1), np.int64(0))
        return rows.RowMemory(self.taken("rows", (rows.ROWS, columns), zero), places, bits)


class FoldBatch(NamedTuple):
    """Sequences, and what their structures weigh in an algebra of scores.

    Of suboptimal structures, how much below the best they may be, and how many are wanted.
    """

    rule: Any
    algebra: Any
    loops: Any
    strands: Sequence[Strand]
    below: float = 0.0
    most: int = 1


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


class Suboptimal(NamedTuple):
    """Scores, float64 (found,), best first, structures in brackets, uint8 (found, n), and whether all fit."""

    scores: NDArray[np.float64]
    structures: NDArray[np.uint8]
    complete: bool


#: Best score, and a structure that has it, in brackets: a tuple that Python's garbage collector passes by.
Best = tuple[float, str]


class Summed(NamedTuple):
    """Logarithm of the sum, pairs int32 (pairs, 2), their probabilities, and structures that were drawn."""

    logarithm: float
    pairs: NDArray[np.int32]
    probabilities: NDArray[np.float64]
    drawn: list[str]


def _lanes(fold: Any, zero: Any) -> Any:
    """The lanes for values like `zero`: as wide as can be where kernels are compiled."""
    return host_lanes(8 * zero.itemsize) if fold in (walk.fold_kernel, rows.fill_kernel) else lanes_of(1)


def bytes_needed(bases: int, *, ensemble: bool) -> int:
    """Memory of one sequence, about."""
    tables = cells_kept(bases, 1, 16)
    # Rings and sums of rows are few, for each part; pairs with their probabilities follow.
    parts = bases * (240 + rows.EDGE) * min(max(bases // _PART, 1), _MOST_PARTS) * 4
    return tables * (4 * 8 + 16 if ensemble else 2 * 4) + max(bases * 240 * 16 if ensemble else 0, parts)


def _in_groups(
    strands: Sequence[Strand], width: int, threads: int, run: Callable[[Room, list[int], int, int], list[R]]
) -> list[R]:
    """Results of all sequences, in their order: of short ones a group at a time, of others one by one.

    `run` is told how many sequences there are side by side, and how many threads it may have.
    """
    order = sorted(range(len(strands)), key=lambda k: strands[k].codes.size)
    short = [k for k in order if strands[k].codes.size <= SHORT] if width > 1 else []
    work = [short[at : at + width] for at in range(0, len(short), width)]
    work += [[k] for k in order[len(short) :]]
    longer = threading.local()

    def one(numbers: list[int]) -> list[R]:
        held = _HELD if strands[numbers[-1]].codes.size <= SHORT else longer
        # Values of one size have a room: sums that follow best structures leave theirs as they were.
        room = vars(held).setdefault(f"{width} lanes", Room())
        return run(room, numbers, width if len(numbers) > 1 else 1, max(1, threads // len(work)))

    found: dict[int, R] = {}
    # The largest first: rooms need not grow, and no thread is left with them at the end.
    for numbers, results in zip(work[::-1], over_threads(threads, work[::-1], one), strict=True):
        found.update(zip(numbers, results, strict=True))
    return [found[k] for k in range(len(strands))]


def _fold(fold: Any, batch: FoldBatch, target: Target) -> list[Best]:
    alg, lanes = batch.algebra, _lanes(fold, batch.algebra.zero)

    def run(room: Room, numbers: list[int], group: int, threads: int) -> list[Best]:
        mine = [batch.strands[k] for k in numbers]
        sizes = [strand.codes.size for strand in mine]
        longest = max(sizes)

        def laid_out() -> Any:
            sweep = room.sweep(lanes, rows.Candidates(), batch, mine, group)
            shares, left = np.full((1, 3 * longest + 8), alg.one), np.empty((3, longest + 2), np.int64)
            more = np.zeros(group, np.int64), shares, left, np.empty((group, longest), np.uint8)
            return sweep, more, bound(fold, sweep, *more)

        sweep, more, call = room.again(_same(fold, batch, mine, longest, group), laid_out)
        lengths, *_, signs = more
        lengths[: len(sizes)], lengths[len(sizes) :] = sizes, 0
        lay_codes(sweep.strands.codes.reshape(-1, group).T, [strand.codes for strand in mine], sizes)
        with _followed(sweep.kept.exterior, group, alg.zero):
            parts = min(max(min(threads, longest // _PART), longest // _CACHED), _MOST_PARTS)
            if group == 1 and parts > 1:
                fold(_fold_in_parts(fold, room, sweep, parts, threads), *more)
            else:
                call()
        texts = zip(signs, sizes, sweep.kept.exterior[0].tolist(), strict=False)
        return [(score, row[:size].tobytes().decode()) for row, size, score in texts]

    return _in_groups(batch.strands, lanes.width, target.threads, run)


def _no_way_back(zero: Any) -> tuple[NDArray[Any], ...]:
    """What `fold_kernel` is given where no structure is wanted."""
    kinds = (1, type(zero)), (3, np.int64), (1, np.uint8)
    return np.empty(0, np.int64), *(np.empty((count, 0), kind) for count, kind in kinds)


def _same(kernel: Any, batch: Any, strands: Sequence[Strand], longest: int, group: int) -> Any:
    """What is the same where arguments laid out serve again, if they may at all."""
    if longest > SHORT or not all(s.partners is s.stacked is s.paired is None for s in strands):
        return None
    # What has been laid out holds both, so that no other has their numbers.
    return kernel, id(batch.loops), id(batch.rule), longest, group


def _fold_in_parts(fold: Any, room: Room, sweep: rows.Sweep, count: int, threads: int) -> rows.Sweep:
    """Work out one sequence by threads, some columns each; what is left to do of it.

    Of every few rows, the columns before have to be done.
    """
    n, zero = sweep.strands.longest, sweep.alg.zero
    parts = room.parts(n, count, zero)
    ready = [threading.Semaphore(0) for _ in parts]
    edges = range(n, 0, -_PART_ROWS)

    def work(part: rows.Part) -> None:
        try:
            memory = Room().memory(n, 1, sweep.lanes.width, zero)
            for top in edges:
                if part.at > 0:
                    ready[part.at - 1].acquire()
                mine = part._replace(top=min(top, part.end), bottom=max(top - _PART_ROWS, 0))
                if mine.top > mine.bottom:
                    fold(sweep._replace(memory=memory, part=mine), *_no_way_back(zero))
                ready[part.at].release()
        finally:
            # What has failed is told by its thread; the others need not wait for it.
            ready[part.at].release(len(edges))

    over_threads(threads, parts, work)
    return sweep._replace(part=parts[-1]._replace(top=0))


def _sum(fill: Any, list_pairs: Any, draw: Any, batch: EnsembleBatch, target: Target) -> list[Summed]:
    alg, lanes = batch.algebra, lanes_of(1) if batch.logarithms else _lanes(fill, batch.algebra.zero)

    @np.errstate(divide="ignore", over="ignore")
    def run(room: Room, numbers: list[int], group: int, threads: int) -> list[Summed]:
        mine = [batch.strands[k] for k in numbers]
        sizes = [strand.codes.size for strand in mine]
        longest = max(sizes)

        def laid_out() -> Any:
            sweep = room.sweep(lanes, rows.EveryStem(), batch, mine, group)
            # Of one type, whoever wants derivatives.
            tables = sweep.kept if batch.probabilities else [sweep.kept.exterior[:, :0]] * 3
            sweep = sweep._replace(outside=room.outside(tables, alg.zero))
            if not batch.probabilities:
                return sweep, bound(fill, sweep, False), None, None
            listing = _listing(list_pairs, room, sweep, _LISTED * longest * group, batch.logarithms)
            return sweep, bound(fill, sweep, False), bound(fill, sweep, True), listing

        key = _same((fill, batch.probabilities), batch, mine, longest, group)
        sweep, call, derive, listing = room.again(key, laid_out)
        lay_codes(sweep.strands.codes.reshape(-1, group).T, [strand.codes for strand in mine], sizes)
        with _followed(sweep.kept.exterior, group, alg.zero):
            call()
        sums = sweep.kept.exterior[0, :group]
        tables = [(np.empty((0, 2), np.int32), np.empty(0))] * group
        if batch.probabilities:
            for table in sweep.outside:
                table[...] = alg.zero
            sweep.outside.exterior[0, :group] = -sums if batch.logarithms else 1 / sums
            with _followed(sweep.outside.exterior, group, alg.zero):
                derive()
            tables = listing()
        logarithms = (sums if batch.logarithms else np.log(sums)).tolist()
        found = []
        for g, k in enumerate(numbers):
            drawn = [_draw(draw, sweep.filled, (sizes[g], g), share) for share in batch.shares[k]]
            found.append(Summed(logarithms[g], *tables[g], drawn))
        return found

    return _in_groups(batch.strands, lanes.width, target.threads, run)


def _draw(walk_back: Any, filled: rows.Walk, which: tuple[int, int], share: NDArray[np.float64]) -> str:
    """A structure of the g-th sequence, of n bases."""
    (n, g), strands = which, filled.strands
    lengths = np.zeros(strands.group, np.int64)
    lengths[g] = n
    signs = np.empty((strands.group, strands.longest), np.uint8)
    walk_back(filled, lengths, share.reshape(1, -1), np.empty((3, strands.longest + 2), np.int64), signs)
    return signs[g, :n].tobytes().decode()


def _listing(
    list_pairs: Any, room: Room, sweep: rows.Sweep, most: int, logarithms: bool
) -> Callable[[], list[tuple[NDArray[np.int32], NDArray[np.float64]]]]:
    """What finds the pairs of every sequence, and how probable each is; there is room for so many."""
    least, ends = math.log(LEAST) if logarithms else LEAST, np.empty(sweep.strands.group, np.int64)
    pairs, values = room.taken("pairs", (most, 2), np.int32(0)), room.taken("p", (most,), np.float64(0))
    run = bound(list_pairs, sweep.alg, sweep.kept, sweep.outside, least, ends, pairs, values)

    def tables() -> list[tuple[NDArray[np.int32], NDArray[np.float64]]]:
        if (count := int(run())) > most:
            return _listing(list_pairs, room, sweep, count, logarithms)()
        found, shares = pairs[:count].copy(), values[:count].copy()
        if logarithms:
            np.exp(shares, out=shares)
        return [(found[a:b], shares[a:b]) for a, b in pairwise([0, *ends.tolist()])]

    return tables


def _suboptimal(fold: Any, search: Any, batch: FoldBatch, target: Target) -> list[Suboptimal]:
    alg, lanes = batch.algebra, _lanes(fold, batch.algebra.zero)

    def run(strand: Strand) -> Suboptimal:
        sweep, n = Room().sweep(lanes, rows.Candidates(), batch, [strand], 1), strand.codes.size
        fold(sweep, *_no_way_back(alg.zero))
        best = float(sweep.kept.exterior[0, 0])
        nodes, levels = np.zeros((4, 6 * n + 16), np.int64), np.zeros((5, 3 * n + 8), np.int64)
        nodes[:, 0] = walk.OUTSIDE, 0, n, -1
        levels[:, 0] = 0 if n else -1, 0, 0, 0, 1
        reached, before = np.full(levels.shape[1], best), np.full(levels.shape[1], alg.one)
        depth, signs, least = np.zeros(1, np.int64), np.full(n, walk.UNPAIRED, np.uint8), best - batch.below
        state = walk.Search(sweep.filled, nodes, levels, before, reached, depth)
        found = Suboptimal(np.empty(0), np.empty((0, n), np.uint8), True)
        while depth[0] >= 0:
            pieces = [found]
            # Twice as many as asked for are held, so that sorting them is worth while.
            while depth[0] >= 0 and sum(piece.scores.size for piece in pieces) < 2 * batch.most:
                structures, scores = np.empty((_FOUND, n), np.uint8), np.empty(_FOUND)
                count = search(state, least, signs, structures, scores)
                pieces.append(Suboptimal(scores[:count], structures[:count], True))
            found = _best_of(pieces, batch.most)
            if not found.complete:
                # What is worse than the last of those kept need not be found.
                least = float(found.scores[-1])
        return found

    return over_threads(target.threads, batch.strands, run)


def _best_of(pieces: Sequence[Suboptimal], most: int) -> Suboptimal:
    """The best structures, in order of their scores and their signs."""
    scores, structures = (np.concatenate([piece[k] for piece in pieces]) for k in range(2))
    count, n = structures.shape
    texts = structures.reshape(-1).view(f"S{n}") if n else np.zeros(count)
    order = np.lexsort((texts, -scores))[:most]
    complete = scores.size <= most and all(piece.complete for piece in pieces)
    return Suboptimal(scores[order], structures[order], complete)


def _worth(batch: FoldBatch | EnsembleBatch) -> bool:
    return sum(strand.codes.size**2 for strand in batch.strands) >= _WORTH


_GPU: Final = "plait.dp.intervals.gpu_fold"
#: Best structures of sequences.
FOLDS: Final[Problem[FoldBatch, list[Best]]] = Problem.of(
    "best structures", _fold, walk.fold_kernel, cuda=f"{_GPU}:fold_batch", worth=_worth
)
#: Sums over all structures of sequences.
_SUMS: Final = rows.fill_kernel, rows.pairs_kernel, walk.walk_kernel
ENSEMBLES: Final[Problem[EnsembleBatch, list[Summed]]] = Problem.of(
    "sums over structures", _sum, *_SUMS, cuda=f"{_GPU}:sum_batch", worth=_worth
)
#: Structures that are nearly as good as the best ones.
SUBOPTIMALS: Final[Problem[FoldBatch, list[Suboptimal]]] = Problem.of(
    "suboptimal structures", _suboptimal, walk.fold_kernel, walk.suboptimal_kernel
)
