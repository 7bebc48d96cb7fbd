"""Text that goes to a file, whole or not at all, or to standard output, compressed as its name says."""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import BinaryIO, Final, Protocol

from plait.errors import FormatError, InvalidInput
from plait.formats.atomic import AtomicFile, bad_output, check_not_input, output_errors
from plait.types import WholeOrNot

_GZIP_LEVEL = 1
_ZSTD_LEVEL = 1


class Encoder(Protocol):
    """Turns text, piece by piece, into what stands in the file."""

    def compress(self, data: bytes, /) -> bytes:
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
    def compress(self, data: bytes, /) -> bytes:
        return data

    def flush(self) -> bytes:
        return b""


class _ZstdFrames:
    """Each piece a frame of its own; readers join them."""

    def __init__(self) -> None:
        import pyarrow as pa

        self._codec = pa.Codec("zstd", compression_level=_ZSTD_LEVEL)

    def compress(self, data: bytes, /) -> bytes:
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
    if format is not None and format not in formats:
        raise InvalidInput("format", found=repr(format), expected=f"one of {', '.join(formats)}")
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

    def write(self, text: bytes) -> None:
        """Append some text.

        FormatError if the disk is full, BrokenPipeError if whoever reads standard output has gone.
        """
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

    def _put(self, data: bytes) -> None:
        if self._file is None:
            with _standard_output_errors():
                _print(data)
        else:
            with output_errors(self.path):
                self._file.stream.write(data)


def _print(data: bytes) -> None:
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
        raise FormatError(
            "standard output", found=error.strerror or error, expected="room for what is written"
        ) from error
