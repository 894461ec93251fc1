"""Fits that were stopped, killed or interrupted resume from a checkpoint and end with the same result."""

import contextlib
import json
import shutil
import subprocess
import sys
import time
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.fits import SquaredDistance, assert_same_fit, model, rows

from transduce.history import FitStatus
from transduce.solvers import loop

TREE = ["a/x", "a/y", "b"]
FITS = [
    ({"annealing": "paper"}, "plain"),
    ({"annealing": "soft"}, "partial labels"),
    ({"annealing": None, "loss": "squared_hinge"}, "plain"),
]
SLOW_FITS = [
    ({"annealing": "soft"}, "plain"),
    ({"annealing": "soft", "loss": "maxent", "alpha": 1e-2}, "plain"),
    ({"annealing": "paper", "class_prior": "labeled", "label_step": "switching"}, "plain"),
    ({"annealing": "soft", "taxonomy": TREE}, "plain"),
    ({"annealing": "soft"}, "float32"),
    ({"annealing": "paper"}, "weighted"),
    ({"annealing": "paper", "partial_weight": "labeled"}, "partial labels"),
    ({"annealing": "soft", "taxonomy": TREE, "class_prior": {"a": (0.7, 0.8), "b": None}}, "plain"),
    ({"annealing": "paper", "fit_intercept": True}, "dense"),
    ({"annealing": "soft", "loss": SquaredDistance(2.0)}, "plain"),
    ({"annealing": "soft"}, "balanced labels"),
]


def data(kind, n=60):
    """X, y and sample weights of one kind."""
    X, y = rows(n)
    weights = None
    if kind == "float32":
        X = X.astype(np.float32)
    elif kind == "dense":
        X = X.toarray()
    elif kind == "weighted":
        weights = np.random.default_rng(1).uniform(0.5, 2.0, n)
    elif kind == "partial labels":
        for row in range(7, n, 9):
            y[row] = {"a/x", "a/y"} if row % 2 else {"a/y", "b"}
    elif kind == "balanced labels":
        for name in TREE:
            y[np.flatnonzero(y == name)[5:]] = ""
    return X, y, weights


class StoppedError(Exception):
    """Raised in the middle of a fit instead of a kill; nothing in the library catches it."""


def stop_after(n_rounds):
    reported = []

    def report(row):
        reported.append(row)
        if len(reported) > n_rounds:
            raise StoppedError

    return report


