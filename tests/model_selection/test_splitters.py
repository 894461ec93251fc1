"""HiddenLabelSplit: unlabelled rows are always in training, and every class has a label in every training set."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transduce.labels.partial import RuledOut
from transduce.model_selection import HiddenLabelSplit


@st.composite
def some_labels(draw):
    """Integers with -1 for unlabelled, and at least two rows of class 0."""
    sizes = draw(st.lists(st.integers(1, 9), min_size=1, max_size=6))
    sizes[0] += 1
    y = np.concatenate((np.repeat(np.arange(len(sizes)), sizes), np.full(draw(st.integers(0, 12)), -1)))
    return np.random.default_rng(draw(st.integers(0, 99))).permutation(y)


@settings(max_examples=60, deadline=None)
@given(some_labels(), st.integers(2, 5), st.integers(1, 3), st.booleans(), st.integers(0, 3))
def test_splits_keep_every_unlabelled_row_and_a_label_of_every_class(y, n_splits, n_repeats, stratified, seed):
    sizes = np.bincount(y[y >= 0])
    n_testable = sizes[sizes > 1].sum()
    split = HiddenLabelSplit(n_splits, n_repeats=n_repeats, stratified=stratified, random_state=seed)
    if n_testable < n_splits:
        with pytest.raises(ValueError, match=f"n_splits must be at most {n_testable}"):
            list(split.split(y, y))
        return
    pairs = list(split.split(y, y))
    assert len(pairs) == split.get_n_splits() == n_splits * n_repeats
    for train, test in pairs:
        assert test.size
        assert np.all(y[test] >= 0)
        assert np.all(np.isin(np.flatnonzero(y < 0), train))
        assert np.array_equal(np.sort(np.concatenate((train, test))), np.arange(y.size))
        assert set(y[train][y[train] >= 0]) == set(y[y >= 0])
        hidden = split.hidden(y, test)
        assert np.all(hidden[test] == -1)
        assert np.array_equal(hidden[train], y[train])
    for repeat in range(n_repeats):
        tested = np.concatenate([test for _, test in pairs[repeat * n_splits : (repeat + 1) * n_splits]])
        assert np.unique(tested).size == tested.size
        if stratified:
            assert tested.size == n_testable


def test_stratified_folds_have_equal_class_counts():
    y = np.repeat([0, 1, 2, -1], [20, 10, 5, 100])
    for _, test in HiddenLabelSplit(5, random_state=0).split(y, y):
        assert np.bincount(y[test]).tolist() == [4, 2, 1]


def test_repeats_differ_and_seeds_repeat():
    y = np.repeat([0, 1, -1], [10, 10, 5])
    folds = [tuple(test) for _, test in HiddenLabelSplit(2, n_repeats=2, random_state=3).split(y, y)]
    again = [tuple(test) for _, test in HiddenLabelSplit(2, n_repeats=2, random_state=3).split(y, y)]
    assert folds == again
    assert folds[0] not in folds[2:]


@pytest.mark.parametrize(
    ("y", "parameters", "message"),
    [
        ([0, -1, -1], {}, "at least one class needs two labels.* Label more rows."),
        ([0, 1, 2, -1], {}, "y has 3 labels"),
        ([-1, -1], {}, "y has 0 labels"),
        ([0, 0, 1, -1], {}, "n_splits must be at most 2.* Lower it, or label more rows."),
        (None, {}, "needs y"),
        ([0, 0], {"n_splits": 1}, "n_splits must be an integer of at least 2, but is 1"),
        ([0, 0], {"n_splits": 2.5}, "n_splits must be an integer"),
        ([0, 0], {"n_repeats": 0}, "n_repeats must be an integer of at least 1"),
    ],
)
def test_impossible_splits_are_errors(y, parameters, message):
    with pytest.raises(ValueError, match=message) as error:
        list(HiddenLabelSplit(**parameters).split(np.zeros((len(y or [0]), 1)), y))
    assert "\n" not in str(error.value)


def test_partial_labels_are_never_tested():
    y = np.empty(6, dtype=object)
    y[:] = ["a", "a", "b", "b", frozenset("ab"), RuledOut("a")]
    tested = np.concatenate([test for _, test in HiddenLabelSplit(2, random_state=0).split(y, y)])
    assert sorted(tested) == [0, 1, 2, 3]


def test_inner_nodes_without_a_taxonomy_raise_a_warning():
    y = ["hot/tea", "hot/tea", "hot/soup", "hot/soup", "hot", "hot"]
    with pytest.warns(UserWarning, match="Pass taxonomy= to make it a partial label"):
        list(HiddenLabelSplit(2, random_state=0).split(np.eye(6), y))
    list(HiddenLabelSplit(2, random_state=0, taxonomy=["hot/tea", "hot/soup"]).split(np.eye(6), y))
