"""Outputs that a library writes under a name of its own, and that appear when they are complete."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from plait.errors import FormatError, PlaitError
from plait.formats.atomic import check_output, output_errors

__all__ = ["HiddenOutput", "description_errors"]

_WRONG: tuple[type[Exception], ...] = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)


@contextmanager
def description_errors(path: str | os.PathLike[str], kind: str, *errors: type[Exception]) -> Iterator[None]:
    """Turn what a library raises on a description that holds anything into errors that name the output.

    Parameters
    ----------
    path
        The output.
    kind
        Name of its format.
    *errors
        What else the library raises.

    Raises
    ------
    FormatError
        In their place.
    """
    try:
        yield
    except PlaitError:
        raise
    except _WRONG + errors as error:
        raise FormatError(
            path,
            found=f"{type(error).__name__}: {error!s:.99}",
            expected=f"a description of the cube that a {kind} file can hold",
            hint="write another format, such as .npy",
        ) from error


class HiddenOutput:
    """A hidden name beside an output, for libraries that open files by name.

    Parameters
    ----------
    path
        The output.

    Attributes
    ----------
    path : Path
        The output, as given.
    hidden : Path
        Where to write until it is complete.

    Raises
    ------
    InvalidInput, FormatError
        If the output cannot be written, see `plait.formats.atomic.AtomicFile`.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        check_output(path, ())
        self.path = Path(path)
        self._target = Path(os.path.realpath(path))
        # The process in the name: libraries know no locks.
        self.hidden = self._target.with_name(
            f".{self._target.stem}.{os.getpid()}.partial{self._target.suffix}"
        )

    def commit(self) -> None:
        """Make the file appear under its name; nothing else may have it open for writing."""
        with output_errors(self.path):
            descriptor = os.open(self.hidden, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.replace(self.hidden, self._target)
        self._sidecar().unlink(missing_ok=True)

    def discard(self) -> None:
        """Remove the unfinished file."""
        self.hidden.unlink(missing_ok=True)
        self._sidecar().unlink(missing_ok=True)

    def _sidecar(self) -> Path:
        # GDAL writes it for what its own file cannot hold.
        return self.hidden.with_name(f"{self.hidden.name}.aux.xml")
