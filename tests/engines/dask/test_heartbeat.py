"""Heartbeats with a clock and a cluster that the test controls: when a worker or the scheduler counts as lost."""

import os
from types import SimpleNamespace

import dask
import pytest

from transduce.engines.dask import heartbeat
from transduce.engines.dask.heartbeat import ClusterError, Heartbeats, WorkerLostError, run_on_each


class Cluster:
    """A client of a cluster without processes; `now` is the time, which passes when `pass_time` or sleep is called."""

    def __init__(self, **status):
        self.now, self.status, self.answers = 100.0, "running", True
        self.scheduler = SimpleNamespace(address="tcp://scheduler:8786", identity=None)
        self.workers = {name: {"status": one, "last_seen": 0.0} for name, one in status.items()}
        self.stopped = set()
        self.on_sleep = lambda: None

    def sync(self, function, *args, **options):
        if function is run_on_each:
            _, pid, arguments, _ = args
            assert pid is os.getpid
            return {name: TimeoutError() if name in self.stopped else 1 for name in arguments}
        if not self.answers:
            raise OSError("no answer")
        return {"workers": {name: dict(info) for name, info in self.workers.items()}}

    def pass_time(self, seconds):
        self.now += seconds
        for name in self.workers.keys() - self.stopped:
            self.workers[name]["last_seen"] = self.now

    def sleep(self, seconds):
        self.pass_time(seconds)
        self.on_sleep()


@pytest.fixture
def start(monkeypatch):
    def start(**status):
        cluster = Cluster(**status)
        clock = SimpleNamespace(monotonic=lambda: cluster.now, sleep=cluster.sleep)
        monkeypatch.setattr(heartbeat, "time", clock)
        beats = Heartbeats(cluster, timeout=10.0, worker_timeout=20.0)
        beats.reset()
        return cluster, beats

    return start


def seconds_until_lost(cluster, beats, addresses, n_most=100):
    """Seconds until these workers count as lost."""
    begin = cluster.now
    for _ in range(n_most):
        try:
            beats.check(addresses)
        except WorkerLostError:
            return cluster.now - begin
        cluster.pass_time(1.0)
    return None


def test_workers_that_send_heartbeats_are_never_lost(start):
    assert seconds_until_lost(*start(a="running", b="running"), ["a", "b"]) is None


def test_a_worker_that_stops_is_lost_after_the_timeout(start):
    cluster, beats = start(a="running", b="running")
    cluster.stopped.add("a")
    assert seconds_until_lost(cluster, beats, ["b"]) is None
    beats.reset()
    assert seconds_until_lost(cluster, beats, ["a", "b"]) == 11.0


def test_a_paused_worker_is_lost_though_it_sends_heartbeats(start):
    assert seconds_until_lost(*start(a="running", b="paused"), ["a", "b"]) == 11.0


def test_a_worker_that_has_left_is_lost_at_once(start):
    assert seconds_until_lost(*start(a="running"), ["a", "b"]) == 0.0


def test_a_scheduler_may_be_silent_for_a_while(start):
    cluster, beats = start(a="running")
    cluster.answers = False
    cluster.pass_time(9.0)
    assert beats.workers() is None
    beats.check(["a"])
    cluster.answers = True
    assert list(beats.workers()) == ["a"]
    cluster.answers = False
    cluster.pass_time(11.0)
    with pytest.raises(ClusterError, match=r"scheduler at tcp://scheduler:8786 has not answered for 10 s"):
        beats.check(["a"])


def test_a_client_that_is_closed_ends_the_fit_at_once(start):
    cluster, beats = start(a="running")
    cluster.status = "closed"
    with pytest.raises(ClusterError, match="has not answered"):
        beats.workers()


def test_without_any_worker_the_fit_ends_after_the_timeout(start):
    cluster, beats = start()
    beats.check([])
    cluster.pass_time(19.0)
    beats.check([])
    cluster.pass_time(2.0)
    with pytest.raises(ClusterError, match="No worker is left"):
        beats.check([])


def test_waiting_ends_with_the_first_worker_that_responds(start):
    cluster, beats = start(a="paused", b="running")
    cluster.stopped.add("b")

    def connect():
        if cluster.now >= 105.0:
            cluster.workers["c"] = {"status": "running", "last_seen": cluster.now}

    cluster.on_sleep = connect
    assert list(beats.wait_for_workers()) == ["c"]
    del cluster.workers["c"]
    cluster.on_sleep = lambda: None
    with pytest.raises(ClusterError, match=r"No worker has connected to the scheduler .* in 20 s"):
        beats.wait_for_workers()


def test_timeouts_are_settings_of_dask():
    with dask.config.set({"transduce.heartbeat-timeout": "2 minutes", "transduce.worker-timeout": "3s"}):
        beats = Heartbeats(Cluster())
    assert (beats.timeout, beats.worker_timeout) == (120.0, 3.0)


def test_the_error_names_the_checkpoint():
    assert str(ClusterError("It failed.")) == "It failed."
    assert str(ClusterError("It failed.", "folder")).startswith("It failed. Completed stages are in folder;")
