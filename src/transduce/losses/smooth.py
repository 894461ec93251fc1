"""The losses without a corner, maxent and the smooth margin, which take soft labels as they are."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transduce.kernels import kernel
from transduce.losses.base import FloatArray, Targets
from transduce.losses.margins import SOFTNESS, checked_margins, lifts_of, margin_size
from transduce.losses.row_blocks import ByRows, Kind, SlopeWriter, Valuer, Writer, written
from transduce.losses.softmax import log_sum_exp, posterior_at, write_softmax, write_surprise
from transduce.losses.targets import pick, take_off

WIDTH = 0.1
"""γ of the smooth margin that stands in for the large margin while labels are soft."""


@dataclass(frozen=True)
class MaxEnt(ByRows):
    """The logistic loss of many classes; its gradient is the model's posterior less the targets.

    >>> float(MaxEnt().value([[0.0, 0.0]], [0])[0]) == float(np.log(2.0))
    True
    """

    price_share: ClassVar[float] = 1.0

    def _cost_writer(self, n_classes: int, kind: Kind) -> Writer:
        return write_surprise

    def _valuer(self, n_classes: int, kind: Kind) -> Valuer:
        return lambda S, targets: pick(written(write_surprise, S), targets)

    def _slope_writer(self, n_classes: int, kind: Kind) -> SlopeWriter:
        def write(S: FloatArray, targets: Targets, out: FloatArray) -> None:
            write_softmax(S, out)
            take_off(targets, out)

        return write

    def smoothed(self) -> "MaxEnt":
        """Itself."""
        return self

    def posterior(self, scores: ArrayLike) -> FloatArray:
        """Probabilities (n, K) that the scores stand for."""
        return posterior_at(scores, 1.0)


@dataclass(frozen=True, eq=False)
class SmoothMargin(ByRows):
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
        margins = None if self.margins is None else checked_margins(self.margins, n_classes)
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
            top += log_sum_exp(z)[:, 0]
            return np.asarray(kind.type(self.width) * top - pick(S, targets))

        return values

    def _slope_writer(self, n_classes: int, kind: Kind) -> SlopeWriter:
        lifted = self._lifter(n_classes, kind)

        def write(S: FloatArray, targets: Targets, out: FloatArray) -> None:
            write_softmax(lifted(S, targets), out)
            take_off(targets, out)

        return write

    def _lifter(self, n_classes: int, kind: Kind) -> Valuer:
        """What adds the margins of the targets to scores, and divides by γ."""
        margins = None if self.margins is None else checked_margins(self.margins, n_classes).astype(kind)

        def lifted(S: FloatArray, targets: Targets) -> FloatArray:
            z = lifts_of(targets, margins, n_classes, kind)
            z += S
            z /= kind.type(self.width)
            return z

        return lifted

    def smoothed(self) -> "SmoothMargin":
        """Itself."""
        return self

    def posterior(self, scores: ArrayLike) -> FloatArray:
        """Probabilities (n, K) that the scores stand for."""
        return posterior_at(scores, SOFTNESS * margin_size(self.margins))

    def lifts(self, targets: ArrayLike, n_classes: int) -> FloatArray:
        """What the margins of the targets add to the scores of every class, (n, K)."""
        targets = np.asarray(targets)
        kind = np.dtype(np.float32 if targets.dtype == np.float32 else np.float64)
        margins = None if self.margins is None else checked_margins(self.margins, n_classes).astype(kind)
        return lifts_of(targets, margins, n_classes, kind)


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
