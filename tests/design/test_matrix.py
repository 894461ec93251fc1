"""Products with the design matrix: the same for all threads, index types and column orders, and past 2**31 values."""

import json

import numpy as np
import pytest
from helpers.designs import TAXONOMIES, every_taxonomy, some_rows, use_threads_and_blocks
from scipy import sparse
from sklearn.base import clone

from transduce import TransductiveClassifier
from transduce.design import Design, by_column, columns, matrix
from transduce.io.memmap import open_rows, pack_rows
from transduce.losses import LargeMargin, MaxEnt, SquaredLargeMargin
from transduce.problem import TrainingProblem
from transduce.taxonomy import Taxonomy, overlap
from transduce.weight_step import weight_step_for

FAR = 2**31 + 1000


@pytest.fixture
def many_threads(monkeypatch):
    use_threads_and_blocks(monkeypatch)


# ---- threads


@pytest.mark.usefixtures("many_threads")
@every_taxonomy
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_jobs", [2, 3, 60])
def test_products_do_not_depend_on_threads(taxonomy, dtype, n_jobs):
    X, rng = some_rows(dtype=dtype), np.random.default_rng(1)
    R = rng.normal(size=(X.shape[0], taxonomy.n_classes)).astype(dtype)
    R[5:40] = 0.0
    one, many = (Design.create(X, taxonomy, n) for n in (1, n_jobs))
    back = many.pullback(R)
    assert back.dtype == dtype
    np.testing.assert_array_equal(back, one.pullback(R))
    np.testing.assert_allclose(back, X.T @ R @ taxonomy.paths, atol=1e-4 if dtype == np.float32 else 1e-12)
    np.testing.assert_array_equal(many.scores(back), one.scores(back))


@pytest.mark.usefixtures("many_threads")
def test_pullback_writes_to_a_given_array():
    X, taxonomy = some_rows(), TAXONOMIES["flat"]
    rows, R = Design.create(X, taxonomy, 2), np.ones((X.shape[0], 7))
    out = np.full((X.shape[1], 7), np.nan)
    assert rows.pullback(R, out) is out
    np.testing.assert_array_equal(out, rows.pullback(R))


