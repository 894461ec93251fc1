"""The report shows what the model and the results contain, is self-contained, and escapes all texts."""

import base64
import hashlib
import re
from html import escape, unescape
from html.parser import HTMLParser

import numpy as np
import polars as pl
import pytest
from helpers.report_example import example_model, example_names, example_results
from markupsafe import Markup
from sklearn.metrics import f1_score

from transduce.cli.report import build_report, plots, strongest_words, write_report
from transduce.io.atomic_write import WriteError

CLASSES = ("coffee", "tea", "water")
TEXTS = [f"document number {i}" for i in range(40)]
ALL_TEA = ["tea"] * len(TEXTS)
VOID = {"meta", "wbr", "link", "br", "img"}


class Page(HTMLParser):
    """Tags with their attributes, the text inside each section, and whether every tag is closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: dict[str, str] = {}
        self.open: list[str] = []
        self.section = ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag == "section":
            self.section = dict(attrs)["id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text[self.section] = self.text.get(self.section, "") + data

    def numbers(self, section):
        return re.findall(r"\d+", self.text[section].replace("\u202f", ""))


def report(classes=CLASSES, texts=TEXTS, tree=False, truth=None, **about):
    model = example_model(classes, tree, **about)
    html = build_report(model, example_results(classes, texts), example_names(), truth=truth)
    return html, Page(html)


@pytest.fixture
def quick(monkeypatch):
    """Leave out the charts, which take most of the time."""
    monkeypatch.setattr(plots, "_chart", lambda draw, title: plots.Chart(Markup(""), Markup("")))


@pytest.fixture(scope="module")
def plain():
    """The report of a flat model without true labels."""
    return report()


@pytest.fixture(scope="module")
def full():
    """The report with every section."""
    return report(tree=True, truth=ALL_TEA)


def cells(html, section):
    """Rows of the tables of a section, as lists of their texts."""
    inside = html.split(f'<section id="{section}">')[1].split("</section>")[0]
    rows = re.findall(r"<tr>(.*?)</tr>", inside, re.S)
    plain = [[re.sub(r"<[^>]*>", "", cell) for cell in re.findall(r"<t[hd].*?>(.*?)</t[hd]>", row)] for row in rows]
    return [[cell.replace("\u202f", "").replace("\u00a0", " ") for cell in row] for row in plain]


def test_every_section_has_a_heading_and_a_link(full):
    html, page = full
    sections = [attrs["id"] for tag, attrs in page.tags if tag == "section"]
    expected = ["summary", "sizes", "progress", "confidence", "overruled", "stated", "words"]
    expected += ["tree", "uncertain", "confusion"]
    assert sections == expected
    assert [attrs["href"] for tag, attrs in page.tags if tag == "a"] == [f"#{name}" for name in expected]
    assert html.count("<h1") == 1
    assert html.count("<h2") == len(expected)


def test_tree_and_accuracy_are_optional(plain):
    sections = plain[1].text.keys()
    assert "tree" not in sections
    assert "confusion" not in sections


def test_output_is_deterministic(full):
    assert report(tree=True, truth=ALL_TEA)[0] == full[0]


def test_page_loads_nothing_and_its_policy_allows_only_its_style(full):
    html, page = full
    style = html.split("<style>")[1].split("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = page.tags[2][1]
    assert policy["http-equiv"] == "Content-Security-Policy"
    assert f"style-src 'sha256-{digest}'" in policy["content"]
    assert "default-src 'none'" in policy["content"]
    assert "unsafe" not in policy["content"]
    assert "://" not in html
    assert "url(" not in style
    names = {name for _, attrs in page.tags for name in attrs}
    assert not names & {"style", "src", "srcset", "action", "data", "background"}
    assert not {tag for tag, _ in page.tags} & {"script", "link", "img", "image", "iframe", "object", "style "}
    links = [attrs[name] for _, attrs in page.tags for name in ("href", "xlink:href") if name in attrs]
    assert all(link.startswith("#") for link in links)


def test_ids_are_unique_and_references_exist(full):
    html, page = full
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:href="|url\()#([\w-]+)', html)) <= set(ids)


def test_charts_use_the_colours_of_the_page(full):
    html, page = full
    charts = re.findall(r"<svg.*?</svg>", html, re.S)
    assert not [color for chart in charts for color in re.findall(r"#[0-9a-f]{3,8}\b", chart)]
    pictures = [attrs for tag, attrs in page.tags if tag == "svg" and "role" in attrs]
    assert len(pictures) == 10
    assert all(attrs["role"] == "img" and attrs["aria-label"] for attrs in pictures)


def test_summary_has_counts_and_time(plain):
    text = plain[1].text["summary"].replace("\u202f", " ")
    assert "6 labelled documents and 33 unlabelled in 3 classes; finished in 4.2 s; all class sizes met." in text
    assert "Interrupted" not in text


def test_interrupted_fit_is_mentioned(quick):
    html, page = report(interrupted=True)
    assert 'class="notice"' in html
    assert "Interrupted." in page.text["summary"]
    assert "interrupted after 4.2 s" in page.text["summary"]


def test_unmet_sizes_are_counted_and_marked(quick):
    sizes = example_model(CLASSES).about["sizes"]
    sizes[1] |= {"asked_low": 20, "asked_high": 1200}
    html, page = report(sizes=sizes)
    assert "1 class size not met" in page.text["summary"]
    assert html.count('class="number off"') == 1
    assert ["tea", "2", "20 to 1200", "11", "10"] in cells(html, "sizes")


def test_sizes_are_listed_largest_first(plain):
    rows = cells(plain[0], "sizes")
    assert [row[0] for row in rows[1:]] == ["water", "tea", "coffee"]


def test_restart_with_the_lowest_objective_is_marked_as_kept(plain):
    rows = cells(plain[0], "progress")
    assert [row[0] for row in rows[1:]] == ["1 (kept)", "2"]
    assert [row[3] for row in rows[1:]] == ["3", "3"]


def test_restart_with_the_objective_of_the_fit_is_marked_as_kept(quick):
    html, page = report(objective=1.0 / 3 + 1)
    assert [row[0] for row in cells(html, "progress")[1:]] == ["1", "2 (kept)"]
    assert "kept restart 2: another has a lower objective, but the difference is negligible" in page.text["progress"]


def test_objective_of_no_restart_is_ignored(plain, quick):
    html, page = report(objective=0.77)
    assert [row[0] for row in cells(html, "progress")[1:]] == ["1 (kept)", "2"]
    assert "kept the one with the lowest objective" in page.text["progress"]


def test_class_without_bounds_has_no_requested_size(quick):
    sizes = example_model(CLASSES).about["sizes"]
    sizes[1] |= {"asked_low": 0, "asked_high": 33}
    html, page = report(sizes=sizes)
    assert ["tea", "2", "not stated", "11", "10"] in cells(html, "sizes")
    assert "you stated no size; the texts suggest 1 to 2\u00a0%" in page.text["stated"]


def test_report_of_another_file_counts_its_rows(quick):
    model = example_model(("a/x", "a/y", "b"), tree=True)
    frame = example_results(("a/x", "a/y", "b"), TEXTS).drop("given")
    page = Page(html := build_report(model, frame, example_names(given=None), file="other.csv"))
    assert [row[:2] for row in cells(html, "sizes")[1:]] == [["a/x", "14"], ["a/y", "13"], ["b", "13"]]
    assert "a 27 x 14 y 13 b 13" in " ".join(page.text["tree"].split())
    assert "Results for <bdi>other.csv</bdi>" in html
    assert "documents.csv" in page.text["progress"]


def test_unfinished_restart_is_not_marked_as_kept(quick):
    history = example_model(CLASSES).about["history"]
    cut_short = [row | {"weight": 0.01} if row["restart"] == 0 else row for row in history]
    rows = cells(report(history=cut_short)[0], "progress")
    assert [row[0] for row in rows[1:]] == ["1", "2 (kept)"]


def test_overruled_rows_are_counted_with_examples(plain, quick):
    html, page = plain
    frame = example_results(CLASSES, TEXTS).filter("overruled")
    assert f"another class for {frame.height} documents" in page.text["overruled"]
    shown = [row[1] for row in cells(html, "overruled")[1:]]
    assert shown
    assert set(shown) <= set(frame["text"])
    assert "No label was overruled" in Page(build_without("overruled")).text["overruled"]


def build_without(column):
    frame = example_results(CLASSES, TEXTS).with_columns(pl.lit(False).alias(column))
    return build_report(example_model(CLASSES), frame, example_names())


def test_uncertain_rows_have_the_lowest_confidence(plain):
    shown = [int(row[0]) for row in cells(plain[0], "uncertain")[1:]]
    frame = example_results(CLASSES, TEXTS).with_row_index("row", 1).filter(~pl.col("given"))
    assert shown == frame.sort("confidence")["row"].head(30).to_list()


def test_given_rows_are_not_uncertain(plain, quick):
    frame = example_results(CLASSES, TEXTS).with_columns(
        pl.when("given").then(0.0).otherwise("confidence").alias("confidence")
    )
    html = build_report(example_model(CLASSES), frame, example_names())
    assert [row[1] for row in cells(html, "uncertain")] == [row[1] for row in cells(plain[0], "uncertain")]


def test_accuracy_is_measured_on_new_labels(quick):
    rng = np.random.default_rng(1)
    truth = [str(name) for name in rng.choice([*CLASSES, "milk"], len(TEXTS))]
    known = [name if i % 7 else None for i, name in enumerate(truth)]
    html, page = report(truth=known)
    frame = example_results(CLASSES, TEXTS)
    rows = [i for i, name in enumerate(known) if name is not None and not frame["given"][i]]
    expected, got = [truth[i] for i in rows], [frame["label"][i] for i in rows]
    macro = f1_score(expected, got, average="macro", zero_division=0)
    assert f"On {len(rows)} new labels" in page.text["confusion"]
    assert f"macro F1 {macro:.3f}" in page.text["confusion"]
    assert f"accuracy (micro F1) {np.mean(np.array(expected) == got):.3f}" in page.text["confusion"]
    assert "milk" in [row[0] for row in cells(html, "confusion")]


def test_truth_of_another_length_is_refused(quick):
    with pytest.raises(ValueError, match="40 labels, but has 3"):
        report(truth=["tea"] * 3)


def test_tree_adds_up_counts(quick):
    text = " ".join(report(("a/x", "a/y", "b"), tree=True)[1].text["tree"].split())
    assert "a 21 · 4 labelled x 10 · 2 labelled y 11 · 2 labelled b 12 · 2 labelled" in text


def test_many_classes_are_folded_and_charts_limited():
    classes = [f"group{k // 10}/class{k}" for k in range(150)]
    html, page = report(classes, tree=True, truth=[classes[i] for i in range(len(TEXTS))])
    assert "The 25 largest of 150 classes." in page.text["sizes"]
    assert "All 150 classes in a table" in page.text["sizes"]
    assert len(cells(html, "sizes")) == 151
    bars = html.split('<section id="sizes">')[1].split("</svg>")[0]
    assert bars.count("class14") + bars.count("class13") + bars.count("class12") == 25
    assert len(html) < 600_000


def test_words_are_shown_if_there_is_a_vocabulary(plain, quick):
    assert "one" in plain[1].text["words"]
    html = build_report(example_model(CLASSES, vocabulary=()), example_results(CLASSES, TEXTS), example_names())
    assert "no words to show" in Page(html).text["words"]


def test_words_of_the_caller_are_used(quick):
    words = [[("zebra", 1.0)], [], []]
    html = build_report(example_model(CLASSES), example_results(CLASSES, TEXTS), example_names(), words=words)
    assert "zebra" in Page(html).text["words"]
    assert "one" not in Page(html).text["words"].split()


@pytest.mark.parametrize("texts", [[], ["all given"]])
def test_report_without_unlabelled_rows(texts):
    frame = example_results(CLASSES, texts).with_columns(given=pl.lit(True))
    model = example_model(CLASSES, n_unlabelled=0, history=[])
    page = Page(build_report(model, frame, example_names(), truth=["tea"] * len(texts)))
    assert "no documents to label" in page.text["uncertain"]
    assert "No rounds were recorded" in page.text["progress"]
    assert "The true class is not known" in page.text["confusion"]


def test_report_of_predictions(quick):
    frame = example_results(CLASSES, TEXTS).drop("given")
    html = build_report(example_model(CLASSES), frame, example_names(given=None), truth=["tea"] * len(TEXTS))
    assert "On 40 new labels" in Page(html).text["confusion"]


def test_any_number_of_text_columns(quick):
    frame = example_results(CLASSES, TEXTS).with_columns(title=pl.lit("Title of"), number=pl.lit(None, pl.Int64))
    html = build_report(example_model(CLASSES), frame, example_names(("title", "text", "number")))
    assert "Title of document number 0" in [row[1] for row in cells(html, "uncertain")]
    html = build_report(example_model(CLASSES), frame, example_names(()))
    assert cells(html, "uncertain")[1][1] == ""


def test_nulls_and_nans_in_results():
    frame = example_results(CLASSES, TEXTS).with_columns(
        pl.when(pl.col("label") == "tea").then(None).otherwise("confidence").alias("confidence"),
        pl.lit(None, pl.Boolean).alias("overruled"),
        pl.lit(None, pl.String).alias("runner_up"),
    )
    page = Page(build_report(example_model(CLASSES), frame, example_names()))
    assert "nan" not in page.text["confidence"]
    assert "None" not in page.text["uncertain"]


NAMES = (
    "$x_1$",
    "$\\frac{",
    "東京/日本語",
    "a\x00b\x1b[31m",
    "\u202eolleh",
    "@0",
    "@12",
    "</svg>",
    "é" * 500,
    "",
    "🦓",
)


def test_any_name_can_be_a_class():
    html, _ = report((*NAMES, "tea"), truth=ALL_TEA, source="broken \ud800 name")
    html.encode("utf-8")
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", html)
    shown = [row[0] for row in cells(html, "sizes")[2:]]
    assert [unescape(name) for name in reversed(shown)] == [re.sub("[\x00\x1b]", "\ufffd", name) for name in NAMES]
    charts = "".join(re.findall("<svg.*?</svg>", html, re.S))
    assert all(f">{escape(name)}<" in charts for name in ("$x_1$", "@0", "@12", "</svg>", "🦓"))


def test_control_characters_are_replaced(quick):
    html, _ = report(texts=["one\x00two\x08three"] * 3)
    assert "one\ufffdtwo\ufffdthree" in html


def test_strongest_words_equal_a_full_sort():
    model = example_model(CLASSES, vocabulary=[f"w{j}" for j in range(50)])
    centred = model.coef - model.coef.mean(axis=0)
    for row, found in zip(centred, strongest_words(model, 5), strict=True):
        order = np.argsort(-row)[:5]
        assert [word for word, _ in found] == [f"w{j}" for j in order]
        np.testing.assert_allclose([weight for _, weight in found], row[order])


def test_words_strong_for_all_classes_are_ignored():
    model = example_model(CLASSES, vocabulary=["the", "bean", "leaf", "tap"])
    model.coef = np.array([[9.0, 1, 0, 0], [9, 0, 1, 0], [9, 0, 0, 1]], np.float32)
    assert [[word for word, _ in found] for found in strongest_words(model)] == [["bean"], ["leaf"], ["tap"]]


def test_no_words_without_a_vocabulary():
    assert strongest_words(example_model(CLASSES, vocabulary=())) == [[], [], []]


def test_report_replaces_an_old_file(tmp_path):
    target = tmp_path / "report.html"
    target.write_text("old")
    write_report("naïve <p>\n", str(target))
    assert target.read_bytes() == "naïve <p>\n".encode()
    assert list(tmp_path.iterdir()) == [target]


def test_failed_write_leaves_no_file(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(WriteError, match=r"folder cannot be written \(.*\)"):
        write_report("<p>", str(tmp_path / "folder"))
    with pytest.raises(WriteError, match="cannot be written"):
        write_report("<p>", str(tmp_path / "nowhere" / "report.html"))
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
