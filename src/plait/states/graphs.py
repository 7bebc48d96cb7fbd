"""Weighted graphs whose arcs take labels: the best accepted path of a sequence of frames, and sums over all.

    v_t(s) = choice over arcs r -> s of v_{t-1}(r) extended by the arc and what frame t weighs for its label

Arcs of label 0 take no frame; they are followed within one, from states of lower rank to those of higher.
Only states that something reaches are visited. With a beam, which belongs to this order of visiting and to
the best path alone, those far behind the best one of a frame are dropped.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from plait.devices.target import Problem, Target, interpreted, over_threads, resolve
from plait.errors import FormatError, InvalidInput, in_range
from plait.formats.compression import read_text
from plait.lang.algebras import BIG_COUNT, Count, LogSum, MaxPlus, choice, extend
from plait.lang.compile import by_type_of, kernel, shared

_Floats = NDArray[np.float64]

_BEST: Final = MaxPlus(-math.inf, 0.0)
_LOG_SUM: Final = LogSum(-math.inf, 0.0)
#: Tokens of paths that there is room for at first.
_TOKENS: Final = 1 << 16
_MOST_STATES: Final = 1 << 28
#: Numbers of states that may be left out, if there are not many more than those that occur.
_SPARSE: Final = 1 << 20


class _Arcs(NamedTuple):
    """Arcs by the state they leave.

    `table` (arcs, 3), of the values' type: weight, the state that it enters, label. `ranks` int32: how many
    arcs of label 0 can come before a state, -1 where none leaves it; `levels` of ranks.
    """

    table: Any
    ranks: Any
    levels: Any


class _Visited(NamedTuple):
    """States of the frame under way and of the one before.

    `states` (states, 8), all of the values' type, so that a state is a line of the cache: the columns below.
    `listed` int32 (states,): those reached now; `before` (states, 5): of those reached in the frame before,
    in order, value, token, first arc, the one behind the last, and number. `ordered` (states,) and `bins`
    int64 are memory. `tokens` int64 (tokens, 2): the token before, and the arc. `counts` int64: reached
    before and now, tokens, frames done.
    """

    states: Any
    listed: Any
    before: Any
    ordered: Any
    bins: Any
    tokens: Any
    counts: Any


#: Of a state: value now, its token or -1, the token and the arc that it was reached by, the last frame that
#: reached it; its first arc, and the one behind its last.
_VALUE, _TOKEN, _FROM, _ARC, _SEEN, _FIRST, _LAST = range(7)
_COLUMNS: Final = 8
_OLD_VALUE, _OLD_TOKEN, _OLD_FIRST, _OLD_LAST, _OLD_STATE = range(5)
_BINS: Final = 1024

_traced: Final[Any] = by_type_of(
    {MaxPlus: lambda alg: True, LogSum: lambda alg: False, Count: lambda alg: False}
)


@shared
def _token(at: Any, s: Any) -> Any:
    """The token of a state of the frame under way."""
    state = at.states[s]
    if state[_TOKEN] < 0:
        number = at.counts[2]
        at.tokens[number, 0], at.tokens[number, 1] = int(state[_FROM]), int(state[_ARC])
        state[_TOKEN] = number
        at.counts[2] = number + 1
    return state[_TOKEN]


@shared
def _reach(alg: Any, at: Any, t: Any, s: Any, value: Any, token: Any, arc: Any) -> None:
    """Reach a state by an arc; of equal ways, that by the first arc is kept."""
    if value == alg.zero:
        return
    state = at.states[s]
    if state[_SEEN] != t:
        state[_SEEN] = t
        at.listed[at.counts[1]] = s
        at.counts[1] += 1
        state[_VALUE] = value
    elif _traced(alg) and (value < state[_VALUE] or (value == state[_VALUE] and arc >= state[_ARC])):
        return
    else:
        state[_VALUE] = choice(alg, state[_VALUE], value)
    state[_TOKEN], state[_FROM], state[_ARC] = -1, token, arc


@shared
def _follow_empty(alg: Any, arcs: Any, at: Any, t: Any) -> None:
    """Follow arcs that take no frame, by rank of the states that they leave."""
    for rank in range(arcs.levels):
        i = 0
        while i < at.counts[1]:
            s = at.listed[i]
            i += 1
            if arcs.ranks[s] != rank:
                continue
            token = _token(at, s) if _traced(alg) else -1
            for a in range(int(at.states[s, _FIRST]), int(at.states[s, _LAST])):
                if arcs.table[a, 2] == 0:
                    value = extend(alg, at.states[s, _VALUE], arcs.table[a, 0])
                    _reach(alg, at, t, int(arcs.table[a, 1]), value, token, a)


@shared
def _swap(at: Any, i: Any, j: Any) -> None:
    at.listed[i], at.listed[j] = at.listed[j], at.listed[i]
    at.ordered[i], at.ordered[j] = at.ordered[j], at.ordered[i]


@shared
def _drop(at: Any, beam: Any, most: Any) -> None:
    """Keep states within the beam, and of these the best `most`; of equal ones the first."""
    best, worst = -math.inf, math.inf
    for i in range(at.counts[1]):
        at.ordered[i] = at.states[at.listed[i], _VALUE]
        best = max(best, at.ordered[i])
    kept = 0
    for i in range(at.counts[1]):
        if at.ordered[i] >= best - beam:
            worst = min(worst, at.ordered[i])
            at.listed[kept], at.ordered[kept] = at.listed[i], at.ordered[i]
            kept += 1
    at.counts[1] = min(kept, most)
    if kept <= most:
        return
    # By bins of their values first: those of better bins than the one of the last to be kept go to the front.
    scale = (_BINS - 1) / (best - worst) if best > worst else 0.0
    at.bins[:] = 0
    for i in range(kept):
        at.bins[int((best - at.ordered[i]) * scale)] += 1
    last, count = 0, at.bins[0]
    while count < most:
        last += 1
        count += at.bins[last]
    front = 0
    for edge in (last, last + 1):
        begun = front
        for i in range(front, kept):
            if int((best - at.ordered[i]) * scale) < edge:
                _swap(at, i, front)
                front += 1
    _select(at, begun, front - 1, most)


@shared
def _select(at: Any, low: Any, high: Any, most: Any) -> None:
    """Order those listed from `low` to `high` so far that the first `most` of all go before the others.

    Hoare's selection.
    """
    while low < high:
        value, s = at.ordered[(low + high) // 2], at.listed[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while at.ordered[i] > value or (at.ordered[i] == value and at.listed[i] < s):
                i += 1
            while at.ordered[j] < value or (at.ordered[j] == value and at.listed[j] > s):
                j -= 1
            if i <= j:
                _swap(at, i, j)
                i += 1
                j -= 1
        if most - 1 <= j:
            high = j
        elif most - 1 >= i:
            low = i
        else:
            break


@shared
def _end_frame(alg: Any, at: Any) -> None:
    """The frame under way becomes the one before."""
    for i in range(at.counts[1]):
        s = at.listed[i]
        state, old = at.states[s], at.before[i]
        old[_OLD_VALUE], old[_OLD_FIRST], old[_OLD_LAST] = state[_VALUE], state[_FIRST], state[_LAST]
        old[_OLD_TOKEN] = _token(at, s) if _traced(alg) else -1
        old[_OLD_STATE] = s
    at.counts[0], at.counts[1] = at.counts[1], 0
    at.counts[3] += 1


@kernel
def sweep_arcs(alg: Any, arcs: _Arcs, start: int, frames: Any, beam: float, most: int, at: _Visited) -> None:
    """Sweep `frames` (frames, labels) from where it stopped, until there may be no room for tokens.

    ``counts[3]`` is 0 before state `start` has been reached without a frame, then the frames done and one.
    """
    size = at.states.shape[0]
    while at.counts[3] <= frames.shape[0] and at.counts[2] + 2 * size <= at.tokens.shape[0]:
        t = at.counts[3]
        if t == 0:
            _reach(alg, at, t, start, alg.one, -1, -1)
        for i in range(at.counts[0] if t else 0):
            old = at.before[i]
            before, token = old[_OLD_VALUE], old[_OLD_TOKEN]
            for a in range(int(old[_OLD_FIRST]), int(old[_OLD_LAST])):
                label = int(arcs.table[a, 2])
                if label > 0:
                    value = extend(alg, extend(alg, before, arcs.table[a, 0]), frames[t - 1, label - 1])
                    _reach(alg, at, t, int(arcs.table[a, 1]), value, token, a)
        _follow_empty(alg, arcs, at, t)
        if beam < math.inf or most < size:
            _drop(at, beam, most)
        _end_frame(alg, at)


@kernel
def keep_tokens(at: _Visited, places: Any) -> None:
    """Drop tokens that no state of the last frame comes from; scratch `places` int64 (tokens,)."""
    for k in range(at.counts[2]):
        places[k] = -1
    for i in range(at.counts[0]):
        k = int(at.before[i, _OLD_TOKEN])
        while k >= 0 and places[k] < 0:
            places[k] = 0
            k = at.tokens[k, 0]
    kept = 0
    for k in range(at.counts[2]):
        if places[k] == 0:
            before = at.tokens[k, 0]
            at.tokens[kept, 0], at.tokens[kept, 1] = places[before] if before >= 0 else -1, at.tokens[k, 1]
            places[k] = kept
            kept += 1
    at.counts[2] = kept
    for i in range(at.counts[0]):
        at.before[i, _OLD_TOKEN] = places[int(at.before[i, _OLD_TOKEN])]


class Path(NamedTuple):
    """An accepted path.

    Attributes
    ----------
    score
        Sum of the logarithms of its arcs, frames and final state; minus infinity if there is none.
    arcs
        int64: the arcs of the graph, in order.
    frames
        int64: the frame that each took, -1 for none.
    outputs
        int32: output labels of its arcs but 0.
    """

    score: float
    arcs: NDArray[np.int64]
    frames: NDArray[np.int64]
    outputs: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Graph:
    """A weighted finite-state transducer.

    Parameters
    ----------
    start
        The state that paths begin with.
    arcs
        int (arcs, 4): from, to, input label, output label; states from 0 on, labels from 1 on, 0 for none.
    weights
        Logarithm of what each arc weighs (arcs,); OpenFst's weights with the other sign.
    final
        Logarithms by final state.

    Raises
    ------
    InvalidInput
        If a number is out of range, or arcs without input label form a circle.
    """

    start: int
    arcs: NDArray[np.int64]
    weights: _Floats
    final: dict[int, float]
    #: Of states: how many arcs without input label can come before them, -1 where none of these leaves.
    ranks: NDArray[np.int32] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the arcs, and put them in order of the states they leave."""
        given = np.asarray(self.arcs, np.int64).reshape(-1, 4)
        weights = np.asarray(self.weights, np.float64)
        if (given.size and (given.min() < 0 or given.max() >= _MOST_STATES)) or weights.shape != (
            len(given),
        ):
            expected = f"numbers from 0 to {_MOST_STATES - 1:,}, and a weight for each"
            raise InvalidInput("arcs", found=f"{len(given):,} with others", expected=expected)
        numbers = [*weights.tolist(), *self.final.values()]
        if any(math.isnan(x) or x == math.inf for x in numbers) or not self.final:
            found = "none" if not self.final else "one that is no number below infinity"
            raise InvalidInput("weights", found=found, expected="logarithms, and at least one final state")
        seen = np.array([self.start, *self.final, *given[:, :2].ravel()])
        if seen.min() < 0 or seen.max() >= max(_SPARSE, 16 * seen.size):
            expected = "states numbered one after the other, from 0 on"
            raise InvalidInput("states", found=f"numbers {seen.min()} to {seen.max()}", expected=expected)
        order = np.argsort(given[:, 0], kind="stable")
        object.__setattr__(self, "arcs", given[order])
        object.__setattr__(self, "weights", weights[order])
        object.__setattr__(self, "ranks", self._ranked())

    @property
    def states(self) -> int:
        """Number of states."""
        return int(max([self.start, *self.final, int(self.arcs[:, :2].max(initial=0))])) + 1

    @property
    def labels(self) -> int:
        """The largest input label."""
        return int(self.arcs[:, 2].max(initial=0))

    def _ranked(self) -> NDArray[np.int32]:
        """Ranks of the states that arcs without input label leave, -1 of others."""
        empty = self.arcs[self.arcs[:, 2] == 0]
        ranks = np.full(self.states, -1, np.int32)
        ranks[empty[:, 0]] = 0
        for _ in range(len(np.unique(empty[:, 0])) + 1):
            inner = empty[ranks[empty[:, 1]] >= 0]
            needed = ranks.copy()
            np.maximum.at(needed, inner[:, 1], ranks[inner[:, 0]] + 1)
            if (needed == ranks).all():
                return ranks
            ranks = needed
        at = int(ranks.argmax())
        raise InvalidInput("arcs", found=f"a circle without input labels at state {at}", expected="none")

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Read a transducer or acceptor in OpenFst's text form, with numbers for labels.

        Parameters
        ----------
        path
            Lines ``from to input output [weight]`` or ``from to label``, and ``state [weight]`` for final
            states; weights are costs. The first line begins with the first state.

        Returns
        -------
        Graph
            The graph.

        Raises
        ------
        FormatError
            If a line is none of these, or the graph is not what it should be.
        """
        arcs, weights, final, start = [], [], {}, None
        for number, line in enumerate(read_text(path, "a graph as text").splitlines(), 1):
            words = line.split()
            if not words:
                continue
            whole = 1 if len(words) < 3 else min(len(words), 4)
            try:
                numbers = [int(word) for word in words[:whole]]
                cost = float(words[whole]) if len(words) > whole else 0.0
            except ValueError:
                numbers, cost = [], math.nan
            wrong = len(words) > 5 or min(numbers, default=-1) < 0 or max(numbers) >= _MOST_STATES
            if wrong or math.isnan(cost) or cost == -math.inf:
                expected = "from to input output [weight], from to label, or state [weight], with numbers"
                raise FormatError(path, line=number, found=repr(line[:80]), expected=expected)
            start = numbers[0] if start is None else start
            if whole == 1:
                final[numbers[0]] = -cost
            else:
                arcs.append([*numbers, numbers[2]][:4])
                weights.append(-cost)
        if start is None:
            raise FormatError(path, found="no line", expected="a graph as text")
        try:
            return cls(start, np.array(arcs, np.int64).reshape(-1, 4), np.array(weights), final)
        except InvalidInput as error:
            raise FormatError(path, found=f"{error.what}: {error.found}", expected=error.expected) from error

    def best_path(self, frames: Any, *, beam: float = math.inf, most: int | None = None) -> Path:
        """Find the best accepted path (Viterbi).

        Parameters
        ----------
        frames
            Logarithms (frames, labels): column k is what input label k + 1 weighs.
        beam
            States whose logarithm is more than this below the best one of a frame are dropped; by default
            none is, and the path is the best.
        most
            States kept of a frame, at most: the best ones, of equal ones the first.

        Returns
        -------
        Path
            The path; of equal ways into a state that by the first arc, of equal final states the first.

        Raises
        ------
        InvalidInput
            If the frames have too few labels, or a setting is out of range.
        """
        in_range("beam", beam, 0)
        in_range("most", self.states if most is None else most, 1)
        ends, at = self._swept(_BEST, frames, self.weights, beam, most)
        if not len(ends):
            return self.path(-math.inf, np.empty(0, np.int64))
        best = ends[ends[:, _OLD_VALUE].argmax()]
        found = []
        token = int(best[_OLD_TOKEN])
        while token >= 0 and at.tokens[token, 1] >= 0:
            found.append(int(at.tokens[token, 1]))
            token = int(at.tokens[token, 0])
        return self.path(float(best[_OLD_VALUE]), np.array(found[::-1], np.int64))

    def best_paths(
        self,
        sequences: Sequence[Any],
        *,
        beam: float = math.inf,
        most: int | None = None,
        device: str = "auto",
        threads: int | None = None,
    ) -> list[Path]:
        """Find the best accepted path of each of many sequences of frames.

        Parameters
        ----------
        sequences
            Frames, each as for `best_path`.
        beam, most
            As for `best_path`.
        device
            ``auto``, ``cpu``, ``cuda``, ...; answers are the same on all. With `most` it is the CPU.
        threads
            Threads of the CPU.

        Returns
        -------
        list of Path
            What `best_path` finds for each.

        Raises
        ------
        InvalidInput
            If some frames have too few labels, or a setting is out of range.
        """
        in_range("beam", beam, 0)
        in_range("most", self.states if most is None else most, 1)
        batch = GraphBatch(self, [self._frames(one) for one in sequences], beam, most)
        return resolve(device, threads).launch(_PATHS, batch)

    def path(self, score: float, arcs: NDArray[np.int64]) -> Path:
        """The path by some arcs."""
        takes = self.arcs[arcs, 2] > 0
        outputs = self.arcs[arcs, 3]
        taken = np.where(takes, np.cumsum(takes) - 1, -1)
        return Path(score, arcs, taken, outputs[outputs > 0].astype(np.int32))

    def log_sum(self, frames: Any) -> float:
        """Sum the weights of all accepted paths.

        Parameters
        ----------
        frames
            As for `best_path`.

        Returns
        -------
        float
            Its logarithm.

        Raises
        ------
        InvalidInput
            If the frames have too few labels.
        """
        ends, _ = self._swept(_LOG_SUM, frames, self.weights, math.inf, None)
        return float(np.logaddexp.reduce(ends[:, _OLD_VALUE], initial=-math.inf))

    def paths(self, frames: Any) -> int:
        """Count the accepted paths.

        Parameters
        ----------
        frames
            As for `best_path`; what weighs minus infinity is not taken.

        Returns
        -------
        int
            Their number, of any size.

        Raises
        ------
        InvalidInput
            If the frames have too few labels.
        """
        seen = (np.asarray(frames, np.float64) > -math.inf).astype(np.int64).astype(object)
        there = (self.weights > -math.inf).astype(np.int64).astype(object)
        ends, _ = self._swept(BIG_COUNT, seen, there, math.inf, None)
        return sum(ends[:, _OLD_VALUE].tolist())

    def _frames(self, frames: Any) -> NDArray[Any]:
        """What frames weigh; counts stay Python's."""
        rows = np.asarray(frames)
        rows = rows if rows.dtype == object else np.ascontiguousarray(rows, np.float64)
        if rows.ndim != 2 or rows.shape[1] < self.labels or not (rows < math.inf).all():
            expected = f"(frames, {self.labels} or more labels) numbers below infinity"
            raise InvalidInput("frames", found=f"an array {rows.shape}", expected=expected)
        return rows

    def _swept(
        self, algebra: Any, frames: Any, weights: NDArray[Any], beam: float, most: int | None
    ) -> tuple[NDArray[Any], _Visited]:
        """Final states that are reached, in order, as `before` has them; what was visited."""
        big = algebra is BIG_COUNT
        rows = self._frames(frames)
        states = self.states
        first = np.searchsorted(self.arcs[:, 0], np.arange(states + 1))
        table = np.column_stack([weights, self.arcs[:, 1:3].astype(rows.dtype)])
        arcs = _Arcs(table, self.ranks, int(self.ranks.max(initial=-1)) + 1)
        at = _Visited(
            np.full((states, _COLUMNS), -1, rows.dtype),
            np.zeros(states, np.int32),
            np.empty((states, _OLD_STATE + 1), rows.dtype),
            np.empty(states, rows.dtype),
            np.empty(_BINS, np.int64),
            np.empty((max(_TOKENS, 4 * states), 2), np.int64),
            np.zeros(4, np.int64),
        )
        at.states[:, _FIRST], at.states[:, _LAST] = first[:-1], first[1:]
        sweep: Any = interpreted(sweep_arcs) if big else sweep_arcs
        while True:
            sweep(algebra, arcs, self.start, rows, beam, states if most is None else most, at)
            if at.counts[3] > len(rows):
                break
            keep_tokens(at, np.empty(len(at.tokens), np.int64))
            if at.counts[2] + 2 * states > len(at.tokens) // 2:
                at = at._replace(tokens=np.concatenate([at.tokens, np.empty_like(at.tokens)]))
        last = at.before[: at.counts[0]]
        last = last[np.argsort(last[:, _OLD_STATE].astype(np.int64))]
        finals = np.array(sorted(self.final.items()), np.float64)
        places = last[:, _OLD_STATE].astype(np.float64)
        own = np.isin(places, finals[finals[:, 1] > -math.inf, 0])
        if not big:
            # Logarithms of both algebras are extended by their sum.
            last[own, _OLD_VALUE] += finals[np.searchsorted(finals[:, 0], places[own]), 1]
        return last[own], at


class GraphBatch(NamedTuple):
    """Sequences of frames, float64 (frames, labels), and how to look for their best paths."""

    graph: Graph
    frames: list[_Floats]
    beam: float
    most: int | None


def _each_path(batch: GraphBatch, target: Target) -> list[Path]:
    return over_threads(
        target.threads, batch.frames, partial(batch.graph.best_path, beam=batch.beam, most=batch.most)
    )


_PATHS: Final = Problem(
    "best paths of graphs",
    cpu=_each_path,
    reference=_each_path,
    cuda="plait.states.gpu_states:graph_batch",
    worth=lambda batch: sum(map(len, batch.frames)) * len(batch.graph.arcs) >= 1 << 36,
)
