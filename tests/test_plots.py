"""Plots: content, no need of a screen, and the same image for the same model."""

import builtins
import io

import matplotlib
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from transduce import TransductiveClassifier
from transduce.model_selection import HiddenLabelSplit, TransductiveClassifierCV, labeled_scorer
from transduce.model_selection.learning_curves import LearningCurve
from transduce.plots import plot_counts, plot_learning_curve, plot_prices
from transduce.testing import blobs, labels_as, true_counts

matplotlib.use("agg")


@pytest.fixture(autouse=True)
def no_windows(monkeypatch):
    from matplotlib import pyplot

    monkeypatch.setattr(pyplot, "show", lambda *args, **kwargs: pytest.fail("show was called"))
    yield
    pyplot.close("all")


def model(**parameters):
    X, _, y = blobs()
    return TransductiveClassifier(annealing="paper", random_state=0, **parameters).fit(X, y)


def image(ax):
    file = io.BytesIO()
    ax.figure.savefig(file, format="png", metadata={"Software": None})
    return file.getvalue()


def test_counts_show_assigned_labelled_and_stated_fractions():
    _, truth, y = blobs()
    counts = true_counts(truth, y)
    ax = plot_counts(model(class_prior=counts))
    assigned, labeled, stated = ax.containers
    np.testing.assert_allclose([bar.get_width() for bar in assigned], counts / counts.sum())
    np.testing.assert_allclose([bar.get_width() for bar in labeled], 1 / 3)
    np.testing.assert_allclose(stated.lines[0].get_xdata(), counts / counts.sum())
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["assigned", "labelled", "stated"]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["0", "1", "2"]


def test_ranges_are_spans_and_unknown_sizes_have_no_mark():
    ax = plot_counts(model(class_prior={0: (0.25, 0.75), 1: None, 2: None}))
    spans = ax.containers[2].lines[2][0].get_segments()
    np.testing.assert_allclose([segment[:, 0] for segment in spans], [(0.25, 0.75)], atol=0.01)
    nothing = plot_counts(model(class_prior=dict.fromkeys(range(3))))
    assert [text.get_text() for text in nothing.get_legend().get_texts()] == ["assigned", "labelled"]


def test_branches_with_a_size_have_bars_and_prices():
    X, _, y = blobs()
    names = np.array(["hot/tea", "hot/soup", "cold"], dtype=object)
    labels = [None if label < 0 else names[label] for label in y]
    clf = TransductiveClassifier(
        annealing="paper",
        random_state=0,
        taxonomy=list(names),
        class_prior={"hot": "=80%", "hot/tea": "=40%", "cold": None},
    ).fit(X, labels)
    ax = plot_counts(clf)
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["cold", "hot/soup", "hot/tea", "hot/…"]
    assigned, labeled, stated = ax.containers
    fractions = clf.class_counts_ / clf.class_counts_.sum()
    np.testing.assert_allclose([bar.get_width() for bar in assigned], [*fractions, fractions[1] + fractions[2]])
    assert [bar.get_width() for bar in labeled][3] == pytest.approx(2 / 3)
    assert stated.lines[0].get_ydata().tolist() == [1.8, 2.8]
    prices = [bar.get_width() for bar in plot_prices(clf).patches]
    np.testing.assert_allclose(clf.prices_, [prices[0], prices[1] + prices[3], prices[2] + prices[3]], atol=1e-12)
    assert prices[3] != 0.0
    image(ax)


def test_prices_are_bars():
    clf = model(class_prior=[20, 40, 48])
    ax = plot_prices(clf)
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], clf.prices_)


def test_curves_show_mean_and_band():
    scores = np.array([[0.7, 0.9], [0.5, 0.6]])
    ax = plot_learning_curve(LearningCurve(np.array([40, 20]), scores, "accuracy"), label="ours")
    np.testing.assert_allclose(ax.lines[0].get_xydata(), [[20, 0.55], [40, 0.8]])
    assert ax.get_ylabel() == "accuracy"
    band = ax.collections[0].get_paths()[0].vertices
    assert band[:, 1].min() == pytest.approx(0.5)
    assert band[:, 1].max() == pytest.approx(0.9)
    same = plot_learning_curve([20, 40], [0.4, 0.5], ax=ax, label="supervised")
    assert same is ax
    assert len(ax.collections) == 1
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["ours", "supervised"]


def test_scores_of_another_shape_than_the_sizes_are_an_error():
    with pytest.raises(ValueError, match="scores must have one row for each size"):
        plot_learning_curve([1, 2], [0.5])
    with pytest.raises(ValueError, match="Pass the result of learning_curve, or both arrays"):
        plot_learning_curve([1, 2])


def test_searches_and_pipelines_are_accepted():
    X, _, y = blobs()
    clf = TransductiveClassifier(annealing="paper", class_prior=["=50%", "=30%", "=20%"])
    search = TransductiveClassifierCV((1e-3,), estimator=clf, cv=2)
    grid = GridSearchCV(
        make_pipeline(Normalizer(), clf),
        {"transductiveclassifier__alpha": [1e-3]},
        cv=HiddenLabelSplit(2),
        scoring=labeled_scorer(),
    )
    for fitted in (search.fit(X, y), make_pipeline(Normalizer(), search).fit(X, y), grid.fit(X, y)):
        assert len(plot_counts(fitted).containers) == 3
        assert len(plot_prices(fitted).patches) == 3


def test_the_same_model_gives_the_same_image():
    for plot in (plot_counts, plot_prices):
        assert image(plot(model())) == image(plot(model()))


def test_axes_can_be_passed_and_names_have_any_character():
    X, _, y = blobs()
    names = np.array(["$x", "a_b^c$", "50 % \\alpha"], dtype=object)
    labels = [None if label < 0 else names[label] for label in y]
    clf = TransductiveClassifier(annealing="paper").fit(X, labels)
    ax = matplotlib.figure.Figure().subplots()
    assert plot_counts(clf, ax) is ax
    image(ax)
    image(plot_prices(clf, ax=matplotlib.figure.Figure().subplots()))


def test_paths_and_a_supervised_fit_can_be_drawn():
    X, truth, _ = blobs()
    names = [("a", "x"), ("a", "y"), ("b",)]
    clf = TransductiveClassifier(taxonomy=names, annealing="paper").fit(X, [names[label] for label in truth])
    assert [tick.get_text() for tick in plot_counts(clf).get_yticklabels()] == ["a/x", "a/y", "b"]


def test_an_unfitted_model_is_an_error():
    with pytest.raises(NotFittedError):
        plot_counts(TransductiveClassifier())


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    clf, load = model(), builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return load(name, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(builtins, "__import__", without)
        with pytest.raises(ImportError, match=r"pip install '\.\[app\]'"):
            plot_prices(clf)


def test_class_names_are_saved_as_svg(tmp_path):
    X, _, y = blobs()
    ax = plot_counts(TransductiveClassifier(annealing="paper").fit(X, labels_as(y, "")))
    ax.figure.savefig(tmp_path / "counts.svg")
    assert (tmp_path / "counts.svg").stat().st_size > 1000
