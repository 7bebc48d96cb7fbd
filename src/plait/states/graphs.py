"""Weighted graphs whose arcs take labels: the best accepted path of a sequence of frames, and sums over all.

    v_t(s) = choice over arcs r -> s of v_{t-1}(r) extended by the arc and what frame t weighs for its label

Arcs of label 0 take no frame; they are followed within one, from states of lower rank to those of higher.
Only states that something reaches are visited. With a beam, which belongs to this order of visiting and to
the best path alone, those far behind the best one of a frame are dropped.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from plait.devices.target import interpreted
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


class _Arcs(NamedTuple):
    """Arcs by the state they leave: those of state s from `first[s]` on, int64.

    `ends` int32 (arcs, 2): to, input label; `weights`, values of the algebra; `ranks` int32: how many arcs of
    label 0 can come before a state, -1 where none leaves it; `levels` of ranks.
    """

    first: Any
    ends: Any
    weights: Any
    ranks: Any
    levels: Any


class _Visited(NamedTuple):
    """States of the frame under way and of the one before.

    `states` (states, 8), all of the values' type, so that a state is a line of the cache: the columns below.
    `listed` int32 (2, states): those reached before, and now, in order; `ordered` (states,): memory for
    values. `tokens` int64 (tokens, 2): the token before, and the arc. `counts` int64: reached before and
    now, tokens, frames done.
    """

    states: Any
    listed: Any
    ordered: Any
    tokens: Any
    counts: Any


#: Of a state: value now, its token or -1, the token and the arc that it was reached by, the last frame that
#: reached it; value and token of the frame before.
_VALUE, _TOKEN, _FROM, _ARC, _SEEN, _OLD_VALUE, _OLD_TOKEN = range(7)
_COLUMNS: Final = 8

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
        at.listed[1, at.counts[1]] = s
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
            s = at.listed[1, i]
            i += 1
            if arcs.ranks[s] != rank:
                continue
            token = _token(at, s) if _traced(alg) else -1
            for a in range(arcs.first[s], arcs.first[s + 1]):
                if arcs.ends[a, 1] == 0:
                    value = extend(alg, at.states[s, _VALUE], arcs.weights[a])
                    _reach(alg, at, t, arcs.ends[a, 0], value, token, a)


@shared
def _drop(at: Any, beam: Any, most: Any) -> None:
    """Keep states within the beam, and of these the best `most`; of equal ones the first."""
    best = -math.inf
    for i in range(at.counts[1]):
        at.ordered[i] = at.states[at.listed[1, i], _VALUE]
        best = max(best, at.ordered[i])
    kept = 0
    for i in range(at.counts[1]):
        if at.ordered[i] >= best - beam:
            at.listed[1, kept], at.ordered[kept] = at.listed[1, i], at.ordered[i]
            kept += 1
    at.counts[1] = min(kept, most)
    low, high = 0, kept - 1
    # Hoare's selection: after it, the first `most` go before all others.
    while most < kept and low < high:
        value, s = at.ordered[(low + high) // 2], at.listed[1, (low + high) // 2]
        i, j = low, high
        while i <= j:
            while at.ordered[i] > value or (at.ordered[i] == value and at.listed[1, i] < s):
                i += 1
            while at.ordered[j] < value or (at.ordered[j] == value and at.listed[1, j] > s):
                j -= 1
            if i <= j:
                at.listed[1, i], at.listed[1, j] = at.listed[1, j], at.listed[1, i]
                at.ordered[i], at.ordered[j] = at.ordered[j], at.ordered[i]
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
        s = at.listed[1, i]
        state = at.states[s]
        at.listed[0, i], state[_OLD_VALUE] = s, state[_VALUE]
        state[_OLD_TOKEN] = _token(at, s) if _traced(alg) else -1
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
            r = at.listed[0, i]
            before, token = at.states[r, _OLD_VALUE], at.states[r, _OLD_TOKEN]
            for a in range(arcs.first[r], arcs.first[r + 1]):
                label = arcs.ends[a, 1]
                if label > 0:
                    value = extend(alg, extend(alg, before, arcs.weights[a]), frames[t - 1, label - 1])
                    _reach(alg, at, t, arcs.ends[a, 0], value, token, a)
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
        k = int(at.states[at.listed[0, i], _OLD_TOKEN])
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
        state = at.states[at.listed[0, i]]
        state[_OLD_TOKEN] = places[int(state[_OLD_TOKEN])]


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
        order = np.argsort(given[:, 0], kind="stable")
        object.__setattr__(self, "arcs", given[order])
        object.__setattr__(self, "weights", weights[order])
        object.__setattr__(self, "_ranks", self._ranked())

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
            if len(words) > 5 or math.isnan(cost) or cost == -math.inf or min(numbers, default=-1) < 0:
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
        best = max(ends, key=lambda end: (end[1], -end[0]), default=None)
        if best is None or best[1] == -math.inf:
            empty = np.empty(0, np.int64)
            return Path(-math.inf, empty, empty, np.empty(0, np.int32))
        found = []
        token = int(at.states[best[0], _OLD_TOKEN])
        while token >= 0 and at.tokens[token, 1] >= 0:
            found.append(int(at.tokens[token, 1]))
            token = int(at.tokens[token, 0])
        arcs = np.array(found[::-1], np.int64)
        takes = self.arcs[arcs, 2] > 0
        outputs = self.arcs[arcs, 3]
        taken = np.where(takes, np.cumsum(takes) - 1, -1)
        return Path(best[1], arcs, taken, outputs[outputs > 0].astype(np.int32))

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
        return float(np.logaddexp.reduce([value for _, value in ends], initial=-math.inf))

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
        return sum(value for s, value in ends if self.final[s] > -math.inf)

    def _swept(
        self, algebra: Any, frames: Any, weights: NDArray[Any], beam: float, most: int | None
    ) -> tuple[list[tuple[int, Any]], _Visited]:
        """Final states that are reached, with their values, and what was visited."""
        big = algebra is BIG_COUNT
        rows = frames if big else np.ascontiguousarray(frames, np.float64)
        if rows.ndim != 2 or rows.shape[1] < self.labels or (not big and not (rows < math.inf).all()):
            expected = f"(frames, {self.labels} or more labels) numbers below infinity"
            raise InvalidInput("frames", found=f"an array {rows.shape}", expected=expected)
        states = self.states
        first = np.searchsorted(self.arcs[:, 0], np.arange(states + 1))
        ranks: NDArray[np.int32] = self._ranks  # type: ignore[attr-defined]
        ends = np.ascontiguousarray(self.arcs[:, 1:3], np.int32)
        arcs = _Arcs(first, ends, weights, ranks, int(ranks.max(initial=-1)) + 1)
        at = _Visited(
            np.full((states, _COLUMNS), -1, rows.dtype),
            np.zeros((2, states), np.int32),
            np.empty(states, rows.dtype),
            np.empty((max(_TOKENS, 4 * states), 2), np.int64),
            np.zeros(4, np.int64),
        )
        sweep: Any = interpreted(sweep_arcs) if big else sweep_arcs
        while True:
            sweep(algebra, arcs, self.start, rows, beam, states if most is None else most, at)
            if at.counts[3] > len(rows):
                break
            keep_tokens(at, np.empty(len(at.tokens), np.int64))
            if at.counts[2] + 2 * states > len(at.tokens) // 2:
                at = at._replace(tokens=np.concatenate([at.tokens, np.empty_like(at.tokens)]))
        reached = sorted(set(at.listed[0, : at.counts[0]].tolist()) & self.final.keys())
        last = [algebra.one if big else self.final[s] for s in reached]
        found = [extend(algebra, at.states[s, _OLD_VALUE], end) for s, end in zip(reached, last, strict=True)]
        return list(zip(reached, found, strict=True)), at
