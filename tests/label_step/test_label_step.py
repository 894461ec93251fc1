"""Every label step on the shared list of problems, against other solvers and against what must always hold."""

from itertools import pairwise

import numpy as np
import pytest
from helpers.oracles import linear_programme_cost, optimal_cost, ortools_cost
from helpers.problems import (
    ALL_STEPS,
    FAMILIES,
    OPTIMAL_STEPS,
    SWITCHING_STEPS,
    Instance,
    classifier_instance,
    instance,
    range_instance,
)

from transduce import solve_labels
from transduce.label_step import LabelProblem, LabelSolution, Status, augmenting_paths, sampling
from transduce.label_step.greedy import greedy_labels
from transduce.label_step.simplex import _Basis

N_SEEDS = 220  # times ten families: 2 200 instances with exact counts
N_RANGE_SEEDS = 30
TOLERANCE = 1e-9


def check_answer(problem: Instance, answer: LabelSolution) -> None:
    """What holds for any label step: counts met, an honest cost, a valid bound, and the gap between them."""
    n, k = problem.costs.shape
    tally = np.bincount(answer.labels, minlength=k)
    assert answer.labels.shape == (n,)
    assert np.all(tally >= problem.low), problem.name
    assert np.all(tally <= problem.high), problem.name
    slack = TOLERANCE * (problem.scale + n * np.ptp(answer.prices))
    assert answer.cost == pytest.approx(problem.costs[np.arange(n), answer.labels].sum(), abs=slack)
    assert np.all(np.isfinite(answer.prices))
    assert answer.dual_value == pytest.approx(dual_value(problem, answer.prices), abs=slack)
    assert answer.gap == pytest.approx(answer.cost - answer.dual_value, abs=slack)
    assert answer.gap >= -slack


def dual_value(problem: Instance, prices: np.ndarray) -> float:
    counts = np.where(prices > 0, problem.low, problem.high)
    return float(counts @ prices + (problem.costs - prices).min(axis=1).sum())


def check_optimal(problem: Instance, answer: LabelSolution, cost: float) -> None:
    """The oracle's cost, and complementary slackness: each row on a cheapest label, each price earned by its count."""
    check_answer(problem, answer)
    assert answer.cost == pytest.approx(cost, abs=TOLERANCE * problem.scale), problem.name
    assert answer.gap <= TOLERANCE * (problem.scale + len(problem.costs) * np.ptp(answer.prices)), problem.name
    assert answer.status is Status.OPTIMAL, problem.name
    n = len(problem.costs)
    tolerance = TOLERANCE * max(np.abs(problem.costs[np.isfinite(problem.costs)]).max(initial=0), np.ptp(answer.prices))
    reduced = problem.costs - answer.prices
    assert np.all(reduced[np.arange(n), answer.labels] <= reduced.min(axis=1) + tolerance), problem.name
    if not np.array_equal(problem.low, problem.high):
        tally = np.bincount(answer.labels, minlength=problem.low.size)
        assert np.all(answer.prices[tally > problem.low] <= tolerance), problem.name
        assert np.all(answer.prices[tally < problem.high] >= -tolerance), problem.name


@pytest.mark.parametrize("family", FAMILIES)
def test_optimal_steps_equal_other_solvers(family):
    for seed in range(N_SEEDS):
        problem = instance(family, seed)
        cost = optimal_cost(problem)
        for method in OPTIMAL_STEPS:
            check_optimal(problem, solve_labels(problem.costs, problem.counts, method), cost)


@pytest.mark.parametrize("family", FAMILIES)
def test_optimal_steps_equal_the_linear_programme_on_ranges(family):
    for seed in range(N_RANGE_SEEDS):
        problem = range_instance(family, seed)
        cost = linear_programme_cost(problem)
        for method in OPTIMAL_STEPS:
            check_optimal(problem, solve_labels(problem.costs, problem.counts, method), cost)


