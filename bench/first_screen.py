"""Prints how many seconds Chromium takes from the request of a file to a picture of its top."""

import shutil
import sys
import time
from pathlib import Path

from playwright.sync_api import sync_playwright


def main() -> int:
    url = Path(sys.argv[1]).resolve().as_uri()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto("about:blank")
        began_s = time.monotonic()
        page.goto(url, wait_until="commit")
        page.locator("h1").wait_for()
        page.screenshot()
        print(time.monotonic() - began_s)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
