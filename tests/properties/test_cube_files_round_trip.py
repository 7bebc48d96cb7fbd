"""Cubes in plain files: any window of any layout is read, and rows are written, as NumPy has them."""

from __future__ import annotations

import contextlib
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from plait.errors import PlaitError
from plait.formats.cubes import envi
from plait.formats.cubes import files as cube_files
from plait.formats.cubes.envi import new_envi_header, parse_envi_header, with_fields
from plait.formats.cubes.files import CubeFile, CubeFileWriter, RawShape, create_cube, open_cube
from plait.formats.cubes.layout import CubeLayout
from plait.hyperspectral.chunks import needed_bits

TYPES = ("u1", "i1", "<u2", ">u2", "<i2", ">i2", "<u4", ">i4")
AXES = tuple("".join(axes) for axes in itertools.permutations("xyz"))


@st.composite
def layouts(draw: st.DrawFn) -> CubeLayout:
    size = st.integers(1, 9)
    return CubeLayout(
        rows=draw(size),
        columns=draw(size),
        bands=draw(size),
        dtype=np.dtype(draw(st.sampled_from(TYPES))),
        axes=draw(st.sampled_from(AXES)),
        offset=draw(st.integers(0, 5)),
    )


def drawn(layout: CubeLayout, seed: int) -> Any:
    limits = np.iinfo(layout.dtype)
    rng = np.random.default_rng(seed)
    shape = (layout.rows, layout.columns, layout.bands)
    return rng.integers(limits.min, limits.max, shape, layout.dtype.newbyteorder("="), endpoint=True)


@given(layouts(), st.integers(0, 99), st.sampled_from([(1 << 26, 1 << 26), (8, 64), (8, 1 << 26)]), st.data())
def test_files(
    tmp_path_factory: pytest.TempPathFactory,
    layout: CubeLayout,
    seed: int,
    limits: tuple[int, int],
    data: st.DataObject,
) -> None:
    path = tmp_path_factory.mktemp("cube") / "cube.raw"
    cube, prefix = drawn(layout, seed), bytes(range(layout.offset))
    cuts = sorted(data.draw(st.lists(st.integers(0, layout.rows), max_size=3)))
    with pytest.MonkeyPatch.context() as patch:
        # Small, so that what only large cubes need is done here.
        patch.setattr(cube_files, "_MOST_SPAN", limits[0])
        patch.setattr(cube_files, "_AHEAD", limits[1])
        patch.setattr(cube_files, "_AHEAD", limits[1])
        with CubeFileWriter(path, layout, prefix) as writer:
            for first, last in itertools.pairwise([0, *cuts, layout.rows]):
                writer.write_rows(cube[first:last])
        order = ["yxz".index(axis) for axis in layout.axes]
        assert path.read_bytes() == prefix + cube.transpose(order).astype(layout.dtype).tobytes()
        with CubeFile(path, layout) as file:
            for _ in range(3):
                y0, y1 = sorted(data.draw(st.tuples(*[st.integers(0, layout.rows)] * 2)))
                x0, x1 = sorted(data.draw(st.tuples(*[st.integers(0, layout.columns)] * 2)))
                found = file.read(y0, y1, x0, x1)
                assert found.dtype == cube.dtype and found.shape == (y1 - y0, x1 - x0, layout.bands)
                assert (found == cube[y0:y1, x0:x1]).all() and (file.read(y0, y1) == cube[y0:y1]).all()


@given(layouts(), st.integers(0, 99), st.sampled_from(["C", "F"]))
def test_npy_becomes_what_it_was(
    tmp_path_factory: pytest.TempPathFactory, layout: CubeLayout, seed: int, order: Any
) -> None:
    folder = tmp_path_factory.mktemp("cube")
    cube = drawn(layout, seed)
    array = np.asarray(cube.transpose(["yxz".index(axis) for axis in layout.axes]), layout.dtype, order=order)
    np.save(folder / "in.npy", array)
    opened = open_cube(folder / "in.npy", RawShape(interleave=layout.axes))
    assert (opened.source.read(0, layout.rows) == cube).all()
    opened.source.close()
    sink = create_cube(folder / "out.npy", cube.shape, cube.dtype, origin=opened.origin)
    sink.write_rows(cube)
    sink.close()
    assert (folder / "out.npy").read_bytes() == (folder / "in.npy").read_bytes()
    # In another byte order, the dimensions are the same.
    sink = create_cube(folder / "big.npy", cube.shape, cube.dtype, origin=opened.origin, byte_order="big")
    sink.write_rows(cube)
    sink.close()
    assert np.array_equal(np.load(folder / "big.npy"), array)


