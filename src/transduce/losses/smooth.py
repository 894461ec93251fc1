"""Maxent, ξ(s, y) = log Σ_k exp s_k − s_y, and the smooth margin γ log Σ_k exp((Δ(k, y) + s_k − s_y) / γ)."""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transduce.contract import read_numbers
from transduce.kernels import kernel
from transduce.losses.base import FloatArray, Targets
from transduce.losses.blockwise import (
    BlockwiseLoss,
    DType,
    PreparedLoss,
    as_distributions,
    at_targets,
    map_blocks,
    score_matrix,
    subtract_targets,
)

WIDTH = 0.1
"""γ of the smooth margin that replaces the large margin while labels are soft, per unit of the largest margin."""
POSTERIOR_TEMPERATURE = 0.25
"""Temperature of the posterior of margin losses, per unit of the largest margin; see docs/how-to-choose.md."""


@dataclass(frozen=True)
class MaxEnt(BlockwiseLoss):
    """The multi-class logistic loss, log Σ_k exp s_k − s_y.

    Examples
    --------
    >>> MaxEnt().value([[0.0, 0.0]], [0]).round(4)
    array([0.6931])
    """

    price_scale: ClassVar[float] = 1.0
    default_alpha: ClassVar[float] = 1e-4

    def _prepared(self, n_classes: int, dtype: DType) -> PreparedLoss:
        return _PreparedMaxEnt()

    def smoothed(self) -> "MaxEnt":
        """Return the loss to use while labels are distributions: this one."""
        return self

    def posterior(self, scores: ArrayLike) -> FloatArray:
        """Return the class probabilities (n, K), softmax(s); for `scores` see `Loss.value`."""
        return _softmax(scores, 1.0)


@lru_cache(maxsize=4)
def _unit_margins(n_classes: int) -> NDArray[np.float64]:
    margins = 1.0 - np.eye(n_classes)
    margins.setflags(write=False)
    return margins


