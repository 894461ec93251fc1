"""Weight steps against LIBLINEAR and LogisticRegression, and the whole algorithm against one supervised fit.

Both sides of a line are measured in the same run. Needs the paper's data sets: --data DIR or TRANSDUCE_DATA.
"""

import argparse
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from benchmarks.data import data_folder, load
from transduce import Taxonomy, TransductiveClassifier
from transduce.design import Design
from transduce.losses import LargeMargin, Loss, MaxEnt
from transduce.problem import TrainingProblem
from transduce.weight_step import WeightReport, weight_step_for
from transduce.weight_step.sweep_schedule import CHECK_EVERY

N_ROWS = 10_000
SOLVERS = ("lbfgs", "newton-cg", "saga", "sag")


def problem_of(X, y, loss: Loss, alpha: float) -> TrainingProblem:
    return TrainingProblem.create(Design.create(X, Taxonomy.flat(range(int(y.max()) + 1))), loss, alpha, len(y))


def weights(problem: TrainingProblem, y, tol: float, ceiling: float = np.inf) -> tuple[float, WeightReport]:
    """Best time of three runs to reach the gap and an objective below the ceiling, and the last report."""
    step, a_few, best = weight_step_for(problem.loss, 10_000), weight_step_for(problem.loss, CHECK_EVERY), np.inf
    for _ in range(3):
        begin = time.perf_counter()
        state = step.start(problem, y)
        step.retarget(problem, state, y, problem.kappa(1.0))
        rng = np.random.default_rng(0)
        report = step.solve(problem, state, tol, rng)
        while report.objective > ceiling:
            report = a_few.solve(problem, state, 0.0, rng)
        best = min(best, time.perf_counter() - begin)
    return best, report


def peer(model, X, y, problem: TrainingProblem) -> tuple[float, float]:
    """Best time of two runs of a scikit-learn classifier on the same problem, and its objective."""
    best = np.inf
    for _ in range(2):
        begin = time.perf_counter()
        model.fit(X, y)
        best = min(best, time.perf_counter() - begin)
    return best, problem.objective(np.ascontiguousarray(model.coef_.T), y, problem.kappa(1.0))


def large_margin(X, y) -> None:
    print("\nLarge margin: seconds to the objective at which LIBLINEAR stops, and objectives above the best one.")
    print(f"{'alpha':>8}{'LIBLINEAR':>12}{'ours':>9}{'ratio':>8}{'LIBLINEAR above':>18}{'ours at gap 1e-4 above':>25}")
    for alpha in (1e-3, 1e-4):
        problem = problem_of(X, y, LargeMargin(), alpha)
        model = LinearSVC(
            multi_class="crammer_singer", C=1 / (len(y) * alpha), tol=1e-3, fit_intercept=False, max_iter=10**5
        )
        theirs, objective = peer(model, X, y, problem)
        ours, _ = weights(problem, y, 1e-4, objective)
        known = weights(problem, y, 1e-7)[1].objective
        loose = weights(problem, y, 1e-4)[1].objective
        print(
            f"{alpha:>8.0e}{theirs:>12.3f}{ours:>9.3f}{ours / theirs:>8.2f}{objective / known - 1:>18.1e}"
            f"{loose / known - 1:>25.1e}",
            flush=True,
        )


def maxent(X, y) -> None:
    print("\nMaxent: seconds to the objective of LogisticRegression (tol 1e-4) with each of its solvers.")
    print(f"{'alpha':>8}{'solver':>12}{'theirs':>9}{'ours':>9}{'ratio':>8}{'objective':>12}{'ours':>12}")
    for alpha in (1e-3, 1e-4):
        problem = problem_of(X, y, MaxEnt(), alpha)
        for solver in SOLVERS:
            model = LogisticRegression(
                C=1 / (len(y) * alpha), tol=1e-4, fit_intercept=False, solver=solver, max_iter=1000
            )
            theirs, objective = peer(model, X, y, problem)
            ours, report = weights(problem, y, 1e-3, objective)
            print(
                f"{alpha:>8.0e}{solver:>12}{theirs:>9.3f}{ours:>9.3f}{ours / theirs:>8.2f}{objective:>12.7f}"
                f"{report.objective:>12.7f}",
                flush=True,
            )


