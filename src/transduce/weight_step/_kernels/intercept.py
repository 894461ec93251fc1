"""The weights b of the constant feature, which move a few times in a sweep, given how rows answer.

All rows share the constant: were its weights to follow the dual variables at once, as all others do, rows would have to
take steps many times as short. So b stays while rows of a part of a sweep are visited, and then moves towards

    b(p) = c/λ Σ_i κ_i (q_i − p_i)ᵀ P,     where it is optimal,

by a diagonal step of Newton's method for rows that answer alone: a dual variable gives way to its score by 1 / B where
it is positive, with B the curvature of the row. Together rows answer less than that, so each entry's step grows while
the entry keeps moving the same way, and shrinks when it turns round (Riedmiller and Braun 1993). The duality gap
includes λ/2 ‖b − b(p)‖². Where rows are few, b jumps to b(p) after every batch instead, as if it were stored in W.
"""

from transduce.kernels import Array, kernel
from transduce.weight_step._kernels import MARGIN, MAXENT

STAY, STEP, JUMP = 0, 1, 2
"""Whether b stays after a batch, moves towards b(p), or becomes b(p)."""
GROWTH, SHRINKAGE, MAX_RATE = 1.6, 0.4, 10.0
"""Factors of a step in the same direction as the last one, and in the opposite one; largest factor of Newton's step."""
MAX_FRACTION = 0.1
"""Largest part of the way to b(p) that a step longer than Newton's may go."""
FLATTEST = 1e-2
"""Least curvature of a row that dual variables are said to give way by."""


@kernel
def add_compliance(loss: int, label: int, curvature: float, width: float, weight: float, p: Array, out: Array) -> None:
    """Add to out (K,) how far the dual variables p (K,) of a row give way to their scores, times its weight."""
    if loss == MAXENT:
        for k in range(p.size):
            out[k] += weight * p[k] / (width + curvature * p[k])
        return
    each, total = weight * (1.0 if loss == MARGIN else 2.0) / max(curvature, FLATTEST), 0.0
    for k in range(p.size):
        if p[k] > 0.0:
            out[k] += each
            total += each
    if loss != MARGIN:
        out[label] += total


@kernel
def compliance_of_rows(
    rows: Array, loss: int, labels: Array, curvatures: Array, width: float, kappa: Array, p: Array, out: Array
) -> None:
    """Add to out (K,) how far the dual variables of these rows give way to the scores of each class, times κ."""
    for i in rows:
        if kappa[i] > 0.0:
            label = labels[i] if labels.size > 0 else 0
            add_compliance(loss, label, curvatures[i], width, kappa[i], p[i], out)


@kernel
def move(b: Array, balance: Array, rates: Array, residual: Array, slopes: Array, ratio: float) -> None:
    """Move b (M,) towards b(p) = balance (M,), given slopes (M,) and ratio = c² / λ; rates and residual follow."""
    for j in range(b.size):
        left = balance[j] - b[j]
        turn = left * residual[j]
        if turn > 0.0:
            rates[j] *= GROWTH
        elif turn < 0.0:
            rates[j] *= SHRINKAGE
        whole = 1.0 + ratio * max(slopes[j], 0.0)
        rates[j] = min(rates[j], MAX_RATE, max(1.0, MAX_FRACTION * whole))
        b[j] += rates[j] / whole * left
        residual[j] = left
