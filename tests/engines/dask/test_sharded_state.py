"""Sums over shards, and the weights that these share."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import pytest
from helpers.dask_blocks import hide_most, make_rows
from helpers.inline_pool import InlinePool, fit_inline
from scipy import sparse

from transduce import TransductiveClassifier
from transduce.dask import TransductiveClassifier as OverDask
from transduce.engines.dask import exchange, shards
from transduce.engines.dask.restart import DaskRestart
from transduce.engines.dask.restart_state import RestartState
from transduce.engines.dask.shards import Shard, call_restart
from transduce.engines.dask.shared_weights import SharedWeights


def numbers_and_change(shard):
    """The change of a shard without blocks, which it has in the place of these."""
    return (1, float(shard.raw.sum())), shard.raw


@contextmanager
def placed(pool, addresses, sizes, changes):
    pool._assign(addresses, sizes)
    try:
        for (_, key), change in zip(pool.shards, changes, strict=True):
            shards.SHARDS[key] = Shard(change)
        yield pool
    finally:
        pool.release()


class Worker:
    """A worker without a process, whose messages are delivered in this one unless it is `unreachable`."""

    def __init__(self, address, unreachable=()):
        self.address, self.unreachable, self.executors = address, unreachable, {"default": ThreadPoolExecutor(1)}

    def rpc(self, address):
        if address in self.unreachable:
            raise OSError("no route")
        return self

    async def transduce_deliver(self, fit, tag, value):
        await exchange.deliver(fit, tag, value.data)


def run_on_workers(pool, *steps, unreachable=()):
    """Run an exchange on workers without processes; returns what each of them answers."""

    async def run():
        exchange.FITS[pool.fit] = exchange.Mailbox(tuple(key for _, key in pool.shards))
        plan, own = (pool.fit, 1, [group.address for group in pool.groups]), {}
        for g, group in enumerate(pool.groups):
            own.setdefault(group.address, {})[g] = group.keys
        running = [
            asyncio.create_task(
                exchange.run_exchange(plan, groups, exchange.Steps(*steps), None, Worker(address, unreachable))
            )
            for address, groups in own.items()
        ]
        await asyncio.wait(running, return_when="FIRST_COMPLETED" if unreachable else "ALL_COMPLETED")
        assert unreachable or not exchange.FITS[pool.fit].messages
        exchange.FITS.pop(pool.fit).close()
        return [answer for one in running for answer in await one]

    return asyncio.run(run())


@pytest.mark.parametrize("sizes", [(1,), (3,), (1, 1), (2, 1, 3), (1,) * 9, (2,) * 17])
@pytest.mark.parametrize("order", ["C", "F", "CF"])
def test_the_sum_is_that_of_all_shards_bit_for_bit_wherever_groups_are(sizes, order):
    rng = np.random.default_rng(0)
    orders = (order * sum(sizes))[: sum(sizes)]
    changes = [np.asarray(rng.normal(size=(30, 3)).astype(np.float32), order=own) for own in orders]
    before = [change.copy() for change in changes]
    with placed(InlinePool(len(sizes)), [f"worker {g}" for g in range(len(sizes))], sizes, changes) as pool:
        ((numbers, change),) = pool.exchange((numbers_and_change,))
        copies = run_on_workers(pool, (numbers_and_change,), (as_it_is,), (as_it_is,))
    assert numbers[0] == len(changes) == len(copies)
    assert numbers[1] == pytest.approx(sum(float(one.sum()) for one in changes), abs=1e-3)
    np.testing.assert_allclose(change, np.sum(changes, axis=0, dtype=np.float64), atol=1e-5)
    assert change.dtype == np.float32
    with placed(InlinePool(1), ["worker 0"] * len(sizes), sizes, changes) as pool:
        copies += run_on_workers(pool, (numbers_and_change,), (), (as_it_is,))
    for found, copy in copies:
        assert list(found) == list(numbers)
        assert np.array_equal(copy, change)
    assert all(map(np.array_equal, changes, before))


def as_it_is(shard, found):
    return found


def fail(shard, *args):
    if shard.raw is not None:
        raise ZeroDivisionError("here")
    return (), np.zeros((9, 2))


@pytest.mark.parametrize("failing", [0, 1, 2])
@pytest.mark.parametrize("step", ["part", "combine", "take"])
def test_an_error_of_one_shard_ends_the_exchange_on_all(failing, step):
    changes = [np.zeros((9, 2)) if s == failing else None for s in range(3)]
    steps = {"part": (zeros,), "combine": (as_it_is,), "take": (as_it_is,)} | {step: (fail,)}
    with placed(InlinePool(3), ["a", "b", "c"], (1, 1, 1), changes) as pool:
        answers = run_on_workers(pool, *steps.values())
    n_errors = sum(isinstance(answer, ZeroDivisionError) for answer in answers)
    assert n_errors == {"part": 3, "combine": 3 * (failing == 0), "take": 1}[step]
    assert len(answers) == 3


def zeros(shard):
    return (), np.zeros((9, 2))


def test_a_worker_that_cannot_reach_another_ends_the_exchange():
    """It answers at once; the other waits until the driver ends the fit."""
    with placed(InlinePool(2), ["a", "b"], (1, 1), [None, None]) as pool:
        answers = run_on_workers(pool, (zeros,), (), (as_it_is,), unreachable=("b",))
    assert [type(answer) for answer in answers] == [shards.ShardLostError] * 2


def test_shards_that_add_the_sum_of_their_changes_have_the_same_weights():
    rng = np.random.default_rng(1)
    base = rng.normal(size=(20, 3))
    here = [SharedWeights(base.copy(), base.copy(), base.copy(), np.zeros(0)) for _ in range(3)]
    withdrawn, moved = rng.normal(size=(2, 3, 20, 3))
    for one, own, more in zip(here, withdrawn, moved, strict=True):
        one.W += own
        one.amplify(3.0)
        one.W += 3.0 * more
    total = sum(one.change(1.0 / 3.0) for one in here)
    np.testing.assert_allclose(total, withdrawn.sum(axis=0) + moved.sum(axis=0))
    for one in here:
        one.set_weights(one.base + total)
    np.testing.assert_allclose(here[0].W, base + total)
    assert all(np.array_equal(one.W, here[0].W) and np.array_equal(one.base, one.W) for one in here)


def test_a_round_starts_beyond_the_weights_by_their_last_change():
    rng = np.random.default_rng(2)
    before, now = rng.normal(size=(2, 20, 3))
    one = SharedWeights(before.copy(), before.copy(), before.copy(), np.zeros(0))
    one.start_round(0.0)
    one.set_weights(now)
    one.start_round(0.5)
    np.testing.assert_allclose(one.W, now + 0.5 * (now - before))
    assert np.array_equal(one.base, one.W)
    np.testing.assert_allclose(one.last, now)


def test_the_intercept_travels_as_the_last_row():
    W, bias = np.arange(6.0).reshape(3, 2), np.array([7.0, 8.0])
    one = SharedWeights(np.zeros((3, 2)), np.zeros((3, 2)), np.zeros((3, 2)), np.zeros(2))
    one.set_weights(np.vstack((W, bias)))
    assert np.array_equal(one.W, W)
    assert np.array_equal(one.bias, bias)
    one.accept_weights()
    one.set_weights(np.zeros((4, 2)))
    one.accept_weights(0.25)
    np.testing.assert_allclose(one.get_weights(accepted=True), 0.75 * np.vstack((W, bias)))
    assert one.products() == pytest.approx((float(np.sum((0.75 * np.vstack((W, bias))) ** 2)), 0.0, 0.0))


# ---- the weight step over shards, against the one in memory


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "maxent"])
@pytest.mark.parametrize("tree", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_shards_reach_the_optimum_of_the_weight_step(loss, tree, fit_intercept):
    """All rows labelled: J has one minimum, the intercept is far from 0, and few sums are needed."""
    rng = np.random.default_rng(3)
    truth = rng.permutation(np.repeat([0, 1, 2, 3], [150, 30, 10, 10]))
    X = sparse.csr_matrix(np.abs(rng.normal(size=(200, 8))) * (rng.random((200, 8)) < 0.5) + np.eye(4, 8)[truth])
    names = np.array(["a/x", "a/y", "b/z", "c"])
    y = names[truth]
    how = {"alpha": 1e-2, "class_prior": "labeled", "fit_intercept": fit_intercept, "tol": 1e-4, "max_iter": 2000}
    how |= {"taxonomy": names.tolist()} if tree else {}
    here = TransductiveClassifier(loss, **how).fit(X, y)
    there = OverDask(loss, **how)
    bounds = [0, 40, 90, 160, 200]
    fit_inline(there, [X[a:b] for a, b in pairwise(bounds)], [y[a:b] for a, b in pairwise(bounds)], n_workers=4)
    assert there.objective_ == pytest.approx(here.objective_, rel=3e-4)
    np.testing.assert_allclose(there.decision_function(X), here.decision_function(X), atol=0.15)


def test_sums_of_weights_grow_slower_than_shards():
    """With few labelled rows and an intercept."""
    X, truth = make_rows(n=1600)
    y, n_sums = hide_most(truth), {}
    for n_shards in (2, 16):
        clf = OverDask(class_prior=np.bincount(truth[y < 0]).tolist(), annealing="paper", random_state=0)
        ends = np.linspace(0, 1600, n_shards + 1).astype(int)
        blocks = ([part[a:b] for a, b in pairwise(ends)] for part in (X, y))
        n_sums[n_shards] = fit_inline(clf, *blocks, n_workers=n_shards).n_sums
    assert 0 < n_sums[16] <= 4 * n_sums[2]


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_the_loss_on_the_way_to_new_weights_is_that_of_all_rows(fit_intercept, monkeypatch):
    """Also of labelled rows that are apart: at the accepted weights, at the new ones, and convex between these."""
    X, truth = make_rows(n=800)
    y, checked, descend = hide_most(truth), [], DaskRestart.descend

    def check_and_descend(self, objective):
        assert self.rows.heavy is not None
        alpha, squares = (
            self.rows.spec.settings.alpha,
            self.pool.call_first(call_restart, self.name, RestartState.products),
        )
        losses = [self._loss_between(t) for t in (0.0, 0.5, 1.0)]
        assert losses[2] + 0.5 * alpha * squares[2] == pytest.approx(self.report.objective, rel=1e-9)
        if checked:  # labels may have moved since, at these scores
            assert losses[0] + 0.5 * alpha * squares[0] <= checked[-1] * (1.0 + 1e-9)
            assert losses[1] <= 0.5 * (losses[0] + losses[2]) * (1.0 + 1e-9)
        found = descend(self, objective)
        checked.append(found[0])
        return found

    monkeypatch.setattr(DaskRestart, "descend", check_and_descend)
    how = {"class_prior": np.bincount(truth[y < 0]).tolist(), "annealing": "paper", "random_state": 0}
    clf = OverDask(fit_intercept=fit_intercept, **how)
    fit_inline(clf, [X[:300], X[300:]], [y[:300], y[300:]], n_workers=2)
    assert len(checked) > 1


def test_rows_without_a_feature_do_not_keep_a_fit_from_converging():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 12)), rng.integers(0, 3, 400)
    X = sparse.csr_matrix(np.abs(X + 2.0 * np.eye(12)[y]) * (rng.random((400, 12)) < 0.6))
    y = np.where(rng.random(400) < 0.2, y, -1)
    blocks = [sparse.csr_matrix((5, 12)), X[:200], sparse.csr_matrix((5, 12)), X[200:]]
    labels = [np.full(5, -1), y[:200], np.full(5, -1), y[200:]]
    parameters = {"annealing": "paper", "class_prior": "labeled", "random_state": 0}
    there = OverDask(**parameters)
    assert fit_inline(there, blocks, labels).n_sums < 5000
    here = TransductiveClassifier(**parameters).fit(sparse.vstack(blocks).tocsr(), np.concatenate(labels))
    assert there.objective_ == pytest.approx(here.objective_, rel=0.03)
