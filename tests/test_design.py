"""Products with the rows: the same in any number of threads, for any type of index, and past 2**31 values."""

import json
import threading
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from transduce import TransductiveClassifier, design
from transduce.design import Design
from transduce.io.memmap import open_rows, pack_rows
from transduce.losses import LargeMargin, MaxEnt, SmoothMargin, SquaredLargeMargin, row_blocks
from transduce.problem import TrainingProblem
from transduce.taxonomy import Taxonomy
from transduce.weight_step import Smooth, weight_step_for

TAXONOMIES = {
    "two": Taxonomy.flat("ab"),
    "flat": Taxonomy.flat(range(7)),
    "tree": Taxonomy.create(["a/x/1", "a/x/2", "a/y", "b", "c/z"]),
}
LOSSES = {"large-margin": LargeMargin(), "squared": SquaredLargeMargin(), "maxent": MaxEnt(), "smooth": SmoothMargin()}
FAR = 2**31 + 1000

every_taxonomy = pytest.mark.parametrize("taxonomy", TAXONOMIES.values(), ids=TAXONOMIES)
every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)


@pytest.fixture
def eager(monkeypatch):
    """Threads and blocks for problems as small as these."""
    monkeypatch.setattr(design, "WORTH_A_THREAD", 1)
    monkeypatch.setattr(row_blocks, "BLOCK", 64)
    monkeypatch.setattr(row_blocks, "FEWEST", 4)
    monkeypatch.setattr(row_blocks, "BLOCKS_A_THREAD", 1)


def some_rows(n: int = 300, d: int = 50, dtype: object = np.float64, seed: int = 0) -> sparse.csr_matrix:
    """Columns of very different use, one in every row and one in none; some rows are empty."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < np.linspace(0.5, 0.0, d))
    X[:, 3] = 1.0
    X[::17] = 0.0
    return sparse.csr_matrix(X.astype(dtype))


# ---- threads


@pytest.mark.usefixtures("eager")
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


@pytest.mark.usefixtures("eager")
def test_the_way_back_is_written_where_it_is_wanted():
    X, taxonomy = some_rows(), TAXONOMIES["flat"]
    rows, R = Design.create(X, taxonomy, 2), np.ones((X.shape[0], 7))
    out = np.full((X.shape[1], 7), np.nan)
    assert rows.pullback(R, out) is out
    np.testing.assert_array_equal(out, rows.pullback(R))


@pytest.mark.usefixtures("eager")
def test_threads_share_the_values_of_columns_of_very_different_use():
    X = some_rows(2000, 40)
    rows = Design.create(X, TAXONOMIES["flat"], 4)
    bounds = design._evenly(rows._column_ends, 4)
    shares = [X[:, low:high].nnz / X.nnz for low, high in pairwise(bounds)]
    assert bounds[0] == 0
    assert bounds[-1] == 40
    assert max(shares) < 0.45


def test_small_products_wake_no_thread():
    rows = Design.create(some_rows(), TAXONOMIES["flat"], 4)
    rows.pullback(np.ones((rows.n_rows, 7)))
    rows.scores(rows.zeros())
    assert "_pool" not in vars(rows)


@every_taxonomy
def test_indices_of_either_size_give_the_same(taxonomy):
    X, R = some_rows(), np.random.default_rng(0).normal(size=(300, taxonomy.n_classes))
    short, long = (Design.create(X, taxonomy) for _ in range(2))
    object.__setattr__(long, "indices", X.indices.astype(np.int64))
    np.testing.assert_array_equal(short.pullback(R), long.pullback(R))
    np.testing.assert_array_equal(short.scores(short.pullback(R)), long.scores(long.pullback(R)))
    assert (short.matrix() != long.matrix()).nnz == 0


@every_taxonomy
def test_some_of_the_rows_are_rows_too(taxonomy):
    X, order = some_rows(), np.random.default_rng(0).permutation(300)
    rows = Design.create(X, taxonomy, order=order)
    some = rows.of_rows(np.arange(300) % 3 == 0)
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
    monkeypatch.setattr(design, "MANY_CLASSES", 0)
    many = Design.create(sparse.eye_array(3), Taxonomy.create(leaves)).largest_overlap
    assert few <= many <= 1.001 * few


# ---- the smooth weight step


class Own:
    """A loss of the user's own, that remembers how it was called."""

    def __init__(self):
        self.calls, self.threads = [], set()

    def label_costs(self, scores):
        return MaxEnt().label_costs(scores)

    def value(self, scores, targets):
        self.calls.append(len(scores))
        self.threads.add(threading.current_thread())
        return MaxEnt().value(scores, targets)

    def gradient(self, scores, targets):
        self.threads.add(threading.current_thread())
        return MaxEnt().gradient(scores, targets)


