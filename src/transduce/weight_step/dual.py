"""Dual coordinate ascent: the weight step for losses whose dual is one vector a row, stopped by the duality gap.

    W = 1/λ Σ_i κ_i x_i (q_i − p_i)ᵀ P        q the targets, p the dual distributions

That equation holds at all times, up to rounding. When κ grows p moves towards q so that W stays; when a label changes
its row starts again from p = q, and W gives up what the row had put in. Rows near their best are passed over: most
sweeps visit only rows whose gap is above twice the mean. (For the squared margin p is a vector t of any sum T, and T q
takes the place of q.)
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from transduce.kernels.rows import add_rows
from transduce.losses import LargeMargin, SmoothMargin, SquaredLargeMargin
from transduce.problem import TrainingProblem
from transduce.weight_step._kernels import margin, maxent, squared
from transduce.weight_step.base import WeightReport, WeightState

Array = NDArray[Any]

EAGER = 0.7
"""J is computed once the rows' own estimates of the gap add up to this share of the tolerance."""
LITTLE, SURE = 0.1, 0.4
"""A sweep of this share of the rows costs less than J; after it, gaps should be this much smaller before J is tried."""
SPARED = 4
"""So many times in a step J is computed in place of a sweep of all rows; more would say that it makes slow progress."""
RUN = 16
"""Rows that lie side by side are visited in runs of this length, which memory likes; the runs come in random order."""
BLOCK = 2048
"""Rows whose exponentials are taken at once: numpy's are quicker than a compiled loop's, while they stay in cache."""
FEW = 0.2
"""Rows that hold less than this share of all gaps are not worth a sweep of their own: all rows are visited then."""
FEW_LIVE = 0.25
"""Where no more than this share of the rows count, the others are left out until the weights are found."""
WHOLE_EVERY = 8
"""One sweep in so many visits all rows, where their gaps have not been computed meanwhile, or are instead of it."""
LOOK_EVERY = 16
"""J, and the gaps of all rows, are computed after so many sweeps in any case."""


