"""Dual ascent in batches of rows, which threads share: rows of a batch are updated at once, each as if it were alone.

    S = X_b W Pᵀ        scores of the rows of a batch
    p, R                the best dual variables of each row if all others stay, and so R, its change of W for each class
    W += X_bᵀ R P

With many batches in a sweep, rows of a batch hardly disturb each other: a hundred batches need about as many sweeps as
rows one after another, whatever their number. Each row is updated as if its squared length were σ times as large. σ is
1 at first. If the dual objective falls in a sweep, rows are too alike for it, and it grows. Results do not depend on
the number of threads.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from transduce.arrays import Array
from transduce.design import Design
from transduce.kernels.rows import all_scores, pullback
from transduce.parallel import Threads, row_blocks

N_BATCHES = 128
"""Batches in a sweep over all rows."""
MIN_PRODUCTS = 2_000_000
"""Multiplications in a batch from which on batches are used."""
SIGMA_GROWTH = 2.0
"""Factor by which σ grows."""
UpdateRows: TypeAlias = Callable[[Array, float, Array, Array], None]
"""Called with rows (b,), σ, their scores (b, K) and gains (b,): updates their dual variables, writes how much the
separable part of the dual objective rises by each, and turns the scores into R."""


def pays(design: Design) -> bool:
    """Whether batches of the rows are large enough to pay."""
    return not design.is_dense and design.n_values * design.taxonomy.n_nodes >= N_BATCHES * MIN_PRODUCTS


@dataclass(eq=False)
class Batches:
    """Batches of the rows of a design, and their σ."""

    design: Design
    sigma: float = 1.0
    threads: Threads = field(init=False)
    parts: list[slice] = field(init=False)

    def __post_init__(self) -> None:
        n_threads = self.design.n_threads
        self.threads, self.parts = Threads(n_threads), self.design.column_parts(n_threads)

    def sweep(self, order: Array, alpha: float, W: Array, update: UpdateRows) -> None:
        """Update the rows and W, batch after batch, in this order."""
        gain, before = 0.0, float(np.vdot(W, W))
        for batch in row_blocks(order.size, max(self.design.n_rows // N_BATCHES, 1)):
            gain += self._update(order[batch], W, update)
        if gain < 0.5 * alpha * (float(np.vdot(W, W)) - before):
            self.sigma *= SIGMA_GROWTH

    def _update(self, rows: Array, W: Array, update: UpdateRows) -> float:
        """Update the rows of a batch; return how much the separable part of the dual objective rises."""
        design, spans = self.design, self.design.spans[rows]
        R, gains = np.empty((rows.size, design.taxonomy.n_classes), W.dtype), np.empty(rows.size)

        def update_part(part: slice) -> None:
            all_scores(design.data, design.indices, spans[part], design.constant, *design.tree, W, R[part])
            update(rows[part], self.sigma, R[part], gains[part])

        def move_part(part: slice) -> None:
            pullback(design.data, design.indices, spans, *design.tree, R, part.start, part.stop, W)

        list(self.threads.map(update_part, row_blocks(rows.size, -(-rows.size // design.n_threads))))
        list(self.threads.map(move_part, self.parts))
        return float(gains.sum())
