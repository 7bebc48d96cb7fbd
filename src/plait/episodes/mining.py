"""Frequent serial episodes: level-wise search, and what counts an episode in one step from its beginning.

An episode E1 -(lo, hi]-> E2 ... is a chain of events of these types, each later than the one before by more
than lo and by at most hi; others may lie between. Over the events of the type of step k runs

    L_k(t) = choice of L_{k-1}(t') over events t' of the type before with lo < t - t' <= hi

L is the latest start of a chain that ends at t in `MaxPlus`, and the number of such chains in
`SaturatingCount`. Latest starts never fall from one event to the next, so the choice over a window is the
newest in it, and sums over windows are differences of running sums: two pointers per step. Of the chains that
end at t the one that starts latest is taken whenever it starts after the last one taken ended, which gives as
many chains without overlap as there can be.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plait.errors import FormatError, InvalidInput, whole
from plait.formats.files import read_text
from plait.formats.rearrangements import read_columns
from plait.formats.tables import check_tables, facts_of, open_table
from plait.lang.algebras import MaxPlus, SaturatingCount, choice
from plait.lang.compile import by_type_of, kernel, shared
from plait.run.executor import LocalExecutor
from plait.types import Tabular

#: What events that come from Python are called in errors.
_GIVEN, _TYPE, _TIME = "events", "type", "time"
_Progress: TypeAlias = Callable[[int, int, int], None]
#: Episodes by blocks, and their number.
_Blocks: TypeAlias = tuple[Iterator[NDArray[np.int32]], int]

#: Candidates counted by a thread at a time, and most frequent episodes of one size.
_BLOCK: Final = 1 << 14
_MOST_FREQUENT: Final = 10_000_000
_LONGEST: Final = 64
#: Times are float64 from the first event on: whole numbers are exact below this.
_EXACT: Final = 1 << 53
_MOST_CHAINS: Final = (1 << 63) - 1
_STEP: Final = re.compile(r" -\(([^,()\]]*),([^,()\]]*)\]-> ")
_LATEST: Final = MaxPlus(-math.inf, 0.0)
_NUMBER: Final = SaturatingCount(np.int64(0), np.int64(1), np.int64(_MOST_CHAINS))


class _Stream(NamedTuple):
    """Events by type, then time: `times` float64, type k has those from `first[k]` to `first[k + 1]`.

    `bounds`, float64 (windows, 2), of steps: more than, at most.
    """

    times: Any
    first: Any
    bounds: Any


def _newest(alg: Any, running: Any, old: Any, new: Any) -> Any:
    return running[new]


def _sum_between(alg: Any, running: Any, old: Any, new: Any) -> Any:
    return running[new] if running[new] == alg.limit else running[new] - running[old]


#: Choice over values `old` to `new` (not included) of choices from the first value on.
_over_window: Final[Any] = by_type_of({MaxPlus: _newest, SaturatingCount: _sum_between})
#: The chain of an event alone.
_begun: Final[Any] = by_type_of({MaxPlus: lambda alg, t: t, SaturatingCount: lambda alg, t: alg.one})


def _without_overlap(alg: Any, times: Any, running: Any, n: Any, found: Any) -> None:
    taken, start, last = 0, 0.0, alg.zero
    for x in range(n):
        if running[x + 1] > last:
            if taken == 0:
                start = running[x + 1]
            taken += 1
            last = times[x]
    found[0], found[1], found[2] = taken, start, last


def _all(alg: Any, times: Any, running: Any, n: Any, found: Any) -> None:
    found[0] = running[n]


_answer: Final[Any] = by_type_of({MaxPlus: _without_overlap, SaturatingCount: _all})


@shared
def _one_step(
    alg: Any, before: Any, begun: Any, n: Any, events: Any, bounds: Any, times: Any, running: Any
) -> Any:
    """Chains one event longer than the n that end at `before`: their ends, running choices and number."""
    old = new = found = 0
    running[0] = alg.zero
    for x in range(events.size if n else 0):
        t = events[x]
        while new < n and t - before[new] > bounds[0]:
            new += 1
        while old < new and t - before[old] > bounds[1]:
            old += 1
        if old < new:
            times[found] = t
            running[found + 1] = choice(alg, running[found], _over_window(alg, begun, old, new))
            found += 1
    return found


@kernel
def count_episodes(
    alg: Any, stream: _Stream, size: int, episodes: Any, times: Any, running: Any, ends: Any, found: Any
) -> None:
    """Count every episode; those that begin alike stand together, and their beginnings are counted once.

    `episodes` int32 (episodes, columns): `size` types, and the windows of the steps between them. Scratch:
    `times` (N, events of a type), `running` (N, one more), `ends` int64 (N,). `found`: a row each.
    """
    for c in range(episodes.shape[0]):
        same, own = 0, episodes[c]
        while (
            c
            and same < size
            and own[same] == episodes[c - 1, same]
            and (same == 0 or own[size + same - 1] == episodes[c - 1, size + same - 1])
        ):
            same += 1
        for k in range(same, size):
            events = stream.times[stream.first[own[k]] : stream.first[own[k] + 1]]
            if k:
                bounds, last = stream.bounds[own[size + k - 1]], k - 1
                ends[k] = _one_step(
                    alg, times[last], running[last], ends[last], events, bounds, times[k], running[k]
                )
                continue
            ends[0], running[0, 0] = events.size, alg.zero
            for x in range(events.size):
                times[0, x] = events[x]
                running[0, x + 1] = choice(alg, running[0, x], _begun(alg, events[x]))
        _answer(alg, times[size - 1], running[size - 1], ends[size - 1], found[c])


def _counted(alg: Any, stream: _Stream, size: int, episodes: NDArray[np.int32]) -> NDArray[Any]:
    """Rows of an answer for each episode: count, first start and last end; or the number of all chains."""
    longest = int(np.diff(stream.first).max(initial=0))
    times = np.empty((size, longest))
    running = np.empty((size, longest + 1), np.asarray(alg.zero).dtype)
    found = np.empty((len(episodes), 3 if alg is _LATEST else 1), running.dtype)
    count_episodes(alg, stream, size, episodes, times, running, np.empty(size, np.int64), found)
    return found


class Level(NamedTuple):
    """Episodes of one size.

    Attributes
    ----------
    size
        Number of events of each.
    candidates
        Episodes that were counted.
    frequent
        Those of them that are kept.
    seconds
        Time that it took.
    """

    size: int
    candidates: int
    frequent: int
    seconds: float


@dataclass(frozen=True)
class Episodes(Tabular):
    """Episodes and how often they occur; `to_arrow` gives `table`.

    Attributes
    ----------
    table
        A row per episode: ``episode`` as text, its ``size``, ``count`` of occurrences of which none overlap,
        ``all_occurrences``, null if there may be more than 2^63 - 2, and the times at which the first of
        those counted begins and the last one ends, ``first`` and ``last``, null if there is none.
    levels
        What was counted, by size.
    """

    table: pa.Table
    levels: Sequence[Level]

    def _table(self, rows: int | None) -> pa.Table:
        return self.table.slice(0, rows)


class _Events:
    """A stream, its types' names, and its times as they were given."""

    def __init__(self, types: Any, times: Any, bounds: Any, names: Iterable[str] = ()) -> None:
        """Of types that have events, and of those named besides."""
        labels, given = _labels(types), _numbers(times)
        if len(labels) != given.size:
            raise InvalidInput("times", found=f"{given.size:,}", expected=f"{len(labels):,}, one per event")
        self.names: list[str] = sorted({*labels.unique().to_pylist(), *names})
        codes = pc.index_in(labels, pa.array(self.names, labels.type)).to_numpy(zero_copy_only=False)
        order = np.lexsort((given, codes))
        self._start = given.min() if given.size else given.dtype.type(0)
        self._whole = given.dtype.kind == "i"
        spread = (int(given.max()) - int(self._start)) if given.size and self._whole else 0
        if spread >= _EXACT:
            found, expected = f"times {spread:,} apart", f"at most {_EXACT - 1:,}"
            raise FormatError(_GIVEN, column=_TIME, found=found, expected=expected)
        own = (given[order] - self._start if self._whole else given[order]).astype(np.float64)
        first = np.searchsorted(codes[order], np.arange(len(self.names) + 1))
        self.stream = _Stream(own, first, bounds)

    def times(self, found: NDArray[np.float64], counts: NDArray[np.int64]) -> pa.Array:
        """Times as they were given, null where nothing was counted."""
        given = np.where(counts > 0, found, 0.0)
        values = given.astype(np.int64) + self._start if self._whole else given
        return pa.array(values, mask=counts == 0)


