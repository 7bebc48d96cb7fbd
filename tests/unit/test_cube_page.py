"""The page of a compressed cube: its numbers against NumPy, its bits against the stream."""

from __future__ import annotations

import base64
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plait.cli import main
from plait.errors import FormatError
from plait.hyperspectral import as_cube, compress_cube, compress_file, open_stream
from plait.reports.cube_page import band_facts, png, write_cube_page

RNG = np.random.default_rng(7)
CUBE = (
    1000 + 40 * np.arange(6) + np.cumsum(RNG.integers(-3, 4, (40, 30, 6)), axis=0) * [1, 2, 3, 4, 5, 0]
).astype(np.uint16)


@pytest.mark.parametrize("blocks", [None, "tiles:17x30"])
@pytest.mark.parametrize("order", [{}, {"interleaving_depth": 2}, {"order": "bsq"}], ids=["bip", "bi", "bsq"])
def test_statistics_and_bits(tmp_path: Path, blocks: str | None, order: dict[str, Any]) -> None:
    np.save(tmp_path / "a.npy", CUBE)
    compress_file(tmp_path / "a.npy", tmp_path / "a.c123", blocks=blocks, parameters=order, preset="fast")
    found = band_facts(tmp_path / "a.c123", threads=2)
    plain = CUBE.reshape(-1, 6).astype(float)
    np.testing.assert_array_equal(found.least, plain.min(0))
    np.testing.assert_array_equal(found.largest, plain.max(0))
    np.testing.assert_allclose(found.mean, plain.mean(0), rtol=1e-12)
    np.testing.assert_allclose(found.deviation, plain.std(0), rtol=1e-9, atol=1e-9)
    for band in range(6):
        shares = np.bincount(CUBE[..., band].ravel()) / plain.shape[0]
        shares = shares[shares > 0]
        assert found.entropy[band] == pytest.approx(-(shares * np.log2(shares)).sum())
    assert found.looked == 1200 and found.bits is not None
    with open_stream(tmp_path / "a.c123") as cube:
        decoders = [cube.decoder(k) for k in range(cube.decoders)]
        bits = sum(8 * one.body_bytes for one in decoders)
    # All but what fills up the last byte of each stream.
    assert 0 <= bits - found.bits.sum() * 1200 < 8 * len(decoders) + 1e-6


def test_of_numbers_that_are_none(tmp_path: Path) -> None:
    cube = (CUBE / 7).astype(np.float32)
    cube[..., 1] = np.nan
    cube[3, 4, 2] = np.inf
    compress_cube(as_cube(cube), tmp_path / "a.c123")
    found = write_cube_page(tmp_path / "a.c123", tmp_path / "a.html")
    plain = np.where(np.isfinite(cube), cube, np.nan).reshape(-1, 6)[:, [0, 2, 3, 4, 5]].astype(float)
    np.testing.assert_allclose(np.delete(found.mean, 1), np.nanmean(plain, axis=0), rtol=1e-12)
    np.testing.assert_allclose(np.delete(found.deviation, 1), np.nanstd(plain, axis=0), rtol=1e-6, atol=1e-9)
    assert np.isnan(found.mean[1]) and np.isnan(found.largest[1]) and np.isfinite(found.largest[2])
    assert "NaN" not in (text := (tmp_path / "a.html").read_text()) and "<td>nan</td>" in text


@pytest.mark.parametrize("coder", ["hybrid", "block-adaptive"])
def test_coders_whose_bands_share_codewords(tmp_path: Path, coder: str) -> None:
    np.save(tmp_path / "a.npy", CUBE)
    compress_file(tmp_path / "a.npy", tmp_path / "a.c123", parameters={"coder": coder})
    assert write_cube_page(tmp_path / "a.c123", tmp_path / "a.html").bits is None
    assert "none has bits of its own" in (tmp_path / "a.html").read_text()


def _base64(text: str) -> str:
    return re.search(r"base64,([^\"]+)", text)[1]  # type: ignore[index]


