"""Streams of CCSDS 121.0, beside a coder in plain Python and, where it is there, libaec."""

from __future__ import annotations

import errno
import random
import tracemalloc
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.ccsds121 import encode_rice
from support.examples import examples, often

from plait.cli import main
from plait.errors import FormatError, InvalidInput
from plait.formats.cubes.layout import as_rows, interleave_axes
from plait.hyperspectral.ccsds121 import RiceParameters, decode_rice, decompress_rice_file


def _samples(rng: random.Random, p: RiceParameters, count: int) -> list[int]:
    low = -(1 << (p.depth - 1)) if p.signed else 0
    high = low + (1 << p.depth) - 1
    found, now = [], rng.randint(low, high)
    step = rng.choice([0, 1, 3, 40, 1 << p.depth])
    for _ in range(count):
        if rng.random() < 0.02:
            step = rng.choice([0, 0, 1, 3, 40, 1 << p.depth])
        now = min(max(now + rng.randint(-step, step), low), high)
        found.append(now)
    return found


@st.composite
def _parameters(draw: st.DrawFn) -> RiceParameters:
    depth = draw(st.integers(1, 32))
    preprocessed = draw(st.booleans())
    return RiceParameters(
        depth=depth,
        block_size=draw(st.sampled_from([8, 16, 32, 64])),
        reference_interval=draw(st.sampled_from([1, 2, 7, 64, 65, 128, 4096])),
        signed=draw(st.booleans()),
        preprocessed=preprocessed,
        padded=preprocessed and draw(st.booleans()),
        restricted=depth <= 4 and draw(st.booleans()),
    )


@examples(90)
@given(_parameters(), st.integers(1, 1500), st.integers(0, 1 << 32))
def test_every_code_that_a_block_may_have(p: RiceParameters, count: int, seed: int) -> None:
    rng = random.Random(seed)
    samples = _samples(rng, p, count)
    stream = encode_rice(samples, p, rng.choice if seed % 2 else lambda codes: min(codes, key=len))
    found = decode_rice(stream, count, p)
    assert found.dtype.itemsize == (1 if p.depth <= 8 else 2 if p.depth <= 16 else 4)
    np.testing.assert_array_equal(found, samples)


@pytest.mark.parametrize("padded", often(1, [False, True]))
def test_many_windows(monkeypatch: pytest.MonkeyPatch, padded: bool) -> None:
    monkeypatch.setattr("plait.hyperspectral.ccsds121._SAMPLES", 3000)
    p = RiceParameters(depth=12, block_size=16, reference_interval=65, padded=padded)
    steps = np.random.default_rng(1).integers(-2, 3, 20_000)
    samples = np.clip(np.cumsum(steps) + 2000, 0, 4095)
    samples[3000:9000] = 7
    np.testing.assert_array_equal(decode_rice(encode_rice(samples.tolist(), p), samples.size, p), samples)


@pytest.mark.parametrize("depth", [3, 8, 12, 16, 24, 32])
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("preprocessed", [False, True])
def test_streams_of_libaec(depth: int, signed: bool, preprocessed: bool) -> None:
    imagecodecs = pytest.importorskip("imagecodecs", reason="libaec comes with imagecodecs")
    rng = random.Random(depth)
    size = 1 if depth <= 8 else 2 if depth <= 16 else 4
    for block_size, interval, padded in ((8, 128, False), (16, 64, True), (32, 2, False), (64, 4096, True)):
        p = RiceParameters(
            depth=depth,
            block_size=block_size,
            reference_interval=interval,
            signed=signed,
            preprocessed=preprocessed,
            padded=padded and preprocessed,
        )
        flags = 1 * signed + 8 * preprocessed + 32 * p.padded
        samples = np.array(_samples(rng, p, 5000), f"{'i' if signed else 'u'}{size}")
        options = {"bitspersample": depth, "blocksize": block_size, "rsi": interval, "flags": flags}
        # Samples of depths between bytes stand in the lowest bits.
        plain = samples.astype(np.int64) & ((1 << depth) - 1) if signed else samples
        stream = imagecodecs.aec_encode(plain.astype(f"u{size}").tobytes(), **options)
        np.testing.assert_array_equal(decode_rice(stream, 5000, p), samples)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda data: data[:-9], "an end before the last sample"),
        (lambda data: data + bytes(9), "9 bytes behind the last sample"),
        (lambda data: data[:4], "an end before the last sample"),
        (lambda data: b"", "0 bytes"),
    ],
    ids=["short", "long", "stub", "empty"],
)
def test_damage(change: Any, told: str) -> None:
    p = RiceParameters(depth=10)
    stream = encode_rice(_samples(random.Random(1), p, 3000), p)
    with pytest.raises(FormatError, match=rf"a\.aec: found ({told}).*3,000 samples.*block size"):
        decode_rice(change(stream), 3000, p, "a.aec")


