"""Hidden labels: y marks them as unlabelled, counts are scaled, and no fit depends on them."""

import numpy as np
import pandas as pd
import pytest
from helpers.classifiers import PAPER
from helpers.test_ids import without_address
from sklearn.base import clone

from transduce import TransductiveClassifier
from transduce.class_prior.spec import read_sizes
from transduce.labels.encode import find_full_labels
from transduce.labels.missing import find_labeled
from transduce.labels.partial import RuledOut
from transduce.model_selection import HiddenLabelSplit, hide
from transduce.model_selection.hidden_labels import fit_hidden, scale_prior
from transduce.testing import blobs, true_counts


@pytest.mark.parametrize("taxonomy", [None, ["hot/a", "cold/b"]])
def test_a_set_of_one_class_is_a_full_label_as_in_a_fit(taxonomy):
    entries = ["a", {"a"}, frozenset("b"), "b", {"a", "b"}, RuledOut("a"), None]
    if taxonomy is not None:
        entries[4:4] = ["hot", {"cold"}]
    y = np.empty(len(entries), dtype=object)
    y[:] = entries
    values, full = find_full_labels(y, taxonomy=taxonomy)
    model = TransductiveClassifier(taxonomy=taxonomy, class_prior={"a": 2, "b": 1}, fit_intercept=False)
    model.fit(np.eye(len(y), 3), y)
    assert full.sum() == len(y) - model.class_counts_.sum()
    assert values[full].tolist() == ["a", "a", "b", "b", *([] if taxonomy is None else ["a", "b"])]
    assert model.score(np.eye(len(y), 3), y) == np.mean(model.predict(np.eye(len(y), 3))[full] == values[full])
    fit_hidden(model, np.eye(len(y), 3), y, [1])  # counts are scaled to one more row


@pytest.mark.parametrize(
    "y",
    [
        np.array([2, 0, 2, -1]),
        np.array([2, 0, 2, -1], dtype=np.int8),
        np.array([1, 0, 1, 1], dtype=np.uint8),
        np.array([True, False, True, True]),
        np.array([1.0, 0.0, 1.0, np.nan]),
        np.array(["a", "b", "a", ""]),
        np.array(["a", "b", "nan", "-1"]),
        np.array(["a", "b", "a", None], dtype=object),
        ["a", "b", "a", None],
        [("a", "x"), ("b",), ("a", "x"), None],
        pd.Series(["a", "b", "a", "c"], dtype="string"),
        pd.Series(["a", "b", "a", None], dtype="category"),
        np.array(["2020-01-01", "2020-01-02", "2020-01-01", "NaT"], dtype="datetime64[D]"),
    ],
    ids=lambda y: f"{type(y).__name__} {getattr(y, 'dtype', '')}",
)
@pytest.mark.parametrize("unlabeled", ["auto", None, 2, "a"])
def test_hidden_rows_are_unlabelled_and_other_rows_unchanged(y, unlabeled):
    values, labeled = find_labeled(y, unlabeled)
    before = values.tolist()
    hidden = hide(y, [0, 1], unlabeled)
    again, still = find_labeled(hidden, unlabeled)
    assert still.tolist() == [False, False, *labeled[2:]]
    assert [again.tolist()[i] == values.tolist()[i] for i in range(2, 4) if labeled[i]] == [True] * labeled[2:].sum()
    assert find_labeled(hide(y, np.array([True, True, False, False]), unlabeled))[1].tolist()[:2] == [False, False]
    assert values.tolist()[:2] == before[:2]


def test_rows_must_be_indices_or_a_mask():
    for rows in ([5], [0.5], ["a"]):
        with pytest.raises(ValueError, match="rows must be indices below 3"):
            hide([1, 2, 3], rows)


