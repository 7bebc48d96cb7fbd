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

import json
import math
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plait._version import __version__
from plait.errors import FormatError, InvalidInput, in_range
from plait.formats.atomic import check_output
from plait.formats.compression import read_text
from plait.formats.rearrangements import open_columns
from plait.formats.tables import open_table, table_suffix
from plait.lang.algebras import MaxPlus, SaturatingCount, choice
from plait.lang.compile import by_type_of, kernel, shared
from plait.run.executor import LocalExecutor
from plait.types import Tabular

#: Names of the columns of types and of times.
_Columns: TypeAlias = tuple[str, str]
_COLUMNS: Final = ("type", "time")

#: Candidates counted by a thread at a time, and most frequent episodes of one size.
_BLOCK: Final = 1 << 14
_MOST_FREQUENT: Final = 10_000_000
_LONGEST: Final = 64
#: Times are float64 from the first event on: whole numbers are exact below this.
_EXACT: Final = 1 << 53
_MOST_CHAINS: Final = (1 << 63) - 1
_STEP: Final = re.compile(r" -\(([^,()\]]*),([^,()\]]*)\]-> ")
_BATCH_ROWS: Final = 1 << 16
_LATEST: Final = MaxPlus(-math.inf, 0.0)
_NUMBER: Final = SaturatingCount(np.int64(0), np.int64(1), np.int64(_MOST_CHAINS))


class _Stream(NamedTuple):
    """Events by type, then time: `times` float64, type k has those from `first[k]` to `first[k + 1]`."""

    times: Any
    first: Any


class _Steps(NamedTuple):
    """Episodes of one size N: `types` int32 (episodes, N), `windows` int32 (episodes, N - 1).

    `bounds`, float64 (windows, 2): more than, at most.
    """

    types: Any
    windows: Any
    bounds: Any

    def rows(self, which: Any) -> _Steps:
        return _Steps(self.types[which], self.windows[which], self.bounds)


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
    alg: Any, stream: _Stream, steps: _Steps, times: Any, running: Any, ends: Any, found: Any
) -> None:
    """Count every episode; those that begin alike stand together, and their beginnings are counted once.

    Scratch: `times` (N, events of a type), `running` (N, one more), `ends` int64 (N,). `found`: a row each.
    """
    size = steps.types.shape[1]
    for c in range(steps.types.shape[0]):
        same = 0
        while (
            c
            and same < size
            and steps.types[c, same] == steps.types[c - 1, same]
            and (same == 0 or steps.windows[c, same - 1] == steps.windows[c - 1, same - 1])
        ):
            same += 1
        for k in range(same, size):
            kind = steps.types[c, k]
            events = stream.times[stream.first[kind] : stream.first[kind + 1]]
            if k:
                bounds = steps.bounds[steps.windows[c, k - 1]]
                ends[k] = _one_step(
                    alg, times[k - 1], running[k - 1], ends[k - 1], events, bounds, times[k], running[k]
                )
                continue
            running[0, 0] = alg.zero
            for x in range(events.size):
                times[0, x] = events[x]
                running[0, x + 1] = choice(alg, running[0, x], _begun(alg, events[x]))
            ends[0] = events.size
        _answer(alg, times[size - 1], running[size - 1], ends[size - 1], found[c])


