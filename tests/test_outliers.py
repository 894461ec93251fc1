"""Rows that fit no class: one more column in a last label step."""

import numpy as np
import pytest

from transduce import TransductiveClassifier, solve_labels
from transduce.class_prior.belief import Belief
from transduce.class_prior.bounds import Bounds
from transduce.class_prior.groups import Groups
from transduce.label_step import LabelProblem


def far_rows(rng: np.random.Generator, n: int = 60, n_far: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Rows of length 1: two classes with twenty words each, and rows with words of their own, which are labelled −2."""
    truth = np.repeat([0, 1, -2], [n, n, n_far])
    topic = np.concatenate((truth[: 2 * n], 2 + np.arange(n_far)))
    X = np.zeros((truth.size, 20 * (2 + n_far)))
    for i, k in enumerate(topic):
        X[i, 20 * k + rng.choice(20, 8, replace=False)] = 1.0
    return X / np.sqrt(8.0), truth


def given(truth: np.ndarray) -> np.ndarray:
    y = np.full(truth.size, -1)
    for k in (0, 1):
        y[np.flatnonzero(truth == k)[:5]] = k
    return y


def fitted(fraction) -> tuple[TransductiveClassifier, np.ndarray]:
    X, truth = far_rows(np.random.default_rng(0))
    clf = TransductiveClassifier(outlier_fraction=fraction, alpha=0.1, annealing="paper", random_state=0)
    return clf.fit(X, given(truth)), truth


def test_rows_far_from_every_class_stay_without_a_label():
    clf, truth = fitted(10 / 120)
    assert np.array_equal(clf.transduction_ == -1, truth == -2)
    assert clf.class_counts_.tolist() == [55, 55]


def test_a_range_sets_doubtful_rows_aside_up_to_its_end():
    clf, truth = fitted((0, 10 / 120))
    aside = clf.transduction_ == -1
    assert 1 <= aside.sum() <= 10
    assert np.all(truth[aside] == -2)
    assert fitted((0, 3 / 120))[0].transduction_.tolist().count(-1) == 3


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


@pytest.mark.parametrize("fraction", [-0.1, 1.0, (0.5, 0.2), "many", (0.1,), np.nan])
def test_fractions_that_make_no_sense_are_refused(fraction):
    X, truth = far_rows(np.random.default_rng(0))
    with pytest.raises(ValueError, match="outlier_fraction must be a fraction"):
        TransductiveClassifier(outlier_fraction=fraction, annealing="paper").fit(X, given(truth))


def test_bounds_with_outliers_scale_classes_groups_and_beliefs():
    groups = Groups(above=[4, 3, 3, 4], low=[20], high=[50], names=("both",))
    belief = Belief.create([40.0, 30.0, 30.0], 2.0)
    low, high, nested, believed = Bounds(np.array([40, 0, 0]), np.full(3, 100), groups, belief).with_outliers(
        100, 0, 20
    )
    assert low.tolist() == [32, 0, 0, 0]
    assert high.tolist() == [100, 100, 100, 20]
    assert nested.members(4).tolist() == [[False, True, True, False]]
    assert nested.low.tolist() == [16]
    np.testing.assert_allclose(believed.mean[:3], [36.0, 27.0, 27.0])
    assert believed.strength.tolist() == [2.0, 2.0, 2.0, 0.0]
    costs = np.random.default_rng(0).normal(size=(100, 4))
    answer = solve_labels(costs, (low, high), groups=nested, belief=believed)
    assert answer.gap == pytest.approx(0.0, abs=1e-9)
    assert np.bincount(answer.labels, minlength=4)[3] <= 20
    assert LabelProblem(costs, low, high, nested, believed).n_classes == 4
