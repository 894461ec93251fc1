"""The estimator over a real cluster of processes: all kinds of blocks, workers that die, stand still or never come."""

import functools
import importlib
import inspect
import itertools
import json
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
import psutil
import pytest
from distributed import Client, LocalCluster, Status
from engines.dask.test_engine import cut, few, rows, told
from scipy import sparse
from sklearn.base import clone

from transduce import dask as estimator
from transduce.dask import TransductiveClassifier
from transduce.engines.dask import all_reduce, shards, worker_pool
from transduce.engines.dask import engine as dask_rows
from transduce.engines.dask import fit as attempt
from transduce.engines.dask.weight_deltas import bounds_of_pieces
from transduce.engines.dask.worker_pool import ClusterError

pytestmark = pytest.mark.filterwarnings("ignore")  # distributed's own, of processes that were killed


@contextmanager
def cluster(n_workers=2, n_threads=1):
    """Workers in processes, which are started again however often they die; memory does not pause them."""
    dask.config.set({"distributed.worker.daemon": True, "distributed.deploy.lost-worker-timeout": "1 hour"})
    quiet = {"dashboard_address": None, "silence_logs": 50, "memory_limit": 0}
    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=n_threads, **quiet) as local,
        Client(local) as client,
    ):
        yield client


@pytest.fixture(autouse=True)
def _in_time():
    """No fit waits for ever, whatever happens to its workers."""

    def stop(number, frame):
        raise AssertionError("a test must end within two minutes")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(120)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def shared():
    """Two workers that nothing happens to."""
    with cluster() as client:
        yield client


@pytest.fixture(scope="module")
def mortals():
    with cluster() as client:
        yield client


@pytest.fixture
def mortal(mortals):
    """Two workers that may be killed: others come in their place."""
    wait_for_both(mortals)
    return mortals


@pytest.fixture(scope="module")
def many_threads():
    with cluster(n_threads=3) as client:
        yield client


@pytest.fixture
def threads(many_threads):
    """The same with three threads each, so that a worker has several shards."""
    wait_for_both(many_threads)
    return many_threads


def wait_for_both(client):
    """Until two workers answer, and Dask knows them: one that dies before that is not started again."""
    end = time.monotonic() + 60
    while len(pids(client) & started(client)) != 2:
        assert time.monotonic() < end, "two workers must be there"
        time.sleep(0.1)


def pids(client):
    """Processes of the workers that answer."""
    return set(client.run(os.getpid, on_error="ignore").values())


def started(client):
    """Processes that Dask would start again."""
    processes = [nanny.process for nanny in client.cluster.workers.values()]
    return {one.pid for one in processes if one is not None and one.status == Status.running}


X, TRUTH = rows()
Y = few(TRUTH)
ENDS = (60, 99, 170)
BLOCKS = cut(X, ENDS), cut(Y, ENDS)
QUICK = {"alpha": 1e-2, "tol": 1e-2, "annealing": "paper", "class_prior": "labeled", "random_state": 3}


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
    assert told(clf) == told(whole)
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


class Killing:
    """Hears of rounds, and kills workers that look after rows, each time one round later than the time before.

    One at a time, or both, when the other is there again.
    """

    def __init__(self, client, n_times, both=False, sign=signal.SIGKILL):
        self.client, self.n_times, self.both, self.sign = client, n_times, both, sign
        self.n_rounds, self.n_done, self.killed = 0, 0, []

    def __call__(self, row):
        self.n_rounds += 1
        if self.n_done >= self.n_times or self.n_rounds <= self.n_done:
            return
        if self.both:
            wait_for_both(self.client)
        self.n_rounds, self.n_done = 0, self.n_done + 1
        at_work = self.client.run(at_work_here, on_error="ignore").values()
        victims = [pid for pid, busy in at_work if busy or self.both]
        for pid in victims if self.both else victims[:1]:
            os.kill(pid, self.sign)
            self.killed.append(pid)


def at_work_here():
    """The process, and whether it looks after rows."""
    return os.getpid(), bool(shards._SHARDS)


@pytest.mark.parametrize("kept", [False, True], ids=["no checkpoint", "checkpoint"])
def test_kills_in_the_middle_of_rounds_change_nothing(mortal, whole, kept, tmp_path):
    """Ten workers killed, one at a time, at different instants of two fits."""
    killing = Killing(mortal, 5)
    checkpoint = tmp_path / "kept" if kept else None
    clf = TransductiveClassifier(client=mortal, checkpoint=checkpoint, verbose=killing, **QUICK).fit(*BLOCKS)
    assert len(set(killing.killed)) == 5
    check_equal(clf, whole)


