"""The large margin loss, which is the hinge of many classes, and its square; a smooth margin stands in for either."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transduce.kernels import kernel
from transduce.losses.base import FloatArray, Targets
from transduce.losses.margins import SOFTNESS, checked_margins, margin_size
from transduce.losses.row_blocks import ByRows, Kind, SlopeWriter, Valuer, Writer, written
from transduce.losses.smooth import WIDTH, SmoothMargin
from transduce.losses.softmax import posterior_at
from transduce.losses.targets import as_posterior, pick


@dataclass(frozen=True, eq=False)
class LargeMargin(ByRows):
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
        return checked_margins(self.margins, n_classes)

    def _cost_writer(self, n_classes: int, kind: Kind) -> Writer:
        if self.margins is None:
            return _unit_margin_costs
        margins = self.margin_matrix(n_classes).astype(kind)
        return lambda S, out: _margin_costs(S, margins, out)

    def _valuer(self, n_classes: int, kind: Kind) -> Valuer:
        write = self._cost_writer(n_classes, kind)
        if self.margins is None:
            return lambda S, targets: pick(written(write, S), targets)
        margins = self.margin_matrix(n_classes).astype(kind)

        def values(S: FloatArray, targets: Targets) -> FloatArray:
            if targets.ndim == 2:
                return pick(written(write, S), targets)
            losses = np.empty(len(S), kind)
            _margin_values(S, margins, np.arange(n_classes)[targets], losses)
            return losses

        return values

    def _slope_writer(self, n_classes: int, kind: Kind) -> SlopeWriter:
        steps = self._step_writer(n_classes, kind)
        return lambda S, targets, out: steps(S, as_posterior(targets, S), out)

    def _step_writer(self, n_classes: int, kind: Kind) -> SlopeWriter:
        """What writes Σ_y w_y (e_rival − e_y) for weights w (n, K): write(S, w, out)."""
        if self.margins is None:
            return _unit_rival_steps
        margins = self.margin_matrix(n_classes).astype(kind)
        return lambda S, weights, out: _rival_steps(S, margins, weights, out)

    def smoothed(self) -> SmoothMargin:
        """The smooth margin with the same margins."""
        return SmoothMargin(WIDTH * margin_size(self.margins), self.margins)

    def posterior(self, scores: ArrayLike) -> FloatArray:
        """Probabilities (n, K) that the scores stand for."""
        return posterior_at(scores, SOFTNESS * margin_size(self.margins))


@dataclass(frozen=True, eq=False)
class SquaredLargeMargin(ByRows):
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
            return pick(written(write, S), targets) if targets.ndim == 2 else np.square(hinge(S, targets))

        return values

    def _slope_writer(self, n_classes: int, kind: Kind) -> SlopeWriter:
        hinge = LargeMargin(self.margins)
        costs, steps = hinge._cost_writer(n_classes, kind), hinge._step_writer(n_classes, kind)

        def write(S: FloatArray, targets: Targets, out: FloatArray) -> None:
            weights = written(costs, S)
            weights *= 2.0 * as_posterior(targets, S)
            steps(S, weights, out)

        return write

    def smoothed(self) -> SmoothMargin:
        """The smooth margin with the same margins."""
        return SmoothMargin(WIDTH * margin_size(self.margins), self.margins)

    def posterior(self, scores: ArrayLike) -> FloatArray:
        """Probabilities (n, K) that the scores stand for."""
        return posterior_at(scores, SOFTNESS * margin_size(self.margins))


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
