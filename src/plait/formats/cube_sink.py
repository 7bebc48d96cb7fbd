"""Files of cubes that are written row by row: what all formats have in common."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from plait.errors import InvalidInput
from plait.formats.cube_layout import CubeLayout

__all__ = ["RowWriter"]


class RowWriter(ABC):
    """A file that appears under its name when it is complete; rows come in order.

    A context manager: it closes on a clean exit, and aborts on any exception.

    Parameters
    ----------
    path
        The file.
    layout
        How samples shall lie in it.
    step
        Rows that are written at a time.

    Attributes
    ----------
    path : str
        The file.
    layout : CubeLayout
        How samples lie in it.
    dtype : dtype
        Type of the samples, in the byte order of this machine.
    """

    def __init__(self, path: str | os.PathLike[str], layout: CubeLayout, step: int = 1) -> None:
        self.path = os.fspath(path)
        self.layout = layout
        self.dtype = layout.dtype.newbyteorder("=")
        self._step = max(1, step)
        self._row = 0
        self._waiting: list[NDArray[Any]] = []

    def write_rows(self, rows: NDArray[Any]) -> None:
        """Append rows.

        Parameters
        ----------
        rows
            Integers, shape (rows, columns, bands).

        Raises
        ------
        InvalidInput
            If the shape is another, there are too many rows, or a sample does not fit the type of the file.
        FormatError
            If the file cannot be written.
        """
        layout = self.layout
        if rows.ndim != 3 or rows.shape[1:] != (layout.columns, layout.bands):
            expected = f"(rows, {layout.columns}, {layout.bands})"
            raise InvalidInput("shape of the rows", found=str(rows.shape), expected=expected)
        known = self._row + self._held() + len(rows)
        if known > layout.rows:
            raise InvalidInput("rows", found=f"{known}", expected=f"{layout.rows}")
        _check_range(rows, layout.dtype)
        # A copy, because who gives them may use the array again.
        self._waiting.append(rows.astype(self.dtype))
        self._put(self._held() // self._step * self._step)

    def _held(self) -> int:
        return sum(map(len, self._waiting))

    def _put(self, count: int) -> None:
        if not count:
            return
        rows = np.concatenate(self._waiting) if len(self._waiting) > 1 else self._waiting[0]
        self._write(self._row, rows[:count])
        self._row += count
        self._waiting = [rows[count:]]

    def close(self) -> None:
        """Make the file appear under its name.

        Raises
        ------
        InvalidInput
            If rows are missing; the file is discarded then.
        FormatError
            If the file cannot be written.
        """
        try:
            self._put(self._held())
            if self._row != self.layout.rows:
                raise InvalidInput("rows", found=f"{self._row}", expected=f"{self.layout.rows}")
            self._finish()
        except BaseException:
            self.abort()
            raise

    @abstractmethod
    def _write(self, row: int, rows: NDArray[Any]) -> None:
        """Write rows from row number `row` on."""

    @abstractmethod
    def _finish(self) -> None:
        """Make the complete file appear."""

    @abstractmethod
    def abort(self) -> None:
        """Remove the unfinished file."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self.abort()


def _check_range(rows: NDArray[Any], kind: np.dtype[Any]) -> None:
    """Refuse samples that a type cannot hold, which a conversion would change without a word."""
    if rows.dtype.kind not in "iu":
        raise InvalidInput("rows", found=f"samples of type {rows.dtype}", expected="integers")
    if not rows.size or np.can_cast(rows.dtype, kind):
        return
    limits = np.iinfo(kind)
    for value in (int(rows.min()), int(rows.max())):
        if not limits.min <= value <= limits.max:
            expected = f"{limits.min} to {limits.max}, as {kind.name} holds"
            raise InvalidInput("sample", found=str(value), expected=expected)
