"""The best labels of one chain, and marginals in logarithms for chains whose probabilities are too small to scale.

Problem     max over y, or log of the sum over y, of Σ_t (S[t, y_t] + A[y_{t−1}, y_t]) less the costs of the automaton
Arrays      as in `chain`, but stay and start hold A (−inf where they had 0), and entry and last hold minus the costs
            alpha   (T, B, K) best score, or log of the sum, of all beginnings that end in this state
Update      alpha_t = S_t + max or log-sum of (alpha_{t−1} + A); backwards, the share of a predecessor in a state is
            exp(alpha_{t−1} + A + S_t − alpha_t), so that no backward messages are needed
Reference   Viterbi (1967)
"""

import numpy as np

from transduce.kernels import Array, allocating_kernel, inlined


@inlined
def join(x: float, y: float, soft: bool) -> float:
    """The larger, or the logarithm of the sum of the exponentials."""
    if x < y:
        x, y = y, x
    return x + np.log1p(np.exp(y - x)) if soft and y > -np.inf else x


@allocating_kernel
def log_forward(
    S: Array, stay: Array, start: Array, label: Array, move: Array, entry: Array, last: Array, soft: bool, alpha: Array
) -> float:
    """Fill alpha; return the best score or log Z, −inf if no labels are allowed."""
    T, K = S.shape
    B, n = last.size, label.size
    alpha[:] = -np.inf
    alpha[0, 0, :] = S[0]
    for i in range(n):
        k = label[i]
        if move[i]:
            alpha[0, 0, k] = -np.inf
        alpha[0, move[i], k] = S[0, k] + entry[0, i]
    for t in range(1, T):
        old, new = alpha[t - 1], alpha[t]
        for m in range(B):
            row = new[m]
            for j in range(K):
                p = old[m, j]
                if p == -np.inf:
                    continue
                s = stay[j]
                if soft:
                    for k in range(K):
                        row[k] = join(row[k], p + s[k], True)
                else:
                    for k in range(K):
                        row[k] = max(row[k], p + s[k])
                for i in range(n):
                    to, k = m | move[i], label[i]
                    new[to, k] = join(new[to, k], p + start[j, i] + entry[m, i], soft)
        for m in range(B):
            for k in range(K):
                new[m, k] += S[t, k]
    value = -np.inf
    for m in range(B):
        for k in range(K):
            value = join(value, alpha[T - 1, m, k] + last[m], soft)
    return value


@allocating_kernel
def backtrace(
    S: Array, stay: Array, start: Array, label: Array, move: Array, entry: Array, last: Array, alpha: Array, y: Array
) -> None:
    """Write the best labels y (T,); of equal ones the first."""
    T, K = S.shape
    B, best, m, k = last.size, -np.inf, 0, 0
    for each in range(B):
        for j in range(K):
            if alpha[T - 1, each, j] + last[each] > best:
                best, m, k = alpha[T - 1, each, j] + last[each], each, j
    y[T - 1] = k
    for t in range(T - 1, 0, -1):
        old, best, to, back = alpha[t - 1], -np.inf, m, 0
        for j in range(K):
            if old[m, j] + stay[j, k] > best:
                best, to, back = old[m, j] + stay[j, k], m, j
        for i in range(label.size):
            if label[i] == k:
                for each in range(B):
                    if each | move[i] == m:
                        for j in range(K):
                            score = old[each, j] + start[j, i] + entry[each, i]
                            if score > best:
                                best, to, back = score, each, j
        m, k = to, back
        y[t - 1] = k


@allocating_kernel
def smooth(
    S: Array, stay: Array, start: Array, label: Array, move: Array, entry: Array, last: Array, alpha: Array,
    value: float, E: Array, edges: Array,
) -> None:  # fmt: skip
    """Write marginals E (T, K), given alpha and value = log Z, and add expected transitions to edges."""
    T, K = S.shape
    B, n = last.size, label.size
    p, q = np.empty((B, K)), np.empty((B, K))
    for m in range(B):
        for k in range(K):
            p[m, k] = np.exp(alpha[T - 1, m, k] + last[m] - value)
    for t in range(T - 1, -1, -1):
        for k in range(K):
            E[t, k] = p[:, k].sum()
        if t == 0:
            return
        old, new = alpha[t - 1], alpha[t]
        q[:] = 0.0
        for m in range(B):
            for j in range(K):
                if old[m, j] == -np.inf:
                    continue
                for k in range(K):
                    if p[m, k] > 0.0:
                        part = p[m, k] * np.exp(old[m, j] + stay[j, k] + S[t, k] - new[m, k])
                        q[m, j] += part
                        edges[j, k] += part
                for i in range(n):
                    to, k = m | move[i], label[i]
                    if p[to, k] > 0.0:
                        part = p[to, k] * np.exp(old[m, j] + start[j, i] + entry[m, i] + S[t, k] - new[to, k])
                        q[m, j] += part
                        edges[j, k] += part
        p, q = q, p
