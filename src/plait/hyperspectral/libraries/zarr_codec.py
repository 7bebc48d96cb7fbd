"""The codec of zarr format 3: from chunks of integers to bytes, with parts of chunks read by block."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np
from zarr.abc.codec import ArrayBytesCodec, ArrayBytesCodecPartialDecodeMixin
from zarr.abc.store import RangeByteRequest, SuffixByteRequest
from zarr.core.common import parse_named_configuration

from plait.hyperspectral.chunks import ChunkCoding
from plait.hyperspectral.containers import MAGIC, Window, read_container, read_extent, span
from plait.hyperspectral.streams import open_stream

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from zarr.abc.store import ByteGetter
    from zarr.core.array_spec import ArraySpec
    from zarr.core.buffer import Buffer, NDBuffer

#: Gives bytes from and to; from a negative number on, the last ones. None if there is no such chunk.
GetBytes: TypeAlias = Callable[[int, int | None], Awaitable[bytes | None]]

#: The end of a chunk that is asked for first: the index of a thousand blocks fits.
_END = 1 << 15


async def needed_bytes(get: GetBytes, window: Window | None) -> Any:
    """The bytes of a chunk, zeros in place of blocks that `window` does not need; None: no such chunk.

    `window` None asks for all. The result is a buffer for `plait.hyperspectral.streams.open_stream`.
    """
    if window is None:
        return await get(0, None)
    end = await get(-_END, None)
    if end is None:
        return None
    # Of a chunk that is shorter than what is asked for, some stores give only a part.
    extent = read_extent(end)
    if extent is None:
        return await get(0, None)
    whole, head, index = extent
    if whole == len(end):
        return end
    # No room is made for more than there is: whatever the end says, the bytes before it have to be there.
    last = whole - len(end)
    first = min(index, last - 1)
    before, start = await asyncio.gather(get(first, last), get(0, head))
    if before is None or start is None or len(before) != last - first:
        return await get(0, None)
    found = np.zeros(whole, np.uint8)
    found[: len(start)] = np.frombuffer(start, np.uint8)
    found[first:] = np.frombuffer(before + end, np.uint8)
    if bytes(found[: len(MAGIC)]) != MAGIC:
        # A plain stream that happens to end as containers do.
        return await get(0, None)
    blocks = read_container(found.data, "chunk")
    wanted = [one for one, where in zip(blocks.entries, blocks.grid, strict=True) if where.meets(window)]
    # The first block tells the parameters.
    ranges = [(one.offset, one.offset + one.length) for one in {blocks.entries[0], *wanted}]
    await _fetch(get, found, [(low, min(high, whole - len(end))) for low, high in sorted(ranges)])
    return found.data


async def _fetch(get: GetBytes, found: np.ndarray[Any, Any], ranges: list[tuple[int, int]]) -> None:
    joined: list[list[int]] = []
    for low, high in ranges:
        if joined and low <= joined[-1][1]:
            joined[-1][1] = max(high, joined[-1][1])
        elif low < high:
            joined.append([low, high])
    for low, high in joined:
        data = await get(low, high)
        if data is not None:
            found[low : low + len(data)] = np.frombuffer(data, np.uint8)


_NAME = "plait.ccsds123"


@dataclass(frozen=True)
class Ccsds123Codec(ArrayBytesCodec, ArrayBytesCodecPartialDecodeMixin):  # type: ignore[misc]
    """CCSDS 123 as the serializer of an array of zarr format 3; see `plait.hyperspectral.chunks.ChunkCoding`.

    It releases the GIL and keeps no state, so that zarr may work on several chunks at once.
    """

    axes: str = "yxz"
    preset: str = "default"
    blocks: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    checksum: bool = True

    is_fixed_size: ClassVar[bool] = False

    def __post_init__(self) -> None:
        # Checks them.
        self._coding()

    def _coding(self) -> ChunkCoding:
        names = [field.name for field in fields(ChunkCoding)]
        return ChunkCoding(**{name: getattr(self, name) for name in names})

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The codec that `to_dict` described in the metadata of an array."""
        parse_named_configuration({**data, "configuration": {}}, _NAME, require_configuration=False)
        return cls(**ChunkCoding.from_config(data.get("configuration", {})).config())

    def to_dict(self) -> dict[str, Any]:
        """The metadata of an array that uses it."""
        return {"name": _NAME, "configuration": self._coding().config()}

    def validate(self, *, shape: tuple[int, ...], dtype: Any, chunk_grid: Any) -> None:
        """Check that an array can be coded; InvalidInput if it cannot."""
        chunks = getattr(chunk_grid, "chunk_shape", None)
        self._coding().check(tuple(chunks or shape), dtype.to_native_dtype())

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: ArraySpec) -> int:
        """NotImplementedError always: so zarr asks codecs to say that their output has no fixed size."""
        raise NotImplementedError("the size of a compressed chunk is not known before it is compressed")

    async def _encode_single(self, chunk_data: NDBuffer, chunk_spec: ArraySpec) -> Buffer | None:
        return await asyncio.to_thread(self._encode_sync, chunk_data, chunk_spec)

    def _encode_sync(self, chunk_data: NDBuffer, chunk_spec: ArraySpec) -> Buffer | None:
        data = self._coding().encode(chunk_data.as_numpy_array())
        return chunk_spec.prototype.buffer.from_bytes(data)

    async def _decode_single(self, chunk_data: Buffer, chunk_spec: ArraySpec) -> NDBuffer:
        return await asyncio.to_thread(self._decode_sync, chunk_data, chunk_spec)

    def _decode_sync(self, chunk_data: Buffer, chunk_spec: ArraySpec) -> NDBuffer:
        coding = self._coding()
        with open_stream(chunk_data.to_bytes()) as cube:
            coding.check_stream(cube, chunk_spec.shape, chunk_spec.dtype.to_native_dtype())
            found = coding.read(cube)
        return _buffer(found.reshape(chunk_spec.shape), chunk_spec)

    async def _decode_partial_single(
        self, byte_getter: ByteGetter, selection: tuple[Any, ...], chunk_spec: ArraySpec
    ) -> NDBuffer | None:
        part = _Part.of(self._coding(), selection, chunk_spec.shape)

        async def get(first: int, last: int | None) -> bytes | None:
            asked: Any = None
            if first < 0:
                asked = SuffixByteRequest(-first)
            elif last is not None:
                asked = RangeByteRequest(first, last)
            found = await byte_getter.get(chunk_spec.prototype, asked)
            return None if found is None else found.to_bytes()

        data = await needed_bytes(get, part.window if self.blocks else None)
        if data is None:
            return None
        return await asyncio.to_thread(self._decode_part, data, part, chunk_spec)

    def _decode_part(self, data: Any, part: _Part, chunk_spec: ArraySpec) -> NDBuffer:
        coding, shape = self._coding(), chunk_spec.shape
        with open_stream(data) as cube:
            coding.check_stream(cube, shape, chunk_spec.dtype.to_native_dtype())
            found = coding.read(cube, part.window)
        before = len(shape) - len(self.axes)
        return _buffer(found.reshape((1,) * before + found.shape)[part.inner], chunk_spec)


