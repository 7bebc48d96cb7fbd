"""One browser for all tests of pages, the one that the machine has: nothing is downloaded."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
DESK = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}


def installed_browser() -> str | None:
    """Where the browser is: one that is on the path, or the one that PLAIT_BROWSER names."""
    named = os.environ.get("PLAIT_BROWSER")
    return named or next(filter(None, map(shutil.which, NAMES)), None)


class OpenPage(NamedTuple):
    """A page that is drawn, and what it said and asked for until now."""

    page: Any
    said: list[str]
    asked: list[str]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    driver = pytest.importorskip("playwright.sync_api", reason="pages are looked at with playwright")
    program = installed_browser()
    if program is None:
        pytest.skip(reason=f"no browser: none of {', '.join(NAMES)} is on the path")
    # Inside a container, where tests run as root, Chromium's own sandbox cannot be set up.
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    with driver.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=options)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def open_page(browser: Any) -> Iterator[Callable[..., OpenPage]]:
    """Open a file and wait until it is drawn; what is asked for beside it is refused and kept."""
    contexts = []

    def opened(path: Path, *, phone: bool = False, scheme: str = "light") -> OpenPage:
        size: dict[str, Any] = {"viewport": PHONE if phone else DESK, "color_scheme": scheme}
        if phone:
            size |= {"is_mobile": True, "has_touch": True, "device_scale_factor": 2}
        context = browser.new_context(accept_downloads=True, **size)
        context.set_default_timeout(300_000)
        contexts.append(context)
        page = context.new_page()
        said: list[str] = []
        asked: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.route("**/*", lambda route: route.continue_() if route.request.url == url else route.abort())
        url = path.resolve().as_uri()
        page.goto(url)
        page.wait_for_selector("html[data-ready=yes]", state="attached")
        return OpenPage(page, said, asked)

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def screenshots() -> Path | None:
    """Where pictures of pages are kept for people to look at; None where nobody asked for them."""
    named = os.environ.get("PLAIT_SCREENSHOTS")
    if not named:
        return None
    folder = Path(named)
    folder.mkdir(parents=True, exist_ok=True)
    return folder
