"""Kernels are compiled without Numba's passes for what few have; what has it is served, or refused."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from plait.lang.compile import kernel

pytestmark = pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="nothing is compiled")
RECORDS = np.array([(4, 0.5), (6, 1.5)], [("count", "i8"), ("share", "f8")])


def with_a_function_within(rows: Any, factor: int) -> Any:
    def scaled(row: int) -> int:
        return row * factor

    total = 0
    for row in rows:
        total += scaled(row)
    return total


def with_fields(rows: Any, factor: int) -> Any:
    return rows[1]["count"] * factor


def with_truth(rows: Any, factor: int) -> Any:
    return bool(factor) and not bool(rows[0])


def with_kinds(rows: Any, factor: int) -> Any:
    return rows[1] if isinstance(factor, int) else rows[2]


@pytest.mark.parametrize(
    ("body", "rows"),
    [
        (with_a_function_within, np.arange(5)),
        (with_fields, RECORDS),
        (with_truth, np.arange(5)),
        (with_kinds, np.arange(5)),
    ],
)
def test_what_few_bodies_have(body: Callable[..., Any], rows: Any) -> None:
    assert kernel(body)(rows, 3) == body(rows, 3)


def of_whole_arrays(rows: Any, factor: int) -> Any:
    return (rows * factor + 1).sum()


def of_an_array_made(rows: Any, factor: int) -> Any:
    return np.array([1, 2, 3])[factor] + rows[0]


def of_a_list(rows: Any, factor: int) -> Any:
    return sum([row * factor for row in rows])


@pytest.mark.parametrize("body", [of_whole_arrays, of_an_array_made, of_a_list])
def test_what_needs_memory_is_refused(body: Callable[..., Any]) -> None:
    assert body(np.arange(5), 2)
    with pytest.raises(Exception, match="pipeline"):
        kernel(body)(np.arange(5), 2)
