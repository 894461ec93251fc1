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
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transduce.kernels import kernel

FloatArray: TypeAlias = NDArray[np.floating[Any]]

SOFTNESS = 0.25
"""Scores of the margins are divided by this to be read as log probabilities; see docs/how-to-choose.md."""
WIDTH = 0.1
"""γ of the smooth margin that stands in for the large margin while labels are soft."""


class Loss(Protocol):
    """What every loss can do; see the module's docstring."""

    def label_costs(self, scores: ArrayLike) -> FloatArray:
        """Costs (n, K): the loss of each row if its label were k."""
        ...

    def value(self, scores: ArrayLike, targets: ArrayLike) -> FloatArray:
        """Losses (n,) at the targets."""
        ...

    def gradient(self, scores: ArrayLike, targets: ArrayLike) -> FloatArray:
        """Gradient (n, K) of the losses in the scores; a subgradient where there is a corner."""
        ...


@dataclass(frozen=True, eq=False)
class LargeMargin:
    """The multi-class hinge: a label costs nothing once its score leads every other by the margin.

    `margins` (K, K) says how bad it is to predict k where y is right, in row y; without it every mistake costs 1.

    >>> loss = LargeMargin()
    >>> loss.label_costs([[2.0, 0.5, -1.0]])
    array([[0. , 2.5, 4. ]])
    >>> loss.value([[2.0, 0.5, -1.0]], [1]), loss.gradient([[2.0, 0.5, -1.0]], [1])
    (array([2.5]), array([[ 1., -1.,  0.]]))
    """

    margins: NDArray[np.float64] | None = None
    price_share: ClassVar[float] = 0.5

    def margin_matrix(self, n_classes: int) -> NDArray[np.float64]:
        """The margins as a matrix, checked against the number of classes."""
        if self.margins is None:
            return 1.0 - np.eye(n_classes)
        margins = np.asarray(self.margins, dtype=np.float64)
        if margins.shape != (n_classes, n_classes):
            raise ValueError(
                f"margins must be {n_classes} by {n_classes}, a row a class, but have shape {margins.shape}."
            )
        if not np.all(np.isfinite(margins)) or np.any(margins < 0) or np.any(np.diag(margins) != 0):
            raise ValueError(
                "margins must be finite, 0 or more, and 0 on the diagonal. Correct them, or leave them out."
            )
        return margins

    def label_costs(self, scores: ArrayLike) -> FloatArray:
        """Costs (n, K) of every label for every row; float32 stays float32."""
        S = _score_matrix(scores)
        costs = np.empty_like(S)
        if self.margins is None:
            _unit_margin_costs(S, costs)
        else:
            _margin_costs(S, self.margin_matrix(S.shape[1]).astype(S.dtype), costs)
        return costs

    def value(self, scores: ArrayLike, targets: ArrayLike) -> FloatArray:
        """Losses (n,) at the targets."""
        return _pick(self.label_costs(scores), targets)

    def gradient(self, scores: ArrayLike, targets: ArrayLike) -> FloatArray:
        """A subgradient (n, K): +1 at the worst rival, −1 at the label."""
        S = _score_matrix(scores)
        out = np.zeros_like(S)
        weights = _as_posterior(targets, S)
        _add_rival_steps(S, self.margin_matrix(S.shape[1]).astype(S.dtype), weights, out)
        return out

    def softened(self) -> "SmoothMargin":
        """The smooth margin with the same margins."""
        return SmoothMargin(WIDTH * _size(self.margins), self.margins)

    def posterior(self, scores: ArrayLike) -> FloatArray:
        """Probabilities (n, K) that the scores stand for."""
        return MaxEnt().posterior(_score_matrix(scores) / np.float32(SOFTNESS * _size(self.margins)))


