"""Weight steps: minimise J(W, y) in the weights for given labels, starting from the previous weights.

They see rows, losses and weights, never class counts.
"""

from transduce.losses import LargeMargin, Loss, MaxEnt, SmoothMargin, SquaredLargeMargin
from transduce.weight_step.base import Intercept, WeightReport, WeightState, WeightStep
from transduce.weight_step.dual import DualLargeMargin, DualMaxEnt, DualSquaredLargeMargin
from transduce.weight_step.lbfgs import LBFGS

__all__ = [
    "LBFGS",
    "DualLargeMargin",
    "DualMaxEnt",
    "DualSquaredLargeMargin",
    "Intercept",
    "WeightReport",
    "WeightState",
    "WeightStep",
    "weight_step_for",
]


def weight_step_for(loss: Loss, max_iter: int) -> WeightStep:
    """Return the fastest weight step for a loss: dual coordinate ascent for the built-in losses, L-BFGS for others."""
    if isinstance(loss, LargeMargin):
        return DualLargeMargin(max_iter)
    if isinstance(loss, SquaredLargeMargin):
        return DualSquaredLargeMargin(max_iter)
    if isinstance(loss, (MaxEnt, SmoothMargin)):
        return DualMaxEnt(max_iter)
    return LBFGS(max_iter)
