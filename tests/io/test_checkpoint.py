"""Checkpoints: a fit that was stopped resumes and ends with the same result; folders of other fits are errors."""

import contextlib
import json
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.fits import model, rows
from helpers.test_ids import without_address
from scipy import sparse

from transduce.history import FitStatus, HistoryRow
from transduce.io import checkpoint as checkpoints
from transduce.io.checkpoint import Checkpoint, CheckpointSlot
from transduce.solvers import loop

FITTED = ("coef_", "intercept_", "transduction_", "prices_", "objective_", "label_distributions_", "class_counts_")


@dataclass(frozen=True)
class SquaredDistance:
    """A user's smooth loss: the squared distance of the scores from `far` for the label and 0 for others."""

    far: float = 1.0

    def label_costs(self, scores):
        scores = np.asarray(scores)
        return (scores**2).sum(axis=1, keepdims=True) - 2.0 * self.far * scores + self.far**2

    def value(self, scores, labels):
        return self.label_costs(scores)[np.arange(len(labels)), labels]

    def gradient(self, scores, labels):
        return 2.0 * (scores - self.far * np.eye(scores.shape[1], dtype=scores.dtype)[labels])


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


def data(kind, n=120):
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


def assert_same_fit(one, other):
    for name in FITTED:
        np.testing.assert_array_equal(getattr(one, name, None), getattr(other, name, None), err_msg=name)
    assert [row.objective for row in one.history_] == [row.objective for row in other.history_]
    assert [(row.restart, row.stage) for row in one.history_] == [(row.restart, row.stage) for row in other.history_]


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
    assert reported == []


def test_restarts_in_threads_resume(tmp_path):
    X, y = rows()
    whole = model().fit(X, y)
    for n_rounds in (30, 150):
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


@pytest.mark.parametrize("change", ["rows", "columns", "labels", "sizes", "estimate", "alpha", "loss", "random_state"])
def test_a_checkpoint_of_another_fit_is_an_error(change, tmp_path):
    X, y = rows(60)
    sizes = "labeled" if change == "estimate" else {"a/x": 0.5, "a/y": 0.3, "b": 0.2}
    model(tmp_path, class_prior=sizes, annealing="paper").fit(X, y)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    other = model(tmp_path, class_prior=sizes, annealing="paper")
    if change == "rows":
        X = X.copy()
        X.data[0] += 1e-9
    elif change == "columns":
        X = sparse.csr_matrix((X.data, X.indices, X.indptr), (X.shape[0], X.shape[1] + 1))
    elif change == "labels":
        y = np.where(np.arange(len(y)) == 0, "b", y).astype(object)
    elif change == "estimate":
        other.set_params(class_prior="estimate")
    elif change == "sizes":
        other.set_params(class_prior={"a/x": 0.4, "a/y": 0.4, "b": 0.2})
    else:
        other.set_params(**{change: {"alpha": 1e-2, "loss": "maxent", "random_state": 4}[change]})
    with pytest.raises(
        ValueError, match=r"belongs to a fit with other data or parameters\. Choose another folder, or delete it"
    ):
        other.fit(X, y)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_damaged_stage_is_not_read_and_the_rest_resumes(tmp_path):
    X, y = rows()
    whole = model(tmp_path).fit(X, y)
    path = tmp_path / "restart 2.stage"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    with pytest.warns(UserWarning, match="is damaged, so this part of the fit starts again"):
        again = model(tmp_path).fit(X, y)
    assert_same_fit(again, whole)


@pytest.mark.parametrize("what", ["file", "other files", "not json"])
def test_other_files_and_folders_are_errors_and_left_unchanged(what, tmp_path):
    X, y = rows(60)
    place = tmp_path / "place"
    if what == "file":
        place.write_text("mine")
    else:
        place.mkdir()
        (place / ("fit.json" if what == "not json" else "mine.txt")).write_text("mine")
    with pytest.raises(ValueError, match="checkpoint"):
        model(place).fit(X, y)
    kept = {"file": place, "other files": place / "mine.txt", "not json": place / "fit.json"}[what]
    assert kept.read_text() == "mine"


def test_a_slot_returns_what_was_saved(tmp_path):
    slot = Checkpoint.open(tmp_path / "new" / "folder", "one").slot("restart")
    assert slot.load() is None
    slot.reported.append(HistoryRow(1, 0.5, 2.0, 3, 0.1, 0.2))
    slot.save({"a": np.arange(5, dtype=np.float32)}, {"b": [1, 2**70], "c": None})
    again = CheckpointSlot(slot.path)
    arrays, metadata = again.load()
    assert arrays["a"].dtype == np.float32
    np.testing.assert_array_equal(arrays["a"], np.arange(5))
    assert metadata == {"b": [1, 2**70], "c": None}
    assert again.reported == slot.reported
    assert json.loads((tmp_path / "new" / "folder" / "fit.json").read_text())["fingerprint"] == "one"


