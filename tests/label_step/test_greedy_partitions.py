"""Greedy labels over partitions, against those of all rows in memory."""

import re

import numpy as np
import pytest
from helpers.partitions import Remote, cut
from helpers.problems import FAMILIES, classifier_instance, instance, range_instance, seeds

from transduce.class_prior.bounds import Bounds
from transduce.label_step import LabelProblem, exact, greedy, sampling
from transduce.label_step.greedy import greedy_labels, greedy_partitions
from transduce.label_step.infeasible import InfeasibleError


@pytest.fixture(params=[False, True], ids=["default", "few ranks"])
def ranks(request, monkeypatch):
    if request.param:
        for name, value in (("RANKED_CELLS", 2), ("FEWEST_RANKED", 3), ("MOST_RANKED", 3), ("CANDIDATES", 4)):
            monkeypatch.setattr(greedy, name, value)


def partly_greedy(costs, low, high, rng) -> np.ndarray:
    """Greedy labels before any repair, −1 where there are none."""
    parts = cut(costs, rng)
    greedy._allocate(parts, Bounds(low, high))
    return parts.labels


def check_against_greedy(costs, low, high, rng) -> tuple[Remote, bool]:
    """The same labels, row by row; as few changes where they had to be repaired."""
    parts = cut(costs, rng)
    problem = LabelProblem.create(costs, (low, high))
    try:
        local = greedy_labels(problem)
    except InfeasibleError:
        with pytest.raises(InfeasibleError):
            greedy_partitions(parts, Bounds(low, high))
        assert not any(part.state for part in parts.here.partitions)
        return parts, True
    greedy_partitions(parts, Bounds(low, high))
    repaired = "_use_change_costs" in parts.calls
    if repaired:
        before = partly_greedy(costs, low, high, rng)
        tally = problem.tally(parts.labels)
        assert np.all((tally >= low) & (tally <= high))
        assert np.all(costs[np.arange(len(costs)), parts.labels] < np.inf)
        assert np.count_nonzero(parts.labels != before) == np.count_nonzero(local != before)
    else:
        assert np.array_equal(parts.labels, local)
    return parts, repaired


@pytest.mark.parametrize("family", FAMILIES)
@seeds(3, 10)
def test_greedy_labels_equal_those_in_memory(family, ranks, seeds):
    rng = np.random.default_rng([seeds.start, *family.encode()])
    for seed in seeds:
        for make in (instance, range_instance):
            problem = make(family, seed)
            times = int(rng.choice([1, 1, 9]))
            costs = np.repeat(problem.costs, times, axis=0).astype(rng.choice([np.float64, np.float32]))
            low, high = times * problem.low, times * problem.high
            if make is range_instance and seed % 2:
                low, high = low // 2, np.minimum(2 * high, len(costs))
            check_against_greedy(costs, low, high, rng)


@seeds(16, 40)
def test_greedy_rows_without_a_class_are_repaired_with_as_few_changes(ranks, seeds):
    rng = np.random.default_rng(7)
    n_repaired = 0
    for seed in seeds:
        problem = (instance if seed % 2 else range_instance)("forbidden", seed)
        order = rng.permutation(problem.low.size) if seed % 3 == 0 else np.arange(problem.low.size)
        n_repaired += check_against_greedy(problem.costs, problem.low[order], problem.high[order], rng)[1]
    assert n_repaired > 3


def test_greedy_labels_at_real_sizes_take_few_calls():
    rng = np.random.default_rng(8)
    for n, n_classes in ((30_000, 20), (10_000, 2)):
        problem = classifier_instance(n, n_classes, 6)
        low = np.asarray(problem.low)
        for costs in (problem.costs, np.round(8 * problem.costs).astype(np.float32)):
            for bounds in ((low, low), ((0.8 * low).astype(int), (1.2 * low).astype(int) + 1)):
                parts, _ = check_against_greedy(costs, *bounds, rng)
                assert parts.largest_message < 8 * 3 * greedy.RANKED_CELLS + 8 * 5 * n_classes + 2000
                assert len(parts.calls) <= 60


def test_a_large_repair_gathers_few_rows(monkeypatch):
    rng = np.random.default_rng(9)
    n, n_classes = 20_000, 8
    costs = classifier_instance(n, n_classes, 7).costs
    forbidden = rng.random(costs.shape) < 0.5
    witness = rng.choice(n_classes, p=rng.dirichlet(np.ones(n_classes)), size=n)
    forbidden[np.arange(n), witness] = False
    costs[forbidden] = np.inf
    monkeypatch.setattr(sampling, "SAMPLE_ROWS", 1 << 11)
    monkeypatch.setattr(exact, "GATHER_ROWS", 1 << 11)
    low = np.bincount(witness, minlength=n_classes)
    parts, repaired = check_against_greedy(costs, low, low, rng)
    assert repaired
    assert parts.largest_message < 8 * n_classes * n / 3
    assert not any(re.search("costs|changes", key) for part in parts.here.partitions for key in part.state)
