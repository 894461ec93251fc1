"""Comparison of all methods: macro F on test rows of ten data sets, three label sizes, true counts, fresh splits.

One line of the cache is one method on one split, so an interrupted run resumes where it stopped. Needs the paper's
data sets: --data DIR or TRANSDUCE_DATA. Each of the two processes has one core; times are seconds of one fit on it.
"""

import argparse
import csv
import os
import time
import warnings
from collections.abc import Callable
from multiprocessing import Pool
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # one core per process; must be set before numpy is imported

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.naive_bayes import MultinomialNB
from sklearn.preprocessing import MinMaxScaler
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import LinearSVC

import transduce
from benchmarks.data import data_folder, load, paper_split
from transduce import TransductiveClassifier, solve_labels
from transduce.class_prior.rounding import counts_from_fractions

COLUMNS = {
    "news20_train": 100,
    "r8": 80,
    "la1": 80,
    "ohscal": 100,
    "webkb7": 80,
    "industry_sector12": 120,
    "rcv_mcat": 40,
    "usps": 80,
    "clinc150": 80,
    "dmoz4": 40,
}
LABEL_FRACTIONS = (0.25, 1, 4)
FIELDS = ("set", "label_fraction", "seed", "method", "macro_f", "seconds")
DEFAULT, PAPER = "transduce, default", "paper's annealing, large margin"


class Split:
    """Rows and labels of one split, with the class sizes of its unlabelled rows."""

    def __init__(self, X, y: np.ndarray, n_labeled: int, seed: int) -> None:
        labeled, unlabeled, self.test = paper_split(y, n_labeled, seed)
        self.all, self.y = X, y
        self.rows = np.concatenate((labeled, unlabeled))
        self.X, self.n_labeled = X[self.rows].tocsr(), len(labeled)
        self.given, self.n_classes = y[labeled], int(y.max()) + 1
        self.marked = np.concatenate((self.given, np.full(len(unlabeled), -1)))
        self.counts = np.bincount(y[unlabeled], minlength=self.n_classes)
        self.prior = dict(enumerate(self.counts.tolist()))

    def macro_f(self, guesses: np.ndarray) -> float:
        truth = self.y[self.test]
        return float(f1_score(truth, guesses, average="macro", labels=range(self.n_classes), zero_division=0))

    def present(self) -> np.ndarray:
        """Counts scaled to the classes that have a label, since peers know no others."""
        counts = self.counts[np.unique(self.given)]
        return counts_from_fractions(counts / counts.sum(), int(self.counts.sum()))


def ours(kind: str = "TransductiveClassifier", **parameters) -> Callable[[Split], Callable]:
    def fit(split: Split) -> Callable:
        model = getattr(transduce, kind)(class_prior=split.prior, random_state=0, n_jobs=1, **parameters)
        return model.fit(split.X, split.marked).predict

    return fit


def supervised(**parameters) -> Callable[[Split], Callable]:
    def fit(split: Split) -> Callable:
        model = TransductiveClassifier(random_state=0, n_jobs=1, **parameters)
        return model.fit(split.X[: split.n_labeled], split.given).predict

    return fit


def svc(n_rows: int) -> LinearSVC:
    return LinearSVC(C=1 / (1e-3 * n_rows), dual=True)


def logistic(n_rows: int) -> LogisticRegression:
    return LogisticRegression(C=1 / (1e-4 * n_rows), max_iter=1000)


def self_training_svc(split: Split) -> Callable | None:
    folds = max(2, min(5, int(np.bincount(split.given)[np.unique(split.given)].min())))
    if np.bincount(split.given)[np.unique(split.given)].min() < 2:
        return None  # a class with one label cannot be calibrated
    base = CalibratedClassifierCV(svc(split.n_labeled), cv=folds)
    return SelfTrainingClassifier(base).fit(split.X, split.marked).predict


