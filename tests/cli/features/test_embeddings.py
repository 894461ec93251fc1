"""--features embeddings: every command encodes by itself, with the encoder that the model was trained with."""

import json
import re
import shutil

import numpy as np
import polars as pl
import pytest
from helpers.commands import QUICK, read
from helpers.documents import N_LABELED, documents, vectors_of
from helpers.encoders import DIMENSION, save_static_model
from sklearn.datasets import dump_svmlight_file

from transduce.cli.commands import demo
from transduce.cli.formats import write_table
from transduce.features import CenteredNormalizer, encode_texts, pretrained
from transduce.model_file import load_model


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return save_static_model(tmp_path_factory.mktemp("encoders") / "small")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TRANSDUCE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("TRANSDUCE_ENCODER", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def labeled(example, encoder, run_ok, tmp_path):
    """Runs `label` with the encoder, and returns its result and its model."""

    def label(*arguments, file=example.file):
        model = tmp_path / "m.safetensors"
        options = ("--features", "embeddings", "--encoder", encoder, "--model", model, *QUICK)
        return run_ok("label", file, "-o", tmp_path / "o.csv", *options, *arguments), model

    return label


def test_label_and_predict_use_centred_vectors_of_the_encoder(labeled, example, encoder, run_ok, tmp_path):
    result, model = labeled()
    assert f"Encoding {example.frame.height} texts with small." in result.err
    assert f"{DIMENSION} numbers per text" in result.err
    loaded = load_model(str(model))
    X = encode_texts(example.frame["text"], encoder, cache=False)
    normalizer = CenteredNormalizer().fit(X)
    assert np.allclose(loaded.vectorizer.center, normalizer.mean_, atol=1e-6)
    run_ok("predict", model, example.file, "-o", tmp_path / "p.csv")
    scores = loaded.scores(normalizer.transform(X))
    assert read(tmp_path / "p.csv")["label_2"].to_list() == [loaded.classes[k] for k in scores.argmax(axis=1)]


def test_the_labels_are_those_of_the_same_vectors_in_a_file(labeled, example, encoder, run_ok, tmp_path):
    labeled()
    np.save(tmp_path / "v.npy", encode_texts(example.frame["text"], encoder))
    run_ok("label", example.file, "--vectors", tmp_path / "v.npy", "-o", tmp_path / "v.csv", *QUICK)
    assert read(tmp_path / "v.csv")["label"].to_list() == read(tmp_path / "o.csv")["label"].to_list()


def test_all_commands_encode_by_themselves_and_each_text_once(labeled, example, run_ok, tmp_path, monkeypatch):
    _, model = labeled("--report", tmp_path / "r.html")
    monkeypatch.setattr(pretrained, "_load_static", lambda folder: pytest.fail("the encoder was loaded"))
    found = json.loads(run_ok("evaluate", model, example.file, "--label", "truth", "--json").out)
    assert found["trained"] == N_LABELED
    run_ok("queue", example.file, "--model", model, "-o", tmp_path / "q.csv", "-n", 5)
    assert read(tmp_path / "q.csv").height == 5
    run_ok("report", model, tmp_path / "o.csv", "-o", tmp_path / "r2.html")
    other = tmp_path / "other.csv"
    write_table(example.frame.select("text"), str(other))
    run_ok("report", model, other, "-o", tmp_path / "r3.html")
    result, _ = labeled("--quiet")
    assert result.err == ""
    shown = run_ok("inspect", model).out
    revision = load_model(str(model)).vectorizer.features.encoder.revision
    assert f"{DIMENSION} features (embeddings)" in shown
    assert f"encoder small, revision {revision}" in shown
    assert "trained on vectors" in shown
    features = json.loads(run_ok("inspect", model, "--json").out)["features"]
    assert features["encoder"] == {"name": "small", "revision": revision}


def test_queue_fits_on_embeddings(example, encoder, run_ok, tmp_path):
    options = ("--features", "embeddings", "--encoder", encoder, *QUICK)
    run_ok("queue", example.file, *options, "-o", tmp_path / "q.csv", "-n", 5)
    assert read(tmp_path / "q.csv")["text"].n_unique() == 5


def test_the_demo_runs_on_embeddings(encoder, run_ok, tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "demo_frame", lambda seed: documents(n_rows=200, n_labeled=40, seed=seed).drop("id"))
    result = run_ok("demo", "-o", tmp_path / "demo", "--features", "embeddings", "--encoder", encoder)
    assert f"--features embeddings --encoder {encoder}" in result.out
    assert re.search(r"supervised 0\.\d+, transduce 0\.\d+", result.out)


def test_empty_long_and_repeated_texts(labeled, example, run_ok, tmp_path):
    texts = example.frame["text"].to_list()
    texts[30:34] = ["", "  ", "pay my bill " * 90_000, texts[0]]
    file = tmp_path / "odd.csv"
    write_table(example.frame.with_columns(pl.Series("text", texts)), str(file))
    result, model = labeled(file=file)
    assert "Encoding 117 texts" in result.err
    assert read(tmp_path / "o.csv")["label"].null_count() == 0
    run_ok("predict", model, file, "-o", tmp_path / "p.csv")
    labels = read(tmp_path / "p.csv")["label_2"].to_list()
    assert labels[30] == labels[31]
    assert labels[0] == labels[33]


def test_texts_without_vectors_are_refused(example, encoder, run_command, tmp_path):
    frame = example.frame.with_columns(text=pl.lit("Zahnarzt"))
    write_table(frame, str(tmp_path / "d.csv"))
    result = run_command(
        "label", tmp_path / "d.csv", "--features", "embeddings", "--encoder", encoder, "-o", tmp_path / "o.csv"
    )
    assert result.code == 2
    assert "none of the 120 texts has a vector" in result.err


@pytest.fixture
def refused(run_command):
    """Runs a command that must fail with one sentence."""

    def run(*arguments):
        result = run_command(*arguments)
        assert result.code == 2, result.err
        assert result.err.startswith("transduce: ") or "\ntransduce: " in result.err
        assert "Traceback" not in result.err
        return result.err.strip().splitlines()[-1]

    return run


def test_another_encoder_is_refused_and_a_copy_is_not(labeled, example, encoder, refused, run_ok, tmp_path):
    _, model = labeled()
    other = save_static_model(tmp_path / "other", seed=1)
    message = refused("predict", model, example.file, "-o", tmp_path / "p.csv", "--encoder", other)
    assert re.search(
        r"trained with the encoder small \(revision \w+\), and other \(revision \w+\) makes other", message
    )
    assert not (tmp_path / "p.csv").exists()
    copy = shutil.copytree(encoder, tmp_path / "copy of it")
    run_ok("predict", model, example.file, "-o", tmp_path / "p.csv", "--encoder", copy)


def test_an_encoder_that_has_moved_must_be_named(labeled, example, encoder, refused, run_ok, tmp_path):
    _, model = labeled()
    predict = ("predict", model, example.file, "-o", tmp_path / "p.csv")
    message = refused(*predict, "--cache", "none")
    assert re.search(r"the encoder small \(revision \w+\), which is not known here. Name its folder", message)
    run_ok(*predict, "--cache", "none", "--encoder", encoder)
    run_ok(*predict)
    (note,) = (tmp_path / "cache").rglob("folder.txt")
    note.write_text(str(tmp_path / "gone"))
    assert "which is not known here" in refused(*predict)


def test_a_published_encoder_is_found_by_name_and_revision(labeled, example, encoder, run_ok, tmp_path, monkeypatch):
    found = []

    def find(name, revision):
        found.append((name, revision))
        return encoder

    monkeypatch.setattr(pretrained, "_find_published", find)
    _, model = labeled("--encoder", "teas/leaves")
    run_ok("predict", model, example.file, "-o", tmp_path / "p.csv")
    assert found == [("teas/leaves", None), ("teas/leaves", "small")]


def test_the_model_file_holds_no_path(labeled, encoder):
    _, model = labeled()
    assert str(encoder.parent).encode() not in model.read_bytes()


def test_the_cache_can_be_elsewhere_or_nowhere(labeled, cache, tmp_path):
    labeled("--cache", "none")
    assert not cache.exists()
    labeled("--cache", tmp_path / "mine")
    assert len(list((tmp_path / "mine").iterdir())) == 1
    (tmp_path / "file").write_text("")
    result, _ = labeled("--cache", tmp_path / "file")
    assert result.err.count("Note: vectors cannot be stored in") == 1


def test_the_encoder_may_be_set_once_for_all(example, encoder, run_ok, tmp_path, monkeypatch):
    monkeypatch.setenv("TRANSDUCE_ENCODER", str(encoder))
    run_ok("label", example.file, "--features", "embeddings", "-o", tmp_path / "o.csv", *QUICK)
    monkeypatch.delenv("TRANSDUCE_ENCODER")
    (tmp_path / "t.toml").write_text(f'encoder = "{encoder}"\n[label]\nfeatures = "embeddings"\n')
    model = tmp_path / "m.safetensors"
    config = ("--config", tmp_path / "t.toml")
    run_ok("label", example.file, *config, "-o", tmp_path / "o.csv", "--model", model, *QUICK)
    run_ok("check", example.file, *config)
    result = run_ok("predict", example.model, example.file, *config, "-o", tmp_path / "p.csv")
    assert "so --encoder has no effect" in result.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--features", "tfidf", "--encoder", "minilm"),
            "--encoder is for --features embeddings, mix and auto, not tfidf",
        ),
        (("--words-share", "0.5"), "--words-share is for --features mix"),
        (("--features", "embeddings", "--vectors", "v.npy"), "v.npy has vectors already"),
        (("--features", "embeddings", "--encoder", "no such/place here"), "'no such/place here' is neither a folder"),
    ],
)
def test_wrong_options_are_refused(options, message, example, refused, tmp_path):
    assert message in refused("label", example.file, "-o", tmp_path / "o.csv", *options)