def solved(loss, n_jobs, dtype=np.float64, soft=False, weight=1.0):
    X, rng = some_rows(dtype=dtype), np.random.default_rng(2)
    problem = TrainingProblem.create(Design.create(X, TAXONOMIES["tree"], n_jobs), loss, 0.01, 100)
    targets = rng.dirichlet(np.ones(5), 300) if soft else rng.integers(5, size=300)
    step = Smooth(200)
    state = step.start(problem, targets)
    step.retarget(problem, state, targets, problem.kappa(weight))
    return state, step.solve(problem, state, 1e-6, rng)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "loss", [MaxEnt(), SmoothMargin(), SquaredLargeMargin(), Own()], ids=lambda x: type(x).__name__
)
def test_smooth_steps_do_not_depend_on_threads(loss, dtype, soft):
    (one, its), (many, their) = (solved(loss, n_jobs, dtype, soft) for n_jobs in (1, 3))
    np.testing.assert_array_equal(one.W, many.W)
    assert its.objective == their.objective
    assert one.W.dtype == their.scores.dtype == dtype


@pytest.mark.usefixtures("eager")
def test_a_loss_of_your_own_is_called_once_with_the_rows_that_have_a_weight():
    for weight, n_rows in ((1.0, 300), (0.0, 100)):
        own = Own()
        ours, its = solved(MaxEnt(), 1, weight=weight)
        theirs, their = solved(own, 3, weight=weight)
        assert set(own.calls) == {n_rows}
        assert own.threads == {threading.current_thread()}
        np.testing.assert_allclose(theirs.W, ours.W, atol=1e-6)
        assert their.objective == pytest.approx(its.objective)
        assert len(their.scores) == 300


# ---- more than 2**31 values


def has_sparse_files(path) -> bool:
    with path.open("wb") as file:
        file.truncate(2**24)
    return getattr(path.stat(), "st_blocks", 2**15) * 512 < 2**20


def hollow(path, dtype, size: int, begin: int, values) -> np.ndarray:
    """A file of zeros that takes no room but for the values from `begin` on, and those at the start."""
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
    """Six rows at the start of 2**31 values and the same six at their end, with one in between that nobody touches."""
    near = sparse.csr_matrix(some_rows(6, 8, np.float32, seed=3))
    near.data[:] = np.abs(near.data) + 0.1
    size = FAR + near.nnz
    data = hollow(tmp_path / "data", np.float32, size, FAR, near.data)
    indices = hollow(tmp_path / "indices", np.int32, size, FAR, near.indices)
    X = sparse.csr_matrix((13, 8), dtype=np.float32)
    X.data, X.indices = data, indices
    X.indptr = np.concatenate((near.indptr, FAR + near.indptr.astype(np.int64)))
    X.has_canonical_format = True
    return near, X


