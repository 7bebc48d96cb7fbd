"""Rates of errors as a figure."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from plait.cli import main
from plait.ldpc.simulation import ErrorRates
from plait.reports.error_rates import error_rate_figure


def test_a_figure(tmp_path: Path) -> None:
    pytest.importorskip("vl_convert", reason="what draws figures is not installed")
    words = [
        "ldpc",
        "simulate",
        "--code",
        "wimax-576",
        "--ebn0",
        "1,4",
        "--words",
        "40",
        "--method",
        "min-sum",
    ]
    for name, begin in (("r.svg", b"<svg"), ("r.png", b"\x89PNG")):
        assert main([*words, "-o", str(tmp_path / "r.tsv"), "--figure", str(tmp_path / name)]) == 0
        assert (tmp_path / name).read_bytes().startswith(begin)


def test_another_name_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["ldpc", "simulate", "--code", "wimax-576", "--ebn0", "1", "--figure", str(tmp_path / "r.jpg")]
    assert main(words) == 2
    assert "expected a name that ends in .png or .svg" in capsys.readouterr().err


def test_where_no_error_was_seen_there_is_the_upper_end_alone() -> None:
    columns = [np.array(one) for one in ([1.0, 2.0], [100, 100], [50, 0], [900, 0], [0, 0], [9.0, 2.0])]
    rates = [
        np.array(one) for one in ([0.5, 0.0], [0.4, 0.0], [0.6, 0.04], [0.1, 0.0], [0.08, 0.0], [0.12, 0.0])
    ]
    figure = error_rate_figure(ErrorRates(*columns, *rates), "a code")
    assert figure.spec is not None
    rows = figure.spec["data"]["values"]
    assert [(row["of"], row["ebn0"], row["drawn_from"], row["high"]) for row in rows] == [
        ("words", 1.0, 0.4, 0.6),
        ("words", 2.0, 0.04 / 3, 0.04),
        ("bits", 1.0, 0.08, 0.12),
    ]
