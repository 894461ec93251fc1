"""The paper's last figure: maxent methods on two binary problems, F of the first class against the number of labels.

gcat against the rest, and comp.* against the rest of 20 newsgroups. Half of the rows are unlabelled, labels come from a
pool of 512, and all others are test rows. Class sizes are the true ones.
Needs the paper's data sets: --data DIR or TRANSDUCE_DATA.
"""

import argparse
import os
import time
import warnings
from multiprocessing import Pool
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy starts its threads: one core per process

import numpy as np
from sklearn.metrics import f1_score

import transduce
from benchmarks.data import data_folder, load

SIZES = (16, 32, 64, 128, 256, 512)
POOL = 512
METHODS = {
    "supervised": ("TransductiveClassifier", {"loss": "maxent", "alpha": 1e-4}),
    "paper's method": ("TransductiveClassifier", {"loss": "maxent", "alpha": 1e-4, "annealing": "paper"}),
    "soft annealing": ("TransductiveClassifier", {"loss": "maxent", "alpha": 1e-4}),
    "entropy regularisation": ("EntropyRegularizedClassifier", {}),
    "expectation constraint": ("ExpectationConstrainedClassifier", {}),
    "posterior regularisation": ("PosteriorRegularizedClassifier", {}),
}


def binary(folder: Path, name: str) -> tuple:
    """Rows, and labels: 0 for the first class, 1 for the rest."""
    if name == "gcat":
        X, y = load(folder, "rcv1_topics")
        return X, (y == 0).astype(np.int64)
    X, y = load(folder, "news20_train")
    names = (folder / "news20_train" / "classes.txt").read_text().split()
    return X, np.array([not n.startswith("comp.") for n in names], dtype=np.int64)[y]


def curve(task: tuple[str, str, int]) -> list[tuple[str, str, int, int, float, float]]:
    """F of all methods and numbers of labels on one split."""
    warnings.simplefilter("ignore")
    folder, name, seed = task
    X, y = binary(Path(folder), name)
    rows = np.random.default_rng(seed).permutation(len(y))
    half = len(y) // 2
    unlabeled, pool, test = rows[:half], rows[half : half + POOL], rows[half + POOL :]
    counts, out = np.bincount(y[unlabeled], minlength=2), []
    for size in SIZES:
        labeled = pool[:size]
        for method, (kind, parameters) in METHODS.items():
            used = labeled if method == "supervised" else np.concatenate((labeled, unlabeled))
            marked = np.where(np.arange(used.size) < size, y[used], -1)
            prior = "labeled" if method == "supervised" else counts
            model = getattr(transduce, kind)(class_prior=prior, random_state=seed, n_jobs=1, **parameters)
            begin = time.perf_counter()
            model.fit(X[used], marked)
            seconds = time.perf_counter() - begin
            f = f1_score(y[test], model.predict(X[test]), pos_label=0, zero_division=0)
            out.append((name, method, size, seed, float(f), seconds))
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data")
    parser.add_argument("--splits", type=int, default=5)
    options = parser.parse_args()
    folder = str(data_folder(options.data))
    tasks = [(folder, name, seed) for name in ("gcat", "comp") for seed in range(options.splits)]
    with Pool(2) as workers:
        results = [row for rows in workers.imap_unordered(curve, tasks) for row in rows]
    for name in ("gcat", "comp"):
        print(f"\n{name}: F of the first class, mean of {options.splits} splits, against the number of labels")
        print(f"{'':26}" + "".join(f"{size:>9}" for size in SIZES) + f"{'mean':>9}{'seconds':>9}")
        for method in METHODS:
            mine = [row for row in results if row[0] == name and row[1] == method]
            means = [np.mean([row[4] for row in mine if row[2] == size]) for size in SIZES]
            line = "".join(f"{value:9.3f}" for value in means)
            print(f"{method:26}{line}{np.mean(means):9.3f}{np.mean([row[5] for row in mine]):9.2f}")


if __name__ == "__main__":
    main()
