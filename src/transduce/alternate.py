"""Algorithm 1 of the paper: weight steps and label steps in turn, while the unlabelled rows gain weight.

    1-2    weights from the labelled rows
    3-9    greedy labels for the others, meeting the counts
    10-15  for each C of the schedule: weights, then labels, until no label moves

Within a stage J never rises. A weight step stops at a tolerance and may end a little higher than it began; then the
best point on the way there is taken. A label step must lower J, by more than a tolerance while weight steps are loose,
or the old labels stay. A stage ends when no label moves, so rounds cannot repeat.
"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.checkpoints import Shelf, Stage
from transduce.counts import Groups
from transduce.history import Ending, HistoryRow, Outcome
from transduce.label_step import Exact, LabelProblem, LabelStep
from transduce.label_step.greedy import greedy_labels
from transduce.problem import TrainingProblem
from transduce.weight_step import WeightReport, WeightState, WeightStep

Array = NDArray[Any]

LOOSE_FLOOR, FLOOR = 1e-4, 1e-5
"""Labels that lower the loss of the unlabelled rows by no more than this share of it are as good as the old ones, which
stay: first while weight steps are loose, then at their final tolerance."""
STATE = ("W", "targets", "kappa", "posterior", "gaps")
"""Arrays of a weight step's state that are kept with a stage."""
SHARES = (0.6, 0.2)
"""Where to look between the old weights and new ones at which J would be higher."""


@dataclass(frozen=True)
class Settings:
    """Knobs of the alternation: weights of the stages, tolerances of the last and of earlier ones, rounds a stage."""

    weights: tuple[float, ...]
    tol: float
    early_tol: float
    max_rounds: int