def test_equal_parameters_of_other_types_resume(tmp_path):
    X, y = rows(60)
    first, reported = model(tmp_path, alpha=1e-3, tol=1e-3, loss=SquaredDistance(2.0), annealing="paper").fit(X, y), []
    other = model(
        tmp_path, alpha=np.float64(1e-3), tol=np.float64(1e-3), loss=SquaredDistance(2.0), annealing="paper",
        random_state=np.int64(3), verbose=reported.append, unlabeled="",
    )  # fmt: skip
    assert_same_fit(other.fit(X, y), first)
    assert reported == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"loss": SquaredDistance(2.0)}, {"loss": SquaredDistance(3.0)}),
        ({"random_state": np.random.RandomState(1)}, {"random_state": np.random.RandomState(2)}),
        ({"random_state": np.random.RandomState(1)}, {"random_state": None}),
        ({"random_state": None, "class_prior": "labeled"}, {"random_state": None, "class_prior": "estimate"}),
    ],
    ids=without_address,
)
def test_objects_with_other_content_are_other_parameters(one, other, tmp_path):
    X, y = rows(60)
    model(tmp_path, annealing="paper", **one).fit(X, y)
    with pytest.raises(ValueError, match="belongs to a fit with other data or parameters"):
        model(tmp_path, annealing="paper", **other).fit(X, y)


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


def test_a_parameter_that_cannot_be_pickled_is_an_error(tmp_path):
    class Unpicklable:
        def __init__(self):
            self.lock = threading.Lock()

        label_costs, value, gradient = SquaredDistance.label_costs, SquaredDistance.value, SquaredDistance.gradient

    X, y = rows()
    with pytest.raises(TypeError, match="parameters that can be pickled, but loss cannot be"):
        model(tmp_path / "stages", loss=Unpicklable()).fit(X, y)
    assert not (tmp_path / "stages").exists()


@pytest.mark.parametrize("name", checkpoints.VERSIONS)
def test_a_checkpoint_of_other_versions_is_an_error(name, tmp_path, monkeypatch):
    with Checkpoint.open(tmp_path, "one"):
        pass
    monkeypatch.setitem(checkpoints.VERSIONS, name, "0.0")
    with pytest.raises(ValueError, match=f"was written with {name} .*, but 0.0 is installed. Choose another"):
        Checkpoint.open(tmp_path, "one")
    with pytest.raises(ValueError, match="was written with"):  # the lock was released
        Checkpoint.open(tmp_path, "one")


@pytest.mark.parametrize(
    "change",
    [
        {"format": 3},
        {"format": None},
        {"versions": None},
        {"versions": []},
        {"seeds": None},
        {"seeds": ["ha"]},
        pytest.param(None, id="no object"),
    ],
    ids=str,
)
def test_a_checkpoint_of_another_layout_is_an_error(change, tmp_path):
    with Checkpoint.open(tmp_path, "one", [7]):
        pass
    path = tmp_path / "fit.json"
    path.write_text("[]" if change is None else json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ValueError, match="was written by another version of transduce, or is damaged"):
        Checkpoint.open(tmp_path, "one")


def test_files_left_by_a_kill_before_the_first_stage_are_removed(tmp_path):
    for name in ("fit.lock", ".transduce-0123456789ab.part"):
        (tmp_path / name).write_text("ha")
    with Checkpoint.open(tmp_path, "one"):
        assert {path.name for path in tmp_path.iterdir()} == {"fit.json", "fit.lock"}


def test_two_fits_cannot_use_a_folder_at_once(tmp_path):
    X, y = rows(60)
    messages = []

    def again(row):
        if not messages:
            with pytest.raises(ValueError, match="is in use by another fit") as caught:
                model(tmp_path, annealing="paper").fit(X, y)
            messages.append(str(caught.value))

    fitted = model(tmp_path, annealing="paper", verbose=again).fit(X, y)
    assert "Wait until it ends" in messages[0]
    assert_same_fit(model(tmp_path, annealing="paper").fit(X, y), fitted)


def test_a_folder_is_free_again_when_the_process_that_held_it_is_killed(tmp_path):
    program = (
        "import sys, time; from transduce.io.checkpoint import Checkpoint\n"
        "held = Checkpoint.open(sys.argv[1], 'one'); print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"held\n"
    with pytest.raises(ValueError, match="in use by another fit"):
        Checkpoint.open(tmp_path, "one")
    process.kill()
    process.communicate()
    with Checkpoint.open(tmp_path, "one"):
        pass


def test_a_full_disk_warns_once_and_the_fit_continues(tmp_path, monkeypatch):
    X, y = rows()
    whole, calls = model().fit(X, y), []

    def full(file):
        calls.append(file)
        if len(calls) > 5:
            raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("transduce.io.atomic_write.os.fsync", full)
        with pytest.warns(UserWarning, match=r"can no longer be written \(No space left on device\)") as caught:
            assert_same_fit(model(tmp_path).fit(X, y), whole)
    assert (len(caught), len(calls)) == (1, 6)
    assert not list(tmp_path.glob("*.part"))
    assert_same_fit(model(tmp_path).fit(X, y), whole)


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path, monkeypatch):
    def full(file):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("transduce.io.atomic_write.os.fsync", full)
    with pytest.raises(ValueError, match=r"cannot be written \(No space left on device\)\. Choose another"):
        Checkpoint.open(tmp_path / "stages", "one")
    assert [path.name for path in (tmp_path / "stages").iterdir()] == ["fit.lock"]


def test_seconds_continue_from_those_reported_before_the_stop(tmp_path, monkeypatch):
    X, y = rows()
    late, stop = [0.0], stop_after(100)
    monkeypatch.setattr(loop, "time", SimpleNamespace(perf_counter=lambda: time.perf_counter() + late[0]))

    def report(row):
        late[0] = 1000.0
        stop(row)

    with pytest.raises(StoppedError):
        model(tmp_path, verbose=report).fit(X, y)
    late[0] = 0.0
    history = [row.seconds for row in model(tmp_path).fit(X, y).history_ if row.restart >= 0]
    assert history == sorted(history)
    assert history[-1] > 1000.0
