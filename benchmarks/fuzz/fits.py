"""What a fit leaves on the disk as fuzz targets: the model, packed rows, and the files of a checkpoint."""

import json
import tempfile
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse

from benchmarks.fuzz.target import TARGETS, joined, split, target
from transduce.features.tfidf import Features, fit_vectorizer
from transduce.io.checkpoint import Checkpoint
from transduce.io.memmap import open_rows, pack_rows
from transduce.model_file import Model, load_model, save_model

STORE = ("rows/rows.json", "rows/indptr.bin", "rows/indices.bin", "rows/data.bin")


def _models() -> list[bytes]:
    texts = ["green tea", "black tea", "black coffee", "thé vert"]
    vectorizer, _ = fit_vectorizer(texts, Features())
    counts = dict.fromkeys(("labelled", "asked_low", "asked_high", "assigned", "own"), 3)
    sizes = [{"class": name, **counts, "texts_low": 0.1, "texts_high": 0.5, "price": 0.0} for name in ("tea", "coffee")]
    about = {
        **dict.fromkeys(("transduce", "created", "source", "prior", "ending"), "x"),
        "seed": 0, "n_labelled": 3, "n_unlabelled": 9, "seconds": 1.0, "settings": {"text": ["text"]}, "sizes": sizes,
        "history": [], "interrupted": False,
    }  # fmt: skip
    numbers = (np.ones(shape, np.float32) for shape in ((2, vectorizer.n_columns), 2, 2))
    model = Model(("tea", "coffee"), *numbers, vectorizer, False, "hinge", about)
    with tempfile.TemporaryDirectory() as folder:
        save_model(model, f"{folder}/m.safetensors")
        return [Path(folder, "m.safetensors").read_bytes()]


@target("model", _models)
def _read_model(data: bytes, folder: Path) -> None:
    (folder / "m.safetensors").write_bytes(data)
    model = load_model(str(folder / "m.safetensors"))
    assert np.isfinite(model.coef).all()


def _stores() -> list[bytes]:
    """Packed rows with and without a digest."""
    with tempfile.TemporaryDirectory() as folder:
        pack_rows([sparse.random(20, 9, 0.3, format="csr", random_state=0)], f"{folder}/rows")
        files = [Path(folder, name).read_bytes() for name in STORE]
    header = json.loads(files[0])
    del header["digest"]
    return [joined(files), joined([json.dumps(header).encode(), *files[1:]])]


@target("store", _stores, (ValueError,))
def _read_store(data: bytes, folder: Path) -> None:
    split(data, folder, STORE)
    X = open_rows(folder / "rows")
    assert np.isfinite(float(abs(X.copy()).sum())) or not np.isfinite(X.data).all()


def _stages() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder, Checkpoint.open(f"{folder}/fit", "one", [1, 2]) as checkpoint:
        checkpoint.slot("restart 0").save({"W": np.ones((3, 2))}, {"round": 1})
        return [Path(folder, "fit", "restart 0.stage").read_bytes()]


@target("stage", _stages, ())
def _read_stage(data: bytes, folder: Path) -> None:
    with warnings.catch_warnings(), Checkpoint.open(folder / "fit", "one", [1, 2]) as checkpoint:
        warnings.simplefilter("ignore")
        (folder / "fit" / "restart 0.stage").write_bytes(data)
        stage = checkpoint.slot("restart 0").load()
    assert stage is None or data in TARGETS["stage"].seeds


def _headers() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        with Checkpoint.open(f"{folder}/fit", "one", [1, 2]):
            pass
        return [Path(folder, "fit", "fit.json").read_bytes()]


@target("fit.json", _headers, (ValueError,))
def _read_header(data: bytes, folder: Path) -> None:
    (folder / "fit").mkdir(exist_ok=True)
    (folder / "fit" / "fit.json").write_bytes(data)
    with Checkpoint.open(folder / "fit", "one", [3, 4]) as checkpoint:
        assert checkpoint.seeds == (1, 2)
