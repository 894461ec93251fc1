"""The direct methods: optima by brute force, and class sizes that are met or reported as not met."""

from itertools import pairwise

import numpy as np
import pytest
from helpers.solver_problems import maxent_problem, solve_direct, solve_posterior
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from transduce import (
    EntropyRegularizedClassifier,
    ExpectationConstrainedClassifier,
    ExpectationRegularizedClassifier,
    PosteriorRegularizedClassifier,
)
from transduce.design import Design
from transduce.history import FitStatus
from transduce.losses import MaxEnt
from transduce.problem import TrainingProblem
from transduce.solvers.direct import MAX_RESIDUAL
from transduce.taxonomy import Taxonomy

N_LABELED, ALPHA = 12, 1e-2
TREES = {
    "two": Taxonomy.flat(range(2)),
    "flat": Taxonomy.flat(range(4)),
    "tree": Taxonomy.create(["a/x/1", "a/x/2", "a/y", "b"]),
}
every_tree = pytest.mark.parametrize("taxonomy", TREES.values(), ids=TREES)


def sizes(problem, W) -> np.ndarray:
    """Predicted class sizes of the unlabelled rows."""
    return MaxEnt().posterior(problem.design.scores(W)[problem.n_labeled :]).sum(axis=0)


def supervised_objective(problem, W, truth) -> float:
    return problem.objective(W, truth, problem.kappa(0.0))


def entropy_of(problem, W) -> float:
    p = MaxEnt().posterior(problem.design.scores(W)[problem.n_labeled :])
    return float(-(p * np.log(p)).sum(axis=1).mean())


@every_tree
def test_expectation_constraint_reaches_the_optimum_under_constraints(taxonomy):
    """The optimum by sequential quadratic programming from several starts."""
    problem, truth, counts = maxent_problem(taxonomy)
    result = solve_direct(problem, truth, counts)
    assert result.status is FitStatus.CONSTRAINTS_MET
    assert np.all(np.abs(sizes(problem, result.W) - counts) <= MAX_RESIDUAL * counts)
    shape = result.W.shape
    best = min(
        answer.fun
        for seed in range(2)
        if (
            answer := minimize(
                lambda flat: supervised_objective(problem, flat.reshape(shape), truth),
                np.random.default_rng(seed).normal(size=result.W.size),
                constraints={"type": "eq", "fun": lambda flat: (sizes(problem, flat.reshape(shape)) - counts)[1:]},
                method="SLSQP",
                options={"maxiter": 500, "ftol": 1e-10},
            )
        ).success
    )
    assert supervised_objective(problem, result.W, truth) == pytest.approx(best, rel=2e-3)


@every_tree
def test_expectation_regularisation_reaches_the_brute_force_optimum(taxonomy):
    problem, truth, counts = maxent_problem(taxonomy)
    result = solve_direct(problem, truth, counts, enforced=False, mismatch=20.0)
    n = counts.sum()

    def objective(flat):
        W = flat.reshape(result.W.shape)
        return supervised_objective(problem, W, truth) + 20.0 * np.sum(((sizes(problem, W) - counts) / n) ** 2)

    best = min(
        minimize(objective, np.random.default_rng(seed).normal(size=result.W.size), method="BFGS").fun
        for seed in range(3)
    )
    assert result.status is FitStatus.PENALIZED
    assert objective(result.W.ravel()) == pytest.approx(best, rel=1e-4)


@every_tree
def test_entropy_regularisation_lowers_the_entropy_at_the_same_sizes(taxonomy):
    problem, truth, counts = maxent_problem(taxonomy)
    plain, low_entropy = (solve_direct(problem, truth, counts, entropy, tol=1e-4) for entropy in (0.0, 1.0))
    assert plain.status is low_entropy.status is FitStatus.CONSTRAINTS_MET
    assert np.all(np.abs(sizes(problem, low_entropy.W) - counts) <= MAX_RESIDUAL * counts)
    assert entropy_of(problem, low_entropy.W) < 0.7 * entropy_of(problem, plain.W)
    assert supervised_objective(problem, low_entropy.W, truth) >= supervised_objective(problem, plain.W, truth)


