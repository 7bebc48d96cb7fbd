"""`plait.vdj.sharing`: against a plain count, whatever the order, the blocks and the files."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from plait.errors import FormatError, InvalidInput
from plait.vdj import sharing
from plait.vdj.calls import whole_numbers

Rows = list[tuple[str, str, str, str | None, int | None, int | None]]
NAMES = ("junction", "v_call", "j_call", "subject_id", "duplicate_count", "path_count")


def drawn(n: int, seed: int = 0) -> Rows:
    rng = random.Random(seed)
    junctions = ["".join(rng.choices("ACGT", k=9)) for _ in range(max(n // 5, 1))]
    counts = {junction: rng.choice((None, rng.randrange(10))) for junction in junctions}
    rows = []
    for _ in range(n):
        junction = rng.choice(junctions)
        row = (
            junction.lower() if rng.random() < 0.3 else junction,
            rng.choice(("TRBV1*01", "TRBV1*02", "TRBV1", "TRBV2*00(12),TRBV1", "TRBV2")),
            rng.choice(("TRBJ1-1", "TRBJ1-1*01")),
            rng.choice(("a", "b", "c")),
            rng.choice((None, rng.randrange(5))),
            counts[junction],
        )
        rows.append(row)
    return rows


def as_table(rows: Rows) -> pa.Table:
    kinds = [pa.string()] * 4 + [pa.int64()] * 2
    columns = zip(*rows, strict=True) if rows else [[]] * 6
    return pa.table(
        [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)], names=NAMES
    )


def plainly(rows: Rows) -> dict[tuple[str, str, str], list[Any]]:
    """Subjects, rows, sum of counts and first path count per clonotype, one row after the other."""
    subjects: dict[Any, set[str]] = defaultdict(set)
    totals: dict[Any, list[Any]] = defaultdict(lambda: [0, None, None])
    for junction, v, j, subject, count, paths in rows:
        key = (junction.upper(), v.partition("*")[0], j.partition("*")[0])
        subjects[key].add(subject or "")
        total = totals[key]
        total[0] += 1
        total[1] = total[1] if count is None else (total[1] or 0) + count
        total[2] = paths if total[2] is None else total[2]
    return {key: [len(subjects[key]), *total] for key, total in totals.items()}


def told(table: pa.Table) -> dict[tuple[str, str, str], list[Any]]:
    return {
        tuple(values[:3]): list(values[3:]) for values in (tuple(row.values()) for row in table.to_pylist())
    }


@pytest.mark.parametrize("n", [0, 1, 50, 2000])
def test_against_a_plain_count(n: int) -> None:
    rows = drawn(n)
    found = sharing(as_table(rows))
    assert told(found.clonotypes) == plainly(rows)
    names = ["junction", "v_gene", "j_gene", "subjects", "rows", "duplicate_count", "path_count"]
    assert found.clonotypes.column_names == names
    assert found.clonotypes.schema.field("subjects").type == pa.int32()
    assert found.rows == n == sum(found.clonotypes["rows"].to_pylist())
    for subject, total in found.subjects.items():
        assert total == sum(row[3] == subject for row in rows)
    shared = found.clonotypes["subjects"].to_pylist()
    assert shared == sorted(shared, reverse=True)


def test_counts_per_subject() -> None:
    rows = drawn(500)
    found = sharing(as_table(rows))
    assert found.by_subject.column_names == [
        "junction",
        "v_gene",
        "j_gene",
        "subject",
        "rows",
        "duplicate_count",
    ]
    part = [row for row in rows if row[3] == "b"]
    mine = [row for row in found.by_subject.to_pylist() if row["subject"] == "b"]
    assert {(r["junction"], r["v_gene"], r["j_gene"]): [r["rows"], r["duplicate_count"]] for r in mine} == {
        key: total[1:3] for key, total in plainly(part).items()
    }
    clonotypes = [
        tuple(row.values()) for row in found.clonotypes.select(["junction", "v_gene", "j_gene"]).to_pylist()
    ]
    order = [(r["junction"], r["v_gene"], r["j_gene"]) for r in found.by_subject.to_pylist()]
    assert list(dict.fromkeys(order)) == clonotypes


@pytest.mark.slow
def test_order_blocks_and_files_do_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = drawn(1000)
    whole = sharing(as_table(rows))
    shuffled = random.Random(1).sample(rows, len(rows))
    pq.write_table(as_table(shuffled[:300]), tmp_path / "a.parquet")
    pq.write_table(as_table(shuffled[300:]), tmp_path / "b.parquet")
    monkeypatch.setattr("plait.vdj.repertoires.sharing._BLOCK_ROWS", 64)
    monkeypatch.setattr("plait.vdj.repertoires.sharing._WAITING_BYTES", 100)
    parts = sharing([tmp_path / "a.parquet", tmp_path / "b.parquet"])
    assert parts.clonotypes.equals(whole.clonotypes)
    assert parts.by_subject.equals(whole.by_subject)
    assert parts.subjects == whole.subjects


def test_rows_that_are_left_out_are_counted() -> None:
    rows: Rows = [
        ("ACG", "TRBV1", "TRBJ1-1", "a", 1, 1),
        ("", "TRBV1", "TRBJ1-1", "a", 1, 1),
        ("ACG", "", "TRBJ1-1", "a", 1, 1),
        ("ACG", "TRBV1", "", "a", 1, 1),
        ("ACG", "TRBV1", "TRBJ1-1", "", 1, 1),
        ("ACG", "TRBV1", "TRBJ1-1", None, 1, 1),
        ("", "", "", "", 1, 1),
    ]
    found = sharing(as_table(rows))
    assert found.left_out == {
        "missing_junction": 2,
        "missing_v_gene": 1,
        "missing_j_gene": 1,
        "missing_subject": 2,
    }
    assert found.rows == 7 and found.clonotypes["rows"].to_pylist() == [1]


@pytest.mark.parametrize(
    ("cells", "kind", "values"),
    [
        (["5", "", "7"], pa.int64(), [5, None, 7]),
        (["5", str(2**80), ""], pa.decimal256(76, 0), [Decimal(5), Decimal(2**80), None]),
        (["5.5", "1e30", ""], pa.float64(), [5.5, 1e30, None]),
    ],
)
def test_path_counts_in_text(tmp_path: Path, cells: list[str], kind: Any, values: list[Any]) -> None:
    lines = ["junction\tv_call\tj_call\tsubject_id\tpath_count"]
    lines += [f"ACG{base}\tTRBV1\tTRBJ1-1\ta\t{cell}" for base, cell in zip("ACG", cells, strict=True)]
    (tmp_path / "in.tsv").write_text("\n".join(lines) + "\n")
    column = sharing(tmp_path / "in.tsv").clonotypes["path_count"]
    assert column.type == kind and column.to_pylist() == values


def test_a_column_that_holds_no_numbers(tmp_path: Path) -> None:
    (tmp_path / "in.tsv").write_text("junction\tv_call\tj_call\tsubject_id\tpath_count\nACG\tV\tJ\ta\tmany\n")
    with pytest.raises(FormatError, match=r"in\.tsv, column 'path_count': found .*many.*, expected numbers"):
        sharing(tmp_path / "in.tsv")


def test_layouts_and_subjects() -> None:
    rows = as_table([("TGT" + row[0] + "TTC", *row[1:]) for row in drawn(100)])
    other = rows.rename_columns(["CDR3.nt", "V.name", "J.name", "Sample", "Clones", "path_count"])
    assert sharing(other, layout="immunarch").clonotypes.equals(sharing(rows).clonotypes)
    named = rows.rename_columns(["junction", "v_call", "j_call", "patient", "duplicate_count", "path_count"])
    assert sharing(named, subject="patient").clonotypes.equals(sharing(rows).clonotypes)
    with pytest.raises(FormatError, match="expected a column 'subject_id' that tells individuals apart"):
        sharing(named)
    with pytest.raises(InvalidInput, match="layout: found 'excel'"):
        sharing(rows, layout="excel")


def test_the_distribution() -> None:
    rows: Rows = [
        (f"AC{base}", "V", "J", "a", 1, count) for base, count in zip("ACGT", (0, 10, 20, None), strict=True)
    ]
    rows += [("CCC", "V", "J", subject, 1, 100) for subject in "abb"]
    found = sharing(as_table(rows)).distribution.to_pylist()
    assert found == [
        {
            "subjects": 1,
            "clonotypes": 4,
            "rows": 4,
            "counted": 3,
            "zero_counts": 1,
            "path_count_q25": 5.0,
            "path_count_median": 10.0,
            "path_count_q75": 15.0,
        },
        {
            "subjects": 2,
            "clonotypes": 1,
            "rows": 3,
            "counted": 1,
            "zero_counts": 0,
            "path_count_q25": 100.0,
            "path_count_median": 100.0,
            "path_count_q75": 100.0,
        },
    ]


def test_rank_correlation() -> None:
    def correlation(pairs: list[tuple[int | None, int]]) -> tuple[float, int]:
        rows: Rows = []
        for k, (count, subjects) in enumerate(pairs):
            rows += [(f"{'ACGT'[k % 4] * (k + 1)}", "V", "J", f"s{s}", 1, count) for s in range(subjects)]
        rank = sharing(as_table(rows)).correlation()
        return rank.rho, rank.n

    assert correlation([(1, 1), (5, 2), (900, 3)]) == (pytest.approx(1.0), 3)
    assert correlation([(900, 1), (5, 2), (1, 3), (None, 9)]) == (pytest.approx(-1.0), 3)
    # By hand: ranks 1, 2.5, 2.5, 4 of the counts and 1.5, 1.5, 3, 4 of the subjects.
    assert correlation([(1, 1), (2, 1), (2, 2), (3, 3)]) == (pytest.approx(3.75 / 4.5), 4)
    assert math.isnan(correlation([(1, 1), (2, 1)])[0])
    assert math.isnan(correlation([(None, 1)])[0])
    with pytest.raises(InvalidInput, match="path_count"):
        sharing(as_table(drawn(5)).drop_columns(["path_count"])).correlation()


def test_counts_that_no_float_is() -> None:
    large = [33730171352645632, 33730171352645633, 3]
    rows: Rows = [("ACG" * (k + 1), "TRBV1", "TRBJ1-1", "a", 1, n) for k, n in enumerate(large)]
    rows.append(("ACG", "TRBV1", "TRBJ1-1", "b", 1, large[0]))
    found = sharing(as_table(rows))
    assert sorted(found.clonotypes["path_count"].to_pylist()) == sorted(large)
    told = found.distribution.to_pylist()
    assert [(level["counted"], level["zero_counts"]) for level in told] == [(2, 0), (1, 0)]
    assert told[1]["path_count_median"] == float(large[0])
    assert found.correlation().n == 3


@pytest.mark.parametrize(
    "cells",
    [
        pa.array(["2.0", "", None, "7"]),
        pa.array([2.0, None, None, 7.0]),
        pa.array([2, None, None, 7], pa.uint64()),
    ],
    ids=["text", "float", "unsigned"],
)
def test_numbers_of_reads_may_be_written_as_floats(cells: pa.Array) -> None:
    assert whole_numbers(cells, path="a.tsv", name="reads").to_pylist() == [2, None, None, 7]
    assert whole_numbers(pa.nulls(2), path="a.tsv", name="reads").to_pylist() == [None, None]


@pytest.mark.parametrize("cell", ["2.5", "-1", "x", "9223372036854775807", "1e300", "nan"])
def test_numbers_that_reads_cannot_have_are_refused(cell: str) -> None:
    """The largest whole number in two rows of a clonotype would make a sum below zero."""
    with pytest.raises(FormatError, match=r"a\.tsv, column 'reads': found .*, expected whole numbers"):
        whole_numbers(pa.array(["1", cell]), path="a.tsv", name="reads")
