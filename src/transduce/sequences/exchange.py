"""Choose one of several labellings of each sequence for the least cost with counts: a small integer programme.

    min Σ_sc x_sc c_sc + Σ_j f_j(n_j) + penalty · distance of n_j from its bounds,    n_j = n⁰_j + Σ_sc x_sc d_scj

The binary x_sc says whether sequence s takes labelling c in the place of its own, c_sc what that costs, and d_scj by
how much it changes count j. A convex f_j is the largest of lines through its values at neighbouring integers. At
optimal prices nearly all sequences keep their labels, so labellings that cost little at these prices are enough, and
the branch and bound of SciPy's `milp` takes few nodes.
"""

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from transduce.arrays import FloatArray, IntArray

MAX_CHOICES, MAX_NODES = 2000, 200
"""Most labellings among which to choose, those that cost least at the prices; most nodes of the branch and bound."""
PENALTY = 100.0
"""Cost of a token or block outside the bounds."""
STEPS = np.concatenate((-(2.0 ** np.arange(7)[::-1]), [0.0], 2.0 ** np.arange(7)))
"""Changes of a count at which lines touch the cost of a belief."""


def choose_labelings(scores: FloatArray, tallies: FloatArray, table: FloatArray, u: FloatArray) -> IntArray:
    """Return which of C labellings each of n sequences takes, (n,).

    scores (C, n) and counts in a sequence (C, n, J) are those of each labelling, the first of which are the present
    ones. `table` (J, 5) has the present counts of all sequences, mean and strength of beliefs, and the bounds; u (J,)
    are the prices.
    """
    costs, changes = scores[:1] - scores, tallies - tallies[:1]
    priced = costs - changes @ u
    labeling, sequence = np.nonzero((changes.any(axis=2) | (costs < 0.0)) & np.isfinite(priced))
    order = np.argsort(priced[labeling, sequence], kind="stable")
    labeling, sequence = labeling[order], sequence[order]
    first = np.unique(np.column_stack((sequence, changes[labeling, sequence])), axis=0, return_index=True)[1]
    kept = np.sort(first)[:MAX_CHOICES]  # of labellings with the same counts, the best one
    labeling, sequence = labeling[kept], sequence[kept]
    chosen = np.zeros(scores.shape[1], np.int64)
    if kept.size:
        taken = _solve(costs[labeling, sequence], changes[labeling, sequence], sequence, table)
        chosen[sequence[taken]] = labeling[taken]
    return chosen


def _solve(costs: FloatArray, changes: FloatArray, sequence: IntArray, table: FloatArray) -> IntArray:
    """Which of the labellings to take, given their costs (x,), changes of the counts (x, J) and sequences (x,).

    Variables are x, counts below and above their bounds (2 J,), and costs of beliefs (B,).
    """
    believed = np.flatnonzero(table[:, 2] > 0.0)
    n, J, B = costs.size, len(table), believed.size
    eye, none = sparse.identity(J), sparse.csr_matrix
    one = sparse.csr_matrix((np.ones(n), (sequence, np.arange(n))))
    rows = [LinearConstraint(sparse.hstack((one, none((one.shape[0], 2 * J + B)))), -np.inf, 1.0)]
    counts = sparse.hstack((sparse.csr_matrix(changes.T), eye, -eye, none((J, B))))
    rows.append(LinearConstraint(counts, table[:, 3] - table[:, 0], table[:, 4] - table[:, 0]))
    for step in STEPS if B else ():
        at = np.maximum(table[believed, 0] + step, 0.0)
        low = _belief_cost(table[believed], at)
        slope = _belief_cost(table[believed], at + 1.0) - low
        line = sparse.hstack(
            (-sparse.diags(slope) @ sparse.csr_matrix(changes.T)[believed], none((B, 2 * J)), sparse.identity(B))
        )
        rows.append(LinearConstraint(line, low + slope * (table[believed, 0] - at), np.inf))
    found = milp(
        np.concatenate((costs, np.full(2 * J, PENALTY), np.ones(B))),
        integrality=np.repeat([1, 0], [n, 2 * J + B]),
        bounds=Bounds(np.repeat([0.0, -np.inf], [n + 2 * J, B]), np.repeat([1.0, np.inf], [n, 2 * J + B])),
        constraints=rows,
        options={"node_limit": MAX_NODES, "mip_rel_gap": 1e-6},
    )
    return np.zeros(0, np.int64) if found.x is None else np.flatnonzero(found.x[:n] > 0.5)


def _belief_cost(table: FloatArray, counts: FloatArray) -> FloatArray:
    """strength · (mean − n + n log(n / mean)) of counts n, for these rows of the table."""
    mean, strength = table[:, 1], table[:, 2]
    return np.asarray(strength * (mean - counts + counts * np.log(np.maximum(counts, 1e-300) / mean)))
