"""Accelerated dual ascent: the weight step of the built-in losses on a device, stopped by the duality gap.

    W = 1/λ Σ_i κ_i x_i (q_i − p_i)ᵀ P        q targets, p dual variables, both distributions over classes

An iteration takes two products, Xᵀ R for W and X W for the scores, and gives every row the dual variables that are best
while rows hang together at most as much as `DeviceRows.coupling` says, times a scale. They start from the last ones
with momentum (Beck and Teboulle 2009), which begins again where it leads astray (O'Donoghue and Candès 2015). The scale
follows the curvature along the last step, λ ‖W(z)‖² / Σ_i κ_i c_i ‖z_i‖² for a change z: it is far below 1, since rows
of different classes pull in different directions. Where it was too small for a step, momentum begins again, too.

The constant of the intercept is the same for all rows and would make steps a hundred times as short. So its weights b
are free: each iteration moves them towards their optimum, given that rows answer, and the gap includes what they lack.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from operator import add

import numpy as np

from transduce.engines.base import WeightSummary
from transduce.engines.device.arrays import BLOCK_CELLS, DeviceArray, Replay, to_host
from transduce.engines.device.losses import TINY, DeviceLoss, DualStep, device_loss
from transduce.engines.device.rows import DeviceRows
from transduce.losses import Loss
from transduce.parallel import row_blocks

FLATTEST = 1e-2
"""Least curvature of a row, as a fraction of the mean."""
SCALE_FALL, SCALE_MARGIN = 0.95, 1.5
"""Factor by which the scale of the curvature falls at most in an iteration, and its margin over the last one seen."""
ROUNDING = 100.0
"""Changes of W, as it was when last measured, are rounding errors below so many units in the last place: they say
nothing about the curvature."""
CHECK_EVERY = 4
"""Iterations between two computations of the gap, for which the device must finish its work."""
STALLED, PROGRESS = 200, 0.9
"""The precision of the numbers is reached when the gap has not fallen by this factor in so many iterations."""


@dataclass(eq=False)
class DeviceWeights:
    """Weights and what belongs to them, on the device and in its order of rows; see `weight_step.base.WeightState`.

    All arrays stay in their place and change in place, so that iterations can be replayed.

    W (d, M)          the last row is b, if there is a constant
    now (2, n, K)     dual variables, and scores of the features alone at W
    last (2, n, K)    the same before the last iteration
    rates (n,)        κ_i / λ
    curvature (n,)    of the dual, as far as rows hang together at most
    scale (1,)        what the curvature is multiplied by
    momentum (1,)     1 without momentum
    rounding (1,)     ‖W(z)‖² of changes z that are rounding errors
    sums (3,)         loss, gap and ‖W‖² at the last computation
    is_current        whether W and scores are those of the dual variables
    given_kappa       the array that row weights were set from
    """

    W: DeviceArray
    targets: DeviceArray
    kappa: DeviceArray
    now: DeviceArray
    last: DeviceArray
    rates: DeviceArray
    curvature: DeviceArray
    scale: DeviceArray
    momentum: DeviceArray
    rounding: DeviceArray
    sums: DeviceArray
    objective: float = np.inf
    is_current: bool = False
    given_kappa: DeviceArray = None
    refreshing: Replay = field(default_factory=Replay)
    iteration: Replay = field(default_factory=Replay)
    measurement: Replay = field(default_factory=Replay)

    @property
    def dual(self) -> DeviceArray:
        """Dual variables (n, K)."""
        return self.now[0, :, :]

    @property
    def scores(self) -> DeviceArray:
        """Scores (n, K) of the features alone, at W."""
        return self.now[1, :, :]


@dataclass(frozen=True, eq=False)
class BatchDualStep:
    """The weight step of a loss over all rows of a problem with this alpha."""

    rows: DeviceRows
    loss: DeviceLoss
    alpha: float
    max_iterations: int

    @classmethod
    def create(cls, rows: DeviceRows, loss: Loss, alpha: float, max_iterations: int) -> "BatchDualStep":
        """The weight step of a built-in loss."""
        return cls(rows, device_loss(loss, rows.taxonomy.n_classes, rows.arrays), alpha, max_iterations)

    def start(self, targets: DeviceArray) -> DeviceWeights:
        """Return a state with weights 0 and row weights 0."""
        xp, arrays = self.rows.arrays.xp, self.rows.arrays
        now = xp.stack((self.loss.dual_at_zero(targets), xp.zeros_like(targets)))
        kappa, rates, curvature, rounding = (arrays.zeros(size) for size in (*3 * (self.rows.n_rows,), 1))
        return DeviceWeights(
            self.rows.zeros(), targets + 0.0, kappa, now, xp.zeros_like(now), rates, curvature, rounding + 1.0,
            rounding + 1.0, rounding, arrays.copied(np.zeros(3)),
        )  # fmt: skip

    def set_kappa(self, state: DeviceWeights, kappa: DeviceArray) -> None:
        """Set row weights (n,) and what follows from them."""
        state.given_kappa, state.kappa[:], state.rates[:] = kappa, kappa, kappa / self.alpha
        coupling = self.rows.coupling(state.rates)
        state.curvature[:] = self.rows.arrays.xp.maximum(coupling, FLATTEST * self.rows.arrays.xp.mean(coupling))

    def retarget(self, state: DeviceWeights, targets: DeviceArray, kappa: DeviceArray, soft: bool = False) -> None:
        """Set new targets (n, K) and row weights (n,).

        Rows whose hard label changed start again; others keep their part of W, also where they gain weight. Soft labels
        change in all rows: dual variables stay, but for rows that had no weight, and W is computed from both.
        """
        xp, is_new = self.rows.arrays.xp, kappa is not state.given_kappa
        restart = None
        if not soft:
            restart = xp.any(targets != state.targets, axis=1)
            if is_new:
                factor = xp.where(kappa > 0.0, state.kappa / xp.clip(kappa, min=TINY), 1.0)
                state.dual[:, :] = self.loss.rescaled(state.targets, state.dual, factor)
        elif is_new:
            restart = (state.kappa == 0.0) & (kappa > 0.0)
        if is_new:
            self.set_kappa(state, kappa)
            state.momentum[:] = 1.0
        if soft or bool(xp.any(restart)):
            state.momentum[:], state.is_current = 1.0, False
            if restart is not None:
                state.dual[:, :] = xp.where(restart[:, None], self.loss.dual_at_zero(targets), state.dual)
            if targets is not state.targets:
                state.targets[:, :] = targets

    def solve(self, state: DeviceWeights, tol: float, limit: float = np.inf) -> WeightSummary:
        """Iterate until the duality gap is at most tol · J or stops falling, or the least J is above a limit; with tol
        0, as often as allowed.
        """
        if state.is_current:  # only row weights changed, so the gap can be computed without an iteration
            report = self._report(state, tol, 0)
            if report.converged:
                return report
        else:
            state.refreshing(lambda: self.refresh(state), state.targets)
            state.is_current = True
        n_done, best, best_at = 0, np.inf, 0
        while True:
            n_more = min(CHECK_EVERY, self.max_iterations - n_done) if tol else self.max_iterations
            for _ in range(n_more):
                state.iteration(lambda: self._iterate(state), state.targets)
            n_done += n_more
            report = self._report(state, tol, n_done)
            if report.gap < PROGRESS * best:
                best, best_at = report.gap, n_done
            is_above = report.objective - report.gap > limit
            if report.converged or is_above or n_done >= min(self.max_iterations, best_at + STALLED):
                return report

    def all_scores(self, state: DeviceWeights) -> DeviceArray:
        """Scores (n, K) at the weights of the state."""
        return state.scores + self.rows.bias(state.W) if self.rows.constant else state.scores + 0.0

    def _spans(self) -> list[slice]:
        return list(row_blocks(self.rows.n_rows, max(BLOCK_CELLS // self.loss.n_classes, 1)))

    def _iterate(self, state: DeviceWeights) -> None:
        """Move the dual variables, and W and the scores with them, in place."""
        xp, arrays, m = self.rows.arrays.xp, self.rows.arrays, state.momentum
        after = 0.5 + xp.hypot(m, arrays.number(0.5))
        start = arrays.between(state.now, state.last, (1.0 - m) / after)  # with momentum
        state.last[...] = state.now
        step_of, change = self._dual_steps(state, start), None
        if self.rows.constant:
            change = self._move_bias(state, step_of)
        for span in self._spans():
            step = step_of(span)
            state.dual[span, :] = step.dual if change is None else step.moved(change)
        self.refresh(state)
        self._set_pace(state, start, after)

    def _set_pace(self, state: DeviceWeights, start: DeviceArray, after: DeviceArray) -> None:
        """Set scale and momentum by the last iteration, given dual variables and scores that it started from."""
        xp, arrays, scale = self.rows.arrays.xp, self.rows.arrays, state.scale
        uphill, length, less_square = self._added_up(lambda span: self._move_of(state, start, span))
        square = -SCALE_MARGIN * less_square
        is_rounding = square <= state.rounding
        seen = xp.where(is_rounding, scale, square / xp.where(is_rounding, arrays.number(1.0), length))
        keeps = (uphill <= 0.0) & (seen <= SCALE_MARGIN * scale)
        state.momentum[:] = xp.where(keeps, after, arrays.number(1.0))
        scale[:] = xp.clip(seen, min=SCALE_FALL * scale, max=arrays.number(1.0))

    def _move_of(self, state: DeviceWeights, start: DeviceArray, span: slice) -> tuple[DeviceArray, ...]:
        """How far the dual variables of some rows moved uphill against the momentum, how far at all, and −‖W(z)‖² of
        that change z: sums over classes and rows, the first two with the weights that the curvature gives to the rows.
        """
        now, dot = state.now[:, span, :], self.rows.arrays.dot
        back = start[:, span, :] - now
        fall = back[0, :, :]
        gain = self.loss.change(state.targets[span, :], fall)
        rates, curvature = state.rates[span][:, None], state.curvature[span][:, None]
        pull = gain * rates
        weighted = pull * curvature
        uphill = weighted if gain is fall else fall * rates * curvature
        return dot(uphill, now[0, :, :] - state.last[0, span, :]), dot(weighted, gain), dot(pull, back[1, :, :])

    def _added_up(self, work: Callable[[slice], tuple[DeviceArray, ...]]) -> list[DeviceArray]:
        """Sums of the values that some work returns for blocks of rows."""
        return [reduce(add, parts) for parts in zip(*map(work, self._spans()), strict=True)]

    def _dual_steps(self, state: DeviceWeights, start: DeviceArray) -> Callable[[slice], DualStep]:
        """The dual step of some rows at the present b; it is kept if these are all, and else found again."""
        bias = self.rows.bias(state.W) if self.rows.constant else None

        def step_of(span: slice) -> DualStep:
            S = start[1, span, :] if bias is None else start[1, span, :] + bias
            curvature = state.scale * state.curvature[span]
            return self.loss.dual_step(S, state.targets[span, :], start[0, span, :], curvature)

        if len(self._spans()) > 1:
            return step_of
        step = step_of(slice(None))
        return lambda span: step

    def _move_bias(self, state: DeviceWeights, step_of: Callable[[slice], DualStep]) -> DeviceArray:
        """A step of Newton's method in b for the loss of rows that answer by their dual step; the curvature, without
        its negative part, is the sum over rows of how far each dual variable gives way. Return by how much the scores
        of all rows change (1, K).
        """
        P, times, b = self.rows.paths, self.rows.times_constant, state.W[-1:, :]

        def answers(span: slice) -> tuple[DeviceArray, DeviceArray]:
            step, rates = step_of(span), state.rates[None, span]
            return rates @ self.loss.contribution(state.targets[span, :], step.dual), rates @ step.compliance

        sums, slopes = self._added_up(answers)
        if P is not None:  # P diag(slopes) Pᵀ is at most its row sums, as it has no negative entries
            sums, slopes = sums @ P, (slopes * self.rows.arrays.xp.sum(P, axis=1)[None, :]) @ P
        step = (times(sums) - b) / (1.0 + times(times(slopes)))
        b += step
        return times(step) if P is None else times(step) @ P.T

    def refresh(self, state: DeviceWeights) -> None:
        """Compute W and the scores from the dual variables; b stays."""
        R = self.loss.contribution(state.targets, state.dual)
        R *= state.rates[:, None]
        self.rows.write_pullback(R, state.W)
        self.rows.write_scores(state.W, state.scores)
        state.is_current = True

    def _measure(self, state: DeviceWeights) -> None:
        """Compute loss, gap and ‖W‖²."""
        xp, total = self.rows.arrays.xp, self.rows.arrays.total
        bias = self.rows.bias(state.W) if self.rows.constant else None

        def measure(span: slice) -> tuple[DeviceArray, ...]:
            S, q, p, kappa = (x[span, ...] for x in (state.scores, state.targets, state.dual, state.kappa))
            found = self.loss.values_and_gaps(S if bias is None else S + bias, q, p)
            sums = tuple(total(kappa * values) for values in found)
            return sums if bias is None else (*sums, state.rates[None, span] @ self.loss.contribution(q, p))

        loss, gap, *balance = self._added_up(measure)
        if balance:  # b equals c/λ Σ_i κ_i (q_i − p_i)ᵀ P at the optimum
            best = balance[0] if self.rows.paths is None else balance[0] @ self.rows.paths
            gap = gap + 0.5 * self.alpha * total((state.W[-1:, :] - self.rows.times_constant(best)) ** 2)
        state.sums[:] = xp.stack((loss, gap, total(state.W**2)))
        self.set_rounding(state)

    def set_rounding(self, state: DeviceWeights) -> None:
        """Set which changes of W are rounding errors."""
        features = state.W[: self.rows.X.shape[1], :]
        level = SCALE_MARGIN * (ROUNDING * self.rows.arrays.xp.finfo(features.dtype).eps) ** 2
        state.rounding[:] = level * self.rows.arrays.dot(features, features)

    def _report(self, state: DeviceWeights, tol: float, n_iterations: int) -> WeightSummary:
        """Compute J and the gap at W, and store J in the state."""
        state.measurement(lambda: self._measure(state), state.targets)
        loss, gap, square = to_host(state.sums).tolist()
        state.objective = 0.5 * self.alpha * square + loss
        return WeightSummary(state.objective, gap, float(n_iterations), gap <= tol * state.objective)

    def loss_at(self, state: DeviceWeights, scores: DeviceArray) -> float:
        """Σ_i κ_i ξ_i at these scores (n, K)."""
        found = 0.0
        for span in self._spans():
            values, _ = self.loss.values_and_gaps(scores[span, :], state.targets[span, :], state.dual[span, :])
            found += float(self.rows.arrays.total(state.kappa[span] * values))
        return found
