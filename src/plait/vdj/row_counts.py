"""From counts of items to counts of rows, under their names; no sum is ever wrapped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plait.vdj.germline.germline_set import Chain
from plait.vdj.items import Items
from plait.vdj.models import PathModel
from plait.vdj.raw_counts import RawCounts

__all__ = ["RowSums", "by_model", "named_counts"]


class RowSums:
    """Sums over the items of a row, and over lists of counts.

    Parameters
    ----------
    items
        The items.
    overflow
        bool (m,): items whose counts do not fit.

    Attributes
    ----------
    overflow
        bool (n,): rows with such an item, or with a sum that does not fit.
    """

    def __init__(self, items: Items, overflow: NDArray[np.bool_]) -> None:
        self._first = items.first
        self._single = items.texts.start.size == items.first.size
        self._bad = np.flatnonzero(items.status != 0)
        self.overflow = self.any_item(overflow)

    def total(self, counts: NDArray[Any]) -> NDArray[Any]:
        """(m, ...) to (n, ...), zero in rows that cannot be counted.

        Parameters
        ----------
        counts
            Counts of items; overwritten.
        """
        summed = counts
        if not self._single:
            summed = self._checked(lambda values: np.add.reduceat(values, self._first, axis=0), counts)
        summed[self._bad] = 0
        if summed.dtype == np.float64:
            self._mark(~np.isfinite(summed))
        return summed

    def over(self, counts: NDArray[Any], axes: tuple[int, ...]) -> NDArray[Any]:
        """Sums of rows (n, ...) over axes.

        Parameters
        ----------
        counts
            Counts of rows.
        axes
            Which axes to sum over.
        """
        return self._checked(lambda values: values.sum(axis=axes), counts)

    def any_item(self, flags: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether any item of a row has a flag; never in rows that cannot be counted."""
        found = flags.copy() if self._single else np.logical_or.reduceat(flags, self._first, axis=0)
        found[self._bad] = False
        return found

    def first_item(self, values: NDArray[Any]) -> NDArray[Any]:
        """The values of the first item of each row, zero in rows that cannot be counted."""
        found = values if self._single else values[self._first]
        found[self._bad] = 0
        return found

    def _checked(self, add: Callable[[NDArray[Any]], NDArray[Any]], counts: NDArray[Any]) -> NDArray[Any]:
        if counts.dtype == np.int64 and counts.size:
            # The halves cannot overflow, and their sum tells exactly what the whole would have been.
            high, low = add(counts >> 32), add(counts & 0xFFFFFFFF)
            self._mark(high + (low >> 32) >= 1 << 31)
        return add(counts)

    def _mark(self, flags: NDArray[np.bool_]) -> None:
        self.overflow |= flags.any(axis=tuple(range(1, flags.ndim)))


def named_counts(model: PathModel, chain: Chain, rows: RowSums, raw: RawCounts) -> dict[str, NDArray[Any]]:
    """The count attributes of `plait.vdj.results.PathCounts`.

    Parameters
    ----------
    model, chain
        What was counted.
    rows
        Sums to rows.
    raw
        Counts of items; overwritten.
    """
    full, empty, none, pair = (rows.total(counts) for counts in raw[:4])
    summed = pair if chain == "vddj" else full if full.shape[1] else none[:, None]
    if model.name == "dp2":
        grid = (len(model.pis), len(model.nus))
        full, empty, none, pair, summed = (
            counts.reshape(*counts.shape[:-1], *grid) for counts in (full, empty, none, pair, summed)
        )
        named = _dp2_counts(model, full, empty, none, pair)
        base = summed[..., model.pis.index(model.pi), model.nus.index(model.nu)]
        return {"path_count": rows.over(base, (1,)), **named}
    n, d = full.shape[:2]
    return {
        "path_count": rows.over(summed, (1, 2)),
        "by_d": rows.over(full, (2,)),
        "zero_d_by_d": rows.over(empty, (2,)),
        "no_d": rows.over(none, (1,)),
        "by_dd": rows.over(pair, (2,)),
        "sweep_by_d": np.zeros((n, d, 0, 0), full.dtype),
        "zero_d_sweep_by_d": np.zeros((n, d, 0, 0), full.dtype),
        "no_d_sweep": np.zeros((n, 0, 0), full.dtype),
        "sweep_by_dd": np.zeros((n, pair.shape[1], 0, 0), full.dtype),
        "by_n_by_d": full,
        "no_d_by_n": none,
        "by_n_by_dd": pair,
    }


def by_model(model: PathModel, counts: NDArray[Any]) -> NDArray[Any]:
    """Counts of rows (n, M) by the axes of a sweep (n, P, U); those of dp1 and exhaustive stay (n, N).

    Parameters
    ----------
    model
        What was counted.
    counts
        A column for each of its models.
    """
    if model.name != "dp2":
        return counts
    axis_pi, axis_nu = model.axes
    at_pi, at_nu = np.ix_([model.pis.index(p) for p in axis_pi], [model.nus.index(u) for u in axis_nu])
    grid: NDArray[Any] = counts.reshape(-1, len(model.pis), len(model.nus))
    return grid[:, at_pi, at_nu]


def _dp2_counts(
    model: PathModel, full: NDArray[Any], empty: NDArray[Any], none: NDArray[Any], pair: NDArray[Any]
) -> dict[str, NDArray[Any]]:
    n, d = full.shape[:2]
    base = (..., model.pis.index(model.pi), model.nus.index(model.nu))
    axis_pi, axis_nu = model.axes if model.is_sweep else ((), ())
    sweep: tuple[Any, ...] = (..., slice(None), slice(None))
    if (axis_pi, axis_nu) != (model.pis, model.nus):
        sweep = (..., *np.ix_([model.pis.index(p) for p in axis_pi], [model.nus.index(u) for u in axis_nu]))
    return {
        "by_d": full[base],
        "zero_d_by_d": empty[base],
        "no_d": none[base],
        "by_dd": pair[base],
        "sweep_by_d": full[sweep],
        "zero_d_sweep_by_d": empty[sweep],
        "no_d_sweep": none[sweep],
        "sweep_by_dd": pair[sweep],
        "by_n_by_d": np.zeros((n, d, 0), full.dtype),
        "no_d_by_n": np.zeros((n, 0), full.dtype),
        "by_n_by_dd": np.zeros((n, pair.shape[1], 0), full.dtype),
    }
