"""CenteredNormalizer centres by the mean of all rows and scales to length 1."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.utils.estimator_checks import parametrize_with_checks

from transduce.features import CenteredNormalizer


@parametrize_with_checks([CenteredNormalizer()])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_are_centred_and_have_length_1(dtype):
    X = np.random.default_rng(0).normal(3, 1, size=(200, 16)).astype(dtype)
    before, normalizer = X.copy(), CenteredNormalizer()
    Z = normalizer.fit_transform(X)
    centred = X.astype(np.float64) - X.mean(axis=0, dtype=np.float64)
    assert Z.dtype == normalizer.mean_.dtype == dtype
    assert np.allclose(Z, centred / np.linalg.norm(centred, axis=1, keepdims=True), atol=1e-5)
    assert np.array_equal(X, before)
    new = np.full((1, 16), 5, dtype)
    assert np.allclose(
        normalizer.transform(new)[0], (new - normalizer.mean_)[0] / np.linalg.norm(new - normalizer.mean_)
    )


def test_rows_can_be_changed_in_place():
    X = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)
    expected = CenteredNormalizer().fit_transform(X)
    Z = CenteredNormalizer(copy=False).fit_transform(X)
    assert np.shares_memory(X, Z)
    assert np.array_equal(Z, expected)


def test_rows_of_zeros_stay_zeros_and_do_not_move_the_mean():
    X = np.random.default_rng(0).normal(3, 1, size=(50, 4)).astype(np.float32)
    with_zeros = np.vstack((X, np.zeros((30, 4), np.float32)))
    Z = CenteredNormalizer().fit_transform(with_zeros)
    assert np.allclose(Z[:50], CenteredNormalizer().fit_transform(X), atol=1e-6)
    assert not Z[50:].any()


@given(st.integers(1, 20), st.floats(1e-3, 1e3), st.integers(0, 100))
def test_equal_rows_become_zeros_and_not_noise(n_rows, scale, seed):
    row = (scale * np.random.default_rng(seed).normal(size=7)).astype(np.float32)
    assert not CenteredNormalizer().fit_transform(np.tile(row, (n_rows, 1))).any()


def test_large_numbers_do_not_overflow():
    X = np.array([[1e30, 3e30], [-1e30, 3e30], [1e30, -3e30], [-1e30, -3e30]], np.float32)
    assert np.allclose(np.linalg.norm(CenteredNormalizer().fit_transform(X), axis=1), 1)


def test_sparse_rows_are_refused():
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        CenteredNormalizer().fit(sparse.eye(3, format="csr"))