@pytest.mark.parametrize(
    ("parameters", "kind"), [*FITS, *(pytest.param(*fit, marks=pytest.mark.slow) for fit in SLOW_FITS)], ids=str
)
def test_a_fit_stopped_anywhere_resumes_to_the_same_result(parameters, kind, tmp_path):
    arguments = data(kind)
    whole = model(**parameters).fit(*arguments)
    assert whole.prior_diagnostics_.balanced_labels == (kind == "balanced labels")
    for n_rounds in (0, len(whole.history_) // 2, len(whole.history_) + 10):
        folder = tmp_path / str(n_rounds)
        for limit in (n_rounds, n_rounds // 2):  # stopped again after it has resumed
            with contextlib.suppress(StoppedError):
                model(folder, verbose=stop_after(limit), **parameters).fit(*arguments)
        assert_same_fit(model(folder, **parameters).fit(*arguments), whole)


def test_stored_stages_are_not_run_again(tmp_path):
    X, y = rows()
    first, reported = model(tmp_path).fit(X, y), []
    assert_same_fit(model(tmp_path, verbose=reported.append).fit(X, y), first)
    last = {k: max(row.stage for row in first.history_ if row.restart == k) for k in range(3)}
    stored = {int(path.stem.split()[1]) for path in tmp_path.glob("restart *.stage")}
    assert len(stored) >= 2
    assert all(row.restart not in stored and row.stage == last[row.restart] for row in reported)
    assert len(reported) <= 1  # the round after which a restart stopped that could not win


def test_restarts_in_threads_resume(tmp_path):
    X, y = rows()
    whole = model().fit(X, y)
    for n_rounds in (30, 120):
        folder = tmp_path / str(n_rounds)
        with pytest.raises(StoppedError):
            model(folder, verbose=stop_after(n_rounds)).set_params(n_jobs=2).fit(X, y)
        assert_same_fit(model(folder).set_params(n_jobs=2).fit(X, y), whole)


def test_an_interrupted_fit_has_labels_and_can_be_resumed(tmp_path):
    X, y = rows()

    def interrupt(row):
        if row.restart == 2:
            raise KeyboardInterrupt

    stopped = model(tmp_path, verbose=interrupt).fit(X, y)
    assert stopped.termination_condition_ == FitStatus.INTERRUPTED.value
    assert_same_fit(model(tmp_path).fit(X, y), model().fit(X, y))


SCRIPT = """
import sys
sys.path.insert(0, {tests!r})
from helpers.fits import model, rows
import numpy as np
X, y = rows(600)
fitted = model(sys.argv[1]).fit(X, y)
np.savez(sys.argv[2], coef=fitted.coef_, labels=fitted.transduction_.astype(str), prices=fitted.prices_)
"""


def stored_stages(folder):
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("*.stage")}


@pytest.mark.slow
def test_a_killed_fit_resumes_to_the_same_result(tmp_path):
    script, folder = tmp_path / "fit.py", tmp_path / "stages"
    script.write_text(SCRIPT.format(tests=str(Path(__file__).parents[1])))
    command = [sys.executable, str(script), str(folder), str(tmp_path / "out.npz")]
    for _ in range(4):
        before = stored_stages(folder)
        process = subprocess.Popen(command)
        while process.poll() is None and stored_stages(folder) == before:
            time.sleep(0.01)
        process.kill()
        process.wait()
    subprocess.run(command, check=True)
    whole = model().fit(*rows(600))
    with np.load(tmp_path / "out.npz") as out:
        np.testing.assert_array_equal(out["coef"], whole.coef_)
        np.testing.assert_array_equal(out["labels"], whole.transduction_.astype(str))
        np.testing.assert_array_equal(out["prices"], whole.prices_)


def test_equal_parameters_of_other_types_resume(tmp_path):
    X, y = rows(60)
    first, reported = model(tmp_path, alpha=1e-3, tol=1e-3, loss=SquaredDistance(2.0), annealing="paper").fit(X, y), []
    other = model(
        tmp_path, alpha=np.float64(1e-3), tol=np.float64(1e-3), loss=SquaredDistance(2.0), annealing="paper",
        random_state=np.int64(3), verbose=reported.append, unlabeled="",
    )  # fmt: skip
    assert_same_fit(other.fit(X, y), first)
    assert reported == []


def test_a_random_state_resumes_where_it_stopped(tmp_path):
    X, y = rows()
    whole = model(random_state=np.random.RandomState(1)).fit(X, y)
    with pytest.raises(StoppedError):
        model(tmp_path, random_state=np.random.RandomState(1), verbose=stop_after(60)).fit(X, y)
    assert_same_fit(model(tmp_path, random_state=np.random.RandomState(1)).fit(X, y), whole)


def test_without_a_random_state_the_seed_is_stored(tmp_path):
    X, y = rows()
    with pytest.raises(StoppedError):
        model(tmp_path / "one", random_state=None, verbose=stop_after(10)).fit(X, y)
    shutil.copytree(tmp_path / "one", tmp_path / "other")
    one, other = (model(tmp_path / name, random_state=None).fit(X, y) for name in ("one", "other"))
    assert_same_fit(one, other)
    assert len(json.loads((tmp_path / "one" / "fit.json").read_text())["seeds"]) == 2


def test_seconds_continue_from_those_reported_before_the_stop(tmp_path, monkeypatch):
    X, y = rows()

    def set_clock(seconds_per_round):
        clock = count(0, seconds_per_round).__next__
        monkeypatch.setattr(loop, "time", SimpleNamespace(perf_counter=clock, monotonic=float))

    set_clock(1000)
    with pytest.raises(StoppedError):
        model(tmp_path, verbose=stop_after(95)).fit(X, y)
    set_clock(1)
    history = sorted(row.seconds for row in model(tmp_path).fit(X, y).history_ if row.restart >= 0)
    stored = [seconds for seconds in history if seconds % 1000 == 0]
    new = history[len(stored) :]
    assert min(len(stored), len(new)) > 10
    assert new == [stored[-1] + k for k in range(1, len(new) + 1)]
