"""The transportation simplex: never degenerate, and its cost falls to the optimum."""

from itertools import pairwise

import numpy as np
import pytest
from helpers.problems import classifier_instance, range_instance

from transduce import solve_labels
from transduce.label_step import LabelProblem
from transduce.label_step.greedy import greedy_labels
from transduce.label_step.simplex import _Basis


def test_simplex_is_never_degenerate():
    for family in ("heavy_ties", "duplicated_rows", "empty_and_whole_classes"):
        for seed in range(6):
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
    assert all(a.seconds <= b.seconds for a, b in pairwise(answer.trace))
