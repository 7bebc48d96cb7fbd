"""Files on this machine or in a store that Arrow knows: ``s3://``, ``gs://``, ``hdfs://``.

Credentials and addresses of a store are those of its own environment variables, as ``AWS_PROFILE`` or
``AWS_ENDPOINT_URL``.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple

from plait.errors import FormatError, InvalidInput, PlaitError

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

#: One slash where a path has been made of the address, which takes two for one. ``file`` is for trials.
_ADDRESS: Final = re.compile(r"(s3|gs|hdfs|file):/+(.+)", re.DOTALL)


def address_of(path: str | os.PathLike[str]) -> str | None:
    """The address of something in a store; None of what lies on this machine.

    >>> address_of("s3:/bucket/counts"), address_of("counts.parquet")
    ('s3://bucket/counts', None)
    """
    found = _ADDRESS.fullmatch(os.fspath(path))
    if found is None:
        return None
    kind, rest = found.groups()
    return f"{kind}://{'/' if kind == 'file' else ''}{rest}"


def is_dataset(output: str | os.PathLike[str]) -> bool:
    """Whether an output is to be a folder of parts: its name ends in a slash."""
    return os.fspath(output).endswith("/")


def beside(output: str | os.PathLike[str], end: str) -> Path:
    """The path of a file beside an output, be it a file or a folder.

    >>> str(beside("a/counts/", ".checkpoint")), str(beside("s3://bucket/counts/", ".checkpoint"))
    ('a/counts.checkpoint', 'counts.checkpoint')
    """
    name = os.fspath(output).rstrip("/")
    if address_of(name) is not None:
        name = name.rpartition("/")[2]
    return Path(f"{name}{end}")


def absolute(path: str | os.PathLike[str]) -> str:
    """The path that means a file in every folder, links followed; the address of what is in a store."""
    return address_of(path) or os.path.realpath(path)


class RemoteStatus(NamedTuple):
    """What is known of a file in a store, named as by `os.stat`; its `st_ino` tells nothing."""

    st_size: int
    st_mtime_ns: int
    st_dev: int = 0
    st_ino: int = 0
    st_ctime_ns: int = 0


def status_of(path: str | os.PathLike[str]) -> os.stat_result | RemoteStatus:
    """Size and times of a file; OSError if it is not there, FileNotFoundError in stores as well."""
    address = address_of(path)
    if address is None:
        return os.stat(path)
    from pyarrow.fs import FileType

    with store_errors(address):
        system, inner = store_of(address)
        info = system.get_file_info(inner)
    if info.type == FileType.NotFound:
        raise FileNotFoundError(2, "no such file", address)
    if info.type == FileType.Directory:
        raise IsADirectoryError(21, "a folder", address)
    return RemoteStatus(info.size, info.mtime_ns)


def stamp_of(path: str | os.PathLike[str]) -> list[int]:
    """What changes when somebody touches a file, its size first; empty if it is not there."""
    try:
        status = status_of(path)
    except OSError:
        return []
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


def open_bytes(path: str | os.PathLike[str]) -> BinaryIO | Any:
    """A file to read and to seek in; a context manager."""
    address = address_of(path)
    if address is None:
        return open(path, "rb")
    with store_errors(address):
        system, inner = store_of(address)
        return system.open_input_file(inner)


@functools.lru_cache(maxsize=16)
def _system(root: str) -> tuple[FileSystem, str]:
    from pyarrow.fs import FileSystem

    try:
        found: tuple[FileSystem, str] = FileSystem.from_uri(root)
    except OSError as error:
        # What the library of a store needs may not be there.
        raise ValueError(str(error)) from error
    return found


def store_of(address: str) -> tuple[FileSystem, str]:
    """File system of an address, and the path in it. One is made for each bucket, as that may ask for it."""
    kind, rest = address.split("://", 1)
    if kind == "file":
        return _system("file:///")[0], rest
    bucket, _, inner = rest.partition("/")
    system, base = _system(f"{kind}://{bucket}")
    # What an address says behind a question mark is of the store, not of the file.
    return system, "/".join(part for part in (base.rstrip("/"), inner.rstrip("/")) if part)


@contextmanager
def store_errors(address: str) -> Iterator[None]:
    """Say which store cannot be used; what is not there, or is a folder, stays what it was."""
    try:
        yield
    except (PlaitError, FileNotFoundError, IsADirectoryError):
        raise
    except OSError as error:
        raise FormatError(
            address,
            found=str(error).splitlines()[0],
            expected="a store that answers and lets you in",
            hint="check the address, and what its environment variables say of you",
        ) from error
    except (ValueError, NotImplementedError) as error:
        raise InvalidInput(
            "path",
            found=f"{address!r} ({str(error).splitlines()[0]})",
            expected="an address that the pyarrow of this machine can open",
        ) from error


def check_not_remote(path: str | os.PathLike[str], what: str) -> None:
    """Refuse an address where only files of this machine will do."""
    address = address_of(path)
    if address is not None:
        raise FormatError(
            address,
            found="an address of a store",
            expected=what,
            hint="copy it to this machine, or write a folder of parts there: its name ends in /",
        )
