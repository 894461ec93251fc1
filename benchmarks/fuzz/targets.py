"""What is fuzzed: a reader, files that it accepts, and what must be true of what it returns."""

import csv
import gzip
import io
import json
import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import click
import numpy as np
import polars as pl
import zstandard
from scipy import sparse

from transduce.cli.commands.label import label
from transduce.cli.config import use_config
from transduce.cli.features import read_vectors
from transduce.cli.formats import Table, delimited, labels_of, read_table, texts_of, write_table
from transduce.cli.main import cli
from transduce.errors import InputError
from transduce.features.tfidf import Features, fit_vectorizer
from transduce.io.checkpoint import Checkpoint
from transduce.io.memmap import open_rows, pack_rows
from transduce.model_file import Model, load_model, save_model

CSV = 'text,label\n"a ""b""\nc",x\nü,\n=1+1,"-y"\n'.encode()
JSON_LINES = b'{"text": "\\ud83d\\ude00", "n": [1, 2.5e3], "o": {"k": null}}\n{"text": "b", "label": ["x", "y"]}\n'
TASKS = b'[{"id": 1, "data": {"text": "a"}, "annotations": [{"result": [{"value": {"choices": ["a"]}}]}]}]'
TABLE = Table("teas.csv", pl.DataFrame({"text": ["a", "b", "c"]}), "csv")


@dataclass(frozen=True)
class Target:
    """Files that are accepted, and a function that reads a file or raises one of the errors that say why not."""

    seeds: Callable[[], list[bytes]]
    read: Callable[[bytes, Path], None]
    errors: tuple[type[Exception], ...] = (InputError,)
    share: float = 1.0
    """Of the inputs of other targets: less where each one takes long."""


def _read_table(suffix: str) -> Callable[[bytes, Path], None]:
    def read(data: bytes, folder: Path) -> None:
        path = folder / f"in.{suffix}"
        path.write_bytes(data)
        table = read_table(str(path))
        frame = table.frame
        assert frame.height > 0
        for column in frame.columns:
            assert len(texts_of(table, [column])) == frame.height
            with suppress(InputError):  # an object is no label
                assert len(labels_of(table, column)) == frame.height
        if all(dtype == pl.String for dtype in frame.dtypes):
            for name in ("out.jsonl", "out.csv"):
                write_table(frame, str(folder / name), keep_formulas=True)
                assert read_table(str(folder / name)).frame.rows() == frame.rows(), "a cell was altered"
        if suffix in ("csv", "tsv"):
            assert _cells(data, suffix) == frame.rows(), "a cell was not read as written"

    return read


def _cells(data: bytes, suffix: str) -> list[tuple[str, ...]]:
    """Cells of a table below its header, by the csv module; the separator is that of the first line."""
    text = data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    separator = "\t" if suffix == "tsv" else delimited._separator(text)
    rows = [tuple(row) for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator) if row]
    return rows[1:]


def _parquet() -> list[bytes]:
    file = io.BytesIO()
    pl.DataFrame({"a": ["x", "y"], "f": [0.5, 1e300], "l": [[1.0], [2.0]]}).write_parquet(file)
    return [file.getvalue()]


@cache
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


def _read_model(data: bytes, folder: Path) -> None:
    (folder / "m.safetensors").write_bytes(data)
    model = load_model(str(folder / "m.safetensors"))
    assert np.isfinite(model.coef).all()


_STORE = ("rows.json", "indptr.bin", "indices.bin", "data.bin")


@cache
def _stores() -> list[bytes]:
    """Packed rows as one input: the length of each file, then their content; with and without a digest."""
    with tempfile.TemporaryDirectory() as folder:
        pack_rows([sparse.random(20, 9, 0.3, format="csr", random_state=0)], f"{folder}/rows")
        files = [Path(folder, "rows", name).read_bytes() for name in _STORE]
    header = json.loads(files[0])
    del header["digest"]
    return [_joined(files), _joined([json.dumps(header).encode(), *files[1:]])]


def _joined(files: list[bytes]) -> bytes:
    return b"".join(b"%8d" % len(file) + file for file in files)


