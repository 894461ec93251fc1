"""A sweep of dual ascent over rows in batches, by threads that share the work.

    for each batch   S = X_b W Pᵀ, then new dual variables of each row at these scores, and R, its change of λW
                     W += X_bᵀ R P / λ

Rows of a batch are updated as if all others stayed. Rows are divided among the threads, then columns of X (for dense
rows, nodes). A thread takes the next piece while there is one, so results do not depend on their number.
"""

import numpy as np

from transduce.kernels import Array, kernel
from transduce.kernels.rows import class_scores, dense_pullback, n_nodes, node_scores, pullback
from transduce.kernels.shared_work import take_next, wait_until
from transduce.weight_step._kernels import GAP_LEFT, margin, maxent, squared

MARGIN, SQUARED, MAXENT = 0, 1, 2
"""Losses that the kernel knows."""
MAX_ROWS, PIECES = 8, 16
"""Most rows in a piece of work, and the pieces that a batch of at least as many rows has."""
update_margin, update_squared, update_maxent = margin.update_row, squared.update_row, maxent.update_row


@kernel
def update_row(
    loss: int, i: int, s: Array, labels: Array, margins: Array, offsets: Array, width: float, overlap: Array,
    is_flat: bool, weight: float, curvature: float, p: Array, new: Array, logs: Array,
) -> tuple[float, float]:  # fmt: skip
    """Update the dual variables p (K,) of row i; s (K,) becomes its change of λW. Returns its gap and its gain.

    `new` (K,) and `logs` (K,) are scratch space.
    """
    if loss == MARGIN:
        return update_margin(s, margins[labels[i]], weight, curvature, overlap, is_flat, p, new)
    if loss == SQUARED:
        return update_squared(s, labels[i], margins, weight, curvature, p, new)
    own = offsets[i] if offsets.size > 0 else s[:0]
    return update_maxent(s, own, width, weight, curvature, p, new, logs)


@kernel
def sweep(
    order: Array, batch: int, ends: Array, counters: Array,
    loss: int, labels: Array, margins: Array, offsets: Array, width: float, overlap: Array,
    kappa: Array, curvatures: Array, alpha: float,
    data: Array, indices: Array, spans: Array, constant: float, starts: Array, nodes: Array,
    W: Array, p: Array, gaps: Array, gains: Array, R: Array,
) -> None:  # fmt: skip
    """Update the rows of `order` (t,) in batches; every thread calls this with the same arguments.

    ends (g + 1,)     columns (or nodes) of W in each piece of work
    counters          zeros, four for each batch: pieces of rows and of columns that are taken, and that are done
    curvatures (n,)   κ_i ‖x_i‖² / λ, or an upper bound on the curvature of a row
    gains (t,)        written: what the separable part of the dual objective rises by each row
    R (batch, K)      scratch space
    """
    by_node, is_flat, is_dense = np.empty(n_nodes(indices, W), W.dtype), nodes.size == 0, indices.size == 0
    new, logs, size = np.empty(R.shape[1], W.dtype), np.empty(R.shape[1]), max(1, min(MAX_ROWS, batch // PIECES))
    for b in range((order.size + batch - 1) // batch):
        first, c = b * batch, 4 * b
        rows = order[first : first + batch]
        n_pieces, n_parts = (rows.size + size - 1) // size, ends.size - 1
        while True:
            piece = take_next(counters, c)
            if piece >= n_pieces:
                break
            for r in range(size * piece, min(size * piece + size, rows.size)):
                i, s = rows[r], R[r]
                node_scores(i, data, indices, spans, constant, W, by_node)
                class_scores(by_node, starts, nodes, s)
                gap, gain = update_row(
                    loss, i, s, labels, margins, offsets, width, overlap, is_flat, kappa[i], curvatures[i], p[i],
                    new, logs,
                )  # fmt: skip
                gaps[i], gains[first + r] = GAP_LEFT * gap, gain
                for k in range(s.size):
                    s[k] *= kappa[i] / alpha
            take_next(counters, c + 1)
        wait_until(counters, c + 1, n_pieces)
        while True:
            part = take_next(counters, c + 2)
            if part >= n_parts:
                break
            low, high, changes = ends[part], ends[part + 1], R[: rows.size]
            if is_dense:
                dense_pullback(rows, data, spans, constant, starts, nodes, changes, low, high, W)
            else:
                pullback(rows, data, indices, spans, starts, nodes, changes, low, high, W)
            take_next(counters, c + 3)
        wait_until(counters, c + 3, n_parts)
