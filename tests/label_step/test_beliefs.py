"""Beliefs about class counts: exact, greedy and soft labels against linear programming and optimality conditions."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.grouped_problems import Grouped, grouped, large
from helpers.problems import classifier_instance, seeds
from scipy import sparse
from scipy.optimize import linprog
from threadpoolctl import threadpool_limits

from transduce import solve_labels
from transduce.class_prior.belief import Belief
from transduce.class_prior.bounds import Bounds
from transduce.label_step import METHODS, Exact, LabelProblem, Status
from transduce.label_step.count_tree import CountTree
from transduce.label_step.entropic import Entropic, SoftStatus, solve_at_entropy
from transduce.label_step.infeasible import InfeasibleError
from transduce.label_step.partitions import LocalPartitions, Partition


@pytest.fixture(autouse=True)
def _one_thread_in_libraries():
    """Threads of OpenBLAS slow small systems down when cores are busy."""
    with threadpool_limits(1):
        yield


def believed(seed: int) -> tuple[Grouped, Belief]:
    """A problem with ranges, groups and forbidden labels, and a belief; some classes have none."""
    made, rng = grouped(seed), np.random.default_rng([seed, 5])
    if seed % 3 == 0:  # no groups
        made = replace(made, above=[made.low.size] * made.low.size, group_low=made.low[:0], group_high=made.high[:0])
    if seed % 2:
        made = replace(made, low=np.zeros_like(made.low), high=np.full_like(made.high, len(made.costs)))
    mean = np.maximum(rng.dirichlet(np.ones(made.low.size)) * len(made.costs) * rng.uniform(0.5, 2.0), 1e-3)
    finite = made.costs[np.isfinite(made.costs)]
    strength = 10.0 ** rng.uniform(-2, 1.5) * max(float(np.ptp(finite)), 1e-3) * (rng.random(mean.size) < 0.8)
    return made, Belief.create(mean, strength)


def programme_cost(made: Grouped, belief: Belief) -> float:
    """HiGHS, with one arc of capacity 1 for each row that a class may get, at its marginal cost."""
    (n, k), finite = made.costs.shape, np.isfinite(made.costs).ravel()
    arcs = np.array([[belief.cost(np.full(k, j + 1)) - belief.cost(np.full(k, j))] for j in range(n)]).reshape(n, k).T
    costs = np.concatenate((np.where(finite, made.costs.ravel(), 0.0), arcs.ravel()))
    unit = np.abs(costs).max(initial=0.0) or 1.0  # its tolerances are absolute
    tally, per_class = sparse.kron(np.ones((1, n)), sparse.eye(k)), sparse.kron(sparse.eye(k), np.ones((1, n)))
    sizes = sparse.hstack([sparse.kron(np.ones((1, n)), made.sets), sparse.csr_matrix((len(made.above), n * k))])
    low, high = made.bounds
    answer = linprog(
        costs / unit,
        A_eq=sparse.vstack(
            [
                sparse.hstack([sparse.kron(sparse.eye(n), np.ones((1, k))), sparse.csr_matrix((n, n * k))]),
                sparse.hstack([tally, -per_class]),
            ]
        ),
        b_eq=np.concatenate((np.ones(n), np.zeros(k))),
        A_ub=sparse.vstack([sizes, -sizes]),
        b_ub=np.concatenate((high, -low)),
        bounds=np.column_stack((np.zeros(2 * n * k), np.concatenate((finite, np.ones(n * k))))),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert answer.status in (0, 2), answer.message
    return float(answer.fun) * unit + float(belief.cost(np.zeros(k)).sum()) if answer.status == 0 else np.inf


def solve(made: Grouped, belief: Belief, **arguments):
    groups = made.groups if made.group_low.size else None
    return solve_labels(made.costs, (made.low, made.high), groups=groups, belief=belief, **arguments)


@seeds(60, 500)
def test_exact_labels_with_beliefs_are_optimal(seeds):
    for seed in seeds:
        check_exact_labels_with_beliefs_are_optimal(seed)


def check_exact_labels_with_beliefs_are_optimal(seed: int) -> None:
    made, belief = believed(seed)
    optimum = programme_cost(made, belief)
    if optimum == np.inf:
        with pytest.raises(ValueError, match=r"cannot be met|rows cannot meet|must get"):
            solve(made, belief)
        return
    answer = solve(made, belief)
    tally = np.bincount(answer.labels, minlength=made.low.size)
    direct = made.costs[np.arange(len(made.costs)), answer.labels].sum() + belief.cost(tally).sum()
    scale = made.scale + belief.strength.max() * len(made.costs) + abs(direct)
    assert answer.cost == pytest.approx(direct, abs=1e-9 * scale)
    assert answer.cost == pytest.approx(optimum, abs=1e-8 * scale)
    assert -1e-12 * scale <= answer.gap <= 1e-9 * scale
    again = solve(made, belief, prices=answer.prices, start=answer.labels)
    assert np.array_equal(again.labels, answer.labels)


@seeds(20, 200)
def test_labels_over_partitions_cost_the_same(seeds):
    for seed in seeds:
        check_labels_over_partitions_cost_the_same(seed)


def check_labels_over_partitions_cost_the_same(seed: int) -> None:
    made, belief = believed(seed)
    rng, rows = np.random.default_rng(seed), len(made.costs)
    try:
        alone = solve(made, belief)
    except ValueError:
        return
    at = np.sort(rng.integers(0, rows + 1, size=3))
    parts = LocalPartitions([Partition(part, np.full(len(part), -1)) for part in np.split(made.costs, at)])
    bounds = Bounds(made.low, made.high, made.groups if made.group_low.size else None, belief)
    answer = Exact().solve_partitions(parts, bounds)
    assert answer.cost == pytest.approx(alone.cost, abs=1e-9 * (made.scale + abs(alone.cost)))


@pytest.mark.parametrize("n_parts", [1, 5])
def test_many_rows_in_partitions_are_labelled_as_in_memory(n_parts):
    costs = classifier_instance(30_000, 12, 3).costs
    belief = Belief.create(np.linspace(1.0, 3.0, 12) * len(costs) / 24, 0.7)
    alone = solve_labels(costs, None, belief=belief)
    parts = LocalPartitions([Partition(part, np.full(len(part), -1)) for part in np.array_split(costs, n_parts)])
    answer = Exact().solve_partitions(parts, Bounds(np.zeros(12, int), np.full(12, len(costs)), None, belief))
    assert answer.status is alone.status is Status.OPTIMAL
    assert answer.cost == pytest.approx(alone.cost, rel=1e-12)


def test_many_rows_in_nested_groups():
    made = large(1)
    belief = Belief.create(np.full(20, len(made.costs) / 20), 0.5)
    answer = solve(made, belief)
    assert answer.status is Status.OPTIMAL
    assert solve(made, belief, prices=answer.prices).cost == pytest.approx(answer.cost, rel=1e-12)


def test_a_strong_belief_gives_the_counts_and_a_weak_one_the_cheapest_labels():
    costs = classifier_instance(2000, 6, 1).costs
    counts = np.array([700, 500, 300, 250, 150, 100])
    strong = solve_labels(costs, None, belief=Belief.create(counts, 1e6))
    assert strong.labels.tolist() == solve_labels(costs, counts).labels.tolist()
    weak = solve_labels(costs, None, belief=Belief.create(counts, 1e-9))
    assert weak.labels.tolist() == costs.argmin(axis=1).tolist()


def test_prices_rise_with_the_strength_and_follow_the_marginal_costs():
    costs = classifier_instance(3000, 5, 2).costs
    belief = Belief.create([1500, 600, 400, 300, 200], 0.8)
    answer = solve_labels(costs, None, belief=belief)
    tally = np.bincount(answer.labels, minlength=5)
    assert np.all(answer.prices <= -belief.marginal(tally - 1) + 1e-9)
    assert np.all(answer.prices >= -belief.marginal(tally) - 1e-9)


@seeds(20, 200)
def test_greedy_labels_meet_the_counts_beside_the_believed_ones(seeds):
    for seed in seeds:
        check_greedy_labels_meet_the_counts_beside_the_believed_ones(seed)


def check_greedy_labels_meet_the_counts_beside_the_believed_ones(seed: int) -> None:
    made, belief = believed(3 * seed)
    try:
        problem = LabelProblem.create(made.costs, (made.low, made.high), belief=belief)
        answer = METHODS["greedy"].solve(problem)
    except ValueError:
        return
    if np.isfinite(made.costs).all():
        bounds = problem.bounds.without_belief(problem.n_rows)
        tally = problem.tally(answer.labels)
        assert np.all((tally >= bounds.low) & (tally <= bounds.high))
    exact = Exact().solve(problem)
    scale = made.scale + abs(exact.cost)
    assert answer.cost >= exact.cost - 1e-9 * scale
    assert answer.dual_value <= exact.cost + 1e-9 * scale


@seeds(30, 300)
def test_soft_labels_fulfil_the_optimality_conditions(seeds):
    for seed in seeds:
        check_soft_labels_fulfil_the_optimality_conditions(seed)


def check_soft_labels_fulfil_the_optimality_conditions(seed: int) -> None:
    made, belief = believed(seed)
    problem = LabelProblem(made.costs, made.low, made.high, made.groups if made.group_low.size else None, belief)
    temperature = (0.1, 1.0, 10.0)[seed % 3] * max(float(np.ptp(made.costs[np.isfinite(made.costs)])), 1e-3)
    try:
        Exact().solve(problem)
    except InfeasibleError:
        return
    soft = Entropic(temperature).solve(problem)
    if soft.status is not SoftStatus.CONVERGED:  # forbidden labels may leave nothing to choose
        assert not np.isfinite(made.costs).all() or soft.residual < 1.0
        return
    tree, K = problem.tree, problem.n_classes
    with np.errstate(over="ignore"):
        z = np.where(problem.tree.closed_classes, -np.inf, (soft.prices - made.costs) / temperature)
        q = np.exp(z - z.max(axis=1, keepdims=True))
    np.testing.assert_allclose(soft.posterior, q / q.sum(axis=1, keepdims=True), atol=1e-6)
    mass = tree.sums(soft.posterior.sum(axis=0))
    u = tree.multipliers(soft.prices, soft.group_prices)
    best = tree.best_masses(u)
    free = (np.abs(u) < 1e-9 * temperature) & ~tree.believed
    wanted = np.where(free, np.clip(mass, tree.low, tree.high), best)
    if not tree.exact:
        np.testing.assert_allclose(mass, wanted, rtol=1e-4, atol=1e-4 * max(K, 10))
    assert soft.gap >= 0.0


def test_soft_labels_at_an_entropy_follow_the_belief():
    costs = classifier_instance(2000, 6, 1).costs
    belief = Belief.create([700, 500, 300, 250, 150, 100], 4.0)
    problem = LabelProblem.create(costs, None, belief=belief)
    soft, _ = solve_at_entropy(problem, 0.3, None, None)
    np.testing.assert_allclose(soft.posterior.sum(axis=0), belief.mean * np.exp(-soft.prices / 4.0), rtol=2e-3)
    assert (
        np.abs(soft.posterior.sum(axis=0) / belief.mean - 1.0).max() < 1.0
    )  # half a nat a row pulls towards equal sizes


def test_best_whole_counts_against_all_counts():
    rng = np.random.default_rng(0)
    for _ in range(300):
        belief = Belief.create(rng.uniform(1e-3, 60, 4), rng.uniform(0.01, 5, 4), rng.uniform(0, 3, 4))
        u = rng.normal(size=4) * rng.choice([0.1, 1, 10])
        counts = np.arange(3000)[:, None]
        values = belief.cost(counts) + u * counts
        least, most = belief.whole_counts(u)
        at_least = values[np.minimum(least, 2999), np.arange(4)]
        inside = most < 2990
        assert np.all(at_least[inside] <= values.min(axis=0)[inside] + 1e-9 * (1 + np.abs(at_least[inside])))
        assert np.all(most - least <= 1)


def test_marginal_costs_are_differences():
    belief = Belief.create([3.0, 1e5], [2.0, 0.5], [0.0, 10.0])
    for counts in (np.array([0, 0]), np.array([5, 99_000])):
        np.testing.assert_allclose(belief.marginal(counts), belief.cost(counts + 1) - belief.cost(counts), rtol=1e-6)


@pytest.mark.parametrize("method", ["switching", "multi_switch", "single_switch", "simplex"])
def test_methods_without_beliefs_say_so(method):
    with pytest.raises(ValueError, match="takes no belief"):
        solve_labels(np.zeros((2, 2)), None, method=method, belief=Belief.create([1, 1], 1.0))


@pytest.mark.parametrize(
    ("mean", "strength", "message"),
    [
        ([1, 0], 1.0, "above 0"),
        ([1, 1], -1.0, "strength"),
        ([1, np.nan], 1.0, "above 0"),
        ([1, 1], [1, 2, 3], "one mean"),
    ],
)
def test_beliefs_that_make_no_sense_are_refused(mean, strength, message):
    with pytest.raises(ValueError, match=message):
        Belief.create(mean, strength)


def test_a_belief_about_other_classes_is_refused():
    with pytest.raises(ValueError, match="2 columns"):
        solve_labels(np.zeros((2, 2)), None, belief=Belief.create([1, 1, 1], 1.0))


@pytest.mark.parametrize("seed", range(20))
def test_bounds_without_belief_can_be_met(seed):
    made, belief = believed(seed)
    bounds = Bounds(made.low, made.high, made.groups if made.group_low.size else None, belief)
    n_rows = len(made.costs)
    if not made.low.sum() <= n_rows <= made.high.sum() or (
        bounds.groups and bounds.groups.find_conflict(*bounds[:2], n_rows)
    ):
        return
    low, high, groups, _ = bounds.without_belief(n_rows)
    assert np.all((low >= made.low) & (high <= made.high))
    assert low.sum() <= n_rows <= high.sum()
    assert groups is None or groups.find_conflict(low, high, n_rows) is None
    assert CountTree.create(Bounds(low, high, groups), n_rows).n_rows == n_rows
