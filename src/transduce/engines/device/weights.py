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
from transduce.engines.device.losses import TINY, DeviceLoss, device_loss
from transduce.engines.device.rows import DeviceRows
from transduce.losses import Loss
from transduce.parallel import row_blocks

FLATTEST = 1e-2
"""Least curvature of a row, as a fraction of the mean."""
SCALE_FALL, SCALE_MARGIN = 0.95, 1.5
"""Factor by which the scale of the curvature falls at most in an iteration, and its margin over the last one seen."""
ROUNDING = 100.0
"""Changes of W are rounding errors below so many units in the last place: they say nothing about the curvature."""
CHECK_EVERY = 4
"""Iterations between two computations of the gap, for which the device must finish its work."""
STALLED, PROGRESS = 200, 0.9
"""The precision of the numbers is reached when the gap has not fallen by this factor in so many iterations."""


@dataclass(eq=False)
class DeviceWeights:
    """Weights and what belongs to them, on the device and in its order of rows; see `weight_step.base.WeightState`.

    All arrays stay in their place and change in place, so that iterations can be replayed.

    W (d, M)          the last row is b, if there is a constant
    scores (n, K)     of the features alone, at W
    rates (n,)        κ_i / λ
    curvature (n,)    of the dual, as far as rows hang together at most
    scale (1,)        what the curvature is multiplied by
    last_dual, last_scores, last_weights   before the last iteration; during one, the first two with momentum
    balance (1, M)    1/λ Σ_i κ_i c (q_i − p_i)ᵀ P, which b equals at the optimum
    momentum (1,)     1 without momentum
    sums (3,)         loss, gap and ‖W‖² at the last computation
    is_current        whether W and scores are those of the dual variables
    given_kappa       the array that row weights were set from
    """

    W: DeviceArray
    targets: DeviceArray
    kappa: DeviceArray
    dual: DeviceArray
    scores: DeviceArray
    rates: DeviceArray
    curvature: DeviceArray
    scale: DeviceArray
    last_dual: DeviceArray
    last_scores: DeviceArray
    last_weights: DeviceArray
    balance: DeviceArray
    momentum: DeviceArray
    sums: DeviceArray
    objective: float = np.inf
    is_current: bool = False
    given_kappa: DeviceArray = None
    refreshing: Replay = field(default_factory=Replay)
    iteration: Replay = field(default_factory=Replay)
    measurement: Replay = field(default_factory=Replay)


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
        xp, arrays, W = self.rows.arrays.xp, self.rows.arrays, self.rows.zeros()
        scores, last, none = (xp.zeros_like(targets) for _ in range(3))
        kappa, rates, curvature, one = (arrays.floats(np.zeros(size)) for size in (*3 * (self.rows.n_rows,), 1))
        sums = arrays.copied(np.zeros(3))
        dual, balance = self.loss.dual_at_zero(targets), W[:1, :] + 0.0
        return DeviceWeights(
            W, targets + 0.0, kappa, dual, scores, rates, curvature, one + 1.0, last, none, W + 0.0, balance,
            one + 1.0, sums,
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

    def solve(self, state: DeviceWeights, tol: float) -> WeightSummary:
        """Iterate until the duality gap is at most tol · J or stops falling; with tol 0, as often as allowed."""
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
            if report.converged or n_done >= min(self.max_iterations, best_at + STALLED):
                return report

    def all_scores(self, state: DeviceWeights) -> DeviceArray:
        """Scores (n, K) at the weights of the state."""
        return state.scores + self.rows.bias(state.W) if self.rows.constant else state.scores + 0.0

    def _spans(self) -> list[slice]:
        return list(row_blocks(self.rows.n_rows, max(BLOCK_CELLS // self.loss.n_classes, 1)))

    def _iterate(self, state: DeviceWeights) -> None:
        """Move the dual variables, and W and the scores with them, in place."""
        xp, m = self.rows.arrays.xp, state.momentum
        after = 0.5 + xp.sqrt(0.25 + m * m)
        beta = (m - 1.0) / after
        for now, last in ((state.dual, state.last_dual), (state.scores, state.last_scores)):
            last -= now
            last *= -beta
            last += now
        if self.rows.constant:
            self._move_bias(state)
        uphill, length = self._added_up(state, self._move_rows)
        state.last_scores[:, :] = state.scores
        state.last_weights *= beta
        state.last_weights -= (1.0 + beta) * state.W  # less W with momentum
        W = state.W + 0.0
        self.refresh(state)
        state.last_weights += state.W
        square, least = self._features_square(state.last_weights), (ROUNDING * xp.finfo(W.dtype).eps) ** 2
        seen = self.alpha * square / xp.clip(length, min=TINY)
        is_rounding = square <= least * self._features_square(state.W)
        state.last_weights[:, :] = W
        keeps = xp.astype((uphill <= 0.0) & (is_rounding | (seen <= state.scale)), m.dtype)
        m[:] = 1.0 + keeps * (after - 1.0)
        scale = xp.clip(xp.maximum(SCALE_FALL * state.scale, SCALE_MARGIN * seen), max=1.0)
        state.scale[:] = xp.where(is_rounding, state.scale, scale)

    def _added_up(
        self, state: DeviceWeights, work: Callable[[DeviceWeights, slice], tuple[DeviceArray, DeviceArray]]
    ) -> tuple[DeviceArray, DeviceArray]:
        """Sums of the two values that some work returns for blocks of rows."""
        values = zip(*(work(state, span) for span in self._spans()), strict=True)
        first, second = (reduce(add, parts) for parts in values)
        return first, second

    def _move_rows(self, state: DeviceWeights, span: slice) -> tuple[DeviceArray, DeviceArray]:
        """Move the dual variables of some rows; return how far that is uphill against the momentum, and how far at all.

        Both (1,) are sums over classes and rows, with the weights that the curvature gives to the rows.
        """
        xp, new, old, q = self.rows.arrays.xp, self._dual_step(state, span), state.dual[span, :], state.targets[span, :]
        back, weights = state.last_dual[span, :] - new, state.kappa[span] * state.curvature[span]
        uphill = xp.sum(weights * xp.sum(back * (new - old), axis=1), keepdims=True)
        change = self.loss.change(q, back)
        length = xp.sum(weights * xp.sum(change * change, axis=1), keepdims=True)
        state.last_dual[span, :] = old
        state.dual[span, :] = new
        return uphill, length

    def _features_square(self, W: DeviceArray) -> DeviceArray:
        """‖W‖² (1,) of the features alone."""
        features = W[: self.rows.X.shape[1], :]
        return self.rows.arrays.xp.sum(features * features)[None]

    def _dual_step(self, state: DeviceWeights, span: slice) -> DeviceArray:
        """New dual variables of some rows at the present b, from those with momentum, which take the place of old ones
        in an iteration.
        """
        S = state.last_scores[span, :]
        S = S + self.rows.bias(state.W) if self.rows.constant else S
        curvature = state.scale * state.curvature[span]
        return self.loss.dual_step(S, state.targets[span, :], state.last_dual[span, :], curvature)

    def _move_bias(self, state: DeviceWeights) -> None:
        """A step of Newton's method in b for the loss of rows that answer by their dual step; the curvature, without
        its negative part, is the sum over rows of how far each dual variable gives way.
        """
        xp, P, c = self.rows.arrays.xp, self.rows.paths, self.rows.constant
        sums, slopes = self._added_up(state, self._answers)
        if P is not None:  # P diag(slopes) Pᵀ is at most its row sums, as it has no negative entries
            sums, slopes = sums @ P, (slopes * xp.sum(P, axis=1)[None, :]) @ P
        b = state.W[-1:, :]
        state.W[-1:, :] = b - (self.alpha * b - c * sums) / (self.alpha + c * c * slopes)

    def _answers(self, state: DeviceWeights, span: slice) -> tuple[DeviceArray, DeviceArray]:
        """What some rows would contribute to λW for each class after their dual step, and how far they give way."""
        new, q, kappa = self._dual_step(state, span), state.targets[span, :], state.kappa[span][None, :]
        compliance = self.loss.compliance(q, new, state.scale * state.curvature[span])
        return kappa @ self.loss.contribution(q, new), kappa @ compliance

    def refresh(self, state: DeviceWeights) -> None:
        """Compute W and the scores from the dual variables; b stays."""
        rows, R = self.rows, self.loss.contribution(state.targets, state.dual)
        R *= state.rates[:, None]
        state.W[: rows.X.shape[1], :] = rows.feature_pullback(R)
        if rows.constant:
            state.balance[:, :] = rows.bias_pullback(R)
        state.scores[:, :] = rows.feature_scores(state.W)
        state.is_current = True

    def _measure(self, state: DeviceWeights) -> None:
        """Compute loss, gap and ‖W‖²."""
        xp, total, losses, gaps = self.rows.arrays.xp, self.rows.arrays.total, 0.0, 0.0
        for span in self._spans():
            S, q, p = (x[span, :] for x in (state.scores, state.targets, state.dual))
            values, own = self.loss.values_and_gaps(S + self.rows.bias(state.W) if self.rows.constant else S, q, p)
            losses, gaps = losses + total(state.kappa[span] * values), gaps + total(state.kappa[span] * own)
        if self.rows.constant:
            gaps = gaps + 0.5 * self.alpha * total((state.W[-1:, :] - state.balance) ** 2)
        state.sums[:] = xp.stack((losses, gaps, total(state.W**2)))

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
