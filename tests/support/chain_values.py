"""The tables of the chain in algebras other than probability, which plait itself does not ask for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from plait.dp.chain.tables import EndTrees
from plait.dp.chain.weigh import WeightedChain
from plait.lang.algebras import Count, LogSum, MaxProduct, Probability, WeightedSum, choice
from plait.lang.lanes import PADDING, padded
from plait.vdj.model.junctions import EndShape, ModelShapes, part_weights, weighted_chain
from plait.vdj.model.recombination_model import RecombinationModel

__all__ = ["Amounts", "chain_in", "empty_table", "scratch_in"]

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
    """A table of probabilities as values of an algebra; `table` is its name.

    The algebra is `Probability`, `MaxProduct`, `LogSum`, `Count` (one for all that is possible) or
    `WeightedSum`, which alone needs `amounts`.
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
    """A table of which each row is the sum, in the algebra, of all values that belong to it.

    `row` (n,) says where each of the `values` (n, columns) belongs.
    """
    table = empty_table(algebra, (rows, values.shape[1]))
    if isinstance(algebra, WeightedSum):
        for (k, column), value in np.ndenumerate(values):
            table[row[k], column] = choice(algebra, table[row[k], column], value)
    else:
        _TOGETHER[type(algebra)].at(table, row, values)
    return table


def chain_in(
    algebra: Any, model: RecombinationModel, shapes: ModelShapes, amounts: Amounts | None = None
) -> WeightedChain:
    """The tables of a model, as of `plait.vdj.model.junctions.weighted_chain`, as values of an algebra.

    Parameters
    ----------
    algebra
        That of probabilities, their logarithms (`LogSum`), what is possible at all (`Count`), or
        `WeightedSum`, where `amounts` is what each choice adds; it takes parts that read alike together.
    model, shapes
        The model, and the trees of its genes.
    amounts
        See `values_of`.
    """
    chain = weighted_chain(model, shapes)
    weights = part_weights(model, shapes)
    own = np.eye(padded(max(len(model.d), 1)))[shapes.words.gene]

    def table(name: str, p: NDArray[np.float64]) -> NDArray[Any]:
        return np.ascontiguousarray(values_of(algebra, name, p, amounts))

    def trees(name: str, shape: EndShape, p: NDArray[np.float64]) -> EndTrees:
        return EndTrees(shape.child, entered_at(algebra, len(shape.child), shape.node, table(name, p)))

    def lengths(values: NDArray[Any], longer: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        between = empty_table(algebra, (1, 2 * PADDING + longer.size))
        between[0, PADDING : PADDING + longer.size] = longer
        return values[:1].copy(), between

    left, right = table("left_length", model.p_vd_length), table("right_length", model.p_dj_length)
    (left_none, left_length), (right_none, right_length) = (
        lengths(left, left[:0:-1]),
        lengths(right, right[1:]),
    )
    pick = empty_table(algebra, chain.pick.shape)
    pick[0, chain.pick.argmax()] = algebra.one
    return chain._replace(
        v=trees("v", shapes.v, weights.v),
        j=trees("j", shapes.j, weights.j),
        d=trees("d", shapes.d, weights.d),
        words=trees("d", shapes.words, weights.d * own),
        left_none=left_none,
        right_none=right_none,
        left_length=left_length,
        right_length=right_length,
        pick=pick,
        left_first=table("left_first", model.vd_first),
        right_first=table("right_first", model.dj_first),
        left_step=table("left_step", model.vd_steps),
        right_step=table("right_step", model.dj_steps),
    )


def scratch_in(algebra: Any, scratch: Any) -> Any:
    """Memory for values of an algebra, from that for probabilities.

    Parameters
    ----------
    algebra
        The algebra.
    scratch
        See `plait.vdj.model.junctions.make_scratch`.
    """
    tables = {
        name: empty_table(algebra, values.shape)
        for name, values in scratch._asdict().items()
        if getattr(values, "dtype", None) == np.float64
    }
    return scratch._replace(**tables)
