"""Rows of this process: the engine that plays weight steps and label steps over arrays in memory."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.class_prior.bounds import Bounds
from transduce.engines.base import Engine, LabelProposal, SoftRoundSummary, StepSettings, WeightSummary
from transduce.history import FitResult
from transduce.io.checkpoint import CheckpointSlot
from transduce.label_step import Exact, LabelProblem
from transduce.label_step.entropic import solve_at_entropy
from transduce.label_step.greedy import greedy_labels
from transduce.losses import Loss, costs_of, smoothed
from transduce.problem import TrainingProblem, allowed_costs, weighted_costs
from transduce.weight_step import Smooth, WeightReport, WeightState, WeightStep, weight_step_for

Array = NDArray[Any]

STATE = ("W", "targets", "kappa", "posterior", "gaps")
"""Arrays of a weight step's state that are kept with a stage."""
SHARES = (0.6, 0.2)
"""Where to look between the old weights and new ones at which J would be higher."""
PARALLEL_CELLS = 10_000_000
"""Rows times classes up to which ways run side by side; beyond, memory is dearer than time."""
FIRST_TOL, FIRST_SWEEPS = 1e-2, 1000
"""Relative accuracy of the weights before any unlabelled row counts, and sweeps that they may take."""
SWEEPS, ITERATIONS = 1, 10
"""Work of one weight step while labels are soft: sweeps of a dual one, or iterations of L-BFGS."""


@dataclass(frozen=True, eq=False)
class LocalEngine:
    """A problem in memory, and the labels (n,) of its labelled rows, which come first; other entries are ignored."""

    problem: TrainingProblem
    labels: Array

    @property
    def loss(self) -> Loss:
        """The loss of the problem."""
        return self.problem.loss

    @property
    def n_unlabeled(self) -> int:
        """Rows without a full label."""
        return self.problem.n_rows - self.problem.n_labeled

    @property
    def n_classes(self) -> int:
        """Classes."""
        return self.problem.n_classes

    @property
    def forbids(self) -> bool:
        """Whether some rows may not get some labels."""
        return self.problem.forbidden is not None

    def engine(self, task: StepSettings, rng: np.random.Generator) -> "LocalRestart":
        """A new way to the labels, with the best weight step for the loss."""
        return LocalRestart(self.problem, self.labels.copy(), task, weight_step_for(self.loss, task.max_sweeps), rng)

    def split_threads(self, n_restarts: int) -> tuple[int, Engine]:
        """As many as there are threads, while they are small; their rows have one thread each then."""
        small = self.problem.n_rows * self.problem.n_classes <= PARALLEL_CELLS
        n_threads = min(self.problem.design.n_threads, n_restarts) if small else 1
        if n_threads == 1:
            return 1, self
        design = replace(self.problem.design, n_threads=1)
        return n_threads, replace(self, problem=replace(self.problem, design=design))

    def predicted_counts(self, W: Array) -> Array:
        """Rows without a full label of each class (K,) by the best scores, heeding what is forbidden."""
        scores = self.problem.design.scores(W)[self.problem.n_labeled :]
        return predicted_counts(self.problem, scores)

    def predicted_proportions(self, W: Array) -> Array:
        """Class shares (K,) of these rows by the posterior alone; by the best scores, where there is none."""
        scores = self.problem.design.scores(W)[self.problem.n_labeled :]
        return np.asarray(model_posterior(self.problem, scores).mean(axis=0))


