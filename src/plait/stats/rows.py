"""Rows of a design: which fold each belongs to, sums over all of them, and a sample that fits into memory.

Folds and halves are drawn from a row's number and a seed alone, so they are the same for any partition of the
rows. Sums are equal bit for bit however the work is split: rows are cut into pieces of a fixed number, what
these give is added in a binary tree over their numbers, and a batch of neighbouring pieces, as many as a
power of two, adds up its part of the tree.

Models are fitted roughly on a weighted sample first. Rows far from the mean, of the rarer outcome, or with an
outcome that a pilot model did not expect are drawn with higher probability and weigh less: they are what
coefficients depend on (local case-control sampling: Fithian and Hastie, Ann. Stat. 42, 2014). What the final
coefficients are does not depend on the sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from plait.errors import InvalidInput
from plait.lang.lanes import EightLanes
from plait.run.executor import Executor
from plait.stats.design_file import DesignFile
from plait.stats.logistic import PARTS, SIDE, Observations, products_kernel

#: The kind of weight that is 1 for every row.
ALL_ROWS: Final = 0
#: Streams of random words; halves have one for every 32 pairs.
SAMPLE_STREAM: Final = 0
_FOLDS: Final = 1
_HALVES: Final = 2
_PER_WORD: Final = 32


def random_words(rows: NDArray[np.uint64], seed: int, stream: int) -> NDArray[np.uint64]:
    """64 random bits a row: splitmix64 of its number (Steele, Lea and Flood, OOPSLA 2014).

    Other seeds and streams give other, unrelated bits.
    """
    start = _mixed(_mixed(np.uint64(seed)) ^ np.uint64(stream))
    with np.errstate(over="ignore"):
        return _mixed(rows * np.uint64(0x9E3779B97F4A7C15) + start)


def _mixed(z: NDArray[np.uint64] | np.uint64) -> NDArray[np.uint64]:
    with np.errstate(over="ignore"):
        z = np.asarray(z) + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


@dataclass(frozen=True, slots=True)
class RowDraws:
    """Kinds of weights: every row weighs 0 or 1 in each. Kinds are numbers: `ALL_ROWS`, and of methods."""

    seed: int
    folds: int
    halves: int

    def inside(self, fold: int) -> int:
        """Kind of the rows of a fold."""
        return 1 + fold

    def outside(self, fold: int) -> int:
        """Kind of the rows of all other folds."""
        return 1 + self.folds + fold

    def half(self, half: int) -> int:
        """Kind of the rows of a half. Halves 2k and 2k + 1 make up all rows."""
        return 1 + 2 * self.folds + half

    @property
    def kinds(self) -> int:
        """Number of kinds."""
        return 1 + 2 * self.folds + self.halves

    def fold_of(self, rows: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The fold of each row."""
        drawn = random_words(rows, self.seed, _FOLDS) >> np.uint64(32)
        return ((drawn * np.uint64(self.folds)) >> np.uint64(32)).astype(np.int64)

    def weights(self, rows: NDArray[np.uint64], kinds: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether rows of these numbers weigh anything; bool (kinds, rows)."""
        found = np.empty((kinds.size, rows.size), np.bool_)
        fold = self.fold_of(rows)
        words: dict[int, NDArray[np.uint64]] = {}
        for k, kind in enumerate(kinds.tolist()):
            if kind == ALL_ROWS:
                found[k] = True
            elif kind < self.outside(0):
                found[k] = fold == kind - self.inside(0)
            elif kind < self.half(0):
                found[k] = fold != kind - self.outside(0)
            else:
                pair, second = divmod(kind - self.half(0), 2)
                word, bit = divmod(pair, _PER_WORD)
                if word not in words:
                    words[word] = random_words(rows, self.seed, _HALVES + word)
                found[k] = (words[word] >> np.uint64(bit)) & np.uint64(1) == second
        return found


#: What a piece gives: arrays, that are added one by one.
Values: TypeAlias = tuple[NDArray[Any], ...]
PieceWork: TypeAlias = Callable[[int, int], Values]

MOST_PIECE_ROWS: Final = 16384
_FEWEST_PIECE_ROWS: Final = 512
_PIECE_VALUES: Final = 1 << 21
#: Batches are made larger where there would be more than this many.
_MANY_BATCHES: Final = 512


def piece_rows(predictors: int) -> int:
    """Rows of a piece: a power of two, fewer the more predictors there are."""
    rows = MOST_PIECE_ROWS
    while rows > _FEWEST_PIECE_ROWS and rows * predictors > _PIECE_VALUES:
        rows //= 2
    return rows


def batch_rows(total: int, rows: int) -> int:
    """Rows of a batch: a piece of `rows`, or as many pieces as a power of two where there are very many."""
    step = rows
    while -(-total // step) > _MANY_BATCHES:
        step *= 2
    return step


class TreeSum:
    """Adds values in a binary tree over their numbers, as they come."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, Values]] = []

    def add(self, level: int, values: Values) -> None:
        """Add the sum of the next ``2 ** level`` pieces, or of the last few."""
        while self._waiting and self._waiting[-1][0] == level:
            values = _added(self._waiting.pop()[1], values)
            level += 1
        self._waiting.append((level, values))

    def parts(self) -> list[tuple[int, Values]]:
        """Complete trees, the largest first, each with its level."""
        return self._waiting

    def total(self) -> Values:
        """The sum of everything; empty if there was nothing."""
        if not self._waiting:
            return ()
        values = self._waiting[-1][1]
        for _, larger in reversed(self._waiting[:-1]):
            values = _added(larger, values)
        return values


def _added(a: Values, b: Values) -> Values:
    return tuple(x + y for x, y in zip(a, b, strict=True))


@dataclass(frozen=True, slots=True)
class _Batch:
    """Adds up neighbouring pieces; picklable if its work is."""

    work: PieceWork
    rows: int

    def __call__(self, span: tuple[int, int]) -> list[tuple[int, Values]]:
        tree = TreeSum()
        for start in range(span[0], span[1], self.rows):
            tree.add(0, self.work(start, min(start + self.rows, span[1])))
        return tree.parts()


def sum_pieces(
    executor: Executor, work: PieceWork, total: int, rows: int, told: Callable[[int], None]
) -> Values:
    """Do the work on all pieces and add up what they give; empty if there are no rows.

    Work is called with the rows ``[start, stop)`` of a piece, `told` with the number of rows that are done.
    """
    tree = TreeSum()
    step = batch_rows(total, rows)
    spans: Iterable[tuple[int, int]] = ((at, min(at + step, total)) for at in range(0, total, step))
    done = 0
    with closing(executor.map(_Batch(work, rows), spans, named=_named)) as results:
        for parts in results:
            for level, values in parts:
                tree.add(level, values)
            done = min(done + step, total)
            told(done)
    return tree.total()


def _named(span: tuple[int, int]) -> str:
    return f"rows {span[0]} to {span[1] - 1} of the design"


#: Groups that hold the partial sums.
LANES = EightLanes()
_PLACES = 2 * PARTS
#: Largest value of a predictor.
_LARGEST = 1e150


def padded_shape(rows: int, places: int) -> tuple[int, int]:
    """Shape of the smallest matrix with room for so many rows and places that the schedules take."""
    return -(-rows // SIDE) * SIDE, -(-places // _PLACES) * _PLACES


def folded(parts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums of the `PARTS` partial sums along the last axis, always in the same order."""
    while parts.shape[-1] > 1:
        half = parts.shape[-1] // 2
        parts = parts[..., :half] + parts[..., half:]
    return parts[..., 0]


def symmetric(upper: NDArray[np.float64]) -> NDArray[np.float64]:
    """Symmetric matrices from what stands on and above their diagonals."""
    triangle = np.triu(upper)
    return triangle + np.swapaxes(np.triu(upper, 1), -1, -2)


class Moments(NamedTuple):
    """Means and covariances of all rows; `mean` and `sd` (predictors,) are over n, not n - 1.

    `correlation` (predictors, predictors) is 0 for those that do not vary; `slope` (predictors,) is the
    covariance of each standardised predictor with the outcome.
    """

    rows: int
    events: int
    mean: NDArray[np.float64]
    sd: NDArray[np.float64]
    correlation: NDArray[np.float64]
    slope: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Totals:
    """Sums of the predictors of a piece."""

    design: DesignFile

    def __call__(self, start: int, stop: int) -> Values:
        values, _ = self.design.read(start, stop)
        return (values.sum(axis=1),)


@dataclass(frozen=True, slots=True)
class _Products:
    """Products of all pairs of centred predictors, and of each with the outcome and with 1."""

    design: DesignFile
    mean: NDArray[np.float64]
    scale: NDArray[np.float64]

    def __call__(self, start: int, stop: int) -> Values:
        values, outcome = self.design.read(start, stop)
        predictors, rows = values.shape
        x = np.zeros(padded_shape(predictors + 2, rows))
        x[0, :rows] = 1.0
        x[1, :rows] = outcome
        x[2 : predictors + 2, :rows] = (values - self.mean[:, None]) * self.scale[:, None]
        sums = np.zeros((x.shape[0] ** 2, PARTS))
        products_kernel(LANES, x, sums)
        return (sums,)


def find_moments(design: DesignFile, executor: Executor, told: Callable[[int], None]) -> Moments:
    """Means and covariances, in two passes; `told` counts up to twice the rows.

    InvalidInput if values of a predictor are too large, or too close to each other, for sums of squares.
    """
    n, p = design.rows, len(design.predictors)
    size = piece_rows(p)
    for name, low, high in zip(design.predictors, design.low.tolist(), design.high.tolist(), strict=True):
        if max(-low, high) > _LARGEST or 0.0 < high - low < 1.0 / _LARGEST:
            raise InvalidInput(
                f"predictor {name!r}",
                found=f"values from {low:g} to {high:g}",
                expected=f"values up to {_LARGEST:g}, that differ by more than {1.0 / _LARGEST:g}",
                hint="take another unit, or the logarithm",
            )
    mean = sum_pieces(executor, _Totals(design), n, size, told)[0] / n
    reach = np.maximum(design.high - mean, mean - design.low)
    varies = design.high > design.low
    scale = np.where(varies, 1.0 / np.where(varies, reach, 1.0), 0.0)
    work = _Products(design, mean, scale)
    sums = sum_pieces(executor, work, n, size, lambda done: told(n + done))[0]
    side = padded_shape(p + 2, 1)[0]
    products = symmetric(folded(sums).reshape(side, side)[: p + 2, : p + 2]) / n
    return _moments(design, mean, scale, products)


def _moments(design: DesignFile, mean: Any, scale: Any, products: Any) -> Moments:
    rest = products[0, 2:]
    covariance = products[2:, 2:] - rest[:, None] * rest[None, :]
    spread = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    varies = (spread > 0) & (scale > 0)
    inverse = np.where(varies, 1.0 / np.where(varies, spread, 1.0), 0.0)
    correlation = covariance * inverse[:, None] * inverse[None, :]
    np.fill_diagonal(correlation, varies.astype(np.float64))
    unscaled = np.where(varies, 1.0 / np.where(varies, scale, 1.0), 0.0)
    return Moments(
        rows=design.rows,
        events=design.events,
        mean=mean + rest * unscaled,
        sd=np.where(varies, spread * unscaled, 0.0),
        correlation=correlation,
        slope=(products[1, 2:] - rest * design.events / design.rows) * inverse,
    )


@dataclass(frozen=True, slots=True)
class StandardRows:
    """Rows with the kept predictors, standardised: less `mean`, then times `scale`. Picklable."""

    design: DesignFile
    kept: NDArray[np.int64]
    mean: NDArray[np.float64]
    scale: NDArray[np.float64]

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.design.rows

    @property
    def width(self) -> int:
        """Coefficients of a model: the intercept and the kept predictors, padded."""
        return padded_shape(1 + self.kept.size, 1)[0]

    @property
    def piece_rows(self) -> int:
        """Rows of a piece."""
        return piece_rows(self.width)

    def read(self, start: int, stop: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Rows ``[start, stop)``: float64 (width, places), and outcomes as numbers, float64 (places,).

        Rows of the matrix are 1 (the intercept), the predictors, then zeros; both sides are padded.
        """
        values, outcome = self.design.read(start, stop)
        shape = padded_shape(1 + self.kept.size, stop - start)
        x, y = np.zeros(shape), np.zeros(shape[1])
        rows = stop - start
        x[0, :rows] = 1.0
        for k, column in enumerate(self.kept.tolist()):
            np.subtract(values[column], self.mean[k], out=x[1 + k, :rows])
            x[1 + k, :rows] *= self.scale[k]
        y[:rows] = outcome
        return x, y


_LEAST: Final = 1 << 17
_PER_COEFFICIENT: Final = 4096
_MOST_VALUES: Final = 1 << 24
#: Scores of a pilot model beyond, in powers of two, are as good as certain.
_CERTAIN: Final = 40.0
_LOG2_E: Final = 1.4426950408889634


def sample_size(width: int) -> int:
    """Rows that a sample has about, for models of so many coefficients."""
    return min(max(_LEAST, _PER_COEFFICIENT * width), _MOST_VALUES // width)


@dataclass(frozen=True, slots=True)
class RowSample:
    """Rows in memory: x (width, places), y and how many rows each stands for (places,). Picklable.

    `numbers` of the rows, uint64 (rows,), tell the kinds of weight.
    """

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    weights: NDArray[np.float64]
    numbers: NDArray[np.uint64]
    draws: RowDraws

    def observations(self, kind: int) -> Observations:
        """The rows with one kind of weight, and with none."""
        weights = np.zeros((2, self.weights.size))
        drawn = self.draws.weights(self.numbers, np.array([kind]))[0]
        weights[0, : drawn.size] = drawn * self.weights[: drawn.size]
        return Observations(self.x, self.y, weights)


class _Drawn(NamedTuple):
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    weights: NDArray[np.float64]
    numbers: NDArray[np.uint64]
    counts: NDArray[np.int64]


#: Share of a sample that is drawn without the pilot.
_EVEN: Final = 0.5


class Pilot(NamedTuple):
    """A model of all rows (width,), and the mean over them of how far an outcome is from its probability."""

    coefficients: NDArray[np.float64]
    surprise: float = 1.0

    def surprises(self, x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
        """How far each outcome is from its probability, of which the odds are rounded to a power of two."""
        # Nothing that another processor or library could round differently.
        score = np.zeros(y.size)
        for factor, row in zip(self.coefficients.tolist(), x, strict=True):
            score += factor * row
        powers = np.rint(np.clip(score * _LOG2_E, -_CERTAIN, _CERTAIN)).astype(np.int32)
        odds = np.ldexp(1.0, powers)
        return np.abs(y - odds / (1.0 + odds))


@dataclass(frozen=True, slots=True)
class _Drawer:
    rows: StandardRows
    draws: RowDraws
    share: float
    pilot: Pilot | None

    def __call__(self, span: tuple[int, int]) -> _Drawn:
        size = self.rows.piece_rows
        parts = [self._draw(start, min(start + size, span[1])) for start in range(*span, size)]
        counts = np.sum([part.counts for part in parts], axis=0)
        x = np.concatenate([part.x for part in parts], axis=1)
        y, weights, numbers = (
            np.concatenate(rest) for rest in zip(*(part[1:4] for part in parts), strict=True)
        )
        return _Drawn(x, y, weights, numbers, counts)

    def _draw(self, start: int, stop: int) -> _Drawn:
        x, y = self.rows.read(start, stop)
        size = stop - start
        numbers = np.arange(start, stop, dtype=np.uint64)
        kinds = self.draws.weights(numbers, np.arange(self.draws.kinds))
        counts = np.stack([kinds.sum(axis=1), (kinds & (y[:size] > 0)).sum(axis=1)], axis=1)
        if self.share >= 1.0:
            return _Drawn(x[:, :size], y[:size], np.ones(size), numbers, counts)
        distance = np.zeros(size)
        for row in x[1 : 1 + self.rows.kept.size, :size]:
            distance += row * row
        reach = 0.5 * (1.0 + distance / max(self.rows.kept.size, 1))
        event = self.rows.design.events / self.rows.rows
        chance = reach * np.where(y[:size] > 0, 0.5 / event, 0.5 / (1.0 - event))
        if self.pilot is not None:
            surprise = self.pilot.surprises(x, y)[:size] / self.pilot.surprise
            chance = _EVEN * chance + (1.0 - _EVEN) * surprise * np.sqrt(reach)
        chance = np.minimum(self.share * chance, 1.0)
        drawn = random_words(numbers, self.draws.seed, SAMPLE_STREAM) * 2.0**-64 < chance
        return _Drawn(x[:, :size][:, drawn], y[:size][drawn], 1.0 / chance[drawn], numbers[drawn], counts)


def draw_sample(
    rows: StandardRows,
    draws: RowDraws,
    executor: Executor,
    told: Callable[[int], None],
    pilot: Pilot | None = None,
) -> tuple[RowSample, NDArray[np.int64]]:
    """Draw the sample; and rows and events of each kind among all rows, int64 (kinds, 2)."""
    total = rows.rows
    size = batch_rows(total, rows.piece_rows)
    drawer = _Drawer(rows, draws, sample_size(rows.width) / total, pilot)
    spans = ((at, min(at + size, total)) for at in range(0, total, size))
    counts = np.zeros((draws.kinds, 2), np.int64)
    parts: list[_Drawn] = []
    with closing(executor.map(drawer, spans)) as results:
        for found in results:
            counts += found.counts
            parts.append(found)
            told(min(len(parts) * size, total))
    count = sum(part.numbers.size for part in parts)
    shape = padded_shape(rows.width, count)
    x, y, weights = np.zeros(shape), np.zeros(shape[1]), np.zeros(shape[1])
    at = 0
    for part in parts:
        span = slice(at, at + part.numbers.size)
        x[:, span], y[span], weights[span] = part.x, part.y, part.weights
        at = span.stop
    numbers = np.concatenate([part.numbers for part in parts])
    return RowSample(x, y, weights, numbers, draws), counts