def self_training_bayes(split: Split) -> Callable:
    X, scale = split.X, lambda rows: rows
    if X.min() < 0:
        scaler = MinMaxScaler(clip=True).fit(X.toarray())
        X, scale = scaler.transform(X.toarray()), lambda rows: scaler.transform(rows.toarray())
    model = SelfTrainingClassifier(MultinomialNB(alpha=0.1)).fit(X, split.marked)
    return lambda rows: model.predict(scale(rows))


def label_spreading(split: Split) -> Callable:
    return LabelSpreading(kernel="knn", n_neighbors=7, max_iter=100).fit(split.X, split.marked).predict


def shifted_svc(split: Split) -> Callable:
    """Scores of the supervised machine, shifted by the prices of the true counts."""
    model = svc(split.n_labeled).fit(split.X[: split.n_labeled], split.given)

    def scores(rows) -> np.ndarray:
        raw = model.decision_function(rows)
        return np.column_stack((-raw, raw)) if raw.ndim == 1 else raw

    counts = split.present()
    prices = solve_labels(-scores(split.X[split.n_labeled :]), counts).prices
    return lambda rows: model.classes_[(scores(rows) + prices).argmax(axis=1)]


def logistic_twice(split: Split) -> Callable:
    """Logistic regression, exact labels for the true counts, logistic regression on all rows."""
    first = logistic(split.n_labeled).fit(split.X[: split.n_labeled], split.given)
    costs = -first.predict_log_proba(split.X[split.n_labeled :])
    counts = split.present()
    labels = solve_labels(np.maximum(costs, 0.0), counts).labels
    everything = np.concatenate((split.given, first.classes_[labels]))
    return logistic(len(everything)).fit(split.X, everything).predict


METHODS: dict[str, Callable[[Split], Callable]] = {
    "supervised large margin": supervised(fit_intercept=False),
    "supervised maxent": supervised(loss="maxent", alpha=1e-4, fit_intercept=False),
    PAPER: ours(annealing="paper", price_shift=False, fit_intercept=False),
    "paper's annealing, maxent": ours(
        loss="maxent", alpha=1e-4, annealing="paper", price_shift=False, fit_intercept=False
    ),
    "the first with our price shift": ours(annealing="paper", fit_intercept=False),
    "the second with our price shift": ours(loss="maxent", alpha=1e-4, annealing="paper", fit_intercept=False),
    DEFAULT: ours(),
    "default without intercept": ours(fit_intercept=False),
    "soft annealing, maxent": ours(loss="maxent", alpha=1e-4, fit_intercept=False),
    "entropy regularisation": ours("EntropyRegularizedClassifier"),
    "expectation constraint": ours("ExpectationConstrainedClassifier"),
    "expectation regularisation": ours("ExpectationRegularizedClassifier"),
    "posterior regularisation": ours("PosteriorRegularizedClassifier"),
    "self-training, calibrated LinearSVC *": self_training_svc,
    "self-training, MultinomialNB *": self_training_bayes,
    "LabelSpreading, kNN *": label_spreading,
    "LinearSVC shifted to the counts": shifted_svc,
    "LogisticRegression, counts, again": logistic_twice,
}


def cell(task: tuple[str, str, float, int, tuple[str, ...]]) -> list[tuple]:
    """All missing methods on one split."""
    warnings.simplefilter("ignore")  # peers warn of classes with few labels, ours of steps that end early
    folder, name, label_fraction, seed, methods = task
    X, y = load(Path(folder), name)
    split = Split(X, y, max(2, round(COLUMNS[name] * label_fraction)), seed)
    rows = []
    for method in methods:
        begin = time.perf_counter()
        predict = METHODS[method](split)
        seconds = time.perf_counter() - begin
        macro_f = float("nan") if predict is None else split.macro_f(predict(X[split.test]))
        rows.append((name, label_fraction, seed, method, round(macro_f, 5), round(seconds, 4)))
    return rows


