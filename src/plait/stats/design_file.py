"""Predictors and outcomes on disk: more rows than fit in memory, read a span at a time.

A file holds chunks of rows, each column by column, in the narrowest type that holds the chunk's values
exactly; the index stands at the end. Several files make one design, as if they were one file: what is
computed from rows ``[start, stop)`` does not depend on where one file ends and the next begins.
"""

from __future__ import annotations

import functools
import json
import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from plait.errors import FormatError, InvalidInput
from plait.formats.atomic import AtomicFile, WholeOrNot, output_errors

_Path: TypeAlias = str | os.PathLike[str]

_MAGIC: Final = b"plaitdf2"
_CHUNK_ROWS: Final = 65536
#: Types of a column of a chunk, narrowest first, by their letter in the index.
_TYPES: Final[dict[str, Any]] = {
    "b": np.int8,
    "B": np.uint8,
    "h": np.int16,
    "i": np.int32,
    "f": np.float32,
    "d": np.float64,
}
_SUFFIX: Final = ".design"


class DesignWriter(WholeOrNot):
    """Writes a design file; a context manager. The file appears when it is complete.

    ``DesignFile(folder)`` takes files that end with ``.design``. `chunk_rows` has no influence on results;
    `rows` are those written so far. InvalidInput if there are no predictors, or two of one name.
    """

    def __init__(self, path: _Path, predictors: Sequence[str], *, chunk_rows: int = _CHUNK_ROWS) -> None:
        self.predictors = tuple(predictors)
        repeated = sorted({name for name in self.predictors if self.predictors.count(name) > 1})
        if not self.predictors or repeated:
            found = f"{repeated[0]!r} more than once" if repeated else "none"
            raise InvalidInput("predictors", found=found, expected="at least one name, every name once")
        if chunk_rows < 1:
            raise InvalidInput("chunk_rows", found=chunk_rows, expected="at least 1")
        self.rows = 0
        self._values = np.empty((len(self.predictors), chunk_rows))
        self._outcome = np.empty(chunk_rows, np.uint8)
        self._waiting = 0
        self._chunks: list[tuple[int, int, str]] = []
        self._events = 0
        self._low = np.full(len(self.predictors), np.inf)
        self._high = -self._low
        self._at = len(_MAGIC)
        self._file = AtomicFile(path)
        with output_errors(path):
            self._file.stream.write(_MAGIC)

    def write(self, values: ArrayLike, outcome: ArrayLike) -> None:
        """Append rows: values (n, predictors), and outcomes (n,), bool or numbers that are 0 or 1.

        InvalidInput if a value is missing or infinite, an outcome is neither 0 nor 1, or shapes do not fit;
        nothing of this call is written then.
        """
        columns = np.asarray(values, np.float64)
        events = np.asarray(outcome)
        self._check(columns, events)
        done = 0
        while done < len(columns):
            room = self._outcome.size - self._waiting
            taken = slice(done, min(done + room, len(columns)))
            size = taken.stop - taken.start
            self._values[:, self._waiting : self._waiting + size] = columns[taken].T
            self._outcome[self._waiting : self._waiting + size] = events[taken] != 0
            self._waiting += size
            done += size
            if self._waiting == self._outcome.size:
                self._flush()
        self.rows += len(columns)

    def close(self) -> None:
        """Write what is waiting and the index, and let the file appear."""
        self._flush()
        index = {
            "predictors": self.predictors,
            "rows": self.rows,
            "events": self._events,
            "low": self._low.tolist() if self.rows else [],
            "high": self._high.tolist() if self.rows else [],
            "chunks": self._chunks,
        }
        text = json.dumps(index, separators=(",", ":")).encode()
        with output_errors(self._file.path):
            check = zlib.crc32(text).to_bytes(4, "little")
            self._file.stream.write(text + check + len(text).to_bytes(8, "little") + _MAGIC)
        self._file.close()

    def discard(self) -> None:
        """Remove the unfinished file."""
        self._file.discard()

    def _check(self, columns: NDArray[np.float64], events: NDArray[Any]) -> None:
        if columns.ndim != 2 or columns.shape[1] != len(self.predictors) or events.shape != columns.shape[:1]:
            raise InvalidInput(
                "values, outcome",
                found=f"shapes {columns.shape} and {events.shape}",
                expected=f"shapes (n, {len(self.predictors)}) and (n,)",
            )
        if not np.isfinite(columns).all():
            row, column = np.argwhere(~np.isfinite(columns))[0].tolist()
            raise InvalidInput(
                f"predictor {self.predictors[column]!r}, row {self.rows + row}",
                found=str(columns[row, column]),
                expected="a finite number",
                hint="leave out rows without a value, or give them one, before they are written",
            )
        odd = (events != 0) & (events != 1)
        if odd.any():
            row = int(np.argmax(odd))
            raise InvalidInput(
                f"outcome, row {self.rows + row}", found=str(events[row]), expected="0 or 1, or a bool"
            )

    def _flush(self) -> None:
        if not self._waiting:
            return
        with output_errors(self._file.path):
            letters = ""
            start = self._at
            for values in self._values[:, : self._waiting]:
                letter, column = _narrowed(values)
                letters += letter
                self._at += self._file.stream.write(column.tobytes())
            self._at += self._file.stream.write(self._outcome[: self._waiting].tobytes())
        waiting = self._values[:, : self._waiting]
        np.minimum(self._low, waiting.min(axis=1), out=self._low)
        np.maximum(self._high, waiting.max(axis=1), out=self._high)
        self._events += int(self._outcome[: self._waiting].sum())
        self._chunks.append((self._waiting, start, letters))
        self._waiting = 0


