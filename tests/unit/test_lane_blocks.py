"""Texts side by side in lanes."""

from __future__ import annotations

import numpy as np
import pytest

from plait.devices.target import CpuTarget
from plait.dp.pairs.blocks import (
    BLOCK_LANES,
    BlockBatch,
    arrange,
    pack_texts,
    pack_texts_by_group,
    packed_columns,
)
from plait.dp.pairs.inter_sequence import PAD, BlockQuery
from plait.dp.pairs.launches import BLOCK_SCORES
from plait.vdj.reads.allele_alignment import LOCAL

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


def test_queries_with_blocks_of_their_own() -> None:
    """Groups of texts, each in blocks of its own and scored with another query, all in one go.

    One group has a score beyond 8 bits, one two blocks, and one text is empty.
    """
    random = np.random.default_rng(5)
    letters, table = random.integers(0, 4, 400).astype(np.uint8), 31 * np.eye(4, dtype=np.int8) - 4
    sizes = [6, 3, 10]
    queries = [
        BlockQuery(letters[at : at + size].astype(np.int64), table, 6, 2, LOCAL)
        for at, size in zip((0, 50, 100), sizes, strict=True)
    ]
    groups = np.concatenate([random.integers(0, 2, 20), np.full(66, 1), [2, 2, 0]])
    firsts, lengths = random.integers(0, 300, groups.size), random.integers(1, 8, groups.size)
    firsts[-3:], lengths[-3:] = (100, 0, 3), (10, 4, 0)
    blocks, lanes, ranges = pack_texts_by_group(letters, firsts, lengths, groups)
    assert ranges.tolist() == [[0, 1], [1, 3], [3, 4]]
    assert blocks.lengths.ravel()[lanes].tolist() == lengths.tolist()
    target = CpuTarget(1)
    assert target.launch(BLOCK_SCORES, BlockBatch([], blocks, ranges=ranges[:0])) == []
    found = target.launch(BLOCK_SCORES, BlockBatch(queries, blocks, ranges=ranges))
    for query, own, scores in zip(queries, ranges.tolist(), found, strict=True):
        (expected,) = target.launch(BLOCK_SCORES, BlockBatch([query], blocks.between(*own)))
        assert scores.dtype == expected.dtype and np.array_equal(scores, expected)
    assert np.concatenate(found).ravel()[lanes[-3:]].tolist()[::2] == [270, 0]
