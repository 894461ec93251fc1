"""Checks of class sizes: stated as counts, fractions or a mapping, estimated, and refused."""

from typing import Any

import numpy as np

from transduce.testing.problems import N_CLASSES, assert_value_error, blobs, fitted, true_counts


def check_counts_are_met(estimator: Any) -> None:
    """The unlabelled rows get the stated counts."""
    X, truth, y = blobs()
    counts = true_counts(truth, y)
    model = fitted(estimator, X, y, class_prior=counts)
    assert np.array_equal(np.bincount(model.transduction_[y < 0], minlength=N_CLASSES), counts)


def check_counts_are_met_in_a_tree(estimator: Any) -> None:
    """The leaves of a taxonomy get the stated counts."""
    X, truth, y = blobs()
    names = np.array(["a/x", "a/y", "b"], dtype=object)
    counts = true_counts(truth, y)
    prior = dict(zip(names.tolist(), counts.tolist(), strict=True))
    model = fitted(estimator, X, np.where(y < 0, "", names[y]), taxonomy=names.tolist(), class_prior=prior)
    assert [int(np.sum(model.transduction_[y < 0] == name)) for name in names] == counts.tolist()


def check_fractions_equal_counts(estimator: Any) -> None:
    """Counts and the same sizes as fractions give the same labels."""
    X, truth, y = blobs()
    counts = true_counts(truth, y)
    one = fitted(estimator, X, y, class_prior=counts)
    other = fitted(estimator, X, y, class_prior=counts / counts.sum())
    assert np.array_equal(one.transduction_, other.transduction_)


def check_mapping_is_read_by_name(estimator: Any) -> None:
    """The order of a mapping does not matter."""
    X, truth, y = blobs()
    counts = true_counts(truth, y)
    one = fitted(estimator, X, y, class_prior=counts)
    other = fitted(estimator, X, y, class_prior={2: counts[2], 0: counts[0], 1: counts[1]})
    assert np.array_equal(one.transduction_, other.transduction_)


def check_sizes_are_estimated(estimator: Any) -> None:
    """Without class_prior the counts are near the true ones, though every class has the same number of labels."""
    X, truth, y = blobs()
    counts = np.bincount(fitted(estimator, X, y).transduction_[y < 0], minlength=N_CLASSES)
    assert np.all(np.abs(counts - true_counts(truth, y)) <= 9)


def check_class_without_labels(estimator: Any) -> None:
    """A class that only class_prior names gets its rows."""
    X, _, y = blobs()
    y = np.where(y == 2, -1, y)
    model = fitted(estimator, X, y, class_prior={0: 0.5, 1: 0.3, 2: 0.2})
    assert model.classes_.tolist() == [0, 1, 2]
    assert np.sum(model.transduction_[y < 0] == 2) == round(0.2 * (y < 0).sum())


def check_class_of_size_zero(estimator: Any) -> None:
    """A labelled class of size 0 gets no unlabelled row."""
    X, _, y = blobs()
    model = fitted(estimator, X, y, class_prior={0: 0.5, 1: 0.5, 2: 0.0})
    assert not np.any(model.transduction_[y < 0] == 2)


def check_prior_is_ignored_if_all_rows_are_labeled(estimator: Any) -> None:
    """Without unlabelled rows the fit is supervised, and class_prior changes nothing."""
    X, truth, _ = blobs()
    one = fitted(estimator, X, truth)
    other = fitted(estimator, X, truth, class_prior=[0.2, 0.3, 0.5])
    assert np.array_equal(one.decision_function(X), other.decision_function(X))
    assert np.array_equal(one.transduction_, truth)


def check_invalid_priors_are_refused(estimator: Any) -> None:
    """A class prior that cannot be used raises ValueError, with a message about class_prior."""
    X, _, y = blobs()
    for prior in ([0.5, 0.7, 0.0], [0.5, 0.5], {0: 0.5, 1: 0.5}, [-0.5, 1.0, 0.5], "equal"):
        assert_value_error(estimator, X, y, "class_prior", class_prior=prior)
