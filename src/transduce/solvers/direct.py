"""The direct methods of section 4 of the paper: one smooth problem in the weights, with terms in the model's posterior.

    entropy regularisation      labelled loss + C · mean entropy of the unlabelled rows,  class counts as constraints
    expectation constraint      labelled loss,  class counts as constraints
    expectation regularisation  labelled loss + C · squared distance of the class proportions
    posterior regularisation    labelled loss + C · KL(q ‖ p),  class counts as constraints on q

The constraints are on the posterior p of the model, summed over the unlabelled rows: an augmented Lagrangian whose
penalty grows while they are not met. The entropy term makes the problem non-convex, so its weight grows in stages.
Posterior regularisation alternates: q by the entropic label step at T = 1, then weights for labels q.
"""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from transduce.arrays import Array
from transduce.class_prior.bounds import Bounds
from transduce.history import FitResult, FitStatus, HistoryRow
from transduce.label_step import METHODS, LabelProblem
from transduce.label_step.entropic import Entropic
from transduce.losses import MaxEnt
from transduce.problem import TrainingProblem, weighted_costs
from transduce.solvers.loop import Solver
from transduce.solvers.penalties import CountConstraint, Entropy, Mismatch, Penalty, SizeBounds, through_posterior
from transduce.weight_step import weight_step_for
from transduce.weight_step.lbfgs import ValueAndGradient, gradient_at_zero, in_weights, run_lbfgs

MAX_RESIDUAL = 1e-3
"""Relative error of a predicted class size that counts as met."""
ENTROPY_STAGES = (0.0, 0.1, 0.3, 1.0)
"""Weights of the entropy term in the stages, as fractions of the final one."""
FIRST_RHO, RHO_GROWTH, SUFFICIENT_DECREASE = 10.0, 4.0, 0.3
"""Penalty of the constraints at first, its growth, and the ratio of residuals of two rounds up to which it stays."""
ITERATIONS = 60
"""Iterations of L-BFGS in a round: the multipliers still change, so more would be wasted."""
MAX_SWEEPS = 10_000
"""Most sweeps of a weight step."""
MIN_DECREASE = 1e-5
"""Posterior regularisation ends when its objective falls by no more than this fraction in a round."""


@dataclass(eq=False)
class DirectMethod(Solver):
    """What the direct methods share: the supervised start, and labels that meet the counts at the end.

    labels  (n,) class of every labelled row, which come first; other entries are ignored
    """

    problem: TrainingProblem
    labels: Array
    bounds: Bounds
    rng: np.random.Generator
    tol: float
    max_rounds: int

    def start(self) -> FitResult:
        """Return weights of 0."""
        return FitResult(np.zeros(self.problem.n_classes), self.problem.design.zeros(), self.labels.copy())

    def stages(self, result: FitResult) -> Iterator[Iterator[HistoryRow]]:
        """Generate the supervised start, then the stages of the method."""
        yield self._supervised(result)
        if self.problem.n_rows > self.problem.n_labeled:
            yield from self._own_stages(result)

    @abstractmethod
    def _own_stages(self, result: FitResult) -> Iterator[Iterator[HistoryRow]]:
        """Generate the stages after the supervised start."""

    def _supervised(self, result: FitResult) -> Iterator[HistoryRow]:
        """Learn weights from the labelled rows alone."""
        problem, step = self.problem, weight_step_for(self.problem.loss, MAX_SWEEPS)
        state = step.start(problem, result.labels)
        step.retarget(problem, state, result.labels, problem.kappa(0.0))
        report = step.solve(problem, state, self.tol, self.rng)
        result.W[...], result.objective = state.W, report.objective
        result.status = FitStatus.SUPERVISED if report.converged else FitStatus.NOT_CONVERGED
        yield HistoryRow(0, 0.0, report.objective, 0, report.gap)

    def finish(self, result: FitResult) -> None:
        """Add the best labels that meet the counts at the final weights."""
        problem, unlabeled = self.problem, slice(self.problem.n_labeled, None)
        costs = problem.loss.label_costs(problem.design.scores(result.W)[unlabeled])
        if len(costs):
            costs = weighted_costs(problem, costs, problem.row_weights)
            solution = METHODS["exact"].solve(LabelProblem(costs, *self.bounds))
            result.labels[unlabeled], result.prices = solution.labels, solution.prices


