"""The page in a real browser: search, filters, bulk decisions, the map, classes and the export, on any screen."""

import contextlib
import json
import threading
from importlib import resources
from typing import Any

import numpy as np
import pytest
from helpers.browser import needs_browser, set_screen
from helpers.review_page import TABS, TEXTS, TRUTH, Page, opened
from helpers.reviews import CLASSES, open_session, running

from transduce.reviewing.hints import Hints
from transduce.reviewing.state import HOW, UNDECIDED

pytestmark = needs_browser


def test_a_format_is_chosen_before_it_is_exported(page: Page) -> None:
    page.browser.find_element("css selector", "#format").send_keys("\ue015")
    page.wait("document.getElementById('format').value === 'jsonl'")
    assert page.run("document.getElementById('message-text').textContent") == ""
    page.click("#export")
    page.wait("document.getElementById('message-text').textContent.startsWith('Wrote out.jsonl. ')")
    assert page.run("document.getElementById('message-text').textContent.endsWith('type: transduce label')")
    assert page.run("document.getElementById('message').className") == "shown done"
    page.click("#message-close")
    page.wait("document.getElementById('message').className === 'done'")


def test_the_status_is_written_only_when_it_changes(page: Page) -> None:
    page.browser.execute_script(
        "window.writes = window.polls = 0;"
        "new MutationObserver(() => writes++).observe(document.querySelector('header'), "
        "{childList: true, characterData: true, subtree: true});"
        "new PerformanceObserver(list => { polls += list.getEntries().length; }).observe({type: 'resource'})"
    )
    page.wait("polls >= 3")
    assert page.run("writes") == 0


def test_documents_are_searched_and_decided_together(page: Page) -> None:
    page.open("list")
    page.click("#list input[type=search]")
    page.keys("balance")
    expected = [row for row in range(16, 60) if "balance" in TEXTS[row]]
    page.wait(f"document.querySelector('#list strong').textContent.startsWith('{len(expected)} document')")
    page.run(f"document.querySelectorAll('#list .row select')[3].value = '={CLASSES[0]}'")
    page.click("#list button.main")
    sample = page.wait("document.querySelectorAll('#dialog li').length")
    assert sample == min(12, len(expected))
    page.click("#dialog button.main")
    page.wait_for(lambda: page.session.state.n_events == 1)
    assert np.flatnonzero(page.session.state.decided != UNDECIDED).tolist() == expected
    assert HOW[page.session.state.how[expected[0]]] == "keyword"
    page.wait("!document.getElementById('undo').disabled")  # the page has heard that it is saved
    page.click("#undo")
    page.wait_for(lambda: bool(np.all(page.session.state.decided == UNDECIDED)))


def test_the_list_says_to_which_document_others_are_near(page: Page) -> None:
    row = page.row
    page.keys("=")
    page.wait(f"document.querySelector('#list').innerText.includes('to document {row + 1}: {TEXTS[row][:20]}')")


def test_documents_unlike_their_guess_are_listed(browser: Any, tmp_path: Any) -> None:
    guesses = np.array([CLASSES[(CLASSES.index(name) + (k % 5 == 0)) % 4] for k, name in enumerate(TRUTH)], object)
    with open_session(tmp_path, TEXTS, hints=Hints(guesses=guesses)) as session:
        session.fit_now()
        unlike = np.array(session.proposals.classes, object)[session.proposals.label] != guesses
        assert 0 < unlike.sum() < 60
        with running(session) as server:
            page = opened(browser, session, server)
            page.open("list")
            page.run("[...document.querySelectorAll('#list label')].find(e => e.textContent.includes('guess')).click()")
            page.wait(f"document.querySelector('#list strong').textContent.startsWith('{unlike.sum()} document')")
            shown = page.run("document.querySelector('#list .documents').innerText")
            assert guesses[np.flatnonzero(unlike)[0]] in shown


