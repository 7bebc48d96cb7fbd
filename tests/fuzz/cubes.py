"""Parsers of compressed cubes: CCSDS 123 streams, containers, what stands beside them; headers of cubes."""

from __future__ import annotations

import json
import struct
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from support.ccsds121 import encode_rice
from tests.fuzz.mutation import bundle, bundle_mutation, json_mutation, mutated_bytes, unbundle
from tests.fuzz.tables import new_place, place
from tests.fuzz.trial import Parser

from plait.errors import InvalidInput, PlaitError, whole
from plait.hyperspectral.ccsds121 import RiceParameters, decode_rice
from plait.hyperspectral.codec import compress
from plait.hyperspectral.cubes import ArrayCube
from plait.hyperspectral.files import describe
from plait.hyperspectral.header import write_header
from plait.hyperspectral.parameters import (
    BlockAdaptive,
    ErrorLimits,
    HybridCoder,
    ImageLayout,
    Predictor,
    Representatives,
    SampleAdaptive,
    StreamParameters,
)
from plait.hyperspectral.streams import open_stream
from plait.hyperspectral.writing import compress_cube, make_index

_SHAPE = (7, 9, 4)
_CODERS = (SampleAdaptive(), BlockAdaptive(block_size=8), HybridCoder())
#: Fields that do not ask for another kind of predictor, which would be compiled.
_NUMBERS: dict[str, tuple[Any, ...]] = {
    "prediction_bands": tuple(range(16)),
    "mode": ("full", "reduced"),
    "weight_resolution": tuple(range(4, 20)),
    "register_size": (32, 33, 48, 63, 64),
    "weight_interval": (16, 64, 2048),
    "weight_initial": (-6, -1, 0, 9),
    "weight_final": (-6, 3, 9),
}


def _cube(depth: int = 11, shape: tuple[int, int, int] = _SHAPE) -> np.ndarray[Any, np.dtype[np.int64]]:
    steps = np.random.default_rng(1).integers(-9, 10, shape)
    return np.clip(np.cumsum(steps, axis=1) + (1 << (depth - 1)), 0, (1 << depth) - 1)


def _image(depth: int = 11, shape: tuple[int, int, int] = _SHAPE, signed: bool = False) -> ImageLayout:
    return ImageLayout(rows=shape[0], columns=shape[1], bands=shape[2], dynamic_range=depth, signed=signed)


def streams() -> list[bytes]:
    """Small streams of every coder and order."""
    found = [
        compress(_cube(), StreamParameters(image=_image(), coder=coder, order=order))
        for coder in _CODERS
        for order in ("bi", "bsq")
    ]
    small = (3, 5, 2)
    for depth in (2, 16, 32):
        image = _image(depth, small)
        found.append(
            compress(_cube(depth, small), StreamParameters(image=image, coder=BlockAdaptive(block_size=8)))
        )
    limits = (
        ErrorLimits(absolute=3),
        ErrorLimits(absolute=(0, 9, 1, 3), relative=50),
        ErrorLimits(absolute=((2,), (0,), (5,), (1,)), relative=((9, 1, 2, 3),) * 4, update_exponent=1),
    )
    damped = Representatives(resolution=2, damping=1, offset=(0, 1, 2, 3))
    for coder in _CODERS:
        for one in limits:
            predictor = Predictor(error_limits=one, representatives=damped)
            found.append(
                compress(_cube(), StreamParameters(image=_image(), predictor=predictor, coder=coder))
            )
    return found


def _other_header(rng: Random, stream: bytes) -> bytes:
    """A header that is well formed, before the body of another stream."""
    coder = rng.choice(
        (
            SampleAdaptive(
                unary_length_limit=rng.randrange(8, 33), rescaling_counter_size=rng.randrange(6, 12)
            ),
            BlockAdaptive(
                block_size=rng.choice((8, 16, 32, 64)), reference_interval=rng.choice((1, 7, 4096))
            ),
            HybridCoder(unary_length_limit=rng.randrange(8, 33)),
        )
    )
    size = [rng.choice((1, 2, 3, 5, 9, 17, 64, 300, 65535, 65536)) for _ in range(3)]
    if rng.random() < 0.7:
        size = [rng.choice((1, 2, 3, 5, 9)) for _ in range(3)]
    try:
        image = ImageLayout(
            rows=size[0],
            columns=size[1],
            bands=size[2],
            dynamic_range=rng.randrange(2, 33),
            signed=rng.random() < 0.3,
        )
        facts = {name: rng.choice(values) for name, values in _NUMBERS.items() if rng.random() < 0.3}
        if rng.random() < 0.4:
            facts["error_limits"] = ErrorLimits(
                absolute_bits=rng.randrange(1, 17),
                relative_bits=rng.choice((None, rng.randrange(1, 17))),
                absolute_by_band=rng.random() < 0.5,
                update_exponent=rng.randrange(10),
            )
        order = rng.choice(("bi", "bsq"))
        parameters = StreamParameters(image=image, predictor=Predictor(**facts), coder=coder, order=order)
        head = write_header(parameters)
    except PlaitError:
        return mutated_bytes(rng, stream, [stream])
    return head + stream[rng.randrange(len(stream)) :]


