"""Rows that fit no class: one more column in a last label step."""

import numpy as np
import pytest

from transduce import TransductiveClassifier, solve_labels
from transduce.class_prior.belief import Belief
from transduce.class_prior.bounds import Bounds
from transduce.class_prior.groups import Groups
from transduce.class_prior.rounding import outlier_counts
from transduce.history import FitStatus
from transduce.label_step import LabelProblem


def far_rows(rng: np.random.Generator, K: int = 2, n: int = 60, n_far: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Rows of length 1: K classes with twenty words each, and rows with words of their own, which are labelled −2."""
    truth = np.repeat([*range(K), -2], [*[n] * K, n_far])
    topic = np.concatenate((truth[: K * n], K + np.arange(n_far)))
    X = np.zeros((truth.size, 20 * (K + n_far)))
    for i, k in enumerate(topic):
        X[i, 20 * k + rng.choice(20, 8, replace=False)] = 1.0
    return X / np.sqrt(8.0), truth


def given(truth: np.ndarray) -> np.ndarray:
    y = np.full(truth.size, -1)
    for k in range(truth.max() + 1):
        y[np.flatnonzero(truth == k)[:5]] = k
    return y


def fitted(fraction, alpha=0.1) -> tuple[TransductiveClassifier, np.ndarray]:
    X, truth = far_rows(np.random.default_rng(0))
    clf = TransductiveClassifier(outlier_fraction=fraction, alpha=alpha, annealing="paper", random_state=0)
    return clf.fit(X, given(truth)), truth


def test_rows_far_from_every_class_stay_without_a_label():
    clf, truth = fitted(10 / 120)
    assert np.array_equal(clf.transduction_ == -1, truth == -2)
    assert clf.class_counts_.tolist() == [55, 55]


def test_a_range_sets_doubtful_rows_aside_up_to_its_end():
    for n_most in (3, 10):
        clf, truth = fitted((0, n_most / 120), alpha=0.3)
        aside = clf.transduction_ == -1
        assert aside.sum() == n_most
        assert np.all(truth[aside] == -2)
    clf, _ = fitted((0, 10 / 120), alpha=0.03)  # every row is far from doubtful
    assert np.count_nonzero(clf.transduction_ == -1) <= 1


def test_without_the_parameter_every_row_gets_a_class():
    X, truth = far_rows(np.random.default_rng(0))
    clf = TransductiveClassifier(annealing="paper", random_state=0).fit(X, given(truth))
    assert set(clf.transduction_.tolist()) == {0, 1}


@pytest.mark.parametrize(("names", "mark"), [(["a", "b"], ""), ([0, 1], -1), ([("a",), ("b",)], None)])
def test_rows_without_a_class_are_marked_as_in_y(names, mark):
    X, truth = far_rows(np.random.default_rng(1))
    y = np.empty(truth.size, dtype=object)
    y[:] = [None if k < 0 else names[k] for k in given(truth)]
    clf = TransductiveClassifier(
        outlier_fraction=10 / 120,
        taxonomy=[("a",), ("b",)] if mark is None else None,
        annealing="paper",
        random_state=0,
    ).fit(X, y)
    assert clf.transduction_.tolist().count(mark) == 10


def test_new_rows_below_the_score_of_the_outliers_get_no_class():
    clf, _ = fitted(10 / 120)
    X, new_truth = far_rows(np.random.default_rng(5))
    assert np.array_equal(clf.predict(X) == -1, new_truth == -2)
    clf.set_params(outlier_fraction=None).fit(X, given(new_truth))
    assert clf.outlier_score_ is None
    assert set(clf.predict(X).tolist()) == {0, 1}


def test_new_rows_of_several_classes_are_compared_by_their_best_score():
    X, truth = far_rows(np.random.default_rng(0), 3)
    y = given(truth)
    clf = TransductiveClassifier(outlier_fraction=10 / 175, alpha=0.1, annealing="paper", random_state=0).fit(X, y)
    assert np.array_equal(clf.transduction_ == -1, truth == -2)
    new, new_truth = far_rows(np.random.default_rng(5), 3)
    assert np.array_equal(clf.predict(new) == -1, new_truth == -2)


def test_nothing_to_set_aside_labels_every_new_row():
    clf, _ = fitted(0.0)
    assert clf.outlier_score_ == -np.inf
    assert -1 not in clf.predict(far_rows(np.random.default_rng(5))[0])


def test_exact_sizes_are_met_by_the_rows_that_get_a_class():
    X, truth = far_rows(np.random.default_rng(0))
    clf = TransductiveClassifier(
        class_prior={0: 48, 1: 72}, outlier_fraction=0.25, alpha=0.1, annealing="paper", random_state=0
    ).fit(X, given(truth))
    assert clf.class_counts_.tolist() == [36, 54]


def test_rows_with_a_partial_label_get_a_class_while_others_can_be_set_aside():
    X, truth = far_rows(np.random.default_rng(0), 3)
    y = np.array([None if k < 0 else int(k) for k in given(truth)], dtype=object)
    far = np.flatnonzero(truth == -2)
    for row in far[:5]:
        y[row] = {0, 1}
    for fraction, n_partial in ((10 / 175, 0), (172 / 175, 2)):
        clf = TransductiveClassifier(outlier_fraction=fraction, alpha=0.1, annealing="paper", random_state=0).fit(X, y)
        aside = clf.transduction_ == -1
        assert aside.sum() == round(175 * fraction)
        assert aside[far[:5]].sum() == n_partial


def test_confidence_of_the_accuracy_estimate_is_that_of_rows_with_a_class():
    X, truth = far_rows(np.random.default_rng(0))
    with_all = TransductiveClassifier(annealing="paper", random_state=0).fit(X, given(truth))
    clf = TransductiveClassifier(annealing="paper", random_state=0, outlier_fraction=10 / 120).fit(X, given(truth))
    assert clf.accuracy_estimate_.mean >= with_all.accuracy_estimate_.mean


@pytest.mark.parametrize(
    ("fractions", "n_rows", "counts"),
    [((0.1, 0.1), 30, (3, 3)), ((0.0, 0.05), 30, (0, 2)), ((7 / 143,) * 2, 143, (7, 7))],
)
def test_fractions_are_whole_rows(fractions, n_rows, counts):
    assert outlier_counts(fractions, n_rows) == counts


@pytest.mark.parametrize("fraction", [-0.1, 1.0, (0.5, 0.2), "many", (0.1,), np.nan])
def test_fractions_that_make_no_sense_are_refused(fraction):
    X, truth = far_rows(np.random.default_rng(0))
    with pytest.raises(ValueError, match="outlier_fraction must be a fraction"):
        TransductiveClassifier(outlier_fraction=fraction, annealing="paper").fit(X, given(truth))


def test_bounds_with_outliers_scale_classes_and_groups():
    groups = Groups(above=[4, 3, 3, 4], low=[20], high=[50], names=("both",))
    belief = Belief.create([40.0, 30.0, 30.0], 2.0)
    bounds = Bounds(np.array([40, 0, 0]), np.array([50, 100, 100]), groups, belief).with_outliers(100, 10, 20)
    low, high, nested, believed = bounds
    assert low.tolist() == [32, 0, 0, 10]
    assert high.tolist() == [45, 90, 90, 20]
    assert nested.members(4).tolist() == [[False, True, True, False]]
    assert (nested.low.tolist(), nested.high.tolist()) == ([16], [45])
    assert believed is None
    costs = np.random.default_rng(0).normal(size=(100, 4))
    answer = solve_labels(costs, (low, high), groups=nested)
    assert answer.gap == pytest.approx(0.0, abs=1e-9)
    assert 10 <= np.bincount(answer.labels, minlength=4)[3] <= 20
    assert LabelProblem(costs, *bounds).n_classes == 4


def test_other_rows_keep_their_labels_if_no_size_is_exact():
    X, truth = far_rows(np.random.default_rng(2), 3)
    every, some = (
        TransductiveClassifier(annealing="paper", random_state=0, outlier_fraction=fraction).fit(X, given(truth))
        for fraction in (None, 0.2)
    )
    left = some.transduction_ != -1
    assert np.array_equal(every.transduction_[left], some.transduction_[left])
    best = some.decision_function(X).max(axis=1)
    assert np.array_equal(some.predict(X) == -1, best < some.outlier_score_)


def wide_rows(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of three classes with few words of their own and many of chance, so that most of a score is a row's own."""
    topic, d = rng.integers(3, size=n), 3000
    X = np.zeros((n, d))
    for i in range(n):
        X[i, 20 * topic[i] + rng.choice(20, 2, replace=False)] = 1.0
        X[i, 60 + rng.choice(d - 60, rng.integers(4, 16), replace=False)] = 1.0
    return X / np.linalg.norm(X, axis=1, keepdims=True), topic


@pytest.mark.parametrize(
    "loss",
    ["hinge", pytest.param("squared_hinge", marks=pytest.mark.slow), pytest.param("maxent", marks=pytest.mark.slow)],
)
def test_as_many_new_rows_get_no_class_as_were_stated(loss):
    """Few rows with many features, where scores of training rows are far above those of new rows."""
    new, fractions, by_training_scores = wide_rows(np.random.default_rng(100), 2000)[0], [], []
    for seed in range(3):
        X, truth = wide_rows(np.random.default_rng(seed), 400)
        y = np.where(np.arange(400) < 60, truth, -1)
        clf = TransductiveClassifier(loss, outlier_fraction=0.1, annealing="paper", random_state=0).fit(X, y)
        fractions.append(np.mean(clf.predict(new) == -1))
        limit = np.quantile(clf.decision_function(X[60:]).max(axis=1), 0.1)
        by_training_scores.append(np.mean(clf.decision_function(new).max(axis=1) < limit))
    assert 0.1 / 1.5 < np.mean(fractions) < 0.1 * 1.5
    assert min(by_training_scores) > 0.5


def test_an_interrupt_after_the_fit_keeps_its_labels(monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("transduce.engines.local.held_out_scores", interrupt)
    clf, _ = fitted(10 / 120)
    assert clf.termination_condition_ == FitStatus.INTERRUPTED.value
    assert np.count_nonzero(clf.transduction_ == -1) == 10
