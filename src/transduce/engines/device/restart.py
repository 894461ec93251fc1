"""One run of a solver over rows on a device, with hard labels and with soft ones."""

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from transduce.arrays import Array
from transduce.engines import common
from transduce.engines.base import LabelProposal, SoftRoundSummary, StepSettings, WeightSummary
from transduce.engines.device.arrays import DeviceArray, Replay, to_host
from transduce.engines.device.label_rows import DeviceSoftmaxRows, device_partitions
from transduce.engines.device.rows import DeviceRows
from transduce.engines.device.weights import BatchDualStep, DeviceWeights
from transduce.history import FitResult
from transduce.io.checkpoint import CheckpointSlot
from transduce.label_step import Exact, LabelProblem, LabelStep
from transduce.label_step.entropic import solve_partitions_at_entropy
from transduce.losses import Loss, smoothed
from transduce.problem import TrainingProblem

MEMORY_CELLS = 1 << 21
"""Rows times classes up to which hard labels are found in memory: a device would take longer to start."""
SOFT_ITERATIONS = 5
"""Iterations of the weight step in a round with soft labels."""
_STATE = ("W", "targets", "kappa", "dual")


@dataclass(eq=False)
class DeviceRowState:
    """What hard and soft labels share: a problem on a device, and the state of its weight step."""

    problem: TrainingProblem
    _kappa: tuple[float, DeviceArray] | None = field(default=None, init=False)

    @property
    def rows(self) -> DeviceRows:
        """The rows."""
        return cast(DeviceRows, self.problem.design)

    def new_step(self, loss: Loss, max_iterations: int) -> BatchDualStep:
        """A weight step for these rows."""
        return BatchDualStep.create(self.rows, loss, self.problem.alpha, max_iterations)

    def kappa(self, weight: float) -> DeviceArray:
        """Row weights (n,) on the device; the same array while the weight stays."""
        if self._kappa is None or self._kappa[0] != weight:
            self._kappa = weight, self.rows.arrays.floats(self.problem.kappa(weight)[self.rows.positions])
        return self._kappa[1]

    def one_hot(self, labels: Array) -> DeviceArray:
        """Labels (n,) as targets on the device."""
        arrays = self.rows.arrays
        return arrays.one_hot(arrays.ints(labels[self.rows.positions]), self.problem.n_classes)

    def unlabeled(self, values: DeviceArray) -> DeviceArray:
        """The values of rows without a full label, in the order of the problem."""
        return self.rows.in_problem_order(values, self.problem.n_labeled)

    def fit_labeled(self, step: BatchDualStep, targets: DeviceArray, tol: float) -> tuple[DeviceWeights, WeightSummary]:
        """Learn weights from the labelled rows alone; `targets` (n, K) are in the order of X."""
        rows, arrays, labeled = self.rows, self.rows.arrays, np.arange(self.problem.n_labeled)
        few = replace(step, rows=rows.select_rows(labeled))
        kappa, at = arrays.floats(self.problem.kappa(0.0)[labeled]), arrays.ints(rows.order[labeled])
        part = few.start(arrays.xp.take(targets, at, axis=0))
        few.retarget(part, part.targets, kappa, soft=True)
        report, state = few.solve(part, tol), step.start(targets)
        dual = arrays.xp.concat((part.dual, self.unlabeled(state.dual)))
        state.W[:, :], state.dual[:, :] = part.W, rows.on_device(dual)
        step.set_kappa(state, self.kappa(0.0))
        step.refresh(state)
        state.objective = report.objective
        return state, report

    @cached_property
    def forbidden(self) -> DeviceArray | None:
        """Labels (n_unlabeled, K) that are forbidden; None if none is."""
        return self.rows.arrays.bools(self.problem.forbidden)

    def relative_weights(self, kappa: Array) -> DeviceArray | None:
        """Weights (n_unlabeled, 1) relative to their mean, given row weights (n,) in memory; None if all are equal."""
        weights = kappa[self.problem.n_labeled :]
        if not weights.size or np.all(weights == weights[0]):
            return None
        return self.rows.arrays.floats(weights / weights.mean())[:, None]

    def weighted_costs(self, costs: DeviceArray, weights: DeviceArray | None = None) -> DeviceArray:
        """Costs of rows without a full label as in `problem.weighted_costs`, given relative weights."""
        arrays, costs = self.rows.arrays, costs if weights is None else costs * weights
        return costs if self.forbidden is None else arrays.xp.where(self.forbidden, arrays.number(np.inf), costs)


