"""What the codec reads cubes from and writes them to."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from plait.errors import InvalidInput

__all__ = ["ArrayCube", "CubeSink", "CubeSource"]


class CubeSource(Protocol):
    """A cube of which windows are read, some rows at a time.

    Attributes
    ----------
    rows, columns, bands
        Its size.
    dtype
        Type of its samples, an integer type.
    """

    @property
    def rows(self) -> int:
        """Rows, or lines: NY."""
        ...

    @property
    def columns(self) -> int:
        """Columns, or samples of a line: NX."""
        ...

    @property
    def bands(self) -> int:
        """Bands: NZ."""
        ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the samples."""
        ...

    def read(
        self, first: int, last: int, first_column: int = 0, last_column: int | None = None
    ) -> NDArray[Any]:
        """Samples of a window, shape (rows, columns, bands); several threads may read at once.

        Parameters
        ----------
        first, last
            Its rows, `last` not among them.
        first_column, last_column
            Its columns, likewise; None for all that follow.
        """
        ...


class CubeSink(Protocol):
    """Where the rows of a cube go, in order."""

    def write_rows(self, rows: NDArray[Any]) -> None:
        """Append rows, shape (rows, columns, bands)."""
        ...

    def close(self) -> None:
        """Make the output whole, after the last row."""
        ...

    def abort(self) -> None:
        """Leave nothing of the output behind."""
        ...


class ArrayCube:
    """A cube in memory, or mapped into it.

    Parameters
    ----------
    samples
        Integers, shape (rows, columns, bands), in any order in memory.

    Attributes
    ----------
    rows, columns, bands, dtype
        As in `CubeSource`.

    Raises
    ------
    InvalidInput
        If it is no array of integers with three dimensions, none of which is empty.
    """

    def __init__(self, samples: NDArray[Any]) -> None:
        if samples.ndim != 3 or 0 in samples.shape:
            expected = "(rows, columns, bands), each at least 1"
            raise InvalidInput("shape of the cube", found=str(samples.shape), expected=expected)
        if samples.dtype.kind not in "iu":
            raise InvalidInput(
                "cube",
                found=f"samples of type {samples.dtype}",
                expected="integers, which are kept without loss",
                hint="give the file's own integers, before they are scaled, masked or turned into floats",
            )
        self._samples = samples
        self.rows, self.columns, self.bands = (int(size) for size in samples.shape)
        self.dtype = samples.dtype

    def read(
        self, first: int, last: int, first_column: int = 0, last_column: int | None = None
    ) -> NDArray[Any]:
        """Samples of a window; see `CubeSource.read`."""
        return self._samples[first:last, first_column:last_column]
