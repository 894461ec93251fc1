"""Terms in the posterior of the unlabelled rows that the direct methods add to the labelled loss.

    entropy          C Σ_i w_i E_i,  E_i = −Σ_k p_ik log p_ik                      (entropy regularisation)
    mismatch         C Σ_k (m_k − n_k)² / n²,  m_k = Σ_i p_ik                      (expectation regularisation)
    count constraint Σ_k μ_k r_k + ρ/2 Σ_k r_k²,  r_k = (m_k − n_k) / √(n n_k)     (expectation constraint)

Each is a function of the posterior p (n, K) alone, with its gradient in p. If counts are ranges, m_k is compared with
the nearest end of its range, and inside it the term is 0. Groups of classes may have bounds too: k then goes over
classes and groups, and the size of a group is the sum of the sizes of its classes.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Penalty(Protocol):
    """A term of the objective."""

    def value_and_gradient(self, p: Array) -> tuple[float, Array]:
        """Return the value and the gradient in p, which has the shape of p."""
        ...


@dataclass(frozen=True, eq=False)
class Entropy:
    """`weight` times the weighted mean of the entropies of the rows; `row_weights` (n,) sum to 1.

    >>> value, _ = Entropy(1.0, np.array([0.5, 0.5])).value_and_gradient(np.array([[0.5, 0.5], [1.0, 0.0]]))
    >>> bool(np.isclose(value, 0.5 * np.log(2.0)))
    True
    """

    weight: float
    row_weights: Array

    def value_and_gradient(self, p: Array) -> tuple[float, Array]:
        """Return the weighted entropy, and −w_i (log p_ik + 1)."""
        logs = np.log(np.maximum(p, np.finfo(p.dtype).tiny))
        each = -np.einsum("ik,ik->i", p, logs)
        scale = self.weight * self.row_weights
        return float(np.dot(scale, each)), -scale[:, None] * (logs + 1.0)


@dataclass(frozen=True, eq=False)
class Mismatch:
    """`weight` times the squared distance of the class proportions from their bounds.

    low, high (K+G,) are bounds of classes, then of groups; `members` (G, K) marks the classes of each group.
    """

    weight: float
    low: Array
    high: Array
    members: Array | None = None

    def value_and_gradient(self, p: Array) -> tuple[float, Array]:
        """Return the squared distance, and its gradient, which is the same for every row."""
        n = max(len(p), 1)
        mass = sizes(p, self.members)
        off = (mass - np.clip(mass, self.low, self.high)) / n
        gradient = per_class(2.0 * self.weight * off / n, self.members)
        return self.weight * float(np.dot(off, off)), np.broadcast_to(gradient, p.shape)


@dataclass(frozen=True, eq=False)
class CountConstraint:
    """Augmented Lagrangian of the class counts, with multipliers μ and penalty ρ.

    low, high and μ (K+G,) are for classes, then for groups; `members` (G, K) marks the classes of each group.
    """

    low: Array
    high: Array
    multipliers: Array
    rho: float
    members: Array | None = None

    def value_and_gradient(self, p: Array) -> tuple[float, Array]:
        """Return ρ/2 times the squared distance of r + μ/ρ from its range, less a constant, and its gradient."""
        shift = self._shifted(p)
        value = 0.5 * self.rho * float(np.dot(shift, shift))
        value -= 0.5 * float(np.dot(self.multipliers, self.multipliers)) / self.rho
        gradient = per_class(self.rho * shift / self._scale(len(p)), self.members)
        return value, np.broadcast_to(gradient, p.shape)

    def updated(self, p: Array, rho: float) -> "CountConstraint":
        """Return the constraint with the multipliers updated at this posterior, and a new penalty."""
        return CountConstraint(self.low, self.high, self.rho * self._shifted(p), rho, self.members)

    def residual(self, p: Array) -> float:
        """Return the largest relative distance of a size from its range; relative to all rows if it must be 0."""
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
    """Return the sizes of the classes, then those of the groups with these `members` (G, K).

    >>> sizes(np.array([[0.5, 0.25, 0.25], [0.0, 1.0, 0.0]]), np.array([[0, 1, 1]]))
    array([0.5 , 1.25, 0.25, 1.5 ])
    """
    mass = p.sum(axis=0)
    return np.asarray(mass if members is None else np.concatenate((mass, members @ mass)))


def per_class(gradient: Array, members: Array | None) -> Array:
    """Turn a gradient in the sizes of classes and groups into one in the sizes of the classes."""
    if members is None:
        return gradient
    n_classes = members.shape[1]
    return np.asarray(gradient[:n_classes] + gradient[n_classes:] @ members)


def through_posterior(p: Array, gradient: Array) -> Array:
    """Turn a gradient in p = softmax(s) into one in s: p_k (g_k − Σ_j p_j g_j)."""
    weighted = p * gradient
    return np.asarray(weighted - p * weighted.sum(axis=1, keepdims=True))
