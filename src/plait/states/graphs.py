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
from functools import cached_property, partial
from typing import Any, Final, NamedTuple, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from plait.devices.target import On, Problem, Target, interpreted, over_threads, resolve, spelled
from plait.errors import FormatError, InvalidInput, in_range, whole
from plait.formats.files import read_text
from plait.lang.algebras import BIG_COUNT, Count, LogSum, MaxPlus, choice, extend
from plait.lang.compile import by_type_of, kernel, shared
from plait.lang.lanes import prefetch
from plait.states.models import numbers_of

_Floats = NDArray[np.float64]

_BEST: Final = MaxPlus(-math.inf, 0.0)
_LOG_SUM: Final = LogSum(-math.inf, 0.0)
#: Tokens of paths that there is room for at first.
_TOKENS: Final = 1 << 20
#: States and labels; two of these together are exact in float64.
_MOST: Final = 1 << 26
#: Numbers of states that may be left out, if there are not many more than those that occur.
_SPARSE: Final = 1 << 20


class _Arcs(NamedTuple):
    """Arcs by the state they leave.

    `table` (arcs, 2), of the values' type, so that an arc is in one line of the cache: its weight; the state
    that it enters, times ``1 << bits``, and its label. `ranks` int32: how many arcs of label 0 can come
    before a state, -1 where none leaves it; `levels` of ranks.
    """

    table: Any
    bits: Any
    ranks: Any
    levels: Any


class _Visited(NamedTuple):
    """States of the frame under way and of the one before, in the order in which they were reached.

    `seats` int32 (states + 1, 2): the place of a state among those now, if ``counts[4]`` taken off leaves
    one, and its first arc, behind the last of the state before. `values` and `old` (states,): those now and
    those before, apart, because most are looked at and left as they are. `now` int32 (states, 3) and `before`
    int32 (states, 4) have the columns below. A way is a token in the upper half of an int64 and the arc after
    it in the lower one, or _MADE behind a token that is its own: `came` (states,) by which those now were
    reached, `tokens` (tokens,). `bins` int64, and `some`, `states` int32 and `ways` (room,) are memory for
    some states or arcs. `counts` int64: reached before and now, tokens, frames done, and what is taken off.
    """

    seats: Any
    values: Any
    old: Any
    now: Any
    came: Any
    before: Any
    bins: Any
    some: Any
    states: Any
    ways: Any
    tokens: Any
    counts: Any


#: A state's first arc and the one behind its last, and the token of one before.
_STATE, _FIRST, _LAST, _TOKEN = range(4)
_LOWER: Final = (1 << 32) - 1
_MADE: Final = _LOWER - 1
_BINS: Final = 1024
#: Values are bins apart if they are not as near as this.
_NEXT: Final = 1e-300
#: States further on whose arcs are brought near, and arcs that are looked at before what they enter is.
_AHEAD, _TOGETHER = 16, 64
#: Tokens that there is room for at most; their numbers have 32 bits.
_MOST_TOKENS: Final = 1 << 30
_SEATS: Final = 1 << 30

_traced: Any = by_type_of({MaxPlus: lambda alg: True, **dict.fromkeys((LogSum, Count), lambda alg: False)})


@shared
def _reach(alg: Any, at: Any, s: Any, value: Any, way: Any) -> None:
    """Reach a state by an arc; of equal ways, that by the first arc is kept."""
    if value == alg.zero:
        return
    k = at.seats[s, 0] - at.counts[4]
    if k < 0:
        k = at.counts[1]
        at.seats[s, 0] = at.counts[4] + k
        at.counts[1] = k + 1
        row = at.now[k]
        row[_STATE], row[_FIRST], row[_LAST] = s, at.seats[s, 1], at.seats[s + 1, 1]
    elif _traced(alg) and (
        value < at.values[k] or (value == at.values[k] and way & _LOWER >= at.came[k] & _LOWER)
    ):
        return
    else:
        value = choice(alg, at.values[k], value)
    at.values[k], at.came[k] = value, way


@shared
def _follow_empty(alg: Any, arcs: Any, at: Any) -> None:
    """Follow arcs that take no frame, by rank of the states that they leave."""
    for rank in range(arcs.levels):
        i = 0
        while i < at.counts[1]:
            value, row = at.values[i], at.now[i]
            own = arcs.ranks[row[_STATE]] == rank
            if own and _traced(alg):
                # Nothing reaches it any more in this frame.
                number = at.counts[2]
                at.tokens[number], at.counts[2] = at.came[i], number + 1
                at.came[i] = number << 32 | _MADE
            for a in range(row[_FIRST], row[_LAST] if own else row[_FIRST]):
                code = int(arcs.table[a, 1])
                if code & ((1 << arcs.bits) - 1) == 0:
                    way = at.came[i] & ~_LOWER | a
                    _reach(alg, at, code >> arcs.bits, extend(alg, value, arcs.table[a, 0]), way)
            i += 1


