"""Models are loaded bit for bit as saved, and a damaged or malicious file always gives InputError."""

import json
import os
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load as parse
from safetensors.numpy import save as serialize
from scipy import sparse

from transduce import TransductiveClassifier
from transduce.cli import safetensors_file
from transduce.cli.errors import InputError
from transduce.cli.features import Features, Vectorizer, fit_vectorizer
from transduce.cli.model_file import Model, load_model, save_model
from transduce.features.identity import EncoderIdentity
from transduce.io.atomic_write import WriteError

VERSION_0_1 = Path(__file__).parent / "data" / "drinks-0.1.safetensors"
"""Written by version 0.1: twelve texts, classes in a tree, a branch with a stated size."""
INCOMPLETE = "not a complete safetensors file"
TEXTS = ["green tea", "black tea", "black coffee", "coffee with milk", "茶", "thé vert"]
CLASSES = ("tea/leaf", 'tea/寒い "quoted"\n', "coffee")
NUMBERS = ("coef", "intercept", "shift")
ENCODER = EncoderIdentity("teas/leaves-5", "f00d", ((0.25, -1.5), (0.0, 1.0)))
NESTED: list = []
for _ in range(110):
    NESTED = [NESTED]


def about(classes=CLASSES):
    counts = dict.fromkeys(("labelled", "asked_low", "asked_high", "assigned", "own"), 3)
    fractions = dict.fromkeys(("texts_low", "texts_high", "price"), 0.25)
    rounds = {"restart": 0, "stage": 1, "objective": 0.5, "moved": 2, "seconds": 0.1, "temperature": 0.0, "weight": 1.0}
    return {
        "transduce": "0.1.0",
        "created": "2024-05-01T12:00:00+00:00",
        "source": "teas.csv",
        "seed": None,
        "settings": {"loss": "hinge", "alpha": 1e-3, "text": ["title", "body"], "label": "label"},
        "n_labelled": 3,
        "n_unlabelled": 9,
        "prior": "Class sizes were stated.",
        "ending": "Converged.",
        "seconds": 1.25,
        "interrupted": False,
        "sizes": [{"class": name, **counts, **fractions} for name in classes],
        "history": [rounds, rounds],
    }


def example(kind="tfidf", dtype=np.float32, **changes):
    if kind in ("vectors", "centred", "embeddings"):
        center = np.empty(0, np.float32) if kind == "vectors" else np.linspace(-1, 1, 5, dtype=np.float32)
        features = Features("vectors", n_features=5)
        if kind == "embeddings":
            features = Features("embeddings", n_features=5, encoder=ENCODER)
        vectorizer = Vectorizer(features, center=center)
    else:
        vectorizer, _ = fit_vectorizer(TEXTS, Features(kind, hash_bits=4))
    draw = np.random.default_rng(0).normal
    K, d = len(CLASSES), vectorizer.n_columns
    numbers = (draw(size=shape).astype(dtype) for shape in ((K, d), K, K))
    return replace(Model(CLASSES, *numbers, vectorizer, True, "hinge", about()), **changes)


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "teas.model")


@pytest.fixture(scope="module")
def valid(tmp_path_factory):
    path = tmp_path_factory.mktemp("valid") / "teas.model"
    save_model(example(), str(path))
    return path.read_bytes()


def parts(content):
    """Header and numbers of a file."""
    end = 8 + int.from_bytes(content[:8], "little")
    return json.loads(content[8:end]), content[end:]


def joined(header, numbers):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + numbers


def described(content, change):
    """The file with its description changed."""
    header, numbers = parts(content)
    description = json.loads(header["__metadata__"]["transduce"])
    change(description)
    header["__metadata__"]["transduce"] = json.dumps(description)
    return joined(header, numbers)


def refused(path, content, message):
    with open(path, "wb") as file:
        file.write(content)
    with pytest.raises(InputError, match=message) as caught:
        load_model(path)
    assert path in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["tfidf", "hashing", "vectors", "centred", "embeddings"])
def test_a_model_is_loaded_bit_for_bit(kind, dtype, path):
    model = example(kind, dtype)
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
    assert version == (2 if kind in ("centred", "embeddings") else 1)
    if kind in ("tfidf", "hashing"):
        X = model.vectorizer.transform(TEXTS)
        assert (loaded.vectorizer.transform(TEXTS) != X).nnz == 0
        assert np.array_equal(loaded.scores(X), model.scores(X))


