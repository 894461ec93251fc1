"""The direct methods of section 4 of the paper: one smooth problem in the weights, with terms in the model's posterior.

    entropy regularisation      labelled loss + C · mean entropy of the unlabelled rows,  class sizes as constraints
    expectation constraint      labelled loss,  class sizes as constraints
    expectation regularisation  labelled loss + C · squared distance of the class sizes
    posterior regularisation    labelled loss + C · KL(q ‖ p),  class sizes as constraints on q

The constraints are on the model's own posterior p, summed over the unlabelled rows, for any number of classes: an
augmented Lagrangian, whose weight grows while they are not met. The entropy term comes in by stages, because it makes
the problem non-convex. Posterior regularisation alternates: q by the entropic label step at T = 1, then weights for
labels q.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.class_prior.bounds import Bounds, Groups
from transduce.history import FitResult, FitStatus, HistoryRow
from transduce.label_step import LabelProblem, LabelStep
from transduce.label_step.entropic import Entropic
from transduce.losses import MaxEnt
from transduce.problem import TrainingProblem, weighted_costs
from transduce.solvers.penalties import CountConstraint, Entropy, Mismatch, Penalty, through_posterior
from transduce.weight_step import weight_step_for
from transduce.weight_step.lbfgs import gradient_at_zero, minimize_in_scores

Array = NDArray[Any]

RESIDUAL = 1e-3
"""Share of a class size by which the model's own may be off at the end."""
ENTROPY_STAGES = (0.0, 0.1, 0.3, 1.0)
"""Shares of the final weight at which the entropy comes in."""
FIRST_RHO, RHO_GROWTH, ENOUGH = 10.0, 4.0, 0.3
"""Weight of the constraints at first, how it grows, and what share of the residual a round may leave without that."""
ITERATIONS = 60
"""Iterations of L-BFGS a round: multipliers that are still moving need no better."""
SUPERVISED_SWEEPS = 10_000
"""Sweeps that a weight step may take."""
STEADY = 1e-5
"""Posterior regularisation ends when its objective falls by no more than this share a round."""


@dataclass(frozen=True)
class DirectSettings:
    """Which terms there are: final weight of the entropy, whether sizes are constraints, weight of their mismatch."""

    entropy: float
    enforced: bool
    mismatch: float
    tol: float
    max_rounds: int


