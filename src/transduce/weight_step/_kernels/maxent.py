"""Dual coordinate ascent for maxent and the smooth margin: the update of one row, with all its classes.

Problem.  min_W λ/2 ‖W‖² + Σ_i κ_i [γ log Σ_k exp((s_ik + Δ_ik) / γ) − q_i·s_i],  s_i = P Wᵀ x_i, with hard or soft
          labels q_i and their margins Δ_i (maxent: γ = 1 and no margins).
Dual.     p_i (K,) in the unit simplex for every row; W = 1/λ Σ_i κ_i x_i (q_i − p_i)ᵀ P.
Update.   With z = (s_i + Δ_i) / γ and B = κ_i ‖x_i‖² / (λγ) (for a tree times the largest overlap of paths, an upper
          bound on the curvature), maximise z·p + H(p) − B/2 ‖p − p_i‖² over the simplex. The optimum has
          log p_k + B p_k = z_k + B p_ik − ν and Σ p = 1, which Newton's method solves for p and ν together.
Digits.   A loop that adds up writes no array: whether it ran in vector registers, and so the order of the sum, would
          otherwise depend on where the arrays are in memory.
Stopping. gaps[i] = κ_i γ KL(p_i ‖ softmax(z)); their sum over all rows, at one W, is the duality gap.
Reference: Yu, Huang and Lin (2011), dual coordinate descent for maxent.
"""

import numpy as np

from transduce.kernels import Array, reduction
from transduce.kernels.exponentials import exp, log

TINY = 1e-30
"""Lower bound on probabilities inside a logarithm."""
NEWTON_TOL = 1e-3
"""Newton stops when no probability changes by more. The error is about the square of this, and any p is feasible."""


@reduction
def softmax_and_divergence(s: Array, p: Array, out: Array) -> tuple[float, float]:
    """Write softmax(s); return log Σ_k exp s_k, and KL(p ‖ softmax(s))."""
    top = s[0]
    for k in range(1, s.size):
        top = max(top, s[k])
    for k in range(s.size):
        out[k] = exp(s[k] - top)
    total, divergence = 0.0, 0.0
    for k in range(s.size):
        total += out[k]
        divergence += p[k] * (log(max(p[k], TINY)) - s[k])
    log_partition, scale = float(top + np.log(total)), 1.0 / total
    for k in range(s.size):
        out[k] *= scale
    return log_partition, max(log_partition + divergence, 0.0)


@reduction
def solve_row(s: Array, log_partition: float, B: float, p: Array, out: Array, logs: Array) -> float:
    """Write the solution of log out_k + B out_k = s_k + B p_k − ν, Σ out = 1, by Newton's method in log out and ν.

    Before, `out` is softmax(s), the solution for B = 0. From B = 1 on, start between it and the old p. `logs` (K,) is
    scratch space. Returns the entropy of the solution.
    """
    weight = 1.0 / (1.0 + B)
    if B < 1.0:
        for k in range(s.size):
            logs[k] = s[k] - log_partition
    else:
        for k in range(s.size):
            out[k] = max(weight * out[k] + (1.0 - weight) * p[k], TINY)
            logs[k] = log(out[k])
    for _ in range(30):
        total, weight_sum, residual = 0.0, 0.0, 0.0
        for k in range(s.size):
            share = out[k] / (1.0 + B * out[k])
            total += out[k]
            weight_sum += share
            residual += share * (s[k] + B * (p[k] - out[k]) - logs[k])
        nu = (residual - (1.0 - total)) / weight_sum
        largest = 0.0
        for k in range(s.size):
            move = (s[k] + B * (p[k] - out[k]) - logs[k] - nu) / (1.0 + B * out[k])
            largest = max(largest, abs(move) * out[k])
            moved = logs[k] + min(max(move, -4.0), 4.0)
            logs[k] = moved
            out[k] = exp(moved)
        if largest < NEWTON_TOL:
            break
    total, sum_of_logs = 0.0, 0.0
    for k in range(s.size):
        total += out[k]
        sum_of_logs += out[k] * logs[k]
    scale = 1.0 / total
    for k in range(s.size):
        out[k] *= scale
    return float(np.log(total) - scale * sum_of_logs)


@reduction
def update_row(
    s: Array, offsets: Array, width: float, weight: float, curvature: float, p: Array, new: Array, logs: Array
) -> tuple[float, float]:
    """Update p in place for scores s (K,) and margins Δ, `offsets`, which may be empty; s becomes p − p_new.

    `new` and `logs` (K,) are scratch space. Returns the gap before, and what κ (p·Δ + γ H(p)) has risen by.
    """
    if offsets.size > 0:
        for k in range(s.size):
            s[k] = (s[k] + offsets[k]) / width
    log_partition, divergence = softmax_and_divergence(s, p, new)
    entropy = solve_row(s, log_partition, curvature / width, p, new, logs)
    gain = entropy + divergence - log_partition  # less the old entropy, log_partition − divergence − p·z
    for k in range(s.size):
        gain += p[k] * s[k]
    gain *= width
    if offsets.size > 0:
        for k in range(s.size):
            gain -= (p[k] - new[k]) * offsets[k]
    for k in range(s.size):
        s[k] = p[k] - new[k]
        p[k] = new[k]
    return weight * width * divergence, weight * gain
