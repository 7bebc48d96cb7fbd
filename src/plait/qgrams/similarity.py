"""Multiset Tanimoto similarity of texts by their q-grams, one text of a block of targets in each lane.

A text is the multiset of its substrings of q letters. Of two texts, |A and B| is the sum, over q-grams, of
the lesser of both counts, and their similarity |A and B| / (|A| + |B| - |A and B|); 0 if a text is empty.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Any, Final, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from plait.devices.target import On, Problem, Target, over_threads, resolve, spelled, stretches
from plait.errors import InvalidInput, whole
from plait.lang.algebras import choice, extend
from plait.lang.compile import by_type_of, kernel, shared
from plait.lang.lanes import greater, lanes_of, load, mask_bits, minimum, splat, store, width_of

#: Most letters of a q-gram.
LONGEST: Final = 255
#: Lanes, of which four groups are computed side by side: a block of targets.
LANES: Final = lanes_of(64)
COLUMNS: Final = 4 * LANES.width
#: Numbers for counts: the narrowest that holds the lesser size of two texts serves for them.
_WIDTHS: Final = (np.uint8, np.uint16)
_WORTH: Final = 1 << 33
_FIRST_ROOM: Final = 1 << 14
#: Bytes of a matrix in memory.
_MOST_CELLS: Final = 1 << 34


class SumOfLeast(NamedTuple):
    """The size of a common part: sums over kinds, the lesser number of each kind."""

    zero: Any

    @staticmethod
    def choice(alg: SumOfLeast, a: Any, b: Any) -> Any:
        return a + b

    @staticmethod
    def extend(alg: SumOfLeast, a: Any, b: Any) -> Any:
        return minimum(a, b)


class Grams(NamedTuple):
    """Multisets: q-grams by number, int32, and their counts, int64, of text k from ``starts[k]`` on.

    `sizes` int64 (texts,) are numbers of q-grams, all counted; `order` int64 (texts,) places of the texts as
    they were given.
    """

    grams: NDArray[np.int32]
    counts: NDArray[np.int64]
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]
    order: NDArray[np.int64]


class Matrix(NamedTuple):
    """All similarities: `out` float32 (queries, targets), by `inverse`, 1 / k for every k."""

    out: Any
    inverse: Any


class Above(NamedTuple):
    """Pairs with enough in common: `least` int64 by |A| + |B|; `own`: each of two in one set once.

    `pairs` int64 (room, 4), queries, targets, what they share and |A or B|, and `number` (1,) of them,
    whether or not there is room.
    """

    least: Any
    own: Any
    pairs: Any
    number: Any


class Nearest(NamedTuple):
    """The most similar of each query, best first: `best` int64 (queries, k, 3): target, shared, |A or B|.

    Of the same similarity the first of the targets; `own`: not the query itself. Targets are -1 where there
    are fewer.
    """

    best: Any
    own: Any


def _enough_for_query(sink: Any, a: Any, sum_of_sizes: Any) -> Any:
    last = sink.best.shape[1] - 1
    if sink.best[a, last, 0] < 0:
        return 0
    # s / (n - s) >= u / v as s >= n u / (u + v), rounded up.
    shared, either = sink.best[a, last, 1], sink.best[a, last, 2]
    return (sum_of_sizes * shared + shared + either - 1) // (shared + either)


def _take_pair(sink: Any, a: Any, query: Any, target: Any, shared: Any, sum_of_sizes: Any) -> None:
    if shared >= sink.least[sum_of_sizes] and (target > query or not sink.own):
        at = sink.number[0]
        if at < sink.pairs.shape[0]:
            pair = sink.pairs[at]
            pair[0], pair[1], pair[2], pair[3] = query, target, shared, sum_of_sizes - shared
        sink.number[0] = at + 1


def _take_nearest(sink: Any, a: Any, query: Any, target: Any, shared: Any, sum_of_sizes: Any) -> None:
    if sink.own and query == target:
        return
    either, best = max(sum_of_sizes - shared, 1), sink.best[a]
    at = best.shape[0]
    while at > 0:
        mine, other = shared * best[at - 1, 2], best[at - 1, 1] * either
        if best[at - 1, 0] >= 0 and (mine < other or (mine == other and target > best[at - 1, 0])):
            break
        at -= 1
    for k in range(best.shape[0] - 1, at, -1):
        for part in range(3):
            best[k, part] = best[k - 1, part]
    if at < best.shape[0]:
        best[at, 0], best[at, 1], best[at, 2] = target, shared, either


#: What two texts of these sizes have to share at least to be of interest; what takes note of a pair if it is.
_enough: Final[Any] = by_type_of(
    {Above: lambda sink, a, total: sink.least[total], Nearest: _enough_for_query}
)
_take: Final[Any] = by_type_of({Above: _take_pair, Nearest: _take_nearest})


def _report_all(sink: Any, lanes: Any, found: Any, a: Any, block: Any, count: Any, of: Any) -> None:
    size, row = of[0].sizes[a], of[0].order[a]
    for k in range(count):
        shared = np.int64(found[0, k])
        sink.out[row, block + k] = shared * sink.inverse[size + of[1].sizes[block + k] - shared]


def _report_some(sink: Any, lanes: Any, found: Any, a: Any, block: Any, count: Any, of: Any) -> Any:
    queries, targets, limit = of
    width, size, query = width_of(lanes), queries.sizes[a], queries.order[a]
    for group in range(0, count, width):
        # Targets come by size, and the smallest sum of sizes needs least.
        least = _enough(sink, a, size + targets.sizes[block + group])
        word: Any = np.int64(-1)
        if least > limit:
            word = 0
        elif least > 0:
            found[1, 0] = least - 1
            word = mask_bits(greater(load(lanes, found, 0, group), splat(lanes, found[1, 0])))
        for k in range(group, min(group + width, count) if word != 0 else group):
            if word >> k - group & 1:
                common, other = np.int64(found[0, k]), block + k
                _take(sink, a, query, targets.order[other], common, size + targets.sizes[other])


#: Take note of what a query shares with the targets of a block; `of`: queries and targets.
_report: Final[Any] = by_type_of({Matrix: _report_all, Above: _report_some, Nearest: _report_some})


@shared
def _fill_table(targets: Any, counts: Any, block: Any, count: Any, row_of: Any, table: Any) -> None:
    """Rows for the q-grams of a block, from 1 on, with their counts in each target."""
    rows = 0
    for k in range(count):
        for y in range(targets.starts[block + k], targets.starts[block + k + 1]):
            row = row_of[targets.grams[y]]
            if row == 0:
                rows += 1
                row = row_of[targets.grams[y]] = rows
                for other in range(table.shape[1]):
                    table[row, other] = 0
            table[row, k] = counts[y]


@kernel
def compare_blocks(
    lanes: Any, sink: Any, of: Any, counts: Any, ranges: Any, row_of: Any, table: Any, found: Any
) -> None:
    """Compare queries with blocks of targets, each with those in its range.

    `of`: queries and targets, `Grams`, and the largest number of the lanes; `counts` of both in numbers of
    that width; `ranges` int64 (blocks, 2); `row_of` int32 (vocabulary,) of 0; `table` (rows, lanes of a
    block) and `found` (2, lanes of a block) are memory, of that width.
    """
    queries, targets, _ = of
    width, columns = width_of(lanes), table.shape[1]
    alg = SumOfLeast(splat(lanes, table[0, 0]))
    for b in range(ranges.shape[0]):
        first, last, block = ranges[b, 0], ranges[b, 1], b * columns
        if first >= last:
            continue
        count = min(columns, targets.sizes.size - block)
        _fill_table(targets, counts[1], block, count, row_of, table)
        for a in range(first, last):
            sum0, sum1, sum2, sum3 = alg.zero, alg.zero, alg.zero, alg.zero
            for y in range(queries.starts[a], queries.starts[a + 1]):
                row = row_of[queries.grams[y]]
                if row > 0:
                    n = splat(lanes, counts[0][y])
                    sum0 = choice(alg, sum0, extend(alg, n, load(lanes, table, row, 0)))
                    sum1 = choice(alg, sum1, extend(alg, n, load(lanes, table, row, width)))
                    sum2 = choice(alg, sum2, extend(alg, n, load(lanes, table, row, 2 * width)))
                    sum3 = choice(alg, sum3, extend(alg, n, load(lanes, table, row, 3 * width)))
            store(lanes, found, 0, 0, sum0)
            store(lanes, found, 0, width, sum1)
            store(lanes, found, 0, 2 * width, sum2)
            store(lanes, found, 0, 3 * width, sum3)
            _report(sink, lanes, found, a, block, count, of)
        for y in range(targets.starts[block], targets.starts[block + count]):
            row_of[targets.grams[y]] = 0


class SimilarBatch(NamedTuple):
    """Queries and targets, both by size unless `sink` is a `Matrix`, whose targets are as given.

    `vocabulary` is the number of q-grams; `ratio` the similarity that is of interest, 0 if any is.
    """

    queries: Grams
    targets: Grams
    vocabulary: int
    sink: Any
    ratio: Fraction = Fraction(0)


def ranges_of(batch: SimilarBatch, below: int, limit: int) -> NDArray[np.int64]:
    """Queries to compare with each block by numbers up to `limit`, and not by those up to `below`.

    Where both sizes are known, so is the most that similarity can be: the lesser by the greater.
    """
    sizes, limits, found = batch.queries.sizes, np.array([below, limit]), []
    ends = np.searchsorted(sizes, limits, "right")
    for block in range(0, batch.targets.sizes.size, COLUMNS):
        own = batch.targets.sizes[block : block + COLUMNS]
        least, most = int(own.min()), int(own.max())
        first, last = np.where(most <= limits, sizes.size, ends).tolist()
        if batch.ratio > 0:
            first = max(first, int(np.searchsorted(sizes, -(-least * batch.ratio // 1))))
            last = min(last, int(np.searchsorted(sizes, most / batch.ratio // 1, "right")))
        found.append((first, max(first, last)))
    return np.array(found, np.int64).reshape(-1, 2)


def _run(run: Any, batch: SimilarBatch, target: Target) -> list[NDArray[np.int64]]:
    queries, targets = batch.queries, batch.targets
    edges = targets.starts[np.append(np.arange(0, targets.sizes.size, COLUMNS), targets.sizes.size)]
    rows = int(np.diff(edges).max(initial=0)) + 1
    below, parts = 0, []
    for kind in _WIDTHS:
        limit = int(np.iinfo(kind).max)
        ranges = ranges_of(batch, below, limit)
        counts = tuple(np.minimum(one.counts, limit).astype(kind) for one in (queries, targets))
        if (ranges[:, 0] < ranges[:, 1]).any():
            parts.append((kind, limit, ranges, counts))
        below = limit

    def one(stretch: tuple[int, int]) -> NDArray[np.int64]:
        sink, room = batch.sink, _FIRST_ROOM
        row_of = np.zeros(batch.vocabulary, np.int32)
        while True:
            if isinstance(sink, Above):
                sink = sink._replace(pairs=np.empty((room, 4), np.int64), number=np.zeros(1, np.int64))
            for kind, limit, ranges, counts in parts:
                table, found = np.zeros((rows, COLUMNS), kind), np.zeros((2, COLUMNS), kind)
                of = queries, targets, np.int64(limit)
                run(LANES, sink, of, counts, np.clip(ranges, *stretch), row_of, table, found)
            if not isinstance(sink, Above) or sink.number[0] <= room:
                return sink.pairs[: sink.number[0]] if isinstance(sink, Above) else _NONE
            room = int(sink.number[0])

    return over_threads(target.threads, stretches(target.threads, queries.sizes.size, 64), one)


_NONE: Final = np.zeros((0, 4), np.int64)
_SIMILAR: Final = Problem.of(
    "similarities of q-grams",
    _run,
    compare_blocks,
    cuda="plait.qgrams.gpu_similarity:similar_batch",
    worth=lambda batch: batch.queries.sizes.size * batch.targets.sizes.size >= _WORTH,
)


def grams_of(texts: Sequence[Sequence[bytes]], q: int, by_size: Sequence[bool]) -> tuple[list[Grams], int]:
    """The q-grams of sets of texts, in one vocabulary, and its size; texts by size where asked for."""
    joined = np.frombuffer(b"".join(b"".join(some) for some in texts), np.uint8)
    lengths = [np.fromiter(map(len, some), np.int64, len(some)) for some in texts]
    sizes = [np.maximum(some - q + 1, 0) for some in lengths]
    ends = np.cumsum(np.concatenate(lengths))
    texts_of = np.repeat(np.arange(ends.size), np.concatenate(lengths))
    places = np.flatnonzero(np.arange(q, joined.size + q) <= ends[texts_of])
    texts_of = texts_of[places]
    if q <= 8:
        codes = np.zeros(places.size, np.uint64)
        for k in range(q):
            codes = codes << np.uint64(8) | joined[places + k]
    else:
        windows = np.lib.stride_tricks.sliding_window_view(joined, q) if joined.size >= q else joined
        codes = np.ascontiguousarray(windows[places]).view(f"V{q}").ravel()
    known, numbers = np.unique(codes, return_inverse=True)
    found, first, text = [], 0, 0
    for own, sort in zip(sizes, by_size, strict=True):
        order = np.argsort(own, kind="stable") if sort else np.arange(own.size)
        rank = np.empty(own.size, np.int64)
        rank[order] = np.arange(own.size)
        last = first + int(own.sum())
        keys = rank[texts_of[first:last] - text] << 32 | numbers[first:last]
        kinds, counts = np.unique(keys, return_counts=True)
        starts = np.searchsorted(kinds, np.arange(own.size + 1) << 32)
        grams = (kinds & 0xFFFFFFFF).astype(np.int32)
        found.append(Grams(grams, counts, starts, own[order], order))
        first, text = last, text + own.size
    return found, max(known.size, 1)


class Similar(NamedTuple):
    """Pairs of similar texts, by query; the nearest are in order of similarity.

    Attributes
    ----------
    queries, targets
        Places of the texts as given, int64, shape (pairs,).
    shared
        Numbers of q-grams that both have, int64, shape (pairs,).
    similarity
        Multiset Tanimoto similarities, float32, shape (pairs,).
    """

    queries: NDArray[np.int64]
    targets: NDArray[np.int64]
    shared: NDArray[np.int64]
    similarity: NDArray[np.float32]


Texts = Iterable[str | bytes]


@spelled
def similarities(
    queries: Texts, targets: Texts | None = None, *, q: int = 4, **on: Unpack[On]
) -> NDArray[np.float32]:
    """Similarities of all queries with all targets.

    Parameters
    ----------
    queries, targets
        Texts; without targets, the queries themselves. Text counts as UTF-8.
    q
        Letters of a q-gram, at most 255.
    **on
        `device`, ``auto``, ``cpu``, ``cuda``, ...; answers are the same on all, and the CPU's. `threads` of
        the CPU.

    Returns
    -------
    numpy.ndarray
        Multiset Tanimoto similarities, float32, shape (queries, targets); 0 for texts of less than q letters.

    Raises
    ------
    InvalidInput
        If q is out of range, texts of both sides have more than 65,535 q-grams, or the matrix would have more
        than 2^34 cells.

    Examples
    --------
    >>> similarities(["CASSLGF", "CASSLGQF"], ["CASSLGF"], q=3)
    array([[1.       ],
           [0.5714286]], dtype=float32)
    """
    (left, right), vocabulary = _prepared(queries, targets, q, by_size=(True, False))
    cells = left.sizes.size * right.sizes.size
    if cells > _MOST_CELLS:
        expected = f"at most {_MOST_CELLS:,} in memory"
        raise InvalidInput("texts", found=f"{cells:,} similarities", expected=expected)
    out = np.zeros((left.sizes.size, right.sizes.size), np.float32)
    most = int(left.sizes.max(initial=0) + right.sizes.max(initial=0))
    inverse = 1 / np.maximum(np.arange(most + 1), 1)
    _launched(SimilarBatch(left, right, vocabulary, Matrix(out, inverse)), **on)
    return out


@spelled
def similar(
    queries: Texts,
    targets: Texts | None = None,
    *,
    q: int = 4,
    at_least: float | None = None,
    nearest: int | None = None,
    **on: Unpack[On],
) -> Similar:
    """Similar pairs: all above a similarity, or the nearest targets of each query.

    Parameters
    ----------
    queries, targets
        Texts; without targets, the queries themselves: then each pair is found once, or no query is a
        neighbour of itself.
    q
        Letters of a q-gram, at most 255.
    at_least
        Least similarity, above 0 and at most 1, as it is written in decimals; 0.5 if `nearest` is not given
        either.
    nearest
        Instead: how many targets for each query, if they share anything with it.
    **on
        `device`, ``auto``, ``cpu``, ``cuda``, ...; answers are the same on all. `threads` of the CPU.

    Returns
    -------
    Similar
        By query, and then by target; the nearest by similarity, and those of the same one by target.

    Raises
    ------
    InvalidInput
        If a number is out of range, or texts of both sides have more than 65,535 q-grams.

    Examples
    --------
    >>> similar(["CASSLGF", "CASSLGQF", "CASTLGF"], q=3, at_least=0.5).similarity
    array([0.5714286], dtype=float32)
    """
    if at_least is not None and nearest is not None:
        raise InvalidInput("at_least", found="nearest besides", expected="either")
    (left, right), vocabulary = _prepared(queries, targets, q, by_size=(True, True))
    own = targets is None
    if nearest is not None:
        nearest = whole("nearest", nearest, 1, 1 << 20)
        best = np.full((left.sizes.size, nearest, 3), (-1, 0, 1), np.int64)
        _launched(SimilarBatch(left, right, vocabulary, Nearest(best, own)), **on)
        best = best[np.argsort(left.order)]
        rows, places = np.nonzero(best[:, :, 1] > 0)
        return _similar(np.column_stack([rows, best[rows, places]]))
    wanted = 0.5 if at_least is None else at_least
    if not 0 < wanted <= 1:
        raise InvalidInput("at_least", found=wanted, expected="a similarity above 0, at most 1")
    # As it is written: the nearest float of 0.1 is above a tenth.
    ratio = Fraction(repr(float(wanted)))
    sums = np.arange(int(left.sizes.max(initial=0) + right.sizes.max(initial=0)) + 1)
    top, low = ratio.numerator, ratio.numerator + ratio.denominator
    least = np.array([-(-int(size) * top // low) for size in sums], np.int64)
    # Nothing in common is not similar.
    sink = Above(np.maximum(least, 1), own, _NONE, np.zeros(1, np.int64))
    found = np.concatenate([_NONE, *_launched(SimilarBatch(left, right, vocabulary, sink, ratio), **on)])
    return _similar(found[np.lexsort((found[:, 1], found[:, 0]))])


def _similar(pairs: NDArray[np.int64]) -> Similar:
    queries, targets, both, either = pairs.T
    return Similar(queries, targets, both, (both / either).astype(np.float32))


def _prepared(
    queries: Texts, targets: Texts | None, q: int, by_size: tuple[bool, bool]
) -> tuple[list[Grams], int]:
    q = whole("q", q, 1, LONGEST)
    given = (queries,) if targets is None else (queries, targets)
    sets = list(map(_encoded, given))
    found, vocabulary = grams_of([sets[0], sets[-1]], q, by_size)
    most = min(int(one.sizes.max(initial=0)) for one in found)
    if most > np.iinfo(_WIDTHS[-1]).max:
        raise InvalidInput("texts", found=f"{most:,} q-grams on both sides", expected="at most 65,535 on one")
    return found, vocabulary


def _encoded(texts: Texts) -> list[bytes]:
    with suppress(TypeError):
        if not isinstance(texts, str):
            return [text.encode() if isinstance(text, str) else bytes(memoryview(text)) for text in texts]
    raise InvalidInput("texts", found=f"{texts!r:.60}", expected="several texts, each str or bytes")


def _launched(batch: SimilarBatch, **on: Unpack[On]) -> list[NDArray[np.int64]]:
    chosen = resolve(**on)
    return chosen.launch(_SIMILAR, batch) if batch.queries.sizes.size and batch.targets.sizes.size else []


_BRACKETS: Final = re.compile(rb"(\[[^\]]*\])|%[0-9]{2}|[0-9]")


def smiles_letters(text: str | bytes) -> bytes:
    """A SMILES in the letters of LINGO: digits of rings as 0, chlorine as L, bromine as R.

    Parameters
    ----------
    text
        The SMILES.

    Returns
    -------
    bytes
        What q-grams are taken from.

    Examples
    --------
    >>> smiles_letters("Clc1ccc(Br)cc1")
    b'Lc0ccc(R)cc0'
    """
    given = text.encode() if isinstance(text, str) else text
    plain = _BRACKETS.sub(lambda found: found[1] or b"0", given)
    return plain.replace(b"Cl", b"L").replace(b"Br", b"R")
