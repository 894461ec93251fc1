"""Models are loaded bit for bit as saved, and score as the classifier they were made of."""

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.model_example import CLASSES, NUMBERS, TEXTS, about, change_about, described, parts, small_model
from safetensors.numpy import load as parse
from scipy import sparse

from transduce import TransductiveClassifier
from transduce.cli.errors import InputError
from transduce.features.tfidf import Features, Vectorizer
from transduce.io.atomic_write import WriteError
from transduce.model_file import Model, load_model, save_model

VERSION_0_1 = Path(__file__).parent / "data" / "drinks-0.1.safetensors"
"""Written by version 0.1: twelve texts, classes in a tree, a branch with a stated size."""


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "teas.model")


@pytest.fixture(scope="module")
def valid(tmp_path_factory):
    path = tmp_path_factory.mktemp("valid") / "teas.model"
    save_model(small_model(), str(path))
    return path.read_bytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["tfidf", "hashing", "vectors", "centred", "embeddings", "mix"])
def test_a_model_is_loaded_bit_for_bit(kind, dtype, path):
    model = small_model(kind, dtype)
    save_model(model, path)
    loaded = load_model(path)
    for name in NUMBERS:
        before, after = getattr(model, name), getattr(loaded, name)
        assert (before.dtype, before.shape, before.tobytes()) == (after.dtype, after.shape, after.tobytes())
    assert (loaded.classes, loaded.tree, loaded.loss, loaded.about) == (CLASSES, True, "hinge", about())
    assert loaded.vectorizer.features == model.vectorizer.features
    assert loaded.vectorizer.vocabulary == model.vectorizer.vocabulary
    assert np.array_equal(loaded.vectorizer.idf, model.vectorizer.idf)
    assert np.array_equal(loaded.vectorizer.center, model.vectorizer.center)
    with open(path, "rb") as file:
        header, _ = parts(file.read())
    version = json.loads(header["__metadata__"]["transduce"])["version"]
    assert version == {"centred": 2, "embeddings": 2, "mix": 3}.get(kind, 1)
    if kind in ("tfidf", "hashing"):
        X = model.vectorizer.transform(TEXTS)
        assert (loaded.vectorizer.transform(TEXTS) != X).nnz == 0
        assert np.array_equal(loaded.scores(X), model.scores(X))


def test_the_same_model_makes_the_same_file_and_another_library_reads_it(path, valid):
    save_model(small_model(), path)
    save_model(load_model(path), path)
    with open(path, "rb") as file:
        assert file.read() == valid
    tensors = parse(valid)
    assert set(tensors) == {"coef", "intercept", "shift", "idf", "vocabulary"}
    assert np.array_equal(tensors["coef"], small_model().coef)


@pytest.mark.parametrize(
    ("more", "version"),
    [
        ({"smoothing": 0.0, "none": {"asked_low": 0, "asked_high": 3, "assigned": 0}}, 1),
        ({"smoothing": 0.1}, 2),
        ({"none": {"asked_low": 1, "asked_high": 3, "assigned": 2, "score": -0.5}}, 2),
    ],
)
def test_a_model_that_version_0_1_would_misread_has_a_later_version(path, more, version):
    model = replace(small_model(), about=about() | more)
    save_model(model, path)
    header, _ = parts(Path(path).read_bytes())
    assert json.loads(header["__metadata__"]["transduce"])["version"] == version
    loaded = load_model(path)
    assert loaded.about == model.about
    assert loaded.none_score == model.none_score
    scores = loaded.scores(loaded.vectorizer.transform(TEXTS))
    assert np.array_equal(loaded.probabilities(scores), model.probabilities(scores))


def test_a_model_of_version_0_1_loads_and_is_written_the_same(path):
    loaded = load_model(str(VERSION_0_1))
    assert loaded.about["transduce"] == "0.1.0"
    scores = loaded.scores(loaded.vectorizer.transform(["a cup of tea", "coffee to go", "iced juice"]))
    assert [loaded.classes[k] for k in scores.argmax(axis=1)] == ["hot/tea", "hot/coffee", "cold"]
    assert {row["restart"] for row in loaded.about["history"]} == {0}
    save_model(loaded, path)
    with open(path, "rb") as file:
        assert file.read() == VERSION_0_1.read_bytes()


