"""Mutated files: every reader accepts them whole or refuses them with a sentence, within limits of memory and time."""

import os

import pytest

from benchmarks.fuzz import corpus, targets, worker
from benchmarks.fuzz.mutate import mutate
from benchmarks.fuzz.target import Target
from benchmarks.fuzz.targets import TARGETS
from benchmarks.fuzz.worker import fuzz, replay

N_INPUTS = 2_000


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_two_thousand_mutated_files(target):
    n_inputs = max(20, int(TARGETS[target].share * N_INPUTS))
    found = fuzz(target, range(n_inputs))
    assert found.findings == []
    assert found.n_accepted + found.n_refused == n_inputs
    assert found.n_accepted > 0


PAST = [(target, name) for target in TARGETS for name, _ in corpus.past_findings(target)]


@pytest.mark.parametrize(("target", "name"), PAST)
def test_past_findings_stay_mended(target, name, tmp_path):
    data = dict(corpus.past_findings(target))[name]
    assert worker._judge(target, data, tmp_path)[0] in ("accepted", "refused")


@pytest.mark.slow
@pytest.mark.parametrize("target", sorted({target for target, _ in PAST}))
def test_past_findings_stay_mended_within_limits(target):
    found = replay(target)
    assert found.findings == []
    assert found.n_accepted + found.n_refused == len(corpus.past_findings(target))


def test_every_past_finding_has_a_target():
    assert {path.name for path in corpus.FOLDER.iterdir()} <= set(TARGETS)


def test_every_kind_of_file_that_is_read_is_fuzzed():
    kinds = {"csv", "jsonl", "parquet", "model", "store", "stage", "fit.json", "vectors", "cache", "log", "project"}
    assert kinds <= set(TARGETS)


def test_an_input_depends_on_its_number_alone():
    seeds = TARGETS["csv"].seeds
    inputs = [mutate(seeds, number) for number in range(50)]
    assert inputs == [mutate(seeds, number) for number in range(50)]
    assert len(set(inputs)) > 30


def read_badly(data, folder):
    """A reader with one fault of each kind, by the first byte."""
    if data[:1] == b"1":
        raise KeyError("a traceback")
    if data[:1] == b"2":
        raise ValueError("no sentence")
    if data[:1] == b"3":
        bytearray(300_000_000)[::4096] = b"x" * 73243
    if data[:1] == b"4":
        raise ValueError("a sentence.")
    if data[:1] == b"5":
        os._exit(1)


@pytest.mark.parametrize(
    ("data", "ending"),
    [
        (b"0", "accepted"),
        (b"1", "KeyError"),
        (b"2", "not a sentence"),
        (b"3", "MB for an input of 1"),
        (b"4", "refused"),
    ],
)
def test_faults_are_found(data, ending, tmp_path, monkeypatch):
    monkeypatch.setitem(targets.TARGETS, "bad", Target([data], read_badly, (ValueError,)))
    assert ending in worker._judge("bad", data, tmp_path)[0]


def test_after_a_crash_the_next_inputs_are_run(monkeypatch):
    def child(target, numbers):
        for number in numbers:
            if number == 3:
                return
            yield number, "refused", 0, 0.0

    monkeypatch.setattr(worker, "_child", child)
    found = fuzz("csv", range(6))
    assert [(one.number, one.problem) for one in found.findings] == [(3, "the process died, or did not end")]
    assert found.n_refused == 5