def _column(values: Any) -> pa.Array:
    found = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(np.asarray(values))
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def _labels(types: Any) -> pa.Array:
    """Names of types, large strings."""
    found = _column(types).cast(pa.large_string())
    bad = pc.fill_null(pc.match_substring_regex(found, r"^$|[\t\n\r]| -\("), True)
    if (row := pc.index(bad, True).as_py()) >= 0:
        expected = "a name, without tabs, line ends and ' -('"
        told = repr(found[row].as_py())
        raise FormatError(_GIVEN, record=row, column=_TYPE, found=told, expected=expected)
    return found


def _numbers(times: Any) -> NDArray[Any]:
    """Times, int64 or float64."""
    found = _column(times)
    for kind in (pa.int64(), pa.float64()):
        with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):
            values = found.cast(kind)
            if pc.all(pc.fill_null(pc.is_finite(values), False)).as_py() is not False:
                return np.asarray(values)
    for row, value in enumerate(found.to_pylist()):
        with suppress(TypeError, ValueError):
            if math.isfinite(float(value)):
                continue
        raise FormatError(_GIVEN, record=row, column=_TIME, found=repr(value), expected="a number")
    return np.array(found.to_pylist(), np.float64)


def _checked_windows(windows: Sequence[tuple[float, float]]) -> NDArray[np.float64]:
    told = ", ".join(f"{low:g}:{high:g}" for low, high in windows) or "none"
    if not windows or len(set(windows)) < len(windows):
        raise InvalidInput("window", found=told, expected="one or more, each once")
    for low, high in windows:
        if not (0 <= low < high < math.inf):
            expected = "LO:HI with 0 <= LO < HI, which is finite"
            raise InvalidInput("window", found=f"{low:g}:{high:g}", expected=expected)
    return np.array(sorted(windows), np.float64)


