"""Products of rows with the weights: scores of all classes, and updates of the weights.

Rows        CSR with a span per row, so that they can be in any order: row i has the values data[p] in the columns
            indices[p] for p from spans[i, 0] to spans[i, 1]. Dense rows have no `indices`, since p counts the columns.
            Unless `constant` is 0, all rows have one column more, of this value, which is not stored.
W           weights in C order, with one column per node of the tree, (d, M), for sparse rows, so that a feature touches
            contiguous memory; transposed, (M, d), for dense rows, so that a node does. One compilation serves both.
Tree        class k passes through nodes[starts[k] : starts[k + 1]], with starts (K+1,). Flat classes have no `nodes`:
            each class is its own node, M = K.
"""

import numpy as np

from transduce.kernels import Array, allocating_kernel, kernel, reduction


@reduction
def dense_scores(x: Array, constant: float, V: Array, out: Array) -> None:
    """Write out (M,) = V x for V (M, d). Four nodes at a time read x once."""
    j, zero = 0, V.dtype.type(0.0)
    while j + 4 <= out.size:
        a, b, c, d = zero, zero, zero, zero
        va, vb, vc, vd = V[j], V[j + 1], V[j + 2], V[j + 3]
        for p in range(x.size):
            a += x[p] * va[p]
            b += x[p] * vb[p]
            c += x[p] * vc[p]
            d += x[p] * vd[p]
        out[j], out[j + 1], out[j + 2], out[j + 3] = a, b, c, d
        j += 4
    while j < out.size:
        a, va = zero, V[j]
        for p in range(x.size):
            a += x[p] * va[p]
        out[j] = a
        j += 1
    if constant != 0.0:
        for j in range(out.size):
            out[j] += constant * V[j, V.shape[1] - 1]


@kernel
def add_dense_row(x: Array, delta: Array, V: Array) -> None:
    """V += delta xᵀ in place, for the change delta (M,) of each node; most are 0 for the large margin."""
    for j in range(delta.size):
        change = delta[j]
        if change != 0.0:
            v = V[j]
            for p in range(x.size):
                v[p] += change * x[p]


@kernel
def node_scores(i: int, data: Array, indices: Array, spans: Array, constant: float, W: Array, out: Array) -> None:
    """Write out (M,) = x_i W, the scores of row i for all nodes. Four features at a time keep sums in registers."""
    if indices.size == 0:
        dense_scores(data[spans[i, 0] : spans[i, 1]], constant, W, out)
        return
    for j in range(out.size):
        out[j] = 0.0
    p, end = spans[i, 0], spans[i, 1]
    while p + 4 <= end:
        a, b, c, d = data[p], data[p + 1], data[p + 2], data[p + 3]
        wa, wb, wc, wd = W[indices[p]], W[indices[p + 1]], W[indices[p + 2]], W[indices[p + 3]]
        for j in range(out.size):
            out[j] += (a * wa[j] + b * wb[j]) + (c * wc[j] + d * wd[j])
        p += 4
    while p < end:
        a, wa = data[p], W[indices[p]]
        for j in range(out.size):
            out[j] += a * wa[j]
        p += 1
    if constant != 0.0:
        wa = W[W.shape[0] - 1]
        for j in range(out.size):
            out[j] += constant * wa[j]


@kernel
def class_scores(by_node: Array, starts: Array, nodes: Array, out: Array) -> None:
    """Write out (K,) = P by_node: the score of a class is the sum over the nodes (M,) on its path."""
    if nodes.size == 0:
        for k in range(out.size):
            out[k] = by_node[k]
        return
    for k in range(out.size):
        out[k] = 0.0
        for p in range(starts[k], starts[k + 1]):
            out[k] += by_node[nodes[p]]


@kernel
def class_to_node(by_class: Array, starts: Array, nodes: Array, out: Array) -> None:
    """Write out (M,) = Pᵀ by_class, the adjoint of `class_scores`."""
    if nodes.size == 0:
        for k in range(by_class.size):
            out[k] = by_class[k]
        return
    out[:] = 0.0
    for k in range(by_class.size):
        for p in range(starts[k], starts[k + 1]):
            out[nodes[p]] += by_class[k]


@kernel
def n_nodes(indices: Array, W: Array) -> int:
    """M, the number of nodes of the tree."""
    return int(W.shape[0] if indices.size == 0 else W.shape[1])


@kernel
def all_scores(
    data: Array, indices: Array, spans: Array, constant: float, starts: Array, nodes: Array, W: Array, by_node: Array,
    out: Array,
) -> None:  # fmt: skip
    """Write out (n, K) = (X W) Pᵀ; by_node (M,) is scratch space."""
    for i in range(out.shape[0]):
        node_scores(i, data, indices, spans, constant, W, by_node)
        class_scores(by_node, starts, nodes, out[i])


@kernel
def count_columns(indices: Array, spans: Array, out: Array) -> None:
    """Add the number of values in each column to out (d,)."""
    for i in range(spans.shape[0]):
        for p in range(spans[i, 0], spans[i, 1]):
            out[indices[p]] += 1


@allocating_kernel
def copy_reordered(
    data: Array, indices: Array, spans: Array, rank: Array, group: Array, n_groups: int, new_spans: Array,
    new_data: Array, new_indices: Array,
) -> None:  # fmt: skip
    """Copy rows to new spans, with column j renamed to rank[j]; in a row, columns are in the order of their group."""
    at = np.empty(n_groups + 1, np.int64)
    for i in range(spans.shape[0]):
        at[:] = 0
        for p in range(spans[i, 0], spans[i, 1]):
            at[group[rank[indices[p]]] + 1] += 1
        at[0] = new_spans[i, 0]
        for g in range(n_groups):
            at[g + 1] += at[g]
        for p in range(spans[i, 0], spans[i, 1]):
            column = rank[indices[p]]
            q = at[group[column]]
            new_indices[q], new_data[q] = column, data[p]
            at[group[column]] += 1


@kernel
def copy_rows(data: Array, indices: Array, spans: Array, new_spans: Array, new_data: Array, new_indices: Array) -> None:
    """Copy rows to new spans."""
    for i in range(spans.shape[0]):
        first, place = spans[i, 0], new_spans[i, 0]
        for p in range(spans[i, 1] - first):
            new_data[place + p] = data[first + p]
        if indices.size > 0:
            for p in range(spans[i, 1] - first):
                new_indices[place + p] = indices[first + p]


@kernel
def squared_lengths(data: Array, spans: Array, out: Array) -> None:
    """Add ‖x_i‖² to out (n,)."""
    for i in range(out.size):
        for p in range(spans[i, 0], spans[i, 1]):
            out[i] += data[p] * data[p]
