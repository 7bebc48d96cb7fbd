"""Where files lie, on this machine or in a store that Arrow knows, and how inputs are opened.

Stores are ``s3://``, ``gs://`` and ``hdfs://``; their credentials and addresses are those of their own
environment variables, as ``AWS_PROFILE`` or ``AWS_ENDPOINT_URL``. A file is opened by what it holds, not by
what it is called: plain, gzip, zstd, archives of tables, NumPy arrays, and JSON that nobody has checked.
"""

from __future__ import annotations

import codecs
import filecmp
import functools
import gzip
import hashlib
import importlib
import io
import json
import logging
import os
import re
import stat
import struct
import tokenize
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple, NoReturn, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from plait.errors import FormatError, InvalidInput, PlaitError

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

_LOG: Final = logging.getLogger(__name__)
#: What NumPy raises for files that are not its own, or that are damaged; Python 3.12, of zero bytes in a
#: header, SystemError.
_BAD_ARRAYS: Final = (
    *(ValueError, EOFError, OSError, SyntaxError, TypeError, MemoryError, OverflowError),
    *(RecursionError, SystemError, tokenize.TokenError),
)

_HEAD_BYTES = 16


class Closing(ABC):
    """What is closed in the end: a context manager."""

    @abstractmethod
    def close(self) -> None:
        """Close it; for the second time, nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


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


class FileKind(Enum):
    """What the first bytes of a file say it is."""

    PLAIN = "plain"
    GZIP = "gzip"
    ZSTD = "zstd"
    PARQUET = "parquet"
    ARCHIVE = "archive"


_UTF16: Final = "UTF-16 text", "save it as UTF-8 text"
_REPACK: Final = "decompress it, or compress it with gzip or zstd instead"
_EXPORT: Final = "export it as tab-separated text"

_ZIP: Final = b"PK\x03\x04"
_XZ: Final = b"\xfd7zXZ\x00"

# First bytes, what they mean, what to do. Looked up in the file and again inside gzip or zstd.
_FOREIGN: Final = (
    (
        _ZIP,
        "a zip archive or an Excel workbook",
        "unpack it, or save the sheet as tab-separated text",
    ),
    (b"\xd0\xcf\x11\xe0", "an Excel workbook", "save the sheet as tab-separated text"),
    (b"BZh", "bzip2 data", _REPACK),
    (_XZ, "xz data", _REPACK),
    (b"7z\xbc\xaf", "a 7-zip archive", _REPACK),
    (b"\x04\x22\x4d\x18", "lz4 data", _REPACK),
    (b"\x1f\x8b", "gzip inside another compression", "decompress it once"),
    (b"\x28\xb5\x2f\xfd", "zstd inside another compression", "decompress it once"),
    (b"PAR1", "Parquet inside another compression", "decompress it once"),
    (b"PARE", "encrypted Parquet", "write it without encryption"),
    (b"ARROW1", "an Arrow IPC (Feather) file", "convert it to Parquet"),
    (b"BAM\x01", "a BAM file", "annotate the reads first; plait needs a table of rearrangements"),
    (b"CRAM", "a CRAM file", "annotate the reads first; plait needs a table of rearrangements"),
    (b"\x89HDF", "an HDF5 file", _EXPORT),
    (b"SQLite format 3", "an SQLite database", _EXPORT),
    (b"\x89PNG", "a PNG image", None),
    (b"%PDF", "a PDF document", None),
    (b"\xff\xfe", *_UTF16),
    (b"\xfe\xff", *_UTF16),
)


@contextmanager
def input_errors(path: str | os.PathLike[str], expected: str = "a file to read") -> Iterator[None]:
    """Turn an OSError inside into a FormatError that names the input."""
    try:
        yield
    except OSError as error:
        raise FormatError(path, found=error.strerror or error, expected=expected) from error


def foreign_content(path: str | os.PathLike[str], head: bytes) -> FormatError | None:
    """Error to raise for content that plait recognises but does not read.

    `head` are its first bytes, decompressed. None if they look like none of the known kinds.
    """
    for magic, what, hint in _FOREIGN:
        if head.startswith(magic):
            return FormatError(path, found=what, expected="tab-separated text or Parquet", hint=hint)
    return None


def check_readable(path: str | os.PathLike[str]) -> os.stat_result | RemoteStatus:
    """Size and times of a regular file; FormatError if there is none, or it is a directory or a pipe."""
    expected = "a file to read"
    with input_errors(path):
        try:
            status = status_of(path)
        except FileNotFoundError:
            hint = "save standard input to a file first" if os.fspath(path) == "-" else "check the path"
            raise FormatError(path, found="no such file", expected=expected, hint=hint) from None
    if isinstance(status, RemoteStatus):
        return status
    if stat.S_ISDIR(status.st_mode):
        raise FormatError(path, found="a directory", expected=expected, hint="name the files inside it")
    if not stat.S_ISREG(status.st_mode):
        # The header is read before the rows, and a resumed run reads again: a pipe can do neither.
        raise FormatError(path, found="a pipe or device", expected=expected, hint="save it to a file first")
    return status


#: Absolute path, size in bytes and modification time in ns of a file, to recognise it again.
Identity = tuple[str, int, int]


def identify(
    paths: Iterable[str | os.PathLike[str]],
) -> tuple[list[os.stat_result | RemoteStatus], list[Identity]]:
    """Status and identity of the inputs of a run; a copy of one under another name is warned of.

    FormatError as `check_readable`; InvalidInput if a file is there twice, be it by a link.
    """
    statuses: list[os.stat_result | RemoteStatus] = []
    identities: dict[Identity, None] = {}
    by_size: dict[int, list[Identity]] = {}
    for path in paths:
        status = check_readable(path)
        identity = absolute(path), status.st_size, status.st_mtime_ns
        if identity in identities:
            raise InvalidInput("inputs", found=f"{os.fspath(path)!r} twice", expected="different files")
        others = by_size.setdefault(status.st_size, [])
        for other in others:
            _tell_copy(other, identity)
        statuses.append(status)
        identities[identity] = None
        others.append(identity)
    return statuses, list(identities)


# Once for a pair, however often the files are opened.
@functools.cache
def _tell_copy(first: Identity, second: Identity) -> None:
    # Whoever reads the files tells what is wrong with one.
    with suppress(OSError):
        if first[1] and filecmp.cmp(first[0], second[0], shallow=False):
            told = "%r and %r have the same content: what is in both is counted twice"
            _LOG.warning(told, first[0], second[0])


def content_digest(path: str | os.PathLike[str]) -> str:
    """BLAKE2b of a whole file, 16 bytes as hexadecimal text; FormatError if it cannot be read."""
    with input_errors(path), open(path, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


@contextmanager
def unchanged(path: str | os.PathLike[str], before: os.stat_result | RemoteStatus) -> Iterator[None]:
    """Check that a file is the same one before and after it is read inside.

    `before` is what `check_readable` said. FormatError if it was changed or replaced meanwhile, in the place
    of whatever error that has led to.
    """
    try:
        yield
    except (FormatError, OSError):
        _check_unchanged(path, before)
        raise
    _check_unchanged(path, before)


#: The time of change tells of a file whose time of modification was set back.
_SAME: Final = {
    "st_dev": "file",
    "st_ino": "file",
    "st_size": "size",
    "st_mtime_ns": "time of modification",
    "st_ctime_ns": "time of change",
}


def _check_unchanged(path: str | os.PathLike[str], before: os.stat_result | RemoteStatus) -> None:
    try:
        now = status_of(path)
        found = next(
            (f"another {what}" for k, what in _SAME.items() if getattr(now, k) != getattr(before, k)), ""
        )
    except OSError as error:
        found = f"{error.strerror or error}"
    if found:
        raise FormatError(
            path,
            found=f"{found} than when it was opened: it was changed while it was read"
            if found.startswith("another")
            else f"{found}: it was removed while it was read",
            expected="a file that stays as it is",
            hint="run again when nothing writes to it",
        )


@functools.cache
def fast_zlib() -> Any:
    """A module that does what zlib does: ISA-L's, several times as fast, where the extra `fast` is there."""
    try:
        return importlib.import_module("isal.isal_zlib")
    except ImportError:
        return zlib


