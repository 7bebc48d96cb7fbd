"""Compressed cubes in xarray and Spectral Python, and cubes of other libraries as input."""

from __future__ import annotations

import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from plait.errors import InvalidInput, TargetUnavailable
from plait.formats.cubes.files import RawShape
from plait.hyperspectral import as_cube, compress_cube, compress_file, open_image
from plait.hyperspectral.containers import Window
from plait.hyperspectral.cube_objects import KeptParts
from plait.hyperspectral.libraries.xarray_backend import CubeBackend
from plait.hyperspectral.mapping import mapped
from plait.hyperspectral.streams import CompressedCube, open_stream

CUBE = np.random.default_rng(0).integers(0, 900, (21, 17, 5)).astype(np.uint16)
HEADER = """ENVI
samples = 17
lines = 21
bands = 5
data type = 12
interleave = bil
byte order = 0
sensor type = AVIRIS
data ignore value = 0
wavelength units = Nanometers
wavelength = {400, 500, 600, 700, 800}
fwhm = {9, 9, 9, 9, 10.5}
band names = {a, b, c, d, e}
reflectance scale factor = 10000
map info = {UTM, 1.0, 1.0, 500000, 4000000, 20, 20, 33, North, WGS-84}
"""


@pytest.fixture(params=[None, "rows:6", "tiles:8x9"], ids=["plain", "rows", "tiles"])
def path(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    (tmp_path / "scene.hdr").write_text(HEADER)
    (tmp_path / "scene.img").write_bytes(CUBE.transpose(0, 2, 1).tobytes())
    compress_file(tmp_path / "scene.hdr", tmp_path / "scene.c123", blocks=request.param, threads=1)
    return tmp_path / "scene.c123"


# --- xarray ---------------------------------------------------------------------------------------------

KEYS: tuple[Any, ...] = (
    {},
    {"band": 2},
    {"y": slice(3, 19, 4), "x": slice(None, None, -1)},
    {"y": -1, "x": slice(4, 4)},
    {"band": [4, 0], "y": [2, 7, 7], "x": [1, 3]},
    {"y": xr.DataArray([1, 2, 20], dims="p"), "x": xr.DataArray([3, 0, -1], dims="p")},
    {"y": slice(15, 2, -3), "band": slice(1, None, 2)},
    {"y": []},
)


def test_xarray_reads_what_numpy_has(path: Path) -> None:
    plain = xr.DataArray(CUBE.transpose(2, 0, 1), dims=("band", "y", "x"))
    with xr.open_dataset(path, engine=CubeBackend) as found:
        cube = found["cube"]
        assert cube.dtype == np.uint16 and cube.dims == ("band", "y", "x") and cube.shape == plain.shape
        for key in KEYS:
            part = cube.isel(key)
            assert part.dtype == np.uint16 and np.array_equal(part.values, plain.isel(key).values)
        assert np.array_equal(cube.isel(y=slice(2, 9)).transpose("y", "x", "band")[3].values, CUBE[5])


def test_xarray_has_what_the_header_says(path: Path) -> None:
    with xr.open_dataset(path, engine=CubeBackend) as found:
        cube = found["cube"]
        assert cube.wavelength.values.tolist() == [400, 500, 600, 700, 800] and cube.fwhm[4] == 10.5
        assert cube.band_name.values.tolist() == list("abcde")
        assert cube.attrs["sensor_type"] == "AVIRIS" and "lines" not in cube.attrs
        # No attribute of a name that makes others mask or scale.
        assert "_FillValue" not in cube.attrs and "scale_factor" not in cube.attrs
        assert cube.x.values[:2].tolist() == [500010, 500030] and cube.y.values[0] == 4000000 - 10
        assert cube.sel(x=500030, y=4000000 - 30)[1] == CUBE[1, 1, 1]
    with xr.open_dataset(path, engine=CubeBackend, drop_variables="fwhm") as found:
        assert "fwhm" not in found["cube"].coords


def test_xarray_reads_late_and_little(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    plain = CompressedCube.read

    def read(self: CompressedCube, *window: Any) -> Any:
        asked.append(self.windows.index(window))
        return plain(self, *window)

    monkeypatch.setattr(CompressedCube, "read", read)
    with xr.open_dataset(path, engine=CubeBackend) as found:
        part = found["cube"].isel(y=slice(3, 12), x=slice(2, None))[:, 1:4]
        assert asked == []
        for _ in range(2):
            assert np.array_equal(part.values, CUBE[4:7, 2:].transpose(2, 0, 1))
        parts = found["cube"].encoding["preferred_chunks"]
    # Each block that has to do with it, once.
    assert asked == {(21, 17): [0], (6, 17): [0, 1], (8, 9): [0, 1]}[parts["y"], parts["x"]]


@pytest.mark.parametrize("most", [1, 1500, 1 << 20], ids=["nothing", "little", "all"])
def test_parts_are_kept(path: Path, most: int) -> None:
    rng = np.random.default_rng(1)
    with open_stream(path) as cube:
        kept = KeptParts(cube, most)
        windows = [Window(y, y + 2, 0, 17) for y in range(20)]
        for _ in range(12):
            (y0, y1), (x0, x1) = (sorted(rng.integers(0, size, 2)) for size in (22, 18))
            windows.append(Window(int(y0), int(y1), int(x0), int(x1)))
        for window in windows:
            expected = CUBE[window.first_row : window.last_row, window.first_column : window.last_column]
            assert np.array_equal(kept.read(*window), expected)
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda window: kept.read(*window), windows[:20]))
        assert all(np.array_equal(one, CUBE[y : y + 2]) for y, one in enumerate(found))
        kept.close()


