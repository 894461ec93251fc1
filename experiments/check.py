"""Stored results against this code: a few cells of each study, drawn at random, run again and compared.

A cell agrees if all its results but times are equal to the stored ones, up to TOLERANCE. So a table can be trusted, or
distrusted, without running the hours of work behind it again.
"""

import math
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.cells import Row, module, origin, run_all, shown
from experiments.data import Source
from experiments.study import markdown

TOLERANCE = 1e-3
"""Largest absolute difference of results that agree: libraries of other versions add up in another order."""


def check(
    grids: Mapping[str, list[Row]], source: Source, folder: Path, n_cells: int, seed: int, n_jobs: int
) -> tuple[str, bool]:
    """Run cells of each study again; return a table of how many agree, and whether all do.

    Studies of times are left out, and those whose data are missing.
    """
    draw, stored, tasks = random.Random(seed), {}, []
    for name, grid in grids.items():
        study, runs = module(name), _runs(name, shown(name, folder, grid, origin(source)))
        cells = [] if getattr(study, "ALONE", False) else draw.sample(sorted(runs), min(n_cells, len(runs)))
        own = [(name, source, {key: runs[cell][0][key] for key in study.KEYS}) for cell in cells]
        if own and not (hasattr(study, "unready") and study.unready(source, [cell for _, _, cell in own])):
            stored[name] = runs
            tasks += own
    found: dict[str, list[tuple[float, str]]] = {name: [] for name in stored}

    def compare(name: str, rows: list[Row]) -> None:
        found[name].append(largest_difference(name, stored[name][_cell(name, rows[0])], rows))

    run_all(tasks, n_jobs, compare)
    lines = [[name, len(stored[name]), *_summary(some)] for name, some in found.items()]
    head = ["study", "cells", "run again", "agree", "largest difference", "in"]
    n_agree = sum(line[3] for line in lines)
    return markdown(head, [[str(value) for value in line] for line in lines]), n_agree == len(tasks)


def largest_difference(name: str, before: Sequence[Row], now: Sequence[Row]) -> tuple[float, str]:
    """The largest difference of a result of a cell, and its column; infinite if texts or numbers of rows differ."""
    worst = (0.0, "")
    if len(before) != len(now):
        return math.inf, "number of rows"
    columns = [column for column in module(name).RESULTS if "seconds" not in column]
    for old, new in zip(before, now, strict=True):
        for column in columns:
            difference = _difference(old[column], new.get(column, ""))
            difference = math.inf if math.isnan(difference) else difference
            worst = (difference, column) if difference > worst[0] else worst
    return worst


def _difference(old: Any, new: Any) -> float:
    """The absolute difference of two numbers, NaN equal to NaN; of anything else 0 if it reads the same."""
    if isinstance(old, int | float) and isinstance(new, int | float):
        old, new = float(old), float(new)
        return 0.0 if old == new or (math.isnan(old) and math.isnan(new)) else abs(old - new)
    return 0.0 if str(old) == str(new) else math.inf


def _summary(found: Sequence[tuple[float, str]]) -> tuple[Any, ...]:
    """How many cells ran and agree, and the largest difference with its column."""
    worst, column = max(found, default=(math.nan, "every cell failed"))
    return len(found), sum(difference <= TOLERANCE for difference, _ in found), f"{worst:.2g}", column if worst else ""


def _cell(name: str, row: Row) -> tuple[str, ...]:
    return tuple(str(row[key]) for key in module(name).KEYS)


def _runs(name: str, rows: Sequence[Row]) -> dict[tuple[str, ...], list[Row]]:
    runs: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        runs.setdefault(_cell(name, row), []).append(row)
    return runs
