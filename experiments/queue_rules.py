"""Rules of other programs for choosing which documents to ask about, on the probabilities and vectors of ours.

small-text 1.4: breaking ties, least confidence, prediction entropy, embedding k-means, contrastive active learning and
greedy core-set; label-sleuth's rule for several classes is the prediction entropy too. The rules are written anew here;
vectors are of length 1.
"""

import numpy as np
from scipy.special import entr, rel_entr
from sklearn.cluster import KMeans
from sklearn.neighbors import NearestNeighbors

TIES, LEAST, ENTROPY = "breaking ties", "least confidence", "entropy"
K_MEANS, CONTRASTIVE, CORE_SET = "k-means", "contrastive", "core-set"
RULES = (TIES, LEAST, ENTROPY, K_MEANS, CONTRASTIVE, CORE_SET)
N_NEAR = 10


def choose(rule: str, P: np.ndarray, Z: np.ndarray, is_open: np.ndarray, n: int) -> np.ndarray:
    """Choose up to n of the open rows (m,) by the probabilities P (m, K) and vectors Z (m, d) of all rows.

    >>> P = np.array([[0.9, 0.1], [0.6, 0.4], [0.5, 0.5]])
    >>> choose("breaking ties", P, np.eye(3), np.array([True, True, False]), 1).tolist()
    [1]
    """
    rows = np.flatnonzero(is_open)
    if rule == K_MEANS:
        means = KMeans(min(n, rows.size), n_init=1, random_state=0).fit(Z[rows]).cluster_centers_
        return rows[nearest_rows(means @ Z[rows].T)]
    if rule == CORE_SET:
        return core_set(Z, is_open, n)
    worth = contrast(P, Z)[rows] if rule == CONTRASTIVE else uncertainty(rule, P[rows])
    return rows[np.argsort(-worth, kind="stable")[:n]]


def nearest_rows(products: np.ndarray) -> list[int]:
    """Choose the nearest row of each middle by products (k, m), none of them twice."""
    chosen: list[int] = []
    for cosines in products:
        cosines[chosen] = -np.inf
        chosen.append(int(cosines.argmax()))
    return chosen


def uncertainty(rule: str, P: np.ndarray) -> np.ndarray:
    """How uncertain rows with probabilities P (m, K) are, by a rule (m,)."""
    best = np.sort(P, axis=1)
    if rule == TIES:
        return best[:, -2] - best[:, -1]
    return -best[:, -1] if rule == LEAST else entr(P).sum(axis=1)


def contrast(P: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """Mean divergence (m,) of the probabilities of a row's nearest rows, itself among them, from its own."""
    near = NearestNeighbors(n_neighbors=min(N_NEAR, len(Z))).fit(Z).kneighbors(Z, return_distance=False)
    P = np.maximum(P.astype(np.float64), 1e-9)
    return np.mean([rel_entr(P[others], P).sum(axis=1) for others in near.T], axis=0)


def core_set(Z: np.ndarray, is_open: np.ndarray, n: int) -> np.ndarray:
    """Choose the open row whose cosine with the nearest closed or chosen row is the smallest, n times."""
    rows, closed = np.flatnonzero(is_open), np.flatnonzero(~is_open)
    nearest = (Z[rows] @ Z[closed].T).max(axis=1) if closed.size else np.zeros(rows.size)
    chosen: list[int] = []
    for _ in range(min(n, rows.size)):
        one = int(nearest.argmin())
        chosen.append(one)
        nearest = np.maximum(nearest, Z[rows] @ Z[rows[one]])
        nearest[one] = np.inf
    return rows[chosen]
