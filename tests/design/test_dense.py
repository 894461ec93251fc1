"""Dense rows: the products and fits of the same rows as CSR, without a copy."""

import tracemalloc

import numpy as np
import pytest
from helpers.designs import TAXONOMIES, every_taxonomy, some_rows, use_threads_and_blocks
from scipy import sparse
from sklearn.base import clone

from transduce import TransductiveClassifier
from transduce.design import Design, matrix


@pytest.fixture
def many_threads(monkeypatch):
    use_threads_and_blocks(monkeypatch)


def dense_rows(dtype: object = np.float64, constant: float = 2.0) -> tuple[np.ndarray, sparse.csr_matrix]:
    """Dense rows, and the same rows as CSR with the constant."""
    X = some_rows(dtype=dtype).toarray()
    return X, sparse.csr_matrix(np.hstack((X, np.full((len(X), 1), constant, X.dtype)))) if constant else X


@pytest.fixture(params=[1, 100], ids=["BLAS", "row by row"])
def products(request, monkeypatch):
    """Both ways to compute products, in several blocks."""
    monkeypatch.setattr(matrix, "MIN_BLAS_COLUMNS", request.param)
    monkeypatch.setattr(matrix, "DENSE_BLOCK_BYTES", 1)


@pytest.mark.usefixtures("products", "many_threads")
@every_taxonomy
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", [np.arange(300), np.arange(300)[5::2], np.random.default_rng(3).permutation(300)])
@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
def test_products_of_rows_with_a_constant_are_those_of_rows_that_store_it(taxonomy, dtype, order, is_sparse):
    (X, rows), rng = dense_rows(dtype), np.random.default_rng(1)
    X = sparse.csr_matrix(X) if is_sparse else X
    dense, many = (Design.create(X, taxonomy, n_jobs, order, 2.0) for n_jobs in (1, 3))
    csr = Design.create(rows, taxonomy, 1, order)
    R = rng.normal(size=(order.size, taxonomy.n_classes)).astype(dtype)
    W = dense.pullback(R)
    assert W.dtype == dtype
    assert W.flags.c_contiguous if is_sparse else W.flags.f_contiguous
    tolerance = {"rtol": 1e-4, "atol": 1e-3} if dtype == np.float32 else {"atol": 1e-11}
    np.testing.assert_allclose(W, csr.pullback(R), **tolerance)
    np.testing.assert_allclose(dense.scores(W), csr.scores(np.ascontiguousarray(W)), **tolerance)
    np.testing.assert_allclose(dense.squared_norms + 4.0, csr.squared_norms, rtol=1e-6)
    found = dense.matrix()
    np.testing.assert_array_equal(found.toarray() if is_sparse else found, csr.matrix().toarray())
    np.testing.assert_array_equal(many.pullback(R), W)
    np.testing.assert_array_equal(many.scores(W), dense.scores(W))


def test_csr_rows_without_a_value_have_the_scores_of_the_constant():
    design = Design.create(sparse.csr_matrix((3, 4)), TAXONOMIES["flat"], constant=2.0)
    W = np.random.default_rng(0).normal(size=(5, TAXONOMIES["flat"].n_nodes))
    np.testing.assert_allclose(design.scores(W), np.tile(2.0 * W[-1], (3, 1)))


def test_dense_rows_are_not_copied(tmp_path):
    X = np.asfortranarray(dense_rows()[0])
    np.save(tmp_path / "X.npy", dense_rows(np.float32)[0])
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    for rows in (np.ascontiguousarray(X), mapped):
        found = Design.create(rows, TAXONOMIES["flat"], order=np.arange(300)[::-1], constant=1.0)
        assert np.shares_memory(found.data, rows)
        assert found.dtype == rows.dtype
        assert found.is_mapped == (rows is mapped)
        assert found.reordered_by_frequency() is found
    assert not np.shares_memory(Design.create(X, TAXONOMIES["flat"]).data, X)
    assert Design.create(X.astype(int), TAXONOMIES["flat"]).dtype == np.float64


def labeled_clusters(n: int = 240, d: int = 20, n_classes: int = 3) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Dense rows around a point for each class, labels of one row in six, and the counts of the others."""
    rng, y = np.random.default_rng(0), np.arange(n) % n_classes
    X = rng.normal(size=(n_classes, d))[y] + 2.0 * rng.normal(size=(n, d))
    given = np.where(rng.random(n) < 1 / 6, y, -1)
    return X, given, np.bincount(y[given < 0]).tolist()


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "maxent"])
@pytest.mark.parametrize("annealing", ["paper", "soft"])
def test_a_fit_on_dense_rows_is_that_on_the_same_rows_as_csr(loss, annealing):
    X, given, counts = labeled_clusters()
    tol = 1e-3 if annealing == "paper" else 9e-4  # from 1e-3 on, soft annealing of CSR rows is in single precision
    clf = TransductiveClassifier(loss, annealing=annealing, class_prior=counts, tol=tol, random_state=0)
    dense, csr = clone(clf).fit(X, given), clone(clf).fit(sparse.csr_matrix(X), given)
    assert np.array_equal(dense.transduction_, csr.transduction_)
    assert dense.objective_ == pytest.approx(csr.objective_, rel=1e-6)
    np.testing.assert_allclose(dense.coef_, csr.coef_, atol=1e-6)
    np.testing.assert_allclose(dense.intercept_, csr.intercept_, atol=1e-6)


def test_a_fit_on_dense_rows_in_a_tree_of_classes_is_that_on_the_same_rows_as_csr():
    X, given, counts = labeled_clusters()
    names = np.array(["a/x", "a/y", "b", ""])
    sizes = dict(zip(names[:3].tolist(), counts, strict=True))
    clf = TransductiveClassifier(taxonomy=list(sizes), class_prior=sizes)
    clf.set_params(annealing="paper", tol=1e-5, early_tol=1e-5, random_state=0)
    dense, csr = clone(clf).fit(X, names[given]), clone(clf).fit(sparse.csr_matrix(X), names[given])
    assert np.array_equal(dense.transduction_, csr.transduction_)
    assert dense.objective_ == pytest.approx(csr.objective_, rel=1e-6)


def test_a_fit_on_dense_rows_takes_less_memory_than_a_copy_of_them(tmp_path):
    X, given, counts = labeled_clusters(2000, 1000)
    np.save(tmp_path / "X.npy", X.astype(np.float32))
    clf = TransductiveClassifier(annealing="paper", class_prior=counts, random_state=0)
    labels = [clf.fit(X.astype(np.float32), given).transduction_]
    clf.fit(np.load(tmp_path / "X.npy", mmap_mode="r"), given)  # compiles the kernels for arrays that are read-only
    for X in (np.load(tmp_path / "X.npy"), np.load(tmp_path / "X.npy", mmap_mode="r")):
        tracemalloc.start()
        labels.append(clf.fit(X, given).transduction_)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert clf.coef_.dtype == np.float32
        assert peak < 0.7 * X.nbytes
    assert np.array_equal(labels[0], labels[1])
    assert np.array_equal(labels[0], labels[2])
