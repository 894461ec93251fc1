"""The training problem and its objective J: the one definition that driver, weight steps, tests and experiments share.

    J(W, y) = λ/2 ‖W‖² + Σ_i κ_i ξ(S_i, y_i),     S = (X W) Pᵀ

Rows come labelled ones first. Their weights κ are 1/l for labelled and C/n for unlabelled rows, or in proportion to
sample weights that sum to 1 and to C. A partial label leaves several classes open: such a row takes part in the label
step, with the others forbidden, and weighs as an unlabelled one; or, if asked, C times as much as a labelled one.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.design import Design
from transduce.losses import Loss

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class TrainingProblem:
    """Rows, loss and λ.

    row_weights  (n,) weights that sum to 1 over the labelled rows (and these), and over all others
    n_partial  rows after the labelled ones that are to weigh as those do
    forbidden  (n − n_labeled, K) labels that a row may not get, or None where all may
    """

    design: Design
    loss: Loss
    alpha: float
    n_labeled: int
    row_weights: Array
    n_partial: int = 0
    forbidden: Array | None = None

    @classmethod
    def create(
        cls,
        design: Design,
        loss: Loss,
        alpha: float,
        n_labeled: int,
        sample_weight: Array | None = None,
        n_partial: int = 0,
        forbidden: Array | None = None,
    ) -> "TrainingProblem":
        """Turn sample weights, all 1 without them, into row weights."""
        row_weights = np.ones(design.n_rows) if sample_weight is None else np.array(sample_weight, dtype=np.float64)
        n_known = n_labeled + n_partial
        for part in (slice(None, n_known), slice(n_known, None)):
            total = row_weights[part].sum()
            if total > 0:
                row_weights[part] /= total
        return cls(design, loss, alpha, n_labeled, row_weights, n_partial, forbidden)

    @property
    def n_rows(self) -> int:
        """Labelled and unlabelled rows."""
        return self.design.n_rows

    @property
    def n_classes(self) -> int:
        """Classes."""
        return self.design.taxonomy.n_classes

    def kappa(self, unlabeled_weight: float) -> Array:
        """Row weights κ (n,) when the unlabelled rows weigh C in all."""
        kappa = self.row_weights.copy()
        kappa[self.n_labeled :] *= unlabeled_weight
        return kappa

    def objective(self, W: Array, targets: Array, kappa: Array) -> float:
        """J at these weights and targets."""
        live = kappa > 0
        losses = self.loss.value(self.design.scores(W)[live], targets[live])
        return 0.5 * self.alpha * float(np.vdot(W, W)) + float(np.dot(kappa[live], losses))


def weighted_costs(problem: TrainingProblem, costs: Array, kappa: Array) -> Array:
    """Costs of the rows without a full label in proportion to their weights, infinite where a label is forbidden."""
    weights = kappa[problem.n_labeled :]
    if weights.size and not np.all(weights == weights[0]):
        costs = costs * (weights / weights.mean())[:, None]
    return allowed_costs(problem, costs)


def allowed_costs(problem: TrainingProblem, costs: Array) -> Array:
    """The same costs, infinite where a label is forbidden."""
    return costs if problem.forbidden is None else np.where(problem.forbidden, np.inf, costs)
