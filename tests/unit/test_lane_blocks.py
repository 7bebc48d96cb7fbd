"""Texts side by side in lanes."""

from __future__ import annotations

import numpy as np
import pytest

from plait.dp.pairs.blocks import BLOCK_LANES, arrange, pack_texts, packed_columns
from plait.dp.pairs.inter_sequence import PAD

pytestmark = pytest.mark.interpreted


@pytest.mark.parametrize("count", [0, 1, 64, 70])
def test_texts_are_packed_as_by_columns(count: int) -> None:
    random = np.random.default_rng(count)
    letters = random.integers(1, 16, 500).astype(np.uint8)
    firsts = random.integers(0, 400, count)
    lengths = random.integers(0, 100, count)
    blocks, order = pack_texts(letters, firsts, lengths)
    layout = arrange(lengths)
    numbers = range(len(layout.lengths))
    parts = packed_columns(letters.tobytes(), firsts[layout.order[:count]], layout, numbers, 1 << 16)
    expected = np.concatenate([np.zeros((0, BLOCK_LANES), np.uint8), *parts])
    assert np.array_equal(blocks.packed, expected)
    assert np.array_equal(blocks.first_columns, layout.first_columns)
    assert np.array_equal(blocks.lengths, layout.lengths)
    assert np.array_equal(order, layout.order[:count])
    for lane, text in enumerate(order.tolist()):
        block, at = divmod(lane, BLOCK_LANES)
        column = blocks.packed[blocks.first_columns[block] : blocks.first_columns[block + 1], at]
        assert np.array_equal(column[: lengths[text]], letters[firsts[text] : firsts[text] + lengths[text]])
        assert (column[lengths[text] :] == PAD).all()
