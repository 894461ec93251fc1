"""TextClassifier: from texts to labels in one estimator, whose file is that of the command line."""

import importlib
import pickle
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from helpers.commands import EXACT_SIZES, QUICK, read
from helpers.documents import documents
from helpers.encoders import CountingEncoder, save_static_model
from helpers.model_example import small_model
from sklearn.base import clone

from transduce import RuledOut, TextClassifier, TransductiveClassifier
from transduce.cli.main import run
from transduce.errors import InputError
from transduce.features import EncoderError, FunctionEncoder, pretrained
from transduce.features.embeddings import Encoding
from transduce.features.text_rows import fit_texts, transform_texts
from transduce.io import safetensors_file
from transduce.losses import LargeMargin
from transduce.model_file import load_model, save_model

FRAME = documents()
TEXTS, Y, TRUTH = (FRAME[name].to_list() for name in ("text", "label", "truth"))
NEW = ["transfer money to my savings", "when does my flight board", "change the oil", "", "?!", TEXTS[0]]
SIZES = ["=31%", "=42%", "=27%"]
KINDS = ("tfidf", "hashing", "embeddings", "mix")


def count_letters(texts):
    return [[text.count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]


LETTERS = FunctionEncoder(count_letters, name="letters")


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TRANSDUCE_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def static(tmp_path_factory):
    return save_static_model(tmp_path_factory.mktemp("encoders") / "small")


def classifier(features="tfidf", **options):
    fixed = {"annealing": None, "class_prior": SIZES, "random_state": 0}
    return TextClassifier(features=features, **{"encoder": LETTERS} | fixed | options)


@pytest.mark.parametrize(
    "form",
    [
        tuple, np.array, lambda texts: np.array(texts, dtype=object), pd.Series,
        lambda texts: pd.Series(texts, dtype="string", index=range(len(texts), 0, -1)), pl.Series,
    ],
    ids=["tuple", "strings", "objects", "pandas", "pandas strings", "polars"],
)  # fmt: skip
def test_all_forms_of_texts_give_the_same_result(form):
    expected = classifier("mix").fit(TEXTS, Y)
    clf = classifier("mix").fit(form(TEXTS), Y)
    assert clf.transduction_.tolist() == expected.transduction_.tolist()
    assert np.array_equal(clf.coef_, expected.coef_)
    assert np.array_equal(clf.decision_function(form(NEW)), expected.decision_function(NEW))


@pytest.mark.parametrize("features", KINDS)
def test_the_fit_is_that_of_the_classifier_on_the_rows_of_the_texts(features):
    rows = fit_texts(TEXTS, features, Encoding(LETTERS))
    expected = TransductiveClassifier(annealing=None, random_state=0, class_prior=SIZES).fit(rows.X, Y)
    clf = classifier(features).fit(TEXTS, Y)
    assert clf.transduction_.tolist() == expected.transduction_.tolist()
    assert np.array_equal(clf.coef_, expected.coef_)
    X = transform_texts(rows.vectorizer, NEW, Encoding(LETTERS))
    assert np.array_equal(clf.decision_function(NEW), expected.decision_function(X))
    assert clf.predict(NEW).tolist() == expected.predict(X).tolist()


def test_missing_texts_are_empty_and_have_the_scores_of_the_intercept():
    for features in KINDS:
        clf = classifier(features).fit([*TEXTS, "", " "], [*Y, None, None])
        scores = clf.decision_function(["", None, np.nan, pd.NA, " \n"])
        assert np.allclose(scores, clf.intercept_)
    column = pd.Series([*TEXTS, None], dtype="string")
    assert classifier().fit(column, [*Y, None]).transduction_.size == len(TEXTS) + 1
    assert classifier().fit(pl.Series([*TEXTS, None]), [*Y, None]).transduction_.size == len(TEXTS) + 1


def test_it_is_an_estimator_of_scikit_learn():
    clf = classifier("mix", words_share=0.5, class_prior="equal", ngrams=2)
    params = clone(clf).get_params()
    assert {"features", "encoder", "words_share", "ngrams", "cache"} | set(
        TransductiveClassifier().get_params()
    ) == set(params)
    assert {name: params[name] for name in ("features", "words_share", "class_prior", "ngrams")} == {
        "features": "mix", "words_share": 0.5, "class_prior": "equal", "ngrams": 2,
    }  # fmt: skip
    clf.fit(TEXTS, Y)
    again = pickle.loads(pickle.dumps(clf))
    assert np.array_equal(again.predict_proba(NEW), clf.predict_proba(NEW))
    assert clf.score(TEXTS, TRUTH) == np.mean(clf.predict(TEXTS) == TRUTH)
    assert clf.fit_predict(TEXTS, Y).tolist() == clf.transduction_.tolist()


@pytest.mark.parametrize("features", KINDS)
def test_a_saved_classifier_predicts_the_same(features, tmp_path):
    path = tmp_path / "m.safetensors"
    clf = classifier(features, outlier_fraction=0.5).fit(TEXTS, Y)
    clf.save(path)
    loaded = TextClassifier.load(path, encoder=LETTERS)
    assert loaded.predict(NEW).tolist() == clf.predict(NEW).tolist()
    assert "" in loaded.predict(NEW)  # texts without a known word
    assert np.allclose(loaded.predict_proba(NEW), clf.predict_proba(NEW), atol=1e-6)
    assert (loaded.features, loaded.about_) == (features, {**clf.about_, "history": loaded.about_["history"]})
    assert loaded.about_["n_labelled"] == FRAME["label"].count()
    loaded.save(tmp_path / "again.safetensors")
    assert (tmp_path / "again.safetensors").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_whole_numbers_come_back_as_numbers(n_classes, tmp_path):
    numbers = {name: min(k, n_classes - 1) for k, name in enumerate(sorted(set(TRUTH)))}
    y = [-1 if name is None else numbers[name] for name in Y]
    clf = classifier(outlier_fraction=0.5, class_prior="labeled").fit(TEXTS, y)
    clf.save(tmp_path / "m")
    loaded = TextClassifier.load(tmp_path / "m")
    assert loaded.classes_.tolist() == list(range(n_classes))
    assert loaded.predict([*TEXTS, *NEW]).tolist() == clf.predict([*TEXTS, *NEW]).tolist()
    assert -1 in loaded.predict(NEW)
    assert np.allclose(loaded.predict_proba(NEW), clf.predict_proba(NEW), atol=1e-6)


def test_trees_and_partial_labels_are_saved(tmp_path):
    frame = documents(paths=True)
    y, paths = frame["label"].to_list(), sorted(set(frame["truth"]))
    y[30], y[31], y[32] = paths[0].split("/")[0], {paths[1], paths[2]}, RuledOut(paths[3])
    clf = classifier(taxonomy=paths, class_prior="labeled").fit(frame["text"], y)
    clf.save(tmp_path / "m")
    loaded = TextClassifier.load(tmp_path / "m")
    assert load_model(str(tmp_path / "m")).tree
    assert loaded.predict(frame["text"]).tolist() == clf.predict(frame["text"]).tolist()
    assert loaded.score(frame["text"], frame["truth"]) == clf.score(frame["text"], frame["truth"])
    as_tuples = classifier(taxonomy=[tuple(path.split("/")) for path in paths], class_prior="labeled")
    as_tuples.fit(frame["text"], [None if name is None else tuple(name.split("/")) for name in frame["label"]])
    as_tuples.save(tmp_path / "m")
    assert TextClassifier.load(tmp_path / "m").classes_.tolist() == paths


@pytest.mark.parametrize("features", KINDS)
def test_the_command_line_reads_what_save_wrote(features, static, tmp_path):
    clf = classifier(features, encoder=static).fit(TEXTS, Y)
    model, file, out = (str(tmp_path / name) for name in ("m.safetensors", "d.csv", "p.csv"))
    clf.save(model)
    FRAME.write_csv(file)
    assert run(["predict", model, file, "-o", out, "--quiet"]) == 0
    assert read(out)["label_2"].to_list() == clf.predict(TEXTS).tolist()
    for command in (["evaluate", "--label", "truth"], ["report", "-o", str(tmp_path / "r.html")], ["queue", "-o", out]):
        files = [file, "--model", model] if command[0] == "queue" else [model, file]
        assert run([command[0], *files, *command[1:], "--quiet"]) == 0
    assert run(["inspect", model, "--quiet"]) == 0


@pytest.mark.parametrize("features", [*KINDS, "auto"])
def test_load_reads_what_the_command_line_wrote_and_labels_are_the_same(features, static, tmp_path):
    model, file, out = (str(tmp_path / name) for name in ("m.safetensors", "d.csv", "o.csv"))
    FRAME.write_csv(file)
    options = [
        "--features",
        features,
        "--no-accuracy",
        *QUICK,
        *(["--encoder", str(static)] if features in KINDS[2:] else []),
    ]
    sizes = {} if features == "tfidf" else EXACT_SIZES  # class sizes are estimated once, which takes more time
    options += [word for name, rows in sizes.items() for word in ("--prior", f"{name}={rows}")]
    assert run(["label", file, "-o", out, "--model", model, *options, "--quiet"]) == 0
    encoder = None if features == "auto" else static
    clf = classifier(features, encoder=encoder, class_prior=sizes or "estimate")
    assert read(out)["label"].to_list() == clf.fit_predict(TEXTS, Y).tolist()
    loaded = TextClassifier.load(model)
    assert np.allclose(loaded.predict_proba(NEW), clf.predict_proba(NEW), atol=1e-5)
    written, saved = loaded.about_, clf.about_
    same = ("labelled_rows", "objective", "sizes", "n_labelled", "n_unlabelled", "accuracy", "smoothing", "choice")
    for key in same:
        expected = [{**size, "stated": bool(sizes)} for size in saved[key]] if key == "sizes" else saved.get(key)
        assert rounded(written.get(key)) == rounded(expected)


def rounded(value):
    """Floats to five digits: dense rows are added up in another order."""
    if isinstance(value, dict):
        return {key: rounded(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [rounded(entry) for entry in value]
    return round(value, 5) if isinstance(value, float) else value


def test_another_encoder_is_refused(static, tmp_path):
    clf = classifier("mix", encoder=static).fit(TEXTS, Y)
    clf.save(tmp_path / "m")
    other = save_static_model(tmp_path / "other", seed=1)
    with pytest.raises(EncoderError, match=r"trained with the encoder small .* makes other vectors"):
        TextClassifier.load(tmp_path / "m", encoder=other).predict(NEW)
    with pytest.raises(EncoderError, match="and letters makes other vectors"):
        clf.set_params(encoder=LETTERS).predict(NEW)
    classifier("embeddings").fit(TEXTS, Y).save(tmp_path / "m")
    with pytest.raises(EncoderError, match="encoder letters, which is not known here"):
        TextClassifier.load(tmp_path / "m").predict(NEW)


def test_auto_uses_words_without_an_encoder_and_says_so(monkeypatch):
    clf = classifier("auto", encoder=None).fit(TEXTS, Y)
    assert clf.vectorizer_.features.kind == "tfidf"
    assert "There is no encoder on this machine" in clf.about_["choice"]
    assert clf.transduction_.tolist() == classifier().fit(TEXTS, Y).transduction_.tolist()
    monkeypatch.setattr(pretrained, "find_spec", lambda name: None)
    assert clf.fit(TEXTS, Y).vectorizer_.features.kind == "tfidf"


def test_a_checkpoint_resumes_whatever_object_the_encoder_is(tmp_path):
    options = {"annealing": "paper", "checkpoint": tmp_path / "stages"}
    clf = classifier("mix", encoder=lambda texts: count_letters(texts), **options).fit(TEXTS, Y)
    rounds = []
    again = classifier("mix", encoder=lambda texts: count_letters(texts), verbose=rounds.append, **options)
    assert np.array_equal(again.fit(TEXTS, Y).coef_, clf.coef_)
    assert not rounds


def test_weights_of_an_encoder_are_read_once(static, tmp_path, monkeypatch):
    pretrained._load_model.cache_clear()
    load, loads = pretrained._load_static, []
    monkeypatch.setattr(pretrained, "_load_static", lambda folder: loads.append(folder) or load(folder))
    clf = classifier("embeddings", encoder=static, cache=False).fit(TEXTS, Y)
    clf.predict(NEW)
    clf.predict(NEW[:1])
    assert len(loads) == 1


@pytest.mark.parametrize(
    ("options", "texts", "error", "message"),
    [
        ({}, "green tea", TypeError, "a list of texts, but is a single one"),
        ({}, pd.DataFrame({"text": TEXTS}), ValueError, r"one column of texts, but has the shape \(120, 1\)"),
        ({}, np.ones((120, 3)), ValueError, "one column of texts"),
        ({}, [[1.0, 2.0]] * 120, TypeError, "text 0 is"),
        ({}, TEXTS[:-1], ValueError, "inconsistent numbers of samples"),
        ({"features": "bm25"}, TEXTS, ValueError, "features must be one of auto, tfidf, hashing, embeddings, mix"),
        ({"words_share": 1.5}, TEXTS, ValueError, "words_share must be above 0 and below 1"),
        ({"features": "tfidf", "words_share": 0.5}, TEXTS, ValueError, "words_share must be above 0"),
        ({"alpha": -1}, TEXTS, ValueError, "alpha must be"),
    ],
)  # fmt: skip
def test_mistakes_are_found_before_texts_are_encoded(options, texts, error, message):
    encoder = CountingEncoder()
    with pytest.raises(error, match=message):
        TextClassifier(**{"features": "mix", "encoder": encoder, **options}).fit(texts, Y)
    assert not encoder.batches


def test_what_a_file_cannot_hold_is_refused(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="loss must be one of hinge, squared_hinge, maxent to be saved"):
        classifier(loss=LargeMargin()).fit(TEXTS, Y).save(tmp_path / "m")
    save_model(small_model("vectors"), str(tmp_path / "m"))
    with pytest.raises(InputError, match="was trained on vectors, not on texts"):
        TextClassifier.load(tmp_path / "m")
    with pytest.raises(InputError, match="does not exist"):
        TextClassifier.load(tmp_path / "absent")


def test_without_safetensors_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(ImportError, match=r"pip install '\.\[app\]'"):
        importlib.reload(safetensors_file)