@shared
def _last_kept(at: Any, most: Any) -> Any:
    """Value and state of the last of the best `most`, of equal ones the first."""
    values, left, s = at.values[: at.counts[1]], most, -1
    while True:
        high = low = values[0]
        for value in values:
            high, low = max(high, value), min(low, value)
        if not high - low > _NEXT:
            break
        # By bins of their values: then the last one is looked for in its bin alone.
        scale, last = (_BINS - 1) / (high - low), 0
        at.bins[:] = 0
        for value in values:
            at.bins[int((high - value) * scale)] += 1
        while at.bins[last] < left:
            left -= at.bins[last]
            last += 1
        own = 0
        for value in values:
            if int((high - value) * scale) == last:
                at.some[own] = value
                own += 1
        values = at.some[:own]
    if left == values.size:
        return low, at.seats.shape[0]
    while left > 0 and s < at.values.size - 1:
        s += 1
        k = at.seats[s, 0] - at.counts[4]
        left -= int(k >= 0 and at.values[k] == high)
    return high, s


@shared
def _end_frame(alg: Any, at: Any, beam: Any, most: Any) -> None:
    """The frame under way becomes the one before, but for what is dropped."""
    kept, number, least, last = 0, at.counts[2], -math.inf, 0
    if at.counts[1] > most:
        least, last = _last_kept(at, most)
    if beam < math.inf:
        best = -math.inf
        for value in at.values[: at.counts[1]]:
            best = max(best, value)
        if best - beam > least:
            least, last = best - beam, at.seats.shape[0]
    for i in range(at.counts[1]):
        # Without branches: which states are kept cannot be foreseen.
        value, way, row, old = at.values[i], at.came[i], at.now[i], at.before[kept]
        s, made = row[_STATE], way & _LOWER == _MADE
        old[_STATE], old[_FIRST], old[_LAST] = s, row[_FIRST], row[_LAST]
        at.old[kept], old[_TOKEN], at.tokens[number] = value, way >> 32 if made else number, way
        keep = int(value > least) | (int(value == least) & int(s <= last))
        kept += keep
        number += keep & int(not made) if _traced(alg) else 0
    at.counts[4] += at.counts[1]
    if at.counts[4] > _SEATS:
        at.seats[:, 0], at.counts[4] = -1, 0
    at.counts[0], at.counts[1], at.counts[2] = kept, 0, number
    at.counts[3] += 1


@shared
def _gather(alg: Any, arcs: Any, at: Any, frame: Any, i: Any) -> Any:
    """What arcs with labels bring from some states, from the i-th one on; the next one, and their number."""
    count, reached = 0, at.counts[0]
    while i < reached and (count == 0 or count + at.before[i, _LAST] - at.before[i, _FIRST] <= _TOGETHER):
        if i + _AHEAD < reached:
            prefetch(arcs.table, at.before[i + _AHEAD, _FIRST])
            prefetch(arcs.table, max(at.before[i + _AHEAD, _LAST] - 1, 0))
        value, row = at.old[i], at.before[i]
        token = int(row[_TOKEN]) << 32
        for a in range(row[_FIRST], row[_LAST]):
            code = int(arcs.table[a, 1])
            s, label = code >> arcs.bits, code & ((1 << arcs.bits) - 1)
            if label > 0:
                prefetch(at.seats, s)
                at.some[count] = extend(alg, extend(alg, value, arcs.table[a, 0]), frame[label - 1])
                at.states[count], at.ways[count] = s, token | a
                count += 1
        i += 1
    return i, count


@kernel
def sweep_arcs(alg: Any, arcs: _Arcs, start: int, frames: Any, beam: float, most: int, at: _Visited) -> None:
    """Sweep `frames` (frames, labels) from where it stopped, until there may be no room for tokens.

    ``counts[3]`` is 0 before state `start` has been reached without a frame, then the frames done and one.
    """
    size = at.seats.shape[0] - 1
    room = min(size, most) + (size if arcs.levels > 0 else 0)
    while at.counts[3] <= frames.shape[0] and at.counts[2] + room < at.tokens.shape[0]:
        t, i = at.counts[3], 0
        if t == 0:
            _reach(alg, at, start, alg.one, -1)
        while i < at.counts[0]:
            i, count = _gather(alg, arcs, at, frames[t - 1], i)
            for k in range(count):
                _reach(alg, at, at.states[k], at.some[k], at.ways[k])
        _follow_empty(alg, arcs, at)
        _end_frame(alg, at, beam, most)


