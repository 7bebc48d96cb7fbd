"""The codec of numcodecs, for zarr format 2 and whatever else takes such codecs."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numcodecs.abc import Codec
from numcodecs.compat import ensure_bytes, ensure_ndarray_like, ndarray_copy

from plait.errors import InvalidInput
from plait.formats.cubes.layout import check_sample_type
from plait.hyperspectral.chunks import ChunkCoding, check_samples


class Ccsds123(Codec):  # type: ignore[misc]  # numcodecs has no types
    """CCSDS 123 for chunks of integers with two or three dimensions; see `ChunkCoding` for the options.

    `dtype` is the type that `decode` gives, such as ``">u2"``; otherwise the plain type of the encoded chunks
    in the byte order of this machine. It releases the GIL and keeps no state, so that several threads may use
    one.
    """

    codec_id: ClassVar[str] = "plait.ccsds123"

    def __init__(
        self,
        axes: str = "yxz",
        dtype: str | None = None,
        preset: str = "default",
        blocks: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        checksum: bool = True,
    ) -> None:
        given = {} if parameters is None else parameters
        self._coding = ChunkCoding(
            axes=axes, preset=preset, blocks=blocks, parameters=given, checksum=checksum
        )
        try:
            self._dtype = None if dtype is None else np.dtype(dtype)
        except (TypeError, ValueError) as error:
            expected = "a type such as >u2"
            raise InvalidInput("dtype", found=reprlib.repr(dtype), expected=expected) from error
        if self._dtype is not None:
            check_sample_type(self._dtype, "dtype", standard=True)

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """The codec that `get_config` described."""
        given = {name: value for name, value in config.items() if name not in ("id", "dtype")}
        return cls(dtype=config.get("dtype"), **ChunkCoding.from_config(given).config())

    def get_config(self) -> dict[str, Any]:
        """Everything that makes another codec like this one."""
        found = {"id": self.codec_id, **self._coding.config()}
        return found if self._dtype is None else found | {"dtype": self._dtype.str}

    def __repr__(self) -> str:
        told = ", ".join(f"{name}={value!r}" for name, value in self.get_config().items() if name != "id")
        return f"{type(self).__name__}({told})"

    def encode(self, buf: Any) -> bytes:
        """Compress an array of integers, whose shape matters.

        InvalidInput if it is no such array, or has another type than `decode` would give.
        """
        chunk = np.asarray(ensure_ndarray_like(buf))
        expected = chunk.dtype.newbyteorder("=") if self._dtype is None else self._dtype
        if chunk.dtype != expected:
            raise InvalidInput(
                "dtype",
                found=f"samples of type {chunk.dtype.str}",
                expected=f"{expected.str}, which decode gives",
                hint=f"ask for Ccsds123(dtype={chunk.dtype.str!r})",
            )
        # Bits of the whole type, because decode has nothing else to tell it from.
        return self._coding.encode(chunk, 8 * chunk.dtype.itemsize)

    def decode(self, buf: Any, out: Any = None) -> Any:
        """Decompress what `encode` gave, into `out` or a new array."""
        found = self._coding.decode(ensure_bytes(buf))
        if self._dtype is not None:
            check_samples(found.dtype, self._dtype)
        return ndarray_copy(np.ascontiguousarray(found, self._dtype), out)
