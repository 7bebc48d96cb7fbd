"""Parsers of what describes a cube: headers of cubes, parameters, what stands beside a stream, codecs."""

from __future__ import annotations

import hashlib
import io
import json
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from tests.fuzz.cubes import streams
from tests.fuzz.mutation import bundle, bundle_mutation, json_mutation, mutated_bytes, text_mutation, unbundle
from tests.fuzz.tables import new_place, place
from tests.fuzz.trial import Parser

from plait.formats.cubes.files import RawShape, open_cube
from plait.formats.cubes.origin import CubeOrigin, StreamSeal, origin_path
from plait.hyperspectral.files import describe
from plait.hyperspectral.header import write_header
from plait.hyperspectral.parameters import ImageLayout

_ENVI = b"""ENVI
description = {a cube,
 with two lines}
samples = 3
lines = 2
bands = 4
header offset = 0
file type = ENVI Standard
data type = 12
interleave = bip
byte order = 0
wavelength = {1.0, 2.0, 3.0, 4.0}
band names = {a, b, c, d}
"""


def _envi(data: bytes, folder: Path) -> None:
    files = unbundle(data)
    place(folder, files.get("hdr", b""), "case.hdr")
    cube = open_cube(new_place(folder, files.get("img", b""), "case.img"))
    with cube.source as source:
        rows = source.read(0, source.rows)
        assert rows.shape == (source.rows, source.columns, source.bands)


def _envi_parser() -> Parser:
    samples = bytes(range(48))
    seeds = [
        bundle({"hdr": _ENVI, "img": samples}),
        bundle({"hdr": _ENVI.replace(b"bip", b"bsq").replace(b"= 12", b"= 3"), "img": samples * 2}),
        bundle({"hdr": _ENVI.replace(b"offset = 0", b"offset = 5"), "img": b"12345" + samples}),
    ]
    words = (
        b"samples",
        b"lines",
        b"bands",
        b"data type",
        b"byte order",
        b"{",
        b"}",
        b"= 12",
        b"bsq",
        b"ENVI",
    )
    ways = {"hdr": text_mutation(words, b"=,"), "img": mutated_one}
    return Parser(name="envi", seeds=seeds, mutate=bundle_mutation(ways), read=_envi)


def mutated_one(rng: Random, corpus: Sequence[bytes]) -> bytes:
    """A file that is longer or shorter, rarely otherwise changed."""
    return corpus[0][: rng.randrange(len(corpus[0]) + 1)] if rng.random() < 0.3 else corpus[0]


def _npy_bytes(array: Any, order: str = "C") -> bytes:
    sink = io.BytesIO()
    np.save(sink, np.asarray(array, order=order))
    return sink.getvalue()


def _npy(data: bytes, folder: Path) -> None:
    with open_cube(new_place(folder, data, "case.npy")).source as source:
        rows = source.read(0, source.rows)
        assert rows.shape == (source.rows, source.columns, source.bands)


def _npy_parser() -> Parser:
    cube = np.arange(24, dtype=np.uint16).reshape(2, 3, 4)
    seeds = [_npy_bytes(cube), _npy_bytes(cube, "F"), _npy_bytes(cube.astype(">i4")), _npy_bytes(cube[0])]
    words = (
        b"'shape': ",
        b"(2, 3, 4)",
        b"'descr': '<u2'",
        b"'|O'",
        b"True",
        b"lambda: 0",
        b"(" * 500,
        b"[('a', '<u2')]",
    )
    text = text_mutation(words, b",:'", raw=0.5)

    def mutate(rng: Random, corpus: Sequence[bytes]) -> bytes:
        data = rng.choice(corpus)
        size = 10 + int.from_bytes(data[8:10], "little")
        if rng.random() < 0.3:
            return mutated_bytes(rng, data, corpus)
        head = text(rng, [data[10:size]])[:60000]
        return data[:8] + len(head).to_bytes(2, "little") + head + data[size:]

    return Parser(name="npy", seeds=seeds, mutate=mutate, read=_npy)


def _raw(data: bytes, folder: Path) -> None:
    files = unbundle(data)
    facts = json.loads(files.get("json", b"{}"))
    shape = facts.get("shape")
    if shape is not None:
        facts["shape"] = tuple(shape)
    with open_cube(new_place(folder, files.get("bin", b""), "case.bin"), RawShape(**facts)).source as source:
        source.read(0, source.rows)


def _raw_parser() -> Parser:
    facts = {"shape": [2, 3, 4], "dtype": "uint16", "interleave": "bip", "byte_order": "little", "offset": 0}
    seeds = [bundle({"json": json.dumps(facts).encode(), "bin": bytes(48)})]
    values = (
        *("uint8", "int64", "bsq", "xyz", "big", "O", "<f4"),
        *([2, 3, 2], [1 << 40] * 3, [0, 1, 1], [-1, 3, 8]),
    )

    def one(rng: Random, corpus: Sequence[bytes]) -> bytes:
        # Types are those that the options of a command can have.
        found = json.loads(corpus[0])
        name = rng.choice(sorted(found))
        if name == "shape":
            found[name] = [rng.choice((0, 1, 2, 3, 4, 6, -1, 1 << 40, 1 << 64)) for _ in range(3)]
        elif name == "byte_order":
            found[name] = rng.choice(("little", "big"))
        elif name == "offset":
            found[name] = rng.choice((0, 1, -1, 47, 48, 1 << 63, 1 << 65))
        else:
            found[name] = rng.choice([v for v in values if isinstance(v, str)])
        if rng.random() < 0.1:
            del found[name]
        return json.dumps(found).encode()

    ways = {"json": one, "bin": mutated_one}
    return Parser(name="raw", seeds=seeds, mutate=bundle_mutation(ways), read=_raw)


