"""One fit on the workers of a Dask cluster, and the same on one core of one machine: time, labels, J and bytes moved.

    python -m benchmarks.workers_and_one_core --rows 200000 --workers 2 --repeat 3
    python -m benchmarks.workers_and_one_core --rows 200000 --early-tol 1e-4 --tol 1e-4

Rows are those of `benchmarks.document_halves`. Workers have one thread and one block of rows each. Fits on one core and
on the workers alternate, --repeat times; the ratio is that of the median times, all other figures are of the last pair.
Accurate weight steps (a small --early-tol) lead both to the same labels; with the default tolerance they may differ as
two seeds do (--seeds). Both settings are run unless tolerances are given. CPU seconds are those of the driver and of
all workers. Bytes between workers are 2 (G - 1) times those of the weights for each sum of their changes.
"""

import argparse
import os
import tempfile
import time
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from distributed import Client, LocalCluster

import transduce.dask
from benchmarks.data import data_folder
from benchmarks.document_halves import make_rows
from transduce import TransductiveClassifier
from transduce.dask import TransductiveClassifier as DaskClassifier
from transduce.engines.dask.worker_pool import WorkerPool

EARLY_TOL, TOL = 0.25, 1e-3
"""The defaults of the classifier."""
KEEP_FREED_MEMORY = {"MALLOC_TRIM_THRESHOLD_": str(1 << 26), "MALLOC_MMAP_THRESHOLD_": str(1 << 25)}
"""Environment of the workers, as docs/scale.md recommends."""
ACCURATE = (2e-4, 1e-4)
"""Both, so small that the order of rows hardly matters."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--annealing", default="paper", choices=("soft", "paper", "none"))
    parser.add_argument("--loss", default="hinge", choices=("hinge", "squared_hinge", "maxent"))
    parser.add_argument("--tol", type=float)
    parser.add_argument("--early-tol", type=float)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--seeds", action="store_true", help="a second fit on one core, with another seed")
    parser.add_argument("--data", help="folder of the data sets (default: TRANSDUCE_DATA)")
    parser.add_argument("--cache", type=Path, help="folder to cache the rows in (default: a temporary folder)")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name:
        X, y, labelled = make_rows(data_folder(options.data), options.rows, 0, options.cache or Path(name))
        X, chosen = X.copy(), options.tol is not None or options.early_tol is not None  # in memory, as workers have it
        given = (options.early_tol or EARLY_TOL, options.tol or TOL)
        for early_tol, tol in [given] if chosen else [(EARLY_TOL, TOL), ACCURATE]:
            options.early_tol, options.tol = early_tol, tol
            print(f"early_tol {early_tol:g}, tol {tol:g}", flush=True)
            compare(X, y, labelled, options)


class LatestPool(WorkerPool):
    """A worker pool that is known after its fit, with what it has counted."""

    latest: "LatestPool"

    def __post_init__(self) -> None:
        super().__post_init__()
        LatestPool.latest = self


def compare(X: Any, y: np.ndarray, labelled: np.ndarray, options: argparse.Namespace) -> None:
    given = np.where(labelled, y, -1)
    params = {
        "loss": options.loss, "annealing": None if options.annealing == "none" else options.annealing,
        "class_prior": np.bincount(y[~labelled]), "fit_intercept": False, "tol": options.tol,
        "early_tol": options.early_tol, "random_state": 0,
    }  # fmt: skip
    few = np.flatnonzero(labelled)
    ends = np.linspace(0, len(y), options.workers + 1).astype(int)
    spans = [slice(a, b) for a, b in pairwise(ends)]
    blocks, labels = [X[span] for span in spans], [given[span] for span in spans]
    small = [np.r_[few[:200], np.arange(span.start, span.start + 500)] for span in spans]
    transduce.dask.WorkerPool = LatestPool
    alone, together = [], []
    os.environ.update(KEEP_FREED_MEMORY)
    with (
        LocalCluster(n_workers=options.workers, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        begun = params | {"class_prior": "labeled"}
        TransductiveClassifier(n_jobs=1, **begun).fit(X[few], np.where(few % 3, y[few], -1))
        DaskClassifier(**begun).fit([X[i] for i in small], [given[i] for i in small])
        for _ in range(options.repeat):
            begin, cpu = time.perf_counter(), time.process_time()
            one = TransductiveClassifier(n_jobs=1, **params).fit(X, given)
            alone.append(time.perf_counter() - begin)
            spent = time.process_time() - cpu
            report("one core", alone[-1], spent, one.objective_, one.transduction_, y, labelled)
            clf = DaskClassifier(**params)
            begin, cpu = time.perf_counter(), cpu_seconds(client)
            clf.fit(blocks, labels)
            together.append(time.perf_counter() - begin)
            spent, found = cpu_seconds(client) - cpu, np.concatenate(clf.transduction_)
            report(f"{options.workers} workers", together[-1], spent, clf.objective_, found, y, labelled)
    if options.seeds:
        other = TransductiveClassifier(n_jobs=1, **params | {"random_state": 1}).fit(X, given)
        same = np.mean(other.transduction_ == one.transduction_)
        print(f"one core, another seed: the same labels for {same:.4%}")
    ratio = np.median(together) / np.median(alone)
    same, apart = np.mean(found == one.transduction_), abs(clf.objective_ / one.objective_ - 1)
    print(
        f"ratio of times {ratio:.2f} (wanted 1.3 or less), the same labels for {same:.4%} (wanted 99.9 %), "
        f"J apart by {apart:.1e} (wanted 1e-3)"
    )
    n_sums = LatestPool.latest.n_sums
    weights = clf.n_features_in_ * clf.taxonomy_.n_nodes * clf.coef_.itemsize
    n_bytes = 2 * options.workers * weights * n_sums
    print(
        f"{len(clf.history_)} rounds, changes of the weights of {weights / 2**20:.1f} MiB summed {n_sums} times: "
        f"{n_bytes / 2**20:.0f} MiB between workers"
    )


def cpu_seconds(client: Client) -> float:
    """CPU time of the driver and of all workers."""
    return time.process_time() + sum(client.run(time.process_time).values())


def report(
    who: str, seconds: float, cpu: float, objective: float, labels: np.ndarray, y: np.ndarray, labelled: np.ndarray
) -> None:
    right = np.mean(labels[~labelled] == y[~labelled])
    print(f"{who:>10}: {seconds:7.1f} s, {cpu:.1f} s of CPU, J {objective:.6f}, accuracy {right:.4f}", flush=True)


if __name__ == "__main__":
    main()
