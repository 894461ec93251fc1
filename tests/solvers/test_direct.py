"""The direct methods: gradients by differences, optima by brute force, class sizes met or said not to be."""

from itertools import pairwise

import numpy as np
import pytest
from helpers.solver_problems import maxent_problem, solve_direct, solve_posterior
from scipy.optimize import approx_fprime, minimize
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
from transduce.solvers.penalties import CountConstraint, Entropy, Mismatch, through_posterior
from transduce.taxonomy import Taxonomy

N_LABELED, ALPHA = 12, 1e-2
TREES = {
    "two": Taxonomy.flat(range(2)),
    "flat": Taxonomy.flat(range(4)),
    "tree": Taxonomy.create(["a/x/1", "a/x/2", "a/y", "b"]),
}
every_tree = pytest.mark.parametrize("taxonomy", TREES.values(), ids=TREES)


def sizes(problem, W) -> np.ndarray:
    """The model's own class sizes on the unlabelled rows."""
    return MaxEnt().posterior(problem.design.scores(W)[problem.n_labeled :]).sum(axis=0)


def supervised_objective(problem, W, truth) -> float:
    return problem.objective(W, truth, problem.kappa(0.0))


def entropy_of(problem, W) -> float:
    p = MaxEnt().posterior(problem.design.scores(W)[problem.n_labeled :])
    return float(-(p * np.log(p)).sum(axis=1).mean())


PENALTIES = {
    "entropy": lambda low, high: Entropy(0.7, np.full(9, 1 / 9)),
    "mismatch": lambda low, high: Mismatch(3.0, low, high),
    "constraint": lambda low, high: CountConstraint(low, high, np.array([0.2, -0.1, 0.3]), 5.0),
}


@pytest.mark.parametrize("ranges", [False, True], ids=["counts", "ranges"])
@pytest.mark.parametrize("make", PENALTIES.values(), ids=PENALTIES)
def test_slopes_equal_differences(make, ranges):
    low = np.array([5, 1, 3])
    penalty = make(low, low + ranges * np.array([1, 4, 0]))
    S = np.random.default_rng(1).normal(size=(9, 3))
    value = lambda flat: penalty.value_and_slope(MaxEnt().posterior(flat.reshape(9, 3)))[0]  # noqa: E731
    p = MaxEnt().posterior(S)
    slope = through_posterior(p, penalty.value_and_slope(p)[1])
    np.testing.assert_allclose(slope.ravel(), approx_fprime(S.ravel(), value, 1e-7), atol=1e-5)


def test_a_range_that_holds_costs_nothing():
    p = MaxEnt().posterior(np.random.default_rng(0).normal(size=(9, 3)))
    low, high = np.floor(p.sum(axis=0)), np.ceil(p.sum(axis=0))
    assert Mismatch(3.0, low, high).value_and_slope(p)[0] == 0.0
    constraint = CountConstraint(low, high, np.zeros(3), 5.0)
    assert constraint.value_and_slope(p)[0] == 0.0
    assert constraint.residual(p) == 0.0


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
        for seed in range(3)
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
@pytest.mark.parametrize("seed", [0, 1])
def test_entropy_regularisation_is_surer_at_the_same_sizes(taxonomy, seed):
    problem, truth, counts = maxent_problem(taxonomy, seed)
    plain, sure = (solve_direct(problem, truth, counts, entropy, tol=1e-4) for entropy in (0.0, 1.0))
    assert plain.status is sure.status is FitStatus.CONSTRAINTS_MET
    assert np.all(np.abs(sizes(problem, sure.W) - counts) <= MAX_RESIDUAL * counts)
    assert entropy_of(problem, sure.W) < 0.7 * entropy_of(problem, plain.W)
    assert supervised_objective(problem, sure.W, truth) >= supervised_objective(problem, plain.W, truth)


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


def test_sizes_that_are_not_met_are_said_not_to_be():
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


def test_float32_rows_and_sure_posteriors_stay_finite():
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
        Design.create(1e-3 * rows.toarray(), TREES["flat"]),
        MaxEnt(),
        1e-6 * ALPHA,
        N_LABELED,
    )
    for entropy in (0.0, 1.0):
        one, other = (solve_direct(p, truth, counts, entropy, tol=1e-5) for p in (problem, small))
        assert one.objective == pytest.approx(other.objective, rel=1e-2)


def test_posterior_regularisation_refuses_uneven_weights_of_unlabelled_rows():
    X, y = np.random.default_rng(0).normal(size=(9, 3)), np.array([0, 1, 2] + [-1] * 6)
    with pytest.raises(ValueError, match="the same for all unlabelled rows"):
        PosteriorRegularizedClassifier().fit(X, y, sample_weight=np.arange(1.0, 10.0))
