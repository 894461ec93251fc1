"""Terms in the model's own posterior of the unlabelled rows, which the direct methods add to the labelled loss.

    entropy          C Σ_i w_i E_i,  E_i = −Σ_k p_ik log p_ik                      (entropy regularisation)
    mismatch         C Σ_k (m_k − n_k)² / n²,  m_k = Σ_i p_ik                      (expectation regularisation)
    count constraint Σ_k μ_k r_k + ρ/2 Σ_k r_k²,  r_k = (m_k − n_k) / √(n n_k)     (expectation constraint)

Each is a function of the posterior p (n, K) alone, with its slope in p. Where counts are ranges, m_k is compared with
the nearest end of its range, and not at all inside it. Groups of classes may have bounds too: k then goes over classes
and groups, and the size of a group is the sum of its classes'.
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
    """`weight` times the squared distance of the class shares from those asked for.

    low, high (K+G,) are bounds of classes, then of groups if there are any, whose classes `members` (G, K) tell.
    """

    weight: float
    low: Array
    high: Array
    members: Array | None = None

    def value_and_slope(self, p: Array) -> tuple[float, Array]:
        """The squared distance, and its slope, the same for every row."""
        n = max(len(p), 1)
        mass = sizes(p, self.members)
        off = (mass - np.clip(mass, self.low, self.high)) / n
        slope = per_class(2.0 * self.weight * off / n, self.members)
        return self.weight * float(np.dot(off, off)), np.broadcast_to(slope, p.shape)


@dataclass(frozen=True, eq=False)
class CountConstraint:
    """The augmented Lagrangian of the class sizes, with multipliers μ and weight ρ.

    low, high and μ (K+G,) are of classes, then of groups if there are any, whose classes `members` (G, K) tell.
    """

    low: Array
    high: Array
    multipliers: Array
    rho: float
    members: Array | None = None

    def value_and_slope(self, p: Array) -> tuple[float, Array]:
        """ρ/2 of the squared distance of r + μ/ρ from its range, less a constant; and its slope."""
        shift = self._shifted(p)
        value = 0.5 * self.rho * float(np.dot(shift, shift))
        value -= 0.5 * float(np.dot(self.multipliers, self.multipliers)) / self.rho
        slope = per_class(self.rho * shift / self._scale(len(p)), self.members)
        return value, np.broadcast_to(slope, p.shape)

    def updated(self, p: Array, rho: float) -> "CountConstraint":
        """The multipliers that this posterior calls for, and a new weight."""
        return CountConstraint(self.low, self.high, self.rho * self._shifted(p), rho, self.members)

    def residual(self, p: Array) -> float:
        """Largest distance of a size from its range, as a share of it; of all rows, if it is to be empty."""
        mass = sizes(p, self.members)
        off = np.abs(mass - np.clip(mass, self.low, self.high))
        size = np.where(self.low > 0, self.low, np.where(self.high >= 1, self.high, len(p)))
        return float((off / size).max(initial=0.0))

    def _scale(self, n_rows: int) -> Array:
        return np.asarray(np.sqrt(n_rows * np.maximum((self.low + self.high) / 2.0, 1.0)))

    def _shifted(self, p: Array) -> Array:
        scale = self._scale(len(p))
        where = sizes(p, self.members) / scale + self.multipliers / self.rho
        return np.asarray(where - np.clip(where, self.low / scale, self.high / scale))


def sizes(p: Array, members: Array | None) -> Array:
    """Sizes of the classes, and of the groups whose classes `members` (G, K) tell.

    >>> sizes(np.array([[0.5, 0.25, 0.25], [0.0, 1.0, 0.0]]), np.array([[0, 1, 1]]))
    array([0.5 , 1.25, 0.25, 1.5 ])
    """
    mass = p.sum(axis=0)
    return np.asarray(mass if members is None else np.concatenate((mass, members @ mass)))


def per_class(slope: Array, members: Array | None) -> Array:
    """Turn a slope in sizes of classes and groups into one in those of the classes."""
    if members is None:
        return slope
    n_classes = members.shape[1]
    return np.asarray(slope[:n_classes] + slope[n_classes:] @ members)


def through_posterior(p: Array, slope: Array) -> Array:
    """Turn a slope in p = softmax(s) into one in s: p_k (g_k − Σ_j p_j g_j)."""
    weighted = p * slope
    return np.asarray(weighted - p * weighted.sum(axis=1, keepdims=True))
