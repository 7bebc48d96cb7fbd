"""What intervals allow to be said: of estimates, and of rank correlations."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.vdj.convergence.answers import answers, correlation_answer, published_comparison
from plait.vdj.convergence.claims import (
    Estimate,
    Verdict,
    as_text,
    estimate_of,
    interval_text,
    percent,
    strength,
    verdict,
    whole,
)

ABOVE, BELOW, AROUND, MISSING = (0.2, 0.3), (-0.3, -0.2), (-0.1, 0.1), (None, None)
SIDES = [ABOVE, BELOW, AROUND, MISSING]
#: Words that tell of a direction.
DIRECTION = re.compile(r"\b(more|fewer|less|richer|longer|shorter)\b.*\b(subjects|frequent)\b")


def row(
    x: str = "path_count",
    y: str = "subjects",
    ends: tuple[float | None, float | None] = ABOVE,
    *,
    kind: str = "all",
    method: str = "spearman",
    n: int | None = 1000,
) -> dict[str, Any]:
    low, high = ends
    middle = None if low is None or high is None else (low + high) / 2
    found = {"stratum_kind": kind, "stratum": "", "x": x, "y": y, "method": method}
    return found | {"estimate": middle, "low": low, "high": high, "n": n}


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.001, 0.2, Verdict.ABOVE),
        (-0.2, -0.001, Verdict.BELOW),
        (-0.001, 0.2, Verdict.AROUND),
        (0.0, 0.2, Verdict.AROUND),
        (-0.2, 0.0, Verdict.AROUND),
        (None, 0.2, Verdict.UNKNOWN),
        (None, None, Verdict.UNKNOWN),
    ],
)
def test_verdict(low: float | None, high: float | None, expected: Verdict) -> None:
    assert verdict(Estimate(0.05, low, high)) is expected
    assert verdict(Estimate(None, low, high)) is Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("ends", "expected"),
    [((0.01, 0.09), "weak"), ((-0.09, -0.01), "weak"), ((0.05, 0.11), ""), ((-0.11, 0.0), ""), (MISSING, "")],
)
def test_a_word_for_strength_needs_the_whole_interval(ends: Any, expected: str) -> None:
    assert strength(Estimate(0.0, *ends)) == expected


@given(st.floats(-1, 1), st.floats(0.01, 1), st.floats(-1, 1), st.floats(0.01, 1), st.floats(-1, 1))
def test_the_interval_of_a_difference_is_wide_enough(
    one: float, error: float, other: float, other_error: float, correlation: float
) -> None:
    """However the two estimates go together, two standard errors of their difference fit in."""
    first, second = (
        Estimate(value, value - 2 * spread, value + 2 * spread)
        for value, spread in ((one, error), (other, other_error))
    )
    found = first.less(second)
    spread = math.sqrt(error**2 + other_error**2 - 2 * correlation * error * other_error)
    assert found.value is not None and found.low is not None and found.high is not None
    assert found.value == pytest.approx(one - other)
    assert found.low <= one - other - 2 * spread + 1e-12
    assert found.high >= one - other + 2 * spread - 1e-12


def test_a_difference_to_nothing_is_unknown() -> None:
    assert not Estimate(1.0, 0.5, 1.5).less(Estimate(1.0, None, None)).known
    assert not Estimate(None, None, None).less(Estimate(1.0, 0.5, 1.5)).known


@pytest.mark.parametrize("empty", ["", "nan", None, math.nan], ids=["empty", "text", "none", "nan"])
def test_cells_are_numbers_or_missing(empty: Any) -> None:
    cells = {"estimate": "0.25", "low": empty, "high": "0.5", "n": "12"}
    assert estimate_of(cells, "estimate", "low", "high") == Estimate(0.25, None, 0.5, 12)
    assert estimate_of({}, "estimate", "low", "high") == Estimate(None, None, None)


def test_figures_in_words() -> None:
    texts = [as_text(value) for value in (0.18994, -0.056, 0.00041, -0.000123, 0.0)]
    assert texts == ["0.190", "-0.056", "0.00041", "-0.00012", "0.000"]
    assert [percent(v) for v in (0.5, 0.096, 0.0031, -0.00022, 0)] == [
        "50 %",
        "9.6 %",
        "0.31 %",
        "-0.022 %",
        "0 %",
    ]
    assert whole(590774.0) == "590,774"
    assert (
        interval_text(Estimate(0.1, 0.0, 0.2, 5), "mice") == "0.100, 95 % interval 0.000 to 0.200, n = 5 mice"
    )
    assert interval_text(Estimate(0.1, None, None, 5)) == "0.100, no interval, n = 5"
    assert interval_text(Estimate(None, None, None)) == "no estimate"


@given(st.floats(1e-12, 1) | st.floats(-1, -1e-12))
def test_a_figure_on_one_side_of_zero_is_not_written_as_zero(value: float) -> None:
    assert float(as_text(value)) * value > 0
    assert float(percent(value).split()[0]) * value > 0


def sides_of(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    return (answer for answer in answers({}, rows) if "_and_" in answer["id"])


@pytest.mark.parametrize("y", ["subjects", "duplicate_count", "rows"])
@pytest.mark.parametrize("x", ["path_count", "n2_length", "n2_at"])
def test_a_direction_needs_an_interval_to_one_side(x: str, y: str) -> None:
    if x != "path_count" and y != "subjects":
        assert not list(sides_of([row(x, y)]))
        return
    told = {ends: next(sides_of([row(x, y, ends)]))["headline"] for ends in SIDES}
    assert len(set(told.values())) == 4
    more, less = ("more", "fewer") if y == "subjects" else ("more", "less")
    assert f"{more} {'subjects' if y == 'subjects' else 'frequent'}" in told[ABOVE]
    assert f"{less} {'subjects' if y == 'subjects' else 'frequent'}" in told[BELOW]
    assert told[AROUND].startswith("No association of") and "can be told from these data" in told[AROUND]
    assert "could be estimated" in told[MISSING]
    for ends in (AROUND, MISSING):
        assert not DIRECTION.search(told[ends])


def test_weak_is_said_only_of_weak_ones() -> None:
    assert "weak" in next(sides_of([row(ends=(0.01, 0.05))]))["headline"]
    assert "weak" not in next(sides_of([row(ends=(0.01, 0.15))]))["headline"]


def test_nothing_is_told_at_length_where_nothing_could_be_estimated() -> None:
    strata = [row(ends=MISSING, kind=kind) for kind in ("subject", "v_gene", "v_gene")]
    text = correlation_answer("path_count", "sharing", [row(ends=MISSING), *strata])["text"]
    assert "Spearman's rho cannot be estimated: too few rows, or no variation, n = 1,000 clonotypes." in text
    assert "There is no interval for any subject, V gene: too few rows or too little variation." in text
    assert "above zero" not in text and "one interval in twenty" not in text
    text = correlation_answer("path_count", "sharing", [row(), row(kind="subject"), *strata[1:]])["text"]
    assert "Of 1 subject, rho is above zero in 1" in text
    assert "There is no interval for any of 2 V genes:" in text


def test_frequency_of_rows_is_told() -> None:
    by_reads, by_rows = (
        correlation_answer("path_count", "frequency", [row(y=y)])["text"] for y in ("duplicate_count", "rows")
    )
    assert "Frequency is the number of rows" in by_rows
    assert "number of rows" not in by_reads


def test_figures_and_n_are_given() -> None:
    found = correlation_answer("path_count", "sharing", [row(), row(method="kendall", ends=(0.1, 0.2))])
    assert "0.250, 95 % interval 0.200 to 0.300, n = 1,000 clonotypes" in found["text"]
    assert "Kendall's tau-b is 0.150" in found["text"]
    assert found["figures"]["spearman_low"] == 0.2
    assert found["figures"]["n"] == 1000


def test_strata_are_counted_by_what_they_tell() -> None:
    strata = [row(ends=ends, kind="v_gene") for ends in (ABOVE, ABOVE, BELOW, AROUND, MISSING)]
    text = correlation_answer("path_count", "sharing", [row(), *strata])["text"]
    expected = (
        "Of 5 V genes, rho is above zero in 2, below in 1, and of no sign that can be told in 1; 1 have"
    )
    assert expected in text
    assert "one interval in twenty" in text
    assert "one interval in twenty" not in correlation_answer("path_count", "sharing", [row()])["text"]


@pytest.mark.parametrize(
    ("ends", "place"),
    [
        ((-0.1, -0.06), "above this interval"),
        ((-0.05, -0.01), "below this interval"),
        ((-0.06, -0.05), "within this interval"),
        (MISSING, "no interval here to compare"),
    ],
)
def test_the_published_correlation_stands_beside(ends: Any, place: str) -> None:
    rows = [row(y="duplicate_count", ends=ends)]
    found = correlation_answer("path_count", "frequency", rows)
    assert "-0.056" in found["text"] and place in found["text"]
    assert found["figures"]["published_spearman"] == -0.056
    assert place in published_comparison(Estimate(0.0, *ends))
    assert "-0.056" not in correlation_answer("path_count", "sharing", rows)["text"]
