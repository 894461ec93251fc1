"""Fraction of a fit that is done: the parts of the fit, and the time that each of their stages is expected to take.

    hidden labels   fits that a part of the labels is hidden from, restarts −1, −2, ... of the history
    annealing       restart 0 by the paper's stages, and one restart for each cooling schedule
    refinement      one more restart with all rows, if a sample of them was annealed

One group follows the other, and the parts of a group may run at the same time. Constants come from fits of
news20_train, r8, webkb7, clinc150 (150 classes) and 60 000 rows of `benchmarks.document_halves`.
"""

from dataclasses import dataclass
from typing import Any

from transduce.history import HistoryRow
from transduce.solvers import annealing as soft_annealing
from transduce.solvers import cross_fit
from transduce.solvers.schedule import N_STAGES, PAPER, n_restarts_of, stages

FIRST_COST, HIDDEN_COST, COOLING_COST, REFINEMENT_COST = 0.3, 0.8, 3.8, 0.3
"""Time for a row before the first part and in each kind of part, relative to the paper's annealing."""
PAPER_COSTS = (0.05, 0.14, 0.0, 0.0, 0.01, 0.02, 0.09, 0.11, 0.15, 0.43)
"""Time of the supervised start and of each stage of the paper's annealing."""
COOLING_COSTS = (0.0, *(0.92 * COOLING_COST / N_STAGES for _ in range(N_STAGES)), 0.08 * COOLING_COST)
"""Time of each stage of a cooling schedule, which count from 1, and of the alternation at its end."""
HALF_ROUNDS, HALF_LAST_ROUNDS = 1, 4
"""Rounds after which half of a stage counts as done, and half of the last stage of a part."""
THREADS_POWER = 0.7
"""A part with t threads is about t to this power times as fast."""


@dataclass(eq=False)
class Part:
    """A part of a fit, and the latest of its rounds.

    costs      expected time of each stage, from 0
    first      first stage that was seen, a later one if the part was resumed; None before it
    n_rounds   rounds so far in the present stage
    n_at_rest  rounds of the last stage in which no label changed; the second of them is the last round
    is_over    whether a part has begun that waits for this one
    """

    costs: tuple[float, ...]
    first: int | None = None
    stage: int = 0
    n_rounds: int = 0
    n_at_rest: int = 0
    is_over: bool = False

    def add(self, row: HistoryRow) -> None:
        """Count a round."""
        last = len(self.costs) - 1
        stage = min(row.stage, last)
        self.first = stage if self.first is None else self.first
        self.n_rounds = self.n_rounds + 1 if stage == self.stage else 1
        self.n_at_rest += stage == last and row.n_moved == 0
        self.stage = stage

    @property
    def total(self) -> float:
        """Time of the stages that were not done before the fit was resumed."""
        return sum(self.costs[self.first or 0 :])

    @property
    def done(self) -> float:
        """Time of the rounds so far."""
        is_last = self.stage == len(self.costs) - 1
        if self.first is None or self.is_over or (is_last and self.n_at_rest > 1):
            return 0.0 if self.first is None else self.total
        half = HALF_LAST_ROUNDS if is_last else HALF_ROUNDS if self.stage else 0
        in_stage = self.costs[self.stage] * self.n_rounds / (self.n_rounds + half)
        return sum(self.costs[self.first : self.stage]) + in_stage


@dataclass(eq=False)
class FitPlan:
    """The parts of a fit by the number of their restart, in groups that follow each other, and the fraction done.

    Examples
    --------
    >>> plan = FitPlan.create(n_unlabeled=10_000, n_classes=20, annealing="paper")
    >>> for restart in (-1, -2, -3, -4, -5, 0):
    ...     plan.add(HistoryRow(0, 0.0, 0.4, 0, 1e-3, restart=restart))
    >>> round(plan.fraction, 2)
    0.82
    """

    groups: list[dict[int, Part]]
    fraction: float = 0.0

    @classmethod
    def create(cls, n_unlabeled: int, n_classes: int, annealing: Any = "soft", n_threads: int = 1) -> "FitPlan":
        """Plan a fit of so many unlabelled rows; `annealing` as `resolve_annealing` returns it.

        Whether labels are hidden need not be known: if the annealing comes first, they are not.
        """
        n_hidden = min(n_unlabeled, cross_fit.max_rows(n_classes))
        n_annealed = min(n_unlabeled, soft_annealing.max_rows(n_classes))
        hidden = _scaled(HIDDEN_COST, PAPER_COSTS)
        fits = {-k: hidden for k in range(1, cross_fit.N_FOLDS + 1)}
        fits[-1] = (FIRST_COST + hidden[0], *hidden[1:])
        n_restarts = n_restarts_of(annealing)
        restarts = {0: _stage_costs(annealing)} | {k: COOLING_COSTS for k in range(1, n_restarts)}
        refinement = {n_restarts: (REFINEMENT_COST,)} if n_unlabeled > n_annealed else {}
        groups = (fits, n_hidden), (restarts, n_annealed), (refinement, n_unlabeled)
        return cls([_group(parts, n_rows, n_threads) for parts, n_rows in groups])

    def add(self, row: HistoryRow) -> None:
        """Count a round; the fraction never falls."""
        number = next((i for i, group in enumerate(self.groups) if row.restart in group), None)
        if number is None:
            return
        for i, group in enumerate(self.groups[:number]):  # what was not seen does not run, or ran before
            self.groups[i] = {k: part for k, part in group.items() if part.first is not None}
            for part in self.groups[i].values():
                part.is_over = True
        self.groups[number][row.restart].add(row)
        parts = [part for group in self.groups for part in group.values()]
        total = sum(part.total for part in parts)
        self.fraction = max(self.fraction, sum(part.done for part in parts) / total if total else 1.0)


def _group(parts: dict[int, tuple[float, ...]], n_rows: int, n_threads: int) -> dict[int, Part]:
    """Parts that run at the same time as far as there are threads."""
    n_at_once = max(min(n_threads, len(parts)), 1)
    speed = n_at_once * (n_threads / n_at_once) ** THREADS_POWER
    return {k: Part(_scaled(n_rows / speed, costs)) for k, costs in parts.items()}


def _stage_costs(annealing: Any) -> tuple[float, ...]:
    """Costs of the stages of restart 0, even for stages of the user's own."""
    n_stages = len(stages(annealing, 1.0))
    return PAPER_COSTS if n_stages == len(PAPER) else (PAPER_COSTS[0], *(1.0 / n_stages for _ in range(n_stages)))


def _scaled(factor: float, costs: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(factor * cost for cost in costs)