@every_taxonomy
@pytest.mark.parametrize("kept", [0, 10**9])
def test_rows_are_sorted_by_column_in_blocks_unless_they_are_very_many(taxonomy, kept, monkeypatch):
    X, rng = some_rows(), np.random.default_rng(1)
    monkeypatch.setattr(by_column, "BLOCK_VALUES", X.nnz // 5)
    monkeypatch.setattr(matrix, "KEPT_VALUES", kept)
    rows, R = Design.create(X, taxonomy), rng.normal(size=(X.shape[0], taxonomy.n_classes))
    for _ in range(2):  # the second time with what was kept
        np.testing.assert_allclose(rows.pullback(R), X.T @ R @ taxonomy.paths, atol=1e-12)
    assert ("_by_column" in vars(rows)) == (kept > 0)
    if kept:
        assert len(rows._by_column) == 5
        assert [one.block.start for one in rows._by_column[1:]] == [one.block.stop for one in rows._by_column[:-1]]


@every_taxonomy
def test_no_rows_have_a_gradient_of_0(taxonomy):
    rows = Design.create(some_rows(), taxonomy, constant=1.0).select_rows(np.zeros(0, np.int64))
    assert not rows.pullback(np.zeros((0, taxonomy.n_classes))).any()


@pytest.mark.usefixtures("many_threads")
@every_taxonomy
@pytest.mark.parametrize("is_dense", [False, True])
def test_rows_are_added_in_threads(taxonomy, is_dense):
    X, rng = some_rows(), np.random.default_rng(2)
    chosen = rng.choice(X.shape[0], 40, replace=False)
    R = rng.normal(size=(40, taxonomy.n_classes))
    one, four = (Design.create(X.toarray() if is_dense else X, taxonomy, n) for n in (1, 20))
    W, V = one.zeros(), one.zeros()
    one.add_rows(chosen, R, W)
    four.add_rows(chosen, R, V)
    np.testing.assert_allclose(W, X[chosen].T @ R @ taxonomy.paths, atol=1e-12)
    np.testing.assert_array_equal(W, V)
    assert "threads" in vars(four)


@every_taxonomy
@pytest.mark.parametrize("is_dense", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_that_are_copied_together_have_the_same_products(taxonomy, is_dense, dtype):
    X, chosen = some_rows(dtype=dtype), np.random.default_rng(3).permutation(300)[:40]
    apart = Design.create(X.toarray() if is_dense else X, taxonomy, constant=1.5).select_rows(chosen)
    near, R = apart.together(), np.random.default_rng(4).normal(size=(40, taxonomy.n_classes)).astype(dtype)
    assert near.data.size == near.n_values == apart.n_values < apart.data.size
    assert near.dtype == dtype
    W = near.pullback(R)
    np.testing.assert_array_equal(W, apart.pullback(R))
    np.testing.assert_array_equal(near.scores(W), apart.scores(W))
    np.testing.assert_array_equal(near.squared_norms, apart.squared_norms)


@pytest.mark.usefixtures("many_threads")
def test_threads_get_equal_work_where_columns_differ_in_frequency():
    X = some_rows(2000, 40)
    rows = Design.create(X, TAXONOMIES["flat"], 4)
    parts = columns.equal_work(rows._column_ends, 4)
    assert [part.start for part in parts] == [0, *(part.stop for part in parts[:-1])]
    assert parts[-1].stop == 40
    assert max(X[:, part].nnz for part in parts) < 0.45 * X.nnz


def test_small_products_start_no_thread():
    rows = Design.create(some_rows(), TAXONOMIES["flat"], 4)
    rows.pullback(np.ones((rows.n_rows, 7)))
    rows.scores(rows.zeros())
    assert "threads" not in vars(rows)


@every_taxonomy
def test_scores_and_pullback_equal_dense_products(taxonomy):
    X = some_rows()
    rows = Design.create(X, taxonomy)
    rng = np.random.default_rng(0)
    W = rng.normal(size=(50, taxonomy.n_nodes))
    R = rng.normal(size=(300, taxonomy.n_classes))
    X, paths = X.toarray(), taxonomy.paths.astype(float)
    np.testing.assert_allclose(rows.scores(W), X @ W @ paths.T, atol=1e-12)
    np.testing.assert_allclose(rows.pullback(R), X.T @ R @ paths, atol=1e-12)
    np.testing.assert_allclose(rows.squared_norms, (X**2).sum(axis=1), atol=1e-12)
    np.testing.assert_array_equal(rows.overlap, paths @ paths.T)


@every_taxonomy
def test_32_and_64_bit_indices_give_the_same_results(taxonomy):
    X, R = some_rows(), np.random.default_rng(0).normal(size=(300, taxonomy.n_classes))
    short, long = (Design.create(X, taxonomy) for _ in range(2))
    object.__setattr__(long, "indices", X.indices.astype(np.int64))
    np.testing.assert_array_equal(short.pullback(R), long.pullback(R))
    np.testing.assert_array_equal(short.scores(short.pullback(R)), long.scores(long.pullback(R)))
    assert (short.matrix() != long.matrix()).nnz == 0


@every_taxonomy
def test_selected_rows_give_the_same_scores(taxonomy):
    X, order = some_rows(), np.random.default_rng(0).permutation(300)
    rows = Design.create(X, taxonomy, order=order)
    some = rows.select_rows(np.arange(300) % 3 == 0)
    assert np.shares_memory(some.data, rows.data)
    assert some.n_values == X[order][::3].nnz
    assert (some.matrix() != X[order][::3]).nnz == 0
    W = np.random.default_rng(1).normal(size=(50, taxonomy.n_nodes))
    np.testing.assert_array_equal(some.scores(W), rows.scores(W)[::3])


def test_the_largest_overlap_of_many_classes_is_bounded_closely(monkeypatch):
    rng = np.random.default_rng(0)
    names = {"/".join(map(str, rng.integers(4, size=rng.integers(2, 5)))) for _ in range(60)}
    leaves = [a for a in names if not any(b.startswith(f"{a}/") for b in names)]
    few = Design.create(sparse.eye_array(3), Taxonomy.create(leaves)).largest_overlap
    monkeypatch.setattr(overlap, "MAX_DENSE_CLASSES", 0)
    many = Design.create(sparse.eye_array(3), Taxonomy.create(leaves)).largest_overlap
    assert few <= many <= 1.001 * few


# ---- more than 2**31 values


def has_sparse_files(path) -> bool:
    with path.open("wb") as file:
        file.truncate(2**24)
    return getattr(path.stat(), "st_blocks", 2**15) * 512 < 2**20


def sparse_file(path, dtype, size: int, begin: int, values) -> np.ndarray:
    """A sparse file of zeros with the same values at its start and from `begin` on."""
    if not has_sparse_files(path):
        pytest.skip("the file system has no sparse files, and this test would write 16 GiB")
    kind = np.dtype(dtype)
    with path.open("wb") as file:
        np.asarray(values, kind).tofile(file)
        file.seek(begin * kind.itemsize)
        np.asarray(values, kind).tofile(file)
        file.truncate(size * kind.itemsize)
    return np.memmap(path, kind, "r").view(np.ndarray)


@pytest.fixture
def far_rows(tmp_path):
    """Six rows at the start of 2**31 values and the same six at the end, with one row between that no test uses."""
    near = sparse.csr_matrix(some_rows(6, 8, np.float32, seed=3))
    near.data[:] = np.abs(near.data) + 0.1
    size = FAR + near.nnz
    data = sparse_file(tmp_path / "data", np.float32, size, FAR, near.data)
    indices = sparse_file(tmp_path / "indices", np.int32, size, FAR, near.indices)
    X = sparse.csr_matrix((13, 8), dtype=np.float32)
    X.data, X.indices = data, indices
    X.indptr = np.concatenate((near.indptr, FAR + near.indptr.astype(np.int64)))
    X.has_canonical_format = True
    return near, X


@every_taxonomy
def test_products_use_rows_past_two_to_the_31(far_rows, taxonomy):
    near, X = far_rows
    far = Design.create(X, taxonomy, 1, order=np.arange(7, 13))
    here = Design.create(near, taxonomy, 1)
    assert far.spans.min() > 2**31
    W = np.random.default_rng(0).normal(size=(8, taxonomy.n_nodes)).astype(np.float32)
    R = np.random.default_rng(1).normal(size=(6, taxonomy.n_classes)).astype(np.float32)
    np.testing.assert_array_equal(far.scores(W), here.scores(W))
    np.testing.assert_array_equal(far.pullback(R), here.pullback(R))
    np.testing.assert_array_equal(far.squared_norms, here.squared_norms)
    np.testing.assert_array_equal(far._column_ends, here._column_ends)
    assert (far.matrix() != near).nnz == 0


@pytest.mark.usefixtures("many_threads")
@pytest.mark.parametrize(
    "loss",
    [LargeMargin(), *(pytest.param(loss, marks=pytest.mark.slow) for loss in (SquaredLargeMargin(), MaxEnt()))],
    ids=lambda loss: type(loss).__name__,
)
def test_weight_steps_use_rows_past_two_to_the_31(far_rows, loss):
    near, X = far_rows
    order, labels = np.array([0, 7, 8, 3, 10, 12]), np.array([0, 1, 2, 0, 1, 2])
    answers = []
    for rows in (
        Design.create(near, Taxonomy.flat("abc"), 1, order % 7),
        Design.create(X, Taxonomy.flat("abc"), 3, order),
    ):
        problem = TrainingProblem.create(rows, loss, 0.01, 6)
        step = weight_step_for(loss, 1000)
        state = step.start(problem, labels)
        step.retarget(problem, state, labels, problem.kappa(1.0))
        answers.append((state.W, step.solve(problem, state, 1e-6, np.random.default_rng(0)).scores))
    for one, other in zip(*answers, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_memory_mapped_matrix_past_two_to_the_31_is_not_copied(far_rows, tmp_path, monkeypatch):
    near, X = far_rows
    monkeypatch.setattr("transduce.io.memmap.check_structure", lambda X: None)  # which would read 8 GiB
    (tmp_path / "data").rename(tmp_path / "data.bin")
    (tmp_path / "indices").rename(tmp_path / "indices.bin")
    X.indptr.tofile(tmp_path / "indptr.bin")
    about = {"format": 1, "n_rows": 13, "n_features": 8, "n_values": X.data.size, "dtype": "float32", "indptr": "int64"}
    (tmp_path / "rows.json").write_text(json.dumps(about))
    stored = open_rows(tmp_path)
    assert stored.indptr.dtype == np.int64
    assert stored.indptr[-1] == FAR + near.nnz
    far = Design.create(stored, TAXONOMIES["flat"], order=np.arange(7, 13))
    assert np.shares_memory(far.data, stored.data)
    assert (far.matrix() != near).nnz == 0


# ---- columns reordered by frequency


@pytest.fixture
def tiny_cache(monkeypatch):
    """Reorder even columns of weights as small as these, a few of which fit the cache."""
    monkeypatch.setattr(columns, "MIN_PRODUCTS_TO_REORDER", 1)
    monkeypatch.setattr(columns, "CACHE_BYTES", 256)


@pytest.mark.usefixtures("tiny_cache")
@every_taxonomy
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_reordered_columns_give_the_same_products(taxonomy, dtype):
    rng, order = np.random.default_rng(2), np.random.default_rng(3).permutation(300)
    X = some_rows(dtype=dtype)
    plain = Design.create(X, taxonomy, 2, order)
    reordered, data = plain.reordered_by_frequency(), plain.data.copy()
    W, R = rng.normal(size=(50, taxonomy.n_nodes)).astype(dtype), rng.normal(size=(300, taxonomy.n_classes))
    np.testing.assert_allclose(reordered.scores(W[reordered.column_order]), plain.scores(W), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(reordered.in_original_order(reordered.pullback(R)), plain.pullback(R))
    np.testing.assert_array_equal(reordered.in_original_order(W[reordered.column_order]), W)
    np.testing.assert_allclose(reordered.squared_norms, plain.squared_norms, rtol=1e-6)
    assert (reordered.matrix() != plain.matrix()[:, reordered.column_order]).nnz == 0
    assert reordered.dtype == dtype
    assert np.array_equal(plain.data, data)


@pytest.mark.usefixtures("tiny_cache")
def test_frequent_columns_come_first():
    plain = Design.create(some_rows(), TAXONOMIES["flat"])
    reordered = plain.reordered_by_frequency()
    counts = plain.column_counts[reordered.column_order]
    assert np.all(np.diff(counts) <= 0)
    assert np.array_equal(reordered.column_counts, counts)
    n_cached = columns.CACHE_BYTES // (7 * 8)
    assert 0 < n_cached < 50
    far = [reordered.indices[a:b] >= n_cached for a, b in reordered.spans]
    assert all(np.all(np.diff(row.astype(int)) >= 0) for row in far)
    assert any(0 < row.sum() < row.size for row in far)


@pytest.mark.usefixtures("tiny_cache")
def test_small_weights_and_memory_mapped_rows_are_not_reordered(tmp_path, monkeypatch):
    stored = Design.create(pack_rows([some_rows()], tmp_path / "rows"), TAXONOMIES["flat"])
    assert stored.reordered_by_frequency() is stored
    assert Design.create(some_rows(), TAXONOMIES["flat"]).reordered_by_frequency().column_order is not None
    monkeypatch.setattr(columns, "CACHE_BYTES", 1 << 20)
    small = Design.create(some_rows(), TAXONOMIES["flat"])
    assert small.reordered_by_frequency() is small


@pytest.mark.usefixtures("tiny_cache")
@pytest.mark.parametrize(("kind", "fit_intercept"), [("hinge", False), ("maxent", True)])
def test_a_fit_on_reordered_columns_has_coefficients_in_the_original_order(kind, fit_intercept, monkeypatch):
    X, y = some_rows(), np.arange(300) % 3
    X = X + sparse.csr_matrix((np.ones(300), (np.arange(300), y)), X.shape)  # learnable
    given = np.where(np.arange(300) < 60, y, -1)
    params = {"alpha": 0.1, "annealing": "paper", "tol": 1e-5, "early_tol": 1e-5, "max_iter": 500, "random_state": 0}
    clf = TransductiveClassifier(kind, class_prior=[80, 80, 80], fit_intercept=fit_intercept, **params)
    reordered = clone(clf).fit(X, given)
    monkeypatch.setattr(columns, "CACHE_BYTES", 1 << 20)
    plain = clone(clf).fit(X, given)
    assert np.array_equal(reordered.transduction_, plain.transduction_)
    np.testing.assert_allclose(reordered.coef_, plain.coef_, atol=1e-3 * np.abs(plain.coef_).max())
    np.testing.assert_allclose(reordered.intercept_, plain.intercept_, atol=1e-2)
    assert np.mean(reordered.predict(X) == plain.predict(X)) > 0.99
