"""One bad input, and functions that make such files."""

import io
import json
import re
import shlex
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from safetensors.numpy import load, save
from scipy import sparse

Content = bytes | str | Callable[[Path], object]

GOOD = "text,label\ngreen tea with milk,tea\nblack coffee to go,coffee\nanother cup of tea,\na mug of coffee,\n"
"""Two labelled rows and two that are not."""
FULL = "text,label\ngreen tea with milk,tea\nblack coffee to go,coffee\n"
LONG = "a text that is long enough to be one"
TREE = GOOD.replace(",tea", ",hot/tea").replace(",coffee", ",hot/coffee")
LABEL, PREDICT = "label documents.csv -o out.csv ", "predict m.safetensors documents.csv -o out.csv "
ASSUMED = re.compile(
    r"Using column |Note: |Class sizes: |\d+ answers? from |Reading \d+ texts|\d+ labelled rows, |"
    r"\S+ holds no results "
)
"""Messages that may precede the error."""


@dataclass(frozen=True)
class Case:
    """The command, what its last line must match, and the files to create besides the valid ones."""

    typed: str
    expected: str
    files: dict[str, Content]
    stdin: bytes = b""


def case(typed: str, expected: str, stdin: bytes = b"", **files: Content) -> Case:
    """Names of files are keywords, with "__" for the dot and "___" for the slash."""
    named = {name.replace("___", "/").replace("__", "."): content for name, content in files.items()}
    return Case(typed, expected, named, stdin)


def on_file(name: str, content: Content, expected: str, options: str = "") -> Case:
    """The main job on a bad file, named in the sentence."""
    return Case(f"label {shlex.quote(name)} -o out.csv {options}", f"{re.escape(name)}{expected}", {name: content})


def written(frame: pl.DataFrame, *, cut: int | None = None) -> bytes:
    """A frame as Parquet."""
    file = io.BytesIO()
    frame.write_parquet(file)
    return file.getvalue()[:cut]


def numpy_file(array: object) -> bytes:
    file = io.BytesIO()
    np.save(file, np.asarray(array), allow_pickle=True)
    return file.getvalue()


def numpy_archive(**arrays: object) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def zipped(name: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, "nothing")
    return file.getvalue()


def saved_sparse(n_rows: int) -> bytes:
    file = io.BytesIO()
    sparse.save_npz(file, sparse.random(n_rows, 5, 0.5, format="csr", random_state=0))
    return file.getvalue()


def changed_model(change: Callable[[dict[str, object], dict[str, np.ndarray]], object]) -> Callable[[Path], object]:
    """A model file of its own with something changed in its description or its tensors."""

    def write(path: Path) -> None:
        whole = path.with_name("m.safetensors").read_bytes()
        header = json.loads(whole[8 : 8 + int.from_bytes(whole[:8], "little")])
        description, tensors = json.loads(header["__metadata__"]["transduce"]), load(whole)
        change(description, tensors)
        path.write_bytes(save(tensors, {"transduce": json.dumps(description)}))

    return write


def cut_model(fraction: float) -> Callable[[Path], object]:
    def write(path: Path) -> None:
        whole = path.with_name("m.safetensors").read_bytes()
        path.write_bytes(whole[: int(len(whole) * fraction)])

    return write


def link(to: str) -> Callable[[Path], object]:
    return lambda path: path.symlink_to(to)


def folder(path: Path) -> None:
    path.mkdir()


def folder_of(*names: str) -> Callable[[Path], object]:
    def write(path: Path) -> None:
        path.mkdir()
        for name in names:
            (path / name).write_text(GOOD)

    return write


def studio(*tasks: dict[str, object]) -> bytes:
    return json.dumps([{"id": 1, "data": {"text": "a good cup of tea"}, **task} for task in tasks]).encode()


def choice(*names: object, key: str = "choices") -> dict[str, object]:
    return {"annotations": [{"result": [{"value": {key: list(names)}}]}]}