def _picture(text: str) -> np.ndarray[Any, Any]:
    data = base64.b64decode(_base64(text))
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    columns, rows = (int.from_bytes(data[at : at + 4], "big") for at in (16, 20))
    size = int.from_bytes(data[33:37], "big")
    assert data[37:41] == b"IDAT" and zlib.crc32(data[37 : 41 + size]) == int.from_bytes(
        data[41 + size : 45 + size], "big"
    )
    lines = np.frombuffer(zlib.decompress(data[41 : 41 + size]), np.uint8).reshape(rows, -1)
    assert not lines[:, 0].any()
    return lines[:, 1:].reshape(rows, columns, 3)


def test_the_picture_shows_bands_by_their_wavelength(tmp_path: Path) -> None:
    waves = "0.40, 0.45, 0.55, 0.65, 0.85, 2.0"
    (tmp_path / "s.hdr").write_text(
        "ENVI\nsamples = 30\nlines = 40\nbands = 6\ndata type = 12\ninterleave = bip\nbyte order = 0\n"
        f"default bands = {{1, 2, 3}}\nwavelength units = Micrometers\nwavelength = {{{waves}}}\n"
    )
    (tmp_path / "s.img").write_bytes(CUBE.tobytes())
    compress_file(tmp_path / "s.hdr", tmp_path / "<b>&.c123")
    assert main(["hsi", "info", str(tmp_path / "<b>&.c123"), "--html", str(tmp_path / "a.html")]) == 0
    text = (tmp_path / "a.html").read_text()
    assert "Bands 4, 3, 2, of 650, 550, 450 nm as red" in text and "<b>&" not in text
    picture = _picture(text)
    shown = CUBE[..., [3, 2, 1]].astype(float)
    low, high = np.percentile(shown, (2, 98), axis=(0, 1))
    np.testing.assert_array_equal(
        picture, (255 * np.clip((shown - low) / (high - low), 0, 1)).astype(np.uint8)
    )
    assert "//" not in text.replace("http://www.w3.org/2000/svg", "").replace(_base64(text), "")


def test_large_pictures_are_thinned_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plait.reports.cube_page._LOOK", 16)
    monkeypatch.setattr("plait.reports.cube_page._ENTROPY", 720)
    np.save(tmp_path / "a.npy", CUBE)
    compress_file(tmp_path / "a.npy", tmp_path / "a.c123", blocks="rows:7")
    found = write_cube_page(tmp_path / "a.c123", tmp_path / "a.html")
    text = (tmp_path / "a.html").read_text()
    assert "one row and column of 3" in text and found.looked == 10 * 8
    shown = CUBE[::3, ::3, [2, 1, 0]].astype(float)
    low, high = np.percentile(shown, (2, 98), axis=(0, 1))
    np.testing.assert_array_equal(
        _picture(text), (255 * np.clip((shown - low) / (high - low), 0, 1)).astype(np.uint8)
    )


def test_damage_leaves_no_page(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", CUBE)
    compress_file(tmp_path / "a.npy", tmp_path / "a.c123")
    data = bytearray((tmp_path / "a.c123").read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "a.c123").write_bytes(data)
    with pytest.raises(FormatError):
        write_cube_page(tmp_path / "a.c123", tmp_path / "a.html")
    assert main(["hsi", "info", str(tmp_path / "a.c123"), "--html", str(tmp_path / "a.html")]) == 2
    assert not (tmp_path / "a.html").exists()
    assert main(["hsi", "info", str(tmp_path / "a.c123"), "--html", str(tmp_path / "a.c123")]) == 2
    assert len(png(np.zeros((1, 1, 3), np.uint8))) > 60


@pytest.mark.parametrize("value", [0.0, 1e20, -3e38], ids=str)
def test_bands_of_one_large_number(tmp_path: Path, value: float) -> None:
    # Such as what stands for no number in NetCDF files.
    compress_cube(as_cube(np.full((5, 4, 3), value, np.float32)), tmp_path / "a.c123")
    found = write_cube_page(tmp_path / "a.c123", tmp_path / "a.html")
    assert (found.least == np.float32(value)).all()
    assert "nan" not in (tmp_path / "a.html").read_text().partition("<svg")[2]


def test_numbers_whose_difference_is_none(tmp_path: Path) -> None:
    cube = np.resize(np.array([1e308, -1e308]), (8, 8, 2))
    compress_cube(as_cube(cube), tmp_path / "a.c123")
    with np.errstate(over="ignore", invalid="ignore"):
        found = write_cube_page(tmp_path / "a.c123", tmp_path / "a.html")
    assert found.largest.max() == 1e308
