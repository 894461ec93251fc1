"""Errors and Ctrl-C in the middle of a fit on a cluster of processes: no worker waits, and the last round is kept."""

import functools
import os
import signal

import numpy as np
import pytest
from helpers.dask_blocks import BLOCKS, ENDS, QUICK, TRUTH, assert_equal_fits, history_without_times, split
from helpers.dask_cluster import (
    arm,
    die,
    disarmed,
    divide_by_zero,
    interrupt,
    n_held,
    record_ctrl_c,
    wait_until_released,
    worker_pids,
)

from transduce.dask import TransductiveClassifier

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # of distributed, about processes that died


@pytest.mark.parametrize(
    ("which", "place", "number"),
    [
        (max, ("restart_state.RestartState", "sweep"), 1),
        (min, ("exchange", "sum_parts"), 2),
        (max, ("restart_state.RestartState", "receive"), 1),
        (min, ("restart_state.RestartState", "start_weights"), 1),
    ],
    ids=lambda one: one[1] if isinstance(one, tuple) else getattr(one, "__name__", one),
)
def test_an_error_in_a_sum_is_raised_as_it_is_and_no_worker_waits(steady, which, place, number):
    with disarmed(steady, *place):
        arm(steady, *place, number, divide_by_zero, which=which)
        with pytest.raises(ZeroDivisionError, match="in the middle"):
            TransductiveClassifier(client=steady, **QUICK).fit(*BLOCKS)
    wait_until_released(steady)


@pytest.mark.parametrize(
    ("which", "place", "number"),
    [
        (min, ("exchange", "sum_parts"), 3),
        (max, ("restart_state.RestartState", "sweep"), 1),
        (max, ("shards", "call_partitions"), 2),
    ],
    ids=["sum", "sweep", "first labels"],
)
def test_ctrl_c_on_the_cluster_keeps_labels_of_all_rows_and_no_shards(steady, expected, which, place, number, tmp_path):
    clf = TransductiveClassifier(client=steady, **QUICK)
    with disarmed(steady, *place), record_ctrl_c(tmp_path / "arrived"):
        arm(steady, *place, number, functools.partial(interrupt, os.getpid(), tmp_path / "arrived"), which=which)
        clf.fit(*BLOCKS)
    assert "nterrupted" in clf.termination_condition_
    assert 0 < len(clf.history_) < len(expected.history_)
    assert history_without_times(clf) == history_without_times(expected)[: len(clf.history_)]
    assert np.all((clf.bounds_.low <= clf.class_counts_) & (clf.class_counts_ <= clf.bounds_.high))
    same = np.concatenate(clf.transduction_) == np.concatenate(expected.transduction_)
    assert np.mean(same) >= 0.95
    wait_until_released(steady)
    assert_equal_fits(clf.fit(*BLOCKS), expected)


def test_ctrl_c_in_the_first_sum_of_a_supervised_fit_is_raised(steady, tmp_path):
    place = "exchange", "sum_parts"
    with disarmed(steady, *place), record_ctrl_c(tmp_path / "arrived"):
        arm(steady, *place, 1, functools.partial(interrupt, os.getpid(), tmp_path / "arrived"), which=min)
        with pytest.raises(KeyboardInterrupt):
            TransductiveClassifier(client=steady, **QUICK).fit(BLOCKS[0], split(TRUTH, ENDS))
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
