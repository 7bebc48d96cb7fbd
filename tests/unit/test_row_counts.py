"""Sums of counts to rows: exact, or marked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cases import make_germline

from plait.dp.chain.tables import Junctions
from plait.errors import InvalidInput
from plait.vdj import PathModel, count_paths
from plait.vdj.calls import Items
from plait.vdj.counting import RowSums
from plait.vdj.germline import load_germline

WIDEST = 2**63 - 1


def sums(sizes: list[int]) -> RowSums:
    first = np.cumsum(sizes) - sizes
    start = np.zeros(sum(sizes), np.int64)
    texts = Junctions(np.zeros(0, np.uint8), start, start, start, start)
    return RowSums(Items(texts, first, np.zeros(len(sizes), np.uint8)), np.zeros(sum(sizes), np.bool_))


@given(st.lists(st.lists(st.integers(0, WIDEST), min_size=1, max_size=4), min_size=1, max_size=4))
def test_a_sum_of_items_is_exact_or_marked(rows: list[list[int]]) -> None:
    found = sums([len(row) for row in rows])
    total = found.total(np.array([count for row in rows for count in row], np.int64)[:, None])
    for row, count, overflow in zip(rows, total[:, 0].tolist(), found.overflow.tolist(), strict=True):
        assert overflow == (sum(row) > WIDEST)
        assert overflow or count == sum(row)


def test_a_sum_that_float64_would_round_down_is_marked() -> None:
    # Each of these rounds down as a float64; together they are 2^63.
    addends = [2**62 + 511, 2**61 + 255, 2**61 - 766]
    found = sums([1])
    found.over(np.array([addends], np.int64), (1,))
    assert found.overflow.tolist() == [True]


# The kernel that counts again is compiled for dp1 as well: 10 s for the same lines.
@pytest.mark.slow
def test_no_total_wraps_in_dp1() -> None:
    germline = make_germline(["ACG"], ["GGAC"], ["TTC"], d_j_order={"TRBD1": ("TRBJ9",)})
    junction = "ACG" + "N" * 30 + "TTC"
    counts = count_paths([junction], ["TRBV1"], ["TRBJ1"], germline=germline, model="dp1", max_n=36)
    (exact,) = count_paths(
        [junction], ["TRBV1"], ["TRBJ1"], germline=germline, model="dp1", max_n=36, overflow="wide"
    ).no_d
    assert exact > WIDEST
    assert counts.status.tolist() == [13] and counts.no_d.tolist() == [0]


@pytest.mark.slow
def test_rows_that_overflow_hold_zeros() -> None:
    junction = "TGTGCCAGC" + "N" * 80 + "TACTTC"
    counts = count_paths([junction], ["TRBV4"], ["TRBJ1-1"], germline="mouse_trb", nu=60)
    assert counts.status.tolist() == [13]
    assert counts.path_count.tolist() == [0] and not counts.by_d.any() and not counts.zero_d_by_d.any()


@pytest.mark.slow
def test_exhaustive_counts_in_every_type() -> None:
    junction = ("TGTGCCAGCAGTTACTTC", "TRBV4", "TRBJ1-1")
    exact = count_paths(*([x] for x in junction), germline="mouse_trb", model="exhaustive", max_n=1)
    for overflow in ("float", "wide"):
        found = count_paths(
            *([x] for x in junction), germline="mouse_trb", model="exhaustive", max_n=1, overflow=overflow
        )
        assert found.by_n_by_d.tolist() == exact.by_n_by_d.tolist()


@pytest.mark.parametrize("segment", ["v", "j"])
def test_a_germline_set_without_v_or_j_is_refused(segment: str) -> None:
    germline = replace(load_germline("mouse_trb"), **{segment: ()})
    with pytest.raises(InvalidInput, match=f"no {segment.upper()} alleles"):
        count_paths(["TGTGCCAGC"], ["TRBV4"], ["TRBJ1-1"], germline=germline, model=PathModel())
