"""Dual coordinate ascent for the squared large margin loss, one row and all its classes at a time.

Problem.  min_W λ/2 ‖W‖² + Σ_i κ_i (max_k m_ik)²,  m_ik = Δ(k, y_i) + s_ik − s_iy,  s_i = P Wᵀ x_i.
Dual.     (max m)² = max over t ≥ 0 of t·m − T²/4, T = Σ_k t_k. Each row holds its t_i, with t_iy = 0;
          W = 1/λ Σ_i κ_i x_i (T_i e_{y_i} − t_i)ᵀ P.
Update.   With B = κ_i ‖x_i‖² / λ (times the largest overlap of paths in a tree, an upper bound) and
          a_k = m_k + B (t_k + T) for k ≠ y: t_k = max(0, a_k − (B + 1/2) T) / B, and T solves its own sum.
Stopping. gaps[i] = κ_i [(max m)² − t·m + T²/4]; at one W for all rows their sum is the duality gap.
"""

import numpy as np

from transduce.kernels import kernel
from transduce.kernels.rows import Array, add_row, class_scores, node_scores

LEFT = 0.25
"""About what a visit leaves of a row's gap, once the other rows have moved W too."""


@kernel
def margins_of(s: Array, label: int, margins: Array) -> None:
    """Turn scores into margins m, in place."""
    own = s[label]
    for k in range(s.size):
        s[k] += margins[label, k] - own


@kernel
def row_gap(m: Array, t: Array) -> float:
    """(max m)² − t·m + T²/4."""
    top, total, dot = m[0], 0.0, 0.0
    for k in range(m.size):
        top = max(top, m[k])
        total += t[k]
        dot += t[k] * m[k]
    return float(max(top * top - dot + 0.25 * total * total, 0.0))


@kernel
def best_row(m: Array, label: int, B: float, t: Array, out: Array) -> None:
    """Write the t ≥ 0 that maximises the row's part of the dual, its own class left at 0."""
    total = 0.0
    for k in range(m.size):
        total += t[k]
    if B <= 0.0:
        out[:] = 0.0
        top = int(np.argmax(m))
        out[top] = 2.0 * m[top] if top != label else 0.0
        return
    mass = 0.0
    while True:  # classes leave the active set as T grows, and none comes back
        above, count = 0.0, 0
        for k in range(m.size):
            a = m[k] + B * (t[k] + total)
            if k != label and a > (B + 0.5) * mass:
                above += a
                count += 1
        higher = above / (B + count * (B + 0.5))
        if higher <= mass:
            break
        mass = higher
    for k in range(m.size):
        a = m[k] + B * (t[k] + total)
        out[k] = max(a - (B + 0.5) * mass, 0.0) / B if k != label else 0.0


@kernel
def sweep(
    order: Array,
    labels: Array,
    kappa: Array,
    norms: Array,
    alpha: float,
    margins: Array,
    overlap: float,
    data: Array,
    indices: Array,
    spans: Array,
    first: Array,
    nodes: Array,
    W: Array,
    t: Array,
    gaps: Array,
) -> None:
    """Visit the rows in the given order; W, t (n, K) and gaps (n,) are updated in place."""
    n_classes = t.shape[1]
    node, room = np.empty(W.shape[1], W.dtype), np.empty(W.shape[1], W.dtype)
    m, new = np.empty(n_classes, W.dtype), np.empty(n_classes, W.dtype)
    for i in order:
        y = labels[i]
        node_scores(i, data, indices, spans, W, node)
        class_scores(node, first, nodes, m)
        margins_of(m, y, margins)
        gaps[i] = LEFT * kappa[i] * row_gap(m, t[i])
        best_row(m, y, overlap * kappa[i] * norms[i] / alpha, t[i], new)
        change = 0.0
        for k in range(n_classes):
            m[k] = (t[i, k] - new[k]) * (kappa[i] / alpha)
            change -= m[k]
            t[i, k] = new[k]
        m[y] += change
        add_row(i, m, data, indices, spans, first, nodes, W, room)


@kernel
def measure(rows: Array, labels: Array, kappa: Array, margins: Array, scores: Array, t: Array, gaps: Array) -> float:
    """Loss of the given rows, Σ κ_i ξ_i², at scores (n, K) of one W; writes the gap of each of them."""
    loss = 0.0
    m = np.empty(scores.shape[1], scores.dtype)
    for i in rows:
        m[:] = scores[i]
        margins_of(m, labels[i], margins)
        top = m[0]
        for k in range(m.size):
            top = max(top, m[k])
        loss += kappa[i] * top * top
        gaps[i] = kappa[i] * row_gap(m, t[i])
    return loss
