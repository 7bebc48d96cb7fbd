"""Output files and folders that are either whole or not there, and belong to one kind of run.

Text goes to a file or to standard output, compressed as its name says.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import re
import shutil
import stat
import sys
import zlib
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final, Protocol

from plait.errors import FormatError, InvalidInput, PlaitError, one_of
from plait.formats.files import Closing, read_json

_BUFFER_BYTES = 1 << 20
_LOG: Final = logging.getLogger(__name__)
_SAFELY: Final = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
#: Other names of what the shell has opened for this process.
_STREAMS: Final = re.compile(r"/dev/(?:stdin|stdout|stderr|fd/.*)|/proc/[^/]+/fd/.*")

_NO_ROOM: Final = {
    errno.ENOSPC: "no space left on the device",
    errno.EDQUOT: "the disk quota used up",
    errno.EFBIG: "the limit on the size of a file reached",
}
_REFUSED: Final = {
    errno.EACCES: "no permission to write there",
    errno.EPERM: "no permission to write there",
    errno.EROFS: "a read-only file system",
}


@contextmanager
def output_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn an OSError inside into a FormatError that names the output and says what to do."""
    try:
        yield
    except OSError as error:
        code, hint = error.errno or 0, None
        found, expected = error.strerror or str(error), "a file that can be written"
        if code in _NO_ROOM:
            found, expected = _NO_ROOM[code], "room for the output"
            hint = "free some space or choose another folder; the unfinished file has been removed"
        elif code in _REFUSED:
            found, expected, hint = _REFUSED[code], "a writable folder", "choose another folder"
        raise FormatError(path, found=found, expected=expected, hint=hint) from error


class WholeOrNot(Closing):
    """An output that appears when it is closed, or never.

    As a context manager it is closed on a clean exit, and discarded on any exception, `KeyboardInterrupt`
    included.
    """

    @abstractmethod
    def discard(self) -> None:
        """Remove what is unfinished; an older output of the same name stays as it was."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.discard()
            return
        try:
            self.close()
        except BaseException:
            self.discard()
            raise


class AtomicFile(WholeOrNot):
    """A binary file that appears under its name only when it is complete.

    The hidden name is always the same one, so a run that was killed leaves at most one such file,
    which the next run removes. A lock on it keeps two runs from writing one output. It is always a new file:
    links, pipes and folders of that name are refused; a target that is a symbolic link is followed.

    Write to `stream`. `durable` waits until the file has reached the disk, and logs that an older one was
    replaced; leave it out only where a damaged file would be noticed and made again. InvalidInput if the
    target is a directory or a device, its folder does not exist, or another run is writing it; FormatError if
    the folder cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str], *, durable: bool = True) -> None:
        self.path = Path(path)
        self._durable = durable
        self._target = Path(os.path.realpath(path))
        _check_target(self.path, self._target)
        self._temporary = self._target.with_name(f".{self._target.name}.partial")
        self._open = False
        with output_errors(self.path):
            self.stream = _open_locked(self.path, self._temporary)
            self._open = True

    def __del__(self) -> None:
        """Discard what a signal has kept from being closed or discarded, before its `with` had begun."""
        if getattr(self, "_open", False):
            self.discard()

    def close(self) -> None:
        """Make the file appear under its name.

        FormatError if the last bytes cannot be written; the file is discarded then.
        """
        if not self._open:
            return
        try:
            with output_errors(self.path):
                self.stream.flush()
                if self._durable:
                    os.fsync(self.stream.fileno())
                if not _stands_at(self._temporary, self.stream.fileno()):
                    raise _busy(self.path)
                replaces = self._target.exists()
                os.replace(self._temporary, self._target)
                if self._durable:
                    sync_folder(self._target.parent)
        except BaseException:
            self.discard()
            raise
        self._open = False
        self.stream.close()
        if self._durable and replaces:
            tell_replaced(self.path)

    def discard(self) -> None:
        """Remove the unfinished file; the target stays as it was. Does nothing once it is closed."""
        if not self._open:
            return
        try:
            # Removed before closing: while it is open it is locked, so that it is surely ours.
            if _stands_at(self._temporary, self.stream.fileno()):
                self._temporary.unlink(missing_ok=True)
        except OSError:
            self._open = False
            raise
        # Not before: what a signal has kept from being removed is removed when it is discarded again.
        self._open = False
        # Closing flushes what is left in the buffer; on a full disk that fails again, harmlessly.
        with suppress(OSError):
            self.stream.close()