def test_rows_of_a_large_part_are_decoded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compress_cube(as_cube(CUBE), tmp_path / "a.c123")
    begun = []
    plain = CompressedCube.part_rows

    def part_rows(self: CompressedCube, part: int, last: int) -> Any:
        begun.append(part)
        return plain(self, part, last, 4)

    monkeypatch.setattr(CompressedCube, "part_rows", part_rows)
    with open_stream(tmp_path / "a.c123") as cube:
        kept = KeptParts(cube, 10)
        for row in [*range(21), 3]:
            assert np.array_equal(kept.read(row, row + 1, 2, 9), CUBE[row : row + 1, 2:9])
        kept.close()
    # Once, and again for a row before.
    assert begun == [0, 0]


def test_xarray_knows_blocks_and_travels(path: Path) -> None:
    found = xr.open_dataset(path, engine=CubeBackend)
    again = pickle.loads(pickle.dumps(found))
    chunks = found["cube"].encoding["preferred_chunks"]
    found.close()
    assert np.array_equal(again["cube"].values, CUBE.transpose(2, 0, 1))
    again.close()
    assert chunks["band"] == 5 and (chunks["y"], chunks["x"]) in ((21, 17), (6, 17), (8, 9))


def test_xarray_guesses_by_name() -> None:
    backend = CubeBackend()
    assert backend.guess_can_open("a/b.c123") and backend.guess_can_open(Path("b.c123"))
    assert not backend.guess_can_open("b.nc") and not backend.guess_can_open(b"b.c123")


