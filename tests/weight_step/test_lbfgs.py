"""L-BFGS: small gradients at the end, never a worse objective, and the same weights in any number of threads."""

import threading

import numpy as np
import pytest
from helpers.weight_problems import FLAT, N_ROWS, TREE, dense, fit, soft_targets, some_rows, training

from transduce.design import Design, rows
from transduce.losses import MaxEnt, SmoothMargin, SquaredLargeMargin, blockwise
from transduce.problem import TrainingProblem
from transduce.weight_step import LBFGS


@pytest.mark.parametrize(
    ("taxonomy", "loss"),
    [(FLAT[2], SquaredLargeMargin()), (FLAT[4], MaxEnt())],
    ids=["squared-two", "maxent"],
)
def test_lbfgs_never_increases_the_objective(taxonomy, loss):
    problem, labels = training(taxonomy, loss)
    step, kappa, rng = LBFGS(1000), problem.kappa(1.0), np.random.default_rng(0)
    state, _ = fit(problem, labels, 1e-2, step)
    for _ in range(5):
        labels = np.where(rng.random(N_ROWS) < 0.05, rng.integers(taxonomy.n_classes, size=N_ROWS), labels)
        step.retarget(problem, state, labels, kappa)
        before = problem.objective(state.W, labels, kappa)
        assert step.solve(problem, state, 0.5, rng).objective <= before


@pytest.mark.parametrize(
    ("taxonomy", "loss"),
    [(FLAT[2], SquaredLargeMargin()), (FLAT[4], MaxEnt()), (TREE, MaxEnt())],
    ids=["squared-two", "maxent-flat", "maxent-tree"],
)
def test_lbfgs_ends_with_a_small_gradient(taxonomy, loss):
    problem, labels = training(taxonomy, loss, 1e-3)
    state, report = fit(problem, labels, 1e-5, LBFGS(10_000))
    assert report.converged
    kappa, X, paths = problem.kappa(1.0), dense(problem), taxonomy.paths.astype(float)

    def gradient(W):
        residual = kappa[:, None] * problem.loss.gradient(X @ W @ paths.T, labels)
        return X.T @ residual @ paths + problem.alpha * W

    at_zero = np.abs(gradient(np.zeros_like(state.W))).max()
    assert np.abs(gradient(state.W)).max() <= 1e-5 * at_zero * (1 + 1e-6)
    assert report.gap == pytest.approx(np.abs(gradient(state.W)).max(), rel=1e-6)
    assert report.objective == pytest.approx(problem.objective(state.W, labels, kappa), rel=1e-12)


@pytest.fixture
def many_threads(monkeypatch):
    """Use threads and blocks even for problems as small as these."""
    monkeypatch.setattr(rows, "MIN_PRODUCTS_PER_THREAD", 1)
    monkeypatch.setattr(blockwise, "BLOCK_SCORES", 64)
    monkeypatch.setattr(blockwise, "MIN_BLOCK_ROWS", 4)
    monkeypatch.setattr(blockwise, "MIN_BLOCKS_PER_THREAD", 1)


class Own:
    """A user-defined loss that records how it was called."""

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
    X, labels = some_rows(TREE.n_classes)
    design = Design.create(X.astype(dtype), TREE, n_jobs)
    problem = TrainingProblem.create(design, loss, 0.01, 100)
    return fit(problem, soft_targets(TREE.n_classes) if soft else labels, 1e-6, LBFGS(200), problem.kappa(weight))


@pytest.mark.usefixtures("many_threads")
@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "loss", [MaxEnt(), SmoothMargin(), SquaredLargeMargin(), Own()], ids=lambda x: type(x).__name__
)
def test_lbfgs_does_not_depend_on_threads(loss, dtype, soft):
    (one, its), (many, their) = (solved(loss, n_jobs, dtype, soft) for n_jobs in (1, 3))
    np.testing.assert_array_equal(one.W, many.W)
    assert its.objective == their.objective
    assert one.W.dtype == their.scores.dtype == dtype


@pytest.mark.usefixtures("many_threads")
def test_a_user_defined_loss_is_called_once_with_the_rows_of_positive_weight():
    for weight, n_rows in ((1.0, N_ROWS), (0.0, 100)):
        own = Own()
        ours, its = solved(MaxEnt(), 1, weight=weight)
        theirs, their = solved(own, 3, weight=weight)
        assert set(own.calls) == {n_rows}
        assert own.threads == {threading.current_thread()}
        np.testing.assert_allclose(theirs.W, ours.W, atol=1e-6)
        assert their.objective == pytest.approx(its.objective)
        assert len(their.scores) == N_ROWS