@dataclass(eq=False)
class LocalRestart:
    """Weights and labels of one way; the labels (n,) and `W` are those that are kept.

    `seen` are the scores that the labels are chosen by, at weights a share of the way from `W` to those of the state.
    """

    problem: TrainingProblem
    labels: Array
    task: StepSettings
    weight_step: WeightStep
    rng: np.random.Generator
    W: Array = field(init=False)
    state: WeightState = field(init=False)
    kappa: Array = field(init=False)
    report: WeightReport | None = None
    seen: Array | None = None
    share: float = 1.0
    proposed: Array | None = None

    def __post_init__(self) -> None:
        self.W = self.problem.design.zeros()

    @property
    def n_unlabeled(self) -> int:
        """Rows without a full label."""
        return self.problem.n_rows - self.problem.n_labeled

    @property
    def n_classes(self) -> int:
        """Classes."""
        return self.problem.n_classes

    @property
    def _unlabeled(self) -> slice:
        return slice(self.problem.n_labeled, None)

    def restart(self) -> None:
        """A state at weights 0 for the present labels."""
        self.state = self.weight_step.start(self.problem, self.labels)

    def supervise(self, tol: float) -> WeightSummary:
        """Steps 1 and 2: weights of the labelled rows alone, which are kept."""
        self.restart()
        step = self.weights(0.0, tol)
        self.W[...] = self.state.W
        return step

    def greedy(self) -> None:
        """Steps 3 to 9: greedy labels; the best ones under bounds on groups, which no greedy choice is sure to meet."""
        assert self.report is not None
        costs = allowed_costs(self.problem, -self.report.scores[self._unlabeled])
        problem = LabelProblem(costs, *self.task.bounds)
        self.labels[self._unlabeled] = (
            greedy_labels(problem) if problem.groups is None else Exact().solve(problem).labels
        )

    def weights(self, weight: float, tol: float) -> WeightSummary:
        """Step 12: weights for the present labels."""
        self.kappa = self.problem.kappa(weight)
        self.weight_step.retarget(self.problem, self.state, self.labels, self.kappa)
        report = self.report = self.weight_step.solve(self.problem, self.state, tol, self.rng)
        return WeightSummary(report.objective, report.gap, report.n_sweeps, report.converged)

    def descend(self, objective: float) -> tuple[float, float]:
        """J is convex in W, and scores are linear in it, so no product with the rows is needed on the way."""
        report, state, problem = self.report, self.state, self.problem
        assert report is not None
        if report.objective <= objective or self.seen is None:
            self.seen, self.share = report.scores, 1.0
            return report.objective, 1.0
        live = self.kappa > 0
        norms = [float(np.vdot(a, b)) for a, b in ((self.W, self.W), (self.W, state.W), (state.W, state.W))]
        best, best_scores, best_share = objective, self.seen, 0.0
        for share in SHARES:
            between = (1.0 - share) * self.seen + share * report.scores
            square = (1.0 - share) ** 2 * norms[0] + 2.0 * share * (1.0 - share) * norms[1] + share**2 * norms[2]
            losses = problem.loss.value(between[live], self.labels[live])
            value = 0.5 * problem.alpha * square + float(np.dot(self.kappa[live], losses))
            if value < best:
                best, best_scores, best_share = value, between, share
        self.seen, self.share = best_scores, best_share
        return best, best_share

    def propose(self, weight: float, prices: Array) -> LabelProposal:
        """Step 13: labels for these weights, and their prices."""
        assert self.seen is not None
        costs = finite_costs(self.problem.loss, self.seen[self._unlabeled], self.problem.design.n_threads)
        kappa, now = self.kappa[self._unlabeled], self.labels[self._unlabeled]
        problem = LabelProblem(weighted_costs(self.problem, costs, self.kappa), *self.task.bounds)
        answer = self.task.label_step.solve(problem, prices, now)
        moved = np.flatnonzero(answer.labels != now)
        old = np.take_along_axis(costs, now[:, None], axis=1)[:, 0]
        change = float(np.dot(kappa[moved], costs[moved, answer.labels[moved]] - old[moved]))
        self.proposed = answer.labels
        return LabelProposal(answer.prices, int(moved.size), change, float(np.dot(kappa, old)))

    def settle(self, take_labels: bool) -> None:
        """Keep the weights that are looked at, and the proposed labels or the old ones."""
        if self.share == 1.0:
            self.W[...] = self.state.W
        elif self.share > 0.0:
            self.W *= 1.0 - self.share
            self.W += self.share * self.state.W
        if take_labels:
            assert self.proposed is not None
            self.labels[self._unlabeled] = self.proposed
        self.proposed = None

    def soft_labels(self) -> "LocalSoftLabels":
        """The soft labels of this way."""
        return LocalSoftLabels(self)

    def result(self, outcome: FitResult) -> None:
        """Write weights and labels that were kept into the outcome."""
        outcome.W, outcome.labels = self.W, self.labels

    def save(self, slot: CheckpointSlot, arrays: dict[str, Array], facts: dict[str, Any], done: bool) -> None:
        """Keep all that is needed to go on; the last stage without what weight steps hold."""
        if slot.path is None:
            return
        mine = {"W": self.W, "labels": self.labels} | ({} if done else packed_state(self.state))
        slot.save(arrays | mine, facts | {"rng": self.rng.bit_generator.state})

    def load(self, slot: CheckpointSlot) -> tuple[dict[str, Array], dict[str, Any]] | None:
        """Be as when this was kept."""
        saved = slot.load()
        if saved is None:
            return None
        arrays, facts = saved
        self.W[...], self.labels[...] = arrays["W"], arrays["labels"]
        if "state_W" in arrays:
            self.rng.bit_generator.state = facts["rng"]
            self.state = unpacked_state(self.problem, arrays)
        return arrays, facts


