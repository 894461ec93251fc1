"""Training of a tagger: supervised, by soft annealing, and by Algorithm 1.

    weights   L-BFGS for the present labels, or distributions over them (`problem`)
    labels    distributions at temperature T, or the best labels, under counts and constraints (`label_step`)

Soft annealing takes these steps in turn while T falls and the weight of the unlabelled tokens grows, and takes the best
labels at the end. Algorithm 1 has hard labels throughout, and in each stage alternates until none of them changes.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from transduce.arrays import FloatArray, IntArray
from transduce.history import FitResult, FitStatus, HistoryRow
from transduce.sequences.counts import Prices
from transduce.sequences.label_step import HardLabels, LabelStep
from transduce.sequences.problem import ChainProblem, Labeling, given_labels
from transduce.solvers.loop import CatchInterrupt, Solver
from transduce.weight_step.lbfgs import Minimum

EM_ROUNDS = 10
"""Rounds of a supervised fit with partly labelled sequences."""
SOFT_ITERATIONS, HARD_ROUNDS = 15, 10
"""L-BFGS iterations in a stage of soft annealing, and most rounds in a stage of Algorithm 1."""
N_STAGES, FIRST_WEIGHT, FIRST_T, LAST_T = 8, 0.3, 2.0, 0.1
"""Stages of soft annealing, the fraction of the final weight in the first one, and the first and last temperature."""

WATCH_BELOW = 0.4
"""Highest temperature at which soft labels watch constraints: hotter ones have many blocks, whatever the weights."""


class Stage(NamedTuple):
    """Total weight of the unlabelled tokens, and temperature of their labels; 0 for hard labels."""

    weight: float
    temperature: float


def cooling(final_weight: float) -> list[Stage]:
    """Stages of soft annealing, log-linear in weight and temperature."""
    weights = final_weight * np.geomspace(FIRST_WEIGHT, 1.0, N_STAGES)
    return [Stage(*map(float, pair)) for pair in zip(weights, np.geomspace(FIRST_T, LAST_T, N_STAGES), strict=True)]


@dataclass(eq=False)
class ChainTraining(Solver):
    """The rounds of a fit.

    problem   sequences and the regulariser
    step      label step of the open sequences
    final     label step of all open sequences, where the problem has a sample of them
    schedule  stages after the supervised start; none for a supervised fit
    tol, max_iter   of weight steps
    trust     weight of the annealed weights in their mean with the supervised ones
    """

    problem: ChainProblem
    step: LabelStep
    final: LabelStep
    schedule: list[Stage]
    tol: float
    max_iter: int
    trust: float = 1.0
    theta: FloatArray = field(init=False)
    prices: Prices = field(init=False)
    y: IntArray = field(init=False)
    gap: float = 0.0
    cost: float = 0.0
    missed: list[tuple[bool, int, int, int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.theta, self.prices = self.problem.zeros(), self.step.counts.start()
        self.is_open = self.problem.is_open
        self.open_tokens = np.repeat(self.is_open, self.problem.chains.lengths)
        self.y = np.full(self.step.chains.offsets[-1], -1)

    def start(self) -> FitResult:
        """Return a result without labels."""
        return FitResult(self.prices.tokens)

    def stages(self, result: FitResult) -> Iterator[Iterator[HistoryRow]]:
        """Check that labels are possible, then generate the supervised start and the schedule."""
        step, chains = self.final, self.final.chains
        step.best(np.zeros((chains.offsets[-1], chains.n_labels)), step.transitions(chains.transitions(self.theta)))
        yield self._supervised(result)
        for number, stage in enumerate(self.schedule, 1):
            yield (self._soft if stage.temperature else self._hard)(number, stage, result)
        if self.schedule and self.trust < 1.0:
            self.theta = self.trust * self.theta + (1.0 - self.trust) * self.supervised

    def finish(self, result: FitResult) -> None:
        """Take the best labels of all sequences at the last weights."""
        own, self.step, chains = self.step, self.final, self.final.chains
        S, A = chains.scores(self.theta), chains.transitions(self.theta)
        found = self.step.at_prices(S, A, self.prices)
        with CatchInterrupt() as interruption:  # what is found by then is kept
            found = self.step.hard(S, A, self.prices)
            found = found if result.status is FitStatus.INTERRUPTED else self.step.improve(S, A, found)
        if interruption.happened:
            result.status = FitStatus.INTERRUPTED
        self.y, self.gap, self.prices, self.missed = found.y, found.gap, found.prices, found.missed
        log_z = chains.free().marginals(S, A).log_z
        self.cost = float((log_z - found.scores).sum())
        result.W, result.labels, result.prices = self.theta, self.y, self.prices.tokens
        result.objective = self._objective(own)

    def _supervised(self, result: FitResult) -> Iterator[HistoryRow]:
        """Weights of the known labels; what is missing in partly labelled sequences is summed over."""
        kappa = self.problem.kappa(0.0)
        live = np.flatnonzero(kappa > 0)
        part = self.problem.select(live)
        is_partial = part.is_open
        step = self.step_for(np.flatnonzero(self.is_open & (kappa > 0)))
        for _ in range(EM_ROUNDS if is_partial.any() else 1):
            labeling = self._labeling(part, step, kappa[live], 1.0)
            found = part.fit_weights(self.theta, kappa[live], labeling, self.tol, self.max_iter)
            self.theta = found.W
        self.supervised = self.theta
        self._record(found, result, found.converged)
        yield HistoryRow(0, 0.0, found.value, 0, found.gradient)

    def step_for(self, sequences: IntArray) -> LabelStep:
        """The label step of some open sequences, without counts."""
        chains = self.problem.chains.select(sequences)
        counts = self.step.counts.empty()
        return LabelStep(chains, self.step.rules, counts, self.step.forbidden, sequences)

    def _labeling(self, problem: ChainProblem, step: LabelStep, kappa: FloatArray, temperature: float) -> Labeling:
        """Distributions over the labels of a problem's sequences: those of the open ones by its label step."""
        is_open, chains = problem.is_open, step.chains
        S, A = chains.scores(self.theta), chains.transitions(self.theta)
        watch = temperature <= WATCH_BELOW
        self.prices, sums = step.soft(S, A, temperature, self.prices, kappa[is_open], watch)
        return self._joined(problem, Labeling(S, sums.edges), kappa)

    def _joined(self, problem: ChainProblem, labeling: Labeling, kappa: FloatArray) -> Labeling:
        """The labelling of all sequences, given that of the open ones."""
        is_open = problem.is_open
        if is_open.all():
            return labeling
        closed = problem.select(np.flatnonzero(~is_open))
        known, at = closed.known_labels(kappa[~is_open]), np.repeat(is_open, problem.chains.lengths)
        posterior = np.empty((at.size, problem.chains.n_labels))
        posterior[at], posterior[~at] = labeling.posterior, known.posterior
        return Labeling(posterior, labeling.edges + known.edges)

    def _soft(self, number: int, stage: Stage, result: FitResult) -> Iterator[HistoryRow]:
        """Labels at the temperature of the stage, then weights."""
        kappa = self.problem.kappa(stage.weight)
        labeling = self._labeling(self.problem, self.step, kappa, stage.temperature)
        best = labeling.posterior[self.open_tokens].argmax(axis=1)
        n_moved, self.y = int((best != self.y).sum()), best
        found = self.problem.fit_weights(self.theta, kappa, labeling, self.tol, SOFT_ITERATIONS)
        self.theta = found.W
        self._record(found, result)
        yield HistoryRow(number, stage.weight, found.value, n_moved, found.gradient, temperature=stage.temperature)

    def _hard(self, number: int, stage: Stage, result: FitResult) -> Iterator[HistoryRow]:
        """Alternate best labels and weights until no label changes."""
        kappa, chains = self.problem.kappa(stage.weight), self.step.chains
        for _ in range(HARD_ROUNDS):
            found = self._best_labels()
            n_moved, self.y, self.prices = int((found.y != self.y).sum()), found.y, found.prices
            given = given_labels(self.y, chains.offsets, kappa[self.is_open], chains.n_labels)
            fitted = self.problem.fit_weights(
                self.theta, kappa, self._joined(self.problem, given, kappa), self.tol, self.max_iter
            )
            self.theta = fitted.W
            self._record(fitted, result, fitted.converged)
            yield HistoryRow(number, stage.weight, fitted.value, n_moved, fitted.gradient, residual=0.0)
            if n_moved == 0:
                break
        else:
            result.status = FitStatus.OUT_OF_ROUNDS

    def marginals(self) -> FloatArray:
        """Marginals (N, K) of the open sequences at the prices."""
        chains, step = self.step.chains, self.step
        S, A = chains.scores(self.theta), chains.transitions(self.theta)
        fixed = LabelStep(chains, step.rules, step.counts.empty(), step.forbidden, step.positions)
        fixed.watched = step.watched
        S += self.prices.tokens
        fixed.soft(S, step.counts.with_prices(A, self.prices), 1.0, self.prices.without(), np.ones(chains.n_sequences))
        return S

    def _best_labels(self) -> HardLabels:
        chains = self.step.chains
        return self.step.hard(chains.scores(self.theta), chains.transitions(self.theta), self.prices)

    def _objective(self, own: LabelStep) -> float:
        """J of the weights and labels, with the final weight, of the sequences of the label step that was annealed."""
        kappa = self.problem.kappa(self.schedule[-1].weight if self.schedule else 0.0)
        at = self.final.chains.tokens_of(np.searchsorted(self.final.positions, own.positions))
        given = given_labels(self.y[at], own.chains.offsets, kappa[self.is_open], own.chains.n_labels)
        return self.problem.objective(self.theta, kappa, self._joined(self.problem, given, kappa))

    def _record(self, found: Minimum, result: FitResult, is_converged: bool = True) -> None:
        result.objective = found.value
        result.status = FitStatus.CONVERGED if is_converged else FitStatus.NOT_CONVERGED