def test_all_workers_killed_and_new_ones_started(mortal, whole, tmp_path):
    """Six workers killed, both at a time."""
    killing = Killing(mortal, 3, both=True)
    clf = TransductiveClassifier(client=mortal, checkpoint=tmp_path, verbose=killing, **QUICK).fit(*BLOCKS)
    assert len(set(killing.killed)) == 6
    check_equal(clf, whole)


def test_what_happened_is_told_the_same_with_a_checkpoint_and_when_it_is_taken_up_again(shared, whole, tmp_path):
    clf = TransductiveClassifier(client=shared, checkpoint=tmp_path, **QUICK).fit(*BLOCKS)
    assert len(told(clf)) > 10
    check_equal(clf, whole)
    check_equal(clf.fit(*BLOCKS), whole)


def test_a_client_that_is_not_the_default_is_as_good(shared, whole, monkeypatch):
    def nobody(*args):
        raise ValueError("there is no default client")

    monkeypatch.setattr("distributed.client.default_client", nobody)
    check_equal(TransductiveClassifier(client=shared, **QUICK).fit(*BLOCKS), whole)


def test_ctrl_c_in_a_terminal_reaches_workers_too_and_they_leave_it_to_the_driver(shared, whole):
    """A terminal sends it to the driver and to all of its workers."""
    pids, pressed = shared.run(os.getpid), []

    def press(row):
        if row.stage == 2 and not pressed:
            pressed.append(row)
            for pid in pids.values():
                os.kill(pid, signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)

    clf = TransductiveClassifier(client=shared, verbose=press, **QUICK).fit(*BLOCKS)
    assert "interrupted" in clf.termination_condition_
    assert 0 < len(clf.history_) < len(whole.history_)
    assert shared.run(os.getpid) == pids
    check_nothing_is_held(shared)
    assert all(shared.run(hears_ctrl_c).values())


def hears_ctrl_c():
    return signal.getsignal(signal.SIGINT) is not signal.SIG_IGN


def test_blocks_of_y_that_are_not_those_of_x_are_not_scored(shared, whole):
    X, y = BLOCKS
    for wrong in (np.concatenate(y), [y[0][:-1], *y[1:]], y[:2]):
        with pytest.raises(ValueError, match="y must have blocks of"):
            whole.score(X, wrong)
    with pytest.raises(ValueError, match="y must have blocks of"):
        whole.score(X[0], y)
    for wrong in ([np.ones(len(y[0]) - 1), *(np.ones(len(one)) for one in y[1:])], [np.ones(len(y[0]))]):
        with pytest.raises(ValueError, match="sample_weight must have blocks of"):
            whole.score(X, y, wrong)


# ---- what happens within a visit


def any_call(*args):
    return True


def later_turn(shard, restart, seed, count, others):
    """Whether it is not the first turn of a shard since the driver has spoken to it."""
    return count > 1


def arm(module, name, number, deed, counts=any_call):
    """In this process, let a function of transduce.engines.dask do a deed in that call of those that count; never, if 0."""
    module = importlib.import_module(f"transduce.engines.dask.{module}")
    plain, calls = inspect.unwrap(getattr(module, name)), itertools.count(1)

    @functools.wraps(plain)
    def armed(*args, **kwargs):
        if counts(*args) and next(calls) == number:
            deed()
        return plain(*args, **kwargs)

    setattr(module, name, armed if number else plain)


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def arm_one(client, *what, which=max):
    """Arm one of the workers, the last if not told which, which has the last shards; gives its process."""
    address = which(client.run(os.getpid, on_error="ignore"))
    client.run(arm, *what, workers=[address])
    return client.run(os.getpid, workers=[address])[address]


@contextmanager
def disarmed(client, module, name):
    """In the end nothing is armed."""
    try:
        yield
    finally:
        client.run(arm, module, name, 0, None)


@pytest.mark.parametrize(
    ("module", "name", "number"),
    [
        ("shards", "hold", 1),
        ("exchange", "total", 2),
        ("shard_weights", "take_change", 2),
        ("shard_weights", "receive", 2),
        ("shards", "visit_parts", 9),
        ("shard_files", "save", 3),
    ],
    ids=lambda one: str(one),
)
def test_killed_in_the_middle_of_a_task(mortal, whole, module, name, number, tmp_path):
    """A worker dies while it computes, not between rounds: of its own hand, so that nothing else is possible."""
    victim = arm_one(mortal, module, name, number, die)
    clf = TransductiveClassifier(client=mortal, checkpoint=tmp_path, **QUICK).fit(*BLOCKS)
    assert victim not in pids(mortal)
    check_equal(clf, whole)