@every_taxonomy
def test_products_reach_rows_past_two_to_the_31(far_rows, taxonomy):
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


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("n_jobs", [1, 3])
@every_loss
def test_weight_steps_reach_rows_past_two_to_the_31(far_rows, loss, n_jobs):
    near, X = far_rows
    order, labels = np.array([0, 7, 8, 3, 10, 12]), np.array([0, 1, 2, 0, 1, 2])
    answers = []
    for rows in (
        Design.create(near, Taxonomy.flat("abc"), 1, order % 7),
        Design.create(X, Taxonomy.flat("abc"), n_jobs, order),
    ):
        problem = TrainingProblem.create(rows, loss, 0.01, 6)
        step = weight_step_for(loss, 1000)
        state = step.start(problem, labels)
        step.retarget(problem, state, labels, problem.kappa(1.0))
        answers.append((state.W, step.solve(problem, state, 1e-6, np.random.default_rng(0)).scores))
    for one, other in zip(*answers, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_store_past_two_to_the_31_is_opened_where_it_is(far_rows, tmp_path):
    near, X = far_rows
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


# ---- ranked features


@pytest.fixture
def _ranks(monkeypatch):
    """Features of weights as small as these are ranked, a few of them near at hand."""
    monkeypatch.setattr(design, "WORTH_RANKING", 1)
    monkeypatch.setattr(design, "CACHED", 256)


@pytest.mark.usefixtures("_ranks")
@every_taxonomy
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ranked_rows_give_the_same_products(taxonomy, dtype):
    rng, order = np.random.default_rng(2), np.random.default_rng(3).permutation(300)
    X = some_rows(dtype=dtype)
    plain = Design.create(X, taxonomy, 2, order)
    ranked, given = plain.ranked(), plain.data.copy()
    W, R = rng.normal(size=(50, taxonomy.n_nodes)).astype(dtype), rng.normal(size=(300, taxonomy.n_classes))
    np.testing.assert_allclose(ranked.scores(W[ranked.features]), plain.scores(W), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(ranked.by_column(ranked.pullback(R)), plain.pullback(R))
    np.testing.assert_array_equal(ranked.by_column(W[ranked.features]), W)
    np.testing.assert_allclose(ranked.squared_norms, plain.squared_norms, rtol=1e-6)
    assert (ranked.matrix() != plain.matrix()[:, ranked.features]).nnz == 0
    assert ranked.dtype == dtype
    assert np.array_equal(plain.data, given)


@pytest.mark.usefixtures("_ranks")
def test_features_that_are_met_often_come_first():
    plain = Design.create(some_rows(), TAXONOMIES["flat"])
    ranked = plain.ranked()
    counts = plain.column_counts[ranked.features]
    assert np.all(np.diff(counts) <= 0)
    assert np.array_equal(ranked.column_counts, counts)
    n_near = design.CACHED // (7 * 8)
    assert 0 < n_near < 50
    far = [ranked.indices[a:b] >= n_near for a, b in ranked.spans]
    assert all(np.all(np.diff(row.astype(int)) >= 0) for row in far)
    assert any(0 < row.sum() < row.size for row in far)


@pytest.mark.usefixtures("_ranks")
def test_small_weights_and_rows_in_a_file_stay_as_they_are(tmp_path, monkeypatch):
    stored = Design.create(pack_rows([some_rows()], tmp_path / "rows"), TAXONOMIES["flat"])
    assert stored.ranked() is stored
    assert Design.create(some_rows(), TAXONOMIES["flat"]).ranked().features is not None
    monkeypatch.setattr(design, "CACHED", 1 << 20)
    small = Design.create(some_rows(), TAXONOMIES["flat"])
    assert small.ranked() is small


@pytest.mark.usefixtures("_ranks")
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("kind", ["hinge", "maxent"])
def test_a_fit_on_ranked_rows_has_its_weights_by_column(kind, fit_intercept, monkeypatch):
    X, y = some_rows(), np.arange(300) % 3
    X = X + sparse.csr_matrix((np.ones(300), (np.arange(300), y)), X.shape)  # learnable
    given = np.where(np.arange(300) < 60, y, -1)
    how = {"alpha": 1e-2, "annealing": "paper", "tol": 1e-6, "early_tol": 1e-6, "max_iter": 500, "random_state": 0}
    clf = TransductiveClassifier(kind, fit_intercept=fit_intercept, **how)
    ranked = clone(clf).fit(X, given)
    monkeypatch.setattr(design, "CACHED", 1 << 20)
    plain = clone(clf).fit(X, given)
    assert np.array_equal(ranked.transduction_, plain.transduction_)
    np.testing.assert_allclose(ranked.coef_, plain.coef_, atol=1e-3 * np.abs(plain.coef_).max())
    np.testing.assert_allclose(ranked.intercept_, plain.intercept_, atol=1e-2)
    assert np.mean(ranked.predict(X) == plain.predict(X)) > 0.99
