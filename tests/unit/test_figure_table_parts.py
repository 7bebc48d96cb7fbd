"""Parts of a study's tables: intervals of compositions, what rounding does to a correlation, the text."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from plait.errors import FormatError, InvalidInput
from plait.vdj.convergence.claims import number, read_table, write_table
from plait.vdj.convergence.figure_tables import Composition, FigureTables
from plait.vdj.convergence.pgen_tables import FigureSettings


def test_composition_intervals_are_those_of_the_bootstrap() -> None:
    rng = np.random.default_rng(4)
    n = 300
    # Whole clonotypes are rich or poor in A: taken one by one, nucleotides would seem far more certain.
    rich = rng.random(n) < 0.5
    length = rng.integers(1, 9, n)
    a = rng.binomial(length, np.where(rich, 0.8, 0.1))
    held = Composition(FigureSettings())
    nothing = np.zeros(n, int)
    columns = {"n2_a": a, "n2_c": length - a, "n2_g": nothing, "n2_t": nothing}
    held.add_clonotypes(pa.table({"subjects": nothing + 1, **columns}))
    row = next(row for row in held.rows() if (row["base"], row["shared"]) == ("a", False))
    draws = rng.integers(0, n, (1000, n))
    shares = a[draws].sum(1) / length[draws].sum(1)
    assert (row["low"], row["high"]) == pytest.approx(np.quantile(shares, [0.025, 0.975]), abs=0.012)
    alone = 1.96 * math.sqrt(row["share"] * (1 - row["share"]) / length.sum())
    assert row["high"] - row["low"] > 3 * alone
    assert all("low" not in row for row in held.rows() if row["base"] in "gt")


def test_rounding_changes_a_correlation_by_far_less_than_its_interval() -> None:
    rng = np.random.default_rng(0)
    n = 20_000
    subjects = rng.integers(1, 5, n)
    paths = (10 ** (rng.normal(7, 0.4, n) + 0.1 * subjects)).astype(np.int64)
    text = pa.array([f"TGT{k}" for k in range(n)], pa.large_string())
    one = pa.array(["x"] * n, pa.large_string())
    table = pa.table(
        {"junction": text, "v_gene": one, "j_gene": one, "subjects": subjects, "path_count": paths}
    )
    table = table.append_column("rows", pa.array(subjects))
    found = []
    for most in (n, n // 10):
        tables = FigureTables(FigureSettings(exact_pairs=most, rounded_pairs=most))
        tables.add_clonotypes(table)
        found.append([row for row in tables.correlations() if row["stratum_kind"] == "all"])
        assert bool(tables.notes()) == (most < n)
    for exact, rounded in zip(*found, strict=True):
        assert exact["estimate"] != rounded["estimate"]
        assert abs(rounded["estimate"] - exact["estimate"]) < 0.05 * (exact["high"] - exact["low"])


def test_table_text(tmp_path: Path) -> None:
    path = tmp_path / "t.tsv"
    rows = [
        {"a": 1.0, "b": "x\ty\n z", "c": None},
        {"a": 1 / 3, "b": True, "c": math.nan},
        {"a": 2**60, "c": -1e-7},
    ]
    write_table(path, ["a", "b", "c"], rows)
    assert path.read_text() == "a\tb\tc\n1\tx y z\t\n0.3333333333\tT\t\n1152921504606846976\t\t-1e-07\n"
    assert [row["b"] for row in read_table(path)] == ["x y z", "T", ""]
    assert [number(row["c"]) for row in read_table(path)] == [None, None, -1e-7]
    path.write_text("a\tb\n1\n")
    with pytest.raises(FormatError, match="line 2"):
        read_table(path)
    with pytest.raises(InvalidInput):
        write_table(tmp_path / "none" / "t.tsv", ["a"], [])
