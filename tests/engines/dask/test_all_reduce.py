"""Reductions over workers without a cluster: each worker has its own exchange, and they call one another directly."""

import asyncio
import functools
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
from distributed.protocol.pickle import loads
from helpers.weight_deltas import random_delta, sum_in_order

from transduce.engines.dask import shards
from transduce.engines.dask.all_reduce import Exchange, Participant, Reduction, ShardGroup
from transduce.engines.dask.restart_state import RestartState
from transduce.engines.dask.shards import Shard
from transduce.engines.dask.weight_deltas import ShardLostError, TrackedWeights, WeightDelta, add_delta


class Workers:
    """Workers with an exchange each, and threads that they share."""

    def __init__(self, groups, reduction):
        self.groups, self.reduction, self.n_requests = groups, reduction, 0
        self.exchanges = {group.address: Exchange() for group in groups}

    def rpc(self, address):
        async def run(function, args):
            self.n_requests += 1
            await asyncio.sleep(0)
            names = loads(args)[2]
            return {"status": "OK", "result": await asyncio.gather(*map(self.exchanges[address].value, names))}

        return SimpleNamespace(run=run)

    def participants(self, threads):
        workers = [SimpleNamespace(address=a, executors={"default": threads}, rpc=self.rpc) for a in self.exchanges]
        return {w.address: Participant(self.groups, self.exchanges[w.address], self.reduction, w) for w in workers}

    async def all_reduce(self):
        with ThreadPoolExecutor(2) as threads:
            await asyncio.gather(*(one.all_reduce() for one in self.participants(threads).values()))

    async def take_turns(self, function):
        """Results of all shards, or what they raised; the last shard is called first."""
        called = [(group.address, key) for group in self.groups for key in group.keys][::-1]
        with ThreadPoolExecutor(1) as threads:
            here = self.participants(threads)

            async def turns(address, key):
                try:
                    return await here[address].take_turns(key, function, ())
                except Exception as error:
                    self.exchanges[address].fail(ShardLostError("failed"))
                    return error

            return (await asyncio.gather(*(turns(*one) for one in called)))[::-1]


@pytest.fixture(autouse=True)
def _no_shards_left():
    yield
    shards.SHARDS.clear()


def add_shard(key, W, delta=None):
    shards.SHARDS[key] = Shard([], restarts={"0": RestartState(TrackedWeights.create(W.copy()), delta)})


def weights_of(key):
    return shards.call(key, shards.call_restart, "0", RestartState.get_weights, False)


@pytest.mark.parametrize("shape", [(50, 3), (9_000, 3)], ids=["one chunk", "three chunks"])
@pytest.mark.parametrize("addresses", ["aaaa", "abab", "abcd", "dcba", "abbb"])
def test_the_sum_is_the_same_bit_for_bit_wherever_groups_are_placed(addresses, shape):
    rng = np.random.default_rng(7)
    W, groups, sums = rng.normal(size=shape), [], []
    for g, (address, size) in enumerate(zip(addresses, (1, 3, 2, 1), strict=True)):
        groups.append(ShardGroup(address, tuple(f"shard {g} {s}" for s in range(size))))
        deltas = [random_delta(rng, shape[0], fraction, shape[1]) for fraction in (0.05, None, 0.2)[:size]]
        sums.append(WeightDelta(None, sum_in_order(deltas, shape[0])))
        for key, delta in zip(groups[-1].keys, deltas, strict=True):
            add_shard(key, W, delta)
    expected = W + sum_in_order(sums, shape[0])
    assert not np.array_equal(expected, W + sum_in_order(sums[::-1], shape[0]))  # the order can be seen
    workers = Workers(groups, Reduction("fit", 1, "0"))
    asyncio.run(workers.all_reduce())
    assert all(np.array_equal(weights_of(key), expected) for key in shards.SHARDS)
    assert (workers.n_requests > 0) == (len(set(addresses)) > 1)


def delta_of(shard, count):
    return random_delta(np.random.default_rng((shard, count)), 60, (0.3, None)[(shard + count) % 2], 3)


def take_turn(here, count, others):
    """Change rows that other shards change too."""
    here.add_deltas(others)
    number = next(s for s, one in enumerate(shards.SHARDS.values()) if one.restarts["0"] is here)
    delta, weights = delta_of(number, count), here.weights
    add_delta(weights.W, delta)
    add_delta(weights.base, delta)
    return (number, count), delta


def until(last, count, results):
    assert results == [(s, count) for s in range(6)]
    return count >= last


@pytest.mark.parametrize("addresses", ["aaa", "aba", "abc"])
@pytest.mark.parametrize(("max_turns", "last"), [(1, 1), (5, 1), (3, 99), (9, 3)])
def test_shards_take_turns_and_end_with_the_same_weights_bit_for_bit(addresses, max_turns, last):
    groups = [ShardGroup(address, (f"shard {g}", f"shard {g} too")) for g, address in enumerate(addresses)]
    for key in (key for group in groups for key in group.keys):
        add_shard(key, np.zeros((60, 3)))
    is_done = functools.partial(until, last)
    workers = Workers(groups, Reduction("fit", 1, "0", max_turns=max_turns, is_done=is_done))
    results = asyncio.run(workers.take_turns(take_turn))
    counts = range(1, min(max_turns, last) + 1)
    assert results == [[(s, count) for count in counts] for s in range(6)]
    deltas = [delta_of(s, count) for count in counts for s in range(6)]
    expected = sum_in_order(deltas, 60)
    assert not np.array_equal(expected, sum_in_order([*deltas[1:], deltas[0]], 60))  # the order can be seen
    assert all(np.array_equal(weights_of(key), expected) for key in shards.SHARDS)
    assert sum(len(exchange.values) for exchange in workers.exchanges.values()) == 6  # only the last turn is held


def fail_once(here, count, others):
    if count == 2 and here is shards.SHARDS["shard 2"].restarts["0"]:
        raise ZeroDivisionError("the third shard")
    return take_turn(here, count, others)


def test_a_turn_that_fails_ends_the_turns_of_all_shards():
    groups = [ShardGroup(address, (f"shard {g}",)) for g, address in enumerate("ababa")]
    for (key,) in (group.keys for group in groups):
        add_shard(key, np.zeros((60, 3)))
    reduction = Reduction("fit", 1, "0", max_turns=4, is_done=lambda count, results: False)
    errors = asyncio.run(Workers(groups, reduction).take_turns(fail_once))
    assert [type(error) for error in errors].count(ZeroDivisionError) == 1
    assert all(isinstance(error, (ZeroDivisionError, ShardLostError)) for error in errors)
