"""Bounds on nested groups of classes: exact and soft labels against other solvers, and error messages."""

import re
from dataclasses import replace

import numpy as np
import pytest
from helpers.grouped_problems import Grouped, feasible, grouped, large, multipliers
from helpers.problems import classifier_instance, seeds
from scipy import sparse
from scipy.optimize import linprog
from threadpoolctl import threadpool_limits

from transduce import solve_labels
from transduce.class_prior.bounds import Bounds
from transduce.class_prior.groups import Groups
from transduce.label_step import METHODS, LabelProblem, LabelSolution, Status, augmenting_paths, sampling
from transduce.label_step.count_tree import CountTree
from transduce.label_step.entropic import Entropic
from transduce.label_step.infeasible import InfeasibleError, InfeasibleKind

TOLERANCE = 1e-9


@pytest.fixture(autouse=True)
def _one_thread_in_libraries():
    """Threads of OpenBLAS slow small systems down when cores are busy."""
    with threadpool_limits(1):
        yield


# ---- other solvers


def linear_programme_cost(made: Grouped) -> float:
    """HiGHS on the linear programme, integral because the sets are nested; +inf when it has no solution."""
    n, k = made.costs.shape
    finite = np.isfinite(made.costs).ravel()
    costs = np.where(finite, made.costs.ravel(), 0.0)
    unit = np.abs(costs).max(initial=0.0) or 1.0  # its tolerances are absolute
    sizes = sparse.kron(np.ones((1, n)), made.sets)
    low, high = made.bounds
    answer = linprog(
        costs / unit,
        A_eq=sparse.kron(sparse.eye(n), np.ones((1, k))),
        b_eq=np.ones(n),
        A_ub=sparse.vstack([sizes, -sizes]),
        b_ub=np.concatenate((high, -low)),
        bounds=np.column_stack((np.zeros(n * k), finite)),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert answer.status in (0, 2), answer.message
    return float(answer.fun) * unit if answer.status == 0 else np.inf


def check_optimal(made: Grouped, answer: LabelSolution, cost: float) -> None:
    """The oracle's cost, bounds met, and a certificate that can be computed from costs, bounds and prices alone."""
    n = len(made.costs)
    low, high = made.bounds
    sizes = made.sets @ np.bincount(answer.labels, minlength=made.low.size)
    assert np.all((sizes >= low) & (sizes <= high)), made.name
    span = max(np.ptp(answer.prices), np.abs(answer.group_prices).max(initial=0.0))
    slack = TOLERANCE * (made.scale + n * span)
    assert answer.cost == pytest.approx(made.costs[np.arange(n), answer.labels].sum(), abs=slack)
    assert answer.cost == pytest.approx(cost, abs=slack), made.name
    assert answer.group_prices.shape == made.group_low.shape
    u = multipliers(made, answer.prices, answer.group_prices)
    u[np.abs(u) <= 1e-14 * span] = 0.0
    dual = np.where(u > 0, low, high) @ u + (made.costs - answer.prices).min(axis=1).sum()
    assert answer.dual_value == pytest.approx(dual, abs=slack), made.name
    assert answer.gap == pytest.approx(answer.cost - dual, abs=slack), made.name
    assert -slack <= answer.gap <= slack, made.name
    assert answer.status is Status.OPTIMAL, made.name


# ---- exact labels


@seeds(70, 700)
def test_exact_labels_equal_the_linear_programme(seeds):
    n_impossible = 0
    for seed in seeds:
        made = grouped(seed)
        cost = linear_programme_cost(made)
        if cost == np.inf:
            n_impossible += 1
            with pytest.raises(ValueError, match=r"\.$") as caught:
                made.solve()
            assert "\n" not in str(caught.value)
        else:
            check_optimal(made, made.solve(), cost)
    assert 0 < n_impossible < len(seeds) / 2


@seeds(40, 200)
def test_exact_labels_from_any_prices_and_labels(seeds):
    for seed in seeds:
        made = grouped(seed)
        try:
            cold = made.solve()
        except ValueError:
            continue
        rng = np.random.default_rng(seed)
        for prices in (cold.prices, rng.normal(size=made.low.size) * np.abs(cold.cost) / len(made.costs)):
            check_optimal(made, made.solve(prices=prices), cold.cost)
        again = made.solve(prices=cold.prices, start=cold.labels)
        check_optimal(made, again, cold.cost)
        np.testing.assert_array_equal(again.labels, cold.labels)


@seeds(30, 240)
def test_exact_labels_with_the_smallest_samples_and_trust_radii(seeds, monkeypatch):
    monkeypatch.setattr(sampling, "SAMPLE_FROM", 8)
    monkeypatch.setattr(augmenting_paths, "REACH", 0)
    monkeypatch.setattr(sampling, "_misplaced_after_sampling", lambda problem: 0.0)
    for seed in seeds:
        made = grouped(seed, rows=60)
        if seed % 6:
            cost = linear_programme_cost(made)
            check_optimal(made, made.solve(), cost)
            hostile = np.random.default_rng(seed).normal(size=made.low.size) * made.scale
            check_optimal(made, made.solve(prices=hostile), cost)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))])
