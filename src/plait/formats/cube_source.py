"""Cubes in files of which windows are read: what all formats have in common."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from plait.errors import InvalidInput
from plait.formats.cube_layout import CubeLayout

__all__ = ["FileCube", "RowsAhead"]

#: Where the rows of a file do not lie together, so many bytes of them are read at a time.
_AHEAD = 1 << 26
_Window: TypeAlias = Callable[[int, int, int, int], NDArray[Any]]


class RowsAhead:
    """Reads rows in larger pieces than it is asked for, and keeps the last piece; several threads may read.

    Where the rows of a file do not lie together, it costs about the same to read few of them or many.

    Parameters
    ----------
    read
        Reads a window: rows from and to, columns from and to.
    layout
        Size and type of the cube.
    """

    def __init__(self, read: _Window, layout: CubeLayout) -> None:
        self._window = read
        self._rows, self._columns = layout.rows, layout.columns
        self._step = _AHEAD // (layout.columns * layout.bands * layout.dtype.itemsize)
        self._lock = threading.Lock()
        self._first = 0
        self._kept: NDArray[Any] | None = None

    def read(self, first: int, last: int) -> NDArray[Any]:
        """Rows of all columns.

        Parameters
        ----------
        first, last
            First row, and the row after the last one.
        """
        if last - first >= self._step:
            return self._window(first, last, 0, self._columns)
        with self._lock:
            kept = self._kept
            if kept is None or not self._first <= first <= last <= self._first + len(kept):
                # Let go of the one before the next is there.
                self._kept = kept = None
                kept = self._window(first, min(first + self._step, self._rows), 0, self._columns)
                self._first, self._kept = first, kept
            return kept[first - self._first : last - self._first]


class FileCube(ABC):
    """A cube in a file, of which any window can be read; several threads may. A context manager.

    Parameters
    ----------
    path
        The file.
    layout
        How samples lie in it.
    ahead
        Whether more rows are read than are asked for, because they do not lie together.
    notes
        What the file has and is not kept when it is compressed.

    Attributes
    ----------
    path : str
        The file.
    layout : CubeLayout
        How samples lie in it.
    notes : tuple of str
        What the file has and is not kept when it is compressed.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        layout: CubeLayout,
        *,
        ahead: bool = False,
        notes: tuple[str, ...] = (),
    ) -> None:
        self.path = os.fspath(path)
        self.layout = layout
        self.notes = notes
        self._ahead = RowsAhead(self._read, layout) if ahead else None

    @property
    def rows(self) -> int:
        """Rows of the cube."""
        return self.layout.rows

    @property
    def columns(self) -> int:
        """Columns of the cube."""
        return self.layout.columns

    @property
    def bands(self) -> int:
        """Bands of the cube."""
        return self.layout.bands

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the samples, in the byte order of this machine."""
        return self.layout.dtype.newbyteorder("=")

    def read(
        self, first: int, last: int, first_column: int = 0, last_column: int | None = None
    ) -> NDArray[Any]:
        """Read a window.

        Parameters
        ----------
        first, last
            First row, and the row after the last one.
        first_column, last_column
            First column, and the column after the last one; all of them by default.

        Returns
        -------
        NDArray
            Samples as they stand in the file, neither masked nor scaled, shape (rows, columns, bands), in the
            byte order of this machine.

        Raises
        ------
        FormatError
            If the file is damaged there, or has become shorter meanwhile.
        InvalidInput
            If the window is not within the cube.
        """
        last_column = self.columns if last_column is None else last_column
        for what, start, stop, size in (
            ("rows", first, last, self.rows),
            ("columns", first_column, last_column, self.columns),
        ):
            if not 0 <= start <= stop <= size:
                raise InvalidInput(what, found=f"{start} to {stop}", expected=f"within 0 to {size}")
        if first == last or first_column == last_column:
            return np.empty((last - first, last_column - first_column, self.bands), self.dtype)
        if self._ahead is not None and first_column == 0 and last_column == self.columns:
            return self._ahead.read(first, last)
        return self._read(first, last, first_column, last_column)

    @abstractmethod
    def _read(self, first: int, last: int, first_column: int, last_column: int) -> NDArray[Any]:
        """A window that is not empty, shape (rows, columns, bands)."""

    @abstractmethod
    def close(self) -> None:
        """Close the file."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
