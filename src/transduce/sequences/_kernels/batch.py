"""Chains of one automaton, one after another: scores and prices in; marginals, expected counts or best labels out.

Arrays      S       (N, K) token scores of all chains
            bias    (R, K) scores that are added, −inf for labels that a token must not have
            rows    (N,) which row of bias is for each token; empty for none
            spans   (n, 2) first token of each chain, and the one after its last
            A       (K + 2, K) transitions, then scores of the first and of the last label
            v       (K,) prices, added to every token's scores
            tables  of the automaton, in probabilities for `chain` and in logarithms for `log_chain`
"""

import numpy as np

from transduce.kernels import Array, allocating_kernel
from transduce.sequences._kernels.chain import forward_backward
from transduce.sequences._kernels.log_chain import backtrace, log_forward, smooth


@allocating_kernel
def chain_scores(
    S: Array, bias: Array, rows: Array, begin: int, end: int, A: Array, v: Array, scale: float, out: Array
) -> None:
    """Write out (T, K) = scale (S + bias + v), with the scores of the first and last labels."""
    K = S.shape[1]
    for t in range(begin, end):
        row = out[t - begin]
        for k in range(K):
            row[k] = scale * (S[t, k] + v[k])
        if rows.size:
            more = bias[rows[t]]
            for k in range(K):
                row[k] += scale * more[k]
    for k in range(K):
        out[0, k] += scale * A[K, k]
        out[end - begin - 1, k] += scale * A[K + 1, k]


@allocating_kernel
def batch_marginals(
    S: Array, bias: Array, rows: Array, spans: Array, weights: Array, A: Array, v: Array, scale: float, shift: float,
    stay: Array, start: Array, entry: Array, last: Array, log_stay: Array, log_start: Array, log_entry: Array,
    log_last: Array, label: Array, move: Array, field: Array, starts: Array, log_z: Array, edges: Array, tokens: Array,
    blocks: Array, peaks: Array, out: Array,
) -> None:  # fmt: skip
    """Write log Z (n,) of each chain; add weighted transitions, first and last labels to edges (K + 2, K).

    Marginals, weighted, go to out (N, K) unless it is empty; their unweighted sums are added to tokens (K,). `shift` is
    what was subtracted from the scaled transitions before they were exponentiated. Given `field` (K,) and `starts`
    (K + 1, K) as in `violations`, expected blocks of each field go to blocks (n, F), and the largest marginal to peaks.
    """
    K, longest = S.shape[1], 0
    for i in range(spans.shape[0]):
        longest = max(longest, spans[i, 1] - spans[i, 0])
    E, saved, a = np.empty((longest, K)), np.empty((longest, K)), np.empty((longest, last.size, K))
    own = np.empty((K, K))
    for i in range(spans.shape[0]):
        begin, end, w = spans[i, 0], spans[i, 1], weights[i]
        T = end - begin
        e = E[:T]
        chain_scores(S, bias, rows, begin, end, A, v, scale, e)
        saved[:T] = e
        own[:] = 0.0
        log_z[i] = forward_backward(e, stay, start, label, move, entry, last, a[:T], own) + (T - 1) * shift
        if log_z[i] == -np.inf:
            own[:] = 0.0
            s = saved[:T]
            log_z[i] = log_forward(s, log_stay, log_start, label, move, log_entry, log_last, True, a[:T])
            if log_z[i] == -np.inf:
                return
            smooth(s, log_stay, log_start, label, move, log_entry, log_last, a[:T], log_z[i], e, own)
        for k in range(K):
            for j in range(K):
                edges[j, k] += w * own[j, k]
            edges[K, k] += w * e[0, k]
            edges[K + 1, k] += w * e[T - 1, k]
        for t in range(T):
            for k in range(K):
                tokens[k] += e[t, k]
        if field.size:
            block_sums(e, own, field, starts, blocks[i], peaks[i])
        if out.size:
            for t in range(T):
                for k in range(K):
                    out[begin + t, k] = w * e[t, k]


@allocating_kernel
def block_sums(e: Array, edges: Array, field: Array, starts: Array, blocks: Array, peaks: Array) -> None:
    """Write expected blocks (F,) of a chain and the largest marginal (F,) of each field, given e (T, K) and edges."""
    K, by_field = field.size, np.empty(blocks.size)
    blocks[:] = 0.0
    peaks[:] = 0.0
    for k in range(K):
        if field[k] >= 0:
            blocks[field[k]] += e[0, k]
            for j in range(K):
                if starts[j, k]:
                    blocks[field[k]] += edges[j, k]
    for t in range(e.shape[0]):
        by_field[:] = 0.0
        for k in range(K):
            if field[k] >= 0:
                by_field[field[k]] += e[t, k]
        for f in range(blocks.size):
            peaks[f] = max(peaks[f], by_field[f])


@allocating_kernel
def batch_viterbi(
    S: Array, bias: Array, rows: Array, spans: Array, A: Array, v: Array, log_stay: Array, log_start: Array,
    log_entry: Array, log_last: Array, label: Array, move: Array, values: Array, y: Array,
) -> None:  # fmt: skip
    """Write the best score (n,) of each chain, −inf if none is allowed, and the labels y (N,)."""
    K, longest = S.shape[1], 0
    for i in range(spans.shape[0]):
        longest = max(longest, spans[i, 1] - spans[i, 0])
    E, alpha = np.empty((longest, K)), np.empty((longest, log_last.size, K))
    for i in range(spans.shape[0]):
        begin, end = spans[i, 0], spans[i, 1]
        s, a = E[: end - begin], alpha[: end - begin]
        chain_scores(S, bias, rows, begin, end, A, v, 1.0, s)
        values[i] = log_forward(s, log_stay, log_start, label, move, log_entry, log_last, False, a)
        if values[i] > -np.inf:
            backtrace(s, log_stay, log_start, label, move, log_entry, log_last, a, y[begin:end])


@allocating_kernel
def score_labels(S: Array, bias: Array, rows: Array, spans: Array, A: Array, y: Array, out: Array) -> None:
    """Write the score (n,) of the labels y (N,) of each chain."""
    K = S.shape[1]
    for i in range(spans.shape[0]):
        begin, end = spans[i, 0], spans[i, 1]
        total = A[K, y[begin]] + A[K + 1, y[end - 1]]
        for t in range(begin, end):
            total += S[t, y[t]]
            if rows.size:
                total += bias[rows[t], y[t]]
            if t > begin:
                total += A[y[t - 1], y[t]]
        out[i] = total