@dataclass(eq=False)
class LocalSoftLabels:
    """Distributions over labels for the rows of an engine, with weights of their own."""

    engine: LocalRestart
    problem: TrainingProblem = field(init=False)
    step: WeightStep = field(init=False)
    state: WeightState = field(init=False)
    targets: Array = field(init=False)
    scores: Array = field(init=False)
    chosen: Array = field(init=False)
    evenly: Array = field(init=False)
    prices: Array = field(init=False)
    temperature: float | None = None

    def __post_init__(self) -> None:
        hard = self.engine.problem
        self.problem = replace(hard, loss=smoothed(hard.loss))
        self.step = weight_step_for(self.problem.loss, SWEEPS)
        if isinstance(self.step, Smooth):
            self.step = replace(self.step, max_iter=ITERATIONS)
        self.evenly = (
            np.ones(hard.n_rows) if hard.n_partial else hard.row_weights
        )  # a temperature is for rows of one kind

    @property
    def _unlabeled(self) -> slice:
        return slice(self.problem.n_labeled, None)

    def begin(self) -> None:
        """Weights of the labelled rows alone; of the others nothing is known but the class sizes."""
        engine, problem = self.engine, self.problem
        self.targets = first_targets(problem, engine.labels, engine.task.bounds, engine.n_unlabeled)
        self.state = self.step.start(problem, self.targets)
        first = weight_step_for(problem.loss, FIRST_SWEEPS)
        first.retarget(problem, self.state, self.targets, problem.kappa(0.0))
        self.scores = first.solve(problem, self.state, FIRST_TOL, engine.rng).scores
        self.prices, self.chosen = np.zeros(problem.n_classes), np.full(engine.n_unlabeled, -1)

    def round(self, weight: float, entropy: float) -> SoftRoundSummary:
        """Distributions of this entropy at the present weights, then a little work on weights for them."""
        engine, problem, state = self.engine, self.problem, self.state
        n_threads, targets = problem.design.n_threads, self.targets[self._unlabeled]
        costs = weighted_costs(problem, costs_of(problem.loss, self.scores[self._unlabeled], n_threads), self.evenly)
        label_problem = LabelProblem(costs, *engine.task.bounds)
        soft, self.temperature = solve_at_entropy(
            label_problem, entropy, self.temperature, self.prices, n_threads=n_threads, out=targets
        )
        self.prices = soft.prices
        self.step.retarget(problem, state, self.targets, problem.kappa(weight))
        report = self.step.solve(problem, state, 0.0, engine.rng)
        self.scores = report.scores
        now = targets.argmax(axis=1)
        n_moved, self.chosen = int((now != self.chosen).sum()), now
        return SoftRoundSummary(report.objective, report.gap, n_moved, self.temperature)

    def harden(self, weight: float) -> None:
        """Hand the engine the best hard labels at the present weights, and weights 0."""
        engine, hard = self.engine, self.engine.problem
        costs = costs_of(hard.loss, self.scores[self._unlabeled], hard.design.n_threads)
        costs = weighted_costs(hard, costs, hard.kappa(weight))
        engine.labels[self._unlabeled] = engine.task.label_step.solve(LabelProblem(costs, *engine.task.bounds)).labels
        engine.restart()

    def save(self, slot: CheckpointSlot, facts: dict[str, Any]) -> None:
        """Keep all that is needed to go on."""
        if slot.path is None:
            return
        kept = packed_state(self.state) | {"prices": self.prices, "chosen": self.chosen}
        slot.save(kept, facts | {"T": self.temperature, "rng": self.engine.rng.bit_generator.state})

    def load(self, slot: CheckpointSlot) -> dict[str, Any] | None:
        """Be as when this was kept."""
        saved = slot.load()
        if saved is None:
            return None
        arrays, facts = saved
        self.state = unpacked_state(self.problem, arrays)
        self.targets = self.state.targets.copy()
        self.temperature, self.engine.rng.bit_generator.state = facts["T"], facts["rng"]
        self.prices, self.chosen = arrays["prices"], arrays["chosen"]
        self.scores = self.problem.design.scores(self.state.W)
        return facts


