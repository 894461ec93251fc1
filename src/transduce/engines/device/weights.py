"""Mini-batch dual ascent: the weight step of the built-in losses on a device, stopped by the duality gap.

    W = 1/λ Σ_i κ_i x_i (q_i − p_i)ᵀ P        q targets, p dual variables, both distributions over classes

holds at all times (see `weight_step.dual`). All rows of a batch get the dual variables that are best while the others
stay; W and p then move towards them by one step length,

    t = min(1, Σ_i κ_i gain_i / (λ ‖D‖²)),     D = the change of W for t = 1

at which a lower bound of the dual, quadratic in t, is largest. So the dual never falls.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from transduce.engines.base import WeightSummary
from transduce.engines.device.arrays import Arrays, DeviceArray
from transduce.engines.device.losses import DeviceLoss, device_loss
from transduce.engines.device.rows import DeviceRows
from transduce.losses import Loss
from transduce.weight_step.sweep_schedule import run_sweeps, sweep_until_converged


@dataclass(eq=False)
class DeviceWeights:
    """Weights and what belongs to them, on the device and in its order of rows; see `weight_step.base.WeightState`."""

    W: DeviceArray
    targets: DeviceArray
    kappa: DeviceArray
    dual: DeviceArray
    objective: float = np.inf
    scores: DeviceArray = None


@dataclass(frozen=True, eq=False)
class BatchDualStep:
    """The weight step of a loss over all rows of a problem with this alpha."""

    rows: DeviceRows
    loss: DeviceLoss
    alpha: float
    max_sweeps: int

    @classmethod
    def create(cls, rows: DeviceRows, loss: Loss, alpha: float, max_sweeps: int) -> "BatchDualStep":
        """The weight step of a built-in loss."""
        return cls(rows, device_loss(loss, rows.taxonomy.n_classes, rows.arrays), alpha, max_sweeps)

    @property
    def _arrays(self) -> Arrays:
        return self.rows.arrays

    def start(self, targets: DeviceArray) -> DeviceWeights:
        """Return a state with weights 0 and row weights 0."""
        kappa = self._arrays.floats(np.zeros(self.rows.n_rows))
        return DeviceWeights(self.rows.zeros(), targets, kappa, self.loss.dual_at_zero(targets))

    def retarget(self, state: DeviceWeights, targets: DeviceArray, kappa: DeviceArray, soft: bool = False) -> None:
        """Set new targets (n, K) and row weights (n,).

        Rows whose hard label changed start again; others keep their part of W, and so do rows that gain weight. Soft
        labels change in all rows: dual variables stay, and W is computed from both.
        """
        xp, is_new = self._arrays.xp, (state.kappa == 0.0) & (kappa > 0.0)
        moved = xp.any(targets != state.targets, axis=1)
        any_moved = soft or bool(xp.any(moved))
        if not soft:
            factor = xp.where(kappa > 0.0, state.kappa / xp.clip(kappa, min=1e-30), 1.0)
            state.dual = self.loss.rescaled(state.targets, state.dual, factor)
        restart = is_new if soft else moved
        if any_moved:
            state.dual = xp.where(restart[:, None], self.loss.dual_at_zero(targets), state.dual)
        state.targets, state.kappa = targets, kappa
        if any_moved:
            R = self.loss.contribution(targets, state.dual) * (kappa / self.alpha)[:, None]
            state.W, state.scores = self.rows.pullback(R), None

    def solve(self, state: DeviceWeights, tol: float, rng: np.random.Generator) -> WeightSummary:
        """Sweep until the duality gap is at most tol · J."""
        curvature = state.kappa * self.rows.squared_norms * (self.rows.largest_overlap / self.alpha)

        def sweep(_: int) -> tuple[float, float]:
            state.scores = None
            return 1.0, self._sweep(state, curvature, rng)

        check = partial(self._report, state, tol)
        if state.scores is not None:  # only row weights changed, so the gap can be computed without a sweep
            report = check(0.0)
            if report.converged:
                return report
        expected = min(state.objective, float(self._arrays.total(state.kappa)))
        return sweep_until_converged(self.max_sweeps, tol, expected, partial(run_sweeps, sweep), check)

    def _sweep(self, state: DeviceWeights, curvature: DeviceArray, rng: np.random.Generator) -> float:
        """Visit all batches in random order; return the gains before steps were shortened, an estimate of the gap."""
        xp, total = self._arrays.xp, self._arrays.total(state.kappa[:0])
        for batch in rng.permutation(len(self.rows.batches)).tolist():
            span = self.rows.spans[batch]
            p, q, kappa = state.dual[span, :], state.targets[span, :], state.kappa[span]
            new, gain = self.loss.dual_step(self.rows.batch_scores(batch, state.W), q, p, curvature[span])
            change = self.loss.contribution(q, new) - self.loss.contribution(q, p)
            D = self.rows.batch_pullback(batch, change * (kappa / self.alpha)[:, None])
            gain, square = xp.sum(kappa * gain), xp.sum(D * D)
            t = xp.where(square > 0.0, gain / (self.alpha * xp.clip(square, min=1e-30)), 1.0)
            t = xp.clip(t, min=0.0, max=1.0)
            state.W += t * D
            state.dual[span, :] = p + t * (new - p)
            total = total + gain
        return float(total)

    def _report(self, state: DeviceWeights, tol: float, n_passes: float) -> WeightSummary:
        """Compute J and the gap at W, and store J and the scores in the state."""
        if state.scores is None:
            state.scores = self.rows.scores(state.W)
        values, gaps = self.loss.values_and_gaps(state.scores, state.targets, state.dual)
        total = self._arrays.total
        sums = self._arrays.xp.stack((total(state.kappa * values), total(state.kappa * gaps), total(state.W**2)))
        loss, gap, square = _floats(sums)
        state.objective = 0.5 * self.alpha * square + loss
        return WeightSummary(state.objective, gap, n_passes, gap <= tol * state.objective)

    def loss_at(self, state: DeviceWeights, scores: DeviceArray) -> float:
        """Σ_i κ_i ξ_i at these scores."""
        values, _ = self.loss.values_and_gaps(scores, state.targets, state.dual)
        return float(self._arrays.total(state.kappa * values))


def _floats(x: Any) -> list[float]:
    return [float(entry) for entry in x.tolist()] if hasattr(x, "tolist") else [float(x[k]) for k in range(x.shape[0])]
