"""Prior diagnostics: which class sizes cause a warning, and the figures in it."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from helpers.class_sizes import balanced_labels

from transduce import TransductiveClassifier, base
from transduce.class_prior.bounds import Bounds
from transduce.class_prior.diagnostics import (
    HARMFUL_DISAGREEMENT,
    HARMFUL_DISTANCE,
    diagnose_prior,
    warn_harmful_prior,
)
from transduce.errors import PriorWarning
from transduce.history import FitStatus


def problem():
    rng = np.random.default_rng(0)
    X = np.vstack((rng.normal([3, 0], 1, (200, 2)), rng.normal([0, 3], 1, (200, 2))))
    y = np.full(400, -1)
    y[:28], y[-32:] = 0, 1
    return X, y


def test_sizes_that_contradict_the_labels_cause_a_warning_with_figures():
    X, y = problem()
    with pytest.warns(
        PriorWarning, match=r"(0|1) should get (5|95)\.0% of the rows, but it has (53\.3|46\.7)% of the 60 labels"
    ):
        model = TransductiveClassifier(class_prior={0: "=95%", 1: "=5%"}, annealing="paper", random_state=0).fit(X, y)
    assert model.prior_diagnostics_.disagreement > HARMFUL_DISAGREEMENT
    assert (
        model.prior_diagnostics_.suggested_ranges()[0][0]
        <= 0.5
        < 0.95
        <= model.prior_diagnostics_.suggested_ranges()[0][1]
    )


@pytest.mark.parametrize("prior", [[300, 40], {0: 300, 1: None}])
def test_suggested_ranges_are_in_rows_if_sizes_were_stated_in_rows(prior):
    X, y = problem()
    with pytest.warns(PriorWarning, match=r"\. A range of \d+-\d+ rows would fit"):
        model = TransductiveClassifier(class_prior=prior, annealing="paper", random_state=0).fit(X, y)
    low, high = model.prior_diagnostics_.suggested_ranges()[0]
    assert isinstance(low, int)
    assert (low <= 170, high) == (True, 300)
    assert TransductiveClassifier(class_prior={0: (low, high), 1: None}).fit(X, y).class_counts_[0] >= low


def test_suggested_ranges_are_rounded_outwards():
    bounds = Bounds(np.array([2000, 1000]), np.array([2000, 1000]))
    found = diagnose_prior(bounds, np.array([1, 2]), np.array([1, 2999]), np.zeros(2))
    assert found.suggested_ranges() == [(0.0, 0.667), (0.333, 1.0)]
    assert replace(found, in_rows=True).suggested_ranges() == [(1, 2000), (1000, 2999)]
    assert replace(found, n_rows=1000, in_rows=True).suggested_ranges()[0] == (0, 667)


def drinks(n=50):
    names = np.array(["hot/tea", "hot/coffee", "cold/milk", "cold/juice"])
    truth = np.repeat(np.arange(4), n)
    X = 3 * np.eye(4)[truth] + np.random.default_rng(0).normal(size=(4 * n, 4))
    y = np.where(np.arange(4 * n) % n < np.array([13, 17, 18, 12])[truth], names[truth], "").astype(object)
    return X, y, names


@pytest.mark.parametrize(
    ("prior", "sentence"),
    [
        (
            {"hot": "=95%", "cold": "=5%"},
            r"'(hot|cold)' should get (95|5)\.0% of the rows, but it has 50\.0% of",
        ),
        ({"hot": 0.95, "cold": 0.05}, r"'(hot|cold)' should get (77|4)\.\d% to (100|6)\.\d% of the rows"),
        (
            {"hot": 133, "cold/milk": None, "cold/juice": None},
            r"'hot' should get 95\.0%.*\. A range of \d\d-133 rows would fit",
        ),
        ({("hot",): (0.9, 0.95), "cold": None}, r"'hot' should get 90\.0% to 95\.0%"),
        ({"hot": None, "hot/tea": "=70%", "cold": None}, r"'hot/tea' should get 70\.0%"),
    ],
)
def test_branch_sizes_that_contradict_the_labels_cause_a_warning(prior, sentence):
    X, y, names = drinks()
    with pytest.warns(PriorWarning, match=sentence):
        model = TransductiveClassifier(
            class_prior=prior, taxonomy=names, annealing="paper", alpha=1.0, random_state=0
        ).fit(X, y)
    assert model.prior_diagnostics_.disagreement > HARMFUL_DISAGREEMENT
    assert len(model.prior_diagnostics_.suggested_ranges()) == 4 + sum(
        name not in names and size is not None for name, size in prior.items()
    )


def test_branch_sizes_that_agree_with_the_labels_cause_no_warning():
    X, y, names = drinks()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for prior in ({"hot": 0.5, "cold": 0.5}, {"hot": (0.4, 0.6), "cold": None, "hot/tea": 0.25}):
            TransductiveClassifier(class_prior=prior, taxonomy=names, annealing="paper", alpha=1.0, random_state=0).fit(
                X, y
            )


@pytest.mark.parametrize("prior", [{0: 0.5, 1: 0.5}, {0: (0.3, 0.7), 1: None}, "labeled", "estimate"])
def test_sizes_that_agree_with_the_labels_cause_no_warning(prior):
    X, y = problem()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = TransductiveClassifier(class_prior=prior, annealing="paper", random_state=0).fit(X, y)
    assert model.prior_diagnostics_.predicted.sum() == pytest.approx(1.0)


def test_sizes_that_contradict_the_predictions_cause_a_warning():
    X, _, marked = balanced_labels(np.random.default_rng(1))
    with pytest.warns(
        PriorWarning,
        match=r"and the data disagree: [01] should get (95|5)\.0% of the rows, but the supervised classifier gives it",
    ) as caught:
        model = TransductiveClassifier(class_prior={0: "=95%", 1: "=5%"}, annealing="paper", random_state=0).fit(
            X, marked
        )
    assert "say nothing about class sizes" in str(caught[0].message)
    assert model.prior_diagnostics_.distance == pytest.approx(0.95 - model.prior_diagnostics_.predicted[0], abs=1e-3)
    assert model.prior_diagnostics_.distance > HARMFUL_DISTANCE


def test_predicted_fractions_are_those_of_the_supervised_classifier():
    X, y = problem()
    with pytest.warns(PriorWarning, match="disagree") as caught:
        model = TransductiveClassifier(class_prior={0: "=95%", 1: "=5%"}, annealing="paper", random_state=0).fit(X, y)
    alone = TransductiveClassifier(random_state=0, price_shift=False).fit(X[y >= 0], y[y >= 0])
    fractions = np.bincount(alone.predict(X[y < 0])) / (y < 0).sum()
    assert model.prior_diagnostics_.predicted == pytest.approx(fractions, abs=0.01)
    assert f"the supervised classifier gives it {model.prior_diagnostics_.predicted[1]:.1%}" in str(caught[0].message)


def test_the_supervised_classifier_is_fitted_only_for_doubtful_sizes(monkeypatch):
    X, y = problem()
    monkeypatch.setattr(base, "supervised_counts", lambda *rest: pytest.fail("no size is doubtful"))
    for prior in ({0: 0.5, 1: 0.5}, "labeled", "estimate"):
        TransductiveClassifier(class_prior=prior, annealing="paper", random_state=0).fit(X, y)


def test_an_interrupt_during_the_diagnosis_keeps_the_fit(monkeypatch):
    def interrupt(*rest):
        raise KeyboardInterrupt

    X, y = problem()
    monkeypatch.setattr(base, "supervised_counts", interrupt)
    with pytest.warns(PriorWarning):
        model = TransductiveClassifier(class_prior={0: "=95%", 1: "=5%"}, annealing="paper", random_state=0).fit(X, y)
    assert model.termination_condition_ == FitStatus.INTERRUPTED.value
    assert model.prior_diagnostics_.distance == 0.0


def test_up_to_three_classes_are_named_the_worst_first():
    counts, stated = np.array([100, 30, 10, 30, 30]), np.array([10, 30, 60, 50, 50])
    found = diagnose_prior(Bounds(stated, stated), counts, stated, np.zeros(5))
    assert found.farthest == (0, 2)  # the others add next to nothing
    found = diagnose_prior(Bounds(stated[::-1], stated[::-1]), counts, stated, np.zeros(5))
    assert len(found.farthest) <= 3
    with pytest.warns(PriorWarning, match=r"'b0' should get 5\.0%.* would fit\. 'b2' should .* would fit\. If"):
        warn_harmful_prior(
            diagnose_prior(Bounds(stated, stated), counts, stated, np.zeros(5)),
            np.array([f"b{k}" for k in range(5)]),
            200,
            stacklevel=1,
        )


def test_a_narrow_range_is_one_percentage():
    bounds = Bounds(np.array([1000, 98_999]), np.array([1001, 99_000]))
    found = diagnose_prior(bounds, np.array([34, 26]), np.array([50_000, 50_000]), np.zeros(2))
    with pytest.warns(PriorWarning, match=r"'a' should get 1\.0% of the rows") as caught:
        warn_harmful_prior(found, np.array(["a", "b"]), 60, stacklevel=1)
    assert "1.0% to 1.0%" not in str(caught[0].message)


def test_a_class_of_unknown_size_is_no_conflict():
    bounds = Bounds(np.array([95, 0]), np.array([95, 100]))
    assert diagnose_prior(bounds, np.array([30, 30]), np.array([50, 50]), np.zeros(2)).farthest == (0,)


def test_balanced_labels_do_not_contradict_stated_sizes():
    X, y, marked = balanced_labels(np.random.default_rng(1))
    sizes = np.bincount(y[marked < 0])
    with warnings.catch_warnings():
        warnings.simplefilter("error", PriorWarning)
        model = TransductiveClassifier(class_prior=sizes, annealing="paper", random_state=0).fit(X, marked)
    assert model.prior_diagnostics_.balanced_labels
    assert model.prior_diagnostics_.disagreement > HARMFUL_DISAGREEMENT
