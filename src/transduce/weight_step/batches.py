"""Dual ascent in batches of rows: rows of a batch are updated at once, each as if all others stayed.

With a thousand batches in a sweep, rows of a batch hardly disturb each other, and about as many sweeps are needed as
if rows were updated one after another, whatever their number. Each row is updated as if its curvature were σ times as
large. σ is 1 at first. If the dual objective falls in a sweep, rows are too alike for it, and it grows.
"""

from typing import Any, NamedTuple

import numpy as np

from transduce.arrays import Array
from transduce.design import Design
from transduce.weight_step._kernels import sweep as kernels
from transduce.weight_step.base import WeightState

N_BATCHES, MIN_BATCHES = 1024, 256
"""Batches in a sweep over all rows, and in one over fewer: larger batches would need more sweeps."""
MIN_PRODUCTS_PER_THREAD = 10_000
"""Multiplications in a batch that make one more thread pay."""
SIGMA_GROWTH, MIN_FALL = 2.0, 1e-4
"""Factor by which σ grows, and the fall of the dual objective, relative to λ/2 ‖W‖², that makes it grow."""


class LossArguments(NamedTuple):
    """What the kernel needs to know of a loss; arrays are empty where the loss has no such thing.

    loss             number of the loss in the kernel
    labels (n,)      right labels, of losses with hard ones
    margins (K, K)   margins between classes, one row per right label
    offsets (n, K)   margins of soft labels
    width            γ of the smooth margin
    overlap (K, K)   P Pᵀ, of losses that use it
    bound            upper bound on the curvature of a tree, relative to flat classes
    """

    loss: int
    labels: Array
    margins: Array
    offsets: Array
    width: float
    overlap: Array
    bound: float

    def with_scores_added(self, added: Array, n_rows: int, dtype: Any) -> "LossArguments":
        """Add scores (K,) to those of all rows, in the margins or offsets, which are added to scores anyway."""
        if self.margins.size:
            margins = self.margins + (added[None, :] - added[:, None])
            margins.setflags(write=False)  # as all margins are, so that kernels are compiled once
            return self._replace(margins=margins)
        offsets = np.zeros((n_rows, added.size), dtype) if not self.offsets.size else self.offsets
        return self._replace(offsets=offsets + added.astype(dtype))


class BatchSweeps:
    """Sweeps over rows of a state, prepared once for as long as its targets and row weights stay."""

    def __init__(self, design: Design, alpha: float, state: WeightState, own: LossArguments) -> None:
        self.design, self.alpha, self.state, self.own = design, alpha, state, own
        self.curvatures = (own.bound / alpha) * state.kappa * design.squared_norms
        self.squares: float | None = None  # ‖W‖², if known
        self.products_per_row = design.n_values * design.taxonomy.n_nodes // max(design.n_rows, 1)

    def sweep(self, order: Array) -> None:
        """Update the dual variables of the rows of `order` (t,), and W with them."""
        state = self.state
        batch = min(-(-self.design.n_rows // N_BATCHES), max(order.size // MIN_BATCHES, 1))
        if batch == 1:  # rows one after another: the dual objective never falls
            self._run(order, 1)
            self.squares = None
            return
        before = _squares(state.W) if self.squares is None else self.squares
        gain = self._run(order, batch)
        after = self.squares = _squares(state.W)
        if gain - 0.5 * self.alpha * (after - before) < -MIN_FALL * 0.5 * self.alpha * after:
            state.sigma *= SIGMA_GROWTH

    def _run(self, order: Array, batch: int) -> float:
        """Run the kernel in all threads that pay; return the gain of the separable part of the dual objective."""
        state, design = self.state, self.design
        n_threads = max(1, min(design.n_threads, batch * self.products_per_row // MIN_PRODUCTS_PER_THREAD))
        ends = design.column_ends(min(2 * n_threads, 64) if n_threads > 1 else 1)
        gains, R = np.empty(order.size), np.empty((batch, design.taxonomy.n_classes), state.W.dtype)
        counters = np.zeros(4 * -(-order.size // batch), np.int64)
        curvatures = self.curvatures if state.sigma == 1.0 else state.sigma * self.curvatures
        arguments = (
            order, batch, ends, counters, *self.own[:-1], state.kappa, curvatures, self.alpha,
            *design.rows, *design.tree, design.for_kernels(state.W), state.dual, state.gaps, gains, R,
        )  # fmt: skip
        if n_threads == 1:
            kernels.sweep(*arguments)
        else:
            list(design.threads.map(lambda _: kernels.sweep(*arguments), range(n_threads)))
        return float(gains.sum())


def _squares(W: Array) -> float:
    flat = W.ravel(order="K")
    return float(np.vdot(flat, flat))
