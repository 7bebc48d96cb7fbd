"""Hidden Markov models over sequences of frames: best paths, likelihoods, posteriors, counts, fitting."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from plait.devices.target import Problem, Target, interpreted, over_threads, resolve
from plait.errors import InvalidInput, in_range
from plait.lang.algebras import (
    BIG_COUNT,
    Count,
    LogSum,
    Optimal,
    Probability,
    SaturatingCount,
    SaturatingMaxPlus,
)
from plait.lang.lanes import host_lanes, lanes_of, padded
from plait.settings import thread_count
from plait.states.dense import Beating, Reached, decode_few, decode_sequences, sweep_states, trace_states
from plait.states.models import HiddenMarkovModel

_Floats = NDArray[np.float64]

#: Bytes of the values of frames that are held at a time.
_HELD: Final = 64 << 20
_MOST: Final = np.int64((1 << 63) - 1)
_BEST: Final = SaturatingMaxPlus(-math.inf, 0.0)
_SUM: Final = Probability(0.0, 1.0)
_LOG_SUM: Final = LogSum(-math.inf, 0.0)
_NUMBER: Final = SaturatingCount(np.int64(0), np.int64(1), _MOST)
#: Paths are counted in float64, exactly up to 2^53.
_TIES: Final = Optimal((-math.inf, 0.0), (0.0, 1.0), _BEST, Count(0.0, 1.0))


class Decoded(NamedTuple):
    """The most probable path.

    Attributes
    ----------
    score
        Logarithm of its probability together with the observations; minus infinity if there is none.
    path
        int32 (frames,): the state of each frame; of equal paths that whose last states come first.
    """

    score: float
    path: NDArray[np.int32]


class Fitted(NamedTuple):
    """A model fitted to sequences.

    Attributes
    ----------
    model
        The model.
    log_likelihoods
        Of the sequences before each iteration.
    """

    model: HiddenMarkovModel
    log_likelihoods: list[float]


class _Sweep:
    """A model's tables in an algebra; values of frames are held a block at a time."""

    def __init__(
        self, algebra: Any, start: NDArray[Any], matrix: NDArray[Any], *, one_lane: bool = False
    ) -> None:
        self._algebra = algebra
        self._kernel: Any = interpreted(sweep_states) if matrix.dtype == object else sweep_states
        pair = isinstance(algebra, Optimal)
        self._lanes = lanes_of(1) if one_lane or pair or matrix.dtype == object else host_lanes(64)
        self._own = len(matrix)
        self._zero = np.asarray(algebra.zero, matrix.dtype)
        self._begin = self.padded(start[None])
        # An even number of rows, with nothing in the last one.
        self._matrix = np.empty_like(self._begin, shape=(self._own + self._own % 2, *self._begin.shape[1:]))
        self._matrix[self._own :], self._matrix[: self._own] = self._zero, self.padded(matrix)
        self.block = max(1, _HELD // self._begin.nbytes)

    def padded(self, rows: NDArray[Any]) -> NDArray[Any]:
        wide = np.empty((len(rows), padded(self._own), *rows.shape[2:]), rows.dtype)
        wide[:, : self._own], wide[:, self._own :] = rows, self._zero
        return wide

    def run(self, weights: NDArray[Any], values: NDArray[Any] | None = None) -> tuple[NDArray[Any], ...]:
        """Values that reach each state (frames + 1, states), those of the last frame, and scales (frames,).

        With `values` it goes on from them. The last row of those that reach a state is not set.
        """
        wide = self.padded(weights)
        frames = len(wide)
        reached = np.empty_like(wide, shape=(frames + 1, *wide.shape[1:]))
        scales, last = np.empty(frames), np.empty_like(wide, shape=(2, *wide.shape[1:]))
        if values is not None:
            last[0] = values
        begins = values is None
        self._kernel(
            self._algebra, self._lanes, self._begin, self._matrix, wide, begins, reached, last, scales
        )
        return reached, last[frames & 1].copy(), scales

    def trace(self, backwards: NDArray[Any], weights: NDArray[Any], reached: NDArray[Any], path: Any) -> None:
        """The best way back from the state that `path` ends with."""
        trace_states(self._algebra, self._lanes, self.padded(backwards), self.padded(weights), reached, path)

    def through(self, weights: NDArray[Any]) -> _Swept:
        """Over all frames, a block after the other."""
        values: NDArray[Any] | None = None
        before: list[NDArray[Any] | None] = []
        scales = []
        for first in range(0, len(weights), self.block):
            before.append(values)
            reached, values, scale = self.run(weights[first : first + self.block], values)
            scales.append(scale)
        return _Swept(before, reached, values, np.concatenate(scales))


class _Swept(NamedTuple):
    """Values that each block began with, those that reach the frames of the last one, and those at the end.

    `scales` are those of all frames.
    """

    before: list[NDArray[Any] | None]
    reached: NDArray[Any]
    after: Any
    scales: NDArray[Any]


def _logs(table: _Floats) -> _Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(table))