def test_the_same_model_makes_the_same_file_and_another_library_reads_it(path, valid):
    save_model(example(), path)
    save_model(load_model(path), path)
    with open(path, "rb") as file:
        assert file.read() == valid
    tensors = parse(valid)
    assert set(tensors) == {"coef", "intercept", "shift", "idf", "vocabulary"}
    assert np.array_equal(tensors["coef"], example().coef)


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
    model = example()
    X = model.vectorizer.transform(TEXTS).toarray()
    assert np.allclose(model.scores(form(X)), X @ model.coef.T + model.intercept, atol=1e-6)


def test_rows_of_another_width_are_refused():
    with pytest.raises(InputError, match="needs rows of 5 numbers, but these have 4"):
        example("vectors").scores(np.ones((2, 4)))


def test_scores_too_large_are_refused_by_row():
    X = np.zeros((3, 5), np.float32)
    X[1] = 3e38
    with pytest.raises(InputError, match="Row 2"):
        example("vectors", coef=np.full((3, 5), 1e3, np.float32)).scores(X)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "maxent"])
def test_probabilities_are_those_of_the_estimator(loss):
    X = np.random.default_rng(1).normal(size=(30, 5))
    clf = TransductiveClassifier(loss, annealing=None).fit(X, ["a", "b", "c"] * 5 + [""] * 15)
    vectorizer = Vectorizer(Features("vectors", n_features=5))
    numbers = clf.coef_ / clf.temperature_, clf.intercept_ / clf.temperature_, np.zeros(3)
    model = Model(("a", "b", "c"), *numbers, vectorizer, False, loss, about())
    assert np.allclose(model.probabilities(model.scores(X)), clf.predict_proba(X))


def test_a_failed_write_leaves_nothing(tmp_path, monkeypatch):
    path = tmp_path / "teas.model"
    path.write_bytes(b"before")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(WriteError, match=r"teas.model cannot be written \(No space left on device\)"):
        save_model(example(), str(path))
    assert [each.name for each in tmp_path.iterdir()] == ["teas.model"]
    assert path.read_bytes() == b"before"


@pytest.mark.parametrize("target", ["absent/teas.model", "."])
def test_a_target_that_cannot_be_written_is_refused(target, tmp_path):
    with pytest.raises(WriteError, match="cannot be written"):
        save_model(example(), str(tmp_path / target))
    assert list(tmp_path.iterdir()) == []


def test_a_link_to_a_model_stays_a_link(tmp_path, valid):
    (tmp_path / "link.model").symlink_to(tmp_path / "teas.model")
    save_model(example(), str(tmp_path / "link.model"))
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
        save_model(example(**changes), path)
    assert not os.path.exists(path)


def test_a_source_with_bytes_that_are_not_text_can_be_saved(path):
    save_model(example(about={**about(), "source": os.fsdecode(b"caf\xe9.csv")}), path)
    assert load_model(path).about["source"] == "caf?.csv"


