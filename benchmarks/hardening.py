"""What hardening costs: input checks against fits, equal rows against distinct ones, and memory of soft annealing.

    python -m benchmarks.hardening checks --data DIR        20 newsgroups, and a million rows
    python -m benchmarks.hardening duplicates               copies of five rows against as many distinct rows
    python -m benchmarks.hardening memory                   soft annealing of 300 000 rows with one and two threads

Times are processor times, which a busy machine hardly changes.
"""

import argparse
import multiprocessing
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.data import data_folder, load
from benchmarks.fuzz.worker import _peak_of_memory, _start_of_memory
from benchmarks.newsgroups import N_LABELED, split_of
from transduce import TransductiveClassifier, base
from transduce.engines import local

CHECKS = ((base, "read_rows"), (local, "check_sample_weight"), (local, "check_labeled_weight"))


def made_rows(n: int, n_classes: int = 20, n_words: int = 60, seed: int = 0) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Sparse float32 rows of a few words, half of them those of the class, and their classes."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=n)
    common = rng.integers(20_000, size=(n, n_words // 2))
    own = 20_000 + 500 * truth[:, np.newaxis] + rng.integers(500, size=(n, n_words // 2))
    indices = np.hstack((common, own)).ravel()
    X = sparse.csr_matrix(
        (np.full(indices.size, n_words**-0.5, np.float32), indices, np.arange(0, indices.size + 1, n_words)),
        shape=(n, 20_000 + 500 * n_classes),
    )
    X.sum_duplicates()
    return X, truth


def seconds_of(work: Callable[[], Any]) -> float:
    """Processor time of a call."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def check_cost(name: str, X: Any, y: np.ndarray, prior: Any) -> None:
    """Print how much of a fit its input checks take."""
    spent, kept = [0.0], [(owner, check, getattr(owner, check)) for owner, check in CHECKS]

    def timed(check: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **options: Any) -> Any:
            begin = time.process_time()
            try:
                return check(*arguments, **options)
            finally:
                spent[0] += time.process_time() - begin

        return run

    for owner, check, function in kept:
        setattr(owner, check, timed(function))
    try:
        weights = np.ones(len(y))
        total = seconds_of(lambda: TransductiveClassifier(class_prior=prior, random_state=0).fit(X, y, weights))
    finally:
        for owner, check, function in kept:
            setattr(owner, check, function)
    print(f"{name:<16} checks {spent[0]:8.3f} s   fit {total:8.2f} s   {100 * spent[0] / total:6.2f} %", flush=True)


def checks(options: argparse.Namespace) -> None:
    X, y = load(data_folder(options.data), "20ng_raw")
    train, _ = split_of(y, 0)
    counts = dict(enumerate(np.bincount(y[train][N_LABELED:]).tolist()))
    marked = np.where(np.arange(train.size) < N_LABELED, y[train], -1)
    TransductiveClassifier(class_prior=counts, max_iter=2).fit(X[train].tocsr(), marked)  # compiles
    check_cost("20 newsgroups", X[train].tocsr(), marked, counts)
    X, truth = made_rows(options.rows)
    marked = np.where(np.arange(options.rows) < 200, truth, -1)
    check_cost(f"{options.rows} rows", X, marked, np.bincount(truth[200:]).tolist())


def duplicates(options: argparse.Namespace) -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(5, size=3000)
    X = np.eye(5, 30)[truth] + 0.3 * rng.normal(size=(3000, 30))
    y = np.where(np.arange(3000) < 50, truth, -1)
    counts = np.bincount(truth[50:], minlength=5).tolist()
    first = np.array([np.flatnonzero(truth == k)[0] for k in range(5)])
    for form in (np.asarray, sparse.csr_matrix):
        TransductiveClassifier(random_state=0).fit(form(X[:300]), y[:300])  # compiles
        for prior in (counts, "estimate"):
            one, other = (
                seconds_of(
                    lambda rows=rows, p=prior: TransductiveClassifier(class_prior=p, random_state=0).fit(rows, y)
                )
                for rows in (form(X), form(X[first[truth]]))
            )
            kind = "dense, " if form is np.asarray else "sparse, "
            kind += "sizes given" if prior is counts else "nothing stated"
            print(
                f"{kind:<24} distinct {one:7.2f} s   copies of five {other:7.2f} s   {other / one:5.2f} times",
                flush=True,
            )


def peak_of(n: int, jobs: int) -> tuple[float, float]:
    """Peak memory of a soft fit beside the rows, in GB and in arrays of one float32 for each row and class."""
    X, truth = made_rows(n)
    y = np.where(np.arange(n) < 200, truth, -1)
    counts = np.bincount(truth[200:]).tolist()
    small = slice(0, 3000)
    TransductiveClassifier(annealing="soft", n_jobs=jobs, random_state=0).fit(X[small], y[small])  # compiles
    before = _start_of_memory()
    few_rounds = {"max_iter": 2, "n_jobs": jobs, "random_state": 0}  # which hold the arrays of all
    TransductiveClassifier(annealing="soft", class_prior=counts, **few_rounds).fit(X, y)
    used = _peak_of_memory() - before
    copy = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    return used / 1e9, (used - copy) / (4.0 * n * 20)


def memory(options: argparse.Namespace) -> None:
    for jobs in (1, 2):
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as fresh:
            used, arrays = fresh.submit(peak_of, options.rows, jobs).result()
        print(f"{jobs} threads: {used:.2f} GB beside X; without a copy of X {arrays:.1f} n K b", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("checks", "duplicates", "memory"))
    parser.add_argument("--data")
    parser.add_argument("--rows", type=int)
    options = parser.parse_args()
    options.rows = options.rows or {"checks": 1_000_000, "memory": 300_000}.get(options.what)
    warnings.simplefilter("ignore")
    {"checks": checks, "duplicates": duplicates, "memory": memory}[options.what](options)


if __name__ == "__main__":
    main()
