"""Greedy labels: the paper's initialisation."""

import numpy as np

from transduce import solve_labels


def test_greedy_lets_sure_rows_choose_first():
    costs = np.array([[-5.0, 0.0, 0.0], [-9.0, 0.0, -1.0], [-8.0, -7.0, 0.0], [0.0, -1.0, -2.0]])
    assert solve_labels(costs, [1, 2, 1], "greedy").labels.tolist() == [1, 0, 1, 2]


def test_greedy_with_ranges_keeps_rows_back_for_the_low_counts():
    costs = np.tile([0.0, 1.0, 2.0], (6, 1))
    answer = solve_labels(costs, ([1, 1, 1], [5, 5, 5]), "greedy")
    assert np.bincount(answer.labels).tolist() == [4, 1, 1]
