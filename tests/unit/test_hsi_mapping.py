"""Cubes whose samples the standard does not have: floating-point numbers, and integers of 64 bits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray
from support.examples import examples

from plait.cli import main
from plait.errors import FormatError, InvalidInput
from plait.formats.cubes.files import RawShape
from plait.hyperspectral import (
    as_cube,
    compress_cube,
    compress_file,
    decompress_file,
    open_stream,
    verify_file,
)
from plait.hyperspectral.cubes import ArrayCube
from plait.hyperspectral.files import describe
from plait.hyperspectral.mapping import SampleMapping, _packed, mapped

SHAPE = (6, 5, 4)


def _bits(samples: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(samples).view(f"u{samples.itemsize}")


def _there_and_back(samples: NDArray[Any]) -> SampleMapping:
    cube = mapped(ArrayCube(samples))
    found = cube.read(0, len(samples))
    assert found.dtype == np.uint32 and int(found.max()).bit_length() <= cube.bits <= 32
    back = cube.mapping.from_integers(found)
    assert back.dtype == samples.dtype
    np.testing.assert_array_equal(_bits(back), _bits(samples))
    assert SampleMapping.from_json(json.loads(json.dumps(cube.mapping.to_json())), "a") == cube.mapping
    return cube.mapping


@examples(120)
@given(arrays.arrays(np.uint32, SHAPE))
def test_every_bit_pattern_of_float32_comes_back(patterns: NDArray[np.uint32]) -> None:
    _there_and_back(patterns.view(np.float32))


def test_numbers_that_are_unlike_others() -> None:
    odd = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1e-45, -1e-45, 3.4e38, 1 / 3], np.float32)
    mapping = _there_and_back(np.resize(odd, SHAPE))
    assert mapping.kind == "order" and mapping.shift == 0
    # In the order of the numbers, two zeros apart.
    rising = np.sort(odd[~np.isnan(odd)]).reshape(-1, 1, 1)
    made = mapped(ArrayCube(rising)).read(0, len(rising))[:, 0, 0].astype(np.int64)
    assert (np.diff(made) >= 0).all()


@examples(60)
@given(
    arrays.arrays(np.int64, SHAPE, elements=st.integers(-(10**6), 10**6)),
    st.integers(0, 6),
    st.sampled_from(["float32", "float64"]),
    st.booleans(),
)
def test_scaled_integers_become_what_they_were(
    whole: NDArray[np.int64], digits: int, kind: str, multiplied: bool
) -> None:
    dtype = np.dtype(kind)
    whole = np.where(np.abs(whole) < 1 << 20, whole, 0)
    if multiplied:
        samples = whole.astype(dtype) * dtype.type(10.0**-digits)
    else:
        samples = (whole / 10**digits).astype(dtype)
    mapping = _there_and_back(samples)
    assert mapping.kind in ("quotient", "product") and mapping.digits <= digits


@examples(60)
@given(st.integers(-(1 << 62), 1 << 62), arrays.arrays(np.uint32, SHAPE))
def test_integers_of_64_bits_whose_range_fits(base: int, more: NDArray[np.uint32]) -> None:
    assert _there_and_back(more.astype(np.int64) + base).kind == "offset"
    if base >= 0:
        _there_and_back(more.astype(np.uint64) + np.uint64(base) + np.uint64(1 << 62))


@examples(60)
@given(
    st.lists(arrays.arrays(np.uint32, 9), min_size=2, max_size=2),
    arrays.arrays(np.uint8, (20, 12, 2), elements=st.integers(0, 8)),
    st.booleans(),
)
def test_few_different_numbers_in_each_band(
    patterns: list[NDArray[np.uint32]], chosen: NDArray[np.uint8], wide: bool
) -> None:
    bands = [own.view(np.float32) for own in patterns]
    if wide:
        bands = [(own.astype(np.uint64) << np.uint64(21) | np.uint64(5)).view(np.float64) for own in patterns]
    samples = np.stack([own[chosen[..., z]] for z, own in enumerate(bands)], axis=2)
    mapping = _there_and_back(samples)
    assert mapping.kind in ("levels", "quotient", "product")


@pytest.mark.parametrize("kind", ["f4", "f8"])
def test_calibrated_integers_are_found_again(tmp_path: Path, kind: str) -> None:
    rng = np.random.default_rng(8)
    whole = (500 + 60 * np.sin(np.arange(80)[:, None, None] / 9) + rng.integers(0, 9, (80, 70, 6))).astype(
        int
    )
    cube = (whole * rng.uniform(1e-4, 2e-4, 6) + rng.uniform(0, 1e-3, 6)).astype(kind)
    np.save(tmp_path / "a.npy", cube)
    done = compress_file(tmp_path / "a.npy", tmp_path / "a.c123", blocks="rows:30", checksum=True)
    assert "places among the numbers that a band has" in done.notes[0]
    # All rows of a band have the same numbers, so that the integers are as close together as before.
    assert done.summary.parameters.image.dynamic_range <= 8 and done.summary.bits_per_sample < 6
    decompress_file(tmp_path / "a.c123", tmp_path / "b.npy")
    assert (tmp_path / "b.npy").read_bytes() == (tmp_path / "a.npy").read_bytes()
    assert "levels" not in describe(tmp_path / "a.c123")["origin"]["mapping"]
    compress_file(tmp_path / "a.npy", tmp_path / "c.c123")
    beside = json.loads((tmp_path / "c.c123.json").read_text())
    del beside["crc32"]
    for wrong in ("", "x", "AAAA", _packed([np.arange(3)]), _packed([np.arange(3)] * 6)):
        beside["mapping"]["levels"] = wrong
        (tmp_path / "c.c123.json").write_text(json.dumps(beside))
        with open_stream(tmp_path / "c.c123") as opened, pytest.raises(FormatError, match=r"c\.c123"):
            opened.read(0, 80)


def test_bits_that_are_zero_in_all_samples_are_left_out() -> None:
    halves = (np.random.default_rng(1).standard_normal(SHAPE) ** 3).astype(np.float16)
    mapping = _there_and_back(halves.astype(np.float32))
    assert mapping.kind == "order" and mapping.shift == 13


@pytest.mark.parametrize(
    ("samples", "told"),
    [
        (np.array([[[0, 1 << 32]]]), "int64 samples, among them 0 and 4294967296.*32 bits"),
        (np.array([[[0.1, 1 / 3]]]), r"float64 samples, neither whole.*astype\('float32'\)"),
        (np.array([[[np.nan, 1.0]]]), "float64 samples"),
    ],
    ids=["range", "float64", "nan"],
)
def test_what_cannot_be_kept(samples: NDArray[Any], told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        mapped(ArrayCube(samples))


def test_samples_that_change_while_they_are_read() -> None:
    samples = np.full(SHAPE, 0.25, np.float32)
    cube = mapped(ArrayCube(samples))
    samples[3, 1, 2] = 1 / 3
    with pytest.raises(InvalidInput, match="looked through"):
        cube.read(0, 6)


def _reflectance(dtype: str = "f4") -> NDArray[Any]:
    rng = np.random.default_rng(3)
    y, x, z = np.ogrid[:40, :30, :8]
    found = 0.3 + 0.1 * np.sin(y / 7 + z) + 0.05 * np.cos(x / 5) + 0.002 * rng.standard_normal((40, 30, 8))
    found[3, 4, 5] = np.nan
    return found.astype(dtype)


@pytest.mark.parametrize("blocks", [None, "tiles:20x15"])
@pytest.mark.parametrize("order", ["<", ">"])
def test_files_of_float32(tmp_path: Path, blocks: str | None, order: str) -> None:
    cube = _reflectance()
    raw = RawShape(shape=cube.shape, dtype=f"{order}f4", interleave="bil")
    (tmp_path / "a.dat").write_bytes(cube.transpose(0, 2, 1).astype(f"{order}f4").tobytes())
    done = compress_file(
        tmp_path / "a.dat", tmp_path / "a.c123", raw=raw, blocks=blocks, checksum=blocks is not None
    )
    assert "float32 as bit patterns" in done.notes[0] and "would take far less" in done.notes[0]
    with open_stream(tmp_path / "a.c123") as opened:
        assert opened.dtype == np.float32 and opened.stored_type == np.uint32
        np.testing.assert_array_equal(_bits(opened.read(2, 9, 3, 20)), _bits(cube[2:9, 3:20]))
        np.testing.assert_array_equal(_bits(np.concatenate(list(opened.rows(threads=2)))), _bits(cube))
        assert opened.verify() == ()
    (tmp_path / "back").mkdir()
    decompress_file(tmp_path / "a.c123", tmp_path / "back")
    assert (tmp_path / "back/a.dat").read_bytes() == (tmp_path / "a.dat").read_bytes()
    assert verify_file(tmp_path / "a.c123", tmp_path / "a.dat", raw=raw).faults == ()
    changed = cube.copy()
    changed[7, 8, 1] = -changed[7, 8, 1]
    np.save(tmp_path / "b.npy", changed)
    told = verify_file(tmp_path / "a.c123", tmp_path / "b.npy").faults
    assert told == ("1 of 9,600 samples differ, the first in row 7, column 8, band 1",)


def test_a_side_index_of_float32(tmp_path: Path) -> None:
    cube = np.tile(_reflectance(), (4, 1, 1))
    compress_cube(
        as_cube(cube), tmp_path / "a.c123", index=tmp_path / "a.index", checksum=True, preset="auto"
    )
    with open_stream(tmp_path / "a.c123", index=tmp_path / "a.index") as opened:
        assert len(opened.windows) == 3
        np.testing.assert_array_equal(_bits(opened.read(100, 140)), _bits(cube[100:140]))
        assert opened.verify() == ()


@pytest.mark.parametrize("kind", ["int64", "uint64", "float64"])
def test_files_of_64_bits(tmp_path: Path, kind: str) -> None:
    cube = np.random.default_rng(4).integers(3_000_000_000, 3_000_000_900, (9, 8, 3)).astype(kind)
    np.save(tmp_path / "a.npy", cube)
    done = compress_file(tmp_path / "a.npy", tmp_path / "a.c123")
    assert done.summary.parameters.image.dynamic_range == 10 and done.summary.bits_per_sample < 16
    assert len(done.notes) == 1 and kind in done.notes[0]
    decompress_file(tmp_path / "a.c123", tmp_path / "b.npy")
    assert (tmp_path / "b.npy").read_bytes() == (tmp_path / "a.npy").read_bytes()


def test_what_they_were_has_to_be_kept(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", _reflectance())
    with pytest.raises(InvalidInput, match="nothing kept of what they were"):
        compress_file(tmp_path / "a.npy", tmp_path / "a.c123", keep_origin=False)
    with pytest.raises(InvalidInput, match="nothing kept of what they were"):
        compress_cube(as_cube(_reflectance()), [].append)
    pieces: list[bytes] = []
    compress_cube(as_cube(_reflectance()), pieces.append, blocks="rows:20")
    with open_stream(b"".join(pieces)) as opened:
        np.testing.assert_array_equal(_bits(opened.read(0, 40)), _bits(_reflectance()))


@pytest.mark.parametrize(
    "change",
    [
        {"mapping": {}},
        {"mapping": {"dtype": "float32"}},
        {"kind": "offset"},
        {"dtype": "float64"},
        {"digits": 99},
        {"base": 1 << 63},
        {"shift": True},
        {"shift": 32},
    ],
    ids=str,
)
def test_a_description_that_does_not_fit(tmp_path: Path, change: dict[str, Any]) -> None:
    path = tmp_path / "a.c123"
    compress_cube(as_cube(_reflectance()), path)
    beside = tmp_path / "a.c123.json"
    found = json.loads(beside.read_text())
    del found["crc32"]
    found["mapping"] = change["mapping"] if "mapping" in change else {**found["mapping"], **change}
    beside.write_text(json.dumps(found))
    with pytest.raises(FormatError, match=r"a\.c123"):
        open_stream(path)


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "a.npy", np.rint(_reflectance()[4:] * 10_000).astype("f4") / np.float32(10_000))
    stream = tmp_path / "a.c123"
    assert main(["hsi", "compress", str(tmp_path / "a.npy"), "-o", str(stream)]) == 0
    assert "note: " in (told := capsys.readouterr().err) and "divided by 1e4" in told
    assert main(["hsi", "info", str(stream)]) == 0
    assert "kind quotient" in capsys.readouterr().out
    assert main(["hsi", "verify", str(stream), str(tmp_path / "a.npy")]) == 0
    assert main(["hsi", "compress", str(tmp_path / "a.npy"), "-o", str(stream), "--bare"]) == 2


def test_a_way_that_fits_the_first_rows_alone() -> None:
    cube = np.round(np.random.default_rng(4).uniform(0, 50, (300, 40, 30)), 2).astype(np.float32)
    cube[299, 39, 29] = np.float32(1.2345)
    found = mapped(ArrayCube(cube))
    assert (found.mapping.kind, found.mapping.digits) == ("quotient", 4)
    np.testing.assert_array_equal(_bits(found.mapping.from_integers(found.read(0, 300))), _bits(cube))
    with pytest.raises(InvalidInput, match=f"int64 samples, among them -5 and {1 << 40}"):
        mapped(ArrayCube(np.array([-5, 7] * 300_000 + [1 << 40]).reshape(-1, 1, 1)[-65_536:]))