def test_sizes_may_be_ranges():
    problem, truth, counts = maxent_problem(TREES["flat"])
    low, high = counts // 2, counts + 20
    result = solve_direct(problem, truth, low, high=high)
    mass = sizes(problem, result.W)
    assert result.status is FitStatus.CONSTRAINTS_MET
    assert np.all(mass >= low * (1 - MAX_RESIDUAL))
    assert np.all(mass <= high + MAX_RESIDUAL * np.maximum(low, 1))
    exact = solve_direct(problem, truth, counts)
    assert supervised_objective(problem, result.W, truth) <= supervised_objective(problem, exact.W, truth) + 1e-9


@every_tree
def test_posterior_regularisation_falls_and_meets_the_sizes(taxonomy):
    problem, truth, counts = maxent_problem(taxonomy)
    result = solve_posterior(problem, truth, counts, 0.5, 1e-6, 100)
    values = [row.objective for row in result.history[1:]]
    assert result.status is FitStatus.NEARBY
    assert all(later <= earlier + 1e-6 for earlier, later in pairwise(values))
    assert all(row.residual <= MAX_RESIDUAL for row in result.history)
    before = np.abs(sizes(problem, solve_direct(problem, truth, counts, enforced=False).W) - counts).sum()
    assert np.abs(sizes(problem, result.W) - counts).sum() < before


@every_tree
def test_labels_meet_the_counts_and_given_ones_stay(taxonomy):
    problem, truth, counts = maxent_problem(taxonomy)
    result = solve_direct(problem, truth, counts, 1.0, tol=1e-4)
    assert np.array_equal(np.bincount(result.labels[N_LABELED:], minlength=len(counts)), counts)
    assert np.array_equal(result.labels[:N_LABELED], truth[:N_LABELED])


def test_sizes_that_are_not_met_are_reported():
    problem, truth, counts = maxent_problem(TREES["flat"])
    wild = np.array([counts.sum() - 3, 1, 1, 1])
    assert solve_direct(problem, truth, wild, max_rounds=1).status is FitStatus.UNMET
    X = np.random.default_rng(0).normal(size=(30, 3))
    y = np.array([0, 1, 2] + [-1] * 27)
    with pytest.warns(ConvergenceWarning, match="class sizes are still off"):
        ExpectationConstrainedClassifier(max_iter=1, class_prior=[25, 1, 1]).fit(X, y)


def test_an_interrupt_keeps_the_last_round():
    problem, truth, counts = maxent_problem(TREES["flat"])
    seen = []

    def stop(row):
        seen.append(row)
        if len(seen) == 4:
            raise KeyboardInterrupt

    result = solve_direct(problem, truth, counts, 1.0, on_round=stop)
    assert result.status is FitStatus.INTERRUPTED
    assert np.array_equal(np.bincount(result.labels[N_LABELED:], minlength=4), counts)
    assert result.objective == seen[-1].objective


@pytest.mark.parametrize(
    "kind", [EntropyRegularizedClassifier, ExpectationRegularizedClassifier, PosteriorRegularizedClassifier]
)
def test_weights_must_be_above_zero(kind):
    with pytest.raises(ValueError, match="unlabeled_weight must be a number above 0"):
        kind(unlabeled_weight=-1.0).fit(np.eye(3), [0, 1, -1])


def test_float32_rows_and_extreme_posteriors_stay_finite():
    X = (100.0 * np.random.default_rng(0).normal(size=(40, 3))).astype(np.float32)
    y = np.array([0, 1, 2] + [-1] * 37)
    model = EntropyRegularizedClassifier(random_state=0).fit(X, y)
    assert np.isfinite(model.objective_)
    assert model.coef_.dtype == np.float32


def test_the_scale_of_rows_does_not_matter():
    """Rows a thousand times as short with alpha a million times as small are the same problem."""
    problem, truth, counts = maxent_problem(TREES["flat"])
    rows = problem.design.matrix()
    small = TrainingProblem.create(
        Design.create(1e-3 * rows, TREES["flat"]),
        MaxEnt(),
        1e-6 * ALPHA,
        N_LABELED,
    )
    one, other = (solve_direct(p, truth, counts, 1.0, tol=1e-4) for p in (problem, small))
    assert one.objective == pytest.approx(other.objective, rel=1e-2)


def test_posterior_regularisation_refuses_uneven_weights_of_unlabelled_rows():
    X, y = np.random.default_rng(0).normal(size=(9, 3)), np.array([0, 1, 2] + [-1] * 6)
    with pytest.raises(ValueError, match="the same for all unlabelled rows"):
        PosteriorRegularizedClassifier().fit(X, y, sample_weight=np.arange(1.0, 10.0))