def read(cache: Path) -> dict[tuple[str, float, int, str], tuple[float, float]]:
    if not cache.exists():
        return {}
    with cache.open(newline="") as file:
        return {
            (row["set"], float(row["label_fraction"]), int(row["seed"]), row["method"]): (
                float(row["macro_f"]),
                float(row["seconds"]),
            )
            for row in csv.DictReader(file)
        }


def ranks(values: np.ndarray) -> np.ndarray:
    """Rank of each method in a column, 1 the best, ties share the mean rank, methods without a value last."""
    filled = np.where(np.isnan(values), -1.0, values)
    return np.array([1 + np.sum(filled > v) + (np.sum(filled == v) - 1) / 2 for v in filled])


def table(results: dict, label_fraction: float, seeds: range) -> None:
    """Mean macro F of each method and set, the mean over sets, the mean rank, the mean time."""
    names = [name for name in COLUMNS if all((name, label_fraction, seed, PAPER) in results for seed in seeds)]
    if not names:
        return
    means = np.full((len(METHODS), len(names)), np.nan)
    times = np.full_like(means, np.nan)
    for m, method in enumerate(METHODS):
        for c, name in enumerate(names):
            cells = [results.get((name, label_fraction, seed, method), (np.nan, np.nan)) for seed in seeds]
            got = [cell for cell in cells if not np.isnan(cell[0])]
            if got:
                means[m, c], times[m, c] = np.mean(got, axis=0)
    rank = np.mean([ranks(means[:, c]) for c in range(len(names))], axis=0)
    print(f"\nLabels: {label_fraction} of the sizes {', '.join(str(COLUMNS[n]) for n in names)}; {len(seeds)} splits.")
    print(f"{'':38}" + "".join(f"{name[:8]:>9}" for name in names) + f"{'mean':>8}{'rank':>7}{'seconds':>9}")
    for m, method in enumerate(METHODS):
        line = "".join(f"{v:9.3f}" for v in means[m])
        print(f"{method:38}{line}{np.nanmean(means[m]):8.3f}{rank[m]:7.1f}{np.nanmean(times[m]):9.2f}")
    lead = means[list(METHODS).index(DEFAULT)] - means[list(METHODS).index(PAPER)]
    print(f"{'default less ' + PAPER:38}" + "".join(f"{v:+9.3f}" for v in lead) + f"{lead.mean():+8.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data")
    parser.add_argument("--cache", type=Path, default=Path("methods.csv"))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--label-fractions", type=float, nargs="+", default=LABEL_FRACTIONS)
    parser.add_argument(
        "--show", action="store_true", help="print the tables of cached results without running anything"
    )
    options = parser.parse_args()
    seeds, results = range(options.splits), read(options.cache)
    if not options.show:
        folder, tasks = str(data_folder(options.data)), []
        for label_fraction in options.label_fractions:
            for name in COLUMNS:
                for seed in seeds:
                    missing = tuple(m for m in METHODS if (name, label_fraction, seed, m) not in results)
                    if missing:
                        tasks.append((folder, name, label_fraction, seed, missing))
        fresh = not options.cache.exists()
        with options.cache.open("a", newline="") as file, Pool(2) as pool:
            writer = csv.writer(file)
            if fresh:
                writer.writerow(FIELDS)
            for done, rows in enumerate(pool.imap_unordered(cell, tasks), start=1):
                writer.writerows(rows)
                file.flush()
                print(
                    f"{done} of {len(tasks)}: {rows[0][0]}, {rows[0][1]} of its labels, split {rows[0][2]}", flush=True
                )
        results = read(options.cache)
    for label_fraction in options.label_fractions:
        table(results, label_fraction, seeds)
    print(
        "\n* cannot be given the class sizes. Self-training by a calibrated machine needs two labels per class; its "
        "mean is over the splits that have them, and a column without any ranks it last."
    )


if __name__ == "__main__":
    main()