@dataclass(frozen=True)
class Dual(ABC):
    """What all dual weight steps have in common."""

    max_sweeps: int

    @abstractmethod
    def sweep(self, problem: TrainingProblem, state: WeightState, order: Array) -> None:
        """Visit the rows in this order."""

    @abstractmethod
    def measure(self, problem: TrainingProblem, state: WeightState, rows: Array, scores: Array) -> float:
        """Loss of the rows at these scores; writes their gaps."""

    def _pull(self, q: Array, p: Array) -> Array:
        """What rows put into W, for each class, before their weight."""
        return np.asarray(q - p)

    def _at_rest(self, q: Array) -> Array:
        """The p of rows that put nothing into W."""
        return q

    def _dilute(self, targets: Array, p: Array, share: Array) -> None:
        """Change p in place so that the pull of rows is a share of what it was."""
        p *= share[:, None]
        if targets.ndim == 2:
            p += (1.0 - share)[:, None] * targets
        else:
            p[np.arange(len(p)), targets] += 1.0 - share

    def start(self, problem: TrainingProblem, targets: Array) -> WeightState:
        """Weights 0, which every p = q stands for."""
        n = problem.n_rows
        posterior = self._at_rest(as_posterior(targets, problem.n_classes, problem.design.dtype))
        posterior = posterior.astype(problem.design.dtype, copy=posterior is targets)
        return WeightState(problem.design.zeros(), targets.copy(), np.zeros(n), posterior, np.full(n, np.inf))

    def retarget(self, problem: TrainingProblem, state: WeightState, targets: Array, kappa: Array) -> None:
        """Hand the state new targets and row weights; W changes only by the rows whose target has changed."""
        changed = np.flatnonzero(_differ(targets, state.targets))
        if changed.size:
            old = as_posterior(state.targets[changed], problem.n_classes)
            steps = -self._pull(old, state.posterior[changed]) * (state.kappa[changed, None] / problem.alpha)
            add_rows(changed, steps.astype(state.W.dtype), *problem.design.rows, *problem.design.tree, state.W)
            state.posterior[changed] = self._at_rest(as_posterior(targets[changed], problem.n_classes))
            state.gaps[changed] = np.inf
            state.scores = None
            state.targets = targets.copy()
        moved = np.flatnonzero(kappa != state.kappa)
        if moved.size:
            if np.any(kappa[moved] < state.kappa[moved]):
                raise ValueError("row weights of a dual weight step can only grow; start a new state instead.")
            rows = _as_slice(moved)
            p = state.posterior[rows]
            self._dilute(state.targets[rows], p, (state.kappa[rows] / kappa[rows]).astype(p.dtype))
            state.posterior[rows] = p
            state.gaps[rows] = np.inf
            state.kappa = kappa.copy()

    def solve(self, problem: TrainingProblem, state: WeightState, tol: float, rng: np.random.Generator) -> WeightReport:
        """Sweep until the gap is at most tol · J."""
        live = np.flatnonzero(state.kappa > 0)
        if live.size <= FEW_LIVE * problem.n_rows:
            return self._solve_few(problem, state, live, tol, rng)

        def report(n_sweeps: float) -> WeightReport:
            return self._report(problem, state, live, n_sweeps, tol)

        def sweep(count: int) -> tuple[float, float]:
            order = visiting_order(state.gaps, live, rng, count)
            state.scores = None
            self.sweep(problem, state, order)
            return order.size / live.size, float(state.gaps[live].sum())

        if state.scores is not None:  # only row weights have changed: what that means is known without a sweep
            known = report(0.0)
            if known.converged:
                return known
        return ascend(
            self.max_sweeps, tol, min(state.objective, float(state.kappa.sum())), partial(tour, sweep), report
        )

    def _solve_few(
        self, problem: TrainingProblem, state: WeightState, live: Array, tol: float, rng: np.random.Generator
    ) -> WeightReport:
        """The same, with scores of rows that do not count computed but once, at the end."""
        few = replace(
            problem, design=problem.design.select_rows(live), row_weights=problem.row_weights[live], forbidden=None
        )
        mine = WeightState(
            state.W, state.targets[live], state.kappa[live], state.posterior[live], state.gaps[live], state.objective,
            None if state.scores is None else state.scores[live],
        )  # fmt: skip
        state.scores = None
        report = self.solve(few, mine, tol, rng)
        state.posterior[live], state.gaps[live], state.objective = mine.posterior, mine.gaps, mine.objective
        state.scores = problem.design.scores(state.W)
        return replace(report, scores=state.scores)

    def _report(
        self, problem: TrainingProblem, state: WeightState, live: Array, n_sweeps: float, tol: float
    ) -> WeightReport:
        """J at W, with the gaps of all rows at this one W, which the state keeps."""
        if state.scores is None:
            state.scores = problem.design.scores(state.W)
        loss = self.measure(problem, state, live, state.scores)
        state.objective = 0.5 * problem.alpha * float(np.vdot(state.W, state.W)) + loss
        gap = float(state.gaps[live].sum())
        return WeightReport(state.objective, state.scores, gap, n_sweeps, gap <= tol * state.objective)


@dataclass(frozen=True)
class DualLargeMargin(Dual):
    """The weight step of the large margin loss, flat or in a tree, for hard labels."""

    def sweep(self, problem: TrainingProblem, state: WeightState, order: Array) -> None:
        """Visit the rows in this order."""
        design = problem.design
        margins, overlap = _margins(problem), design.overlap
        margin.sweep(
            order, state.targets, state.kappa, design.squared_norms, problem.alpha, margins, overlap,
            *design.rows, *design.tree, state.W, state.posterior, state.gaps,
        )  # fmt: skip

    def measure(self, problem: TrainingProblem, state: WeightState, rows: Array, scores: Array) -> float:
        """Loss of the rows at these scores; writes their gaps."""
        return float(
            margin.measure(rows, state.targets, state.kappa, _margins(problem), scores, state.posterior, state.gaps)
        )


@dataclass(frozen=True)
class DualSquaredLargeMargin(Dual):
    """The weight step of the squared large margin loss; p holds t, which need not sum to 1 (see the kernel)."""

    def _pull(self, q: Array, p: Array) -> Array:
        return np.asarray(q * p.sum(axis=1, keepdims=True) - p)

    def _at_rest(self, q: Array) -> Array:
        return np.zeros_like(q)

    def _dilute(self, targets: Array, p: Array, share: Array) -> None:
        p *= share[:, None]

    def sweep(self, problem: TrainingProblem, state: WeightState, order: Array) -> None:
        """Visit the rows in this order."""
        design = problem.design
        squared.sweep(
            order, state.targets, state.kappa, design.squared_norms, problem.alpha, _margins(problem),
            design.largest_overlap, *design.rows, *design.tree, state.W, state.posterior, state.gaps,
        )  # fmt: skip

    def measure(self, problem: TrainingProblem, state: WeightState, rows: Array, scores: Array) -> float:
        """Loss of the rows at these scores; writes their gaps."""
        return float(
            squared.measure(rows, state.targets, state.kappa, _margins(problem), scores, state.posterior, state.gaps)
        )


