"""A study's clonotypes, out of core: those of the simple computation, however rows are cut up."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from support.examples import often
from support.repertoires import simulated_repertoire

from plait.run.executor import LocalExecutor
from plait.vdj import PathModel, Study, count_paths, sharing, study
from plait.vdj.convergence import stages

MODEL = PathModel(pi=2, nu=6, sweep_pi=(0, 2), sweep_nu=(0, 6))
NAMES = ["junction", "v_gene", "j_gene"]
SUBJECTS = ("ann", "bob", "cyd")


def rows_of_test() -> pa.Table:
    """Shared ones, repeated ones, lower case, alleles, and every reason to be left out or not counted."""
    table = simulated_repertoire(500, subjects=SUBJECTS, genes=2, seed=3)
    table = pa.concat_tables([table, table.slice(0, 120), table.slice(0, 60), table.slice(20, 30)])
    columns = {name: table[name].to_pylist() for name in table.column_names}
    rng = np.random.default_rng(5)
    for row in range(500, 650):
        columns["subject_id"][row] = SUBJECTS[row % 3]
    for row in rng.integers(0, table.num_rows, 60).tolist():
        columns["junction"][row] = columns["junction"][row].lower()
    for row in rng.integers(0, table.num_rows, 40).tolist():
        columns["duplicate_count"][row] = None
    for row in rng.integers(0, table.num_rows, 40).tolist():
        columns["v_call"][row] = columns["v_call"][row].partition("*")[0] + "*99,TRBV2"
    for name in ("subject_id", "junction", "v_call", "j_call"):
        for row in rng.integers(0, table.num_rows, 7).tolist():
            columns[name][row] = ""
    # Shuffled, so that repeated rows are in different files.
    return pa.table(columns).take(pa.array(rng.permutation(table.num_rows)))


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    return rows_of_test()


@pytest.fixture(scope="module")
def sheet(rows: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The rows in three files, with a covariate; only the last one has no numbers of reads."""
    folder = tmp_path_factory.mktemp("study")
    cuts = (0, 300, 301, rows.num_rows)
    for k, (start, end) in enumerate(itertools.pairwise(cuts)):
        part = rows.slice(start, end - start)
        pq.write_table(part if k < 2 else part.drop_columns("duplicate_count"), folder / f"{k}.parquet")
    path = folder / "sheet.csv"
    path.write_text("file,subject_id,dose\n0.parquet,,1\n1.parquet,,1\n2.parquet,,\n")
    return path


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def run(sheet: Path, out: Path, cache: Path, **options: Any) -> Study:
    fixed = {"germline": "mouse_trb", "model": MODEL, "regression": False, "device": "cpu"}
    return study(sheet, out, cache=cache, **(fixed | {"threads": 2} | options))


def clonotypes(found: Study) -> pa.Table:
    table = ds.dataset(found.folder / "clonotypes", format="parquet").to_table()
    return table.sort_by([(name, "ascending") for name in NAMES])


def digests(found: Study) -> dict[str, str]:
    """Content of all tables."""
    return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in found.tables.items()}


