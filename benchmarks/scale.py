"""Growth of a whole fit with rows and with classes, on rows made of halves of real documents.

    python -m benchmarks.scale rows --sizes 10000 31623 100000 316228 1000000
    python -m benchmarks.scale classes --sizes 20 105 330 1000 --rows 50000
    python -m benchmarks.scale classes --tree --nodes 10000 --rows 50000

Rows are those of `benchmarks.document_halves`. Each fit runs in its own process and reports its time, its peak memory
and the fraction of time spent in each phase. Rows are in memory or, with --mapped, in a file. Times exclude compilation
and the generation of rows.
"""

import argparse
import multiprocessing
import os
import resource
import tempfile
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy import sparse

from benchmarks.data import data_folder
from benchmarks.document_halves import RowsSpec, make_if_missing, make_rows
from benchmarks.phases import PHASES, Phases
from transduce import TransductiveClassifier

ROWS_EXPONENT, CLASSES_EXPONENT = 1.15, 1.2
STATUS, RESET_PEAK = Path("/proc/self/status"), Path("/proc/self/clear_refs")


# ---- one fit


@dataclass(frozen=True)
class Fit:
    """Settings of one fit."""

    spec: RowsSpec
    n_labels: int
    loss: str
    annealing: str
    jobs: int | None
    mapped: bool
    estimate: bool
    n_nodes: int | None = None


@dataclass(frozen=True)
class Measured:
    """Measurements of one fit."""

    n: int
    n_classes: int
    n_nodes: int
    nnz: int
    seconds: float
    peak: float
    phase_fractions: list[float]
    accuracy: float
    supervised: float
    status: str


def run_in_new_process(fit: Fit) -> Measured:
    """Run a fit in a new process, so that its peak memory is measured alone."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as fresh:
        return fresh.submit(_fit, fit).result()


def make_in_new_process(spec: RowsSpec) -> None:
    """Generate rows in a new process, so that this one keeps none of the memory."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as fresh:
        fresh.submit(make_if_missing, spec).result()


def _fit(fit: Fit) -> Measured:
    spec = fit.spec
    X, y, labelled = make_rows(
        spec.data, spec.n, spec.seed, spec.cache, fit.n_labels,
        n_classes=spec.n_classes, pool=spec.pool, n_words=spec.n_words,
    )  # fmt: skip
    names = (
        np.arange(y.max() + 1).astype(str) if fit.n_nodes is None else np.array(tree_names(y.max() + 1, fit.n_nodes))
    )
    X = X if fit.mapped else X.copy()
    warnings.simplefilter("ignore")
    _warm(fit)
    given = np.where(labelled, names[y], "")
    sizes = dict(zip(names.tolist(), np.bincount(y[~labelled], minlength=names.size).tolist(), strict=True))
    phases = Phases()
    phases.watch()
    model = _model(fit, names.tolist(), "estimate" if fit.estimate else sizes)
    _reset_peak()
    begin = time.perf_counter()
    phases.timed("rest", model.fit)(X, given)
    seconds, peak = time.perf_counter() - begin, _peak()
    right = float(np.mean(model.transduction_[~labelled] == names[y[~labelled]]))
    n_nodes = model.taxonomy_.n_nodes
    supervised = _model(fit, names.tolist(), "labeled").fit(X[labelled], given[labelled])
    return Measured(
        len(y), names.size, n_nodes, X.nnz, seconds, peak, phases.fractions(), right,
        float(np.mean(_predicted(supervised, X[~labelled]) == names[y[~labelled]])), model.termination_condition_,
    )  # fmt: skip


def _model(fit: Fit, names: list[str], prior: object) -> TransductiveClassifier:
    annealing = None if fit.annealing == "none" else fit.annealing
    tree = None if fit.n_nodes is None else names
    return TransductiveClassifier(
        fit.loss, annealing=annealing, class_prior=prior, taxonomy=tree, n_jobs=fit.jobs, random_state=0
    )