def test_exact_labels_at_real_sizes(seed):
    made = large(seed)
    cold = made.solve()
    check_optimal(made, cold, linear_programme_cost(made))
    assert np.any(cold.group_prices != 0)
    noise = 1.0 + 0.01 * np.random.default_rng(0).normal(size=made.costs.shape)
    later = replace(made, costs=made.costs * noise)
    from_scratch, warm = later.solve(), later.solve(prices=cold.prices)
    check_optimal(later, warm, from_scratch.cost)
    assert warm.n_moves < from_scratch.n_moves


def test_many_ties_meet_the_bounds():
    groups = Groups([4, 4, 5, 5, 6, 6], [6000, 14_000], [6000, 14_000])
    answer = solve_labels(np.zeros((20_000, 4)), ([0, 0, 0, 3000], [20_000] * 4), groups=groups)
    sizes = np.bincount(answer.labels, minlength=4)
    assert (sizes[0] + sizes[1], answer.gap) == (6000, 0.0)
    assert sizes[3] >= 3000


def test_a_group_of_every_class_alone_is_the_bounds_of_the_classes():
    for seed in range(30):
        base = grouped(4 * seed + 1)
        if seed % 6 == 0:
            continue
        k, n = base.low.size, len(base.costs)
        alone = Groups([*(k + np.arange(k)), *([2 * k] * k)], base.low, base.high)
        try:
            best = solve_labels(base.costs, (base.low, base.high))
        except ValueError:
            continue
        answer = solve_labels(base.costs, ([0] * k, [n] * k), groups=alone)
        assert answer.cost == pytest.approx(best.cost, abs=TOLERANCE * base.scale)
        assert answer.prices == pytest.approx(answer.group_prices, abs=1e-9 * max(np.abs(answer.prices).max(), 1e-9))


def test_wide_groups_and_exact_counts_give_groups_a_price_of_zero():
    problem = classifier_instance(3000, 6)
    wide = Groups([6, 6, 6, 7, 7, 7, 8, 8], [0, 0], [3000, 10**9])
    for counts in (problem.low, ((0.8 * problem.low).astype(int), np.ceil(1.1 * problem.low).astype(int))):
        plain, answer = solve_labels(problem.costs, counts), solve_labels(problem.costs, counts, groups=wide)
        assert np.array_equal(plain.labels, answer.labels)
        assert answer.group_prices.tolist() == [0.0, 0.0]
        assert plain.group_prices.shape == (0,)
        assert answer.prices == pytest.approx(plain.prices, abs=1e-12)


def test_no_rows():
    answer = solve_labels(np.empty((0, 3)), [0, 0, 0], groups=Groups([3, 3, 4, 4], [0], [9]))
    assert (answer.labels.shape, answer.cost, answer.gap) == ((0,), 0.0, 0.0)
    assert answer.group_prices.tolist() == [0.0]


def test_inputs_stay_as_they_are():
    made = grouped(7)
    groups, prices = made.groups, np.linspace(-1.0, 1.0, made.low.size)
    inputs = [made.costs, made.low, made.high, groups.above, groups.low, groups.high, prices]
    copies = [array.copy() for array in inputs]
    solve_labels(made.costs, (made.low, made.high), prices=prices, groups=groups)
    Entropic(0.5).solve(LabelProblem.create(made.costs, (made.low, made.high), groups), prices)
    assert all(np.array_equal(now, then) for now, then in zip(inputs, copies, strict=True))


@seeds(40, 150)
def test_potentials_of_groups_are_the_best_for_given_prices(seeds):
    """Σ_j (low_j u_j if u_j > 0 else high_j u_j) at them is the least that sizes within the bounds are worth."""
    for seed in seeds:
        made = grouped(seed)
        low, high = made.bounds
        prices = np.random.default_rng(seed).integers(-3, 4, size=made.low.size).astype(float)
        best = linprog(
            prices,
            A_ub=np.vstack((made.sets, -made.sets)),
            b_ub=np.concatenate((high, -low)),
            method="highs",
        )
        if best.status != 0:
            continue
        tree = CountTree.create(Bounds(made.low, made.high, made.groups), len(made.costs), implied_groups=True)
        u = tree.differences(tree.potentials(prices))
        np.testing.assert_array_equal(tree.prices(u), prices)
        assert float(np.where(u > 0, low, high) @ u) == pytest.approx(best.fun, abs=1e-9)


