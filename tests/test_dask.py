"""The estimator over a real cluster of processes: all kinds of blocks, workers that die, stand still or never come."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import dask
import dask.array
import dask.bag
import numpy as np
import pytest
from distributed import Client, LocalCluster
from scipy import sparse
from sklearn.base import clone
from test_dask_rows import cut, few, rows

from transduce.dask import ClusterError, TransductiveClassifier, crew

pytestmark = pytest.mark.filterwarnings("ignore")  # distributed's own, of processes that were killed


@contextmanager
def cluster(n_workers=2, **params):
    """Workers of one thread each, which are started again when they die."""
    dask.config.set({"distributed.worker.daemon": True})
    with (
        LocalCluster(
            n_workers=n_workers, threads_per_worker=1, dashboard_address=None, silence_logs=50, **params
        ) as local,
        Client(local) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def shared():
    with cluster() as client:
        yield client


X, TRUTH = rows()
Y = few(TRUTH)
ENDS = (60, 99, 170)
BLOCKS = cut(X, ENDS), cut(Y, ENDS)
QUICK = {"alpha": 1e-2, "annealing": "paper", "class_prior": "labeled", "random_state": 3}


@pytest.fixture(scope="module")
def whole(shared):
    """What a fit gives that nothing happens to."""
    return TransductiveClassifier(client=shared, **QUICK).fit(*BLOCKS)


def here(blocks):
    return [block.result() if hasattr(block, "result") else block for block in blocks]


def check_equal(clf, whole):
    """The same, bit for bit."""
    assert np.array_equal(clf.coef_, whole.coef_)
    assert clf.objective_ == whole.objective_
    assert all(map(np.array_equal, here(clf.transduction_), here(whole.transduction_)))
    assert all(map(np.array_equal, here(clf.label_distributions_), here(whole.label_distributions_)))


def make_rows(block):
    return BLOCKS[0][block]


def make_labels(block):
    return BLOCKS[1][block]


def test_local_blocks_give_arrays(whole):
    assert [len(labels) for labels in whole.transduction_] == [60, 39, 71, 70]
    assert np.mean(np.concatenate(whole.transduction_) == TRUTH) > 0.6
    known = Y >= 0
    assert np.array_equal(np.concatenate(whole.transduction_)[known], Y[known])


def test_futures_stay_where_they_are_and_give_futures(shared, whole):
    workers = sorted(shared.scheduler_info()["workers"])
    homes = [workers[0], workers[0], workers[1], workers[1]]
    pairs = list(zip(*BLOCKS, homes, strict=True))
    futures = [shared.scatter(block, workers=[home], hash=False) for block, _, home in pairs]
    labels = [shared.scatter(own, workers=[home], hash=False) for _, own, home in pairs]
    clf = TransductiveClassifier(client=shared, **QUICK).fit(futures, labels)
    assert all(hasattr(block, "result") for block in clf.transduction_)
    check_equal(clf, whole)
    guesses = clf.predict(futures)
    assert np.array_equal(guesses[1].result(), clf.predict(BLOCKS[0][1]))
    assert np.array_equal(clf.predict(futures[1]).result(), guesses[1].result())
    assert clf.score(futures, cut(TRUTH, ENDS)) == pytest.approx(clf.score(BLOCKS[0], cut(TRUTH, ENDS)))


def test_delayed_blocks(shared, whole):
    blocks = [dask.delayed(make_rows)(b) for b in range(4)]
    labels = [dask.delayed(make_labels)(b) for b in range(4)]
    clf = TransductiveClassifier(client=shared, **QUICK).fit(blocks, labels)
    check_equal(clf, whole)
    assert np.array_equal(clf.predict(blocks[0]).result(), clf.predict(BLOCKS[0][0]))


@pytest.mark.parametrize("kind", ["array", "bag"])
def test_collections_at_the_door(shared, whole, kind):
    if kind == "array":
        chunks = (tuple(block.shape[0] for block in BLOCKS[0]), (5, 7))
        rows_, labels = dask.array.from_array(X.toarray(), chunks=chunks), dask.array.from_array(Y, chunks=chunks[0])
    else:
        rows_ = dask.bag.from_delayed([dask.delayed(list)([block]) for block in BLOCKS[0]])
        labels = dask.bag.from_delayed([dask.delayed(list)(block.tolist()) for block in BLOCKS[1]])
    clf = TransductiveClassifier(client=shared, **QUICK).fit(rows_, labels)
    assert np.array_equal(np.concatenate(here(clf.transduction_)), np.concatenate(whole.transduction_))


def test_the_client_in_use_is_found_and_stays_out_of_clones_and_files(shared, whole):
    import pickle

    clf = TransductiveClassifier(**QUICK).fit(*BLOCKS)
    check_equal(clf, whole)
    assert clone(whole).client is shared
    unpacked = pickle.loads(pickle.dumps(whole))
    assert unpacked.client is None
    assert np.array_equal(unpacked.predict(X), whole.predict(X))


def test_a_task_that_raises_is_told_as_it_is(shared):
    def broken():
        raise FileNotFoundError("no such file")

    with pytest.raises(FileNotFoundError, match="no such file"):
        TransductiveClassifier(client=shared, **QUICK).fit([dask.delayed(broken)()], [BLOCKS[1][0]])


def pids(client):
    return client.run(os.getpid)


class Killing:
    """Hears of rounds, and kills workers that look after rows, each time one round later than the time before."""

    def __init__(self, client, n_times, all_at_once=False, sign=signal.SIGKILL):
        self.client, self.n_times, self.all_at_once, self.sign = client, n_times, all_at_once, sign
        self.n_rounds, self.n_killed, self.pids = 0, 0, set()

    def __call__(self, row):
        self.n_rounds += 1
        if self.n_killed >= self.n_times or self.n_rounds <= self.n_killed // (1 + self.all_at_once):
            return
        self.n_rounds = 0
        at_work = self.client.run(at_work_here)
        victims = [pid for pid, busy in at_work.values() if busy or self.all_at_once]
        for pid in victims if self.all_at_once else victims[:1]:
            os.kill(pid, self.sign)
            self.n_killed += 1
            self.pids.add(pid)


def at_work_here():
    """The process, and whether it looks after rows."""
    from transduce.dask import shards

    return os.getpid(), bool(shards._SHARDS)


@pytest.mark.parametrize("kept", [False, True], ids=["no checkpoint", "checkpoint"])
def test_kills_in_the_middle_of_rounds_change_nothing(whole, kept, tmp_path):
    """Twelve workers killed, one at a time, at different instants of two fits."""
    with cluster() as client:
        killing = Killing(client, 6)
        checkpoint = tmp_path / "kept" if kept else None
        clf = TransductiveClassifier(client=client, checkpoint=checkpoint, verbose=killing, **QUICK).fit(*BLOCKS)
        assert killing.n_killed == 6
        check_equal(clf, whole)


def test_all_workers_killed_and_new_ones_started(whole, tmp_path):
    """Twelve workers killed, both at a time, if the second has come back."""
    with cluster() as client:
        killing = Killing(client, 12, all_at_once=True)
        clf = TransductiveClassifier(client=client, checkpoint=tmp_path, verbose=killing, **QUICK).fit(*BLOCKS)
        assert killing.n_killed >= 10
        check_equal(clf, whole)


def test_killed_in_the_middle_of_a_task(whole):
    """A worker dies while it computes, not between rounds."""
    with cluster() as client:
        victim = next(iter(pids(client).values()))
        killer = subprocess.Popen([sys.executable, "-c", f"import os, time; time.sleep(1.5); os.kill({victim}, 9)"])
        clf = TransductiveClassifier(client=client, **QUICK)
        for _ in range(3):
            clf.fit(*BLOCKS)
        killer.wait()
        check_equal(clf, whole)


def test_a_worker_that_stands_still_is_left_behind(whole, monkeypatch):
    monkeypatch.setattr(crew, "SILENCE", 4.0)
    with cluster() as client:
        killing = Killing(client, 1, sign=signal.SIGSTOP)
        clf = TransductiveClassifier(client=client, verbose=killing, **QUICK).fit(*BLOCKS)
        check_equal(clf, whole)
        for pid in killing.pids:
            os.kill(pid, signal.SIGKILL)


def test_a_task_that_always_kills_its_worker_ends_in_a_sentence(tmp_path):
    def deadly():
        os.kill(os.getpid(), signal.SIGKILL)

    with cluster() as client:
        begin = time.monotonic()
        with pytest.raises(ClusterError, match=r"died of it|lost 6 times"):
            TransductiveClassifier(client=client, **QUICK).fit([dask.delayed(deadly)()], [BLOCKS[1][0]])
        assert time.monotonic() - begin < 60


class Deadly:
    """A loss that kills the worker when a label step begins."""

    def label_costs(self, scores):
        os.kill(os.getpid(), signal.SIGKILL)

    def value(self, scores, labels):
        return ((scores - np.eye(scores.shape[1])[labels]) ** 2).sum(axis=1)

    def gradient(self, scores, labels):
        return 2.0 * (scores - np.eye(scores.shape[1])[labels])


def test_a_round_that_always_kills_its_worker_ends_in_a_sentence_that_names_the_checkpoint(tmp_path):
    with cluster() as client:
        begin = time.monotonic()
        clf = TransductiveClassifier(Deadly(), client=client, checkpoint=tmp_path, **QUICK)
        with pytest.raises(ClusterError, match=rf"lost 6 times at the same place.*Stages are kept in {tmp_path}"):
            clf.fit(*BLOCKS)
        assert time.monotonic() - begin < 60


def test_futures_that_went_with_their_worker_are_named():
    with cluster(n_workers=1) as client:
        futures = [client.scatter(block, hash=False) for block in BLOCKS[0]]
        killing = Killing(client, 1, all_at_once=True)
        with pytest.raises(ClusterError, match=r"block 0 of X was lost with its worker"):
            TransductiveClassifier(client=client, verbose=killing, **QUICK).fit(futures, BLOCKS[1])


def test_a_scheduler_that_is_gone_ends_in_a_sentence_and_a_new_one_goes_on(whole, tmp_path, monkeypatch):
    monkeypatch.setattr(crew, "SILENCE", 4.0)
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard"]
    with LocalSchedulers(command) as start:
        begin = None
        scheduler, client = start()

        def stop(row):
            nonlocal begin
            if row.stage == 4 and begin is None:
                begin = time.monotonic()
                scheduler.kill()

        clf = TransductiveClassifier(client=client, checkpoint=tmp_path / "kept", verbose=stop, **QUICK)
        with pytest.raises(ClusterError, match=r"scheduler at .* Stages are kept in"):
            clf.fit(*BLOCKS)
        assert time.monotonic() - begin < 60
        _, client = start()
        clf.set_params(client=client, verbose=0).fit(*BLOCKS)
        check_equal(clf, whole)


class LocalSchedulers:
    """Starts schedulers with two workers, each in processes of their own; stops them all in the end."""

    def __init__(self, command):
        self.command, self.processes, self.clients = command, [], []

    def __enter__(self):
        return self._start

    def _start(self):
        import socket

        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        address = f"tcp://127.0.0.1:{port}"
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        scheduler = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1"]
        worker = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-dashboard"]
        first = subprocess.Popen([*scheduler, "--port", str(port), "--no-dashboard"], **quiet)
        self.processes.append(first)
        self.processes += [subprocess.Popen([*worker, "--death-timeout", "60"], **quiet) for _ in range(2)]
        client = Client(address, timeout=60, set_as_default=False)
        self.clients.append(client)
        client.wait_for_workers(2, timeout=60)
        return first, client

    def __exit__(self, *ending):
        for process in self.processes:
            process.kill()
        for client in self.clients:
            client.close(timeout=1)


class Missing(Deadly):
    """A loss that fails for a reason of its own."""

    def label_costs(self, scores):
        raise KeyError("its own")


def test_what_a_users_loss_raises_is_told_as_it_is(shared):
    with pytest.raises(KeyError, match="its own"):
        TransductiveClassifier(Missing(), client=shared, **QUICK).fit(*BLOCKS)


def test_without_any_worker_it_says_so_in_time(monkeypatch):
    monkeypatch.setattr(crew, "PATIENCE", 2.0)
    with cluster(n_workers=0) as client, pytest.raises(ClusterError, match=r"there must be a worker.*none has come"):
        TransductiveClassifier(client=client, **QUICK).fit(*BLOCKS)


def test_sparse_arrays_and_lists_of_names(shared):
    names = np.array(["ant", "bee", "cat", "dog"], dtype=object)
    labels = [[None if k < 0 else names[k] for k in own] for own in BLOCKS[1]]
    clf = TransductiveClassifier(client=shared, **QUICK).fit([sparse.csr_array(b) for b in BLOCKS[0]], labels)
    assert set(np.concatenate(clf.transduction_)) == set(names)
