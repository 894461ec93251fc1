"""A fit that was killed goes on where it was, and ends as if nothing had happened."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from transduce import TransductiveClassifier
from transduce.checkpoints import Checkpoint, Shelf, fingerprint
from transduce.history import HistoryRow

FITTED = ("coef_", "intercept_", "transduction_", "prices_", "objective_", "label_distributions_", "class_counts_")
WAYS = [
    {"annealing": "paper"},
    {"annealing": "soft"},
    {"annealing": None, "loss": "squared_hinge"},
    {"annealing": "soft", "loss": "maxent", "alpha": 1e-2},
    {"annealing": "paper", "class_prior": "labeled", "label_step": "switching"},
    {"annealing": "soft", "taxonomy": ["a/x", "a/y", "b"]},
]


def rows(n=240, seed=0):
    rng = np.random.default_rng(seed)
    truth = np.repeat([0, 1, 2], [n // 2, n // 3, n - n // 2 - n // 3])
    X = 1.2 * np.eye(3, 30)[truth] + rng.normal(scale=0.4, size=(n, 30))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.full(n, "", dtype=object)
    for k, name in enumerate(("a/x", "a/y", "b")):
        y[np.flatnonzero(truth == k)[: 5 + k]] = name
    return sparse.csr_matrix(X), y


def model(folder=None, **parameters):
    return TransductiveClassifier(random_state=3, n_jobs=1, checkpoint=folder, **parameters)


def same(one, other):
    for name in FITTED:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert [row.objective for row in one.history_] == [row.objective for row in other.history_]
    assert [(row.way, row.stage) for row in one.history_] == [(row.way, row.stage) for row in other.history_]


class StoppedError(Exception):
    """Raised in the middle of a fit, in place of a kill: nothing below catches it."""


def stop_after(n_rounds):
    heard = []

    def hear(row):
        heard.append(row)
        if len(heard) > n_rounds:
            raise StoppedError

    return hear


@pytest.mark.parametrize("parameters", WAYS, ids=str)
def test_a_fit_that_was_stopped_anywhere_ends_as_if_nothing_had_happened(parameters, tmp_path):
    X, y = rows()
    whole = model(**parameters).fit(X, y)
    n_heard = len(whole.history_) + 40
    for number, n_rounds in enumerate(np.unique(np.linspace(0, n_heard, 7).astype(int))):
        folder = tmp_path / str(number)
        for share in (1.0, 0.5, 0.5):  # stopped again after it has gone on
            try:
                model(folder, verbose=stop_after(int(share * n_rounds)), **parameters).fit(X, y)
            except StoppedError:
                continue
        same(model(folder, **parameters).fit(X, y), whole)


def test_stages_that_are_kept_are_not_run_again(tmp_path):
    X, y = rows()
    first, heard = model(tmp_path).fit(X, y), []
    same(model(tmp_path, verbose=heard.append).fit(X, y), first)
    assert heard == []


def test_ways_in_threads_go_on_too(tmp_path):
    X, y = rows()
    whole = model().fit(X, y)
    for n_rounds in (30, 90, 150):
        folder = tmp_path / str(n_rounds)
        with pytest.raises(StoppedError):
            model(folder, verbose=stop_after(n_rounds)).set_params(n_jobs=2).fit(X, y)
        same(model(folder).set_params(n_jobs=2).fit(X, y), whole)


def test_ctrl_c_keeps_labels_and_the_fit_goes_on_later(tmp_path):
    X, y = rows()

    def interrupt(row):
        if row.way == 2:
            raise KeyboardInterrupt

    stopped = model(tmp_path, verbose=interrupt).fit(X, y)
    assert "interrupted" in stopped.termination_condition_
    same(model(tmp_path).fit(X, y), model().fit(X, y))


SCRIPT = """
import sys
sys.path.insert(0, {tests!r})
from test_checkpoints import model, rows
import numpy as np
X, y = rows(3000)
fitted = model(sys.argv[1]).fit(X, y)
np.savez(sys.argv[2], coef=fitted.coef_, labels=fitted.transduction_.astype(str), prices=fitted.prices_)
"""


def test_killed_at_any_instant_it_loses_at_most_a_stage(tmp_path):
    script = tmp_path / "fit.py"
    script.write_text(SCRIPT.format(tests=str(Path(__file__).parent)))
    whole = model().fit(*rows(3000))
    command = [sys.executable, str(script), str(tmp_path / "stages"), str(tmp_path / "out.npz")]
    kills = 0
    while True:
        process = subprocess.Popen(command)
        try:
            process.wait(timeout=0.3 + 0.15 * kills)
            break
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            kills += 1
    assert process.returncode == 0
    assert kills >= 2
    with np.load(tmp_path / "out.npz") as out:
        np.testing.assert_array_equal(out["coef"], whole.coef_)
        np.testing.assert_array_equal(out["labels"], whole.transduction_.astype(str))
        np.testing.assert_array_equal(out["prices"], whole.prices_)


@pytest.mark.parametrize("change", ["rows", "labels", "sizes", "alpha", "loss", "random_state"])
def test_a_checkpoint_of_another_fit_is_refused(change, tmp_path):
    X, y = rows()
    model(tmp_path, class_prior={"a/x": 0.5, "a/y": 0.3, "b": 0.2}).fit(X, y)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    other = model(tmp_path, class_prior={"a/x": 0.5, "a/y": 0.3, "b": 0.2})
    if change == "rows":
        X = X.copy()
        X.data[0] += 1e-9
    elif change == "labels":
        y = np.where(np.arange(len(y)) == 0, "b", y).astype(object)
    elif change == "sizes":
        other.set_params(class_prior={"a/x": 0.4, "a/y": 0.4, "b": 0.2})
    else:
        other.set_params(**{change: {"alpha": 1e-2, "loss": "maxent", "random_state": 4}[change]})
    with pytest.raises(ValueError, match=r"belongs to a fit of other data or parameters\. Name another, or remove it"):
        other.fit(X, y)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_damaged_stage_is_not_read_and_the_rest_goes_on(tmp_path):
    X, y = rows()
    whole = model(tmp_path).fit(X, y)
    path = tmp_path / "way 2.stage"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    with pytest.warns(UserWarning, match="is damaged, so its part of the fit begins anew"):
        again = model(tmp_path).fit(X, y)
    same(again, whole)


@pytest.mark.parametrize("what", ["file", "other files", "not json"])
def test_places_that_are_no_checkpoint_are_refused_and_left(what, tmp_path):
    X, y = rows()
    place = tmp_path / "place"
    if what == "file":
        place.write_text("mine")
    else:
        place.mkdir()
        (place / ("fit.json" if what == "not json" else "mine.txt")).write_text("mine")
    with pytest.raises(ValueError, match="checkpoint"):
        model(place).fit(X, y)
    assert "mine" in (place if what == "file" else next(place.iterdir())).read_text()


def test_a_shelf_gives_back_what_it_got(tmp_path):
    shelf = Checkpoint.open(tmp_path / "new" / "folder", "one").shelf("way")
    assert shelf.load() is None
    shelf.told.append(HistoryRow(1, 0.5, 2.0, 3, 0.1, 0.2))
    shelf.save({"a": np.arange(5, dtype=np.float32)}, {"b": [1, 2**70], "c": None})
    again = Shelf(shelf.path)
    arrays, facts = again.load()
    assert arrays["a"].dtype == np.float32
    np.testing.assert_array_equal(arrays["a"], np.arange(5))
    assert facts == {"b": [1, 2**70], "c": None}
    assert again.told == shelf.told
    assert json.loads((tmp_path / "new" / "folder" / "fit.json").read_text())["fingerprint"] == "one"


def test_fingerprints_tell_types_shapes_and_order():
    a = np.arange(4.0)
    parts = [[a], [a.astype(np.float32)], [a.reshape(2, 2)], [a, "x"], ["x", a], [a[::-1]], [a, 1], [a, "1"], [a, None]]
    assert len({fingerprint(part) for part in parts}) == len(parts)


def test_losses_of_the_users_own_count_by_their_class(tmp_path):
    class Own:
        pass

    assert fingerprint([Own()]) == fingerprint([Own()])
