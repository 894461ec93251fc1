"""Splits of data with unlabelled rows: all of those are in every training set, and no class loses its last label."""

from collections.abc import Iterable, Iterator
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import check_random_state

from transduce.labels.missing import AUTO
from transduce.labels.similar_names import warn_inner_nodes
from transduce.model_selection.hidden_labels import class_codes, find_certain, hide

Array = NDArray[Any]


class HiddenLabelSplit(BaseCrossValidator):  # type: ignore[misc]
    """Folds of the labelled rows; the unlabelled ones are always in training and never in a test.

    GridSearchCV and cross_val_score hand y[train] to fit as it is, so the rows of a test must be left out of train, or
    their labels would leak. To keep them in training as unlabelled rows, which is what they stand for, fit on all rows
    with `hidden(y, test)`; TransductiveClassifierCV does.

    Rows of a class with one label are never tested, nor are those that y leaves several classes open for, and every
    class keeps a label in every training set; each other labelled row is tested once a repeat (without `stratified`,
    one of a class whose rows all fall into one fold stays in training).

    Parameters
    ----------
    n_splits : folds, 2 or more; n_repeats : how often the rows are dealt into folds anew

    unlabeled, taxonomy : how y is to be read, as for TransductiveClassifier

    stratified : whether the labels of each class are spread evenly over the folds

    random_state : seed of the order in which rows are dealt

    >>> X, y = np.eye(7), ["tea", "", "tea", "coffee", "", "coffee", "cocoa"]
    >>> split = HiddenLabelSplit(2, random_state=0)
    >>> for train, test in split.split(X, y):
    ...     print(train, test, split.hidden(y, test).tolist())
    [1 2 4 5 6] [0 3] [None, '', 'tea', None, '', 'coffee', 'cocoa']
    [0 1 3 4 6] [2 5] ['tea', '', None, 'coffee', '', None, 'cocoa']
    """

    def __init__(
        self,
        n_splits: int = 5,
        *,
        n_repeats: int = 1,
        unlabeled: object = AUTO,
        taxonomy: object = None,
        stratified: bool = True,
        random_state: object = None,
    ) -> None:
        for name, value, least in (("n_splits", n_splits, 2), ("n_repeats", n_repeats, 1)):
            if not isinstance(value, Integral) or value < least:
                raise ValueError(f"{name} must be a whole number, {least} or more, but is {value!r}.")
        self.n_splits = n_splits
        self.n_repeats = n_repeats
        self.unlabeled = unlabeled
        self.taxonomy = taxonomy
        self.stratified = stratified
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """How many splits there will be: folds times repeats."""
        return int(self.n_splits * self.n_repeats)

    def hidden(self, y: Any, test: Any) -> Array:
        """Copy y with the rows of a test unlabelled."""
        return hide(y, test, self.unlabeled)

    def _iter_test_indices(self, X: Any = None, y: Any = None, groups: Any = None) -> Iterator[Array]:
        if y is None:
            raise ValueError("HiddenLabelSplit needs y, to know which rows are labelled, but it is None. Pass it.")
        values, labeled = find_certain(y, self.unlabeled, self.taxonomy)
        rows, (names, codes) = np.flatnonzero(labeled), class_codes(values[labeled])
        if self.taxonomy is None:
            warn_inner_nodes(names)
        n_hideable = count_hideable(codes)
        if n_hideable < self.n_splits:
            raise ValueError(
                f"n_splits must be at most {n_hideable}, the labelled rows that share their class with another, "
                f"but is {self.n_splits}. Lower it, or label more rows."
            )
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        for _ in range(self.n_repeats):
            folds = deal(codes, self.n_splits, self.stratified, rng)
            for fold in range(self.n_splits):
                yield rows[folds == fold]


def rows_to_hide(cv: Any, X: Any, values: Array, certain: Array, seed: int) -> list[Array]:
    """Rows to hide in each split of `cv`, a number of folds, a splitter or pairs (train, test): those with a label.

    certain (n,) says which rows have a label that can be scored.

    >>> values = np.array([1, 1, 0, 0, -1])
    >>> rows_to_hide([([], [0, 4]), ([], [1, 2])], np.eye(5), values, values >= 0, 0)
    [array([0]), array([1, 2])]
    """
    codes = np.full(values.size, -1)
    codes[certain] = class_codes(values[certain])[1]
    if isinstance(cv, Integral) and int(cv) >= 2:
        n_splits = min(int(cv), count_hideable(codes[certain]))
        pairs = HiddenLabelSplit(n_splits, random_state=seed).split(codes, codes)
    else:
        pairs = cv.split(X, values) if hasattr(cv, "split") and not isinstance(cv, str) else cv
    if isinstance(pairs, str) or not isinstance(pairs, Iterable):
        raise ValueError(f"cv must be 2 or more folds, a splitter, or pairs (train, test), but is {cv!r}.")
    tests = [np.arange(values.size)[test] for _, test in pairs]
    tests = [test[certain[test]] for test in tests]
    for number, test in enumerate(tests):
        _check_test(number, np.bincount(codes[certain]), np.bincount(codes[test]))
    return tests


def _check_test(number: int, sizes: Array, hidden: Array) -> None:
    """See that a split hides something, and leaves every class a label."""
    if not hidden.sum():
        raise ValueError(f"cv must hide a labelled row in every split, but split {number} has none. Use more labels.")
    emptied = hidden >= np.maximum(sizes[: hidden.size], 1)
    if np.any(emptied):
        raise ValueError(
            f"cv must leave every class a label, but split {number} hides all of one. Use HiddenLabelSplit."
        )


def count_hideable(codes: Array) -> int:
    """How many labels can be hidden one at a time with another of their class left; an error if there are none.

    >>> count_hideable(np.array([0, 0, 1, 2, 2, 2]))
    5
    """
    sizes = np.bincount(codes, minlength=1)
    if sizes.max() < 2:
        raise ValueError(
            "y must label two rows of at least one class, to hide one and keep the other, "
            f"but labels {codes.size} in all and no class twice. Label more rows."
        )
    return int(sizes[sizes > 1].sum())


def deal(codes: Array, n_splits: int, stratified: bool, rng: np.random.Generator) -> Array:
    """Deal rows of these classes into folds in turn; -1 is for those that stay in training.

    Dealt class after class, c rows go into folds of at most ceil(c / n_splits) < c of them, so that one is left.

    >>> folds = deal(np.array([0, 0, 0, 1, 1, 2]), 2, True, np.random.default_rng(0))
    >>> np.sort(folds[:3]), np.sort(folds[3:5]), folds[5:]
    (array([0, 0, 1]), array([0, 1]), array([-1]))
    """
    sizes = np.bincount(codes)
    order = rng.permutation(np.flatnonzero(sizes[codes] > 1))
    if stratified:
        turns = rng.permutation(sizes.size)
        order = order[np.argsort(turns[codes[order]], kind="stable")]
    folds = np.full(codes.size, -1)
    folds[order] = np.arange(order.size) % n_splits
    for k in np.flatnonzero(sizes > 1):
        rows = np.flatnonzero(codes == k)
        if np.all(folds[rows] == folds[rows[0]]):
            folds[rows[0]] = -1
    return folds
