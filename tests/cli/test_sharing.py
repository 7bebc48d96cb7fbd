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


@pytest.mark.slow
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


@pytest.mark.slow
def test_expected_sharing(plait: Any, tmp_path: Path) -> None:
    drawn, out = tmp_path / "drawn.parquet", tmp_path / "out.parquet"
    assert plait("vdj", "generate", "--model", "human_TRB", "-n", "6000", "-o", drawn).status == 0
    rows = pq.read_table(drawn)
    pq.write_table(rows.append_column("subject_id", [[f"s{k % 3}" for k in range(6000)]]), drawn)
    words = ("--key", "cdr3aa", "--model", "human_TRB", "--draws", "5000", "--device", "cpu")
    found = plait("vdj", "sharing", drawn, *words, "-o", out)
    assert found.status == 0 and "Selection factor" in found.out and "ratio" in found.out
    assert max(len(line) for line in found.out.splitlines() if str(tmp_path) not in line) <= 80
    table = pq.read_table(out)
    assert table.column_names[-5:] == ["pgen", "pgen_status", "expected_subjects", "p_sharing", "q_sharing"]
    facts = json.loads(table.schema.metadata[b"plait.sharing"])
    assert facts["key"] == "cdr3aa" and facts["expected"]["model"] == "human_TRB"
    wrong = plait("vdj", "sharing", drawn, *words, "--selection", "x", "-o", tmp_path / "o.tsv")
    assert (wrong.status, wrong.out) == (2, "") and "expected fit, or a share above 0" in wrong.err


SHARED = {
    "junction_aa": ["CASSF", "CASSF", "CASSF", "CAWW", "CAWW", "CAWW", "CA*W", "CASSF"],
    "v_call": ["TRBV1*01", "TRBV1*02", "TRBV2", "TRBV1", "TRBV1", "TRBV1", "TRBV1", "TRBV1"],
    "subject_id": ["a", "b", "c", "a", "b", "c", "a", "d"],
    "state": ["ill", "ill", "well", "ill", "ill", "well", "ill", "well"],
    "duplicate_count": ["4", "1", "1", "6", "3", "9", "1", "5"],
}


def test_who_shares_what(plait: Any, write_tsv: Any, tmp_path: Path) -> None:
    """Amino acids alone, named subjects, two conditions and overlaps, of the columns that the key needs."""
    out, overlap = tmp_path / "out.parquet", tmp_path / "overlap.tsv"
    words = ("--key", "cdr3aa", "--list-subjects", "--condition", "state", "--overlap", overlap)
    found = plait("vdj", "sharing", write_tsv(SHARED), *words, "-o", out)
    assert found.status == 0 and "1 rows are in no clonotype: incomplete junction_aa." in found.out
    assert "Of 2 tested clonotypes 0 differ by condition (q_condition <= 0.05).\n" in found.out
    rows = {row["junction_aa"]: row for row in pq.read_table(out).to_pylist()}
    assert rows["CASSF"]["subject_ids"] == ["a", "b", "c", "d"] and rows["CAWW"]["subjects"] == 3
    assert (rows["CAWW"]["subjects_ill"], rows["CAWW"]["subjects_well"]) == (2, 1)
    assert rows["CAWW"]["p_condition"] == 1.0 and rows["CASSF"]["q_condition"] == 1.0
    lines = [line.split("\t") for line in overlap.read_text().splitlines()]
    assert lines[0][:6] == ["subject_a", "subject_b", "clonotypes_a", "clonotypes_b", "shared", "jaccard"]
    assert lines[1][:6] == ["a", "b", "2", "2", "2", "1"] and lines[-1][4] == "1"
    by_gene = plait("vdj", "sharing", write_tsv(SHARED), "--key", "cdr3aa+v", "-o", out)
    assert by_gene.status == 0 and pq.read_table(out)["subjects"].to_pylist() == [3, 3, 1]


@pytest.mark.parametrize(
    ("changes", "words", "message"),
    [
        ({}, ("--key", "cdr3"), "key: found 'cdr3', expected cdr3nt or cdr3aa"),
        ({}, ("--key", "cdr3aa+j"), "missing: j_call"),
        ({}, ("--key", "cdr3aa", "--condition", "age"), "expected a column 'age' of conditions"),
        (
            {"state": ["x"] * 8},
            ("--key", "cdr3aa", "--condition", "state"),
            "found 1 conditions ('x'), expected two",
        ),
        ({"state": list("ababcdef")}, ("--key", "cdr3aa", "--condition", "state"), "for subject 'a'"),
        ({}, ("--key", "cdr3aa", "--overlap", "o.tsv", "--overlap-depth", "9"), "overlap_depth: found 9"),
        ({}, ("--key", "cdr3aa", "--overlap", "o.csv"), "expected a name that ends in"),
        ({}, ("--key", "cdr3aa", "--mismatches", "1", "--edits", "1"), "found both"),
        ({}, ("--key", "cdr3aa", "--edits", "4"), "edits: found 4, expected a whole number from 1 to 3"),
    ],
)
def test_wrong_requests(
    plait: Any, write_tsv: Any, tmp_path: Path, changes: dict[str, Any], words: tuple[str, ...], message: str
) -> None:
    found = plait("vdj", "sharing", write_tsv(SHARED | changes), *words, "-o", tmp_path / "out.parquet")
    assert (found.status, found.out) == (2, "") and message in found.err
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(("out", ".out", "o."))] == []
