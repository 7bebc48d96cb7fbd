"""Reports of studies: what figures are made of, and what the page may hold."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from base64 import b64encode
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from support.examples import often
from support.study_folder import write_study_folder, write_table

from plait.reports import figure as figure_module
from plait.reports.figure import (
    GROUP_COLOURS,
    LEVELS,
    THEMES,
    StudyFigure,
    drawing,
    figure_files,
    gene_order,
    grouped_levels,
    paint,
    short_names,
)
from plait.reports.page import PAGES, Results, read_study
from plait.reports.study_report import study_figures, write_study_report
from plait.stats.contingency import wilson_interval

HOSTILE = ("<b>&\"'</b>", "</script><script>x()</script>", "a\u2028b", "$ink", "]]>")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return read_study(write_study_folder(tmp_path_factory.mktemp("study")))


@pytest.fixture(scope="module")
def with_pgen(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return read_study(write_study_folder(tmp_path_factory.mktemp("with_pgen"), pgen=True))


@pytest.fixture(scope="module")
def figures(study: Results) -> dict[str, StudyFigure]:
    return {figure.name: figure for figure in study_figures(study)}


@pytest.fixture
def draws() -> None:
    pytest.importorskip("vl_convert", reason="reports are drawn with vl-convert, of plait's extra report")
    pytest.importorskip("jinja2", reason="reports are made with Jinja, of plait's extra report")


def values_of(figure: StudyFigure) -> list[dict[str, Any]]:
    assert figure.spec is not None
    values: list[dict[str, Any]] = figure.spec["data"]["values"]
    return values


def axis_titles(part: Any) -> list[str | None]:
    """Titles of all axes and legends in a specification."""
    if isinstance(part, list):
        return [title for item in part for title in axis_titles(item)]
    if not isinstance(part, dict):
        return []
    guides = [part[name] for name in ("axis", "legend") if isinstance(part.get(name), dict)]
    own = [guide.get("title") for guide in guides]
    return own + [
        title for key, item in part.items() if key not in ("values", "config") for title in axis_titles(item)
    ]


def test_every_figure_is_told(figures: dict[str, StudyFigure]) -> None:
    assert len(figures) == 23 and set(PAGES["study"]["sections"]) == {
        figure.section for figure in figures.values()
    }
    assert [name for name, one in figures.items() if one.spec is None] == ["observed_and_expected_sharing"]
    for figure in figures.values():
        if figure.spec is None:
            continue
        assert figure.title and len(figure.caption) > 50 and len(figure.alt) > 40
        titles = axis_titles(figure.spec)
        # Names of things need no title beside them; whatever is measured has one.
        # Bars of sets have their numbers above them.
        assert titles and (any(titles) or figure.name == "subject_sets")
    with_n = [
        name
        for name, figure in figures.items()
        if "n = " in json.dumps([figure.caption, figure.alt, figure.spec])
    ]
    assert len(with_n) >= 11


@pytest.mark.slow
def test_names_of_tables_are_those_of_the_study(study: Results, with_pgen: Results) -> None:
    names = PAGES["study"]["tables"]
    assert set(with_pgen.tables) == set(names)
    of_models = {"expected_sharing", "public_clonotypes"}
    assert set(study.tables) == {name for name in names if not name.startswith("pgen")} - of_models


def test_figures_of_pgen(with_pgen: Results, figures: dict[str, StudyFigure]) -> None:
    found = {figure.name: figure for figure in study_figures(with_pgen)}
    more = ["pgen_less_path_count", "pgen_distributions", "sharing_by_pgen", "sweep_and_pgen"]
    assert sorted(set(found) - set(figures)) == sorted(more)
    assert all(found[name].spec is not None and len(found[name].alt) > 40 for name in more)
    values = values_of(found["pgen_less_path_count"])
    assert [value["label"] for value in values] == [
        f"{measure},|{what}"
        for measure in ("Spearman's rho", "ROC curve area")
        for what in ("all clonotypes", "neither is 0", "sweep, pi 4, nu 2")
    ]
    assert [value["subjects_low"] is None for value in values] == [False, True, True] * 2
    assert found["observed_and_expected_sharing"].spec is not None
    # A probability of zero is in no bin, and told.
    table = with_pgen.tables["pgen_by_sharing"]
    zeros = sum(
        n
        for n, low in zip(table.integers("clonotypes"), table.numbers("log10_low"), strict=True)
        if low is None
    )
    assert f"{zeros} with a Pgen of 0" in found["sharing_by_pgen"].caption
    assert len(values_of(found["sweep_and_pgen"])) == 55


def test_figures_of_subjects(with_pgen: Results) -> None:
    found = {figure.name: figure for figure in study_figures(with_pgen)}
    drawn = values_of(found["observed_and_expected_sharing"])
    levels = with_pgen.tables["expected_sharing"].records("subjects:i", "observed:i", "beyond:i")
    assert [value["n"] for value in drawn if value["what"] == "observed"] == [
        row["observed"] for row in levels if row["observed"]
    ]
    assert sum(value["n"] for value in drawn if value["what"].startswith("more")) == sum(
        row["beyond"] for row in levels
    )
    sets = values_of(found["subject_sets"])
    bars = [value for value in sets if "top" in value]
    assert len(bars) == 20 and bars[0]["clonotypes"] == max(value["clonotypes"] for value in bars)
    # A bar is as high as its number, and has a dot for each of its subjects, two or more.
    scale = (bars[0]["bottom"] - bars[0]["top"]) / bars[0]["clonotypes"]
    for k, bar in enumerate(bars):
        assert bar["bottom"] - bar["top"] == pytest.approx(scale * bar["clonotypes"], abs=1)
        dots = [value["subject"] for value in sets if value["set"] == k and value.get("in")]
        assert len(dots) > 1 and sorted(dots) == sorted(bar["names"].split(", "))
    matrix = {(value["a"], value["b"]): value["jaccard"] for value in values_of(found["overlap_matrix"])}
    assert len(matrix) == 56 and all(matrix[b, a] == share for (a, b), share in matrix.items())
    usage = values_of(found["v_by_subject"])
    shares = [sum(v["clonotypes_share"] for v in usage if v["subject"] == f"mouse-{k}") for k in range(1, 9)]
    assert shares == pytest.approx([1.0] * 8)


def test_shares_of_shared_clonotypes(study: Results, figures: dict[str, StudyFigure]) -> None:
    table = study.tables["n2_length_by_sharing"]
    rows = list(
        zip(table.integers("subjects"), table.numbers("n2_length"), table.integers("clonotypes"), strict=True)
    )
    drawn = {point["x"]: point for point in values_of(figures["sharing_by_n2_length"])}
    for length in (0.0, 3.0):
        n = sum(count for _, at, count in rows if at == length)
        shared = sum(count for level, at, count in rows if at == length and level >= 2)
        assert drawn[length]["share"] == shared / n and drawn[length]["n"] == n
        assert (drawn[length]["low"], drawn[length]["high"]) == wilson_interval(shared, n, 1.959964)
    assert all(point["n"] >= 20 for point in drawn.values())
    # Both figures have one scale.
    scales = [
        re.findall(r'"domain": \[0, [\d.]+\]', json.dumps(figures[f"sharing_by_{x}"].spec))
        for x in ("path_count", "n2_length")
    ]
    assert scales[0] and scales[0] == scales[1]


def test_distributions(study: Results, figures: dict[str, StudyFigure]) -> None:
    table = study.tables["sharing_levels"]
    values = values_of(figures["n2_length_distributions"])
    for level, middle in zip(table.texts("subjects"), table.numbers("n2_length_q50"), strict=True):
        (found,) = [value for value in values if value.get("level") == level and "q50" in value]
        assert abs(found["q50"] - middle) <= 0.5
        shares = [value["share"] for value in values if value.get("level") == level and "share" in value]
        assert abs(sum(shares) - 1) < 1e-9
    quartiles = [
        (value["level"], value["q50"])
        for value in values_of(figures["path_count_distributions"])
        if "q50" in value
    ]
    counts = table.numbers("path_count_q50")
    for (_, found), told in zip(quartiles, counts, strict=True):
        # Within the bin, which is a quarter of a power of ten wide.
        assert told / 10**0.25 <= 10**found <= told * 10**0.25


def test_many_subjects_are_grouped() -> None:
    groups = grouped_levels({level: 5 for level in range(1, 101)}, 8)
    assert len(groups) == 8 and [label for label, _ in groups[:3]] == ["1", "2", "3"]
    covered = [level for _, levels in groups for level in levels]
    assert covered == list(range(1, 101))


def test_short_names_stay_different() -> None:
    names = [f"a very long name {k % 3} of a patient" for k in range(3)] + ["", "short"]
    short = short_names(names)
    assert len(set(short.values())) == len(names) and short[""] == "no name" and short["short"] == "short"


def test_genes_are_in_numeric_order() -> None:
    names = ["TRBV13-2", "TRBV2", "", "TRBV13-1", "TRBV\u00b2", "x"]
    assert sorted(names, key=gene_order) == ["", "TRBV2", "TRBV13-1", "TRBV13-2", "TRBV\u00b2", "x"]


def brightness(colour: str) -> float:
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    low, high = sorted((brightness(first), brightness(second)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", list(THEMES))
def test_colours_stand_out(theme: str) -> None:
    colours = THEMES[theme]
    for ground in ("page", "paper"):
        for text in ("ink", "quiet", "link"):
            assert contrast(colours[text], colours[ground]) >= 4.5
    marks = [*GROUP_COLOURS.values(), *LEVELS, "$alone", "$shared"]
    for mark in marks:
        assert contrast(colours[mark[1:]], colours["paper"]) >= 3
    amounts = [brightness(colours[f"sequence{k}"]) for k in range(7)]
    steps = [b - a for a, b in pairwise(amounts)]
    assert all(step > 0 for step in steps) or all(step < 0 for step in steps)


def test_both_themes_have_the_same_colours() -> None:
    assert len({tuple(colours) for colours in THEMES.values()}) == 1


def test_paint_leaves_data_alone() -> None:
    spec = {"mark": {"color": "$ink"}, "range": ["$n2"], "data": {"values": [{"gene": "$ink"}]}}
    painted = paint(spec, {"ink": "black", "n2": "green"})
    assert painted == {"mark": {"color": "black"}, "range": ["green"], "data": {"values": [{"gene": "$ink"}]}}


def test_no_text_of_the_data_is_in_an_expression(tmp_path: Path, draws: None) -> None:
    from plait.reports.figure import compiled_figure

    folder = write_study_folder(tmp_path, subjects=HOSTILE[:3], genes={"TRBV1": HOSTILE[0]}, clonotypes=300)
    for figure in study_figures(read_study(folder)):
        compiled = json.loads(json.dumps(compiled_figure(figure) or {}))
        for data in compiled.get("data", []):
            data.pop("values", None)
        compiled.pop("description", None)
        assert "<b>" not in json.dumps(compiled) and "script" not in json.dumps(compiled)


@pytest.mark.parametrize("files", often(1, [False, True]), ids=["page", "files"])
def test_the_page_of_a_study(tmp_path: Path, draws: None, files: bool) -> None:
    folder = write_study_folder(
        tmp_path / "study", subjects=HOSTILE, genes={"TRBV1": HOSTILE[1]}, clonotypes=1500, pgen=True
    )
    first = write_study_report(folder, figures=files)
    page = first.page.read_bytes()
    assert first.page_bytes == len(page) < 8_000_000 and first.missing == ()
    text = page.decode("utf-8")
    # Nothing of the data is markup: four scripts and data, and no more.
    assert text.count("<script") == text.count("</script>") == 5 and "<b>&" not in text
    assert not re.search(r"(?:src|href)=[\"'](?!#)", text.split("<script", 1)[0])
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)
    assert policy is not None and "default-src &#39;none&#39;" in policy[1]
    for script in re.findall(r"<script>(.*?)</script>", text, re.DOTALL):
        assert b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode() in policy[1]
    for data in re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', text, re.DOTALL):
        json.loads(data)
    for path in first.figures:
        if path.suffix == ".svg":
            ElementTree.fromstring(path.read_bytes())
        else:
            assert path.read_bytes().startswith(b"\x89PNG")
    if not files:
        assert not first.figures
        return
    written = {path: path.read_bytes() for path in first.figures}
    again = write_study_report(folder, figures=False)
    assert again.page.read_bytes() == page
    drawn = next(figure for figure in study_figures(read_study(folder)) if figure.name == "vj_usage")
    assert figure_files(drawn) == tuple(
        written[folder / "figures" / f"vj_usage.{kind}"] for kind in ("png", "svg")
    )


def test_figures_of_an_earlier_run_go(tmp_path: Path, draws: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIT_THREADS", "1")
    monkeypatch.setattr("plait.reports.figure.figure_files", lambda figure: (b"png", b"svg"))
    folder = write_study_folder(tmp_path, subjects=2, clonotypes=200, regression=False)
    (folder / "figures").mkdir()
    (folder / "figures" / "roc.png").write_bytes(b"old")
    (folder / "figures" / "mine.txt").write_bytes(b"kept")
    write_study_report(folder)
    assert not (folder / "figures" / "roc.png").exists() and (folder / "figures" / "mine.txt").exists()
    assert (folder / "figures" / "sweep_zeros.svg").read_bytes() == b"svg"


def test_processes_draw_what_one_draws(tmp_path: Path, draws: None, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pickle.py").write_text("open('ran', 'w')")
    monkeypatch.chdir(tmp_path)
    spec = {"data": {"values": [{"n": 1}, {"n": 2}]}, "mark": "bar", "encoding": {"x": {"field": "n"}}}
    shown = [StudyFigure(f"f{k}", "section", f"Figure {k}", "A caption.", spec=spec) for k in range(3)]
    expected = [(figure, figure_files(figure)) for figure in shown]
    monkeypatch.setattr("plait.reports.figure._WORTH", 3)
    monkeypatch.setenv("PLAIT_THREADS", "2")
    program, there = figure_module._PROGRAM, sys.executable
    for lines, executable in ((program, there), ("raise SystemExit(1)", there), (program, "/none")):
        monkeypatch.setattr("plait.reports.figure._PROGRAM", lines)
        monkeypatch.setattr("sys.executable", executable)
        with drawing([*shown, StudyFigure("none", "section", "None", "Nothing to draw.")]) as finish:
            found = list(finish())
        assert sorted(found, key=lambda drawn: drawn[0].name) == expected
    assert not (tmp_path / "ran").exists()


def test_no_process_is_left_drawing(draws: None, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[subprocess.Popen[bytes]] = []

    def start(*args: Any, **options: Any) -> subprocess.Popen[bytes]:
        begun.append(popen(*args, **options))
        return begun[-1]

    popen = subprocess.Popen
    monkeypatch.setattr("plait.reports.figure.Popen", start)
    monkeypatch.setattr("plait.reports.figure._WORTH", 1)
    monkeypatch.setattr("plait.reports.figure._PROGRAM", "import signal; signal.pause()")
    monkeypatch.setenv("PLAIT_THREADS", "3")
    shown = [StudyFigure(f"f{k}", "section", "title", "caption", spec={}) for k in range(4)]
    with pytest.raises(KeyboardInterrupt), drawing(shown):
        raise KeyboardInterrupt
    assert len(begun) == 2 and all(process.returncode is not None for process in begun)


@pytest.mark.slow
def test_large_tables_are_cut_and_said_to_be(tmp_path: Path, draws: None) -> None:
    folder = write_study_folder(tmp_path, subjects=40, clonotypes=300, regression=False)
    columns = ["subject", "junction_length", "clonotypes", "rows"]
    rows = [[f"subject {k}", 30 + n, 5, 6] for k in range(1000) for n in range(60)]
    write_table(folder / "tables" / "cdr3_lengths.tsv", columns, rows)
    text = write_study_report(folder, figures=False).page.read_text("utf-8")
    assert "The first 15,000 rows; all are in tables/cdr3_lengths.tsv." in text
    assert "976 others are in the table." in text and len(text) < 8_000_000


def test_a_failed_report_leaves_the_old_one(
    tmp_path: Path, draws: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_study_folder(tmp_path, subjects=2, clonotypes=200, regression=False)
    (folder / "report.html").write_text("old")

    def fail(*_: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("plait.reports.study_report.study_page", fail)
    with pytest.raises(KeyboardInterrupt):
        write_study_report(folder)
    assert (folder / "report.html").read_text() == "old"
    assert {path.name for path in folder.iterdir()} == {"report.html", "study.json", "tables"}


def test_estimators_have_marks_of_their_own(figures: dict[str, StudyFigure]) -> None:
    """An interval of one estimator is not drawn through the points of another one."""
    spec = figures["coefficients"].spec
    assert spec is not None
    places: dict[str, set[int]] = {}
    for layer in spec["layer"]:
        field = layer["encoding"].get("x", {}).get("field")
        if field in ("mle", "mle_low", "chosen"):
            places.setdefault("chosen" if field == "chosen" else "mle", set()).add(layer["mark"]["yOffset"])
    assert places["mle"].isdisjoint(places["chosen"]) and len(places["mle"]) == len(places["chosen"]) == 1
    outside = [
        value
        for value in values_of(figures["coefficients"])
        if value["chosen"] is not None and not value["mle_low"] <= value["chosen"] <= value["mle_high"]
    ]
    assert outside, "the example shows what the figure must not confuse"
    assert "It has no intervals" in figures["coefficients"].caption
