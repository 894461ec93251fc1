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

from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeAlias, TypeGuard, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transduce.kernels import kernel

FloatArray: TypeAlias = NDArray[np.floating[Any]]
Targets: TypeAlias = NDArray[Any]
Kind: TypeAlias = np.dtype[Any]
Answer = TypeVar("Answer")
Writer: TypeAlias = Callable[[FloatArray, FloatArray], None]
"""write(S, out)"""
Valuer: TypeAlias = Callable[[FloatArray, Targets], FloatArray]
"""values(S, targets)"""
SlopeWriter: TypeAlias = Callable[[FloatArray, Targets, FloatArray], None]
"""write(S, targets, out), where out is not the array of the scores"""

SOFTNESS = 0.25
"""Scores of the margins are divided by this to be read as log probabilities; see docs/how-to-choose.md."""
WIDTH = 0.1
"""γ of the smooth margin that stands in for the large margin while labels are soft."""
BLOCK = 1 << 16
"""Scores in a block of rows, about: what is computed on the way stays in the cache."""
FEWEST = 64
"""Rows that a block has at least: products with margins want some."""
BLOCKS_A_THREAD = 4
"""Blocks that a thread must do to be worth starting."""


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


class _ByRows(ABC):
    """A loss that works on one block of rows after the other; float32 stays float32.

    It is asked once for what does the work on a block, given the number of classes and the type of the scores.
    """

    @abstractmethod
    def _cost_writer(self, n_classes: int, kind: Kind) -> Writer:
        """What writes the costs of every label for the rows of a block."""

    @abstractmethod
    def _valuer(self, n_classes: int, kind: Kind) -> Valuer:
        """What gives the losses of the rows of a block."""

    @abstractmethod
    def _slope_writer(self, n_classes: int, kind: Kind) -> SlopeWriter:
        """What writes the gradient for the rows of a block."""

    def label_costs(self, scores: ArrayLike) -> FloatArray:
        """Costs (n, K): the loss of each row if its label were k."""
        return self._costs(scores, 1)

    def _costs(self, scores: ArrayLike, n_threads: int) -> FloatArray:
        S = _score_matrix(scores)
        costs, write = np.empty_like(S), self._cost_writer(S.shape[1], S.dtype)
        _in_blocks(S, n_threads, lambda rows: write(S[rows], costs[rows]))
        return costs

    def value(self, scores: ArrayLike, targets: ArrayLike) -> FloatArray:
        """Losses (n,) at the targets."""
        S, targets = _score_matrix(scores), np.asarray(targets)
        values = self._valuer(S.shape[1], S.dtype)
        return np.concatenate(_in_blocks(S, 1, lambda rows: values(S[rows], targets[rows])))

    def gradient(self, scores: ArrayLike, targets: ArrayLike) -> FloatArray:
        """Gradient (n, K) of the losses in the scores; a subgradient where there is a corner."""
        S, targets = _score_matrix(scores), np.asarray(targets)
        out, write = np.empty_like(S), self._slope_writer(S.shape[1], S.dtype)
        _in_blocks(S, 1, lambda rows: write(S[rows], targets[rows], out[rows]))
        return out


@dataclass(frozen=True, eq=False)
class LargeMargin(_ByRows):
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

    def _cost_writer(self, n_classes: int, kind: Kind) -> Writer:
        if self.margins is None:
            return _unit_margin_costs
        margins = self.margin_matrix(n_classes).astype(kind)
        return lambda S, out: _margin_costs(S, margins, out)

    def _valuer(self, n_classes: int, kind: Kind) -> Valuer:
        write = self._cost_writer(n_classes, kind)
        if self.margins is None:
            return lambda S, targets: _pick(_written(write, S), targets)
        margins = self.margin_matrix(n_classes).astype(kind)

        def values(S: FloatArray, targets: Targets) -> FloatArray:
            if targets.ndim == 2:
                return _pick(_written(write, S), targets)
            losses = np.empty(len(S), kind)
            _margin_values(S, margins, np.arange(n_classes)[targets], losses)
            return losses

        return values

    def _slope_writer(self, n_classes: int, kind: Kind) -> SlopeWriter:
        steps = self._step_writer(n_classes, kind)
        return lambda S, targets, out: steps(S, _as_posterior(targets, S), out)

    def _step_writer(self, n_classes: int, kind: Kind) -> SlopeWriter:
        """What writes Σ_y w_y (e_rival − e_y) for weights w (n, K): write(S, w, out)."""
        if self.margins is None:
            return _unit_rival_steps
        margins = self.margin_matrix(n_classes).astype(kind)
        return lambda S, weights, out: _rival_steps(S, margins, weights, out)

    def softened(self) -> "SmoothMargin":
        """The smooth margin with the same margins."""
        return SmoothMargin(WIDTH * _size(self.margins), self.margins)

    def posterior(self, scores: ArrayLike) -> FloatArray:
        """Probabilities (n, K) that the scores stand for."""
        return _posterior(scores, SOFTNESS * _size(self.margins))


