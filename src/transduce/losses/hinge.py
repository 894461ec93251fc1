"""The large margin loss ξ(s, y) = max_k [Δ(k, y) + s_k − s_y], the multi-class hinge, and its square."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from transduce.kernels import kernel
from transduce.losses.base import FloatArray, Targets
from transduce.losses.blockwise import DType, PreparedLoss, as_distributions, at_targets
from transduce.losses.smooth import MarginLoss


@dataclass(frozen=True, eq=False)
class LargeMargin(MarginLoss):
    """The multi-class hinge loss, max_k [Δ(k, y) + s_k − s_y].

    A label costs nothing once its score is larger than every other score by the margin.

    Parameters
    ----------
    margins : ndarray of shape (n_classes, n_classes), default=None
        Margins; ``margins[y, k]`` is the cost of predicting k where y is right. None means 1 for every mistake.

    Examples
    --------
    >>> LargeMargin().label_costs([[2.0, 0.5, -1.0]])
    array([[0. , 2.5, 4. ]])
    """

    margins: NDArray[np.float64] | None = None
    price_scale: ClassVar[float] = 0.5

    def _prepared(self, n_classes: int, dtype: DType) -> "_PreparedHinge":
        return _PreparedHinge(self._margins_as(n_classes, dtype))


@dataclass(frozen=True, eq=False)
class SquaredLargeMargin(MarginLoss):
    """The square of the large margin loss, which is smooth where the margin is just met.

    Parameters
    ----------
    margins : ndarray of shape (n_classes, n_classes), default=None
        See `LargeMargin`.

    Examples
    --------
    >>> SquaredLargeMargin().value([[2.0, 0.5, -1.0]], [1])
    array([6.25])
    """

    margins: NDArray[np.float64] | None = None

    def _prepared(self, n_classes: int, dtype: DType) -> "_PreparedSquare":
        return _PreparedSquare(_PreparedHinge(self._margins_as(n_classes, dtype)))


@dataclass(frozen=True, eq=False)
class _PreparedHinge(PreparedLoss):
    margins: FloatArray | None

    def write_costs(self, S: FloatArray, out: FloatArray) -> None:
        if self.margins is None:
            _unit_margin_costs(S, out)
        else:
            _margin_costs(S, self.margins, out)

    def values(self, S: FloatArray, targets: Targets) -> FloatArray:
        if self.margins is None or targets.ndim == 2:
            return super().values(S, targets)
        return np.asarray((self.margins[targets] + S).max(axis=1) - at_targets(S, targets))

    def write_gradient(self, S: FloatArray, targets: Targets, out: FloatArray) -> None:
        """Write Σ_y q_y ∂ξ(s, y)/∂s for targets q; they may be any weights (n, K) of the labels."""
        weights = as_distributions(targets, S.shape[1], S.dtype).astype(S.dtype, copy=False)
        if self.margins is None:
            _unit_margin_gradient(S, weights, out)
        else:
            _margin_gradient(S, self.margins, weights, out)


@dataclass(frozen=True, eq=False)
class _PreparedSquare(PreparedLoss):
    hinge: _PreparedHinge

    def write_costs(self, S: FloatArray, out: FloatArray) -> None:
        self.hinge.write_costs(S, out)
        np.square(out, out=out)

    def values(self, S: FloatArray, targets: Targets) -> FloatArray:
        return super().values(S, targets) if targets.ndim == 2 else np.square(self.hinge.values(S, targets))

    def write_gradient(self, S: FloatArray, targets: Targets, out: FloatArray) -> None:
        weights = self.hinge.costs(S)
        weights *= 2.0 * as_distributions(targets, S.shape[1], S.dtype).astype(S.dtype, copy=False)
        self.hinge.write_gradient(S, weights, out)


@kernel
def _unit_margin_costs(S: FloatArray, out: FloatArray) -> None:
    """Write max(0, 1 + s_rival − s_k) for every label k, where the rival is the best other label."""
    for i in range(S.shape[0]):
        first, second = -np.inf, -np.inf
        for k in range(S.shape[1]):
            second = max(second, min(first, S[i, k]))
            first = max(first, S[i, k])
        for k in range(S.shape[1]):
            rival = second if S[i, k] >= first else first
            out[i, k] = max(1.0 + rival - S[i, k], 0.0)


@kernel
def _margin_costs(S: FloatArray, margins: FloatArray, out: FloatArray) -> None:
    """Write max_k [margins[y, k] + S[i, k]] − S[i, y] for every label y."""
    for i in range(S.shape[0]):
        for y in range(S.shape[1]):
            worst = -np.inf
            for k in range(S.shape[1]):
                worst = max(worst, margins[y, k] + S[i, k])
            out[i, y] = worst - S[i, y]


@kernel
def _unit_margin_gradient(S: FloatArray, weights: FloatArray, out: FloatArray) -> None:
    """Write what `_margin_gradient` writes for margins of 1, from the two best labels of each row."""
    out[:] = 0.0
    for i in range(S.shape[0]):
        first = second = 0
        for k in range(1, S.shape[1]):
            if S[i, k] > S[i, first]:
                first, second = k, first
            elif first == second or S[i, k] > S[i, second]:
                second = k
        for y in range(S.shape[1]):
            rival = second if y == first else first
            if weights[i, y] != 0.0 and rival != y and 1.0 + S[i, rival] > S[i, y]:
                out[i, rival] += weights[i, y]
                out[i, y] -= weights[i, y]


@kernel
def _margin_gradient(S: FloatArray, margins: FloatArray, weights: FloatArray, out: FloatArray) -> None:
    """Write out[i] = Σ_y weights[i, y] (e_rival − e_y), where the rival is the label that attains the loss under y."""
    out[:] = 0.0
    for i in range(S.shape[0]):
        for y in range(S.shape[1]):
            if weights[i, y] == 0.0:
                continue
            rival = y
            for k in range(S.shape[1]):
                if margins[y, k] + S[i, k] > margins[y, rival] + S[i, rival]:
                    rival = k
            out[i, rival] += weights[i, y]
            out[i, y] -= weights[i, y]
