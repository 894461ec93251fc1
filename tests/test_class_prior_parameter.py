"""The parameter class_prior of a classifier: names, ranges, counts and words are read, misspellings refused."""

import numpy as np
import pandas as pd
import pytest

from transduce import TransductiveClassifier
from transduce.errors import LabelWarning
from transduce.testing import blobs, true_counts


def test_a_pandas_series_is_a_prior_by_name():
    X, _, y = blobs()
    model = TransductiveClassifier(class_prior=pd.Series({2: "=50%", 1: "=25%", 0: "=25%"}), random_state=0).fit(X, y)
    assert model.class_counts_.tolist() == [27, 27, 54]


def test_names_in_the_prior_may_be_longer_than_those_in_y():
    X, _, y = blobs()
    names = np.where(y < 0, "", np.array(["a", "b", "c"])[y])
    prior = dict.fromkeys(["a", "b", "c", "a longer name"], "=25%")
    model = TransductiveClassifier(class_prior=prior, random_state=0).fit(X, names)
    assert model.classes_.tolist() == ["a", "a longer name", "b", "c"]
    assert model.class_counts_.tolist() == [27, 27, 27, 27]


def test_ranges_in_the_prior_hold_for_labels_and_distributions():
    rng = np.random.default_rng(0)
    X = np.vstack((rng.normal([3, 0], 1, (70, 2)), rng.normal([0, 3], 1, (50, 2))))
    y = np.full(120, -1)
    y[[0, 1, 118, 119]] = 0, 0, 1, 1
    free = TransductiveClassifier(class_prior={0: None, 1: None}, annealing="paper", random_state=0).fit(X, y)
    assert np.all(np.abs(free.class_counts_ - [68, 48]) <= 10)
    for low, high in ((0.1, 0.3), (0.7, 0.9)):
        prior = {0: (low, high), 1: None}
        held = TransductiveClassifier(class_prior=prior, annealing="paper", random_state=0).fit(X, y)
        assert low * 116 <= held.class_counts_[0] <= high * 116
        assert low * 116 - 1 <= held.label_distributions_[y < 0, 0].sum() <= high * 116 + 1


def test_a_misspelt_class_in_the_prior_is_refused_if_the_class_it_resembles_is_left_out():
    X, _, y = blobs()
    names = np.where(y < 0, "", np.array(["tea", "milk", "coffee"])[y])
    for prior in ({"tea": 0.5, "mlk": 0.3, "coffee": 0.2}, {"Milk": 0.3}):
        with pytest.raises(ValueError, match=r"names '(mlk|Milk)', which no row is .*\. Did you mean 'milk'\?"):
            TransductiveClassifier(class_prior=prior).fit(X, names)
    with pytest.warns(LabelWarning, match="'Milk' is in class_prior"):
        model = TransductiveClassifier(class_prior={"milk": 0.3, "Milk": 0.1}, annealing="paper").fit(X, names)
    assert model.classes_.tolist() == ["Milk", "coffee", "milk", "tea"]


def test_a_name_in_the_prior_that_resembles_no_other_is_a_class():
    X, _, y = blobs()
    names = np.where(y < 0, "", np.array(["class 1", "class 2", "coffee"])[y])
    for name in ("class 3", "juice"):
        model = TransductiveClassifier(class_prior={"coffee": 0.3, name: 0.1}, annealing="paper").fit(X, names)
        assert name in model.classes_


def test_equal_sizes_and_sizes_as_text():
    X, _, y = blobs()
    equal, text, numbers = (
        TransductiveClassifier(class_prior=prior, annealing="paper", random_state=0).fit(X, y)
        for prior in ("equal", ["50%", "1/4", "25 %"], [0.5, 0.25, 0.25])
    )
    assert equal.class_counts_.sum() == (y < 0).sum()
    assert np.all(np.abs(equal.class_counts_ - 36) <= 6)
    assert text.transduction_.tolist() == numbers.transduction_.tolist()


def test_counts_may_include_the_labelled_rows():
    X, truth, y = blobs()
    one, other = (
        TransductiveClassifier(class_prior=prior, annealing="paper", random_state=0).fit(X, y)
        for prior in (true_counts(truth, y), np.bincount(truth))
    )
    assert one.class_counts_.tolist() == other.class_counts_.tolist() == true_counts(truth, y).tolist()
