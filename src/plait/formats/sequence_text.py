"""The beginning of a file of sequences: whether it is text, and where it starts."""

from __future__ import annotations

import os
from typing import Final

from plait.errors import FormatError
from plait.formats.compression import ByteSource, FileKind, foreign_content, sniff

__all__ = ["first_text", "sequence_file_kind", "shown_start"]

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_SHOWN: Final = 40


def sequence_file_kind(path: str | os.PathLike[str], expected: str) -> FileKind:
    """How a file of sequences is compressed.

    Parameters
    ----------
    path
        The file.
    expected
        What the caller reads, for messages.

    Returns
    -------
    FileKind
        Anything but Parquet.

    Raises
    ------
    FormatError
        If the file is empty or is of a known kind that holds no sequences.
    """
    try:
        kind = sniff(path)
    except FormatError as error:
        if isinstance(error.__cause__, OSError):
            raise
        # Its words are about tables.
        raise FormatError(path, found=error.found, expected=expected) from None
    if kind is FileKind.PARQUET:
        raise FormatError(path, found="a Parquet file", expected=expected)
    return kind


def first_text(source: ByteSource, size: int, expected: str) -> tuple[bytes, int]:
    """Text from the first line on that is not blank.

    Parameters
    ----------
    source
        The file, at its start.
    size
        Bytes to read in one go.
    expected
        What the caller reads, for messages.

    Returns
    -------
    text : bytes
        What was read of it; empty if all lines are blank.
    line : int
        1-based number of the line on which it stands.

    Raises
    ------
    FormatError
        If the content is of a known kind that holds no sequences.
    """
    line = 1
    text = source.read(max(size, _SHOWN)).removeprefix(_BYTE_ORDER_MARK)
    foreign = foreign_content(source.path, text)
    if foreign:
        raise FormatError(source.path, found=foreign.found, expected=expected)
    while text:
        first = text.lstrip()
        line += text.count(b"\n", 0, len(text) - len(first))
        if first:
            return first, line
        text = source.read(size)
    return b"", line


def shown_start(path: object, text: bytes, expected: str) -> str:
    """The first line of a file in quotes, for a message that it is none of sequences.

    Parameters
    ----------
    path
        The file.
    text
        What it begins with; not empty.
    expected
        What the caller reads, for messages.

    Raises
    ------
    FormatError
        If it is no text at all.
    """
    shown = text[:_SHOWN].splitlines()[0]
    if b"\0" in text or not shown.isascii():
        raise FormatError(path, found=f"binary data, starting with {shown!r}", expected=expected)
    return repr(shown.decode())