def decode(model: HiddenMarkovModel, observations: ArrayLike) -> Decoded:
    """Find the most probable path of states (Viterbi).

    Parameters
    ----------
    model
        The model.
    observations
        Symbols or logarithms, as for `HiddenMarkovModel.log_weights`.

    Returns
    -------
    Decoded
        Its score and its states.

    Raises
    ------
    InvalidInput
        If an observation is not what it should be.

    Examples
    --------
    >>> from plait.states import HiddenMarkovModel, decode
    >>> coin = HiddenMarkovModel([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], [[0.5, 0.5], [0.9, 0.1]])
    >>> decode(coin, [0, 1, 1, 0, 0, 0, 0, 0]).path.tolist()
    [0, 0, 0, 1, 1, 1, 1, 1]
    """
    return decode_each(model, [observations], device="cpu", threads=1)[0]


def _decoded(begin: _Floats, backwards: _Floats, weights: _Floats) -> Decoded:
    path = np.full(len(weights), -1, np.int32)
    if not path.size:
        return Decoded(0.0, path)
    sweep = _Sweep(_BEST, begin, backwards.T)
    before, reached, after, _ = sweep.through(weights)
    path[-1] = int(after.argmax())
    score = float(after[path[-1]])
    if score == -math.inf:
        path[-1] = -1
        return Decoded(score, path)
    for number in range(len(before) - 1, -1, -1):
        part = weights[number * sweep.block : (number + 1) * sweep.block]
        end = number * sweep.block + len(part)
        if number < len(before) - 1:
            behind, end = reached[0], end + 1
            reached, *_ = sweep.run(part, before[number])
            reached[-1] = behind
        sweep.trace(backwards, part, reached, path[number * sweep.block : end])
    return Decoded(score, path)