def _counted(alg: Any, stream: _Stream, steps: _Steps) -> NDArray[Any]:
    """Rows of an answer for each episode: count, first start and last end; or the number of all chains."""
    rows, size = steps.types.shape
    longest = int(np.diff(stream.first).max(initial=0))
    times = np.empty((size, longest))
    running = np.empty((size, longest + 1), np.asarray(alg.zero).dtype)
    found = np.empty((rows, 3 if alg is _LATEST else 1), running.dtype)
    count_episodes(alg, stream, steps, times, running, np.empty(size, np.int64), found)
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

    def __init__(
        self, types: Any, times: Any, source: object = "events", columns: _Columns = _COLUMNS
    ) -> None:
        labels = _labels(types, source, columns[0])
        given = _numbers(times, source, columns[1])
        if len(labels) != given.size:
            raise InvalidInput("times", found=f"{given.size:,}", expected=f"{len(labels):,}, one per event")
        self.names: list[str] = sorted(labels.unique().to_pylist())
        codes = pc.index_in(labels, pa.array(self.names, labels.type)).to_numpy(zero_copy_only=False)
        order = np.lexsort((given, codes))
        self._start = given.min() if given.size else given.dtype.type(0)
        self._whole = given.dtype.kind == "i"
        spread = (int(given.max()) - int(self._start)) if given.size and self._whole else 0
        if spread >= _EXACT:
            found, expected = f"times {spread:,} apart", f"at most {_EXACT - 1:,}"
            raise FormatError(source, column=columns[1], found=found, expected=expected)
        self.stream = _Stream(
            (given[order] - self._start if self._whole else given[order]).astype(np.float64),
            np.searchsorted(codes[order], np.arange(len(self.names) + 1)),
        )

    def add(self, names: Iterable[str]) -> None:
        """Know types that have no events, too."""
        more = sorted({*names}.difference(self.names))
        self.names += more
        last = np.full(len(more), self.stream.first[-1])
        self.stream = self.stream._replace(first=np.concatenate([self.stream.first, last]))

    def times(self, found: NDArray[np.float64], counts: NDArray[np.int64]) -> pa.Array:
        """Times as they were given, null where nothing was counted."""
        given = np.where(counts > 0, found, 0.0)
        values = given.astype(np.int64) + self._start if self._whole else given
        return pa.array(values, mask=counts == 0)


def _column(values: Any) -> pa.Array:
    found = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(np.asarray(values))
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def _labels(types: Any, source: object, column: str) -> pa.Array:
    """Names of types, large strings."""
    found = _column(types).cast(pa.large_string())
    bad = pc.fill_null(pc.match_substring_regex(found, r"^$|[\t\n\r]| -\("), True)
    if (row := pc.index(bad, True).as_py()) >= 0:
        expected = "a name, without tabs, line ends and ' -('"
        raise FormatError(
            source, record=row, column=column, found=repr(found[row].as_py()), expected=expected
        )
    return found


def _numbers(times: Any, source: object, column: str) -> NDArray[Any]:
    """Times, int64 or float64."""
    found = _column(times)
    for kind in (pa.int64(), pa.float64()):
        with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):
            values = found.cast(kind)
            if pc.all(pc.fill_null(pc.is_finite(values), False)).as_py() is not False:
                return np.asarray(values)
            break
    row = next((k for k, value in enumerate(found.to_pylist()) if not _is_number(value)), 0)
    raise FormatError(source, record=row, column=column, found=repr(found[row].as_py()), expected="a number")


def _is_number(value: Any) -> bool:
    try:
        return math.isfinite(float(value))
    except (TypeError, ValueError):
        return False


def _checked_windows(windows: Sequence[tuple[float, float]]) -> NDArray[np.float64]:
    for low, high in windows:
        if not (0 <= low < high < math.inf):
            found, expected = f"{low:g}:{high:g}", "LO:HI with 0 <= LO < HI, which is finite"
            raise InvalidInput("window", found=found, expected=expected)
    if len(set(windows)) < max(len(windows), 1):
        found = ", ".join(f"{low:g}:{high:g}" for low, high in windows) or "none"
        raise InvalidInput("window", found=found, expected="one or more, each once")
    return np.array(sorted(windows), np.float64)


