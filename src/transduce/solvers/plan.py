"""Fraction of a fit that is done: the parts of the fit, and the time that each of their stages is expected to take.

    hidden labels   fits that a part of the labels is hidden from, restarts −1, −2, ... of the history
    annealing       restart 0 by the paper's stages, and one restart for each cooling schedule
    finals          what follows the first round of the last stage: of restart 0, and of the best other one
    refinement      one more restart with all rows, if a sample of them was annealed

One group follows the other, and the parts of a group may run at the same time. Constants come from fits of
news20_train, r8, webkb7, clinc150 (150 classes) and 60 000 rows of `benchmarks.document_halves`.
"""

from dataclasses import dataclass
from typing import Any

from transduce.history import HistoryRow
from transduce.solvers import annealing as soft_annealing
from transduce.solvers import cross_fit
from transduce.solvers.schedule import N_STAGES, PAPER, n_restarts_of, resolve_annealing, stages

Costs = tuple[float, ...]

PAPER_COSTS: Costs = (0.06, 0.13, 0.0, 0.0, 0.01, 0.01, 0.08, 0.1, 0.15, 0.15, 0.31)
"""Time for a row: the supervised start, the paper's stages, and the accurate rounds at the end of the last one."""
DENSE_COST = 1.0
"""Accurate rounds on dense rows, from fits of mnist and of clinc150 as vectors of 128 dimensions."""
HIDDEN_COSTS: Costs = (0.04, 0.13, 0.0, 0.0, 0.01, 0.02, 0.09, 0.1, 0.12, 0.17, 0.12)
"""The same for a fit with hidden labels, whose accurate rounds are less so."""
FIRST_STAGE_CLASSES = 100
"""Number of classes that doubles the time of the first stage."""
FIRST_COST = 0.25
"""Supervised classifiers before the first of these fits."""
COOLING_COSTS: Costs = (0.0, 0.23, *(0.115 for _ in range(N_STAGES - 1)), 0.18)
"""The stages of a cooling schedule, which count from 1, the first one with the weights that it starts from, and the
first round of the alternation at its end."""
FINAL_COST = 0.15
"""The rounds that follow the first one of a last stage, and as much again for the accurate ones after them."""
REFINEMENT_COSTS: Costs = (0.2, 0.2)
"""The alternation with all rows."""
PAPERS, COOLED = 0, 1
"""Numbers of the parts of the finals."""
HALF_ROUNDS = 2
"""Rounds after which half of a stage counts as done."""
THREADS_POWER = 0.7
"""A part with t threads is about t to this power times as fast."""


@dataclass(eq=False)
class Part:
    """A part of a fit, and where it is.

    costs     expected time of each stage, from 0, and of the accurate rounds at the end of the last one
    pauses    whether the part ends with the first round of its last stage, whose cost is then the last
    first     first stage that was seen, a later one if the part was resumed; None before it
    stage     present stage; len(costs) at the end
    n_rounds  rounds so far in the present stage
    """

    costs: Costs
    pauses: bool = False
    first: int | None = None
    stage: int = 0
    n_rounds: int = 0

    def add(self, row: HistoryRow) -> None:
        """Count a round."""
        last = len(self.costs) - (1 if self.pauses else 2)
        stage = max(self.stage, min(row.stage, last))
        self.first = stage if self.first is None else self.first
        self.n_rounds = self.n_rounds + 1 if stage == self.stage else 1
        self.stage = stage
        if row.stage == 0 or (stage >= last and (self.pauses or row.n_moved == 0)):
            self.stage, self.n_rounds = min(stage + 1, len(self.costs)), 0

    @property
    def has_ended(self) -> bool:
        """Whether no round is expected any more."""
        return self.stage == len(self.costs)

    @property
    def total(self) -> float:
        """Time of the stages that were not done before the fit was resumed."""
        return sum(self.costs[self.first or 0 :])

    @property
    def done(self) -> float:
        """Time of the rounds so far."""
        in_stage = sum(self.costs[self.stage : self.stage + 1]) * self.n_rounds / (self.n_rounds + HALF_ROUNDS)
        return sum(self.costs[self.first or 0 : self.stage]) + in_stage


