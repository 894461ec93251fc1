"""Model files that earlier versions of the code wrote are loaded, and predict the labels that they predicted then.

tests/data/models has the files, and in predictions.json what the code that wrote them predicted for texts.csv, or
for vectors.npy if the model is one of vectors.
"""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from transduce.cli.main import run
from transduce.features import FunctionEncoder
from transduce.model_file import FORMAT, VERSION, load_model, save_model
from transduce.text import TextClassifier

FOLDER = Path(__file__).parent / "data" / "models"
EXPECTED = json.loads((FOLDER / "predictions.json").read_text())
with open(FOLDER / "texts.csv", newline="") as file:
    TEXTS = [row["text"] for row in csv.DictReader(file)]


def letters(texts):
    """The encoder of the models of vectors of texts."""
    return [[1.0, *(text.count(letter) for letter in "aeiou")] for text in texts]


def format_version(name):
    """The version of the format that a file states."""
    data = (FOLDER / f"{name}.safetensors").read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    description = json.loads(header["__metadata__"]["transduce"])
    assert description["format"] == FORMAT
    return description["version"]


def test_there_is_a_file_of_every_version_of_the_format():
    assert {path.stem for path in FOLDER.glob("*.safetensors")} == set(EXPECTED)
    assert {format_version(name) for name in EXPECTED} == set(range(1, VERSION + 1))


@pytest.mark.parametrize("name", EXPECTED)
def test_the_model_predicts_what_it_predicted_then(name, tmp_path):
    model, path = load_model(str(FOLDER / f"{name}.safetensors")), tmp_path / "again.safetensors"
    labels, confidence = predict(FOLDER / f"{name}.safetensors", model.vectorizer.features.kind, tmp_path)
    assert labels == EXPECTED[name]["label"]
    assert np.allclose(confidence, EXPECTED[name]["confidence"], atol=2e-4)
    save_model(model, str(path))
    assert predict(path, model.vectorizer.features.kind, tmp_path) == (labels, confidence)


def predict(path, kind, tmp_path):
    """Labels and confidences of a model file."""
    if kind in ("embeddings", "mix"):
        clf = TextClassifier.load(path, encoder=FunctionEncoder(letters), cache=False)
        return clf.predict(TEXTS).tolist(), clf.predict_proba(TEXTS).max(axis=1).tolist()
    out, rows = tmp_path / "out.csv", FOLDER / "texts.csv"
    vectors = []
    if kind == "vectors":
        rows, vectors = tmp_path / "rows.csv", ["--vectors", str(FOLDER / "vectors.npy")]
        rows.write_text("row\n" + "".join(f"{i}\n" for i in range(len(np.load(FOLDER / "vectors.npy")))))
    assert run(["predict", str(path), str(rows), *vectors, "-o", str(out), "--quiet"]) == 0
    with open(out, newline="") as file:
        found = list(csv.DictReader(file))
    return [row["label"] for row in found], [float(row["confidence"]) for row in found]
