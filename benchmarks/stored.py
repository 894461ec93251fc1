"""A fit on rows that are larger than half of memory, mapped from a file: time, and memory that cannot be reclaimed.

    python -m benchmarks.stored --gib 12

Rows are those of the built-in corpus, repeated with different noise until the store is large enough. The operating
system may drop pages of the store at any time; what a process really needs is its anonymous memory, which should be a
small fraction of the store. It is sampled while the fit runs in a separate process.
"""

import argparse
import multiprocessing
import os
import shutil
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

from transduce import TransductiveClassifier
from transduce.datasets import load_clinc150
from transduce.io.memmap import open_rows, pack_rows

STATUS = Path("/proc/self/status")
BUCKET = 256
"""Number of columns among which a noise value is placed."""
CHUNK_VALUES = 1 << 24
NOISE_FRACTION = 0.5
"""Fraction of the squared length of a row that is noise."""


class Memory:
    """Peak anonymous and file-backed memory of this process, sampled inside a `with` block, in bytes."""

    def __init__(self, seconds: float = 0.02) -> None:
        self.seconds, self.anonymous, self.mapped = seconds, 0, 0
        self._done = threading.Event()

    def __enter__(self) -> "Memory":
        self._look()
        threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._look()

    def _watch(self) -> None:
        while not self._done.wait(self.seconds):
            self._look()

    def _look(self) -> None:
        lines = dict(line.split(":", 1) for line in STATUS.read_text().splitlines())
        self.anonymous = max(self.anonymous, 1024 * int(lines["RssAnon"].split()[0]))
        self.mapped = max(self.mapped, 1024 * int(lines["RssFile"].split()[0]))


@dataclass(frozen=True)
class Measured:
    """Measurements of a fit: seconds, bytes, accuracy on the unlabelled rows, termination condition."""

    seconds: float
    anonymous: int
    mapped: int
    accuracy: float
    status: str


def corpus() -> tuple[sparse.csr_matrix, np.ndarray]:
    """Rows of length 1 of the built-in corpus, and the indices of their domains."""
    texts, paths, _ = load_clinc150()
    X = TfidfVectorizer(sublinear_tf=True, dtype=np.float32).fit_transform(texts).tocsr()
    return X, np.unique([path.split("/")[0] for path in paths], return_inverse=True)[1]


def noisy(X: sparse.csr_matrix, n_noise: int, rng: np.random.Generator) -> sparse.csr_matrix:
    """Add `n_noise` noise values to each row, the k-th in the k-th bucket of columns; rows have length 1 again."""
    n, d = X.shape
    sizes = np.diff(X.indptr) + n_noise
    ends = np.concatenate(([0], np.cumsum(sizes)))
    own = np.arange(X.nnz) + np.repeat(np.arange(n) * n_noise, np.diff(X.indptr))
    data, indices = np.empty(ends[-1], np.float32), np.empty(ends[-1], np.int32)
    mine = np.zeros(ends[-1], bool)
    mine[own] = True
    data[mine], indices[mine] = np.sqrt(1.0 - NOISE_FRACTION) * X.data, X.indices
    data[~mine] = np.sqrt(NOISE_FRACTION / n_noise)
    noise = (
        rng.integers(BUCKET, size=(n, n_noise), dtype=np.int32) + np.int32(d) + BUCKET * np.arange(n_noise, dtype="i4")
    )
    indices[~mine] = noise.ravel()
    return sparse.csr_matrix((data, indices, ends), (n, d + BUCKET * n_noise))


