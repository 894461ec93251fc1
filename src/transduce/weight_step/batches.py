"""Dual ascent in batches of rows: rows of a batch are updated at once, each as if all others stayed.

With a thousand batches in a sweep, rows of a batch hardly disturb each other, and about as many sweeps are needed as
if rows were updated one after another, whatever their number. Each row is updated as if its curvature were σ times as
large. σ is 1 at first. If the dual objective falls in a sweep, rows are too alike for it, and it grows.

With an intercept and many rows, a sweep has a few parts, after each of which its weights move (see
`_kernels.intercept`). Fewer batches are enough then, since rows have little in common but the constant. Rows that weigh
much more than others, as labelled rows do that are few, are visited in every part: the weights of the intercept depend
on them most.
"""

from typing import Any, NamedTuple

import numpy as np

from transduce.arrays import Array
from transduce.design import Design, squared_norm
from transduce.kernels.shared_work import PADDING, new_counters
from transduce.parallel import row_blocks
from transduce.weight_step._kernels import sweep as kernels
from transduce.weight_step._kernels.intercept import JUMP, STAY, STEP, compliance_of_rows
from transduce.weight_step.base import Intercept, WeightState

N_BATCHES, MIN_BATCHES = 1024, 256
"""Batches in a sweep over all rows, and in one over fewer: larger ones would need more sweeps."""
N_PARTS, PART_BATCHES = 8, 8
"""Parts of a sweep with an intercept that moves between them, and batches in each."""
FEW_ROWS = 16_000
"""Up to this many rows with a weight, the weights of the intercept follow the dual variables at once, as all others."""
BLOCK_ROWS = 1 << 14
"""Rows whose compliance is added up at once."""
PATIENCE, MIN_LENGTH = 32, 0.5
"""They also do after so many sweeps of a weight step, and for rows whose mean squared length is less than this part of
the squared constant."""
DOMINANT, MAX_DOMINANT = 4.0, 1 / 16
"""Rows that weigh more than this many times the mean are visited in every part, if they are at most such a fraction."""
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
        self.squares: float | None = None  # ‖W‖² without the weights of the constant, if known
        self.products_per_row = design.n_values * design.taxonomy.n_nodes // max(design.n_rows, 1)
        none, n_live, square = np.zeros(0), int(np.count_nonzero(state.kappa)), design.constant**2
        self.intercept, self.slopes, self.follows = state.intercept or Intercept(none, none, none), none, False
        if state.intercept is None:
            return
        self.is_light = state.kappa <= DOMINANT * state.kappa.sum() / max(n_live, 1)
        self.dominant = np.flatnonzero(~self.is_light)
        self.rates, self.n_sweeps = (own.bound / alpha) * state.kappa, 0
        is_short = design.squared_norms @ state.kappa < MIN_LENGTH * square * state.kappa.sum()
        if n_live <= FEW_ROWS or is_short or self.dominant.size > MAX_DOMINANT * n_live:
            self._follow()
            return
        self.curvatures = np.maximum(self.curvatures, square * self.rates)  # rows of zeros would turn with every move
        parts = design.threads.each(self._compliance_of, row_blocks(design.n_rows, BLOCK_ROWS))
        self.slopes = np.sum(parts, axis=0)

    def _follow(self) -> None:
        """Let the weights of the intercept follow the dual variables at once from now on."""
        self.follows, self.slopes = True, np.zeros(0)
        self.curvatures = self.rates * (self.design.squared_norms + self.design.constant**2)
        self.state.W[-1] = self.intercept.balance

    def _compliance_of(self, rows: slice) -> Array:
        """How far the dual variables of some rows give way to the scores of each class (K,)."""
        state, own, out = self.state, self.own, np.zeros(self.design.taxonomy.n_classes)
        arrays = own.labels, self._curvatures, own.width, state.kappa, state.dual
        compliance_of_rows(np.arange(rows.start, rows.stop), own.loss, *arrays, out)
        return out

    @property
    def _curvatures(self) -> Array:
        return self.curvatures if self.state.sigma == 1.0 else self.state.sigma * self.curvatures

    def sweep(self, order: Array) -> None:
        """Update the dual variables of the rows of `order` (t,), and W with them."""
        state = self.state
        if state.intercept is not None and not self.follows:
            self.n_sweeps += 1
            if self.n_sweeps > PATIENCE:
                self._follow()
        order, batches, moves = self._batches(order)
        if not moves.size:
            return
        if np.diff(batches).max() == 1:  # rows one after another: the dual objective never falls
            self._run(order, batches, moves)
            self.squares = None
            return
        before = self._squares() if self.squares is None else self.squares
        gain = self._run(order, batches, moves)
        after = self.squares = self._squares()
        if gain - 0.5 * self.alpha * (after - before) < -MIN_FALL * 0.5 * self.alpha * after:
            state.sigma *= SIGMA_GROWTH

    def _batches(self, order: Array) -> tuple[Array, Array, Array]:
        """The rows in the order of visits, where batches begin and end (g + 1,), and how b moves after each (g,)."""
        if self.state.intercept is None or self.follows:
            batch = min(-(-self.design.n_rows // N_BATCHES), max(order.size // MIN_BATCHES, 1))
            batches = np.append(np.arange(0, order.size, batch), order.size)
            return order, batches, np.full(batches.size - 1, JUMP if self.follows else STAY)
        parts, starts, moves, n = [], [np.zeros(1, np.int64)], [], 0
        for light in np.array_split(order[self.is_light[order]], N_PARTS):
            for rows in (light, self.dominant):
                if rows.size:
                    batch = max(rows.size // PART_BATCHES, 1)
                    ends = np.append(np.arange(batch, rows.size, batch), rows.size)
                    parts.append(rows)
                    starts.append(n + ends)
                    moves.append(np.full(ends.size, STAY))
                    n += rows.size
            if moves:
                moves[-1][-1] = STEP
        rows = np.concatenate(parts) if parts else order[:0]
        return rows, np.concatenate(starts), np.concatenate([*moves, np.zeros(0, np.int64)])

    def _run(self, order: Array, batches: Array, moves: Array) -> float:
        """Run the kernel in all threads that pay; return the gain of the dual objective without the term of ‖W‖²."""
        state, design, batch = self.state, self.design, int(np.diff(batches).max())
        n_threads = max(1, min(design.n_threads, batch * self.products_per_row // MIN_PRODUCTS_PER_THREAD))
        ends = design.column_ends(n_threads)
        gains, R = np.zeros(order.size + moves.size), np.empty((batch, design.taxonomy.n_classes), state.W.dtype)
        cuts = np.empty((0 if design.is_dense else batch, ends.size), np.int64)
        D, own = np.empty(R.shape if self.slopes.size else (0, 0)), self.intercept
        b = own.balance if state.intercept is None else state.W[-1].astype(np.float64)
        arguments = (
            order, batches, moves, ends, new_counters(4 * moves.size), *self.own[:-1],
            state.kappa, self._curvatures, self.alpha, *design.rows, *design.tree, design.for_kernels(state.W),
            state.dual, state.gaps, gains, R, D, cuts, b, own.balance, own.rates, own.residual, self.slopes,
        )  # fmt: skip
        shape = 2, max(design.taxonomy.n_nodes, design.taxonomy.n_classes) + PADDING

        def run(_: int) -> None:
            kernels.sweep(*arguments, np.empty(shape, state.W.dtype), np.empty(shape))

        design.threads.each(run, range(n_threads))
        if b.size:
            state.W[-1] = b
        return float(gains.sum())

    def _squares(self) -> float:
        W, total = self.state.W, squared_norm(self.state.W, self.design.threads)
        return total if self.state.intercept is None else total - float(np.vdot(W[-1], W[-1]))