@pytest.mark.parametrize(
    ("which", "what"),
    [
        (max, ("shard_weights", "turn", 5, die, later_turn)),
        (min, ("shard_weights", "turn", 5, die, later_turn)),
        (max, ("shard_weights", "turn", 12, die)),
    ],
    ids=["the second", "the first", "the only one"],
)
def test_killed_while_it_has_the_turn(mortal, whole, which, what):
    victim = arm_one(mortal, *what, which=which)
    clf = TransductiveClassifier(client=mortal, **QUICK).fit(*BLOCKS)
    assert victim not in pids(mortal)
    check_equal(clf, whole)


def divide_by_zero():
    raise ZeroDivisionError("in the middle")


@pytest.mark.parametrize(
    ("which", "place", "number", "counts"),
    [
        (max, ("shard_weights", "sweep"), 1, any_call),
        (max, ("exchange", "total"), 2, any_call),
        (min, ("exchange", "total"), 2, any_call),
        (max, ("shard_weights", "receive"), 1, any_call),
        (max, ("shard_weights", "turn"), 3, later_turn),
        (min, ("shard_weights", "turn"), 3, later_turn),
        (min, ("shard_weights", "follow"), 2, any_call),
    ],
    ids=["a sweep at once", "a part", "a sum", "its end", "the second turn", "the first turn", "the end of turns"],
)
def test_an_error_in_the_middle_of_a_sum_is_told_as_it_is_and_nobody_waits(shared, which, place, number, counts):
    begin = time.monotonic()
    with disarmed(shared, *place):
        arm_one(shared, *place, number, divide_by_zero, counts, which=which)
        with pytest.raises(ZeroDivisionError, match="in the middle"):
            TransductiveClassifier(client=shared, **QUICK).fit(*BLOCKS)
    assert time.monotonic() - begin < 60
    check_nothing_is_held(shared)


def held_here():
    """Shards and fits that this process knows of."""
    return len(shards._SHARDS) + len(all_reduce._FITS)


def check_nothing_is_held(client, seconds=20.0):
    """Workers have let go of everything, or soon do."""
    end = time.monotonic() + seconds
    while any(client.run(held_here).values()):
        assert time.monotonic() < end, client.run(held_here)
        time.sleep(0.1)


def press_ctrl_c(pid):
    """At the driver; while this worker is busy, so that the sum cannot be over when it is heard."""
    os.kill(pid, signal.SIGINT)
    time.sleep(1.5)


@pytest.mark.parametrize(
    ("place", "number", "counts"),
    [(("exchange", "total"), 3, any_call), (("shard_weights", "turn"), 5, later_turn)],
    ids=["sum", "turn"],
)
def test_ctrl_c_in_the_middle_of_a_sum_leaves_the_last_round_and_no_shards(shared, whole, place, number, counts):
    clf = TransductiveClassifier(client=shared, **QUICK)
    with disarmed(shared, *place):
        arm_one(shared, *place, number, functools.partial(press_ctrl_c, os.getpid()), counts)
        clf.fit(*BLOCKS)
    assert "interrupted" in clf.termination_condition_
    assert 0 < len(clf.history_) < len(whole.history_)
    assert told(clf) == told(whole)[: len(clf.history_)]
    assert clf.objective_ == clf.history_[-1].objective
    assert np.all((clf.bounds_.low <= clf.class_counts_) & (clf.class_counts_ <= clf.bounds_.high))
    check_nothing_is_held(shared)
    check_equal(clf.fit(*BLOCKS), whole)


def test_ctrl_c_in_the_middle_of_the_first_sum_is_passed_on_and_leaves_no_shards(shared, monkeypatch):
    monkeypatch.setattr(dask_rows, "SMALL", 0)  # labelled rows are not gathered: their weights are a sum too
    with disarmed(shared, "exchange", "total"):
        arm_one(shared, "exchange", "total", 1, functools.partial(press_ctrl_c, os.getpid()))
        with pytest.raises(KeyboardInterrupt):
            TransductiveClassifier(client=shared, **QUICK).fit(*BLOCKS)
    check_nothing_is_held(shared)


# ---- teams, pieces, blocks that are made again, and workers that stand still


FEW_SUMS = QUICK | {"alpha": 1e-1}


