"""Checks of parameters and sample weights."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from transduce import TransductiveClassifier
from transduce.contract import check_labeled_weight, check_sample_weight, check_scale, check_structure
from transduce.validation import check_alpha, check_iterations, check_positive, has_methods


@pytest.mark.parametrize("value", [0, -1, True, np.inf, np.nan, "1", None])
def test_positive_numbers(value):
    check_positive(SimpleNamespace(alpha=1e-3, tol=2), "alpha", "tol")
    with pytest.raises(ValueError, match="alpha must be a number above 0"):
        check_positive(SimpleNamespace(alpha=value), "alpha")


@pytest.mark.parametrize("value", [0, True, np.nan, "small", None, ["auto"], np.array(["auto", "auto"])])
def test_alpha_is_a_positive_number_or_auto(value):
    check_alpha("auto")
    check_alpha(np.float32(1e-3))
    with pytest.raises(ValueError, match='alpha must be a number above 0, or "auto", but is'):
        check_alpha(value)


@pytest.mark.parametrize(
    ("max_iter", "n_jobs", "name"), [(0, None, "max_iter"), (2.5, 1, "max_iter"), (1, 0, "n_jobs")]
)
def test_iterations_and_jobs(max_iter, n_jobs, name):
    check_iterations(1, -1)
    with pytest.raises(ValueError, match=f"{name} must be a whole number"):
        check_iterations(max_iter, n_jobs)


def test_methods_of_objects_but_not_of_classes():
    assert has_methods([], "append", "pop")
    assert not has_methods(list, "append")
    assert not has_methods("text", "upper")
    assert not has_methods([], "append", "missing")


def test_sample_weights():
    assert check_sample_weight(None, 3) is None
    assert check_sample_weight(2, 3).tolist() == [2.0, 2.0, 2.0]
    assert check_sample_weight([1, 0, 2], 3).tolist() == [1.0, 0.0, 2.0]
    for bad in ([1, 2], [1, np.nan, 1], [1, -1, 1]):
        with pytest.raises(ValueError, match="sample_weight must"):
            check_sample_weight(bad, 3)
    with pytest.raises(TypeError, match="sample_weight must be numbers"):
        check_sample_weight(["much"] * 3, 3)
    check_labeled_weight(None)
    with pytest.raises(ValueError, match="every weight is zero"):
        check_labeled_weight(np.zeros(2))


def spoilt(X, name, at, value):
    getattr(X, name)[at] = value
    return X


SPOILT = [("indices", 3, 10**6), ("indices", 3, -1), ("indptr", 5, 0), ("indptr", 0, 1), ("indptr", -1, 10**6)]


@pytest.mark.parametrize("to", [sparse.csr_matrix, sparse.csr_array, sparse.csc_matrix])
@pytest.mark.parametrize(("name", "at", "value"), SPOILT)
def test_sparse_arrays_that_point_outside_are_refused(to, name, at, value):
    X = to(sparse.random(30, 20, 0.3, random_state=0))
    check_structure(X)
    with pytest.raises(ValueError, match=r"^X must have .*Build the matrix again"):
        check_structure(spoilt(X, name, at, value))


def test_coordinates_blocks_and_lengths_are_checked():
    X = sparse.random(30, 20, 0.3, random_state=0)
    X.coords[1][2] = 20
    with pytest.raises(ValueError, match="column indices from 0 to 19, but has 20"):
        check_structure(X)
    blocks = sparse.bsr_matrix(np.eye(6), blocksize=(2, 3))
    check_structure(blocks)
    with pytest.raises(ValueError, match="column indices from 0 to 1, but has 2"):
        check_structure(spoilt(blocks, "indices", 0, 2))
    short = sparse.csr_matrix(np.eye(3))
    short.data = short.data[:2]
    with pytest.raises(ValueError, match="X must have 3 values"):
        check_structure(short)
    rows = sparse.lil_matrix(np.eye(3))
    check_structure(rows)
    rows.rows[1] = [10**6]
    with pytest.raises(ValueError, match="column indices from 0 to 2, but has 1000000"):
        check_structure(rows)
    check_structure(sparse.csr_matrix((0, 4)))


@pytest.mark.parametrize(("name", "at", "value"), SPOILT)
def test_estimators_refuse_them_before_any_kernel_runs(name, at, value):
    X = sparse.random(30, 20, 0.3, format="csr", random_state=0)
    y = np.arange(30) % 2
    fitted = TransductiveClassifier(annealing="paper", class_prior="labeled").fit(X, y)
    spoilt(X, name, at, value)
    with pytest.raises(ValueError, match="Build the matrix again"):
        TransductiveClassifier().fit(X, y)
    with pytest.raises(ValueError, match="Build the matrix again"):
        fitted.predict(X)


@pytest.mark.parametrize("to", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    ("dtype", "factor"), [(np.float32, 1e20), (np.float32, 1e-20), (np.float64, 1e200), (np.float64, 1e-200)]
)
def test_rows_whose_squares_leave_the_range_of_their_type_are_refused(to, dtype, factor):
    X = to(np.diag([1.0, -2.0, 0.5]).astype(dtype))
    check_scale(X)
    check_scale(0 * X)
    with pytest.raises(ValueError, match=r"X has values up to 2e[+-]\d+, but float\d\d can be squared .*Scale X"):
        TransductiveClassifier().fit(X * dtype(factor), [0, 1, -1])


@pytest.mark.parametrize("weight", [1e300, 1e-300])
def test_weights_count_only_in_proportion_to_each_other(weight):
    X = np.random.default_rng(0).normal(size=(40, 5))
    y = np.where(np.arange(40) < 10, np.arange(40) % 2, -1)
    one, other = (
        TransductiveClassifier(random_state=0).fit(X, y, sample_weight=np.full(40, value)) for value in (1.0, weight)
    )
    np.testing.assert_array_equal(one.transduction_, other.transduction_)
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-3, atol=1e-6)


ROWS = np.arange(24, dtype=float).reshape(6, 4) + 1.0
LABELS = [0, 1, -1, -1, -1, -1]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf], ids=["NaN", "inf", "-inf"])
@pytest.mark.parametrize("convert", [np.array, sparse.csr_matrix, sparse.csc_matrix, np.float32], ids=str)
def test_a_value_that_is_not_finite_is_named_by_its_place(convert, value, request):
    X = ROWS.copy()
    X[4, 2] = value
    name = "NaN" if np.isnan(value) else str(value)
    sentence = f"X must hold finite numbers, but X\\[4, 2\\] is {name}. Replace it, or remove the row."
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        TransductiveClassifier(class_prior=[2, 2]).fit(convert(X), LABELS)
    model = TransductiveClassifier(class_prior=[2, 2]).fit(convert(ROWS), LABELS)
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        model.predict(convert(X))


def test_infinity_by_overflow_of_a_sum_is_not_taken_for_a_bad_value():
    X = np.full((6, 4), 1e139)
    X[::2, 0] = -1e139
    assert TransductiveClassifier(class_prior=[2, 2]).fit(X, LABELS).transduction_.shape == (6,)
