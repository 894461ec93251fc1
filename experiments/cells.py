"""Cells of the studies, each computed once: a CSV keeps them, with the version of the code that they came from.

A run that was interrupted goes on where it was. A cell is run again when its parameters are new, or when the code that
it depends on has changed.
"""

import csv
import importlib
import os
import signal
import time
import warnings
from collections.abc import Iterable, Sequence
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from typing import Any

from experiments.data import Source
from experiments.versions import version

Row = dict[str, Any]
Task = tuple[str, Source, Row]
KEPT = ("cell_seconds", "version")


def module(name: str) -> ModuleType:
    return importlib.import_module(f"experiments.{name}")


def read(path: Path) -> list[Row]:
    """Rows of a CSV, numbers as numbers; one that was cut off is none."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        whole = [row for row in csv.DictReader(file) if None not in row.values()]
    return [{name: _value(text) for name, text in row.items()} for row in whole]


def missing(name: str, cells: Sequence[Row], rows: Sequence[Row], any_version: bool) -> list[Row]:
    """Cells that no row stands for; rows of other code count only where any version will do."""
    study = module(name)
    done = {_key(study, row) for row in rows if any_version or row["version"] == version(study, row)}
    return [cell for cell in cells if _key(study, cell) not in done]


def collect(tasks: Sequence[Task], folder: Path, n_jobs: int) -> None:
    """Run the cells of any studies and add their rows to the files in the folder, as they come."""
    folder.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    with get_context("spawn").Pool(n_jobs, _alone) as pool:
        try:
            for number, (name, cell, rows) in enumerate(pool.imap_unordered(_work, tasks), 1):
                _append(name, folder, rows)
                told = ", ".join(str(value) for value in cell.values())
                left = (time.monotonic() - begin) / number * (len(tasks) - number)
                print(f"{number} of {len(tasks)}: {name}: {told}; about {left / 60:.0f} min left", flush=True)
        except KeyboardInterrupt:
            pool.terminate()
            raise


def tidy(name: str, folder: Path, cells: Iterable[Row]) -> list[Row]:
    """Write the file anew: one set of rows a cell, the last that came, in the order of the grid; return them."""
    study, path = module(name), folder / f"{name}.csv"
    last: dict[tuple, list[Row]] = {}
    for row in read(path):
        mine = last.setdefault(_key(study, row), [])
        if mine and mine[0]["version"] != row["version"]:
            mine.clear()
        mine.append(row)
    rows = [row for cell in cells for row in last.get(_key(study, cell), [])]
    if rows:
        fresh = path.with_suffix(".new")
        with fresh.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, _columns(study), lineterminator="\n", extrasaction="ignore")
            writer.writeheader()
            writer.writerows(rows)
        fresh.replace(path)
    return rows


def _alone() -> None:
    """A worker has one core, and leaves Ctrl-C to the one who started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
    warnings.simplefilter("ignore")  # peers warn of classes with few labels, ours of class sizes that are wrong


def _work(task: Task) -> tuple[str, Row, list[Row]]:
    name, source, cell = task
    study, begin = module(name), time.perf_counter()
    found = study.run(source, cell)
    more = {"cell_seconds": round(time.perf_counter() - begin, 3), "version": version(study, cell)}
    return name, cell, [{**cell, **row, **more} for row in found]


def _append(name: str, folder: Path, rows: list[Row]) -> None:
    path, study = folder / f"{name}.csv", module(name)
    is_new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        if not is_new and not path.read_bytes().endswith(b"\n"):
            file.write("\n")  # a row was cut off
        writer = csv.DictWriter(file, _columns(study), lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerows(rows)


def _columns(study: ModuleType) -> list[str]:
    return [*study.KEYS, *study.RESULTS, *KEPT]


def _key(study: ModuleType, row: Row) -> tuple:
    return tuple(str(row[name]) for name in study.KEYS)


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text
