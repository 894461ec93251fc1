"""W = Xᵀ R P of all rows, and W += Xᵀ R P of some, by threads that divide the columns of X.

In each column, rows are added in their order. Columns come in parts, and in each sparse row the columns of a part come
before those of the next one. Where the parts of a row begin is found once for many parts (`find_cuts`): a search in
every part would take most of the time. Results do not depend on how columns are divided. Rows, weights and the tree are
as in `kernels.rows`.
"""

import numpy as np

from transduce.kernels import Array, kernel
from transduce.kernels.rows import add_dense_row, class_to_node
from transduce.kernels.shared_work import take_next, wait_until

PIECE_ROWS = 64
"""Rows whose cuts a thread finds at a time."""


@kernel
def find_cuts(i: int, delta: Array, indices: Array, spans: Array, ends: Array, out: Array) -> None:
    """Write out (g + 1,), where the parts of row i begin and end, for columns divided at `ends` (g + 1,).

    All parts are empty where the change delta (K,) of the row is 0.
    """
    p, end, last = spans[i, 0], spans[i, 1], ends.size - 1
    if not np.any(delta):
        out[:] = p
        return
    out[0] = p
    for part in range(1, last):
        above = end
        while p < above:
            middle = (p + above) // 2
            if indices[middle] < ends[part]:
                p = middle + 1
            else:
                above = middle
        out[part] = p
    out[last] = end


@kernel
def add_part(
    part: int, cuts: Array, data: Array, indices: Array, starts: Array, nodes: Array, R: Array, W: Array, work: Array
) -> None:
    """W += Xᵀ R P in place for some sparse rows and the columns of a part, given cuts (b, g + 1) and R (b, K).

    work (M,) is scratch space.
    """
    for r in range(cuts.shape[0]):
        first, end = cuts[r, part], cuts[r, part + 1]
        if first == end:
            continue
        if nodes.size > 0:
            class_to_node(R[r], starts, nodes, work)
        delta = work if nodes.size > 0 else R[r]
        for p in range(first, end):
            value, w = data[p], W[indices[p]]
            for j in range(delta.size):
                w[j] += value * delta[j]


@kernel
def add_dense_part(
    rows: Array, data: Array, spans: Array, starts: Array, nodes: Array, R: Array, low: int, high: int, V: Array,
    work: Array,
) -> None:  # fmt: skip
    """V[low:high] += (Pᵀ Rᵀ X)[low:high] in place for these dense rows (b,), with V (M, d) and R (b, K).

    work (M,) is scratch space.
    """
    for r in range(rows.size):
        if np.any(R[r]):
            class_to_node(R[r], starts, nodes, work)
            add_dense_row(data[spans[rows[r], 0] : spans[rows[r], 1]], work[low:high], V[low:high])


@kernel
def pullback(
    data: Array, indices: Array, spans: Array, starts: Array, nodes: Array, R: Array, ends: Array, cuts: Array,
    counters: Array, W: Array, work: Array,
) -> None:  # fmt: skip
    """Write W = Xᵀ R P for all sparse rows; every thread calls this with the same arguments, but for the scratch space.

    R (n, K)         changes of the classes, of the type of W
    ends (g + 1,)    where the parts of the columns begin and end
    cuts (b, g + 1)  scratch space for blocks of b rows
    counters         zeros, four for each block: pieces of rows and parts of columns that are taken, and that are done
    work (M,)        scratch space
    """
    n_parts, n_all, size = ends.size - 1, spans.shape[0], cuts.shape[0]
    for g in range((n_all + size - 1) // size):
        first, c = g * size, 4 * g
        n_rows = min(size, n_all - first)
        n_pieces = (n_rows + PIECE_ROWS - 1) // PIECE_ROWS
        while True:
            piece = take_next(counters, c)
            if piece >= n_pieces:
                break
            for r in range(PIECE_ROWS * piece, min(PIECE_ROWS * piece + PIECE_ROWS, n_rows)):
                find_cuts(first + r, R[first + r], indices, spans, ends, cuts[r])
            take_next(counters, c + 1)
        wait_until(counters, c + 1, n_pieces)
        while True:
            part = take_next(counters, c + 2)
            if part >= n_parts:
                break
            if g == 0:
                W[ends[part] : ends[part + 1]] = 0.0
            add_part(part, cuts[:n_rows], data, indices, starts, nodes, R[first : first + n_rows], W, work)
            take_next(counters, c + 3)
        wait_until(counters, c + 3, n_parts)
