"""Choose unlabelled rows where a person's label would help most.

A row is worth asking about if the classifier is uncertain, if many rows are similar to it (density), and if nothing
similar is in the queue yet (novelty); no text is asked about twice:

    worth(i) = uncertainty(i) * mean_j max(0, x_i·x_j) * (1 - max_{c chosen} x_i·x_c)^4
    uncertainty(i) = 1 - (p_best - p_runner_up), or 1 for a row that fits no class

Products of words are never negative; of rows with negative numbers, as vectors have, the mean is over a sample.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags

from transduce.cli.errors import InputError

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

NOVELTY_POWER = 4
MIN_POOL, POOL_PER_ROW = 1000, 10
"""The queue is chosen from the rows with the largest uncertainty times density, so that a million rows stay fast."""
N_SAMPLE, BLOCK_ROWS = 500, 10_000
_TINY = 1e-9


def choose_rows(
    probabilities: NDArray[Any], X: Any, n: int, *, seed: int = 0, fits_none: NDArray[np.bool_] | None = None
) -> IntArray:
    """Choose n rows to ask about, most useful first; fewer where there are fewer distinct texts.

    probabilities (m, K) and features X (m, d), sparse or an array, are those of the unlabelled rows, and so are the
    row numbers returned. `fits_none` (m,) marks rows that fit no class. The seed decides between rows of equal worth.
    """
    P, X = np.asarray(probabilities, dtype=np.float64), X if isinstance(X, np.ndarray) else csr_matrix(X)
    if n < 1:
        raise InputError(f"the number of rows to queue must be 1 or more, but is {n}.")
    if P.ndim != 2 or P.shape[0] != X.shape[0] or P.shape[1] == 0:
        raise ValueError(f"probabilities must be (rows, classes) for the {X.shape[0]} rows of X, but are {P.shape}.")
    if not np.isfinite(P).all() or not np.isfinite(X if isinstance(X, np.ndarray) else X.data).all():
        raise ValueError("probabilities and X must be finite, but hold NaN or infinity.")
    X, empty = _unit_rows(X)
    jitter = np.random.default_rng(seed).random(len(P))
    density = _density(X, seed)
    uncertainty = _uncertainty(P) if fits_none is None else np.where(fits_none, 1.0, _uncertainty(P))
    worth = np.maximum(uncertainty, _TINY) * np.maximum(density, _TINY) * (1 + _TINY * jitter)
    worth[empty] = 0.0
    distinct = _distinct_rows(X, seed)
    n_pool = min(distinct.size, max(MIN_POOL, POOL_PER_ROW * n))
    pool = distinct[np.argsort(-worth[distinct], kind="stable")[:n_pool]]
    return np.asarray(pool[_spread_out(worth[pool], csr_matrix(X[pool]), min(n, n_pool))])


def suspicious_first(suspicion: FloatArray, chosen: IntArray) -> IntArray:
    """Rows whose guess looks wrong, the clearest first, then chosen rows; as many as were chosen.

    >>> suspicious_first(np.array([0.0, 1.0, 0.0, 5.0]), np.array([2, 1, 0])).tolist()
    [3, 1, 2]
    """
    order = np.argsort(-suspicion, kind="stable")
    suspects = order[suspicion[order] > 0]
    rest = chosen[~np.isin(chosen, suspects)]
    return np.concatenate((suspects, rest))[: chosen.size]


def _unit_rows(X: Any) -> tuple[Any, NDArray[np.bool_]]:
    """Rows scaled to length 1, copied only where needed, and which rows are empty."""
    if isinstance(X, np.ndarray):
        norms = np.sqrt(np.einsum("ij,ij->i", X, X, dtype=np.float64))
    else:
        norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel())
    empty = norms == 0
    if np.any(np.abs(norms[~empty] - 1) > 1e-3):
        scaled = diags(1 / np.where(empty, 1.0, norms)) @ X
        X = scaled if isinstance(X, np.ndarray) else csr_matrix(scaled)
    return X, empty


def _density(X: Any, seed: int) -> FloatArray:
    """Mean cosine of each row with all rows, or with a sample if some may be negative, which count as 0."""
    n_rows, is_dense = X.shape[0], isinstance(X, np.ndarray)
    if not is_dense and X.data.min(initial=0.0) >= 0:
        return np.asarray(X @ (X.T @ np.ones(n_rows)) / max(n_rows, 1))  # without the matrix of cosines
    sample = X[np.random.default_rng(seed).permutation(n_rows)[:N_SAMPLE]].T
    density = np.zeros(n_rows)
    for start in range(0, n_rows, BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        cosines = X[block] @ sample
        density[block] = np.maximum(cosines if is_dense else cosines.toarray(), 0).mean(axis=1)
    return density


def _uncertainty(P: FloatArray) -> FloatArray:
    """1 where best and runner-up are equally probable, 0 where the best is certain."""
    if P.shape[1] == 1:
        return 1 - P[:, 0]
    two = np.partition(P, P.shape[1] - 2, axis=1)[:, -2:]
    return np.asarray(1 - (two[:, 1] - two[:, 0]))


def _distinct_rows(X: Any, seed: int) -> IntArray:
    """The first of each group of equal rows, in order: equal sparse rows have equal products with random vectors."""
    if isinstance(X, np.ndarray):
        first: dict[bytes, int] = {}
        for row, numbers in enumerate(X):
            first.setdefault(numbers.tobytes(), row)
        return np.array(list(first.values()), dtype=np.int64)
    X = X if X.has_sorted_indices else X.sorted_indices()  # sums of the same numbers in the same order are equal
    rng = np.random.default_rng(seed)
    keys = X @ rng.standard_normal(X.shape[1]) + 1j * (X @ rng.standard_normal(X.shape[1]))
    return np.sort(np.unique(keys, return_index=True)[1])


def _spread_out(worth: FloatArray, X: csr_matrix, n: int) -> IntArray:
    """Greedily choose the row of largest worth, discounted by its cosine with the nearest chosen row."""
    by_feature, nearest = csr_matrix(X.T), np.zeros(len(worth))
    value, chosen = worth.copy(), np.empty(n, np.int64)
    for place in range(n):
        best = chosen[place] = int(value.argmax())
        cosines = X[best] @ by_feature
        near = cosines.indices
        nearest[near] = np.maximum(nearest[near], np.clip(cosines.data, 0, 1))
        taken = value[near] < 0
        value[near] = np.where(taken, -1.0, worth[near] * (1 - nearest[near]) ** NOVELTY_POWER)
        value[best] = -1.0
    return chosen
