"""A whole fit on a GPU beside the same fit in memory: time, macro F, equal labels, device memory and bandwidth.

    python -m benchmarks.device --data DIR --sets news scale dense --jobs 2

Sets: 20 newsgroups (news20_train, 100 labels), rows made of halves of documents (see `benchmarks.scale`), and dense
random clusters. Class sizes are given. Memory is compared with 3 X + 4 n K floats, the bandwidth of the two products
with that of a copy, and the time with one supervised logistic regression (L-BFGS, all rows with their true labels) on
the same device. The first fit on the device, which loads its libraries, is reported apart. `--no-memory` leaves out the
fit in memory; `--device cpu` tries the script without a GPU.
"""

import argparse
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse
from sklearn.metrics import f1_score

from benchmarks.data import data_folder, load
from transduce import TransductiveClassifier
from transduce.cli.device import on_device
from transduce.engines.device.arrays import is_sparse
from transduce.engines.device.rows import DeviceRows
from transduce.taxonomy import Taxonomy

ALPHA, N_REPEATS = 1e-4, 5


def rows_of(name: str, options: argparse.Namespace) -> tuple[Any, np.ndarray, np.ndarray]:
    """Rows in single precision, their classes, and which are labelled."""
    if name == "news":
        X, y = load(data_folder(options.data), "news20_train")
        rows = np.random.default_rng(0).permutation(len(y))[:10_100]
        return X[rows].astype(np.float32), y[rows], np.arange(10_100) < 100
    if name == "scale":
        from benchmarks.document_halves import make_rows

        X, y, labeled = make_rows(data_folder(options.data), options.rows, 0, Path(options.cache))
        mask = np.zeros(len(y), bool)
        mask[labeled] = True
        return sparse.csr_matrix(X, dtype=np.float32), y, mask
    rng, shape = np.random.default_rng(0), (options.dense_rows, options.features)
    y = rng.integers(options.classes, size=shape[0])
    X = rng.normal(size=shape).astype(np.float32)
    X += 4.0 * rng.normal(size=(options.classes, shape[1])).astype(np.float32)[y] / np.sqrt(shape[1]) ** 0.5
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, y, rng.permutation(shape[0]) < 10 * options.classes


def fit(X: Any, y: np.ndarray, labeled: np.ndarray, options: argparse.Namespace) -> tuple[Any, float]:
    """The fitted classifier, and the seconds it took."""
    counts = dict(enumerate(np.bincount(y[~labeled], minlength=y.max() + 1).tolist()))
    clf = TransductiveClassifier(class_prior=counts, random_state=0, n_jobs=options.jobs, annealing=options.annealing)
    begin = time.perf_counter()
    clf.fit(X, np.where(labeled, y, -1))
    synchronize(options.device)
    return clf, time.perf_counter() - begin