@dataclass(frozen=True, eq=False)
class SquaredLargeMargin(_ByRows):
    """The square of the large margin loss: smooth where the margin is just met.

    >>> SquaredLargeMargin().value([[2.0, 0.5, -1.0]], [1])
    array([6.25])
    """

    margins: NDArray[np.float64] | None = None

    def _cost_writer(self, n_classes: int, kind: Kind) -> Writer:
        hinge = LargeMargin(self.margins)._cost_writer(n_classes, kind)

        def write(S: FloatArray, out: FloatArray) -> None:
            hinge(S, out)
            np.square(out, out=out)

        return write

    def _valuer(self, n_classes: int, kind: Kind) -> Valuer:
        hinge, write = LargeMargin(self.margins)._valuer(n_classes, kind), self._cost_writer(n_classes, kind)

        def values(S: FloatArray, targets: Targets) -> FloatArray:
            return _pick(_written(write, S), targets) if targets.ndim == 2 else np.square(hinge(S, targets))

        return values

    def _slope_writer(self, n_classes: int, kind: Kind) -> SlopeWriter:
        hinge = LargeMargin(self.margins)
        costs, steps = hinge._cost_writer(n_classes, kind), hinge._step_writer(n_classes, kind)

        def write(S: FloatArray, targets: Targets, out: FloatArray) -> None:
            weights = _written(costs, S)
            weights *= 2.0 * _as_posterior(targets, S)
            steps(S, weights, out)

        return write

    def softened(self) -> "SmoothMargin":
        """The smooth margin with the same margins."""
        return SmoothMargin(WIDTH * _size(self.margins), self.margins)

    def posterior(self, scores: ArrayLike) -> FloatArray:
        """Probabilities (n, K) that the scores stand for."""
        return _posterior(scores, SOFTNESS * _size(self.margins))


@dataclass(frozen=True)
class MaxEnt(_ByRows):
    """The logistic loss of many classes; its gradient is the model's posterior less the targets.

    >>> float(MaxEnt().value([[0.0, 0.0]], [0])[0]) == float(np.log(2.0))
    True
    """

    price_share: ClassVar[float] = 1.0

    def _cost_writer(self, n_classes: int, kind: Kind) -> Writer:
        return _write_surprise

    def _valuer(self, n_classes: int, kind: Kind) -> Valuer:
        return lambda S, targets: _pick(_written(_write_surprise, S), targets)

    def _slope_writer(self, n_classes: int, kind: Kind) -> SlopeWriter:
        def write(S: FloatArray, targets: Targets, out: FloatArray) -> None:
            _write_softmax(S, out)
            _take_off(targets, out)

        return write

    def softened(self) -> "MaxEnt":
        """Itself."""
        return self

    def posterior(self, scores: ArrayLike) -> FloatArray:
        """Probabilities (n, K) that the scores stand for."""
        return _posterior(scores, 1.0)


