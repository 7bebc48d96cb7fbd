"""Probabilities as values of an algebra."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from plait.algebras import Count, LogSum, MaxProduct, Probability, WeightedSum, choice

__all__ = ["Amounts", "empty_table", "entered_at", "values_of"]

#: From the name of a table of the model and its probabilities, what each entry of it adds to the amount of
#: which an algebra keeps the sum.
Amounts: TypeAlias = Callable[[str, NDArray[np.float64]], NDArray[np.float64]]


def _logarithms(p: NDArray[np.float64]) -> NDArray[Any]:
    with np.errstate(divide="ignore"):
        found: NDArray[Any] = np.log(p)
    return found


_VALUES: Final[dict[type, Callable[[NDArray[np.float64]], NDArray[Any]]]] = {
    Probability: lambda p: p,
    MaxProduct: lambda p: p,
    LogSum: _logarithms,
    Count: lambda p: (p > 0).astype(np.int64),
}
#: How alternatives are taken together where several of them belong to one entry.
_TOGETHER: Final[dict[type, Any]] = {
    Probability: np.add,
    MaxProduct: np.maximum,
    LogSum: np.logaddexp,
    Count: np.add,
}


def values_of(
    algebra: Any, table: str, p: NDArray[np.float64], amounts: Amounts | None = None
) -> NDArray[Any]:
    """A table of probabilities as values of an algebra.

    Parameters
    ----------
    algebra
        `Probability`, `MaxProduct`, `LogSum`, `Count` (one for all that is possible) or `WeightedSum`.
    table
        Its name.
    p
        The probabilities.
    amounts
        For `WeightedSum`.
    """
    if isinstance(algebra, WeightedSum):
        amount = np.zeros(p.shape) if amounts is None else amounts(table, p)
        found = np.empty(p.shape, object)
        for place, value in np.ndenumerate(p):
            # What is impossible adds nothing, whatever its amount.
            found[place] = (float(value), float(value * amount[place])) if value > 0 else algebra.zero
        return found
    return _VALUES[type(algebra)](p)


def empty_table(algebra: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    """A table of zeros of an algebra."""
    if isinstance(algebra, WeightedSum):
        found = np.empty(shape, object)
        for place in np.ndindex(*shape):
            found[place] = algebra.zero
        return found
    return np.full(shape, algebra.zero)


def entered_at(algebra: Any, rows: int, row: NDArray[np.int64], values: NDArray[Any]) -> NDArray[Any]:
    """A table of which each row is the choice between all values that belong to it.

    Parameters
    ----------
    algebra
        The algebra.
    rows
        Of the table.
    row
        int64 (n,): where each value belongs.
    values
        (n, columns).
    """
    table = empty_table(algebra, (rows, values.shape[1]))
    if isinstance(algebra, WeightedSum):
        for (k, column), value in np.ndenumerate(values):
            table[row[k], column] = choice(algebra, table[row[k], column], value)
    else:
        _TOGETHER[type(algebra)].at(table, row, values)
    return table
