"""Every bad input ends with exit code 2 and one sentence that names the cause and a remedy, and leaves no file."""

import io
import os
import re
import shlex
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers.bad_inputs import CASES
from helpers.bad_inputs.case import (
    ASSUMED,
    Content,
)
from helpers.documents import documents, vectors_of

from transduce.cli.formats import write_table
from transduce.cli.main import run


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A documents, and a model of its texts and one of vectors."""
    place = tmp_path_factory.mktemp("good")
    frame = documents()
    write_table(frame, str(place / "documents.csv"))
    np.save(place / "vectors.npy", vectors_of(frame))
    typed = [
        "label",
        str(place / "documents.csv"),
        "--quiet",
        "--annealing",
        "none",
        "-o",
        str(place / "done.csv"),
        "--model",
    ]
    assert run([*typed, str(place / "m.safetensors")]) == 0
    assert run([*typed, str(place / "v.safetensors"), "--vectors", str(place / "vectors.npy")]) == 0
    return place


def contents(place: Path) -> dict[str, object]:
    """The content of a folder: bytes of files, targets of links."""
    return {
        path.relative_to(place).as_posix(): os.readlink(path)
        if path.is_symlink()
        else path.is_file() and path.read_bytes()
        for path in place.rglob("*")
    }


def lay(place: Path, files: dict[str, Content]) -> None:
    for name, content in files.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            path.write_bytes(content.encode())
        elif isinstance(content, bytes):
            path.write_bytes(content)
        else:
            content(path)


def test_cases_are_distinct():
    assert len(CASES) >= 100
    assert len({(one.typed, str(one.files), one.stdin) for one in CASES.values()}) == len(CASES)


@pytest.mark.parametrize("name", CASES)
def test_the_error_is_one_sentence_and_no_file_is_left(name, good, tmp_path, monkeypatch, capsys):
    one = CASES[name]
    for file in ("documents.csv", "m.safetensors", "v.safetensors"):
        shutil.copy(good / file, tmp_path)
    lay(tmp_path, one.files)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(one.stdin)))
    before = contents(tmp_path)
    code = run(shlex.split(one.typed))
    out, err = capsys.readouterr()
    *messages, last = err.splitlines()
    assert code == 2
    assert out == ""
    assert last.startswith("transduce: ")
    assert re.search(one.expected, last), last
    assert all(ASSUMED.match(line) for line in messages)
    assert contents(tmp_path) == before
