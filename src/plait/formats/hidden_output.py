"""Outputs that a library writes under a name of its own, and that appear when they are complete."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from plait.errors import FormatError, PlaitError
from plait.formats.atomic import AtomicFile, output_errors, sync_folder, tell_replaced

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
        self.path = Path(path)
        self._target = Path(os.path.realpath(path))
        # Libraries know no locks, and follow links: as long as this name is held, the folder is ours alone.
        self._held = AtomicFile(path, durable=False)
        self._folder = self._target.with_name(f".{self._target.name}.partial-files")
        self.hidden = self._folder / self._target.name
        try:
            with output_errors(path):
                if os.path.lexists(self._folder):
                    shutil.rmtree(self._folder)
                self._folder.mkdir(0o700)
        except BaseException:
            self._held.discard()
            raise

    def commit(self) -> None:
        """Make the file appear under its name; nothing else may have it open for writing."""
        with output_errors(self.path):
            descriptor = os.open(self.hidden, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            replaces = self._target.exists()
            os.replace(self.hidden, self._target)
            sync_folder(self._target.parent)
        if replaces:
            tell_replaced(self.path)
        self.discard()

    def discard(self) -> None:
        """Remove the unfinished file, and what the library has written beside it."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._held.discard()
