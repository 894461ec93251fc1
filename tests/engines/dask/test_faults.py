"""Faults of a cluster of processes: workers that die, stop or pause, and clusters that cannot complete a fit."""

import json
import os
import signal
import socket
import subprocess
import sys

import dask
import numpy as np
import psutil
import pytest
from distributed import Client, Status
from helpers.dask_blocks import BLOCKS, QUICK, X, Y, assert_equal_fits, label_block, row_block, split
from helpers.dask_cluster import (
    PATIENT,
    Killer,
    arm,
    cluster,
    die,
    die_when_restartable,
    mark_restartable,
    wait_for_both,
    wait_until_released,
    worker_pids,
)

from transduce import dask as estimator
from transduce.dask import ClusterError, TransductiveClassifier
from transduce.engines.dask.engine import GROUPS_FILE

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # of distributed, about processes that died
NOTICES_SOON = {"transduce.heartbeat-timeout": "60s"}
"""For tests that wait for a timeout: short, but longer than a busy machine takes to send a heartbeat."""


# ---- workers that die


@pytest.mark.parametrize("stored", [False, True], ids=["no checkpoint", "checkpoint"])
def test_killed_workers_change_nothing(mortal, expected, stored, tmp_path):
    killer = Killer(mortal, 2)
    checkpoint = tmp_path / "fit" if stored else None
    clf = TransductiveClassifier(client=mortal, checkpoint=checkpoint, verbose=killer, **QUICK).fit(*BLOCKS)
    assert len(set(killer.killed)) == 2
    assert_equal_fits(clf, expected)


def test_all_workers_killed_at_once_change_nothing(mortal, expected, tmp_path):
    killer = Killer(mortal, 2, both=True)
    clf = TransductiveClassifier(client=mortal, checkpoint=tmp_path, verbose=killer, **QUICK).fit(*BLOCKS)
    assert len(set(killer.killed)) == 4
    assert_equal_fits(clf, expected)


@pytest.mark.parametrize(
    ("which", "place"),
    [
        (max, ("shards", "create", 1, die)),
        (min, ("exchange", "sum_parts", 2, die)),
        (max, ("restart_state.RestartState", "sweep", 2, die)),
        (min, ("restart_state.RestartState", "sweep", 2, die)),
        (max, ("restart_state.RestartState", "receive", 2, die)),
        (max, ("shards", "call_partitions", 9, die)),
        (min, ("restart_state.RestartState", "start_weights", 1, die)),
        (max, ("shards.Shard", "sample_rows", 1, die)),
    ],
    ids=lambda one: one[1] if isinstance(one, tuple) else one.__name__,
)
def test_a_worker_that_dies_in_the_middle_of_a_call_changes_nothing(mortal, expected, which, place, tmp_path):
    victim = arm(mortal, *place, which=which)
    clf = TransductiveClassifier(client=mortal, checkpoint=tmp_path, **QUICK).fit(*BLOCKS)
    assert victim not in worker_pids(mortal)
    assert_equal_fits(clf, expected)


def test_groups_of_shards_give_the_same_fit_wherever_they_are():
    """A worker is killed in the middle of a sum, and the other has all shards for a while."""
    ends = (40, 80, 120, 160, 200)
    blocks, how = (split(X, ends), split(Y, ends)), QUICK | {"alpha": 1e-1}
    with cluster(n_threads=3) as client:
        wait_for_both(client)
        clf = TransductiveClassifier(client=client, **how).fit(*blocks)
        for which, number in ((max, 2), (min, 5)):
            wait_for_both(client)
            victim = arm(client, "exchange", "sum_parts", number, die, which=which)
            killed = TransductiveClassifier(client=client, **how).fit(*blocks)
            assert victim not in worker_pids(client)
            assert_equal_fits(killed, clf)


def test_groups_of_shards_are_stored_in_the_checkpoint(steady, expected, tmp_path):
    clf = TransductiveClassifier(client=steady, checkpoint=tmp_path, **QUICK).fit(*BLOCKS)
    assert json.loads((tmp_path / GROUPS_FILE).read_text()) == [[[0, 1]], [[2, 3]]]
    assert_equal_fits(clf, expected)
    assert_equal_fits(clf.fit(*BLOCKS), expected)


