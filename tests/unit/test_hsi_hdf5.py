"""CCSDS 123 as a filter of HDF5, through h5py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plait.errors import InvalidInput
from plait.hyperspectral.containers import MAGIC
from plait.hyperspectral.libraries.hdf5_filter import FILTER_ID, filter_options, register_filter

h5py = pytest.importorskip("h5py", reason="h5py is not installed")

CUBE = 2000 + np.cumsum(np.random.default_rng(1).integers(-9, 10, (20, 18, 7)), axis=0)


@pytest.mark.parametrize("kind", ["<u2", ">u2", "<i2", ">i4", "u1"])
@pytest.mark.parametrize(("axes", "order"), [("yxz", (0, 1, 2)), ("zyx", (2, 0, 1))])
def test_there_and_back(tmp_path: Path, kind: str, axes: str, order: tuple[int, ...]) -> None:
    cube = (CUBE % 250 if kind == "u1" else CUBE).transpose(order).astype(kind)
    # Chunks at the ends are not whole.
    chunks = tuple({"y": 8, "x": 18, "z": 7}[axis] for axis in axes)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        made = file.create_dataset("cube", cube.shape, kind, **filter_options(chunks, kind, axes=axes))
        made[...] = cube
    with h5py.File(tmp_path / "a.h5") as file:
        found = file["cube"]
        assert found.dtype == np.dtype(kind) and str(FILTER_ID) in found._filters
        np.testing.assert_array_equal(found[...], cube)
        np.testing.assert_array_equal(found[3:9, 2:5, 1:3], cube[3:9, 2:5, 1:3])
        # Chunks are containers of standard streams, which plait reads from bytes as well.
        assert found.id.read_direct_chunk((0, 0, 0))[1].startswith(MAGIC)
        assert kind == "u1" or found.id.get_storage_size() < cube.nbytes


def test_chunks_of_one_time(tmp_path: Path) -> None:
    series = np.stack([CUBE, CUBE + 1]).astype(np.uint16)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        options = filter_options((1, 20, 18, 7), "u2", preset="auto")
        file.create_dataset("cubes", data=series, **options)
    with h5py.File(tmp_path / "a.h5") as file:
        np.testing.assert_array_equal(file["cubes"][1], series[1])


@pytest.mark.parametrize("wrong", ["bytes", "numbers"])
def test_damage(tmp_path: Path, wrong: str, caplog: pytest.LogCaptureFixture) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        options = filter_options((20, 18, 7), "u2")
        if wrong == "numbers":
            options["compression_opts"] = (99, *options["compression_opts"][1:])
        made = file.create_dataset("cube", CUBE.shape, "u2", **options)
        if wrong == "numbers":
            made.id.write_direct_chunk((0, 0, 0), b"x" * 50)
        else:
            made[...] = CUBE
            data = bytearray(made.id.read_direct_chunk((0, 0, 0))[1])
            data[len(data) // 2] ^= 1
            made.id.write_direct_chunk((0, 0, 0), bytes(data))
    with h5py.File(tmp_path / "a.h5") as file, pytest.raises(OSError, match="filter"):
        file["cube"][...]
    told = "version 1 of the filter" if wrong == "numbers" else "checksum"
    assert told in caplog.text


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"dtype": "f4"}, "floating-point numbers"),
        ({"axes": "yy"}, "axes: found 'yy'"),
        ({"chunks": (2, 3)}, "3 dimensions"),
        ({"preset": "tiny"}, "preset: found 'tiny'"),
    ],
    ids=["type", "axes", "shape", "preset"],
)
def test_what_cannot_be(given: dict[str, Any], told: str) -> None:
    register_filter()
    options = {"chunks": (2, 3, 4), "dtype": "u2", **given}
    with pytest.raises(InvalidInput, match=told):
        filter_options(options.pop("chunks"), options.pop("dtype"), **options)
