"""The smooth margin ξ(s, y) = γ log Σ_k exp((Δ(k, y) + s_k − s_y) / γ), and what all losses with margins Δ share."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transduce.kernels import kernel
from transduce.losses.base import FloatArray, Targets
from transduce.losses.blockwise import (
    BlockwiseLoss,
    DType,
    GradientFunction,
    ScoreFunction,
    ValueFunction,
    at_targets,
    subtract_targets,
)
from transduce.losses.maxent import log_sum_exp, softmax, write_softmax

WIDTH = 0.1
"""γ of the smooth margin that replaces the large margin while labels are soft, per unit of the largest margin."""
POSTERIOR_TEMPERATURE = 0.25
"""Temperature of the posterior of margin losses, per unit of the largest margin; see docs/how-to-choose.md."""


class MarginLoss(BlockwiseLoss):
    """A loss with margins (K, K) between classes, one row per right label; None stands for margins of 1."""

    margins: NDArray[np.float64] | None

    def margin_matrix(self, n_classes: int) -> NDArray[np.float64]:
        """Return the margins as a matrix, after checking them against the number of classes."""
        if self.margins is None:
            return 1.0 - np.eye(n_classes)
        margins, shape = np.asarray(self.margins, dtype=np.float64), (n_classes, n_classes)
        if margins.shape != shape:
            raise ValueError(
                f"margins must have shape {shape}, one row per class, but have shape {margins.shape}. Correct them."
            )
        if not np.all(np.isfinite(margins)) or np.any(margins < 0) or np.any(np.diag(margins) != 0):
            raise ValueError(
                "margins must be finite, at least 0, and 0 on the diagonal. Correct them, or leave them out."
            )
        return margins

    def smoothed(self) -> "SmoothMargin":
        """Return the loss to use while labels are distributions: a smooth margin with the same margins."""
        return SmoothMargin(WIDTH * self._largest_margin, self.margins)

    def posterior(self, scores: ArrayLike) -> FloatArray:
        """Return class probabilities (n, K), a softmax at a fixed temperature."""
        return softmax(scores, POSTERIOR_TEMPERATURE * self._largest_margin)

    @property
    def _largest_margin(self) -> float:
        return 1.0 if self.margins is None else float(np.max(self.margins, initial=0.0)) or 1.0


@dataclass(frozen=True, eq=False)
class SmoothMargin(MarginLoss):
    """The large margin with its corner smoothed, γ log Σ_k exp((Δ(k, y) + s_k − s_y) / γ).

    It replaces the large margin while labels are soft. For a distribution over labels it uses the mean of their
    margins, which gives a little less than the mean of their losses, and is much faster.

    Parameters
    ----------
    width : float, default=0.1
        γ, the width over which the corner is smoothed.
    margins : ndarray of shape (n_classes, n_classes), default=None
        Margins; ``margins[y, k]`` is the cost of predicting k where y is right. None means 1 for every mistake.

    Attributes
    ----------
    price_scale : float
        0.5; see `Loss`.

    Examples
    --------
    >>> SmoothMargin(width=0.1).label_costs([[2.0, 0.5, -1.0]]).round(3).tolist()
    [[0.001, 2.5, 4.0]]
    """

    width: float = WIDTH
    margins: NDArray[np.float64] | None = None
    price_scale: ClassVar[float] = 0.5

    def _cost_function(self, n_classes: int, dtype: DType) -> ScoreFunction:
        margins = None if self.margins is None else self.margin_matrix(n_classes)
        largest = float(n_classes > 1 if margins is None else margins.max(initial=0.0)) / self.width
        width, tiny = dtype.type(self.width), np.finfo(dtype).tiny
        if largest > 0.9 * np.log(np.finfo(dtype).max):  # the sums below would underflow
            return self._cost_function_by_label(n_classes, dtype)
        own_factor = float(np.exp(-largest))
        factors = None if margins is None else np.exp(margins / self.width - largest).T.astype(dtype)

        def write(S: FloatArray, out: FloatArray) -> None:
            lead = S - S.max(axis=1, keepdims=True)
            weights = np.exp(lead / width)
            if factors is None:
                _write_unit_margin_sums(weights, own_factor, out)
            else:
                np.matmul(weights, factors, out=out)
            np.log(np.maximum(out, tiny, out=out), out=out)
            out += dtype.type(largest)
            out *= width
            out -= lead
            np.maximum(out, 0.0, out=out)

        return write

    def _cost_function_by_label(self, n_classes: int, dtype: DType) -> ScoreFunction:
        """Return the cost function for margins that are very large compared with γ, one label at a time."""
        values = self._value_function(n_classes, dtype)

        def write(S: FloatArray, out: FloatArray) -> None:
            for k in range(n_classes):
                np.maximum(values(S, np.full(len(S), k)), 0.0, out=out[:, k])

        return write

    def _value_function(self, n_classes: int, dtype: DType) -> ValueFunction:
        logits = self._logit_function(n_classes, dtype)

        def values(S: FloatArray, targets: Targets) -> FloatArray:
            z = logits(S, targets)
            top = z.max(axis=1)
            z -= top[:, None]
            top += log_sum_exp(z)[:, 0]
            return np.asarray(dtype.type(self.width) * top - at_targets(S, targets))

        return values

    def _gradient_function(self, n_classes: int, dtype: DType) -> GradientFunction:
        logits = self._logit_function(n_classes, dtype)

        def write(S: FloatArray, targets: Targets, out: FloatArray) -> None:
            write_softmax(logits(S, targets), out)
            subtract_targets(targets, out)

        return write

    def _logit_function(self, n_classes: int, dtype: DType) -> ValueFunction:
        """Return the function that computes (S + Δ) / γ for the margins Δ of the targets."""
        offsets = self._offset_function(n_classes, dtype)

        def logits(S: FloatArray, targets: Targets) -> FloatArray:
            z = offsets(targets)
            z += S
            z /= dtype.type(self.width)
            return z

        return logits

    def _offset_function(self, n_classes: int, dtype: DType) -> Callable[[Targets], FloatArray]:
        """Return the function that computes the margins Δ (n, K) of targets, as a new array."""
        margins = None if self.margins is None else self.margin_matrix(n_classes).astype(dtype)

        def offsets(targets: Targets) -> FloatArray:
            if margins is not None:
                return np.asarray(
                    margins[targets] if targets.ndim == 1 else (targets @ margins).astype(dtype, copy=False)
                )
            if targets.ndim == 2:
                return np.subtract(1.0, targets, dtype=dtype, casting="same_kind")
            ones = np.ones((len(targets), n_classes), dtype)
            ones[np.arange(len(targets)), targets] = 0.0
            return ones

        return offsets

    def smoothed(self) -> "SmoothMargin":
        """Return the loss to use while labels are distributions: this one."""
        return self

    def margin_offsets(self, targets: ArrayLike, n_classes: int) -> FloatArray:
        """Return the margins (n, K) of the targets, which are added to the scores."""
        targets = np.asarray(targets)
        dtype = np.dtype(np.float32 if targets.dtype == np.float32 else np.float64)
        return self._offset_function(n_classes, dtype)(targets)


@kernel
def _write_unit_margin_sums(weights: FloatArray, own_factor: float, out: FloatArray) -> None:
    """Write out[i, k] = Σ_{j ≠ k} weights[i, j] + own_factor · weights[i, k], where the largest weight of a row is 1.

    The sum without the largest weight is computed on its own, so that no digits cancel.
    """
    for i in range(weights.shape[0]):
        best = 0
        for k in range(1, weights.shape[1]):
            if weights[i, k] > weights[i, best]:
                best = k
        others = 0.0
        for k in range(weights.shape[1]):
            others += weights[i, k] if k != best else 0.0
        total = weights[i, best] + others
        for k in range(weights.shape[1]):
            out[i, k] = total - (1.0 - own_factor) * weights[i, k]
        out[i, best] = others + own_factor * weights[i, best]
