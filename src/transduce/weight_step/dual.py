"""Dual coordinate ascent: weight steps for losses with one dual vector per row, stopped by the duality gap.

    W = 1/λ Σ_i κ_i x_i (q_i − p_i)ᵀ P        q targets, p dual variables, both distributions over classes

holds at all times, but for the weights of the intercept, which may differ from what p implies (see `Intercept`). When
κ_i grows, p_i moves towards q_i so that W stays the same; when a label changes, its row restarts from p_i = q_i. (For
the squared large margin p is a vector t ≥ 0 with sum T, and T q takes the place of q.)
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from transduce.arrays import Array
from transduce.losses import SmoothMargin
from transduce.losses.blockwise import as_distributions
from transduce.losses.smooth import MarginLoss
from transduce.parallel import row_blocks
from transduce.problem import TrainingProblem
from transduce.weight_step._kernels import MARGIN, MAXENT, SQUARED, margin, maxent, squared
from transduce.weight_step._kernels.intercept import compliance_of_rows
from transduce.weight_step.base import Intercept, WeightReport, WeightState
from transduce.weight_step.batches import BatchSweeps, LossArguments
from transduce.weight_step.sweep_schedule import run_sweeps, sweep_order, sweep_until_converged, total_gap

BLOCK_ROWS = 2048
"""Rows whose exponentials are computed at once: numpy is faster than a compiled loop while they stay in the cache."""
NO_LABELS, NO_OVERLAP, NO_MARGINS = np.zeros(0, np.int64), np.zeros((0, 0)), np.zeros((0, 0))
NO_MARGINS.setflags(write=False)  # as the margins of the large margin are, so that kernels are compiled once
FEW_LIVE = 0.25
"""If at most this fraction of the rows have a weight, the scores of the others are computed only at the end."""


@dataclass(frozen=True)
class DualStep(ABC):
    """What all dual weight steps share."""

    max_sweeps: int

    @abstractmethod
    def loss_arguments(self, problem: TrainingProblem, state: WeightState) -> LossArguments:
        """What the kernel of a sweep needs to know of the loss."""

    @abstractmethod
    def _block_loss(self, problem: TrainingProblem, state: WeightState, rows: Array, scores: Array) -> float:
        """Return the loss of a block of rows at these scores, Σ κ_i ξ_i, and write their gaps."""

    def loss_and_gaps(self, problem: TrainingProblem, state: WeightState, rows: Array, scores: Array) -> float:
        """Return the loss of the rows at these scores, Σ κ_i ξ_i, and write their gaps."""
        blocks = row_blocks(rows.size, BLOCK_ROWS)
        losses = problem.design.threads.each(lambda b: self._block_loss(problem, state, rows[b], scores), blocks)
        return float(sum(losses))

    def sweeps(self, problem: TrainingProblem, state: WeightState) -> BatchSweeps:
        """Sweeps that update dual variables, and W with them."""
        return BatchSweeps(problem.design, problem.alpha, state, self.loss_arguments(problem, state))

    def _contribution(self, q: Array, p: Array) -> Array:
        """What rows contribute to λW for each class, before their weight κ."""
        return np.asarray(q - p)

    def _dual_at_zero(self, q: Array) -> Array:
        """The dual variables of rows that contribute nothing."""
        return q

    def answers(
        self, problem: TrainingProblem, state: WeightState, rows: Array, curvatures: Array, own: LossArguments
    ) -> tuple[Array, Array]:
        """Weighted sums over rows (K,) of what they contribute to λW, and of how far dual variables give way.

        `curvatures` (n,) are those of all rows, and `own` what the kernels know of the loss.
        """
        q = as_distributions(state.targets[rows], problem.n_classes, state.dual.dtype)
        slopes = np.zeros(problem.n_classes)
        compliance_of_rows(rows, own.loss, own.labels, curvatures, own.width, state.kappa, state.dual, slopes)
        return state.kappa[rows] @ self._contribution(q, state.dual[rows]), slopes

    def _rescale(self, labels: Array, p: Array, factor: Array) -> None:
        """Change p in place so that the contribution of each row is multiplied by its factor."""
        p *= factor[:, None]
        p[np.arange(len(p)), labels] += 1.0 - factor

    def start(self, problem: TrainingProblem, targets: Array) -> WeightState:
        """Return a state with weights 0."""
        n = problem.n_rows
        dual = self._dual_at_zero(as_distributions(targets, problem.n_classes, problem.design.dtype))
        dual = dual.astype(problem.design.dtype, copy=dual is targets)
        intercept = Intercept.at_zero(problem.design.taxonomy.n_nodes) if problem.design.constant else None
        W, gaps = problem.design.zeros(), np.full(n, np.inf)
        return WeightState(W, targets.copy(), np.zeros(n), dual, gaps, intercept=intercept)

    def retarget(self, problem: TrainingProblem, state: WeightState, targets: Array, kappa: Array) -> None:
        """Set new labels and row weights; W changes only by the rows whose label changed."""
        changed = np.flatnonzero(targets != state.targets)
        if changed.size:
            old = as_distributions(state.targets[changed], problem.n_classes)
            deltas = -self._contribution(old, state.dual[changed]) * (state.kappa[changed, None] / problem.alpha)
            problem.design.add_rows(changed, deltas, state.W)
            if state.intercept is not None:
                state.intercept.balance += problem.design.constant * problem.design.by_node(deltas.sum(axis=0))
            state.dual[changed] = self._dual_at_zero(as_distributions(targets[changed], problem.n_classes))
            state.gaps[changed] = np.inf
            state.scores = None
            state.targets = targets.copy()
        reweighted = np.flatnonzero(kappa != state.kappa)
        if reweighted.size:
            if np.any(kappa[reweighted] < state.kappa[reweighted]):
                raise ValueError("row weights of a dual weight step can only grow; start a new state instead.")
            rows = _as_slice(reweighted)
            p = state.dual[rows]
            self._rescale(state.targets[rows], p, (state.kappa[rows] / kappa[rows]).astype(p.dtype))
            state.dual[rows] = p
            state.gaps[rows] = np.inf
            state.kappa = kappa.copy()

    def solve(self, problem: TrainingProblem, state: WeightState, tol: float, rng: np.random.Generator) -> WeightReport:
        """Sweep until the duality gap is at most tol · J."""
        live = np.flatnonzero(state.kappa > 0)
        if live.size <= FEW_LIVE * problem.n_rows:
            return self._solve_few(problem, state, live, tol, rng)

        sweeps = self.sweeps(problem, state)

        def sweep(count: int) -> tuple[float, float]:
            order = sweep_order(state.gaps, live, rng, count)
            state.scores = None
            sweeps.sweep(order)
            return order.size / live.size, total_gap(state.gaps, live) + _intercept_gap(problem, state)

        check = partial(self._report, problem, state, live, tol)
        if state.scores is not None:  # only row weights changed, so the gap can be computed without a sweep
            report = check(0.0)
            if report.converged:
                return report
        expected = min(state.objective, float(state.kappa.sum()))
        return sweep_until_converged(self.max_sweeps, tol, expected, partial(run_sweeps, sweep), check)

    def _solve_few(
        self, problem: TrainingProblem, state: WeightState, live: Array, tol: float, rng: np.random.Generator
    ) -> WeightReport:
        """Solve the problem of the live rows, then compute the scores of all rows once."""
        design, scores = problem.design.select_rows(live), None if state.scores is None else state.scores[live]
        few = replace(problem, design=design, row_weights=problem.row_weights[live], forbidden=None)
        rows = (state.targets[live], state.kappa[live], state.dual[live], state.gaps[live])
        part = WeightState(state.W, *rows, state.objective, scores, state.sigma, state.intercept)
        state.scores = None
        report = self.solve(few, part, tol, rng)
        state.dual[live], state.gaps[live] = part.dual, part.gaps
        state.objective, state.sigma = part.objective, part.sigma
        state.scores = problem.design.scores(state.W)
        return replace(report, scores=state.scores)

    def _report(
        self, problem: TrainingProblem, state: WeightState, live: Array, tol: float, n_passes: float
    ) -> WeightReport:
        """Compute J and the gaps of all rows at W, and store them in the state."""
        if state.scores is None:
            state.scores = problem.design.scores(state.W)
        loss = self.loss_and_gaps(problem, state, live, state.scores)
        state.objective = problem.regularizer(state.W) + loss
        gap = float(state.gaps[live].sum()) + _intercept_gap(problem, state)
        return WeightReport(state.objective, state.scores, gap, n_passes, gap <= tol * state.objective)


class DualMarginStep(DualStep):
    """What the dual weight steps of margin losses share."""

    _kernels: ClassVar[Any]

    def _block_loss(self, problem: TrainingProblem, state: WeightState, rows: Array, scores: Array) -> float:
        targets, margins = state.targets, _margins(problem)
        return float(self._kernels.loss_and_gaps(rows, targets, state.kappa, margins, scores, state.dual, state.gaps))


class DualLargeMargin(DualMarginStep):
    """The weight step of the large margin loss, for hard labels."""

    _kernels: ClassVar[Any] = margin

    def loss_arguments(self, problem: TrainingProblem, state: WeightState) -> LossArguments:
        """What the kernel of a sweep needs to know of the loss."""
        none = np.zeros((0, 0), state.W.dtype)
        return LossArguments(MARGIN, state.targets, _margins(problem), none, 1.0, problem.design.overlap, 1.0)


class DualSquaredLargeMargin(DualMarginStep):
    """The weight step of the squared large margin loss, for hard labels; its dual is described with the kernel."""

    _kernels: ClassVar[Any] = squared

    def loss_arguments(self, problem: TrainingProblem, state: WeightState) -> LossArguments:
        """What the kernel of a sweep needs to know of the loss."""
        none, bound = np.zeros((0, 0), state.W.dtype), problem.design.largest_overlap
        return LossArguments(SQUARED, state.targets, _margins(problem), none, 1.0, NO_OVERLAP, bound)

    def _contribution(self, q: Array, p: Array) -> Array:
        return np.asarray(q * p.sum(axis=1, keepdims=True) - p)

    def _dual_at_zero(self, q: Array) -> Array:
        return np.zeros_like(q)

    def _rescale(self, labels: Array, p: Array, factor: Array) -> None:
        p *= factor[:, None]


class DualMaxEnt(DualStep):
    """The weight step of maxent and the smooth margin, for hard or soft labels.

    When soft labels change, p is kept, because it is close to the posterior of the model, and W is computed from both.
    """

    def retarget(self, problem: TrainingProblem, state: WeightState, targets: Array, kappa: Array) -> None:
        """Set new targets and row weights; rows that had no weight before contribute nothing at first."""
        if targets.ndim == 1 and state.targets.ndim == 1:
            super().retarget(problem, state, targets, kappa)
            return
        self.set_soft_targets(problem, state, targets, kappa)
        b = None if state.intercept is None else state.W[-1].copy()
        problem.design.pullback(self.contributions(problem, state), state.W)
        if state.intercept is not None:
            state.intercept.balance[:], state.W[-1] = state.W[-1], b

    def set_soft_targets(self, problem: TrainingProblem, state: WeightState, targets: Array, kappa: Array) -> None:
        """Set new targets and row weights without computing W."""
        new = (state.kappa == 0) & (kappa > 0)
        state.dual[new] = as_distributions(targets[new], problem.n_classes)
        state.targets, state.kappa, state.scores = targets.copy(), kappa.copy(), None
        state.gaps[:] = np.inf

    def contributions(self, problem: TrainingProblem, state: WeightState) -> Array:
        """R (n, K) such that W = Xᵀ R P."""
        R = self._contribution(as_distributions(state.targets, problem.n_classes), state.dual)
        R *= (state.kappa / problem.alpha)[:, None]
        return R.astype(state.W.dtype, copy=False)

    def loss_arguments(self, problem: TrainingProblem, state: WeightState) -> LossArguments:
        """What the kernel of a sweep needs to know of the loss."""
        offsets, bound = _offsets(problem, state, slice(None)), problem.design.largest_overlap
        return LossArguments(MAXENT, NO_LABELS, NO_MARGINS, offsets, _width(problem), NO_OVERLAP, bound)

    def _block_loss(self, problem: TrainingProblem, state: WeightState, rows: Array, scores: Array) -> float:
        width, block = _width(problem), _as_slice(rows)
        S, p, kappa, targets = scores[block], state.dual[block], state.kappa[block], state.targets[block]
        own = S[np.arange(len(S)), targets] if targets.ndim == 1 else np.einsum("ik,ik->i", targets, S)
        offsets = _offsets(problem, state, block)
        z = (S + offsets) / S.dtype.type(width) if offsets.size else S
        top = z.max(axis=1)
        weights = z - top[:, None]
        np.exp(weights, out=weights)
        log_partition = top + np.log(weights.sum(axis=1))
        log_ratio = np.maximum(p, maxent.TINY)
        np.log(log_ratio, out=log_ratio)
        log_ratio -= z
        divergence = log_partition + np.einsum("ik,ik->i", p, log_ratio)
        state.gaps[block] = kappa * width * np.maximum(divergence, 0.0)
        return float(np.dot(kappa, width * log_partition - own))


def _intercept_gap(problem: TrainingProblem, state: WeightState) -> float:
    """The part of the duality gap that the weights of the constant leave."""
    return 0.0 if state.intercept is None else 0.5 * problem.alpha * state.intercept.squared_residual(state.W)


def _margins(problem: TrainingProblem) -> Array:
    assert isinstance(problem.loss, MarginLoss)
    return problem.loss.margin_matrix(problem.n_classes)


def _width(problem: TrainingProblem) -> float:
    return problem.loss.width if isinstance(problem.loss, SmoothMargin) else 1.0


def _offsets(problem: TrainingProblem, state: WeightState, rows: Array | slice) -> Array:
    """The margins Δ that are added to the scores of these rows; empty for maxent."""
    if not isinstance(problem.loss, SmoothMargin):
        return np.zeros((0, 0), state.W.dtype)
    return problem.loss.margin_offsets(state.targets[rows], problem.n_classes).astype(state.W.dtype, copy=False)


def _as_slice(rows: Array) -> Array | slice:
    """Return contiguous rows as a slice, which avoids copies."""
    contiguous = rows[-1] - rows[0] + 1 == rows.size
    return slice(int(rows[0]), int(rows[-1]) + 1) if contiguous else rows