@dataclass(frozen=True, eq=False)
class SmoothMargin(_ByRows):
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

    def _cost_writer(self, n_classes: int, kind: Kind) -> Writer:
        margins = None if self.margins is None else LargeMargin(self.margins).margin_matrix(n_classes)
        furthest = float(n_classes > 1 if margins is None else margins.max(initial=0.0)) / self.width
        width, tiny = kind.type(self.width), np.finfo(kind).tiny
        if furthest > 0.9 * np.log(np.finfo(kind).max):  # sums would underflow
            return self._careful_cost_writer(n_classes, kind)
        near = float(np.exp(-furthest))
        nearness = None if margins is None else np.exp(margins / self.width - furthest).T.astype(kind)

        def write(S: FloatArray, out: FloatArray) -> None:
            lead = S - S.max(axis=1, keepdims=True)
            weights = np.exp(lead / width)
            if nearness is None:
                _write_sums_of_others(weights, near, out)
            else:
                np.matmul(weights, nearness, out=out)
            np.log(np.maximum(out, tiny, out=out), out=out)
            out += kind.type(furthest)
            out *= width
            out -= lead
            np.maximum(out, 0.0, out=out)

        return write

    def _careful_cost_writer(self, n_classes: int, kind: Kind) -> Writer:
        """One label after the other, for margins that are very wide for γ."""
        values = self._valuer(n_classes, kind)

        def write(S: FloatArray, out: FloatArray) -> None:
            for k in range(n_classes):
                np.maximum(values(S, np.full(len(S), k)), 0.0, out=out[:, k])

        return write

    def _valuer(self, n_classes: int, kind: Kind) -> Valuer:
        lifted = self._lifter(n_classes, kind)

        def values(S: FloatArray, targets: Targets) -> FloatArray:
            z = lifted(S, targets)
            top = z.max(axis=1)
            z -= top[:, None]
            top += _log_sum_exp(z)[:, 0]
            return np.asarray(kind.type(self.width) * top - _pick(S, targets))

        return values

    def _slope_writer(self, n_classes: int, kind: Kind) -> SlopeWriter:
        lifted = self._lifter(n_classes, kind)

        def write(S: FloatArray, targets: Targets, out: FloatArray) -> None:
            _write_softmax(lifted(S, targets), out)
            _take_off(targets, out)

        return write

    def _lifter(self, n_classes: int, kind: Kind) -> Valuer:
        """What adds the margins of the targets to scores, and divides by γ."""
        margins = None if self.margins is None else LargeMargin(self.margins).margin_matrix(n_classes).astype(kind)

        def lifted(S: FloatArray, targets: Targets) -> FloatArray:
            z = _lifts(targets, margins, n_classes, kind)
            z += S
            z /= kind.type(self.width)
            return z

        return lifted

    def softened(self) -> "SmoothMargin":
        """Itself."""
        return self

    def posterior(self, scores: ArrayLike) -> FloatArray:
        """Probabilities (n, K) that the scores stand for."""
        return _posterior(scores, SOFTNESS * _size(self.margins))

    def lifts(self, targets: ArrayLike, n_classes: int) -> FloatArray:
        """What the margins of the targets add to the scores of every class, (n, K)."""
        targets = np.asarray(targets)
        kind = np.dtype(np.float32 if targets.dtype == np.float32 else np.float64)
        margins = None if self.margins is None else LargeMargin(self.margins).margin_matrix(n_classes).astype(kind)
        return _lifts(targets, margins, n_classes, kind)


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
        return _mean(np.asarray(self.label_costs(scores)), targets)

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


def costs_of(loss: Loss, scores: ArrayLike, n_threads: int = 1) -> FloatArray:
    """Costs (n, K) of every label, in threads where the loss is one of these; one of your own is called once.

    >>> costs_of(LargeMargin(), np.array([[2.0, 0.5, -1.0]]), n_threads=2)
    array([[0. , 2.5, 4. ]])
    """
    inner = loss.loss if type(loss) is Averaged else loss
    return inner._costs(scores, n_threads) if is_ours(inner) else np.asarray(loss.label_costs(scores))


def value_and_slope(
    loss: Loss, scores: FloatArray, targets: Targets, weights: FloatArray, n_threads: int = 1
) -> tuple[float, FloatArray]:
    """Σ_i w_i ξ(s_i, y_i) and its gradient (n, K) in the scores, which is written in their place.

    >>> value_and_slope(MaxEnt(), np.zeros((1, 2)), np.array([1]), np.array([2.0]))
    (1.3862943611198906, array([[ 1., -1.]]))
    """
    if not is_ours(loss):
        value = float(np.dot(weights, loss.value(scores, targets)))
        np.multiply(loss.gradient(scores, targets), weights[:, None], out=scores, casting="same_kind")
        return value, scores

    values, write = loss._valuer(scores.shape[1], scores.dtype), loss._slope_writer(scores.shape[1], scores.dtype)

    def in_place(rows: slice) -> float:
        S, slopes = scores[rows], np.empty_like(scores[rows])
        value = float(np.dot(weights[rows], values(S, targets[rows])))
        write(S, targets[rows], slopes)
        np.multiply(slopes, weights[rows, None], out=S, casting="same_kind")
        return value

    return sum(_in_blocks(scores, n_threads, in_place)), scores


def is_ours(loss: object) -> TypeGuard[_ByRows]:
    """Whether a loss is one of these, and not one of your own that is built upon them.

    >>> is_ours(MaxEnt()), is_ours(Averaged(MaxEnt()))
    (True, False)
    """
    return type(loss) in (LargeMargin, SquaredLargeMargin, MaxEnt, SmoothMargin)


