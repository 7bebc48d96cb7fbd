"""``plait vdj sharing``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

COLUMNS = {
    "junction": ["TGTGCCTTC", "tgtgccttc", "TGTGCCTTC", "TGTAGCTTC", ""],
    "v_call": ["TRBV1*01", "TRBV1*02", "TRBV1", "TRBV1*01", "TRBV1"],
    "j_call": ["TRBJ1-1*01"] * 5,
    "subject_id": ["a", "b", "b", "a", "a"],
    "donor": ["x", "x", "x", "x", "x"],
    "duplicate_count": ["3", "1", "2", "", "9"],
}


@pytest.mark.parametrize("suffix", ["tsv", "parquet"])
def test_tables(plait: Any, write_tsv: Any, tmp_path: Path, suffix: str) -> None:
    out, by = tmp_path / f"out.{suffix}", tmp_path / f"by.{suffix}"
    found = plait("vdj", "sharing", write_tsv(COLUMNS), "-o", out, "--by-subject", by)
    assert (found.status, found.err) == (0, "")
    assert "5 rows, 2 individuals, 2 clonotypes" in found.out
    assert "1 rows are in no clonotype: missing junction." in found.out
    if suffix == "parquet":
        rows = [list(row.values()) for row in pq.read_table(out).to_pylist()]
        assert rows == [
            ["TGTGCCTTC", "TRBV1", "TRBJ1-1", 2, 3, 6],
            ["TGTAGCTTC", "TRBV1", "TRBJ1-1", 1, 1, None],
        ]
        counts = pq.read_table(by).select(["subject", "rows", "duplicate_count"]).to_pylist()
        assert [list(row.values()) for row in counts] == [["a", 1, 3], ["b", 2, 3], ["a", 1, None]]
        facts = json.loads(pq.read_schema(out).metadata[b"plait.sharing"])
        assert facts["subjects"] == {"a": 2, "b": 2} and facts["left_out"] == {"missing_junction": 1}
    else:
        assert out.read_text().splitlines()[1] == "TGTGCCTTC\tTRBV1\tTRBJ1-1\t2\t3\t6"
        assert json.loads(Path(f"{out}.json").read_text())["rows"] == 2


def test_path_counts_are_carried_over(plait: Any, write_tsv: Any, mouse_rows: Any, tmp_path: Path) -> None:
    rows = mouse_rows(40)
    for name in rows:
        rows[name] += rows[name][:10]
    rows["subject_id"][40:] = ["other"] * 10
    counts, out = tmp_path / "counts.tsv", tmp_path / "out.parquet"
    words = ("--germline", "mouse_trb", "--device", "reference")
    assert plait("vdj", "count", write_tsv(rows), *words, "-o", counts).status == 0
    found = plait("vdj", "sharing", counts, "-o", out)
    assert "median count" in found.out
    assert max(len(line) for line in found.out.splitlines() if str(out) not in line) <= 80
    assert pq.read_table(out)["subjects"].to_pylist() == [2] * 10 + [1] * 30
    assert all(count is not None for count in pq.read_table(out)["path_count"].to_pylist())


def test_another_subject(plait: Any, write_tsv: Any, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    assert plait("vdj", "sharing", write_tsv(COLUMNS), "--subject", "donor", "-o", out).status == 0
    assert pq.read_table(out)["subjects"].to_pylist() == [1, 1]


def test_no_rows(plait: Any, write_tsv: Any, tmp_path: Path) -> None:
    path = write_tsv({name: [] for name in COLUMNS})
    found = plait("vdj", "sharing", path, "-o", tmp_path / "out.parquet")
    assert found.status == 0 and "0 rows, 0 individuals, 0 clonotypes" in found.out
    assert pq.read_table(tmp_path / "out.parquet").num_rows == 0


def test_files_and_sheets_say_whose_rows_they_have(plait: Any, write_tsv: Any, tmp_path: Path) -> None:
    columns = {name: values for name, values in COLUMNS.items() if name != "subject_id"}
    paths = [write_tsv(columns).rename(tmp_path / f"{name}.tsv") for name in ("x", "y")]
    out, by_subject = tmp_path / "out.parquet", tmp_path / "by.tsv"
    words = ("--by-subject", by_subject, "-o", out)
    assert plait("vdj", "sharing", *paths, *words).status == 0
    assert {line.split("\t")[3] for line in by_subject.read_text().splitlines()[1:]} == {"x", "y"}
    sheet = tmp_path / "sheet.csv"
    sheet.write_text("file,subject,condition\nx.tsv,one,ill\ny.tsv,,well\n")
    assert plait("vdj", "sharing", "--sheet", sheet, *words).status == 0
    assert {line.split("\t")[3] for line in by_subject.read_text().splitlines()[1:]} == {"one", "y"}
    found = plait("vdj", "sharing", "--sheet", sheet, *paths, *words)
    assert (found.status, "one of both" in found.err) == (2, True)


@pytest.mark.parametrize(
    ("changes", "words", "message"),
    [
        ({}, ("--subject", "patient"), "expected a column 'patient'"),
        ({"junction": None}, (), "missing: junction"),
        ({"duplicate_count": ["1", "x", "2", "3", "4"]}, (), "expected whole numbers"),
    ],
)
def test_bad_input(
    plait: Any,
    write_tsv: Any,
    tmp_path: Path,
    changes: dict[str, list[str] | None],
    words: tuple[str, ...],
    message: str,
) -> None:
    columns = {name: values for name, values in (COLUMNS | changes).items() if values is not None}
    found = plait("vdj", "sharing", write_tsv(columns), *words, "-o", tmp_path / "out.parquet")
    assert (found.status, found.out) == (2, "")
    assert message in found.err and "in.tsv" in found.err
    assert not (tmp_path / "out.parquet").exists()