@dataclass(eq=False)
class DeviceRestart(DeviceRowState):
    """One run of a solver on a device; labels (n,) are in memory, in the order of the problem. See `LocalRestart`."""

    labels: Array
    settings: StepSettings
    rng: np.random.Generator
    state: DeviceWeights = field(init=False)
    W: DeviceArray = field(init=False)
    scores: DeviceArray = None
    report: WeightSummary | None = None
    step_length: float = 1.0
    weight: float = 0.0
    limit: float = np.inf
    proposed: Array | None = None

    def __post_init__(self) -> None:
        self.W, self.step = self.rows.zeros(), self.new_step(self.problem.loss, self.settings.max_sweeps)
        self.n_classes, self.n_unlabeled = self.problem.n_classes, self.problem.n_rows - self.problem.n_labeled

    def reset_weights(self) -> None:
        """Start the weight step at weights 0 for the present labels."""
        self.state = self.step.start(self.one_hot(self.labels))

    def supervise(self, tol: float) -> WeightSummary:
        found = self.fit_labeled(self.step, self.one_hot(self.labels), tol)
        self.state, self.report = found
        self.W = self.state.W + 0.0
        return self.report

    def greedy(self) -> None:
        """Optimal labels at the scores: over partitions they take less time than greedy ones."""
        costs = self.weighted_costs(-self.unlabeled(self.step.all_scores(self.state)))
        self._own_labels[:] = self._exact(costs, None, None)[0]

    def start_at(self, W: DeviceArray, weight: float) -> None:
        self.W = W + 0.0
        self.label_by(self.rows.scores(W), weight)

    def label_by(self, scores: DeviceArray, weight: float) -> None:
        """Take the best labels at these scores (n, K), and start the weight step at 0."""
        weights = self.relative_weights(self.problem.kappa(weight))
        costs = self.weighted_costs(self.unlabeled(self.step.loss.costs(scores)), weights)
        self.labels[self.problem.n_labeled :] = self.label_step(costs, None, None)[0]
        self.reset_weights()

    def _exact(self, costs: DeviceArray, prices: Array | None, start: Array | None) -> tuple[Array, Array]:
        """Labels and prices of the exact label step, in memory for few rows."""
        if math.prod(costs.shape) <= MEMORY_CELLS:
            return self._in_memory(Exact(), costs, prices, start)
        partitions = device_partitions(costs, start, self.rows.arrays)
        answer = Exact().solve_partitions(partitions, self.settings.bounds, prices)
        return partitions.partitions[0].state["labels"], answer.prices

    def label_step(self, costs: DeviceArray, prices: Array | None, start: Array | None) -> tuple[Array, Array]:
        """Labels and prices of the label step; all but the exact one work in memory."""
        step = self.settings.label_step
        return self._exact(costs, prices, start) if type(step) is Exact else self._in_memory(step, costs, prices, start)

    def _in_memory(
        self, step: LabelStep, costs: DeviceArray, prices: Array | None, start: Array | None
    ) -> tuple[Array, Array]:
        solution = step.solve(LabelProblem(to_host(costs), *self.settings.bounds), prices, start)
        return solution.labels, solution.prices

    def weights(self, weight: float, tol: float) -> WeightSummary:
        self.step.retarget(self.state, self.one_hot(self.labels), self.kappa(weight))
        self.weight = weight
        count_cost = self._count_cost(self._own_labels)
        report = self.step.solve(self.state, tol, self.limit - count_cost)
        self.report = report._replace(objective=report.objective + count_cost)
        return self.report

    def stop_above(self, limit: float) -> None:
        self.limit = limit

    @property
    def _own_labels(self) -> Array:
        return self.labels[self.problem.n_labeled :]

    def _count_cost(self, labels: Array) -> float:
        """Cost in J of the class counts of these labels (n_unlabeled,)."""
        counts, kappa = np.bincount(labels, minlength=self.n_classes), self.problem.kappa(self.weight)
        return common.count_cost(self.settings.bounds, counts, float(kappa[self.problem.n_labeled :].sum()))

    def _scores_between(self, t: float) -> DeviceArray:
        """Scores this far between `scores` and those of the state; they are linear in W."""
        new = self.step.all_scores(self.state)
        return new if t == 1.0 or self.scores is None else (1 - t) * self.scores + t * new

    def descend(self, objective: float) -> tuple[float, float]:
        assert self.report is not None
        best, self.step_length = self.report.objective, 1.0
        if not best <= objective and self.scores is not None:
            V, W, total = self.W, self.state.W, self.rows.arrays.total
            products = float(total(V * V)), float(total(V * W)), float(total(W * W))

            def loss_between(t: float) -> float:
                return self.step.loss_at(self.state, self._scores_between(t)) + self._count_cost(self._own_labels)

            best, self.step_length = common.best_step(objective, self.problem.alpha, products, loss_between)
        self.scores = self._scores_between(self.step_length)
        return best, self.step_length

    def propose(self, prices: Array) -> LabelProposal:
        arrays, kappa = self.rows.arrays, self.problem.kappa(self.weight)
        costs, old = self.unlabeled(self.step.loss.costs(self.scores)), self._own_labels
        new, prices = self.label_step(self.weighted_costs(costs, self.relative_weights(kappa)), prices, old)
        self.proposed, both = new, arrays.ints(np.stack((old, new), axis=1))
        old_costs, new_costs = to_host(arrays.xp.take_along_axis(costs, both, axis=1)).T.astype(np.float64)
        own, moved = kappa[self.problem.n_labeled :], new != old
        change = float(np.dot(own[moved], (new_costs - old_costs)[moved]))
        change += self._count_cost(new) - self._count_cost(old)
        return LabelProposal(prices, int(moved.sum()), change, float(np.dot(own, old_costs)))

    def accept(self, take_labels: bool) -> None:
        self.W = self.W + self.step_length * (self.state.W - self.W)
        if take_labels:
            self.labels[self.problem.n_labeled :] = self.proposed
        self.proposed = None

    def soft_labels(self) -> "DeviceSoftLabels":
        return DeviceSoftLabels(self.problem, self)

    def result(self, result: FitResult) -> None:
        result.W, result.labels = self.W, self.labels

    def save(self, slot: CheckpointSlot, arrays: dict[str, Array], metadata: dict[str, Any], done: bool) -> None:
        if slot.path is not None:
            own = {"W": to_host(self.W), "labels": self.labels} | ({} if done else packed(self.state))
            slot.save(arrays | own, metadata | {"rng": self.rng.bit_generator.state, "weight": self.weight})

    def load(self, slot: CheckpointSlot) -> tuple[dict[str, Array], dict[str, Any]] | None:
        saved = slot.load()
        if saved is not None:
            arrays, metadata = saved
            self.W, self.labels[...] = self.rows.arrays.floats(arrays["W"]), arrays["labels"]
            if "state_W" in arrays:
                self.rng.bit_generator.state, self.weight = metadata["rng"], metadata["weight"]
                self.state = unpacked(self.step, arrays)
        return saved


