"""Checkpoint folders: what a slot holds, and folders of other fits, of other versions, damaged, in use or full."""

import json
import subprocess
import sys
import threading

import numpy as np
import pytest
from helpers.fits import SquaredDistance, assert_same_fit, model, rows
from helpers.test_ids import without_address
from scipy import sparse

from transduce.history import HistoryRow
from transduce.io import checkpoint as checkpoints
from transduce.io.checkpoint import Checkpoint, CheckpointSlot


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
    path = sorted(tmp_path.glob("restart *.stage"))[-1]
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    with pytest.warns(UserWarning, match=r"is damaged, so this part of the fit starts again"):
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
        if len(calls) > 6:  # a file and its folder are synced in turn
            raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("transduce.io.atomic_write.os.fsync", full)
        with pytest.warns(UserWarning, match=r"can no longer be written \(No space left on device\)") as caught:
            assert_same_fit(model(tmp_path).fit(X, y), whole)
    assert (len(caught), len(calls)) == (1, 7)
    assert not list(tmp_path.glob("*.part"))
    assert_same_fit(model(tmp_path).fit(X, y), whole)


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path, monkeypatch):
    def full(file):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("transduce.io.atomic_write.os.fsync", full)
    with pytest.raises(ValueError, match=r"cannot be written \(No space left on device\)\. Choose another"):
        Checkpoint.open(tmp_path / "stages", "one")
    assert [path.name for path in (tmp_path / "stages").iterdir()] == ["fit.lock"]


@pytest.mark.parametrize(
    "change",
    [{"seeds": [3, 4]}, {"fingerprint": None}, {"versions": None}, {"seeds": None}, {"digest": None}, {"more": 1}],
    ids=lambda change: f"{change}",
)
def test_a_header_that_was_changed_is_refused(tmp_path, change):
    with Checkpoint.open(tmp_path, "one", [1, 2]):
        pass
    path = tmp_path / "fit.json"
    header = json.loads(path.read_text()) | change
    path.write_text(json.dumps({name: value for name, value in header.items() if value is not None}))
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"or is damaged\. Choose another folder, or delete it"):
        Checkpoint.open(tmp_path, "one", [1, 2])
    assert path.read_bytes() == before