def parts(X: sparse.csr_matrix, order: np.ndarray, n_noise: int, seed: int) -> Iterator[sparse.csr_matrix]:
    rng, step = np.random.default_rng(seed), max(1, CHUNK_VALUES // n_noise)
    for begin in range(0, order.size, step):
        yield noisy(X[order[begin : begin + step]], n_noise, rng)


def make(store: Path, gib: float, n_noise: int, seed: int) -> np.ndarray:
    """Write a store of about this size; return the classes of its rows."""
    X, domains = corpus()
    n = max(1000, int(gib * 2**30 / (8 * (n_noise + X.nnz / X.shape[0]))))
    order = np.random.default_rng(seed).integers(X.shape[0], size=n)
    pack_rows(parts(X, order, n_noise, seed), store)
    return domains[order]


def fitted(store: Path, y: np.ndarray, n_labels: int, options: dict) -> Measured:
    """Fit on the store and measure."""
    warnings.simplefilter("ignore")
    X, rng = open_rows(store), np.random.default_rng(0)
    given = np.full(y.size, -1)
    for c in np.unique(y):
        given[rng.choice(np.flatnonzero(y == c), n_labels, replace=False)] = c
    hidden = given < 0
    model = TransductiveClassifier(class_prior=np.bincount(y[hidden]), random_state=0, **options)
    begin = time.perf_counter()
    with Memory() as memory:
        model.fit(X, given)
    seconds = time.perf_counter() - begin
    right = float(np.mean(model.transduction_[hidden] == y[hidden]))
    return Measured(seconds, memory.anonymous, memory.mapped, right, model.termination_condition_)


def report(store: Path, measured: Measured) -> None:
    rows, whole = open_rows(store), os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    size = sum(path.stat().st_size for path in store.iterdir())
    shown = size > whole / 2 and measured.anonymous < size / 2
    for name, value, more in (
        ("rows", f"{rows.shape[0]:,}", f"of {rows.nnz / rows.shape[0]:.0f} values in {rows.shape[1]:,} columns"),
        ("physical memory", _gib(whole), "GiB"),
        ("store", _gib(size), f"GiB, {size / whole:.0%} of memory"),
        ("anonymous at most", _gib(measured.anonymous), f"GiB, {measured.anonymous / size:.1%} of the store"),
        ("mapped at most", _gib(measured.mapped), "GiB, which the system may reclaim"),
        ("time", f"{measured.seconds:.1f}", "s"),
        ("accuracy", f"{measured.accuracy:.3f}", measured.status),
    ):
        print(f"{name:<20}{value:>12} {more}")
    verdict = "shown" if shown else "NOT SHOWN, use a larger --gib"
    print(f"\nA fit on rows larger than half of memory, in less than half of their size: {verdict}.")


def _gib(size: float) -> str:
    return f"{size / 2**30:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gib", type=float, help="size of the store (default: 0.6 of memory)")
    parser.add_argument("--noise", type=int, default=1000, help="noise values per row")
    parser.add_argument("--labels", type=int, default=50, help="labelled rows per class")
    parser.add_argument("--loss", default="hinge", choices=("hinge", "squared_hinge", "maxent"))
    parser.add_argument("--annealing", default="none", choices=("soft", "paper", "none"))
    parser.add_argument("--jobs", type=int, help="threads (default: one per core)")
    parser.add_argument("--folder", type=Path, help="folder for the temporary store")
    options = parser.parse_args()
    if not STATUS.exists():
        raise SystemExit(f"This benchmark needs {STATUS}, which exists on Linux only.")
    gib = options.gib or 0.6 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    annealing = None if options.annealing == "none" else options.annealing
    chosen = {"loss": options.loss, "n_jobs": options.jobs, "annealing": annealing}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        store = Path(folder) / "store"
        if shutil.disk_usage(folder).free < 1.05 * gib * 2**30:
            raise SystemExit(
                f"{folder} has less than {gib:.1f} GiB of free space. Choose another with --folder, or a smaller --gib."
            )
        begin = time.perf_counter()
        y = make(store, gib, options.noise, 0)
        print(f"store written in {time.perf_counter() - begin:.0f} s", flush=True)
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as fresh:
            measured = fresh.submit(fitted, store, y, options.labels, chosen).result()
        report(store, measured)


if __name__ == "__main__":
    main()
