"""Cells of a study, each computed once: a CSV keeps them, so that a run that was interrupted goes on where it was."""

import argparse
import csv
import os
from collections.abc import Callable, Iterable, Sequence
from multiprocessing import Pool
from pathlib import Path
from typing import Any

from benchmarks.data import data_folder

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def collect(
    path: Path,
    names: list[str],
    keys: list[str],
    tasks: Iterable[tuple],
    work: Callable[[tuple], list[tuple]],
    n_jobs: int,
) -> list[dict[str, Any]]:
    """Rows of all tasks; those whose first values are in the file already are not run again."""
    rows = read(path)
    done = {tuple(row[key] for key in keys) for row in rows}
    left = [task for task in tasks if tuple(str(value) for value in task[: len(keys)]) not in done]
    if left:
        path.parent.mkdir(parents=True, exist_ok=True)
        is_new = not path.exists()
        with path.open("a", newline="") as file, Pool(n_jobs) as pool:
            writer = csv.writer(file, lineterminator="\n")
            if is_new:
                writer.writerow(names)
            for number, found in enumerate(pool.imap_unordered(work, left), 1):
                writer.writerows(found)
                file.flush()
                print(
                    f"{number} of {len(left)}: {', '.join(str(value) for value in left[number - 1][: len(keys)])}",
                    flush=True,
                )
    return read(path)


def read(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def study(about: str | None, name: str, sets: Sequence[str], columns: list[str], work: Callable[[tuple], list[tuple]]):
    """Rows of a study over sets and splits, as the command line asks: run what is missing, or show what is there."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--data")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results" / f"{name}.csv")
    parser.add_argument("--show", action="store_true", help="show the results that are there")
    options = parser.parse_args()
    folder = "" if options.show else str(data_folder(options.data))
    tasks = [(each, seed, folder) for seed in range(options.splits) for each in sets if folder]
    return collect(options.results, ["set", "seed", *columns], ["set", "seed"], tasks, work, options.jobs)
