"""Totals of a run."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from plait.reports.plain_text import aligned, paragraph, percent
from plait.vdj.calls import first_gene
from plait.vdj.count_files import CountSummary


def summary(rows: list[tuple[str, int | None, str, str]], kind: Any = None) -> CountSummary:
    statuses, counts, v, j = zip(*rows, strict=True)
    found = CountSummary()
    result = pa.record_batch(
        {"status": pa.array(statuses), "path_count": pa.array(counts, kind or pa.int64())}
    )
    found.add(result, {"v": pa.array(v), "j": pa.array(j)})
    return found


ROWS = [
    *[("ok", 0, "TRBV1*01", "TRBJ1-1")] * 19,
    ("ok", 5, "TRBV1*02,TRBV2", "TRBJ1-1"),
    *[("ok", 7, "TRBV3(12.5)", "TRBJ1-2*01")] * 30,
    ("unknown_v_call", None, "TRBV99*01", "TRBJ1-1"),
    ("unknown_v_call", None, "TRBV99*02", "TRBJ1-1"),
    ("unknown_j_call", None, "TRBV1", "x"),
    ("too_short", None, "TRBV1", "TRBJ1-1"),
]


def test_totals() -> None:
    found = summary(ROWS)
    assert (found.rows, found.counted, found.zeros) == (54, 50, 19)
    genes = found.genes("v")
    assert list(genes) == ["TRBV3", "TRBV1"]
    assert (genes["TRBV1"].rows, genes["TRBV1"].zeros, genes["TRBV1"].share) == (20, 19, 0.95)
    # All of its rows with TRBV1 are 0 too, so J is as suspicious here.
    assert found.suspicious() == ["TRBV1", "TRBJ1-1"]
    assert found.blamed.of("unknown_v_call") == {"TRBV99*01": 1, "TRBV99*02": 1}
    assert found.blamed.of("unknown_j_call") == {"x": 1}
    assert found.blamed.of("too_short") == {}
    facts = json.loads(json.dumps(found.as_dict()))
    assert facts["statuses"] == {"ok": 50, "too_short": 1, "unknown_v_call": 2, "unknown_j_call": 1}
    assert facts["zero_counts_by_v_gene"]["TRBV1"] == {"rows": 20, "zeros": 19, "share": 0.95}
    assert facts["blamed_calls"] == {
        "unknown_v_call": {"TRBV99*01": 1, "TRBV99*02": 1},
        "unknown_j_call": {"x": 1},
    }


def test_few_rows_arouse_no_suspicion() -> None:
    assert summary([("ok", 0, "TRBV1", "TRBJ1-1")] * 19).suspicious() == []
    assert summary([("ok", 0, "TRBV1", "TRBJ1-1")] * 20).suspicious() == ["TRBV1", "TRBJ1-1"]


@pytest.mark.parametrize("cut", [0, 1, 20, 53])
def test_a_merge_is_the_whole(cut: int) -> None:
    merged = CountSummary()
    for part in (ROWS[:cut], ROWS[cut:]):
        if part:
            merged.merge(summary(part))
    assert merged.as_dict() == summary(ROWS).as_dict()


@pytest.mark.parametrize("kind", [pa.float64(), pa.decimal256(76, 0)])
def test_counts_of_any_type(kind: Any) -> None:
    made: Any = Decimal if pa.types.is_decimal(kind) else float
    rows = [(s, None if n is None else made(n), v, j) for s, n, v, j in ROWS]
    assert summary(rows, kind).as_dict() == summary(ROWS).as_dict()


def test_calls_that_differ_in_every_row_stay_bounded() -> None:
    rows = [("unknown_v_call", None, f"x{k}", "TRBJ1-1") for k in range(1500)]
    found = summary(rows)
    found.merge(summary([("unknown_v_call", None, "y", "TRBJ1-1")]))
    calls = found.blamed.of("unknown_v_call")
    assert len(calls) == 1001 and calls["(other)"] == 501
    assert sum(calls.values()) == found.rows == 1501


@pytest.mark.parametrize(
    ("call", "gene"),
    [
        ("TRBV1*01", "TRBV1"),
        (" TRBV1 ", "TRBV1"),
        ("TRBV1*00(3.2),TRBV2*00(1)", "TRBV1"),
        ("TRBV1*01;TRBV2*01", "TRBV1"),
        ("TRBV1 or TRBV2", "TRBV1"),
        ("TRAV14/DV4*01", "TRAV14/DV4"),
        ("", ""),
        (None, ""),
    ],
)
def test_first_gene(call: str | None, gene: str) -> None:
    assert first_gene(call) == gene


def test_plain_text() -> None:
    rows = [["name", "n", ""], ["a", "1,000", "long " * 20 + "end"], ["bcd", "2", ""]]
    lines = aligned(rows, "<><", indent=2)
    assert lines[:2] == ["  name      n", "  a     1,000  " + ("long " * 13).rstrip()]
    assert lines[2] == " " * 15 + "long " * 7 + "end"
    assert lines[3] == "  bcd       2"
    assert aligned([["a", "10"], ["b", "9"]], "<>", indent=0) == ["a  10", "b   9"]
    assert aligned([["one column"]], "<", indent=1) == [" one column"]
    assert paragraph("word " * 30, indent=4)[0] == "    " + ("word " * 15).rstrip()
    assert [percent(*pair) for pair in ((0, 0), (3, 3), (1, 8), (1, 10**6))] == [
        "0 %",
        "100 %",
        "12.5 %",
        "< 0.1 %",
    ]
