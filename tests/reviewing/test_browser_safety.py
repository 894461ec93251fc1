"""The page in a real browser: nothing that was shown as saved is lost, and hostile texts are shown and never run."""

import logging
from typing import Any

import pytest
from helpers.browser import needs_browser
from helpers.hostile import hostile_texts
from helpers.review_page import TABS, Page, opened
from helpers.reviews import open_session, running

from transduce.errors import InputError
from transduce.reviewing.state import UNDECIDED

pytestmark = needs_browser


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


def test_a_page_with_unsaved_changes_can_be_left(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page asks before it is left; the browser of the tests answers yes, whichever driver it has."""
    monkeypatch.setattr(page.session, "submit", lambda events: 1 / 0)
    monkeypatch.setattr(logging.getLogger("uvicorn.error"), "disabled", True)
    page.keys("1")
    page.wait("document.getElementById('status').textContent.startsWith('1 change is not saved')")
    page.browser.get("about:blank")
    assert page.browser.current_url == "about:blank"


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
    assert page.run("document.getElementById('message-text').textContent") == "This one is refused."


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