@pytest.mark.parametrize("kind", ["delayed", "futures"])
def test_blocks_are_computed_again_when_their_worker_is_killed(mortal, expected, kind):
    if kind == "delayed":
        blocks = [[dask.delayed(make)(b) for b in range(4)] for make in (row_block, label_block)]
    else:
        workers = sorted(mortal.scheduler_info()["workers"])
        where = [{"workers": [workers[b // 2]], "allow_other_workers": True, "pure": False} for b in range(4)]
        blocks = [[mortal.submit(make, b, **where[b]) for b in range(4)] for make in (row_block, label_block)]
    victim = arm(mortal, "restart_state.RestartState", "sweep", 3, die)
    clf = TransductiveClassifier(client=mortal, **QUICK).fit(*blocks)
    assert victim not in worker_pids(mortal)
    assert_equal_fits(clf, expected)


def test_scattered_blocks_that_are_lost_with_their_worker_are_named():
    with cluster(n_workers=1) as client:
        futures = [client.scatter(block, hash=False) for block in BLOCKS[0]]
        killer = Killer(client, 1)
        with pytest.raises(ClusterError, match=r"Block 0 of X was lost with its worker"):
            TransductiveClassifier(client=client, verbose=killer, **QUICK).fit(futures, BLOCKS[1])


# ---- workers that stop answering


def test_a_worker_that_stops_is_replaced(mortal, expected):
    killer = Killer(mortal, 1, signal_=signal.SIGSTOP)
    with dask.config.set(NOTICES_SOON):
        clf = TransductiveClassifier(client=mortal, verbose=killer, **QUICK).fit(*BLOCKS)
    (victim,) = killer.killed
    status = psutil.Process(victim).status()
    os.kill(victim, signal.SIGKILL)
    assert status == psutil.STATUS_STOPPED
    assert_equal_fits(clf, expected)


def set_status(name, dask_worker):
    dask_worker.status = Status[name]


def test_a_worker_that_is_paused_is_replaced(steady, expected):
    """It still answers, but takes no tasks: as one whose memory is nearly full."""
    first, paused = min(steady.scheduler_info()["workers"]), []

    def pause(row):
        if row.stage == 2 and not paused:
            steady.run(set_status, "paused", workers=[first])
            paused.append(first)

    try:
        with dask.config.set(NOTICES_SOON):
            clf = TransductiveClassifier(client=steady, verbose=pause, **QUICK).fit(*BLOCKS)
        assert steady.scheduler_info()["workers"][first]["status"] == "paused"
    finally:
        steady.run(set_status, "running", workers=[first])
    assert_equal_fits(clf, expected)
    wait_until_released(steady)


# ---- clusters that cannot complete a fit


def test_a_block_that_kills_its_worker_again_and_again_ends_the_fit(mortal, tmp_path):
    deadly, error = dask.delayed(die_when_restartable)(str(tmp_path)), r"Several workers died|lost 6 times"
    with mark_restartable(mortal, tmp_path), pytest.raises(ClusterError, match=error):
        TransductiveClassifier(client=mortal, **QUICK).fit([deadly], [BLOCKS[1][0]])


class Deadly:
    """A loss that kills the worker when a label step begins; in the driver it is the squared distance."""

    def __init__(self, folder):
        self.folder, self.driver = str(folder), os.getpid()

    def label_costs(self, scores):
        if os.getpid() != self.driver:
            die_when_restartable(self.folder)
        return (scores**2).sum(axis=1, keepdims=True) - 2.0 * scores + 1.0

    def value(self, scores, labels):
        return ((scores - np.eye(scores.shape[1])[labels]) ** 2).sum(axis=1)

    def gradient(self, scores, labels):
        return 2.0 * (scores - np.eye(scores.shape[1])[labels])


def test_a_round_that_kills_its_worker_again_and_again_ends_in_an_error_with_the_checkpoint(
    mortal, tmp_path, monkeypatch
):
    monkeypatch.setattr(estimator, "MAX_RETRIES", 1)
    checkpoint, error = tmp_path / "fit", r"lost 2 times at the same point"
    clf = TransductiveClassifier(Deadly(tmp_path), client=mortal, checkpoint=checkpoint, **QUICK)
    with mark_restartable(mortal, tmp_path), pytest.raises(ClusterError, match=error) as caught:
        clf.fit(*BLOCKS)
    assert caught.value.checkpoint == checkpoint
    assert f"Completed stages are in {checkpoint}" in str(caught.value)


def test_without_workers_the_fit_ends():
    short, error = {"transduce.worker-timeout": "1s"}, pytest.raises(ClusterError, match=r"No worker has connected")
    with cluster(n_workers=0) as client, dask.config.set(short), error:
        TransductiveClassifier(client=client, **QUICK).fit(*BLOCKS)


def start_scheduler(processes):
    """Start a scheduler with two workers in processes of their own; returns its process and a client."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    scheduler = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port)]
    worker = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-dashboard"]
    first = subprocess.Popen([*scheduler, "--no-dashboard"], **quiet)
    processes.append(first)
    processes += [subprocess.Popen([*worker, "--death-timeout", "600"], **quiet) for _ in range(2)]
    client = Client(address, timeout=600, set_as_default=False)
    client.wait_for_workers(2)
    return first, client


def test_a_lost_scheduler_ends_the_fit_and_a_new_one_continues_it(expected, tmp_path):
    processes, clients = [], []
    try:
        scheduler, client = start_scheduler(processes)
        clients.append(client)
        clf = TransductiveClassifier(client=client, checkpoint=tmp_path / "fit", **QUICK)
        error = pytest.raises(ClusterError, match=r"The scheduler at .* has not answered")
        with dask.config.set(NOTICES_SOON), error:
            clf.set_params(verbose=lambda row: scheduler.kill() if row.stage == 4 else None).fit(*BLOCKS)
        clients.append(start_scheduler(processes)[1])
        with dask.config.set(PATIENT):
            clf.set_params(client=clients[-1], verbose=0).fit(*BLOCKS)
        assert_equal_fits(clf, expected)
    finally:
        for process in processes:
            process.kill()
            process.wait()
        for client in clients:
            client.close(timeout=1)
