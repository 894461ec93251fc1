"""What limits many threads, found on one core: the work that threads share, and the work that they cannot share.

    python -m benchmarks.threads --rows 300000 --threads 16

A fit is divided as for so many threads, but all pieces run one after another and are timed. From these times follow
the seconds that it would take if threads never waited for memory or for each other: a lower bound, which shows how much
of a fit is left to one thread. A piece of work goes to the thread that is free first; threads inside one kernel share
its work equally; and restarts that run at the same time take as long as the longest of them, or as all of them on so
many cores. Besides: how often threads wait for all others inside kernels, by the number of batches. Rows are those of
`benchmarks.document_halves`, with their true class sizes.
"""

import argparse
import heapq
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import data_folder
from benchmarks.document_halves import make_rows
from transduce import TransductiveClassifier
from transduce.parallel import Threads
from transduce.solvers.loop import Job, Loop, Turns
from transduce.weight_step.batches import BatchSweeps

WARM_ROWS = 25_000
"""Rows of the fit that compiles kernels: more than are annealed, so that all kernels are."""
TOL = TransductiveClassifier().tol


class Clock:
    """Seconds that threads would save; `depth` says how far pieces are nested, of which only the outermost count."""

    def __init__(self, n_threads: int) -> None:
        self.n_threads, self.depth = n_threads, 0
        self.reset()

    def reset(self) -> None:
        self.saved, self.shared, self.n_waits = 0.0, 0.0, 0

    def watch(self) -> None:
        """Let all pieces of work run one after another, and time them."""
        run = BatchSweeps._run

        def counted(sweeps: BatchSweeps, order: Any, batches: Any, moves: Any) -> float:
            if self._threads_of(sweeps, batches) > 1:
                self.n_waits += 2 * moves.size
            return run(sweeps, order, batches, moves)

        BatchSweeps._run = counted  # type: ignore[method-assign]
        Threads.each = self._each  # type: ignore[method-assign, assignment]
        Threads.map = lambda *arguments: iter(Threads.each(*arguments))  # type: ignore[method-assign, assignment]
        Loop.run_all = self._run_all  # type: ignore[method-assign, assignment]

    @staticmethod
    def _threads_of(sweeps: BatchSweeps, batches: Any) -> int:
        return min(sweeps.design.n_threads, int(np.diff(batches).max()) * sweeps.products_per_row // 10_000)

    @property
    def _each(self) -> Callable[..., list[Any]]:
        def timed(threads: Threads, function: Callable[[Any], Any], blocks: Sequence[Any]) -> list[Any]:
            results, seconds = [], []
            self.depth += 1
            for block in blocks:
                begin = time.perf_counter()
                results.append(function(block))
                seconds.append(time.perf_counter() - begin)
            self.depth -= 1
            if self.depth == 0 and threads.n_threads > 1 and len(seconds) > 1:
                self.shared += sum(seconds)
                self.saved += sum(seconds) - longest(seconds, threads.n_threads, isinstance(blocks, range))
            return results

        return timed

    @property
    def _run_all(self) -> Callable[..., bool]:
        def run_all(loop: Loop, run_one: Callable[[int], Job], n_restarts: int, n_threads: int) -> bool:
            spans, work = np.zeros(n_restarts), np.zeros(n_restarts)

            def timed(number: int) -> Job:
                job = run_one(number)
                while True:
                    begin, saved = time.perf_counter(), self.saved
                    try:
                        row = next(job)
                    except StopIteration:
                        return
                    finally:
                        seconds = time.perf_counter() - begin
                        work[number] += seconds
                        spans[number] += seconds - (self.saved - saved)
                    yield row

            Turns([timed(number) for number in range(n_restarts)], 1, loop.stopped).work()
            if n_threads > 1:
                self.saved += spans.sum() - max(spans.max(), work.sum() / self.n_threads)
            return False

        return run_all


def longest(seconds: list[float], n_threads: int, is_shared: bool) -> float:
    """Seconds until all pieces are done, where each goes to the thread that is free first, or all share the work."""
    if is_shared:  # the first to come does all the work here
        return sum(seconds) / min(n_threads, len(seconds))
    ends = [0.0] * n_threads
    for one in seconds:
        heapq.heapreplace(ends, ends[0] + one)
    return max(ends)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--annealing", nargs="+", default=["soft", "paper"], choices=("soft", "paper"))
    parser.add_argument("--data", help="folder of the data sets (default: TRANSDUCE_DATA)")
    parser.add_argument("--cache", type=Path, help="folder to cache the rows in (default: a temporary folder)")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name:
        X, truth, labelled = make_rows(data_folder(options.data), options.rows, 0, options.cache or Path(name))
        X, given = X.copy(), np.where(labelled, truth, -1)
    sizes = np.bincount(truth[~labelled])
    clock = Clock(options.threads)
    clock.watch()
    print(f"{options.rows:,} rows, {options.threads} threads; seconds on one core")
    print(
        f"{'annealing':>10}{'in all':>8}{'shared':>8}{'not shared':>12}{'at best':>9}{'ratio':>7}{'waits':>8}  accuracy"
    )
    for annealing in options.annealing:
        clf = TransductiveClassifier(annealing=annealing, n_jobs=options.threads, random_state=0)
        chosen = np.union1d(np.flatnonzero(labelled), np.arange(min(WARM_ROWS, options.rows)))
        clf.set_params(tol=0.2, class_prior="labeled").fit(X[chosen], given[chosen])
        clock.reset()
        begin = time.perf_counter()
        clf.set_params(tol=TOL, class_prior=sizes).fit(X, given)
        seconds = time.perf_counter() - begin
        best = seconds - clock.saved
        right = np.mean(clf.transduction_[~labelled] == truth[~labelled])
        print(f"{annealing:>10}{seconds:>8.2f}{clock.shared:>8.2f}{seconds - clock.shared:>12.2f}", end="")
        print(f"{best:>9.2f}{seconds / best:>7.1f}{clock.n_waits:>8}  {right:.3f}", flush=True)


if __name__ == "__main__":
    main()
