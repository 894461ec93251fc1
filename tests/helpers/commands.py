"""Running commands in tests, and the example that most of them share."""

import hashlib
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import polars as pl

from helpers.documents import N_LABELED, N_ROWS
from transduce.cli.formats import read_table

EXACT_SIZES = {"auto_and_commute": 30, "banking": 40, "travel": 26}
N_UNLABELED = N_ROWS - N_LABELED
ADDED = ["confidence", "runner_up", "overruled", "given"]
"""Columns that `label` adds to a file with a label column."""
QUICK = ("--annealing", "none")


class CommandResult(NamedTuple):
    """Exit code, standard output and standard error of a command."""

    code: int
    out: str
    err: str


RunCommand = Callable[..., CommandResult]


class Example(NamedTuple):
    """A folder with a file of documents, its frame, and the table, model and report that `label` made of it."""

    folder: Path
    frame: pl.DataFrame
    file: Path
    out: Path
    model: Path
    report: Path


def read(path: object) -> pl.DataFrame:
    """The frame of a file."""
    return read_table(str(path)).frame


def sizes_of(frame: pl.DataFrame, label: str = "label") -> dict[str, int]:
    """Rows of each class among those whose label was not given."""
    return dict(frame.filter(pl.col("given").cast(pl.String) == "false")[label].value_counts().rows())


def digests(folder: Path) -> dict[str, str]:
    """Digests of all files in a folder."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def run_in_new_process(*arguments: object, code: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run the program, or Python code, in a new process."""
    first = ["-c", code] if code else ["-m", "transduce"]
    return subprocess.run([sys.executable, *first, *map(str, arguments)], capture_output=True, text=True, check=False)


def without_features(page: str) -> str:
    """A report without what needs features, which `transduce report` has not: the map, and documents to review."""
    page = re.sub('<section id="document_map">.*?</section>\n', "", page, flags=re.S)
    page = re.sub('<section id="uncertain">.*?</section>\n', "", page, flags=re.S)
    return page.replace('<li><a href="#document_map">Map</a></li>\n', "")
