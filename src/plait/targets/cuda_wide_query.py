"""A query as the kernel of 32-bit scores takes it."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from plait.algebras import MaxPlus
from plait.recurrences.gaps import AffineGap, LinearGap
from plait.schedules.block_setup import BlockQuery
from plait.targets.cuda_wide import LETTERS, STRIPE, WIDTH, WideQuery

__all__ = ["WideSetup", "wide_setup"]

#: Scores that nothing comes back from. Two of them can be added.
_LOW: Final = -(1 << 30)


class WideSetup:
    """Arguments of the kernel that do not depend on the targets.

    Parameters
    ----------
    query
        The query.
    longest
        Residues of the longest target that is asked for.

    Attributes
    ----------
    gap, algebra
        Arguments of that name.
    query
        Arrays of the host.
    stripes
        Stripes of the query.
    """

    def __init__(self, query: BlockQuery, longest: int) -> None:
        number = np.int32
        free, rows = query.free, query.rows.size
        self.gap: Any = AffineGap(number(-query.gap_open), number(-query.gap_extend))
        if query.gap_open == query.gap_extend:
            self.gap = LinearGap(number(-query.gap_open))
        zero = 0 if free.local else _LOW
        self.algebra = MaxPlus(number(zero), number(0))
        self.stripes = -(-rows // STRIPE)
        padded = self.stripes * STRIPE
        letters = np.full(padded, LETTERS * WIDTH, np.int32)
        letters[:rows] = query.rows * WIDTH
        table = np.full((LETTERS + 1, WIDTH), _LOW, np.int32)
        table[: query.scores.shape[0], : query.scores.shape[1]] = query.scores
        left = np.full(padded + 1, zero, np.int64)
        left[0] = 0
        left[1 : rows + 1] = _side(query, rows, bool(free.query_start))
        top = np.zeros(1, np.int64)
        if not (free.local or free.target_start):
            top = np.concatenate([top, _side(query, longest, False)])
        opened = np.maximum(left[1:] - query.gap_open, zero)
        ends = 1 if free.anywhere else (2 if free.query_end else 0) + (4 if free.target_end else 0)
        self.query = WideQuery(
            letters,
            table.ravel(),
            top.astype(np.int32),
            left.astype(np.int32),
            opened.astype(np.int32),
            number(rows - 1),
            number(ends),
        )


def _side(query: BlockQuery, size: int, is_free: bool) -> NDArray[np.int64]:
    if is_free or query.free.local:
        return np.zeros(size, np.int64)
    return -(query.gap_open + query.gap_extend * np.arange(size, dtype=np.int64))


def wide_setup(query: BlockQuery, longest: int) -> WideSetup | None:
    """How the kernel of 32-bit scores sweeps a query; None if its numbers cannot hold what is needed.

    Parameters
    ----------
    query
        The query.
    longest
        Residues of the longest target.
    """
    letters, codes = query.scores.shape
    if letters > LETTERS or codes > WIDTH:
        return None
    low, high = int(query.scores.min(initial=0)), int(query.scores.max(initial=0))
    rows = query.rows.size
    if max(-low, high, query.gap_open, query.gap_extend) >= -_LOW:
        return None
    if high * min(rows, longest) >= np.iinfo(np.int32).max:
        return None
    least = -(3 * query.gap_open + query.gap_extend * (rows + longest)) + low
    if not query.free.local and least <= _LOW:
        return None
    return WideSetup(query, longest)
