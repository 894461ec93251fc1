"""Forward-backward on one chain, restricted by a small automaton, with scaled probabilities.

Problem     marginals of p(y) ∝ exp Σ_t (S[t, y_t] + A[y_{t−1}, y_t]), times weights of what the automaton has seen
Automaton   its state is a set of bits, at first none. A block of label `label[i]` that starts while the bits are m
            has weight `entry[m, i]` and sets the bits `move[i]`; a chain that ends with bits m has weight `last[m]`.
            Without constraints n = 0, and there is one state.
Arrays      stay    (K, K) exp(A), 0 for transitions that start a block of one of the n labels
            start   (K, n) exp(A) for these transitions, else 0
            entry   (B, n), last (B,), B the number of sets of bits
            E       (T, K) scores on entry, −inf for labels that are not allowed; marginals on return
            a       (T, B, K) forward probabilities, scaled to sum 1 at each t
            edges   (K, K) expected transitions are added to it
Update      a_t = E_t * (a_{t−1} → stay, start), divided by its sum c_t; b_{t−1} = (stay, start ← E_t * b_t) / c_t
Reference   Rabiner (1989), section V.A
"""

import numpy as np

from transduce.kernels import Array, allocating_kernel, allocating_reduction

TINY = 1e-250
"""A sum or a state below this has lost digits: the chain is then solved with logarithms."""


@allocating_reduction
def forward_backward(
    E: Array, stay: Array, start: Array, label: Array, move: Array, entry: Array, last: Array, a: Array, edges: Array
) -> float:
    """Overwrite E with marginals and add to edges; return log Z, or −inf if a number is too small, and E is spoilt."""
    T, K = E.shape
    B, n, log_z = last.size, label.size, 0.0
    c, g, b, raw = np.empty(T), np.empty((B, K)), np.empty((B, K)), np.zeros((K, K))
    raw_start = np.zeros((K, n))
    for t in range(T):
        new, e, top = a[t], E[t], E[t].max()
        if top == -np.inf:
            return -np.inf
        log_z += top
        for k in range(K):
            if -np.inf < e[k] < top - 500.0:  # exp is below TINY, or 0
                return -np.inf
            e[k] = np.exp(e[k] - top)
        new[:] = 0.0
        if t == 0:
            for k in range(K):
                new[0, k] = 1.0
            for i in range(n):
                if move[i]:
                    new[0, label[i]] = 0.0
                new[move[i], label[i]] = entry[0, i]
        else:
            _forward(a[t - 1], stay, start, label, move, entry, new)
        total = 0.0
        for m in range(B):
            for k in range(K):
                new[m, k] *= e[k]
                total += new[m, k]
        if total < TINY:
            return -np.inf
        for m in range(B):
            for k in range(K):
                p = new[m, k]
                if p < TINY * total and (
                    p > 0.0 or (t and e[k] > 0.0 and _is_reached(a[t - 1], stay, start, label, move, entry, m, k))
                ):
                    return -np.inf
                new[m, k] = p / total
        c[t] = total
        log_z += np.log(total)
    total = 0.0
    for m in range(B):
        total += last[m] * a[T - 1, m].sum()
    if total < TINY:
        return -np.inf
    for m in range(B):
        b[m, :] = last[m] / total
    for t in range(T - 1, -1, -1):
        e, at = E[t], a[t]
        for m in range(B):
            for k in range(K):
                g[m, k] = e[k] * b[m, k] / c[t]
        e[:] = 0.0
        for m in range(B):
            for k in range(K):
                e[k] += at[m, k] * b[m, k]
        if t:
            _backward(a[t - 1], stay, start, label, move, entry, g, b, raw, raw_start)
    for j in range(K):
        for k in range(K):
            edges[j, k] += raw[j, k] * stay[j, k]
        for i in range(n):
            edges[j, label[i]] += raw_start[j, i] * start[j, i]
    return float(log_z + np.log(total))


@allocating_kernel
def _is_reached(old: Array, stay: Array, start: Array, label: Array, move: Array, entry: Array, m: int, k: int) -> bool:
    """Whether a transition leads to label k with bits m, so that a probability of 0 is a rounding error."""
    B, K = old.shape
    for j in range(K):
        if old[m, j] > 0.0 and stay[j, k] > 0.0:
            return True
    for i in range(label.size):
        if label[i] == k:
            for bits in range(B):
                if bits | move[i] == m and entry[bits, i] > 0.0:
                    for j in range(K):
                        if old[bits, j] > 0.0 and start[j, i] > 0.0:
                            return True
    return False


@allocating_kernel
def _forward(old: Array, stay: Array, start: Array, label: Array, move: Array, entry: Array, new: Array) -> None:
    """Add old (B, K) times the transitions to new (B, K)."""
    B, K = old.shape
    for m in range(B):
        row = new[m]
        for j in range(K):
            p = old[m, j]
            if p == 0.0:
                continue
            s = stay[j]
            for k in range(K):
                row[k] += p * s[k]
            for i in range(label.size):
                new[m | move[i], label[i]] += p * start[j, i] * entry[m, i]


@allocating_reduction
def _backward(
    a: Array, stay: Array, start: Array, label: Array, move: Array, entry: Array, g: Array, b: Array, raw: Array,
    raw_start: Array,
) -> None:  # fmt: skip
    """Write b (B, K) = transitions times g (B, K), and add a gᵀ to the raw sums of transitions."""
    B, K = a.shape
    for m in range(B):
        gm = g[m]
        for j in range(K):
            p, total, s, r = a[m, j], 0.0, stay[j], raw[j]
            for k in range(K):
                total += s[k] * gm[k]
                r[k] += p * gm[k]
            for i in range(label.size):
                onward = entry[m, i] * g[m | move[i], label[i]]
                total += start[j, i] * onward
                raw_start[j, i] += p * onward
            b[m, j] = total