def mine(
    types: Any,
    times: Any,
    *,
    windows: Sequence[tuple[float, float]],
    support: int,
    max_size: int = 6,
    threads: int | None = None,
    progress: _Progress | None = None,
) -> Episodes:
    """Find every serial episode that occurs often enough.

    Parameters
    ----------
    types
        The type of each event (events,): names or whole numbers.
    times
        When it happened, in any order and unit.
    windows
        Intervals (lo, hi): a step takes more than lo and at most hi, any of them.
    support
        Occurrences without overlap that an episode must have: two overlap unless one begins strictly later
        than the other has ended.
    max_size
        Events of an episode, at most.
    threads
        Number of threads; by default those of the settings.
    progress
        Called with the size of episodes, and the candidates of that size counted so far and in all.

    Returns
    -------
    Episodes
        By size, then by type and window of their steps.

    Raises
    ------
    InvalidInput
        If a setting is not what it should be, or over ten million episodes of one size are frequent.
    FormatError
        If an event is not what it should be.

    Examples
    --------
    >>> from plait.episodes import mine
    >>> found = mine(["A", "B", "A", "B", "C"], [0, 2, 10, 11, 12], windows=[(0, 5)], support=2)
    >>> found.table.select(["episode", "count", "all_occurrences"]).to_pylist()[2:]
    [{'episode': 'A -(0,5]-> B', 'count': 2, 'all_occurrences': 2}]
    """
    support, max_size = whole("support", support, 1), whole("max_size", max_size, 1, _LONGEST)
    bounds = _checked_windows(windows)
    events, executor = _Events(types, times, bounds), LocalExecutor(threads)
    frequent = np.repeat(np.arange(len(events.names), dtype=np.int32)[:, None], 3, axis=1)
    tables, levels = [], []
    found: _Blocks = iter([frequent]), len(frequent)
    for size in range(1, max_size + 1):
        frequent, table, level = _level(events, size, found, support, executor, progress)
        tables.append(table)
        levels.append(level)
        found = _candidates(frequent, size, len(bounds))
        if not found[1]:
            break
    return Episodes(pa.concat_tables(tables), levels)


