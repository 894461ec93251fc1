"""Dual ascent in batches of rows: rows of a batch are updated at once, each as if all others stayed.

With a thousand batches in a sweep, rows of a batch hardly disturb each other, and about as many sweeps are needed as
if rows were updated one after another, whatever their number. Each row is updated as if its curvature were σ times as
large. σ is 1 at first. If the dual objective falls in a sweep, rows are too alike for it, and it grows.
"""

from typing import NamedTuple

import numpy as np

from transduce.arrays import Array
from transduce.design import Design
from transduce.weight_step._kernels import sweep as kernels
from transduce.weight_step.base import WeightState

N_BATCHES = 1024
"""Batches in a sweep."""
MIN_PRODUCTS_PER_THREAD = 30_000
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


def sweep_batches(design: Design, alpha: float, state: WeightState, order: Array, own: LossArguments) -> None:
    """Update the dual variables of the rows of `order` (t,), and W with them."""
    W, batch = state.W, -(-order.size // N_BATCHES)
    n_threads = _n_threads(design, batch)
    n_parts = min(2 * n_threads, 64) if n_threads > 1 else 1
    gains, R = np.empty(order.size), np.empty((batch, design.taxonomy.n_classes), W.dtype)
    counters = np.zeros(4 * -(-order.size // batch), np.int64)
    curvatures = (own.bound * state.sigma / alpha) * state.kappa * design.squared_norms
    before = _squares(W) if batch > 1 else 0.0

    def run(_: int) -> None:
        kernels.sweep(
            order, batch, design.column_ends(n_parts), counters, *own[:-1], state.kappa, curvatures, alpha,
            *design.rows, *design.tree, design.for_kernels(W), state.dual, state.gaps, gains, R,
        )  # fmt: skip

    list(design.threads.map(run, range(n_threads)))
    if batch == 1:  # rows one after another: the dual objective never falls
        return
    after = _squares(W)
    if float(gains.sum()) - 0.5 * alpha * (after - before) < -MIN_FALL * 0.5 * alpha * after:
        state.sigma *= SIGMA_GROWTH


def _n_threads(design: Design, batch: int) -> int:
    """Number of threads that pay."""
    products = batch * design.n_values * design.taxonomy.n_nodes // max(design.n_rows, 1)
    return max(1, min(design.n_threads, products // MIN_PRODUCTS_PER_THREAD))


def _squares(W: Array) -> float:
    flat = W.ravel(order="K")
    return float(np.vdot(flat, flat))
