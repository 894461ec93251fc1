"""One sparse row against the weights: scores of all classes, and the update of the weights by one row.

Rows are CSR with a span for each, data[spans[i, 0] : spans[i, 1]], so that they come in any order without being moved
(data, indices, spans). W (d, M) is C-ordered, one column a node of the tree, so a feature touches
contiguous memory. A tree is given by `first` (K+1,) and `nodes`: leaf k passes through nodes[first[k] : first[k +
1]]. Classes without a tree have `nodes` empty: node and class are the same then.
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from transduce.kernels import kernel

Array: TypeAlias = NDArray[Any]
Rows: TypeAlias = tuple[Array, Array, Array]
"""data, indices and spans"""
Tree: TypeAlias = tuple[Array, Array]
"""first and nodes"""


@kernel
def node_scores(i: int, data: Array, indices: Array, spans: Array, W: Array, out: Array) -> None:
    """Write the scores of row i for every node: out (M,) = x_i W. Four features at a time keep sums in registers."""
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


@kernel
def leaf_scores(node: Array, first: Array, nodes: Array, out: Array) -> None:
    """Write the scores of the classes, out (K,), as sums of the scores of the nodes on their paths."""
    if nodes.size == 0:
        for k in range(out.size):
            out[k] = node[k]
        return
    for k in range(out.size):
        out[k] = 0.0
        for p in range(first[k], first[k + 1]):
            out[k] += node[nodes[p]]


@kernel
def to_nodes(step: Array, first: Array, nodes: Array, out: Array) -> None:
    """Write what each node gets, out (M,) = stepᵀ P, where `step` (K,) is what each class gets."""
    if nodes.size == 0:
        for k in range(step.size):
            out[k] = step[k]
        return
    out[:] = 0.0
    for k in range(step.size):
        for p in range(first[k], first[k + 1]):
            out[nodes[p]] += step[k]


@kernel
def add_row(
    i: int, step: Array, data: Array, indices: Array, spans: Array, first: Array, nodes: Array, W: Array, room: Array
) -> None:
    """Add x_i (stepᵀ P) to W in place: `step` (K,) is what each class gets; `room` (M,) is to work in."""
    to_nodes(step, first, nodes, room)
    for p in range(spans[i, 0], spans[i, 1]):
        value, w = data[p], W[indices[p]]
        for j in range(room.size):
            w[j] += value * room[j]


@kernel
def add_rows(
    chosen: Array, steps: Array, data: Array, indices: Array, spans: Array, first: Array, nodes: Array, W: Array
) -> None:
    """Add x_i (steps[r]ᵀ P) to W in place for each row i = chosen[r]."""
    room = np.empty(W.shape[1], W.dtype)
    for r in range(chosen.size):
        add_row(chosen[r], steps[r], data, indices, spans, first, nodes, W, room)


@kernel
def all_scores(data: Array, indices: Array, spans: Array, first: Array, nodes: Array, W: Array, out: Array) -> None:
    """Write the scores of every row for every class, out (n, K)."""
    node = np.empty(W.shape[1], W.dtype)
    for i in range(out.shape[0]):
        node_scores(i, data, indices, spans, W, node)
        leaf_scores(node, first, nodes, out[i])


@kernel
def pullback(
    data: Array, indices: Array, spans: Array, first: Array, nodes: Array, R: Array, low: int, high: int, out: Array
) -> None:
    """Add Xᵀ R P to the features low to high of out (d, M), in place, for residuals R (n, K).

    Each sum comes in the order of the rows, wherever the features are parted; rows without residuals are passed over.
    """
    room = np.empty(out.shape[1], out.dtype)
    for i in range(R.shape[0]):
        if not np.any(R[i]):
            continue
        to_nodes(R[i], first, nodes, room)
        for p in range(spans[i, 0], spans[i, 1]):
            feature = indices[p]
            if low <= feature < high:
                value, w = data[p], out[feature]
                for j in range(room.size):
                    w[j] += value * room[j]


@kernel
def count_columns(indices: Array, spans: Array, out: Array) -> None:
    """Add to out (d,) how many values each column has in the rows."""
    for i in range(spans.shape[0]):
        for p in range(spans[i, 0], spans[i, 1]):
            out[indices[p]] += 1


@kernel
def rank_rows(
    data: Array,
    indices: Array,
    spans: Array,
    places: Array,
    n_near: int,
    to: Array,
    new_data: Array,
    new_indices: Array,
) -> None:
    """Copy rows to other spans, with column j called places[j]; in each row those below n_near come first."""
    for i in range(spans.shape[0]):
        near = to[i, 0]
        far = near
        for p in range(spans[i, 0], spans[i, 1]):
            far += places[indices[p]] < n_near
        for p in range(spans[i, 0], spans[i, 1]):
            place = places[indices[p]]
            if place < n_near:
                new_indices[near], new_data[near] = place, data[p]
                near += 1
            else:
                new_indices[far], new_data[far] = place, data[p]
                far += 1
