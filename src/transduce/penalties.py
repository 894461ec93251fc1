"""Terms in the model's own posterior of the unlabelled rows, which the direct methods add to the labelled loss.

    entropy          C Σ_i w_i E_i,  E_i = −Σ_k p_ik log p_ik                      (entropy regularisation)
    mismatch         C Σ_k (m_k − n_k)² / n²,  m_k = Σ_i p_ik                      (expectation regularisation)
    count constraint Σ_k μ_k r_k + ρ/2 Σ_k r_k²,  r_k = (m_k − n_k) / √(n n_k)     (expectation constraint)

Each is a function of the posterior p (n, K) alone, with its slope in p. Where counts are ranges, m_k is compared with
the nearest end of its range, and not at all inside it.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Penalty(Protocol):
    """A term that is added to the objective."""

    def value_and_slope(self, p: Array) -> tuple[float, Array]:
        """Value, and slope in p as an array that p can be multiplied with."""
        ...


@dataclass(frozen=True, eq=False)
class Entropy:
    """`weight` times the mean entropy of the rows, or their weighted one; `shares` (n,) sum to 1.

    >>> value, _ = Entropy(1.0, np.array([0.5, 0.5])).value_and_slope(np.array([[0.5, 0.5], [1.0, 0.0]]))
    >>> bool(np.isclose(value, 0.5 * np.log(2.0)))
    True
    """

    weight: float
    shares: Array

    def value_and_slope(self, p: Array) -> tuple[float, Array]:
        """The weighted entropy, and −w_i (log p_ik + 1)."""
        logs = np.log(np.maximum(p, np.finfo(p.dtype).tiny))
        each = -np.einsum("ik,ik->i", p, logs)
        scale = self.weight * self.shares
        return float(np.dot(scale, each)), -scale[:, None] * (logs + 1.0)


@dataclass(frozen=True, eq=False)
class Mismatch:
    """`weight` times the squared distance of the class shares from those asked for."""

    weight: float
    low: Array
    high: Array

    def value_and_slope(self, p: Array) -> tuple[float, Array]:
        """The squared distance, and its slope, the same for every row."""
        n = max(len(p), 1)
        mass = p.sum(axis=0)
        off = (mass - np.clip(mass, self.low, self.high)) / n
        return self.weight * float(np.dot(off, off)), np.broadcast_to(2.0 * self.weight * off / n, p.shape)


@dataclass(frozen=True, eq=False)
class CountConstraint:
    """The augmented Lagrangian of the class sizes, with multipliers μ (K,) and weight ρ."""

    low: Array
    high: Array
    multipliers: Array
    rho: float

    def value_and_slope(self, p: Array) -> tuple[float, Array]:
        """ρ/2 of the squared distance of r + μ/ρ from its range, less a constant; and its slope."""
        shift = self._shifted(p)
        value = 0.5 * self.rho * float(np.dot(shift, shift))
        value -= 0.5 * float(np.dot(self.multipliers, self.multipliers)) / self.rho
        return value, np.broadcast_to(self.rho * shift / self._scale(len(p)), p.shape)

    def updated(self, p: Array, rho: float) -> "CountConstraint":
        """The multipliers that this posterior calls for, and a new weight."""
        return CountConstraint(self.low, self.high, self.rho * self._shifted(p), rho)

    def residual(self, p: Array) -> float:
        """Largest distance of a class size from its range, as a share of it; of all rows, if it is to be empty."""
        mass = p.sum(axis=0)
        off = np.abs(mass - np.clip(mass, self.low, self.high))
        size = np.where(self.low > 0, self.low, np.where(self.high >= 1, self.high, len(p)))
        return float((off / size).max(initial=0.0))

    def _scale(self, n_rows: int) -> Array:
        return np.asarray(np.sqrt(n_rows * np.maximum((self.low + self.high) / 2.0, 1.0)))

    def _shifted(self, p: Array) -> Array:
        scale = self._scale(len(p))
        where = p.sum(axis=0) / scale + self.multipliers / self.rho
        return np.asarray(where - np.clip(where, self.low / scale, self.high / scale))


def through_posterior(p: Array, slope: Array) -> Array:
    """Turn a slope in p = softmax(s) into one in s: p_k (g_k − Σ_j p_j g_j)."""
    weighted = p * slope
    return np.asarray(weighted - p * weighted.sum(axis=1, keepdims=True))