@dataclass(frozen=True, eq=False)
class Alternation:
    """The pieces that take turns; `run` plays them."""

    problem: TrainingProblem
    low: Array
    high: Array
    weight_step: WeightStep
    label_step: LabelStep
    settings: Settings
    rng: np.random.Generator
    on_round: Callable[[HistoryRow], None] = lambda row: None
    groups: Groups | None = None
    shelf: Shelf = field(default_factory=Shelf)

    def run(self, labels: Array, start: Callable[[], Array] | None = None) -> Outcome:
        """Fit from the labels of the labelled rows; those of unlabelled rows are ignored.

        `start` gives labels of the unlabelled rows to begin from, in place of the greedy ones. Where the shelf has a
        stage of this fit, it goes on from there.
        """
        outcome = Outcome(self.problem.design.zeros(), labels.copy(), np.zeros(self.problem.n_classes))
        begin = time.perf_counter()
        try:
            saved = self.shelf.load()
            if saved is not None:
                self._go_on(outcome, saved, begin)
            elif start is None:
                self._play(outcome, begin)
            else:
                outcome.labels[self.problem.n_labeled :] = start()
                self._stages(outcome, self.weight_step.start(self.problem, outcome.labels), begin)
        except KeyboardInterrupt:
            outcome.ending = Ending.INTERRUPTED
            if not outcome.history:
                raise
        return outcome

    def _play(self, outcome: Outcome, begin: float) -> None:
        problem, labels = self.problem, outcome.labels
        unlabeled = slice(problem.n_labeled, None)
        state = self.weight_step.start(problem, labels)
        supervised = not self.settings.weights or problem.n_rows == problem.n_labeled
        report = self._weights(state, labels, 0.0, self.settings.tol if supervised else self.settings.early_tol)
        if not supervised:
            costs = allowed_costs(problem, -report.scores[unlabeled])
            labels[unlabeled] = _first_labels(self._label_problem(costs))
        outcome.W[...] = state.W
        self._record(outcome, HistoryRow(0, 0.0, report.objective, 0, report.gap, time.perf_counter() - begin))
        if supervised:
            outcome.ending = Ending.SUPERVISED if report.converged else Ending.NOT_CONVERGED
            self._keep(outcome, None, 0, False)
            return
        self._keep(outcome, state, 0, False)
        self._stages(outcome, state, begin)

    def _stages(
        self, outcome: Outcome, state: WeightState, begin: float, n_done: int = 0, at_rest: bool = False
    ) -> None:
        """Steps 10 to 15."""
        n_stages = len(self.settings.weights)
        for stage in range(n_done + 1, n_stages + 1):
            at_rest = self._stage(outcome, state, stage, self.settings.weights[stage - 1], begin, at_rest)
            self._keep(outcome, state if stage < n_stages else None, stage, at_rest)

    def _keep(self, outcome: Outcome, state: WeightState | None, stage: int, at_rest: bool) -> None:
        """Put a complete stage on the shelf; the last one without what weight steps hold."""
        if self.shelf.path is None:
            return
        arrays = {"W": outcome.W, "labels": outcome.labels, "prices": outcome.prices}
        facts = {
            "stage": stage, "at_rest": bool(at_rest), "objective": float(outcome.objective), "done": state is None,
            "ending": outcome.ending.name, "history": [asdict(row) for row in outcome.history],
            "rng": self.rng.bit_generator.state,
        }  # fmt: skip
        self.shelf.save(arrays | packed_state(state), facts)

    def _go_on(self, outcome: Outcome, saved: Stage, begin: float) -> None:
        """Take up the fit after the stage that was kept."""
        facts = saved.facts
        outcome.W[...], outcome.labels[...] = saved.arrays["W"], saved.arrays["labels"]
        outcome.prices, outcome.objective = saved.arrays["prices"], facts["objective"]
        outcome.ending = Ending[facts["ending"]]
        outcome.history[:] = [HistoryRow(**row) for row in facts["history"]]
        if facts["done"]:
            return
        self.rng.bit_generator.state = facts["rng"]
        state = unpacked_state(self.problem, saved)
        begin -= outcome.history[-1].seconds if outcome.history else 0.0
        self._stages(outcome, state, begin, facts["stage"], facts["at_rest"])

    def _stage(
        self, outcome: Outcome, state: WeightState, stage: int, weight: float, begin: float, at_rest: bool
    ) -> bool:
        """Rounds at one weight of the unlabelled rows; says whether the labels are at rest at the weights of the state.

        Labels at rest stay so when the unlabelled rows gain weight, for as long as the weights stay.
        """
        last = stage == len(self.settings.weights)
        tol = self.settings.early_tol
        unlabeled = slice(self.problem.n_labeled, None)
        kappa = self.problem.kappa(weight)
        scores, objective = np.zeros((0, 0)), np.inf
        for _ in range(self.settings.max_rounds):
            report = self._weights(state, outcome.labels, weight, tol)
            if at_rest and report.n_sweeps == 0 and not last:
                seconds = time.perf_counter() - begin
                self._record(outcome, HistoryRow(stage, weight, report.objective, 0, report.gap, seconds))
                return True
            scores, objective, share = self._descend(outcome, scores, objective, state, report, kappa)
            costs = self.problem.loss.label_costs(scores[unlabeled])
            labels, prices = self._labels(costs, kappa, outcome)
            moved = np.flatnonzero(labels != outcome.labels[unlabeled])
            old = np.take_along_axis(costs, outcome.labels[unlabeled][:, None], axis=1)[:, 0]
            change = float(np.dot(kappa[unlabeled][moved], costs[moved, labels[moved]] - old[moved]))
            _blend(outcome.W, state.W, share)
            loose = tol > self.settings.tol
            floor = (LOOSE_FLOOR if loose else FLOOR) * float(np.dot(kappa[unlabeled], old))
            if moved.size and change >= -floor:
                moved = moved[:0]
            else:
                objective += change
                outcome.labels[unlabeled] = labels
            outcome.prices = prices  # they belong to the weights, whether or not labels move
            seconds = time.perf_counter() - begin
            self._record(outcome, HistoryRow(stage, weight, objective, moved.size, report.gap, seconds))
            if moved.size == 0 and not (loose and last):
                outcome.ending = Ending.SETTLED if report.converged else Ending.NOT_CONVERGED
                return share == 1.0
            if moved.size == 0:  # settled at the loose tolerance: see whether it stays so at the tight one
                tol = self.settings.tol
        outcome.ending = Ending.OUT_OF_ROUNDS if moved.size else Ending.NOT_CONVERGED
        return False

    def _descend(
        self, outcome: Outcome, scores: Array, objective: float, state: WeightState, report: WeightReport, kappa: Array
    ) -> tuple[Array, float, float]:
        """Go to the new weights, or as far towards them as lowers J; returns scores and J there, and how far it is.

        J is convex in W, and scores are linear in it, so no product with the rows is needed on the way.
        """
        if report.objective <= objective:
            return report.scores, report.objective, 1.0
        live = kappa > 0
        norms = [float(np.vdot(a, b)) for a, b in ((outcome.W, outcome.W), (outcome.W, state.W), (state.W, state.W))]
        best, best_scores, best_share = objective, scores, 0.0
        for share in SHARES:
            between = (1.0 - share) * scores + share * report.scores
            square = (1.0 - share) ** 2 * norms[0] + 2.0 * share * (1.0 - share) * norms[1] + share**2 * norms[2]
            losses = self.problem.loss.value(between[live], outcome.labels[live])
            value = 0.5 * self.problem.alpha * square + float(np.dot(kappa[live], losses))
            if value < best:
                best, best_scores, best_share = value, between, share
        return best_scores, best, best_share

    def _labels(self, costs: Array, kappa: Array, outcome: Outcome) -> tuple[Array, Array]:
        """Step 13: labels for these weights, and their prices."""
        start = outcome.labels[self.problem.n_labeled :]
        if not np.isfinite(costs.sum()):
            raise ValueError(
                "the loss must give finite label costs, but label_costs returned NaN or infinity. Correct it."
            )
        problem = self._label_problem(weighted_costs(self.problem, costs, kappa))
        answer = self.label_step.solve(problem, outcome.prices, start)
        return answer.labels, answer.prices

    def _label_problem(self, costs: Array) -> LabelProblem:
        return LabelProblem(costs, self.low, self.high, self.groups)

    def _weights(self, state: WeightState, labels: Array, weight: float, tol: float) -> WeightReport:
        """Steps 1 and 12: weights for these labels."""
        self.weight_step.retarget(self.problem, state, labels, self.problem.kappa(weight))
        return self.weight_step.solve(self.problem, state, tol, self.rng)

    def _record(self, outcome: Outcome, row: HistoryRow) -> None:
        outcome.objective = row.objective
        outcome.history.append(row)
        self.on_round(row)


