"""Texts put side by side, one in each lane of a block, letter by letter."""

from __future__ import annotations

from typing import Any

from plait._jit import shared

__all__ = ["pack_block"]


@shared
def pack_block(
    letters: Any, starts: Any, lengths: Any, block: int, first: int, last: int, packed: Any
) -> None:
    """Fill the columns of a block.

    Parameters
    ----------
    letters
        Codes of all texts, uint8.
    starts
        Where in it the text of each lane of each block begins, int64, shape (blocks, lanes).
    lengths
        Letters of each, int32, shape (blocks, lanes).
    block
        The block.
    first, last
        Its columns in `packed`.
    packed
        uint8, shape (columns, lanes); changed in place up to the end of each text.
    """
    for column in range(last - first):
        for lane in range(packed.shape[1]):
            if column < lengths[block, lane]:
                packed[first + column, lane] = letters[starts[block, lane] + column]
