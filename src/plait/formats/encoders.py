"""Compress text as it is written, so that equal text gives equal bytes."""

from __future__ import annotations

import zlib
from typing import Protocol

__all__ = ["Encoder", "encoder"]

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
