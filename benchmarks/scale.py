"""Growth of a whole fit with rows and with classes, on rows made of halves of real documents.

    python -m benchmarks.scale rows --sizes 10000 31623 100000 316228 1000000
    python -m benchmarks.scale classes --sizes 20 105 330 1000 --rows 50000
    python -m benchmarks.scale classes --tree --nodes 10000 --rows 50000

A row has a random half of the words of each of two documents of its class; words are counted, weighted and scaled as
those of 20 newsgroups are. Each fit runs in its own process and reports its time, its peak memory and the fraction of
time spent in each phase. Rows are in memory or, with --mapped, in a file. Times exclude compilation and the generation
of rows.
"""

import argparse
import gzip
import json
import multiprocessing
import os
import resource
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import wraps
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

from benchmarks.data import data_folder
from transduce import TransductiveClassifier
from transduce.design import Design
from transduce.io.memmap import HEADER, open_rows, pack_rows
from transduce.kernels import kernel
from transduce.label_step import METHODS
from transduce.label_step.entropic import Entropic, solve_at_entropy
from transduce.label_step.greedy import greedy_labels
from transduce.losses import LargeMargin, MaxEnt, SmoothMargin, SquaredLargeMargin, costs_of
from transduce.solvers.loop import Loop
from transduce.weight_step import LBFGS, DualLargeMargin, DualMaxEnt, DualSquaredLargeMargin

ROWS_EXPONENT, CLASSES_EXPONENT = 1.15, 1.2
CHUNK = 20_000
PHASES = ("weights", "labels", "soft labels", "scores", "costs", "rest")
STATUS, RESET_PEAK = Path("/proc/self/status"), Path("/proc/self/clear_refs")


# ---- rows


@dataclass(frozen=True)
class RowsSpec:
    """Rows to generate: number, classes (None for the newsgroups themselves) and size of the vocabulary."""

    data: Path
    cache: Path
    n: int
    seed: int = 0
    n_classes: int | None = None
    pool: float = 0.3
    n_words: int | None = None

    @property
    def folder(self) -> Path:
        classes = "groups" if self.n_classes is None else f"{self.n_classes}-{self.pool:g}"
        return self.cache / f"{self.n}-{classes}-{self.n_words or 'all'}-{self.seed}"


def make_rows(
    folder: Path, n: int, seed: int, cache: Path, n_labels: int = 10, **options: Any
) -> tuple[sparse.csr_matrix, np.ndarray, np.ndarray]:
    """Rows mapped from the cache, generated first if they are missing; their classes; which of them are labelled."""
    spec = RowsSpec(folder, cache, n, seed, **options)
    if not (spec.folder / "store" / HEADER).exists():
        _make(spec)
    y = np.load(spec.folder / "classes.npy")
    return open_rows(spec.folder / "store"), y, _labelled(y, n_labels, np.random.default_rng([seed, 1]))


def _make(spec: RowsSpec) -> None:
    counts, groups, idf = _documents(spec.data, spec.cache, spec.n_words)
    rng = np.random.default_rng([spec.seed, spec.n, spec.n_classes or 0])
    if spec.n_classes is None:
        pools = [np.flatnonzero(groups == group) for group in range(groups.max() + 1)]
        y = rng.choice(groups, spec.n)
    else:
        pools = [_pool(np.flatnonzero(groups == c % (groups.max() + 1)), spec.pool, rng) for c in range(spec.n_classes)]
        y = rng.permutation(np.arange(spec.n) % spec.n_classes)
    spec.folder.mkdir(parents=True, exist_ok=True)
    np.save(spec.folder / "classes.npy", y)
    pack_rows(_parts(counts, idf, pools, y, rng), spec.folder / "store")


