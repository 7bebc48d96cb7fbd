"""The report of an inference in a real browser: every figure drawn, nothing said, nothing asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.examples import often

pytest.importorskip("vl_convert", reason="reports are drawn with vl-convert, of plait's extra report")

from support.recombination import drawn_junctions, small_model

from plait.reports.inference_report import inference_figures, read_inference, write_inference_report
from plait.vdj.model import EvidenceChoice, infer_files, uniform_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("inference")
    model = small_model(11, zeros=False, most=5)
    lines = ["junction\tv_call\tj_call", "TGTGCA\tTRXV1\t<img src=x onerror=window.hacked=1>"]
    lines += [f"{text}\tTRXV1,TRXV2\tTRXJ1,TRXJ2" for text in drawn_junctions(model, 1, 200)]
    (place / "rows.tsv").write_text("\n".join(lines) + "\n")
    choice = EvidenceChoice(rows="all")
    infer_files([place / "rows.tsv"], place / "out", uniform_model(model), choice=choice, iterations=8)
    write_inference_report(place / "out")
    return place / "out"


LOOKS = [("phone", "light"), ("desk", "light"), ("desk", "dark")]


@pytest.mark.parametrize(("look", "scheme"), often(1, LOOKS))
def test_every_figure_is_drawn(
    open_page: Callable[..., Any], folder: Path, screenshots: Path | None, look: str, scheme: str
) -> None:
    found = open_page(folder / "report.html", phone=look == "phone", scheme=scheme)
    page = found.page
    figures = [figure for figure in inference_figures(read_inference(folder)) if figure.spec is not None]
    assert page.locator(".plot svg").count() == len(figures) == 12
    marks = page.eval_on_selector_all(
        ".plot svg", "all => all.map(one => one.querySelectorAll('path, text').length)"
    )
    assert min(marks) > 10
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.eval_on_selector_all("details", "all => all.forEach(one => { one.open = true; })")
    page.wait_for_selector("[data-table=left_out] tbody tr")
    assert page.evaluate("typeof window.hacked") == "undefined" and page.locator("main img").count() == 0
    assert "onerror" in page.inner_text("[data-table=left_out]")
    if screenshots is not None:
        page.screenshot(path=screenshots / f"inference-{look}-{scheme}.png", full_page=True)
    assert found.said == []
    assert [url for url in found.asked if not url.startswith("blob:")] == [page.url.split("#")[0]]