@pytest.mark.parametrize("family", FAMILIES)
def test_exact_is_optimal_when_sampling_and_trust_are_pushed_to_their_limits(family, monkeypatch):
    samples = count_samples(monkeypatch)
    monkeypatch.setattr(sampling, "SAMPLE_FROM", 8)
    monkeypatch.setattr(augmenting_paths, "REACH", 0)
    monkeypatch.setattr(sampling, "_misplaced_after_sampling", lambda problem: 0.0)
    for seed in range(60):
        problem = instance(family, seed) if seed % 2 else range_instance(family, seed)
        reference = solve_labels(problem.costs, problem.counts, "simplex")
        hostile = np.random.default_rng(seed).normal(size=problem.low.size) * problem.scale
        for prices in (None, hostile):
            check_optimal(problem, solve_labels(problem.costs, problem.counts, prices=prices), reference.cost)
    assert len(samples) > 20 or family == "more_classes_than_rows"  # these have too few rows to sample


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
def test_exact_equals_min_cost_flow_at_real_sizes(n, n_classes):
    for seed in range(3):
        problem = classifier_instance(n, n_classes, seed, integral=True)
        check_optimal(problem, solve_labels(problem.costs, problem.counts), ortools_cost(problem))


def test_exact_with_samples_of_ranges_and_forbidden_labels_at_real_sizes(monkeypatch):
    samples = count_samples(monkeypatch)
    rng = np.random.default_rng(0)
    for seed in range(6):
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
    assert len(samples) > 6


def test_a_sample_that_cannot_meet_its_counts_is_no_verdict():
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


@pytest.mark.parametrize("method", ALL_STEPS)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_step_meets_counts_and_bounds_the_optimum(family, method):
    for seed in range(40):
        for problem in (instance(family, seed), range_instance(family, seed)):
            answer = solve_labels(problem.costs, problem.counts, method)
            check_answer(problem, answer)
            best = solve_labels(problem.costs, problem.counts)
            assert answer.cost >= best.cost - TOLERANCE * problem.scale
            assert answer.dual_value <= best.cost + TOLERANCE * (
                problem.scale + len(answer.labels) * np.ptp(answer.prices)
            )


@pytest.mark.parametrize("method", SWITCHING_STEPS)
@pytest.mark.parametrize("family", FAMILIES)
def test_switching_never_raises_the_cost_from_any_start(family, method):
    for seed in range(40):
        problem = instance(family, seed)
        start = solve_labels(-np.where(np.isfinite(problem.costs), problem.costs, -np.inf), problem.counts).labels
        before = problem.costs[np.arange(start.size), start].sum()
        answer = solve_labels(problem.costs, problem.counts, method, start=start)
        check_answer(problem, answer)
        assert answer.cost <= before + TOLERANCE * problem.scale
        assert (answer.n_moves == 0) == np.array_equal(answer.labels, start)
        assert answer.n_moves == 0 or answer.cost < before


def test_switching_is_optimal_for_two_classes():
    for seed in range(100):
        for problem in (instance("two_classes", seed), range_instance("two_classes", seed)):
            worst = solve_labels(-problem.costs, problem.counts).labels
            best = solve_labels(problem.costs, problem.counts)
            answer = solve_labels(problem.costs, problem.counts, "switching", start=worst)
            check_optimal(problem, answer, best.cost)


def test_switching_ends_where_no_single_switch_helps():
    for seed in range(30):
        problem = instance("gaussian", seed)
        labels = solve_labels(problem.costs, problem.counts, "switching").labels
        rows = np.arange(len(labels))
        moved = problem.costs[:, labels] - problem.costs[rows, labels][:, None]  # [i, j]: row i to the class of row j
        assert np.all(moved + moved.T >= -TOLERANCE * problem.scale)


def test_switching_stalls_on_a_cycle_of_three_that_the_exact_step_solves():
    """Each row would rather be in the next class; exchanging any two rows gains one and loses two."""
    costs = np.array([[0.0, -1.0, 2.0], [2.0, 0.0, -1.0], [-1.0, 2.0, 0.0]])
    start = np.array([0, 1, 2])
    stalled = solve_labels(costs, [1, 1, 1], "switching", start=start)
    assert stalled.labels.tolist() == [0, 1, 2]
    assert stalled.cost == 0.0
    assert stalled.status is Status.SWITCHED_OUT
    assert stalled.gap >= 3.0
    solved = solve_labels(costs, [1, 1, 1], start=start)
    assert solved.labels.tolist() == [1, 2, 0]
    assert (solved.cost, solved.gap) == (-3.0, 0.0)