@kernel
def keep_tokens(at: _Visited, places: Any) -> None:
    """Drop tokens that no state of the last frame comes from; scratch `places` int32 (tokens,)."""
    places[: at.counts[2]] = 0
    for i in range(at.counts[0]):
        places[at.before[i, _TOKEN]] = 1
    for k in range(at.counts[2] - 1, -1, -1):
        places[max(at.tokens[k] >> 32, 0)] |= places[k]
    kept = 0
    for k in range(at.counts[2]):
        way, keep = at.tokens[k], places[k]
        before = int(places[way >> 32]) if way >= 0 else -1
        at.tokens[kept] = before << 32 | way & _LOWER
        places[k] = kept
        kept += keep
    at.counts[2] = kept
    for i in range(at.counts[0]):
        at.before[i, _TOKEN] = places[at.before[i, _TOKEN]]


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

    def __init__(self, start: int, arcs: ArrayLike, weights: ArrayLike, final: dict[int, float]) -> None:
        given, weights = numbers_of("arcs", arcs, np.int64).reshape(-1, 4), numbers_of("weights", weights)
        if (given.size and (given.min() < 0 or given.max() >= _MOST)) or weights.shape != (len(given),):
            expected = f"numbers from 0 to {_MOST - 1:,}, and a weight for each"
            raise InvalidInput("arcs", found=f"{len(given):,} with others", expected=expected)
        numbers = [*weights.tolist(), *final.values()]
        if any(math.isnan(x) or x == math.inf for x in numbers) or not final:
            found = "none" if not final else "one that is no number below infinity"
            raise InvalidInput("weights", found=found, expected="logarithms, and at least one final state")
        seen = np.array([start, *final, *given[:, :2].ravel()])
        if seen.min() < 0 or seen.max() >= max(_SPARSE, 16 * seen.size):
            expected = "states numbered one after the other, from 0 on"
            raise InvalidInput("states", found=f"numbers {seen.min()} to {seen.max()}", expected=expected)
        order = np.argsort(given[:, 0], kind="stable")
        self.start, self.final, self.arcs, self.weights = start, final, given[order], weights[order]
        self.states, self.labels = int(seen.max()) + 1, int(given[:, 2].max(initial=0))
        self.ends = np.full(self.states, -math.inf)
        self.ends[list(final)] = list(final.values())
        self.ranks = self._ranked()

    @cached_property
    def _tables(self) -> tuple[_Arcs, NDArray[np.int32]]:
        """The arcs, and seats, all free."""
        bits = self.labels.bit_length()
        # One more, which is loaded ahead of its time and not followed.
        table = np.zeros((len(self.arcs) + 1, 2))
        table[:-1, 0], table[:-1, 1] = self.weights, self.arcs[:, 1] << bits | self.arcs[:, 2]
        seats = np.full((self.states + 1, 2), -1, np.int32)
        seats[:, 1] = np.searchsorted(self.arcs[:, 0], np.arange(self.states + 1))
        return _Arcs(table, bits, self.ranks, int(self.ranks.max(initial=-1)) + 1), seats

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
            if not (words := line.split()):
                continue
            whole = 1 if len(words) < 3 else min(len(words), 4)
            try:
                numbers = [int(word) for word in words[:whole]]
                cost = float(words[whole]) if len(words) > whole else 0.0
            except ValueError:
                numbers, cost = [], math.nan
            wrong = len(words) > 5 or min(numbers, default=-1) < 0 or max(numbers) >= _MOST
            if wrong or math.isnan(cost) or cost == -math.inf:
                expected = "from to input output [weight], from to label, or state [weight], with numbers"
                raise FormatError(path, line=number, found=repr(line[:80]), expected=expected)
            start = numbers[0] if start is None else start
            if whole == 1:
                final[numbers[0]] = -cost
            else:
                arcs.append([*numbers, numbers[2]][:4])
                weights.append(-cost)
        try:
            return cls(start or 0, arcs, weights, final)
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
        return self.best_paths([frames], beam=beam, most=most, device="cpu", threads=1)[0]

    def _best(self, frames: _Floats, beam: float, most: int | None) -> Path:
        ends, tokens, at = self._swept(_BEST, frames, beam, most)
        if not len(ends):
            return self.path(-math.inf, np.empty(0, np.int64))
        best = ends.argmax()
        found, token = [], int(tokens[best])
        while token >= 0:
            way = int(at.tokens[token])
            found.append(way & _LOWER)
            token = way >> 32
        # The first state's token came by no arc.
        return self.path(float(ends[best]), np.array(found[-2::-1], np.int64))

    @spelled
    def best_paths(
        self, sequences: Sequence[Any], *, beam: float = math.inf, most: int | None = None, **on: Unpack[On]
    ) -> list[Path]:
        """Find the best accepted path of each of many sequences of frames.

        Parameters
        ----------
        sequences
            Frames, each as for `best_path`.
        beam, most
            As for `best_path`.
        **on
            `device`, ``auto``, ``cpu``, ``cuda``, ...; answers are the same on all. With `most` it is the
            CPU, whose `threads` there are.

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
        most = None if most is None else whole("most", most, 1)
        batch = GraphBatch(self, [self._frames(one) for one in sequences], beam, most)
        return resolve(**on).launch(_PATHS, batch)

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
        return float(np.logaddexp.reduce(self._swept(_LOG_SUM, self._frames(frames))[0], initial=-math.inf))

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
        return sum(self._swept(BIG_COUNT, self._frames(frames))[0].tolist())

    def _frames(self, frames: Any) -> _Floats:
        """What frames weigh."""
        rows = numbers_of("frames", frames)
        if rows.ndim != 2 or rows.shape[1] < self.labels or not (rows < math.inf).all():
            expected = f"(frames, {self.labels} or more labels) numbers below infinity"
            raise InvalidInput("frames", found=f"an array {rows.shape}", expected=expected)
        return rows

    def _swept(
        self, algebra: Any, frames: _Floats, beam: float = math.inf, most: int | None = None
    ) -> tuple[NDArray[Any], NDArray[np.int64], _Visited]:
        """Values of final states that are reached, in order, and their tokens; what was visited."""
        rows: Any = frames
        arcs, seats = self._tables
        sweep: Any = sweep_arcs
        if algebra is BIG_COUNT:
            sweep, table = interpreted(sweep_arcs), arcs.table.astype(object)
            both = rows, table[:, 0]
            rows, table[:, 0] = ((own > -math.inf).astype(np.int64).astype(object) for own in both)
            arcs = arcs._replace(table=table)
        states, kind, most = self.states, rows.dtype, min(self.states, most or self.states)
        room = max(states, _TOGETHER, int(np.diff(seats[:, 1]).max()))
        tokens = max(min(_TOKENS, 2 * states * (len(rows) + 2)), 4 * states)
        memory: Any = ((states, kind), (states, kind), ((states, 3), np.int32), (states, np.int64))
        memory += ((states, 4), np.int32), (_BINS, np.int64), (room, kind), (room, np.int32)
        memory += (room, np.int64), (tokens, np.int64), (5, np.int64)
        at = _Visited(seats.copy(), *(np.zeros(*one) for one in memory))
        while True:
            sweep(algebra, arcs, self.start, rows, beam, most, at)
            if at.counts[3] > len(rows):
                break
            keep_tokens(at, np.empty(len(at.tokens), np.int32))
            if at.counts[2] + 2 * states > len(at.tokens) // 2:
                if len(at.tokens) > _MOST_TOKENS:
                    expected = "fewer of them, a beam, or fewer states kept"
                    raise InvalidInput("frames", found=f"over {len(at.tokens):,} ways", expected=expected)
                at = at._replace(tokens=np.concatenate([at.tokens, np.empty_like(at.tokens)]))
        order = np.argsort(at.before[: at.counts[0], _STATE])
        last, values = at.before[order], at.old[order]
        ends = self.ends[last[:, _STATE]]
        if algebra is not BIG_COUNT:
            # Logarithms of both algebras are extended by their sum.
            values += ends
        kept = ends > -math.inf
        return values[kept], last[kept, _TOKEN], at


class GraphBatch(NamedTuple):
    """Sequences of frames, float64 (frames, labels), and how to look for their best paths."""

    graph: Graph
    frames: list[_Floats]
    beam: float
    most: int | None


def _each_path(batch: GraphBatch, target: Target) -> list[Path]:
    best = partial(batch.graph._best, beam=batch.beam, most=batch.most)
    return over_threads(target.threads, batch.frames, best)


_PATHS: Final = Problem.of(
    "best paths of graphs",
    _each_path,
    cuda="plait.states.gpu_states:graph_batch",
    worth=lambda batch: sum(map(len, batch.frames)) * len(batch.graph.arcs) >= 1 << 36,
)