def mine(
    types: Any,
    times: Any,
    *,
    windows: Sequence[tuple[float, float]],
    support: int,
    max_size: int = 6,
    threads: int | None = None,
    progress: Callable[[int, int, int], None] | None = None,
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
    return _mined(partial(_Events, types, times), windows, support, max_size, threads, progress)


def _mined(
    read: Callable[[], _Events],
    windows: Sequence[tuple[float, float]],
    support: int,
    max_size: int,
    threads: int | None,
    progress: Callable[[int, int, int], None] | None,
) -> Episodes:
    in_range("support", support, 1)
    in_range("max_size", max_size, 1, _LONGEST)
    bounds = _checked_windows(windows)
    events, executor = read(), LocalExecutor(threads)
    kinds = np.arange(len(events.names), dtype=np.int32)
    frequent = _Frequent(_Steps(kinds[:, None], np.empty((kinds.size, 0), np.int32), bounds), kinds, kinds)
    blocks, total = iter([frequent]), kinds.size
    tables, levels = [], []

    def counted(block: _Frequent) -> tuple[_Frequent, NDArray[Any]]:
        return block, _counted(_LATEST, events.stream, block.steps)

    for size in range(1, max_size + 1):
        begun, done = time.perf_counter(), 0
        kept, answers = [], []
        for block, found in executor.map(counted, blocks):
            done += len(found)
            often = found[:, 0] >= support
            kept.append(block.rows(often))
            answers.append(found[often])
            if progress is not None:
                progress(size, done, total)
            _check_number(sum(map(len, answers)), size, support)
        frequent = _Frequent.joined(kept)
        tables.append(_as_table(events, frequent.steps, np.concatenate(answers), executor))
        levels.append(Level(size, total, len(tables[-1]), time.perf_counter() - begun))
        blocks, total = frequent.candidates(len(bounds), size)
        if not total:
            break
    return Episodes(pa.concat_tables(tables), levels)


def _check_number(frequent: int, size: int, support: int) -> None:
    if frequent > _MOST_FREQUENT:
        raise InvalidInput(
            "support",
            found=f"{support:,}, with which over {_MOST_FREQUENT:,} episodes of size {size} are frequent",
            expected="fewer of them",
            hint="ask for more support, fewer windows or a smaller size",
        )


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
    return _listed(partial(_Events, types, times), episodes, threads)


def _listed(read: Callable[[], _Events], episodes: Sequence[str], threads: int | None) -> Episodes:
    if not episodes:
        raise InvalidInput("episodes", found="none", expected="at least one")
    parsed = [_parsed(text) for text in episodes]
    events = read()
    events.add(name for names, _ in parsed for name in names)
    place = {name: k for k, name in enumerate(events.names)}
    windows = sorted({window for _, steps in parsed for window in steps})
    executor, levels, tables, rows = LocalExecutor(threads), [], [], []
    for size in sorted({len(names) for names, _ in parsed}):
        begun = time.perf_counter()
        of_size = [k for k, (names, _) in enumerate(parsed) if len(names) == size]
        kinds = np.array([[place[name] for name in parsed[k][0]] for k in of_size], np.int32)
        steps = np.array([[windows.index(w) for w in parsed[k][1]] for k in of_size], np.int32)
        steps = steps.reshape(len(of_size), size - 1)
        order = np.lexsort([*steps.T[::-1], *kinds.T[::-1]])
        listed = _Steps(kinds[order], steps[order], np.array(windows).reshape(-1, 2))
        answers = _by_blocks(executor, _LATEST, events.stream, listed)
        tables.append(_as_table(events, listed, answers, executor))
        rows += [of_size[k] for k in order]
        levels.append(Level(size, order.size, int((answers[:, 0] > 0).sum()), time.perf_counter() - begun))
    return Episodes(pa.concat_tables(tables).take(pa.array(np.argsort(rows))), levels)


class _Frequent(NamedTuple):
    """Episodes in order, and the place, among those one event shorter, of what each begins and ends with."""

    steps: _Steps
    begins: Any
    ends: Any

    def rows(self, which: Any) -> _Frequent:
        return _Frequent(self.steps.rows(which), self.begins[which], self.ends[which])

    @classmethod
    def joined(cls, parts: Sequence[_Frequent]) -> _Frequent:
        types, windows = (np.concatenate(p) for p in zip(*(part.steps[:2] for part in parts), strict=True))
        begins, ends = (np.concatenate(p) for p in zip(*(part[1:] for part in parts), strict=True))
        return cls(_Steps(types, windows, parts[0].steps.bounds), begins, ends)

    def candidates(self, windows: int, size: int) -> tuple[Iterator[_Frequent], int]:
        """Episodes one event longer whose beginning and end are among these, in order; their number."""
        types, steps, bounds = self.steps
        own = len(types)
        if size == 1:
            first, number = np.zeros(own, np.int64), np.full(own, own * windows)
        else:
            first, past = (np.searchsorted(self.begins, self.ends, side) for side in ("left", "right"))
            number = past - first
        until = np.cumsum(number)
        total = int(until[-1]) if own else 0

        def block(start: int) -> _Frequent:
            at = np.arange(start, min(start + _BLOCK, total))
            a = np.searchsorted(until, at, "right")
            b = first[a] + at - (until - number)[a]
            window, b = np.divmod(b, own) if size == 1 else (steps[b, -1], b)
            longer = np.column_stack([types[a], types[b, -1]])
            stepped = np.column_stack([steps[a], window]).astype(np.int32)
            return _Frequent(_Steps(longer, stepped, bounds), a, b)

        return map(block, range(0, total, _BLOCK)), total


def _by_blocks(executor: LocalExecutor, alg: Any, stream: _Stream, steps: _Steps) -> NDArray[Any]:
    """Answers for episodes, at least one."""
    pieces = (steps.rows(slice(k, k + _BLOCK)) for k in range(0, len(steps.types), _BLOCK))
    return np.concatenate([*executor.map(partial(_counted, alg, stream), pieces)])


def _as_table(events: _Events, steps: _Steps, answers: NDArray[Any], executor: LocalExecutor) -> pa.Table:
    types, windows, bounds = steps
    names = pa.array(events.names, pa.large_string())
    arrows = pa.array([f" -({low:.15g},{high:.15g}]-> " for low, high in bounds.tolist()], pa.large_string())
    parts = [names.take(pa.array(types[:, 0]))]
    for k in range(windows.shape[1]):
        parts += [arrows.take(pa.array(windows[:, k])), names.take(pa.array(types[:, k + 1]))]
    chains = np.empty(0, np.int64)
    if len(types):
        chains = _by_blocks(executor, _NUMBER, events.stream, steps)[:, 0]
    counts = answers[:, 0].astype(np.int64)
    return pa.table(
        {
            "episode": pc.binary_join_element_wise(*parts, pa.scalar("", pa.large_string())),
            "size": pa.array(np.full(len(types), types.shape[1], np.int32)),
            "count": pa.array(counts),
            "all_occurrences": pa.array(chains, mask=chains == _MOST_CHAINS),
            "first": events.times(answers[:, 1], counts),
            "last": events.times(answers[:, 2], counts),
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
    events: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    listed: str | os.PathLike[str] | None,
    windows: Sequence[tuple[float, float]],
    support: int,
    max_size: int,
    columns: tuple[str, str],
    threads: int | None,
    progress: Callable[[int, int, int], None],
) -> Episodes:
    """As `mine`, or `count` where there are `listed` episodes, from file to file."""
    inputs = [events] if listed is None else [events, listed]
    check_output(output, inputs)
    table_suffix(output)
    facts: dict[str, object] = {"version": __version__, "inputs": [os.path.realpath(path) for path in inputs]}
    if listed is None:
        facts |= {"windows": windows, "support": support, "max_size": max_size}

    def read() -> _Events:
        return _Events(*read_events(events, types=columns[0], times=columns[1]), events, columns)

    if listed is None:
        found = _mined(read, windows, support, max_size, threads, progress)
    else:
        found = _listed(read, read_episodes(listed), threads)
    metadata = {"plait.episodes": json.dumps(facts, sort_keys=True)}
    with open_table(output, found.table.schema, metadata=metadata, inputs=inputs) as writer:
        for batch in found.table.to_batches():
            writer.write(batch)
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
    file = open_columns(path)
    missing = [name for name in (types, times) if name not in file.schema.names]
    if missing:
        raise FormatError(
            path,
            found=f"the columns {', '.join(file.schema.names[:20])}",
            expected=f"a column {missing[0]!r}",
            hint="name the columns with --type-column and --time-column",
        )
    wanted = pa.schema([file.schema.field(name) for name in dict.fromkeys((types, times))])
    table = pa.Table.from_batches((batch.select(wanted.names) for batch in file.batches(_BATCH_ROWS)), wanted)
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
