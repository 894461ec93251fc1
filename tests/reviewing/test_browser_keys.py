"""The page in a real browser: keys decide, undo and search for classes, and nothing moves meanwhile."""

import numpy as np
from helpers.browser import needs_browser
from helpers.review_page import TEXTS, Page
from helpers.reviews import CLASSES

from transduce.reviewing.log import read_events
from transduce.reviewing.state import UNDECIDED

pytestmark = needs_browser


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
    page.wait("document.getElementById('decided').textContent === '4 here, 16 given, of 60'")
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


def test_a_new_class_leaves_the_keys_of_the_others_as_they_are(page: Page) -> None:
    names = "[...document.querySelectorAll('.choices button')].map(e => e.title)"
    before = page.run(names)
    page.session.submit([{"op": "add_class", "name": "aaa"}])
    page.wait("[...document.querySelectorAll('.choices button')].some(e => e.title === 'aaa')")
    assert page.run(names) == [*before, "aaa"]


def test_every_class_keeps_its_key_and_its_place_while_the_page_is_open(page: Page) -> None:
    names = [*CLASSES, *(f"class {k}" for k in range(5, 13))]
    page.session.submit([{"op": "add_class", "name": name} for name in names[4:]])
    of_button = "[e.title, e.querySelector('kbd').textContent, e.offsetLeft, e.offsetTop]"
    buttons = f"[...document.querySelectorAll('.choices button')].map(e => {of_button})"
    page.wait("document.querySelectorAll('.choices button').length === 12")
    shown = page.run(buttons)
    assert [(name, key) for name, key, *_ in shown] == list(zip(names, [*"123456789", "⇧A", "⇧B", "⇧C"], strict=True))
    for key, label in (("2", names[1]), ("A", names[9]), ("C", names[11])):
        row = page.row
        page.shift(key) if key.isalpha() else page.keys(key)
        page.next_row(row)
        page.wait_for(lambda row=row, label=label: page.session.state.labels()[row] == label)
        assert page.run(buttons) == shown
    page.session.submit([{"op": "merge_class", "name": names[5], "into": names[4]}])
    page.wait("document.querySelectorAll('.choices button').length === 11")
    assert page.run(buttons) == [one for one in shown if one[0] != names[5]]


def test_small_letters_search_also_with_more_classes_than_digits(page: Page) -> None:
    page.session.submit([{"op": "add_class", "name": f"class {k}"} for k in range(40)])
    page.wait("document.querySelectorAll('.choices button').length === 44")
    row = page.row
    page.keys("translate\ue007")
    page.next_row(row)
    page.wait_for(lambda: page.session.state.labels()[row] == "travel/translate")


def test_of_many_classes_the_proposed_one_is_in_sight(page: Page) -> None:
    """Its place is that of its class, which may be far down."""
    page.session.submit([{"op": "add_class", "name": f"class {k}"} for k in range(80)])
    proposed = page.session.proposals.classes[page.session.proposals.label[page.row]]
    last = page.session.summary()["classes"]
    page.session.summary = lambda summary=page.session.summary: summary() | {
        "revision": -1, "classes": [one | {"place": 999 if one["name"] == proposed else one["place"]} for one in last],
    }  # fmt: skip
    page.browser.get(page.browser.current_url)
    page.wait("document.querySelectorAll('.choices button').length === 84")
    box = "document.querySelector('{}').getBoundingClientRect().{}"
    assert page.run("document.querySelector('.choices').scrollTop") > 0
    assert page.run(box.format(".choices .main", "top")) >= page.run(box.format(".choices", "top"))
    assert page.run(box.format(".choices .main", "bottom")) <= page.run(box.format(".choices", "bottom"))


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


def test_enter_adds_no_class_that_is_like_another(page: Page) -> None:
    row = page.row
    page.keys("translat", "o", "\ue007")
    page.wait("document.getElementById('message').textContent.includes('Did you mean translate?')")
    page.keys("\ue007", "\ue007")
    assert page.row == row
    page.control("\ue007")
    page.next_row(row)
    page.wait_for(lambda: page.session.state.labels()[row] == "translato")


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