def test_no_training_text_is_in_the_file(valid):
    assert b"tea" in valid
    assert not any(text.encode() in valid for text in TEXTS if " " in text)


@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csc_array, np.asarray])
def test_scores_are_rows_times_weights(form):
    model = small_model()
    X = model.vectorizer.transform(TEXTS).toarray()
    assert np.allclose(model.scores(form(X)), X @ model.coef.T + model.intercept, atol=1e-6)


def test_rows_of_another_width_are_refused():
    with pytest.raises(InputError, match="needs rows of 5 numbers, but these have 4"):
        small_model("vectors").scores(np.ones((2, 4)))


def test_scores_too_large_are_refused_by_row():
    X = np.zeros((3, 5), np.float32)
    X[1] = 3e38
    with pytest.raises(InputError, match="Row 2"):
        small_model("vectors", coef=np.full((3, 5), 1e3, np.float32)).scores(X)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "maxent"])
def test_probabilities_are_those_of_the_estimator(loss):
    X = np.random.default_rng(1).normal(size=(30, 5))
    clf = TransductiveClassifier(loss, annealing=None).fit(X, ["a", "b", "c"] * 5 + [""] * 15)
    vectorizer = Vectorizer(Features("vectors", n_features=5))
    numbers = clf.coef_ / clf.calibration_.temperature, clf.intercept_ / clf.calibration_.temperature, np.zeros(3)
    model = Model(
        ("a", "b", "c"), *numbers, vectorizer, False, loss, {**about(), "smoothing": clf.calibration_.smoothing}
    )
    assert clf.calibration_.smoothing > 0
    assert np.allclose(model.probabilities(model.scores(X)), clf.predict_proba(X))


def test_a_failed_write_leaves_nothing(tmp_path, monkeypatch):
    path = tmp_path / "teas.model"
    path.write_bytes(b"before")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(WriteError, match=r"teas.model cannot be written \(No space left on device\)"):
        save_model(small_model(), str(path))
    assert [each.name for each in tmp_path.iterdir()] == ["teas.model"]
    assert path.read_bytes() == b"before"


@pytest.mark.parametrize("target", ["absent/teas.model", "."])
def test_a_target_that_cannot_be_written_is_refused(target, tmp_path):
    with pytest.raises(WriteError, match="cannot be written"):
        save_model(small_model(), str(tmp_path / target))
    assert list(tmp_path.iterdir()) == []


def test_a_link_to_a_model_stays_a_link(tmp_path, valid):
    (tmp_path / "link.model").symlink_to(tmp_path / "teas.model")
    save_model(small_model(), str(tmp_path / "link.model"))
    assert (tmp_path / "link.model").is_symlink()
    assert (tmp_path / "teas.model").read_bytes() == valid


@pytest.mark.parametrize(
    "changes",
    [
        {"coef": np.full((3, 9), np.nan, np.float32)},
        {"coef": np.zeros((3, 4), np.float32)},
        {"intercept": np.array([0.0, np.inf, 0.0])},
        {"shift": np.zeros(3, np.int64)},
        {"classes": ("a", "b", "a")},
        {"loss": "huber"},
        {"about": {}},
        {"about": {**about(), "seconds": float("nan")}},
    ],
)
def test_a_model_that_could_not_be_loaded_is_not_saved(changes, path):
    with pytest.raises(ValueError, match=r"\w"):
        save_model(small_model(**changes), path)
    assert not os.path.exists(path)


def test_a_source_with_bytes_that_are_not_text_can_be_saved(path):
    save_model(small_model(about={**about(), "source": os.fsdecode(b"caf\xe9.csv")}), path)
    assert load_model(path).about["source"] == "caf?.csv"


def test_extra_keys_of_about_are_kept(path, valid):
    with open(path, "wb") as file:
        file.write(described(valid, change_about(more={"a": [1, None]})))
    assert load_model(path).about["more"] == {"a": [1, None]}