@dataclass(frozen=True, eq=False)
class Direct:
    """Entropy regularisation, expectation constraint and expectation regularisation; `run` fits."""

    problem: TrainingProblem
    low: Array
    high: Array
    label_step: LabelStep
    settings: DirectSettings
    rng: np.random.Generator
    on_round: Callable[[HistoryRow], None] = lambda row: None
    groups: Groups | None = None

    def run(self, labels: Array) -> FitResult:
        """Fit from the labels of the labelled rows; those of unlabelled rows are ignored."""
        return _run(self, self.settings.tol, labels)

    def _play(self, outcome: FitResult, tell: Callable[[HistoryRow], None]) -> None:
        settings = self.settings
        n_unlabeled = self.problem.n_rows - self.problem.n_labeled
        low, high, members = _bounds(self.low, self.high, self.groups)
        high = np.where(high == 0, 0.5 * RESIDUAL * n_unlabeled, high)  # no posterior is quite 0
        constraint = CountConstraint(low, high, np.zeros(low.size), FIRST_RHO, members)
        weights = [settings.entropy * share for share in ENTROPY_STAGES] if settings.entropy else [0.0]
        for stage, weight in enumerate(weights, start=1):
            constraint = self._stage(outcome, stage, weight, constraint, tell)

    def _stage(
        self,
        outcome: FitResult,
        stage: int,
        weight: float,
        constraint: CountConstraint,
        tell: Callable[[HistoryRow], None],
    ) -> CountConstraint:
        """Minimise at one weight of the entropy until sizes are met and the objective rests."""
        problem, settings = self.problem, self.settings
        shares = problem.row_weights[problem.n_labeled :]
        terms: list[Penalty] = [Entropy(weight, shares)] if weight else []
        if settings.mismatch:
            terms.append(Mismatch(settings.mismatch, *_bounds(self.low, self.high, self.groups)))
        last, before = np.inf, np.inf
        steep = gradient_at_zero(problem, _objective(problem, outcome.labels, []))
        for _ in range(settings.max_rounds):
            enforced: list[Penalty] = [constraint] if settings.enforced else []
            here = minimize_in_scores(
                problem,
                _objective(problem, outcome.labels, terms + enforced),
                outcome.W,
                0.1 * settings.tol * steep,
                ITERATIONS,
            )
            outcome.W[...] = here.W
            p = MaxEnt().posterior(problem.design.scores(outcome.W)[problem.n_labeled :])
            residual = constraint.residual(p)
            value = here.value - (constraint.value_and_slope(p)[0] if settings.enforced else 0.0)
            tell(HistoryRow(stage, weight, value, 0, here.gradient, 0.0, residual=residual))
            rests = abs(before - value) <= settings.tol * abs(value)
            if rests and (residual <= RESIDUAL or not settings.enforced):
                outcome.status = FitStatus.MET if settings.enforced else FitStatus.PENALISED
                return constraint
            rho = constraint.rho * (RHO_GROWTH if residual > max(ENOUGH * last, 0.01 * RESIDUAL) else 1.0)
            constraint = constraint.updated(p, rho)
            last, before = residual, value
        outcome.status = FitStatus.UNMET if settings.enforced and last > RESIDUAL else FitStatus.STILL_FALLING
        return constraint


@dataclass(frozen=True, eq=False)
class PosteriorRegularization:
    """Distributions q that meet the class sizes near the model's posterior, and weights near q; `run` fits."""

    problem: TrainingProblem
    low: Array
    high: Array
    label_step: LabelStep
    weight: float
    tol: float
    max_rounds: int
    rng: np.random.Generator
    on_round: Callable[[HistoryRow], None] = lambda row: None
    groups: Groups | None = None

    def run(self, labels: Array) -> FitResult:
        """Fit from the labels of the labelled rows; those of unlabelled rows are ignored."""
        return _run(self, self.tol, labels)

    def _play(self, outcome: FitResult, tell: Callable[[HistoryRow], None]) -> None:
        problem, unlabeled = self.problem, slice(self.problem.n_labeled, None)
        if np.ptp(problem.row_weights[unlabeled]) > 1e-12:
            raise ValueError(
                "sample_weight must be the same for all unlabelled rows in posterior regularisation, whose "
                "distributions weigh them equally. Leave it out for them."
            )
        kappa = problem.kappa(self.weight)
        low, high, members = _bounds(self.low, self.high, self.groups)
        targets = np.zeros((problem.n_rows, problem.n_classes), problem.design.dtype)
        targets[np.arange(problem.n_labeled), outcome.labels[: problem.n_labeled]] = 1.0
        step = weight_step_for(problem.loss, SUPERVISED_SWEEPS)
        state, scores, before = step.start(problem, targets), problem.design.scores(outcome.W), np.inf
        for number in range(1, self.max_rounds + 1):
            costs = problem.loss.label_costs(scores[unlabeled])
            soft = Entropic(1.0).solve(LabelProblem(costs, self.low, self.high, self.groups), outcome.prices)
            targets[unlabeled] = soft.posterior
            step.retarget(problem, state, targets, kappa)
            report = step.solve(problem, state, self.tol, self.rng)
            scores, outcome.prices, outcome.W[...] = report.scores, soft.prices, state.W
            value = report.objective - self.weight * soft.entropy
            residual = CountConstraint(low, high, np.zeros(low.size), 1.0, members).residual(soft.posterior)
            tell(HistoryRow(number, self.weight, value, 0, report.gap, 0.0, 1.0, residual=residual))
            if before - value <= STEADY * abs(value):
                outcome.status = FitStatus.NEARBY if residual <= RESIDUAL else FitStatus.UNMET
                return
            before = value
        outcome.status = FitStatus.STILL_FALLING


