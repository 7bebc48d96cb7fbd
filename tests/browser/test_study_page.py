"""The report of a study in a real browser: drawn, silent, searchable, printable, safe with any names."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from support.examples import often

pytest.importorskip("vl_convert", reason="reports are drawn with vl-convert, of plait's extra report")

from support.study_folder import write_study_folder

from plait.reports.figure import THEMES
from plait.reports.page import read_study
from plait.reports.study_report import study_figures, write_study_report

SIZES = "all => all.map(one => one.getBoundingClientRect()).map(box => [box.width, box.height])"
#: Every one would do something if it were taken for HTML, a script, an expression or a colour.
HOSTILE = (
    "<img src=x onerror=window.hacked=1>",
    "</script><script>window.hacked=1</script>",
    "'\"><svg onload=window.hacked=1>",
    "{{ 7 * 7 }} ${window.hacked=1}",
    "' + (window.hacked=1) + '",
    "\\u003cb\\u003e <!-- & %3Cb%3E",
    "$ink",
    "=1+1",
    "+1+cmd|' C calc'!A0",
    "-2+3",
    "@SUM(1)",
    '=1,"2"',
)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_study_folder(tmp_path_factory.mktemp("study"))
    write_study_report(folder, figures=False)
    return folder


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_study_folder(
        tmp_path_factory.mktemp("hostile"),
        subjects=HOSTILE,
        genes={"TRBV1": HOSTILE[0], "TRBV2": HOSTILE[4], "TRBV3": "$paper", "TRBJ1-1": HOSTILE[2]},
        files=[f"{name}.tsv" for name in HOSTILE],
        clonotypes=1500,
    )
    write_study_report(folder, figures=False)
    return folder


@pytest.fixture
def opened(open_page: Callable[..., Any], study: Path) -> Iterator[Callable[..., Any]]:
    """Opens the report; whatever a test does, the page stays silent and asks for nothing."""
    pages = []

    def opening(**options: Any) -> Any:
        pages.append(open_page(study / "report.html", **options))
        return pages[-1].page

    yield opening
    for found in pages:
        assert_silent(found)


@pytest.fixture(scope="module")
def desk(open_page: Callable[..., Any], study: Path) -> Any:
    """One page for the tests that leave it as it is."""
    return open_page(study / "report.html")


@pytest.fixture
def page(desk: Any) -> Iterator[Any]:
    yield desk.page
    assert_silent(desk)


def assert_silent(found: Any) -> None:
    """No message of any kind, and no request but for the page and for what it made itself."""
    assert found.said == []
    assert [url for url in found.asked if not url.startswith("blob:")] == [found.page.url.split("#")[0]]


def rows_shown(page: Any, name: str) -> int:
    return int(page.locator(f"[data-table={name}] tbody tr").count())


def point_at(page: Any, selector: str) -> None:
    """Move the pointer there once the page has been scrolled, which takes away what is shown beside it."""
    mark = page.locator(selector).first
    mark.scroll_into_view_if_needed()
    page.evaluate("new Promise(next => requestAnimationFrame(() => requestAnimationFrame(next)))")
    mark.hover()
    page.wait_for_selector(".tip", state="visible")


LOOKS = [("phone", "light"), ("desk", "light"), ("desk", "dark")]


@pytest.mark.parametrize(("look", "scheme"), often(1, LOOKS))
def test_every_figure_is_drawn(
    opened: Callable[..., Any], study: Path, screenshots: Path | None, look: str, scheme: str
) -> None:
    page = opened(phone=look == "phone", scheme=scheme)
    drawn = [figure for figure in study_figures(read_study(study)) if figure.spec is not None]
    assert page.locator(".plot").count() == len(drawn) > 15
    sizes = page.eval_on_selector_all(".plot svg", SIZES)
    assert len(sizes) == len(drawn)
    places = page.eval_on_selector_all(".plot", SIZES)
    for (width, height), (room, _) in zip(sizes, places, strict=True):
        # As wide as its place, but for what small multiples leave over.
        assert 0.8 * room < width <= room + 1 and height > 100
    marks = page.eval_on_selector_all(
        ".plot svg", "all => all.map(one => one.querySelectorAll('path, text').length)"
    )
    assert min(marks) > 20
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    ink = page.eval_on_selector("h1", "node => getComputedStyle(node).color")
    red, green, blue = (int(THEMES[scheme]["ink"][k : k + 2], 16) for k in (1, 3, 5))
    assert ink == f"rgb({red}, {green}, {blue})"
    if screenshots is not None:
        page.screenshot(path=screenshots / f"study-{look}-{scheme}.png", full_page=True)


def test_what_is_seen_is_told(page: Any) -> None:
    labels = page.eval_on_selector_all(".plot", "all => all.map(one => one.getAttribute('aria-label'))")
    assert min(map(len, labels)) > 40
    assert page.locator("h1").count() == 1 and page.get_attribute("html", "lang") == "en"
    assert "N2 length tells shared from unshared" in page.locator("#answers h3").first.inner_text()
    for anchor in page.eval_on_selector_all("nav a", "all => all.map(one => one.getAttribute('href'))"):
        assert page.locator(anchor).count() == 1
    unnamed = "all => all.filter(one => !one.textContent && !one.ariaLabel && !one.placeholder).length"
    assert page.eval_on_selector_all("button, input, summary", unnamed) == 0


def test_the_theme_can_be_chosen(opened: Callable[..., Any]) -> None:
    page = opened()

    def colours() -> tuple[str, str]:
        title = page.locator("#coefficients svg text").first
        background = "getComputedStyle(document.body).backgroundColor"
        return page.evaluate(background), title.get_attribute("fill")

    light = colours()
    page.click("#theme")
    page.wait_for_function(
        f"document.querySelector('#coefficients svg text').getAttribute('fill') !== '{light[1]}'"
    )
    dark = colours()
    assert dark[0] != light[0] and page.inner_text("#theme") == "Light theme"
    page.click("#theme")
    page.wait_for_function(
        f"document.querySelector('#coefficients svg text')?.getAttribute('fill') === '{light[1]}'"
    )
    assert colours() == light


def test_tables_are_searched_and_sorted(page: Any, study: Path) -> None:
    table = read_study(study).tables["top_shared"]
    assert rows_shown(page, "top_shared") == 100
    search = page.locator("[data-table=top_shared] input")
    search.fill("TRBV13-1 trbj2-7")
    wanted = sum(
        v == "TRBV13-1" and j == "TRBJ2-7"
        for v, j in zip(table.texts("v_gene"), table.texts("j_gene"), strict=True)
    )
    assert 0 < wanted < 100 and rows_shown(page, "top_shared") == wanted
    assert page.inner_text("[data-table=top_shared] output") == f"{wanted} rows"
    search.fill("no such gene")
    assert rows_shown(page, "top_shared") == 0
    search.fill("")
    page.click("[data-table=top_shared] button:text-is('Show more')")
    assert rows_shown(page, "top_shared") == 1100
    column = page.locator("[data-table=top_shared] th", has_text="path count")
    column.locator("button").click()
    assert column.get_attribute("aria-sort") == "descending"
    first = page.locator("[data-table=top_shared] tbody tr").first.locator("td").nth(7)
    assert float(first.get_attribute("title")) == max(n for n in table.numbers("path_count") if n is not None)
    page.click("[data-table=lambda_path] summary")
    # Rows are made when the browser tells of the opening, some time after the click.
    page.locator("[data-table=lambda_path] tbody tr").first.wait_for()
    assert rows_shown(page, "lambda_path") == len(read_study(study).tables["lambda_path"])


def test_tables_and_figures_are_saved(page: Any, study: Path) -> None:

    def saved(selector: str) -> tuple[str, bytes]:
        with page.expect_download() as started:
            page.click(selector)
        return started.value.suggested_filename, Path(started.value.path()).read_bytes()

    page.fill("[data-table=top_shared] input", "TRBV4")
    name, content = saved("[data-table=top_shared] .download")
    rows = list(csv.reader(io.StringIO(content.decode("utf-8"))))
    table = read_study(study).tables["top_shared"]
    assert name == "top_shared.csv" and rows[0] == list(table.columns)
    assert sorted(rows[1:]) == sorted(list(row) for row in table.rows(*table.columns) if "TRBV4" in row)
    name, content = saved("#vj_usage .save button:text-is('SVG')")
    assert name == "vj_usage.svg" and ElementTree.fromstring(content).tag.endswith("svg")
    name, content = saved("#vj_usage .save button:text-is('PNG')")
    assert name == "vj_usage.png" and content.startswith(b"\x89PNG")


def test_no_saved_cell_is_a_formula(open_page: Callable[..., Any], hostile: Path) -> None:
    page = open_page(hostile / "report.html").page
    page.click("[data-table=subjects] summary")
    with page.expect_download() as started:
        page.click("[data-table=subjects] .download")
    content = Path(started.value.path()).read_bytes().decode("utf-8")
    header, *rows = csv.reader(io.StringIO(content, newline=""))
    names = [row[header.index("subject")] for row in rows]
    read = read_study(hostile).tables["subjects"].texts("subject")
    assert names == [f"'{name}" if name[:1] in "=+-@" else name for name in read]
    assert sum(name.startswith("'") and name[1] in "=+-@" for name in names) == 5
    # Numbers stay numbers.
    assert not any(cell.startswith("'") for row in rows for cell in row[1:] if cell[1:2].isdigit())


def test_a_figure_tells_its_numbers(page: Any) -> None:
    assert not page.is_visible(".tip")
    point_at(page, "#group_comparison svg .mark-symbol path")
    told = page.inner_text(".tip")
    assert "all predictors" in told and "0.724" in told


def test_a_narrower_window_is_used(opened: Callable[..., Any]) -> None:
    page = opened()
    page.set_viewport_size({"width": 700, "height": 900})
    page.wait_for_function(
        "[...document.querySelectorAll('.plot')].every(one => {"
        "  const width = one.querySelector('svg')?.width.baseVal.value;"
        "  return width > 0 && width <= one.clientWidth + 1;})"
    )
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_it_is_printed_in_light_colours(opened: Callable[..., Any], screenshots: Path | None) -> None:
    page = opened(scheme="dark")
    ink = "document.querySelector('#coefficients svg text').getAttribute('fill')"
    before = page.evaluate(ink)
    page.evaluate("window.inks = []; addEventListener('afterprint', () => inks.push('after'))")
    content = page.pdf(prefer_css_page_size=True, print_background=True)
    assert content.startswith(b"%PDF") and len(content) > 50_000
    assert page.evaluate("inks") == ["after"]
    page.wait_for_function(
        f"document.querySelector('#coefficients svg text')?.getAttribute('fill') === '{before}'"
    )
    # What is drawn for paper, seen on the screen.
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.wait_for_function(
        f"document.querySelector('#coefficients svg text')?.getAttribute('fill') !== '{before}'"
    )
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.is_visible("nav") and not page.is_visible("#theme")
    if screenshots is not None:
        (screenshots / "study-print.pdf").write_bytes(content)


def test_names_are_nothing_but_text(open_page: Callable[..., Any], hostile: Path) -> None:
    found = open_page(hostile / "report.html")
    page = found.page
    page.eval_on_selector_all("details", "all => all.forEach(one => { one.open = true; })")
    page.wait_for_selector("[data-table=statuses] tbody tr")
    assert page.evaluate("typeof window.hacked") == "undefined"
    assert page.locator("img, iframe, object, embed, main script").count() == 0
    subjects = page.locator("[data-table=subjects] tbody td:first-child").all_inner_texts()
    assert subjects == list(HOSTILE)
    inputs = page.locator("#methods").inner_text()
    assert all(f"{name}.tsv" in inputs for name in HOSTILE)
    drawn = page.eval_on_selector_all(
        "#correlations_by_subject svg text", "all => all.map(one => one.textContent)"
    )
    assert HOSTILE[6] in drawn and HOSTILE[7] in drawn
    panels = page.eval_on_selector_all("#cdr3_lengths svg text", "all => all.map(one => one.textContent)")
    assert sum(text.endswith(")") and "(n = " in text for text in panels) == len(HOSTILE)
    genes = page.eval_on_selector_all("#vj_usage svg text", "all => all.map(one => one.textContent)")
    assert {HOSTILE[0][:8], "$paper"} <= {text[:8] for text in genes}
    point_at(page, "#vj_usage svg .mark-rect path")
    assert page.evaluate("typeof window.hacked") == "undefined" and page.locator(".tip img").count() == 0
    assert_silent(found)


@pytest.mark.parametrize(
    "missing", often(2, ["everything", "regression", "path counts", "other subjects", "clonotypes"])
)
def test_a_sentence_stands_for_what_is_missing(
    open_page: Callable[..., Any], tmp_path: Path, missing: str
) -> None:
    folder = write_study_folder(
        tmp_path / "study",
        subjects=1 if missing in ("other subjects", "everything") else 3,
        regression=missing in ("path counts", "clonotypes"),
        path_counts=missing in ("regression", "other subjects", "clonotypes"),
        clonotypes=40 if missing == "clonotypes" else 300,
    )
    if missing == "everything":
        for path in (folder / "tables").iterdir():
            path.write_text(path.read_text().splitlines()[0] + "\n")
    write_study_report(folder, figures=False)
    found = open_page(folder / "report.html")
    sentences = found.page.locator("figure.absent p").all_inner_texts()
    told = {
        "regression": "The study has no regression",
        "path counts": "The study has no path counts",
        "other subjects": "There is one subject only",
        "clonotypes": "There are too few clonotypes",
        "everything": "The study has no correlations",
    }
    assert any(told[missing] in text for text in sentences)
    figures = [figure for figure in study_figures(read_study(folder)) if figure.spec is not None]
    assert found.page.locator(".plot svg").count() == len(figures)
    assert (len(figures) == 0) == (missing == "everything")
    assert_silent(found)


#: Labels of one axis that are side by side, with the pixels between them.
GAPS = """all => all.flatMap(axis => {
  const boxes = [...axis.querySelectorAll('text')].filter(one => Number(one.getAttribute('opacity') ?? 1) > 0)
    .map(one => [one.textContent, one.getBoundingClientRect()]).filter(([, box]) => box.width > 0)
    .sort((a, b) => a[1].left - b[1].left);
  return boxes.slice(1).map(([name, box], k) => [boxes[k][0], name, box.left - boxes[k][1].right,
    Math.min(box.bottom, boxes[k][1].bottom) - Math.max(box.top, boxes[k][1].top)]);
}).filter(([, , gap, height]) => height > 3 && gap < 5)"""


@pytest.mark.parametrize("phone", [True, False])
def test_labels_of_an_axis_keep_apart(opened: Callable[..., Any], phone: bool) -> None:
    """Neighbours that touch read as one number, as 1e-50 and 1e-40 did."""
    page = opened(phone=phone)
    axes = ".plot svg .role-axis-label:not(:has([transform*='rotate(3']))"
    assert page.locator(axes).count() > 30
    assert page.eval_on_selector_all(axes, GAPS) == []
