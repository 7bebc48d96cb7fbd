"""Small text files in and out, plain or gzip, with the errors of `plait.errors`."""

from __future__ import annotations

import codecs
import gzip
import os
import stat
import zlib
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from plait.errors import FormatError
from plait.formats.atomic import AtomicFile, output_errors

PathLike = str | os.PathLike[str]

#: The largest germline sets and models have a few million bytes.
_MOST_BYTES = 1 << 26
_FASTA_SUFFIXES = (".fasta", ".fa", ".fna", ".fas")


def fasta_stem(name: str) -> str | None:
    """A file name without its FASTA suffix (and ``.gz``), or None if it has none.

    >>> fasta_stem("TRBV.fasta.gz"), fasta_stem("TRBV.txt")
    ('TRBV', None)
    """
    bare = name[:-3] if name.lower().endswith(".gz") else name
    suffix = next((s for s in _FASTA_SUFFIXES if bare.lower().endswith(s)), None)
    return None if suffix is None else bare[: -len(suffix)]


def read_text(path: PathLike, expected: str) -> str:
    """The text of a file, decompressed if it is gzip.

    FormatError, which tells what was `expected`, if the file cannot be read, is empty, cut off, far too
    large, or no UTF-8 text.
    """
    try:
        if stat.S_ISFIFO(os.stat(path).st_mode):
            raise FormatError(path, expected=expected, found="a pipe", hint="save it to a file first")
        with open(path, "rb") as file:
            raw = file.read(_MOST_BYTES + 1)
            if raw[:2] == b"\x1f\x8b":
                file.seek(0)
                raw = gzip.GzipFile(fileobj=file).read(_MOST_BYTES + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        found = f"damaged or cut-off gzip data ({error})"
        raise FormatError(path, expected=expected, found=found, hint="copy the file again") from error
    except OSError as error:
        raise FormatError(path, expected=expected, found=error.strerror or str(error)) from error
    if len(raw) > _MOST_BYTES:
        raise FormatError(path, expected=expected, found=f"more than {_MOST_BYTES:,} bytes of text")
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


def write_texts(texts: Mapping[Path, str]) -> None:
    """Write text files, content by path, so that none of them is ever seen half-written.

    Nothing is put in place before all of it is on disk. InvalidInput or FormatError if one cannot be written.
    """
    with ExitStack() as stack:
        for path, text in texts.items():
            file = stack.enter_context(AtomicFile(path))
            with output_errors(path):
                file.stream.write(text.encode("utf-8"))
                file.stream.flush()
