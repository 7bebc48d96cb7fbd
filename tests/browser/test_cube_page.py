"""The page of a compressed cube in a real browser: drawn, within its width, nothing asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.examples import often

from plait.cli import main


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cube")
    y, x, z = np.ogrid[:90, :60, :40]
    noise = np.random.default_rng(1).integers(0, 30, (90, 60, 40))
    cube = 900 + 300 * np.sin(y / 20 + z / 9) + 200 * np.cos(x / 11) + noise
    np.save(folder / "<img src=x onerror=window.hacked=1>.npy", cube.astype(np.uint16))
    stream = folder / "<img src=x onerror=window.hacked=1>.c123"
    assert main(["hsi", "compress", str(stream.with_suffix(".npy")), "-o", str(stream)]) == 0
    assert main(["hsi", "info", str(stream), "--html", str(folder / "page.html")]) == 0
    return folder / "page.html"


@pytest.mark.slow
@pytest.mark.parametrize(("look", "scheme"), often(1, [("phone", "dark"), ("desk", "light")]))
def test_the_page_is_drawn(
    open_page: Callable[..., Any], drawn: Path, screenshots: Path | None, look: str, scheme: str
) -> None:
    found = open_page(drawn, phone=look == "phone", scheme=scheme)
    page = found.page
    assert page.locator("svg polyline").count() == 3 and page.locator("svg polygon").count() == 2
    assert page.locator("img").count() == 1
    assert page.evaluate("document.querySelector('img').naturalWidth") == 60
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    sizes = page.eval_on_selector_all("svg, img", "all => all.map(one => one.getBoundingClientRect().width)")
    assert min(sizes) > (300 if look == "phone" else 400)
    page.click("summary")
    assert page.locator("tbody tr").count() == 40
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate("typeof window.hacked") == "undefined"
    if screenshots is not None:
        page.screenshot(path=screenshots / f"cube-{look}-{scheme}.png", full_page=True)
    assert found.said == []
    assert [url for url in found.asked if not url.startswith("data:")] == [page.url]