def write_json(path: str | os.PathLike[str], content: Mapping[str, object]) -> None:
    """Write a JSON file atomically, keys sorted, so that equal content gives equal bytes.

    Errors are those of `AtomicFile`.
    """
    text = json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    with AtomicFile(path) as file, output_errors(path):
        # Of a path that is not UTF-8, what is left is as JSON escapes it.
        file.stream.write(text.encode("utf-8", "backslashreplace"))


def check_output(path: str | os.PathLike[str], inputs: Iterable[str | os.PathLike[str]]) -> None:
    """Check, before long work, that an output can be written; folders of parts are checked when opened.

    InvalidInput if it is one of the inputs, a directory or a device, or its folder does not exist;
    FormatError if the folder cannot be written.
    """
    check_not_input(path, inputs)
    if not os.fspath(path).endswith("/"):
        with AtomicFile(path, durable=False) as file:
            file.discard()


def check_not_input(path: str | os.PathLike[str], inputs: Iterable[str | os.PathLike[str]]) -> None:
    """InvalidInput if an output is one of the inputs, under whatever name."""
    for given in inputs:
        if os.path.exists(path) and os.path.exists(given) and os.path.samefile(path, given):
            hint = "the input would be overwritten"
            raise bad_output(path, ", which is also an input", "another file", hint)


def check_different(*paths: str | os.PathLike[str] | None) -> None:
    """InvalidInput if two of the outputs are one file; those that are not wanted are None."""
    names = [os.path.realpath(path) for path in paths if path is not None]
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput("output", found=f"{name!r} for two outputs", expected="a file for each")


@contextmanager
def array_file(
    path: str | os.PathLike[str], kind: str, shape: tuple[int, ...], inputs: Iterable[str | os.PathLike[str]]
) -> Iterator[Callable[[Any], object]]:
    """A .npy file of numbers of a kind, as ``float32``, written in pieces: what takes each of them."""
    import numpy as np

    if not os.fspath(path).lower().endswith(".npy"):
        raise bad_output(path, "", "a name that ends in .npy")
    check_not_input(path, inputs)
    header = {"descr": np.dtype(kind).str, "fortran_order": False, "shape": shape}
    with AtomicFile(path) as file, output_errors(path):
        np.lib.format.write_array_header_1_0(file.stream, header)
        yield lambda piece: file.stream.write(np.ascontiguousarray(piece).data)


def tell_replaced(path: Path) -> None:
    """Log that an output has taken the place of an older one; commands show that."""
    _LOG.info("%r was there before and has been replaced", str(path))


_NAME: Final = "the name of a file"
_PIPE_HINT: Final = "commands that write text take - for standard output"


def bad_output(path: object, why: str, expected: str = _NAME, hint: str | None = None) -> InvalidInput:
    """The error for an output that cannot be written; `why` goes on after its name."""
    return InvalidInput("output", found=f"{str(path)!r}{why}", expected=expected, hint=hint)


def _check_target(path: Path, target: Path) -> None:
    if _STREAMS.fullmatch(os.path.abspath(path)):
        raise bad_output(path, ", which is a stream of this process", hint=_PIPE_HINT)
    if os.fspath(path) == "-":
        raise bad_output(path, ", standard output", hint=_PIPE_HINT)
    if target.is_symlink():
        raise bad_output(path, ", a link that leads to itself")
    if not target.parent.is_dir():
        linked = f", a link to {str(target)!r}" if path.is_symlink() else ""
        raise _no_folder(path, linked, "a file name", target.parent if linked else path.parent)
    if target.is_dir():
        raise bad_output(path, ", which is a directory")
    if target.exists() and not stat.S_ISREG(target.stat().st_mode):
        raise bad_output(path, ", which is a device or pipe", hint=_PIPE_HINT)
    # A rename would replace it all the same, or fail after all the work where only owners may.
    if target.exists() and not os.access(target, os.W_OK):
        expected = "a new file, or one that you may write to"
        raise bad_output(path, ", which is there and which you may not write to", expected)


def _no_folder(path: Path, linked: str, what: str, parent: Path) -> InvalidInput:
    why, hint = f"{linked}, in a folder that does not exist", f"create it first: mkdir -p {parent}"
    return bad_output(path, why, f"{what} in an existing folder", hint)


