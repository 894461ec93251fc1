"""The report of a tagging: blocks in colour, doubtful and broken sequences, and nothing in a token can run."""

import base64
import hashlib
import re
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.browser import needs_browser, open_browser, set_screen
from helpers.hostile import PAYLOADS
from helpers.report_page import Page, cells

from transduce.cli.tagging.corpus import Corpus
from transduce.cli.tagging.report import build_report
from transduce.cli.tagging.results import Tagging
from transduce.sequences.constraints import Before, Needs, Once, Pattern
from transduce.sequences.schemes import split_label

TOKENS = [["J.", "Smith.", "Tea", "trees."], ["Milk", "maps.", "1994."], ["Noise.", "1990."]]
LABELS = [["author", "author", "title", "title"], ["title", "title", "date"], ["title", "date"]]


def tagging_of(tokens, labels, sure, scheme=None, constraint=None, name="refs.conll") -> Tagging:
    names = sorted({label for one in labels for label in one})
    tagger = SimpleNamespace(
        classes_=np.array(names, dtype=object),
        scheme=scheme,
        constraints=("the constraint",),
        constraints_=[constraint or Once(split_label(names[-1], scheme)[1] or split_label(names[0], scheme)[1])],
    )
    given = [list(labels[0]), *([None] * len(one) for one in labels[1:])]
    corpus = Corpus(name, "conll", tokens, given, [1 + 5 * i for i in range(len(tokens))], None)
    column = {label: k for k, label in enumerate(names)}
    marginals = []
    for one, p in zip(labels, sure, strict=True):
        table = np.full((len(one), len(names)), (1 - p) / max(1, len(names) - 1))
        table[np.arange(len(one)), [column[label] for label in one]] = p
        marginals.append(table)
    return Tagging.create(corpus, tagger, labels, marginals)


def about_of(tagging, **more) -> dict:
    given, new = tagging.counts
    rows = [
        {"label": name, "labelled": given[name], "assigned": new[name], "asked_low": 0, "asked_high": 3, "price": 0.0}
        for name in tagging.tagger.classes_
    ]
    about = {"n_labelled": 1, "n_unlabelled": 2, "n_tokens": 9, "n_broken": len(tagging.broken), "seconds": 0.5}
    return {
        **about,
        "ending": "Converged.",
        "interrupted": False,
        "transduce": "0",
        "created": "now",
        "counts": rows,
    } | more


def page_of(tagging, **more) -> tuple[str, Page]:
    html = build_report(tagging, about_of(tagging, **more))
    return html, Page(html)


def test_sections_counts_and_the_most_doubtful_sequences():
    tagging = tagging_of(TOKENS, LABELS, [0.2, 0.9, 0.4])
    html, page = page_of(tagging)
    sections = ["summary", "counts", "constraints", "doubtful", "sequences"]
    assert [attrs["id"] for tag, attrs in page.tags if tag == "section"] == sections
    assert [attrs["href"] for tag, attrs in page.tags if tag == "a"] == [f"#{name}" for name in sections]
    assert cells(html, "counts")[1:] == [
        ["title", "2", "0 to 3", "3"],
        ["date", "0", "0 to 3", "2"],
        ["author", "2", "0 to 3", "0"],
    ]
    doubtful = page.text["doubtful"]
    assert doubtful.index("Line 11, about 1.2 of 2 labels wrong") < doubtful.index(
        "Line 6, about 0.3 of 3 labels wrong"
    )
    assert "J." not in doubtful
    assert "J." in page.text["sequences"]
    assert "All sequences." in page.text["sequences"]


def test_given_labels_are_sure_and_others_as_likely_as_the_model_says():
    tagging = tagging_of(TOKENS, LABELS, [0.2, 0.9, 0.4])
    assert tagging.expected_errors == pytest.approx([0.0, 0.3, 1.2])
    html, _ = page_of(tagging)
    unsure = re.findall('<span class="unsure">(.*?)</span>', html.split('id="sequences"')[-1])
    assert unsure == ["Noise.", "1990."]