def _level(
    events: _Events, size: int, among: _Blocks, support: int, executor: LocalExecutor, progress: Any = None
) -> tuple[NDArray[np.int32], pa.Table, Level]:
    """Count episodes `among` some: those with support, as a table, and what was done."""
    (blocks, total), begun, done, number = among, time.perf_counter(), 0, 0
    kept, answers = [], []
    latest_of, number_of = (partial(_counted, alg, events.stream, size) for alg in (_LATEST, _NUMBER))
    for block, found in executor.map(lambda block: (block, latest_of(block)), blocks):
        often = found[:, 0] >= support
        kept.append(block[often])
        answers.append(found[often])
        done, number = done + len(found), number + len(kept[-1])
        if progress is not None:
            progress(size, done, total)
        if number > _MOST_FREQUENT:
            told = f"{support:,}, with which over {_MOST_FREQUENT:,} episodes of size {size} are frequent"
            hint = "ask for more support, fewer windows or a smaller size"
            raise InvalidInput("support", found=told, expected="fewer of them", hint=hint)
    episodes, latest = np.concatenate(kept), np.concatenate(answers)
    chains = np.concatenate([np.empty((0, 1), np.int64), *executor.map(number_of, _in_blocks(episodes))])
    table = _as_table(events, size, episodes, latest, chains[:, 0])
    occurs = int((latest[:, 0] > 0).sum())
    return episodes, table, Level(size, total, occurs, time.perf_counter() - begun)


def _in_blocks(episodes: NDArray[np.int32]) -> Iterator[NDArray[np.int32]]:
    return (episodes[k : k + _BLOCK] for k in range(0, len(episodes), _BLOCK))


def count(types: Any, times: Any, episodes: Sequence[str], *, threads: int | None = None) -> Episodes:
    """Count given serial episodes.

    Parameters
    ----------
    types, times
        Events, as for `mine`.
    episodes
        Episodes as text: ``A -(5,15]-> B -(0,2]-> A``.
    threads
        Number of threads; by default those of the settings.

    Returns
    -------
    Episodes
        In the order in which they are given.

    Raises
    ------
    InvalidInput
        If a text is no episode, or an event is not what it should be.
    """
    if not episodes:
        raise InvalidInput("episodes", found="none", expected="at least one")
    parsed = [_parsed(text) for text in episodes]
    windows = sorted({window for _, steps in parsed for window in steps})
    executor, levels, tables, places = LocalExecutor(threads), [], [], []
    given = {name for names, _ in parsed for name in names}
    events = _Events(types, times, np.array(windows).reshape(-1, 2), given)
    place = {name: k for k, name in enumerate(events.names)}
    for size in sorted({len(names) for names, _ in parsed}):
        of_size = [k for k, (names, _) in enumerate(parsed) if len(names) == size]
        rows = [[*map(place.get, parsed[k][0]), *map(windows.index, parsed[k][1])] for k in of_size]
        listed = np.array(rows, np.int32)
        order = np.lexsort(listed.T[::-1])
        _, table, level = _level(events, size, (_in_blocks(listed[order]), len(order)), 0, executor)
        tables.append(table)
        levels.append(level)
        places += [of_size[k] for k in order]
    return Episodes(pa.concat_tables(tables).take(pa.array(np.argsort(places))), levels)


def _candidates(frequent: NDArray[np.int32], size: int, windows: int) -> _Blocks:
    """Episodes one event longer whose beginning and end are frequent, in order, by blocks; their number.

    The last two columns are the places, among those one event shorter, of what an episode begins and ends
    with.
    """
    own, types, steps = len(frequent), frequent[:, :size], frequent[:, size : 2 * size - 1]
    if size == 1:
        first, number = np.zeros(own, np.int64), np.full(own, own * windows)
    else:
        first, past = (np.searchsorted(frequent[:, -2], frequent[:, -1], side) for side in ("left", "right"))
        number = past - first
    until = np.cumsum(number)
    total = int(until[-1]) if own else 0

    def block(start: int) -> NDArray[np.int32]:
        at = np.arange(start, min(start + _BLOCK, total))
        a = np.searchsorted(until, at, "right")
        b = first[a] + at - (until - number)[a]
        window, b = np.divmod(b, own) if size == 1 else (steps[b, -1], b)
        return np.column_stack([types[a], types[b, -1], steps[a], window, a, b]).astype(np.int32)

    return map(block, range(0, total, _BLOCK)), total