def _open_locked(path: Path, temporary: Path) -> BinaryIO:
    """A new file under the hidden name, locked; what a run that was killed has left there is removed."""
    while True:
        descriptor = None
        try:
            # Never what is there already, nor what a link leads to: others may write in this folder.
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFELY, 0o666)
            if not _lock(descriptor):
                os.close(descriptor)
                raise _busy(path)
            # Before it was locked, another run may have taken it for left over.
            if _stands_at(temporary, descriptor):
                return os.fdopen(descriptor, "wb", _BUFFER_BYTES)
            os.close(descriptor)
        except FileExistsError:
            _remove_left_over(path, temporary)
        except BaseException:
            with suppress(OSError):
                if descriptor is not None and _stands_at(temporary, descriptor):
                    os.unlink(temporary)
            # Stopped by a signal, perhaps, when the file was there and nobody knew its descriptor.
            with suppress(OSError, InvalidInput):
                _remove_left_over(path, temporary)
            raise


def _remove_left_over(path: Path, temporary: Path) -> None:
    try:
        if not stat.S_ISREG(os.lstat(temporary).st_mode):
            expected = f"nothing, or what a run that was killed has left, where {path.name!r} is prepared"
            hint = "see who made it, and remove it"
            raise bad_output(temporary, ", which is no plain file", expected, hint)
        # Writing, because a network file system locks nothing that is only read.
        descriptor = os.open(temporary, os.O_WRONLY | _SAFELY)
        try:
            if not _lock(descriptor):
                raise _busy(path)
            # While it was opened, it may have become the other run's finished output.
            if _stands_at(temporary, descriptor):
                os.unlink(temporary)
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        return
    except PermissionError as error:
        expected = f"nothing, or what a run of your own has left, where {path.name!r} is prepared"
        hint = "another user is writing this output, or has left that; choose another output"
        raise bad_output(temporary, ", which is another user's", expected, hint) from error


def _stands_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False


def _busy(path: Path) -> InvalidInput:
    return bad_output(path, ", which another run is writing", "an output of its own for every run")


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder have reached the disk, where the file system can do that."""
    if sys.platform == "win32":
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except PermissionError:
        # A folder that can be written and not read.
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):
            raise
    finally:
        os.close(descriptor)


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

    `kind` is the name of its format, `errors` what else the library raises; FormatError comes in their place.
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


class HiddenOutput(WholeOrNot):
    """A hidden name beside an output, for libraries that open files by name.

    `path` is the output, as given, `hidden` where to write until it is complete. Errors are those of
    `AtomicFile`.
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

    def close(self) -> None:
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


