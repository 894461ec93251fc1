"""The training problem and its objective J, defined once for solvers, weight steps, tests and experiments.

    J(W, y) = λ/2 ‖W‖² + Σ_i κ_i ξ(S_i, y_i),     S = (X W) Pᵀ

Labelled rows come first. Row weights κ_i are 1/l for labelled and C/n for unlabelled rows, or proportional to sample
weights with these sums. A row with a partial label takes part in the label step, with the other classes forbidden. By
default it is weighted like an unlabelled row; otherwise C times as much as a labelled one.
"""

from dataclasses import dataclass, replace

import numpy as np

from transduce.arrays import Array
from transduce.design import Design, squared_norm
from transduce.evidence import Evidence
from transduce.losses import Loss


@dataclass(frozen=True, eq=False)
class TrainingProblem:
    """Rows, loss and λ (alpha).

    row_weights (n,)              sum to 1 over the first n_labeled + n_partial rows, and over all others
    n_partial                     rows with partial labels, after the labelled ones, that are weighted like those
    forbidden (n − n_labeled, K)  labels that a row must not get, or None
    evidence                      costs of the labels from elsewhere, or None
    """

    design: Design
    loss: Loss
    alpha: float
    n_labeled: int
    row_weights: Array
    n_partial: int = 0
    forbidden: Array | None = None
    evidence: Evidence | None = None

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
        total_weights: tuple[float, float] | None = None,
    ) -> "TrainingProblem":
        """Build the problem, with row weights proportional to the sample weights (1 by default).

        `total_weights`, where the rows are one block of many: of all rows that count as labelled, and of all others.
        """
        row_weights = np.ones(design.n_rows) if sample_weight is None else np.array(sample_weight, dtype=np.float64)
        parts = np.split(row_weights, [n_labeled + n_partial])
        for part, total in zip(parts, total_weights or [part.sum() for part in parts], strict=True):
            if total > 0:
                part /= total
        return cls(design, loss, alpha, n_labeled, row_weights, n_partial, forbidden)

    @property
    def n_rows(self) -> int:
        """Number of labelled and unlabelled rows."""
        return self.design.n_rows

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.design.taxonomy.n_classes

    def with_unlabeled(self, chosen: Array) -> tuple["TrainingProblem", Array]:
        """Return the problem of the labelled rows and some of the others, and the rows of this problem that it has.

        `chosen` (m,) are positions among the rows without a full label, in increasing order.
        """
        rows = np.concatenate((np.arange(self.n_labeled), self.n_labeled + chosen))
        part = TrainingProblem.create(
            self.design.select_rows(rows),
            self.loss,
            self.alpha,
            self.n_labeled,
            self.row_weights[rows],
            int((chosen < self.n_partial).sum()),
            None if self.forbidden is None else self.forbidden[chosen],
        )
        return part.with_evidence(self.evidence, rows), rows

    def with_evidence(self, evidence: Evidence | None, rows: Array) -> "TrainingProblem":
        """Return the problem with the evidence about these rows of another problem."""
        return self if evidence is None else replace(self, evidence=evidence.select(rows))

    def kappa(self, unlabeled_weight: float) -> Array:
        """Return the row weights κ (n,) for a total weight C of the unlabelled rows."""
        kappa = self.row_weights.copy()
        kappa[self.n_labeled :] *= unlabeled_weight
        return kappa

    def regularizer(self, W: Array) -> float:
        """λ/2 ‖W‖²."""
        return 0.5 * self.alpha * squared_norm(W, self.design.threads)

    def objective(self, W: Array, targets: Array, kappa: Array) -> float:
        """Compute J from scratch at these weights, targets and row weights."""
        live = kappa > 0
        losses = self.loss.value(self.design.scores(W)[live], targets[live])
        return self.regularizer(W) + float(np.dot(kappa[live], losses))


def evidence_costs(problem: TrainingProblem, unlabeled_weight: float) -> Array | float:
    """Costs of the labels of the rows without a full label by the evidence, 0 without any."""
    return 0.0 if problem.evidence is None else problem.evidence.weighted_costs(problem.n_labeled, unlabeled_weight)


def weighted_costs(problem: TrainingProblem, costs: Array, kappa: Array) -> Array:
    """Weight the costs of the rows without a full label by κ / mean(κ), with infinity for forbidden labels."""
    weights = kappa[problem.n_labeled :]
    if weights.size and not np.all(weights == weights[0]):
        costs = costs * (weights / weights.mean())[:, None]
    return allowed_costs(problem, costs)


def allowed_costs(problem: TrainingProblem, costs: Array) -> Array:
    """Return the costs with infinity for forbidden labels."""
    return costs if problem.forbidden is None else np.where(problem.forbidden, np.inf, costs)