@dataclass(frozen=True)
class DualMaxEnt(Dual):
    """The weight step of maxent and the smooth margin, flat or in a tree, for hard or soft labels.

    When soft labels change p stays, for p is the model's own posterior, which hardly does; W is built anew from both.
    """

    def retarget(self, problem: TrainingProblem, state: WeightState, targets: Array, kappa: Array) -> None:
        """Hand the state new targets and row weights; rows that had no weight before begin by pulling nothing."""
        if targets.ndim == 1 and state.targets.ndim == 1:
            super().retarget(problem, state, targets, kappa)
            return
        self.soften(problem, state, targets, kappa)
        problem.design.pullback(self.pull_of_all(problem, state), state.W)

    def soften(self, problem: TrainingProblem, state: WeightState, targets: Array, kappa: Array) -> None:
        """Take note of new targets and row weights, without their weights W."""
        new = (state.kappa == 0) & (kappa > 0)
        state.posterior[new] = as_posterior(targets[new], problem.n_classes)
        state.targets, state.kappa, state.scores = targets.copy(), kappa.copy(), None
        state.gaps[:] = np.inf

    def pull_of_all(self, problem: TrainingProblem, state: WeightState) -> Array:
        """What each row puts into W, (n, K)."""
        pull = self._pull(as_posterior(state.targets, problem.n_classes), state.posterior)
        pull *= (state.kappa / problem.alpha)[:, None]
        return pull.astype(state.W.dtype, copy=False)

    def sweep(self, problem: TrainingProblem, state: WeightState, order: Array) -> None:
        """Visit the rows in this order."""
        design = problem.design
        maxent.sweep(
            order, state.kappa, design.squared_norms, problem.alpha, design.largest_overlap, _width(problem),
            _lifts(problem, state, slice(None)), *design.rows, *design.tree, state.W, state.posterior, state.gaps,
        )  # fmt: skip

    def measure(self, problem: TrainingProblem, state: WeightState, rows: Array, scores: Array) -> float:
        """Loss of the rows at these scores; writes their gaps."""
        loss, width = 0.0, _width(problem)
        for begin in range(0, rows.size, BLOCK):
            block = _as_slice(rows[begin : begin + BLOCK])
            S, p, kappa, targets = scores[block], state.posterior[block], state.kappa[block], state.targets[block]
            own = S[np.arange(len(S)), targets] if targets.ndim == 1 else np.einsum("ik,ik->i", targets, S)
            lifts = _lifts(problem, state, block)
            z = (S + lifts) / S.dtype.type(width) if lifts.size else S
            top = z.max(axis=1)
            weights = z - top[:, None]
            np.exp(weights, out=weights)
            normaliser = top + np.log(weights.sum(axis=1))
            logs = np.maximum(p, maxent.TINY)
            np.log(logs, out=logs)
            logs -= z
            divergence = normaliser + np.einsum("ik,ik->i", p, logs)
            state.gaps[block] = kappa * width * np.maximum(divergence, 0.0)
            loss += float(np.dot(kappa, width * normaliser - own))
        return loss


class Measured(Protocol):
    """What `ascend` must know of a report."""

    @property
    def objective(self) -> float:
        """J."""
        ...

    @property
    def converged(self) -> bool:
        """Whether the gap is met."""
        ...


Report = TypeVar("Report", bound=Measured)


class Tour(NamedTuple):
    """Sweeps one after the other: how many, how often that visits all rows, and what gaps last seen add up to."""

    n_sweeps: int
    n_visits: float
    seen: float


