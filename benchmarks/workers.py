"""Strong and weak scaling over the workers of a Dask cluster, each with one thread and one block of rows.

    python -m benchmarks.workers --workers 1 2 4 8 16
    python -m benchmarks.workers --rows 100000 --rows-per-worker 10000 --workers 1 2

Strong scaling has the same rows for any number of workers, weak scaling as many for each worker. Rows are those of
`benchmarks.document_halves`, with their true class sizes. They are on the workers before the clock starts, and labels
stay there. The driver anneals a sample of the rows with all cores, and workers do the rest, which has a column of its
own. Ratios are the time with the first number of workers over that with more; for weak scaling, 1 is ideal. Each time
is the median of --repeat fits after one that compiles kernels. Besides: sums of the weights over all workers, round
trips to them, and seconds of CPU time of the driver (scheduler included) and of the busiest worker, which can be judged
on a machine with fewer cores than workers.
"""

import argparse
import os
import resource
import tempfile
import time
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from distributed import Client, LocalCluster, wait

import transduce.dask
from benchmarks.data import data_folder
from benchmarks.document_halves import make_rows
from benchmarks.workers_and_one_core import KEEP_FREED_MEMORY, LatestPool
from transduce.dask import TransductiveClassifier
from transduce.parallel import effective_n_jobs

LABELS_PER_CLASS = 10
WARM_ROWS = 25_000
"""Rows of the fit that compiles kernels: more than are annealed, so that all kernels are."""
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
    """Seconds of a fit and of what its workers do, sums and round trips, CPU seconds, its accuracy and J."""

    seconds: float
    refinement: float
    n_sums: float
    n_round_trips: float
    driver_cpu: float
    worker_cpu: float
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


def on_workers(client: Client, rows: Rows, n_workers: int) -> tuple[list[Any], list[Any]]:
    """Blocks of rows and labels as futures, one on each worker."""
    addresses = sorted(client.scheduler_info(n_workers=-1)["workers"])
    sent = [
        [client.scatter(block, workers=[address], hash=False) for block, address in zip(blocks, addresses, strict=True)]
        for blocks in rows.blocks(n_workers)
    ]
    wait([future for futures in sent for future in futures])
    return sent[0], sent[1]


def cpu_seconds() -> float:
    return sum(resource.getrusage(resource.RUSAGE_SELF)[:2])


def fit(client: Client, rows: Rows, n_workers: int, **parameters: Any) -> Measured:
    unlabeled = rows.given < 0
    clf = TransductiveClassifier(class_prior=np.bincount(rows.truth[unlabeled]), random_state=0, **parameters)
    blocks, labels = on_workers(client, rows, n_workers)
    cpu_before, own_before, begin = client.run(cpu_seconds), cpu_seconds(), time.perf_counter()
    clf.fit(blocks, labels)
    seconds, last = time.perf_counter() - begin, max(row.restart for row in clf.history_)
    own, pool = cpu_seconds() - own_before, LatestPool.latest
    busiest = max(after - cpu_before[name] for name, after in client.run(cpu_seconds).items())
    annealed = max((row.seconds for row in clf.history_ if row.restart < last), default=0.0)
    found = np.concatenate(client.gather(clf.transduction_))
    accuracy = float(np.mean(found[unlabeled] == rows.truth[unlabeled]))
    counts = pool.n_sums, pool.n_round_trips
    return Measured(seconds, seconds - annealed, *counts, own, busiest, accuracy, clf.objective_)


def measure(n_workers: int, rows: Rows, options: argparse.Namespace) -> Measured:
    """Fit rows on a cluster of so many workers."""
    parameters = {"annealing": options.annealing, "fit_intercept": not options.no_intercept}
    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        fit(client, rows.first(max(options.rows_per_worker, WARM_ROWS)), n_workers, **parameters, tol=0.2)
        every = [fit(client, rows, n_workers, **parameters) for _ in range(options.repeat)]
    return Measured(*np.median(every, axis=0).tolist())


def table(title: str, sizes: dict[int, Rows], options: argparse.Namespace, wanted: str) -> None:
    """Measure and print one line for each number of workers."""
    print(f"\n{title} ({wanted})\n{'workers':>8}{'rows':>10}{'seconds':>9}{'ratio':>7}{'refinement':>12}", end="")
    print(f"{'ratio':>7}{'sums':>6}{'calls':>7}{'driver':>8}{'worker':>8}{'accuracy':>10}{'J':>9}", flush=True)
    first = None
    for n_workers, rows in sizes.items():
        one = measure(n_workers, rows, options)
        first = first or one
        ratios = first.seconds / one.seconds, first.refinement / one.refinement
        print(
            f"{n_workers:>8}{len(rows.truth):>10,}{one.seconds:>9.2f}{ratios[0]:>7.2f}{one.refinement:>12.2f}", end=""
        )
        print(f"{ratios[1]:>7.2f}{one.n_sums:>6.0f}{one.n_round_trips:>7.0f}{one.driver_cpu:>8.2f}", end="")
        print(f"{one.worker_cpu:>8.2f}{one.accuracy:>10.3f}{one.objective:>9.4f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=300_000, help="rows of strong scaling")
    parser.add_argument("--rows-per-worker", type=int, default=20_000, help="rows of weak scaling")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--annealing", default="paper", choices=("soft", "paper"))
    parser.add_argument("--no-intercept", action="store_true", help="without the constant that all rows share")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--data", help="folder of the data sets (default: TRANSDUCE_DATA)")
    parser.add_argument("--cache", type=Path, help="folder to cache the rows in (default: a temporary folder)")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    os.environ.update(KEEP_FREED_MEMORY)
    transduce.dask.WorkerPool = LatestPool
    with tempfile.TemporaryDirectory() as name:
        rows = read_rows(options, options.cache or Path(name))
    print(f"{effective_n_jobs(None)} cores, {options.annealing} annealing, workers of one thread", flush=True)
    strong = {w: rows.first(options.rows) for w in options.workers}
    table("Strong scaling", strong, options, f"wanted with 16 workers: {STRONG:g}")
    weak = {w: rows.first(w * options.rows_per_worker) for w in options.workers}
    table("Weak scaling", weak, options, f"wanted with 16 workers: {WEAK:g}")


if __name__ == "__main__":
    main()