@pytest.mark.parametrize(
    ("ends", "teams", "places"),
    [
        (ENDS, [[[0], [1]], [[2], [3]]], [(max, ("shard_weights", "sweep", 10))]),
        (
            (40, 80, 120, 160, 200),
            [[[0], [1], [2]], [[3], [4], [5]]],
            [(max, ("exchange", "total", 10)), (min, ("exchange", "total", 20))],
        ),
    ],
    ids=["four shards", "six shards"],
)
def test_teams_that_sweep_at_once_are_the_same_wherever_they_are(threads, ends, teams, places, tmp_path):
    """A worker is killed in the middle of a sum, and the other has all shards for a while."""
    blocks = cut(X, ends), cut(Y, ends)
    clf = TransductiveClassifier(client=threads, checkpoint=tmp_path, **FEW_SUMS).fit(*blocks)
    assert json.loads((tmp_path / attempt.TEAMS).read_text()) == teams
    for which, what in places:
        wait_for_both(threads)
        victim = arm_one(threads, *what, die, which=which)
        killed = TransductiveClassifier(client=threads, **FEW_SUMS).fit(*blocks)
        assert victim not in pids(threads)
        check_equal(killed, clf)


def wide_blocks(n_rows=150, n_features=10_000, n_words=12):
    """Short documents in many words, half of which say what they are about."""
    rng = np.random.default_rng(5)
    truth = rng.choice(3, n_rows, p=(0.5, 0.3, 0.2))
    words = rng.integers(n_features, size=(n_rows, n_words))
    words[:, :6] = 20 * truth[:, None] + rng.integers(40, size=(n_rows, 6))
    places = np.repeat(np.arange(n_rows), n_words), words.ravel()
    X = sparse.csr_matrix((np.full(words.size, n_words**-0.5), places), (n_rows, n_features))
    y = np.where(np.arange(n_rows) % 10 < 2, truth, -1)
    return cut(X, (40, 70, 120)), cut(y, (40, 70, 120))


def test_weights_in_two_pieces_are_the_same_after_kills(shared, mortal, tmp_path):
    """Each of two workers adds up one half of the weights, of all of their rows or of few."""
    blocks, many_sums = wide_blocks(), QUICK | {"early_tol": 1e-2}
    clf = TransductiveClassifier(client=shared, **many_sums).fit(*blocks)
    assert bounds_of_pieces(clf.coef_.T.shape, clf.coef_.itemsize, n_owners=2) == [0, 5_000, 10_000]
    killing = Killing(mortal, 2)
    killed = TransductiveClassifier(client=mortal, checkpoint=tmp_path, verbose=killing, **many_sums).fit(*blocks)
    assert len(set(killing.killed)) == 2
    check_equal(killed, clf)
    wait_for_both(mortal)
    victim = arm_one(mortal, "exchange", "total", 6, die)
    killed = TransductiveClassifier(client=mortal, **many_sums).fit(*blocks)
    assert victim not in pids(mortal)
    check_equal(killed, clf)


