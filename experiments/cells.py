"""Cells of the studies, each computed once and stored in a CSV file with the version of the code that computed it.

An interrupted run resumes where it stopped. A cell runs again when its parameters are new, or when the code that it
depends on has changed. Cells of real data and of the built-in corpus are stored separately, by their source.
"""

import csv
import importlib
import io
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from filelock import FileLock, Timeout

from experiments.data import Source
from experiments.versions import version

Row = dict[str, Any]
Task = tuple[str, Source, Row]
DATA, SMOKE = "data", "smoke"
COMMON_COLUMNS = ("source", "cell_rows", "cell_seconds", "version")
"""Columns of every file: where rows come from, the rows and seconds of their cell, and the version of its code."""
DEFAULTS = {"source": DATA, "cell_rows": "", "cell_seconds": 0.0, "version": ""}
"""Values for files without these columns; their cells count as complete."""
TEXTS = ("source", "version")
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


class WorkerError(Exception):
    """A worker was killed."""


def module(name: str) -> ModuleType:
    return importlib.import_module(f"experiments.{name}")


def origin(source: Source) -> str:
    """Value of the column "source" for rows of this source."""
    return SMOKE if source.folder is None else DATA


def read(path: Path) -> list[Row]:
    """Read the rows of a CSV, converting numbers; a truncated row is skipped."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        whole = [row for row in csv.DictReader(file) if None not in row and None not in row.values()]
    return [DEFAULTS | {name: text if name in TEXTS else _value(text) for name, text in row.items()} for row in whole]


def missing(name: str, cells: Sequence[Row], rows: Sequence[Row], any_version: bool, source: str = DATA) -> list[Row]:
    """Cells without a complete run by this version of the code, or by any version if `any_version`."""
    study = module(name)
    done = {
        _key(study, run[0])
        for run in _whole_runs(study, rows)
        if any_version or run[0]["version"] == version(study, run[0])
    }
    return [cell for cell in cells if _key(study, cell | {"source": source}) not in done]


def shown(name: str, folder: Path, cells: Iterable[Row], source: str = DATA) -> list[Row]:
    """Rows of the grid in its order, from the last complete run of each cell."""
    study = module(name)
    last = _last_runs(study, read(folder / f"{name}.csv"))
    return [row for cell in cells for row in last.get(_key(study, cell | {"source": source}), [])]


def tidy(name: str, folder: Path, cells: Sequence[Row], source: str = DATA) -> None:
    """Rewrite the file with the last complete run of each cell, cells of the grid first."""
    study, path = module(name), folder / f"{name}.csv"
    last = _last_runs(study, read(path))
    first = [_key(study, cell | {"source": source}) for cell in cells]
    order = dict.fromkeys([*(key for key in first if key in last), *last])
    if last:
        _write(path, study, [row for key in order for row in last[key]])


def collect(tasks: Sequence[Task], folder: Path, n_jobs: int) -> int:
    """Run cells and append their rows to the files in the folder as they finish; return how many failed."""
    folder.mkdir(parents=True, exist_ok=True)
    return run_all(tasks, n_jobs, lambda name, rows: _append(name, folder, rows))


def run_all(tasks: Sequence[Task], n_jobs: int, store: Callable[[str, list[Row]], None]) -> int:
    """Run cells and pass their study and rows to `store` as they finish; return how many failed."""
    begin, n_failed, is_broken = time.monotonic(), 0, False
    before = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")
    with _one_thread(), ProcessPoolExecutor(n_jobs, context, _alone) as pool:
        try:
            futures = [pool.submit(_work, task) for task in tasks]
            for number, future in enumerate(as_completed(futures), 1):
                try:
                    name, cell, rows, error = future.result()
                except BrokenProcessPool:
                    is_broken = True
                    continue
                text = ", ".join(str(value) for value in cell.values())
                if error:
                    n_failed += 1
                    print(f"{name}: {text} failed: {error}", file=sys.stderr, flush=True)
                    continue
                store(name, rows)
                left = (time.monotonic() - begin) / number * (len(tasks) - number)
                print(f"{number} of {len(tasks)}: {name}: {text}; about {left / 60:.0f} min left", flush=True)
        except BrokenProcessPool:  # a worker ended while cells were being submitted
            is_broken = True
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for worker in set(multiprocessing.active_children()) - before:
                worker.terminate()
            raise
    if is_broken:
        raise WorkerError
    return n_failed


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Allow one run at a time to write into a folder; the lock is released when its process ends."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / ".lock", timeout=0):
            yield
    except Timeout:
        raise SystemExit(f"Another run is writing its results into {folder}. Wait until it ends.") from None


@contextmanager
def _one_thread() -> Iterator[None]:
    """Make processes started in this block use one thread for linear algebra."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _alone() -> None:
    """Make a worker ignore Ctrl-C, which its parent handles, and exit when its parent does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_follow, daemon=True).start()
    warnings.simplefilter("ignore")  # peers warn about classes with few labels, ours about wrong class sizes


def _follow() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(task: Task) -> tuple[str, Row, list[Row], str]:
    """Run a cell; return its rows, or the error message."""
    name, source, cell = task
    begin = time.perf_counter()
    try:
        study = module(name)
        found = study.run(source, cell)
        more = {
            "source": origin(source),
            "cell_rows": len(found),
            "cell_seconds": round(time.perf_counter() - begin, 3),
            "version": version(study, cell),
        }
    except (Exception, SystemExit) as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return name, cell, [], f"{type(error).__name__}: {error} ({Path(place.filename).name}, line {place.lineno})"
    return name, cell, [{**cell, **row, **more} for row in found], ""


def _whole_runs(study: ModuleType, rows: Iterable[Row]) -> list[list[Row]]:
    """Rows of each complete run of a cell, in the order in which runs ended."""
    runs: dict[tuple, list[Row]] = {}
    for row in rows:
        which = (_key(study, row), *(row[name] for name in ("version", "cell_seconds", "cell_rows")))
        runs[which] = [*runs.pop(which, []), row]
    whole = []
    for found in runs.values():
        n = found[0]["cell_rows"]
        if not isinstance(n, int):
            whole.append(found)
        elif len(found) >= n > 0:
            whole.append(found[-n:])
    return whole


def _last_runs(study: ModuleType, rows: Iterable[Row]) -> dict[tuple, list[Row]]:
    return {_key(study, run[0]): run for run in _whole_runs(study, rows)}


def _append(name: str, folder: Path, rows: list[Row]) -> None:
    """Append the rows of a cell in one write; a file with another header is rewritten first."""
    path, study = folder / f"{name}.csv", module(name)
    if _header(path) != _columns(study):
        _write(path, study, read(path))
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        is_cut = file.read() != b"\n"
    text = "\n" * is_cut + _lines(study, rows)
    with path.open("ab", buffering=0) as file:
        file.write(text.encode())


def _write(path: Path, study: ModuleType, rows: Iterable[Row]) -> None:
    fresh = path.with_suffix(".new")
    head = ",".join(_columns(study)) + "\n"
    fresh.write_text(head + _lines(study, rows), encoding="utf-8", newline="")
    fresh.replace(path)


def _lines(study: ModuleType, rows: Iterable[Row]) -> str:
    text = io.StringIO(newline="")
    csv.DictWriter(text, _columns(study), lineterminator="\n", extrasaction="ignore").writerows(rows)
    return text.getvalue()


def _header(path: Path) -> list[str]:
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return next(csv.reader(file), [])


def _columns(study: ModuleType) -> list[str]:
    return [*study.KEYS, *study.RESULTS, *COMMON_COLUMNS]


def _key(study: ModuleType, row: Row) -> tuple:
    return (row["source"], *(str(row.get(name, "")) for name in study.KEYS))


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text
