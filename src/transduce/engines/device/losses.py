"""The built-in losses on a device, for many rows at once: costs, posterior, and the step of each row in the dual.

A dual step gives every row its best dual variables at some curvature, each for itself (see `weight_step._kernels` for
the problems). The dual variables it starts from need not be feasible. It takes few operations: on a GPU those of small
arrays take as long as their number.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from transduce.engines.device.arrays import Arrays, DeviceArray, in_blocks
from transduce.losses import LargeMargin, Loss, MaxEnt, SmoothMargin, SquaredLargeMargin, is_builtin
from transduce.losses.smooth import POSTERIOR_TEMPERATURE

FLATTEST, FLATTEST_SQUARED = 1e-20, 1e-4
"""Least curvature of a row, so that nothing overflows or cancels; a larger one than necessary only shortens steps."""
LONGEST_MOVE = 4.0
"""Largest change of the logarithm of a dual variable in a step of Newton's method. One step is enough: later iterations
make up for what is left of the error."""
NEVER = 1e30
"""Larger than any score: the right label gets no dual variable."""
TINY = 1e-30
"""Lower bound on probabilities inside a logarithm."""


@dataclass(frozen=True, eq=False)
class DualStep:
    """New dual variables of some rows, and how they follow from there if the scores of all rows change alike.

    dual (n, K)
    compliance (n, K)  bounds on how much the contribution of a row to a class falls with its score
    moved              the dual variables after a change of the scores (1, K)
    """

    dual: DeviceArray
    compliance: DeviceArray
    moved: Callable[[DeviceArray], DeviceArray]


@dataclass(frozen=True, eq=False)
class DeviceLoss(ABC):
    """A loss as it is applied to scores S (n, K) and targets q (n, K) on a device."""

    loss: Any
    n_classes: int
    arrays: Arrays

    def costs(self, S: DeviceArray) -> DeviceArray:
        """The loss (n, K) of every row under every label."""
        return in_blocks(self.arrays, self._costs, S)

    @abstractmethod
    def _costs(self, S: DeviceArray) -> DeviceArray:
        """The loss of some rows."""

    @abstractmethod
    def dual_step(self, S: DeviceArray, q: DeviceArray, p: DeviceArray, B: DeviceArray) -> DualStep:
        """New dual variables of rows with curvature B (n,), each for itself."""

    @abstractmethod
    def values_and_gaps(self, S: DeviceArray, q: DeviceArray, p: DeviceArray) -> tuple[Any, Any]:
        """The loss (n,) of each row, and its part of the duality gap (n,)."""

    def contribution(self, q: DeviceArray, p: DeviceArray) -> DeviceArray:
        """What rows contribute to λW for each class, before their weight κ."""
        return q - p

    def change(self, q: DeviceArray, fall: DeviceArray) -> DeviceArray:
        """How much more that is where the dual variables are less by so much."""
        return fall

    def dual_at_zero(self, q: DeviceArray) -> DeviceArray:
        """The dual variables of rows that contribute nothing."""
        return q + 0.0

    def rescaled(self, q: DeviceArray, p: DeviceArray, factor: DeviceArray) -> DeviceArray:
        """The dual variables at which the contribution of each row is multiplied by its factor (n,)."""
        return q + factor[:, None] * (p - q)

    def posterior(self, S: DeviceArray) -> DeviceArray:
        """Class probabilities (n, K)."""
        temperature = 1.0 if self.margins is None else POSTERIOR_TEMPERATURE * self.loss._largest_margin
        return self.arrays.softmax(S / temperature)

    @cached_property
    def margins(self) -> DeviceArray | None:
        """Margins (K, K); None for maxent."""
        return None if isinstance(self.loss, MaxEnt) else self.arrays.floats(self.loss.margin_matrix(self.n_classes))

    @property
    def _has_unit_margins(self) -> bool:
        return self.margins is not None and self.loss.margins is None

    def _with_margins(self, S: DeviceArray, q: DeviceArray) -> DeviceArray:
        """Scores with the margins of the targets added."""
        return S if self.margins is None else S + (1.0 - q if self._has_unit_margins else q @ self.margins)

    def _less_right(self, S: DeviceArray, q: DeviceArray) -> DeviceArray:
        """The same up to a constant in each row."""
        return S - q if self._has_unit_margins else self._with_margins(S, q)

    def _columns_of_values(self, S: DeviceArray) -> DeviceArray:
        """The costs label by label, for margins of any kind."""
        xp, zeros, columns = self.arrays.xp, self.arrays.xp.zeros_like(S), []
        for k in range(self.n_classes):
            q = zeros + self._each_label[k : k + 1, :]
            columns.append(self.values_and_gaps(S, q, q)[0])
        return xp.stack(columns, axis=1)

    @cached_property
    def _each_label(self) -> DeviceArray:
        """Every label as a distribution (K, K)."""
        return self.arrays.floats(np.eye(self.n_classes))

    def _top(self, S: DeviceArray) -> DeviceArray:
        return self.arrays.xp.max(S, axis=1, keepdims=True)

    def _sum(self, S: DeviceArray) -> DeviceArray:
        return self.arrays.xp.sum(S, axis=1, keepdims=True)

    def _largest_sums(self, z: DeviceArray) -> DeviceArray:
        """The sum of the j largest entries of each row, for each j (n, K)."""
        xp = self.arrays.xp
        return xp.cumulative_sum(xp.sort(z, axis=1, descending=True, stable=False), axis=1)

    @cached_property
    def _counts(self) -> DeviceArray:
        """Numbers of entries (1, K)."""
        return self.arrays.floats(np.arange(1.0, self.n_classes + 1.0)[None, :])

    @cached_property
    def _less_inverse_counts(self) -> DeviceArray:
        return -1.0 / self._counts


class DeviceHinge(DeviceLoss):
    """The large margin."""

    def _costs(self, S: DeviceArray) -> DeviceArray:
        if not self._has_unit_margins:
            return self._columns_of_values(S)
        xp = self.arrays.xp
        is_best = self.arrays.is_label(xp.argmax(S, axis=1), self.n_classes)
        second = self._top(xp.where(is_best, self.arrays.number(-np.inf), S))
        return xp.clip(1.0 + xp.where(is_best, second, self._top(S)) - S, min=0.0)

    def dual_step(self, S: DeviceArray, q: DeviceArray, p: DeviceArray, B: DeviceArray) -> DualStep:
        """Project z = p + G / B onto the simplex."""
        xp = self.arrays.xp
        rate = xp.reciprocal(xp.clip(B, min=FLATTEST))[:, None]
        z = self.arrays.plus_product(p, self._less_right(S, q), rate)
        new = self._projected(z)
        compliance = xp.where(new > 0.0, rate, self.arrays.number(0.0))
        return DualStep(new, compliance, lambda change: self._projected(self.arrays.plus_product(z, change, rate)))

    def _projected(self, z: DeviceArray) -> DeviceArray:
        """max(0, z − t) with sum 1, where t is the largest (sum of j entries − 1) / j."""
        z, less = z - self._top(z), self._less_inverse_counts
        threshold = self._top(self.arrays.plus_product(less, self._largest_sums(z), less, -1.0))
        return self.arrays.xp.clip(z - threshold, min=0.0)

    def values_and_gaps(self, S: DeviceArray, q: DeviceArray, p: DeviceArray) -> tuple[Any, Any]:
        xp, G = self.arrays.xp, self._with_margins(S, q)
        best = xp.max(G, axis=1)
        return best - xp.sum(q * S, axis=1), best - xp.sum(p * G, axis=1)


class DeviceSquaredHinge(DeviceLoss):
    """The squared large margin, whose dual variables are t ≥ 0 with sum T."""

    def _costs(self, S: DeviceArray) -> DeviceArray:
        return self._unsquared.costs(S) ** 2

    @cached_property
    def _unsquared(self) -> DeviceHinge:
        return DeviceHinge(LargeMargin(self.loss.margins), self.n_classes, self.arrays)

    def contribution(self, q: DeviceArray, p: DeviceArray) -> DeviceArray:
        return q * self._sum(p) - p

    def change(self, q: DeviceArray, fall: DeviceArray) -> DeviceArray:
        return self.arrays.plus_product(fall, q, self._sum(fall), -1.0)

    def dual_at_zero(self, q: DeviceArray) -> DeviceArray:
        return self.arrays.xp.zeros_like(q)

    def rescaled(self, q: DeviceArray, p: DeviceArray, factor: DeviceArray) -> DeviceArray:
        return factor[:, None] * p

    def _excess(self, S: DeviceArray, q: DeviceArray) -> DeviceArray:
        """m (n, K): margins plus scores, less the score of the right label."""
        return self._with_margins(S, q) - self._sum(q * S)

    def dual_step(self, S: DeviceArray, q: DeviceArray, p: DeviceArray, B: DeviceArray) -> DualStep:
        """t_k = max(0, a_k − (B + 1/2) T) / B for wrong labels k, with T the sum of the new t."""
        xp, plus_product = self.arrays.xp, self.arrays.plus_product
        B = xp.clip(B, min=FLATTEST_SQUARED)[:, None]
        a = plus_product(self._excess(S, q), B, p + self._sum(p))
        a = plus_product(a, q, self.arrays.number(NEVER), -1.0)
        each = B + 0.5
        counts = plus_product(B, each, self._counts)

        def solved(a: DeviceArray) -> DeviceArray:
            mass = xp.clip(self._top(self._largest_sums(a) / counts), min=0.0)
            return xp.clip(a - each * mass, min=0.0) / B

        new = solved(a)
        wrong = xp.where(new > 0.0, 2.0 / B, self.arrays.number(0.0))
        compliance = plus_product(wrong, q, self._sum(wrong))
        return DualStep(new, compliance, lambda change: solved(a + (change - q @ change.T)))

    def values_and_gaps(self, S: DeviceArray, q: DeviceArray, p: DeviceArray) -> tuple[Any, Any]:
        xp, m = self.arrays.xp, self._excess(S, q)
        squares = xp.max(m, axis=1) ** 2
        return squares, xp.clip(squares - xp.sum(p * m, axis=1) + 0.25 * self._sum(p)[:, 0] ** 2, min=0.0)


class DeviceMaxEnt(DeviceLoss):
    """Maxent and the smooth margin, for hard and soft labels."""

    @property
    def _width(self) -> float:
        return self.loss.width if isinstance(self.loss, SmoothMargin) else 1.0

    def _costs(self, S: DeviceArray) -> DeviceArray:
        xp, lead = self.arrays.xp, S - self._top(S)
        if self.margins is None:
            return xp.log(self._sum(xp.exp(lead))) - lead
        largest = self.loss._largest_margin / self._width
        if not self._has_unit_margins or largest > 50.0:  # exp(−largest) would underflow
            return xp.clip(self._columns_of_values(S), min=0.0)
        weights, own = xp.exp(lead / self._width), math.exp(-largest)
        is_best = self.arrays.is_label(xp.argmax(S, axis=1), self.n_classes)
        number, plus_product = self.arrays.number, self.arrays.plus_product
        others = self._sum(xp.where(is_best, number(0.0), weights))
        sums = plus_product(xp.where(is_best, others, 1.0 + others - weights), number(own), weights)
        return xp.clip(plus_product(self._width * largest - lead, number(self._width), xp.log(sums)), min=0.0)

    def dual_step(self, S: DeviceArray, q: DeviceArray, p: DeviceArray, B: DeviceArray) -> DualStep:
        """Solve w log p + B p = G + B p_i − ν, Σ p = 1 by a step of Newton's method in log p and ν; w is the width.

        It starts between p_i and the softmax of G / w. If scores change, another step follows.
        """
        xp, arrays, width, B = self.arrays.xp, self.arrays, self.arrays.number(self._width), B[:, None]
        G = self._less_right(S, q)

        def short(move: DeviceArray) -> DeviceArray:
            return xp.clip(move, min=-LONGEST_MOVE, max=LONGEST_MOVE)

        guess = xp.clip(arrays.between(arrays.softmax(G / self._width), p, B / (B + self._width)), min=TINY)
        logs, away = xp.log(guess), guess - p
        stiffness = arrays.plus_product(width, B, guess)
        slope, residual = guess / stiffness, arrays.plus_product(G, B, away, -1.0)
        residual = arrays.plus_product(residual, width, logs, -1.0)
        level = self._sum(arrays.plus_product(away, slope, residual, -1.0)) / self._sum(slope)
        logs = logs + short((residual + level) / stiffness)
        new = arrays.softmax(logs)
        stiffness = arrays.plus_product(width, B, new)
        compliance = new / stiffness

        def moved(change: DeviceArray) -> DeviceArray:
            mean = compliance @ change.T / self._sum(compliance)
            return arrays.softmax(logs + short((change - mean) / stiffness))

        return DualStep(new, compliance, moved)

    def values_and_gaps(self, S: DeviceArray, q: DeviceArray, p: DeviceArray) -> tuple[Any, Any]:
        """w (log Σ exp(G / w)) − q · S, and w times the divergence of p from the softmax of G / w."""
        xp, G = self.arrays.xp, self._with_margins(S, q)
        logs = self.arrays.log_softmax(G / self._width)
        divergence = xp.clip(xp.sum(p * (xp.log(xp.clip(p, min=TINY)) - logs), axis=1), min=0.0)
        return xp.sum(q * (G - S - self._width * logs), axis=1), self._width * divergence


def device_loss(loss: Loss, n_classes: int, arrays: Arrays) -> DeviceLoss:
    """Return a built-in loss for a device."""
    if not is_builtin(loss):
        raise ValueError(f"rows on a device need a built-in loss, but loss is {loss!r}. Use one, or pass NumPy rows.")
    if isinstance(loss, LargeMargin):
        return DeviceHinge(loss, n_classes, arrays)
    kind = DeviceSquaredHinge if isinstance(loss, SquaredLargeMargin) else DeviceMaxEnt
    return kind(loss, n_classes, arrays)
