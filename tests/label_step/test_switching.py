"""Label switching: Algorithm 2 of the paper, its single switch, and where it stalls."""

import numpy as np
import pytest
from helpers.certificates import TOLERANCE, check_answer, check_optimal
from helpers.problems import FAMILIES, SWITCHING_STEPS, classifier_instance, instance, range_instance, seeds

from transduce import solve_labels
from transduce.label_step import Status


@pytest.mark.parametrize("method", SWITCHING_STEPS)
@pytest.mark.parametrize("family", FAMILIES)
@seeds(6, 40)
def test_switching_never_raises_the_cost_from_any_start(family, method, seeds):
    for seed in seeds:
        problem = instance(family, seed)
        start = solve_labels(-np.where(np.isfinite(problem.costs), problem.costs, -np.inf), problem.counts).labels
        before = problem.costs[np.arange(start.size), start].sum()
        answer = solve_labels(problem.costs, problem.counts, method, start=start)
        check_answer(problem, answer)
        assert answer.cost <= before + TOLERANCE * problem.scale
        assert (answer.n_moves == 0) == np.array_equal(answer.labels, start)
        assert answer.n_moves == 0 or answer.cost < before


@seeds(20, 100)
def test_switching_is_optimal_for_two_classes(seeds):
    for seed in seeds:
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
        for seed in range(8):
            problem = instance(family, seed)
            costs = problem.costs / max(np.abs(problem.costs).max(), 1e-300)
            start = solve_labels(-costs, problem.counts).labels
            labels, rounds = algorithm_two(costs, start)
            answer = solve_labels(costs, problem.counts, "switching", start=start)
            assert np.array_equal(answer.labels, labels)
            assert answer.n_rounds == rounds
