"""Sections of a report: they show the counts, restarts, labels and words of the model and its results."""

import re

import numpy as np
import polars as pl
import pytest
from helpers.report_example import example_model, example_names, example_results
from helpers.report_page import CLASSES, TEXTS, Page, cells, report
from scipy import sparse
from scipy.special import softmax
from sklearn.metrics import f1_score

from transduce.cli.queue import choose_rows
from transduce.cli.report import build_report


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
    assert "You stated no size for 1 class." in page.text["stated"]
    assert cells(html, "stated") == [["Class", "Suggested size"], ["tea", "1 to 2 %"]]


def test_row_numbers_can_be_pasted_into_a_search(quick):
    frame = example_results(CLASSES, [f"document number {i}" for i in range(1500)])
    html = build_report(
        example_model(CLASSES), frame.with_columns(confidence=1.0 - pl.col("confidence")), example_names()
    )
    shown = re.findall(r'<td class="number row">(.*?)</td>', html)
    assert max(map(int, shown)) > 1400  # int accepts no space inside


def test_settings_have_three_digits(quick):
    html, _ = report(settings={"loss": "hinge", "alpha": 0.0009959999993381643, "annealing": [1.0, 0.123456]})
    assert ["alpha", "0.000996"] in cells(html, "summary")
    assert ["annealing", "1 and 0.123"] in cells(html, "summary")


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


def test_with_features_the_rows_are_those_of_the_queue(quick):
    frame, model = example_results(CLASSES, TEXTS), example_model(CLASSES)
    model.shift, model.scores = 0.0, lambda X: X @ model.coef.T
    model.probabilities = lambda scores: softmax(scores, axis=1)
    X = sparse.random(len(TEXTS), 2, 1.0, format="csr", random_state=0)
    shown = [int(row[0]) - 1 for row in cells(build_report(model, frame, example_names(), X=X), "uncertain")[1:]]
    given = frame["given"].to_numpy()
    rows = np.flatnonzero(~given)
    P = model.probabilities(model.scores(X[rows]))
    assert shown == rows[choose_rows(P, X[rows], 30, labeled=X[np.flatnonzero(given)])].tolist()


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


def test_words_are_shown_if_there_is_a_vocabulary(plain, quick):
    assert "one" in plain[1].text["words"]
    html = build_report(example_model(CLASSES, vocabulary=()), example_results(CLASSES, TEXTS), example_names())
    assert "no words to show" in Page(html).text["words"]


def test_words_of_the_caller_are_used(quick):
    words = [[("zebra", 1.0)], [], []]
    html = build_report(example_model(CLASSES), example_results(CLASSES, TEXTS), example_names(), words=words)
    assert "zebra" in Page(html).text["words"]
    assert "one" not in Page(html).text["words"].split()
