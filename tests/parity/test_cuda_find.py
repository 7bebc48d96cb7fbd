"""Finding patterns on GPUs, or in the simulator, against the CPU: mismatches, edits, sites with bulges."""

from __future__ import annotations

import numpy as np
import pytest

from plait.devices.cuda_target import CudaTarget
from plait.devices.target import CpuTarget
from plait.dp.bitparallel.launches import (
    EDIT_ENDS,
    MARGIN,
    MISMATCH_STARTS,
    SITE_MATCHES,
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
        assert np.array_equal(one, other)
    return int(expected[0].size)


@pytest.mark.parametrize("letters", [13, 150])
def test_mismatches(letters: int) -> None:
    assert same(MISMATCH_STARTS, batch_of(letters, letters)) > 1


@pytest.mark.parametrize("letters", [13, 150])
def test_edits(letters: int) -> None:
    assert same(EDIT_ENDS, batch_of(letters, letters)) > 3


@pytest.mark.parametrize("onward", [1, -1])
@pytest.mark.parametrize("limits", [(0, 0, 3), (1, 1, 3)])
def test_sites(onward: int, limits: tuple[int, int, int]) -> None:
    text = batch_of(90, 3)
    sites = np.arange(MARGIN, MARGIN + 88)
    if onward == -1:
        turned = text.patterns.copy()
        for row, size in zip(turned, text.lengths, strict=True):
            row[:size] = row[:size][::-1].copy()
        text = text._replace(patterns=turned)
    assert same(SITE_MATCHES, SiteBatch(text, sites, onward, ErrorLimits(*limits))) > 1
