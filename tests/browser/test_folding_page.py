"""The page of a folded sequence in a real browser: drawn, within its width, nothing asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.examples import often

from plait.cli import main

TRNA = "GCGGAUUUAGCUCAGUUGGGAGAGCGCCAGACUGAAGAUCUGGAGGUCCUGUGUUCGAUCCACAGAAUUCGCACCA"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("drawn")
    # Arms of the second lie upon each other, so that its bases stand on a circle.
    text = f">trna <img src=x onerror=window.hacked=1>\n{TRNA}\n>long\n{(TRNA + 'AUCGCCUAUAGG') * 5}\n"
    (place / "a.fa").write_text(text)
    assert main(["fold", str(place / "a.fa"), "--plot", str(place / "out"), "-o", str(place / "o.txt")]) == 0
    return place / "out"


@pytest.mark.parametrize("name", ["trna", "long"])
@pytest.mark.parametrize(("look", "scheme"), often(1, [("phone", "dark"), ("desk", "light")]))
def test_the_page_is_drawn(
    open_page: Callable[..., Any], folder: Path, screenshots: Path | None, name: str, look: str, scheme: str
) -> None:
    found = open_page(folder / f"{name}.html", phone=look == "phone", scheme=scheme)
    page = found.page
    bases = len(TRNA) if name == "trna" else 5 * (len(TRNA) + 12)
    assert page.locator(".structure circle").count() == bases
    assert page.locator(".pairs .dot").count() > 20 < page.locator(".pairs rect").count()
    assert page.locator(".mountain polyline").count() == 3
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    sizes = page.eval_on_selector_all("svg", "all => all.map(one => one.getBoundingClientRect().width)")
    assert min(sizes) > (300 if look == "phone" else 400)
    assert page.evaluate("typeof window.hacked") == "undefined" and page.locator("img").count() == 0
    if screenshots is not None:
        page.screenshot(path=screenshots / f"fold-{name}-{look}-{scheme}.png", full_page=True)
    assert found.said == []
    assert found.asked == [page.url]