class MarginLoss(BlockwiseLoss):
    """A loss with margins (K, K) between classes, one row per right label; None stands for margins of 1."""

    margins: NDArray[np.float64] | None
    default_alpha: ClassVar[float] = 1e-3

    def margin_matrix(self, n_classes: int) -> NDArray[np.float64]:
        """Return the margins as a matrix, after checking them.

        Parameters
        ----------
        n_classes : int
        """
        if self.margins is None:
            return _unit_margins(n_classes)
        margins, shape = read_numbers(self.margins, "margins", "a matrix of numbers"), (n_classes, n_classes)
        if margins.shape != shape:
            raise ValueError(f"margins must have shape {shape}, one row per class, but have shape {margins.shape}.")
        if not np.all(np.isfinite(margins)) or np.any(margins < 0) or np.any(np.diag(margins) != 0):
            raise ValueError("margins must be finite, at least 0, and 0 on the diagonal. Correct or omit them.")
        return margins

    def smoothed(self) -> "SmoothMargin":
        """Return the loss to use while labels are distributions: a smooth margin with the same margins."""
        return SmoothMargin(WIDTH * self._largest_margin, self.margins)

    def posterior(self, scores: ArrayLike) -> FloatArray:
        """Return class probabilities (n, K), a softmax at a fixed temperature; for `scores` see `Loss.value`."""
        return _softmax(scores, POSTERIOR_TEMPERATURE * self._largest_margin)

    @property
    def _largest_margin(self) -> float:
        return 1.0 if self.margins is None else float(np.max(self.margins, initial=0.0)) or 1.0

    def _margins_as(self, n_classes: int, dtype: DType) -> FloatArray | None:
        return None if self.margins is None else self.margin_matrix(n_classes).astype(dtype)


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
        See `LargeMargin`.

    Examples
    --------
    >>> SmoothMargin(width=0.1).label_costs([[2.0, 0.5, -1.0]]).round(3).tolist()
    [[0.001, 2.5, 4.0]]
    """

    width: float = WIDTH
    margins: NDArray[np.float64] | None = None
    price_scale: ClassVar[float] = 0.5

    def _prepared(self, n_classes: int, dtype: DType) -> "_PreparedSmoothMargin":
        return _PreparedSmoothMargin(self, n_classes, dtype, self._margins_as(n_classes, dtype))

    def smoothed(self) -> "SmoothMargin":
        """Return the loss to use while labels are distributions: this one."""
        return self

    def margin_offsets(self, targets: ArrayLike, n_classes: int) -> FloatArray:
        """Return the margins (n, K) of the targets, which are added to the scores.

        Parameters
        ----------
        targets : array-like of shape (n_rows,) or (n_rows, n_classes)
            Labels, or distributions over labels.
        n_classes : int
        """
        targets = np.asarray(targets)
        dtype = np.dtype(np.float32 if targets.dtype == np.float32 else np.float64)
        return self._prepared(n_classes, dtype).offsets(targets)


class _PreparedMaxEnt(PreparedLoss):
    def write_costs(self, S: FloatArray, out: FloatArray) -> None:
        np.subtract(S, S.max(axis=1, keepdims=True), out=out)
        np.subtract(_log_sum_exp(out), out, out=out)

    def write_gradient(self, S: FloatArray, targets: Targets, out: FloatArray) -> None:
        _write_softmax(S, out)
        subtract_targets(targets, out)


@dataclass(frozen=True, eq=False)
class _PreparedSmoothMargin(PreparedLoss):
    loss: SmoothMargin
    n_classes: int
    dtype: DType
    margins: FloatArray | None

    @cached_property
    def _factors(self) -> tuple[float, FloatArray | None]:
        """The largest margin over γ, and exp(Δ / γ) less the largest, transposed, unless margins are 1."""
        width = self.loss.width
        if self.margins is None:
            return float(self.n_classes > 1) / width, None
        margins = self.loss.margin_matrix(self.n_classes)
        largest = float(margins.max(initial=0.0)) / width
        return largest, np.exp(margins / width - largest).T.astype(self.dtype)

    def write_costs(self, S: FloatArray, out: FloatArray) -> None:
        (largest, factors), width = self._factors, self.dtype.type(self.loss.width)
        if largest > 0.9 * np.log(np.finfo(self.dtype).max):  # the sums below would underflow
            for k in range(self.n_classes):
                np.maximum(self.values(S, np.full(len(S), k)), 0.0, out=out[:, k])
            return
        lead = S - S.max(axis=1, keepdims=True)
        weights = np.exp(lead / width)
        if factors is None:
            _write_unit_margin_sums(weights, float(np.exp(-largest)), out)
        else:
            np.matmul(weights, factors, out=out)
        np.log(np.maximum(out, np.finfo(self.dtype).tiny, out=out), out=out)
        out += self.dtype.type(largest)
        out *= width
        out -= lead
        np.maximum(out, 0.0, out=out)

    def values(self, S: FloatArray, targets: Targets) -> FloatArray:
        z = self._logits(S, targets)
        top = z.max(axis=1)
        z -= top[:, None]
        top += _log_sum_exp(z)[:, 0]
        return np.asarray(self.dtype.type(self.loss.width) * top - at_targets(S, targets))

    def write_gradient(self, S: FloatArray, targets: Targets, out: FloatArray) -> None:
        _write_softmax(self._logits(S, targets), out)
        subtract_targets(targets, out)

    def _logits(self, S: FloatArray, targets: Targets) -> FloatArray:
        """(S + Δ) / γ for the margins Δ of the targets."""
        z = self.offsets(targets)
        z += S
        z /= self.dtype.type(self.loss.width)
        return z

    def offsets(self, targets: Targets) -> FloatArray:
        """The margins Δ (n, K) of targets, as a new array."""
        if self.margins is None:
            q = as_distributions(targets, self.n_classes, self.dtype)
            return np.subtract(1.0, q, dtype=self.dtype, casting="same_kind")
        if targets.ndim == 1:
            return np.asarray(self.margins[targets])
        return np.asarray(targets @ self.margins, self.dtype)


def _log_sum_exp(S: FloatArray) -> FloatArray:
    """Return log Σ_k exp s_k (n, 1) of scores whose maximum is 0."""
    total: FloatArray = np.exp(S).sum(axis=1, keepdims=True)
    return np.log(total, out=total)


def _write_softmax(S: FloatArray, out: FloatArray) -> None:
    np.subtract(S, S.max(axis=1, keepdims=True), out=out)
    np.exp(out, out=out)
    out /= out.sum(axis=1, keepdims=True)


def _softmax(scores: ArrayLike, temperature: float) -> FloatArray:
    """Return softmax(scores / temperature) (n, K)."""
    S = score_matrix(scores)
    posterior = np.empty_like(S)

    def write(rows: slice) -> None:
        z = S[rows] if temperature == 1.0 else np.divide(S[rows], S.dtype.type(temperature), out=posterior[rows])
        _write_softmax(z, posterior[rows])

    map_blocks(S, 1, write)
    return posterior


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
