"""Dual coordinate ascent for maxent and the smooth margin: one row, with all its classes, at a time.

Problem.  min_W λ/2 ‖W‖² + Σ_i κ_i [γ log Σ_k exp((s_ik + Δ_ik) / γ) − q_i·s_i],  s_i = P Wᵀ x_i, with hard or soft
          labels q_i and their margins Δ_i (maxent: γ = 1 and no margins).
Dual.     p_i (K,) in the unit simplex for every row; W = 1/λ Σ_i κ_i x_i (q_i − p_i)ᵀ P.
Update.   With z = (s_i + Δ_i) / γ and B = κ_i ‖x_i‖² / (λγ) (for a tree times the largest overlap of paths, an upper
          bound on the curvature), maximise z·p + H(p) − B/2 ‖p − p_i‖² over the simplex. The optimum has
          log p_k + B p_k = z_k + B p_ik − ν and Σ p = 1, which Newton's method solves for p and ν together.
Stopping. gaps[i] = κ_i γ KL(p_i ‖ softmax(z)); their sum over all rows, at one W, is the duality gap.
Reference: Yu, Huang and Lin (2011), dual coordinate descent for maxent.
"""

import numpy as np

from transduce.kernels import kernel
from transduce.kernels.rows import Array, add_row, class_scores, node_scores
from transduce.weight_step._kernels import GAP_LEFT

TINY = 1e-30
"""Lower bound on probabilities inside a logarithm."""
NEWTON_TOL = 1e-3
"""Newton stops when no probability changes by more. The error is about the square of this, and any p is feasible."""


@kernel
def softmax_and_divergence(s: Array, p: Array, out: Array) -> tuple[float, float]:
    """Write softmax(s); return log Σ_k exp s_k, and KL(p ‖ softmax(s))."""
    top = s[0]
    for k in range(1, s.size):
        top = max(top, s[k])
    total = 0.0
    for k in range(s.size):
        out[k] = np.exp(s[k] - top)
        total += out[k]
    log_partition = float(top + np.log(total))
    divergence = log_partition
    for k in range(s.size):
        out[k] /= total
        if p[k] > 0.0:
            divergence += p[k] * (np.log(p[k]) - s[k])
    return log_partition, max(divergence, 0.0)


@kernel
def solve_row(s: Array, log_partition: float, B: float, p: Array, out: Array) -> None:
    """Write the solution of log out_k + B out_k = s_k + B p_k − ν, Σ out = 1, by Newton's method in log out and ν.

    Before, `out` is softmax(s), the solution for B = 0. From B = 1 on, start between it and the old p.
    """
    logs, weight = np.empty(s.size), 1.0 / (1.0 + B)
    for k in range(s.size):
        if B < 1.0:
            logs[k] = s[k] - log_partition
        else:
            out[k] = max(weight * out[k] + (1.0 - weight) * p[k], TINY)
            logs[k] = np.log(out[k])
    for _ in range(30):
        total, weight_sum, residual = 0.0, 0.0, 0.0
        for k in range(s.size):
            slope = 1.0 / (1.0 + B * out[k])
            total += out[k]
            weight_sum += out[k] * slope
            residual += out[k] * slope * (s[k] + B * (p[k] - out[k]) - logs[k])
        nu = (residual - (1.0 - total)) / weight_sum
        largest = 0.0
        for k in range(s.size):
            move = (s[k] + B * (p[k] - out[k]) - logs[k] - nu) / (1.0 + B * out[k])
            logs[k] += min(max(move, -4.0), 4.0)
            largest = max(largest, abs(move) * out[k])
        for k in range(s.size):
            out[k] = np.exp(logs[k])
        if largest < NEWTON_TOL:
            break
    total = 0.0
    for k in range(s.size):
        total += out[k]
    for k in range(s.size):
        out[k] /= total


@kernel
def sweep(
    order: Array, kappa: Array, norms: Array, alpha: float, overlap: float, width: float, offsets: Array,
    data: Array, indices: Array, spans: Array, constant: float, starts: Array, nodes: Array,
    W: Array, p: Array, gaps: Array,
) -> None:  # fmt: skip
    """Update the rows in the given order; offsets (n, K) are Δ, or empty; `overlap` is the largest overlap of paths."""
    n_classes = p.shape[1]
    by_node, work = np.empty(W.shape[1], W.dtype), np.empty(W.shape[1], W.dtype)
    s, new = np.empty(n_classes, W.dtype), np.empty(n_classes, W.dtype)
    for i in order:
        node_scores(i, data, indices, spans, constant, W, by_node)
        class_scores(by_node, starts, nodes, s)
        if offsets.size > 0:
            for k in range(n_classes):
                s[k] = (s[k] + offsets[i, k]) / width
        log_partition, divergence = softmax_and_divergence(s, p[i], new)
        gaps[i] = GAP_LEFT * kappa[i] * width * divergence
        solve_row(s, log_partition, overlap * kappa[i] * norms[i] / (alpha * width), p[i], new)
        for k in range(n_classes):
            s[k] = (p[i, k] - new[k]) * (kappa[i] / alpha)
            p[i, k] = new[k]
        add_row(i, s, data, indices, spans, constant, starts, nodes, W, work)


@kernel
def entropy(p: Array) -> float:
    """−Σ_k p_k log p_k."""
    total = 0.0
    for k in range(p.size):
        if p[k] > 0.0:
            total -= p[k] * np.log(p[k])
    return total


@kernel
def update_rows(
    rows: Array, kappa: Array, norms: Array, alpha: float, overlap: float, width: float, offsets: Array,
    S: Array, p: Array, gaps: Array, gains: Array,
) -> None:  # fmt: skip
    """Update each of the rows (b,) alone, at scores S (b, K); see `batches`. offsets (b, K) are Δ, or empty."""
    s, new = np.empty(p.shape[1], S.dtype), np.empty(p.shape[1], S.dtype)
    for r in range(rows.size):
        i = rows[r]
        for k in range(s.size):
            offset = offsets[r, k] if offsets.size > 0 else 0.0
            s[k] = (S[r, k] + offset) / width
        log_partition, divergence = softmax_and_divergence(s, p[i], new)
        gaps[i] = GAP_LEFT * kappa[i] * width * divergence
        solve_row(s, log_partition, overlap * kappa[i] * norms[i] / (alpha * width), p[i], new)
        gain = width * (entropy(new) - entropy(p[i]))
        for k in range(s.size):
            if offsets.size > 0:
                gain += (new[k] - p[i, k]) * offsets[r, k]
            S[r, k] = (p[i, k] - new[k]) * (kappa[i] / alpha)
            p[i, k] = new[k]
        gains[r] = kappa[i] * gain
