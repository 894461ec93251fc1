"""The weights b of the constant feature, which move once a round, given how rows answer.

The constant is the same in all rows. In a sweep it would make all steps many times as short, and shards would need
hundreds of sums. So b is fixed while rows are swept, and then moves towards its optimum

    b(p) = c/λ Σ_i κ_i (q_i − p_i)ᵀ P,

by a diagonal step of Newton's method for rows that answer alone. Together they answer less than that, so each entry's
step grows while the entry keeps moving the same way, and shrinks when it turns round (Riedmiller and Braun 1993). The
duality gap includes λ/2 ‖b − b(p)‖².
"""

from dataclasses import dataclass, field

import numpy as np

from transduce.arrays import Array
from transduce.problem import TrainingProblem

GROWTH, SHRINKAGE = 1.6, 0.4
"""Factors of a step in the same direction as the last one, and in the opposite one."""


@dataclass(eq=False)
class Bias:
    """How b moves: the `rates` (M,) of its steps, the last `residual` (M,) b(p) − b, and the gap that was left."""

    rates: Array = field(default_factory=lambda: np.ones(1))
    residual: Array = field(default_factory=lambda: np.zeros(1))
    gap: float = 0.0

    def move(self, bias: Array, sums: Array, slopes: Array, constant: float, problem: TrainingProblem) -> Array:
        """Return the next b, from the sums over rows (K,) of κ (q − p), and of how far p gives way."""
        if not problem.design.taxonomy.is_flat:  # P diag(slopes) Pᵀ is at most its row sums: it has no negative entries
            P = np.asarray(problem.design.taxonomy.paths, dtype=np.float64)
            sums, slopes = sums @ P, (slopes * P.sum(axis=1)) @ P
        optimum = constant / problem.alpha * sums
        residual = optimum - bias
        turn = residual * self.residual
        self.rates = self.rates * np.where(turn > 0, GROWTH, np.where(turn < 0, SHRINKAGE, 1.0))
        newton = 1.0 / (1.0 + constant**2 / problem.alpha * slopes)
        self.rates = np.minimum(self.rates, 1.0 / newton)
        moved = bias + self.rates * newton * residual
        self.residual, self.gap = residual, 0.5 * problem.alpha * float(np.sum((moved - optimum) ** 2))
        return np.asarray(moved)
