"""Compiled entry points for regressions."""

from __future__ import annotations

from typing import Any

from plait._jit import kernel
from plait.schedules.lasso_steps import minimise
from plait.schedules.logistic_sums import add_logistic
from plait.schedules.row_products import SIDE, add_products

__all__ = ["logistic_kernel", "minimise_kernel", "products_kernel"]


@kernel
def logistic_kernel(lanes: Any, data: Any, models: Any, curved: bool, scratch: Any, sums: Any) -> None:
    """See `plait.schedules.logistic_sums.add_logistic`."""
    add_logistic(lanes, data, models, curved, scratch, sums)


@kernel
def products_kernel(lanes: Any, x: Any, sums: Any) -> None:
    """Products of all pairs of rows, on and above the diagonal, see `plait.schedules.row_products`."""
    for i in range(0, x.shape[0], SIDE):
        add_products(lanes, x, i, x, i, x.shape[1], sums, i)


@kernel
def minimise_kernel(problems: Any, scratch: Any, out: Any) -> int:
    """See `plait.schedules.lasso_steps.minimise`."""
    return minimise(problems, scratch, out)