def test_other_files_are_refused_with_a_reason(path, tmp_path, valid):
    with pytest.raises(InputError, match="does not exist"):
        load_model(path)
    with pytest.raises(InputError, match="folder"):
        load_model(str(tmp_path))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="device"):
        load_model(str(tmp_path / "pipe"))
    refused(path, b"", "it is empty")
    refused(path, b"PK\x03\x04\x14\x00\x00\x00\x08\x00", "zip")
    refused(path, pickle.dumps({"a": 1}), "pickle")
    refused(path, b"text,label\n" * 100, "not a safetensors file")
    refused(path, serialize({"a": np.ones(2)}, {"by": "others"}), "not one of transduce")
    refused(path, valid[: len(valid) // 2], INCOMPLETE)
    refused(path, valid + b"\0", INCOMPLETE)
    refused(path, (2**63).to_bytes(8, "little") + b"{}", "not a safetensors file")


def test_a_newer_version_asks_for_an_upgrade(path, valid):
    message = refused(
        path, described(valid, lambda header: header.update(version=3, classes="elsewhere")), "version is 3"
    )
    assert message.endswith("Upgrade transduce.")


def change_about(**values):
    return lambda header: header["about"].update(values)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda header: header.update(format="other"), "format"),
        (lambda header: header.update(version=0), "version 1"),
        (lambda header: header.update(version=True), "'version'"),
        (lambda header: header.pop("about"), "'about'"),
        (lambda header: header.update(classes=["a", "b"]), "coef must have the shape"),
        (lambda header: header.update(classes=["a", "b", "a"]), "twice"),
        (lambda header: header.update(classes=["a", "b", ""]), "not names"),
        (lambda header: header.update(classes=["a", "b", 3]), "not names"),
        (lambda header: header.update(classes=["a", "b", "\ud800"]), "not Unicode|surrogate"),
        (lambda header: header.update(classes=["a", "a/b", "c"]), "class and a parent"),
        (lambda header: header.update(classes=["a//b", "a/c", "d"]), "empty"),
        (lambda header: header.update(tree=1), "'tree'"),
        (lambda header: header.update(loss="huber"), "loss"),
        (lambda header: header["features"].update(kind="vectors", n_features=9), "has words"),
        (lambda header: header["features"].update(ngrams=7), "ngrams"),
        (lambda header: header["features"].pop("ngrams"), "features"),
        (lambda header: header["features"].update(more=1), "features"),
        (change_about(seed="x"), "seed"),
        (change_about(objective="low"), "objective"),
        (change_about(n_labelled=-1), "from 0 to"),
        (change_about(n_labelled=1.5), "n_labelled"),
        (change_about(interrupted=0), "interrupted"),
        (change_about(settings={"text": "body"}), "text"),
        (change_about(sizes=[{}]), "sizes"),
        (change_about(sizes=about(["a", "b", "c"])["sizes"]), "those of its classes"),
        (change_about(branches={}), "'branches'"),
        (change_about(branches=[{"branch": "a", "labelled": "x"}]), "a row of branches must have 'labelled'"),
        (change_about(history=[None]), "history"),
        (change_about(history=[None] * 1001), "at most 1000 rows"),
        (change_about(seconds=1e300), "'seconds' of at most"),
        (change_about(labelled_rows=[]), "'labelled_rows' of type dict"),
        (change_about(labelled_rows={"salt": "00", "digests": ""}), "a salt of 16 bytes"),
        (change_about(labelled_rows={"salt": "00" * 16, "digests": 3}), "digests in base64"),
        (change_about(more=NESTED), "nested deeper"),
    ],
)
def test_wrong_descriptions_are_refused(change, message, path, valid):
    refused(path, described(valid, change), message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"format": "a", "format": "b"}', "appears twice"),
        ('{"format": NaN}', "NaN"),
        ('{"format": -Infinity}', "Infinity"),
        ('{"format": 1e999}', "too large"),
        ('{"format": ' + "9" * 10_000 + "}", "too many digits"),
        ("[" * 100_000, "nested deeper|not JSON"),
        ('{"a":' * 5_000 + "1" + "}" * 5_000, "nested deeper"),
        ("null", "not an object"),
        ("{", "not JSON"),
    ],
)
def test_malicious_json_is_refused(text, message, path, valid):
    header, numbers = parts(valid)
    header["__metadata__"]["transduce"] = text
    refused(path, joined(header, numbers), message)
    refused(path, joined(text.encode(), numbers), r"\w")


def change_encoder(**values):
    return lambda header: header["features"]["encoder"].update(values)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda header: header.update(version=1), "tensors"),
        (lambda header: header["features"].update(encoder=None), "need an encoder"),
        (lambda header: header["features"].update(encoder="teas"), "the encoder is not an object"),
        (lambda header: header["features"].update(kind="vectors"), "need an encoder, and other features have none"),
        (lambda header: header["features"].pop("encoder"), "not those of this version"),
        (change_encoder(name=3), "'name'"),
        (change_encoder(more=3), "a name, a revision and a probe"),
        (change_encoder(probe=[]), "a probe of numbers"),
        (change_encoder(probe=[[1.0], []]), "a probe of numbers"),
        (change_encoder(probe=[["1"]]), "a probe of numbers"),
        (change_encoder(probe=[[1e40]]), "a probe of numbers"),
    ],
)
def test_a_damaged_encoder_is_refused(change, message, path):
    save_model(example("embeddings"), path)
    with open(path, "rb") as file:
        refused(path, described(file.read(), change), message)


@pytest.mark.parametrize("center", [np.zeros(4), np.full(5, np.nan), np.full(5, 1.5)])
def test_a_center_that_unit_rows_cannot_have_is_not_saved(center, path):
    model = example("centred")
    vectorizer = replace(model.vectorizer, center=center.astype(np.float32))
    with pytest.raises(ValueError, match="center must"):
        save_model(replace(model, vectorizer=vectorizer), path)


def test_extra_keys_of_about_are_kept(path, valid):
    with open(path, "wb") as file:
        file.write(described(valid, change_about(more={"a": [1, None]})))
    assert load_model(path).about["more"] == {"a": [1, None]}


