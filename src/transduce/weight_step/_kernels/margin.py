"""Dual coordinate ascent for the large margin loss: the update of one row, with all its classes.

Problem.  min_W λ/2 ‖W‖² + Σ_i κ_i max_k [Δ(k, y_i) + s_ik − s_iy],  s_i = P Wᵀ x_i.
Dual.     p_i (K,) in the unit simplex for every row; W = 1/λ Σ_i κ_i x_i (e_{y_i} − p_i)ᵀ P.
Update.   With G = s_i + Δ(·, y_i) and B = κ_i ‖x_i‖² / λ, maximise G·p − B/2 (p − p_i)ᵀ P Pᵀ (p − p_i) over the
          simplex: project p_i + G / B for flat classes, take exact steps in pairs of classes for a tree.
Stopping. gaps[i] = κ_i (max G − G·p_i); their sum over all rows, at one W, is the duality gap.
References: Crammer and Singer (2001); Keerthi, Sundararajan, Chang, Hsieh and Lin (2008), sequential dual method.
"""

import numpy as np

from transduce.kernels import Array, kernel


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
def update_row(
    s: Array, margins: Array, weight: float, curvature: float, overlap: Array, is_flat: bool, p: Array, new: Array
) -> tuple[float, float]:
    """Update p in place for scores s (K,), which become p − p_new; overlap (K, K) is P Pᵀ, `new` (K,) scratch space.

    `margins` (K,) are those of the right label. Returns the gap before, and what κ p·Δ has risen by.
    """
    best, mean, gain = -np.inf, 0.0, 0.0
    for k in range(s.size):
        s[k] += margins[k]
        best = max(best, s[k])
        mean += s[k] * p[k]
    if curvature <= 0.0:
        new[:] = 0.0
        new[np.argmax(s)] = 1.0
    elif is_flat:
        for k in range(s.size):
            s[k] = p[k] + s[k] / curvature
        project_onto_simplex(s, new)
    else:
        for k in range(s.size):
            new[k] = p[k]
        pairwise_ascent(s, curvature, overlap, new, 0.1 * (best - mean))
    for k in range(s.size):
        s[k] = p[k] - new[k]
        gain -= s[k] * margins[k]
        p[k] = new[k]
    return weight * (best - mean), weight * gain


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