def test_without_an_encoder_the_error_says_what_to_install(example, refused, tmp_path, monkeypatch):
    monkeypatch.setattr(pretrained, "find_spec", lambda name: None)
    message = refused("label", example.file, "--features", "embeddings", "-o", tmp_path / "o.csv")
    assert (
        "neither sentence-transformers nor model2vec is installed. In the checkout of transduce, run: pip install"
        in message
    )


def test_vectors_of_a_model_on_dense_rows_may_come_as_svmlight(example, run_ok, tmp_path):
    """Rows are centred the same way, whatever the file."""
    X, model = vectors_of(example.frame), tmp_path / "m.safetensors"
    np.save(tmp_path / "v.npy", X)
    dump_svmlight_file(X, np.zeros(len(X)), str(tmp_path / "v.svm"), zero_based=True)
    vectors = ("--vectors", tmp_path / "v.npy")
    run_ok("label", example.file, *vectors, "-o", tmp_path / "o.csv", "--model", model, *QUICK)
    run_ok("predict", model, example.file, *vectors, "-o", tmp_path / "a.csv")
    run_ok("predict", model, tmp_path / "v.svm", "-o", tmp_path / "b.csv")
    given, sparse = read(tmp_path / "a.csv"), read(tmp_path / "b.csv")
    assert given["label_2"].to_list() == sparse[sparse.columns[-4]].to_list()
