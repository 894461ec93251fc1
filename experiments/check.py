"""Stored results against this code: a few cells of each study, drawn at random, run again and compared.

A cell agrees if all its results but times are equal to the stored ones, up to TOLERANCE. So a table can be trusted, or
distrusted, without running the hours of work behind it again. What a check finds is kept in checks.csv with the version
of the code, and the page of the reproduction says so.
"""

import csv
import json
import math
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from experiments.cells import Row, module, origin, run_all, shown
from experiments.data import Source
from experiments.study import markdown
from experiments.versions import version

TOLERANCE = 1e-3
"""Largest difference of results that agree, relative to those above 1: libraries of other versions add up in another
order."""
FILE = "checks.csv"


class Checked(NamedTuple):
    """A cell that was run again.

    cell        its KEYS as JSON
    stored      version of the results that were stored
    version     version of the code that ran it again
    difference  the largest one of a result, and the column of that
    """

    study: str
    cell: str
    stored: str
    version: str
    difference: float
    column: str

    @property
    def agrees(self) -> bool:
        """Whether the results are those that were stored."""
        return self.difference <= TOLERANCE

    @property
    def is_present(self) -> bool:
        """Whether it was the present code that ran the cell again."""
        return self.version == version(module(self.study), json.loads(self.cell))


def check(
    grids: Mapping[str, list[Row]], source: Source, folder: Path, n_cells: int, seed: int, n_jobs: int
) -> tuple[list[Checked], int]:
    """Run cells of each study again; return what was found, and how many cells failed.

    Studies of times are left out, and cells whose data are missing.
    """
    draw, stored, tasks = random.Random(seed), {}, []
    for name, grid in grids.items():
        study, runs = module(name), _runs(name, shown(name, folder, grid, origin(source)))
        cells = [{key: runs[cell][0][key] for key in study.KEYS} for cell in sorted(runs)]
        cells = [cell for cell in cells if not getattr(study, "ALONE", False) and _is_ready(study, source, cell)]
        stored[name] = runs
        tasks += [(name, source, cell) for cell in draw.sample(cells, min(n_cells, len(cells)))]
    found: list[Checked] = []

    def compare(name: str, rows: list[Row]) -> None:
        difference, column = largest_difference(name, stored[name][_cell(name, rows[0])], rows)
        before = str(stored[name][_cell(name, rows[0])][0]["version"])
        found.append(Checked(name, _json(name, rows[0]), before, str(rows[0]["version"]), difference, column))

    n_failed = run_all(tasks, n_jobs, compare)
    return sorted(found), n_failed


def _is_ready(study: ModuleType, source: Source, cell: Row) -> bool:
    return not (hasattr(study, "unready") and study.unready(source, [cell]))


def table(found: Sequence[Checked]) -> str:
    """How many cells of each study agree, in Markdown."""
    lines = []
    for name in dict.fromkeys(one.study for one in found):
        own = [one for one in found if one.study == name]
        worst = max(own, key=lambda one: one.difference)
        n_agree = sum(one.agrees for one in own)
        lines.append([name, str(len(own)), str(n_agree), f"{worst.difference:.2g}", worst.column])
    return markdown(["study", "run again", "agree", "largest difference", "in"], lines)


def record(found: Sequence[Checked], folder: Path) -> None:
    """Keep what a check found, in place of what earlier ones found of the same cells."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = {(one.study, one.cell): one for one in [*recorded(folder), *found]}
    fresh = (folder / FILE).with_suffix(".new")
    with fresh.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([Checked._fields, *(kept[key] for key in sorted(kept))])
    fresh.replace(folder / FILE)


def recorded(folder: Path) -> list[Checked]:
    """What checks have found of results in this folder."""
    if not (folder / FILE).exists():
        return []
    with (folder / FILE).open(newline="", encoding="utf-8") as file:
        return [Checked(**row | {"difference": float(row["difference"])}) for row in csv.DictReader(file)]


def run_again(folder: Path, shown: Mapping[str, Sequence[Row]]) -> dict[str, list[Checked]]:
    """What the present code has found of the results of studies that are shown, unless these are newer."""
    stored = {(name, _json(name, row)): str(row["version"]) for name, rows in shown.items() for row in rows}
    found: dict[str, list[Checked]] = {}
    for one in recorded(folder):
        if one.stored == stored.get((one.study, one.cell)) and one.is_present:
            found.setdefault(one.study, []).append(one)
    return found


def largest_difference(name: str, before: Sequence[Row], now: Sequence[Row]) -> tuple[float, str]:
    """The largest difference of a result of a cell, and its column; infinite if texts or numbers of rows differ."""
    worst = (0.0, "")
    if len(before) != len(now):
        return math.inf, "number of rows"
    columns = [column for column in module(name).RESULTS if "seconds" not in column]
    for old, new in zip(before, now, strict=True):
        for column in columns:
            value = new.get(column)
            difference = _difference(old[column], "" if value is None else value)  # a file has no None
            difference = math.inf if math.isnan(difference) else difference
            worst = (difference, column) if difference > worst[0] else worst
    return worst


def _difference(old: Any, new: Any) -> float:
    """The difference of two numbers, relative to the old one if that is above 1; NaN is equal to NaN.

    Of anything else 0 if it reads the same, and infinity if not.
    """
    if isinstance(old, int | float) and isinstance(new, int | float):
        old, new = float(old), float(new)
        is_same = old == new or (math.isnan(old) and math.isnan(new))
        return 0.0 if is_same else abs(old - new) / max(1.0, abs(old))
    return 0.0 if str(old) == str(new) else math.inf


def _json(name: str, row: Row) -> str:
    return json.dumps({key: row[key] for key in module(name).KEYS})


def _cell(name: str, row: Row) -> tuple[str, ...]:
    return tuple(str(row[key]) for key in module(name).KEYS)


def _runs(name: str, rows: Sequence[Row]) -> dict[tuple[str, ...], list[Row]]:
    runs: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        runs.setdefault(_cell(name, row), []).append(row)
    return runs
