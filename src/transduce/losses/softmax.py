"""Scores read as log probabilities: the softmax, its logarithm, and the posterior that scores stand for."""

import numpy as np
from numpy.typing import ArrayLike

from transduce.losses.base import FloatArray
from transduce.losses.row_blocks import in_blocks, score_matrix


def write_surprise(S: FloatArray, out: FloatArray) -> None:
    """Write −log softmax."""
    np.subtract(S, S.max(axis=1, keepdims=True), out=out)
    np.subtract(log_sum_exp(out), out, out=out)


def log_sum_exp(S: FloatArray) -> FloatArray:
    """log Σ exp (n, 1) of scores whose largest is 0."""
    total: FloatArray = np.exp(S).sum(axis=1, keepdims=True)
    return np.log(total, out=total)


def write_softmax(S: FloatArray, out: FloatArray) -> None:
    """Write the probabilities of which S are the logarithms, up to a constant of each row."""
    np.subtract(S, S.max(axis=1, keepdims=True), out=out)
    np.exp(out, out=out)
    out /= out.sum(axis=1, keepdims=True)


def posterior_at(scores: ArrayLike, softness: float) -> FloatArray:
    """Probabilities (n, K) of which the scores, divided by the softness, are the logarithms."""
    S = score_matrix(scores)
    posterior = np.empty_like(S)

    def write(rows: slice) -> None:
        soft = S[rows] if softness == 1.0 else np.divide(S[rows], S.dtype.type(softness), out=posterior[rows])
        write_softmax(soft, posterior[rows])

    in_blocks(S, 1, write)
    return posterior
