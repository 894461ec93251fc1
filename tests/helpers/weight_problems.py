"""Small training problems for the weight steps, and independent methods to find and check their optima."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from transduce.design import Design
from transduce.losses import LargeMargin, MaxEnt, SmoothMargin, SquaredLargeMargin
from transduce.losses.blockwise import as_distributions
from transduce.problem import TrainingProblem
from transduce.taxonomy import Taxonomy
from transduce.weight_step import weight_step_for

N_ROWS, N_FEATURES = 240, 40
FLAT = {k: Taxonomy.flat(range(k)) for k in (2, 3, 4, 6)}
TREE = Taxonomy.create(["a/x/1", "a/x/2", "a/y", "b", "c/z"])  # depths 3, 3, 2, 1, 2
TAXONOMIES = {"flat": FLAT[4], "tree": TREE}

flat_and_tree = pytest.mark.parametrize("taxonomy", TAXONOMIES.values(), ids=TAXONOMIES)
dual_losses = pytest.mark.parametrize(
    "loss", [LargeMargin(), SquaredLargeMargin(), MaxEnt()], ids=["large-margin", "squared", "maxent"]
)


def some_rows(n_classes: int, seed: int = 0, n: int = N_ROWS) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Sparse rows of length about 1 in overlapping classes, and their labels, a tenth of them wrong."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(n_classes, size=n)
    topics = rng.random((n_classes, N_FEATURES)) < 0.3
    present = rng.random((n, N_FEATURES)) < np.where(topics[labels], 0.4, 0.1)
    X = sparse.csr_matrix(present * rng.random((n, N_FEATURES)))
    X = sparse.csr_matrix(X / max(float(np.sqrt(X.multiply(X).sum(axis=1)).mean()), 1e-9))
    wrong = rng.random(n) < 0.1
    return X, np.where(wrong, rng.integers(n_classes, size=n), labels).astype(np.int64)


def training(taxonomy=FLAT[4], loss=None, alpha=1e-2, seed=0, X=None, labels=None):
    """A problem with only labelled rows, and its labels."""
    rows, truth = some_rows(taxonomy.n_classes, seed)
    design = Design.create(rows if X is None else X, taxonomy)
    labels = truth if labels is None else labels
    return TrainingProblem.create(design, loss or LargeMargin(), alpha, design.n_rows), labels


def fit(problem, targets, tol=1e-9, step=None, kappa=None, seed=0):
    """The state and report of a weight step from a cold start."""
    step = step or weight_step_for(problem.loss, 100_000)
    state = step.start(problem, targets)
    step.retarget(problem, state, targets, problem.kappa(1.0) if kappa is None else kappa)
    return state, step.solve(problem, state, tol, np.random.default_rng(seed))


def dense(problem) -> np.ndarray:
    X = problem.design.matrix()
    return X.toarray() if sparse.issparse(X) else X


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
    """The minimum of J by scipy on dense arrays, with nothing from the package but the loss."""
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


def quadratic_programme(problem, labels, squared: bool = False) -> float:
    """The minimum of J by SLSQP, with the losses ξ_i >= Δ + x_i W (P_k − P_y) as variables under linear constraints."""
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
    quadratic = np.concatenate((np.full(n_weights, problem.alpha), 2.0 * kappa if squared else np.zeros(n)))
    answer = minimize(
        lambda z: 0.5 * (quadratic * z * z).sum() + linear @ z,
        np.concatenate((np.zeros(n_weights), np.full(n, bound.max()))),
        jac=lambda z: quadratic * z + linear,
        constraints={"type": "ineq", "fun": lambda z: A @ z - bound, "jac": lambda z: A},
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-12},
    )
    assert answer.success
    return float(answer.fun)


def small_training(taxonomy, loss, seed=1):
    X, labels = some_rows(taxonomy.n_classes, seed, n=12)
    return training(taxonomy, loss, 0.05, X=X[:, :6], labels=labels)


def smooth_margin(name: str, n_classes: int) -> SmoothMargin:
    """A smooth margin with unit margins, or with random ones: not symmetric, some 0."""
    if name == "unit":
        return SmoothMargin(0.1)
    margins = 2.0 * np.random.default_rng(5).random((n_classes, n_classes))
    return SmoothMargin(0.3, np.where(margins < 0.3, 0.0, margins) * (1.0 - np.eye(n_classes)))


def soft_targets(n_classes: int, seed: int = 0, n: int = N_ROWS) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.full(n_classes, 0.4), size=n)
