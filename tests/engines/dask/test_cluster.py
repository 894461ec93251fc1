"""Fits on a cluster of processes: all kinds of blocks give the fit of shards in this process."""

import pickle
from collections import Counter

import dask
import dask.array
import dask.bag
import numpy as np
import pytest
from distributed import Client
from helpers.dask_blocks import (
    BLOCKS,
    ENDS,
    QUICK,
    TRUTH,
    X,
    Y,
    assert_equal_fits,
    fetch,
    label_block,
    row_block,
    split,
)
from helpers.dask_cluster import wait_until_released
from scipy import sparse
from sklearn.base import clone

from transduce.dask import ClusterError, TransductiveClassifier
from transduce.engines.dask.worker_pool import WorkerPool

pytestmark = pytest.mark.filterwarnings("ignore")  # of distributed


@pytest.fixture
def client(steady):
    return steady


def test_local_blocks_give_arrays_and_leave_nothing_on_the_workers(client, expected):
    clf = TransductiveClassifier(client=client, **QUICK).fit(*BLOCKS)
    assert_equal_fits(clf, expected)
    assert [len(labels) for labels in clf.transduction_] == [60, 39, 71, 70]
    assert np.array_equal(np.concatenate(clf.transduction_)[Y >= 0], Y[Y >= 0])
    wait_until_released(client)


def test_tasks_are_started_for_blocks_only(client, monkeypatch):
    """However many sums a fit takes: one for each shard, and two for the labels and distributions of each block."""
    started, submit = Counter(), WorkerPool.submit

    def count_and_submit(self, function, *args, **where):
        started[function.__name__] += 1
        return submit(self, function, *args, **where)

    monkeypatch.setattr(WorkerPool, "submit", count_and_submit)
    TransductiveClassifier(client=client, **QUICK).fit(*BLOCKS)
    assert started == {"create": 2, "call": 2 * len(BLOCKS[0])}


def test_futures_stay_on_their_workers_and_give_futures(client, expected):
    workers = sorted(client.scheduler_info()["workers"])
    placed = list(zip(*BLOCKS, [workers[0], workers[0], workers[1], workers[1]], strict=True))
    futures = [client.scatter(block, workers=[worker], hash=False) for block, _, worker in placed]
    labels = [client.scatter(own, workers=[worker], hash=False) for _, own, worker in placed]
    clf = TransductiveClassifier(client=client, **QUICK).fit(futures, labels)
    assert all(hasattr(block, "result") for block in clf.transduction_)
    assert_equal_fits(clf, expected)
    predicted = clf.predict(futures)
    assert np.array_equal(predicted[1].result(), clf.predict(BLOCKS[0][1]))
    assert np.array_equal(clf.predict(futures[1]).result(), predicted[1].result())
    assert clf.score(futures, split(TRUTH, ENDS)) == pytest.approx(clf.score(BLOCKS[0], split(TRUTH, ENDS)))


def test_delayed_blocks(client, expected):
    blocks = [[dask.delayed(make)(b) for b in range(4)] for make in (row_block, label_block)]
    clf = TransductiveClassifier(**QUICK).fit(*blocks)  # the client in use
    assert_equal_fits(clf, expected)
    assert np.array_equal(clf.predict(blocks[0][0]).result(), clf.predict(BLOCKS[0][0]))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["array", "bag"])
def test_dask_collections(client, expected, kind):
    if kind == "array":
        chunks = (tuple(block.shape[0] for block in BLOCKS[0]), (5, 7))
        rows, labels = dask.array.from_array(X.toarray(), chunks=chunks), dask.array.from_array(Y, chunks=chunks[0])
    else:
        rows = dask.bag.from_delayed([dask.delayed(list)([block]) for block in BLOCKS[0]])
        labels = dask.bag.from_delayed([dask.delayed(list)(block.tolist()) for block in BLOCKS[1]])
    clf = TransductiveClassifier(client=client, **QUICK).fit(rows, labels)
    assert np.array_equal(np.concatenate(fetch(clf.transduction_)), np.concatenate(expected.transduction_))


@pytest.mark.slow
def test_sparse_arrays_and_lists_of_names(client):
    names = np.array(["ant", "bee", "cat", "dog"], dtype=object)
    labels = [[None if k < 0 else names[k] for k in own] for own in BLOCKS[1]]
    clf = TransductiveClassifier(client=client, **QUICK).fit([sparse.csr_array(b) for b in BLOCKS[0]], labels)
    assert set(np.concatenate(clf.transduction_)) == set(names)


def test_the_client_stays_out_of_pickles_and_in_clones(client, expected):
    clf = TransductiveClassifier(client=client, **QUICK)
    assert clone(clf).client is client
    assert pickle.loads(pickle.dumps(expected)).client is None
    assert np.array_equal(pickle.loads(pickle.dumps(expected)).predict(X), expected.predict(X))


@pytest.mark.slow
def test_a_client_that_is_not_the_default_is_enough(client, expected, monkeypatch):
    def no_default_client(*args):
        raise ValueError("there is no default client")

    monkeypatch.setattr("distributed.client.default_client", no_default_client)
    assert_equal_fits(TransductiveClassifier(client=client, **QUICK).fit(*BLOCKS), expected)


def test_a_client_that_cannot_be_used_is_an_error(client):
    with pytest.raises(ValueError, match=r"client must be a distributed.Client, but is 'tcp://foo'"):
        TransductiveClassifier(client="tcp://foo").fit(*BLOCKS)
    with Client(client.scheduler.address, set_as_default=False) as other:
        pass
    with pytest.raises(ClusterError, match="is closed"):
        TransductiveClassifier(client=other).fit(*BLOCKS)


def missing_file():
    raise FileNotFoundError("no such file")


class Broken:
    """A user's loss that raises in label steps."""

    def label_costs(self, scores):
        raise KeyError("its own")

    def value(self, scores, labels):
        return ((scores - np.eye(scores.shape[1])[labels]) ** 2).sum(axis=1)

    def gradient(self, scores, labels):
        return 2.0 * (scores - np.eye(scores.shape[1])[labels])


def test_errors_of_tasks_and_of_the_loss_are_raised_as_they_are(client):
    with pytest.raises(FileNotFoundError, match="no such file"):
        TransductiveClassifier(client=client, **QUICK).fit([dask.delayed(missing_file)()], [BLOCKS[1][0]])
    with pytest.raises(KeyError, match="its own"):
        TransductiveClassifier(Broken(), client=client, **QUICK).fit(*BLOCKS)
