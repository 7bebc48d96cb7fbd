"""Tidy rows: each number of the lists once, with its place on every axis."""

from __future__ import annotations

from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from support.cases import make_germline

from plait.vdj import PathCounter, PathModel
from plait.vdj.count_files import LongRows, items_per_row
from plait.vdj.counting import ResultColumns

JUNCTION = "TGTGCCAGCAGTTGGGACTGGTATGAACAGTACTTC"
TRB = [(JUNCTION, "TRBV13-1", "TRBJ2-7"), (JUNCTION, "x", "TRBJ2-7"), (JUNCTION, "TRBV1", "TRBJ1-1")]
TRD_SET = make_germline(["TGTGCA"], ["ACGT", "GGA"], ["CCATTC"], locus="TRD", d_d_order=(("TRDD1", "TRDD2"),))
TRD = [("TGTGCAACGTTGGACCATTC", "TRDV1", "TRDJ1")]
TRA = [("TGTGCTGTGAGAGAGCAACATGCTCACCTTT", "TRAV1-2", "TRAJ39")]


def both(
    rows: list[tuple[str, str, str]], germline: Any, model: PathModel, first: int = 0
) -> tuple[Any, Any]:
    """Result columns, and tidy rows, of the same rows."""
    counter = PathCounter(germline, model, device="reference")
    columns = ResultColumns(counter.germline, counter.model, counter.chain, counter.overflow)
    block = pa.record_batch(dict(zip(("junction", "v", "j"), zip(*rows, strict=True), strict=True)))
    result = columns.batch(counter.count(*(column.cast(pa.large_string()) for column in block.columns)))
    written = LongRows(block.schema, columns)
    tidy = written.batch(first, block, result)
    tidy.validate(full=True)
    assert tidy.schema == written.schema and tidy.num_rows <= len(rows) * items_per_row(columns)
    return result.to_pylist(), tidy.to_pylist()


def test_one_model() -> None:
    lists, tidy = both(TRB, "mouse_trb", PathModel(pi=3), first=100)
    d = ("TRBD1*01", "TRBD2*01")
    told = [
        (row["record"], row["v"], row["status"], row["d_allele"], row["pi"], row["nu"], row["path_count"])
        for row in tidy
    ]
    full, none = "path_count_by_d", "path_count_no_d"
    assert told == [
        (100, "TRBV13-1", "ok", d[0], 3, 10, lists[0][full][0]),
        (100, "TRBV13-1", "ok", d[1], 3, 10, lists[0][full][1]),
        (100, "TRBV13-1", "ok", None, 3, 10, lists[0][none]),
        # A row without counts is there once; a D allele that may not join this J is not.
        (101, "x", "unknown_v_call", None, None, None, None),
        (102, "TRBV1", "ok", d[0], 3, 10, lists[2][full][0]),
        (102, "TRBV1", "ok", None, 3, 10, lists[2][none]),
    ]
    assert [row["path_count_zero_d"] for row in tidy[:3]] == [*lists[0]["path_count_zero_d_by_d"], None]


@pytest.mark.parametrize(
    ("rows", "germline", "model", "name", "axes"),
    [
        (
            TRB,
            "mouse_trb",
            PathModel(sweep_pi=(0, 2), sweep_nu=(0, 5)),
            "path_count_sweep_by_d",
            ("d", "pi", "nu"),
        ),
        (TRB, "mouse_trb", PathModel(name="dp1", max_n=3), "path_count_by_n_by_d", ("d", "n")),
        (TRB, "mouse_trb", PathModel(name="exhaustive", max_n=1), "path_count_by_n_by_d", ("d", "n")),
        (TRD, TRD_SET, PathModel(), "path_count_by_dd", ("dd",)),
        (TRD, TRD_SET, PathModel(sweep_nu=(1, 10)), "path_count_sweep_by_dd", ("dd", "pi", "nu")),
        (TRD, TRD_SET, PathModel(name="dp1", max_n=3), "path_count_by_n_by_dd", ("dd", "n")),
        (TRA, "human_tra", PathModel(sweep_pi=(0, 4)), "path_count_no_d_sweep", ("pi", "nu")),
        (TRA, "human_tra", PathModel(name="dp1", max_n=12), "path_count_no_d_by_n", ("n",)),
    ],
)
def test_every_number_once(
    rows: Any, germline: Any, model: PathModel, name: str, axes: tuple[str, ...]
) -> None:
    lists, tidy = both(rows, germline, model)
    alleles = PathCounter(germline, device="reference").germline.d
    names = [allele.name for allele in alleles]
    values = {
        "d": names,
        "dd": [f"{a}+{b}" for a in names for b in names],
        "pi": list(model.axes[0]),
        "nu": list(model.axes[1]),
        "n": list(range(model.max_n + 1)),
    }
    columns = {"d": "d_allele", "dd": "d_allele"}
    for record, row in enumerate(lists):
        if row["status"] != "ok":
            continue
        points = list(product(*(values[axis] for axis in axes)))
        for point, count in zip(points, row[name], strict=True):
            place = {columns.get(axis, axis): value for axis, value in zip(axes, point, strict=True)}
            place.setdefault("d_allele", None)
            found = [
                item["path_count"]
                for item in tidy
                if item["record"] == record and all(item[key] == value for key, value in place.items())
            ]
            assert found == ([] if count is None else [count])


def test_no_number_is_invented() -> None:
    lists, tidy = both(TRB, "mouse_trb", PathModel(sweep_pi=(0, 2), sweep_nu=(0, 5)))
    numbers = sum(
        count is not None
        for row in lists
        for name in ("path_count_sweep_by_d", "path_count_no_d_sweep")
        for count in row[name]
    )
    assert len(tidy) == numbers + 1