LINES = (
    *(
        "samples = 3\n",
        "lines = 2\n",
        "bands = 4\n",
        "data type = 12\n",
        "interleave = bil\n",
        "byte order = 1\n",
    ),
    *("wavelength = {1,\n 2 = 3}\n", "; samples = 9\n", "header offset = 7\n", "note = {open\n"),
)
NAMES = st.sampled_from(["samples", "bands", "wavelength", "map info", "Data  Type", "x"])
VALUES = st.one_of(
    st.integers(0, 99).map(str),
    st.just("{1, 2,\n 3}"),
    st.text("abc ={}", max_size=5).map(lambda text: text.replace("{", "").replace("}", "")),
)


@given(st.lists(st.tuples(NAMES, VALUES), max_size=6), st.sampled_from(["\n", "\r\n"]))
def test_edited_fields_change_and_nothing_else(fields: list[tuple[str, str]], end: str) -> None:
    text = "ENVI" + end + "".join(f"{name} = {value}{end}; bands = 9{end}" for name, value in fields)
    assert with_fields(text, {}) == text
    new = {"bands": "77", "new field": "{a, b}"}
    edited = parse_envi_header(with_fields(text, new), "h").fields
    before = parse_envi_header(text, "h").fields
    assert edited == {**before, **new}


PIECES = [
    "ENVI",
    "\n",
    "\r\n",
    " ",
    "=",
    "{",
    "}",
    ",",
    ";",
    "\0",
    "\xff",
    "-",
    "lines",
    "bands",
    "1",
    "65537",
    "bsq",
]


@example(["lines = 2\n", "lines", "="])
@given(st.lists(st.one_of(st.sampled_from(PIECES), st.sampled_from(LINES))))
def test_any_header_is_read_or_refused(pieces: list[str]) -> None:
    text = "ENVI\n" + "".join(pieces)
    with contextlib.suppress(PlaitError):
        header = parse_envi_header(text, "h")
        assert all(text.count(value) for value in header.fields.values())
        names = [entry.name for entry in envi._entries(text)]
        same = with_fields(text, header.fields)
        assert parse_envi_header(same, "h").fields == header.fields
        # Programs differ in which of several lines of a name counts: all are made alike.
        assert same == text or len(set(names)) < len(names)
        layout = header.layout()
        assert parse_envi_header(new_envi_header(layout, text), "h").layout() == layout


def test_long_lines_take_no_time() -> None:
    for text in (" " * (1 << 20), "a " * (1 << 20), "a = {" + "b = {\n" * (1 << 18) + "}"):
        assert len(parse_envi_header(f"ENVI\n{text}\n", "h").fields) <= 1


@given(st.integers(-(2**31), 2**32 - 1), st.integers(-(2**31), 2**32 - 1))
def test_bits_hold_the_samples(one: int, other: int) -> None:
    signed = min(one, other) < 0
    values = np.array([one, other], np.int64)
    bits = needed_bits(values if signed else values.astype(np.uint64))
    least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    assert all(least <= value <= most for value in (one, other)) and bits >= 2
    fewer = bits - 1
    least, most = (-(2 ** (fewer - 1)), 2 ** (fewer - 1) - 1) if signed else (0, 2**fewer - 1)
    assert bits == 2 or not all(least <= value <= most for value in (one, other))


def test_a_window_outside_is_refused(tmp_path: Path) -> None:
    layout = CubeLayout(rows=3, columns=2, bands=1, dtype=np.dtype("u1"))
    (tmp_path / "cube").write_bytes(bytes(6))
    with CubeFile(tmp_path / "cube", layout) as file:
        for window in ((0, 4), (2, 1), (-1, 2), (0, 3, 0, 3)):
            with pytest.raises(ValueError, match="expected within 0 to"):
                file.read(*window)
