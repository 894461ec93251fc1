"""Chromium for tests: where it is, and how it is started, with chromedriver or, where there is none, without.

With TRANSDUCE_BROWSER=required, as in `.ci/run`, tests fail where there is no Chromium; else they are skipped.
With TRANSDUCE_BROWSER=devtools chromedriver is not used.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

WANTED = os.environ.get("TRANSDUCE_BROWSER", "")
if WANTED == "required":
    from selenium import webdriver
else:
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
CHROMEDRIVER = None if WANTED == "devtools" else shutil.which("chromedriver")
needs_browser = pytest.mark.skipif(CHROMIUM is None and WANTED != "required", reason="chromium is not installed")

OPTIONS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
OPTIONS += ["--disable-background-networking", "--disable-component-update"]


@contextmanager
def open_browser(profile: Path) -> Iterator[Any]:
    """A new browser, with a profile of its own, that logs what pages complain about."""
    assert CHROMIUM is not None, "chromium is not installed"
    arguments = [*OPTIONS, f"--user-data-dir={profile}"]
    if CHROMEDRIVER is None:
        from helpers.devtools import Browser

        driver = Browser(CHROMIUM, arguments, profile)
    else:
        driver = _driven(arguments)
    try:
        yield driver
    finally:
        driver.quit()


def _driven(arguments: list[str]) -> Any:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in arguments:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(CHROMEDRIVER))


def set_screen(browser: Any, width: int = 1200, height: int = 800, scheme: str = "light") -> None:
    """Emulate a screen of this size, and whether people prefer light or dark."""
    screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    scheme_feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme_feature]})
