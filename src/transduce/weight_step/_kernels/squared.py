"""Dual coordinate ascent for the squared large margin loss: the update of one row, with all its classes.

Problem.  min_W λ/2 ‖W‖² + Σ_i κ_i (max_k m_ik)²,  m_ik = Δ(k, y_i) + s_ik − s_iy,  s_i = P Wᵀ x_i.
Dual.     (max m)² = max over t ≥ 0 of t·m − T²/4, T = Σ_k t_k. Every row has t_i (K,) ≥ 0 with t_iy = 0;
          W = 1/λ Σ_i κ_i x_i (T_i e_{y_i} − t_i)ᵀ P.
Update.   With B = κ_i ‖x_i‖² / λ (for a tree times the largest overlap of paths, an upper bound on the curvature) and
          a_k = m_k + B (t_k + T) for k ≠ y: t_k = max(0, a_k − (B + 1/2) T) / B, where T is the sum of the new t.
Stopping. gaps[i] = κ_i [(max m)² − t·m + T²/4]; their sum over all rows, at one W, is the duality gap.
References: the scheme of Keerthi, Sundararajan, Chang, Hsieh and Lin (2008), with this loss in place of theirs.
"""

import numpy as np

from transduce.kernels import Array, allocating_kernel, kernel


@kernel
def margins_of(s: Array, label: int, margins: Array) -> None:
    """Turn the scores of a row into m, in place."""
    own = s[label]
    for k in range(s.size):
        s[k] += margins[label, k] - own


@kernel
def top_and_gap(m: Array, t: Array) -> tuple[float, float]:
    """Return max m, and (max m)² − t·m + T²/4."""
    top, total, dot = m[0], 0.0, 0.0
    for k in range(m.size):
        top = max(top, m[k])
        total += t[k]
        dot += t[k] * m[k]
    return top, max(top * top - dot + 0.25 * total * total, 0.0)


@kernel
def solve_row(m: Array, label: int, B: float, t: Array, out: Array) -> None:
    """Write the t ≥ 0 that maximises the dual in this row, with t = 0 for the right label."""
    total = 0.0
    for k in range(m.size):
        total += t[k]
    if B <= 0.0:
        out[:] = 0.0
        top = int(np.argmax(m))
        out[top] = 2.0 * m[top] if top != label else 0.0
        return
    mass = 0.0
    while True:  # as T grows, classes leave the active set and never return
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
def separable(t: Array, margins: Array) -> float:
    """t·Δ − T²/4."""
    total, dot = 0.0, 0.0
    for k in range(t.size):
        total += t[k]
        dot += t[k] * margins[k]
    return dot - 0.25 * total * total


@kernel
def update_row(
    s: Array, label: int, margins: Array, weight: float, curvature: float, t: Array, new: Array
) -> tuple[float, float]:
    """Update t in place for scores s (K,), which become the change of T e_y − t, what the row contributes to λW.

    `new` (K,) is scratch space. Returns the gap before, and what κ (t·Δ − T²/4) has risen by.
    """
    change = 0.0
    margins_of(s, label, margins)
    gap = top_and_gap(s, t)[1]
    solve_row(s, label, curvature, t, new)
    gain = separable(new, margins[label]) - separable(t, margins[label])
    for k in range(s.size):
        s[k] = t[k] - new[k]
        change -= s[k]
        t[k] = new[k]
    s[label] += change
    return weight * gap, weight * gain


@allocating_kernel
def loss_and_gaps(
    rows: Array, labels: Array, kappa: Array, margins: Array, scores: Array, t: Array, gaps: Array
) -> float:
    """Return Σ κ_i (max m_i)² over the given rows at scores (n, K), and write their gaps."""
    loss = 0.0
    m = np.empty(scores.shape[1], scores.dtype)
    for i in rows:
        m[:] = scores[i]
        margins_of(m, labels[i], margins)
        top, gap = top_and_gap(m, t[i])
        loss += kappa[i] * top * top
        gaps[i] = kappa[i] * gap
    return loss
