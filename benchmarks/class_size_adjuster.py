"""Time that ClassSizeAdjuster adds to a fit of LogisticRegression.

    python -m benchmarks.class_size_adjuster

Sparse rows of 20 000 documents with 20 classes; process time, the median of three runs.
"""

import time

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from transduce import match_class_sizes

N_ROWS, N_FEATURES, N_CLASSES, N_RUNS = 20_000, 5000, 20, 3


def problem(seed: int = 0) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Rows with words of their class among others."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, N_CLASSES, N_ROWS)
    words = rng.integers(0, N_FEATURES, (N_ROWS, 40))
    words[:, :12] = (words[:, :12] // N_CLASSES) * N_CLASSES + y[:, None]
    X = sparse.csr_matrix((np.ones(words.size), (np.repeat(np.arange(N_ROWS), 40), words.ravel() % N_FEATURES)))
    return X, y


def main() -> None:
    X, y = problem()
    prior, found = np.full(N_CLASSES, 1 / N_CLASSES), []
    match_class_sizes(np.eye(2), [0.5, 0.5])  # compiles the label step
    for _ in range(N_RUNS):
        begin = time.process_time()
        model = LogisticRegression(max_iter=200).fit(X, y)
        fitted = time.process_time()
        match_class_sizes(model.predict_proba(X), prior, model.classes_)
        found.append((fitted - begin, time.process_time() - fitted))
    fit, adjust = np.median(found, axis=0)
    print(f"LogisticRegression {fit:.2f} s, adjustment {adjust:.3f} s: {adjust / fit:.1%} of the fit")


if __name__ == "__main__":
    main()