def sniff(path: str | os.PathLike[str], *, archives: bool = False) -> FileKind:
    """Tell the kind of a file from its first bytes, whatever its suffix.

    `FileKind.PLAIN` if nothing else is recognised; `FileKind.ARCHIVE`, where `archives` are asked for, is a
    zip or tar.xz with the table of nucleotides of IMGT/HighV-QUEST. FormatError if it cannot be opened, is
    empty, or is of a known kind that plait does not read.
    """
    with input_errors(path), open_bytes(path) as stream:
        head = stream.read(_HEAD_BYTES)
    if not head:
        raise FormatError(path, found="an empty file", expected="a header line and rows, or Parquet")
    if head.startswith(b"\x1f\x8b"):
        return FileKind.GZIP
    # 0x184D2A5? starts a skippable frame, which some zstd writers put first.
    if head.startswith(b"\x28\xb5\x2f\xfd") or (head[1:4] == b"\x2a\x4d\x18" and 0x50 <= head[0] <= 0x5F):
        return FileKind.ZSTD
    if head.startswith(b"PAR1"):
        return FileKind.PARQUET
    check_not_remote(path, "Parquet")
    if archives and head.startswith((_ZIP, _XZ)):
        with input_errors(path), open(path, "rb") as file, archive_errors(path):
            if archived_table(file) is not None:
                return FileKind.ARCHIVE
    foreign = foreign_content(path, head)
    if foreign:
        raise foreign
    return FileKind.PLAIN


