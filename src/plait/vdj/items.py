"""From rows to countable items: one (V allele, J allele) pair of one junction each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plait.schedules.chain_tables import Texts
from plait.vdj.calls import CallResolver
from plait.vdj.junctions import encode_junctions
from plait.vdj.results import STATUSES

__all__ = ["Items", "make_items"]


class Items(NamedTuple):
    """What to count, and where it goes.

    Attributes
    ----------
    texts
        The m items.
    rows
        int64: the rows that have items, increasing.
    first
        int64: first item of each of these rows; a row's items follow each other.
    status
        uint8 (n,): status of every row.
    """

    texts: Texts
    rows: NDArray[np.int64]
    first: NDArray[np.int64]
    status: NDArray[np.uint8]


def make_items(junctions: pa.Array, v: CallResolver, v_call: pa.Array, j: CallResolver, j_call: pa.Array) -> Items:
    """Items of a batch of rows."""
    encoded = encode_junctions(junctions)
    status = encoded.status.copy()
    v_codes, v_found = v.resolve(v_call)
    j_codes, j_found = j.resolve(j_call)
    for codes, found in ((v_codes, v_found), (j_codes, j_found)):
        reasons = np.array([STATUSES.index(reason) if reason else 0 for reason, _ in found], np.uint8)
        undecided = status == 0
        status[undecided] = reasons[codes[undecided]]
    rows = np.flatnonzero(status == 0)
    v_kept, j_kept = v_codes[rows], j_codes[rows]
    v_count = np.array([len(alleles) for _, alleles in v_found], np.int64)[v_kept]
    j_count = np.array([len(alleles) for _, alleles in j_found], np.int64)[j_kept]
    pairs = v_count * j_count
    first = np.cumsum(pairs) - pairs
    row_of_item = np.repeat(np.arange(rows.size), pairs)
    rank = np.arange(row_of_item.size) - first[row_of_item]
    v_rank, j_rank = np.divmod(rank, j_count[row_of_item])
    texts = Texts(
        symbols=encoded.symbols,
        start=encoded.start[rows][row_of_item],
        length=encoded.length[rows][row_of_item],
        prefix=_nth(v_found, v_kept[row_of_item], v_rank),
        suffix=_nth(j_found, j_kept[row_of_item], j_rank),
    )
    return Items(texts, rows, first, status)


def _nth(
    found: list[tuple[str, tuple[int, ...]]], codes: NDArray[np.int64], rank: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The allele of the given rank in each call."""
    width = max((len(alleles) for _, alleles in found), default=0)
    table = np.full((max(len(found), 1), max(width, 1)), -1, np.int64)
    for row, (_, alleles) in zip(table, found, strict=False):
        row[: len(alleles)] = alleles
    return table[codes, rank]