def test_residuals_that_lead_to_no_sample() -> None:
    p = RiceParameters(depth=4, block_size=8)
    # A reference of 0, then residuals of 31, for which there is no room.
    bits = "001" + "0000" + ("0" * 31 + "1") * 7
    data = int(bits, 2) << (-len(bits) % 8)
    with pytest.raises(FormatError, match="samples of more than 4 bits"):
        decode_rice(data.to_bytes(-(-len(bits) // 8), "big"), 8, p)


@examples(90)
@given(st.binary(max_size=300), _parameters())
def test_whatever_bytes_are_refused_or_read(data: bytes, p: RiceParameters) -> None:
    try:
        found = decode_rice(data, 500, p)
    except FormatError:
        return
    assert found.size == 500


@pytest.mark.parametrize(
    "wrong",
    [
        {"depth": 33},
        {"block_size": 12},
        {"reference_interval": 0},
        {"restricted": True},
        {"padded": 1},
        {"padded": True, "preprocessed": False},
    ],
    ids=str,
)
def test_wrong_parameters(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        RiceParameters(**{"depth": 12, **wrong})


@pytest.mark.parametrize(("interleave", "order"), [("bsq", (2, 0, 1)), ("bip", (0, 1, 2))])
def test_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], interleave: str, order: tuple[int, ...]
) -> None:
    cube = np.random.default_rng(1).integers(0, 4000, (9, 7, 5)).astype(np.uint16)
    p = RiceParameters(depth=12, block_size=32)
    stream = tmp_path / "a.aec"
    stream.write_bytes(encode_rice(cube.transpose(order).ravel().tolist(), p))
    words = ["hsi", "read-121", str(stream), "--shape", "9,7,5", "--depth", "12", "--interleave", interleave]
    words += ["-o", str(tmp_path / "a.npy")]
    assert main([*words, "--block-size", "32"]) == 0
    assert "9 rows x 7 columns x 5 bands of little-endian uint16" in capsys.readouterr().err
    back = np.load(tmp_path / "a.npy")
    np.testing.assert_array_equal(back, cube.transpose(order))
    assert main([*words, "--block-size", "32"]) == 2
    assert "--force" in capsys.readouterr().err
    assert main([*words, "--force"]) == 2
    assert "check shape, bits of a sample" in capsys.readouterr().err
    with pytest.raises(InvalidInput, match="rows"):
        decompress_rice_file(stream, tmp_path / "b.npy", p, shape=(0, 7, 5))


@pytest.mark.slow
@pytest.mark.parametrize("interleave", often(1, ["bsq", "bil", "bip"]))
def test_a_file_is_not_held_in_memory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, interleave: str
) -> None:
    monkeypatch.setattr("plait.hyperspectral.ccsds121._SAMPLES", 1 << 12)
    monkeypatch.setattr("plait.hyperspectral.codewords._WINDOW_WORDS", 1 << 12)
    monkeypatch.setattr("plait.formats.atomic._BUFFER_BYTES", 1 << 12)
    p = RiceParameters(depth=12, reference_interval=16)
    shape = {"bsq": (16, 128, 256), "bil": (128, 16, 256), "bip": (128, 256, 16)}[interleave]
    stored = np.zeros(shape, np.uint16)
    stored.reshape(-1)[: 1 << 14] = np.random.default_rng(2).integers(0, 4096, 1 << 14)
    stream = encode_rice(stored.reshape(-1).tolist(), p)
    (tmp_path / "a.aec").write_bytes(stream)
    rows = as_rows(stored, interleave_axes(interleave))

    def run(name: str) -> None:
        decompress_rice_file(tmp_path / "a.aec", tmp_path / name, p, shape=rows.shape, interleave=interleave)

    run("a.npy")
    # In the order that it had.
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), stored)
    if interleave != "bip":
        # Rows that do not lie together are read and written many at a time.
        return
    tracemalloc.start()
    try:
        run("b.npy")
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < stored.nbytes / 2, most


def test_no_room_for_samples_that_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        """A temporary file on a full disk."""

        name = "waiting"

        def __enter__(self) -> Full:
            return self

        def __exit__(self, *error: object) -> None:
            pass

        def write(self, data: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    full = SimpleNamespace(NamedTemporaryFile=lambda prefix: Full())
    monkeypatch.setattr("plait.hyperspectral.ccsds121.tempfile", full)
    p = RiceParameters(depth=8, block_size=8)
    (tmp_path / "a.aec").write_bytes(b"\xff" * 64)
    with pytest.raises(FormatError, match="waiting: found no space left on the device"):
        decompress_rice_file(tmp_path / "a.aec", tmp_path / "a.npy", p, shape=(1, 2, 3), interleave="bip")
    assert not (tmp_path / "a.npy").exists()
