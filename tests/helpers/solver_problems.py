"""Small problems for the solvers, and the solvers put together as the estimators do."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from transduce.class_prior.bounds import Bounds
from transduce.class_prior.groups import Groups
from transduce.design import Design
from transduce.engines.base import StepSettings
from transduce.engines.local import LocalEngine
from transduce.engines.local_restart import LocalRestart
from transduce.history import FitResult, HistoryRow
from transduce.io.checkpoint import CheckpointSlot
from transduce.label_step import Exact
from transduce.losses import LargeMargin, MaxEnt, SquaredLargeMargin
from transduce.problem import TrainingProblem
from transduce.solvers.alternating import Alternation, Settings
from transduce.solvers.annealing import SoftAnnealing
from transduce.solvers.direct import PenalizedPosterior, PosteriorRegularization
from transduce.solvers.loop import Loop
from transduce.solvers.schedule import cooling_schedules, stages
from transduce.taxonomy import Taxonomy
from transduce.weight_step import weight_step_for

N, N_LABELED, N_FEATURES = 260, 20, 15
FLAT = Taxonomy.flat(range(4))
TREE = Taxonomy.create(["a/x/1", "a/x/2", "a/y", "b"])
LOSSES = {"large-margin": LargeMargin(), "maxent": MaxEnt(), "squared": SquaredLargeMargin()}


def blobs(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows of four overlapping classes, each labelled at least once, and their true labels."""
    rng = np.random.default_rng(seed)
    truth = np.concatenate((np.arange(4), rng.choice(4, p=[0.4, 0.3, 0.2, 0.1], size=N - 4)))
    X = 1.3 * rng.normal(size=(4, N_FEATURES))[truth] + rng.normal(size=(N, N_FEATURES))
    return X / np.linalg.norm(X, axis=1, keepdims=True), truth


def known_labels(seed: int = 0) -> np.ndarray:
    """The true labels of the labelled rows, 0 for all others."""
    labels = blobs(seed)[1].copy()
    labels[N_LABELED:] = 0
    return labels


def stop_after(n_rounds: int) -> Callable[[HistoryRow], None]:
    """A progress callback that presses Ctrl-C after so many rounds."""
    seen: list[HistoryRow] = []

    def press(row: HistoryRow) -> None:
        seen.append(row)
        if len(seen) == n_rounds:
            raise KeyboardInterrupt

    return press


@dataclass(frozen=True)
class AlternationRun:
    """An alternation over rows in memory, with all parts in one place."""

    problem: TrainingProblem
    low: np.ndarray
    high: np.ndarray
    weight_step: object
    label_step: object
    settings: Settings
    rng: np.random.Generator
    on_round: object = lambda row: None
    groups: Groups | None = None
    slot: CheckpointSlot = field(default_factory=CheckpointSlot)

    @property
    def step_settings(self) -> StepSettings:
        return StepSettings(Bounds(self.low, self.high, self.groups), self.label_step, 0)

    def run(self, labels: np.ndarray) -> FitResult:
        restart = LocalRestart(self.problem, labels.copy(), self.step_settings, self.weight_step, self.rng)
        return Loop(self.on_round).run(Alternation(restart, self.settings), self.slot)


def alternation(
    loss=None, taxonomy=FLAT, seed=0, annealing="paper", tol=1e-3, early_tol=1e-2, max_rounds=100, **parts
) -> AlternationRun:
    """The parts as the estimator puts them together, with the true counts."""
    X, truth = blobs(seed)
    loss = loss or LargeMargin()
    sample_weight = parts.pop("sample_weight", None)
    problem = TrainingProblem.create(Design.create(X, taxonomy), loss, 1e-2, N_LABELED, sample_weight)
    counts = np.bincount(truth[N_LABELED:], minlength=4)
    settings = Settings(stages(annealing, 1.0), tol, early_tol, max_rounds)
    step = weight_step_for(loss, 2000)
    run = AlternationRun(problem, counts, counts, step, Exact(), settings, np.random.default_rng(seed))
    return replace(run, **parts)


@dataclass(frozen=True, eq=False)
class EngineWithWeightStep(LocalEngine):
    """Rows in memory with the weight step of a test."""

    weight_step: object = None

    def new_restart(self, settings, rng):
        return LocalRestart(self.problem, self.labels.copy(), settings, self.weight_step, rng)


@dataclass(frozen=True)
class AnnealingRun:
    """Soft annealing over the parts of an alternation."""

    alternation: AlternationRun
    schedules: tuple

    def run(self, labels: np.ndarray) -> FitResult:
        parts = self.alternation
        engine = EngineWithWeightStep(parts.problem, labels, weight_step=parts.weight_step)
        return SoftAnnealing(
            engine, parts.step_settings, parts.settings, parts.rng, parts.on_round, self.schedules
        ).run()


def annealing(loss=None, taxonomy=FLAT, seed=0, n_threads=1, **parts) -> AnnealingRun:
    """Soft annealing over the problem of `alternation`."""
    run = alternation(loss, taxonomy, seed, **parts)
    design = replace(run.problem.design, n_threads=n_threads)
    return AnnealingRun(replace(run, problem=replace(run.problem, design=design)), cooling_schedules(1.0))


def maxent_problem(taxonomy: Taxonomy, seed: int = 0, n: int = 90, n_labeled: int = 12, alpha: float = 1e-2):
    """A maxent problem with overlapping classes, labels of all rows, and the counts of the unlabelled ones."""
    rng, n_classes = np.random.default_rng(seed), taxonomy.n_classes
    truth = np.concatenate((np.arange(n_classes), rng.integers(n_classes, size=n - n_classes)))
    X = rng.normal(size=(n_classes, 6))[truth] + 0.7 * rng.normal(size=(n, 6))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    problem = TrainingProblem.create(Design.create(X, taxonomy), MaxEnt(), alpha, n_labeled)
    return problem, truth, np.bincount(truth[n_labeled:], minlength=n_classes)


def solve_direct(
    problem, labels, low, entropy=0.0, enforced=True, mismatch=0.0, tol=1e-6, max_rounds=100, high=None, groups=None,
    on_round=lambda row: None,
) -> FitResult:  # fmt: skip
    """Entropy regularisation, expectation constraint or regularisation, by the terms that are not 0."""
    bounds = Bounds(low, low if high is None else high, groups)
    parts = (problem, labels, bounds, np.random.default_rng(0), tol, max_rounds)
    return Loop(on_round).run(PenalizedPosterior(*parts, entropy, enforced, mismatch))


def solve_posterior(problem, labels, low, weight, tol, max_rounds, high=None, groups=None) -> FitResult:
    """Posterior regularisation."""
    bounds = Bounds(low, low if high is None else high, groups)
    return Loop().run(
        PosteriorRegularization(problem, labels, bounds, np.random.default_rng(0), tol, max_rounds, weight)
    )
