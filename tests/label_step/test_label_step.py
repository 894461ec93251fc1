"""Every label step on the shared list of problems, against other solvers and against what must always hold."""

import numpy as np
import pytest
from helpers.certificates import TOLERANCE, check_answer, check_optimal
from helpers.oracles import linear_programme_cost, optimal_cost, ortools_cost
from helpers.problems import (
    ALL_STEPS,
    FAMILIES,
    OPTIMAL_STEPS,
    Instance,
    classifier_instance,
    instance,
    range_instance,
    seeds,
)

from transduce import solve_labels
from transduce.label_step import Exact, LabelProblem, augmenting_paths, sampling
from transduce.label_step.solution import Status
from transduce.parallel import Threads


@seeds(20, 220)
@pytest.mark.parametrize("family", FAMILIES)
def test_optimal_steps_equal_other_solvers(family, seeds):
    for seed in seeds:
        problem = instance(family, seed)
        cost = optimal_cost(problem)
        for method in OPTIMAL_STEPS:
            check_optimal(problem, solve_labels(problem.costs, problem.counts, method), cost)


@seeds(6, 30)
@pytest.mark.parametrize("family", FAMILIES)
def test_optimal_steps_equal_the_linear_programme_on_ranges(family, seeds):
    for seed in seeds:
        problem = range_instance(family, seed)
        cost = linear_programme_cost(problem)
        for method in OPTIMAL_STEPS:
            check_optimal(problem, solve_labels(problem.costs, problem.counts, method), cost)


@seeds(16, 60)
@pytest.mark.parametrize("family", FAMILIES)
def test_exact_is_optimal_with_the_smallest_samples_and_trust_radii(family, seeds, monkeypatch):
    samples = count_samples(monkeypatch)
    monkeypatch.setattr(sampling, "SAMPLE_FROM", 8)
    monkeypatch.setattr(augmenting_paths, "REACH", 0)
    monkeypatch.setattr(sampling, "_misplaced_after_sampling", lambda problem: 0.0)
    for seed in seeds:
        problem = instance(family, seed) if seed % 2 else range_instance(family, seed)
        reference = solve_labels(problem.costs, problem.counts, "simplex")
        hostile = np.random.default_rng(seed).normal(size=problem.low.size) * problem.scale
        for prices in (None, hostile):
            check_optimal(problem, solve_labels(problem.costs, problem.counts, prices=prices), reference.cost)
    assert len(samples) > 5 or family == "more_classes_than_rows"  # these have too few rows to sample


def count_samples(monkeypatch) -> list:
    """A list that grows by one for every sample that the exact step solves."""
    solved, clear = [], sampling.meet_counts

    def counting(problem, potentials, labels, is_sample):
        solved.extend([problem.n_rows] * is_sample)
        return clear(problem, potentials, labels, is_sample)

    monkeypatch.setattr(sampling, "meet_counts", counting)
    return solved


@pytest.mark.parametrize(
    ("n", "n_classes"), [(1500, 2), (6000, 3), (6000, 10), (3000, 60), (900, 200), (12_000, 20), (1200, 1000)]
)
@seeds(1, 3)
def test_exact_equals_min_cost_flow_at_real_sizes(n, n_classes, seeds):
    for seed in seeds:
        problem = classifier_instance(n, n_classes, seed, integral=True)
        check_optimal(problem, solve_labels(problem.costs, problem.counts), ortools_cost(problem))


@seeds(2, 6)
def test_exact_with_samples_of_ranges_and_forbidden_labels_at_real_sizes(seeds, monkeypatch):
    samples = count_samples(monkeypatch)
    rng = np.random.default_rng(seeds.start)
    for seed in seeds:
        base = classifier_instance(6000, 4, seed, integral=True)
        costs = np.where(rng.random(base.costs.shape) < 0.3, np.inf, base.costs)
        witness = rng.choice(4, p=[0.55, 0.25, 0.15, 0.05], size=6000)
        costs[np.arange(6000), witness] = base.costs[np.arange(6000), witness]
        counts = np.bincount(witness, minlength=4)
        forbidden = Instance(f"forbidden-{seed}", costs, counts, counts)
        check_optimal(forbidden, solve_labels(costs, counts), ortools_cost(forbidden))
        ranged = Instance(f"ranged-{seed}", costs, (0.9 * counts).astype(int), (1.1 * counts).astype(int))
        for prices in (None, 1e3 * rng.normal(size=4)):
            answer = solve_labels(costs, ranged.counts, prices=prices)
            check_optimal(ranged, answer, answer.cost)
    assert len(samples) > len(seeds)


def test_a_sample_that_cannot_meet_its_counts_does_not_end_the_search():
    """All costs tie or are forbidden, so the sample is searched to the end, and only by chance can it be met."""
    costs = np.zeros((2000, 2))
    costs[806:, 1] = np.inf
    assert np.bincount(solve_labels(costs, [1194, 806]).labels).tolist() == [1194, 806]
    costs = np.ones((2200, 50))
    costs[:, :2] = 0.0
    low = np.full(50, 44)
    high = low.copy()
    low[0], high[0] = 40, 48
    answer = solve_labels(costs, (low, high))
    assert np.all(np.bincount(answer.labels) >= low)
    assert np.all(np.bincount(answer.labels) <= high)


@seeds(6, 40)
@pytest.mark.parametrize("method", ALL_STEPS)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_step_meets_counts_and_bounds_the_optimum(family, method, seeds):
    for seed in seeds:
        for problem in (instance(family, seed), range_instance(family, seed)):
            answer = solve_labels(problem.costs, problem.counts, method)
            check_answer(problem, answer)
            best = solve_labels(problem.costs, problem.counts)
            assert answer.cost >= best.cost - TOLERANCE * problem.scale
            assert answer.dual_value <= best.cost + TOLERANCE * (
                problem.scale + len(answer.labels) * np.ptp(answer.prices)
            )


@pytest.mark.parametrize("kind", ["ties", "no ties", "forbidden", "one value"])
def test_threads_do_not_change_labels_prices_or_cost(kind):
    rng = np.random.default_rng(3)
    costs = rng.random((40_000, 6))
    if kind == "ties":
        costs = np.round(costs, 1)
    if kind == "forbidden":
        costs[rng.random(costs.shape) < 0.3] = np.inf
        costs[:, 0] = 1.0
    if kind == "one value":
        costs[...] = 0.5
    counts = np.bincount(rng.integers(0, 6, 40_000), minlength=6)
    start = rng.permutation(np.repeat(np.arange(6), counts)) if kind != "forbidden" else None
    found = []
    with Threads(4) as four:
        for threads in (None, four):
            problem = LabelProblem(costs, counts, counts, threads=threads)
            found += [Exact().solve(problem), Exact().solve(problem, start=start)]
        assert four._executor is not None
    for one, other in zip(found[:2], found[2:], strict=True):
        np.testing.assert_array_equal(one.labels, other.labels)
        np.testing.assert_array_equal(one.prices, other.prices)
        assert (one.cost, one.gap, one.status) == (other.cost, other.gap, other.status)
        assert one.status is Status.OPTIMAL
