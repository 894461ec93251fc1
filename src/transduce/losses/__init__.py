"""Losses as functions of scores alone: what a row would lose under each label, never how its scores came about.

    large margin           ξ(s, y) = max_k [Δ(k, y) + s_k − s_y],  Δ zero for the right label, 1 or any cost for others
    squared large margin   ξ(s, y)²
    maxent                 ξ(s, y) = log Σ_k exp s_k − s_y
    smooth margin          ξ(s, y) = γ log Σ_k exp((Δ(k, y) + s_k − s_y) / γ): maxent at γ = 1 without margins, the
                           large margin as γ goes to 0

A loss answers three questions about scores S (n, K): the cost of every label, the value at given targets, and its
gradient in S. Targets are labels (n,), and for the losses here distributions (n, K) too, whose value is the mean over
their labels; the smooth margin takes the mean of their margins instead, which is a little less and far cheaper. A loss
of your own is any object with these three methods; nothing else in the package knows what a loss looks like inside. It
may have two more: `softened()`, the loss that stands in for it while labels are distributions (without it `Averaged`
does), `posterior(scores)`, the probabilities that scores stand for, and `price_share`: the share of a class's price in
the label step that is worth as much as a score. Costs of maxent fall by one for each one of the score, so its share is
1; two labels of a margin compare by twice the difference of their scores, so theirs is 1/2.

Rows do not know of each other. The losses here take them in blocks of a fixed size, which may be shared among threads
(`costs_of`, `value_and_slope`), and need room for a block beside what they return. Blocks do not depend on threads, nor
do results. A loss of your own is called once with all rows.
"""

from transduce.losses.base import Loss
from transduce.losses.dispatch import Averaged, costs_of, is_builtin, smoothed, value_and_slope
from transduce.losses.hinge import LargeMargin, SquaredLargeMargin
from transduce.losses.smooth import MaxEnt, SmoothMargin

__all__ = [
    "Averaged",
    "LargeMargin",
    "Loss",
    "MaxEnt",
    "SmoothMargin",
    "SquaredLargeMargin",
    "costs_of",
    "is_builtin",
    "smoothed",
    "value_and_slope",
]