@dataclass(eq=False)
class FitPlan:
    """The parts of a fit by the number of their restart, in groups that follow each other, and the fraction done.

    The fraction may end a little below 1: that a restart cannot win any more is known only when it stops.

    Examples
    --------
    >>> plan = FitPlan.create(n_unlabeled=10_000, n_classes=20)
    >>> for restart in (-1, -2, -3, -4, -5, 0):
    ...     plan.add(HistoryRow(0, 0.0, 0.4, 0, 1e-3, restart=restart))
    >>> f"{plan.fraction:.0%}"
    '40%'
    """

    groups: list[dict[int, Part]]
    n_threads: int = 1
    fraction: float = 0.0

    @classmethod
    def create(
        cls, n_unlabeled: int, n_classes: int, annealing: Any = "auto", is_dense: bool = False, n_threads: int = 1
    ) -> "FitPlan":
        """Plan a fit of so many unlabelled rows.

        Whether labels are hidden need not be known: if the annealing comes first, they are not.
        """
        annealing = resolve_annealing(annealing, is_dense)
        n_hidden = min(n_unlabeled, cross_fit.max_hidden_fit_rows(n_classes))
        n_annealed = min(n_unlabeled, soft_annealing.max_annealed_rows(n_classes))
        hidden: dict[int, Costs] = {-k: HIDDEN_COSTS for k in range(1, cross_fit.N_FOLDS + 1)}
        hidden[-1] = (FIRST_COST + HIDDEN_COSTS[0], *HIDDEN_COSTS[1:])
        n_restarts = n_restarts_of(annealing)
        restarts: dict[int, Costs] = dict.fromkeys(range(1, n_restarts), COOLING_COSTS)
        restarts[0] = _stage_costs(annealing, n_classes, is_dense)
        finals: dict[int, Costs] = {}
        if n_restarts > 1:
            *first, last, _ = restarts[0]
            restarts[0] = (*first, 0.5 * last)
            finals = dict.fromkeys((PAPERS, COOLED), (FINAL_COST, FINAL_COST))
        refinement: dict[int, Costs] = {n_restarts: REFINEMENT_COSTS} if n_unlabeled > n_annealed else {}
        groups = [
            _group(hidden, n_hidden, n_threads),
            _group(restarts, n_annealed, n_threads, pauses=n_restarts > 1),
            _group(finals, n_annealed, n_threads),
            _group(refinement, n_unlabeled, n_threads),
        ]
        return cls(groups, n_threads)

    def add(self, row: HistoryRow) -> None:
        """Count a round; the fraction never falls."""
        number, restart = self._part_of(row.restart)
        if number is None:
            return
        self._drop_skipped(number, restart)
        for group in self.groups[:number]:
            for part in group.values():
                part.stage = len(part.costs)
        self.groups[number][restart].add(row)
        parts = [part for group in self.groups for part in group.values()]
        total = sum(part.total for part in parts)
        self.fraction = max(self.fraction, min(sum(part.done for part in parts) / total, 1.0) if total else 1.0)

    def _part_of(self, restart: int) -> tuple[int | None, int]:
        """The group that a restart is in now, and the number of its part there."""
        for i, group in enumerate(self.groups):
            if restart in group and not group[restart].has_ended:
                return i, restart
        final = min(restart, COOLED)
        return (2, final) if restart in self.groups[1] and final in self.groups[2] else (None, restart)

    def _drop_skipped(self, number: int, restart: int) -> None:
        """Drop parts without a round that would have begun before this restart: they do not run, or did so before."""
        first = abs(restart) - self.n_threads - (self.n_threads > 1) + 1  # parts of a group begin in their order
        for i, group in enumerate(self.groups[: number + 1]):
            may_begin = {k for k in group if i == number and abs(k) >= first}
            self.groups[i] = {k: part for k, part in group.items() if k in may_begin or part.first is not None}


def _group(parts: dict[int, Costs], n_rows: int, n_threads: int, pauses: bool = False) -> dict[int, Part]:
    """Parts that run at the same time as far as there are threads."""
    n_at_once = max(min(n_threads, len(parts)), 1)
    speed = n_at_once * (n_threads / n_at_once) ** THREADS_POWER
    return {k: Part(tuple(n_rows * cost / speed for cost in costs), pauses) for k, costs in parts.items()}


def _stage_costs(annealing: Any, n_classes: int, is_dense: bool) -> Costs:
    """Costs of the stages of restart 0, even for stages of the user's own."""
    start, *costs, accurate = PAPER_COSTS
    n_stages = len(stages(annealing, 1.0))
    if n_stages != len(PAPER):
        costs = [sum(costs) / n_stages] * n_stages
    costs[0] *= 1.0 + n_classes / FIRST_STAGE_CLASSES
    return (start, *costs, DENSE_COST if is_dense else accurate)
