"""Damaged, wrong and malicious model files always give InputError."""

import json
import os
import pickle
from dataclasses import replace

import numpy as np
import pytest
from helpers.model_example import NUMBERS, TEXTS, about, change_about, described, joined, parts, small_model
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load as parse
from safetensors.numpy import save as serialize

from transduce.cli.errors import InputError
from transduce.io import safetensors_file
from transduce.model_file import load_model, save_model

INCOMPLETE = "not a complete safetensors file"
ACCURACY = dict.fromkeys(("mean", "low", "high", "macro_f", "macro_f_low", "macro_f_high"), 0.5) | {"n_labels": 4}
NESTED: list = []
for _ in range(110):
    NESTED = [NESTED]


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "teas.model")


@pytest.fixture(scope="module")
def valid(tmp_path_factory):
    path = tmp_path_factory.mktemp("valid") / "teas.model"
    save_model(small_model(), str(path))
    return path.read_bytes()


def refused(path, content, message):
    with open(path, "wb") as file:
        file.write(content)
    with pytest.raises(InputError, match=message) as caught:
        load_model(path)
    assert path in str(caught.value)
    return str(caught.value)


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
        path, described(valid, lambda header: header.update(version=4, classes="elsewhere")), "version is 4"
    )
    assert message.endswith("Upgrade transduce.")


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
        (change_about(accuracy={**ACCURACY, "n_answered": "3"}), "n_answered"),
        (change_about(accuracy={**ACCURACY, "n_single": 0.5}), "n_single"),
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
    save_model(small_model("embeddings"), path)
    with open(path, "rb") as file:
        refused(path, described(file.read(), change), message)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda header: header.update(version=2), "not those of this version"),
        (lambda header: header["features"].pop("words_share"), "not those of this version"),
        (lambda header: header["features"].update(words_share=1.0), "words_share must be above 0 and below 1"),
        (lambda header: header["features"].update(words_share="much"), "words_share must be above 0 and below 1"),
        (lambda header: header["features"].update(words_share=None), "words_share must be above 0 and below 1"),
        (lambda header: header["features"].update(n_features=4), "center must have the shape"),
        (lambda header: header["features"].update(kind="embeddings"), "words_share must be"),
    ],
)
def test_a_damaged_mix_is_refused(change, message, path):
    save_model(small_model("mix"), path)
    with open(path, "rb") as file:
        refused(path, described(file.read(), change), message)


@pytest.mark.parametrize("center", [np.zeros(4), np.full(5, np.nan), np.full(5, 1.5)])
def test_a_center_that_unit_rows_cannot_have_is_not_saved(center, path):
    model = small_model("centred")
    vectorizer = replace(model.vectorizer, center=center.astype(np.float32))
    with pytest.raises(ValueError, match="center must"):
        save_model(replace(model, vectorizer=vectorizer), path)


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
    yield entry("idf", dtype="U8", shape=[36]), "coef must have the shape of its columns"
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
        save_model(small_model(), path)
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


def test_descriptions_of_too_many_parts_are_refused_before_they_are_parsed(path, monkeypatch):
    monkeypatch.setattr(safetensors_file, "safe_open", lambda *_, **__: pytest.fail("the file was parsed"))
    tensors = {f"t{number}": np.zeros(1, np.float32) for number in range(20)}
    refused(path, serialize(tensors, {"transduce": "{}"}), "more parts than that of any model")
    refused(path, serialize({}, {"transduce": "[" * 2_500_000}), "more parts than that of any model")


def test_tensors_are_not_read_before_the_description_is_judged(path, valid, tmp_path):
    header, _ = parts(valid)
    coef = header["coef"]
    begin, n_bytes = coef["data_offsets"][0], 48 << 30
    for name, tensor in header.items():
        if name not in ("coef", "__metadata__"):
            size = tensor["data_offsets"][1] - tensor["data_offsets"][0]
            tensor["data_offsets"] = [n_bytes + begin, n_bytes + begin + size]
            begin += size
    coef.update(shape=[3, n_bytes // 12], dtype="F32", data_offsets=[0, n_bytes])
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + n_bytes + begin)  # a sparse file: nothing is stored
    with pytest.raises(InputError, match="coef must have the shape of its columns"):
        load_model(path)
