"""Model files of taggers: a tagger comes back as it was, and no other file passes for one."""

import json

import numpy as np
import pytest
from helpers.references import labels_of, references, tokens_of
from safetensors.numpy import load_file, save_file

from transduce.errors import InputError
from transduce.io.safetensors_file import read_metadata
from transduce.model_file import load_model
from transduce.sequences import TransductiveTagger
from transduce.sequences.tagger_file import is_tagger, load_tagger, save_tagger

REFS = references(12)
NEW = tokens_of(references(6, seed=1))


@pytest.fixture(scope="module")
def tagger() -> TransductiveTagger:
    model = TransductiveTagger(annealing=None, constraints=["title: once", "author before title"])
    return model.fit(tokens_of(REFS), labels_of(REFS))


@pytest.fixture
def path(tagger, tmp_path) -> str:
    target = str(tmp_path / "tagger.safetensors")
    save_tagger(tagger, target, {"source": "refs.conll"})
    return target


def test_a_tagger_comes_back_as_it_was(tagger, path):
    loaded, about = load_tagger(path)
    assert about == {"source": "refs.conll"}
    assert loaded.predict(NEW) == tagger.predict(NEW)
    for one, other in zip(loaded.predict_marginals(NEW), tagger.predict_marginals(NEW), strict=True):
        np.testing.assert_array_equal(one, other)
    assert loaded.get_params()["constraints"] == ("title: once", "author before title")


def test_the_same_tagger_makes_the_same_file_also_after_loading(tagger, path, tmp_path):
    again = tmp_path / "again.safetensors"
    save_tagger(load_tagger(path)[0], str(again), {"source": "refs.conll"})
    assert again.read_bytes() == (tmp_path / "tagger.safetensors").read_bytes()


def test_taggers_are_told_from_other_files(path, tmp_path):
    (tmp_path / "text").write_text("hello")
    assert is_tagger(path)
    assert not is_tagger(str(tmp_path / "text"))
    assert not is_tagger(str(tmp_path / "none"))
    assert not is_tagger(str(tmp_path))
    with pytest.raises(InputError, match="its format is not transduce-model"):
        load_model(path)


def test_only_built_in_features_can_be_stored(tmp_path):
    tokens, labels = [["a", "b"], ["c"]], [["x", "y"], ["x"]]
    own = TransductiveTagger(annealing=None, features=lambda tokens, i: [tokens[i]]).fit(tokens, labels)
    strings = TransductiveTagger(annealing=None).fit([[["f"], ["g"]], [["h"]]], labels)
    for tagger in (own, strings):
        with pytest.raises(ValueError, match="features='auto'"):
            save_tagger(tagger, str(tmp_path / "t.safetensors"))
    lines = TransductiveTagger(annealing=None).fit([["a\nb", "b"], ["c"]], labels)
    with pytest.raises(ValueError, match="line break"):
        save_tagger(lines, str(tmp_path / "t.safetensors"))
    assert list(tmp_path.iterdir()) == []


def changed(path, tmp_path, tensors=None, **values) -> str:
    """The file with other tensors or another description."""
    said = json.loads(read_metadata(path)["transduce"]) | values
    said = {key: value for key, value in said.items() if value is not ...}
    target = str(tmp_path / "changed.safetensors")
    save_file({**load_file(path), **(tensors or {})}, target, {"transduce": json.dumps(said)})
    return target


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"version": 2}, "Upgrade transduce"),
        ({"format": "other"}, "its format is not transduce-tagger"),
        ({"classes": ["a"]}, "shapes of 1 labels"),
        ({"classes": []}, "not names"),
        ({"classes": ["a", "a", "b", "c", "d"]}, "twice"),
        ({"classes": [1, 2, 3, 4, 5]}, "not names"),
        ({"loss": 3}, "'loss' of type str"),
        ({"loss": "cubic"}, "loss"),
        ({"scheme": "XYZ"}, "its scheme BIO, BIOES or null"),
        ({"scheme": []}, "its scheme BIO, BIOES or null"),
        ({"constraints": [3]}, "constraints must be texts"),
        ({"constraints": ["nothing: once"]}, "'nothing', which is not a label"),
        ({"constraints": ["what is this"]}, "not understood"),
        ({"about": 3}, "'about' of type dict"),
        ({"about": {"settings": 3}}, "'settings' of type dict"),
        ({"about": {"labelled_rows": {"salt": "x"}}}, "labelled_rows"),
        ({"about": ...}, "'about' of type dict"),
    ],
)
def test_other_descriptions_are_refused(values, expected, path, tmp_path):
    with pytest.raises(InputError, match=expected):
        load_tagger(changed(path, tmp_path, **values))


@pytest.mark.parametrize(
    ("tensors", "expected"),
    [
        ({"start": np.zeros(3)}, "shapes of 5 labels"),
        ({"coef": np.zeros((7, 5))}, "shape"),
        ({"coef": np.zeros(5)}, "do not fit together"),
        ({"transitions": np.full((5, 5), np.nan)}, "numbers from"),
        ({"transitions": np.full((5, 5), 1e200)}, "numbers from"),
        ({"end": np.zeros(5, np.uint8)}, "float"),
        ({"vocabulary": np.zeros(0, np.uint8)}, "shape"),
        ({"vocabulary": np.full(9, 255, np.uint8)}, "Unicode"),
        ({"more": np.zeros(2)}, "must hold the tensors"),
    ],
)
def test_other_tensors_are_refused(tensors, expected, path, tmp_path):
    with pytest.raises(InputError, match=expected):
        load_tagger(changed(path, tmp_path, tensors))


def test_a_feature_twice_is_refused(path, tmp_path):
    names = load_file(path)["vocabulary"].tobytes().split(b"\n")
    twice = np.frombuffer(b"\n".join([names[1], *names[1:]]), np.uint8)
    with pytest.raises(InputError, match="twice"):
        load_tagger(changed(path, tmp_path, {"vocabulary": twice}))


def test_cut_off_files_are_refused(path, tmp_path):
    content = (tmp_path / "tagger.safetensors").read_bytes()
    for n_bytes in (0, 4, 100, len(content) - 1):
        (tmp_path / "cut.safetensors").write_bytes(content[:n_bytes])
        with pytest.raises(InputError, match="not a usable model file"):
            load_tagger(str(tmp_path / "cut.safetensors"))
