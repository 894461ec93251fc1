"""Passes over a block of cost rows: cheapest labels at given prices, sums of labelings, and the greedy allocation.

A block is C-ordered float64, so one compilation serves every dtype and memory order. No pass writes anything as large
as the block.
"""

import numpy as np

from transduce.kernels import inlined, kernel
from transduce.label_step._kernels import Flags, Floats, Labels

ONE_FOUND = 1 << 32


@inlined
def two_best(i: int, costs: Floats, prices: Floats) -> tuple[float, float, int]:
    """The least two of costs[i, k] − prices[k] of row i, equal where labels tie, and the first label of the least."""
    best = np.inf
    for k in range(costs.shape[1]):
        best = min(best, costs[i, k] - prices[k])
    second = np.inf
    found = 0  # the number of best labels in the high bits, their sum in the low ones: one sum that vectorises
    for k in range(costs.shape[1]):
        reduced = costs[i, k] - prices[k]
        is_best = reduced <= best
        second = min(second, np.inf if is_best else reduced)
        found += ONE_FOUND + k if is_best else 0
    label = found & (ONE_FOUND - 1)
    if found >= 2 * ONE_FOUND:
        second, label = best, 0
        while costs[i, label] - prices[label] > best:
            label += 1
    return best, second, label


@kernel
def choose_labels(costs: Floats, prices: Floats, labels: Labels, margins: Floats, capacity: Labels) -> None:
    """Give each row the label of least costs[i, k] − prices[k], and the margin to the next best one.

    labels (n,)    in: a label to keep if it is as cheap as any, or −1; out: the label
    margins (n,)   out: reduced cost of the best other label − reduced cost of this one, ≥ 0
    capacity (K,)  in and out: rows that each class may still get; tied labels go where most capacity is left
    """
    for i in range(costs.shape[0]):
        best, second, label = two_best(i, costs, prices)
        if second == best:
            for k in range(label + 1, costs.shape[1]):
                if costs[i, k] - prices[k] <= best and capacity[k] > capacity[label]:
                    label = k
        if labels[i] >= 0 and costs[i, labels[i]] - prices[labels[i]] <= best:
            label = labels[i]
        labels[i] = label
        margins[i] = second - best
        capacity[label] -= 1


@kernel
def add_label_values(costs: Floats, prices: Floats, labels: Labels, sums: Floats) -> None:
    """Add to sums (r, 3), in place, the sums of r labelings (r, m) of the rows.

    Sums: costs of the labels, absolute costs, and distances from the cheapest label at these prices (≥ 0).
    """
    for i in range(costs.shape[0]):
        best = np.inf
        for k in range(costs.shape[1]):
            best = min(best, costs[i, k] - prices[k])
        for r in range(labels.shape[0]):
            chosen = costs[i, labels[r, i]]
            sums[r, 0] += chosen
            sums[r, 1] += abs(chosen)
            sums[r, 2] += (chosen - prices[labels[r, i]]) - best


@kernel
def shortest_moves(costs: Floats, labels: Labels, lengths: Floats) -> None:
    """Lower lengths[a, b], in place, to the least costs[i, b] − costs[i, a] of the block's rows with label a."""
    for i in range(costs.shape[0]):
        a = labels[i]
        for b in range(costs.shape[1]):
            lengths[a, b] = min(lengths[a, b], costs[i, b] - costs[i, a])


@kernel
def best_open(costs: Floats, is_open: Flags, best: Floats, labels: Labels) -> None:
    """Find the cheapest label of each row among the open classes; +inf and −1 where none of them is allowed."""
    for i in range(costs.shape[0]):
        best[i] = np.inf
        labels[i] = -1
        for k in range(costs.shape[1]):
            if is_open[k] and costs[i, k] < best[i]:
                best[i] = costs[i, k]
                labels[i] = k


@kernel
def allocate(
    rows: Labels, favourites: Labels, low: Labels, high: Labels, tally: Labels, free: int, labels: Labels
) -> int:
    """Step 7 of Algorithm 1: rows, surest first, take their favourite class until it is full.

    A class gets rows up to its low count in any case, and up to its high count while any of the `free` rows, those that
    no low count needs, is left. Writes labels and tally in place; returns what is left of `free`.
    """
    for place in range(rows.size):
        k = favourites[place]
        if k >= 0 and tally[k] < (high[k] if free > 0 else low[k]):
            free -= tally[k] >= low[k]
            labels[rows[place]] = k
            tally[k] += 1
    return free