def wrong_tensors():
    def entry(name, **values):
        return lambda header: header[name].update(values)

    def exchange(header):
        header["shift"]["data_offsets"] = header["intercept"]["data_offsets"]

    yield entry("coef", shape=[3, 2**60]), INCOMPLETE
    yield entry("coef", shape=[3, -9]), INCOMPLETE
    yield entry("coef", shape=[True, 27]), INCOMPLETE
    yield entry("coef", shape=[3, 3, 3]), "coef must have the shape"
    yield entry("coef", shape="3"), INCOMPLETE
    yield entry("coef", shape=[9, 3]), "coef must have the shape"
    yield entry("coef", shape=[3, 10]), INCOMPLETE
    yield entry("coef", dtype="I32"), "type of F32"
    yield entry("coef", dtype=["F32"]), INCOMPLETE
    yield entry("idf", dtype="U8", shape=[36]), "idf must be float32"
    yield entry("intercept", data_offsets=[2**47, 2**47 + 12]), INCOMPLETE
    yield exchange, INCOMPLETE
    yield lambda header: header.pop("idf"), INCOMPLETE
    yield lambda header: header.update(idf=3), INCOMPLETE
    yield lambda header: header["__metadata__"].update(transduce=3), INCOMPLETE
    yield lambda header: header.pop("__metadata__"), "not one of transduce"
    yield lambda header: header.update(more={"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}), "hold the tensors"


@pytest.mark.parametrize(("change", "message"), list(wrong_tensors()))
def test_wrong_tensors_are_refused(change, message, path, valid):
    header, numbers = parts(valid)
    change(header)
    refused(path, joined(header, numbers), message)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("coef", np.full((3, 9), np.nan, np.float32), "coef must hold numbers"),
        ("shift", np.array([0, 0, np.inf]), "shift must hold numbers"),
        ("intercept", np.array([0, 0, 1e31]), "intercept must hold numbers"),
        ("idf", np.zeros(9, np.float32), "idf must hold numbers"),
        ("vocabulary", np.frombuffer(b"b\na", np.uint8), "not sorted"),
        ("vocabulary", np.frombuffer(b"a\n\nb", np.uint8), "not sorted"),
        ("vocabulary", np.frombuffer(b"a\nb", np.uint8), "idf must have the shape"),
        ("vocabulary", np.frombuffer(b"\xff\xfe", np.uint8), "not Unicode|surrogate"),
        ("vocabulary", np.empty(0, np.uint8), "no columns"),
    ],
)
def test_wrong_numbers_are_refused(name, values, message, path, valid):
    metadata = parts(valid)[0]["__metadata__"]
    refused(path, serialize({**parse(valid), name: values}, metadata), message)


def test_a_header_over_the_limit_is_neither_written_nor_read(path, valid, monkeypatch):
    monkeypatch.setattr(safetensors_file, "MAX_HEADER_BYTES", 100)
    with pytest.raises(ValueError, match="must fit into 100 bytes"):
        save_model(example(), path)
    refused(path, valid, "not a safetensors file")


def check_survives(path, content):
    """A model with finite numbers, or InputError; what a model gives is finite too."""
    with open(path, "wb") as file:
        file.write(content)
    try:
        model = load_model(str(path))
    except InputError:
        return
    assert all(np.isfinite(getattr(model, name)).all() for name in NUMBERS)
    scores = model.scores(model.vectorizer.transform(TEXTS))
    assert np.isfinite(model.probabilities(scores)).all()


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_damaged_bytes_are_refused_or_harmless(data, valid, tmp_path_factory):
    content = bytearray(valid)
    for _ in range(data.draw(st.integers(1, 4))):
        kind = data.draw(st.sampled_from(["flip", "cut", "insert", "append", "drop"]))
        place = data.draw(st.integers(0, len(content) - 1)) if content else 0
        some = data.draw(st.binary(min_size=1, max_size=9))
        if kind == "flip" and content:
            content[place] ^= some[0] or 1
        elif kind == "cut":
            del content[place:]
        elif kind == "insert":
            content[place:place] = some
        elif kind == "append":
            content += some
        else:
            del content[place : place + len(some)]
    check_survives(tmp_path_factory.getbasetemp() / "damaged.model", bytes(content))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def places(value, path=()):
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from places(each, (*path, key))


def changed(value, path, new):
    """The value with another one at the path, or nothing there where `new` is ...."""
    if not path:
        return None if new is ... else new
    copy = value.copy()
    copy[path[0]] = changed(value[path[0]], path[1:], new)
    if new is ... and len(path) == 1:
        del copy[path[0]]
    return copy


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_changed_descriptions_are_refused_or_harmless(data, valid, tmp_path_factory):
    header, numbers = parts(valid)
    new = data.draw(VALUES | st.just(...))
    if data.draw(st.booleans()):
        header = changed(header, data.draw(st.sampled_from(list(places(header)))), new)
    else:
        description = json.loads(header["__metadata__"]["transduce"])
        description = changed(description, data.draw(st.sampled_from(list(places(description)))), new)
        header["__metadata__"]["transduce"] = json.dumps(description)
    check_survives(tmp_path_factory.getbasetemp() / "changed.model", joined(header, numbers))
