"""The tables of a chain as the lanes of a warp read them, and which chains they serve.

A warp runs the chain of one text (`plait.schedules.warp_chain`). Weights depend on the model only by a few
*patterns* (the values of pi of a sweep), which repeat along the lanes of `ChainTables`; what is left of the
lanes are the limits of insertions, and these are windows over running sums. Every fragment is a word of its
own, of 32 bits if all fit, whose first bit is that of the fragment.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.algebras import Count
from plait.schedules.chain_rows import Kind, PerInsertions, PerModel
from plait.schedules.chain_tables import ChainTables

__all__ = ["WarpTables", "warp_serves", "warp_tables"]

#: Products of two windows, and weights of matches, stay below this.
_NARROW = 2.0**31
#: Most patterns, so that all of them have a lane.
_PATTERNS = 32


class WarpTables(NamedTuple):
    """A chain of prefixes, F fragments and suffixes, for M models of P patterns.

    Attributes
    ----------
    prefix_symbols, suffix_symbols, prefix_length, suffix_length, allowed, mirror
        As in `ChainTables`.
    prefix_sums, suffix_sums
        int32 (n, width, P): weight of all that keeps fewer than so many symbols of an end.
    places
        (F, 16): for each text mask, the bits of a fragment's symbols that match it.
    starts, joined
        (F,): bits of the whole fragment, and of the part of it that takes part in the chain.
    early
        (F,): bits below that part; in the chain they stand for mirrored ends.
    origin
        int32 (F,): first bit of that part.
    alike
        (F, width): for each number of symbols, the bits of starts that weigh the same as the first.
    weight
        int32 (F * width * width * P,): weights by fragment, number of symbols, first bit and pattern.
    width
        One more than the symbols of the longest fragment.
    empty
        int64 (F, M): weight of a fragment of which nothing is left.
    region_left, region_right
        int32 (F,): as in `ChainTables`.
    unit
        uint8 (16,): 1 for text masks opposite which an insertion weighs one.
    left_reach, right_reach, single_reach
        int32 (M,): P times one more than the most insertions before the fragment, after it, and where there
        is none.
    out_lane
        int32 (M,): where a model stands in the output.
    fragments
        F.
    hidden
        Longest mirrored end.
    levels
        One more than the most insertions.
    patterns
        P.
    bound_ends, bound_fragment
        As in `ChainTables`.
    """

    prefix_symbols: Any
    suffix_symbols: Any
    prefix_length: Any
    suffix_length: Any
    allowed: Any
    mirror: Any
    prefix_sums: Any
    suffix_sums: Any
    places: Any
    starts: Any
    joined: Any
    early: Any
    origin: Any
    alike: Any
    weight: Any
    width: Any
    empty: Any
    region_left: Any
    region_right: Any
    unit: Any
    left_reach: Any
    right_reach: Any
    single_reach: Any
    out_lane: Any
    fragments: Any
    hidden: Any
    levels: Any
    patterns: Any
    bound_ends: Any
    bound_fragment: Any


def warp_serves(kind: Kind, alg: Any, tables: ChainTables) -> bool:
    """Whether a warp can run the chain: counting, with one fragment or none, and weights that are not huge.

    Parameters
    ----------
    kind, alg, tables
        As for `plait.schedules.chain_product.chain_item`.
    """
    weights = tables.end_weights, tables.fragment_weights
    if type(alg) is not Count or any(values.dtype != np.int64 for values in weights):
        return False
    if tables.pair_allowed.any() or (tables.words.length > 62).any():
        return False
    models = tables.out_lane.size
    if isinstance(kind.rows, PerInsertions):
        rows = tables.prefix_row, tables.suffix_row, tables.fragment_row
        single = all(values.max(initial=0) <= 1 for values in rows) and tables.hidden_row.shape[1] == 1
        return single and all(bool((values[1, :models] == 1).all()) for values in weights)
    patterns = int(tables.level_step)
    heaviest = float(tables.end_weights.max(initial=0)) * int(kind.insertion.levels)
    narrow = heaviest**2 < _NARROW and float(tables.bound_fragment) < _NARROW
    pattern = np.arange(models) % patterns
    repeated = all(bool((values[:, :models] == values[:, pattern]).all()) for values in weights)
    return isinstance(kind.rows, PerModel) and patterns <= _PATTERNS and narrow and repeated


def warp_tables(kind: Kind, tables: ChainTables) -> WarpTables:
    """The tables for a warp.

    Parameters
    ----------
    kind, tables
        A chain that `warp_serves`.
    """
    words, models = tables.words, tables.out_lane.size
    by_model = isinstance(kind.rows, PerModel)
    patterns = int(tables.level_step) if by_model else 1
    starts = (np.int64(1) << words.length) - 1
    word: Any = np.uint32 if int(words.longest) <= 32 else np.int64
    reaches = [_reaches(lane, models, patterns) for lane in
              (tables.left_lane, tables.right_lane, tables.single_lane)]  # fmt: skip
    return WarpTables(
        prefix_symbols=tables.prefix_symbols,
        suffix_symbols=tables.suffix_symbols,
        prefix_length=tables.prefix_length.astype(np.int32),
        suffix_length=tables.suffix_length.astype(np.int32),
        allowed=tables.allowed,
        mirror=tables.mirror,
        prefix_sums=_sums(tables.end_weights, tables.prefix_row, patterns),
        suffix_sums=_sums(tables.end_weights, tables.suffix_row, patterns),
        places=((words.places[words.word] >> words.first[:, None]) & starts[:, None]).astype(word),
        starts=starts.astype(word),
        joined=(tables.joined_starts >> words.first).astype(word),
        early=((np.int64(1) << tables.joined_left) - 1).astype(word),
        origin=tables.joined_left.astype(np.int32),
        alike=_widened(tables.plain_starts >> words.first[:, None], int(words.longest) + 1).astype(word),
        weight=tables.fragment_weights[_rows(tables), :patterns].astype(np.int32).ravel(),
        width=np.int32(words.longest + 1),
        empty=np.ascontiguousarray(tables.fragment_weights[tables.empty_row, :models]),
        region_left=tables.region_left.astype(np.int32),
        region_right=tables.region_right.astype(np.int32),
        unit=(tables.symbol_weight == 1).astype(np.uint8),
        left_reach=reaches[0],
        right_reach=reaches[1],
        single_reach=reaches[2],
        out_lane=tables.out_lane.astype(np.int32),
        fragments=np.int32(words.length.size),
        hidden=np.int32(tables.hidden_row.shape[1] - 1),
        levels=np.int32(kind.insertion.levels),
        patterns=np.int32(patterns),
        bound_ends=np.float64(tables.bound_ends),
        bound_fragment=np.float64(tables.bound_fragment),
    )


def _reaches(lane: NDArray[np.int32], models: int, patterns: int) -> NDArray[np.int32]:
    """From the level that each model reads: its own where no levels are given."""
    read = lane if lane.size else np.arange(models)
    reaches: NDArray[np.int32] = ((read // patterns + 1) * patterns).astype(np.int32)
    return reaches


def _widened(rows: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    wide = np.zeros((rows.shape[0], max(width, rows.shape[1])), np.int64)
    wide[:, : rows.shape[1]] = rows
    return wide


def _sums(weights: NDArray[Any], rows: NDArray[np.int32], patterns: int) -> NDArray[np.int32]:
    sums = np.zeros((rows.shape[0], rows.shape[1] + 1, patterns), np.int32)
    np.cumsum(weights[rows][:, :, :patterns], axis=1, out=sums[:, 1:])
    return sums


def _rows(tables: ChainTables) -> NDArray[np.int32]:
    """Rows of weights, by fragment, number of symbols and first bit."""
    fragments, width = tables.words.length.size, int(tables.words.longest) + 1
    rows = np.zeros((fragments, width, width), np.int32)
    for f in range(fragments):
        left, length = int(tables.joined_left[f]), int(tables.joined_length[f])
        for n in range(1, width):
            for s in range(length - n + 1):
                rows[f, n, left + s] = tables.fragment_row[f, s, s + n]
            for p in range(1, min(n, tables.hidden_row.shape[1] - 1) + 1):
                if n - p <= length:
                    rows[f, n, left - p] = tables.hidden_row[f, p, n - p]
    return rows
