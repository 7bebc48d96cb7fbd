"""``plait vdj report``: the page and the figures of a study, and what it says where there is none."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.examples import often
from support.study_folder import write_study_folder


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return write_study_folder(tmp_path / "study", subjects=3, clonotypes=1500)


@pytest.fixture
def draws() -> None:
    pytest.importorskip("vl_convert", reason="reports are drawn with vl-convert, of plait's extra report")
    pytest.importorskip("jinja2", reason="reports are made with Jinja, of plait's extra report")


def test_page_and_figures(
    plait: Callable[..., Any], study: Path, draws: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAIT_THREADS", "1")
    monkeypatch.setattr("plait.reports.figure.figure_files", lambda figure: (b"png", b"svg"))
    found = plait("vdj", "report", study)
    assert found.status == 0 and found.err == ""
    *_, figures, page = found.out.splitlines()
    assert figures == f"figures  {study / 'figures'} (22 as PNG and SVG)"
    assert page.startswith(f"page     {study / 'report.html'} (")
    assert (study / "report.html").read_text().startswith("<!doctype html>")
    names = {path.name for path in (study / "figures").iterdir()}
    assert len(names) == 44 and {"vj_usage.png", "vj_usage.svg", "coefficient_path.png"} <= names


def test_another_name_and_no_figures(plait: Callable[..., Any], study: Path, draws: None) -> None:
    page = study.parent / "mine.html"
    found = plait("vdj", "report", study, "-o", page, "--no-figures")
    assert found.status == 0 and str(page) in found.out.splitlines()[-1]
    assert page.is_file() and not (study / "figures").exists() and not (study / "report.html").exists()


def test_missing_figures_are_told(plait: Callable[..., Any], tmp_path: Path, draws: None) -> None:
    study = write_study_folder(tmp_path / "study", subjects=2, clonotypes=1500, regression=False)
    found = plait("vdj", "report", study, "--no-figures")
    told = " ".join(found.out.split())
    assert (
        "7 figures have no data in this study: Public clonotypes, observed and expected; Path counts" in told
    )


@pytest.mark.parametrize(
    "what", often(2, ["no folder", "an empty folder", "no JSON", "a bad number", "no column"])
)
def test_what_is_no_study_is_refused(plait: Callable[..., Any], study: Path, draws: None, what: str) -> None:
    table = study / "tables" / "sweep.tsv"
    if what == "no folder":
        study = study.parent / "nowhere"
    elif what == "an empty folder":
        study = study.parent
    elif what == "no JSON":
        (study / "study.json").write_text("{")
    elif what == "a bad number":
        lines = table.read_text().splitlines()
        lines[4] = lines[4].replace("\t", "\tone", 1)
        table.write_text("\n".join(lines))
    else:
        table.write_text(table.read_text().replace("path_count_q50", "median", 1))
    found = plait("vdj", "report", study)
    assert found.status == 2 and found.out == ""
    expected = {
        "no folder": "expected the output folder of a finished plait vdj study",
        "an empty folder": "without a file study.json",
        "no JSON": "study.json, line 1: found no JSON",
        "a bad number": "sweep.tsv, line 5, column 'nu': found 'one",
        "no column": "expected a column 'path_count_q50' among them",
    }
    assert expected[what] in found.err
    assert not (study / "report.html").exists() and not (study / "figures").exists()


def test_without_the_libraries(
    plait: Callable[..., Any], study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # None in the table of modules makes an import fail.
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    found = plait("vdj", "report", study)
    assert found.status == 2 and "plait[report]" in found.err
    assert not (study / "report.html").exists()


def test_an_output_in_no_folder_is_refused(plait: Callable[..., Any], study: Path, draws: None) -> None:
    found = plait("vdj", "report", study, "-o", study / "none" / "page.html")
    assert found.status == 2 and "in a folder that does not exist" in found.err
    assert not (study / "figures").exists()