def _documents(folder: Path, cache: Path, n_words: int | None) -> tuple[sparse.csr_matrix, np.ndarray, np.ndarray]:
    """Counts of the most frequent words in the bodies of 20 newsgroups, the groups, and the idf of each word."""
    cached = cache / "counts.npz"
    if not cached.exists():
        with gzip.open(folder / "20ng_raw" / "docs.jsonl.gz", "rt", encoding="utf-8") as file:
            documents = [json.loads(line) for line in file]
        counts = CountVectorizer(dtype=np.int32).fit_transform(d["text"].split("\n\n", 1)[-1] for d in documents)
        groups = np.unique([d["label"] for d in documents], return_inverse=True)[1]
        cache.mkdir(parents=True, exist_ok=True)
        np.save(cache / "groups.npy", groups)
        counts.sort_indices()
        sparse.save_npz(cache / "part.npz", counts, compressed=False)
        os.replace(cache / "part.npz", cached)
    counts, groups = sparse.load_npz(cached), np.load(cache / "groups.npy")
    frequencies = np.bincount(counts.indices, minlength=counts.shape[1])
    if n_words is not None and n_words < counts.shape[1]:
        common = np.sort(np.argsort(-frequencies, kind="stable")[:n_words])
        counts, frequencies = counts[:, common].tocsr(), frequencies[common]
    idf = 1.0 + np.log((1 + counts.shape[0]) / (1 + frequencies))
    full = np.flatnonzero(np.diff(counts.indptr))
    return counts[full], groups[full], idf.astype(np.float32)


def _pool(documents: np.ndarray, fraction: float, rng: np.random.Generator) -> np.ndarray:
    return np.sort(rng.choice(documents, max(2, round(fraction * documents.size)), replace=False))


def _parts(
    counts: sparse.csr_matrix, idf: np.ndarray, pools: list[np.ndarray], y: np.ndarray, rng: np.random.Generator
) -> Iterator[sparse.csr_matrix]:
    """Generate the rows in chunks."""
    documents, sizes = np.concatenate(pools), np.array([pool.size for pool in pools])
    starts = np.cumsum(sizes) - sizes
    n_tokens = np.asarray(counts.sum(axis=1)).ravel()
    for begin in range(0, y.size, CHUNK):
        classes = y[begin : begin + CHUNK]
        pairs = documents[starts[classes] + (rng.random((2, classes.size)) * sizes[classes]).astype(np.int64)]
        chance = rng.random(int(n_tokens[pairs].sum()), np.float32)
        capacity = int(np.diff(counts.indptr)[pairs].sum())
        data, columns = np.empty(capacity, np.float32), np.empty(capacity, np.int32)
        ends = np.zeros(classes.size + 1, np.int64)
        mix(pairs, counts.data, counts.indices, counts.indptr, idf, chance, data, columns, ends)
        yield sparse.csr_matrix((data[: ends[-1]], columns[: ends[-1]], ends), (classes.size, counts.shape[1]))


@kernel
def mix(
    pairs: np.ndarray,
    counts: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    idf: np.ndarray,
    chance: np.ndarray,
    data: np.ndarray,
    columns: np.ndarray,
    ends: np.ndarray,
) -> None:
    """Write a row for each pair of documents: half of the words of each, (1 + log tf) · idf, scaled to length 1."""
    size = 0
    for doc in pairs.ravel():
        size = max(size, indptr[doc + 1] - indptr[doc])
    words, tf_half = np.empty((2, size + 1), np.int64), np.empty((2, size + 1), np.int64)
    used, place = 0, 0
    for i in range(pairs.shape[1]):
        for half in range(2):
            used = thin(pairs[half, i], counts, indices, indptr, chance, used, words[half], tf_half[half])
        a, b, begin, square = 0, 0, place, 0.0
        while words[0, a] >= 0 or words[1, b] >= 0:
            here = words[0, a] if words[1, b] < 0 or 0 <= words[0, a] <= words[1, b] else words[1, b]
            tf = 0
            if words[0, a] == here:
                tf, a = tf + tf_half[0, a], a + 1
            if words[1, b] == here:
                tf, b = tf + tf_half[1, b], b + 1
            value = (1.0 + np.log(tf)) * idf[here]
            columns[place], data[place] = here, value
            square += value * value
            place += 1
        for p in range(begin, place):
            data[p] /= np.sqrt(square)
        ends[i + 1] = place


