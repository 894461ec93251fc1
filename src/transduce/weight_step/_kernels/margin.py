"""Dual coordinate ascent for the large margin loss: one row, with all its classes, at a time.

Problem.  min_W λ/2 ‖W‖² + Σ_i κ_i max_k [Δ(k, y_i) + s_ik − s_iy],  s_i = P Wᵀ x_i.
Dual.     p_i (K,) in the unit simplex for every row; W = 1/λ Σ_i κ_i x_i (e_{y_i} − p_i)ᵀ P.
Update.   With G = s_i + Δ(·, y_i) and B = κ_i ‖x_i‖² / λ, maximise G·p − B/2 (p − p_i)ᵀ P Pᵀ (p − p_i) over the
          simplex: project p_i + G / B for flat classes, take exact steps in pairs of classes for a tree.
Stopping. gaps[i] = κ_i (max G − G·p_i); their sum over all rows, at one W, is the duality gap.
References: Crammer and Singer (2001); Keerthi, Sundararajan, Chang, Hsieh and Lin (2008), sequential dual method.
"""

import numpy as np

from transduce.kernels import kernel
from transduce.kernels.rows import Array, add_row, class_scores, node_scores
from transduce.weight_step._kernels import GAP_LEFT


@kernel
def project_onto_simplex(z: Array, out: Array) -> None:
    """Write the Euclidean projection of z onto the unit simplex (Michelot, 1986)."""
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
def pairwise_ascent(G: Array, curvature: float, overlap: Array, p: Array, tolerance: float) -> None:
    """Maximise G·(q − p) − curvature/2 (q − p)ᵀ overlap (q − p) over q in the simplex.

    Each step moves mass between the two classes that violate the optimality condition most, until by less than
    `tolerance`. In place, p becomes q, and G the gradient at q.
    """
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
        second = curvature * (overlap[up, up] + overlap[down, down] - 2.0 * overlap[up, down])
        step = p[down] if slope >= second * p[down] else slope / second
        p[up] += step
        p[down] -= step
        for k in range(p.size):
            G[k] -= curvature * step * (overlap[up, k] - overlap[down, k])


@kernel
def update_row(G: Array, curvature: float, overlap: Array, is_flat: bool, p: Array, work: Array, out: Array) -> float:
    """Write the best p of a row with G and B = `curvature`; return max G − G·p at the old one. `work` is scratch."""
    best, mean = -np.inf, 0.0
    for k in range(G.size):
        best = max(best, G[k])
        mean += G[k] * p[k]
    if curvature <= 0.0:
        out[:] = 0.0
        out[np.argmax(G)] = 1.0
    elif is_flat:
        for k in range(G.size):
            work[k] = p[k] + G[k] / curvature
        project_onto_simplex(work, out)
    else:
        work[:] = G
        out[:] = p
        pairwise_ascent(work, curvature, overlap, out, 0.1 * (best - mean))
    return best - mean


@kernel
def sweep(
    order: Array, labels: Array, kappa: Array, norms: Array, alpha: float, margins: Array, overlap: Array,
    data: Array, indices: Array, spans: Array, constant: float, starts: Array, nodes: Array,
    W: Array, p: Array, gaps: Array,
) -> None:  # fmt: skip
    """Update the rows in the given order; overlap (K, K) is P Pᵀ."""
    n_classes = p.shape[1]
    by_node, work = np.empty(W.shape[1], W.dtype), np.empty(W.shape[1], W.dtype)
    G, z, new = np.empty(n_classes, W.dtype), np.empty(n_classes, W.dtype), np.empty(n_classes, W.dtype)
    for i in order:
        node_scores(i, data, indices, spans, constant, W, by_node)
        class_scores(by_node, starts, nodes, G)
        for k in range(n_classes):
            G[k] += margins[labels[i], k]
        curvature = kappa[i] * norms[i] / alpha
        gaps[i] = GAP_LEFT * kappa[i] * update_row(G, curvature, overlap, nodes.size == 0, p[i], z, new)
        changed = False
        for k in range(n_classes):
            G[k] = (p[i, k] - new[k]) * (kappa[i] / alpha)
            changed |= G[k] != 0.0
            p[i, k] = new[k]
        if changed and curvature > 0.0:
            add_row(i, G, data, indices, spans, constant, starts, nodes, W, work)


@kernel
def update_rows(
    rows: Array, labels: Array, kappa: Array, norms: Array, alpha: float, sigma: float, margins: Array, overlap: Array,
    is_flat: bool, S: Array, p: Array, gaps: Array, gains: Array,
) -> None:  # fmt: skip
    """Update each of the rows (b,) alone, at scores S (b, K) and sigma times its curvature; see `batches`."""
    G, z, new = np.empty(p.shape[1], S.dtype), np.empty(p.shape[1], S.dtype), np.empty(p.shape[1], S.dtype)
    for r in range(rows.size):
        i = rows[r]
        for k in range(G.size):
            G[k] = S[r, k] + margins[labels[i], k]
        gap = update_row(G, sigma * kappa[i] * norms[i] / alpha, overlap, is_flat, p[i], z, new)
        gaps[i], gains[r] = GAP_LEFT * kappa[i] * gap, 0.0
        for k in range(G.size):
            gains[r] += kappa[i] * (new[k] - p[i, k]) * margins[labels[i], k]
            S[r, k] = (p[i, k] - new[k]) * (kappa[i] / alpha)
            p[i, k] = new[k]


@kernel
def loss_and_gaps(
    rows: Array, labels: Array, kappa: Array, margins: Array, scores: Array, p: Array, gaps: Array
) -> float:
    """Return Σ κ_i ξ_i over the given rows at scores (n, K), and write their gaps."""
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