def _split(data: bytes) -> list[bytes]:
    files = []
    for _ in _STORE:
        length = int(data[:8]) if data[:8].strip().isdigit() else 0
        files.append(data[8 : 8 + length])
        data = data[8 + length :]
    return files


def _read_store(data: bytes, folder: Path) -> None:
    (folder / "rows").mkdir(exist_ok=True)
    for name, content in zip(_STORE, _split(data), strict=True):
        (folder / "rows" / name).write_bytes(content)
    X = open_rows(folder / "rows")
    assert np.isfinite(float(abs(X.copy()).sum())) or not np.isfinite(X.data).all()


@cache
def _stages() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder, Checkpoint.open(f"{folder}/fit", "one", [1, 2]) as checkpoint:
        checkpoint.slot("restart 0").save({"W": np.ones((3, 2))}, {"round": 1})
        return [Path(folder, "fit", "restart 0.stage").read_bytes()]


def _read_stage(data: bytes, folder: Path) -> None:
    with warnings.catch_warnings(), Checkpoint.open(folder / "fit", "one", [1, 2]) as checkpoint:
        warnings.simplefilter("ignore")
        (folder / "fit" / "restart 0.stage").write_bytes(data)
        stage = checkpoint.slot("restart 0").load()
    assert stage is None or data in _stages()


@cache
def _headers() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        with Checkpoint.open(f"{folder}/fit", "one", [1, 2]):
            pass
        return [Path(folder, "fit", "fit.json").read_bytes()]


def _read_header(data: bytes, folder: Path) -> None:
    (folder / "fit").mkdir(exist_ok=True)
    (folder / "fit" / "fit.json").write_bytes(data)
    with Checkpoint.open(folder / "fit", "one", [3, 4]) as checkpoint:
        assert checkpoint.seeds == (1, 2)


def _arrays() -> list[bytes]:
    dense, packed = io.BytesIO(), io.BytesIO()
    np.save(dense, np.eye(3, 4, dtype=np.float32))
    sparse.save_npz(packed, sparse.csr_matrix(np.eye(3, 4)))
    return [dense.getvalue(), packed.getvalue()]


def _read_arrays(data: bytes, folder: Path) -> None:
    name = str(folder / ("v.npz" if data[:2] == b"PK" else "v.npy"))
    Path(name).write_bytes(data)
    rows = read_vectors(name, TABLE)
    assert rows.shape[0] == 3


def _read_config(data: bytes, folder: Path) -> None:
    (folder / "c.toml").write_bytes(data)
    context = click.Context(label, info_name="label", parent=click.Context(cli, info_name="transduce"))
    use_config(context, label.params[0], str(folder / "c.toml"))


TARGETS: dict[str, Target] = {
    "csv": Target(lambda: [CSV, b"a;b\n1;2\n", "\ufeffa,b\n1,2\n".encode("utf-16")], _read_table("csv")),
    "tsv": Target(lambda: [CSV.replace(b",", b"\t")], _read_table("tsv")),
    "jsonl": Target(lambda: [JSON_LINES], _read_table("jsonl")),
    "json": Target(lambda: [TASKS, b"[" + JSON_LINES.replace(b"\n", b",", 1) + b"]"], _read_table("json")),
    "svm": Target(lambda: [b"1 1:0.5 3:-2e1 # c\n-1 qid:3 2:1\n0 1:1\n"], _read_table("svm")),
    "csv.gz": Target(lambda: [gzip.compress(CSV), gzip.compress(b"a" * 100_000)], _read_table("csv.gz")),
    "csv.zst": Target(lambda: [zstandard.compress(CSV), zstandard.compress(b"a" * 10**6)], _read_table("csv.zst")),
    "parquet": Target(_parquet, _read_table("parquet"), share=0.01),
    "model": Target(_models, _read_model),
    "store": Target(_stores, _read_store, (ValueError,)),
    "stage": Target(_stages, _read_stage, ()),
    "fit.json": Target(_headers, _read_header, (ValueError,)),
    "vectors": Target(_arrays, _read_arrays),
    "config": Target(lambda: [b'[label]\nprior = ["a=0.5"]\nseed = 3\n'], _read_config),
}
