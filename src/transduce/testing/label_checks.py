"""Checks of labels: how y marks unlabelled rows, and what is learned from it."""

import warnings
from typing import Any

import numpy as np

from transduce.testing.problems import N_ROWS, Check, assert_value_error, blobs, fitted, labels_as, true_counts


def check_given_labels_are_kept(estimator: Any) -> None:
    """Labelled rows keep their labels, even a wrong one."""
    X, truth, y = blobs()
    y[np.flatnonzero(y == 0)[0]] = 2
    model = fitted(estimator, X, y, class_prior=true_counts(truth, y) / (y < 0).sum())
    assert np.array_equal(model.transduction_[y >= 0], y[y >= 0])


def check_unlabeled_rows_help(estimator: Any) -> None:
    """Nine in ten rows of the easy problem get the right label."""
    X, truth, y = blobs()
    model = fitted(estimator, X, y, class_prior=true_counts(truth, y))
    assert np.mean(model.transduction_ == truth) > 0.9


def _missing_label_check(name: str, missing: object) -> Check:
    def check(estimator: Any) -> None:
        X, _, y = blobs()
        expected = [f"class {label}" for label in fitted(estimator, X, y).transduction_]
        model = fitted(estimator, X, labels_as(y, missing))
        assert model.classes_.tolist() == ["class 0", "class 1", "class 2"]
        assert model.transduction_.tolist() == expected

    check.__name__ = f"check_{name}_means_unlabeled"
    check.__doc__ = f"{missing!r} among names marks unlabelled rows."
    return check


check_none_means_unlabeled = _missing_label_check("none", None)
check_nan_means_unlabeled = _missing_label_check("nan", float("nan"))
check_minus_one_means_unlabeled = _missing_label_check("minus_one", -1)
check_numpy_minus_one_means_unlabeled = _missing_label_check("numpy_minus_one", np.int64(-1))
check_empty_text_means_unlabeled = _missing_label_check("empty_text", "")
check_blank_text_means_unlabeled = _missing_label_check("blank_text", "  ")


def check_nan_among_numbers_means_unlabeled(estimator: Any) -> None:
    """Floats with NaN are integers with missing labels."""
    X, _, y = blobs()
    model = fitted(estimator, X, np.where(y < 0, np.nan, y.astype(float)))
    assert np.array_equal(model.transduction_, fitted(estimator, X, y).transduction_)


def check_y_may_be_a_list(estimator: Any) -> None:
    """A list gives the same labels as an array."""
    X, _, y = blobs()
    assert np.array_equal(fitted(estimator, X, y.tolist()).transduction_, fitted(estimator, X, y).transduction_)


def check_signs_raise_a_warning(estimator: Any) -> None:
    """Labels that are all -1 or 1 are probably two classes, so that a warning is due."""
    X, _, y = blobs()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted(estimator, X, np.where(y == 0, 1, -1))
    assert any(issubclass(warning.category, UserWarning) for warning in caught)


def check_signs_can_be_classes(estimator: Any) -> None:
    """With unlabeled=None, -1 is a class."""
    X, truth, _ = blobs()
    model = fitted(estimator, X, np.where(truth == 0, 1, -1), unlabeled=None)
    assert model.classes_.tolist() == [-1, 1]


def check_no_label_is_refused(estimator: Any) -> None:
    """If every row is unlabelled, fit raises ValueError."""
    X, _, y = blobs()
    assert_value_error(estimator, X, np.full_like(y, -1), "label")


def check_one_labeled_class(estimator: Any) -> None:
    """If one class is labelled, all rows get its label."""
    X, _, y = blobs()
    model = fitted(estimator, X, np.where(y == 1, 5, -1))
    assert set(model.transduction_.tolist()) == set(model.predict(X).tolist()) == {5}


def check_class_names_do_not_matter(estimator: Any) -> None:
    """Classes in the opposite order get the same rows, except for a few ties."""
    X, truth, y = blobs()
    counts = true_counts(truth, y)
    one = fitted(estimator, X, y, class_prior=counts, tol=1e-4)
    other = fitted(estimator, X, np.where(y < 0, -1, 2 - y), class_prior=counts[::-1], tol=1e-4)
    assert np.mean(2 - other.transduction_ == one.transduction_) > 0.97


def check_row_order_does_not_matter(estimator: Any) -> None:
    """Permuted rows get permuted labels, except for a few ties."""
    X, truth, y = blobs()
    counts = true_counts(truth, y)
    order = np.random.default_rng(1).permutation(N_ROWS)
    one = fitted(estimator, X, y, class_prior=counts, tol=1e-4)
    other = fitted(estimator, X[order], y[order], class_prior=counts, tol=1e-4)
    assert np.mean(other.transduction_ == one.transduction_[order]) > 0.97


def check_flat_taxonomy_changes_nothing(estimator: Any) -> None:
    """A taxonomy without inner nodes gives the same weights as none."""
    X, _, y = blobs()
    names = labels_as(y, None)
    model = fitted(estimator, X, names, taxonomy=["class 0", "class 1", "class 2"])
    assert np.array_equal(model.coef_, fitted(estimator, X, names).coef_)
