"""Strong and weak scaling over the workers of a Dask cluster, each with one thread and one block of rows.

    python -m benchmarks.workers --workers 1 2 4 8 16
    python -m benchmarks.workers --rows 100000 --rows-per-worker 10000 --workers 1 2

Strong scaling has the same rows for any number of workers, weak scaling as many for each worker. Rows are those of
`benchmarks.document_halves`, with their true class sizes. The driver anneals a sample of the rows with all cores, and
workers do the rest, which has a column of its own. Ratios are the time with the first number of workers over that with
more; for weak scaling, 1 is ideal. Each time is the median of --repeat fits after one that compiles kernels. Fits have
no intercept: workers whose changes of it are added need many more sums of the weights (--intercept shows it).
"""

import argparse
import os
import tempfile
import time
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from distributed import Client, LocalCluster

from benchmarks.data import data_folder
from benchmarks.document_halves import make_rows
from benchmarks.workers_and_one_core import KEEP_FREED_MEMORY
from transduce.dask import TransductiveClassifier
from transduce.parallel import effective_n_jobs

LABELS_PER_CLASS = 10
STRONG, WEAK = 6.0, 0.7
"""Ratios that are wanted with 16 workers."""


class Rows(NamedTuple):
    """Rows with their true classes, and the labels that the fit sees."""

    X: Any
    truth: np.ndarray
    given: np.ndarray

    def first(self, n: int) -> "Rows":
        return Rows(self.X[:n], self.truth[:n], self.given[:n])

    def blocks(self, n_blocks: int) -> tuple[list[Any], list[np.ndarray]]:
        spans = [slice(a, b) for a, b in pairwise(np.linspace(0, len(self.truth), n_blocks + 1).astype(int))]
        return [self.X[span] for span in spans], [self.given[span] for span in spans]


class Measured(NamedTuple):
    """Seconds of a fit and of what its workers do, its accuracy and J."""

    seconds: float
    refinement: float
    accuracy: float
    objective: float


def read_rows(options: argparse.Namespace, cache: Path) -> Rows:
    """Enough rows for every table, with labels among the rows that all tables have."""
    n = max(options.rows, options.rows_per_worker * max(options.workers))
    X, truth, _ = make_rows(data_folder(options.data), n, 0, cache, LABELS_PER_CLASS)
    given, rng, least = np.full(n, -1), np.random.default_rng(0), min(options.rows, options.rows_per_worker)
    for k in range(truth.max() + 1):
        chosen = rng.choice(np.flatnonzero(truth[:least] == k), LABELS_PER_CLASS, replace=False)
        given[chosen] = k
    return Rows(X.copy(), truth, given)  # in memory, as workers have them


def fit(rows: Rows, n_workers: int, **parameters: Any) -> Measured:
    unlabeled = rows.given < 0
    clf = TransductiveClassifier(class_prior=np.bincount(rows.truth[unlabeled]), random_state=0, **parameters)
    blocks, labels = rows.blocks(n_workers)
    begin = time.perf_counter()
    clf.fit(blocks, labels)
    seconds, last = time.perf_counter() - begin, max(row.restart for row in clf.history_)
    annealed = max((row.seconds for row in clf.history_ if row.restart < last), default=0.0)
    accuracy = float(np.mean(np.concatenate(clf.transduction_)[unlabeled] == rows.truth[unlabeled]))
    return Measured(seconds, seconds - annealed, accuracy, clf.objective_)


def measure(sizes: dict[int, Rows], options: argparse.Namespace) -> dict[int, Measured]:
    """Fit the rows of each number of workers on a cluster of its own."""
    found = {}
    for n_workers, rows in sizes.items():
        with (
            LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster),
        ):
            parameters = {"annealing": options.annealing, "fit_intercept": options.intercept}
            fit(rows.first(options.rows_per_worker), n_workers, **parameters, tol=0.2)
            every = [fit(rows, n_workers, **parameters) for _ in range(options.repeat)]
        found[n_workers] = Measured(*np.median(every, axis=0).tolist())
    return found


def table(title: str, sizes: dict[int, Rows], found: dict[int, Measured], wanted: str) -> None:
    first = found[next(iter(found))]
    print(f"\n{title} ({wanted})\n{'workers':>8}{'rows':>10}{'seconds':>9}{'ratio':>7}", end="")
    print(f"{'refinement':>12}{'ratio':>7}{'accuracy':>10}{'J':>9}")
    for n_workers, one in found.items():
        ratios = first.seconds / one.seconds, first.refinement / one.refinement
        print(f"{n_workers:>8}{len(sizes[n_workers].truth):>10,}{one.seconds:>9.2f}{ratios[0]:>7.2f}", end="")
        print(f"{one.refinement:>12.2f}{ratios[1]:>7.2f}{one.accuracy:>10.3f}{one.objective:>9.4f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=300_000, help="rows of strong scaling")
    parser.add_argument("--rows-per-worker", type=int, default=20_000, help="rows of weak scaling")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--annealing", default="paper", choices=("soft", "paper"))
    parser.add_argument("--intercept", action="store_true", help="with the constant that all rows share, as by default")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--data", help="folder of the data sets (default: TRANSDUCE_DATA)")
    parser.add_argument("--cache", type=Path, help="folder to cache the rows in (default: a temporary folder)")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    os.environ.update(KEEP_FREED_MEMORY)
    with tempfile.TemporaryDirectory() as name:
        rows = read_rows(options, options.cache or Path(name))
    print(f"{effective_n_jobs(None)} cores, {options.annealing} annealing, workers of one thread")
    strong = {w: rows.first(options.rows) for w in options.workers}
    table("Strong scaling", strong, measure(strong, options), f"wanted with 16 workers: {STRONG:g}")
    weak = {w: rows.first(w * options.rows_per_worker) for w in options.workers}
    table("Weak scaling", weak, measure(weak, options), f"wanted with 16 workers: {WEAK:g}")


if __name__ == "__main__":
    main()
