"""Models of model2vec and sentence-transformers: loaded safely and lazily, from folders and by name."""

import json
import pickle
import shutil
import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import SimpleNamespace

import huggingface_hub
import numpy as np
import pytest
from helpers.encoders import DIMENSION, save_static_model
from huggingface_hub.errors import (
    HFValidationError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from transduce.features import EncoderError, encode_texts, load_encoder, pretrained
from transduce.features.identity import identify
from transduce.features.pretrained import default_encoder, local_encoder

TEXTS = ["transfer money to my savings", "book a flight", "", "Zahnarzt", "book a flight"]


@pytest.fixture(scope="session")
def static_folder(tmp_path_factory):
    return save_static_model(tmp_path_factory.mktemp("encoders") / "small")


@pytest.fixture
def folder(static_folder, tmp_path):
    """A copy that a test may change."""
    return shutil.copytree(static_folder, tmp_path / "small")


def test_a_static_model_gives_its_vectors(static_folder, tmp_path):
    from model2vec import StaticModel

    encoder = load_encoder(static_folder)
    X = encode_texts(TEXTS, str(static_folder), cache=tmp_path)
    assert (encoder.name, encoder.dimension, X.dtype) == ("small", DIMENSION, np.float32)
    assert np.allclose(X, StaticModel.from_pretrained(static_folder).encode(TEXTS), atol=1e-6)
    assert X.any(axis=1).tolist() == [True, True, False, False, True]  # an unknown word has no vector


def test_a_long_text_is_cut_where_the_model_would_cut_it(static_folder):
    encoder = load_encoder(static_folder)
    words = "book a flight to my savings " * 40_000
    assert len(words) > 1_000_000 > 50 * encoder.max_characters
    assert np.allclose(encode_texts([words], encoder, cache=False), encoder.encode([words]), atol=1e-6)


def test_a_copy_of_a_folder_is_the_same_encoder_and_a_changed_one_is_not(static_folder, folder, tmp_path):
    encoder, copy = load_encoder(static_folder), load_encoder(folder)
    assert (encoder.name, encoder.revision) == (copy.name, copy.revision)
    save_static_model(folder, seed=1)
    changed = load_encoder(folder)
    assert changed.revision != encoder.revision
    assert not identify(encoder, tmp_path).agrees_with(identify(changed, tmp_path))


def test_the_model_is_loaded_only_when_a_text_is_new(static_folder, tmp_path, monkeypatch):
    encode_texts(TEXTS, static_folder, cache=tmp_path)
    monkeypatch.setattr(pretrained, "_load_static", lambda folder: pytest.fail("loaded"))
    assert encode_texts(TEXTS[::-1], static_folder, cache=tmp_path).shape == (5, DIMENSION)


def modules(*types):
    return lambda folder: (folder / "modules.json").write_text(json.dumps([{"type": name} for name in types]))


def pickled(folder):
    (folder / "1_Dense").mkdir()
    (folder / "1_Dense" / "pytorch_model.bin").write_bytes(pickle.dumps({}))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: (folder / "modules.json").unlink(), "has no modules.json"),
        (lambda folder: (folder / "modules.json").write_text("{"), "has no modules.json"),
        (modules(), "has no modules.json"),
        (modules("sentence_transformers.models.Transformer", "custom.Module"), "has code of its own"),
        (pickled, "pytorch_model.bin is a pickle"),
        (lambda folder: (folder / "model.safetensors").unlink(), "no weights in a .safetensors file"),
    ],
)
def test_a_folder_that_is_no_encoder_or_not_safe_is_refused(change, message, folder):
    change(folder)
    with pytest.raises(EncoderError, match=message) as caught:
        load_encoder(folder)
    assert str(folder) in str(caught.value)


def test_damaged_weights_are_refused_when_they_are_needed(folder, tmp_path):
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    with pytest.raises(EncoderError, match="the encoder small cannot be loaded from"):
        encode_texts(TEXTS, folder, cache=tmp_path)