# ---- error messages


INF = np.inf


TWO = Groups([2, 2, 3], [0], [1])
MESSAGES = [
    (lambda: solve_labels([[0.0, 1.0, 2.0]], [1, 0, 0], groups=TWO), "of the 3 classes there are, but are of 2"),
    (
        lambda: solve_labels([[0.0, 1.0]] * 2, ([1, 1], [2, 2]), groups=TWO),
        r"group 0 \(classes 0 and 1\) must get 0 to 1 rows, but the parts need at least 2",
    ),
    (
        lambda: solve_labels(np.zeros((5, 3)), ([0] * 3, [1, 1, 5]), groups=Groups([3, 3, 4, 4], [3], [4])),
        r"group 0 \(classes 0 and 1\) must get 3 to \d+ rows, but the parts need at least \d+ and allow at most 2",
    ),
    (
        lambda: solve_labels(np.zeros((5, 2)), ([0, 0], [5, 5]), groups=TWO),
        "all classes together must get 5 to 5 rows, but the parts need at least 0 and allow at most 1",
    ),
    (
        lambda: solve_labels(np.zeros((5, 3)), ([0, 0, 3], [5] * 3), groups=Groups([3, 3, 4, 4], [3], [4])),
        "all classes together must get 5 to 5 rows, but the parts need at least 6",
    ),
    (
        lambda: solve_labels(
            np.zeros((2, 2)), ([0, 0], [2, 2]), groups=Groups([2, 3, 4, 4], [2, 0], [2, 2]), start=[0, 1]
        ),
        "start must meet the counts, but gives group 0 1 rows where 2 are asked for",
    ),
    (
        lambda: solve_labels(
            [[0.0, INF, INF]] * 3 + [[0.0, 1.0, 1.0]], ([0] * 3, [4] * 3), groups=Groups([4, 3, 3, 4], [2], [4])
        ),
        "group 0 must get 2 rows, but only 1 row may take classes 1 and 2, 1 too few",
    ),
    (
        lambda: solve_labels(
            [[INF, 0.0, INF]] * 3 + [[0.0, 1.0, 1.0]], ([0] * 3, [4] * 3), groups=Groups([4, 3, 3, 4], [0], [2])
        ),
        "3 rows may take classes 1 and 2 only, but group 0 may get at most 2, 1 too many",
    ),
]


@pytest.mark.parametrize(("call", "sentence"), MESSAGES)
def test_bad_input_is_explained_in_one_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        call()
    assert "\n" not in str(caught.value)
    assert re.search(r"\.$", str(caught.value))


@seeds(90, 480)
def test_infeasible_bounds_are_explained_by_numbers_that_prove_it(seeds):
    n_short = n_full = n_possible = 0
    for seed in feasible(seeds):
        made, rng = grouped(seed), np.random.default_rng(seed)
        costs = np.where(rng.random(made.costs.shape) < 0.5, np.inf, np.nan_to_num(made.costs, posinf=1.0))
        costs[np.arange(len(costs)), rng.integers(costs.shape[1], size=len(costs))] = 0.0
        made = replace(made, costs=costs)
        cost = linear_programme_cost(made)
        if cost < np.inf:
            check_optimal(made, made.solve(), cost)
            n_possible += 1
            continue
        with pytest.raises(InfeasibleError, match=r"^the counts cannot be met: .*\.$") as caught:
            made.solve()
        error = caught.value
        if error.kind is InfeasibleKind.TOO_MANY_ROWS:
            n_full += 1
            assert error.held + error.needed > error.limit
        else:
            n_short += 1
            assert error.needed > error.held + error.limit
    assert min(n_short, n_full, n_possible) > 0


def test_an_error_names_groups_where_names_are_known():
    with pytest.raises(ValueError, match="'sport' must get 0 to 1 rows, but the parts need at least 2"):
        replace(TWO, names=("sport",)).check(np.array([1, 1]), np.array([2, 2]), 2)


@pytest.mark.parametrize("method", sorted(set(METHODS) - {"exact"}))
def test_other_label_steps_take_no_groups(method):
    with pytest.raises(ValueError, match=r"takes no groups of classes\. Use method='exact'"):
        solve_labels(np.zeros((1, 2)), ([0, 0], [1, 1]), method, groups=TWO)


def test_bounds_hold_groups_and_make_a_problem():
    bounds = Bounds(np.zeros(2, int), np.ones(2, int), TWO)
    assert LabelProblem(np.zeros((1, 2)), *bounds).groups is TWO
    assert Bounds(bounds.low, bounds.high).groups is None
