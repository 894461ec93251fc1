"""--features auto and mix: words and vectors of an encoder in one model, the default where an encoder is there."""

import json

import numpy as np
import pytest
from helpers.commands import EXACT_SIZES, QUICK, read
from helpers.documents import vectors_of
from helpers.encoders import DIMENSION, save_static_model

from transduce.cli import label_fit
from transduce.features import text_rows
from transduce.features.text_rows import Choice
from transduce.model_file import load_model

SIZES = [word for name, rows in EXACT_SIZES.items() for word in ("--prior", f"{name}={rows}")]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return save_static_model(tmp_path_factory.mktemp("encoders") / "small")


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TRANSDUCE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def labeled(example, run_ok, tmp_path):
    """Runs `label`, and returns its result, its model and the model file."""

    def label(*options):
        path = tmp_path / "m.safetensors"
        result = run_ok("label", example.file, "-o", tmp_path / "o.csv", "--model", path, *SIZES, *QUICK, *options)
        return result, load_model(str(path)), path

    return label


def test_without_an_encoder_the_default_is_words_and_says_nothing(labeled):
    result, model, _ = labeled()
    assert model.vectorizer.features.kind == "tfidf"
    assert "Features are" not in result.err
    assert "choice" not in model.about


def test_without_an_encoder_auto_uses_words_and_says_why(labeled):
    result, model, _ = labeled("--features", "auto")
    assert model.vectorizer.features.kind == "tfidf"
    assert result.err.count("Features are words. There is no encoder on this machine") == 1
    assert model.about["choice"] in result.err


@pytest.mark.parametrize("how", ["by default", "named", "asked for"])
def test_with_an_encoder_auto_chooses_and_the_model_records_it(how, labeled, encoder, run_ok, tmp_path, monkeypatch):
    if how != "named":
        monkeypatch.setenv("TRANSDUCE_ENCODER", str(encoder))
    options = {"by default": (), "named": ("--encoder", encoder), "asked for": ("--features", "auto")}
    result, model, path = labeled(*options[how], "--json")
    features = model.vectorizer.features
    line = next(line for line in result.err.splitlines() if line.startswith("Features are"))
    assert line == model.about["choice"] == json.loads(result.out)["choice"]
    if features.kind == "mix":
        assert f"a mix of {features.words_share:.0%} words" in line
    else:  # the vectors of this small encoder mean nothing
        assert "Features are words. Vectors of this encoder do not help" in line
    assert line in run_ok("inspect", path).out


@pytest.mark.parametrize(("share", "kind"), [(1.0, "tfidf"), (0.0, "embeddings"), (0.4, "mix")])
def test_the_rows_are_those_that_were_chosen(share, kind, labeled, encoder, tmp_path, monkeypatch):
    asked = []

    def choose(words, vectors, y, estimator):
        asked.append((words.shape[0], vectors.shape[0], sum(map(bool, y)), sorted(estimator.class_prior)))
        return Choice(share, "By lot.")

    monkeypatch.setattr(label_fit, "choose_share", choose)
    _, model, _ = labeled("--encoder", encoder)
    assert (model.vectorizer.features.kind, asked) == (kind, [(120, 120, 24, sorted(EXACT_SIZES))])
    chosen = (tmp_path / "o.csv").read_bytes()
    words_share = ("--words-share", share) if kind == "mix" else ()
    named = () if kind == "tfidf" else ("--encoder", encoder)
    labeled("--features", kind, *words_share, *named)
    assert (tmp_path / "o.csv").read_bytes() == chosen


def test_the_share_of_a_mix_follows_the_length_of_the_texts_and_is_reported(labeled, encoder):
    result, model, _ = labeled("--features", "mix", "--encoder", encoder)
    assert result.err.count("Features are a mix of 20% words and 80% vectors. Half of the texts have ") == 1
    assert (model.vectorizer.features.words_share, model.about["choice"] in result.err) == (0.2, True)


def test_texts_without_words_are_labelled_by_vectors(run_ok, encoder, tmp_path):
    rows = ["i,first", "i i,first", "a,second", "a a,second", "i i i,", "a a a,"]  # a word has two letters
    (tmp_path / "a.csv").write_text("text,label\n" + "\n".join(rows) + "\n", encoding="utf-8")
    result = run_ok("label", tmp_path / "a.csv", "-o", tmp_path / "o.csv", "--encoder", encoder, *QUICK)
    assert "Features are vectors of the encoder. The texts have no words to use." in result.err
    assert read(tmp_path / "o.csv")["label"].to_list()[4:] == ["first", "second"]


def test_every_command_reads_a_mix(labeled, example, encoder, run_ok, tmp_path):
    _, model, path = labeled(
        "--features", "mix", "--words-share", 0.6, "--encoder", encoder, "--report", tmp_path / "r.html"
    )
    features = model.vectorizer.features
    assert (features.words_share, features.n_features) == (0.6, DIMENSION)
    run_ok("predict", path, example.file, "-o", tmp_path / "p.csv")
    texts = example.frame["text"].to_list()
    X = text_rows.transform_texts(model.vectorizer, texts, text_rows.Encoding(encoder))
    best = model.scores(X).argmax(axis=1)
    assert read(tmp_path / "p.csv")["label_2"].to_list() == [model.classes[k] for k in best]
    found = json.loads(run_ok("evaluate", path, example.file, "--label", "truth", "--json").out)
    assert found["trained"] == 24
    run_ok("queue", example.file, "--model", path, "-o", tmp_path / "q.csv", "-n", 5)
    run_ok("report", path, tmp_path / "o.csv", "-o", tmp_path / "r2.html")
    shown = json.loads(run_ok("inspect", path, "--json").out)
    assert shown["features"]["words_share"] == 0.6
    words = {word for one in shown["classes"] for word in one["words"]}
    assert words
    assert words <= set(model.vectorizer.vocabulary)


def test_vectors_of_the_user_are_not_mixed(labeled, example, encoder, run_command, tmp_path, monkeypatch):
    monkeypatch.setenv("TRANSDUCE_ENCODER", str(encoder))
    np.save(tmp_path / "v.npy", vectors_of(example.frame))
    vectors = ("--vectors", tmp_path / "v.npy")
    assert labeled(*vectors)[1].vectorizer.features.kind == "vectors"
    assert labeled(*vectors, "--features", "auto")[1].vectorizer.features.kind == "vectors"
    for options in (("--features", "mix"), ("--encoder", encoder)):
        result = run_command("label", example.file, "-o", tmp_path / "o.csv", *vectors, *options)
        assert (result.code, "has vectors already" in result.err) == (2, True)
        assert f"Leave out {options[0]}" in result.err


@pytest.mark.parametrize("share", ["0", "1", "nan", "much"])
def test_a_share_is_a_fraction(share, example, run_command, tmp_path):
    result = run_command("label", example.file, "-o", tmp_path / "o.csv", "--features", "mix", "--words-share", share)
    assert result.code == 2


def test_the_share_is_not_in_the_help(run_ok):
    assert "--words-share" not in run_ok("label", "--help").out
