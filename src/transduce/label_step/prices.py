"""Prices of given labels: shortest distances on the graph of classes.

The length of a → b is the least costs[i, b] − costs[i, a] of a row with label a. Prices with v_b ≤ v_a + length(a, b)
make every label cheapest for its row; they exist if and only if no cycle is negative, that is, if the labels are
optimal. For other labels the relaxation is stopped early, and the prices give a bound instead of a proof.
"""

import numpy as np

from transduce.label_step._kernels.passes import shortest_moves
from transduce.label_step.problem import FloatArray, IntArray, LabelProblem

MAX_RELAXATIONS = 200


def prices_of_labels(problem: LabelProblem, labels: IntArray) -> FloatArray:
    """Relax v_b ≤ v_a + length(a, b) until nothing changes, or as often as a simple path could need.

    >>> problem = LabelProblem.create([[0.0, 1.0], [0.0, 3.0], [2.0, 0.0]], counts=[1, 2])
    >>> prices = prices_of_labels(problem, np.array([1, 0, 1]))
    >>> float(prices[1] - prices[0])
    1.0
    """
    n = problem.n_classes
    lengths = np.full((n + 1, n + 1), np.inf)
    for part, block in problem.blocks():
        shortest_moves(block, labels[part], lengths)
    above_low = problem.tally(labels) - problem.low
    lengths[:n, n] = np.where(above_low < problem.high - problem.low, 0.0, np.inf)
    lengths[n, :n] = np.where(above_low > 0, 0.0, np.inf)
    prices = relax(np.zeros(n + 1), lengths, min(n + 1, MAX_RELAXATIONS))
    return np.asarray(prices[:n] - prices[n])


def relax(prices: FloatArray, lengths: FloatArray, max_passes: int) -> FloatArray:
    """Lower prices until v_b ≤ v_a + lengths[a, b] for all a and b, in at most `max_passes` passes."""
    for _ in range(max_passes):
        relaxed = np.minimum(prices, (prices[:, None] + lengths).min(axis=0))
        if np.array_equal(relaxed, prices):
            break
        prices = relaxed
    return prices