class SequenceBatch(NamedTuple):
    """Sequences of `owner` as they were `given`.

    `model`: `begin`, `backwards` and `table` of `sweep_sequences`, in the numbers of `algebra`; `rows` of the
    table by frame, int64, of each sequence; `logs` of what its probabilities were divided by.
    """

    owner: HiddenMarkovModel
    given: Sequence[ArrayLike]
    model: tuple[_Floats, _Floats, _Floats]
    rows: Sequence[NDArray[np.int64]]
    logs: Sequence[float]
    algebra: Any

    def groups(self, width: int, most: int) -> list[NDArray[np.int64]]:
        """Numbers of sequences of like lengths, up to so many, of which `most` values of a state are held."""
        sizes = np.array([len(one) for one in self.rows], np.int64)
        order, first, found = np.argsort(sizes, kind="stable"), 0, []
        while first < order.size:
            last = min(first + width, order.size)
            while last > first + 1 and (last - first) * sizes[order[last - 1]] > most:
                last = (first + last + 1) // 2
            found.append(order[first:last])
            first = last
        return found

    def codes(self, own: NDArray[np.int64], width: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Rows of some sequences one below the other, int32 (width, frames), and their numbers of frames."""
        counts = np.zeros(width, np.int64)
        counts[: own.size] = [len(self.rows[k]) for k in own]
        codes = np.zeros((width, counts.max(initial=0)), np.int32)
        for lane, k in enumerate(own.tolist()):
            codes[lane, : counts[lane]] = self.rows[k]
        return codes, counts


def _decode_groups(run: Any, few: Any, batch: SequenceBatch, target: Target) -> list[Decoded]:
    begin, backwards, table = batch.model
    lanes, states = host_lanes(64), begin.size
    model: Any = batch.model
    found = [Decoded(0.0, np.empty(0, np.int32))] * len(batch.rows)
    in_lanes = states <= _FEW
    if in_lanes:
        lanes = lanes_of(4 if states <= 4 else 8)
        model = tuple(_padded(rows, lanes) for rows in (begin[None], backwards.T, backwards, table))
    alone, wide = in_lanes and states <= lanes.width, model[1].shape[1]
    spare = [np.empty(0)] * target.threads

    def one(own: NDArray[np.int64]) -> None:
        codes, counts = batch.codes(own, own.size if in_lanes else lanes.width)
        room = codes.size if alone else (codes.size + len(codes)) * wide
        if (8 * room > _HELD and not alone) if in_lanes else 2 * own.size < lanes.width:
            for k in own:
                found[k] = _decoded(begin, backwards, table[batch.rows[k]])
            return
        # Memory is used again: new pages take as long as what is written to them.
        held = spare.pop()
        held = held if held.size >= room else np.empty(room)
        memory: Any
        if alone:
            ways: Any = Beating(held[:room].view(np.int64).reshape(codes.shape[::-1]))
            memory = np.empty((2, len(codes), wide)), ways
        elif in_lanes:
            ways = Reached(held[:room].reshape(-1, len(codes), wide))
            ways.rows[:1] = model[0][0]
            memory = np.empty((2, len(codes), wide)), ways
        else:
            codes = np.ascontiguousarray(codes.T)
            memory = np.empty((2 * states, lanes.width)), held[:room].reshape(-1, states, lanes.width)
        path, scores = np.empty(codes.shape, np.int32), np.zeros(counts.size)
        (few if in_lanes else run)(lanes, batch.algebra, model, codes, counts, memory, path, scores)
        spare.append(held)
        for lane, k in enumerate(own.tolist()):
            line = path[lane] if in_lanes else path[:, lane].copy()
            found[k] = Decoded(float(scores[lane]), line[: counts[lane]])

    over_threads(target.threads, batch.groups(host_lanes(64).width, _HELD // (8 * model[1].shape[1])), one)
    return found


def _padded(rows: _Floats, lanes: Any) -> _Floats:
    """Rows of impossible states besides: lanes are full, and as many rows, or an even number of them."""
    wide = rows.shape[1] + -rows.shape[1] % lanes.width
    below = -len(rows) % (lanes.width if wide == lanes.width else 2)
    found = np.full((len(rows) + below, wide), -math.inf)
    found[: len(rows), : rows.shape[1]] = rows
    return found


def _each_likelihood(batch: SequenceBatch, target: Target) -> _Floats:
    return np.array(over_threads(target.threads, batch.given, partial(likelihood, batch.owner)), np.float64)


#: Most states that are in lanes themselves where there are several sequences.
_FEW: Final = 32
#: Steps between states that are worth the start of a GPU which was not asked for by name.
_WORTH: Final = 1 << 36


def _worth(batch: SequenceBatch) -> bool:
    return sum(map(len, batch.rows)) * batch.model[1].size >= _WORTH


_PATHS: Final = Problem(
    "best paths of sequences",
    cpu=partial(_decode_groups, decode_sequences, decode_few),
    reference=partial(_decode_groups, interpreted(decode_sequences), interpreted(decode_few)),
    cuda="plait.states.gpu_states:decode_batch",
    worth=_worth,
)
_LIKELIHOODS: Final = Problem(
    "likelihoods of sequences",
    cpu=_each_likelihood,
    reference=_each_likelihood,
    cuda="plait.states.gpu_states:likelihood_batch",
    worth=_worth,
)


def decode_each(
    model: HiddenMarkovModel,
    sequences: Sequence[ArrayLike],
    *,
    device: str = "auto",
    threads: int | None = None,
) -> list[Decoded]:
    """Find the most probable path of each of many sequences.

    Parameters
    ----------
    model
        The model.
    sequences
        Observations, each as for `decode`.
    device
        ``auto``, ``cpu``, ``cuda``, ...; answers are the same on all.
    threads
        Threads of the CPU.

    Returns
    -------
    list of Decoded
        What `decode` finds for each.

    Raises
    ------
    InvalidInput
        If an observation is not what it should be.
    """
    tables = _logs(model.start), np.ascontiguousarray(_logs(model.transitions).T)
    return resolve(device, threads).launch(_PATHS, _batch(model, sequences, tables, _BEST))


def likelihood_each(
    model: HiddenMarkovModel,
    sequences: Sequence[ArrayLike],
    *,
    device: str = "auto",
    threads: int | None = None,
) -> _Floats:
    """Compute the probability of each of many sequences, whatever the path.

    Parameters
    ----------
    model, sequences, device, threads
        As for `decode_each`; on GPUs sums may differ by roundings.

    Returns
    -------
    numpy.ndarray
        float64 (sequences,): what `likelihood` finds for each.

    Raises
    ------
    InvalidInput
        If an observation is not what it should be.
    """
    tables = model.start, np.ascontiguousarray(model.transitions.T)
    return resolve(device, threads).launch(_LIKELIHOODS, _batch(model, sequences, tables, _SUM))


def _batch(
    model: HiddenMarkovModel, sequences: Sequence[ArrayLike], tables: tuple[_Floats, _Floats], algebra: Any
) -> SequenceBatch:
    """Sequences of symbols share the rows of the emissions; others have rows of their own."""
    emissions = np.empty((0, len(model.start))) if model.emissions is None else model.emissions.T
    parts, rows, logs = [_logs(emissions) if algebra is _BEST else emissions], [], []
    first = len(emissions)
    for one in sequences:
        own, log = np.empty((0, len(model.start))), 0.0
        if model.emissions is not None and np.ndim(one) != 2:
            rows.append(model.codes(one))
        else:
            own, log = (model.log_weights(one), 0.0) if algebra is _BEST else _probabilities(model, one)
            rows.append(np.arange(first, first + len(own)))
        parts.append(own)
        logs.append(log)
        first += len(own)
    table = np.ascontiguousarray(np.concatenate(parts))
    return SequenceBatch(model, sequences, (*tables, table), rows, logs, algebra)


def _probabilities(model: HiddenMarkovModel, observations: ArrayLike) -> tuple[_Floats, float]:
    """What frames weigh, and the logarithm of what they were divided by."""
    if model.emissions is not None and np.ndim(observations) != 2:
        return model.emissions.T[model.codes(observations)], 0.0
    weights = model.log_weights(observations)
    largest = weights.max(axis=1, keepdims=True, initial=-math.inf)
    found = np.exp(weights - np.where(largest == -math.inf, 0.0, largest))
    return found, float(largest.sum())


def likelihood(model: HiddenMarkovModel, observations: ArrayLike) -> float:
    """Compute the probability of observations, whatever the path (the forward algorithm).

    Parameters
    ----------
    model, observations
        As for `decode`.

    Returns
    -------
    float
        Its logarithm, natural.

    Raises
    ------
    InvalidInput
        If an observation is not what it should be.
    """
    scaled, log = _probabilities(model, observations)
    if not len(scaled):
        return 0.0
    scales = _Sweep(_SUM, model.start, model.transitions).through(scaled).scales
    if scales.all():
        return log + float(np.log(scales).sum())
    # Something is too improbable to be told beside the rest, or impossible.
    sweep = _Sweep(_LOG_SUM, _logs(model.start), _logs(model.transitions), one_lane=True)
    return float(np.logaddexp.reduce(sweep.through(model.log_weights(observations)).after))


class _Expected(NamedTuple):
    """Posteriors (frames, states), expected transitions (states, states), and the log-likelihood."""

    posterior: _Floats
    transitions: _Floats
    log_likelihood: float


def _expected(model: HiddenMarkovModel, observations: ArrayLike) -> _Expected:
    count, ones = len(model.start), np.ones(len(model.start))
    scaled, log = _probabilities(model, observations)
    forward, _, scales = _Sweep(_SUM, model.start, model.transitions).run(scaled)
    if not scales.all():
        return _expected_of_logarithms(model, model.log_weights(observations))
    backward, _, _ = _Sweep(_SUM, ones, np.ascontiguousarray(model.transitions.T)).run(scaled[::-1])
    behind = backward[-2::-1, :count]
    ahead = forward[:-1, :count] * scaled
    ahead /= ahead.sum(axis=1, keepdims=True)
    both = ahead * behind
    totals = both.sum(axis=1, keepdims=True)
    if not totals.all():
        return _expected_of_logarithms(model, model.log_weights(observations))
    after = behind[1:] * scaled[1:]
    after /= after.sum(axis=1, keepdims=True)
    # What reaches a frame from behind was made of these very values.
    transitions = model.transitions * ((ahead[:-1] / totals[:-1]).T @ after)
    return _Expected(both / totals, transitions, log + float(np.log(scales).sum()))


def _expected_of_logarithms(model: HiddenMarkovModel, weights: _Floats) -> _Expected:
    """The same where probabilities are too small for numbers; not a number where there is no path."""
    count, steps = len(model.start), _logs(model.transitions)
    forward, after, _ = _Sweep(_LOG_SUM, _logs(model.start), steps, one_lane=True).run(weights)
    back = _Sweep(_LOG_SUM, np.zeros(count), np.ascontiguousarray(steps.T), one_lane=True)
    behind = back.run(weights[::-1])[0][-2::-1, :count]
    log = float(np.logaddexp.reduce(after[:count]))
    ahead = forward[:-1, :count] + weights
    if log == -math.inf:
        return _Expected(np.full(weights.shape, math.nan), np.zeros_like(steps), log)
    transitions = np.zeros_like(steps)
    for t in range(1, len(weights)):
        transitions += np.exp(ahead[t - 1][:, None] + steps + (weights[t] + behind[t]) - log)
    return _Expected(np.exp(ahead + behind - log), transitions, log)


def posterior(model: HiddenMarkovModel, observations: ArrayLike) -> _Floats:
    """Compute the probability of each state in each frame, given all observations.

    Parameters
    ----------
    model, observations
        As for `decode`.

    Returns
    -------
    numpy.ndarray
        float64 (frames, states); not a number where the observations are impossible.

    Raises
    ------
    InvalidInput
        If an observation is not what it should be.
    """
    frames = len(observations) if isinstance(observations, str) else len(np.asarray(observations))
    return _expected(model, observations).posterior if frames else np.empty((0, len(model.states)))


def paths(model: HiddenMarkovModel, observations: ArrayLike) -> int:
    """Count the paths whose probability is not zero.

    Parameters
    ----------
    model, observations
        As for `decode`.

    Returns
    -------
    int
        Their number, of any size.

    Raises
    ------
    InvalidInput
        If an observation is not what it should be.
    """
    weights = model.log_weights(observations) > -math.inf
    if not len(weights):
        return 1
    for algebra, kind in ((_NUMBER, np.dtype(np.int64)), (BIG_COUNT, np.dtype(object))):
        start, steps, seen = (
            table.astype(np.int64).astype(kind) for table in (model.start > 0, model.transitions > 0, weights)
        )
        found = _Sweep(algebra, start, steps, one_lane=True).through(seen).after
        if algebra is BIG_COUNT or (found < _MOST).all():
            break
    return sum(found.tolist())


def ties(model: HiddenMarkovModel, observations: ArrayLike) -> int:
    """Count the paths that are as probable as the most probable one.

    Parameters
    ----------
    model, observations
        As for `decode`.

    Returns
    -------
    int
        Paths whose scores are equal to the last bit; exact up to 2^53. 0 if there is none at all.

    Raises
    ------
    InvalidInput
        If an observation is not what it should be.
    """
    weights = model.log_weights(observations)
    if not len(weights):
        return 1
    tables = (
        np.stack([t, np.ones_like(t)], -1) for t in (_logs(model.start), _logs(model.transitions), weights)
    )
    start, steps, seen = tables
    after = _Sweep(_TIES, start, steps).through(seen).after
    best = after[:, 0].max()
    return 0 if best == -math.inf else int(after[after[:, 0] == best, 1].sum())


def fit(
    model: HiddenMarkovModel,
    sequences: Sequence[ArrayLike],
    *,
    iterations: int = 100,
    tolerance: float = 1e-6,
    threads: int | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> Fitted:
    """Fit a model to sequences, from where it is (Baum and Welch).

    Parameters
    ----------
    model
        The model to begin with. What is zero stays so.
    sequences
        Observations, each as for `decode`. Emissions are fitted where they are symbols.
    iterations
        At most.
    tolerance
        They end when the log-likelihood per frame gains less.
    threads
        Number of threads; by default those of the settings.
    progress
        Called with the iteration and the log-likelihood before it.

    Returns
    -------
    Fitted
        The model, and how the log-likelihood grew.

    Raises
    ------
    InvalidInput
        If there is no sequence, or one that is impossible.
    """
    in_range("iterations", iterations, 1)
    sizes = [len(model.log_weights(one)) for one in sequences]
    if not all(sizes) or not sizes:
        found, expected = "none, or one without frames", "at least one frame each"
        raise InvalidInput("sequences", found=found, expected=expected)
    workers = thread_count() if threads is None else threads
    coded = [None if np.ndim(one) == 2 else model.codes(one) for one in sequences]
    logs: list[float] = []
    while len(logs) < iterations:
        expected_of = over_threads(workers, sequences, partial(_expected, model))
        logs.append(math.fsum(one.log_likelihood for one in expected_of))
        if logs[-1] == -math.inf:
            at = next(k for k, one in enumerate(expected_of) if one.log_likelihood == -math.inf)
            raise InvalidInput(
                f"sequences, {at}", found="an impossible one", expected="what the model can show"
            )
        if progress is not None:
            progress(len(logs), logs[-1])
        model = _updated(model, expected_of, coded)
        if len(logs) > 1 and logs[-1] - logs[-2] < tolerance * sum(sizes):
            break
    return Fitted(model, logs)


def _updated(
    model: HiddenMarkovModel, found: Sequence[_Expected], coded: Sequence[NDArray[np.int64] | None]
) -> HiddenMarkovModel:
    emissions = model.emissions
    if emissions is not None and any(codes is not None for codes in coded):
        shown = np.zeros_like(emissions)
        for one, codes in zip(found, coded, strict=True):
            if codes is not None:
                np.add.at(shown.T, codes, one.posterior)
        emissions = _normalised(shown, emissions)
    start = _normalised(sum(one.posterior[0] for one in found), model.start)
    transitions = _normalised(sum(one.transitions for one in found), model.transitions)
    return HiddenMarkovModel(start, transitions, emissions, model.states, model.symbols)


def _normalised(table: Any, before: _Floats) -> _Floats:
    """Rows that sum to one; those without anything as they were before."""
    totals = table.sum(axis=-1, keepdims=True)
    return np.where(totals > 0, table / np.where(totals > 0, totals, 1.0), before)
