"""The page of a review in a real browser, as the tests of the page use it."""

import time
from typing import Any

from helpers.browser import set_screen
from helpers.reviews import corpus

TEXTS, TRUTH = corpus(60)
GIVEN = [label if row < 16 else None for row, label in enumerate(TRUTH)]
TABS = ("queue", "list", "map", "classes")

PATIENCE = 600.0
"""Seconds until a wait has failed: longer than any machine that is merely busy needs."""


def opened(browser: Any, session: Any, server: Any) -> "Page":
    set_screen(browser)
    browser.get_log("browser")
    browser.get(server.url)
    page = Page(browser, session, server)
    page.wait("document.querySelector('.facts')")
    return page


class Page:
    """What a person does with the page, and sees."""

    def __init__(self, browser: Any, session: Any, server: Any) -> None:
        self.browser, self.session, self.server = browser, session, server

    def run(self, script: str) -> Any:
        return self.browser.execute_script(f"return {script}")

    def wait(self, script: str, seconds: float = PATIENCE) -> Any:
        """Wait until a script returns something true."""
        end = time.monotonic() + seconds
        while not (found := self.run(script)):
            assert time.monotonic() < end, f"never true: {script}"
            time.sleep(0.02)
        return found

    def wait_for(self, is_true: Any, seconds: float = PATIENCE) -> None:
        end = time.monotonic() + seconds
        while not is_true():
            assert time.monotonic() < end, "never true"
            time.sleep(0.02)

    def keys(self, *keys: str) -> None:
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.browser).send_keys(*keys).perform()

    def control(self, key: str) -> None:
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.browser).key_down("\ue009").send_keys(key).key_up("\ue009").perform()

    def shift(self, key: str) -> None:
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.browser).key_down("\ue008").send_keys(key).key_up("\ue008").perform()

    def hold_enter(self, times: int) -> None:
        """Press Enter and hold it, so that it repeats."""
        enter = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"}
        for k in range(times):
            self.browser.execute_cdp_cmd("Input.dispatchKeyEvent", enter | {"type": "keyDown", "autoRepeat": k > 0})
        self.browser.execute_cdp_cmd("Input.dispatchKeyEvent", enter | {"type": "keyUp"})

    def wait_for_proposals(self) -> None:
        """Wait until the page has asked for what comes next since the last fit."""
        self.wait(f"document.getElementById('queue').dataset.revision === '{self.session.revision}'")

    def click(self, selector: str) -> None:
        self.browser.find_element("css selector", selector).click()

    @property
    def row(self) -> int:
        return int(self.wait("document.querySelector('.facts span')?.textContent").split()[1]) - 1

    def next_row(self, before: int) -> int:
        """The document that is shown once another one has left."""
        self.wait(f"document.querySelector('.facts span')?.textContent !== 'Document {before + 1}'")
        return self.row

    def open(self, tab: str) -> None:
        self.click(f"#tab-{tab}")
        self.wait(f"!document.getElementById('{tab}').hidden")
