"""Cubes in GeoTIFF and NetCDF files: samples as they stand there, and what is kept beside them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plait.errors import FormatError, InvalidInput, TargetUnavailable
from plait.formats.cubes.files import RawShape, create_cube, open_cube
from plait.formats.cubes.origin import CubeOrigin

CUBE = np.random.default_rng(0).integers(0, 60000, (40, 33, 5)).astype(np.uint16)


def copied(path: Path, out: Path) -> tuple[CubeOrigin, tuple[str, ...]]:
    """Write a cube as what it came from, its description through JSON; the description and the notes."""
    opened = open_cube(path)
    rows = opened.source.read(0, opened.source.rows)
    origin = CubeOrigin.from_json(json.loads(json.dumps(opened.origin.to_json())), path)
    opened.source.close()
    sink = create_cube(out, rows.shape, rows.dtype, origin=origin)
    for first in range(0, len(rows), 7):
        sink.write_rows(rows[first : first + 7])
    sink.close()
    return origin, opened.source.notes


@pytest.mark.parametrize("name", ["a.tif", "a.nc"])
def test_a_package_that_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for package in ("rasterio", "netCDF4"):
        monkeypatch.setitem(sys.modules, package, None)
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(TargetUnavailable, match=r"needs it.*pip install 'plait\[hsi\]'"):
        open_cube(tmp_path / name)
    with pytest.raises(TargetUnavailable):
        create_cube(tmp_path / f"b{name}", CUBE.shape, CUBE.dtype)


# --- GeoTIFF --------------------------------------------------------------------------------------------


@pytest.fixture
def geotiff(tmp_path: Path) -> Path:
    rasterio = pytest.importorskip("rasterio", reason="rasterio is not installed: pip install 'plait[hsi]'")
    path = tmp_path / "in.tif"
    with rasterio.open(
        path,
        "w",
        driver="GTiff",
        height=40,
        width=33,
        count=5,
        dtype="uint16",
        crs="EPSG:32633",
        transform=rasterio.Affine(30, 0, 500000, 0, -30, 5000000),
        nodata=7,
        tiled=True,
        blockxsize=16,
        blockysize=16,
        compress="deflate",
        interleave="pixel",
    ) as file:
        file.write(CUBE.transpose(2, 0, 1))
        file.update_tags(SENSOR="AVIRIS")
        file.update_tags(2, wavelength="500")
        file.descriptions = tuple(f"band {k}" for k in range(5))
        file.scales = (0.1,) * 5
    return path


def test_geotiff(geotiff: Path) -> None:
    import rasterio

    out = geotiff.with_name("out.tif")
    _, notes = copied(geotiff, out)
    assert notes == ()
    with rasterio.open(geotiff) as before, rasterio.open(out) as after:
        assert np.array_equal(before.read(), after.read())
        assert before.profile == after.profile and before.tags() == after.tags()
        for name in ("descriptions", "scales", "offsets", "units", "colorinterp", "nodata", "crs"):
            assert getattr(before, name) == getattr(after, name)
        assert after.tags(2) == {"wavelength": "500"}
    assert sorted(path.name for path in geotiff.parent.iterdir()) == ["in.tif", "out.tif"]


def test_geotiff_windows(geotiff: Path) -> None:
    opened = open_cube(geotiff)
    assert np.array_equal(opened.source.read(3, 9, 4, 30), CUBE[3:9, 4:30])
    assert opened.source.read(3, 3).shape == (0, 33, 5)
    opened.source.close()


def test_geotiff_with_points_and_notes(tmp_path: Path, geotiff: Path) -> None:
    import rasterio
    from rasterio.control import GroundControlPoint
    from rasterio.enums import Resampling

    path = tmp_path / "points.tif"
    points = [GroundControlPoint(row=r, col=c, x=c, y=-r, id=f"{r}{c}") for r, c in ((0, 0), (0, 9), (9, 0))]
    with rasterio.open(
        path, "w", driver="GTiff", height=40, width=33, count=1, dtype="int16", gcps=points, crs="EPSG:4326"
    ) as file:
        file.write(CUBE[..., :1].transpose(2, 0, 1).astype(np.int16))
        file.build_overviews([2], Resampling.nearest)
    _, notes = copied(path, tmp_path / "out.tif")
    assert notes == ("its overviews are not kept",)
    with rasterio.open(tmp_path / "out.tif") as after:
        found, crs = after.gcps
        assert [(p.row, p.col, p.x, p.y) for p in found] == [(p.row, p.col, p.x, p.y) for p in points]
        assert crs.to_epsg() == 4326


def test_geotiff_of_floats_or_none(tmp_path: Path, geotiff: Path) -> None:
    import rasterio

    path = tmp_path / "f.tif"
    options: Any = {
        "driver": "GTiff",
        "height": 2,
        "width": 2,
        "count": 1,
        "transform": rasterio.Affine(1, 0, 2, 0, 1, 2),
    }
    with rasterio.open(path, "w", dtype="float32", **options) as file:
        file.write(np.zeros((1, 2, 2), np.float32))
    assert open_cube(path).source.dtype == np.float32
    path.write_bytes(b"no image")
    with pytest.raises(FormatError, match="expected a GeoTIFF file"):
        open_cube(path)
    with pytest.raises(InvalidInput, match="interleave: found another order"):
        create_cube(tmp_path / "x.tif", CUBE.shape, CUBE.dtype, interleave="bil")
    sink = create_cube(tmp_path / "x.tif", CUBE.shape, CUBE.dtype)
    sink.write_rows(CUBE[:3])
    sink.discard()
    assert not [path.name for path in tmp_path.iterdir() if "x" in path.name]


# --- NetCDF ---------------------------------------------------------------------------------------------


@pytest.fixture
def netcdf(tmp_path: Path) -> Path:
    library = pytest.importorskip("netCDF4", reason="netCDF4 is not installed: pip install 'plait[hsi]'")
    path = tmp_path / "in.nc"
    with library.Dataset(path, "w") as file:
        for name, size in (("wavelength", 5), ("lat", 40), ("lon", 33)):
            file.createDimension(name, size)
        file.title = "a scene"
        waves = file.createVariable("wavelength", "f8", ("wavelength",), fill_value=-1.0)
        waves[:] = [400, 500, 600, 700, np.nan]
        waves.units = "nm"
        cube = file.createVariable(
            "radiance", "u2", ("wavelength", "lat", "lon"), fill_value=65535, zlib=True, complevel=2
        )
        cube.set_auto_maskandscale(False)
        cube.scale_factor = 0.01
        cube.valid_range = np.array([0, 60000], np.uint16)
        cube[:] = CUBE.transpose(2, 0, 1)
        file.createVariable("crs", "i4").grid_mapping_name = "latitude_longitude"
        file.createVariable("name", str, ("wavelength",))
    return path


def test_netcdf(netcdf: Path) -> None:
    import netCDF4

    out = netcdf.with_name("out.nc")
    origin, notes = copied(netcdf, out)
    # Neither masked nor scaled, whatever the attributes ask for.
    assert origin.layout.dtype == np.uint16 and origin.layout.axes == "zyx"
    assert notes == ("its variable name is not kept",)
    with netCDF4.Dataset(netcdf) as before, netCDF4.Dataset(out) as after:
        before.set_auto_maskandscale(False)
        after.set_auto_maskandscale(False)
        assert before.title == after.title and set(after.variables) == {"wavelength", "radiance", "crs"}
        for name, variable in after.variables.items():
            known = before[name]
            assert np.array_equal(variable[...], known[...], equal_nan=name == "wavelength")
            assert variable.dimensions == known.dimensions and variable.dtype == known.dtype
            assert set(variable.ncattrs()) == set(known.ncattrs())
            for key in variable.ncattrs():
                assert np.array_equal(variable.getncattr(key), known.getncattr(key))
        assert after["radiance"].filters()["complevel"] == 2


def test_netcdf_variables_and_dimensions(netcdf: Path, tmp_path: Path) -> None:
    import netCDF4

    with netCDF4.Dataset(netcdf, "a") as file:
        group = file.createGroup("more")
        for name, size in zip("abc", (40, 33, 5), strict=True):
            group.createDimension(name, size)
        group.createVariable("cube", "i2", tuple("abc"))[:] = CUBE // 4
    with pytest.raises(InvalidInput, match="variables radiance, more/cube, expected one cube"):
        open_cube(netcdf)
    with pytest.raises(InvalidInput, match=r"dimensions a, b, c, expected one that is called band"):
        open_cube(netcdf, variable="more/cube")
    for name in ("absent", "wavelength"):
        with pytest.raises(FormatError, match="expected one of radiance, more/cube"):
            open_cube(netcdf, variable=name)
    opened = open_cube(netcdf, RawShape(interleave="bip"), variable="more/cube")
    assert np.array_equal(opened.source.read(2, 5, 1, 9), CUBE[2:5, 1:9] // 4)
    opened.source.close()
    (tmp_path / "none.nc").write_bytes(b"no file")
    with pytest.raises(FormatError, match="expected a NetCDF file"):
        open_cube(tmp_path / "none.nc")
    sink = create_cube(tmp_path / "x.nc", CUBE.shape, CUBE.dtype)
    sink.write_rows(CUBE[:3])
    with pytest.raises(InvalidInput, match="rows: found 3, expected 40"):
        sink.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.nc", "none.nc"]
