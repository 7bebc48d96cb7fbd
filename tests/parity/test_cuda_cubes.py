"""Cubes on GPUs, or in the simulator, against the CPU."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from support.examples import examples

from plait.devices import cuda_target
from plait.devices.cuda_target import CudaTarget
from plait.dp.bands import gpu_prediction
from plait.dp.bands.gpu_prediction import word_prediction
from plait.dp.bands.prediction import BandPrediction
from plait.errors import DeviceMemoryError, FormatError, InvalidInput, Unsupported
from plait.hyperspectral import codec, streams, writing
from plait.hyperspectral.codec import Compressor, Entries, StreamDecoder, compress, find_entries
from plait.hyperspectral.codewords import BodyEnd
from plait.hyperspectral.containers import SideIndex, _packed_entries
from plait.hyperspectral.cubes import ArrayCube
from plait.hyperspectral.gpu_codec import RowsOnGpu, decompress_rows, unserved, unserved_back
from plait.hyperspectral.parameters import ImageLayout, Representatives
from plait.hyperspectral.presets import preset_parameters
from plait.hyperspectral.streams import open_stream
from plait.hyperspectral.writing import compress_cube

pytestmark = [pytest.mark.gpu, pytest.mark.cuda_simulator]

CASES: dict[str, tuple[tuple[int, int, int, int, bool], dict[str, Any], int]] = {
    "whole": ((7, 13, 5, 12, False), {}, 7),
    "groups of bands": ((7, 13, 5, 12, False), {"prediction_bands": 5, "interleaving_depth": 2}, 3),
    "signed": (
        (6, 5, 40, 16, True),
        {"mode": "reduced", "local_sum": "wide-column", "unary_length_limit": 8},
        4,
    ),
    "by lines": (
        (4, 20, 33, 8, False),
        {"prediction_bands": 0, "local_sum": "narrow-neighbor", "interleaving_depth": 1},
        3,
    ),
    "one column": ((80, 1, 3, 4, False), {"rescaling_counter_size": 4, "weight_interval": 16}, 50),
    "many before": (
        (5, 8, 17, 2, False),
        {"prediction_bands": 15, "weight_resolution": 19, "weight_final": 9, "local_sum": "narrow-column"},
        2,
    ),
}


def made(rows: int, columns: int, bands: int, depth: int, signed: bool) -> tuple[NDArray[Any], ImageLayout]:
    rng = np.random.default_rng(rows + depth)
    step = max(1, 2**depth // 400)
    cube = np.cumsum(rng.integers(-step, step + 1, (rows, columns, bands)), axis=2) + 2 ** (depth - 1)
    # Codewords that are too long for their zeros, and sums held at their limits.
    cube[rng.random(cube.shape) < 0.02] = 2**depth - 1
    cube[rng.random(cube.shape) < 0.02] = 0
    cube = np.clip(cube, 0, 2**depth - 1) - signed * 2 ** (depth - 1)
    kind = np.dtype(f"{'i' if signed else 'u'}{2 if depth > 8 else 1}")
    image = ImageLayout(columns=columns, rows=rows, bands=bands, dynamic_range=depth, signed=signed)
    return cube.astype(kind), image


@pytest.fixture(autouse=True)
def _few_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_prediction, "WARPS", 2)
    monkeypatch.setattr(codec, "_MANY_BYTES", 500)


@pytest.mark.parametrize(("shape", "named", "rows"), CASES.values(), ids=CASES)
def test_streams(shape: Any, named: dict[str, Any], rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    cube, image = made(*shape)
    monkeypatch.setattr(codec, "_GPU_SAMPLES", rows * image.columns * image.bands)
    parameters = preset_parameters(image, **named)
    assert compress(cube, parameters, device="cuda") == compress(cube, parameters, device="cpu")


def test_wider_types_and_bad_samples() -> None:
    cube, image = made(3, 4, 3, 10, False)
    parameters = preset_parameters(image)
    assert compress(cube.astype(np.int64), parameters, device="cuda") == compress(cube, parameters)
    cube[2, 1, 2] = 1024
    for kind in (np.uint16, np.int64):
        with pytest.raises(InvalidInput, match=r"row 2, column 1, band 2.*1024"):
            compress(cube.astype(kind), parameters, device="cuda")


def test_what_it_does_not_make() -> None:
    _, image = made(3, 4, 3, 10, False)
    representatives = Representatives(resolution=2, damping=(1, 1, 1))
    for named, why in (
        ({"coder": "hybrid"}, "sample-adaptive"),
        ({"order": "bsq"}, "band-interleaved"),
        ({"representatives": representatives}, "representatives"),
        ({"register_size": 32, "weight_resolution": 19}, "registers"),
    ):
        parameters = preset_parameters(image, **named)
        assert why in unserved(parameters)
        with pytest.raises(Unsupported, match=f"on a GPU.*{why}"):
            compress(np.zeros((3, 4, 3), np.uint16), parameters, device="cuda")
    assert unserved(preset_parameters(image, register_size=32, weight_resolution=4)) == ""


@pytest.mark.parametrize("last", [0, 2, 3])
@pytest.mark.parametrize("signed", [False, True])
def test_the_cpu_goes_on_where_memory_is_short(
    last: int, signed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = RowsOnGpu._start

    def fail(self: Any, slot: Any, samples: Any, first: int) -> Any:
        if first == last * 7:
            raise DeviceMemoryError("cuda:0", needed=1, free=0, fix="")
        return start(self, slot, samples, first)

    cube, image = made(5, 7, 3, 10, signed)
    named = {"mode": "reduced", "local_sum": "wide-column"} if signed else {}
    parameters = preset_parameters(image, **named)
    monkeypatch.setattr(codec, "WORTH", 1)
    monkeypatch.setattr(codec, "_GPU_SAMPLES", 21)
    monkeypatch.setattr(RowsOnGpu, "_start", fail)
    monkeypatch.setattr(cuda_target, "_Found", type("Found", (cuda_target._Found,), {"left": set()}))
    pieces: list[bytes] = []
    compressor = Compressor(parameters, pieces.append, CudaTarget((0,), sparing=True))
    with pytest.warns(RuntimeWarning, match="the CPU does it instead"):
        compressor.write(cube[:4])
    compressor.write(cube[4:])
    compressor.close()
    assert b"".join(pieces) == compress(cube, parameters, device="cpu")


def test_a_gpu_that_was_named_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Any, rows: Any, row: int, step: int, write: Any) -> bool:
        raise DeviceMemoryError("cuda:0", needed=1, free=0, fix="")

    monkeypatch.setattr(RowsOnGpu, "compress", fail)
    cube, image = made(3, 4, 3, 10, False)
    with pytest.raises(DeviceMemoryError):
        compress(cube, preset_parameters(image), device="cuda")


@given(st.data())
@examples(300)
def test_learning_in_words(data: Any) -> None:
    """The factors of 32 bits do what shifts of 64 bits do, for all parameters of the standard."""
    depth, omega = data.draw(st.integers(2, 16)), data.draw(st.integers(4, 19))
    first = data.draw(st.integers(-6, 9))
    numbers = {
        "omega": omega,
        "columns": data.draw(st.integers(1, 65536)),
        "interval": data.draw(st.integers(4, 11)),
        "initial": first,
        "final": data.draw(st.integers(first, 9)),
        "scale": depth - omega,
        "one": 1,
    }
    p = BandPrediction(**{name: np.int64(numbers.get(name, 0)) for name in BandPrediction._fields})
    words = word_prediction(p)
    t = data.draw(st.integers(1, 1 << 24))
    bound = 1 << (omega + 2)
    weight, most = data.draw(st.integers(-bound, bound - 1)), 3 * 2**depth
    difference, falls = data.draw(st.integers(-most, most)), data.draw(st.booleans())
    shift = BandPrediction.learning_shift(p, np.int64(t))
    expected = BandPrediction.learned(p, np.int64(weight), np.int64(difference), falls, shift)
    factors = type(words).learning_shift(words, np.int32(t))
    found = type(words).learned(words, np.int32(weight), np.int32(difference), falls, factors)
    assert found == expected


BACK: dict[str, tuple[tuple[int, int, int, int, bool], dict[str, Any], int]] = {
    "every row": ((3, 98, 5, 12, False), {}, 1),
    "signed": ((2, 97, 40, 16, True), {"prediction_bands": 5, "unary_length_limit": 8}, 2),
    "settled": ((3, 97, 33, 12, False), {"weight_interval": 16, "weight_final": -1}, 3),
    "reduced": (
        (2, 99, 33, 8, False),
        {"prediction_bands": 0, "mode": "reduced", "local_sum": "wide-column"},
        4,
    ),
    "many before": ((2, 98, 34, 2, False), {"prediction_bands": 15, "weight_final": 9}, 3),
}


@pytest.mark.parametrize(("shape", "named", "every"), BACK.values(), ids=BACK)
def test_streams_are_read(shape: Any, named: dict[str, Any], every: int) -> None:
    cube, image = made(*shape)
    stream = compress(cube, preset_parameters(image, **named), device="cpu")
    decoder = StreamDecoder(stream)
    entries = find_entries(decoder, every)
    assert entries is not None
    found = decompress_rows(decoder.parameters, decoder.body, entries, (0,))
    np.testing.assert_array_equal(found, cube)
    assert found.dtype == cube.dtype


def test_damage_is_found() -> None:
    cube, image = made(4, 97, 4, 9, False)
    stream = compress(cube, preset_parameters(image), device="cpu")
    decoder = StreamDecoder(stream)
    entries = find_entries(decoder, 2)
    assert entries is not None
    given = decoder.parameters, decoder.body
    moved = entries._replace(positions=entries.positions + np.array([0, 1]))
    with pytest.raises(BodyEnd, match="should not"):
        decompress_rows(*given, moved, (0,))
    with pytest.raises(BodyEnd, match="ends before its last sample"):
        decompress_rows(given[0], given[1][:-2], entries, (0,))
    with pytest.raises(BodyEnd, match="2 bytes follow"):
        decompress_rows(given[0], bytes(given[1]) + b"ab", entries, (0,))


def test_what_it_does_not_read() -> None:
    image = ImageLayout(columns=97, rows=4, bands=5, dynamic_range=9)
    for change, named, why in (
        ({}, {"local_sum": "narrow-column"}, "narrow"),
        ({}, {"interleaving_depth": 2}, "all bands"),
        ({"columns": 96}, {}, "97 columns"),
        ({"bands": 2049}, {}, "2048 bands"),
        ({}, {"coder": "hybrid"}, "sample-adaptive"),
    ):
        assert why in unserved_back(preset_parameters(replace(image, **change), **named))
    assert unserved_back(preset_parameters(image)) == ""


def test_an_index_has_light_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cube, image = made(70, 97, 4, 9, False)
    path, index = tmp_path / "a.c123", tmp_path / "a.index"
    for module in (codec, streams, writing):
        monkeypatch.setattr(module, "WORTH", 1)
    compress_cube(ArrayCube(cube), path, parameters=preset_parameters(image), index=index, checksum=True)
    with open_stream(path, index=index) as opened:
        assert opened.is_random_access and len(opened.windows) == 2
        found = np.concatenate(list(opened.rows(device="cuda")))
        np.testing.assert_array_equal(found, cube)
        np.testing.assert_array_equal(np.concatenate(list(opened.rows(device="cpu"))), cube)
    with open_stream(path) as opened, pytest.raises(Unsupported, match=r"light entry points.*hsi index"):
        list(opened.rows(device="cuda"))
    data = bytearray(index.read_bytes())
    data[-3] ^= 1
    index.write_bytes(data)
    with pytest.raises(FormatError, match="damaged light entries"):
        open_stream(path, index=index)
    # Programs that know no light entries find none.
    place = bytes(data).index(b"PLHSXlgt")
    index.write_bytes(data[:place])
    with open_stream(path, index=index) as opened:
        np.testing.assert_array_equal(opened.read(66, 69), cube[66:69])


@given(st.data())
@examples(60)
def test_light_entries_are_kept(data: Any) -> None:
    image = ImageLayout(columns=7, rows=9, bands=data.draw(st.integers(1, 4)), dynamic_range=12)
    parameters = preset_parameters(image)
    places = data.draw(st.lists(st.integers(1, 8), unique=True).map(sorted))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    sums = rng.integers(0, 1 << 31, (len(places) + 1, image.bands)).astype(np.int32)
    positions = np.append(0, np.cumsum(rng.integers(1, 1 << 40, len(places))))
    entries = Entries(np.array([0, *places], np.int64), positions, sums)
    index = SideIndex(rows=(), checksums=None, payloads=(), light=_packed_entries(entries))
    found = index.entries(parameters)
    assert found is not None and all(np.array_equal(a, b) for a, b in zip(found, entries, strict=True))
    for wrong in (entries._replace(rows=entries.rows + 1), entries._replace(sums=-1 - sums)):
        with pytest.raises(InvalidInput, match="light entries"):
            replace(index, light=_packed_entries(wrong)).entries(parameters)
