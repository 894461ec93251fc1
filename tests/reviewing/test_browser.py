"""The page in a real browser: keys, undo, bulk decisions and the map work; hostile texts are shown and never run."""

import json
import time
from collections.abc import Iterator
from importlib import resources
from typing import Any

import numpy as np
import pytest
from helpers.browser import needs_browser, open_browser, set_screen
from helpers.hostile import hostile_texts
from helpers.reviews import CLASSES, corpus, open_session, running

from transduce.reviewing.log import read_events
from transduce.reviewing.state import HOW, UNDECIDED

pytestmark = needs_browser
TEXTS, TRUTH = corpus(60)
GIVEN = [label if row < 16 else None for row, label in enumerate(TRUTH)]
TABS = ("queue", "list", "map", "classes")


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

    def wait(self, script: str, seconds: float = 60.0) -> Any:
        """Wait until a script returns something true."""
        end = time.monotonic() + seconds
        while not (found := self.run(script)):
            assert time.monotonic() < end, f"never true: {script}"
            time.sleep(0.02)
        return found

    def wait_for(self, is_true: Any, seconds: float = 60.0) -> None:
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
    page.session.fit_now()
    page.wait(f"document.getElementById('status').textContent === 'Up to date.' && {int(page.session.revision)}")
    time.sleep(1.5)  # one more poll, which must change nothing
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
