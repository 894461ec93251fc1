"""W = Xᵀ R P of all rows, by column, and W += Xᵀ R P of some rows, by threads that divide the columns of X.

In each column, rows are added in their order, so results do not depend on how columns are divided.

All rows    They are held by column: those with a value in column j are rows[p] for p from starts[j] to starts[j + 1].
            A column is finished before the next one.
Some rows   In each sparse row the columns of a part come before those of the next one. Where the parts of a row begin
            is found once for many parts (`find_cuts`): a search in every part would take most of the time.

Rows, weights and the tree are as in `kernels.rows`.
"""

import numpy as np

from transduce.kernels import Array, kernel
from transduce.kernels.rows import add_dense_row, class_to_node


@kernel
def find_cuts(i: int, indices: Array, spans: Array, ends: Array, out: Array) -> None:
    """Write out (g + 1,), where the parts of row i begin and end, for columns divided at `ends` (g + 1,)."""
    p, end, last = spans[i, 0], spans[i, 1], ends.size - 1
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
def find_cuts_of_change(i: int, delta: Array, indices: Array, spans: Array, ends: Array, out: Array) -> None:
    """Find the cuts of row i; all parts are empty where its change delta (K,) is 0."""
    if np.any(delta):
        find_cuts(i, indices, spans, ends, out)
    else:
        out[:] = spans[i, 0]


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
def add_rows_part(
    rows: Array, data: Array, indices: Array, spans: Array, starts: Array, nodes: Array, R: Array, ends: Array,
    cuts: Array, W: Array, work: Array,
) -> None:  # fmt: skip
    """W += Xᵀ R P in place for these sparse rows (b,) and the columns from ends[1] to ends[2], given R (b, K).

    ends (4,)  begins with 0 and ends with d; cuts (1, 4) and work (M,) are scratch space.
    """
    for r in range(rows.size):
        find_cuts_of_change(rows[r], R[r], indices, spans, ends, cuts[0])
        add_part(1, cuts, data, indices, starts, nodes, R[r : r + 1], W, work)


@kernel
def sort_by_column(
    data: Array, indices: Array, spans: Array, ends: Array, cuts: Array, places: Array, by_column: Array, rows: Array
) -> None:
    """Write the values (v,) of sparse rows and their row numbers (v,) by column, for the columns of a part.

    ends (4,)    the part begins at ends[1] and ends at ends[2]; 0 and d are the others
    cuts (4,)    scratch space
    places (d,)  in: where each column begins; out: where it ends
    """
    for i in range(spans.shape[0]):
        find_cuts(i, indices, spans, ends, cuts)
        for p in range(cuts[1], cuts[2]):
            q = places[indices[p]]
            by_column[q], rows[q] = data[p], i
            places[indices[p]] = q + 1


@kernel
def pullback(
    by_column: Array, rows: Array, starts: Array, first: int, last: int, paths: Array, nodes: Array, R: Array,
    is_first: bool, W: Array, by_class: Array, by_node: Array,
) -> None:  # fmt: skip
    """W += Xᵀ R P in the columns from `first` to `last`, or W = Xᵀ R P for the first rows, given R (n, K).

    by_column, rows, starts  values of the rows by column, their row numbers, and where each column begins (d + 1,)
    paths, nodes             the tree, see `kernels.rows`
    by_class, by_node        scratch space (K,), (M,) for a tree
    """
    for c in range(first, last):
        p, end, w = starts[c], starts[c + 1], W[c]
        if is_first:
            for j in range(w.size):
                w[j] = 0.0
        total = w
        if nodes.size > 0:
            total = by_class
            for k in range(total.size):
                total[k] = 0.0
        while p + 4 <= end:
            x0, x1, x2, x3 = by_column[p], by_column[p + 1], by_column[p + 2], by_column[p + 3]
            r0, r1, r2, r3 = R[rows[p]], R[rows[p + 1]], R[rows[p + 2]], R[rows[p + 3]]
            for k in range(total.size):
                total[k] += (x0 * r0[k] + x1 * r1[k]) + (x2 * r2[k] + x3 * r3[k])
            p += 4
        while p < end:
            x0, r0 = by_column[p], R[rows[p]]
            for k in range(total.size):
                total[k] += x0 * r0[k]
            p += 1
        if nodes.size > 0:
            class_to_node(total, paths, nodes, by_node)
            for j in range(w.size):
                w[j] += by_node[j]