def test_one_pass_and_one_switch_stop_there():
    problem = classifier_instance(500, 6)
    worst = solve_labels(-problem.costs, problem.counts).labels
    one = solve_labels(problem.costs, problem.counts, "single_switch", start=worst)
    one_pass = solve_labels(problem.costs, problem.counts, "multi_switch", start=worst)
    full = solve_labels(problem.costs, problem.counts, "switching", start=worst)
    assert one.n_moves == 2
    assert np.count_nonzero(one.labels != worst) == 2
    assert one_pass.n_rounds == 1
    assert full.n_rounds > 1
    assert one.cost > one_pass.cost > full.cost


def test_single_switch_is_the_best_of_all_switches():
    for seed in range(20):
        problem = instance("gaussian", seed)
        start = solve_labels(problem.costs, problem.counts, "greedy").labels
        rows = np.arange(len(start))
        moved = problem.costs[:, start] - problem.costs[rows, start][:, None]
        best = min((moved + moved.T).min(), 0.0)
        answer = solve_labels(problem.costs, problem.counts, "single_switch", start=start)
        assert answer.cost - problem.costs[rows, start].sum() == pytest.approx(best, abs=1e-9)


def test_greedy_lets_sure_rows_choose_first():
    costs = np.array([[-5.0, 0.0, 0.0], [-9.0, 0.0, -1.0], [-8.0, -7.0, 0.0], [0.0, -1.0, -2.0]])
    assert solve_labels(costs, [1, 2, 1], "greedy").labels.tolist() == [1, 0, 1, 2]


def test_greedy_with_ranges_keeps_rows_back_for_the_low_counts():
    costs = np.tile([0.0, 1.0, 2.0], (6, 1))
    answer = solve_labels(costs, ([1, 1, 1], [5, 5, 5]), "greedy")
    assert np.bincount(answer.labels).tolist() == [4, 1, 1]


def algorithm_two(costs: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, int]:
    """The paper's Algorithm 2, word for word."""
    labels, n_classes, rounds = labels.copy(), costs.shape[1], 0
    while True:
        merged = []
        for y in range(n_classes):
            for other in range(y + 1, n_classes):
                forth = sorted((costs[i, other] - costs[i, y], i) for i in np.flatnonzero(labels == y))
                back = sorted((costs[i, y] - costs[i, other], i) for i in np.flatnonzero(labels == other))
                pairs = zip(forth, back, strict=False)
                merged += [(a + b, i, j) for (a, i), (b, j) in pairs if a + b < -1e-12]
        if not merged:
            return labels, rounds
        rounds += 1
        moved = set()
        for _, i, j in sorted(merged):
            if not moved & {i, j}:
                labels[i], labels[j] = labels[j], labels[i]
                moved |= {i, j}


def test_switching_is_algorithm_two_of_the_paper():
    for family in ("gaussian", "hinge", "extreme_scales"):
        for seed in range(40):
            problem = instance(family, seed)
            costs = problem.costs / max(np.abs(problem.costs).max(), 1e-300)
            start = solve_labels(-costs, problem.counts).labels
            labels, rounds = algorithm_two(costs, start)
            answer = solve_labels(costs, problem.counts, "switching", start=start)
            assert np.array_equal(answer.labels, labels)
            assert answer.n_rounds == rounds


def test_simplex_is_never_degenerate():
    for family in ("heavy_ties", "duplicated_rows", "empty_and_whole_classes"):
        for seed in range(20):
            problem = LabelProblem.create(*((p := range_instance(family, seed)).costs, p.counts))
            basis = _Basis.from_labels(problem, greedy_labels(problem))
            optimal = False
            while not optimal:
                assert np.all(basis.flow > 0)
                _, optimal = basis.pivot(1)


def test_simplex_trace_goes_from_the_start_down_to_the_optimum():
    problem = classifier_instance(400, 5)
    answer = solve_labels(problem.costs, problem.counts, "simplex")
    costs = [point.cost for point in answer.trace]
    start = solve_labels(problem.costs, problem.counts, "greedy").cost
    assert costs[0] == pytest.approx(start)
    assert costs[-1] == pytest.approx(answer.cost)
    assert all(later <= earlier + 1e-9 for earlier, later in pairwise(costs))
    assert all(a.seconds < b.seconds for a, b in pairwise(answer.trace))
