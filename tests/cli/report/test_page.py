"""The page of a report is self-contained, escapes any text, and can be made of any results."""

import base64
import hashlib
import re
from html import escape, unescape

import numpy as np
import polars as pl
import pytest
from helpers.report_example import example_model, example_names, example_results
from helpers.report_page import ALL_TEA, CLASSES, TEXTS, Page, cells, report

from transduce.cli.report import build_report, strongest_words, write_report
from transduce.io.atomic_write import WriteError


def test_every_section_has_a_heading_and_a_link(full):
    html, page = full
    sections = [attrs["id"] for tag, attrs in page.tags if tag == "section"]
    expected = ["summary", "sizes", "confidence", "overruled", "stated", "words"]
    expected += ["tree", "uncertain", "confusion", "progress"]
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


def test_many_classes_are_folded_and_charts_limited():
    classes = [f"group{k // 10}/class{k}" for k in range(150)]
    html, page = report(classes, tree=True, truth=[classes[i] for i in range(len(TEXTS))])
    assert "The 25 largest of 150 classes." in page.text["sizes"]
    assert "All 150 classes in a table" in page.text["sizes"]
    assert len(cells(html, "sizes")) == 151
    bars = html.split('<section id="sizes">')[1].split("</svg>")[0]
    assert bars.count("class14") + bars.count("class13") + bars.count("class12") == 25
    assert len(html) < 600_000


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
