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
        The m items. A row that cannot be counted has one empty item, so that rows need no spreading out.
    first
        int64 (n,): first item of each row; a row's items follow each other.
    status
        uint8 (n,): status of every row.
    """

    texts: Texts
    first: NDArray[np.int64]
    status: NDArray[np.uint8]


def make_items(
    junctions: pa.Array, v: CallResolver, v_call: pa.Array, j: CallResolver, j_call: pa.Array
) -> Items:
    """Items of a batch of rows."""
    encoded = encode_junctions(junctions)
    status = encoded.status.copy()
    v_codes, v_found = v.resolve(v_call)
    j_codes, j_found = j.resolve(j_call)
    for codes, found in ((v_codes, v_found), (j_codes, j_found)):
        reasons = np.array([STATUSES.index(reason) if reason else 0 for reason, _ in found], np.uint8)
        undecided = status == 0
        status[undecided] = reasons[codes[undecided]]
    bad = status != 0
    v_count = np.array([len(alleles) for _, alleles in v_found], np.int64)[v_codes]
    j_count = np.array([len(alleles) for _, alleles in j_found], np.int64)[j_codes]
    pairs = np.where(bad, 1, v_count * j_count)
    first = np.cumsum(pairs) - pairs
    row = np.repeat(np.arange(status.size), pairs)
    v_rank, j_rank = np.divmod(np.arange(row.size) - first[row], np.maximum(j_count[row], 1))
    texts = Texts(
        symbols=encoded.symbols,
        start=encoded.start[row],
        length=np.where(bad[row], 0, encoded.length[row]),
        prefix=np.where(bad[row], 0, _nth(v_found, v_codes[row], v_rank)),
        suffix=np.where(bad[row], 0, _nth(j_found, j_codes[row], j_rank)),
    )
    return Items(texts, first, status)


def _nth(
    found: list[tuple[str, tuple[int, ...]]], codes: NDArray[np.int64], rank: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The allele of the given rank in each call."""
    width = max((len(alleles) for _, alleles in found), default=0)
    table = np.zeros((max(len(found), 1), max(width, 1)), np.int64)
    for row, (_, alleles) in zip(table, found, strict=False):
        row[: len(alleles)] = alleles
    return table[codes, np.minimum(rank, table.shape[1] - 1)]
