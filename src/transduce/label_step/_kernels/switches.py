"""Switches of two rows between two classes, and single moves within count ranges: the lists of Algorithm 2.

Problem. Row i has label y. Moving it to ȳ changes the cost by δ(i, y, ȳ) = costs[i, ȳ] − costs[i, y]. Switching it with
ī of class ȳ changes it by ρ = δ(i, y, ȳ) + δ(ī, ȳ, y) and leaves the counts alone. List changes below −tolerance.

Arrays.  members (n,) rows sorted by class, first (K+1,) where each class begins in it, tally (K,) rows a class holds.
         A list entry is (ρ, i, ī), or for a single move to class k (δ, i, −1 − k).
Reference: Keerthi, Sundararajan and Shevade (2012), Algorithm 2, steps 2 to 12.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from transduce.kernels import allocating_kernel, kernel
from transduce.label_step._kernels import Floats, Labels

Changes: TypeAlias = tuple[Sequence[float], Sequence[int], Sequence[int]]


@kernel
def best_change(costs: Floats, rows: Labels, y: int, other: int) -> tuple[float, int]:
    """The least δ of moving one of the rows, all of class y, to the other class, and that row."""
    best, row = np.inf, -1
    for i in rows:
        change = costs[i, other] - costs[i, y]
        if change < best:
            best, row = change, i
    return best, row


@allocating_kernel
def changes_below(costs: Floats, rows: Labels, y: int, other: int, bound: float) -> tuple[Floats, Labels]:
    """Steps 3 and 4: δ of the rows that could still be half of a good switch, in increasing order, with the rows."""
    changes = np.empty(rows.size)
    kept = np.empty(rows.size, np.int64)
    size = 0
    for i in rows:
        change = costs[i, other] - costs[i, y]
        if change < bound:
            changes[size] = change
            kept[size] = i
            size += 1
    order = np.argsort(changes[:size])
    return changes[:size][order], kept[:size][order]


@allocating_kernel
def list_switches(costs: Floats, members: Labels, first: Labels, tolerance: float, only_best: bool) -> Changes:
    """Steps 2 to 7: align the sorted changes of every pair of classes and keep what lowers the cost, or the best."""
    gains, ones, others = [0.0 for _ in range(0)], [0 for _ in range(0)], [0 for _ in range(0)]
    least, n_classes = -tolerance, first.size - 1
    for y in range(n_classes):
        here = members[first[y] : first[y + 1]]
        for other in range(y + 1, n_classes):
            there = members[first[other] : first[other + 1]]
            best_here, row_here = best_change(costs, here, y, other)
            best_there, row_there = best_change(costs, there, other, y)
            if not best_here + best_there < least:
                continue
            if only_best:
                least = best_here + best_there
                gains, ones, others = [least], [row_here], [row_there]
                continue
            forth, i = changes_below(costs, here, y, other, -tolerance - best_there)
            back, j = changes_below(costs, there, other, y, -tolerance - best_here)
            for place in range(min(forth.size, back.size)):
                if not forth[place] + back[place] < -tolerance:
                    break
                gains.append(forth[place] + back[place])
                ones.append(i[place])
                others.append(j[place])
    return gains, ones, others


@allocating_kernel
def list_moves(costs: Floats, labels: Labels, tally: Labels, low: Labels, high: Labels, tolerance: float) -> Changes:
    """Single moves out of a class above its low count into one below its high count."""
    gains, ones, others = [0.0 for _ in range(0)], [0 for _ in range(0)], [0 for _ in range(0)]
    for i in range(labels.size):
        y = labels[i]
        for k in range(tally.size if tally[y] > low[y] else 0):
            if tally[k] < high[k] and costs[i, k] - costs[i, y] < -tolerance:
                gains.append(costs[i, k] - costs[i, y])
                ones.append(i)
                others.append(-1 - k)
    return gains, ones, others


@allocating_kernel
def apply_in_order(ones: Labels, others: Labels, labels: Labels, tally: Labels, low: Labels, high: Labels) -> int:
    """Steps 9 to 12: make changes to labels and tally, passing over rows that have moved; return how many have."""
    has_moved = np.zeros(labels.size, np.bool_)
    for place in range(ones.size):
        i, j = ones[place], others[place]
        if has_moved[i] or (j >= 0 and has_moved[j]):
            continue
        y, k = labels[i], -1 - j
        if j >= 0:
            labels[i], labels[j] = labels[j], labels[i]
            has_moved[i] = has_moved[j] = True
        elif tally[y] > low[y] and tally[k] < high[k]:
            labels[i] = k
            tally[y] -= 1
            tally[k] += 1
            has_moved[i] = True
    return int(has_moved.sum())
