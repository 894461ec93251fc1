"""LaplacianShot (Ziko, Dolz, Granger and Ben Ayed, 2020): nearest means, with the same label for near rows.

    min_Y  sum_i y_i'a_i + y_i'log y_i - lambda/2 sum_ij w_ij y_i'y_j,    y_i in the simplex

with squared distances a_i (K,) to the class means and w_ij = 1 where j is one of the nearest rows of i. Each round
minimises an upper bound that is independent for each row: y_i = softmax(-a_i + lambda sum_j w_ij y_j).
"""

import numpy as np
from scipy import sparse

from experiments.few_shot.prototypes import class_means, softmax, unit
from experiments.few_shot.task import Fitted, Task

N_NEIGHBORS, N_ROUNDS, TOLERANCE = 3, 20, 1e-6


def neighbors(A: np.ndarray, B: np.ndarray, k: int, block: int = 1000) -> np.ndarray:
    """Row numbers (n, k) of the k rows of B most similar to each row of A."""
    k = min(k, len(B))
    parts = [np.argpartition(-(A[i : i + block] @ B.T), k - 1, axis=1)[:, :k] for i in range(0, len(A), block)]
    return np.concatenate(parts)


def graph(Q: np.ndarray) -> sparse.csr_matrix:
    """Affinities (n, n): 1/2 for each direction in which one row is among the nearest of the other."""
    near = neighbors(Q, Q, N_NEIGHBORS + 1)
    rows = np.repeat(np.arange(len(Q)), near.shape[1])
    links = sparse.csr_matrix((np.ones(near.size), (rows, near.ravel())), (len(Q), len(Q)))
    links.setdiag(0)
    return ((links + links.T) / 2).tocsr()


def objective(Y: np.ndarray, costs: np.ndarray, W: sparse.csr_matrix, strength: float) -> float:
    entropy = np.sum(Y * np.log(np.maximum(Y, 1e-20)))
    return float(np.sum(Y * costs) + entropy - strength / 2 * np.sum(Y * (W @ Y)))


def bound_updates(costs: np.ndarray, W: sparse.csr_matrix, strength: float) -> tuple[np.ndarray, list[float]]:
    """Labels (n, K) and the objective after each round."""
    Y = softmax(-costs)
    values = [objective(Y, costs, W, strength)]
    for _ in range(N_ROUNDS):
        Y = softmax(strength * (W @ Y) - costs)
        values.append(objective(Y, costs, W, strength))
        if values[-2] - values[-1] <= TOLERANCE * abs(values[-2]):
            break
    return Y, values


def laplacian_shot(setting: float, task: Task) -> Fitted:
    """Scores of the last round; new rows are joined to their nearest unlabelled rows. The setting is lambda."""
    means, Q = class_means(task), unit(task.Q)

    def costs(rows: np.ndarray) -> np.ndarray:
        return 1 + np.sum(means**2, axis=1) - 2 * rows @ means.T

    W = graph(Q)
    Y, _ = bound_updates(costs(Q), W, setting)

    def score(rows: np.ndarray) -> np.ndarray:
        rows = unit(rows)
        near = neighbors(rows, Q, N_NEIGHBORS)
        return setting * Y[near].sum(axis=1) - costs(rows)

    return Fitted(setting * (W @ Y) - costs(Q), score)
