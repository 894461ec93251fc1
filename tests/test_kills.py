"""Commands that are killed, interrupted or starved at random moments leave every file as it was, or complete."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.kills import harness, operations
from benchmarks.kills.__main__ import IMPOSSIBLE, plan
from benchmarks.kills.faults import FAULTS, SIGNALS
from benchmarks.kills.operations import OLD, OPERATIONS, Operation, damaged


@pytest.mark.slow
def test_kills_interrupts_and_failing_disks_lose_nothing():
    """In a process of its own, which has no threads and can be forked."""
    n_kills = os.environ.get("TRANSDUCE_KILLS", "12")
    command = [sys.executable, "-m", "benchmarks.kills", "--kills", n_kills, "--faults", "8"]
    run = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert f"{n_kills} kills and interrupts, 8 other faults, 0 findings" in run.stdout


def test_every_operation_suffers_every_fault():
    planned = set(plan(list(OPERATIONS), 500, 50))
    assert {(name, fault) for name in OPERATIONS for fault in SIGNALS} <= planned
    assert {(name, fault) for name in OPERATIONS for fault in FAULTS} - {IMPOSSIBLE} <= planned


def write_in_place(folder):
    (folder / "out.csv").write_bytes(b"half")
    (folder / "half").write_bytes(b"")
    (folder / "out.csv").write_bytes(b"whole")
    return 0


CARELESS = Operation(
    lambda folder: (folder / "out.csv").write_bytes(OLD) and None,
    write_in_place,
    {"out.csv": lambda content: content == b"whole"},
)


def test_a_file_that_is_written_in_place_is_found(tmp_path, monkeypatch):
    monkeypatch.setitem(operations.OPERATIONS, "careless", CARELESS)
    CARELESS.prepare(tmp_path)
    assert damaged(CARELESS, tmp_path) == ""
    (tmp_path / "out.csv").write_bytes(b"half")
    assert "neither old nor complete" in damaged(CARELESS, tmp_path)


@pytest.mark.parametrize(
    ("code", "errors", "fault", "is_bad"),
    [
        (-9, "", "kill at a time", False),
        (-11, "", "kill at a time", True),
        (-9, "", "interrupt at a file", True),
        (1, "transduce: interrupted.", "interrupt at a file", False),
        (1, "Traceback (most recent call last):", "full disk", True),
        (70, "", "lost share", True),
    ],
)
def test_endings_that_are_no_sentence_are_found(code, errors, fault, is_bad):
    assert bool(harness._bad_ending(code, errors, fault)) == is_bad