@pytest.fixture(scope="module")
def whole(sheet: Path, cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Study:
    return run(sheet, tmp_path_factory.mktemp("whole") / "out", cache)


def test_equal_to_the_computation_in_memory(whole: Study, cache: Path, sheet: Path, rows: pa.Table) -> None:
    counts = [entry["counts"] for entry in whole.facts["inputs"]]
    expected = sharing(counts)
    names = [*NAMES, "subjects", "rows", "duplicate_count", "path_count"]
    order = [(name, "ascending") for name in NAMES]
    assert clonotypes(whole).select(names).to_pylist() == (
        expected.clonotypes.select(names).sort_by(order).to_pylist()
    )
    facts = whole.facts
    assert facts["rows"] == rows.num_rows == expected.rows
    assert facts["left_out"] == dict(expected.left_out)
    assert set(facts["left_out"]) == {f"missing_{name}" for name in (*NAMES, "subject")}
    assert facts["clonotypes"] == expected.clonotypes.num_rows
    shared = sum(n >= 2 for n in expected.clonotypes["subjects"].to_pylist())
    assert 0 < facts["shared_clonotypes"] == shared
    table = {row["subject"]: row for row in pq_rows(whole.tables["subjects"])}
    assert {name: int(row["rows"]) for name, row in table.items()} == dict(expected.subjects)
    assert sorted(row["files"] for row in table.values()) == ["2", "2", "3"]
    assert [table[name]["dose"] for name in SUBJECTS] == ["1", "1", "1"]
    left_out = sum(int(row["rows_left_out"]) for row in table.values())
    named = sum(row["subject_id"] != "" for row in rows.to_pylist())
    assert 0 < left_out == named - sum(expected.subjects.values())


def pq_rows(path: Path) -> list[dict[str, str]]:
    header, *lines = path.read_text().splitlines()
    return [dict(zip(header.split("\t"), line.split("\t"), strict=True)) for line in lines]


def test_counts_and_regions_are_those_of_the_first_counted_row(whole: Study, rows: pa.Table) -> None:
    first: dict[tuple[str, str, str], tuple[str, str, str]] = {}
    counted = count_paths(rows, germline="mouse_trb", model=MODEL, device="cpu").status == 0
    for row, known in zip(rows.to_pylist(), counted.tolist(), strict=True):
        key = (
            row["junction"].upper(),
            row["v_call"].partition("*")[0],
            row["j_call"].partition("*")[0],
        )
        if known and row["subject_id"]:
            first.setdefault(key, (row["junction"], row["v_call"], row["j_call"]))
    found = [row for row in clonotypes(whole).to_pylist() if row["path_count"] is not None]
    assert {tuple(row[name] for name in NAMES) for row in found} == set(first)
    again = [first[row["junction"], row["v_gene"], row["j_gene"]] for row in found]
    counts = count_paths(
        *map(list, zip(*again, strict=True)), germline="mouse_trb", model=MODEL, device="cpu"
    )
    assert [row["path_count"] for row in found] == counts.path_count.tolist()
    sweep = counts.sweep_by_d.sum(axis=1).reshape(len(found), -1)
    assert [row["path_count_sweep"] for row in found] == sweep.tolist()
    assert [row["n1_length"] for row in found] == counts.regions["n1_length"].tolist()
    has_d = counts.regions["d_match_length"] > 0
    n2 = [n if known else None for n, known in zip(counts.regions["n2_length"].tolist(), has_d, strict=True)]
    assert [row["n2_length"] for row in found] == n2
    assert {row["status"] for row in found} == {"ok"}
    assert [row["junction_length"] for row in found] == [len(row["junction"]) for row in found]


def test_statuses_are_those_of_all_rows(whole: Study, rows: pa.Table) -> None:
    expected = Counter()
    for entry in whole.facts["inputs"]:
        expected.update(pq.read_table(entry["counts"])["status"].to_pylist())
    table = pq_rows(whole.tables["statuses"])
    assert {row["status"]: int(row["rows"]) for row in table} == dict(expected)
    assert sum(expected.values()) == rows.num_rows
    assert all(row["meaning"] for row in table) and len(table) > 2


@pytest.mark.slow
@pytest.mark.parametrize("threads", often(1, [3, 1]))
@pytest.mark.parametrize("parts", often(1, [7, 1]))
@pytest.mark.parametrize("small", often(1, [True, False]))
def test_nothing_depends_on_how_rows_are_cut_up(
    whole: Study,
    sheet: Path,
    cache: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    threads: int,
    parts: int,
    small: bool,
) -> None:
    if small:
        # Tasks of one row group, pieces of a few rows, and repeated rows always or never put together.
        monkeypatch.setattr(stages, "_STRETCH_ROWS", 1)
        monkeypatch.setattr(stages, "_PIECE_BYTES", 4000)
        monkeypatch.setattr(stages, "_READ_BYTES", 20000)
        monkeypatch.setattr(stages, "_WORTH_COLLAPSING", float(parts))
    monkeypatch.setattr(stages, "_PART_BYTES", 700 * 290 // parts)
    found = run(sheet, tmp_path / "out", cache, threads=threads)
    assert len(list((found.folder / "clonotypes").iterdir())) >= parts
    assert clonotypes(found).equals(clonotypes(whole))
    assert digests(found) == digests(whole)
    same = (
        "rows",
        "left_out",
        "clonotypes",
        "shared_clonotypes",
        "subjects",
        "answers",
        "counted_clonotypes",
    )
    assert {name: found.facts[name] for name in same} == {name: whole.facts[name] for name in same}


def test_the_order_of_clonotypes_is_part_then_text(
    whole: Study, tmp_path: Path, sheet: Path, cache: Path
) -> None:
    again = run(sheet, tmp_path / "out", cache, threads=1)
    for a, b in zip(*(sorted((s.folder / "clonotypes").iterdir()) for s in (whole, again)), strict=True):
        table = pq.read_table(a)
        assert table.equals(pq.read_table(b))
        keys = [tuple(row.values()) for row in table.select(NAMES).to_pylist()]
        assert keys == sorted(set(keys))


@pytest.mark.slow
def test_counts_are_found_again(sheet: Path, cache: Path, whole: Study, tmp_path: Path) -> None:
    found = run(sheet, tmp_path / "one", cache)
    assert [entry["counts_reused"] for entry in found.facts["inputs"]] == [True] * 3
    # The same content under another name, and an output of plait vdj count itself.
    copied = tmp_path / "copied.parquet"
    copied.write_bytes((sheet.parent / "0.parquet").read_bytes())
    counted = Path(whole.facts["inputs"][1]["counts"])
    other = tmp_path / "sheet.csv"
    other.write_text(f"file,subject_id,dose\ncopied.parquet,,1\n{counted},,1\n{sheet.parent}/2.parquet,,\n")
    before = sorted(cache.iterdir())
    again = run(other, tmp_path / "two", cache)
    assert again.facts["inputs"][1]["counts"] == str(counted)
    assert digests(again) == digests(whole)
    assert [
        path for path in sorted(cache.iterdir()) if path not in before and "copied" not in path.name
    ] == []
    # Other parameters are other counts.
    fewer = run(
        sheet, tmp_path / "three", cache, model=PathModel(pi=2, nu=5, sweep_pi=(0, 2), sweep_nu=(0, 5))
    )
    assert [entry["counts_reused"] for entry in fewer.facts["inputs"]] == [False] * 3


@pytest.mark.parametrize(("germline", "chain"), often(1, [("mouse_tra", "vj"), ("mouse_trb", "vddj")]))
def test_other_chains(tmp_path: Path, germline: str, chain: Any) -> None:
    rows = simulated_repertoire(150, subjects=SUBJECTS, germline=germline, genes=2, seed=1)
    # Genes, so that counting clonotypes again takes the same alleles.
    genes = {name: pc.replace_substring_regex(rows[name], r"\*.*", "") for name in ("v_call", "j_call")}
    pq.write_table(
        pa.table({**dict(zip(rows.column_names, rows.columns, strict=True)), **genes}), tmp_path / "a.parquet"
    )
    (tmp_path / "sheet.csv").write_text("file\na.parquet\n")
    found = run(
        tmp_path / "sheet.csv",
        tmp_path / "out",
        tmp_path / "cache",
        germline=germline,
        chain=chain,
        regression=True,
        lambdas=5,
        folds=2,
        halves=0,
    )
    table = clonotypes(found)
    calls = [table[name].to_pylist() for name in NAMES]
    counts = count_paths(*calls, germline=germline, chain=chain, model=MODEL, device="cpu")
    sweep = counts.sweep_by_dd.sum(axis=1) if chain == "vddj" else counts.no_d_sweep
    assert table["path_count_sweep"].to_pylist() == sweep.reshape(table.num_rows, -1).tolist()
    assert table["path_count"].to_pylist() == counts.path_count.tolist()
    assert ("n2_length" in table.column_names) == (chain != "vj")
    assert found.facts["regression"]["n"] == table.num_rows


def test_a_damaged_count_is_named(sheet: Path, tmp_path: Path, whole: Study) -> None:
    from plait.errors import FormatError

    cache = tmp_path / "cache"
    first = run(sheet, tmp_path / "out", cache)
    counts = Path(first.facts["inputs"][0]["counts"])
    content = bytearray(counts.read_bytes())
    content[200:1200] = bytes(1000)
    counts.write_bytes(content)
    with pytest.raises(FormatError, match="remove the file and run again"):
        run(sheet, tmp_path / "again", cache)


def test_no_reads_no_duplicate_count(tmp_path: Path, cache: Path, sheet: Path) -> None:
    other = tmp_path / "sheet.tsv"
    other.write_text(f"file\tsubject_id\n{sheet.parent}/2.parquet\t\n")
    found = run(other, tmp_path / "out", cache)
    assert "duplicate_count" not in clonotypes(found).column_names
    json.dumps(found.facts)


def test_tables_without_rows(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "a.tsv").write_text("junction\tv_call\tj_call\tsubject_id\n")
    (tmp_path / "b.tsv").write_text("junction\tv_call\tj_call\n")
    (tmp_path / "sheet.csv").write_text("file,subject_id,age\na.tsv,,3\nb.tsv,bob,4\n")
    found = run(tmp_path / "sheet.csv", tmp_path / "out", cache, executor=LocalExecutor(1), regression=True)
    assert (found.facts["rows"], found.facts["clonotypes"], found.facts["subjects"]) == (0, 0, 1)
    assert [row["subject"] for row in pq_rows(found.tables["subjects"])] == ["bob"]
    assert found.facts["regression"]["warnings"] == ["No clonotype has a path count."]


def test_a_subject_column_with_the_name_of_a_result(tmp_path: Path, cache: Path) -> None:
    rows = simulated_repertoire(40, subjects=SUBJECTS, genes=2).rename_columns({"subject_id": "status"})
    pq.write_table(rows, tmp_path / "a.parquet")
    (tmp_path / "sheet.csv").write_text("file\na.parquet\n")
    found = run(tmp_path / "sheet.csv", tmp_path / "out", cache, subject="status")
    assert [row["subject"] for row in pq_rows(found.tables["subjects"])] == list(SUBJECTS)
    assert found.facts["inputs"][0]["subject_column"] == "input_status"