class _Part(NamedTuple):
    """A part of a chunk: the window that is read, and what of it is meant."""

    window: Window
    inner: tuple[Any, ...]

    @classmethod
    def of(cls, coding: ChunkCoding, selection: tuple[Any, ...], shape: tuple[int, ...]) -> _Part:
        selection = selection if isinstance(selection, tuple) else (selection,)
        selection += (slice(None),) * (len(shape) - len(selection))
        sizes = dict(zip(coding.axes, shape[len(shape) - len(coding.axes) :], strict=True))
        bounds = {axis: [0, size] for axis, size in sizes.items()}
        inner = []
        for axis, chosen, size in zip(coding.axes.rjust(len(shape), "t"), selection, shape, strict=True):
            if axis in "yx" and isinstance(chosen, slice | int | np.integer):
                *bounds[axis], chosen = span(chosen, size)
            inner.append(chosen)
        return cls(Window(*bounds["y"], *bounds["x"]), tuple(inner))


def _buffer(found: NDArray[Any], chunk_spec: ArraySpec) -> NDBuffer:
    kind = chunk_spec.dtype.to_native_dtype()
    # Of a single sample, `ascontiguousarray` would make a row.
    return chunk_spec.prototype.nd_buffer.from_ndarray_like(np.asarray(found, kind, order="C"))