def _in_blocks(S: FloatArray, n_threads: int, work: Callable[[slice], Answer]) -> list[Answer]:
    """What `work` says of each block of rows, in their order; there is at least one."""
    step = max(FEWEST, BLOCK // max(1, S.shape[1]))
    blocks = [slice(begin, begin + step) for begin in range(0, max(1, len(S)), step)]
    n_threads = min(n_threads, len(blocks) // BLOCKS_A_THREAD)
    if n_threads < 2:
        return [work(rows) for rows in blocks]
    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(work, blocks))


def _size(margins: FloatArray | None) -> float:
    """The largest margin, which scores are measured by."""
    return 1.0 if margins is None else float(np.max(margins, initial=0.0)) or 1.0


def _score_matrix(scores: ArrayLike) -> FloatArray:
    S = np.asarray(scores)
    if S.ndim != 2:
        raise ValueError(f"scores must be a matrix, a row a document and a column a class, but have shape {S.shape}.")
    return np.ascontiguousarray(S, dtype=np.float32 if S.dtype == np.float32 else np.float64)


def _pick(values: FloatArray, targets: Targets) -> FloatArray:
    """Of each row the value of its label, or the mean under its distribution."""
    return _mean(values, targets) if targets.ndim == 2 else np.asarray(values[np.arange(len(values)), targets])


def _mean(values: FloatArray, distributions: Targets) -> FloatArray:
    """The mean (n,) of each row's values under its distribution."""
    return np.asarray((values * distributions).sum(axis=1), values.dtype)


def _written(write: Writer, S: FloatArray) -> FloatArray:
    out = np.empty_like(S)
    write(S, out)
    return out


def _lifts(targets: Targets, margins: FloatArray | None, n_classes: int, kind: Kind) -> FloatArray:
    """What the margins of the targets, 1 without them, add to the scores of every class (n, K); a new array."""
    if margins is not None:
        return np.asarray(margins[targets] if targets.ndim == 1 else (targets @ margins).astype(kind, copy=False))
    if targets.ndim == 2:
        return np.subtract(1.0, targets, dtype=kind, casting="same_kind")
    lifts = np.ones((len(targets), n_classes), kind)
    lifts[np.arange(len(targets)), targets] = 0.0
    return lifts


def _write_surprise(S: FloatArray, out: FloatArray) -> None:
    """Write −log softmax."""
    np.subtract(S, S.max(axis=1, keepdims=True), out=out)
    np.subtract(_log_sum_exp(out), out, out=out)


def _log_sum_exp(S: FloatArray) -> FloatArray:
    """log Σ exp (n, 1) of scores whose largest is 0."""
    total: FloatArray = np.exp(S).sum(axis=1, keepdims=True)
    return np.log(total, out=total)


def _write_softmax(S: FloatArray, out: FloatArray) -> None:
    """Write the probabilities of which S are the logarithms, up to a constant of each row."""
    np.subtract(S, S.max(axis=1, keepdims=True), out=out)
    np.exp(out, out=out)
    out /= out.sum(axis=1, keepdims=True)


def _posterior(scores: ArrayLike, softness: float) -> FloatArray:
    """Probabilities (n, K) of which the scores, divided by the softness, are the logarithms."""
    S = _score_matrix(scores)
    posterior = np.empty_like(S)

    def write(rows: slice) -> None:
        soft = S[rows] if softness == 1.0 else np.divide(S[rows], S.dtype.type(softness), out=posterior[rows])
        _write_softmax(soft, posterior[rows])

    _in_blocks(S, 1, write)
    return posterior


def _take_off(targets: Targets, out: FloatArray) -> None:
    """Subtract targets in place."""
    if targets.ndim == 2:
        np.subtract(out, targets, out=out, casting="same_kind")
    else:
        out[np.arange(len(out)), targets] -= 1.0


def _as_posterior(targets: Targets, S: FloatArray) -> FloatArray:
    """Targets as distributions (n, K)."""
    if targets.ndim == 2:
        return targets.astype(S.dtype, copy=False)
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
def _write_sums_of_others(weights: FloatArray, near: float, out: FloatArray) -> None:
    """Write the sum of all other weights and of `near` times its own; where one of them is 1, no digits are lost."""
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
            out[i, k] = total - (1.0 - near) * weights[i, k]
        out[i, best] = others + near * weights[i, best]


@kernel
def _margin_values(S: FloatArray, margins: FloatArray, targets: Targets, out: FloatArray) -> None:
    """Write max_k [margins[y, k] + S[i, k]] − S[i, y] for the label y of each row."""
    for i in range(S.shape[0]):
        y = targets[i]
        worst = -np.inf
        for k in range(S.shape[1]):
            worst = max(worst, margins[y, k] + S[i, k])
        out[i] = worst - S[i, y]


@kernel
def _unit_rival_steps(S: FloatArray, weights: FloatArray, out: FloatArray) -> None:
    """Write what `_rival_steps` does for margins of 1, from the two best labels of each row."""
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
def _rival_steps(S: FloatArray, margins: FloatArray, weights: FloatArray, out: FloatArray) -> None:
    """Write Σ_y weights[i, y] (e_rival − e_y) to out[i], the rival being the label that attains the loss under y."""
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
