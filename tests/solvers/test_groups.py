"""Bounds on nested groups of classes in every solver: they are met, and penalties have the right gradient."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.solver_problems import (
    N_LABELED,
    alternation,
    annealing,
    known_labels,
    maxent_problem,
    solve_direct,
    solve_posterior,
)
from scipy.optimize import approx_fprime

from transduce.class_prior.groups import Groups
from transduce.history import FitStatus
from transduce.label_step import METHODS
from transduce.losses import MaxEnt
from transduce.solvers.direct import MAX_RESIDUAL
from transduce.solvers.penalties import CountConstraint, Mismatch, SizeBounds, through_posterior
from transduce.taxonomy import Taxonomy

TERMS = {
    "mismatch": lambda bounds: Mismatch(3.0, bounds),
    "constraint": lambda bounds: CountConstraint(bounds, np.linspace(-0.2, 0.3, bounds.low.size), 5.0),
}


@pytest.mark.parametrize("make", TERMS.values(), ids=TERMS)
def test_gradients_equal_differences(make):
    members = np.array([[True, True, False], [True, True, True]])
    term = make(SizeBounds(np.array([5, 0, 3, 1, 9]), np.array([5, 9, 4, 3, 9]), members))
    S = np.random.default_rng(1).normal(size=(9, 3))
    value = lambda flat: term.value_and_gradient(MaxEnt().posterior(flat.reshape(9, 3)))[0]  # noqa: E731
    p = MaxEnt().posterior(S)
    gradient = through_posterior(p, term.value_and_gradient(p)[1])
    np.testing.assert_allclose(gradient.ravel(), approx_fprime(S.ravel(), value, 1e-7), atol=1e-5)


# ---- drivers: classes 0 to 2 as one group, 0 and 1 within it as another


def nested(low: int, high: int, inner_low: int, inner_high: int) -> Groups:
    return Groups([4, 4, 5, 6, 5, 6], [inner_low, low], [inner_high, high])


def check_groups(groups: Groups, labels: np.ndarray) -> None:
    sizes = groups.members(4) @ np.bincount(labels, minlength=4)
    assert np.all((sizes >= groups.low) & (sizes <= groups.high))


@pytest.mark.parametrize("soft", [False, True], ids=["paper", "soft"])
@pytest.mark.parametrize("seed", [0, 1])
def test_alternation_and_soft_annealing_meet_groups(soft, seed):
    n = 240
    groups = nested(150, 160, 90, 95)
    pieces = {"low": np.zeros(4, int), "high": np.full(4, n), "groups": groups}
    play = annealing(seed=seed) if soft else alternation(seed=seed)
    play = replace(play, alternation=replace(play.alternation, **pieces)) if soft else replace(play, **pieces)
    outcome = play.run(known_labels(seed))
    assert outcome.status is FitStatus.CONVERGED
    check_groups(groups, outcome.labels[N_LABELED:])
    assert outcome.prices.shape == (4,)


def test_alternation_with_another_label_step_says_that_it_takes_no_groups():
    wide = {"low": np.zeros(4, int), "high": np.full(4, 240), "groups": nested(150, 160, 90, 95)}
    with pytest.raises(ValueError, match="takes no groups of classes"):
        replace(alternation(label_step=METHODS["switching"]), **wide).run(known_labels())


FOUR = Taxonomy.flat(range(4))


@pytest.mark.parametrize(("enforced", "mismatch", "entropy"), [(True, 0.0, 0.0), (True, 0.0, 0.5), (False, 50.0, 0.0)])
def test_direct_methods_meet_groups(enforced, mismatch, entropy):
    problem, truth, counts = maxent_problem(FOUR)
    n = int(counts.sum())
    outer, inner = int(counts[:3].sum()) - 8, int(counts[:2].sum()) - 6
    groups = nested(outer, outer, inner, inner + 2)
    parts = (problem, truth, np.zeros(4, int), entropy, enforced, mismatch)
    outcome = solve_direct(*parts, tol=1e-4, high=np.full(4, n), groups=groups)
    check_groups(groups, outcome.labels[problem.n_labeled :])
    p = MaxEnt().posterior(problem.design.scores(outcome.W)[problem.n_labeled :])
    sizes = groups.members(4) @ p.sum(axis=0)
    off = np.abs(sizes - np.clip(sizes, groups.low, groups.high))
    free = solve_direct(*parts, tol=1e-4, high=np.full(4, n))
    without = MaxEnt().posterior(problem.design.scores(free.W)[problem.n_labeled :])
    assert abs(groups.members(4) @ without.sum(axis=0) - groups.low).max() > 2
    if enforced:
        assert outcome.status is FitStatus.CONSTRAINTS_MET
        assert np.all(off <= MAX_RESIDUAL * groups.high)
    else:
        assert outcome.status is FitStatus.PENALIZED
        assert off.max() < 2


def test_posterior_regularisation_meets_groups():
    problem, truth, counts = maxent_problem(FOUR)
    n, outer, inner = int(counts.sum()), int(counts[:3].sum()) - 8, int(counts[:2].sum()) - 6
    groups = nested(outer, outer, inner, inner + 2)
    outcome = solve_posterior(problem, truth, np.zeros(4, int), 1.0, 1e-4, 200, np.full(4, n), groups)
    assert outcome.status is FitStatus.NEARBY
    assert outcome.history[-1].residual <= MAX_RESIDUAL
    check_groups(groups, outcome.labels[problem.n_labeled :])