def _run(method: Direct | PosteriorRegularization, tol: float, labels: Array) -> FitResult:
    """Supervised weights, the method's own rounds until they end or are interrupted, labels that meet the counts."""
    problem = method.problem
    outcome = FitResult(problem.design.zeros(), labels.copy(), np.zeros(len(method.low)))
    tell = _teller(outcome, method.on_round, time.perf_counter())
    try:
        _supervised(problem, outcome, tol, method.rng, tell)
        if problem.n_rows > problem.n_labeled:
            method._play(outcome, tell)
    except KeyboardInterrupt:
        outcome.status = FitStatus.INTERRUPTED
        if not outcome.history:
            raise
    return _labelled(problem, Bounds(method.low, method.high, method.groups), method.label_step, outcome)


def _bounds(low: Array, high: Array, groups: Groups | None) -> tuple[Array, Array, Array | None]:
    """Bounds of classes, then of groups; and the classes of the groups."""
    if groups is None:
        return low, high, None
    return np.concatenate((low, groups.low)), np.concatenate((high, groups.high)), groups.members(len(low))


def _supervised(
    problem: TrainingProblem,
    outcome: FitResult,
    tol: float,
    rng: np.random.Generator,
    tell: Callable[[HistoryRow], None],
) -> None:
    """Weights from the labelled rows alone."""
    step = weight_step_for(problem.loss, SUPERVISED_SWEEPS)
    state = step.start(problem, outcome.labels)
    step.retarget(problem, state, outcome.labels, problem.kappa(0.0))
    report = step.solve(problem, state, tol, rng)
    outcome.W[...] = state.W
    outcome.status = FitStatus.SUPERVISED if report.converged else FitStatus.NOT_CONVERGED
    tell(HistoryRow(0, 0.0, report.objective, 0, report.gap, 0.0))


def _objective(problem: TrainingProblem, labels: Array, terms: list[Penalty]) -> Callable[[Array], tuple[float, Array]]:
    """The labelled loss and the terms, as a function of all scores, with its slope."""
    loss, n_labeled = problem.loss, problem.n_labeled
    kappa, given = problem.row_weights[:n_labeled], labels[:n_labeled]

    def value_and_slope(scores: Array) -> tuple[float, Array]:
        value = float(np.dot(kappa, loss.value(scores[:n_labeled], given)))
        slope = np.empty_like(scores)
        slope[:n_labeled] = loss.gradient(scores[:n_labeled], given) * kappa[:, None]
        p = MaxEnt().posterior(scores[n_labeled:])
        in_p = np.zeros_like(p)
        for term in terms:
            more, its_slope = term.value_and_slope(p)
            value += more
            in_p += its_slope
        slope[n_labeled:] = through_posterior(p, in_p)
        return value, slope

    return value_and_slope


def _labelled(problem: TrainingProblem, bounds: Bounds, label_step: LabelStep, outcome: FitResult) -> FitResult:
    """Add labels for the unlabelled rows that meet the counts, best for the final weights."""
    unlabeled = slice(problem.n_labeled, None)
    costs = problem.loss.label_costs(problem.design.scores(outcome.W)[unlabeled])
    if len(costs):
        costs = weighted_costs(problem, costs, problem.row_weights)
        answer = label_step.solve(LabelProblem(costs, *bounds))
        outcome.labels[unlabeled], outcome.prices = answer.labels, answer.prices
    return outcome


def _teller(outcome: FitResult, on_round: Callable[[HistoryRow], None], begin: float) -> Callable[[HistoryRow], None]:
    def tell(row: HistoryRow) -> None:
        row = replace(row, seconds=time.perf_counter() - begin)
        outcome.objective = row.objective
        outcome.history.append(row)
        on_round(row)

    return tell