def packed_state(state: WeightState | None) -> dict[str, Array]:
    """What a weight step holds, as arrays to keep; scores follow from the weights."""
    if state is None:
        return {}
    facts = np.array([state.objective, state.scores is not None], dtype=np.float64)
    return {f"state_{name}": getattr(state, name) for name in STATE} | {"state_facts": facts}


def unpacked_state(problem: TrainingProblem, saved: Stage) -> WeightState:
    """The state as it was kept."""
    W, targets, kappa, posterior, gaps = (saved.arrays[f"state_{name}"] for name in STATE)
    objective, with_scores = saved.arrays["state_facts"].tolist()
    scores = problem.design.scores(W) if with_scores else None
    return WeightState(W, targets, kappa, posterior, gaps, objective, scores)


def _first_labels(problem: LabelProblem) -> Array:
    """Steps 3 to 9: greedy labels; the best ones under bounds on groups, which no greedy choice can be sure to meet."""
    return greedy_labels(problem) if problem.groups is None else Exact().solve(problem).labels


def weighted_costs(problem: TrainingProblem, costs: Array, kappa: Array) -> Array:
    """Costs of the rows without a full label in proportion to their weights, infinite where a label is forbidden."""
    weights = kappa[problem.n_labeled :]
    if not np.all(weights == weights[0]):
        costs = costs * (weights / weights.mean())[:, None]
    return allowed_costs(problem, costs)


def allowed_costs(problem: TrainingProblem, costs: Array) -> Array:
    """The same costs, infinite where a label is forbidden."""
    return costs if problem.forbidden is None else np.where(problem.forbidden, np.inf, costs)


def _blend(here: Array, there: Array, share: float) -> None:
    """Move `here`, in place, by a share of the way to `there`."""
    if share == 1.0:
        here[...] = there
    elif share > 0.0:
        here *= 1.0 - share
        here += share * there