class AtomicFolder(WholeOrNot):
    """A folder that appears under its name only when it is complete, in the place of an older one.

    `prepared`, called `NAME.unfinished`, is where to write until then; with `resume` it may hold what an
    earlier run has left, otherwise that is removed, and after an error all is, unless `keep` says that it
    will be wanted. A lock keeps two runs from writing one folder. `replaceable` and `left` say whether what a
    folder of the one and the other name holds may be replaced. InvalidInput if it may not, a name is that of
    a file, or another run is writing; FormatError if it cannot be written.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        replaceable: Callable[[Path], bool],
        left: Callable[[Path], bool],
        resume: bool = False,
        keep: Callable[[], bool] = lambda: False,
    ) -> None:
        self.path = Path(path)
        self._target = Path(os.path.realpath(path))
        self._keep = keep
        if not self._target.parent.is_dir():
            raise _no_folder(self.path, "", "a folder name", self._target.parent)
        name = self._target.name
        self.prepared = self._target.with_name(f"{name}.unfinished")
        self._older, self._locked = (self._target.with_name(f".{name}.{end}") for end in ("replaced", "lock"))
        with output_errors(path):
            self._lock = _open_locked(self.path, self._locked)
            try:
                self._mend()
                for folder, ours in ((self._target, replaceable), (self.prepared, left)):
                    if os.path.lexists(folder) and not folder.is_dir():
                        raise bad_output(folder, ", which is a file", "the name of a folder")
                    if folder.is_dir() and any(folder.iterdir()) and not ours(folder):
                        hint = "it is left as it is; choose another folder"
                        raise bad_output(
                            folder, ", which holds something else", "a new or empty folder", hint
                        )
                if self.prepared.is_dir() and not resume:
                    shutil.rmtree(self.prepared)
                self.prepared.mkdir(exist_ok=True)
            except BaseException:
                self._release()
                raise

    def __del__(self) -> None:
        """Give the name back where a signal has kept that from being done."""
        if hasattr(self, "_lock"):
            self._release()

    def _mend(self) -> None:
        """Put back, or remove, an older folder that a run which was killed had moved away."""
        if self._older.is_dir():
            if os.path.lexists(self._target):
                shutil.rmtree(self._older)
            else:
                os.rename(self._older, self._target)

    def close(self) -> None:
        """Make the folder appear under its name."""
        replaces = self._target.is_dir() and any(self._target.iterdir())
        with output_errors(self.path):
            try:
                if self._target.is_dir():
                    os.rename(self._target, self._older)
                os.rename(self.prepared, self._target)
                sync_folder(self._target.parent)
            finally:
                self._mend()
        self._release()
        if replaces:
            tell_replaced(self.path)

    def discard(self) -> None:
        """Remove what is unfinished, unless it is kept; an older folder stays as it was."""
        if not self._lock.closed:
            if not self._keep():
                shutil.rmtree(self.prepared, ignore_errors=True)
            self._release()

    def _release(self) -> None:
        if not self._lock.closed:
            # While it is open it is locked, so that it is surely ours.
            with suppress(OSError):
                if _stands_at(self._locked, self._lock.fileno()):
                    self._locked.unlink(missing_ok=True)
            self._lock.close()


def claim_folder(path: Path, *, marker: str, kind: str, what: str) -> bool:
    """Make a folder one of a kind of run, or see that it is one; whether it was none before.

    The folder is made if it is not there; its parent must be. The file `marker` in it says `kind`; `what` is
    a run of the kind in messages, as ``"study"``. InvalidInput if the folder holds something else, or its
    parent is missing; FormatError if it cannot be written, or its marker is damaged.
    """
    file = path / marker
    if path.is_dir():
        if _ours(file, kind, what):
            return False
        if any(path.iterdir()):
            expected = f"a new or empty folder, or that of an earlier {what}"
            hint = "it is left as it is; choose another folder"
            raise bad_output(path, ", which holds something else", expected, hint)
    elif path.exists():
        raise bad_output(path, ", which is a file", "the name of a folder")
    elif not path.absolute().parent.is_dir():
        raise _no_folder(path, "", "a folder name", path.absolute().parent)
    with folder_or_nothing(path):
        write_json(file, {"kind": kind, "version": 1})
    return True


@contextmanager
def folder_or_nothing(path: Path) -> Iterator[None]:
    """A folder, made if it is not there; removed again if what is done first fails and it is empty."""
    with output_errors(path):
        path.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        with suppress(OSError):
            path.rmdir()
        raise


def check_replaceable(path: Path, *results: Path, what: str, force: bool, resume: bool | None = None) -> None:
    """Check that a run that writes a folder may take the place of what an earlier one has left in it.

    The folder is claimed; `results` are what an earlier run would have left, `what` is as for `claim_folder`.
    The user may want to replace them (`force`) or go on with them (`resume`; None if that kind of run
    cannot). InvalidInput if there are results and neither is wanted, or both are.
    """
    if resume and force:
        raise InvalidInput("resume", found="force too", expected="one or the other")
    if not (resume or force) and any(map(os.path.lexists, results)):
        hint = "" if resume is None else "--resume goes on with one that was stopped, "
        hint += "--force begins anew and replaces it"
        raise bad_output(path, f", which holds an earlier {what}", "a new or empty folder", hint)


def _ours(file: Path, kind: str, what: str) -> bool:
    if not os.path.lexists(file):
        return False
    expected = f"the marker of {'an' if what[0] in 'aeiou' else 'a'} {what}"
    found = read_json(file, expected=expected)
    if not isinstance(found, dict) or "kind" not in found:
        raise FormatError(file, found="something else", expected=expected, hint="choose another folder")
    return bool(found["kind"] == kind)


_GZIP_LEVEL = 1
_ZSTD_LEVEL = 1


class Encoder(Protocol):
    """Turns text, piece by piece, into what stands in the file."""

    def compress(self, data: bytes | memoryview, /) -> bytes | memoryview:
        """Bytes to write now."""
        ...

    def flush(self) -> bytes:
        """Bytes to write at the end."""
        ...


def encoder(compression: str) -> Encoder:
    """The encoder of a kind of compression: ``"gz"``, ``"zst"`` or ``""`` for none."""
    if compression == "gz":
        # Window bits above 15 ask for a gzip header, which zlib writes without a time stamp.
        return zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, 31)
    return _ZstdFrames() if compression == "zst" else _Plain()


class _Plain:
    def compress(self, data: bytes | memoryview, /) -> bytes | memoryview:
        return data

    def flush(self) -> bytes:
        return b""


class _ZstdFrames:
    """Each piece a frame of its own; readers join them."""

    def __init__(self) -> None:
        import pyarrow as pa

        self._codec = pa.Codec("zstd", compression_level=_ZSTD_LEVEL)

    def compress(self, data: bytes | memoryview, /) -> bytes:
        framed: bytes = self._codec.compress(data, asbytes=True)
        return framed

    def flush(self) -> bytes:
        return b""


_PIECE_BYTES = 1 << 20
_COMPRESSIONS: Final = (".gz", ".zst")


def file_or_standard_output(path: str | os.PathLike[str] | None) -> str | None:
    """Name of the file that is meant; None for standard output, which can be written ``-`` too."""
    return None if path is None or os.fspath(path) in ("-", "/dev/stdout") else os.fspath(path)


def output_format(
    output: str | os.PathLike[str] | None,
    format: str | None,
    formats: Mapping[str, tuple[str, ...]],
    *,
    standard: str,
    by_name: Collection[str],
) -> str:
    """The format of an output: `format`, or what the file name says; `standard` on standard output.

    `output` is a file name, or ``-`` or None for standard output; `formats` maps names of formats to what
    file names they go with; those `by_name` only go into files whose names say so. InvalidInput if the format
    is unknown, the file name says none or another one, or it cannot go to standard output.
    """
    if format is not None:
        one_of("format", format, formats)
    path = file_or_standard_output(output)
    if path is None:
        if format == "parquet":
            raise InvalidInput(
                "output",
                found="standard output",
                expected="the name of a file for Parquet, which is no text",
                hint="name one that ends in .parquet",
            )
        return format or standard
    said = next((key for key, suffixes in formats.items() if path.lower().endswith(suffixes)), None)
    if path.endswith("/") and "parquet" in formats:
        said = "parquet"
    if said == format or format is None:
        if said is not None:
            return said
        suffixes = ", ".join(suffixes[0] for suffixes in formats.values())
        raise bad_output(path, "", f"a name that ends in {suffixes}, or a format")
    if said is not None or format in by_name:
        ends = " or ".join(formats[format])
        raise bad_output(path, "", f"a name that ends in {ends} for the format {format}")
    return format


class TextOutput(WholeOrNot):
    """Text being written, in large pieces.

    A path that ends in ``.gz`` or ``.zst`` is compressed; ``-`` or None is standard output. Errors are those
    of `AtomicFile`, and InvalidInput if the output is one of the inputs.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None, *, inputs: Iterable[str | os.PathLike[str]] = ()
    ) -> None:
        self._pending = bytearray()
        name = file_or_standard_output(path)
        if name is None:
            self.path = "standard output"
            self._file = None
            self._encoder = encoder("")
            return
        check_not_input(name, inputs)
        self.path = name
        suffix = next((end for end in _COMPRESSIONS if self.path.lower().endswith(end)), "")
        self._encoder = encoder(suffix.removeprefix("."))
        self._file = AtomicFile(name)

    def write(self, text: bytes | memoryview) -> None:
        """Append some text.

        FormatError if the disk is full, BrokenPipeError if whoever reads standard output has gone.
        """
        if not self._pending and len(text) >= _PIECE_BYTES:
            self._put(self._encoder.compress(text))
            return
        self._pending += text
        if len(self._pending) >= _PIECE_BYTES:
            self._pass_on()

    def close(self) -> None:
        """Write what is left and make the file appear under its name.

        Errors are those of `write`.
        """
        self._pass_on()
        self._put(self._encoder.flush())
        if self._file is not None:
            self._file.close()

    def discard(self) -> None:
        """Remove the unfinished file; what standard output has, it keeps."""
        self._pending.clear()
        if self._file is not None:
            self._file.discard()

    def _pass_on(self) -> None:
        if self._pending:
            data = bytes(self._pending)
            self._pending.clear()
            self._put(self._encoder.compress(data))

    def _put(self, data: bytes | memoryview) -> None:
        if self._file is None:
            with _standard_output_errors():
                _print(data)
        else:
            with output_errors(self.path):
                self._file.stream.write(data)


def _print(data: bytes | memoryview) -> None:
    sys.stdout.flush()
    buffer: BinaryIO = sys.stdout.buffer
    # Past Python's buffer, which would try again, and complain, at the end of a process whose disk is full.
    stream = getattr(buffer, "raw", buffer)
    rest = memoryview(data)
    while rest:
        rest = rest[stream.write(rest) :]


@contextmanager
def _standard_output_errors() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        found = "it closed" if error.errno == errno.EBADF else error.strerror or error
        raise FormatError("standard output", found=found, expected="room for what is written") from error
