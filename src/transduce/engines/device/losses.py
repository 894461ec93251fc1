"""The built-in losses on a device, for many rows at once: costs, posterior, and the step of each row in the dual.

A dual step gives every row its best dual variables at some curvature, each for itself (see `weight_step._kernels` for
the problems). The dual variables it starts from need not be feasible.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from transduce.engines.device.arrays import Arrays, DeviceArray, in_blocks
from transduce.losses import LargeMargin, Loss, MaxEnt, SmoothMargin, SquaredLargeMargin, is_builtin
from transduce.losses.smooth import POSTERIOR_TEMPERATURE

FLATTEST, FLATTEST_SQUARED = 1e-20, 1e-4
"""Least curvature of a row, so that nothing overflows or cancels; a larger one than necessary only shortens steps."""
NEWTON_STEPS, LONGEST_MOVE = 1, 4.0
"""Newton steps for the dual variables of the smooth margin, and their largest change of a logarithm. Later
iterations make up for what is left of the error."""
PROJECTION_STEPS = 2
"""Steps of Newton's method for a projection onto the simplex; what is left of the error is divided out."""
NEVER = 1e30
"""Larger than any score: the right label gets no dual variable."""
TINY = 1e-30
"""Lower bound on probabilities inside a logarithm."""


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
    def dual_step(self, S: DeviceArray, q: DeviceArray, p: DeviceArray, B: DeviceArray) -> DeviceArray:
        """New dual variables (n, K) of rows with curvature B (n,), each for itself."""

    @abstractmethod
    def compliance(self, q: DeviceArray, p: DeviceArray, B: DeviceArray) -> DeviceArray:
        """Bounds (n, K) on how much the contribution to a class falls with its score, after a dual step to p."""

    @abstractmethod
    def values_and_gaps(self, S: DeviceArray, q: DeviceArray, p: DeviceArray) -> tuple[Any, Any]:
        """The loss (n,) of each row, and its part of the duality gap (n,)."""

    def contribution(self, q: DeviceArray, p: DeviceArray) -> DeviceArray:
        """What rows contribute to λW for each class, before their weight κ."""
        return q - p

    def change(self, q: DeviceArray, z: DeviceArray) -> DeviceArray:
        """What a change z of the dual variables changes of that."""
        return -z

    def dual_at_zero(self, q: DeviceArray) -> DeviceArray:
        """The dual variables of rows that contribute nothing."""
        return q + 0.0

    def rescaled(self, q: DeviceArray, p: DeviceArray, factor: DeviceArray) -> DeviceArray:
        """The dual variables at which the contribution of each row is multiplied by its factor (n,)."""
        return q + factor[:, None] * (p - q)

    def posterior(self, S: DeviceArray) -> DeviceArray:
        """Class probabilities (n, K)."""
        temperature = 1.0 if self.margins is None else POSTERIOR_TEMPERATURE * self.loss._largest_margin
        return self.softmax(S / temperature)

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

    def softmax(self, S: DeviceArray) -> DeviceArray:
        """Probabilities in proportion to exp(S)."""
        E = self.arrays.xp.exp(S - self._top(S))
        return E / self._sum(E)

    def _top(self, S: DeviceArray) -> DeviceArray:
        return self.arrays.xp.max(S, axis=1, keepdims=True)

    def _sum(self, S: DeviceArray) -> DeviceArray:
        return self.arrays.xp.sum(S, axis=1, keepdims=True)

    def _largest_threshold(self, z: DeviceArray, first: Any, step: Any, shift: float) -> DeviceArray:
        """max over j of (the sum of the j largest entries of each row − shift) / (first + step j), (n, 1)."""
        xp = self.arrays.xp
        sums = xp.cumulative_sum(xp.sort(z, axis=1, descending=True), axis=1)
        count = xp.arange(1, self.n_classes + 1, dtype=z.dtype, device=self.arrays.device)[None, :]
        return self._top((sums - shift) / (first + step * count))