@pytest.mark.parametrize(
    ("prior", "scaled"),
    [
        ([0.3, 0.7], [0.3, 0.7]),
        (["30%", "~50"], ["30%", "~50%"]),
        ([30, 70], ["=30%", "=70%"]),
        (np.array([100, 0]), ["=100%", 0]),
        (pd.Series({"b": 70, "a": 30}), {"b": "=70%", "a": "=30%"}),
        ({"a": 1, "b": None}, {"a": "=1%", "b": None}),
        ({"a": 1.0, "b": None}, {"a": 1.0, "b": None}),
        ({"a": (20, 30), "b": None}, {"a": (24, 36), "b": None}),
        ({"a": (21, 33), "b": 60}, {"a": (25, 40), "b": "=60%"}),
        ({"a": (21, np.inf), "b": None}, {"a": (25, np.inf), "b": None}),
        ({"a": (0.2, 0.3), "b": None}, {"a": (0.2, 0.3), "b": None}),
        ([(20, 30), None], [(24, 36), None]),
        ({"a": 70, "b": 30, "b/x": 20}, {"a": "=70%", "b": "=30%", "b/x": "=20%"}),
    ],
    ids=without_address,
)
def test_counts_are_scaled_and_fractions_stay(prior, scaled):
    taxonomy = ["a", "b/x", "b/y"] if "b/x" in prior else None
    found = scale_prior(prior, 100, 120, 150, taxonomy)
    names = range(2) if isinstance(scaled, list) else ()
    assert read_sizes(found, names) == read_sizes(scaled, names)
    assert scale_prior(prior, 0, 20, 20) == "labeled"
    assert scale_prior(prior, 100, 100, 150) is prior


@pytest.mark.parametrize(
    "prior",
    [
        "labeled", "equal", None, {"a": "x", "b": (1, 2)},
        [30, 60],  # invalid: the estimator reports it
        [90, 60], {"a": 90, "b": 60}, {"a": 90, "b": 60, "b/x": 50},  # counts of all rows
    ],
)  # fmt: skip
def test_priors_that_do_not_depend_on_hidden_rows_stay(prior):
    assert scale_prior(prior, 100, 120, 150, ["a", "b/x", "b/y"]) is prior


def test_per_cents_are_not_scaled_as_counts():
    taxonomy = ["a", "b/x", "b/y"]
    for prior in ([70, 30], {"a": 70, "b": 30, "b/x": 20}):
        found = read_sizes(scale_prior(prior, 500, 600, 700, taxonomy), range(2))
        assert list(found.values())[:2] == list(read_sizes(["70%", "30%"], range(2)).values())


def test_counts_of_the_unlabelled_rows_are_scaled_in_a_fit():
    X, truth, y = blobs()
    counts = true_counts(truth, y)
    rows = np.flatnonzero(y >= 0)[::2]
    for prior in (counts, np.bincount(truth), dict(enumerate(counts)), {0: (50, 60), 1: (30, 40), 2: None}):
        model = fit_hidden(clone(PAPER).set_params(class_prior=prior, random_state=0), X, y, rows)
        assert model.class_counts_.sum() == (y < 0).sum() + rows.size
        assert np.mean(model.transduction_ == truth) > 0.9


@pytest.mark.parametrize(
    "prior",
    [
        "labeled",
        pytest.param([0.5, 1 / 3, 1 / 6], marks=pytest.mark.slow),
        [56, 36, 16],
        pytest.param({0: (50, 60), 1: None, 2: None}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_hidden_labels_never_change_the_model_of_their_fold(prior):
    X, _, y = blobs()
    clf = clone(PAPER).set_params(class_prior=prior, random_state=0)
    rng = np.random.default_rng(0)
    for train, test in HiddenLabelSplit(3, random_state=0).split(X, y):
        other = y.copy()
        other[test] = rng.permutation(y[test])[::-1]
        assert np.array_equal(fit_hidden(clf, X, y, test).coef_, fit_hidden(clf, X, other, test).coef_)
        assert np.array_equal(clone(clf).fit(X[train], y[train]).coef_, clone(clf).fit(X[train], other[train]).coef_)
