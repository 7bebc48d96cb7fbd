"""Pairs in the bits of registers: interpreted, compiled, in lanes of any width, and by plain distances."""

from __future__ import annotations

import numpy as np
import pytest
from support.mapping_truth import changed, edit_distances

from plait.devices.target import interpreted
from plait.lang.lanes import host_lanes, lanes_of
from plait.mapping.genome import read_genome
from plait.mapping.seeds import packed_reads
from plait.mapping.verification import BEYOND, LaneScratch, check_kernel, transpose

ERRORS = 3


def scratch_of(longest, width):
    rows, window = -(-longest // 64) * 64, -(-(longest + 2 * ERRORS) // 64) * 64
    levels = (2 * ERRORS + 3) * (ERRORS + 1)
    shapes = ((2, rows, width), (2, window, width), (rows, width), (levels, width))
    return LaneScratch(*(np.zeros(shape, np.int64) for shape in shapes), np.zeros(64 * width, np.int64))


def problem(seed):
    """A genome, reads of several lengths, their diagonals, and what plain distances say of the windows."""
    rng = np.random.default_rng(seed)
    text = "".join(rng.choice(list("ACGT"), 600))
    genome = read_genome({"c": text})
    lengths, starts, reads = [], [], []
    for k in range(70):
        size = int(rng.choice([30, 63, 64, 70]))
        at = int(rng.integers(10, 500))
        read = changed(rng, list(text[at : at + size]), int(rng.integers(0, 7)), k % 3)
        reads.append(read)
        lengths.append(len(read))
        starts.append(at + int(rng.integers(-1, 2)))
    longest = max(lengths)
    letters = np.frombuffer("".join(reads).encode(), np.uint8)
    sizes = np.array(lengths, np.int64)
    packed = packed_reads(
        letters, np.concatenate([[0], np.cumsum(sizes)]), sizes, np.full(sizes.size, ERRORS)
    )
    keys = np.array([(2 * k << 32) | (1024 + at) for k, at in enumerate(starts)])
    banded = [
        _banded(read, text[at - ERRORS : at + len(read) + ERRORS])
        for read, at in zip(reads, starts, strict=True)
    ]
    return genome.words, packed, keys, longest, np.array(banded)


def _banded(read, window):
    """Smallest distance of paths that stay in the band."""
    band = {d: 0 for d in range(2 * ERRORS + 1)}
    for i, letter in enumerate(read):
        new = {}
        for d in range(2 * ERRORS + 1):
            best = band[d] + (letter != window[i + d])
            if d > 0:
                best = min(best, new[d - 1] + 1)
            if d < 2 * ERRORS:
                best = min(best, band[d + 1] + 1)
            new[d] = best
        band = new
    found = min(band.values())
    assert found >= edit_distances(read, window).min()
    return found


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(
    ("kernel", "lanes"),
    [
        (interpreted(check_kernel), lanes_of(1)),
        pytest.param(check_kernel, lanes_of(1), marks=pytest.mark.slow),
        pytest.param(check_kernel, host_lanes(), marks=pytest.mark.slow),
    ],
)
def test_pairs_of_any_length_in_lanes_of_any_width(kernel, lanes, seed):
    words, reads, keys, longest, distances = problem(seed)
    out = np.empty(keys.size, np.uint8)
    kernel(lanes, words, reads, keys, longest, ERRORS, scratch_of(longest, lanes.width), out)
    assert np.array_equal(out != BEYOND, distances <= ERRORS)


@pytest.mark.interpreted
def test_transposed_words():
    masks = (
        0xFFFFFFFF,
        0xFFFF0000FFFF,
        0xFF00FF00FF00FF,
        0x0F0F0F0F0F0F0F0F,
        0x3333333333333333,
        0x5555555555555555,
    )
    rows = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, (64, 2))
    turned = rows.copy()
    transpose(lanes_of(2), turned, 0, masks)
    for i, k, lane in ((0, 0, 0), (3, 60, 1), (63, 1, 0), (31, 32, 1), (63, 63, 1)):
        assert (int(rows[i, lane]) >> k) & 1 == (int(turned[k, lane]) >> i) & 1
    transpose(lanes_of(2), turned, 0, masks)
    assert np.array_equal(turned, rows)
