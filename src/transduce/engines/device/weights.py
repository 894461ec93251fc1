"""Mini-batch dual ascent: the weight step of the built-in losses on a device, stopped by the duality gap.

    W = 1/λ Σ_i κ_i x_i (q_i − p_i)ᵀ P        q targets, p dual variables, both distributions over classes

holds at all times (see `weight_step.dual`). All rows of a batch get the dual variables that are best while the others
stay; W and p then move towards them by one step length,

    t = min(1, Σ_i κ_i gain_i / (λ ‖D‖²)),     D = the change of W for t = 1

at which a lower bound of the dual, quadratic in t, is largest. So the dual never falls.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from transduce.engines.base import WeightSummary
from transduce.engines.device.arrays import DeviceArray, replayable, to_host
from transduce.engines.device.losses import TINY, DeviceLoss, device_loss
from transduce.engines.device.rows import DeviceRows
from transduce.losses import Loss
from transduce.weight_step.sweep_schedule import run_sweeps, sweep_until_converged


@dataclass(eq=False)
class DeviceWeights:
    """Weights and what belongs to them, on the device and in its order of rows; see `weight_step.base.WeightState`.

    All arrays but the scores stay in their place and change in place, so that visits can be replayed.

    rates (n,)      κ_i / λ
    curvature (n,)  κ_i ‖x_i‖² / λ, for a tree times the largest overlap of paths
    gains (1,)      sum of the gains in a sweep, over λ
    visit           visits a batch; None before the first sweep
    """

    W: DeviceArray
    targets: DeviceArray
    kappa: DeviceArray
    dual: DeviceArray
    rates: DeviceArray
    curvature: DeviceArray
    gains: DeviceArray
    objective: float = np.inf
    scores: DeviceArray = None
    visit: Callable[[int], None] | None = None


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

    def start(self, targets: DeviceArray) -> DeviceWeights:
        """Return a state with weights 0 and row weights 0."""
        none = [self.rows.arrays.floats(np.zeros(size)) for size in (*3 * (self.rows.n_rows,), 1)]
        return DeviceWeights(self.rows.zeros(), targets + 0.0, none[0], self.loss.dual_at_zero(targets), *none[1:])

    def set_kappa(self, state: DeviceWeights, kappa: DeviceArray) -> None:
        """Set row weights (n,) and what follows from them."""
        state.kappa[:], state.rates[:] = kappa, kappa / self.alpha
        state.curvature[:] = state.rates * self.rows.squared_norms * self.rows.largest_overlap

    def retarget(self, state: DeviceWeights, targets: DeviceArray, kappa: DeviceArray, soft: bool = False) -> None:
        """Set new targets (n, K) and row weights (n,).

        Rows whose hard label changed start again; others keep their part of W, also where they gain weight. Soft labels
        change in all rows: dual variables stay, but for rows that had no weight, and W is computed from both.
        """
        xp = self.rows.arrays.xp
        if soft:
            restart = (state.kappa == 0.0) & (kappa > 0.0)
        else:
            restart = xp.any(targets != state.targets, axis=1)
            factor = xp.where(kappa > 0.0, state.kappa / xp.clip(kappa, min=TINY), 1.0)
            state.dual[:, :] = self.loss.rescaled(state.targets, state.dual, factor)
        self.set_kappa(state, kappa)
        if soft or bool(xp.any(restart)):
            state.dual[:, :] = xp.where(restart[:, None], self.loss.dual_at_zero(targets), state.dual)
            state.targets[:, :] = targets
            R = self.loss.contribution(targets, state.dual) * state.rates[:, None]
            state.W[:, :], state.scores = self.rows.pullback(R), None

    def solve(self, state: DeviceWeights, tol: float, rng: np.random.Generator) -> WeightSummary:
        """Sweep until the duality gap is at most tol · J."""
        check = partial(self._report, state, tol)
        if state.scores is not None:  # only row weights changed, so the gap can be computed without a sweep
            report = check(0.0)
            if report.converged:
                return report
        expected = min(state.objective, float(self.rows.arrays.total(state.kappa)))
        sweeps = partial(run_sweeps, lambda _: (1.0, self.sweep(state, rng)))
        return sweep_until_converged(self.max_sweeps, tol, expected, sweeps, check)

    def sweep(self, state: DeviceWeights, rng: np.random.Generator) -> float:
        """Visit all batches; return the gains before steps were shortened, an estimate of the gap.

        The order is random: in the same order again and again, hundreds of sweeps would not settle.
        """
        if state.visit is None:
            state.visit = replayable(partial(self._visit, state), self.rows.arrays)
        state.scores = None
        state.gains[:] = 0.0
        for batch in rng.permutation(len(self.rows.spans)).tolist():
            state.visit(batch)
        return self.alpha * float(self.rows.arrays.total(state.gains))

    def _visit(self, state: DeviceWeights, batch: int) -> None:
        """Improve the dual variables of a batch, and W with them, in place."""
        xp, span = self.rows.arrays.xp, self.rows.spans[batch]
        p, q, rates = state.dual[span, :], state.targets[span, :], state.rates[span]
        new, gain = self.loss.dual_step(self.rows.batch_scores(batch, state.W), q, p, state.curvature[span])
        delta = new - p
        D = self.rows.batch_pullback(batch, self.loss.linear(q, delta) * rates[:, None])
        gain, square = xp.sum(rates * gain, keepdims=True), xp.sum(D * D)
        t = xp.clip(gain / xp.clip(square, min=TINY), min=0.0, max=1.0)
        state.W += t * D
        state.dual[span, :] += t * delta
        state.gains += gain

    def _report(self, state: DeviceWeights, tol: float, n_passes: float) -> WeightSummary:
        """Compute J and the gap at W, and store J and the scores in the state."""
        if state.scores is None:
            state.scores = self.rows.scores(state.W)
        values, gaps = self.loss.values_and_gaps(state.scores, state.targets, state.dual)
        total = self.rows.arrays.total
        sums = self.rows.arrays.xp.stack((total(state.kappa * values), total(state.kappa * gaps), total(state.W**2)))
        loss, gap, square = to_host(sums).tolist()
        state.objective = 0.5 * self.alpha * square + loss
        return WeightSummary(state.objective, gap, n_passes, gap <= tol * state.objective)

    def loss_at(self, state: DeviceWeights, scores: DeviceArray) -> float:
        """Σ_i κ_i ξ_i at these scores."""
        values, _ = self.loss.values_and_gaps(scores, state.targets, state.dual)
        return float(self.rows.arrays.total(state.kappa * values))
