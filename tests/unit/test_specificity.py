"""Clonotypes near receptors of a query: against a plain count, and against draws of the same model."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from plait.errors import InvalidInput
from plait.run.executor import LocalExecutor
from plait.vdj.model import load_model
from plait.vdj.model.sampling import BlockDraws
from plait.vdj.repertoires.specificity import NeighbourSettings, Specificities, specificities

Row = tuple[str, str, str, str]


def table_of(rows: list[Row]) -> pa.Table:
    names = ("junction_aa", "v_call", "j_call", "subject_id")
    return pa.table(dict(zip(names, zip(*rows, strict=True), strict=True)))


def drawn_rows(n: int, seed: int, letters: str = "AC") -> list[Row]:
    rng = np.random.default_rng(seed)
    return [
        (
            "C" + "".join(rng.choice(list(letters), 4)) + "F",
            f"TRBV{rng.integers(1, 3)}*01",
            "TRBJ1-1",
            f"s{rng.integers(3)}",
        )
        for _ in range(n)
    ]


def query_file(folder: Path, rows: list[Row]) -> Path:
    path = folder / "query.parquet"
    table = table_of(rows).drop_columns(["subject_id"])
    pq.write_table(table.append_column("epitope", pa.array([f"E{k}" for k in range(len(rows))])), path)
    return path


def near(a: Row, b: Row, limit: int, genes: bool) -> bool:
    same = len(a[0]) == len(b[0]) and sum(x != y for x, y in zip(a[0], b[0], strict=True)) <= limit
    return same and (not genes or a[1:3] == b[1:3])


@pytest.mark.parametrize(("key", "limit"), [("cdr3aa+v+j", 1), ("cdr3aa", 2), ("cdr3aa+j", 0)])
def test_plain_count(tmp_path: Path, key: str, limit: int) -> None:
    rows, control, asked = drawn_rows(60, 1), drawn_rows(40, 2), drawn_rows(12, 3)
    genes = "+v" in key
    found = specificities(
        query_file(tmp_path, asked),
        table_of(rows),
        table_of(control),
        settings=NeighbourSettings(key=key, mismatches=limit),
        executor=LocalExecutor(3),
    )

    def clonotypes(of: list[Row]) -> set[tuple[Any, str]]:
        return {((r[0], r[1:3] if genes else None), r[3]) for r in of}

    totals = len(clonotypes(rows)), len(clonotypes(control))
    assert (found.occurrences, found.background) == totals
    for query, row in zip(asked, found.table.to_pylist(), strict=True):
        close = clonotypes([r for r in rows if near(query, r, limit, genes)])
        other = len(clonotypes([r for r in control if near(query, r, limit, genes)]))
        assert row["occurrences"] == len(close)
        assert row["neighbours"] == len({name for name, _ in close})
        assert row["neighbour_subjects"] == len({subject for _, subject in close})
        assert row["background"] == other
        assert row["expected"] == pytest.approx(other * totals[0] / totals[1])
        assert row["fold"] == (pytest.approx(len(close) / row["expected"]) if other else None)
        n, rate = len(close) + other, totals[0] / sum(totals)
        tail = [math.comb(n, k) * rate**k * (1 - rate) ** (n - k) for k in range(len(close), n + 1)]
        assert row["p_value"] == pytest.approx(sum(tail))
        assert row["p_value"] <= row["q_value"] * (1 + 1e-9) <= 1 + 1e-9


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Specificities:
    """A query drawn from a model against others drawn from it, with one receptor selected in 20 ways."""
    folder = tmp_path_factory.mktemp("planted")
    model = load_model("human_TRB")
    draws = BlockDraws(model, 11, True, 1 << 16)(0).select(["junction_aa", "v_call", "j_call"]).to_pylist()
    rows = [(row["junction_aa"], row["v_call"], row["j_call"], f"s{k % 4}") for k, row in enumerate(draws)]
    asked = [row for row in rows[:300]]
    chosen = max(asked, key=lambda row: len(row[0]))
    variants = [
        (chosen[0][:8] + letter + chosen[0][9:], *chosen[1:3], "s1") for letter in "ACDEFGHIKLMNPQRSTVWY"
    ]
    settings = NeighbourSettings(key="cdr3aa", mismatches=2, draws=20_000, seed=5)
    source = table_of([*rows[300:], *variants])
    return specificities(query_file(folder, [chosen, *asked]), source, model, settings=settings)


@pytest.mark.slow
def test_receptors_that_were_selected_are_found(planted: Specificities) -> None:
    first, *rest = planted.table.to_pylist()
    assert first["neighbours"] >= 20 and first["q_value"] < 0.01 and first["epitope"] == "E0"
    assert sum(row["q_value"] < 0.05 for row in rest) <= 2, "but for the chosen one itself"
    assert planted.background == 20_000


@pytest.mark.slow
def test_chance_is_taken_for_chance(planted: Specificities) -> None:
    rows = [
        row
        for row in planted.table.to_pylist()
        if row["junction_aa"] != planted.table["junction_aa"][0].as_py()
    ]
    p = np.array([row["p_value"] for row in rows])
    # They are discrete, so that no more than a share is below any limit.
    assert all((p <= limit).mean() <= limit + 0.03 for limit in (0.01, 0.05, 0.2))
    expected, seen = (sum(row[name] for row in rows) for name in ("expected", "occurrences"))
    assert seen > 100 and expected == pytest.approx(seen, rel=0.3)


def test_rows_without_a_key_keep_their_place(tmp_path: Path) -> None:
    asked: list[Row] = [
        ("CAAAAF", "TRBV1", "TRBJ1-1", ""),
        ("", "TRBV1", "TRBJ1-1", ""),
        ("CAAAAF", "", "x", ""),
    ]
    found = specificities(
        query_file(tmp_path, asked), table_of(drawn_rows(30, 1)), table_of(drawn_rows(30, 2))
    )
    rows = found.table.to_pylist()
    assert [row["q_value"] is None for row in rows] == [False, True, True]
    assert [row["neighbours"] is None for row in rows] == [False, True, True]


def test_nucleotides(tmp_path: Path) -> None:
    table = pa.table(
        {"junction": ["TGTGCATTT", "tgtgcattt", "TGTGCCTTT"], "subject_id": ["a", "b", "a"]}
        | {name: ["x", "x", "x"] for name in ("v_call", "j_call")}
    )
    path = tmp_path / "query.parquet"
    pq.write_table(table.slice(2), path)
    for key, numbers in (("cdr3nt", (2, 3)), ("cdr3aa", (1, 2))):
        found = specificities(path, table, table, settings=NeighbourSettings(key=key))
        (row,) = found.table.to_pylist()
        assert (row["neighbours"], row["occurrences"]) == numbers


@pytest.mark.parametrize(
    ("columns", "settings", "message"),
    [
        ({"fold": ["1"]}, {}, "the column 'fold'"),
        ({}, {"mismatches": 1, "edits": 1}, "both"),
        ({}, {"key": "cdr4"}, "'cdr4'"),
        ({}, {"draws": 0}, "draws"),
    ],
)
def test_bad_requests(tmp_path: Path, columns: Any, settings: dict[str, Any], message: str) -> None:
    path = query_file(tmp_path, drawn_rows(1, 1))
    table = pq.read_table(path)
    for name, values in columns.items():
        table = table.append_column(name, pa.array(values))
    pq.write_table(table, path)
    other = table_of(drawn_rows(5, 2))
    with pytest.raises(InvalidInput, match=message):
        specificities(path, other, other, settings=NeighbourSettings(**settings))