def test_a_slow_search_does_not_replace_a_later_one(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    containing, begun, may_end = page.session.documents.containing, threading.Event(), threading.Event()

    def slow(query: str) -> Any:
        if query != "balance":
            return containing(query)
        begun.set()
        may_end.wait(60)
        return containing(query)

    monkeypatch.setattr(page.session.documents, "containing", slow)
    monkeypatch.setattr(page.session, "lock", contextlib.nullcontext())
    page.open("list")
    page.wait("document.querySelectorAll('#list .documents li').length")
    page.browser.execute_script(
        "window.answers = 0; new PerformanceObserver(list => list.getEntries().forEach(one => "
        "{ answers += one.name.endsWith('documents'); })).observe({type: 'resource'})"
    )
    page.click("#list input[type=search]")
    page.keys("balance")
    page.wait_for(begun.is_set)
    page.run("document.querySelector('#list input[type=search]').select()")
    page.keys("flight")
    expected = sum("flight" in text for text in TEXTS[16:])
    page.wait(f"document.querySelector('#list .row:last-child span').textContent.endsWith(' of {expected}')")
    may_end.set()
    page.wait("answers >= 2")
    assert page.run("document.querySelector('#list .row:last-child span').textContent").endswith(f" of {expected}")
    assert page.run("document.querySelector('#list strong').textContent") == f"{expected} documents"


def test_a_lasso_on_the_map_chooses_documents(page: Page) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    page.open("map")
    page.wait("document.querySelectorAll('#map .legend li').length")
    canvas = page.browser.find_element("css selector", "canvas")
    side = canvas.size["width"]
    page.run("document.querySelector('canvas').scrollIntoView()")
    chain = ActionChains(page.browser, duration=0).move_to_element_with_offset(canvas, -side // 2 + 5, -side // 2 + 5)
    chain.click_and_hold()
    for dx, dy in ((side - 10, 0), (0, side - 10), (10 - side, 0)):
        chain.move_by_offset(dx, dy)
    chain.release().perform()
    page.wait("document.querySelector('#map strong').textContent === '44 documents'")


def test_classes_are_added_renamed_and_sizes_tried_out(page: Page) -> None:
    page.open("classes")
    page.click("#classes input")
    page.keys("weather\ue007")
    page.wait_for(lambda: "weather" in page.session.state.classes)
    page.wait("[...document.querySelectorAll('#classes th')].some(e => e.textContent === 'weather')")
    page.click("[aria-label='Rename weather']")
    page.keys("sky")
    page.click("#dialog button.main")
    page.wait_for(lambda: "sky" in page.session.state.classes)
    page.wait("document.querySelector('[aria-label=\"Size of sky\"]')")
    page.click(f"[aria-label='Size of {CLASSES[0]}']")
    page.keys("50%")
    page.run("[...document.querySelectorAll('#classes button')].find(e => e.textContent.startsWith('See')).click()")
    page.wait("document.querySelector('#classes span[role=status]').textContent.includes('would change')")
    assert page.session.state.sizes == {}


@pytest.mark.parametrize("width", [1000, 1280])
def test_the_header_keeps_its_height(page: Page, width: int) -> None:
    set_screen(page.browser, width)
    height = "document.querySelector('header').offsetHeight"
    before = page.run(height)
    page.session.documents.name = "a file with a long name that has several words.csv"
    long = {"n_given": 123456, "n_decided": 123456, "n": 1234567, "gain": 0.25, "advice": "Go on, because. " * 9}
    accuracy = {"mean": 0.5, "low": 0.25, "high": 0.75, "n": 1000}
    summary = page.session.summary
    for found, shown in ((accuracy, "50 % (25 % to 75 %)"), (None, "not known yet")):
        more = long | {"accuracy": found, "n_until_accuracy": 50}
        page.session.summary = lambda more=more: summary() | more
        page.wait(f"document.getElementById('accuracy').textContent === '{shown}'")
        assert page.run("document.getElementById('gain').textContent") == "about +25 points"
        assert page.run(height) == before


MORE_SCREENS = [pytest.param(*one, marks=pytest.mark.slow) for one in ((1200, "dark"), (360, "light"))]


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (360, "dark"), *MORE_SCREENS])
def test_every_view_fits_the_screen_and_passes_axe(page: Page, width: int, scheme: str) -> None:
    axe = pytest.importorskip("axe_core_python", reason="axe-core-python is not installed")
    script = (resources.files(axe) / "axe.min.js").read_text(encoding="utf-8")
    set_screen(page.browser, width, scheme=scheme)
    page.browser.execute_script(script)
    for tab in TABS:
        page.open(tab)
        page.wait(f"document.getElementById('{tab}').innerText.length > 50")
        assert page.run("document.documentElement.scrollWidth") <= width
        found = page.browser.execute_async_script("axe.run().then(arguments[0])")
        problems = [(one["id"], one["nodes"][0]["html"]) for one in found["violations"]]
        assert not problems, json.dumps(problems, indent=1)
