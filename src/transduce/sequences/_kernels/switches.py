"""Hill climbing in the labels of single tokens, which closes what prices leave open.

Problem     min over y of Σ_s cost_s(y) + Σ_k f_k(n_k), f_k the belief about the count n_k, and big times the
            distance of n_k from [low_k, high_k]; switches of one token change the cost by local terms
Arrays      S, bias, rows, A as in `batch`; prices are not added
            order   (m,) tokens to visit
            first, last (m,) of the sequence of each of these tokens
            counts  (K + F, 5) tokens of each label that count, then blocks of each field, each with the mean and
                    strength of the belief and the bounds; changed in place, and so is y (N,)
Update      each token takes the label that lowers the cost most, if one lowers it and breaks no constraint
Reference   Algorithm 2 of Keerthi, Sundararajan and Shevade (2012), where counts are costs instead of given
"""

import numpy as np

from transduce.kernels import Array, allocating_kernel
from transduce.sequences._kernels.violations import chain_violations

BIG = 1e6
"""Cost of a token too many or too few."""


@allocating_kernel
def count_cost(row: Array, more: float) -> float:
    """f(n), and the cost of the distance from the bounds, for the count of this row and some more."""
    n, mean, strength, low, high = row[0] + more, row[1], row[2], row[3], row[4]
    cost = BIG * (max(low - n, 0.0) + max(n - high, 0.0))
    if strength > 0.0:
        cost += strength * (mean - n + (n * np.log(n / mean) if n > 0.0 else 0.0))
    return float(cost)


@allocating_kernel
def block_changes(y: Array, t: int, k: int, begin: int, end: int, field: Array, starts: Array, change: Array) -> None:
    """Write how many more blocks of each field (F,) there are if token t gets label k."""
    K, old = field.size, y[t]
    before = K
    if t > begin:
        before = y[t - 1]
    change[:] = 0.0
    if field[old] >= 0 and starts[before, old]:
        change[field[old]] -= 1.0
    if field[k] >= 0 and starts[before, k]:
        change[field[k]] += 1.0
    if t + 1 < end and field[y[t + 1]] >= 0:
        change[field[y[t + 1]]] += 1.0 * starts[k, y[t + 1]] - 1.0 * starts[old, y[t + 1]]


@allocating_kernel
def switch_gain(S: Array, bias: Array, rows: Array, A: Array, y: Array, t: int, k: int, begin: int, end: int) -> float:
    """Score gained if token t gets label k."""
    K, old = S.shape[1], y[t]
    gain = S[t, k] - S[t, old]
    if rows.size:
        gain += bias[rows[t], k] - bias[rows[t], old]
    before, after = (K, K + 1)
    if t > begin:
        before = y[t - 1]
    gain += A[before, k] - A[before, old]
    if t + 1 < end:
        gain += A[k, y[t + 1]] - A[old, y[t + 1]]
    else:
        gain += A[after, k] - A[after, old]
    return float(gain)


@allocating_kernel
def switch_tokens(
    S: Array, bias: Array, rows: Array, A: Array, order: Array, first: Array, last: Array, counts: Array, field: Array,
    starts: Array, most: Array, before: Array, least: Array, needs: Array, y: Array,
) -> int:  # fmt: skip
    """Visit tokens once; return how many changed."""
    K, n_moved, change_of = S.shape[1], 0, np.zeros(counts.shape[0] - S.shape[1])
    seen, broken = np.zeros(most.size, np.int64), np.zeros(most.size, np.bool_)
    for i in range(order.size):
        t, begin, end = order[i], first[i], last[i]
        old, best, to = y[t], -1e-9, -1
        leave = count_cost(counts[old], -1.0) - count_cost(counts[old], 0.0)
        own = -1.0
        for k in range(K):
            if k == old:
                continue
            gain = switch_gain(S, bias, rows, A, y, t, k, begin, end)
            change = leave - gain + count_cost(counts[k], 1.0) - count_cost(counts[k], 0.0)
            if change_of.size:
                block_changes(y, t, k, begin, end, field, starts, change_of)
                for f in range(change_of.size):
                    if change_of[f] != 0.0:
                        change += count_cost(counts[K + f], change_of[f]) - count_cost(counts[K + f], 0.0)
            if change < best:
                if most.size:
                    if own < 0.0:
                        own = chain_violations(y[begin:end], field, starts, most, before, least, needs, seen, broken)
                    y[t] = k
                    change += chain_violations(y[begin:end], field, starts, most, before, least, needs, seen, broken)
                    y[t] = old
                    change -= own
                if change < best:
                    best, to = change, k
        if to >= 0:
            if change_of.size:
                block_changes(y, t, to, begin, end, field, starts, change_of)
                counts[K:, 0] += change_of
            y[t] = to
            counts[old, 0] -= 1.0
            counts[to, 0] += 1.0
            n_moved += 1
    return n_moved