def _predicted(model: TransductiveClassifier, X: sparse.csr_matrix) -> np.ndarray:
    step = max(1, 2**26 // len(model.classes_))
    return np.concatenate([model.predict(X[i : i + step]) for i in range(0, X.shape[0], step)])


def _warm(fit: Fit) -> None:
    """Compile all kernels before timing starts."""
    X = sparse.random(60, 20, 0.5, format="csr", dtype=np.float32, random_state=0)
    names = ["a/x", "a/y", "b"] if fit.n_nodes else ["a", "b", "c"]
    _model(fit, names, "estimate").fit(X, np.array([names[i % 3] if i < 12 else "" for i in range(60)]))


def tree_names(n_classes: int, n_nodes: int) -> list[str]:
    """Classes as paths of length four: newsgroup, two levels of random groups, class; about n_nodes nodes in total."""
    n_groups = 20
    inner = (n_nodes - n_classes) // n_groups - 1
    if inner < 2:
        raise SystemExit(f"--nodes must be at least {n_classes + 3 * n_groups} for {n_classes} classes, not {n_nodes}.")
    n_low = min(9 * inner // 10, n_classes // n_groups)
    rng, n_middle = np.random.default_rng(0), inner - n_low
    names, ranks = [""] * n_classes, np.empty(n_classes, np.int64)
    for group in range(n_groups):
        mine = np.arange(group, n_classes, n_groups)
        ranks[mine] = rng.permutation(mine.size)
    for c in range(n_classes):
        low = ranks[c] % n_low
        names[c] = f"{c % n_groups}/{low % n_middle}/{low}/{c}"
    return names


def _reset_peak() -> None:
    if RESET_PEAK.exists():
        RESET_PEAK.write_text("5")


def _peak() -> float:
    """Peak memory of this process in GiB, including pages of mapped rows."""
    if STATUS.exists():
        return next(int(s.split()[1]) for s in STATUS.read_text().splitlines() if s.startswith("VmHWM:")) / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


# ---- tables


def growth(sizes: list[int], seconds: list[float]) -> float:
    """Exponent x of a fit of seconds = c · size^x over all sizes."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def table(what: str, fits: list[Fit], size: Callable[[Measured], int], limit: float) -> None:
    phases = "".join(f"{phase:>13}" for phase in PHASES)
    print(
        f"{what:>10}{'seconds':>10}{'growth':>8}{'peak GiB':>10}{'rows GiB':>10}{phases}{'accuracy':>10}{'superv.':>9}"
    )
    measured: list[Measured] = []
    for fit in fits:
        make_in_new_process(fit.spec)
        measured.append(run_in_new_process(fit))
        one = measured[-1]
        rate = (
            f"{growth([size(t) for t in measured[-2:]], [t.seconds for t in measured[-2:]]):.2f}"
            if len(measured) > 1
            else ""
        )
        fractions = "".join(f"{fraction:>13.1%}" for fraction in one.phase_fractions)
        print(
            f"{size(one):>10,}{one.seconds:>10.2f}{rate:>8}{one.peak:>10.2f}{8 * one.nnz / 2**30:>10.2f}{fractions}"
            f"{one.accuracy:>10.3f}{one.supervised:>9.3f}  {one.status}",
            flush=True,
        )
    if len(measured) > 1:
        overall = growth([size(t) for t in measured], [t.seconds for t in measured])
        steps = [growth([size(t) for t in two], [t.seconds for t in two]) for two in pairwise(measured)]
        verdict = "within" if overall <= limit else "OVER"
        print(
            f"\nSeconds grow as {what}^{overall:.2f} over all sizes, and between two sizes at most as "
            f"{what}^{max(steps):.2f}; target at most {limit}: {verdict}."
        )


def rows_command(options: argparse.Namespace, cache: Path) -> None:
    print("Growth in rows: 20 classes, their true sizes " + ("estimated." if options.estimate else "given."))
    table("rows", [_job(options, cache, n) for n in options.sizes], lambda measured: measured.n, ROWS_EXPONENT)


def classes_command(options: argparse.Namespace, cache: Path) -> None:
    if options.tree:
        n_classes = options.sizes[0] if options.sizes else 4 * options.nodes // 5
        fit = _job(options, cache, options.rows, n_classes, options.nodes)
        print(f"A tree over {n_classes:,} classes, {options.rows:,} rows, {options.words or 'all'} words.")
        table("nodes", [fit], lambda measured: measured.n_nodes, np.inf)
        return
    print(f"Growth in classes at {options.rows:,} rows: each is {options.pool:.0%} of the documents of a newsgroup.")
    fits = [_job(options, cache, options.rows, k) for k in options.sizes or (20, 105, 330, 1000)]
    table("classes", fits, lambda measured: measured.n_classes, CLASSES_EXPONENT)


def _job(
    options: argparse.Namespace, cache: Path, n: int, n_classes: int | None = None, nodes: int | None = None
) -> Fit:
    spec = RowsSpec(data_folder(options.data), cache, n, options.seed, n_classes, options.pool, options.words)
    return Fit(
        spec, options.labels, options.loss, options.annealing, options.jobs, options.mapped, options.estimate, nodes
    )


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    rows = commands.add_parser("rows", help="growth with rows")
    rows.add_argument("--sizes", type=int, nargs="+", default=[10_000, 31_623, 100_000, 316_228, 1_000_000])
    classes = commands.add_parser("classes", help="growth with classes, or one taxonomy")
    classes.add_argument("--sizes", type=int, nargs="+", help="numbers of classes (default: 20 105 330 1000)")
    classes.add_argument("--rows", type=int, default=50_000)
    classes.add_argument("--tree", action="store_true", help="one fit with a taxonomy, 4/5 of whose nodes are classes")
    classes.add_argument("--nodes", type=int, default=10_000)
    for command in (rows, classes):
        command.add_argument("--data", help="folder of the data sets (default: TRANSDUCE_DATA)")
        command.add_argument("--cache", type=Path, help="folder to cache the rows in (default: a temporary folder)")
        command.add_argument("--labels", type=int, default=10, help="labelled rows per class")
        command.add_argument("--loss", default="hinge", choices=("hinge", "squared_hinge", "maxent"))
        command.add_argument("--annealing", default="soft", choices=("soft", "paper", "none"))
        command.add_argument("--jobs", type=int, help="threads (default: one per core)")
        command.add_argument(
            "--mapped", action="store_true", help="leave rows in their file instead of copying them to memory"
        )
        command.add_argument("--estimate", action="store_true", help="let the fit estimate the class sizes")
        command.add_argument("--seed", type=int, default=0)
        command.add_argument("--words", type=int, help="use only this many of the most frequent words")
        command.add_argument(
            "--pool", type=float, default=0.3, help="fraction of a newsgroup that a class is drawn from"
        )
    options = parser.parse_args()
    if options.command == "classes" and options.tree and options.words is None:
        options.words = 20_000
    return options


def main() -> None:
    options = parsed()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print(f"{options.loss}, annealing {options.annealing}, {options.labels} labels per class, {cores} cores")
    with tempfile.TemporaryDirectory() as temporary:
        command = rows_command if options.command == "rows" else classes_command
        command(options, options.cache or Path(temporary))


if __name__ == "__main__":
    main()