def test_blocks_have_one_colour_a_type():
    labels = [["B-author", "I-author", "B-title", "I-title"], ["B-title", "I-title", "O"], ["B-title", "O"]]
    html, _ = page_of(tagging_of(TOKENS, labels, [1, 1, 1], "BIO"))
    part = html.split('<section id="sequences">')[1]
    assert len(set(re.findall(r'class="block (tag-\d+)"><b>title', part))) == 1
    assert set(re.findall(r'class="block (tag-\d+)"><b>author', part)).isdisjoint(
        re.findall(r"(tag-\d+)\"><b>title", part)
    )
    assert part.count("<b>title</b>") == 3
    assert "<span><span>1994.</span>" in part


def test_broken_constraints_are_counted_and_shown():
    for constraint in (Needs("date", "author"), Pattern("title", "^Milk", forbids=True)):
        html, page = page_of(tagging_of(TOKENS, [*LABELS[:2], ["title", "title"]], [1, 1, 1], constraint=constraint))
        assert cells(html, "constraints")[1] == ["the constraint", "1"]
        assert "Milk" in page.text["constraints"]
        assert "Noise." not in page.text["constraints"]


@pytest.mark.parametrize(
    ("constraint", "broken"),
    [
        (Once("title"), [1]),
        (Once("title", at_most=False, at_least=True), [2]),
        (Once("title", at_least=True), [1, 2]),
        (Before("title", "date"), [1]),
        (Needs("title", "date"), [0]),
        (Pattern("date", r"^\d+$"), [0, 1]),
        (Pattern("title", "x", forbids=True), [1]),
    ],
)
def test_constraints_are_checked_by_their_definition(constraint, broken):
    tokens = [["1", "y"], ["x", "y", "2"], ["3"]]
    labels = [["title", "title"], ["title", "date", "title"], ["date"]]
    tagging = tagging_of(tokens, labels, [1, 1, 1], constraint=constraint)
    assert tagging.broken == [(i, "the constraint") for i in broken]


def test_an_interrupted_fit_says_so():
    assert "Interrupted." in page_of(tagging_of(TOKENS, LABELS, [1, 1, 1]), interrupted=True)[1].text["summary"]


def test_long_and_many_sequences_are_cut_off():
    tokens = [["tea"] * 1000] * 300
    html, page = page_of(tagging_of(tokens, [["title"] * 1000] * 300, [0.9] * 300))
    assert "100 of 300 sequences" in page.text["sequences"]
    assert "the first 300 tokens" in page.text["sequences"]
    assert len(html) < 3_000_000


@pytest.fixture(scope="module")
def hostile() -> str:
    labels = [[payload] for payload in PAYLOADS]
    tagging = tagging_of([[payload] for payload in PAYLOADS], labels, [0.4] * len(labels), name=PAYLOADS[0])
    return build_report(tagging, about_of(tagging, ending=PAYLOADS[5]))


def test_the_page_loads_nothing_and_escapes_everything(hostile):
    page = Page(hostile)
    style = hostile.split("<style>")[1].split("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in page.tags[2][1]["content"]
    assert not {tag for tag, _ in page.tags} & {"script", "link", "img", "iframe", "object", "svg", "form", "base"}
    assert not {name for _, attrs in page.tags for name in attrs} & {"style", "src", "onerror", "onload", "action"}
    assert all(attrs[name].startswith("#") for _, attrs in page.tags for name in ("href",) if name in attrs)


@needs_browser
def test_nothing_runs_in_a_browser(hostile, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(hostile, encoding="utf-8")
    with open_browser(tmp_path / "profile") as browser:
        set_screen(browser, 390, scheme="dark")
        browser.get(path.as_uri())
        assert browser.execute_script("return window.__pwned") is None
        assert browser.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
        assert browser.get_log("browser") == []
