"""How near a row is to another label than its own: by the gap between both, or by chance where labels tie.

    nearness of a row  =  gap between its two best labels, or where they tie  2⁻¹⁰⁰⁰ · gap of (h_ik − w_k)

Labels that tie within rounding are told apart by chance: h_ik is uniform in [0, 1), less 1 for the present label, and w
are second prices that share out masses of equal rows just as the first ones share out all others.
"""

import numpy as np

from transduce.kernels import kernel
from transduce.label_step._kernels.passes import ONE_FOUND
from transduce.label_step.partitioned.partitions import FloatArray, IntArray

TIE = 8 * float(np.finfo(np.float64).eps)
"""Labels whose reduced costs differ by less than this share of the costs tie."""
TIED, APART = 2.0**-1000, 2.0**-960
"""Nearness of ties is scaled by the first; that of other rows is at least the second."""
BIN_BITS, N_BINS = 49, 1 << 14
"""Nearness is tallied by the leading bits of its floats: eight bins for each power of two."""


@kernel
def chance(row: int, k: int) -> float:
    """A number in [0, 1) that looks like chance, always the same for a row and a class."""
    mixed = np.uint64(row) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(k + 1) * np.uint64(0xC2B2AE3D27D4EB4F)
    mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return float((mixed ^ (mixed >> np.uint64(33))) >> np.uint64(11)) * 2.0**-53


@kernel
def choose_near(
    costs: FloatArray,
    prices: FloatArray,
    second: FloatArray,
    span: float,
    rows: IntArray,
    present: IntArray,
    labels: IntArray,
    nearness: FloatArray,
) -> None:
    """Give each row the label of least costs[i, k] − prices[k], by second prices where labels tie, and its nearness.

    span             of the prices: with the costs, what rounding is measured against
    rows (n,)        numbers of the rows, for `chance`     present (n,)   the labels they have, or −1
    labels (n,)      out                                   nearness (n,)  out
    """
    n_classes = costs.shape[1]
    for i in range(costs.shape[0]):
        best = np.inf
        for k in range(n_classes):
            best = min(best, costs[i, k] - prices[k])
        runner_up = np.inf
        found = 0  # as in `choose_labels`
        for k in range(n_classes):
            reduced = costs[i, k] - prices[k]
            is_best = reduced <= best
            runner_up = min(runner_up, np.inf if is_best else reduced)
            found += ONE_FOUND + k if is_best else 0
        label = found & (ONE_FOUND - 1)
        if found >= 2 * ONE_FOUND:
            runner_up = best
            label = 0
            while costs[i, label] - prices[label] > best:
                label += 1
        slack = TIE * (abs(costs[i, label]) + span)
        gap = max(runner_up - best, APART)
        if runner_up - best <= slack:
            least, gap = np.inf, np.inf
            for k in range(n_classes):
                if costs[i, k] - prices[k] <= best + slack:
                    value = chance(rows[i], k) - second[k] - (1.0 if k == present[i] else 0.0)
                    if value < least:
                        gap = least - value
                        least = value
                        label = k
                    else:
                        gap = min(gap, value - least)
            gap *= TIED
        labels[i] = label
        nearness[i] = gap


@kernel
def tie_costs(
    costs: FloatArray, prices: FloatArray, span: float, rows: IntArray, present: IntArray, ties: FloatArray
) -> int:
    """Write the costs h (n, K) that second prices are found for, +inf but on best labels; count the rows with ties."""
    n_tied = 0
    for i in range(costs.shape[0]):
        best = 0
        for k in range(costs.shape[1]):
            if costs[i, k] - prices[k] < costs[i, best] - prices[best]:
                best = k
        limit = costs[i, best] - prices[best] + TIE * (abs(costs[i, best]) + span)
        n_best = 0
        for k in range(costs.shape[1]):
            ties[i, k] = np.inf
            if costs[i, k] - prices[k] <= limit:
                ties[i, k] = chance(rows[i], k) - (1.0 if k == present[i] else 0.0)
                n_best += 1
        n_tied += n_best > 1
    return n_tied


def bin_of(nearness: float) -> int:
    """The bin that a nearness is tallied in."""
    return int(np.float64(nearness).view(np.int64) >> BIN_BITS)