def _parameters(data: bytes, folder: Path) -> None:
    from plait.hyperspectral.presets import preset_parameters, read_parameters, tables_of

    named = read_parameters(place(folder, data, "case.json"))
    tables_of(named)
    parameters = preset_parameters(
        ImageLayout(rows=7, columns=9, bands=4, dynamic_range=11), "default", **named
    )
    write_header(parameters)


def _parameter_parser() -> Parser:
    seeds = []
    with tempfile.TemporaryDirectory() as folder:
        for stream in streams()[:6]:
            seeds.append(json.dumps(describe(new_place(Path(folder), stream)), default=str).encode())
    tables = {
        "coder": "sample-adaptive",
        "accumulator_constant": None,
        "accumulator_table": [1, 2, 3, 4],
        "weight_table_resolution": 5,
        "weight_table": [[1] * 3, [1] * 4, [1] * 5, [1] * 6],
        "representatives": {"resolution": 2, "damping": [1, 2, 3, 0], "offset": 1},
        "error_limits": {"absolute": [1, 2, 3, 0], "relative": 5, "relative_bits": 4},
        "supplementary": [{"purpose": 1, "dimension": 1, "data": [1, 2, 3, 4], "kind": "unsigned"}],
    }
    seeds.append(json.dumps(tables).encode())
    del tables["supplementary"]
    seeds.append(json.dumps(tables).encode())
    keys = (
        "parameters",
        *tables,
        "weight_offsets",
        "mode",
        "coder",
        "order",
        "own",
        "others",
        "update_exponent",
    )
    return Parser(name="parameters", seeds=seeds, mutate=json_mutation(keys), read=_parameters)


_STREAM = bytes(100)


def _origin(data: bytes, folder: Path) -> None:
    stream = place(folder, _STREAM, "case.c123")
    new_place(folder, data, origin_path(stream).name)
    found = CubeOrigin.read_beside(stream)
    if found is not None:
        json.dumps(found[0].to_json())


def _origin_parser() -> Parser:
    with tempfile.TemporaryDirectory() as folder:
        path = new_place(Path(folder), bytes(48), "a.img")
        place(Path(folder), _ENVI, "a.hdr")
        cube = open_cube(path)
        cube.source.close()
        stream = place(Path(folder), _STREAM, "a.c123")
        digest = hashlib.sha256(_STREAM).hexdigest()
        cube.origin.write_beside(stream, StreamSeal(len(_STREAM), digest, zlib.crc32(bytes(48))))
        seeds = [origin_path(stream).read_bytes(), json.dumps(cube.origin.to_json()).encode()]
    change = json_mutation(tuple(json.loads(seeds[0])))

    def mutate(rng: Random, corpus: Sequence[bytes]) -> bytes:
        data = change(rng, corpus)
        if rng.random() < 0.2:
            return data
        # With the checksum of what it says now.
        try:
            found = json.loads(data)
            found.pop("crc32")
            found["crc32"] = zlib.crc32(json.dumps(found, sort_keys=True).encode("ascii"))
            return json.dumps(found).encode()
        except (ValueError, AttributeError, KeyError, TypeError, RecursionError):
            return data

    return Parser(name="origin", seeds=seeds, mutate=mutate, read=_origin)


def _codecs(data: bytes, folder: Path) -> None:
    from plait.hyperspectral.libraries.numcodecs_codec import Ccsds123
    from plait.hyperspectral.libraries.zarr_codec import Ccsds123Codec

    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return
    if not isinstance(found, dict):
        return
    Ccsds123Codec.from_dict({"name": "plait.ccsds123", "configuration": found}).to_dict()
    Ccsds123.from_config(dict(found)).get_config()


def _codec_parser() -> Parser:
    found = {"axes": "yxz", "preset": "default", "blocks": "tiles:4x4", "parameters": {"mode": "full"}}
    seeds = [json.dumps(found).encode(), json.dumps({"axes": "zyx", "blocks": None}).encode()]
    keys = ("axes", "preset", "blocks", "parameters", "dtype", "mode", "coder")
    return Parser(
        name="codecs", seeds=seeds, mutate=json_mutation(keys, ("xyz", "<u2", "fast")), read=_codecs
    )


PARSERS = {
    "envi": _envi_parser,
    "npy": _npy_parser,
    "raw": _raw_parser,
    "parameters": _parameter_parser,
    "origin": _origin_parser,
    "codecs": _codec_parser,
}
