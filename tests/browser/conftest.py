"""A browser, and the files that it opens."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    assert CHROMIUM, "There is no Chromium: apt-get install chromium"
    with sync_playwright() as playwright:
        # It has the machine's fonts, which charts are drawn without.
        env = {name: value for name, value in os.environ.items() if name != "FONTCONFIG_FILE"}
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"], env=env
        )
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def axe() -> str:
    """The text of axe-core."""
    import axe_playwright_python

    return (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text("utf-8")


class Opened:
    """A page, with all that it asked for and complained of."""

    def __init__(self, browser: Any, path: Path, fragment: str = "", **context: Any) -> None:
        self.context = browser.new_context(**context)
        self.page = self.context.new_page()
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda one: self.requests.append(one.url))
        self.page.on("console", lambda one: self.complaints.append(one.text))
        self.page.on("pageerror", lambda one: self.complaints.append(str(one)))
        self.page.on("dialog", lambda one: self.complaints.append(f"dialog {one.message}"))
        self.url = path.as_uri()
        self.page.goto(self.url + fragment)
        self.page.locator("#found", has_text="runs").wait_for()


@pytest.fixture
def opened(browser: Any) -> Iterator[Any]:
    made: list[Opened] = []

    def open_page(path: Path, fragment: str = "", **context: Any) -> Opened:
        made.append(Opened(browser, path, fragment, **context))
        return made[-1]

    yield open_page
    for one in made:
        one.context.close()
