"""Losses: functions of the scores of a row and its label, never of features.

    large margin           ξ(s, y) = max_k [Δ(k, y) + s_k − s_y],  Δ(y, y) = 0, and 1 or any cost for other labels
    squared large margin   ξ(s, y)²
    maxent                 ξ(s, y) = log Σ_k exp s_k − s_y
    smooth margin          ξ(s, y) = γ log Σ_k exp((Δ(k, y) + s_k − s_y) / γ): maxent for γ = 1 and Δ = 0, and the large
                           margin as γ goes to 0

Any object with the methods of `Loss` is a loss; it is called with all rows at once. The built-in losses work on blocks
of rows of a fixed size, so that results do not depend on the number of threads.
"""

from transduce.losses.base import Loss
from transduce.losses.dispatch import Averaged, costs_of, default_alpha, is_builtin, smoothed, value_and_gradient
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
    "default_alpha",
    "is_builtin",
    "smoothed",
    "value_and_gradient",
]
