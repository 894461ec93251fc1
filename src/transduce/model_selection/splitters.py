"""Splits of data with unlabelled rows: every training set has all of them, and a label of every class."""

from collections.abc import Iterable, Iterator
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.model_selection import BaseCrossValidator

from transduce.arrays import Array
from transduce.labels.classes import warn_inner_nodes
from transduce.labels.encode import find_full_labels
from transduce.labels.missing import AUTO
from transduce.model_selection.hidden_labels import class_codes, hide
from transduce.validation import random_generator


@dataclass(eq=False, repr=False)
class HiddenLabelSplit(BaseCrossValidator):  # type: ignore[misc]
    """Cross-validation folds of the labelled rows; unlabelled rows are always in training and never in a test set.

    GridSearchCV and cross_val_score pass y[train] to fit unchanged, so test rows are left out of train: their labels
    would leak. To keep them in training as unlabelled rows, fit on all rows with `hidden(y, test)`.

    Each labelled row is tested once in each repeat, except for partial labels and the only label of a class: every
    class has a label in every training set.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2.
    n_repeats : int, default=1
        Number of times that the rows are split into folds.
    unlabeled : object, default="auto"
        As in TransductiveClassifier.
    taxonomy : object, default=None
        As in TransductiveClassifier.
    stratified : bool, default=True
        Whether the labels of each class are spread evenly over the folds.
    random_state : int, RandomState or None, default=None
        Seed of the folds.

    Examples
    --------
    >>> X, y = np.eye(7), ["tea", "", "tea", "coffee", "", "coffee", "cocoa"]
    >>> split = HiddenLabelSplit(2, random_state=0)
    >>> for train, test in split.split(X, y):
    ...     print(train, test, split.hidden(y, test).tolist())
    [1 2 4 5 6] [0 3] [None, '', 'tea', None, '', 'coffee', 'cocoa']
    [0 1 3 4 6] [2 5] ['tea', '', None, 'coffee', '', None, 'cocoa']
    """

    n_splits: int = 5
    _: KW_ONLY
    n_repeats: int = 1
    unlabeled: object = AUTO
    taxonomy: object = None
    stratified: bool = True
    random_state: object = None

    def __post_init__(self) -> None:
        for name, least in (("n_splits", 2), ("n_repeats", 1)):
            value = getattr(self, name)
            if not isinstance(value, Integral) or value < least:
                raise ValueError(f"{name} must be an integer of at least {least}, but is {value!r}.")

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of splits.

        Parameters
        ----------
        X, y, groups : object, default=None
            Ignored.

        Returns
        -------
        int
            n_splits · n_repeats.
        """
        return int(self.n_splits * self.n_repeats)

    def hidden(self, y: Any, test: Any) -> Array:
        """Copy y with the rows of a test set unlabelled, as `hide` does.

        Parameters
        ----------
        y : array-like of shape (n_rows,)
            Labels.
        test : array-like
            Indices of the rows to hide, or a boolean mask.

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels to fit with.
        """
        return hide(y, test, self.unlabeled)

    def _iter_test_indices(self, X: Any = None, y: Any = None, groups: Any = None) -> Iterator[Array]:
        if y is None:
            raise ValueError("HiddenLabelSplit needs y to know which rows are labelled, but y is None.")
        values, labeled = find_full_labels(y, self.unlabeled, self.taxonomy)
        rows, (names, codes) = np.flatnonzero(labeled), class_codes(values[labeled])
        if self.taxonomy is None:
            warn_inner_nodes(names)
        n_testable = count_testable(codes)
        if n_testable < self.n_splits:
            limit = f"{n_testable}, the number of labels that are not the only one of their class"
            advice = "Lower it, or label more rows."
            raise ValueError(f"n_splits must be at most {limit}, but is {self.n_splits}. {advice}")
        rng = np.random.default_rng(random_generator(self.random_state).randint(2**31 - 1))
        for _ in range(self.n_repeats):
            folds = assign_folds(codes, self.n_splits, self.stratified, rng)
            for fold in range(self.n_splits):
                yield rows[folds == fold]


def rows_to_hide(cv: Any, X: Any, values: Array, full: Array, seed: int) -> list[Array]:
    """Return the rows to hide in each split of `cv`: those of the test set with a full label, by the mask `full`."""
    codes = np.full(values.size, -1)
    codes[full] = class_codes(values[full])[1]
    if isinstance(cv, Integral) and int(cv) >= 2:
        n_splits = min(int(cv), count_testable(codes[full]))
        pairs = HiddenLabelSplit(n_splits, random_state=seed).split(codes, codes)
    else:
        pairs = cv.split(X, values) if hasattr(cv, "split") and not isinstance(cv, str) else cv
    if isinstance(pairs, str) or not isinstance(pairs, Iterable):
        raise ValueError(f"cv must be a number of folds from 2, a splitter, or pairs (train, test), but is {cv!r}.")
    tests = [test[full[test]] for test in (np.arange(values.size)[test] for _, test in pairs)]
    if not tests:
        raise ValueError("cv must have at least one split, but has none. Pass a number of folds from 2.")
    n_labeled = np.bincount(codes[full])
    for number, test in enumerate(tests):
        if not test.size:
            raise ValueError(f"split {number} of cv has no labelled row in its test set. Label more rows.")
        if np.any(np.bincount(codes[test], minlength=n_labeled.size) >= n_labeled):
            raise ValueError(f"split {number} of cv hides all labels of a class. Use HiddenLabelSplit.")
    return tests


def count_testable(codes: Array) -> int:
    """Count the labels of classes with two or more; raise an error if there are none."""
    sizes = np.bincount(codes, minlength=1)
    if sizes.max() < 2:
        found = f"y has {codes.size} labels of as many classes"
        raise ValueError(f"at least one class needs two labels, one of them to hide, but {found}. Label more rows.")
    return int(sizes[sizes > 1].sum())


def assign_folds(codes: Array, n_splits: int, stratified: bool, rng: np.random.Generator) -> Array:
    """Assign rows of these classes to folds in turn; -1 stays in training."""
    sizes = np.bincount(codes)
    order = rng.permutation(np.flatnonzero(sizes[codes] > 1))
    if stratified:
        ranks = rng.permutation(sizes.size)
        order = order[np.argsort(ranks[codes[order]], kind="stable")]
    folds = np.full(codes.size, -1)
    folds[order] = np.arange(order.size) % n_splits
    for k in np.flatnonzero(sizes > 1):
        rows = np.flatnonzero(codes == k)
        if np.all(folds[rows] == folds[rows[0]]):  # not if stratified
            folds[rows[0]] = -1
    return folds
