"""The page in a real browser: keys, undo, bulk decisions and the map work; hostile texts are shown and never run."""

import contextlib
import json
import logging
import threading
import time
from collections.abc import Iterator
from importlib import resources
from typing import Any

import numpy as np
import pytest
from helpers.browser import needs_browser, open_browser, set_screen
from helpers.hostile import hostile_texts
from helpers.reviews import CLASSES, corpus, open_session, running

from transduce.errors import InputError
from transduce.reviewing.log import read_events
from transduce.reviewing.state import HOW, UNDECIDED

pytestmark = needs_browser
TEXTS, TRUTH = corpus(60)
GIVEN = [label if row < 16 else None for row, label in enumerate(TRUTH)]
TABS = ("queue", "list", "map", "classes")

PATIENCE = 600.0
"""Seconds until a wait has failed: longer than any machine that is merely busy needs."""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with open_browser(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture
def page(browser: Any, tmp_path: Any) -> Iterator[Any]:
    """The page of a review with proposals, whose fits the tests call."""
    with open_session(tmp_path, TEXTS, GIVEN) as session:
        session.fit_now()
        with running(session, lambda format: f"out.{format}") as server:
            yield opened(browser, session, server)


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


def test_keys_decide_and_every_decision_is_saved(page: Page) -> None:
    expected = []
    for key, label in (("1", CLASSES[0]), ("\ue007", None), ("3", CLASSES[2]), ("0", "none")):
        row = page.row
        proposed = page.session.proposals.classes[page.session.proposals.label[row]]
        expected.append((row, proposed if label is None else None if label == "none" else label))
        page.keys(key)
        page.next_row(row)
    page.wait_for(lambda: page.session.state.n_events == 4)
    events = read_events(page.session.log.path.parent, TEXTS)
    assert [(event["rows"][0], event["label"]) for event in events] == expected
    page.wait("document.getElementById('decided').textContent.startsWith('4 of')")
    page.wait("document.getElementById('status').textContent.startsWith('Saved. ')")
    assert page.run("document.activeElement === document.querySelector('.text')"), "the new document is announced"


def test_a_key_that_is_held_decides_once(page: Page) -> None:
    row = page.row
    page.hold_enter(5)
    row = page.next_row(row)
    page.keys("weather")
    page.hold_enter(5)
    page.wait("document.getElementById('message').textContent.includes('Press Enter again')")
    page.keys("\ue00c", "1")
    page.next_row(row)
    page.wait_for(lambda: page.session.state.labels()[row] == CLASSES[0])
    assert page.session.state.n_events == 2
    assert page.session.state.classes == list(CLASSES)


def test_enter_does_not_bring_a_renamed_class_back(page: Page) -> None:
    row = page.row
    old = page.session.proposals.classes[page.session.proposals.label[row]]
    page.session.submit([{"op": "rename_class", "name": old, "to": "other"}])
    page.wait("[...document.querySelectorAll('.choices .name')].some(e => e.textContent === 'other')")
    page.keys("\ue007")
    page.wait("document.getElementById('message').textContent.includes('any more')")
    assert page.row == row
    assert old not in page.session.state.classes
    page.keys("other\ue007")
    page.next_row(row)
    page.wait_for(lambda: page.session.state.labels()[row] == "other")


def test_undo_names_the_event_that_it_takes_back(page: Page) -> None:
    row = page.row
    page.keys("1")
    page.next_row(row)
    page.wait_for(lambda: page.session.state.n_events == 1)
    page.control("z")
    page.wait_for(lambda: page.session.state.n_events == 2)
    decided, undone = read_events(page.session.log.path.parent, TEXTS)
    assert undone["op"] == "undo"
    assert undone["event"] == decided["id"]


def test_a_format_is_chosen_before_it_is_exported(page: Page) -> None:
    page.browser.find_element("css selector", "#format").send_keys("\ue015")
    page.wait("document.getElementById('format').value === 'jsonl'")
    assert page.run("document.getElementById('message').textContent") == ""
    page.click("#export")
    page.wait("document.getElementById('message').textContent === 'Wrote out.jsonl'")


def test_the_status_is_written_only_when_it_changes(page: Page) -> None:
    page.browser.execute_script(
        "window.writes = window.polls = 0;"
        "new MutationObserver(() => writes++).observe(document.querySelector('header'), "
        "{childList: true, characterData: true, subtree: true});"
        "new PerformanceObserver(list => { polls += list.getEntries().length; }).observe({type: 'resource'})"
    )
    page.wait("polls >= 3")
    assert page.run("writes") == 0


def test_undo_and_redo_by_keys_bring_documents_back(page: Page) -> None:
    rows = []
    for _ in range(3):
        rows.append(page.row)
        page.keys("1")
        page.next_row(rows[-1])
    page.wait_for(lambda: page.session.state.n_events == 3)
    for row in reversed(rows):
        page.control("z")
        page.wait(f"document.querySelector('.facts span').textContent === 'Document {row + 1}'")
    page.wait_for(lambda: not page.session.state.undoable)
    assert np.all(page.session.state.decided == UNDECIDED)
    page.control("y")
    page.wait_for(lambda: page.session.state.decided[rows[0]] != UNDECIDED)


def test_letters_search_for_a_class_and_a_new_one_is_asked_about(page: Page) -> None:
    row = page.row
    page.keys("translate\ue007")
    page.next_row(row)
    page.wait_for(lambda: page.session.state.labels()[row] == "travel/translate")
    row = page.row
    page.keys("weather\ue007")
    page.wait("document.getElementById('message').textContent.includes('Press Enter again')")
    assert "weather" not in page.session.state.classes
    page.keys("\ue007")
    page.next_row(row)
    page.wait_for(lambda: page.session.state.labels()[row] == "weather")


def test_an_inner_node_of_the_tree_is_a_partial_label(page: Page) -> None:
    row = page.row
    page.keys("banking\ue007")
    page.next_row(row)
    page.wait_for(lambda: page.session.state.labels()[row] == "banking")
    page.session.fit_now()
    assert "banking" not in page.session.proposals.classes
    assert page.session.proposals.classes[page.session.proposals.label[row]].startswith("banking/")


def test_skip_back_and_notes(page: Page) -> None:
    row = page.row
    page.keys(".", "why\ue007")
    page.wait_for(lambda: page.session.state.notes == {row: "why"})
    page.keys("\ue014")
    other = page.next_row(row)
    page.wait_for(lambda: bool(page.session.state.skipped[row]))
    page.keys("\ue012")
    page.wait(f"document.querySelector('.facts span').textContent === 'Document {row + 1}'")
    assert other != row


def test_new_proposals_do_not_move_the_document_that_is_shown(page: Page) -> None:
    row = page.row
    page.keys("1")
    row = page.next_row(row)
    page.wait_for(lambda: page.session.state.n_events == 1)
    text = page.run("document.querySelector('.card').innerText")
    box = "JSON.stringify([...document.querySelectorAll('.choices button')].map(e => e.getBoundingClientRect()))"
    before = page.run(box)
    following = page.run("document.querySelector('.next').innerText")
    page.session.documents.texts = [f"{text}, again" for text in TEXTS]  # what comes next is new
    page.session.fit_now()
    page.wait_for_proposals()
    assert page.run("document.querySelector('.next').innerText") != following
    assert page.row == row
    assert page.run("document.querySelector('.card').innerText") == text
    assert page.run(box) == before


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
    page.click("#undo")
    page.wait_for(lambda: bool(np.all(page.session.state.decided == UNDECIDED)))


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


def test_what_is_not_saved_is_said_and_saved_later(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    from transduce.reviewing.log import SaveError

    append = page.session.log.append

    def full(event: Any) -> None:
        raise SaveError(28, "Not saved: no space.")

    monkeypatch.setattr(page.session.log, "append", full)
    row = page.row
    page.keys("1")
    page.wait("document.getElementById('status').textContent.startsWith('1 change is not saved')")
    assert page.session.state.n_events == 0
    monkeypatch.setattr(page.session.log, "append", append)
    page.wait_for(lambda: page.session.state.decided[row] != UNDECIDED)
    page.wait("!document.getElementById('status').classList.contains('bad')")


def test_errors_of_the_server_keep_the_backlog_and_refusals_do_not(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three decisions wait while the server fails; then one is refused, and the server fails at the one after it."""
    submit, rows, faults = page.session.submit, [], ["the last one, sent alone", "the first request"]

    def fail(events: Any) -> Any:
        sent = [event["rows"][0] for event in events]
        if len(faults) == 2 or (faults and sent == rows[2:]):
            faults.pop()
            raise RuntimeError("a fault of the server")
        if rows[1] in sent:
            raise InputError("This one is refused.")
        return submit(events)

    monkeypatch.setattr(page.session, "submit", fail)
    monkeypatch.setattr(logging.getLogger("uvicorn.error"), "disabled", True)
    for _ in range(3):
        rows.append(page.row)
        page.keys("1")
        page.next_row(rows[-1])
    page.wait("document.getElementById('status').textContent.includes('not saved. The server answered 500.')")
    page.wait_for(lambda: page.session.state.decided[rows[2]] != UNDECIDED)
    assert page.session.state.decided[rows[0]] != UNDECIDED
    assert page.session.state.decided[rows[1]] == UNDECIDED
    assert page.run("document.getElementById('message').textContent") == "This one is refused."


def test_after_a_restart_the_old_page_asks_for_the_new_link_and_saves_its_backlog(page: Page) -> None:
    from transduce.reviewing.server import ReviewServer

    page.server.stop()
    page.wait("document.getElementById('status').textContent.startsWith('The server does not answer')")
    row = page.row
    page.keys("1")
    page.next_row(row)
    server = ReviewServer(page.session, port=page.server.port)
    thread = server.start()
    page.wait("document.getElementById('status').textContent.includes('open the new link')")
    assert page.session.state.n_events == 0
    old = page.browser.current_window_handle
    page.browser.switch_to.new_window("tab")
    page.browser.get(server.url)
    page.wait("document.querySelector('.facts')")  # the link has moved on to the page
    page.browser.get("about:blank")  # chromedriver may fail to close a tab that is still at work
    page.browser.switch_to.window(old)
    page.wait_for(lambda: page.session.state.decided[row] != UNDECIDED)
    page.browser.get("about:blank")
    server.stop()
    thread.join()


def test_hostile_texts_and_classes_are_shown_and_never_run(browser: Any, tmp_path: Any) -> None:
    texts = hostile_texts(200)
    classes = [text.strip()[:150].replace("/", "∕") for text in texts[:60]]
    given = [classes[k % 60] if k < 120 else None for k in range(200)]
    with open_session(tmp_path, texts, given) as session:
        session.documents.name = texts[0]
        session.fit_now()
        with running(session) as server:
            page = opened(browser, session, server)
            shown = set()
            for _ in range(12):
                row = page.row
                shown.add(page.run("document.querySelector('.text').textContent") == texts[row])
                page.keys(".", texts[row].split("\n")[0][:40], "\ue007", "1")
                page.next_row(row)
            for tab in TABS[1:]:
                page.open(tab)
                page.wait(f"document.getElementById('{tab}').innerText.length > 50")
            page.open("list")
            page.browser.execute_script(
                "const s = document.querySelectorAll('#list select')[1]; s.value = 'all';"
                "s.dispatchEvent(new Event('change'))"
            )
            for start in range(1, 200, 20):
                page.wait(f"document.querySelector('#list .row:last-child span').textContent.startsWith('{start} to')")
                page.click("#list > div:last-child .row button:last-child")
            assert shown == {True}
            assert page.run("window.__pwned ?? null") is None
            assert browser.title == f"Review {' '.join(texts[0].split())}"
            assert page.run("performance.getEntriesByType('resource').every(e => e.name.startsWith(location.origin))")
            assert (
                page.run("document.querySelectorAll('iframe, object, embed, img, form, base, video, audio').length")
                == 0
            )
            assert page.run("document.querySelectorAll('script').length") == 1
            every = "[...document.querySelectorAll('*')].flatMap(e => [...e.attributes]).map(a => a.name)"
            assert not [name for name in page.run(every) if name.startswith("on")]
            assert browser.get_log("browser") == []


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
