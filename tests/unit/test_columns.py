"""Result columns: names, types, nulls, and the axes of lists."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from support.cases import make_germline
from support.examples import often

from plait.vdj import PathCounter, PathModel
from plait.vdj.counting import REGION_COLUMNS, ResultColumns
from plait.vdj.germline import load_germline

JUNCTION = "TGTGCCAGCAGTTGGGACTGGTATGAACAGTACTTC"
SWEEP = PathModel(sweep_pi=(0, 2), sweep_nu=(0, 5, 10))
TRD = make_germline(["TGTGCA"], ["ACGT", "GGA"], ["CCATTC"], locus="TRD", d_d_order=(("TRDD1", "TRDD2"),))


def batch(
    rows: list[tuple[str, str, str]],
    germline: Any = "mouse_trb",
    model: PathModel | None = None,
    **options: Any,
) -> pa.RecordBatch:
    counter = PathCounter(germline, model or PathModel(), device="reference", **options)
    columns = ResultColumns(counter.germline, counter.model, counter.chain, counter.overflow)
    texts = (pa.array(column, pa.large_string()) for column in zip(*rows, strict=True))
    found = columns.batch(counter.count(*texts))
    assert found.schema == columns.schema
    found.validate(full=True)
    return found


def test_one_model() -> None:
    found = batch([(JUNCTION, "TRBV13-1", "TRBJ2-7"), (JUNCTION, "TRBV13-1", "TRBJ1-1")])
    names = ["status", "path_count", "path_count_no_d", "path_count_by_d", "path_count_zero_d_by_d"]
    assert found.schema.names == [*names, "d_match_call", *REGION_COLUMNS]
    first, second = found.to_pylist()
    assert first["path_count"] == sum(first["path_count_by_d"])
    # D2 does not join J1.
    assert second["path_count_by_d"][1] is None and second["path_count_zero_d_by_d"][1] is None
    assert second["path_count"] == second["path_count_by_d"][0]
    assert (first["d_match_call"], first["d_match_start"], first["d_match_end"]) == ("TRBD2*01", 13, 21)
    assert JUNCTION[13:21] == "GGGACTGG"
    assert (first["n1_length"], first["n2_length"], first["n1_g"] + first["n1_t"]) == (1, 0, 1)


def test_a_sweep_has_its_axes() -> None:
    columns = ResultColumns(load_germline("mouse_trb"), SWEEP, "vdj", "null")
    d, pi, nu = ("d_allele", ["TRBD1*01", "TRBD2*01"]), ("pi", [0, 2]), ("nu", [0, 5, 10])
    assert columns.axes == {
        "path_count_by_d": [d],
        "path_count_zero_d_by_d": [d],
        "path_count_sweep_by_d": [d, pi, nu],
        "path_count_zero_d_sweep_by_d": [d, pi, nu],
        "path_count_no_d_sweep": [pi, nu],
    }
    assert columns.schema.field("path_count_sweep_by_d").type == pa.list_(pa.field("item", pa.int64()), 12)
    (row,) = batch([(JUNCTION, "TRBV13-1", "TRBJ1-1")], model=SWEEP).to_pylist()
    assert row["path_count_sweep_by_d"][6:] == [None] * 6
    assert None not in row["path_count_sweep_by_d"][:6] and None not in row["path_count_no_d_sweep"]


def test_only_one_axis_swept() -> None:
    columns = ResultColumns(load_germline("mouse_trb"), PathModel(pi=3, sweep_nu=(0, 5)), "vdj", "null")
    assert columns.axes["path_count_no_d_sweep"] == [("pi", [3]), ("nu", [0, 5])]


@pytest.mark.parametrize("name", ["dp1", "exhaustive"])
def test_counts_by_n(name: Any) -> None:
    model = PathModel(name=name, max_n=2)
    found = batch([(JUNCTION, "TRBV13-1", "TRBJ1-1")], model=model)
    assert found.schema.names[:7] == [
        "status",
        "path_count",
        "path_count_no_d",
        "path_count_by_d",
        "path_count_zero_d_by_d",
        "path_count_by_n_by_d",
        "path_count_no_d_by_n",
    ]
    (row,) = found.to_pylist()
    assert row["path_count_by_d"] == [row["path_count"], None]
    assert row["path_count_no_d"] == sum(row["path_count_no_d_by_n"])
    assert len(row["path_count_by_n_by_d"]) == 6 and row["path_count_by_n_by_d"][3:] == [None] * 3
    assert row["path_count"] == sum(row["path_count_by_n_by_d"][:3])
    columns = ResultColumns(load_germline("mouse_trb"), model, "vdj", "null")
    assert columns.axes["path_count_no_d_by_n"] == [("n", [0, 1, 2])]


def test_rows_without_counts_have_nulls() -> None:
    found = batch(
        [("ACGT!ACGT", "TRBV1", "TRBJ1-1"), (JUNCTION, "x", "TRBJ1-1"), (JUNCTION, "TRBV1", "")], model=SWEEP
    )
    assert found["status"].to_pylist() == ["invalid_symbol", "unknown_v_call", "missing_j_call"]
    for name in found.schema.names[1:]:
        column = found[name]
        if pa.types.is_fixed_size_list(column.type):
            # Lists of nulls: a null list cannot be written to Parquet by every version of Arrow.
            assert column.null_count == 0
            column = column.flatten()
        assert column.null_count == len(column), name


def test_no_d_match_is_null_and_not_minus_one() -> None:
    # Every D gene consists of G and C here, and the junction of A and T.
    germline = make_germline(["TATATA"], ["GGGG"], ["ATATTA"])
    (row,) = batch([("TATATAAATATTA", "TRBV1", "TRBJ1")], germline).to_pylist()
    assert row["d_match_length"] == 0
    for name in (
        "d_match_call",
        "d_match_start",
        "d_match_end",
        "vd_gap",
        "dj_gap",
        "n2_length",
        "p5d_length",
    ):
        assert row[name] is None
    assert (row["n1_length"], row["vj_gap"]) == (row["ndn_a"] + row["ndn_t"], row["n1_length"])


def test_a_chain_without_d_has_no_d_columns() -> None:
    rows = [("TGTGCTGTGAGAGAGCAACATGCTCACCTTT", "TRAV1-2", "TRAJ39")]
    for model in (PathModel(), SWEEP, PathModel(name="dp1")):
        found = batch(rows, "human_tra", model)
        assert not [name for name in found.schema.names if "_d" in name.replace("_no_d", "")]
        assert "n1_length" in found.schema.names and "n2_length" not in found.schema.names
    (row,) = batch(rows, "human_tra").to_pylist()
    assert row["path_count"] == row["path_count_no_d"] > 0


def test_pairs_of_d() -> None:
    found = batch([("TGTGCAACGTTGGACCATTC", "TRDV1", "TRDJ1")], TRD)
    columns = ResultColumns(TRD, PathModel(), "vddj", "null")
    pairs = ["TRDD1*01+TRDD1*01", "TRDD1*01+TRDD2*01", "TRDD2*01+TRDD1*01", "TRDD2*01+TRDD2*01"]
    assert columns.axes["path_count_by_dd"] == [("d_allele_pair", pairs)]
    (row,) = found.to_pylist()
    assert [count is None for count in row["path_count_by_dd"]] == [True, False, True, True]
    assert row["path_count"] == row["path_count_by_dd"][1]


@pytest.mark.parametrize(
    ("overflow", "kind"),
    often(1, [("null", pa.int64()), ("float", pa.float64()), ("wide", pa.decimal256(76, 0))]),
)
def test_types_of_counts(overflow: Any, kind: Any) -> None:
    large = JUNCTION[:12] + "N" * 40 + JUNCTION[-17:]
    rows = [(JUNCTION, "TRBV13-1", "TRBJ1-1"), (large, "TRBV13-1", "TRBJ1-1")]
    found = batch(rows, model=PathModel(nu=40), overflow=overflow)
    assert found["path_count"].type == found["path_count_by_d"].type.value_type == kind
    assert found["status"].to_pylist() == ["ok", "count_overflow" if overflow == "null" else "ok"]
    first, second = found["path_count"].to_pylist()
    assert first > 0 and found["path_count_by_d"].to_pylist()[0] == [first, None]
    assert second is None if overflow == "null" else second > 2**63


@pytest.mark.slow
def test_beyond_the_widest_type_a_count_is_reported() -> None:
    huge = "TGTGCC" + "N" * 250 + "TTC"
    found = batch([(huge, "TRBV13-1", "TRBJ1-1")], model=PathModel(nu=200), overflow="wide")
    assert found["status"].to_pylist() == ["count_overflow"]
    assert found["path_count"].to_pylist() == [None]
