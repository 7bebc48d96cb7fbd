"""The codecs of zarr and numcodecs: what is stored comes back, whatever the axes, blocks and selections."""

from __future__ import annotations

import asyncio
import importlib
import json
import struct
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest
import zarr
from support.examples import often
from zarr.abc.store import RangeByteRequest
from zarr.registry import get_codec_class, register_codec
from zarr.storage import MemoryStore

from plait.errors import FormatError, InvalidInput
from plait.hyperspectral.chunks import ChunkCoding
from plait.hyperspectral.containers import Window
from plait.hyperspectral.libraries.numcodecs_codec import Ccsds123
from plait.hyperspectral.libraries.zarr_codec import Ccsds123Codec, needed_bytes

NAME = "plait.ccsds123"
RAMP = (np.arange(40)[:, None, None] * 7 + np.arange(30)[:, None] * 3 + np.arange(6) * 50).astype(np.uint16)
CUBE = RAMP + np.random.default_rng(0).integers(0, 40, RAMP.shape, np.uint16)


@pytest.fixture(autouse=True)
def registered() -> None:
    """As the entry points do where plait is installed."""
    register_codec(NAME, Ccsds123Codec)
    numcodecs.register_codec(Ccsds123)


def test_entry_points_lead_to_the_classes(repository: Path) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = project["entry-points"]
    assert set(groups) == {"numcodecs.codecs", "xarray.backends", "zarr.codecs"}
    for group in groups.values():
        for target in group.values():
            module, _, name = target.partition(":")
            assert hasattr(importlib.import_module(module), name)
    assert set(groups["zarr.codecs"]) == {NAME} and groups["numcodecs.codecs"].keys() == {Ccsds123.codec_id}


def stored(axes: str, blocks: str | None, **options: Any) -> tuple[Any, Any, dict[str, Any]]:
    array = CUBE.transpose(["yxz".index(axis) for axis in axes])
    chunks = tuple({"y": 16, "x": 30, "z": 6}[axis] for axis in axes)
    kept: dict[str, Any] = {}
    made = zarr.create_array(
        MemoryStore(kept),
        shape=array.shape,
        chunks=chunks,
        dtype=array.dtype,
        serializer=Ccsds123Codec(axes=axes, blocks=blocks, **options),
        compressors=None,
    )
    made[...] = array
    return zarr.open_array(MemoryStore(kept)), array, kept


SELECTIONS: tuple[Any, ...] = (
    (slice(None),),
    (slice(3, 39, 5), slice(2, 9), slice(0, 3)),
    (5, 4, 2),
    (slice(None), 5, slice(1, 2)),
    (slice(5, 5),),
    (3,),
)


@pytest.mark.parametrize("blocks", [None, "rows:4", "tiles:8x16"], ids=["plain", "rows", "tiles"])
@pytest.mark.parametrize("axes", often(1, ["yxz", "zyx"]))
def test_zarr_format_3(axes: str, blocks: str | None) -> None:
    found, array, _ = stored(axes, blocks)
    assert get_codec_class(NAME) is Ccsds123Codec
    for selection in SELECTIONS:
        part = found[selection]
        assert np.array_equal(part, array[selection]) and np.asarray(part).dtype == array.dtype
    rows = [0, 5, 2]
    assert np.array_equal(found.oindex[rows, 1:3, :], array[rows, 1:3])
    assert np.array_equal(found.vindex[rows, rows, rows], array[rows, rows, rows])
    found[1:3, :2] = 9
    assert (found[1:3, :2] == 9).all() and np.array_equal(found[3:], array[3:])


def test_zarr_reads_only_the_blocks_that_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plait.hyperspectral.libraries.zarr_codec._END", 300)
    asked: list[int] = []
    found, array, kept = stored("yxz", "rows:2")
    store = found.store_path.store
    plain = store.get

    async def get(key: str, prototype: Any, byte_range: Any = None) -> Any:
        data = await plain(key, prototype, byte_range)
        if isinstance(byte_range, RangeByteRequest):
            asked.append(byte_range.end - byte_range.start)
        elif byte_range is None and key.startswith("c/"):
            asked.append(len(data.to_bytes()))
        return data

    monkeypatch.setattr(store, "get", get)
    assert np.array_equal(found[6:7], array[6:7])
    # Of the chunk: its header, what the end lacks of the index, the first block, and the one in question.
    size = len(kept["c/0/0/0"].to_bytes())
    assert 0 < sum(asked) < size // 2
    # A selection of rows one by one reads the whole chunk.
    assert np.array_equal(found.oindex[[1, 6], :, :], array[[1, 6]])