def test_a_device_that_fails_is_reported(static_folder, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("out of memory.\nTried to allocate 20 GiB")

    encoder = load_encoder(static_folder)
    monkeypatch.setattr(encoder.model, "encode", fail)
    with pytest.raises(EncoderError, match=r"the encoder small failed: out of memory\. Use a smaller one"):
        encode_texts(TEXTS, encoder, cache=False)


@pytest.fixture
def installed(monkeypatch):
    """Sets which packages are there."""

    def install(*packages):
        def find(name):
            hidden = name in pretrained.DEFAULTS and name not in packages
            known = ModuleSpec(name, None) if name in packages else find_spec(name)
            return None if hidden else known

        monkeypatch.setattr(pretrained, "find_spec", find)

    return install


def test_the_default_depends_on_what_is_installed(installed, monkeypatch, static_folder):
    monkeypatch.delenv("TRANSDUCE_ENCODER", raising=False)
    installed("model2vec", "sentence_transformers")
    assert default_encoder() == "sentence-transformers/all-MiniLM-L6-v2"
    installed("model2vec")
    assert default_encoder() == "minishlab/potion-base-8M"
    monkeypatch.setenv("TRANSDUCE_ENCODER", str(static_folder))
    assert load_encoder().name == "small"
    installed()
    assert default_encoder() is None


def test_without_a_package_the_error_says_what_to_install(installed, folder):
    installed()
    for source in (None, folder, "minishlab/potion-base-8M"):
        with pytest.raises(EncoderError, match=r"run: pip install '\.\[embeddings\]', or '\.\[static\]' for"):
            load_encoder(source)
    installed("sentence_transformers")
    with pytest.raises(EncoderError, match=r"small needs model2vec\. In the checkout .* pip install '\.\[static\]'"):
        load_encoder(folder)
    modules("sentence_transformers.models.Transformer")(folder)
    installed("model2vec")
    with pytest.raises(EncoderError, match=r"needs sentence-transformers\. .* pip install '\.\[embeddings\]'"):
        load_encoder(folder)


@pytest.fixture
def hub(monkeypatch):
    """A stand-in for the publisher of models: `local` and `remote` are folders, or errors; `calls` the names asked."""
    hub = SimpleNamespace(local=LocalEntryNotFoundError("not here"), remote=None, calls=[])

    def download(name, revision, allow_patterns, local_files_only=False):
        assert not any(pattern.endswith((".py", ".bin", "*")) for pattern in allow_patterns)
        hub.calls.append((name if revision is None else f"{name}@{revision}", local_files_only))
        answer = hub.local if local_files_only else hub.remote
        if isinstance(answer, Exception):
            raise answer
        return str(answer)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    return hub


def test_a_model_on_this_machine_needs_no_network(hub, static_folder):
    hub.local, hub.remote = static_folder, AssertionError("went to the network")
    encoder = load_encoder("teas/leaves")
    assert (encoder.name, encoder.revision) == ("teas/leaves", static_folder.name)
    assert hub.calls == [("teas/leaves", True)]


def test_the_default_encoder_is_local_if_it_needs_no_network(hub, static_folder, tmp_path, monkeypatch):
    hub.remote = AssertionError("went to the network")
    assert local_encoder() is None
    hub.local = tmp_path
    assert local_encoder() is None  # not complete
    hub.local = static_folder
    assert local_encoder() == default_encoder()
    monkeypatch.setenv("TRANSDUCE_ENCODER", "leaves@f00d")
    assert local_encoder() == "leaves@f00d"
    assert hub.calls[-1] == ("sentence-transformers/leaves@f00d", True)
    monkeypatch.setenv("TRANSDUCE_ENCODER", str(static_folder))
    hub.local = AssertionError("looked for a published model")
    assert local_encoder() == str(static_folder)
    monkeypatch.setattr(pretrained, "find_spec", lambda name: None)
    assert local_encoder() is None


def test_a_revision_may_be_asked_for(hub, static_folder):
    hub.local = static_folder
    assert load_encoder("teas/leaves@f00d").name == "teas/leaves"
    assert hub.calls == [("teas/leaves@f00d", True)]
    hub.local = hub.remote = RevisionNotFoundError.__new__(RevisionNotFoundError)
    with pytest.raises(EncoderError, match="no public model has this name and the revision f00d"):
        load_encoder("teas/leaves@f00d")


def test_a_model_that_is_not_complete_here_is_downloaded(hub, static_folder, tmp_path):
    hub.local, hub.remote = tmp_path, static_folder
    assert load_encoder("leaves").name == "sentence-transformers/leaves"
    assert [local for _, local in hub.calls] == [True, False]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (HFValidationError("bad name"), "no public model has this name"),
        (RepositoryNotFoundError.__new__(RepositoryNotFoundError), "no public model has this name"),
        (LocalEntryNotFoundError("no route to host"), "the network cannot be reached"),
        (ConnectionError("reset"), "the network cannot be reached"),
    ],
)
def test_a_model_that_cannot_be_downloaded(hub, error, reason):
    hub.remote = error
    with pytest.raises(EncoderError, match=f"'no/where' is neither a folder .* downloaded: {reason}. Correct the name"):
        load_encoder("no/where")


def test_importing_the_package_imports_no_encoder():
    from helpers.commands import run_in_new_process

    heavy = {"torch", "sentence_transformers", "model2vec", "huggingface_hub", "sklearn"}
    code = f"import sys, transduce.features, transduce.cli.predictions; print({heavy} & set(sys.modules))"
    assert run_in_new_process(code=code).stdout.strip() == "set()"


@pytest.fixture(scope="session")
def transformer_folder(tmp_path_factory):
    """A sentence-transformers model with random weights."""
    pytest.importorskip("sentence_transformers")
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    place = tmp_path_factory.mktemp("transformer")
    letters = [*"abcdefghijklmnopqrstuvwxyz0123456789"]
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{letter}" for letter in letters)]
    (place / "vocab.txt").write_text("\n".join(words))
    size = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    BertModel(BertConfig(vocab_size=len(words), max_position_embeddings=32, **size)).save_pretrained(place / "bert")
    BertTokenizerFast(str(place / "vocab.txt"), model_max_length=32).save_pretrained(place / "bert")
    bert = Transformer(str(place / "bert"), max_seq_length=32)
    SentenceTransformer(modules=[bert, Pooling(16)], device="cpu").save(str(place / "tiny"))
    return place / "tiny"


def test_a_transformer_gives_its_vectors(transformer_folder, tmp_path):
    from sentence_transformers import SentenceTransformer

    X = encode_texts(TEXTS, transformer_folder, cache=tmp_path)
    expected = SentenceTransformer(str(transformer_folder), device="cpu").encode(TEXTS)
    filled = [0, 1, 3, 4]
    assert np.allclose(X[filled], expected[filled], atol=1e-4)
    assert not X[2].any()
    encoder = load_encoder(transformer_folder)
    long = "tea leaves " * 100_000
    assert np.allclose(encode_texts([long], encoder, cache=tmp_path), encoder.encode([long]), atol=1e-4)


def test_a_transformer_loads_silently_and_changes_no_settings(transformer_folder, capfd):
    from transformers.utils import logging

    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    load_encoder(transformer_folder).encode(["tea"])
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before
    assert capfd.readouterr() == ("", "")
    assert "torch" in sys.modules
