"""Output files that are either whole or not there.

A file is written under a hidden name in the folder of its target and renamed when it is complete, so that a
reader never sees half a file and a failed run leaves an older result as it was.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final

from plait.errors import FormatError, InvalidInput

__all__ = ["AtomicFile", "check_not_input", "check_output", "output_errors", "write_json"]

_BUFFER_BYTES = 1 << 20

_NO_ROOM: Final = {errno.ENOSPC: "no space left on the device", errno.EDQUOT: "the disk quota used up"}
_REFUSED: Final = {
    errno.EACCES: "no permission to write there",
    errno.EPERM: "no permission to write there",
    errno.EROFS: "a read-only file system",
}


@contextmanager
def output_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn errors of the operating system into ones that name the output and say what to do.

    Parameters
    ----------
    path
        The output, as the user knows it.

    Yields
    ------
    None
        Run what writes inside.

    Raises
    ------
    FormatError
        In place of any `OSError`.
    """
    try:
        yield
    except OSError as error:
        code = error.errno or 0
        if code in _NO_ROOM or code == errno.EFBIG:
            raise FormatError(
                path,
                found=_NO_ROOM.get(code, "the limit on the size of a file reached"),
                expected="room for the output",
                hint="free some space or choose another folder; the unfinished file has been removed",
            ) from error
        if code in _REFUSED:
            raise FormatError(
                path, found=_REFUSED[code], expected="a writable folder", hint="choose another folder"
            ) from error
        raise FormatError(
            path, found=error.strerror or error, expected="a file that can be written"
        ) from error


class AtomicFile:
    """A binary file that appears under its name only when it is complete.

    As a context manager it commits on a clean exit and discards on any exception, `KeyboardInterrupt`
    included. The hidden name is always the same one, so a run that was killed leaves at most one such file,
    which the next run overwrites. A lock on it keeps two runs from writing one output.

    Parameters
    ----------
    path
        The target. A symbolic link is followed.
    durable
        Whether to wait until the file has reached the disk. Leave it out only where a damaged file would be
        noticed and made again.

    Attributes
    ----------
    path : Path
        The target, as given.
    stream : BinaryIO
        Write here.

    Raises
    ------
    InvalidInput
        If the target is a directory or a device, its folder does not exist, or another run is writing it.
    FormatError
        If the folder cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str], *, durable: bool = True) -> None:
        self.path = Path(path)
        self._durable = durable
        self._target = Path(os.path.realpath(path))
        _check_target(self.path, self._target)
        self._temporary = self._target.with_name(f".{self._target.name}.partial")
        with output_errors(self.path):
            self.stream = _open_locked(self.path, self._temporary)
        self._open = True

    def commit(self) -> None:
        """Make the file appear under its name.

        Raises
        ------
        FormatError
            If the last bytes cannot be written; the file is discarded then.
        """
        if not self._open:
            return
        try:
            with output_errors(self.path):
                self.stream.flush()
                if self._durable:
                    os.fsync(self.stream.fileno())
                os.replace(self._temporary, self._target)
        except BaseException:
            self.discard()
            raise
        self._open = False
        self.stream.close()

    def discard(self) -> None:
        """Remove the unfinished file; the target stays as it was. Does nothing after `commit`."""
        if not self._open:
            return
        self._open = False
        # Removed before closing: while it is open it is locked, so that it is surely ours.
        self._temporary.unlink(missing_ok=True)
        # Closing flushes what is left in the buffer; on a full disk that fails again, harmlessly.
        with suppress(OSError):
            self.stream.close()

    def __enter__(self) -> AtomicFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.commit()
        else:
            self.discard()


def write_json(path: str | os.PathLike[str], content: Mapping[str, object]) -> None:
    """Write a JSON file atomically, keys sorted, so that equal content gives equal bytes.

    Parameters
    ----------
    path
        The target.
    content
        What to write.

    Raises
    ------
    InvalidInput, FormatError
        As `AtomicFile`.
    """
    text = json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    with AtomicFile(path) as file, output_errors(path):
        file.stream.write(text.encode("utf-8"))


def check_output(path: str | os.PathLike[str], inputs: Iterable[str | os.PathLike[str]]) -> None:
    """Check, before long work, that an output can be written.

    Parameters
    ----------
    path
        The output.
    inputs
        Files that are read.

    Raises
    ------
    InvalidInput
        If it is one of the inputs, a directory or a device, or its folder does not exist.
    FormatError
        If the folder cannot be written.
    """
    check_not_input(path, inputs)
    with AtomicFile(path, durable=False) as file:
        file.discard()


def check_not_input(path: str | os.PathLike[str], inputs: Iterable[str | os.PathLike[str]]) -> None:
    """Check that an output is none of the inputs.

    Parameters
    ----------
    path
        The output.
    inputs
        Files that are read.

    Raises
    ------
    InvalidInput
        If it is one of them, under whatever name.
    """
    for given in inputs:
        if os.path.exists(path) and os.path.exists(given) and os.path.samefile(path, given):
            raise InvalidInput(
                "output",
                found=f"{str(path)!r}, which is also an input",
                expected="another file",
                hint="the input would be overwritten",
            )


def _check_target(path: Path, target: Path) -> None:
    if not target.parent.is_dir():
        raise InvalidInput(
            "output",
            found=f"{str(path)!r}, in a folder that does not exist",
            expected="a file name in an existing folder",
            hint=f"create it first: mkdir -p {path.parent}",
        )
    if target.is_dir():
        raise InvalidInput(
            "output", found=f"{str(path)!r}, which is a directory", expected="the name of a file"
        )
    if target.exists() and not stat.S_ISREG(target.stat().st_mode):
        raise InvalidInput(
            "output", found=f"{str(path)!r}, which is a device or pipe", expected="the name of a file"
        )


def _open_locked(path: Path, temporary: Path) -> BinaryIO:
    while True:
        # Not truncated when opened: it may be another run's.
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
        stream = os.fdopen(descriptor, "wb", _BUFFER_BYTES)
        try:
            if not _lock(descriptor):
                raise InvalidInput(
                    "output",
                    found=f"{str(path)!r}, which another run is writing",
                    expected="an output of its own for every run",
                )
            # Between opening and locking, the file may have become the other run's finished output.
            if temporary.exists() and os.path.samestat(os.fstat(descriptor), os.stat(temporary)):
                stream.truncate(0)
                return stream
        except BaseException:
            stream.close()
            raise
        stream.close()


def _lock(descriptor: int) -> bool:
    """Take the lock; False if another process has it."""
    if sys.platform == "win32":
        return True
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        # Some network file systems have no locks; the rename is atomic there all the same.
        return True
    return True
