"""Sums over shards, and the weights that these share."""

import numpy as np
import pytest
from helpers.inline_pool import InlinePool

from transduce.engines.dask import shards
from transduce.engines.dask.sharded_state import tree_sum
from transduce.engines.dask.shards import Shard
from transduce.engines.dask.shared_weights import SharedWeights


def numbers_and_change(shard):
    """The change of a shard without blocks, which it has in the place of these."""
    return (1, float(shard.raw.sum())), shard.raw


def sum_over_groups(addresses, sizes, changes):
    pool = InlinePool(len(sizes))
    pool._assign(addresses, sizes)
    try:
        for (_, key), change in zip(pool.shards, changes, strict=True):
            shards.SHARDS[key] = Shard(change)
        return tree_sum(pool, numbers_and_change)
    finally:
        pool.release()


@pytest.mark.parametrize("sizes", [(1,), (3,), (1, 1), (2, 1, 3), (1,) * 9, (2,) * 17])
def test_the_sum_is_that_of_all_shards_bit_for_bit_wherever_groups_are(sizes):
    rng = np.random.default_rng(0)
    changes = [np.asfortranarray(rng.normal(size=(30, 3)).astype(np.float32)) for _ in range(sum(sizes))]
    before = [change.copy() for change in changes]
    spread = sum_over_groups([f"worker {g}" for g in range(len(sizes))], sizes, changes)
    (n_shards, total), change = spread
    assert n_shards == len(changes)
    assert total == pytest.approx(sum(float(one.sum()) for one in changes), abs=1e-3)
    np.testing.assert_allclose(change, np.sum(changes, axis=0, dtype=np.float64), atol=1e-5)
    assert (change.dtype, change.flags.f_contiguous) == (np.float32, True)
    together = sum_over_groups(["worker 0"] * len(sizes), sizes, changes)
    assert np.array_equal(together[1], change)
    assert all(map(np.array_equal, changes, before))


def test_shards_that_add_the_sum_of_their_changes_have_the_same_weights():
    rng = np.random.default_rng(1)
    base = rng.normal(size=(20, 3))
    here = [SharedWeights(base.copy(), base.copy()) for _ in range(3)]
    withdrawn, moved = rng.normal(size=(2, 3, 20, 3))
    for one, own, more in zip(here, withdrawn, moved, strict=True):
        one.W += own
        one.amplify(3.0)
        one.W += 3.0 * more
    total = sum(one.change(1.0 / 3.0) for one in here)
    np.testing.assert_allclose(total, withdrawn.sum(axis=0) + moved.sum(axis=0))
    for one in here:
        one.add_change(total)
    np.testing.assert_allclose(here[0].W, base + total)
    assert all(np.array_equal(one.W, here[0].W) and np.array_equal(one.base, one.W) for one in here)
