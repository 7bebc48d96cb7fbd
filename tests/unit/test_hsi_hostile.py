"""Headers, descriptions and configurations that hold anything: an error that names the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plait.errors import FormatError, InvalidInput
from plait.formats.cubes.layout import npy_layout
from plait.formats.cubes.origin import origin_path
from plait.hyperspectral.chunks import ChunkCoding
from plait.hyperspectral.files import compress_file, decompress_file
from plait.hyperspectral.libraries.numcodecs_codec import Ccsds123
from plait.hyperspectral.libraries.zarr_codec import Ccsds123Codec
from plait.hyperspectral.parameters import ImageLayout
from plait.hyperspectral.presets import preset_parameters, read_parameters
from plait.hyperspectral.streams import open_stream

CUBE = np.random.default_rng(3).integers(0, 4000, (12, 7, 4)).astype(np.uint16)
IMAGE = ImageLayout(columns=7, rows=12, bands=4, dynamic_range=12)
DEEP = "[" * 100_000


def npy(path: Path, header: str, size: int | None = None) -> Path:
    text = header.encode("latin-1")
    path.write_bytes(
        b"\x93NUMPY\x02\0" + (len(text) if size is None else size).to_bytes(4, "little") + text + bytes(672)
    )
    return path


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<u2', 'fortran_order': False, 'shape': " + "(" * 3000 + ")" * 3000 + "}",
        "{'descr': '<u2', 'fortran_order': False, 'shape': (" + "9" * 5000 + ", 7, 4)}",
        "{'descr': '<u2', 'fortran_order': False, 'shape': (-12, 7, 4)}",
        "{'descr': '<u2', 'fortran_order': False, 'shape': (12, 7, 4.5)}",
        "{'descr': '<u2', 'fortran_order': False, 'shape': (65536, 65536, 65536)}",
        "{'descr': '|O', 'fortran_order': False, 'shape': (12, 7, 4)}",
        "{'descr': '<U9999999999', 'fortran_order': False, 'shape': (12, 7, 4)}",
        "{'descr': [('a', '<u2')], 'fortran_order': False, 'shape': (12, 7, 4)}",
        "{'descr': " + "[" * 2000 + "]" * 2000 + ", 'fortran_order': False, 'shape': (12, 7, 4)}",
        "{'descr': '<u2', 'fortran_order': False, 'shape': " + "-" * 3000 + "1}",
        "{'descr'",
        "(" * 5000,
        "\0",
        "",
    ],
    ids=map(str, range(14)),
)
def test_npy_headers(tmp_path: Path, header: str) -> None:
    path = npy(tmp_path / "in.npy", header)
    with pytest.raises((FormatError, InvalidInput), match=r"in\.npy|rows|bands"):
        compress_file(path, tmp_path / "out.c123")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["in.npy"]


def test_a_npy_header_of_four_gigabytes(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="a header of 4,294,967,295 bytes"):
        npy_layout(npy(tmp_path / "in.npy", "{}", (1 << 32) - 1))


VALUES: tuple[Any, ...] = (
    None, True, -1, 1 << 70, 10**400, 1e308, float("inf"), 0.5, "x", "\ud800", [], [[[]]], {}, {"a": []},
)  # fmt: skip


@pytest.fixture
def stream(tmp_path: Path) -> Path:
    np.save(tmp_path / "in.npy", CUBE)
    compress_file(tmp_path / "in.npy", tmp_path / "a.c123")
    return tmp_path / "a.c123"


FIELDS = (
    "rows", "columns", "bands", "dtype", "axes", "offset", "names", "metadata", "format", "header", "prefix",
    "stream_bytes", "stream_sha256", "samples_crc32", "plait_origin",
)  # fmt: skip


@pytest.mark.parametrize("name", FIELDS)
def test_every_field_of_a_description(stream: Path, name: str) -> None:
    known = json.loads(origin_path(stream).read_bytes())
    del known["crc32"]
    folder = stream.with_name("out")
    folder.mkdir()
    refused = 0
    for value in VALUES:
        origin_path(stream).write_text(json.dumps(known | {name: value}))
        try:
            decompress_file(stream, folder / f"{len(list(folder.iterdir()))}.npy")
            decompress_file(stream, folder)
        except (FormatError, InvalidInput):
            refused += 1
    # Some values are right: an empty header, another format, no checksum.
    assert refused >= len(VALUES) - 6


@pytest.mark.parametrize("text", [DEEP, "9" * 5000, "{", "[]", "nothing", '{"plait_origin": ' + DEEP])
def test_descriptions_and_parameters_that_are_no_json(stream: Path, text: str) -> None:
    origin_path(stream).write_text(text)
    with pytest.raises(FormatError, match=r"a\.c123\.json.*: found"):
        open_stream(stream)
    with pytest.raises(FormatError, match=r"a\.c123\.json.*: found"):
        read_parameters(origin_path(stream))


PARTS = (
    "weight_table", "weight_table_resolution", "weight_offsets", "representatives", "accumulator_table",
    "supplementary", "coder", "order", "mode", "initial_count_exponent", "user_field", "table_in_header",
    "preset", "image", "pixels", "initial_sums",
)  # fmt: skip


@pytest.mark.parametrize("name", PARTS)
def test_parameters_of_every_kind(tmp_path: Path, name: str) -> None:
    path = tmp_path / "p.json"
    for value in (*VALUES, [None] * 4, [[None]] * 4, [{}], {"own": 1, "others": 1}, {"resolution": "x"}):
        path.write_text(json.dumps({name: value}))
        try:
            preset_parameters(IMAGE, "default", **read_parameters(path))
        except (FormatError, InvalidInput):
            continue
        # A flag, and no tables at all.
        assert value is None or (name, value) in (("table_in_header", True), ("supplementary", []))


CONFIGURATIONS: tuple[Any, ...] = (
    None, 1, "x", [], {"odd": 1}, {"axes": []}, {"axes": {}}, {"preset": []}, {"preset": None}, {"blocks": 1},
    {"blocks": "rows:0"}, {"blocks": []}, {"checksum": 1}, {"parameters": []}, {"parameters": None},
    {"parameters": {"preset": "fast"}}, {"parameters": {"initial_count_exponent": "5"}},
    {"parameters": {"mode": ["full"]}}, {"parameters": {"representatives": {"odd": 1}}},
    {"parameters": {"prediction_bands": True}}, {"parameters": {"supplementary": [1]}},
)  # fmt: skip


@pytest.mark.parametrize("given", CONFIGURATIONS, ids=repr)
def test_configurations(given: Any) -> None:
    with pytest.raises(InvalidInput):
        ChunkCoding.from_config(given)
    with pytest.raises(InvalidInput):
        Ccsds123Codec.from_dict({"name": "plait.ccsds123", "configuration": given})
    if isinstance(given, dict):
        with pytest.raises(InvalidInput):
            Ccsds123.from_config(given)


@pytest.mark.parametrize("dtype", ["odd", "f4", "u8", 1, [], {"names": []}], ids=repr)
def test_types_of_chunks(dtype: Any) -> None:
    with pytest.raises(InvalidInput):
        Ccsds123.from_config({"dtype": dtype})
