"""Fits on dense rows beside one LogisticRegression of all rows with their true labels: time, memory, macro F.

    python -m benchmarks.dense                       22 500 x 384 with ten classes, 13 000 x 384 with 77
    python -m benchmarks.dense million               1 000 000 x 384 with 20 classes, counts given

Rows are texts of the built-in corpus, as tf-idf reduced to `--columns` by a singular value decomposition. More rows are
made by mixing pairs of the same class. All are centred, scaled to length 1, and float32. Each measurement is the best
of `--repeat` in a process of its own, after a small fit that compiles the kernels; measurements alternate.
"""

import argparse
import multiprocessing
import resource
import tempfile
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.preprocessing import normalize

from transduce import TransductiveClassifier
from transduce.datasets import load_clinc150

CHUNK = 50_000
LOGISTIC = "LogisticRegression, all labels"
METHODS = {
    "default, counts given": {},
    "default, nothing stated": {"class_prior": "estimate"},
    "soft annealing, counts given": {"annealing": "soft"},
    LOGISTIC: None,
}


class Measured(NamedTuple):
    """Seconds by the clock and of all cores, peak memory in bytes, iterations, and macro F of the unlabelled rows."""

    seconds: float
    cpu: float
    peak: int
    n_iter: int
    macro_f: float


def reduced(n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the corpus with this many columns, and the intent of each, in the order of the domains."""
    texts, labels, _ = load_clinc150()
    words = TfidfVectorizer(sublinear_tf=True).fit_transform(texts).astype(np.float32)
    rows = normalize(TruncatedSVD(n_columns, n_iter=2, random_state=0).fit_transform(words))
    return rows.astype(np.float32), np.unique(labels, return_inverse=True)[1]


def write_rows(folder: Path, source: np.ndarray, classes: np.ndarray, n_rows: int) -> None:
    """Write X.npy and y.npy: the rows of the corpus in random order, then mixtures of two rows of a class."""
    rng = np.random.default_rng(0)
    n_given = min(n_rows, len(classes))
    first = np.concatenate((rng.permutation(len(classes))[:n_given], rng.integers(len(classes), size=n_rows - n_given)))
    by_class, starts = (
        np.argsort(classes, kind="stable"),
        np.searchsorted(np.sort(classes), np.arange(classes.max() + 2)),
    )
    y = classes[first]
    partner = by_class[rng.integers(starts[y], starts[y + 1])]
    share = np.where(np.arange(n_rows) < n_given, 1.0, rng.uniform(0.4, 0.9, n_rows)).astype(np.float32)
    X = np.lib.format.open_memmap(folder / "X.npy", "w+", np.float32, (n_rows, source.shape[1]))
    for begin in range(0, n_rows, CHUNK):
        rows = slice(begin, begin + CHUNK)
        a = share[rows, None]
        X[rows] = normalize(a * source[first[rows]] + (1 - a) * source[partner[rows]])
    mean = X.mean(axis=0, dtype=np.float64).astype(np.float32)
    for begin in range(0, n_rows, CHUNK):
        X[begin : begin + CHUNK] = normalize(X[begin : begin + CHUNK] - mean)
    X.flush()
    np.save(folder / "y.npy", y)


def measure(folder: Path, method: str, n_labels: int) -> Measured:
    """Fit once in this process, which has nothing else to do."""
    warnings.simplefilter("ignore")
    y = np.load(folder / "y.npy")
    if METHODS[method] is None:
        X, model = np.load(folder / "X.npy"), LogisticRegression(C=10.0, max_iter=10_000)
        begin, cpu = time.perf_counter(), time.process_time()
        model.fit(X, y)
        return Measured(time.perf_counter() - begin, time.process_time() - cpu, 0, int(model.n_iter_[0]), np.nan)
    labeled = np.zeros(y.size, bool)
    for k in range(y.max() + 1):
        labeled[np.flatnonzero(y == k)[:n_labels]] = True
    given, counts = np.where(labeled, y, -1), np.bincount(y[~labeled]).tolist()
    parameters = {"class_prior": dict(enumerate(counts)), "random_state": 0} | METHODS[method]
    small = np.concatenate((np.flatnonzero(labeled), np.flatnonzero(~labeled)[: 20 * len(counts)]))
    some = np.load(folder / "X.npy", mmap_mode="r")[small]
    TransductiveClassifier(**parameters | {"class_prior": "estimate"}).fit(some, given[small])
    X, model = np.load(folder / "X.npy"), TransductiveClassifier(**parameters)
    begin, cpu = time.perf_counter(), time.process_time()
    model.fit(X, given)
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    macro_f = f1_score(y[~labeled], model.transduction_[~labeled], average="macro")
    return Measured(seconds, cpu, peak, model.n_iter_, float(macro_f))


def compare(title: str, rows: tuple[np.ndarray, np.ndarray], n_rows: int, methods: list[str], options) -> None:
    """Print one table."""
    source, classes = rows
    with tempfile.TemporaryDirectory() as name:
        write_rows(Path(name), source, classes, n_rows)
        best: dict[str, Measured] = {}
        for _ in range(options.repeat):
            for method in methods:
                with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
                    one = pool.submit(measure, Path(name), method, options.labels).result()
                best[method] = min(one, best.get(method, one))
    n_bytes, peer = n_rows * source.shape[1] * 4, best.get(LOGISTIC)
    print(f"\n{title}: {n_rows} x {source.shape[1]} float32 ({n_bytes / 2**20:.0f} MiB), {classes.max() + 1} classes, "
          f"{options.labels} labels each")  # fmt: skip
    print(f"{'':34}{'seconds':>9}{'CPU':>9}{'ratio':>7}{'of CPU':>8}{'peak / matrix':>15}{'rounds':>8}{'macro F':>9}")
    for method, one in best.items():
        ratio = f"{one.seconds / peer.seconds:>7.2f}{one.cpu / peer.cpu:>8.2f}" if peer else f"{'':15}"
        memory = f"{one.peak / n_bytes:>15.2f}" if one.peak else f"{'':15}"
        print(f"{method:34}{one.seconds:>9.2f}{one.cpu:>9.2f}{ratio}{memory}{one.n_iter:>8}{one.macro_f:>9.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", nargs="?", choices=("small", "million"), default="small")
    parser.add_argument("--rows", type=int, help="instead of 22 500 and 13 000, or of 1 000 000")
    parser.add_argument("--columns", type=int, default=384)
    parser.add_argument("--labels", type=int, default=10, help="labelled rows per class")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--no-logistic", action="store_true", help="leave out LogisticRegression")
    options = parser.parse_args()
    source, intents = reduced(options.columns)
    names = [method for method in METHODS if method != LOGISTIC or not options.no_logistic]
    if options.case == "million":
        few = [method for method in names if method in ("default, counts given", LOGISTIC)]
        compare("Many rows", (source, intents * 20 // 150), options.rows or 1_000_000, few, options)
        return
    compare("Ten classes", (source, intents // 15), options.rows or 22_500, names, options)
    few = intents < 77
    compare("Many classes", (source[few], intents[few]), options.rows or 13_000, names, options)


if __name__ == "__main__":
    main()
