"""Dual coordinate ascent for maxent and the smooth margin, one row and all its classes at a time.

Problem.  min_W λ/2 ‖W‖² + Σ_i κ_i [γ log Σ_k exp((s_ik + Δ_ik) / γ) − q_i·s_i],  s_i = P Wᵀ x_i, with labels q_i hard
          or soft and Δ_i their margins (γ = 1 and no margins for maxent).
Dual.     Each row holds a distribution p_i; W = 1/λ Σ_i κ_i x_i (q_i − p_i)ᵀ P. The labels enter through W and Δ alone.
Update.   With z = (s_i + Δ_i) / γ and B = κ_i ‖x_i‖² / (λγ) (times the largest overlap of paths in a tree, an upper
          bound), row i maximises z·p + H(p) − B/2 ‖p − p_i‖²: log p_k + B p_k = z_k + B p_ik − ν, Σ p = 1, by Newton on
          all at once.
Stopping. gaps[i] = κ_i γ KL(p_i ‖ softmax(z)); at one W for all rows their sum is the duality gap.
Reference: Yu, Huang and Lin (2011) for coordinate descent in the dual of maxent.
"""

import numpy as np

from transduce.kernels import kernel
from transduce.kernels.rows import Array, add_row, class_scores, node_scores

TINY = 1e-30
"""Below this a probability counts as this one."""
CLOSE = 1e-3
"""Newton ends after a step that changes no probability by more: it leaves about the square of that, and any p is dual
feasible."""
LEFT = 0.25
"""About what a visit leaves of a row's gap, once the other rows have moved W too."""


@kernel
def log_sum_exp(s: Array) -> float:
    """log Σ exp s, safe at any size."""
    top = s[0]
    for k in range(1, s.size):
        top = max(top, s[k])
    total = 0.0
    for k in range(s.size):
        total += np.exp(s[k] - top)
    return float(top + np.log(total))


@kernel
def divergence(p: Array, s: Array, normaliser: float) -> float:
    """KL(p ‖ softmax(s)), where normaliser = log Σ exp s."""
    total = normaliser
    for k in range(s.size):
        if p[k] > 0.0:
            total += p[k] * (np.log(p[k]) - s[k])
    return max(total, 0.0)


@kernel
def tilt(s: Array, normaliser: float, B: float, p: Array, out: Array) -> None:
    """Write the p that solves log p_k + B p_k = s_k + B p_old_k − ν, Σ p = 1, to about the square of CLOSE."""
    logs = np.empty(s.size)
    weight = 1.0 / (1.0 + B)
    for k in range(s.size):  # between the old point and the pull of the scores
        logs[k] = np.log(max(weight * np.exp(s[k] - normaliser) + (1.0 - weight) * p[k], TINY))
    nu = 0.0
    for _ in range(30):
        total, spread, pull = 0.0, 0.0, 0.0
        for k in range(s.size):
            out[k] = np.exp(logs[k])
            slope = 1.0 / (1.0 + B * out[k])
            total += out[k]
            spread += out[k] * slope
            pull += out[k] * slope * (s[k] + B * (p[k] - out[k]) - logs[k])
        nu = (pull - (1.0 - total)) / spread
        largest = 0.0
        for k in range(s.size):
            move = (s[k] + B * (p[k] - out[k]) - logs[k] - nu) / (1.0 + B * out[k])
            logs[k] += min(max(move, -4.0), 4.0)
            largest = max(largest, abs(move) * out[k])
        if largest < CLOSE:
            break
    total = 0.0
    for k in range(s.size):
        out[k] = np.exp(logs[k])
        total += out[k]
    for k in range(s.size):
        out[k] /= total


@kernel
def sweep(
    order: Array,
    kappa: Array,
    norms: Array,
    alpha: float,
    overlap: float,
    width: float,
    lifts: Array,
    data: Array,
    indices: Array,
    spans: Array,
    first: Array,
    nodes: Array,
    W: Array,
    p: Array,
    gaps: Array,
) -> None:
    """Visit the rows in the given order; W, p (n, K) and gaps (n,) are updated in place; `lifts` are Δ, or empty."""
    n_classes = p.shape[1]
    node, room = np.empty(W.shape[1], W.dtype), np.empty(W.shape[1], W.dtype)
    s, new = np.empty(n_classes, W.dtype), np.empty(n_classes, W.dtype)
    for i in order:
        node_scores(i, data, indices, spans, W, node)
        class_scores(node, first, nodes, s)
        if lifts.size > 0:
            for k in range(n_classes):
                s[k] = (s[k] + lifts[i, k]) / width
        normaliser = log_sum_exp(s)
        gaps[i] = LEFT * kappa[i] * width * divergence(p[i], s, normaliser)
        tilt(s, normaliser, overlap * kappa[i] * norms[i] / (alpha * width), p[i], new)
        for k in range(n_classes):
            s[k] = (p[i, k] - new[k]) * (kappa[i] / alpha)
            p[i, k] = new[k]
        add_row(i, s, data, indices, spans, first, nodes, W, room)
