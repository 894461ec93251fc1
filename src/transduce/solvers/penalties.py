"""Terms in the posterior of the unlabelled rows that the direct methods add to the labelled loss.

    entropy          C Σ_i w_i E_i,  E_i = −Σ_k p_ik log p_ik                      (entropy regularisation)
    mismatch         C Σ_k (m_k − n_k)² / n²,  m_k = Σ_i p_ik                      (expectation regularisation)
    count constraint Σ_k μ_k r_k + ρ/2 Σ_k r_k²,  r_k = (m_k − n_k) / √(n n_k)     (expectation constraint)

Each is a function of the posterior p (n, K) alone, with its gradient in p. If counts are ranges, m_k is compared with
the nearest end of its range, and inside it the term is 0. k goes over classes and groups of classes with bounds.
"""

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from transduce.arrays import Array
from transduce.class_prior.bounds import Bounds


@dataclass(frozen=True, eq=False)
class Entropy:
    """`weight` times the weighted mean of the entropies of the rows; `row_weights` (n,) sum to 1."""

    weight: float
    row_weights: Array

    def value_and_gradient(self, p: Array) -> tuple[float, Array]:
        """Return the weighted entropy, and −w_i (log p_ik + 1)."""
        logs = np.log(np.maximum(p, np.finfo(p.dtype).tiny))
        each = -np.einsum("ik,ik->i", p, logs)
        scale = self.weight * self.row_weights
        return float(np.dot(scale, each)), -scale[:, None] * (logs + 1.0)


class SizeBounds(NamedTuple):
    """Bounds (K+G,) on the sizes of classes, then of groups; `members` (G, K) marks the classes of each group."""

    low: Array
    high: Array
    members: Array

    @classmethod
    def create(cls, bounds: Bounds) -> "SizeBounds":
        """Collect the bounds of classes and groups."""
        low, high, groups = bounds[:3]
        if groups is None:
            return cls(low, high, np.zeros((0, len(low)), bool))
        return cls(np.append(low, groups.low), np.append(high, groups.high), groups.members(len(low)))

    def sizes(self, p: Array) -> Array:
        """Return the sizes of classes and groups."""
        mass = p.sum(axis=0)
        return np.append(mass, self.members @ mass)

    def excess(self, p: Array) -> Array:
        """Return how far each size is above its range, below 0 if it is below."""
        sizes = self.sizes(p)
        return np.asarray(sizes - np.clip(sizes, self.low, self.high))

    def residual(self, p: Array) -> float:
        """Return the largest relative distance of a size from its range; relative to all rows if it must be 0."""
        size = np.where(self.low > 0, self.low, np.where(self.high >= 1, self.high, len(p)))
        return float((np.abs(self.excess(p)) / size).max(initial=0.0))

    def gradient(self, by_size: Array, p: Array) -> Array:
        """Turn a gradient in the sizes into one in p, which is the same for every row."""
        n_classes = p.shape[1]
        return np.broadcast_to(by_size[:n_classes] + by_size[n_classes:] @ self.members, p.shape)


@dataclass(frozen=True, eq=False)
class Mismatch:
    """`weight` times the squared distance of the class proportions from their bounds."""

    weight: float
    bounds: SizeBounds

    def value_and_gradient(self, p: Array) -> tuple[float, Array]:
        """Return the squared distance, and its gradient."""
        n = max(len(p), 1)
        off = self.bounds.excess(p) / n
        return self.weight * float(np.dot(off, off)), self.bounds.gradient(2.0 * self.weight * off / n, p)


@dataclass(frozen=True, eq=False)
class CountConstraint:
    """Augmented Lagrangian of the class counts, with multipliers μ (K+G,) and penalty ρ."""

    bounds: SizeBounds
    multipliers: Array
    rho: float

    def value_and_gradient(self, p: Array) -> tuple[float, Array]:
        """Return ρ/2 times the squared distance of r + μ/ρ from its range, less a constant, and its gradient."""
        shift, scale = self._shifted(p)
        value = 0.5 * self.rho * float(np.dot(shift, shift))
        value -= 0.5 * float(np.dot(self.multipliers, self.multipliers)) / self.rho
        return value, self.bounds.gradient(self.rho * shift / scale, p)

    def updated(self, p: Array, rho: float) -> "CountConstraint":
        """Return the constraint with the multipliers updated at this posterior, and a new penalty."""
        return CountConstraint(self.bounds, self.rho * self._shifted(p)[0], rho)

    def _shifted(self, p: Array) -> tuple[Array, Array]:
        low, high, _ = self.bounds
        scale = np.sqrt(len(p) * np.maximum((low + high) / 2.0, 1.0))
        where = self.bounds.sizes(p) / scale + self.multipliers / self.rho
        return where - np.clip(where, low / scale, high / scale), scale


Penalty: TypeAlias = Entropy | Mismatch | CountConstraint


def through_posterior(p: Array, gradient: Array) -> Array:
    """Turn a gradient in p = softmax(s) into one in s: p_k (g_k − Σ_j p_j g_j)."""
    weighted = p * gradient
    return np.asarray(weighted - p * weighted.sum(axis=1, keepdims=True))
