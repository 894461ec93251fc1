"""Errors and Ctrl-C in the middle of a fit on a cluster of processes: no worker waits, and the last round is kept."""

import functools
import os
import signal

import numpy as np
import pytest
from helpers.dask_blocks import BLOCKS, QUICK, assert_equal_fits, history_without_times
from helpers.dask_cluster import (
    any_call,
    arm,
    die,
    disarmed,
    divide_by_zero,
    interrupt,
    later_turn,
    n_held,
    record_ctrl_c,
    wait_until_released,
    worker_pids,
)

from transduce.dask import TransductiveClassifier
from transduce.engines.dask import engine

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # of distributed, about processes that died


@pytest.mark.parametrize(
    ("which", "place", "number", "counts"),
    [
        (max, ("restart_state.RestartState", "sweep"), 1, any_call),
        (max, ("all_reduce", "sum_deltas"), 2, any_call),
        (min, ("all_reduce", "sum_deltas"), 2, any_call),
        (max, ("restart_state.RestartState", "receive"), 1, any_call),
        (max, ("restart_state.RestartState", "turn"), 3, later_turn),
        (min, ("restart_state.RestartState", "turn"), 3, later_turn),
        (min, ("restart_state.RestartState", "add_deltas"), 2, any_call),
    ],
    ids=lambda one: one[1] if isinstance(one, tuple) else getattr(one, "__name__", one),
)
def test_an_error_in_a_reduction_is_raised_as_it_is_and_no_worker_waits(steady, which, place, number, counts):
    with disarmed(steady, *place):
        arm(steady, *place, number, divide_by_zero, counts, which=which)
        with pytest.raises(ZeroDivisionError, match="in the middle"):
            TransductiveClassifier(client=steady, **QUICK).fit(*BLOCKS)
    wait_until_released(steady)


@pytest.mark.parametrize(
    ("place", "number", "counts"),
    [(("all_reduce", "sum_deltas"), 3, any_call), (("restart_state.RestartState", "turn"), 5, later_turn)],
    ids=["sum", "turn"],
)
def test_ctrl_c_in_a_reduction_keeps_the_last_round_and_no_shards(steady, expected, place, number, counts, tmp_path):
    clf = TransductiveClassifier(client=steady, **QUICK)
    with disarmed(steady, *place), record_ctrl_c(tmp_path / "arrived"):
        arm(steady, *place, number, functools.partial(interrupt, os.getpid(), tmp_path / "arrived"), counts)
        clf.fit(*BLOCKS)
    assert "nterrupted" in clf.termination_condition_
    assert 0 < len(clf.history_) < len(expected.history_)
    assert history_without_times(clf) == history_without_times(expected)[: len(clf.history_)]
    assert clf.objective_ == clf.history_[-1].objective
    assert np.all((clf.bounds_.low <= clf.class_counts_) & (clf.class_counts_ <= clf.bounds_.high))
    wait_until_released(steady)
    assert_equal_fits(clf.fit(*BLOCKS), expected)


def test_ctrl_c_in_the_first_reduction_is_raised(steady, monkeypatch, tmp_path):
    monkeypatch.setattr(engine, "MIN_GATHERED_BYTES", 0)  # so that the supervised weights need a reduction too
    with disarmed(steady, "all_reduce", "sum_deltas"), record_ctrl_c(tmp_path / "arrived"):
        arm(steady, "all_reduce", "sum_deltas", 1, functools.partial(interrupt, os.getpid(), tmp_path / "arrived"))
        with pytest.raises(KeyboardInterrupt):
            TransductiveClassifier(client=steady, **QUICK).fit(*BLOCKS)
    wait_until_released(steady)


def test_a_worker_that_dies_after_ctrl_c_ends_the_fit(mortal):
    """It dies when results are fetched, and the fit is not run again from the start."""

    def press(row):
        if row.stage == 2:
            signal.raise_signal(signal.SIGINT)

    victim = arm(mortal, "restart_state.RestartState", "distributions", 1, die)
    with pytest.raises(KeyboardInterrupt):
        TransductiveClassifier(client=mortal, verbose=press, **QUICK).fit(*BLOCKS)
    assert victim not in worker_pids(mortal)


def handles_ctrl_c():
    return signal.getsignal(signal.SIGINT) is not signal.SIG_IGN


def test_workers_leave_ctrl_c_in_the_terminal_to_the_driver(steady, expected):
    """A terminal sends it to the driver and to all of its workers."""
    pids, pressed = steady.run(os.getpid), []

    def press(row):
        if row.stage == 2 and not pressed:
            pressed.append(row)
            for pid in pids.values():
                os.kill(pid, signal.SIGINT)
            signal.raise_signal(signal.SIGINT)  # raises KeyboardInterrupt here, in the middle of the fit

    clf = TransductiveClassifier(client=steady, verbose=press, **QUICK)
    try:
        clf.fit(*BLOCKS)
    except KeyboardInterrupt as error:
        pytest.fail(f"the labels found so far were lost: {error.__cause__!r}")
    assert "nterrupted" in clf.termination_condition_
    assert 0 < len(clf.history_) < len(expected.history_)
    assert steady.run(os.getpid) == pids
    wait_until_released(steady)
    assert all(steady.run(handles_ctrl_c).values())
    assert not any(steady.run(n_held).values())
