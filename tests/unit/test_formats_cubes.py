"""Cubes in ENVI, .npy and raw files: what is read, what is kept, and what is refused with which words."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plait.errors import FormatError, InvalidInput, PlaitError
from plait.formats.cubes import files
from plait.formats.cubes.envi import envi_type, new_envi_header, parse_envi_header
from plait.formats.cubes.files import RawShape, create_cube, open_cube
from plait.formats.cubes.layout import CubeLayout
from plait.formats.cubes.origin import CubeOrigin, StreamSeal, origin_path

CUBE = np.arange(2 * 3 * 4, dtype=np.uint16).reshape(2, 3, 4)
HEADER = """ENVI
description = {a cube,
  bands = 9}
Samples = 3
lines   = 2
bands = 4
header offset = 5
file type = ENVI Standard
data type = 12
interleave = bil
; byte order = 0
byte order = 1
wavelength units = Nanometers
wavelength = {400.5, 500, 600, 700}
h\u00f6he = 1
"""


@pytest.fixture
def envi(tmp_path: Path) -> Path:
    (tmp_path / "scene.hdr").write_bytes(HEADER.encode("latin-1"))
    data = b"start" + CUBE.transpose(0, 2, 1).astype(">u2").tobytes()
    (tmp_path / "scene.img").write_bytes(data)
    return tmp_path / "scene.hdr"


def written(path: Path, cube: Any = CUBE, **options: Any) -> CubeLayout:
    sink = create_cube(path, cube.shape, cube.dtype, **options)
    try:
        sink.write_rows(cube)
        sink.close()
    except BaseException:
        sink.discard()
        raise
    return sink.layout


def read(path: Path, *options: Any) -> Any:
    opened = open_cube(path, *options)
    try:
        return opened.source.read(0, opened.source.rows)
    finally:
        opened.source.close()


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# --- ENVI -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", ["scene.hdr", "scene.img"])
def test_an_envi_cube_becomes_what_it_was(envi: Path, given: str) -> None:
    opened = open_cube(envi.with_name(given))
    assert np.array_equal(opened.source.read(0, 2), CUBE) and opened.source.dtype == np.uint16
    assert set(opened.files) == {envi, envi.with_suffix(".img")}
    opened.source.close()
    # Through JSON, as it is kept beside a stream.
    origin = CubeOrigin.from_json(json.loads(json.dumps(opened.origin.to_json())), "there")
    assert origin == opened.origin
    out = envi.parent / "out"
    out.mkdir()
    written(out, origin=origin)
    assert left(out) == ["scene.hdr", "scene.img"]
    for name in left(out):
        assert (out / name).read_bytes() == envi.with_name(name).read_bytes()


def test_another_order_changes_those_fields_alone(envi: Path) -> None:
    origin = open_cube(envi).origin
    layout = written(envi.parent / "new.hdr", origin=origin, interleave="bsq", byte_order="little")
    assert (layout.axes, layout.byte_order, layout.offset) == ("zyx", "little", 5)
    lines = (envi.parent / "new.hdr").read_bytes().decode("latin-1").splitlines()
    changed = [(a, b) for a, b in zip(HEADER.splitlines(), lines, strict=True) if a != b]
    assert changed == [("interleave = bil", "interleave = bsq"), ("byte order = 1", "byte order = 0")]
    assert np.array_equal(read(envi.parent / "new.img"), CUBE)


@pytest.mark.parametrize(
    ("name", "data", "header"),
    [
        ("n.hdr", "n.img", "n.hdr"),
        ("n.bil.hdr", "n.bil", "n.bil.hdr"),
        ("n", "n", "n.hdr"),
        ("n.c", "n.c", "n.hdr"),
    ],
)
def test_names_of_new_files(tmp_path: Path, name: str, data: str, header: str) -> None:
    written(tmp_path / name)
    assert left(tmp_path) == sorted([data, header]) and np.array_equal(read(tmp_path / data), CUBE)


def test_without_an_origin_a_header_is_written(tmp_path: Path) -> None:
    written(tmp_path / "a.dat", CUBE.astype(np.int32))
    assert left(tmp_path) == ["a.dat", "a.hdr"]
    fields = parse_envi_header((tmp_path / "a.hdr").read_text(), "a.hdr").fields
    assert fields["data type"] == "3" and fields["interleave"] == "bip"
    assert np.array_equal(read(tmp_path / "a.hdr"), CUBE)


@pytest.mark.parametrize(
    ("header", "data"), [("x.img.hdr", "x.img"), ("X.HDR", "x.img"), ("x.hdr", "x"), ("x.hdr", "x.bil")]
)
def test_names_that_go_together(envi: Path, header: str, data: str) -> None:
    folder = envi.parent / "named"
    folder.mkdir()
    envi.rename(folder / header)
    envi.with_suffix(".img").rename(folder / data)
    for name in (header, data):
        assert np.array_equal(read(folder / name), CUBE)


def replaced(old: str, new: str) -> Any:
    return lambda text: text.replace(old, new)


WRONG_HEADERS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "float": (replaced("data type = 12", "data type = 4"), ("(48 too few)", "big-endian float32")),
    "complex": (replaced("data type = 12", "data type = 6"), ("complex64",)),
    "type": (replaced("data type = 12", "data type = 99"), ("data type = 99", "expected one of 1, 2, 3")),
    "no-type": (replaced("data type = 12\n", ""), ("no field 'data type'",)),
    "no-order": (replaced("\nbyte order = 1", ""), ("no field 'byte order'",)),
    "order": (replaced("\nbyte order = 1", "\nbyte order = 2"), ("byte order = 2", "0 (little) or 1 (big)")),
    "lines": (replaced("lines   = 2", "lines = 2.5"), ("lines = 2.5", "a whole number")),
    "none": (replaced("lines   = 2", "lines = 0"), ("found rows 0", "1 to 65536")),
    "interleave": (replaced("= bil", "= bix"), ("interleave = bix", "bsq, bil or bip")),
    "compressed": (
        replaced("bands = 4", "bands = 4\nfile compression = 1"),
        ("file compression = 1", "GDAL"),
    ),
    "frames": (replaced("bands = 4", "bands = 4\nmajor frame offsets = {0, 8}"), ("major frame offsets",)),
    "brace": (lambda text: text + "note = {never\n", ("line 16", "a brace that is never closed")),
    "other": (lambda text: "IDL" + text, ("line 1", "found 'IDLENVI'", "'ENVI'")),
    "binary": (lambda text: "\0\1" * 50, ("binary data",)),
    "short": (
        replaced("lines   = 2", "lines = 3"),
        ("53 bytes (24 too few)", "expected 77 bytes", "3 rows x 3 columns x 4 bands", "header offset"),
    ),
}


@pytest.mark.parametrize("case", WRONG_HEADERS)
def test_wrong_headers(envi: Path, case: str) -> None:
    change, told = WRONG_HEADERS[case]
    envi.write_bytes(change(HEADER).encode("latin-1"))
    if case == "short":
        envi.with_suffix(".img").write_bytes(bytes(53))
    with pytest.raises(PlaitError) as caught:
        open_cube(envi)
    assert [text for text in told if text not in str(caught.value)] == []


def test_files_that_are_not_there(envi: Path) -> None:
    data = envi.with_suffix(".img")
    with pytest.raises(FormatError, match="no such file"):
        open_cube(envi.with_name("absent.hdr"))
    data.rename(envi.with_name("b.img"))
    with pytest.raises(FormatError, match=r"found no data file, expected its data file beside it"):
        open_cube(envi)
    with pytest.raises(FormatError, match=r"no ENVI header beside it, expected b.hdr or b.img.hdr"):
        open_cube(envi.with_name("b.img"))
    envi.with_name("scene.dat").write_bytes(b"")
    envi.with_name("scene.raw").write_bytes(b"")
    with pytest.raises(FormatError, match=r"scene.dat and scene.raw beside it"):
        open_cube(envi)


def test_headers_say_what_the_layout_says() -> None:
    layout = CubeLayout(rows=2, columns=3, bands=1, dtype=np.dtype("u1"), axes="zyx")
    assert parse_envi_header(new_envi_header(layout), "h").layout() == layout
    assert new_envi_header(layout, "ENVI\nlines = x\n").startswith("ENVI\nlines = 2\n")
    assert [envi_type(np.dtype(kind)) for kind in (">u2", "i2", "<u4", "u1")] == [12, 2, 13, 1]
    one = parse_envi_header("ENVI\nsamples=3\nlines=2\nbands=1\ndata type=1\n", "h")
    assert one.layout() == layout and one.values("absent") is None and one.numbers("absent") is None


# --- raw and .npy ---------------------------------------------------------------------------------------

SHAPE = (2, 3, 4)


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (RawShape(shape=SHAPE), "dtype: found nothing"),
        (RawShape(shape=SHAPE, dtype="u2"), "interleave: found nothing"),
        (
            RawShape(shape=SHAPE, dtype="u2", interleave="bip"),
            "byte_order: found nothing, expected little or big",
        ),
        (RawShape(shape=SHAPE, dtype="seven", interleave="bip"), "dtype: found 'seven'"),
        (RawShape(shape=SHAPE, dtype="f2", interleave="bip", byte_order="big"), "values of type float16"),
        (RawShape(shape=SHAPE, dtype="u2", interleave="bix", byte_order="big"), "interleave: found 'bix'"),
        (RawShape(shape=SHAPE, dtype=">u2", interleave="bip", offset=1), r"48 bytes \(1 too few\)"),
    ],
    ids=["dtype", "interleave", "byte-order", "type", "float", "order", "size"],
)
def test_raw_files_need_words(tmp_path: Path, raw: RawShape, told: str) -> None:
    (tmp_path / "cube.raw").write_bytes(bytes(48))
    with pytest.raises(PlaitError, match=told):
        open_cube(tmp_path / "cube.raw", raw)


def test_a_header_that_is_too_long_to_keep(tmp_path: Path) -> None:
    with (tmp_path / "cube.raw").open("wb") as file:
        file.truncate((1 << 26) + 24)
    raw = RawShape(shape=SHAPE, dtype="u1", interleave="bip", offset=1 << 26)
    with pytest.raises(InvalidInput, match=r"header offset: .* expected at most 16,777,216"):
        open_cube(tmp_path / "cube.raw", raw)


def test_a_raw_file_becomes_what_it_was(tmp_path: Path) -> None:
    path = tmp_path / "cube.bin"
    path.write_bytes(b"ab" + CUBE.transpose(2, 0, 1).astype(">u2").tobytes())
    opened = open_cube(path, RawShape(shape=SHAPE, dtype=">u2", interleave="bsq", offset=2))
    assert np.array_equal(opened.source.read(0, 2), CUBE)
    written(tmp_path / "again.bin", origin=opened.origin)
    assert (tmp_path / "again.bin").read_bytes() == path.read_bytes() and len(left(tmp_path)) == 2


def test_what_a_header_says_cannot_be_said_again(envi: Path) -> None:
    np.save(envi.with_name("c.npy"), CUBE)
    for name in ("scene.img", "c.npy"):
        with pytest.raises(InvalidInput, match="dtype: found u2, expected nothing"):
            open_cube(envi.with_name(name), RawShape(dtype="u2"))
    with pytest.raises(InvalidInput, match="interleave: found bsq"):
        open_cube(envi, RawShape(interleave="bsq"))
    with pytest.raises(InvalidInput, match="variable: found 'v'"):
        open_cube(envi, variable="v")


def test_npy_files_that_are_no_cubes(tmp_path: Path) -> None:
    path = tmp_path / "cube.npy"
    for array, told in (
        (np.zeros((2, 2, 2), np.float16), "values of type float16"),
        (np.zeros(5, np.uint8), r"an array of shape \(5,\)"),
        (np.zeros((2, 2, 2), bool), "values of type bool"),
    ):
        np.save(path, array)
        with pytest.raises(InvalidInput, match=told):
            open_cube(path)
    np.save(path, np.zeros((0, 2, 2), np.uint8))
    with pytest.raises(FormatError, match=r"cube\.npy.*found rows 0, expected a whole number from 1 to"):
        open_cube(path)
    path.write_bytes(b"no array")
    with pytest.raises(FormatError, match=r"expected (a|the header of a) \.npy file"):
        open_cube(path)
    np.save(path, CUBE)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(FormatError, match="1 too few"):
        open_cube(path)


def test_an_image_of_one_band(tmp_path: Path) -> None:
    for order in "CF":
        np.save(tmp_path / "a.npy", np.asarray(CUBE[..., 1], order=order))
        opened = open_cube(tmp_path / "a.npy")
        assert np.array_equal(opened.source.read(0, 2), CUBE[..., 1:2])
        written(tmp_path / "b.npy", CUBE[..., 1:2], origin=opened.origin, overwrite=True)
        assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "b.npy").read_bytes()


# --- outputs and origins --------------------------------------------------------------------------------


@pytest.mark.parametrize("axes", ["zxy", "zyx", "xzy"])
@pytest.mark.parametrize("together", [2, 5])
def test_a_cube_that_is_there_is_written_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, axes: str, together: int
) -> None:
    """Rows that do not lie together in the file do so once all of them are known."""
    cube = np.random.default_rng(1).integers(0, 999, (5, 4, 3)).astype("<u2")
    file = np.transpose(cube, ["yxz".index(axis) for axis in axes])
    monkeypatch.setattr(files, "_AHEAD", together * cube[0].nbytes)
    calls, pwrite = [], os.pwrite

    def counted(*given: Any) -> int:
        calls.append(given)
        return pwrite(*given)

    monkeypatch.setattr(os, "pwrite", counted)
    layout = CubeLayout(rows=5, columns=4, bands=3, dtype=cube.dtype, axes=axes)
    with files.CubeFileWriter(tmp_path / "cube", layout) as writer:
        for row in cube:
            writer.write_rows(row[np.newaxis])
    assert np.array_equal(np.fromfile(tmp_path / "cube", "<u2").reshape(file.shape), file)
    assert len(calls) == 1 if together == 5 else len(calls) > 5


def test_outputs_are_whole_or_not_there(tmp_path: Path) -> None:
    sink = create_cube(tmp_path / "a.img", CUBE.shape, CUBE.dtype)
    sink.write_rows(CUBE[:1])
    with pytest.raises(InvalidInput, match="rows: found 1, expected 2"):
        sink.close()
    assert left(tmp_path) == []
    sink = create_cube(tmp_path / "a.npy", CUBE.shape, np.dtype(np.uint8))
    for rows, told in (
        (CUBE.astype(np.uint16) + 300, "sample: found 300, expected 0 to 255"),
        (CUBE.astype(float), "samples of type float64"),
        (CUBE[:, :2], r"expected \(rows, 3, 4\)"),
        (np.concatenate([CUBE, CUBE]), "rows: found 4, expected 2"),
    ):
        with pytest.raises(InvalidInput, match=told):
            sink.write_rows(rows)
    sink.discard()
    assert left(tmp_path) == []


def test_what_cannot_be_written(tmp_path: Path) -> None:
    layout = CubeLayout(rows=9, columns=3, bands=4, dtype=np.dtype("<u2"))
    with pytest.raises(InvalidInput, match="one of 2 rows x 3 columns x 4 bands, as the stream has"):
        written(tmp_path / "a.img", origin=CubeOrigin(format="envi", layout=layout))
    with pytest.raises(InvalidInput, match="the stream does not tell what it came from"):
        written(tmp_path)
    with pytest.raises(InvalidInput, match="bsq, bil or bip for ENVI"):
        written(tmp_path / "a.img", interleave="zxy")
    with pytest.raises(InvalidInput, match="found int8, expected a type that ENVI has"):
        written(tmp_path / "a.img", CUBE.astype(np.int8))
    with pytest.raises(InvalidInput, match="header offset"):
        CubeOrigin(format="raw", layout=layout, prefix=bytes(1 << 25))
    assert left(tmp_path) == []


def test_an_origin_goes_with_one_stream(tmp_path: Path) -> None:
    stream = tmp_path / "a.c123"
    layout = CubeLayout(rows=9, columns=3, bands=4, dtype=np.dtype("<u2"))
    assert CubeOrigin.read_beside(stream) is None
    stream.write_bytes(b"123")
    origin = CubeOrigin(format="raw", layout=layout, names={"data": "../../a"}, metadata={"a": [1]})
    seal = StreamSeal(3, "ab", 7)
    origin.write_beside(stream, seal)
    assert CubeOrigin.read_beside(stream) == (origin, seal)
    stream.write_bytes(b"1234")
    with pytest.raises(
        FormatError, match=r"the description of a stream of 3 bytes, expected that of a\.c123"
    ):
        CubeOrigin.read_beside(stream)
    for content in ("{", "[]", "{}", '{"plait_origin": 1}', '{"plait_origin": 7}'):
        origin_path(stream).write_text(content)
        with pytest.raises(FormatError, match=r"a\.c123\.json.*: found"):
            CubeOrigin.read_beside(stream)


def test_data_longer_than_its_header(tmp_path: Path) -> None:
    (tmp_path / "a.hdr").write_text(
        "ENVI\nsamples = 3\nlines = 2\nbands = 4\ndata type = 12\ninterleave = bip\nbyte order = 0\n"
    )
    (tmp_path / "a.img").write_bytes(CUBE.tobytes() + bytes(7))
    source = open_cube(tmp_path / "a.hdr").source
    assert np.array_equal(source.read(0, 2), CUBE)
    told = (
        "7 bytes behind the samples that its header tells of are not kept: it may be of more lines or bands"
    )
    assert source.notes == (told,)


def test_groups_of_netcdf_files(tmp_path: Path) -> None:
    library = pytest.importorskip("netCDF4", reason="NetCDF files need netCDF4")
    cube = np.arange(2 * 3 * 4, dtype=np.int16).reshape(4, 2, 3)

    def described(group: Any) -> Any:
        variables = {
            name: (
                one.dimensions,
                one.dtype,
                np.asarray(one[...]).tolist(),
                {k: one.getncattr(k) for k in one.ncattrs()},
            )
            for name, one in group.variables.items()
        }
        attributes = {key: group.getncattr(key) for key in group.ncattrs()}
        sizes = {name: one.size for name, one in group.dimensions.items()}
        return variables, attributes, sizes, {name: described(one) for name, one in group.groups.items()}

    with library.Dataset(tmp_path / "a.nc", "w") as file:
        file.title = "a scene"
        file.createDimension("y", 2)
        file.createDimension("unused", 9)
        inner = file.createGroup("sensor/observed")
        inner.level = np.float32(1.5)
        file["sensor"].platform = "made up"
        inner.createDimension("band", 4)
        inner.createDimension("x", 3)
        made = inner.createVariable("radiance", "i2", ("band", "y", "x"))
        made.units, made[:] = "1", cube
        inner.createVariable("wavelength", "f4", ("band",))[:] = [400, 500, 600, 700]
        # Of the same name, elsewhere.
        file.createVariable("wavelength", "f8", ("y",))[:] = [1, 2]
        file.createGroup("empty").note = "nothing in it"
        before = described(file)
    opened = open_cube(tmp_path / "a.nc")
    assert opened.source.notes == () and opened.source.layout.axes == "zyx"
    origin = CubeOrigin.from_json(json.loads(json.dumps(opened.origin.to_json())), "a")
    with create_cube(tmp_path / "b.nc", (2, 3, 4), np.dtype(np.int16), origin=origin) as sink:
        sink.write_rows(opened.source.read(0, 2))
    opened.source.close()
    with library.Dataset(tmp_path / "b.nc") as file:
        assert described(file) == before
    # What earlier versions kept: a name without groups, and no groups.
    older = {**origin.metadata, "variable": "radiance", "others": {}}
    del older["groups"]
    with create_cube(
        tmp_path / "c.nc", (2, 3, 4), np.dtype(np.int16), origin=replace(origin, metadata=older)
    ) as sink:
        sink.write_rows(np.ascontiguousarray(cube.transpose(1, 2, 0)))
    with library.Dataset(tmp_path / "c.nc") as file:
        assert np.array_equal(file["radiance"][:], cube) and file["radiance"].dimensions == ("band", "y", "x")