@pytest.mark.parametrize("kind", ["delayed", "futures"])
def test_blocks_that_can_be_computed_again_are_when_their_worker_is_killed(mortal, whole, kind):
    if kind == "delayed":
        blocks = [[dask.delayed(make)(b) for b in range(4)] for make in (make_rows, make_labels)]
    else:
        workers = sorted(mortal.scheduler_info()["workers"])
        homes = [{"workers": [workers[b // 2]], "allow_other_workers": True, "pure": False} for b in range(4)]
        blocks = [[mortal.submit(make, b, **homes[b]) for b in range(4)] for make in (make_rows, make_labels)]
    victim = arm_one(mortal, "shard_weights", "turn", 20, die)
    clf = TransductiveClassifier(client=mortal, **QUICK).fit(*blocks)
    assert victim not in pids(mortal)
    check_equal(clf, whole)


def test_a_worker_that_stands_still_is_left_behind(mortal, whole, monkeypatch):
    monkeypatch.setattr(worker_pool, "SILENCE", 3.0)
    killing = Killing(mortal, 1, sign=signal.SIGSTOP)
    clf = TransductiveClassifier(client=mortal, verbose=killing, **QUICK).fit(*BLOCKS)
    (victim,) = killing.killed
    state = psutil.Process(victim).status()
    os.kill(victim, signal.SIGKILL)
    assert state == psutil.STATUS_STOPPED
    check_equal(clf, whole)


def set_status(name, dask_worker):
    dask_worker.status = Status[name]


def test_a_worker_that_is_paused_is_left_behind(shared, whole, monkeypatch):
    """It still answers, but takes no tasks: as one whose memory is nearly full."""
    monkeypatch.setattr(worker_pool, "SILENCE", 3.0)
    first, paused = min(shared.scheduler_info()["workers"]), []

    def pause(row):
        if row.stage == 2 and not paused:
            shared.run(set_status, "paused", workers=[first])
            paused.append(first)

    try:
        clf = TransductiveClassifier(client=shared, verbose=pause, **QUICK).fit(*BLOCKS)
        assert shared.scheduler_info()["workers"][first]["status"] == "paused"
        assert shared.run(held_here)[first] > 0
    finally:
        shared.run(set_status, "running", workers=[first])
    check_equal(clf, whole)
    check_nothing_is_held(shared)


def die_soon():
    """When Dask knows the worker: one that dies before that is not started again."""
    time.sleep(0.5)
    die()


def test_a_task_that_always_kills_its_worker_ends_in_a_sentence(mortal):
    begin = time.monotonic()
    with pytest.raises(ClusterError, match=r"died of it|lost 6 times"):
        TransductiveClassifier(client=mortal, **QUICK).fit([dask.delayed(die_soon)()], [BLOCKS[1][0]])
    assert time.monotonic() - begin < 60


class Deadly:
    """A loss that kills the worker when a label step begins."""

    def label_costs(self, scores):
        die_soon()

    def value(self, scores, labels):
        return ((scores - np.eye(scores.shape[1])[labels]) ** 2).sum(axis=1)

    def gradient(self, scores, labels):
        return 2.0 * (scores - np.eye(scores.shape[1])[labels])


def test_a_round_that_always_kills_its_worker_ends_in_a_sentence_that_names_the_checkpoint(
    mortal, tmp_path, monkeypatch
):
    monkeypatch.setattr(estimator, "LOST_IN_VAIN", 2)
    begin = time.monotonic()
    clf = TransductiveClassifier(Deadly(), client=mortal, checkpoint=tmp_path, **QUICK)
    with pytest.raises(ClusterError, match=rf"lost 3 times at the same place.*Stages are kept in {tmp_path}"):
        clf.fit(*BLOCKS)
    assert time.monotonic() - begin < 60


def test_futures_that_went_with_their_worker_are_named():
    with cluster(n_workers=1) as client:
        futures = [client.scatter(block, hash=False) for block in BLOCKS[0]]
        killing = Killing(client, 1)
        with pytest.raises(ClusterError, match=r"block 0 of X was lost with its worker"):
            TransductiveClassifier(client=client, verbose=killing, **QUICK).fit(futures, BLOCKS[1])


def test_a_scheduler_that_is_gone_ends_in_a_sentence_and_a_new_one_goes_on(whole, tmp_path, monkeypatch):
    monkeypatch.setattr(worker_pool, "SILENCE", 3.0)
    with LocalSchedulers() as start:
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

    def __init__(self):
        self.processes, self.clients = [], []

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

    def __exit__(self, *status):
        for process in self.processes:
            process.kill()
            process.wait(timeout=10)
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
    monkeypatch.setattr(worker_pool, "PATIENCE", 2.0)
    with cluster(n_workers=0) as client, pytest.raises(ClusterError, match=r"there must be a worker.*none has come"):
        TransductiveClassifier(client=client, **QUICK).fit(*BLOCKS)


def test_sparse_arrays_and_lists_of_names(shared):
    names = np.array(["ant", "bee", "cat", "dog"], dtype=object)
    labels = [[None if k < 0 else names[k] for k in own] for own in BLOCKS[1]]
    clf = TransductiveClassifier(client=shared, **QUICK).fit([sparse.csr_array(b) for b in BLOCKS[0]], labels)
    assert set(np.concatenate(clf.transduction_)) == set(names)


def test_a_client_that_cannot_be_used_is_told_at_once(shared):
    with pytest.raises(ValueError, match=r"client must be a distributed.Client, but is 'tcp://foo'"):
        TransductiveClassifier(client="tcp://foo").fit(*BLOCKS)
    with Client(shared.scheduler.address, set_as_default=False) as other:
        pass
    with pytest.raises(ClusterError, match="but is closed"):
        TransductiveClassifier(client=other).fit(*BLOCKS)


def names_of_tasks(dask_scheduler):
    return [str(key) for key in dask_scheduler.tasks]


def test_nothing_is_left_with_the_scheduler(shared):
    TransductiveClassifier(client=shared, **QUICK).fit(*BLOCKS)
    end = time.monotonic() + 20
    while any("_let_go" in name for name in shared.run_on_scheduler(names_of_tasks)):
        assert time.monotonic() < end
        time.sleep(0.1)