def whole(X, y) -> None:
    print("\nWhole algorithm, 100 labelled and 10 000 unlabelled rows, against one supervised weight step on the same")
    print("rows with their true labels, both to a relative gap of 1e-3 (the paper: 3 to 5 times).")
    print(
        f"{'loss':>8}{'alpha':>8}{'supervised':>12}{'whole':>9}{'ratio':>8}{'rounds':>8}{'to gap 1e-4':>13}{'ratio':>8}"
    )
    labels = np.where(np.arange(len(y)) < 100, y, -1)
    counts = dict(enumerate(np.bincount(y[100:], minlength=int(y.max()) + 1).tolist()))
    for loss in ("hinge", "maxent"):
        for alpha in (1e-3, 1e-4):
            model = TransductiveClassifier(loss, alpha=alpha, class_prior=counts, annealing="paper", random_state=0)
            problem = problem_of(X, y, LargeMargin() if loss == "hinge" else MaxEnt(), alpha)
            supervised, best = weights(problem, y, 1e-3)[0], np.inf
            tight = weights(problem, y, 1e-4)[0]
            for _ in range(3):
                begin = time.perf_counter()
                model.fit(X, labels)
                best = min(best, time.perf_counter() - begin)
            print(
                f"{loss:>8}{alpha:>8.0e}{supervised:>12.3f}{best:>9.3f}{best / supervised:>8.1f}{model.n_iter_:>8}"
                f"{tight:>13.3f}{best / tight:>8.1f}",
                flush=True,
            )


def in_new_process(code: str) -> float:
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    return time.perf_counter() - begin


def start_up() -> None:
    ours = min(in_new_process("import transduce") for _ in range(3))
    theirs = min(in_new_process("import sklearn.linear_model") for _ in range(3))
    print(f"\nimport transduce {ours:.2f} s, import sklearn.linear_model {theirs:.2f} s: {ours / theirs:.2f} times.")
    fit = (
        "import time, numpy as np; from transduce import TransductiveClassifier;"
        "from transduce.testing import blobs; X, _, y = blobs(); a = time.perf_counter();"
        "TransductiveClassifier().fit(X, y); b = time.perf_counter();"
        "TransductiveClassifier().fit(X, y); c = time.perf_counter(); print((b - a) - (c - b))"
    )
    runs = [subprocess.run([sys.executable, "-c", fit], check=True, capture_output=True, text=True) for _ in range(3)]
    print(f"Extra time of the first fit in a process, with cached kernels: {min(float(r.stdout) for r in runs):.2f} s.")


def memory(folder: Path) -> None:
    print()
    for parameters in ({"annealing": "paper", "n_jobs": 1}, {"n_jobs": 1}, {"n_jobs": 2}):
        code = (
            "from pathlib import Path; from benchmarks.weight_step import measured_fit;"
            f"measured_fit(Path({str(folder)!r}), **{parameters})"
        )
        print(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout, end="")


def measured_fit(folder: Path, **parameters: object) -> None:
    """Print the peak memory of a fit beyond its input, and three times the rows plus 4 (d + n) K floats."""
    from benchmarks.label_step import RESET_PEAK, _status_bytes, trim
    from transduce.testing import blobs

    X, y = load(folder, "news20_train")
    X = X[: N_ROWS + 100]
    labels = np.where(np.arange(X.shape[0]) < 100, y[: X.shape[0]], -1)
    model = TransductiveClassifier(random_state=0, **parameters)
    model.fit(*blobs()[::2])
    trim()
    before = _status_bytes("VmRSS")
    RESET_PEAK.write_text("5")
    model.fit(X, labels)
    peak = _status_bytes("VmHWM") - before
    rows = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    floats = 8 * (X.shape[0] + X.shape[1]) * 20
    print(
        f"Peak memory of a fit of {X.shape[0]} rows beyond its input, {parameters}: {peak / 2**20:.0f} MiB; "
        f"three times the rows plus 4 (d + n) K floats are {(3 * rows + 4 * floats) / 2**20:.0f} MiB."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data")
    folder = data_folder(parser.parse_args().data)
    warnings.simplefilter("ignore")  # LIBLINEAR and scikit-learn announce deprecations
    X, y = load(folder, "news20_train")
    rows = np.random.default_rng(0).permutation(len(y))[: N_ROWS + 100]
    X, y = X[rows].tocsr(), y[rows]
    for loss in (LargeMargin(), MaxEnt()):
        weights(problem_of(X[:500], y[:500], loss, 1e-2), y[:500], 0.1)
    large_margin(X[:N_ROWS], y[:N_ROWS])
    maxent(X[:N_ROWS], y[:N_ROWS])
    whole(X, y)
    memory(folder)
    start_up()


if __name__ == "__main__":
    main()