def packed_state(state: WeightState) -> dict[str, Array]:
    """What a weight step holds, as arrays to keep; scores follow from the weights."""
    facts = np.array([state.objective, state.scores is not None], dtype=np.float64)
    return {f"state_{name}": getattr(state, name) for name in STATE} | {"state_facts": facts}


def unpacked_state(problem: TrainingProblem, saved: dict[str, Array]) -> WeightState:
    """The state as it was kept."""
    W, targets, kappa, posterior, gaps = (saved[f"state_{name}"] for name in STATE)
    objective, with_scores = saved["state_facts"].tolist()
    scores = problem.design.scores(W) if with_scores else None
    return WeightState(W, targets, kappa, posterior, gaps, objective, scores)


def finite_costs(loss: Loss, scores: Array, n_threads: int = 1) -> Array:
    """Costs of every label at these scores, if they are numbers."""
    costs = costs_of(loss, scores, n_threads)
    if not np.isfinite(costs.sum()):
        raise ValueError("the loss must give finite label costs, but label_costs returned NaN or infinity. Correct it.")
    return costs


def predicted_counts(problem: TrainingProblem, scores: Array) -> Array:
    """Rows of each class (K,) by the best of these scores of the rows without a full label."""
    if problem.forbidden is not None:
        scores = np.where(problem.forbidden, -np.inf, scores)
    return np.bincount(scores.argmax(axis=1), minlength=problem.n_classes)


def model_posterior(problem: TrainingProblem, scores: Array) -> Array:
    """Distributions (n, K) of the rows without a full label at their scores, heeding what is forbidden."""
    if hasattr(problem.loss, "posterior"):
        posterior = np.asarray(problem.loss.posterior(scores))
    else:
        posterior = np.eye(problem.n_classes)[scores.argmax(axis=1)]
    if problem.forbidden is not None:
        posterior = np.where(problem.forbidden, 0.0, np.maximum(posterior, np.finfo(np.float64).tiny))
        posterior /= posterior.sum(axis=1, keepdims=True)
    return posterior


def first_targets(problem: TrainingProblem, labels: Array, bounds: Bounds, n_unlabeled: int) -> Array:
    """Given labels, and distributions of all others that know nothing but the class sizes, of `n_unlabeled` rows."""
    targets = np.zeros((problem.n_rows, problem.n_classes), problem.design.dtype)
    targets[np.arange(problem.n_labeled), labels[: problem.n_labeled]] = 1.0
    shares = _first_shares(bounds, n_unlabeled)
    targets[problem.n_labeled :] = _at_first(problem, shares)
    return targets


def _at_first(problem: TrainingProblem, shares: Array) -> Array:
    """Distributions (n, K) of rows about which nothing is known but the class shares and what is forbidden."""
    if problem.forbidden is None:
        return shares
    allowed = np.where(problem.forbidden, 0.0, np.maximum(shares, np.finfo(np.float64).tiny))
    return np.asarray(allowed / allowed.sum(axis=1, keepdims=True))


def _first_shares(bounds: Bounds, n_rows: int) -> Array:
    """Shares of the classes in the middle of their bounds."""
    low, high, groups = bounds
    return np.asarray((low + high) / (low + high).sum() if groups is None else groups.shares(low, high, n_rows))
