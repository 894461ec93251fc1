"""Which fraction of new rows gets no class, after fits with few and with many rows; 5 % of all rows fit none.

clinc150's domains with its out-of-scope requests, and r8 without the labels of its class crude. The fraction of the
training rows that fit no class is stated; "by training scores" is what a threshold on the scores of the training rows
themselves would leave out. F is that of rows that fit no class. Needs the data: --data DIR.
"""

import argparse
import warnings

import numpy as np
from scipy import sparse
from sklearn.metrics import f1_score

from benchmarks.data import data_folder, load
from experiments.none_of_these import NONE
from experiments.none_of_these import load as load_requests
from transduce import TransductiveClassifier

N_LABELED, HIDDEN_CLASS = 80, 1
SETS = (("clinc150", 900), ("clinc150", 12_000), ("r8", 900), ("r8", 5000))


def measure(X: sparse.csr_matrix, y: np.ndarray, n_rows: int, seed: int, annealing: str) -> tuple[float, ...]:
    """Fraction of new rows left out over the stated one, the same by training scores, F of new and training rows."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    labeled = order[y[order] != NONE][:N_LABELED]
    others = rng.permutation(np.setdiff1d(order, labeled))
    train, new = others[:n_rows], others[n_rows:]
    fraction = float(np.mean(y[train] == NONE))
    clf = TransductiveClassifier(annealing=annealing, random_state=seed, outlier_fraction=fraction)
    clf.fit(sparse.vstack((X[labeled], X[train])).tocsr(), np.append(y[labeled], np.full(n_rows, -1)))
    left_out, aside = clf.predict(X[new]) == -1, clf.transduction_[N_LABELED:] == -1
    limit = np.quantile(clf.decision_function(X[train]).max(axis=1), fraction)
    by_training = np.mean(clf.decision_function(X[new]).max(axis=1) < limit)
    f = f1_score(y[new] == NONE, left_out), f1_score(y[train] == NONE, aside)
    return float(left_out.mean()) / fraction, float(by_training) / fraction, *map(float, f)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--annealing", default="paper")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    folder = data_folder(options.data)
    print("left out / stated (least, most) | by training scores | F of new rows | F of training rows")
    for name, n_rows in SETS:
        X, y = load_requests(str(folder)) if name == "clinc150" else load(folder, name)
        y = y if name == "clinc150" else np.where(y == HIDDEN_CLASS, NONE, y)
        found = np.array([measure(X, y, n_rows, seed, options.annealing) for seed in range(options.seeds)])
        ratio, by_training, f_new, f_train = found.mean(axis=0)
        ends = f"({found[:, 0].min():.2f}, {found[:, 0].max():.2f})"
        print(
            f"{name} {n_rows:>6} rows: {ratio:.2f} {ends} | {by_training:.1f} | {f_new:.3f} | {f_train:.3f}", flush=True
        )


if __name__ == "__main__":
    main()
