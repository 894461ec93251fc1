"""Dask clusters of processes on this machine, and faults that happen inside their workers."""

import functools
import importlib
import inspect
import itertools
import os
import signal
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import dask
from distributed import Client, LocalCluster, Status

from transduce.engines.dask import shard_calls, shards

PATIENT = {"transduce.heartbeat-timeout": "1 hour", "transduce.worker-timeout": "1 hour"}
"""Timeouts that a busy machine does not meet."""


@contextmanager
def cluster(n_workers=2, n_threads=1):
    """Workers in processes, which are started again however often they die; memory does not pause them."""
    settings = {"distributed.worker.daemon": True, "distributed.deploy.lost-worker-timeout": "1 hour", **PATIENT}
    quiet = {"dashboard_address": None, "silence_logs": 50, "memory_limit": 0}
    with (
        dask.config.set(settings),
        LocalCluster(n_workers=n_workers, threads_per_worker=n_threads, **quiet) as local,
        Client(local) as client,
    ):
        yield client


def wait_until(condition):
    """Wait as long as it takes."""
    while not condition():
        time.sleep(0.1)


def wait_for_both(client):
    """Until two workers answer, and Dask knows them: one that dies before that is not started again."""
    wait_until(lambda: len(worker_pids(client) & restartable(client)) == 2)


def restartable(client):
    """Processes of the workers that Dask starts again if they die."""
    processes = [nanny.process for nanny in list(client.cluster.workers.values())]
    return {one.pid for one in processes if one is not None and one.status == Status.running}


def worker_pids(client):
    """Processes of the workers that answer."""
    return set(client.run(os.getpid, on_error="ignore").values())


def n_held():
    """Shards and fits that this process knows of."""
    return len(shards.SHARDS) + len(shard_calls.FITS)


def wait_until_released(client):
    """Until workers have dropped all shards."""
    wait_until(lambda: not any(client.run(n_held).values()))


class Killer:
    """A progress callback that kills workers with shards, each time one round there later than before.

    One at a time; or both, when the other is there again.
    """

    def __init__(self, client, n_times, both=False, signal_=signal.SIGKILL):
        self.client, self.n_times, self.both, self.signal = client, n_times, both, signal_
        self.n_rounds, self.n_done, self.killed = 0, 0, []

    def __call__(self, row):
        self.n_rounds += row.restart > 0  # the first is the fit of a sample in the driver
        if self.n_done >= self.n_times or self.n_rounds <= self.n_done:
            return
        if self.both:
            wait_for_both(self.client)
        self.n_rounds, self.n_done = 0, self.n_done + 1
        found = self.client.run(_pid_and_shards, on_error="ignore").values()
        victims = [pid for pid, n_shards in found if n_shards or self.both]
        for pid in victims if self.both else victims[:1]:
            os.kill(pid, self.signal)
            self.killed.append(pid)


def _pid_and_shards():
    return os.getpid(), len(shards.SHARDS)


def _arm(module, name, number, fault):
    """In this process, call `fault` before call number `number` of a function of transduce.engines.dask, or of a
    method: then `module` ends with its class."""
    module, *classes = module.split(".")
    owner = importlib.import_module(f"transduce.engines.dask.{module}")
    owner = getattr(owner, classes[0]) if classes else owner
    plain, calls = inspect.unwrap(getattr(owner, name)), itertools.count(1)

    @functools.wraps(plain)
    def armed(*args, **kwargs):
        if next(calls) == number:
            fault()
        return plain(*args, **kwargs)

    setattr(owner, name, armed if number else plain)


def arm(client, *what, which=max):
    """Arm one of the workers, by default the one with the last shards; returns its process."""
    address = which(client.run(os.getpid, on_error="ignore"))
    client.run(_arm, *what, workers=[address])
    return client.run(os.getpid, workers=[address])[address]


@contextmanager
def disarmed(client, module, name):
    """In the end nothing is armed."""
    try:
        yield
    finally:
        client.run(_arm, module, name, 0, None)


def die():
    os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def mark_restartable(client, folder):
    """While the block runs, create a file in `folder`, named by its process, for each worker that Dask can restart."""
    ended = threading.Event()

    def mark():
        while not ended.wait(0.1):
            for pid in restartable(client):
                (folder / str(pid)).touch()

    thread = threading.Thread(target=mark)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def die_when_restartable(folder):
    """Die when the driver has marked the worker in `folder`: one that dies earlier is not started again."""
    wait_until((Path(folder) / str(os.getpid())).exists)
    die()


def divide_by_zero():
    raise ZeroDivisionError("in the middle")


@contextmanager
def record_ctrl_c(file):
    """While the block runs, create `file` in the driver when Ctrl-C arrives, before KeyboardInterrupt is raised."""

    def handle(number, frame):
        file.touch()
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


def interrupt(pid, file):
    """Send Ctrl-C to the driver, and stay in the call until it has arrived there."""
    os.kill(pid, signal.SIGINT)
    wait_until(Path(file).exists)
