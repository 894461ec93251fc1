"""transduce inspect: classes, words and settings."""

import json

import pytest
from helpers.commands import EXACT_SIZES, QUICK
from helpers.documents import DOMAINS, documents

import transduce
from transduce.cli.formats import write_table
from transduce.model_file import load_model


def test_inspect_shows_classes_words_and_settings(example, run_ok):
    text = run_ok("inspect", example.model).out
    for shown in (
        *DOMAINS,
        "loss: hinge",
        "annealing: paper",
        "flat: no, text: text",
        "seed 0",
        "documents.csv",
        transduce.__version__,
        "sizes were stated",
    ):
        assert shown in text
    found = json.loads(run_ok("inspect", example.model, "--json", "--words", 3).out)
    assert {one["class"]: one["assigned"] for one in found["classes"]} == EXACT_SIZES
    assert found["settings"]["alpha"] == 1e-3
    assert "labelled_rows" not in found
    assert [len(one["words"]) for one in found["classes"]] == [3, 3, 3]
    vocabulary = set(load_model(str(example.model)).vectorizer.vocabulary)
    assert all(word in vocabulary for one in found["classes"] for word in one["words"])
    assert json.loads(run_ok("inspect", example.model, "--json", "--words", 0).out)["classes"][0]["words"] == []


def test_no_training_text_is_in_the_model(example, run_ok):
    content = example.model.read_bytes() + run_ok("inspect", example.model, "--words", 1000).out.encode()
    sentences = [text for text in example.frame["text"] if len(text.split()) > 2]
    assert len(sentences) > 100
    assert not [text for text in sentences if text.encode() in content]


@pytest.mark.parametrize("features", ["hashing", "vectors"])
def test_missing_words_are_explained(run_command, tmp_path, features):
    name = "documents.svm" if features == "vectors" else "documents.csv"
    write_table(documents(), str(tmp_path / "documents.csv"))
    (tmp_path / "documents.svm").write_text("1 1:1\n2 2:1\n0 1:1 2:2\n0 1:2 2:1\n")
    options = ("--features", "hashing") if features == "hashing" else ()
    model = tmp_path / "m.safetensors"
    run_command("label", tmp_path / name, "-o", tmp_path / "o.csv", "--model", model, *QUICK, *options)
    assert "(no words: " in run_command("inspect", model).out
    assert run_command("inspect", model, "--quiet") == (0, "", "")
