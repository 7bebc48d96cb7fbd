"""Finding patterns on GPUs, or in the simulator, against the CPU: mismatches, edits, sites with bulges."""

from __future__ import annotations

import numpy as np
import pytest

from plait.devices.cuda_target import CudaTarget
from plait.devices.target import CpuTarget
from plait.dp.bitparallel import gpu_striped
from plait.dp.bitparallel.launches import (
    EDIT_ENDS,
    MARGIN,
    MISMATCH_STARTS,
    SITE_MATCHES,
    PamSites,
    SiteBatch,
    TextBatch,
    encoded,
)
from plait.dp.bitparallel.striped import ErrorLimits
from plait.mapping.texts import letter_sets

pytestmark = [pytest.mark.gpu, pytest.mark.cuda_simulator]


def batch_of(letters: int, seed: int, width: int = 16) -> TextBatch:
    rng = np.random.default_rng(seed)
    text = rng.choice(np.frombuffer(b"ACGTN", np.uint8), letters, p=[0.3, 0.2, 0.2, 0.28, 0.02])
    text[: letters // 2] = np.tile(text[:12], letters // 24 + 1)[: letters // 2]
    whole = np.zeros(2 * MARGIN + (letters + 63 & -64), np.uint8)
    whole[MARGIN : MARGIN + letters] = text
    codes = encoded(whole, letter_sets(False))
    lengths = np.array([8, 11, 12])
    patterns = np.zeros((3, 12), np.uint8)
    for row, size, begin in zip(patterns, lengths, (0, 4, letters - 12), strict=True):
        own = codes[MARGIN + begin : MARGIN + begin + size] & 15
        row[:size] = np.where(own == 0, 15, own)
    return TextBatch(codes, letters, patterns, lengths, np.array([1, 2, 3]), width)


def same(problem, batch) -> int:
    expected = CpuTarget(1).launch(problem, batch)
    found = CudaTarget((0,)).launch(problem, batch)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    return int(expected[0].size)


@pytest.mark.parametrize("letters", [13, 150])
def test_mismatches(letters: int) -> None:
    assert same(MISMATCH_STARTS, batch_of(letters, letters)) > 1


@pytest.mark.parametrize("letters", [13, 150])
def test_edits(letters: int) -> None:
    assert same(EDIT_ENDS, batch_of(letters, letters)) > 3


def turned(text: TextBatch) -> TextBatch:
    """The same with patterns from their last letter on."""
    patterns = text.patterns.copy()
    for row, size in zip(patterns, text.lengths, strict=True):
        row[:size] = row[:size][::-1].copy()
    return text._replace(patterns=patterns)


@pytest.mark.parametrize("onward", [1, -1])
@pytest.mark.parametrize("limits", [(0, 0, 3), (1, 1, 3), (2, 0, 4)])
def test_sites(onward: int, limits: tuple[int, int, int]) -> None:
    text = batch_of(90, 3)
    sites = np.arange(MARGIN, MARGIN + 88)
    text = text if onward == 1 else turned(text)
    assert same(SITE_MATCHES, SiteBatch(text, sites, onward, ErrorLimits(*limits))) > 1


@pytest.mark.parametrize("onward", [1, -1])
@pytest.mark.parametrize(
    ("pam", "mismatches", "ranges"),
    [(b"\x0f\x0d", 0, [[0, 148]]), (b"\x02\x05", 1, [[10, 40], [42, 42], [60, 140]]), (b"\x01", 0, [])],
)
def test_sites_beside_pams(onward: int, pam: bytes, mismatches: int, ranges: list[list[int]]) -> None:
    text = batch_of(150, 5)
    text = text if onward == 1 else turned(text)
    sites = PamSites(np.frombuffer(pam, np.uint8), mismatches, np.array(ranges, np.int64).reshape(-1, 2))
    found = same(SITE_MATCHES, SiteBatch(text, sites, onward, ErrorLimits(0, 0, 3)))
    assert found > 1 or not ranges


def test_more_hits_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_striped, "_FIRST_ROOM", 2)
    text = batch_of(60, 6)
    assert same(MISMATCH_STARTS, text) > 2
    ranges = np.array([[0, 58]], np.int64)
    sites = PamSites(np.array([15], np.uint8), 0, ranges)
    assert same(SITE_MATCHES, SiteBatch(text, sites, 1, ErrorLimits(0, 0, 3))) > 2


def test_more_patterns_than_a_grid_has_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_striped, "_MOST_BLOCKS", 1)
    text = batch_of(60, 8)
    text = text._replace(
        patterns=np.tile(text.patterns, (4, 1)),
        lengths=np.tile(text.lengths, 4),
        limits=np.arange(12) // 4,
    )
    ranges = np.array([[0, 58]], np.int64)
    sites = PamSites(np.array([15], np.uint8), 0, ranges)
    assert same(MISMATCH_STARTS, text) > 2
    assert same(EDIT_ENDS, text) > 2
    for limits in ((0, 0, 3), (0, 1, 3), (2, 0, 3)):
        assert same(SITE_MATCHES, SiteBatch(text, sites, 1, ErrorLimits(*limits))) > 2


def test_many_levels() -> None:
    text = batch_of(40, 9)
    text = text._replace(limits=np.array([1, 1, 1]))
    sites = np.arange(MARGIN, MARGIN + 30)
    # 2 numbers of mismatches and 9 each of extra and missing letters: more than 128 levels.
    assert same(SITE_MATCHES, SiteBatch(text, sites, 1, ErrorLimits(8, 8, 3))) > 1


@pytest.mark.parametrize("devices", [1, 3])
def test_shares_of_devices(devices: int) -> None:
    # Each share is looked at on a device of its own; here all of them are the first one.
    text = batch_of(100, 7)
    ranges = np.array([[0, 30], [33, 98]], np.int64)
    sites = PamSites(np.array([15, 7], np.uint8), 0, ranges)
    target = CudaTarget((0,) * devices)
    for problem, batch in (
        (MISMATCH_STARTS, text),
        (EDIT_ENDS, text),
        (SITE_MATCHES, SiteBatch(text, sites, 1, ErrorLimits(0, 0, 3))),
        (SITE_MATCHES, SiteBatch(text, sites, 1, ErrorLimits(1, 1, 3))),
    ):
        expected = CpuTarget(1).launch(problem, batch)
        for one, other in zip(target.launch(problem, batch), expected, strict=True):
            np.testing.assert_array_equal(one, other)
