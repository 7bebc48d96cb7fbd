"""Outputs that a library writes under a name of its own, and that appear when they are complete."""

from __future__ import annotations

import os
from pathlib import Path

from plait.formats.atomic import check_output, output_errors

__all__ = ["HiddenOutput"]


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