def _as_table(
    events: _Events, size: int, episodes: NDArray[np.int32], latest: NDArray[Any], chains: NDArray[np.int64]
) -> pa.Table:
    kind, steps = pa.large_string(), events.stream.bounds.tolist()
    names = pa.array(events.names, kind)
    arrows = pa.array([f" -({low:.15g},{high:.15g}]-> " for low, high in steps], kind)
    parts = [names.take(pa.array(episodes[:, 0]))]
    for k in range(size - 1):
        parts += [arrows.take(pa.array(episodes[:, size + k])), names.take(pa.array(episodes[:, k + 1]))]
    counts = latest[:, 0].astype(np.int64)
    return pa.table(
        {
            "episode": pc.binary_join_element_wise(*parts, pa.scalar("", kind)),
            "size": pa.array(np.full(len(episodes), size, np.int32)),
            "count": pa.array(counts),
            "all_occurrences": pa.array(chains, mask=chains == _MOST_CHAINS),
            "first": events.times(latest[:, 1], counts),
            "last": events.times(latest[:, 2], counts),
        }
    )


def _parsed(text: str) -> tuple[list[str], list[tuple[float, float]]]:
    """Types and windows of an episode."""
    parts = _STEP.split(text.strip())
    try:
        windows = [(float(low), float(high)) for low, high in zip(parts[1::3], parts[2::3], strict=True)]
    except ValueError:
        windows = [(1.0, 0.0)]
    whole = all(parts[::3]) and all(0 <= low < high < math.inf for low, high in windows)
    if not whole or len(parts[::3]) > _LONGEST or any(" -(" in name for name in parts[::3]):
        wanted = f"types with -(lo,hi]-> between them, 0 <= lo < hi, at most {_LONGEST}"
        raise InvalidInput("episode", found=repr(text), expected=wanted)
    return parts[::3], windows


def episodes_file(
    events: Path, output: Path | str, *, listed: Path | None, columns: tuple[str, str], **asked: Any
) -> Episodes:
    """As `mine` of what is `asked`, or `count` where there are `listed` episodes, from file to file."""
    inputs = [events] if listed is None else [events, listed]
    check_tables(inputs, output)
    find: Any = partial(mine, **asked)
    facts = {name: asked[name] for name in ("windows", "support", "max_size") if listed is None}
    if listed is not None:
        find = partial(count, episodes=read_episodes(listed), threads=asked["threads"])
    given = read_events(events, types=columns[0], times=columns[1])
    try:
        found: Episodes = find(*given)
    except FormatError as error:
        told: Any = {"found": error.found, "expected": error.expected, "record": error.record}
        raise FormatError(events, column=columns[error.column == _TIME], **told) from error
    metadata = facts_of("episodes", inputs, **facts)
    with open_table(output, found.table.schema, metadata=metadata, inputs=inputs) as writer:
        writer.write(found.table)
    return found


def read_events(
    path: str | os.PathLike[str], *, types: str = "type", times: str = "time"
) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Read a stream of events.

    Parameters
    ----------
    path
        Text with tabs or commas, plain, gzip or zstd, or Parquet.
    types, times
        Columns with the type of each event and its time.

    Returns
    -------
    pyarrow.ChunkedArray
        Types (events,).
    pyarrow.ChunkedArray
        Times (events,).

    Raises
    ------
    FormatError
        If it is no such file, or lacks a column.
    """
    hint = "name the columns with --type-column and --time-column"
    table = read_columns(path, (types, times), hint=hint)
    return table[types], table[times]


def read_episodes(path: str | os.PathLike[str]) -> list[str]:
    """Read a list of episodes.

    Parameters
    ----------
    path
        One episode a line, in the first column; a line ``episode`` is a header.

    Returns
    -------
    list of str
        The episodes as text.

    Raises
    ------
    FormatError
        If a line is no episode.
    """
    found: list[str] = []
    for number, line in enumerate(read_text(path, "a list of episodes").splitlines(), 1):
        text = line.split("\t")[0]
        if not text.strip() or (text == "episode" and not found):
            continue
        try:
            _parsed(text)
        except InvalidInput as error:
            raise FormatError(path, line=number, found=error.found, expected=error.expected) from error
        found.append(text)
    return found