#: The table of an archive of IMGT/HighV-QUEST that has junctions as nucleotides begins so.
IMGT_TABLE: Final = "3_Nt-sequences"


def archived_table(file: BinaryIO) -> IO[bytes] | None:
    """The table of nucleotides in a zip or tar.xz of IMGT/HighV-QUEST; None if there is none."""
    # Most runs open no archive.
    import tarfile
    import zipfile

    zipped = file.read(4) == _ZIP
    file.seek(0)
    if zipped:
        archive = zipfile.ZipFile(file)
        names = [name for name in archive.namelist() if name.rpartition("/")[2].startswith(IMGT_TABLE)]
        return archive.open(names[0]) if names else None
    packed = tarfile.open(fileobj=file, mode="r:xz")  # noqa: SIM115 - closed with the file
    for member in packed:
        if member.isfile() and member.name.rpartition("/")[2].startswith(IMGT_TABLE):
            return packed.extractfile(member)
    return None


@contextmanager
def archive_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn what the readers of archives raise into a FormatError that names the file."""
    import lzma
    import tarfile
    import zipfile

    damaged = (EOFError, zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile)
    try:
        yield
    except (*damaged, NotImplementedError, RuntimeError, ValueError, struct.error, UnicodeError) as error:
        raise FormatError(
            path,
            found=f"a zip archive, Excel workbook or xz data, damaged, cut off or encrypted ({error})",
            expected="a complete zip or tar.xz archive",
            hint="copy or download the file again, or unpack it and name the folder",
        ) from error


class ByteSource(Closing):
    """Decompressed bytes of one file: plain, gzip (any number of members), zstd, archive.

    `bytes_read` are those taken from the file on disk so far.
    """

    def __init__(self, path: str | os.PathLike[str], kind: FileKind) -> None:
        self.path = path
        self.kind = kind
        self.bytes_read = 0
        self._decompressed = 0
        self._raw: Any
        self._stream: Any
        with input_errors(path):
            if kind is FileKind.PLAIN:
                self._stream = self._raw = io.FileIO(path)
                return
            if kind is FileKind.ARCHIVE:
                self._raw = io.FileIO(path)
                with archive_errors(path):
                    self._stream = archived_table(self._raw)
                return
            # Loaded here, because it takes longer to load than many a plain file to read.
            import pyarrow as pa

            self._raw = pa.OSFile(str(Path(path)), "rb")
            self._stream = pa.CompressedInputStream(self._raw, kind.value)

    def read(self, size: int) -> bytes:
        """Up to `size` decompressed bytes; empty at the end.

        FormatError if the compressed stream is cut off or damaged.
        """
        try:
            with archive_errors(self.path) if self.kind is FileKind.ARCHIVE else nullcontext():
                data: bytes = self._stream.read(size)
        except OSError as error:
            raise self._damaged(error) from error
        self.bytes_read = self._raw.tell()
        self._decompressed += len(data)
        return data

    def _damaged(self, error: OSError) -> FormatError:
        after = f"after {self._decompressed:,} decompressed bytes"
        if self.kind is FileKind.PLAIN:
            return FormatError(self.path, found=f"a read error: {error}", expected="a readable file")
        cut = "Truncated" in str(error)
        found = (
            f"{'an early end' if cut else f'damaged data ({error})'} of the {self.kind.value} stream {after}"
        )
        return FormatError(
            self.path,
            found=found,
            expected=f"a complete {self.kind.value} file",
            hint="copy or download the file again",
        )

    def close(self) -> None:
        """Close the file."""
        self._stream.close()
        self._raw.close()


#: The largest germline sets and models have a few million bytes.
_MOST_TEXT: Final = 1 << 26


def read_text(path: str | os.PathLike[str], expected: str) -> str:
    """The text of a file, decompressed if it is gzip.

    FormatError, which tells what was `expected`, if the file cannot be read, is empty, cut off, far too
    large, or no UTF-8 text.
    """
    check_readable(path)
    try:
        with open(path, "rb") as file:
            raw = file.read(_MOST_TEXT + 1)
            if raw[:2] == b"\x1f\x8b":
                file.seek(0)
                raw = gzip.GzipFile(fileobj=file).read(_MOST_TEXT + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        found = f"damaged or cut-off gzip data ({error})"
        raise FormatError(path, expected=expected, found=found, hint="copy the file again") from error
    except OSError as error:
        raise FormatError(path, expected=expected, found=error.strerror or str(error)) from error
    if len(raw) > _MOST_TEXT:
        raise FormatError(path, expected=expected, found=f"more than {_MOST_TEXT:,} bytes of text")
    if not raw.removeprefix(codecs.BOM_UTF8).strip():
        raise FormatError(path, expected=expected, found="an empty file")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        found = f"a byte that is no UTF-8 text at position {error.start}"
        raise FormatError(path, expected=expected, found=found) from error
    if "\0" in text:
        raise FormatError(path, expected=expected, found="binary data")
    return text


#: Lists and objects in one another. Python's own limit depends on who calls.
_DEEPEST: Final = 64
_UTF8_MARK: Final = b"\xef\xbb\xbf"
#: The text of what may be half of a character beyond the first 65,536.
_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")


def read_array(path: str | os.PathLike[str], *, mapped: bool = False) -> NDArray[Any]:
    """Numbers from a .npy file; FormatError if it is something else, is cut off or has more behind them.

    `mapped`: they stay in the file, and are read when they are used.
    """
    check_readable(path)
    expected = "a .npy file of numbers"
    try:
        with open(path, "rb") as file:
            found: NDArray[Any]
            if mapped:
                found = within = np.lib.format.open_memmap(path, mode="r")
                file.seek(within.offset + within.nbytes)
            else:
                found = np.lib.format.read_array(file, allow_pickle=False)
            if file.read(1):
                raise FormatError(path, found="bytes behind the array", expected=expected)
    except _BAD_ARRAYS as error:
        told = " ".join(str(error).split())[:80] or type(error).__name__
        told = "a header that cannot be read" if isinstance(error, SystemError) else told
        raise FormatError(path, found=told, expected=expected) from error
    if found.dtype.kind not in "fiub":
        raise FormatError(path, found=f"{found.dtype} {found.shape}", expected=expected)
    return found


def read_json(path: str | os.PathLike[str], expected: str, *, most: int = 1 << 26) -> Any:
    """Content of a JSON file, as of `parse_json`.

    `expected` is what it should be, for errors, `most` the bytes that it may have. FormatError if it cannot
    be read or has more, or what `parse_json` refuses.
    """
    size = check_readable(path).st_size
    if size > most:
        raise FormatError(path, found=f"{size:,} bytes", expected=f"{expected}, of at most {most:,} bytes")
    with input_errors(path, expected):
        content = Path(path).read_bytes()
    return parse_json(content, path, expected=expected)


def parse_json(text: str | bytes, path: object, expected: str) -> Any:
    """Content of JSON text, as `json.loads` gives it; bytes are UTF-8.

    Names are unique, no number is NaN, and nothing is nested so deep that a function that calls itself could
    not walk it. FormatError if it is anything else; it names `path` and says what was `expected`.
    """
    try:
        plain = text.removeprefix(_UTF8_MARK).decode("utf-8") if isinstance(text, bytes) else text
    except UnicodeDecodeError as error:
        found = f"a byte that is no UTF-8 text at position {error.start}"
        raise FormatError(path, found=found, expected=expected) from error

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
            raise FormatError(path, found=f"the name {twice[:40]!r} twice in one object", expected=expected)
        return found

    def no_number(word: str) -> NoReturn:
        raise FormatError(path, line=line_of(word), found=f"{word}, which is no number", expected=expected)

    def line_of(pattern: str) -> int | None:
        """Where the first one stands that is in no text, as far as its surroundings tell."""
        place = re.search(rf"(?<=[\s\[:,]){pattern}(?=[\s\]}},])", plain)
        return plain.count("\n", 0, place.start()) + 1 if place else None

    try:
        content = json.loads(plain, object_pairs_hook=unique, parse_constant=no_number)
    except json.JSONDecodeError as error:
        raise FormatError(
            path, line=error.lineno, found=f"no JSON ({error.msg})", expected=expected
        ) from error
    except RecursionError:
        raise _too_deep(path, expected) from None
    except FormatError:
        raise
    except ValueError as error:
        # Python refuses to read integers of thousands of digits.
        line = line_of(r"-?\d{4000,}")
        found = "a number of thousands of digits"
        raise FormatError(path, line=line, found=found, expected=expected) from error
    _check_depth(content, path, expected)
    if _SURROGATE.search(plain):
        try:
            json.dumps(content, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError as error:
            found = f"half of a character, {error.object[error.start]!a}"
            raise FormatError(path, found=found, expected=expected) from None
    return content


def _check_depth(content: Any, path: object, expected: str) -> None:
    level = [content]
    for _ in range(_DEEPEST):
        level = [
            item
            for one in level
            for item in (one.values() if isinstance(one, dict) else one if isinstance(one, list) else ())
            if isinstance(item, list | dict)
        ]
        if not level:
            return
    raise _too_deep(path, expected)


def _too_deep(path: object, expected: str) -> FormatError:
    found = f"brackets nested too deeply, more than {_DEEPEST} in one another"
    return FormatError(path, found=found, expected=expected)


_T = TypeVar("_T")


def read_ahead(items: Generator[_T, None, None]) -> Generator[_T, None, None]:
    """Make the next item in another thread while the caller works on this one.

    The order does not change, and an error comes where it would have come. `items` is not to be used by the
    caller any more; closing this generator, by hand or by leaving the loop, waits for the thread and closes
    it.
    """
    try:
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="plait-read-ahead") as pool:
            ahead = pool.submit(_next, items)
            while item := ahead.result():
                ahead = pool.submit(_next, items)
                yield item[0]
    finally:
        items.close()


def _next(items: Iterator[_T]) -> tuple[_T] | None:
    for item in items:
        return (item,)
    return None