@dataclass(frozen=True, eq=False)
class SquaredLargeMargin:
    """The square of the large margin loss: smooth where the margin is just met.

    >>> SquaredLargeMargin().value([[2.0, 0.5, -1.0]], [1])
    array([6.25])
    """

    margins: NDArray[np.float64] | None = None

    def label_costs(self, scores: ArrayLike) -> FloatArray:
        """Costs (n, K) of every label for every row."""
        return np.square(LargeMargin(self.margins).label_costs(scores))

    def value(self, scores: ArrayLike, targets: ArrayLike) -> FloatArray:
        """Losses (n,) at the targets."""
        return _pick(self.label_costs(scores), targets)

    def gradient(self, scores: ArrayLike, targets: ArrayLike) -> FloatArray:
        """Gradient (n, K): twice the margin loss, at the worst rival and at the label."""
        S = _score_matrix(scores)
        hinge = LargeMargin(self.margins)
        out = np.zeros_like(S)
        weights = 2.0 * _as_posterior(targets, S) * hinge.label_costs(S)
        _add_rival_steps(S, hinge.margin_matrix(S.shape[1]).astype(S.dtype), weights, out)
        return out

    def softened(self) -> "SmoothMargin":
        """The smooth margin with the same margins."""
        return SmoothMargin(WIDTH * _size(self.margins), self.margins)

    def posterior(self, scores: ArrayLike) -> FloatArray:
        """Probabilities (n, K) that the scores stand for."""
        return MaxEnt().posterior(_score_matrix(scores) / np.float32(SOFTNESS * _size(self.margins)))


