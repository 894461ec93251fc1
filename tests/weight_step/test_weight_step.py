"""Weight steps against scikit-learn, scipy and the equation that ties weights to dual distributions."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from transduce.design import Design
from transduce.losses import LargeMargin, MaxEnt, SmoothMargin, SquaredLargeMargin
from transduce.problem import TrainingProblem
from transduce.taxonomy import Taxonomy
from transduce.weight_step import LBFGS, DualLargeMargin, DualMaxEnt, DualSquaredLargeMargin, weight_step_for
from transduce.weight_step._kernels import margin
from transduce.weight_step.dual import as_distributions
from transduce.weight_step.sweep_schedule import (
    CHECK_EVERY,
    MAX_EARLY_CHECKS,
    CheckRule,
    run_sweeps,
    sweep_until_converged,
)

N_ROWS, N_FEATURES = 240, 40
FLAT = {k: Taxonomy.flat(range(k)) for k in (2, 3, 4, 6)}
TREE = Taxonomy.create(["a/x/1", "a/x/2", "a/y", "b", "c/z"])  # depths 3, 3, 2, 1, 2
TAXONOMIES = {"flat": FLAT[4], "tree": TREE}

flat_and_tree = pytest.mark.parametrize("taxonomy", TAXONOMIES.values(), ids=TAXONOMIES)
dual_losses = pytest.mark.parametrize(
    "loss", [LargeMargin(), SquaredLargeMargin(), MaxEnt()], ids=["large-margin", "squared", "maxent"]
)


def some_rows(n_classes: int, seed: int = 0, n: int = N_ROWS) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Sparse rows of length about 1, whose classes overlap, and their labels, a tenth of them wrong."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(n_classes, size=n)
    topics = rng.random((n_classes, N_FEATURES)) < 0.3
    present = rng.random((n, N_FEATURES)) < np.where(topics[labels], 0.4, 0.1)
    X = sparse.csr_matrix(present * rng.random((n, N_FEATURES)))
    X = sparse.csr_matrix(X / max(float(np.sqrt(X.multiply(X).sum(axis=1)).mean()), 1e-9))
    wrong = rng.random(n) < 0.1
    return X, np.where(wrong, rng.integers(n_classes, size=n), labels).astype(np.int64)


def training(taxonomy=FLAT[4], loss=None, alpha=1e-2, seed=0, X=None, labels=None):
    """A problem with all rows labelled, and its labels."""
    rows, truth = some_rows(taxonomy.n_classes, seed)
    design = Design.create(rows if X is None else X, taxonomy)
    labels = truth if labels is None else labels
    return TrainingProblem.create(design, loss or LargeMargin(), alpha, design.n_rows), labels


def fit(problem, targets, tol=1e-9, step=None, kappa=None, seed=0):
    """Solve from nothing; the state and the report."""
    step = step or weight_step_for(problem.loss, 100_000)
    state = step.start(problem, targets)
    step.retarget(problem, state, targets, problem.kappa(1.0) if kappa is None else kappa)
    return state, step.solve(problem, state, tol, np.random.default_rng(seed))


def dense(problem) -> np.ndarray:
    return problem.design.matrix().toarray()


def weights_by_equation(problem, state) -> np.ndarray:
    """1/λ Σ_i κ_i x_i (q_i − p_i)ᵀ P."""
    q = as_distributions(state.targets, problem.n_classes)
    if isinstance(problem.loss, SquaredLargeMargin):
        q = q * state.dual.sum(axis=1, keepdims=True)
    residual = state.kappa[:, None] * (q - state.dual)
    return dense(problem).T @ residual @ problem.design.taxonomy.paths.astype(float) / problem.alpha


def check_equation(problem, state, rtol: float = 1e-11) -> None:
    expected = weights_by_equation(problem, state)
    np.testing.assert_allclose(state.W, expected, rtol=0, atol=rtol * max(np.abs(expected).max(), 1.0))
    assert np.all(state.dual >= 0)
    if not isinstance(problem.loss, SquaredLargeMargin):
        np.testing.assert_allclose(state.dual.sum(axis=1), 1.0, atol=rtol)


def brute_force(problem, targets, kappa=None) -> float:
    """The least J by scipy on dense arrays: no line of the package but the loss, over an explicit matrix of paths."""
    kappa = problem.kappa(1.0) if kappa is None else kappa
    X, paths = dense(problem), problem.design.taxonomy.paths.astype(float)

    def value_and_gradient(flat):
        W = flat.reshape(X.shape[1], paths.shape[1])
        scores = X @ W @ paths.T
        residual = kappa[:, None] * problem.loss.gradient(scores, targets)
        value = 0.5 * problem.alpha * (W**2).sum() + kappa @ problem.loss.value(scores, targets)
        return value, (X.T @ residual @ paths + problem.alpha * W).ravel()

    start = np.zeros(X.shape[1] * paths.shape[1])
    options = {"maxiter": 10_000, "maxfun": 10**6, "gtol": 1e-11, "ftol": 1e-16, "maxcor": 30}
    return float(minimize(value_and_gradient, start, jac=True, method="L-BFGS-B", options=options).fun)


# ---- other packages


@pytest.mark.parametrize(("n_classes", "alpha", "seed"), [(3, 1e-2, 0), (4, 1e-3, 1), (6, 3e-2, 2), (6, 1e-3, 3)])
def test_large_margin_reaches_the_objective_of_linear_svc(n_classes, alpha, seed):
    problem, labels = training(FLAT[n_classes], LargeMargin(), alpha, seed)
    svc = LinearSVC(multi_class="crammer_singer", fit_intercept=False, C=1 / (N_ROWS * alpha), tol=1e-8, max_iter=10**6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        svc.fit(dense(problem), labels)
    theirs = problem.objective(np.ascontiguousarray(svc.coef_.T), labels, problem.kappa(1.0))
    _, report = fit(problem, labels, 1e-8)
    assert report.converged
    assert report.objective == pytest.approx(theirs, rel=1e-6)


@pytest.mark.parametrize(("n_classes", "alpha", "seed"), [(3, 1e-2, 0), (4, 1e-3, 1), (6, 3e-2, 2), (6, 1e-3, 3)])
def test_maxent_reaches_the_objective_of_logistic_regression(n_classes, alpha, seed):
    problem, labels = training(FLAT[n_classes], MaxEnt(), alpha, seed)
    peer = LogisticRegression(fit_intercept=False, C=1 / (N_ROWS * alpha), tol=1e-10, max_iter=10_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer.fit(dense(problem), labels)
    theirs = problem.objective(np.ascontiguousarray(peer.coef_.T), labels, problem.kappa(1.0))
    _, report = fit(problem, labels, 1e-9)
    assert report.converged
    assert report.objective == pytest.approx(theirs, rel=1e-7)


@flat_and_tree
@pytest.mark.parametrize("step", [DualMaxEnt(100_000), LBFGS(10_000)], ids=["dual", "smooth"])
def test_maxent_reaches_the_brute_force_optimum(taxonomy, step):
    problem, labels = training(taxonomy, MaxEnt())
    _, report = fit(problem, labels, 1e-6 if isinstance(step, LBFGS) else 1e-8, step)
    assert report.converged
    assert report.objective == pytest.approx(brute_force(problem, labels), rel=1e-8)


def quadratic_programme(problem, labels, squared: bool = False) -> float:
    """The least J with the losses ξ as variables under linear constraints, ξ_i >= Δ + x_i W (P_k − P_y), by SLSQP."""
    taxonomy, x, kappa = problem.design.taxonomy, dense(problem), problem.kappa(1.0)
    paths, n, n_weights = taxonomy.paths.astype(float), problem.n_rows, x.shape[1] * taxonomy.n_nodes
    A = np.zeros((n, taxonomy.n_classes, n_weights + n))
    for i in range(n):
        for k in range(taxonomy.n_classes):
            A[i, k, :n_weights] = -np.outer(x[i], paths[k] - paths[labels[i]]).ravel()
            A[i, k, n_weights + i] = 1.0
    A = A.reshape(-1, n_weights + n)
    bound = LargeMargin(problem.loss.margins).margin_matrix(taxonomy.n_classes)[labels].ravel()
    linear = np.concatenate((np.zeros(n_weights), np.zeros(n) if squared else kappa))
    bend = np.concatenate((np.full(n_weights, problem.alpha), 2.0 * kappa if squared else np.zeros(n)))
    answer = minimize(
        lambda z: 0.5 * (bend * z * z).sum() + linear @ z,
        np.concatenate((np.zeros(n_weights), np.full(n, bound.max()))),
        jac=lambda z: bend * z + linear,
        constraints={"type": "ineq", "fun": lambda z: A @ z - bound, "jac": lambda z: A},
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-12},
    )
    assert answer.success
    return float(answer.fun)


def small_training(taxonomy, loss, seed=1):
    X, labels = some_rows(taxonomy.n_classes, seed, n=12)
    return training(taxonomy, loss, 0.05, X=X[:, :6], labels=labels)


@flat_and_tree
@pytest.mark.parametrize("name", ["unit", "tree"])
def test_large_margin_reaches_the_optimum_of_a_quadratic_programme(taxonomy, name):
    problem, labels = small_training(taxonomy, LargeMargin(None if name == "unit" else taxonomy.margins()))
    _, report = fit(problem, labels, 1e-9)
    assert report.converged
    assert report.objective == pytest.approx(quadratic_programme(problem, labels), rel=1e-6)


@pytest.mark.parametrize(
    "taxonomy",
    [
        FLAT[2],
        FLAT[4],
        TREE,
    ],
    ids=["two", "flat", "tree"],
)
def test_squared_large_margin_reaches_the_optimum_of_a_quadratic_programme(taxonomy):
    problem, labels = small_training(taxonomy, SquaredLargeMargin())
    _, report = fit(problem, labels, 1e-6)
    assert report.objective == pytest.approx(quadratic_programme(problem, labels, squared=True), rel=1e-4)


# ---- certificates and the equation


@dual_losses
@flat_and_tree
def test_the_gap_bounds_the_distance_from_the_optimum(taxonomy, loss):
    problem, labels = training(taxonomy, loss)
    best = fit(problem, labels, 1e-9)[1].objective
    for tol in (0.5, 1e-1, 1e-2, 1e-4):
        state, report = fit(problem, labels, tol, seed=1)
        assert report.converged
        assert 0 <= report.gap <= tol * report.objective
        assert best * (1 - 1e-9) <= report.objective <= best + report.gap + 1e-9 * best
        assert report.objective == pytest.approx(problem.objective(state.W, labels, state.kappa), rel=1e-12)
        np.testing.assert_array_equal(report.scores, problem.design.scores(state.W))


@dual_losses
@flat_and_tree
def test_the_gap_is_a_bound_even_when_sweeps_run_out(taxonomy, loss):
    problem, labels = training(taxonomy, loss, 1e-3)
    best = fit(problem, labels, 1e-9)[1].objective
    state, report = fit(problem, labels, 1e-12, type(weight_step_for(loss, 1))(max_sweeps=1))
    assert not report.converged
    assert report.objective == pytest.approx(problem.objective(state.W, labels, state.kappa), rel=1e-12)
    assert report.objective - best <= report.gap * (1 + 1e-9)


@dual_losses
@flat_and_tree
def test_weights_equal_what_the_distributions_say_at_all_times(taxonomy, loss):
    problem, labels = training(taxonomy, loss)
    step, rng = weight_step_for(loss, 1000), np.random.default_rng(0)
    kappa = problem.kappa(1.0) * np.where(np.arange(N_ROWS) < 150, 1.0, 0.0)
    state = step.start(problem, labels)
    check_equation(problem, state)
    for growth in (1.0, 1.0, 3.0, 1.7, 1.0, 10.0):
        kappa = growth * kappa
        kappa[150:] = np.maximum(kappa[150:], 1e-4 * (growth > 1))
        changed = rng.random(N_ROWS) < 0.1
        labels = np.where(changed, rng.integers(problem.n_classes, size=N_ROWS), labels)
        step.retarget(problem, state, labels, kappa)
        check_equation(problem, state)
        np.testing.assert_array_equal(state.targets, labels)
        np.testing.assert_array_equal(state.kappa, kappa)
        step.solve(problem, state, 1e-3, rng)
        check_equation(problem, state)


def test_growing_row_weights_leave_the_weights_alone():
    problem, labels = training()
    step, kappa = DualLargeMargin(1000), problem.kappa(1.0)
    state, _ = fit(problem, labels, 1e-3)
    before = state.W.copy()
    step.retarget(problem, state, labels, 5.0 * kappa)
    np.testing.assert_array_equal(state.W, before)
    check_equation(problem, state)


@dual_losses
def test_targets_and_row_weights_are_not_modified_nor_kept(loss):
    problem, labels = training(loss=loss)
    kappa = problem.kappa(1.0)
    copies = labels.copy(), kappa.copy()
    state, _ = fit(problem, labels, 1e-3, kappa=kappa)
    np.testing.assert_array_equal(labels, copies[0])
    np.testing.assert_array_equal(kappa, copies[1])
    assert not np.shares_memory(state.targets, labels)
    assert not np.shares_memory(state.kappa, kappa)


# ---- one row: the closed form and the steps between two classes


def test_projection_is_the_nearest_point_of_the_simplex():
    """Its optimality condition: p = max(z − τ, 0) for the one τ that makes it sum to 1."""
    rng = np.random.default_rng(0)
    for trial in range(300):
        z = rng.normal(size=rng.integers(1, 12)) * 10.0 ** rng.integers(-3, 4)
        if trial % 5 == 0:
            z = np.rint(z)
        p = np.empty_like(z)
        margin.project_onto_simplex(z, p)
        scale = 1e-12 * max(np.abs(z).max(), 1.0)
        assert p.sum() == pytest.approx(1.0, abs=10 * scale)
        threshold = (z - p)[p > 0]
        assert np.ptp(threshold) <= scale
        assert np.all(z[p == 0] <= threshold.max() + scale)


def test_exchange_without_overlap_equals_the_projection():
    rng = np.random.default_rng(1)
    for _ in range(300):
        k = int(rng.integers(1, 9))
        curvature = float(10.0 ** rng.uniform(-2, 2))
        p, G = rng.dirichlet(np.full(k, 0.5)), rng.normal(size=k)
        expected = np.empty(k)
        margin.project_onto_simplex(p + G / curvature, expected)
        found = p.copy()
        margin.pairwise_ascent(G.copy(), curvature, np.eye(k), found, 1e-12)
        np.testing.assert_allclose(found, expected, atol=1e-9 * max(1.0, 1.0 / curvature))


def test_exchange_in_a_tree_is_optimal_and_returns_its_gradient():
    """At the optimum no class has a steeper gradient than those that hold probability."""
    rng = np.random.default_rng(2)
    paths = TREE.paths.astype(float)
    overlap = paths @ paths.T
    for _ in range(200):
        curvature = float(10.0 ** rng.uniform(-2, 2))
        p, G = rng.dirichlet(np.full(TREE.n_classes, 0.5)), rng.normal(size=TREE.n_classes)
        found, gradient = p.copy(), G.copy()
        margin.pairwise_ascent(gradient, curvature, overlap, found, 1e-9)
        assert found.sum() == pytest.approx(1.0)
        assert np.all(found >= 0)
        np.testing.assert_allclose(gradient, G - curvature * overlap @ (found - p), atol=1e-9 * (1 + curvature))
        assert gradient.max() - gradient[found > 0].min() <= 1e-8 * (1 + curvature)


# ---- trees


@flat_and_tree
def test_scores_and_their_way_back_equal_dense_products(taxonomy):
    problem, _ = training(taxonomy)
    rng = np.random.default_rng(0)
    W = rng.normal(size=(N_FEATURES, taxonomy.n_nodes))
    R = rng.normal(size=(N_ROWS, taxonomy.n_classes))
    X, paths = dense(problem), taxonomy.paths.astype(float)
    np.testing.assert_allclose(problem.design.scores(W), X @ W @ paths.T, atol=1e-12)
    np.testing.assert_allclose(problem.design.pullback(R), X.T @ R @ paths, atol=1e-12)
    np.testing.assert_allclose(problem.design.squared_norms, (X**2).sum(axis=1), atol=1e-12)
    np.testing.assert_array_equal(problem.design.overlap, paths @ paths.T)


@dual_losses
def test_a_tree_of_only_children_is_a_flat_problem_with_rows_times_root_two(loss):
    """Parent and child move together, so each class has its weights twice: scores double where weights are equal."""
    X, labels = some_rows(3)
    chains, _ = training(Taxonomy.create(["a/x", "b/y", "c/z"]), loss, X=X, labels=labels)
    flat, _ = training(FLAT[3], loss, X=X * np.sqrt(2.0), labels=labels)
    state, one = fit(chains, labels, 1e-10)
    _, other = fit(flat, labels, 1e-10)
    assert one.objective == pytest.approx(other.objective, rel=1e-8)
    np.testing.assert_allclose(state.W[:, 0::2], state.W[:, 1::2], atol=1e-10)
    np.testing.assert_allclose(one.scores, 2.0 * dense(chains) @ state.W[:, 1::2], atol=1e-9)


def test_margins_of_the_tree_and_any_others_converge():
    rng = np.random.default_rng(0)
    anything = rng.random((5, 5)) * 3.0 * (1 - np.eye(5))
    for taxonomy in (TREE, Taxonomy.flat(range(5))):
        for margins in (TREE.margins(), anything):
            problem, labels = training(taxonomy, LargeMargin(margins))
            best = fit(problem, labels, 1e-8)[1]
            assert best.converged
            state, rough = fit(problem, labels, 1e-2, seed=3)
            assert rough.objective - best.objective <= rough.gap * (1 + 1e-6)
            assert rough.objective == pytest.approx(problem.objective(state.W, labels, state.kappa), rel=1e-12)


# ---- warm starts


@dual_losses
@flat_and_tree
def test_a_warm_start_needs_fewer_sweeps_and_ends_at_the_same_objective(taxonomy, loss):
    problem, labels = training(taxonomy, loss, 1e-3)
    step, kappa, n_warm, n_cold = weight_step_for(loss, 100_000), problem.kappa(1.0), 0.0, 0.0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        other, changed = labels.copy(), rng.choice(N_ROWS, N_ROWS // 20, replace=False)
        other[changed] = (other[changed] + 1) % problem.n_classes
        state, _ = fit(problem, labels, 1e-2, seed=seed)
        step.retarget(problem, state, other, kappa)
        n_warm += step.solve(problem, state, 1e-2, rng).n_sweeps
        n_cold += fit(problem, other, 1e-2, seed=seed)[1].n_sweeps
        best = fit(problem, other, 1e-7)[1].objective
        assert step.solve(problem, state, 1e-7, rng).objective == pytest.approx(best, rel=2e-7)
    assert n_warm < n_cold


@pytest.mark.parametrize(
    ("taxonomy", "loss"),
    [
        (FLAT[2], SquaredLargeMargin()),
        (FLAT[4], MaxEnt()),
    ],
    ids=["squared-two", "maxent"],
)
def test_smooth_never_ends_above_where_it_starts(taxonomy, loss):
    problem, labels = training(taxonomy, loss)
    step, kappa, rng = LBFGS(1000), problem.kappa(1.0), np.random.default_rng(0)
    state, _ = fit(problem, labels, 1e-2, step)
    for _ in range(5):
        labels = np.where(rng.random(N_ROWS) < 0.05, rng.integers(taxonomy.n_classes, size=N_ROWS), labels)
        step.retarget(problem, state, labels, kappa)
        before = problem.objective(state.W, labels, kappa)
        assert step.solve(problem, state, 0.5, rng).objective <= before


@dual_losses
@pytest.mark.parametrize("share", [0.5, 1e-9])
def test_shrinking_row_weights_are_refused(loss, share):
    problem, labels = training(loss=loss)
    state, _ = fit(problem, labels, 1e-2)
    kappa = problem.kappa(1.0)
    kappa[7] *= share
    with pytest.raises(ValueError, match="can only grow; start a new state"):
        weight_step_for(loss, 10).retarget(problem, state, labels, kappa)


@dual_losses
def test_row_weights_that_shrink_to_nothing_are_refused(loss):
    problem, labels = training(loss=loss)
    state, _ = fit(problem, labels, 1e-2)
    kappa = problem.kappa(1.0)
    kappa[7] = 0.0
    with pytest.raises(ValueError, match="can only grow; start a new state"):
        weight_step_for(loss, 10).retarget(problem, state, labels, kappa)


# ---- smooth losses and soft targets


@pytest.mark.parametrize(
    ("taxonomy", "loss"),
    [
        (FLAT[2], SquaredLargeMargin()),
        (FLAT[4], MaxEnt()),
        (TREE, MaxEnt()),
    ],
    ids=["squared-two", "maxent-flat", "maxent-tree"],
)
def test_smooth_ends_with_a_small_gradient(taxonomy, loss):
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


@flat_and_tree
def test_soft_targets_of_maxent_equal_the_answer_of_smooth(taxonomy):
    problem, _ = training(taxonomy, MaxEnt())
    rng = np.random.default_rng(0)
    soft = rng.dirichlet(np.full(taxonomy.n_classes, 0.4), size=N_ROWS)
    state, dual = fit(problem, soft, 1e-9)
    check_equation(problem, state)
    _, smooth = fit(problem, soft, 1e-7, LBFGS(10_000))
    assert dual.converged
    assert dual.objective == pytest.approx(smooth.objective, rel=1e-8)
    assert dual.objective == pytest.approx(brute_force(problem, soft), rel=1e-8)
    assert dual.objective == pytest.approx(problem.objective(state.W, soft, state.kappa), rel=1e-10)
    other = np.where((rng.random(N_ROWS) < 0.1)[:, None], np.roll(soft, 1, axis=1), soft)
    step = DualMaxEnt(1000)
    step.retarget(problem, state, other, 2.0 * problem.kappa(1.0))
    check_equation(problem, state)
    report = step.solve(problem, state, 1e-9, rng)
    assert report.objective == pytest.approx(brute_force(problem, other, 2.0 * problem.kappa(1.0)), rel=1e-8)


@pytest.mark.parametrize(
    ("loss", "kind"),
    [
        (LargeMargin(), DualLargeMargin),
        (MaxEnt(), DualMaxEnt),
        (SquaredLargeMargin(), DualSquaredLargeMargin),
        (SmoothMargin(), DualMaxEnt),
        (object(), LBFGS),
    ],
)
def test_each_loss_gets_its_weight_step(loss, kind):
    assert weight_step_for(loss, 3) == kind(3)


# ---- the smooth margin, and soft targets that change


def smooth_margin(name: str, n_classes: int) -> SmoothMargin:
    """Unit margins, or any others: not symmetric, some of them 0."""
    if name == "unit":
        return SmoothMargin(0.1)
    margins = 2.0 * np.random.default_rng(5).random((n_classes, n_classes))
    return SmoothMargin(0.3, np.where(margins < 0.3, 0.0, margins) * (1.0 - np.eye(n_classes)))


def soft_targets(n_classes: int, seed: int = 0, n: int = N_ROWS) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.full(n_classes, 0.4), size=n)


any_margins = pytest.mark.parametrize("name", ["unit", "any"])
hard_and_soft = pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])


@flat_and_tree
@any_margins
@hard_and_soft
def test_the_smooth_margin_reaches_the_optimum_of_smooth(taxonomy, name, soft):
    problem, targets = training(taxonomy, smooth_margin(name, taxonomy.n_classes))
    targets = soft_targets(taxonomy.n_classes) if soft else targets
    state, dual = fit(problem, targets, 1e-8)
    assert dual.converged
    check_equation(problem, state)
    _, smooth = fit(problem, targets, 1e-7, LBFGS(10_000))
    assert dual.objective == pytest.approx(smooth.objective, rel=1e-7)
    assert dual.objective == pytest.approx(problem.objective(state.W, targets, state.kappa), rel=1e-10)


@flat_and_tree
@any_margins
@hard_and_soft
def test_the_gap_of_the_smooth_margin_bounds_the_distance_from_the_optimum(taxonomy, name, soft):
    problem, targets = training(taxonomy, smooth_margin(name, taxonomy.n_classes), 1e-3)
    targets = soft_targets(taxonomy.n_classes) if soft else targets
    best = fit(problem, targets, 1e-9)[1].objective
    for max_sweeps, tol in ((1, 1e-12), (4, 1e-12), (10_000, 1e-1), (10_000, 1e-3)):
        state, report = fit(problem, targets, tol, DualMaxEnt(max_sweeps), seed=1)
        assert report.converged == (max_sweeps > 4)
        assert report.gap >= 0
        assert best * (1 - 1e-8) <= report.objective <= best + report.gap * (1 + 1e-9) + 1e-8 * best
        assert report.objective == pytest.approx(problem.objective(state.W, targets, state.kappa), rel=1e-10)


def test_a_smooth_margin_without_margins_is_solved_as_maxent():
    problem, labels = training(loss=MaxEnt())
    same, _ = training(loss=SmoothMargin(1.0, np.zeros((4, 4))))
    for targets in (labels, soft_targets(4)):
        one, other = fit(problem, targets, 1e-9)[1], fit(same, targets, 1e-9)[1]
        assert other.objective == pytest.approx(one.objective, rel=1e-8)


@flat_and_tree
@pytest.mark.parametrize("name", ["maxent", "unit", "any"])
def test_weights_follow_soft_targets_and_row_weights_wherever_they_go(taxonomy, name):
    """Row weights may fall, and rows come in late: the equation holds after every retarget and every solve."""
    k = taxonomy.n_classes
    problem, labels = training(taxonomy, MaxEnt() if name == "maxent" else smooth_margin(name, k))
    step, rng, kappa = DualMaxEnt(3), np.random.default_rng(0), problem.kappa(1.0)
    late = np.arange(N_ROWS) >= 150
    targets = np.where(late[:, None], np.full(k, 1.0 / k), np.eye(k)[labels])
    state = step.start(problem, targets)
    step.retarget(problem, state, targets, np.where(late, 0.0, kappa))
    check_equation(problem, state)
    step.solve(problem, state, 1e-3, rng)
    check_equation(problem, state)
    for round_, weight in enumerate((0.03, 0.2, 1.0, 0.4)):
        before, fresh = state.W.copy(), (state.kappa == 0).any()
        targets = np.where(late[:, None], soft_targets(k, round_), targets)
        now = np.where(late, weight * kappa, kappa)
        step.retarget(problem, state, targets, now)
        np.testing.assert_array_equal(state.targets, targets)
        np.testing.assert_array_equal(state.kappa, now)
        check_equation(problem, state)
        if fresh:  # rows that had no weight until now pull nothing yet
            np.testing.assert_allclose(state.W, before, atol=1e-11)
        report = step.solve(problem, state, 0.0, rng)
        check_equation(problem, state)
        assert report.objective == pytest.approx(problem.objective(state.W, targets, now), rel=1e-10)
    best = fit(problem, targets, 1e-9, kappa=now)[1].objective
    assert DualMaxEnt(10_000).solve(problem, state, 1e-9, rng).objective == pytest.approx(best, rel=1e-8)


@any_margins
def test_soft_targets_that_become_hard_end_at_the_optimum_of_the_labels(name):
    problem, labels = training(loss=smooth_margin(name, 4))
    step, kappa, rng = DualMaxEnt(10_000), problem.kappa(1.0), np.random.default_rng(0)
    state, _ = fit(problem, soft_targets(4), 1e-2)
    step.retarget(problem, state, np.eye(4)[labels], kappa)
    report = step.solve(problem, state, 1e-9, rng)
    assert report.objective == pytest.approx(fit(problem, labels, 1e-9)[1].objective, rel=1e-8)


@flat_and_tree
@hard_and_soft
def test_the_smooth_margin_in_float32_comes_close(taxonomy, soft):
    X, targets = some_rows(taxonomy.n_classes)
    targets = soft_targets(taxonomy.n_classes) if soft else targets
    loss = smooth_margin("any", taxonomy.n_classes)
    best = fit(training(taxonomy, loss, X=X)[0], targets, 1e-6)[1].objective
    small, _ = training(taxonomy, loss, X=X.astype(np.float32))
    state, report = fit(small, targets, 1e-3)
    assert state.W.dtype == state.dual.dtype == report.scores.dtype == np.float32
    assert report.converged
    assert report.objective == pytest.approx(best, rel=2e-3)
    check_equation(small, state, rtol=1e-4)


def test_soft_targets_are_not_modified_nor_kept():
    problem, _ = training(loss=SmoothMargin())
    targets, kappa = soft_targets(4), problem.kappa(1.0)
    copies = targets.copy(), kappa.copy()
    state, _ = fit(problem, targets, 1e-3, kappa=kappa)
    np.testing.assert_array_equal(targets, copies[0])
    np.testing.assert_array_equal(kappa, copies[1])
    assert not any(np.shares_memory(targets, array) for array in (state.targets, state.dual))
    assert not np.shares_memory(state.kappa, kappa)


# ---- edges


@dual_losses
@flat_and_tree
def test_rows_without_features_cost_what_they_must(taxonomy, loss):
    """Such rows have scores 0 whatever the weights, so the others are solved as if alone."""
    X, labels = some_rows(taxonomy.n_classes)
    empty = np.arange(N_ROWS) % 10 == 0
    X = sparse.csr_matrix(X.multiply(~empty[:, None]))
    problem, _ = training(taxonomy, loss, X=X, labels=labels)
    state, report = fit(problem, labels, 1e-9)
    assert report.converged
    check_equation(problem, state)
    kappa = problem.kappa(1.0)
    without = np.where(empty, 0.0, kappa)
    _, alone = fit(problem, labels, 1e-9, kappa=without)
    zero = problem.loss.value(np.zeros((N_ROWS, taxonomy.n_classes)), labels)
    assert report.objective == pytest.approx(alone.objective + kappa[empty] @ zero[empty], rel=1e-7)


@dual_losses
@flat_and_tree
def test_rows_without_weight_are_as_if_absent(taxonomy, loss):
    X, labels = some_rows(taxonomy.n_classes)
    problem, _ = training(taxonomy, loss, X=X, labels=labels)
    kappa = problem.kappa(1.0)
    kappa[100:] = 0.0
    state, report = fit(problem, labels, 1e-9, kappa=kappa)
    few, _ = training(taxonomy, loss, X=X[:100], labels=labels[:100])
    _, alone = fit(few, labels[:100], 1e-9, kappa=kappa[:100])
    assert report.objective == pytest.approx(alone.objective, rel=1e-8)
    check_equation(problem, state)
    at_rest = weight_step_for(loss, 1).start(problem, labels).dual
    np.testing.assert_array_equal(state.dual[100:], at_rest[100:])


@flat_and_tree
@pytest.mark.parametrize(
    "loss",
    [
        LargeMargin(),
        MaxEnt(),
        SquaredLargeMargin(),
    ],
    ids=lambda loss: type(loss).__name__,
)
def test_float32_stays_and_comes_close(taxonomy, loss):
    X, labels = some_rows(taxonomy.n_classes)
    problem, _ = training(taxonomy, loss, X=X, labels=labels)
    small, _ = training(taxonomy, loss, X=X.astype(np.float32), labels=labels)
    best = fit(problem, labels, 1e-6)[1].objective
    state, report = fit(small, labels, 1e-3)
    assert state.W.dtype == report.scores.dtype == np.float32
    assert report.converged
    assert report.objective == pytest.approx(best, rel=2e-3)
    check_equation(small, state, rtol=1e-4)


@dual_losses
@flat_and_tree
def test_forms_of_the_rows_do_not_matter(taxonomy, loss):
    X, labels = some_rows(taxonomy.n_classes)
    plain, _ = training(taxonomy, loss, X=X, labels=labels)
    expected = fit(plain, labels, 1e-4)[0].W
    wide = X.copy()
    wide.indices, wide.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    for form in (X.toarray(), X.tocsc(), X.tocoo(), sparse.csr_array(X), wide):
        problem, _ = training(taxonomy, loss, X=form, labels=labels)
        np.testing.assert_allclose(fit(problem, labels, 1e-4)[0].W, expected, atol=1e-12)
    assert training(X=wide)[0].design.indices.dtype == np.int64


def test_whole_numbers_and_booleans_are_rows_too():
    X, labels = some_rows(4)
    present = X.toarray() > 0
    expected = fit(training(X=present.astype(float), labels=labels)[0], labels, 1e-4)[0].W
    for form in (present, present.astype(np.int32), sparse.csr_matrix(present.astype(np.uint8))):
        problem, _ = training(X=form, labels=labels)
        np.testing.assert_array_equal(fit(problem, labels, 1e-4)[0].W, expected)


@pytest.mark.parametrize(
    "loss",
    [
        LargeMargin(),
        MaxEnt(),
    ],
    ids=["large-margin", "maxent"],
)
def test_entries_stored_in_parts_are_summed(loss):
    """CSR may hold an entry twice; scipy and scikit-learn read it as the sum."""
    X, labels = some_rows(4)
    parts = sparse.csr_matrix((np.repeat(X.data / 4, 4), np.repeat(X.indices, 4), 4 * X.indptr), X.shape)
    problem, _ = training(loss=loss, X=parts, labels=labels, alpha=1e-3)
    best = fit(training(loss=loss, X=X, labels=labels, alpha=1e-3)[0], labels, 1e-8)[1].objective
    step = type(weight_step_for(loss, 1))(max_sweeps=3000)
    assert fit(problem, labels, 1e-6, step)[1].objective == pytest.approx(best, rel=1e-5)


@dual_losses
def test_rows_are_not_modified(loss):
    X, labels = some_rows(4)
    copy = X.copy()
    fit(training(loss=loss, X=X, labels=labels)[0], labels, 1e-3)
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(X, name), getattr(copy, name))


@dual_losses
@pytest.mark.parametrize("alpha", [1e-4, 1e3])
def test_very_weak_and_very_strong_regularisers(loss, alpha):
    problem, labels = training(loss=loss, alpha=alpha)
    state, report = fit(problem, labels, 1e-3)
    assert report.converged
    check_equation(problem, state, 1e-9)
    at_zero = problem.objective(np.zeros_like(state.W), labels, state.kappa)
    assert report.objective <= at_zero * (1 + 1e-12)


@dual_losses
def test_the_same_seed_gives_the_same_weights(loss):
    problem, labels = training(TREE, loss)
    np.testing.assert_array_equal(fit(problem, labels, 1e-4, seed=5)[0].W, fit(problem, labels, 1e-4, seed=5)[0].W)


@dual_losses
def test_one_class_and_one_row(loss):
    one_class, labels = training(Taxonomy.flat(["only"]), loss, labels=np.zeros(N_ROWS, np.int64))
    state, report = fit(one_class, labels, 1e-6)
    assert report.objective == pytest.approx(0.0, abs=1e-12)
    assert not state.W.any()
    X, _ = some_rows(4)
    one_row, labels = training(loss=loss, X=X[:1], labels=np.array([2]))
    assert fit(one_row, labels, 1e-6)[1].converged


# ---- the problem


def test_shares_sum_to_one_over_labelled_and_over_unlabelled_rows():
    design = training()[0].design
    rng = np.random.default_rng(0)
    weights = rng.random(N_ROWS) * (rng.random(N_ROWS) < 0.8)
    copy = weights.copy()
    problem = TrainingProblem.create(design, LargeMargin(), 1e-3, 30, weights)
    np.testing.assert_array_equal(weights, copy)
    kappa = problem.kappa(0.25)
    assert kappa[:30].sum() == pytest.approx(1.0)
    assert kappa[30:].sum() == pytest.approx(0.25)
    np.testing.assert_allclose(kappa[:30], weights[:30] / weights[:30].sum())
    np.testing.assert_allclose(kappa[30:], 0.25 * weights[30:] / weights[30:].sum())
    even = TrainingProblem.create(design, LargeMargin(), 1e-3, 30).kappa(0.25)
    np.testing.assert_allclose(even, np.where(np.arange(N_ROWS) < 30, 1 / 30, 0.25 / (N_ROWS - 30)))


def test_shares_of_no_weight_stay_nothing():
    design = training()[0].design
    weights = np.where(np.arange(N_ROWS) < 30, 1.0, 0.0)
    assert not TrainingProblem.create(design, LargeMargin(), 1e-3, 30, weights).row_weights[30:].any()
    everything = TrainingProblem.create(design, LargeMargin(), 1e-3, N_ROWS)
    np.testing.assert_allclose(everything.kappa(5.0), 1 / N_ROWS)


@flat_and_tree
def test_the_objective_follows_its_definition(taxonomy):
    problem, labels = training(taxonomy)
    rng = np.random.default_rng(0)
    W = rng.normal(size=(N_FEATURES, taxonomy.n_nodes))
    kappa = rng.random(N_ROWS) * (rng.random(N_ROWS) < 0.7)
    scores = dense(problem) @ W @ taxonomy.paths.T.astype(float)
    rivals = scores + 1.0 - np.eye(taxonomy.n_classes)[labels]
    losses = rivals.max(axis=1) - scores[np.arange(N_ROWS), labels]
    expected = 0.5 * problem.alpha * (W**2).sum() + kappa @ losses
    assert problem.objective(W, labels, kappa) == pytest.approx(expected, rel=1e-12)


# ---- when J is computed


@pytest.mark.parametrize(
    ("count", "share", "seen", "expected"),
    [
        (1, 1.0, 0.71, False),
        (1, 1.0, 0.69, True),
        (1, 0.05, 0.69, False),  # few rows are visited again sooner than J is computed
        (1, 0.05, 0.27, True),
        (7, 0.05, 9.0, True),  # all rows would be next
        (7, 0.5, 9.0, False),
        (8, 0.05, 9.0, False),
    ],
)
def test_gaps_that_rows_have_seen_say_when_to_compute_all(count, share, seen, expected):
    assert CheckRule.create(1.0).is_due(count, share, seen) is expected


def test_after_vain_attempts_less_must_be_seen_and_all_rows_get_their_sweep():
    rule = CheckRule.create(1.0, last=0.3, n_checks=1)
    assert not rule.is_due(1, 1.0, 0.2)
    assert rule.is_due(1, 1.0, 0.14)
    assert rule.is_due(7, 0.05, 9.0)
    assert not CheckRule.create(1.0, last=0.3, n_checks=MAX_EARLY_CHECKS).is_due(7, 0.05, 9.0)


@pytest.mark.parametrize(("max_sweeps", "n_sweeps"), [(1, 1), (5, 5), (40, 40)])
def test_sweeps_are_spent_and_no_more(max_sweeps, n_sweeps):
    """A weight step that never gets there: the last report is of all sweeps, and gaps are computed in between."""
    swept, reports = [], []

    def go(rule, most):
        return run_sweeps(lambda count: swept.append(count) or (0.5, 1e9), rule, most)

    def report(n_visits):
        reports.append(n_visits)
        return SimpleNamespace(objective=1.0, converged=False)

    sweep_until_converged(max_sweeps, 1e-3, 1.0, go, report)
    assert len(swept) == n_sweeps
    assert reports[-1] == 0.5 * n_sweeps
    assert len(reports) == -(-n_sweeps // CHECK_EVERY)
    assert max(swept) <= CHECK_EVERY
