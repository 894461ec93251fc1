"""How well the progress bar knows the time of a fit: the total time that it predicts, relative to the true one.

Prints the largest and the smallest prediction after a tenth of the time, and the time of each stage for a row, from
which the constants of `solvers.plan` come. With --record FILE, fits of other data are recorded for the tests. Needs the
paper's data sets: --data DIR or TRANSDUCE_DATA. With one thread, time is that of the process.
"""

import argparse
import itertools
import json
import tempfile
import time
import warnings
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.data import data_folder, load
from benchmarks.document_halves import make_rows
from transduce import TransductiveClassifier
from transduce.history import HistoryRow
from transduce.solvers.plan import FitPlan


class Fit(NamedTuple):
    """A fit to measure: data set, labels, share of its rows, number of threads, and whether class sizes are given."""

    name: str
    n_labeled: int
    share: float = 1.0
    n_threads: int = 1
    sizes: bool = False


PLANNED = (Fit("news20_train", 100), Fit("r8", 80), Fit("webkb7", 80), Fit("clinc150", 80), Fit("60 000 rows", 200))
RECORDED = (
    Fit("la1", 80),
    Fit("usps", 80),
    Fit("usps", 80, sizes=True),
    Fit("100 000 rows", 200),
    Fit("ohscal", 100, n_threads=2),
    Fit("ohscal", 100, n_threads=2, sizes=True),
    Fit("100 000 rows", 200, n_threads=2, sizes=True),
)


def data_of(fit: Fit, folder: Path, cache: Path):
    """Rows, labels and which of them are given."""
    if fit.name.endswith("rows"):
        n = int(fit.name.removesuffix(" rows").replace(" ", ""))
        rows, y, labeled = make_rows(folder, n, 0, cache)
        given = np.zeros(n, bool)
        given[np.flatnonzero(labeled)[: fit.n_labeled] if labeled.dtype == bool else labeled[: fit.n_labeled]] = True
        return rows, y, given
    X, y = load(folder, fit.name)
    X = X.toarray() if fit.name == "usps" else X
    given = np.zeros(len(y), bool)
    given[np.random.default_rng(0).permutation(len(y))[: fit.n_labeled]] = True
    return X, y, given


def run(fit: Fit, folder: Path, cache: Path) -> dict:
    """Rounds of a fit and the milliseconds at which each ended."""
    X, y, given = data_of(fit, folder, cache)
    marked = np.where(given, y, -1)
    prior = dict(enumerate(np.bincount(y[~given]).tolist())) if fit.sizes else "estimate"
    clock = time.process_time if fit.n_threads == 1 else time.perf_counter
    rounds: list[tuple[HistoryRow, float]] = []
    clf = TransductiveClassifier(class_prior=prior, random_state=0, n_jobs=fit.n_threads)
    clf.set_params(verbose=lambda row: rounds.append((row, clock() - begin)))
    begin = clock()
    clf.fit(X, marked)
    total = clock() - begin
    shape = {"n_unlabeled": int((~given).sum()), "n_classes": int(y.max()) + 1, "is_dense": fit.name == "usps"}
    sizes = ", sizes given" if fit.sizes else ""
    name = f"{fit.name}{sizes}, {fit.n_threads} thread{'s' if fit.n_threads > 1 else ''}"
    return {"name": name, **shape, "n_threads": fit.n_threads, "total": total, "rounds": rounds}


def predictions(found: dict) -> np.ndarray:
    """Total time by the bar, relative to the true one, after a tenth of it."""
    plan = FitPlan.create(found["n_unlabeled"], found["n_classes"], "auto", found["is_dense"], found["n_threads"])
    ratios = []
    for row, seconds in found["rounds"]:
        plan.add(row)
        if seconds >= 0.1 * found["total"]:
            ratios.append(seconds / found["total"] / plan.fraction)
    return np.array(ratios)


def times_of_stages(found: dict) -> dict[int, list[float]]:
    """Microseconds for a row in each stage of each restart, of a fit in one thread."""
    spent, last = defaultdict(lambda: defaultdict(float)), 0.0
    for row, seconds in found["rounds"]:
        spent[row.restart][row.stage] += seconds - last
        last = seconds
    per_row = 1e6 / found["n_unlabeled"]
    return {k: [per_row * stages.get(s, 0.0) for s in range(max(stages) + 1)] for k, stages in spent.items()}


def differences(values: list[int]) -> list[int]:
    return [values[0], *(b - a for a, b in itertools.pairwise(values))]


def recorded(found: dict) -> dict:
    """The fit as the tests read it."""
    rows, seconds = zip(*found["rounds"], strict=True)
    return {
        **{key: found[key] for key in ("name", "n_unlabeled", "n_classes", "is_dense", "n_threads")},
        "total": round(1000 * found["total"]),
        "restart": differences([row.restart for row in rows]),
        "stage": differences([row.stage for row in rows]),
        "moved": [int(row.n_moved > 0) for row in rows],
        "ms": differences([round(1000 * one) for one in seconds]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data")
    parser.add_argument("--record", type=Path)
    options = parser.parse_args()
    folder = data_folder(options.data)
    warnings.simplefilter("ignore")  # sizes that the labels say little about are expected
    with tempfile.TemporaryDirectory() as cache:
        run(Fit("r8", 80), folder, Path(cache))  # so that nothing is compiled while the clock runs
        kept = []
        for fit in PLANNED + RECORDED:
            found = run(fit, folder, Path(cache))
            ratios = predictions(found)
            print(f"{found['name']:<40}{found['total']:>8.2f} s   {ratios.min():.2f} to {ratios.max():.2f}", flush=True)
            if fit in PLANNED:
                for k, times in sorted(times_of_stages(found).items()):
                    print(f"    restart {k:>2}: " + " ".join(f"{one:.0f}" for one in times), flush=True)
            else:
                kept.append(recorded(found))
    if options.record:
        options.record.write_text("[\n" + ",\n".join(map(json.dumps, kept)) + "\n]\n")


if __name__ == "__main__":
    main()
