"""From variants to clonotypes: the most frequent calls, and the sums."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plait.formats.sorted_runs import run_starts
from plait.vdj.annotation.byte_columns import owners
from plait.vdj.annotation.clonotype_rows import CLONOTYPE_KEY, VARIANT_KEY, add_up

__all__ = ["clonotypes_of"]

_VOTED = tuple(name for name in VARIANT_KEY if name not in CLONOTYPE_KEY)


def clonotypes_of(variants: pa.RecordBatch) -> pa.RecordBatch:
    """Make one row of the variants of each clonotype.

    Each call, the translation and the flags are those that most molecules have, every column for itself. Of
    equally frequent ones a call goes before none, and then the first in the alphabet; of flags, true before
    false.

    Parameters
    ----------
    variants
        Rows in the order of `plait.vdj.annotation.clonotype_rows.VARIANT_KEY`, clonotypes whole.

    Returns
    -------
    pyarrow.RecordBatch
        The same columns.
    """
    starts = run_starts(variants, CLONOTYPE_KEY)
    if starts.size == variants.num_rows:
        return variants
    chosen = _most_frequent_rows(variants, starts)
    keys = {name: variants[name].take(pa.array(rows)) for name, rows in chosen.items()}
    keys |= {name: variants[name].take(pa.array(starts)) for name in CLONOTYPE_KEY}
    sums = add_up(variants, starts)
    return pa.record_batch(
        {name: keys[name] if name in keys else sums[name] for name in variants.schema.names}
    )


def _most_frequent_rows(variants: pa.RecordBatch, starts: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
    """For each column that is voted on, a row of each clonotype with its most frequent value."""
    sizes = np.diff(np.append(starts, variants.num_rows))
    clonotype = owners(starts, variants.num_rows)
    # Most clonotypes have one variant only; there is nothing to vote on.
    several = np.flatnonzero(sizes[clonotype] > 1)
    part = variants.take(pa.array(several))
    owner = clonotype[several]
    weight = part["duplicate_count"].to_numpy()
    chosen = {}
    for name in _VOTED:
        rows = starts.copy()
        rows[owner[_run_heads(owner)]] = several[_winners(_codes(part[name]), owner, weight)]
        chosen[name] = rows
    return chosen


def _codes(column: pa.Array) -> NDArray[np.int64]:
    """A number for each value, lower for those that go before others."""
    encoded = column.dictionary_encode()
    values = encoded.dictionary
    text = pa.types.is_string(values.type)
    rank = np.empty(len(values), np.int64)
    rank[pc.array_sort_indices(values, order="ascending" if text else "descending")] = np.arange(len(values))
    if text:
        rank[np.asarray(pc.equal(values, ""))] = len(values)
    codes: NDArray[np.int64] = rank[encoded.indices.to_numpy(zero_copy_only=False)]
    return codes


def _winners(
    code: NDArray[np.int64], owner: NDArray[np.int64], weight: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Of the rows of each owner, one with the code of the greatest weight; the lowest code of equal ones."""
    order = np.lexsort((code, owner))
    heads = np.flatnonzero((np.diff(owner[order], prepend=-1) != 0) | (np.diff(code[order], prepend=-1) != 0))
    total = np.add.reduceat(weight[order], heads)
    rows = order[heads]
    best = np.lexsort((code[rows], -total, owner[rows]))
    return rows[best[_run_heads(owner[rows][best])]]


def _run_heads(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where runs of equal numbers, none of them negative, begin."""
    return np.flatnonzero(np.diff(values, prepend=-1) != 0)