@dataclass(eq=False)
class DeviceSoftLabels(DeviceRowState):
    """Distributions over the labels of a restart, on the device; see `LocalSoftLabels`.

    What a round does changes arrays in their place, so that it can be replayed.

    labeled (l, K)         targets of the labelled rows
    costs (n_unlabeled, K) of the label step
    best (n_unlabeled,)    class of the largest probability
    n_moved (1,)           rows whose best class changed in the last round
    bias (K,)              what the constant added to all scores in the last round
    weights                of the rows in the label step, see `relative_weights`
    """

    restart: DeviceRestart
    state: DeviceWeights = field(init=False)
    labeled: DeviceArray = field(init=False)
    costs: DeviceArray = field(init=False)
    best: DeviceArray = field(init=False)
    n_moved: DeviceArray = field(init=False)
    prices: Array = field(init=False)
    bias: Array = field(init=False)
    finding_costs: Replay = field(init=False)
    taking_labels: Replay = field(init=False)
    temperature: float | None = None

    def __post_init__(self) -> None:
        hard, restart, arrays = self.problem, self.restart, self.rows.arrays
        self.problem = replace(hard, loss=smoothed(hard.loss))
        self.step = self.new_step(self.problem.loss, SOFT_ITERATIONS)
        self.soft_rows = DeviceSoftmaxRows.create(arrays, restart.n_unlabeled, hard.n_classes)
        self.weights = self.relative_weights(np.ones(hard.n_rows) if hard.n_partial else hard.row_weights)
        self.labeled = arrays.one_hot(arrays.ints(restart.labels[: hard.n_labeled]), hard.n_classes)
        self.costs, self.n_moved = arrays.xp.zeros_like(self.soft_rows.costs), arrays.ints(np.zeros(1))
        self.best = arrays.ints(np.full(restart.n_unlabeled, -1))
        self.prices, self.bias = np.zeros((2, hard.n_classes))

    def start(self) -> None:
        problem, restart, arrays = self.problem, self.restart, self.rows.arrays
        targets = common.first_targets(problem, restart.labels, restart.settings.bounds, restart.n_unlabeled)
        first = self.new_step(problem.loss, common.FIRST_SWEEPS)
        q = self.rows.on_device(arrays.floats(targets))
        self._begin(self.fit_labeled(first, q, common.FIRST_TOL)[0])

    def _begin(self, state: DeviceWeights) -> None:
        """Take a state, whose arrays recorded work will change."""
        self.state, self.finding_costs, self.taking_labels = state, Replay(), Replay()

    def _find_costs(self) -> None:
        """Compute the costs of the label step at the present weights."""
        costs = self.unlabeled(self.step.loss.costs(self.step.all_scores(self.state)))
        self.costs[:, :] = self.weighted_costs(costs, self.weights)

    def _take_labels(self) -> None:
        """Make the distributions of the label step the targets of the weight step, and count rows that moved."""
        xp, posterior = self.rows.arrays.xp, self.soft_rows.posterior
        self.state.targets[:, :] = self.rows.on_device(xp.concat((self.labeled, posterior)))
        best = xp.argmax(posterior, axis=1)
        self.n_moved[:] = xp.count_nonzero(best != self.best)
        self.best[:] = best

    def round(self, weight: float, entropy: float) -> SoftRoundSummary:
        like, bias = self.state.targets, self.bias
        self.finding_costs(self._find_costs, like)
        if self.rows.constant:
            bias = to_host(self.rows.bias(self.state.W)).ravel()
        prices, self.bias = self.prices - (bias - self.bias), bias  # costs of all rows moved by as much
        soft = solve_partitions_at_entropy(
            device_partitions(self.costs, None, self.rows.arrays, self.soft_rows),
            self.restart.settings.bounds, entropy, self.temperature, prices, common.SOFT_TOL,
        )  # fmt: skip
        self.prices, self.temperature = soft.prices, soft.temperature
        self.taking_labels(self._take_labels, like)
        self.step.retarget(self.state, self.state.targets, self.kappa(weight), soft=True)
        report = self.step.solve(self.state, 0.0)
        return SoftRoundSummary(report.objective, report.gap, int(to_host(self.n_moved)[0]), soft.temperature)

    def harden(self, weight: float) -> None:
        self.restart.label_by(self.step.all_scores(self.state), weight)

    def save(self, slot: CheckpointSlot, metadata: dict[str, Any]) -> None:
        if slot.path is not None:
            arrays = packed(self.state) | {"prices": self.prices, "bias": self.bias, "best": to_host(self.best)}
            rng = self.restart.rng.bit_generator.state
            slot.save(arrays, metadata | {"temperature": self.temperature, "rng": rng})

    def load(self, slot: CheckpointSlot) -> dict[str, Any] | None:
        saved = slot.load()
        if saved is None:
            return None
        arrays, metadata = saved
        self._begin(unpacked(self.step, arrays))
        self.best[:] = self.rows.arrays.ints(arrays["best"])
        self.prices, self.bias = arrays["prices"], arrays["bias"]
        self.temperature, self.restart.rng.bit_generator.state = metadata["temperature"], metadata["rng"]
        return metadata


def packed(state: DeviceWeights) -> dict[str, Array]:
    """Copy the state of a weight step to memory; scores are computed again from the weights."""
    scalars = np.array([state.objective, state.is_current, *to_host(state.scale)], dtype=np.float64)
    return {f"state_{name}": to_host(getattr(state, name)) for name in _STATE} | {"state_scalars": scalars}


def unpacked(step: BatchDualStep, saved: dict[str, Array]) -> DeviceWeights:
    """Rebuild the state of a weight step from its arrays."""
    W, targets, kappa, dual = (step.rows.arrays.floats(saved[f"state_{name}"]) for name in _STATE)
    state = step.start(targets)
    state.W[:, :], state.dual[:, :] = W, dual
    step.set_kappa(state, kappa)
    step.set_rounding(state)
    state.objective, is_current, state.scale[:] = saved["state_scalars"].tolist()
    if is_current:
        step.refresh(state)
    return state