def _narrowed(values: NDArray[np.float64]) -> tuple[str, NDArray[Any]]:
    """The values in the narrowest type that holds them exactly, and its letter."""
    low, high = float(values.min()), float(values.max())
    whole = bool((values == np.rint(values)).all())
    for letter, kind in _TYPES.items():
        if np.issubdtype(kind, np.integer):
            limits = np.iinfo(kind)
            if whole and limits.min <= low and high <= limits.max:
                return letter, values.astype(kind)
        elif max(-low, high) <= float(np.finfo(kind).max):
            narrow = values.astype(kind)
            if (narrow == values).all():
                return letter, narrow
    raise AssertionError("float64 holds every value")


class _Index(NamedTuple):
    """Where things are in one file; the last entry of `starts` is the number of rows."""

    predictors: tuple[str, ...]
    events: int
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    starts: NDArray[np.int64]
    offsets: NDArray[np.int64]
    types: tuple[str, ...]


class DesignFile:
    """Predictors and outcomes of all rows of one or more design files; a pickled copy opens the same paths.

    `parts` is a file, a folder of which all ``.design`` files are taken by name, or files in the order of
    their rows. `low` and `high` are (predictors,), NaN without rows. InvalidInput if there is no file;
    FormatError if one is no design file, is damaged, or has other predictors than the first.
    """

    def __init__(self, parts: _Path | Sequence[_Path]) -> None:
        self.paths = _files(parts)
        if not self.paths:
            raise InvalidInput("parts", found=f"no file in {parts}", expected=f"files *{_SUFFIX}")
        self._parts = [_index(str(path), *_identity(path)) for path in self.paths]
        self.predictors = self._parts[0].predictors
        for path, part in zip(self.paths, self._parts, strict=True):
            if part.predictors != self.predictors:
                raise FormatError(
                    path, found="other predictors", expected=f"those of {self.paths[0]}, in the same order"
                )
        self._starts = np.cumsum([0, *(part.starts[-1] for part in self._parts)])
        self.rows = int(self._starts[-1])
        self.events = sum(part.events for part in self._parts)
        filled = [part for part in self._parts if part.low.size]
        nothing = np.full(len(self.predictors), np.nan)
        self.low = np.min([part.low for part in filled], axis=0) if filled else nothing
        self.high = np.max([part.high for part in filled], axis=0) if filled else nothing

    def __reduce__(self) -> tuple[Any, ...]:
        return DesignFile, (self.paths,)

    def read(self, start: int, stop: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Rows ``[start, stop)`` over all files: float64 (predictors, rows), and outcomes, bool (rows,).

        FormatError if a file ends too early.
        """
        values = np.empty((len(self.predictors), stop - start))
        outcome = np.empty(stop - start, np.bool_)
        part = int(np.searchsorted(self._starts, start, "right")) - 1
        at = start
        while at < stop:
            before, after = int(self._starts[part]), int(self._starts[part + 1])
            end = min(stop, after)
            if end > at:
                span = slice(at - start, end - start)
                self._read_part(part, at - before, end - before, values[:, span], outcome[span])
                at = end
            part += 1
        return values, outcome

    def spans(self, rows: int) -> Iterator[tuple[int, int]]:
        """All rows as spans (start, stop) of so many; the last one may be shorter."""
        for start in range(0, self.rows, rows):
            yield start, min(start + rows, self.rows)

    def _read_part(
        self, part: int, start: int, stop: int, values: NDArray[np.float64], outcome: NDArray[np.bool_]
    ) -> None:
        index = self._parts[part]
        chunk = int(np.searchsorted(index.starts, start, "right")) - 1
        with open(self.paths[part], "rb", buffering=0) as stream:
            at = start
            while at < stop:
                first = int(index.starts[chunk])
                rows = int(index.starts[chunk + 1]) - first
                end = min(stop, first + rows)
                span = slice(at - start, end - start)
                place = int(index.offsets[chunk])
                for column, letter in enumerate(index.types[chunk]):
                    values[column, span] = self._column(part, stream, place, letter, at - first, end - first)
                    place += rows * np.dtype(_TYPES[letter]).itemsize
                outcome[span] = self._column(part, stream, place, "B", at - first, end - first)
                at = end
                chunk += 1

    def _column(self, part: int, stream: Any, place: int, letter: str, first: int, last: int) -> NDArray[Any]:
        found: NDArray[Any] = np.empty(last - first, _TYPES[letter])
        stream.seek(place + first * found.itemsize)
        if stream.readinto(found.view(np.uint8)) != found.nbytes:
            raise FormatError(
                self.paths[part],
                found="an early end",
                expected="a complete design file",
                hint="write it again",
            )
        return found


def _files(parts: _Path | Sequence[_Path]) -> tuple[Path, ...]:
    if not isinstance(parts, str | os.PathLike):
        return tuple(Path(part) for part in parts)
    path = Path(parts)
    return tuple(sorted(path.glob(f"*{_SUFFIX}"))) if path.is_dir() else (path,)


def _identity(path: Path) -> tuple[int, int]:
    """What changes when a file does; also tells that there is one."""
    try:
        found = path.stat()
    except OSError as error:
        raise FormatError(path, found=error.strerror or error, expected="a design file") from error
    return found.st_size, found.st_mtime_ns


@functools.lru_cache(4096)
def _index(path: str, size: int, changed: int) -> _Index:
    """The index of a file, kept in this process until the file changes."""
    frame = len(_MAGIC)
    try:
        with open(path, "rb") as stream:
            end = 12 + frame
            if size < frame + end or stream.read(frame) != _MAGIC:
                raise ValueError("no design file")
            stream.seek(size - end)
            check, length = stream.read(4), int.from_bytes(stream.read(8), "little")
            if stream.read(frame) != _MAGIC or length > size - frame - end:
                raise ValueError("a design file without its end")
            stream.seek(size - end - length)
            text = stream.read(length)
            if zlib.crc32(text).to_bytes(4, "little") != check:
                raise ValueError("an index that is damaged")
            stored = json.loads(text)
        rows = [chunk[0] for chunk in stored["chunks"]]
        return _Index(
            predictors=tuple(stored["predictors"]),
            events=stored["events"],
            low=np.array(stored["low"], np.float64),
            high=np.array(stored["high"], np.float64),
            starts=np.cumsum([0, *rows]),
            offsets=np.array([chunk[1] for chunk in stored["chunks"]], np.int64),
            types=tuple(chunk[2] for chunk in stored["chunks"]),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FormatError(path, found=error, expected="a complete design file") from error
