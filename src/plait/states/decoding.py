"""Hidden Markov models over sequences of frames: best paths, likelihoods, posteriors, counts, fitting.

    v_t(s) = (choice of v_{t-1}(r) extended by the transition r -> s) extended by what frame t weighs in s

One sweep, states in lanes, in any algebra: `SaturatingMaxPlus` of logarithms is Viterbi's, `Probability` and
`LogSum` the forward pass. The backward pass is the same sweep over frames in reverse with transitions turned
round. Paths are counted by matrices of the steps that are open; those that are best leave fewer of them open.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from plait.devices.target import On, Problem, Target, interpreted, over_threads, resolve, spelled
from plait.errors import InvalidInput, whole
from plait.lang.algebras import LogSum, Probability, SaturatingMaxPlus, algebra_in_lanes, choice, extend
from plait.lang.compile import by_type_of, kernel, shared
from plait.lang.lanes import (
    any_bits,
    equal,
    greater,
    lanes_of,
    last_lane,
    load,
    lower_half,
    lowest_bit,
    mask_bits,
    select,
    shift_in,
    splat,
    store,
    upper_half,
    width_of,
)
from plait.states.models import HiddenMarkovModel

_Floats = NDArray[np.float64]

#: Bytes of what ways back are found by that are held at a time.
_HELD: Final = 64 << 20
#: Sequences that are swept together: what one waits for is the time of the others.
_TOGETHER: Final = 4
_BEST: Final = SaturatingMaxPlus(-math.inf, 0.0)
_SUM: Final = Probability(0.0, 1.0)
_LOG_SUM: Final = LogSum(-math.inf, 0.0)


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


class _Tables(NamedTuple):
    """A model's numbers; rows are padded to full lanes by states that nothing reaches.

    `begin` (1, states), `matrix` (groups * states, lanes): transitions from all states into those of a group
    of lanes, then into the next; `backwards` (states, states): to, from; `table` (rows, states): what frames
    weigh.
    """

    begin: Any
    matrix: Any
    backwards: Any
    table: Any


class Reached(NamedTuple):
    """Ways back by what reaches states, (frames, sequences, states); or one row, and they are not kept."""

    rows: Any


class Noted(NamedTuple):
    """Ways back of as many states as lanes, at most 16: words (frames, sequences, 1).

    Four bits are for each state, from the lowest: the first state from which the way into it is the best.
    """

    rows: Any


def _scale(alg: Any, values: Any, scales: Any, k: Any, t: Any) -> None:
    """Make values of a frame sum to one; keep their sum."""
    total = alg.zero
    for s in range(values.shape[1]):
        total += values[k, s]
    if total > alg.zero:
        for s in range(values.shape[1]):
            values[k, s] /= total
    scales[k, t] = total


_SUMS: Final = Probability, LogSum
_in_lanes: Final[Any] = by_type_of(
    {SaturatingMaxPlus: lambda alg, n: algebra_in_lanes(alg, n), **dict.fromkeys(_SUMS, lambda alg, n: alg)}
)
_scaled: Final[Any] = by_type_of(
    {Probability: _scale, **dict.fromkeys((SaturatingMaxPlus, LogSum), lambda alg, rows, scales, k, t: None)}
)


@shared
def _reaching(algebra: Any, lanes: Any, model: Any, values: Any, k: Any, s: Any) -> Any:
    """What reaches some states from all, whose values are in row k of `values`."""
    # Two chains of choices, each of which waits for itself alone.
    alg, count = _in_lanes(algebra, lanes), model.backwards.shape[0]
    found = other = splat(lanes, algebra.zero)
    row = s // width_of(lanes) * count
    for r in range(0, count, 2):
        value, after = splat(lanes, values[k, r]), splat(lanes, values[k, r + 1])
        found = choice(alg, found, extend(alg, value, load(lanes, model.matrix, row + r, 0)))
        other = choice(alg, other, extend(alg, after, load(lanes, model.matrix, row + r + 1, 0)))
    return choice(alg, found, other)


def _keep(ways: Any, algebra: Any, lanes: Any, model: Any, values: Any, place: Any) -> Any:
    t, first, k, s = place
    found = load(lanes, model.begin, 0, s) if t == 0 else _reaching(algebra, lanes, model, values, k, s)
    store(lanes, ways.rows[min(t - first, ways.rows.shape[0] - 1)], k, s, found)
    return found


@shared
def _way(alg: Any, lanes: Any, model: Any, r: Any, value: Any) -> Any:
    """What reaches states from state r, and r."""
    return extend(alg, splat(lanes, value), load(lanes, model.matrix, r, 0)), splat(lanes, r)


@shared
def _first_best(alg: Any, a: Any, b: Any) -> Any:
    """The choice between two ways: of equal ones the first."""
    return choice(alg, a[0], b[0]), select(greater(b[0], a[0]), b[1], a[1])


@shared
def _noted(ways: Any, lanes: Any, n: Any, k: Any, best: Any) -> Any:
    """What the best ways reach, which are noted."""
    fields = splat(lanes, 0)
    for _ in range(width_of(lanes) - 1):
        fields = shift_in(fields + splat(lanes, 4), 0)
    ways.rows[n, k, 0] = any_bits(best[1] << fields)
    return best[0]


def _note(ways: Any, algebra: Any, lanes: Any, model: Any, values: Any, place: Any) -> Any:
    t, first, k, _ = place
    if t == 0:
        return load(lanes, model.begin, 0, 0)
    alg = _in_lanes(algebra, lanes)
    best = _way(alg, lanes, model, 0, values[k, 0])
    for r in range(1, width_of(lanes)):
        best = _first_best(alg, best, _way(alg, lanes, model, r, values[k, r]))
    return _noted(ways, lanes, t - first, k, best)


@shared
def _best_ways(alg: Any, lanes: Any, model: Any, values: Any) -> Any:
    """The best ways from all states, whose values are a group."""
    # Two chains of choices, from the last state of each half on.
    half, lower, upper = width_of(lanes) // 2, lower_half(values), upper_half(values)
    low = _way(alg, lanes, model, half - 1, last_lane(lower))
    high = _way(alg, lanes, model, 2 * half - 1, last_lane(upper))
    for r in range(half - 2, -1, -1):
        lower, upper = shift_in(lower, lower), shift_in(upper, upper)
        low = _first_best(alg, _way(alg, lanes, model, r, last_lane(lower)), low)
        high = _first_best(alg, _way(alg, lanes, model, r + half, last_lane(upper)), high)
    return _first_best(alg, low, high)


def _sweep_alone(ways: Any, algebra: Any, lanes: Any, model: Any, codes: Any, block: Any, values: Any) -> Any:
    """Sweep a sequence with its values in registers; False if it is not alone or has too many states.

    Through memory a frame waits longer for the one before; beside others it does not matter.
    """
    if codes.shape[0] > 1 or width_of(lanes) > 8:
        return False
    alg, before = _in_lanes(algebra, lanes), load(lanes, values[block[0] & 1], 0, 0)
    if block[0] == 0:
        before = extend(alg, load(lanes, model.begin, 0, 0), load(lanes, model.table, codes[0, 0], 0))
    for t in range(max(block[0], 1), block[1]):
        found = _noted(ways, lanes, t - block[0], 0, _best_ways(alg, lanes, model, before))
        before = extend(alg, found, load(lanes, model.table, codes[0, t], 0))
    store(lanes, values[block[1] & 1], 0, 0, before)
    return True


def _equal_way(ways: Any, algebra: Any, lanes: Any, model: Any, row: Any, place: Any) -> Any:
    t, k, s = place
    alg, value = _in_lanes(algebra, lanes), splat(lanes, ways.rows[t + 1, k, s])
    r, found = 0, 0
    while r < model.table.shape[1] and found == 0:
        here = extend(alg, load(lanes, ways.rows[t], k, r), load(lanes, model.table, row, r))
        found = mask_bits(equal(extend(alg, here, load(lanes, model.backwards, s, r)), value))
        r += lanes.width
    return r - lanes.width + lowest_bit(found)


def _noted_way(ways: Any, algebra: Any, lanes: Any, model: Any, row: Any, place: Any) -> Any:
    t, k, s = place
    return np.int64(ways.rows[t + 1, k, 0]) >> 4 * s & 15


_reached: Final[Any] = by_type_of({Reached: _keep, Noted: _note})
_alone: Final[Any] = by_type_of({Reached: lambda *args: False, Noted: _sweep_alone})
_came_from: Final[Any] = by_type_of({Reached: _equal_way, Noted: _noted_way})


@kernel
def sweep_states(
    lanes: Any, alg: Any, model: Any, codes: Any, counts: Any, block: Any, values: Any, ways: Any, scales: Any
) -> None:
    """Sweep sequences of `counts` frames side by side; `codes` int32 (sequences, frames): rows of the table.

    `block`: the first frame, and the end. `values` (2, sequences, states): row ``n % 2`` has those after n
    frames, in the end the last ones of each sequence. `ways` are kept of what reaches states before the
    weights of their frame. `scales` (sequences, frames): what probabilities were divided by.
    """
    own, first = _in_lanes(alg, lanes), block[0]
    if _alone(ways, alg, lanes, model, codes, block, values):
        return
    for t in range(first, block[1]):
        before, after = values[t & 1], values[1 - (t & 1)]
        for s in range(0, values.shape[2], width_of(lanes)):
            for k in range(codes.shape[0]):
                if t < counts[k]:
                    found = _reached(ways, alg, lanes, model, before, (t, first, k, s))
                    found = extend(own, found, load(lanes, model.table, codes[k, t], s))
                    store(lanes, after, k, s, found)
        for k in range(codes.shape[0]):
            if t < counts[k]:
                _scaled(alg, after, scales, k, t)


#: The same, called by other kernels.
sweep_frames = shared(interpreted(sweep_states))


@shared
def trace_states(
    lanes: Any, algebra: Any, model: _Tables, codes: Any, counts: Any, block: Any, ways: Any, path: Any
) -> None:
    """The best ways into states of `path` int32 (sequences, frames) at the end of a block or of a sequence.

    Of equal ones those from the first states; -1 is no state.
    """
    for k in range(path.shape[0]):
        last = min(block[1], counts[k] - 1)
        s = int(path[k, last])
        for t in range(last - 1, block[0] - 1, -1):
            if s >= 0:
                s = _came_from(ways, algebra, lanes, model, codes[k, t], (t - block[0], k, s))
            path[k, t] = s


@shared
def best_state(values: Any) -> Any:
    """The best of the last values, and the first state that has it; -1 if there is none."""
    score, state = -math.inf, -1
    for s in range(values.size):
        if values[s] > score:
            score, state = values[s], s
    return score, state


@shared
def _copy(values: Any, copies: Any) -> None:
    for place in np.ndindex(values.shape):
        copies[place] = values[place]


@kernel
def decode_states(
    lanes: Any, algebra: Any, model: _Tables, codes: Any, counts: Any, values: Any, ways: Any
) -> None:
    """Best paths of sequences side by side, as for `sweep_states`, in the place of their codes.

    `values` (blocks + 1, 2, sequences, states): what blocks of frames begin with, as many frames as `ways`
    has rows, but one; in the end the scores are at ``values[0, 0, :, 0]``. All blocks but the last are swept
    again, from the last to the first, for their ways.
    """
    blocks, size, longest = values.shape[0] - 1, ways.rows.shape[0] - 1, codes.shape[1]
    for n in range(2 * blocks - 1):
        b = min(n, 2 * (blocks - 1) - n)
        block = b * size, min((b + 1) * size, longest)
        if n >= blocks:
            _copy(ways.rows[0], ways.rows[size])
        _copy(values[b], values[b + 1])
        sweep_frames(lanes, algebra, model, codes, counts, block, values[b + 1], ways, values[0, 0])
        for k in range(counts.size if n >= blocks - 1 else 0):
            if block[0] < counts[k] <= block[1]:
                best = best_state(values[b + 1, counts[k] & 1, k])
                values[0, 0, k, 0], codes[k, counts[k] - 1] = best
        if n >= blocks - 1:
            trace_states(lanes, algebra, model, codes, counts, block, ways, codes)


def _aligned(shape: tuple[int, ...], kind: Any = np.float64) -> NDArray[Any]:
    """Memory that begins where a line of caches does: groups of lanes in two of them take twice as long."""
    size, each = math.prod(shape), np.dtype(kind).itemsize
    room = np.empty(size + 64 // each, kind)
    first = -room.ctypes.data % 64 // each
    return room[first : first + size].reshape(shape)


def laid_out(
    algebra: Any, start: _Floats, transitions: _Floats, table: _Floats, *, alone: bool = False
) -> tuple[Any, _Tables]:
    """Lanes for an algebra and so many states, or states that are `alone`, and a model's tables in them."""
    states = len(start)
    alone = alone or not isinstance(algebra, (SaturatingMaxPlus, Probability))
    lanes = lanes_of(1 if alone else 4 if states <= 4 else 16 if 8 < states <= 16 else 8)
    wide = states + -states % max(lanes.width, 2)
    # All rows of one group of lanes; of several an even number.
    count = wide if wide == lanes.width else states + states % 2

    padded = partial(_padded, algebra, wide)
    groups = padded(count, transitions).reshape(count, -1, lanes.width).swapaxes(0, 1)
    matrix = _padded(algebra, lanes.width, groups.size // lanes.width, groups.reshape(-1, lanes.width))
    backwards = padded(count, transitions.T)
    return lanes, _Tables(padded(1, start[None]), matrix, backwards, padded(len(table), table))


def _padded(algebra: Any, wide: int, count: int, rows: NDArray[Any]) -> NDArray[Any]:
    found = _aligned((count, wide))
    found[: len(rows), : rows.shape[1]] = rows
    found[:, rows.shape[1] :] = found[len(rows) :] = algebra.zero
    return found


# By type, too: tuples of other algebras are equal.
@lru_cache(8, typed=True)
def _kept(model: HiddenMarkovModel, algebra: Any, back: bool = False) -> tuple[Any, _Tables]:
    """Lanes and a model in them, or with transitions turned round from where all is open."""
    start, steps, table = model.probabilities if algebra is _SUM else model.logs
    if back:
        start, steps = np.full_like(start, algebra.one), steps.T
    return laid_out(algebra, start, steps, table)


def _swept(
    model: HiddenMarkovModel, algebra: Any, rows: NDArray[Any], *, back: bool = False, kept: bool = False
) -> tuple[NDArray[Any], NDArray[Any], _Floats]:
    """Sweep one sequence of frames that weigh `rows` (frames, states), by a model or `back` (`_kept`).

    What reaches states (frames, states), if it is to be kept, values after the last frame, and scales.
    """
    lanes, own = _kept(model, algebra, back)
    (frames, states), wide = rows.shape, own.begin.shape[1]
    tables = own._replace(table=_padded(algebra, wide, frames, rows))
    values, reached = (_aligned((n, 1, wide)) for n in (2, frames if kept else 1))
    codes, counts, scales = np.arange(frames, dtype=np.int32)[None], np.array([frames]), np.ones((1, frames))
    sweep_states(lanes, algebra, tables, codes, counts, (0, frames), values, Reached(reached), scales)
    return reached[:, 0, :states], values[frames & 1, 0, :states], scales[0]


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


class SequenceBatch(NamedTuple):
    """Sequences of `owner` as they were `given`.

    `model`: start, transitions and `table` (rows, states), in the numbers of `algebra`; `rows` of the table
    by frame, int32, of each sequence; `logs` of what its probabilities were divided by.
    """

    owner: HiddenMarkovModel
    given: Sequence[ArrayLike]
    model: tuple[_Floats, _Floats, _Floats]
    rows: Sequence[NDArray[np.int32]]
    logs: Sequence[float]
    algebra: Any

    def groups(self, width: int, most: float = math.inf) -> list[list[int]]:
        """Numbers of sequences with frames, of like lengths, up to so many with `most` frames."""
        sizes = [len(one) for one in self.rows]
        order, found = sorted(range(len(sizes)), key=sizes.__getitem__), []
        first = sizes.count(0)
        while first < len(order):
            last = min(first + width, len(order))
            while last > first + 1 and (last - first) * sizes[order[last - 1]] > most:
                last = (first + last + 1) // 2
            found.append(order[first:last])
            first = last
        return found

    def laid_out(self) -> tuple[Any, _Tables]:
        """Lanes and the model in them, which is kept where all sequences are of symbols."""
        own = self.model[2].shape[0] == self.owner.probabilities[2].shape[0]
        return _kept(self.owner, self.algebra) if own else laid_out(self.algebra, *self.model)

    def codes(self, own: list[int]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Rows of some sequences one below the other, and their numbers of frames."""
        counts = np.array([len(self.rows[k]) for k in own])
        if len(own) == 1:
            return self.rows[own[0]][None], counts
        codes = np.zeros((len(own), counts.max()), np.int32)
        for lane, k in enumerate(own):
            codes[lane, : counts[lane]] = self.rows[k]
        return codes, counts

    def add_logs(self, logs: _Floats, own: list[int], counts: Any, scales: _Floats) -> None:
        """Add logarithms of what probabilities of some sequences were divided by, (sequences, frames)."""
        for k, count, sums in zip(own, counts, scales, strict=True):
            if sums[:count].all():
                logs[k] += np.log(sums[:count]).sum()
                continue
            # Too improbable to be told beside the rest, or impossible.
            weights = self.owner.log_weights(self.given[k])
            _, after, _ = _swept(self.owner, _LOG_SUM, weights)
            logs[k] = np.logaddexp.reduce(after)


def _decode_groups(run: Any, batch: SequenceBatch, target: Target) -> list[Decoded]:
    lanes, model = batch.laid_out()
    wide = model.begin.shape[1]
    # What finds the ways back from a frame of one sequence: a word of four bits a state, or values.
    each, kind = (1, f"i{wide // 2}") if wide == lanes.width else (wide, "f8")
    found = [Decoded(0.0, np.empty(0, np.int32))] * len(batch.rows)
    spare: list[NDArray[Any]] = [np.empty(0, kind)] * target.threads

    def one(own: list[int]) -> None:
        codes, counts = batch.codes(own)
        count, frames = codes.shape
        size = min(max(_HELD // (8 * count * each), 1), frames)
        values = _aligned((-(-frames // size) + 1, 2, count, wide))
        # Memory is used again: new pages take as long as what is written to them.
        held, room = spare.pop(), (size + 1) * count * each
        held = held if held.size >= room else _aligned((room,), kind)
        rows = held[:room].reshape(size + 1, count, each)
        ways: Any = Reached(rows) if kind == "f8" else Noted(rows)
        run(lanes, batch.algebra, model, codes, counts, values, ways)
        spare.append(held)
        for k, score, path, last in zip(own, values[0, 0, :, 0].tolist(), codes, counts, strict=True):
            found[k] = Decoded(score, path[:last])

    over_threads(target.threads, batch.groups(_TOGETHER), one)
    return found


def _sum_groups(sweep: Any, batch: SequenceBatch, target: Target) -> _Floats:
    lanes, model = batch.laid_out()
    logs = np.array(batch.logs, np.float64)

    def one(own: list[int]) -> None:
        codes, counts = batch.codes(own)
        values, scales = _aligned((3, len(own), model.begin.shape[1])), np.empty(codes.shape)
        frames = 0, codes.shape[1]
        sweep(lanes, batch.algebra, model, codes, counts, frames, values[:2], Reached(values[2:]), scales)
        batch.add_logs(logs, own, counts, scales)

    over_threads(target.threads, batch.groups(_TOGETHER), one)
    return logs


#: Steps between states that are worth the start of a GPU which was not asked for by name.
_WORTH: Final = 1 << 36


def _problem(name: str, run: Any, *kernels: Any, cuda: str) -> Problem[SequenceBatch, Any]:
    def worth(batch: SequenceBatch) -> bool:
        return sum(map(len, batch.rows)) * batch.model[1].size >= _WORTH

    return Problem.of(name, run, *kernels, cuda=f"plait.states.gpu_states:{cuda}", worth=worth)


_PATHS = _problem("best paths of sequences", _decode_groups, decode_states, cuda="decode_batch")
_LIKELIHOODS = _problem("likelihoods of sequences", _sum_groups, sweep_states, cuda="likelihood_batch")


@spelled
def decode_each(model: HiddenMarkovModel, sequences: Sequence[ArrayLike], **on: Unpack[On]) -> list[Decoded]:
    """Find the most probable path of each of many sequences.

    Parameters
    ----------
    model
        The model.
    sequences
        Observations, each as for `decode`.
    **on
        `device`, ``auto``, ``cpu``, ``cuda``, ...; answers are the same on all. `threads` of the CPU.

    Returns
    -------
    list of Decoded
        What `decode` finds for each.

    Raises
    ------
    InvalidInput
        If an observation is not what it should be.
    """
    return resolve(**on).launch(_PATHS, _batch(model, sequences, _BEST))


@spelled
def likelihood_each(model: HiddenMarkovModel, sequences: Sequence[ArrayLike], **on: Unpack[On]) -> _Floats:
    """Compute the probability of each of many sequences, whatever the path.

    Parameters
    ----------
    model, sequences, **on
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
    return resolve(**on).launch(_LIKELIHOODS, _batch(model, sequences, _SUM))


def _several(sequences: Iterable[ArrayLike]) -> list[ArrayLike]:
    """Sequences, of which a text is one: each of its letters would be another."""
    if isinstance(sequences, (str, bytes)):
        raise InvalidInput("sequences", found="a text", expected="several of them")
    return list(sequences)


def _batch(model: HiddenMarkovModel, sequences: Sequence[ArrayLike], algebra: Any) -> SequenceBatch:
    """Sequences of symbols share the rows of the emissions; others have rows of their own."""
    sequences = _several(sequences)
    start, steps, table = model.logs if algebra is _BEST else model.probabilities
    parts, rows, logs, first = [table], [], [0.0] * len(sequences), len(table)
    for k, one in enumerate(sequences):
        if model.emissions is not None and np.ndim(one) != 2:
            rows.append(model.codes(one))
            continue
        own, logs[k] = (model.log_weights(one), 0.0) if algebra is _BEST else _probabilities(model, one)
        rows.append(np.arange(first, first + len(own), dtype=np.int32))
        parts.append(own)
        first += len(own)
    return SequenceBatch(model, sequences, (start, steps, np.concatenate(parts)), rows, logs, algebra)


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
    return float(likelihood_each(model, [observations], device="cpu", threads=1)[0])


def _expected(
    model: HiddenMarkovModel, observations: ArrayLike, *, counted: bool = True
) -> tuple[_Floats, _Floats, float]:
    """Posteriors (frames, states), expected transitions (states, states) if `counted`, the log-likelihood."""
    scaled, log = _probabilities(model, observations)
    forward, _, scales = _swept(model, _SUM, scaled, kept=True)
    behind = _swept(model, _SUM, scaled[::-1], back=True, kept=True)[0][::-1]
    ahead = forward * scaled
    ahead /= np.where(scales > 0, scales, 1.0)[:, None]
    both = ahead * behind
    totals = both.sum(axis=1, keepdims=True)
    if not totals.all():
        return _expected_of_logarithms(model, model.log_weights(observations))
    transitions = model.transitions
    if counted:
        after = behind[1:] * scaled[1:]
        after /= after.sum(axis=1, keepdims=True)
        # What reaches a frame from behind was made of these very values.
        transitions = transitions * ((ahead[:-1] / totals[:-1]).T @ after)
    both /= totals
    return both, transitions, log + float(np.log(scales).sum())


def _expected_of_logarithms(model: HiddenMarkovModel, weights: _Floats) -> tuple[_Floats, _Floats, float]:
    """The same where probabilities are too small for numbers; not a number where there is no path."""
    steps = model.logs[1]
    forward, after, _ = _swept(model, _LOG_SUM, weights, kept=True)
    behind = _swept(model, _LOG_SUM, weights[::-1], back=True, kept=True)[0][::-1]
    log = float(np.logaddexp.reduce(after))
    ahead = forward + weights
    if log == -math.inf:
        return np.full(weights.shape, math.nan), np.zeros_like(steps), log
    transitions = np.zeros_like(steps)
    for t in range(1, len(weights)):
        transitions += np.exp(ahead[t - 1][:, None] + steps + (weights[t] + behind[t]) - log)
    return np.exp(ahead + behind - log), transitions, log


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
    return _expected(model, observations, counted=False)[0]


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
    seen = model.log_weights(observations) > -math.inf
    if not len(seen):
        return 1
    steps = model.transitions > 0
    return sum(_counts((model.start > 0) & seen[0], (steps & row for row in seen[1:])))


def _counts(first: NDArray[np.bool_], steps: Iterable[NDArray[np.bool_]]) -> list[int]:
    """Numbers of paths into each state: of those of the first frame, by the steps that are open after it."""
    found: NDArray[Any] = first.astype(np.float64)
    for step in steps:
        # Of floats whole numbers are exact up to 2^53.
        if found.dtype != object and found.sum() >= 2.0**53:
            found = found.astype(np.int64).astype(object)
        found = found @ step
    return [int(number) for number in found]


def ties(model: HiddenMarkovModel, observations: ArrayLike) -> int:
    """Count the paths that are as probable as the most probable one.

    Parameters
    ----------
    model, observations
        As for `decode`.

    Returns
    -------
    int
        Paths whose scores are equal to the last bit, of any size; 0 if there is none at all.

    Raises
    ------
    InvalidInput
        If an observation is not what it should be.
    """
    weights = model.log_weights(observations)
    if not len(weights):
        return 1
    start, steps, _ = model.logs
    reached, last, _ = _swept(model, _BEST, weights, kept=True)
    pairs = itertools.pairwise(zip(reached + weights, reached, strict=True))
    tight = ((old[:, None] + steps == new) & (new > -math.inf) for (old, _), (_, new) in pairs)
    best, counts = last.max(), _counts(start > -math.inf, tight)
    return sum(count for count, score in zip(counts, last, strict=True) if score == best > -math.inf)


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
    whole("iterations", iterations, 1)
    sequences = _several(sequences)
    sizes = [len(model.log_weights(one)) for one in sequences]
    if not all(sizes) or not sizes:
        told = "none, or one without frames"
        raise InvalidInput("sequences", found=told, expected="at least one frame each")
    coded = [None if np.ndim(one) == 2 else model.codes(one) for one in sequences]
    logs: list[float] = []
    while len(logs) < iterations:
        found = over_threads(resolve("cpu", threads).threads, sequences, partial(_expected, model))
        shares, steps, each = zip(*found, strict=True)
        logs.append(math.fsum(each))
        if logs[-1] == -math.inf:
            at = f"sequences, {each.index(-math.inf)}"
            raise InvalidInput(at, found="an impossible one", expected="what the model can show")
        if progress is not None:
            progress(len(logs), logs[-1])
        emissions = model.emissions
        if emissions is not None:
            shown = np.zeros_like(emissions)
            for share, codes in zip(shares, coded, strict=True):
                if codes is not None:
                    np.add.at(shown.T, codes, share)
            emissions = _normalised(shown, emissions)
        start = _normalised(sum(share[0] for share in shares), model.start)
        transitions = _normalised(sum(steps), model.transitions)
        model = HiddenMarkovModel(start, transitions, emissions, model.states, model.symbols)
        if len(logs) > 1 and logs[-1] - logs[-2] < tolerance * sum(sizes):
            break
    return Fitted(model, logs)


def _normalised(table: Any, before: _Floats) -> _Floats:
    """Rows that sum to one; those without anything as they were before."""
    totals = table.sum(axis=-1, keepdims=True)
    return np.where(totals > 0, table / np.where(totals > 0, totals, 1.0), before)
