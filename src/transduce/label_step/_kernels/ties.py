"""Cheapest labels with their margins, ties broken at random.

    margin of a row  =  gap between its two best labels, or where they tie  2⁻¹⁰⁰⁰ · gap of (h_ik − w_k)

Labels that tie within rounding are distinguished by random numbers h_ik, uniform in [0, 1), less 1 for the present
label. The tie prices w divide many equal rows among classes just as the prices divide all others.
"""

import numpy as np

from transduce.kernels import kernel
from transduce.label_step._kernels import Floats, Labels
from transduce.label_step._kernels.passes import two_best

TIE = 8 * float(np.finfo(np.float64).eps)
"""Labels tie if their reduced costs differ by less than this fraction of the costs."""
TIED, APART = 2.0**-1000, 2.0**-960
"""Margins of ties are scaled by the first; those of other rows are at least the second."""


@kernel
def span_of(prices: Floats) -> float:
    """The difference between the highest and the lowest price."""
    low, high = prices[0], prices[0]
    for price in prices:
        low, high = min(low, price), max(high, price)
    return float(high - low)


@kernel
def random_unit(row: int, k: int) -> float:
    """A pseudo-random number in [0, 1), a hash of the row and the class."""
    mixed = np.uint64(row) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(k + 1) * np.uint64(0xC2B2AE3D27D4EB4F)
    mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return float((mixed ^ (mixed >> np.uint64(33))) >> np.uint64(11)) * 2.0**-53


@kernel
def choose_with_margins(
    costs: Floats, prices: Floats, tie_prices: Floats, rows: Labels, present: Labels, labels: Labels, margins: Floats
) -> None:
    """Give each row the label of least costs[i, k] − prices[k], by tie prices where labels tie, and its margin.

    rows (n,)    numbers of the rows, for `random_unit`    present (n,)  the present labels, or −1
    labels (n,)  out                                       margins (n,)  out
    """
    span = span_of(prices)  # with the costs, what rounding is measured against
    for i in range(costs.shape[0]):
        best, second, label = two_best(i, costs, prices)
        slack = TIE * (abs(costs[i, label]) + span)
        gap = max(second - best, APART)
        if second - best <= slack:
            least, gap = np.inf, np.inf
            for k in range(costs.shape[1]):
                if costs[i, k] - prices[k] <= best + slack:
                    value = random_unit(rows[i], k) - tie_prices[k] - (1.0 if k == present[i] else 0.0)
                    if value < least:
                        gap = least - value
                        least = value
                        label = k
                    else:
                        gap = min(gap, value - least)
            gap *= TIED
        labels[i] = label
        margins[i] = gap


@kernel
def tie_costs(costs: Floats, prices: Floats, rows: Labels, present: Labels, ties: Floats) -> int:
    """Write the costs h (n, K) of tied best labels, +inf elsewhere, and return the number of rows with ties."""
    n_tied, span = 0, span_of(prices)
    for i in range(costs.shape[0]):
        best, _, label = two_best(i, costs, prices)
        slack = TIE * (abs(costs[i, label]) + span)
        n_best = 0
        for k in range(costs.shape[1]):
            ties[i, k] = np.inf
            if costs[i, k] - prices[k] <= best + slack:
                ties[i, k] = random_unit(rows[i], k) - (1.0 if k == present[i] else 0.0)
                n_best += 1
        n_tied += n_best > 1
    return n_tied