@dataclass(frozen=True)
class MaxEnt:
    """The logistic loss of many classes; its gradient is the model's posterior less the targets.

    >>> float(MaxEnt().value([[0.0, 0.0]], [0])[0]) == float(np.log(2.0))
    True
    """

    price_share: ClassVar[float] = 1.0

    def label_costs(self, scores: ArrayLike) -> FloatArray:
        """Costs (n, K) of every label for every row, safe at any size of the scores."""
        S = _score_matrix(scores)
        top = S.max(axis=1, keepdims=True)
        return np.asarray(np.log(np.exp(S - top).sum(axis=1, keepdims=True)) - (S - top))

    def value(self, scores: ArrayLike, targets: ArrayLike) -> FloatArray:
        """Losses (n,) at the targets."""
        return _pick(self.label_costs(scores), targets)

    def gradient(self, scores: ArrayLike, targets: ArrayLike) -> FloatArray:
        """Gradient (n, K): posterior less targets."""
        S = _score_matrix(scores)
        return np.asarray(self.posterior(S) - _as_posterior(targets, S))

    def softened(self) -> "MaxEnt":
        """Itself."""
        return self

    def posterior(self, scores: ArrayLike) -> FloatArray:
        """Probabilities (n, K) that the scores stand for."""
        S = _score_matrix(scores)
        weights = np.exp(S - S.max(axis=1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class SmoothMargin:
    """The large margin with its corner rounded off over a width γ; what a large margin becomes while labels are soft.

    >>> loss = SmoothMargin(width=0.1)
    >>> loss.label_costs([[2.0, 0.5, -1.0]]).round(3).tolist()
    [[0.001, 2.5, 4.0]]
    >>> bool(np.allclose(SmoothMargin(1.0, np.zeros((3, 3))).label_costs([[2.0, 0.5, -1.0]]),
    ...                  MaxEnt().label_costs([[2.0, 0.5, -1.0]])))
    True
    """

    width: float = WIDTH
    margins: NDArray[np.float64] | None = None
    price_share: ClassVar[float] = 0.5

    def label_costs(self, scores: ArrayLike) -> FloatArray:
        """Costs (n, K) of every label for every row."""
        S = _score_matrix(scores)
        margins = LargeMargin(self.margins).margin_matrix(S.shape[1]) / self.width
        furthest = margins.max(initial=0.0)
        if furthest > 0.9 * np.log(np.finfo(S.dtype).max):  # the product below would underflow
            columns = [self.value(S, np.eye(S.shape[1])[np.full(len(S), k)]) for k in range(S.shape[1])]
            return np.maximum(np.stack(columns, axis=1).astype(S.dtype), 0.0)
        top = S.max(axis=1, keepdims=True)
        weights = np.exp((S - top) / S.dtype.type(self.width))
        if self.margins is None and np.exp(furthest) * np.finfo(S.dtype).eps < 1e-6:  # all but the label's own
            total = weights.sum(axis=1, keepdims=True) - S.dtype.type(1.0 - np.exp(-furthest)) * weights
        else:
            total = weights @ np.exp(margins - furthest).T.astype(S.dtype)
        total = np.maximum(total, np.finfo(S.dtype).tiny)
        costs = S.dtype.type(self.width) * (np.log(total) + S.dtype.type(furthest)) - (S - top)
        return np.asarray(np.maximum(costs, 0.0))

    def value(self, scores: ArrayLike, targets: ArrayLike) -> FloatArray:
        """Losses (n,) at the targets; distributions have the mean of the margins of their labels."""
        S, targets = _score_matrix(scores), np.asarray(targets)
        own = S[np.arange(len(S)), targets] if targets.ndim == 1 else (targets * S).sum(axis=1)
        lifted = (S + self.lifts(targets, S.shape[1])) / self.width
        top = lifted.max(axis=1)
        losses = self.width * (np.log(np.exp(lifted - top[:, None]).sum(axis=1)) + top) - own
        return np.asarray(losses.astype(S.dtype))

    def gradient(self, scores: ArrayLike, targets: ArrayLike) -> FloatArray:
        """Gradient (n, K): posterior of the lifted scores less targets."""
        S, targets = _score_matrix(scores), np.asarray(targets)
        lifted = (S + self.lifts(targets, S.shape[1])) / S.dtype.type(self.width)
        return np.asarray((MaxEnt().posterior(lifted) - _as_posterior(targets, S)).astype(S.dtype))

    def softened(self) -> "SmoothMargin":
        """Itself."""
        return self

    def posterior(self, scores: ArrayLike) -> FloatArray:
        """Probabilities (n, K) that the scores stand for."""
        return MaxEnt().posterior(_score_matrix(scores) / np.float32(SOFTNESS * _size(self.margins)))

    def lifts(self, targets: ArrayLike, n_classes: int) -> FloatArray:
        """What the margins of the targets add to the scores of every class, (n, K)."""
        targets = np.asarray(targets)
        if self.margins is None and targets.ndim == 2:
            return np.asarray(1.0 - targets)
        margins = LargeMargin(self.margins).margin_matrix(n_classes)
        return np.asarray(margins[targets] if targets.ndim == 1 else targets @ margins)


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
        return self.loss.value(scores, targets) if targets.ndim == 1 else _pick(self.label_costs(scores), targets)

    def gradient(self, scores: ArrayLike, targets: ArrayLike) -> FloatArray:
        """Gradient (n, K) of the losses in the scores."""
        S, targets = _score_matrix(scores), np.asarray(targets)
        if targets.ndim == 1:
            return self.loss.gradient(S, targets)
        out = np.zeros_like(S)
        for k in range(S.shape[1]):
            out += targets[:, k, None] * self.loss.gradient(S, np.full(len(S), k))
        return out


def softened(loss: Loss) -> Loss:
    """The loss that stands in for this one while labels are distributions."""
    substitute: Callable[[], Loss] | None = getattr(loss, "softened", None)
    return Averaged(loss) if substitute is None else substitute()


def _size(margins: FloatArray | None) -> float:
    """The largest margin, which scores are measured by."""
    return 1.0 if margins is None else float(np.max(margins, initial=0.0)) or 1.0


def _score_matrix(scores: ArrayLike) -> FloatArray:
    S = np.asarray(scores)
    if S.ndim != 2:
        raise ValueError(f"scores must be a matrix, a row a document and a column a class, but have shape {S.shape}.")
    return np.ascontiguousarray(S, dtype=np.float32 if S.dtype == np.float32 else np.float64)


def _pick(costs: FloatArray, targets: ArrayLike) -> FloatArray:
    targets = np.asarray(targets)
    if targets.ndim == 2:
        return np.asarray((costs * targets).sum(axis=1))
    return np.asarray(costs[np.arange(len(costs)), targets])


def _as_posterior(targets: ArrayLike, S: FloatArray) -> FloatArray:
    """Targets as distributions (n, K)."""
    targets = np.asarray(targets)
    if targets.ndim == 2:
        return targets.astype(S.dtype)
    posterior = np.zeros_like(S)
    posterior[np.arange(len(S)), targets] = 1.0
    return posterior


@kernel
def _unit_margin_costs(S: FloatArray, out: FloatArray) -> None:
    """Write max(0, 1 + best other score − score), from the two best scores of each row."""
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
def _add_rival_steps(S: FloatArray, margins: FloatArray, weights: FloatArray, out: FloatArray) -> None:
    """Add weights[i, y] (e_rival − e_y) to out[i], the rival being the label that attains the loss under y."""
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
