"""Maxent, the multi-class logistic loss ξ(s, y) = log Σ_k exp s_k − s_y, and the softmax."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from transduce.losses.base import FloatArray, Targets
from transduce.losses.blockwise import (
    BlockwiseLoss,
    DType,
    GradientFunction,
    ScoreFunction,
    ValueFunction,
    at_targets,
    evaluated,
    map_blocks,
    score_matrix,
    subtract_targets,
)


@dataclass(frozen=True)
class MaxEnt(BlockwiseLoss):
    """The multi-class logistic loss, log Σ_k exp s_k − s_y.

    Attributes
    ----------
    price_scale : float
        1.0; see `Loss`.

    Examples
    --------
    >>> float(MaxEnt().value([[0.0, 0.0]], [0])[0]) == float(np.log(2.0))
    True
    """

    price_scale: ClassVar[float] = 1.0

    def _cost_function(self, n_classes: int, dtype: DType) -> ScoreFunction:
        return write_surprisal

    def _value_function(self, n_classes: int, dtype: DType) -> ValueFunction:
        return lambda S, targets: at_targets(evaluated(write_surprisal, S), targets)

    def _gradient_function(self, n_classes: int, dtype: DType) -> GradientFunction:
        def write(S: FloatArray, targets: Targets, out: FloatArray) -> None:
            write_softmax(S, out)
            subtract_targets(targets, out)

        return write

    def smoothed(self) -> "MaxEnt":
        """Return the loss to use while labels are distributions: this one."""
        return self

    def posterior(self, scores: ArrayLike) -> FloatArray:
        """Return the class probabilities (n, K), softmax(s)."""
        return softmax(scores, 1.0)


def write_surprisal(S: FloatArray, out: FloatArray) -> None:
    """Write −log softmax(S)."""
    np.subtract(S, S.max(axis=1, keepdims=True), out=out)
    np.subtract(log_sum_exp(out), out, out=out)


def log_sum_exp(S: FloatArray) -> FloatArray:
    """Return log Σ_k exp s_k (n, 1) of scores whose maximum is 0."""
    total: FloatArray = np.exp(S).sum(axis=1, keepdims=True)
    return np.log(total, out=total)


def write_softmax(S: FloatArray, out: FloatArray) -> None:
    """Write softmax(S)."""
    np.subtract(S, S.max(axis=1, keepdims=True), out=out)
    np.exp(out, out=out)
    out /= out.sum(axis=1, keepdims=True)


def softmax(scores: ArrayLike, temperature: float) -> FloatArray:
    """Return softmax(scores / temperature) (n, K)."""
    S = score_matrix(scores)
    posterior = np.empty_like(S)

    def write(rows: slice) -> None:
        z = S[rows] if temperature == 1.0 else np.divide(S[rows], S.dtype.type(temperature), out=posterior[rows])
        write_softmax(z, posterior[rows])

    map_blocks(S, 1, write)
    return posterior
