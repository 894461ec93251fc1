"""What can be asked of any loss, one of these or one of your own: costs and slopes in threads, and its stand-in."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from transduce.losses.base import FloatArray, Loss, Targets
from transduce.losses.hinge import LargeMargin, SquaredLargeMargin
from transduce.losses.row_blocks import ByRows, costs_by_rows, score_matrix, slope_by_rows
from transduce.losses.smooth import MaxEnt, SmoothMargin
from transduce.losses.targets import mean_under


@dataclass(frozen=True, eq=False)
class Averaged:
    """Any loss of labels, made one of distributions too: the mean over their labels, a gradient for each class.

    >>> float(Averaged(LargeMargin()).value(np.array([[2.0, 0.0]]), np.array([[0.5, 0.5]]))[0])
    1.5
    """

    loss: Loss

    def label_costs(self, scores: ArrayLike) -> FloatArray:
        """Costs (n, K) of every label for every row."""
        return self.loss.label_costs(scores)

    def value(self, scores: ArrayLike, targets: ArrayLike) -> FloatArray:
        """Losses (n,) at the targets."""
        targets = np.asarray(targets)
        if targets.ndim == 1:
            return self.loss.value(scores, targets)
        return mean_under(np.asarray(self.label_costs(scores)), targets)

    def gradient(self, scores: ArrayLike, targets: ArrayLike) -> FloatArray:
        """Gradient (n, K) of the losses in the scores."""
        S, targets = score_matrix(scores), np.asarray(targets)
        if targets.ndim == 1:
            return self.loss.gradient(S, targets)
        out = np.zeros_like(S)
        for k in range(S.shape[1]):
            out += targets[:, k, None] * self.loss.gradient(S, np.full(len(S), k))
        return out


def smoothed(loss: Loss) -> Loss:
    """The loss that stands in for this one while labels are distributions."""
    substitute: Callable[[], Loss] | None = getattr(loss, "smoothed", None)
    return Averaged(loss) if substitute is None else substitute()


def costs_of(loss: Loss, scores: ArrayLike, n_threads: int = 1) -> FloatArray:
    """Costs (n, K) of every label, in threads where the loss is one of these; one of your own is called once.

    >>> costs_of(LargeMargin(), np.array([[2.0, 0.5, -1.0]]), n_threads=2)
    array([[0. , 2.5, 4. ]])
    """
    inner = loss.loss if type(loss) is Averaged else loss
    return costs_by_rows(inner, scores, n_threads) if is_builtin(inner) else np.asarray(loss.label_costs(scores))


def value_and_slope(
    loss: Loss, scores: FloatArray, targets: Targets, weights: FloatArray, n_threads: int = 1
) -> tuple[float, FloatArray]:
    """Σ_i w_i ξ(s_i, y_i) and its gradient (n, K) in the scores, which is written in their place.

    >>> value_and_slope(MaxEnt(), np.zeros((1, 2)), np.array([1]), np.array([2.0]))
    (1.3862943611198906, array([[ 1., -1.]]))
    """
    if is_builtin(loss):
        return slope_by_rows(loss, scores, targets, weights, n_threads)
    value = float(np.dot(weights, loss.value(scores, targets)))
    np.multiply(loss.gradient(scores, targets), weights[:, None], out=scores, casting="same_kind")
    return value, scores


def is_builtin(loss: object) -> TypeGuard[ByRows]:
    """Whether a loss is one of these, and not one of your own that is built upon them.

    >>> is_ours(MaxEnt()), is_ours(Averaged(MaxEnt()))
    (True, False)
    """
    return type(loss) in (LargeMargin, SquaredLargeMargin, MaxEnt, SmoothMargin)
