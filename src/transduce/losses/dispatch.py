"""Functions of any loss, built-in or a user's own: costs and gradients in threads, and the loss for soft labels."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from transduce.losses.base import FloatArray, Loss, Targets
from transduce.losses.blockwise import BlockwiseLoss, at_targets, score_matrix
from transduce.losses.hinge import LargeMargin, SquaredLargeMargin
from transduce.losses.smooth import MaxEnt, SmoothMargin
from transduce.parallel import Threads
from transduce.suggest import short_repr
from transduce.validation import has_methods, is_positive

DEFAULT_ALPHA = 1e-3
"""Regularisation for a loss that does not state its own, on rows of length 1."""


@dataclass(frozen=True, eq=False)
class Averaged:
    """A loss of labels extended to distributions over labels, by the mean over the labels.

    Its gradient takes one gradient of the loss per class.

    Parameters
    ----------
    loss : Loss
        A loss that takes labels.

    Examples
    --------
    >>> Averaged(LargeMargin()).value([[2.0, 0.0]], [[0.5, 0.5]])
    array([1.5])
    """

    loss: Loss

    def __post_init__(self) -> None:
        if not has_methods(self.loss, "label_costs", "value", "gradient"):
            raise TypeError(f"loss must be a Loss such as LargeMargin(), but is {short_repr(self.loss)}. Pass one.")

    def label_costs(self, scores: ArrayLike) -> FloatArray:
        """Compute the loss (n, K) of every row under every label; see `Loss.label_costs`."""
        return self.loss.label_costs(scores)

    def value(self, scores: ArrayLike, targets: ArrayLike) -> FloatArray:
        """Compute the loss (n,) of every row at labels or distributions; see `Loss.value`."""
        targets = np.asarray(targets)
        if targets.ndim == 1:
            return self.loss.value(scores, targets)
        return at_targets(np.asarray(self.label_costs(scores)), targets)

    def gradient(self, scores: ArrayLike, targets: ArrayLike) -> FloatArray:
        """Compute the gradient (n, K) of the losses with respect to the scores; see `Loss.gradient`."""
        S, targets = score_matrix(scores), np.asarray(targets)
        if targets.ndim == 1:
            return self.loss.gradient(S, targets)
        out = np.zeros_like(S)
        for k in range(S.shape[1]):
            out += targets[:, k, None] * self.loss.gradient(S, np.full(len(S), k))
        return out


def smoothed(loss: Loss) -> Loss:
    """Return the loss to use while labels are distributions: `loss.smoothed()` if it has it, else `Averaged(loss)`.

    Parameters
    ----------
    loss : Loss
        A built-in loss or a user's own.

    Returns
    -------
    Loss

    Examples
    --------
    >>> smoothed(LargeMargin())
    SmoothMargin(width=0.1, margins=None)
    """
    substitute: Callable[[], Loss] | None = getattr(loss, "smoothed", None)
    return Averaged(loss) if substitute is None else substitute()


def default_alpha(loss: Loss) -> float:
    """Return the weight of the regulariser that suits a loss on rows of length 1.

    Parameters
    ----------
    loss : Loss
        A built-in loss, or a user's own; without an attribute `default_alpha` it gets 1e-3.

    Returns
    -------
    float

    Examples
    --------
    >>> default_alpha(LargeMargin()), default_alpha(MaxEnt()), default_alpha(Averaged(MaxEnt()))
    (0.001, 0.0001, 0.001)
    """
    alpha = getattr(loss, "default_alpha", DEFAULT_ALPHA)
    if not is_positive(alpha):
        raise ValueError(f"default_alpha of a loss must be a number above 0, but is {alpha!r}.")
    return float(alpha)


def costs_of(loss: Loss, scores: ArrayLike, n_threads: int | Threads = 1) -> FloatArray:
    """Compute the loss (n_rows, n_classes) of every row under every label, in threads if the loss is built in.

    Parameters
    ----------
    loss : Loss
        A built-in loss or a user's own.
    scores : array-like of shape (n_rows, n_classes)
        Scores.
    n_threads : int or transduce.parallel.Threads, default=1
        Number of threads for a built-in loss, or running threads.

    Returns
    -------
    costs : ndarray of shape (n_rows, n_classes)

    Examples
    --------
    >>> costs_of(LargeMargin(), [[2.0, 0.5, -1.0]], n_threads=2)
    array([[0. , 2.5, 4. ]])
    """
    inner = loss.loss if type(loss) is Averaged else loss
    return inner._threaded_costs(scores, n_threads) if is_builtin(inner) else np.asarray(loss.label_costs(scores))


def value_and_gradient(
    loss: Loss, scores: FloatArray, targets: Targets, weights: FloatArray, n_threads: int = 1
) -> tuple[float, FloatArray]:
    """Compute Σ_i w_i ξ(s_i, y_i), and its gradient (n_rows, n_classes) in the scores, which overwrites them.

    Parameters
    ----------
    loss, scores, n_threads
        See `costs_of`.
    targets : ndarray of shape (n_rows,) or (n_rows, n_classes)
        Labels, or distributions over labels.
    weights : ndarray of shape (n_rows,)
        Weights w of the rows.

    Returns
    -------
    value : float
    gradient : ndarray of shape (n_rows, n_classes)
        The array `scores`.

    Examples
    --------
    >>> value_and_gradient(MaxEnt(), np.zeros((1, 2)), np.array([1]), np.array([2.0]))
    (1.3862943611198906, array([[ 1., -1.]]))
    """
    if is_builtin(loss):
        return loss._threaded_value_and_gradient(scores, targets, weights, n_threads), scores
    value = float(np.dot(weights, loss.value(scores, targets)))
    np.multiply(loss.gradient(scores, targets), weights[:, None], out=scores, casting="same_kind")
    return value, scores


def is_builtin(loss: object) -> TypeGuard[BlockwiseLoss]:
    """Return whether a loss is one of this package, and not a subclass, which may change its methods.

    Parameters
    ----------
    loss : object
        A loss.

    Examples
    --------
    >>> is_builtin(MaxEnt()), is_builtin(Averaged(MaxEnt()))
    (True, False)
    """
    return type(loss) in (LargeMargin, SquaredLargeMargin, MaxEnt, SmoothMargin)