@kernel
def thin(
    doc: int,
    counts: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    chance: np.ndarray,
    used: int,
    words: np.ndarray,
    tf: np.ndarray,
) -> int:
    """Write a uniformly random half of a document's words and their counts; −1 marks the end."""
    left = 0
    for p in range(indptr[doc], indptr[doc + 1]):
        left += counts[p]
    wanted, place = (left + 1) // 2, 0
    for p in range(indptr[doc], indptr[doc + 1]):
        taken = 0
        for _ in range(counts[p]):
            if chance[used] * left < wanted:
                taken, wanted = taken + 1, wanted - 1
            left, used = left - 1, used + 1
        if taken > 0:
            words[place], tf[place] = indices[p], taken
            place += 1
    words[place] = -1
    return used


def _labelled(y: np.ndarray, n_labels: int, rng: np.random.Generator) -> np.ndarray:
    """Choose `n_labels` random rows of each class, but at most half of a class."""
    order = rng.permutation(y.size)
    order = order[np.argsort(y[order], kind="stable")]
    sizes = np.bincount(y)
    rank = np.arange(y.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    labelled = np.zeros(y.size, bool)
    labelled[order] = rank < np.minimum(n_labels, np.maximum(sizes // 2, 1))[y[order]]
    return labelled


# ---- time by phase


class Phases:
    """Seconds of each phase, excluding nested phases; everything inside a weight step counts as weights."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self._here = threading.local()
        self._lock = threading.Lock()

    def timed(self, phase: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            stack: list[list[Any]] = self._here.__dict__.setdefault("stack", [])
            inside = stack[-1][0] if stack and stack[-1][0] == "weights" else phase
            stack.append([inside, 0.0])
            begin = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                elapsed = time.perf_counter() - begin
                inner = stack.pop()[1]
                if stack:
                    stack[-1][1] += elapsed
                with self._lock:
                    self.seconds[inside] += elapsed - inner

        return run

    def watch(self) -> None:
        """Wrap methods with timers, and functions in every module of the package that imports them."""
        for kind in (DualLargeMargin, DualMaxEnt, DualSquaredLargeMargin, LBFGS):
            for name in ("start", "retarget", "solve"):
                setattr(kind, name, self.timed("weights", getattr(kind, name)))
        for kind in {type(step) for step in METHODS.values()}:
            kind.solve = self.timed("labels", kind.solve)
        Entropic.solve = self.timed("soft labels", Entropic.solve)
        for kind in (LargeMargin, SquaredLargeMargin, MaxEnt, SmoothMargin):
            kind.label_costs = self.timed("costs", kind.label_costs)
        Design.scores = self.timed("scores", Design.scores)
        Loop.run, Loop.run_all = self.timed("rest", Loop.run), self.timed("wait", Loop.run_all)
        named = {
            solve_at_entropy: "soft labels",
            greedy_labels: "labels",
            costs_of: "costs",
        }
        for function, phase in named.items():
            self._replace(function, self.timed(phase, function))

    def _replace(self, old: Any, new: Any) -> None:
        for name, module in list(sys.modules.items()):
            if name.startswith("transduce"):
                for member in [key for key, value in vars(module).items() if value is old]:
                    setattr(module, member, new)

    def fractions(self) -> list[float]:
        """Fraction of each phase in the time of all threads, excluding time spent waiting."""
        total = sum(self.seconds[phase] for phase in PHASES) or 1.0
        return [self.seconds[phase] / total for phase in PHASES]


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
        fresh.submit(_make_if_missing, spec).result()


def _make_if_missing(spec: RowsSpec) -> None:
    begin = time.perf_counter()
    if not (spec.folder / "store" / HEADER).exists():
        _make(spec)
        print(f"{spec.n:,} rows generated in {time.perf_counter() - begin:.0f} s", flush=True)


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
