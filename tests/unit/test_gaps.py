"""Pairwise recurrences, stepped by hand over short sequences; numbers, groups and compiled code alike."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.dp.pairs.gaps import AffineGap, LinearGap, cell, choices, gaps, in_lanes
from plait.lang.algebras import MaxPlus, SaturatingMaxPlus, algebra_in_lanes
from plait.lang.compile import kernel
from plait.lang.lanes import lanes_of, load, mask_bits, store

MATCH, MISMATCH = 5, -4
NEVER = -math.inf
SEQUENCES = st.text("AC", max_size=4)
GAPS = st.tuples(st.integers(-9, -1), st.integers(-9, 0)).map(lambda drawn: (min(drawn), max(drawn)))


def similarity(a: str, b: str) -> int:
    return MATCH if a == b else MISMATCH


def matrix(gap: Any, alg: Any, query: str, target: str, top: list[Any], left: list[Any]) -> list[list[Any]]:
    """``h`` of all cells; `top` and `left` are its border, from which gaps may be opened."""
    h = [list(top)] + [[start] for start in left[1:]]
    above = [gaps(gap, alg, value, alg.zero, alg.zero)[1] for value in top]
    for i, residue in enumerate(query, 1):
        e, _ = gaps(gap, alg, left[i], alg.zero, alg.zero)
        for j, other in enumerate(target, 1):
            value = cell(gap, alg, h[i - 1][j - 1], e, above[j], similarity(residue, other))
            e, above[j] = gaps(gap, alg, value, e, above[j])
            h[i].append(value)
    return h


def border(first: int, further: int, length: int) -> list[int]:
    return [0] + [first + k * further for k in range(length)]


def global_score(gap: Any, opened: int, further: int, query: str, target: str) -> float:
    top, left = (border(opened, further, len(sequence)) for sequence in (target, query))
    return matrix(gap, MaxPlus(NEVER, 0), query, target, top, left)[-1][-1]


def alignments(queries: int, targets: int) -> Iterator[str]:
    """All ways to align so many residues: columns with both (M), the query's (I) or the target's (D)."""
    if queries == targets == 0:
        yield ""
    for column, used, passed in (("M", 1, 1), ("I", 1, 0), ("D", 0, 1)):
        if queries >= used and targets >= passed:
            for rest in alignments(queries - used, targets - passed):
                yield column + rest


def scored(columns: str, opened: int, further: int, query: str, target: str) -> int:
    score, i, j = 0, 0, 0
    for column, run in itertools.groupby(columns):
        length = len(list(run))
        if column == "M":
            score += sum(similarity(query[i + k], target[j + k]) for k in range(length))
        else:
            score += opened + (length - 1) * further
        i += length * (column != "D")
        j += length * (column != "I")
    return score


def enumerated(opened: int, further: int, query: str, target: str) -> int:
    ways = alignments(len(query), len(target))
    return max(scored(way, opened, further, query, target) for way in ways)


@pytest.mark.interpreted
@given(SEQUENCES, SEQUENCES, GAPS)
def test_global_scores_are_those_of_all_alignments(query: str, target: str, costs: tuple[int, int]) -> None:
    opened, further = costs
    wanted = enumerated(opened, further, query, target)
    assert global_score(AffineGap(opened, further), opened, further, query, target) == wanted


@pytest.mark.interpreted
@given(SEQUENCES, SEQUENCES, st.integers(-9, -1))
def test_linear_gaps_are_affine_ones_without_memory(query: str, target: str, cost: int) -> None:
    linear, affine = (
        global_score(gap, cost, cost, query, target) for gap in (LinearGap(cost), AffineGap(cost, cost))
    )
    assert linear == affine == enumerated(cost, cost, query, target)


def pieces(sequence: str) -> set[str]:
    return {sequence[a:b] for a in range(len(sequence)) for b in range(a, len(sequence) + 1)} | {""}


@pytest.mark.interpreted
@given(st.text("AC", max_size=3), st.text("AC", max_size=3), GAPS)
def test_a_zero_of_0_makes_scores_local(query: str, target: str, costs: tuple[int, int]) -> None:
    top, left = ([0] * (len(sequence) + 1) for sequence in (target, query))
    h = matrix(AffineGap(*costs), MaxPlus(0, 0), query, target, top, left)
    wanted = max(enumerated(*costs, a, b) for a in pieces(query) for b in pieces(target))
    assert max(map(max, h)) == max(wanted, 0)


# --- numbers, groups, compiled --------------------------------------------------------------------------

SIZE = 64
OPERANDS = ("diag", "e", "f", "s")
RESULTS = ("h", "e_next", "f_next")


def visit(lanes: Any, gap: Any, algebra: Any, operands: Any, results: Any, words: Any) -> None:
    """One cell in each lane: its values, and what was best."""
    p, alg = in_lanes(gap, lanes), algebra_in_lanes(algebra, lanes)
    for at in range(0, operands.shape[1], lanes.width):
        diag = load(lanes, operands, 0, at)
        e = load(lanes, operands, 1, at)
        f = load(lanes, operands, 2, at)
        s = load(lanes, operands, 3, at)
        h = cell(p, alg, diag, e, f, s)
        e_next, f_next = gaps(p, alg, h, e, f)
        by_diag, by_e, e_opened, f_opened = choices(p, alg, diag, e, s, h, e_next, f_next)
        store(lanes, results, 0, at, h)
        store(lanes, results, 1, at, e_next)
        store(lanes, results, 2, at, f_next)
        words[0, at] = mask_bits(by_diag)
        words[1, at] = mask_bits(by_e)
        words[2, at] = mask_bits(e_opened)
        words[3, at] = mask_bits(f_opened)


compiled_visit = kernel(visit)


def drawn_cells(dtype: Any, low: int, seed: int) -> Any:
    """Operands near each other, so that all choices occur, and at the limits of the type."""
    rng = np.random.default_rng(seed)
    limits = np.iinfo(dtype)
    near = rng.integers(max(low, -20), 20, (4, SIZE))
    extreme = rng.choice([limits.min, limits.max, limits.max - 3, max(limits.min, low) + 3], (4, SIZE))
    operands = np.where(rng.random((4, SIZE)) < 0.2, extreme, near).astype(dtype)
    operands[:3] = np.maximum(operands[:3], dtype.type(low))
    return operands


def visited(function: Any, width: int, gap: Any, algebra: Any, operands: Any) -> tuple[Any, Any]:
    """Values, and masks by lane, shape (4, lanes)."""
    results = np.zeros((3, SIZE), operands.dtype)
    words = np.zeros((4, SIZE), np.int64)
    function(lanes_of(width), gap, algebra, operands, results, words)
    bits = words[:, ::width, None] >> np.arange(width) & 1
    return results, bits.reshape(4, SIZE).astype(bool)


def in_type(dtype: Any, kind: Any, *numbers: int) -> Any:
    return kind(*(dtype.type(number) for number in numbers))


def setting(name: str, algebra: Any, gap: Any) -> tuple[Any, Any, Any]:
    """Lane type, algebra and recurrence, with all their numbers in that type."""
    dtype = np.dtype(name)
    low = int(np.iinfo(dtype).min) if algebra is SaturatingMaxPlus else 0
    costs = (-11, -1) if gap is AffineGap else (-3,)
    return dtype, in_type(dtype, algebra, low, 0), in_type(dtype, gap, *costs)


@pytest.mark.interpreted
@pytest.mark.parametrize("width", [4, 16, 64])
@pytest.mark.parametrize("name", ["int8", "int32", "int64"])
@pytest.mark.parametrize("algebra", [MaxPlus, SaturatingMaxPlus])
@pytest.mark.parametrize("gap", [AffineGap, LinearGap])
def test_groups_of_cells_are_cells(gap: Any, algebra: Any, name: str, width: int) -> None:
    dtype, alg, p = setting(name, algebra, gap)
    operands = drawn_cells(dtype, int(alg.zero), width)
    one, wanted = (visited(visit, lanes, p, alg, operands) for lanes in (width, 1))
    for found, expected in zip(one, wanted, strict=True):
        assert np.array_equal(found, expected)


#: Recurrence, algebra, type of numbers, and the width of lanes that every run compiles.
COMPILED = (
    (AffineGap, SaturatingMaxPlus, "int8", 32),
    (AffineGap, MaxPlus, "int16", 4),
    (LinearGap, MaxPlus, "int8", 4),
    (LinearGap, SaturatingMaxPlus, "int64", 1),
)


@pytest.mark.parametrize(
    ("gap", "algebra", "name", "width"),
    [
        pytest.param(*kind, width, marks=[] if width == often else [pytest.mark.slow])
        for *kind, often in COMPILED
        for width in (1, 4, 32)
    ],
)
def test_compiled_cells_are_cells(gap: Any, algebra: Any, name: str, width: int) -> None:
    dtype, alg, p = setting(name, algebra, gap)
    operands = drawn_cells(dtype, int(alg.zero), 100 + width)
    compiled, wanted = (visited(function, width, p, alg, operands) for function in (compiled_visit, visit))
    for found, expected in zip(compiled, wanted, strict=True):
        assert np.array_equal(found, expected)


@pytest.mark.interpreted
@pytest.mark.parametrize("gap", [AffineGap, LinearGap])
@pytest.mark.parametrize("seed", range(4))
def test_choices_say_where_a_value_comes_from(gap: Any, seed: int) -> None:
    _, alg, p = setting("int64", SaturatingMaxPlus, gap)
    rng = np.random.default_rng(seed)
    operands = rng.integers(-15, 15, (4, SIZE))
    (h, e_next, f_next), (by_diag, by_e, e_opened, f_opened) = visited(visit, 1, p, alg, operands)
    diag, e, f, s = operands
    opened, further = p[0], p[-1]
    assert np.array_equal(by_diag, h == diag + s)
    assert np.array_equal(by_e, h == e)
    assert np.all(by_diag | by_e | (h == f))
    assert np.array_equal(e_next[e_opened], h[e_opened] + opened)
    assert np.array_equal(f_next[f_opened], h[f_opened] + opened)
    assert np.array_equal(e_next[~e_opened], e[~e_opened] + further)
    assert np.array_equal(f_next[~f_opened], f[~f_opened] + further)
    assert by_diag.any() and by_e.any() and e_opened.any() and f_opened.any()