@dataclass(eq=False)
class PenalizedPosterior(DirectMethod):
    """Entropy regularisation, expectation constraint and expectation regularisation.

    entropy     final weight of the mean entropy
    enforced    whether class counts are constraints
    mismatch    weight of the squared distance of the class proportions
    constraint  augmented Lagrangian of the class counts with its present multipliers
    """

    entropy: float = 0.0
    enforced: bool = False
    mismatch: float = 0.0
    constraint: CountConstraint = field(init=False)

    def _own_stages(self, result: FitResult) -> Iterator[Iterator[HistoryRow]]:
        low, high, members = SizeBounds.create(self.bounds)
        n_unlabeled = self.problem.n_rows - self.problem.n_labeled
        high = np.where(high == 0, 0.5 * MAX_RESIDUAL * n_unlabeled, high)  # no posterior is quite 0
        self.constraint = CountConstraint(SizeBounds(low, high, members), np.zeros(low.size), FIRST_RHO)
        weights = [self.entropy * fraction for fraction in ENTROPY_STAGES] if self.entropy else [0.0]
        for stage, weight in enumerate(weights, start=1):
            yield self._stage(result, stage, weight)

    def _stage(self, result: FitResult, stage: int, weight: float) -> Iterator[HistoryRow]:
        """Minimise at one weight of the entropy until the counts are met and the objective no longer falls."""
        problem, terms = self.problem, self._terms(weight)
        last_residual, last_value = np.inf, np.inf
        gtol = 0.1 * self.tol * gradient_at_zero(self._objective([]), result.W)
        for _ in range(self.max_rounds):
            constraint = self.constraint
            objective = self._objective([*terms, constraint] if self.enforced else terms)
            minimum = run_lbfgs(objective, result.W, problem.alpha, gtol, ITERATIONS)
            result.W[...] = minimum.W
            p = MaxEnt().posterior(problem.design.scores(result.W)[problem.n_labeled :])
            residual = constraint.bounds.residual(p)
            value = minimum.value - (constraint.value_and_gradient(p)[0] if self.enforced else 0.0)
            result.objective = value
            yield HistoryRow(stage, weight, value, 0, minimum.gradient, residual=residual)
            at_rest = abs(last_value - value) <= self.tol * abs(value)
            if at_rest and (residual <= MAX_RESIDUAL or not self.enforced):
                result.status = FitStatus.CONSTRAINTS_MET if self.enforced else FitStatus.PENALIZED
                return
            grows = residual > max(SUFFICIENT_DECREASE * last_residual, 0.01 * MAX_RESIDUAL)
            self.constraint = constraint.updated(p, constraint.rho * (RHO_GROWTH if grows else 1.0))
            last_residual, last_value = residual, value
        unmet = self.enforced and last_residual > MAX_RESIDUAL
        result.status = FitStatus.UNMET if unmet else FitStatus.STILL_FALLING

    def _terms(self, weight: float) -> list[Penalty]:
        """The terms in the posterior, without the constraint."""
        terms: list[Penalty] = []
        if weight:
            terms.append(Entropy(weight, self.problem.row_weights[self.problem.n_labeled :]))
        if self.mismatch:
            terms.append(Mismatch(self.mismatch, SizeBounds.create(self.bounds)))
        return terms

    def _objective(self, terms: list[Penalty]) -> ValueAndGradient:
        """The labelled loss and the terms as a function of the weights, with its gradient."""
        loss, n_labeled = self.problem.loss, self.problem.n_labeled
        kappa, labels = self.problem.row_weights[:n_labeled], self.labels[:n_labeled]

        def value_and_gradient(scores: Array) -> tuple[float, Array]:
            value = float(np.dot(kappa, loss.value(scores[:n_labeled], labels)))
            gradient = np.empty_like(scores)
            gradient[:n_labeled] = loss.gradient(scores[:n_labeled], labels) * kappa[:, None]
            p = MaxEnt().posterior(scores[n_labeled:])
            gradient_in_p = np.zeros_like(p)
            for term in terms:
                term_value, term_gradient = term.value_and_gradient(p)
                value += term_value
                gradient_in_p += term_gradient
            gradient[n_labeled:] = through_posterior(p, gradient_in_p)
            return value, gradient

        return in_weights(self.problem.design, value_and_gradient)


@dataclass(eq=False)
class PosteriorRegularization(DirectMethod):
    """Distributions q that meet the class counts near the posterior of the model, and weights for labels q.

    weight  weight of their divergence, C^KL of the paper
    """

    weight: float = 0.1

    def _own_stages(self, result: FitResult) -> Iterator[Iterator[HistoryRow]]:
        yield self._rounds(result)

    def _rounds(self, result: FitResult) -> Iterator[HistoryRow]:
        problem, unlabeled = self.problem, slice(self.problem.n_labeled, None)
        if np.ptp(problem.row_weights[unlabeled]) > 1e-12:
            found = "must be the same for all unlabelled rows in posterior regularisation, but varies"
            raise ValueError(f"sample_weight {found}. Set it to 1 for them.")
        kappa, bounds = problem.kappa(self.weight), SizeBounds.create(self.bounds)
        targets = np.zeros((problem.n_rows, problem.n_classes), problem.design.dtype)
        targets[np.arange(problem.n_labeled), self.labels[: problem.n_labeled]] = 1.0
        step = weight_step_for(problem.loss, MAX_SWEEPS)
        state, scores, last_value = step.start(problem, targets), problem.design.scores(result.W), np.inf
        for number in range(1, self.max_rounds + 1):
            costs = problem.loss.label_costs(scores[unlabeled])
            soft = Entropic(1.0).solve(LabelProblem(costs, *self.bounds), result.prices)
            targets[unlabeled] = soft.posterior
            step.retarget(problem, state, targets, kappa)
            report = step.solve(problem, state, self.tol, self.rng)
            scores, result.prices, result.W[...] = report.scores, soft.prices, state.W
            value = result.objective = report.objective - self.weight * soft.entropy
            residual = bounds.residual(soft.posterior)
            yield HistoryRow(number, self.weight, value, 0, report.gap, temperature=1.0, residual=residual)
            if last_value - value <= MIN_DECREASE * abs(value):
                result.status = FitStatus.NEARBY if residual <= MAX_RESIDUAL else FitStatus.UNMET
                return
            last_value = value
        result.status = FitStatus.STILL_FALLING