@pytest.mark.slow
def test_looking_for_readers_does_not_load_the_compiler() -> None:
    program = (
        "import sys, plait.hyperspectral.libraries.xarray_backend; raise SystemExit('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


# --- Spectral Python ------------------------------------------------------------------------------------


def test_without_spectral_python(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spectral", None)
    with pytest.raises(TargetUnavailable, match=r"Spectral Python needs it.*plait\[hsi\]"):
        open_image(path)


@pytest.fixture
def spectral() -> Any:
    return pytest.importorskip("spectral", reason="spectral is not installed: pip install 'plait[hsi]'")


def test_spectral_python_reads_as_from_the_plain_file(path: Path, spectral: Any) -> None:
    found, plain = open_image(path), spectral.open_image(str(path.with_name("scene.hdr")))
    # A scale factor would make them floating-point numbers.
    plain.scale_factor = 1.0
    assert isinstance(found, spectral.io.spyfile.SpyFile) and found.shape == plain.shape
    assert found.metadata == plain.metadata and found.bands.centers == plain.bands.centers
    assert found.bands.bandwidths == plain.bands.bandwidths and found.bands.band_unit == plain.bands.band_unit
    for key in (
        np.s_[3, 4],
        np.s_[3, 4, 2],
        np.s_[:, :, 1],
        np.s_[2:9, 3:7, :],
        np.s_[2:9:2, 3:12:3, 1:3],
        np.s_[-2, :, [0, 4]],
    ):
        assert np.array_equal(found[key], plain[key])
    assert np.array_equal(found.read_band(2), plain.read_band(2))
    assert np.array_equal(found.read_bands([4, 1]), plain.read_bands([4, 1]))
    assert np.array_equal(found.open_memmap(interleave="bip"), CUBE) and "BIP" in str(found)
    loaded = found.load()
    assert isinstance(loaded, spectral.image.ImageArray) and loaded.dtype == np.float32
    assert np.array_equal(np.asarray(loaded), CUBE) and loaded.bands.centers == found.bands.centers
    assert np.array_equal(
        np.asarray(spectral.calc_stats(found).mean), np.asarray(spectral.calc_stats(plain).mean)
    )


def test_spectral_python_is_kept_from_rounding(tmp_path: Path, spectral: Any) -> None:
    wide = CUBE.astype(np.uint32) + 2**25
    np.save(tmp_path / "wide.npy", wide)
    compress_file(tmp_path / "wide.npy", tmp_path / "wide.c123")
    image = open_image(tmp_path / "wide.c123")
    with pytest.raises(
        InvalidInput, match=r"samples of 26 bits, of which float32 keeps 24.*load\(dtype='float64'\)"
    ):
        image.load()
    assert np.array_equal(np.asarray(image.load(dtype="float64")), wide)
    with pytest.raises(InvalidInput, match="load: found mode"):
        image.load(mode=1)


def test_spectral_python_as_input(path: Path, spectral: Any) -> None:
    image = spectral.open_image(str(path.with_name("scene.hdr")))
    source = as_cube(image)
    assert source.dtype == np.uint16 and np.array_equal(source.read(0, 21), CUBE)
    # What became floating-point numbers is taken for the whole numbers that it was.
    loaded = mapped(as_cube(image.load()))
    assert loaded.bits == 10 and np.array_equal(loaded.read(0, 21) + loaded.mapping.base, CUBE)
    assert np.array_equal(as_cube(open_image(path)).read(2, 5), CUBE[2:5])


# --- cubes of other libraries ---------------------------------------------------------------------------


def test_xarray_as_input(tmp_path: Path) -> None:
    array = xr.DataArray(CUBE.transpose(2, 0, 1), dims=("band", "y", "x"), name="cube")
    for given, axes in (
        (array, None),
        (array.to_dataset(), None),
        (array.rename(band="wavelength", y="lat", x="lon"), None),
        (array.rename(band="a", y="b", x="c"), "zyx"),
        (CUBE, None),
        (np.asfortranarray(CUBE.transpose(2, 0, 1)), "zyx"),
    ):
        source = as_cube(given, axes)
        assert (source.rows, source.columns, source.bands) == CUBE.shape
        assert np.array_equal(source.read(4, 9, 1, 3), CUBE[4:9, 1:3])
    pieces: list[bytes] = []
    summary = compress_cube(as_cube(array), pieces.append, blocks="rows:5", threads=2)
    assert summary.blocks == 5 and summary.shape == CUBE.shape


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (xr.DataArray(CUBE, dims=("a", "y", "x")), "dimensions: found a, y, x"),
        (xr.Dataset({"a": (("y", "x"), CUBE[..., 0])}), "no variable of three dimensions"),
        (
            xr.Dataset({"a": (list("yxz"), CUBE), "b": (list("yxz"), CUBE)}),
            "variables a, b, expected one cube",
        ),
        (CUBE.astype(complex), "complex128, expected integers, or floating-point numbers of 32 or 64 bits"),
        (CUBE[0, 0], r"an array of shape \(5,\)"),
        (7, "cube: found int"),
    ],
    ids=["dimensions", "flat", "several", "wide", "line", "number"],
)
def test_what_cannot_be_compressed(given: Any, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        as_cube(given)


def test_masked_arrays_say_how_to_open_the_file(tmp_path: Path) -> None:
    masked = xr.DataArray(np.where(CUBE % 7, CUBE, np.nan), dims=("y", "x", "band"))
    with pytest.raises(InvalidInput, match="mask_and_scale=False, in rioxarray masked=False"):
        compress_cube(as_cube(masked), tmp_path / "a.c123")


def test_a_compressed_cube_as_input(path: Path) -> None:
    pieces: list[bytes] = []
    with open_stream(path) as cube:
        compress_cube(as_cube(cube), pieces.append, blocks="tiles:5x5", threads=2)
    with open_stream(b"".join(pieces)) as again:
        assert np.array_equal(again.read(0, 21), CUBE) and len(again.windows) == 20


def test_files_as_input(path: Path) -> None:
    assert np.array_equal(as_cube(path.with_name("scene.img")).read(0, 21), CUBE)
    assert np.array_equal(as_cube(as_cube(CUBE)).read(0, 21), CUBE)
    assert RawShape().shape is None
