"""Dual coordinate ascent for the large margin loss, one row and all its classes at a time.

Problem.  min_W λ/2 ‖W‖² + Σ_i κ_i max_k [Δ(k, y_i) + s_ik − s_iy],  s_i = P Wᵀ x_i.
Dual.     Each row holds a distribution p_i over classes; W = 1/λ Σ_i κ_i x_i (e_{y_i} − p_i)ᵀ P.
Update.   With G = s_i + Δ(·, y_i) and B = κ_i ‖x_i‖² / λ, row i maximises G·p − B/2 (p − p_i)ᵀ P Pᵀ (p − p_i) over the
          simplex: without a tree the projection of p_i + G / B, with one by exact steps between two classes at a time.
Stopping. gaps[i] = κ_i (max G − G·p_i); at one W for all rows their sum is the duality gap.
References: Crammer and Singer (2001); Keerthi, Sundararajan, Chang, Hsieh and Lin (2008) for the sequential dual
method.
"""

import numpy as np

from transduce.kernels import kernel
from transduce.kernels.rows import Array, add_row, class_scores, node_scores

LEFT = 0.25
"""About what a visit leaves of a row's gap, once the other rows have moved W too."""


@kernel
def project(z: Array, out: Array) -> None:
    """Write the point of the unit simplex nearest to z (Michelot, 1986)."""
    top = z[0]
    for k in range(1, z.size):
        top = max(top, z[k])
    threshold = top - 1.0
    while True:
        total, count = 0.0, 0
        for k in range(z.size):
            above = z[k] > threshold
            total += z[k] if above else 0.0
            count += above
        higher = (total - 1.0) / count
        if higher <= threshold:
            break
        threshold = higher
    for k in range(z.size):
        out[k] = max(z[k] - threshold, 0.0)


@kernel
def exchange(G: Array, curvature: float, overlap: Array, p: Array, tolerance: float) -> None:
    """Maximise G·(q − p) − curvature/2 (q − p)ᵀ overlap (q − p) over the simplex; p becomes q, and G its gradient."""
    for _ in range(50 * p.size):
        up, down = 0, -1
        for k in range(p.size):
            if G[k] > G[up]:
                up = k
            if p[k] > 0.0 and (down < 0 or G[k] < G[down]):
                down = k
        slope = G[up] - G[down]
        if slope <= tolerance:
            break
        bend = curvature * (overlap[up, up] + overlap[down, down] - 2.0 * overlap[up, down])
        step = p[down] if slope >= bend * p[down] else slope / bend
        p[up] += step
        p[down] -= step
        for k in range(p.size):
            G[k] -= curvature * step * (overlap[up, k] - overlap[down, k])


@kernel
def sweep(
    order: Array,
    labels: Array,
    kappa: Array,
    norms: Array,
    alpha: float,
    margins: Array,
    overlap: Array,
    data: Array,
    indices: Array,
    spans: Array,
    first: Array,
    nodes: Array,
    W: Array,
    p: Array,
    gaps: Array,
) -> None:
    """Visit the rows in the given order; W, p (n, K) and gaps (n,) are updated in place."""
    n_classes = p.shape[1]
    node, room = np.empty(W.shape[1], W.dtype), np.empty(W.shape[1], W.dtype)
    G, new = np.empty(n_classes, W.dtype), np.empty(n_classes, W.dtype)
    for i in order:
        node_scores(i, data, indices, spans, W, node)
        class_scores(node, first, nodes, G)
        best, mean = -np.inf, 0.0
        for k in range(n_classes):
            G[k] += margins[labels[i], k]
            best = max(best, G[k])
            mean += G[k] * p[i, k]
        gaps[i] = LEFT * kappa[i] * (best - mean)
        curvature = kappa[i] * norms[i] / alpha
        if curvature <= 0.0:
            for k in range(n_classes):
                p[i, k] = 0.0
            p[i, np.argmax(G)] = 1.0
            continue
        if nodes.size == 0:
            for k in range(n_classes):
                G[k] = p[i, k] + G[k] / curvature
            project(G, new)
        else:
            new[:] = p[i]
            exchange(G, curvature, overlap, new, 0.1 * (best - mean))
        changed = False
        for k in range(n_classes):
            G[k] = (p[i, k] - new[k]) * (kappa[i] / alpha)
            changed |= G[k] != 0.0
            p[i, k] = new[k]
        if changed:
            add_row(i, G, data, indices, spans, first, nodes, W, room)


@kernel
def measure(rows: Array, labels: Array, kappa: Array, margins: Array, scores: Array, p: Array, gaps: Array) -> float:
    """Loss of the given rows, Σ κ_i ξ_i, at scores (n, K) of one W; writes the gap of each of them."""
    loss = 0.0
    for i in rows:
        y = labels[i]
        best, mean = -np.inf, 0.0
        for k in range(scores.shape[1]):
            value = scores[i, k] + margins[y, k]
            best = max(best, value)
            mean += value * p[i, k]
        loss += kappa[i] * (best - scores[i, y])
        gaps[i] = kappa[i] * (best - mean)
    return loss
