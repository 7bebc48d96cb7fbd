"""What a study says on the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from plait.reports.study_report import study_text
from plait.vdj.convergence.claims import write_table
from plait.vdj.convergence.study import Study

LEVELS = ("subjects", "clonotypes", "path_count_q25", "path_count_q50", "path_count_q75", "n2_length_mean")
STATUSES = (("ok", 1, "counted"), ("a", 2, "no such V gene"), ("b", 1, "the junction is empty"))


@pytest.fixture
def told(tmp_path: Path) -> Any:
    """The text of a study of one row a clonotype, with some of its facts."""
    rows = {
        "sharing_levels": [dict.fromkeys(LEVELS) | {"subjects": 1, "clonotypes": 4}],
        "statuses": [dict(zip(("status", "rows", "meaning"), status, strict=True)) for status in STATUSES],
    }
    tables = {name: tmp_path / f"{name}.tsv" for name in rows}
    for name, path in tables.items():
        write_table(path, list(rows[name][0]), rows[name])

    def text(**facts: Any) -> str:
        known = {"rows": 4, "inputs": [{"counts_reused": False}], "subjects": 1, "clonotypes": 4}
        known |= {"shared_clonotypes": 0, "shared_by": 2, "counted_clonotypes": 4, "left_out": {}}
        known |= {"notes": [], "answers": [], "regression": {}}
        found = Study(folder=Path("out"), facts=known | facts, tables=tables)
        return study_text(found, seconds=1.0)

    return text


def test_why_paths_were_not_counted_is_told(told: Any) -> None:
    lines = told(counted_clonotypes=1).replace("\n", " ")
    assert "3 clonotypes (75.0 %) have no path count; statuses.tsv says why; most often: no such V" in lines
    assert "1 clonotype (25.0 %) has no path count" in told(counted_clonotypes=3)
    assert "path count;" not in told()


def test_one_row_is_one_row(told: Any) -> None:
    assert "1 row (25.0 %) is in no clonotype: missing junction." in told(left_out={"missing_junction": 1})
    assert "2 rows (50.0 %) are in no clonotype" in told(left_out={"missing_junction": 2})


def test_what_is_not_known_is_one_dash(told: Any) -> None:
    assert "- - -" not in told()


def test_a_small_correlation_is_not_written_as_zero(told: Any) -> None:
    """With 300 million rows intervals are this narrow, and the headline names a sign."""
    figures = {"spearman": 0.0004, "spearman_low": 0.0003, "spearman_high": 0.0005, "n": 300_000_000}
    text = told(answers=[{"headline": "A tends to B", "text": "Long.", "figures": figures}])
    assert "Spearman's rho 0.0004 (0.0003 to 0.0005), n = 300,000,000" in text