def _kinds() -> set[bytes]:
    return {stream[12:14] for stream in streams()}


def _stream_mutation(kinds: set[bytes]) -> Any:
    def mutate(rng: Random, corpus: Sequence[bytes]) -> bytes:
        stream = rng.choice(corpus)
        if rng.random() < 0.35:
            return _other_header(rng, stream)
        at = rng.choice((0, 0, 19, len(stream) // 2))
        found = stream[:at] + mutated_bytes(rng, stream[at:], [other[at:] for other in corpus])
        # Each kind of predictor is compiled on its own: only those that are.
        if found[12:14] not in kinds:
            found = found[:12] + stream[12:14] + found[14:]
        return found

    return mutate


def _decoded(data: bytes, **facts: Any) -> Any:
    with open_stream(data, **facts) as cube:
        image = cube.parameters.image
        found = cube.read(0, cube.shape[0])
        assert found.shape == cube.shape
        assert int(found.min()) >= image.least and int(found.max()) <= image.largest
        return cube.parameters, found


def _stream(data: bytes, folder: Path) -> None:
    parameters, found = _decoded(data)
    lossless = parameters.predictor.error_limits is None
    if len(data) % 8 == 0 and lossless and parameters.image.samples < 4000:
        again = compress(found.astype(np.int64), parameters)
        assert np.array_equal(_decoded(again)[1], found), "another cube when compressed again"
    if len(data) % 32 == 1:
        describe(new_place(folder, data))


def _stream_parser() -> Parser:
    seeds = streams()
    return Parser(name="ccsds", seeds=seeds, mutate=_stream_mutation(_kinds()), read=_stream, cases=1_000_000)


def _containers() -> list[bytes]:
    found = []
    shape = (4, 6, 3)
    for blocks, checksum in (("tiles:3x4", True), ("tiles:3x6", False), ("rows:4", True)):
        pieces: list[bytes] = []

        class Source:
            rows, columns, bands = shape
            dtype = np.dtype(np.uint16)

            def read(
                self, first: int, last: int, first_column: int = 0, last_column: int | None = None
            ) -> Any:
                return _cube(shape=shape)[first:last, first_column:last_column].astype(np.uint16)

        facts = {"a": b"attached", "plait.origin": b"{}"} if checksum else {}
        compress_cube(
            Source(),
            pieces.append,
            blocks=blocks,
            checksum=checksum,
            attachments=facts,
            threads=1,
            parameters=StreamParameters(image=_image(shape=shape)),
        )
        found.append(b"".join(map(bytes, pieces)))
    # Samples that became integers, with what makes them again.
    floats: list[bytes] = []
    cube = np.linspace(-1, 2, 4 * 6 * 3).reshape(shape).astype(np.float32)
    compress_cube(ArrayCube(cube), floats.append, blocks="rows:2", checksum=True, threads=1)
    return [*found, b"".join(floats)]


def _sealed(data: bytes) -> bytes:
    """A container whose checksums are right, whatever it holds."""
    crc, trailer = 4, struct.Struct("<QQI8s")
    head = struct.calcsize("<8sHHIIIBBHII")
    found = bytearray(data)
    if len(found) < head + crc + trailer.size:
        return data
    found[head : head + crc] = zlib.crc32(found[:head]).to_bytes(4, "little")
    place_ = len(found) - trailer.size
    offset, length, _, end = trailer.unpack_from(found, place_)
    if offset + length == place_:
        at, count = offset + 12, int.from_bytes(found[offset : offset + 8], "little")
        for k in range(min(count, 64)):
            if at + 24 * k + 24 > place_:
                break
            first, size = struct.unpack_from("<QQ", found, at + 24 * k)
            if first + size <= offset:
                struct.pack_into("<I", found, at + 24 * k + 16, zlib.crc32(found[first : first + size]))
        trailer.pack_into(found, place_, offset, length, zlib.crc32(found[offset:place_]), end)
    return bytes(found)


def _container_mutation(rng: Random, corpus: Sequence[bytes]) -> bytes:
    """Single bytes, so that all stays in its place; sealed again mostly."""
    data = rng.choice(corpus)
    if rng.random() < 0.25:
        return mutated_bytes(rng, data, corpus)
    found = bytearray(data)
    offset = int.from_bytes(data[-28:-20], "little")
    for _ in range(1 + int(rng.expovariate(1))):
        low, high = rng.choice(((8, 36), (40, offset), (offset, len(data)), (offset + 12, offset + 60)))
        at = rng.randrange(low, min(high, len(data)))
        found[at] = rng.choice((0, 1, 2, 255, 128, found[at] ^ (1 << rng.randrange(8)), rng.randrange(256)))
    # The kind of predictor in the headers of the blocks is left: each is compiled on its own.
    at = 40
    for k in range(int.from_bytes(data[offset : offset + 8], "little")):
        at = int.from_bytes(data[offset + 12 + 24 * k : offset + 20 + 24 * k], "little")
        found[at + 12 : at + 14] = data[at + 12 : at + 14]
    return _sealed(bytes(found)) if rng.random() < 0.85 else bytes(found)


def _container(data: bytes, folder: Path) -> None:
    with open_stream(data) as cube:
        found = cube.read(0, cube.shape[0])
        assert found.shape == cube.shape
        if cube.has_checksums and len(data) % 4 == 0:
            assert cube.verify(threads=1) == (), "read although its checksums are wrong"
    if len(data) % 16 == 1:
        describe(new_place(folder, data))


def _container_parser() -> Parser:
    seeds = _containers()
    return Parser(name="container", seeds=seeds, mutate=_container_mutation, read=_container, cases=1_000_000)


def _sidecars(folder: Path) -> list[bytes]:
    found = []
    for data in streams()[:4:3]:
        stream, index = place(folder, data, "a.c123"), folder / "a.index"
        index.unlink(missing_ok=True)
        make_index(stream, index, every=2)
        found.append(bundle({"stream": data, "index": index.read_bytes()}))
    return found


def _index_mutation(rng: Random, data: Sequence[bytes]) -> bytes:
    """An index whose table has the right checksum, mostly."""
    found = bytearray(mutated_bytes(rng, data[0], data) if rng.random() < 0.2 else data[0])
    size = struct.calcsize("<8sHHQ32sIII")
    for _ in range(1 + int(rng.expovariate(1))):
        at = rng.randrange(8, len(found)) if len(found) > 8 else 0
        if found:
            found[at] = rng.choice((0, 1, 255, 128, rng.randrange(256)))
    if len(found) > size + 4 and rng.random() < 0.8:
        count = int.from_bytes(found[size - 12 : size - 8], "little")
        end = size + 28 * count
        for k in range(min(count, 8)):
            at = size + 28 * k
            if at + 28 <= len(found):
                _, _, first, length, _ = struct.unpack_from("<IIQQI", found, at)
                struct.pack_into("<I", found, at + 24, zlib.crc32(found[first : first + length]))
        if end + 4 <= len(found):
            found[end : end + 4] = zlib.crc32(found[:end]).to_bytes(4, "little")
    return bytes(found)


def _sidecar(data: bytes, folder: Path) -> None:
    files = unbundle(data)
    stream, index = files.get("stream", b""), new_place(folder, files.get("index", b""), "index")
    with open_stream(stream, index=index) as cube:
        parts = cube.read(0, cube.shape[0])
        assert parts.shape == cube.shape
        if not len(data) % 4:
            cube.read(cube.shape[0] - 1, cube.shape[0])


def _sidecar_parser() -> Parser:
    with tempfile.TemporaryDirectory() as folder:
        seeds = _sidecars(Path(folder))
    kinds = _kinds()
    ways = {"index": _index_mutation, "stream": _stream_mutation(kinds)}
    return Parser(name="sidecar", seeds=seeds, mutate=bundle_mutation(ways), read=_sidecar, cases=1_000_000)


_RICE: tuple[dict[str, Any], ...] = (
    {"depth": 11, "block_size": 8, "reference_interval": 7},
    {"depth": 16, "block_size": 16, "reference_interval": 128, "signed": True, "padded": True},
    {"depth": 3, "block_size": 32, "reference_interval": 64, "preprocessed": False, "restricted": True},
    {"depth": 32, "block_size": 64, "reference_interval": 1},
)


def _rice(data: bytes, folder: Path) -> None:
    files = unbundle(data)
    try:
        facts = json.loads(files.get("json", b"{}"))
        count = facts.pop("count", 1)
        parameters = RiceParameters(**facts)
    except (AttributeError, RecursionError, TypeError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        # What is no object with these names: the options of a command are.
        raise InvalidInput("case", found=type(error).__name__, expected="parameters by name") from error
    whole("count", count, 1, 10_000)
    found = decode_rice(files.get("stream", b""), count, parameters, "a.aec")
    assert found.size == count


def _rice_parser() -> Parser:
    seeds, rng = [], Random(5)
    for facts in _RICE:
        samples = _cube(min(facts["depth"], 11)).ravel().tolist()
        stream = encode_rice(samples, RiceParameters(**facts), rng.choice)
        seeds.append(
            bundle({"json": json.dumps({**facts, "count": len(samples)}).encode(), "stream": stream})
        )
    ways = {"json": json_mutation(tuple(_RICE[1]), (0, 1, 8, 9, 64, 4096, True, 1.5, 10_000))}
    return Parser(name="rice", seeds=seeds, mutate=bundle_mutation(ways), read=_rice, cases=1_000_000)


PARSERS = {
    "ccsds": _stream_parser,
    "container": _container_parser,
    "sidecar": _sidecar_parser,
    "rice": _rice_parser,
}