def synchronize(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def seconds_of(work: Any, device: str) -> float:
    """Median seconds of a call."""
    times = []
    for _ in range(N_REPEATS + 1):
        synchronize(device)
        begin = time.perf_counter()
        work()
        synchronize(device)
        times.append(time.perf_counter() - begin)
    return float(np.median(times[1:]))


def bandwidth_shares(X: Any, n_classes: int, device: str) -> tuple[float, float]:
    """Bytes per second of X W and Xᵀ R over those of a copy; X, W or R, and the result count once."""
    copied = torch.zeros(1 << (28 if device.startswith("cuda") else 24), device=device)
    best = 8 * copied.numel() / seconds_of(copied.clone, device)
    del copied
    rows = DeviceRows.create(X, Taxonomy.flat(range(n_classes)), 1, np.arange(X.shape[0]))
    W, n_values = rows.zeros(), X.values().numel() if is_sparse(X) else X.numel()
    R = rows.scores(W)
    moved = n_values * (8 if is_sparse(X) else 4) + 4 * (W.numel() + R.numel())
    times = seconds_of(lambda: rows.scores(W), device), seconds_of(lambda: rows.write_pullback(R, W), device)
    return moved / times[0] / best, moved / times[1] / best


def logistic_regression(X: Any, y: np.ndarray, device: str) -> float:
    """Seconds of one supervised solve with all labels."""
    targets = torch.asarray(y, device=device)
    W = torch.zeros((X.shape[1], int(y.max()) + 1), device=device)
    X_t = X.t().to_sparse_csr() if is_sparse(X) else X.T
    rows = torch.arange(len(y), device=device)

    def value_and_gradient(flat: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        V = flat.reshape(W.shape)
        logits = X @ V
        logs = torch.log_softmax(logits, dim=1)
        residual = logs.exp()
        residual[rows, targets] -= 1.0
        value = -logs[rows, targets].mean() + 0.5 * ALPHA * (V * V).sum()
        return value, (X_t @ (residual / len(y)) + ALPHA * V).reshape(-1)

    class Loss(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, flat: torch.Tensor) -> torch.Tensor:
            value, gradient = value_and_gradient(flat)
            ctx.save_for_backward(gradient)
            return value

        @staticmethod
        def backward(ctx: Any, *upstream: torch.Tensor) -> torch.Tensor:
            return upstream[0] * ctx.saved_tensors[0]

    def solve() -> None:
        flat = torch.zeros(W.numel(), device=device, requires_grad=True)
        solver = torch.optim.LBFGS([flat], max_iter=100, tolerance_grad=1e-7, line_search_fn="strong_wolfe")

        def closure() -> torch.Tensor:
            solver.zero_grad()
            value = Loss.apply(flat)
            value.backward()
            return value

        solver.step(closure)

    solve()
    begin = time.perf_counter()
    solve()
    synchronize(device)
    return time.perf_counter() - begin


def report(name: str, options: argparse.Namespace) -> None:
    X, y, labeled = rows_of(name, options)
    device, n_classes = options.device, int(y.max()) + 1
    rows = on_device(X, device)
    n_bytes = (8 * X.nnz + 4 * X.shape[0]) if sparse.issparse(X) else 4 * X.size
    print(f"{name}: {X.shape[0]} x {X.shape[1]}, {n_classes} classes, {labeled.sum()} labels, X {n_bytes / 1e9:.2f} GB")
    _, first = fit(rows, y, labeled, options)
    if device.startswith("cuda"):
        torch.cuda.reset_peak_memory_stats()
    there, seconds = fit(rows, y, labeled, options)
    allowed = 3 * n_bytes + 16 * X.shape[0] * n_classes
    peak = torch.cuda.max_memory_allocated() if device.startswith("cuda") else 0
    score = f1_score(y[~labeled], there.transduction_[~labeled], average="macro")
    found = (
        f"macro F {score:.4f}  J {there.objective_:.5f}  {len(there.history_)} rounds. {there.termination_condition_}"
    )
    print(f"  device   {seconds:8.2f} s (first {first:.2f} s)  {found}")
    print(f"  memory   {peak / 1e9:8.2f} GB of {allowed / 1e9:.2f} GB, 3 X + 4 n K floats")
    shares = bandwidth_shares(rows, n_classes, device)
    print(f"  products {shares[0]:8.0%} and {shares[1]:.0%} of the bandwidth of a copy", flush=True)
    supervised = logistic_regression(rows, y, device)
    print(
        f"  logistic regression on the device {supervised:.2f} s; the fit takes {seconds / supervised:.1f} times that"
    )
    if not options.no_memory:
        here, in_memory = fit(X, y, labeled, options)
        score = f1_score(y[~labeled], here.transduction_[~labeled], average="macro")
        same = (here.transduction_ == there.transduction_)[~labeled].mean()
        print(f"  memory   {in_memory:8.2f} s, {options.jobs} threads  macro F {score:.4f}  J {here.objective_:.5f}")
        print(f"  {in_memory / seconds:.1f} times as fast on the device, {same:.2%} of the labels equal", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data")
    parser.add_argument(
        "--cache", default=f"{tempfile.gettempdir()}/transduce-scale", help="where rows of `scale` are stored"
    )
    parser.add_argument("--sets", nargs="+", default=["news", "scale", "dense"], choices=["news", "scale", "dense"])
    parser.add_argument("--rows", type=int, default=300_000, help="rows of scale")
    parser.add_argument("--dense-rows", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=384)
    parser.add_argument("--classes", type=int, default=77)
    parser.add_argument("--jobs", type=int, default=2, help="threads of the fit in memory")
    parser.add_argument("--annealing", default="soft", choices=["soft", "paper"])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--no-memory", action="store_true", help="do not fit in memory")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in options.sets:
        report(name, options)


if __name__ == "__main__":
    main()
