"""The map of documents: who is drawn, where, in which colour, and with which mark."""

import re
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from helpers.report_example import example_model, example_names, example_results
from helpers.report_page import Page
from scipy import sparse
from scipy.special import softmax

from transduce.cli.report import build_report
from transduce.cli.report.document_map import MAX_COLORS, MAX_POINTS, OTHERS, map_chart, place_points, sample_rows


def rows_of(labels, given=(), overruled=()):
    numbers = np.arange(len(labels))
    return pl.DataFrame(
        {"label": labels, "given": np.isin(numbers, given), "overruled": np.isin(numbers, overruled)},
        schema_overrides={"label": pl.String},
    )


def count(svg, color, mark="h0"):
    """Number of points in this colour, those of the legend included."""
    paths = re.findall(rf'<path d="([^"]*)"[^>]*class="stroke-{color}"', svg)
    return sum(path.count(mark) for path in paths)


@pytest.fixture
def points():
    return np.random.default_rng(0).uniform(-1, 1, (6, 2))


@pytest.mark.parametrize(
    ("n_labeled", "n_others", "drawn"),
    [(5, 20, 25), (40, 10_000, MAX_POINTS), (10_000, 40, MAX_POINTS), (9000, 9000, MAX_POINTS), (0, 0, 0)],
)
def test_all_documents_or_a_sample_are_drawn_and_labelled_ones_first(n_labeled, n_others, drawn):
    given = np.random.default_rng(1).permutation(np.arange(n_labeled + n_others) < n_labeled)
    rows = sample_rows(given)
    assert rows.size == drawn == np.unique(rows).size
    assert np.count_nonzero(given[rows]) >= min(n_labeled, MAX_POINTS // 2)
    np.testing.assert_array_equal(rows, sample_rows(given))


def test_a_sample_is_taken_from_everywhere():
    rows = sample_rows(np.zeros(30_000, dtype=bool))
    assert np.bincount(rows // 3000).min() > MAX_POINTS / 10 / 2


@pytest.mark.parametrize("n_classes", [3, 10, 40])
def test_documents_of_a_class_lie_together_and_sure_ones_farther_out(n_classes):
    rng = np.random.default_rng(0)
    labels = np.arange(20 * n_classes) % n_classes
    scores = rng.normal(0, 0.05, (labels.size, n_classes))
    scores[np.arange(labels.size), labels] += np.where(np.arange(labels.size) < 10 * n_classes, 2.0, 0.5)
    points = place_points(scores, None)
    assert np.hypot(*points.T).max() == pytest.approx(1)
    sure, unsure = points[: 10 * n_classes], points[10 * n_classes :]
    assert np.hypot(*sure.T).min() > np.hypot(*unsure.T).max()
    centers = np.array([sure[labels[: len(sure)] == k].mean(axis=0) for k in range(n_classes)])
    nearest = np.argmin(np.linalg.norm(sure[:, None] - centers, axis=2), axis=1)
    np.testing.assert_array_equal(nearest, labels[: len(sure)])


def test_similar_classes_are_neighbours():
    labels, groups = np.arange(300) % 6, np.array([0, 1, 2, 0, 1, 2])
    scores = 3.0 * (labels[:, None] == np.arange(6)) + 2.0 * (groups[labels][:, None] == groups)
    points = place_points(scores + np.random.default_rng(0).normal(0, 0.1, (300, 6)), None)
    angles = np.array([np.arctan2(*points[labels == k].mean(axis=0)) for k in range(6)])
    order = groups[np.argsort(angles)]
    assert np.count_nonzero(order != np.roll(order, 1)) == 3


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_two_classes_are_left_and_right_and_rows_make_the_other_axis(form):
    rng = np.random.default_rng(0)
    hidden, scores = rng.normal(0, 3, 200), rng.normal(0, 1, 200)
    X = np.column_stack((scores, hidden, rng.normal(0, 0.1, (200, 3)))) + 5
    points = place_points(np.column_stack((-scores, scores)), form(X))
    assert np.corrcoef(points[:, 0], scores)[0, 1] == pytest.approx(1)
    assert abs(np.corrcoef(points[:, 1], hidden)[0, 1]) > 0.95
    assert np.abs(points).max(axis=0) == pytest.approx([1, 1])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_documents_that_nothing_tells_apart_lie_on_one_point(n_classes):
    points = place_points(np.ones((4, n_classes)), np.zeros((4, 5)))
    assert np.isfinite(points).all()
    assert np.ptp(points, axis=0).max() == 0


def test_classes_have_distinct_colours_and_the_rest_are_grey():
    names = [f"class {k}" for k in range(MAX_COLORS + 3)]
    chart = map_chart(np.zeros((len(names) + 1, 2)), rows_of([*names, ""]), names)
    for svg in chart:
        assert [count(svg, f"map-{k}") for k in range(MAX_COLORS)] == [2] * MAX_COLORS
        assert count(svg, OTHERS) == 3 + 1 + 1
        assert "other classes" in svg
        assert names[MAX_COLORS] not in svg


def test_the_style_sheet_has_a_colour_for_each():
    model = example_model(("a", "b"))
    html = build_report(model, example_results(("a", "b"), ["x"] * 6), example_names())
    colors = re.findall(r"\.stroke-map-(\d+) { stroke: (#\w+); }", html)
    assert [int(k) for k, _ in colors] == list(range(MAX_COLORS))
    assert len({color for _, color in colors}) == MAX_COLORS


def test_labelled_and_overruled_documents_are_marked(points):
    chart = map_chart(points, rows_of(["a", "a", "b", "b", "a", ""], given=[0], overruled=[2, 3]), ["a", "b"])
    for svg in chart:
        assert count(svg, "map-0") == 3 + 1
        assert count(svg, "ink") == 1 + 1
        assert count(svg, "map-1", "l6 6m0 -6l-6 6") == 2
        assert "(no class)" in svg
        assert "labelled by you" in svg
        assert "decided by the class sizes" in svg


def test_the_legend_has_no_marks_that_do_not_occur(points):
    for svg in map_chart(points, rows_of(["a"] * 6), ["a", "b"]):
        assert "labelled by you" not in svg
        assert "decided" not in svg
        assert count(svg, "map-1") == 0


def mapped_report(classes, n=40, X=None):
    model, rng = example_model(classes, vocabulary=("one", "two", "three")), np.random.default_rng(0)
    about = {name: getattr(model, name) for name in ("classes", "coef", "vectorizer", "tree", "about")}
    model = SimpleNamespace(**about, shift=np.zeros(len(classes)), scores=lambda X: np.asarray(X @ model.coef.T))
    model.probabilities = lambda scores: softmax(scores, axis=1)
    X = rng.normal(size=(n, 3)) if X is None else X
    html = build_report(model, example_results(classes, ["text"] * n), example_names(), X=X)
    return html, Page(html)


@pytest.mark.parametrize("classes", [("a", "b"), ("a", "b", "c"), tuple(map(str, range(20)))], ids=len)
def test_the_report_has_the_map_and_is_the_same_each_time(classes):
    html, page = mapped_report(classes)
    assert "All 40 documents" in page.text["document_map"]
    assert mapped_report(classes)[0] == html
    assert ("have colours, the others are grey" in page.text["document_map"]) == (len(classes) > MAX_COLORS)


def test_a_sample_is_called_a_sample():
    n = MAX_POINTS + 1000
    _, page = mapped_report(("a", "b", "c"), n, sparse.random(n, 3, 0.5, "csr", random_state=0))
    assert "A sample of 3\u202f000 of 4\u202f000 documents" in page.text["document_map"]


def test_class_names_are_escaped():
    hostile = ("<script>alert(1)</script>", '"><img src=x>', "plain")
    html, page = mapped_report(hostile)
    assert not {tag for tag, _ in page.tags} & {"script", "img"}
    assert "&lt;script&gt;" in html.split('<section id="document_map">')[1].split("</section>")[0]


def test_without_rows_or_with_one_class_there_is_no_map():
    html = build_report(example_model(("a", "b")), example_results(("a", "b"), ["x"] * 6), example_names())
    assert "document_map" not in Page(html).text
    assert "document_map" not in mapped_report(("only",))[1].text
