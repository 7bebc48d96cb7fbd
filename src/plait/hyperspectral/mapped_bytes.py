"""Bytes of large files that are mapped into memory, looked through without keeping them there."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import Final

__all__ = ["PIECE_BYTES", "let_go", "pieces"]

#: So many bytes are looked at before they are let go of.
PIECE_BYTES: Final = 1 << 24


def let_go(view: memoryview) -> None:
    """Let go of the pages of a mapped file, which would count as memory of the process; they are read again.

    Parameters
    ----------
    view
        Any part of it; of other buffers nothing is done.
    """
    file = view.obj
    if isinstance(file, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        file.madvise(mmap.MADV_DONTNEED)


def pieces(view: memoryview) -> Iterator[memoryview]:
    """The same bytes in pieces, of which each is let go of.

    Parameters
    ----------
    view
        The bytes.
    """
    for first in range(0, len(view), PIECE_BYTES):
        yield view[first : first + PIECE_BYTES]
        let_go(view)