@pytest.mark.parametrize("more", [-1, 0, 1, 100, 10_000])
def test_parts_of_chunks_about_as_long_as_what_is_asked_for_first(
    more: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Asked for more last bytes than there are, zarr's MemoryStore may give fewer than there are.
    found, array, kept = stored("yxz", "rows:2")
    size = len(kept["c/0/0/0"].to_bytes())
    monkeypatch.setattr("plait.hyperspectral.libraries.zarr_codec._END", size + more)
    assert np.array_equal(found[3:9, 2], array[3:9, 2]) and np.array_equal(found[...], array)


def test_zarr_keeps_how_chunks_are_coded() -> None:
    options = {"preset": "fast", "parameters": {"coder": "block-adaptive", "block_size": 16, "order": "bsq"}}
    found, array, kept = stored("zyx", "rows:4", **options)
    metadata = json.loads(kept["zarr.json"].to_bytes())
    expected = {"name": NAME, "configuration": {"axes": "zyx", "blocks": "rows:4", **options}}
    assert metadata["codecs"] == [expected]
    (codec,) = found.metadata.codecs
    assert codec.to_dict() == expected and np.array_equal(found[...], array)


def test_fill_values_signed_samples_and_leading_dimensions() -> None:
    array = -CUBE[None, None].astype(np.int32) * 1000
    found = zarr.create_array(
        MemoryStore(),
        shape=(3, 1, *CUBE.shape),
        chunks=(1, 1, 16, 16, 6),
        dtype="int32",
        fill_value=-1,
        serializer=Ccsds123Codec(),
        compressors=None,
    )
    found[1:2] = array
    assert (
        np.array_equal(found[1:2], array)
        and (found[0] == -1).all()
        and found[1, 0, 3, 4, 5] == array[0, 0, 3, 4, 5]
    )


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"axes": "yzz"}, "axes: found 'yzz'"),
        ({"preset": "slow"}, "preset: found 'slow'"),
        ({"parameters": {"prediction_bands": 99}}, "prediction_bands: found 99"),
        ({"parameters": {"predicted": 1}}, "parameters: found predicted"),
    ],
    ids=["axes", "preset", "value", "name"],
)
def test_wrong_codings(options: Any, told: str) -> None:
    for kind in (ChunkCoding, Ccsds123Codec, Ccsds123):
        with pytest.raises(InvalidInput, match=told):
            kind(**options)


@pytest.mark.parametrize(
    ("shape", "chunks", "dtype", "told"),
    [
        ((4, 4, 4), (4, 4, 4), "float32", "floating-point numbers"),
        ((4, 4, 4), (4, 4, 4), "int64", "integers of 64 bits"),
        ((4, 4), (4, 4), "uint16", r"a shape of \(4, 4\)"),
        ((4, 4, 4, 4), (2, 4, 4, 4), "uint16", r"a shape of \(2, 4, 4, 4\)"),
    ],
    ids=["float", "wide", "flat", "leading"],
)
def test_arrays_that_cannot_be_coded(shape: Any, chunks: Any, dtype: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        zarr.create_array(
            MemoryStore(),
            shape=shape,
            chunks=chunks,
            dtype=dtype,
            serializer=Ccsds123Codec(),
            compressors=None,
        )


def test_a_chunk_of_another_array_is_refused() -> None:
    found, _, kept = stored("yxz", None)
    data = ChunkCoding().encode(CUBE[:4])
    kept["c/0/0/0"] = kept["c/0/0/0"].from_bytes(data)
    with pytest.raises(
        FormatError, match=r"a stream of shape \(4, 30, 6\), expected one of shape \(16, 30, 6\)"
    ):
        found[:4]
    assert np.array_equal(found[16:], CUBE[16:])


@pytest.mark.parametrize("kind", ["u1", "i2", ">u2", "<u4", ">i4"])
def test_numcodecs(kind: str) -> None:
    array = (CUBE // 4).astype(kind)
    codec = numcodecs.get_codec({"id": NAME, "dtype": kind, "preset": "fast"})
    assert codec == numcodecs.get_codec(codec.get_config()) and "fast" in repr(codec)
    data = codec.encode(array)
    found = codec.decode(data)
    assert np.array_equal(found, array) and found.dtype == array.dtype
    out = np.empty_like(array)
    codec.decode(bytearray(data), out)
    assert np.array_equal(out, array)


def test_numcodecs_refuses_another_type() -> None:
    with pytest.raises(InvalidInput, match=r"samples of type >u2.*ask for Ccsds123\(dtype='>u2'\)"):
        Ccsds123().encode(CUBE.astype(">u2"))
    with pytest.raises(InvalidInput, match=r"samples of type [<>]i2"):
        Ccsds123(dtype="u2").encode(CUBE.astype(np.int16))


@pytest.mark.parametrize("place", ["filters", "compressors"])
def test_zarr_format_2(place: str) -> None:
    options: Any = {"filters": None, "compressors": None, place: [Ccsds123(dtype=">u2", blocks="rows:8")]}
    store = MemoryStore()
    made = zarr.create_array(
        store, shape=CUBE.shape, chunks=(16, 30, 6), dtype=">u2", zarr_format=2, **options
    )
    made[...] = CUBE
    assert np.array_equal(zarr.open_array(store, zarr_format=2)[...], CUBE)


def test_threads_share_a_codec() -> None:
    codec = Ccsds123(axes="yx")
    images = [np.ascontiguousarray(CUBE[..., k % 6] + k) for k in range(24)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda image: codec.decode(codec.encode(image)), images))
    assert all(map(np.array_equal, images, found))


def test_a_chunk_that_says_it_is_longer_than_it_is() -> None:
    end = struct.pack("<QQI8s", 1 << 46, 64, 0, b"PLHSIend")
    data = bytes(range(256)) * 200 + end
    asked: list[int] = []

    async def get(first: int, last: int | None) -> bytes:
        asked.append(first)
        return data[first:last]

    with ThreadPoolExecutor(1) as apart:  # what looks at pages leaves a loop to this thread
        found = apart.submit(asyncio.run, needed_bytes(get, Window(0, 1, 0, 1))).result()
    # All that there is, and no room for what there is not.
    assert bytes(found) == data and asked[-1] == 0


def test_streams_of_other_samples_than_the_array_has() -> None:
    wide = Ccsds123(dtype="<i4").encode(np.full((2, 3, 4), -70_000, "<i4"))
    with pytest.raises(FormatError, match="a stream of int32, expected one of int16"):
        Ccsds123(dtype="<i2").decode(wide)
    found, _, kept = stored("yxz", None)
    kept["c/0/0/0"] = kept["c/0/0/0"].from_bytes(ChunkCoding().encode(np.full(found.chunks, 1 << 20, "u4")))
    with pytest.raises(FormatError, match="a stream of uint32, expected one of"):
        found[0, 0, 0]
