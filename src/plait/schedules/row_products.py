"""Sums of products over long rows, in an order that depends on nothing.

Every sum is kept as `PARTS` partial sums: part k takes the places k, k + 8, k + 16, ... in rising order. So
results are equal bit for bit on every processor, whatever the width of its registers; nothing is fused or
reordered. What is summed is cut into spans by the caller, who adds the parts at the end.
"""

from __future__ import annotations

from typing import Any

from plait._jit import shared
from plait.lanes import load, splat, store

__all__ = ["PARTS", "SIDE", "add_products", "combine_rows"]

#: Partial sums of each sum; rows are padded to a multiple of it.
PARTS = 8
#: Rows that are worked on together; matrices are padded to a multiple of it.
SIDE = 4


@shared
def combine_rows(lanes: Any, x: Any, places: int, factors: Any, row: int, used: Any, out: Any) -> None:
    """Four weighted sums of rows of a matrix, place by place.

    ``out[m, i] = sum(factors[row + m, j] * x[j, i])`` over the rows j that are used, in their order, for m
    below 4. `places` is a multiple of ``2 * PARTS``, or is worked on as if it were.
    """
    zero = splat(lanes, 0.0)
    for i in range(0, places, 2 * PARTS):
        a, b, c, d = zero, zero, zero, zero
        e, f, g, h = zero, zero, zero, zero
        for k in range(used.size):
            j = used[k]
            one, two = load(lanes, x, j, i), load(lanes, x, j, i + PARTS)
            factor = splat(lanes, factors[row, j])
            a, e = a + factor * one, e + factor * two
            factor = splat(lanes, factors[row + 1, j])
            b, f = b + factor * one, f + factor * two
            factor = splat(lanes, factors[row + 2, j])
            c, g = c + factor * one, g + factor * two
            factor = splat(lanes, factors[row + 3, j])
            d, h = d + factor * one, h + factor * two
        _put_four(lanes, out, 0, i, (a, b, c, d))
        _put_four(lanes, out, 0, i + PARTS, (e, f, g, h))


@shared
def _four(lanes: Any, rows: Any, row: int, at: int) -> Any:
    """Groups of four neighbouring rows."""
    first, second = load(lanes, rows, row, at), load(lanes, rows, row + 1, at)
    return first, second, load(lanes, rows, row + 2, at), load(lanes, rows, row + 3, at)


@shared
def _put_four(lanes: Any, rows: Any, row: int, at: int, four: Any) -> None:
    store(lanes, rows, row, at, four[0])
    store(lanes, rows, row + 1, at, four[1])
    store(lanes, rows, row + 2, at, four[2])
    store(lanes, rows, row + 3, at, four[3])


@shared
def _plus(sums: Any, value: Any, four: Any) -> Any:
    """Four sums, each with one more product."""
    first, second = sums[0] + value * four[0], sums[1] + value * four[1]
    return first, second, sums[2] + value * four[2], sums[3] + value * four[3]


@shared
def _add_square(lanes: Any, a: Any, i: int, b: Any, j: int, places: int, sums: Any, place: int) -> None:
    """Sums of four rows of `a` with four rows of `b`."""
    step = b.shape[0]
    p = _four(lanes, sums, place, 0)
    q = _four(lanes, sums, place + step, 0)
    r = _four(lanes, sums, place + 2 * step, 0)
    s = _four(lanes, sums, place + 3 * step, 0)
    for k in range(0, places, PARTS):
        four = _four(lanes, b, j, k)
        p = _plus(p, load(lanes, a, i, k), four)
        q = _plus(q, load(lanes, a, i + 1, k), four)
        r = _plus(r, load(lanes, a, i + 2, k), four)
        s = _plus(s, load(lanes, a, i + 3, k), four)
    _put_four(lanes, sums, place, 0, p)
    _put_four(lanes, sums, place + step, 0, q)
    _put_four(lanes, sums, place + 2 * step, 0, r)
    _put_four(lanes, sums, place + 3 * step, 0, s)


@shared
def add_products(lanes: Any, a: Any, i: int, b: Any, j: int, places: int, sums: Any, row: int) -> None:
    """Add products of four rows of `a` with the rows from `j` on of `b`.

    ``sums[(row + m) * len(b) + n]`` grows by the sum of ``a[i + m, k] * b[n, k]`` over the places k, for m
    below 4 and n from `j` on. `places` is a multiple of ``PARTS``.
    """
    for n in range(j, b.shape[0], SIDE):
        _add_square(lanes, a, i, b, n, places, sums, row * b.shape[0] + n)
