"""Run operations in forked processes that suffer a fault, and check what they leave behind."""

import faulthandler
import os
import random
import shutil
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from benchmarks.kills.faults import FAULTS, SIGNALS, at_file_operation
from benchmarks.kills.operations import BEGIN, OPERATIONS, Operation, damaged
from transduce import TransductiveClassifier
from transduce.cli.errors import InputError

KILLED = -9
SAME = ("out.csv", "ask.csv", "labels.json")
"""Files that are the same after every complete run."""


class Whole(NamedTuple):
    """An undisturbed run: its folder, how many operations on files it took, and how long."""

    folder: Path
    n_operations: int
    seconds: float


def warm_up() -> None:
    """Load what all operations share, so that a forked process need not; nothing that starts threads for good."""
    from benchmarks.kills.operations import training_rows

    TransductiveClassifier(n_jobs=1, random_state=0).fit(*training_rows())


def undisturbed(name: str, folder: Path) -> Whole:
    """Run an operation once, and count."""
    operation, home = OPERATIONS[name], folder / "whole"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    _in_child(lambda: operation.prepare(home) or 0, home)

    def work() -> int:
        seen: list[int] = []
        begin = [time.monotonic()]
        at_file_operation(home, 1, lambda: seen.append(1), forever=True)
        code = _work(operation, home, lambda: begin.append(time.monotonic()))
        (folder / "count").write_text(f"{len(seen)} {time.monotonic() - begin[-1]}")
        return code

    code, errors = _in_child(work, home)
    problem = damaged(operation, home)
    if code or problem:
        raise RuntimeError(f"{name} fails undisturbed: {code}, {problem or errors}")
    n_operations, seconds = (folder / "count").read_text().split()
    return Whole(home, int(n_operations), float(seconds))


def _work(operation: Operation, home: Path, begin: Callable[[], None]) -> int:
    """Run an operation, with `begin` called when a fault may come."""
    if operation.begins:
        BEGIN.append(begin)
    else:
        begin()
    return operation.work(home)


def disturb(name: str, fault: str, whole: Whole, seed: int) -> str:
    """Run an operation with a fault; return what is wrong afterwards, or nothing."""
    operation, home = OPERATIONS[name], whole.folder.with_name("disturbed")
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    _in_child(lambda: operation.prepare(home) or 0, home)

    def happen() -> None:
        (SIGNALS | FAULTS)[fault](home, random.Random(seed), whole.n_operations, whole.seconds)

    code, errors = _in_child(lambda: _work(operation, home, happen), home)
    problem = _bad_ending(code, errors, fault) or damaged(operation, home)
    if problem:
        return problem
    if not operation.repeat:
        shutil.rmtree(home / "rows", ignore_errors=True)
    code, errors = _in_child(lambda: _work(operation, home, lambda: None), home)
    if code != 0:
        return f"cannot be run again: {code}, {errors[-600:]}"
    return damaged(operation, home) or _difference(home, whole.folder)


def _bad_ending(code: int, errors: str, fault: str) -> str:
    """Whether a process ended otherwise than by its fault, with success or with a sentence."""
    allowed = (0, 1, 2, KILLED) if fault.startswith("kill") else (0, 1, 2)
    if fault.startswith("interrupt"):
        allowed = (0, 1)
    if code not in allowed or "Traceback" in errors:
        return f"exit code {code}: {errors[-1500:]}"
    return ""


def _difference(home: Path, whole: Path) -> str:
    for name in SAME:
        one, other = (folder / name for folder in (home, whole))
        if other.exists() and one.read_bytes() != other.read_bytes():
            return f"run again, {name} is not that of an undisturbed run"
    return ""


def _in_child(work: Callable[[], int], home: Path) -> tuple[int, str]:
    """Run a function in a forked process; return its exit code, below 0 for a signal, and its standard error."""
    errors = home.with_name("errors")
    child = os.fork()
    if child == 0:
        _run_and_exit(work, errors)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), errors.read_text(errors="replace")


def _run_and_exit(work: Callable[[], int], errors: Path) -> None:
    code = 70
    try:
        file = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, 1)
        os.dup2(file, 2)
        faulthandler.enable()
        warnings.simplefilter("ignore")
        code = work()
    except KeyboardInterrupt:
        code = 1
    except (OSError, InputError, ValueError) as error:  # the library's: a sentence
        code = 1
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(code)