class DeviceHinge(DeviceLoss):
    """The large margin."""

    def _costs(self, S: DeviceArray) -> DeviceArray:
        if not self._has_unit_margins:
            return self._columns_of_values(S)
        xp = self.arrays.xp
        is_best = self.arrays.is_label(xp.argmax(S, axis=1), self.n_classes)
        second = self._top(xp.where(is_best, self.arrays.number(-np.inf), S))
        return xp.clip(1.0 + xp.where(is_best, second, self._top(S)) - S, min=0.0)

    def dual_step(self, S: DeviceArray, q: DeviceArray, p: DeviceArray, B: DeviceArray) -> DeviceArray:
        """Project p + G / B onto the simplex: Newton's method for the threshold, from that of the old support."""
        xp, G = self.arrays.xp, S - q if self._has_unit_margins else self._with_margins(S, q)  # less 1 is the same
        z = G / xp.clip(B, min=FLATTEST)[:, None] + p
        z = z - self._top(z)
        support = xp.astype(p > 0.0, z.dtype)
        threshold = (self._sum(z * support) - 1.0) / xp.clip(self._sum(support), min=1.0)
        for step in range(PROJECTION_STEPS):
            threshold = xp.clip(threshold, min=-1.0, max=-1.0 / self.n_classes)
            new = xp.clip(z - threshold, min=0.0)
            total = self._sum(new)
            if step < PROJECTION_STEPS - 1:
                n_left = xp.astype(xp.count_nonzero(new, axis=1, keepdims=True), z.dtype)
                threshold = threshold + (total - 1.0) / n_left
        return new / total

    def compliance(self, q: DeviceArray, p: DeviceArray, B: DeviceArray) -> DeviceArray:
        return self.arrays.xp.astype(p > 0.0, p.dtype) / self.arrays.xp.clip(B, min=FLATTEST)[:, None]

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

    def change(self, q: DeviceArray, z: DeviceArray) -> DeviceArray:
        return self.contribution(q, z)

    def dual_at_zero(self, q: DeviceArray) -> DeviceArray:
        return self.arrays.xp.zeros_like(q)

    def rescaled(self, q: DeviceArray, p: DeviceArray, factor: DeviceArray) -> DeviceArray:
        return factor[:, None] * p

    def _excess(self, S: DeviceArray, q: DeviceArray) -> DeviceArray:
        """m (n, K): margins plus scores, less the score of the right label."""
        return self._with_margins(S, q) - self._sum(q * S)

    def dual_step(self, S: DeviceArray, q: DeviceArray, p: DeviceArray, B: DeviceArray) -> DeviceArray:
        """t_k = max(0, a_k − (B + 1/2) T) / B for wrong labels k, with T the sum of the new t."""
        xp, m, total = self.arrays.xp, self._excess(S, q), self._sum(p)
        B = xp.clip(B, min=FLATTEST_SQUARED)[:, None]
        a = m + B * (p + total) - NEVER * q  # a GPU could not replay a choice between an array and a number
        mass = xp.clip(self._largest_threshold(a, B, B + 0.5, 0.0), min=0.0)
        return xp.clip(a - (B + 0.5) * mass, min=0.0) / B

    def compliance(self, q: DeviceArray, p: DeviceArray, B: DeviceArray) -> DeviceArray:
        xp = self.arrays.xp
        wrong = 2.0 * xp.astype(p > 0.0, p.dtype) / xp.clip(B, min=FLATTEST_SQUARED)[:, None]
        return wrong + q * self._sum(wrong)

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
        others = self._sum(xp.where(is_best, self.arrays.number(0.0), weights))
        sums = xp.where(is_best, others, 1.0 + others - weights) + own * weights
        return xp.clip(self._width * (xp.log(xp.clip(sums, min=TINY)) + largest) - lead, min=0.0)

    def dual_step(self, S: DeviceArray, q: DeviceArray, p: DeviceArray, B: DeviceArray) -> DeviceArray:
        """Solve log p + B p = z + B p_i − ν, Σ p = 1 by Newton's method in log p and ν."""
        xp, G = self.arrays.xp, S - q if self._has_unit_margins else self._with_margins(S, q)  # less 1 is the same
        z, B = G / self._width, (B / self._width)[:, None]
        right, new = z + B * p, xp.clip(p + (self.softmax(z) - p) / (1.0 + B), min=TINY)
        logs = xp.log(new)
        for _ in range(NEWTON_STEPS):
            inverse, residual = 1.0 / (1.0 + B * new), right - B * new - logs
            slope = new * inverse
            nu = (self._sum(slope * residual + new) - 1.0) / self._sum(slope)
            logs = logs + xp.clip((residual - nu) * inverse, min=-LONGEST_MOVE, max=LONGEST_MOVE)
            new = xp.exp(logs)
        return new / self._sum(new)

    def compliance(self, q: DeviceArray, p: DeviceArray, B: DeviceArray) -> DeviceArray:
        return p / (self._width + B[:, None] * p)

    def _entropy(self, p: DeviceArray) -> DeviceArray:
        return -self.arrays.xp.sum(p * self.arrays.xp.log(self.arrays.xp.clip(p, min=TINY)), axis=1)

    def values_and_gaps(self, S: DeviceArray, q: DeviceArray, p: DeviceArray) -> tuple[Any, Any]:
        xp, z = self.arrays.xp, self._with_margins(S, q) / self._width
        top = self._top(z)
        log_partition = (top + xp.log(self._sum(xp.exp(z - top))))[:, 0]
        divergence = xp.clip(log_partition - xp.sum(p * z, axis=1) - self._entropy(p), min=0.0)
        return self._width * log_partition - xp.sum(q * S, axis=1), self._width * divergence


def device_loss(loss: Loss, n_classes: int, arrays: Arrays) -> DeviceLoss:
    """Return a built-in loss for a device."""
    if not is_builtin(loss):
        raise ValueError(f"rows on a device need a built-in loss, but loss is {loss!r}. Use one, or pass NumPy rows.")
    if isinstance(loss, LargeMargin):
        return DeviceHinge(loss, n_classes, arrays)
    kind = DeviceSquaredHinge if isinstance(loss, SquaredLargeMargin) else DeviceMaxEnt
    return kind(loss, n_classes, arrays)
