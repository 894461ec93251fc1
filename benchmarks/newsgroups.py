"""20 newsgroups with 100 labels and 10 000 unlabelled rows, both copies: macro F, and time against one supervised fit.

The supervised fit is LogisticRegression, tol 1e-4, on the same 10 100 rows with their true labels. Needs the paper's
data sets: --data DIR or TRANSDUCE_DATA.
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

from benchmarks.data import data_folder, load
from transduce import TransductiveClassifier

N_LABELED, N_UNLABELED = 100, 10_000
METHODS = {
    "supervised": {"annealing": None},
    "no annealing": {"annealing": None},
    "paper's annealing": {"annealing": "paper"},
    "default": {},
    "soft, maxent 1e-4": {"loss": "maxent", "alpha": 1e-4},
}


def split_of(y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rows = np.random.default_rng(seed).permutation(len(y))
    return rows[: N_LABELED + N_UNLABELED], rows[N_LABELED + N_UNLABELED :]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data")
    parser.add_argument("--splits", type=int, default=5)
    options = parser.parse_args()
    folder = data_folder(options.data)
    warnings.simplefilter("ignore")  # scikit-learn announces deprecations
    print(f"{'set':<14}{'method':<22}{'macro F':>9}{'±':>8}{'seconds':>9}{'of one supervised fit':>23}")
    for name in ("20ng_raw", "news20_train"):
        X, y = load(folder, name)
        scores = {method: [] for method in METHODS}
        seconds = {method: [] for method in METHODS}
        baseline = []
        for seed in range(options.splits):
            train, test = split_of(y, seed)
            marked = np.where(np.arange(train.size) < N_LABELED, y[train], -1)
            counts = dict(enumerate(np.bincount(y[train][N_LABELED:]).tolist()))
            rows = X[train].tocsr()
            begin = time.perf_counter()
            LogisticRegression(tol=1e-4, C=1 / (1e-4 * train.size), fit_intercept=False, max_iter=1000).fit(
                rows, y[train]
            )
            baseline.append(time.perf_counter() - begin)
            for method, parameters in METHODS.items():
                used = slice(None, N_LABELED) if method == "supervised" else slice(None)
                prior = "labeled" if method == "supervised" else counts
                model = TransductiveClassifier(class_prior=prior, random_state=seed, **parameters)
                begin = time.perf_counter()
                model.fit(rows[used], marked[used])
                seconds[method].append(time.perf_counter() - begin)
                scores[method].append(f1_score(y[test], model.predict(X[test]), average="macro"))
        for method in METHODS:
            print(
                f"{name:<14}{method:<22}{np.mean(scores[method]):>9.3f}{np.std(scores[method]):>8.3f}{np.mean(seconds[method]):>9.2f}"
                f"{np.mean(seconds[method]) / np.mean(baseline):>23.2f}",
                flush=True,
            )
        print(f"{name:<14}{'LogisticRegression':<22}{'':>17}{np.mean(baseline):>9.2f}{1:>23.2f}")


if __name__ == "__main__":
    main()