class Enough(NamedTuple):
    """How small the gaps that rows have seen should be before J is computed: after a sweep of many rows, or of few.

    If J `spares` a sweep, it is computed, after few rows, where a sweep of all would be next.
    """

    many: float
    few: float
    spares: bool

    @classmethod
    def create(cls, tolerated: float, seen: float = np.inf, n_looks: int = 0) -> "Enough":
        """For a gap that is tolerated, where J was computed so many times in vain, the last when so much was seen."""
        return cls(min(EAGER * tolerated, 0.5 * seen), min(SURE * EAGER * tolerated, 0.5 * seen), n_looks < SPARED)

    def after(self, count: int, share: float, seen: float) -> bool:
        """Whether J is to be computed after sweep `count`, of a share of the rows.

        Few rows are visited in less time than J takes, so that they can be visited once more to make sure. J takes less
        time than a visit to all, which would be next after this many sweeps.
        """
        if share <= LITTLE:
            return seen <= self.few or (self.spares and count % WHOLE_EVERY == WHOLE_EVERY - 1)
        return seen <= self.many


def tour(sweep: Callable[[int], tuple[float, float]], enough: Enough, most: int) -> Tour:
    """Sweep at most so many times; `sweep(count)` answers the share of the rows it visits, and what gaps add up to."""
    n_visits = 0.0
    for count in range(1, most + 1):
        share, seen = sweep(count)
        n_visits += share
        if enough.after(count, share, seen):
            break
    return Tour(count, n_visits, seen)


def ascend(
    max_sweeps: int,
    tol: float,
    objective: float,
    go: Callable[[Enough, int], Tour],
    report: Callable[[float], Report],
) -> Report:
    """Sweep until a report is converged, or sweeps, of which there is one at least, are spent.

    J is computed when the rows' own gaps promise it. `go(enough, most)` sweeps until gaps are small enough, at most so
    many times. `report(n_visits)` computes them and J. `objective` is about what J will be.
    """
    n_visits, n_looks, left, enough = 0.0, 0, max_sweeps, Enough.create(tol * objective)
    while True:
        done = go(enough, min(LOOK_EVERY, left))
        n_visits, left = n_visits + done.n_visits, left - done.n_sweeps
        answer, n_looks = report(n_visits), n_looks + 1
        if answer.converged or left <= 0:
            return answer
        enough = Enough.create(tol * answer.objective, done.seen, n_looks)


def _width(problem: TrainingProblem) -> float:
    """γ of the loss."""
    return problem.loss.width if isinstance(problem.loss, SmoothMargin) else 1.0


def _lifts(problem: TrainingProblem, state: WeightState, rows: Array | slice) -> Array:
    """What the margins of the targets add to scores of these rows; empty without margins."""
    if not isinstance(problem.loss, SmoothMargin):
        return np.zeros((0, 0), state.W.dtype)
    return problem.loss.lifts(state.targets[rows], problem.n_classes).astype(state.W.dtype, copy=False)


def as_posterior(targets: Array, n_classes: int, dtype: Any = np.float64) -> Array:
    """Targets as distributions (n, K); labels become such of this type."""
    if targets.ndim == 2:
        return targets
    posterior = np.zeros((targets.size, n_classes), dtype)
    posterior[np.arange(targets.size), targets] = 1.0
    return posterior


def _differ(one: Array, other: Array) -> Array:
    different = one != other
    return np.asarray(different.any(axis=1) if different.ndim == 2 else different)


def _as_slice(rows: Array) -> Array | slice:
    """Ascending rows as a slice where they are one, which spares copies."""
    together = rows[-1] - rows[0] + 1 == rows.size
    return slice(int(rows[0]), int(rows[-1]) + 1) if together else rows


def visiting_order(gaps: Array, live: Array, rng: np.random.Generator, count: int) -> Array:
    """All rows, or those whose gap is above twice the mean or not known; short runs of them in random order.

    This is sweep `count` since gaps were computed.
    """
    if count % WHOLE_EVERY:
        now = gaps[live]
        known = now < np.inf
        if known.mean() > 0.5:
            total = now[known].sum()
            large = now > 2.0 * total / known.sum()
            live = live[large] if now[large].sum() > FEW * total else live
    starts = RUN * rng.permutation(-(-live.size // RUN))
    places = (starts[:, None] + np.arange(RUN)).ravel()
    return np.asarray(live[places[places < live.size]])


def _margins(problem: TrainingProblem) -> Array:
    loss = problem.loss
    assert isinstance(loss, (LargeMargin, SquaredLargeMargin))
    if loss.margins is None:
        return _unit_margins(problem.n_classes)
    return LargeMargin(loss.margins).margin_matrix(problem.n_classes)


@lru_cache(maxsize=2)
def _unit_margins(n_classes: int) -> Array:
    return LargeMargin().margin_matrix(n_classes)
