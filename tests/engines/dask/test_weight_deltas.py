"""Changes of the weights: cut, summed, added and taken back, they are what dense arrays would give, bit for bit."""

import asyncio
import functools
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from distributed.protocol.pickle import loads
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from transduce.design import Design
from transduce.engines.dask import all_reduce as exchange
from transduce.engines.dask import shard_weights, shards
from transduce.engines.dask.all_reduce import Sum, Team
from transduce.engines.dask.weight_deltas import (
    DENSE,
    WORTH_A_PIECE,
    Before,
    Change,
    Piece,
    add_to,
    as_change,
    bounds_of_pieces,
    cut,
    total,
)
from transduce.taxonomy import Taxonomy

SEEDS = st.integers(0, 2**32 - 1)
quick = settings(deadline=None, max_examples=60)


def random_change(rng, n_rows, share, n_columns=2, dtype=np.float64, among=1.0):
    """A change of this share of the first rows of W; of all of them, as one array, where it is None."""
    if share is None:
        return Change(None, rng.normal(size=(n_rows, n_columns)).astype(dtype))
    places = np.flatnonzero(rng.random(int(n_rows * among)) < share)
    return Change(places, rng.normal(size=(places.size, n_columns)).astype(dtype))


def dense(change, n_rows):
    """A change as an array of all rows of W, zero where nothing changes."""
    out = np.zeros((n_rows, change.values.shape[1]), change.values.dtype)
    out[slice(None) if change.places is None else change.places] = change.values
    return out


def in_order(changes, n_rows):
    """The sum of changes, one after the other: another order would be another sum, in the last bits."""
    out = dense(changes[0], n_rows)
    for change in changes[1:]:
        out = out + dense(change, n_rows)
    return out


@quick
@given(SEEDS, st.integers(1, 40), st.lists(st.sampled_from([0.0, 0.1, 0.7, 1.0]), min_size=1, max_size=5))
@pytest.mark.parametrize("kind", ["few", "many", "mixed"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_total_is_the_dense_sum_in_the_order_given_bit_for_bit(dtype, kind, seed, n_rows, shares):
    """Of few rows, which all changes share; of any; and of any and all of them."""
    rng, among = np.random.default_rng(seed), 0.4 if kind == "few" else 1.0
    changes = [random_change(rng, n_rows, share, dtype=dtype, among=among) for share in shares]
    if kind == "mixed":
        changes.insert(rng.integers(len(changes) + 1), random_change(rng, n_rows, None, dtype=dtype))
    found = total([Piece(5, 5 + n_rows, change) for change in changes])
    assert (found.low, found.high) == (5, 5 + n_rows)
    assert found.change.values.dtype == dtype
    assert np.array_equal(dense(found.change, n_rows), in_order(changes, n_rows))


@pytest.mark.parametrize(("n_each", "whole"), [(20, False), (30, True)], ids=["few rows", "many rows"])
def test_a_total_lists_all_rows_where_those_that_change_are_many(n_each, whole):
    """Twice 30 rows of 100, none of them shared, are more than half, though neither change alone is."""
    parts = [np.arange(n_each), np.arange(100 - n_each, 100)]
    changes = [Change(places, np.full((n_each, 1), float(n_each))) for places in parts]
    found = total([Piece(0, 100, change) for change in changes]).change
    assert (found.places is None) == whole == (2 * n_each > DENSE * 100)
    assert np.array_equal(dense(found, 100), in_order(changes, 100))


def test_a_total_leaves_what_it_adds_up_as_it_was():
    rng = np.random.default_rng(0)
    changes = [random_change(rng, 20, share) for share in (None, 0.3, None)]
    before = [change.values.copy() for change in changes]
    total([Piece(0, 20, change) for change in changes])
    assert all(np.array_equal(change.values, old) for change, old in zip(changes, before, strict=True))


@quick
@given(SEEDS, st.integers(1, 40), st.sampled_from([0.0, 0.1, 0.6, None]), st.integers(1, 6), st.booleans())
def test_pieces_of_a_change_added_to_weights_are_the_change_added(seed, n_rows, share, n_pieces, anew):
    rng = np.random.default_rng(seed)
    W, change = rng.normal(size=(n_rows, 3)), random_change(rng, n_rows, share, 3)
    bounds = [0, *sorted(rng.integers(0, n_rows + 1, n_pieces - 1).tolist()), n_rows]
    expected = dense(change, n_rows) + (0.0 if anew else W)
    pieces = cut(change, bounds)
    assert [(piece.low, piece.high) for piece in pieces] == list(pairwise(bounds))
    add_to(W, pieces, anew)
    assert np.array_equal(W, expected)


@quick
@given(st.integers(1, 200_000), st.integers(1, 30), st.sampled_from([4, 8]), st.integers(1, 70))
def test_bounds_cover_all_rows_once_and_every_piece_is_worth_it(n_rows, n_columns, itemsize, n_owners):
    bounds = bounds_of_pieces((n_rows, n_columns), itemsize, n_owners)
    assert (bounds[0], bounds[-1]) == (0, n_rows)
    assert all(low < high for low, high in pairwise(bounds))
    n_pieces, row = len(bounds) - 1, n_columns * itemsize
    assert n_pieces <= n_owners
    if n_pieces > 1:  # bounds are whole rows
        assert all((high - low + 1) * row >= WORTH_A_PIECE for low, high in pairwise(bounds))
    if n_pieces < min(n_owners, n_rows):
        assert n_rows * row < (n_pieces + 1) * WORTH_A_PIECE


# ---- what rows have changed, taken back


def random_design(rng, n_rows=20, n_features=60, dtype=np.float64):
    X = sparse.random(n_rows, n_features, 0.05, format="csr", dtype=dtype, random_state=rng)
    return Design.create(X, Taxonomy.flat("abc"))


def columns_of(design, rows):
    return np.unique(np.concatenate([design.indices[slice(*design.spans[i])] for i in rows] or [[]])).astype(int)


@quick
@given(
    SEEDS, st.lists(st.sampled_from([0, 1, 3, 9, 11, 20]), min_size=1, max_size=3), st.sampled_from([1.0, 0.5, 1 / 3])
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_visits_change_is_taken_and_the_weights_are_as_before(dtype, seed, n_visited, share):
    """Visits of few rows, of many (11 of 20 are), and of one after the other, to rows that share columns."""
    rng = np.random.default_rng(seed)
    design = random_design(rng, dtype=dtype)
    W = rng.normal(size=(60, 3)).astype(dtype)
    before = Before.create(W)
    for _ in range(2):  # it can be used again
        at_first, touched = W.copy(), np.zeros(60, bool)
        for n_rows in n_visited:
            rows = rng.choice(20, n_rows, replace=False)
            before.touch(W, design, rows)
            columns = columns_of(design, rows)
            touched[columns] = True
            W[columns] += rng.normal(size=(columns.size, 3)).astype(dtype)
        bent = W.copy()
        change = before.take(W, share)
        assert np.array_equal(W, at_first)
        assert change.values.dtype == dtype
        assert (change.places is None) == any(n > DENSE * 20 for n in n_visited)
        if change.places is not None:
            assert np.array_equal(change.places, np.flatnonzero(touched))
        expected = (bent - at_first) * share
        found = dense(change, 60)
        if dtype == np.float64:
            assert np.array_equal(found, expected)
        np.testing.assert_allclose(found, expected, rtol=3e-7)


def test_rows_of_several_blocks_touch_the_same_weights():
    rng = np.random.default_rng(1)
    designs, W = [random_design(rng) for _ in range(2)], rng.normal(size=(60, 3))
    before, at_first = Before.create(W), W.copy()
    for design, n_rows in ((designs[0], 3), (designs[1], 3), (designs[0], 15)):
        before.touch(W, design, np.arange(n_rows))
        W[columns_of(design, np.arange(n_rows))] *= 2.0
    bent = W.copy()
    change = before.take(W, 1.0)
    assert change.places is None
    assert np.array_equal(W, at_first)
    assert np.array_equal(change.values, bent - at_first)


@quick
@given(SEEDS, st.sampled_from([0, 3, 11]), st.sampled_from([0.05, 0.3, None]), st.booleans())
def test_what_others_change_is_as_if_it_had_always_been(seed, n_rows, share, put_back):
    rng = np.random.default_rng(seed)
    design, W, theirs = random_design(rng), rng.normal(size=(60, 3)), random_change(rng, 60, share, 3)
    before, at_first = Before.create(W), W.copy()
    rows = rng.choice(20, n_rows, replace=False)
    before.touch(W, design, rows)
    own = np.zeros_like(W)
    own[columns_of(design, rows)] = 1.0
    W += own
    before.follow(W, theirs)
    np.testing.assert_allclose(W, at_first + own + dense(theirs, 60))
    change = before.take(W, put_back=put_back)
    np.testing.assert_allclose(dense(change, 60), own, atol=1e-12)
    theirs_alone = at_first.copy()
    add_to(theirs_alone, [Piece(0, 60, theirs)], anew=False)
    if not put_back:
        add_to(theirs_alone, [Piece(0, 60, change)], anew=False)
    assert np.array_equal(W, theirs_alone)  # bit for bit what another has, who adds both


@pytest.mark.parametrize("share", [0.0, 0.2, 0.9])
def test_weights_are_a_change_of_nothing(share):
    rng = np.random.default_rng(0)
    W = rng.normal(size=(40, 3)) * (rng.random((40, 1)) < share)
    change, found = as_change(W), np.full((40, 3), 7.0)
    add_to(found, [Piece(0, 40, change)], anew=True)
    assert np.array_equal(found, W)
    assert (change.places is None) == (share > DENSE)


# ---- sums over workers


class Boards:
    """Workers without a cluster, each with its own board of one sum, who ask one another as if through a network."""

    def __init__(self, teams):
        self.teams, self.n_asked = teams, 0
        self.boards = {team.home: exchange._Board() for team in teams}

    def rpc(self, home):
        async def run(function, args):
            self.n_asked += 1
            await asyncio.sleep(0)
            names = loads(args)[2]
            return {"status": "OK", "result": await asyncio.gather(*map(self.boards[home].slot, names))}

        return SimpleNamespace(run=run)

    async def add(self, which):
        with ThreadPoolExecutor(2) as threads:
            adding = [exchange._add(self.teams, self.boards[w.address], which, w) for w in self.workers(threads)]
            await asyncio.wait_for(asyncio.gather(*adding), 30)

    def workers(self, threads):
        return [SimpleNamespace(address=home, executors={"default": threads}, rpc=self.rpc) for home in self.boards]

    async def take_turns(self, which, function):
        """Answers of a function of all shards, one after the other, turn after turn, the last asked first."""
        links = [(team.home, key) for team in self.teams for key in team.keys]
        with ThreadPoolExecutor(1) as threads:
            of_home = {worker.address: worker for worker in self.workers(threads)}
            asked = [
                exchange._take_turns(links, self.boards[home], which, (key, function, ()), of_home[home])
                for home, key in links[::-1]
            ]
            return (await asyncio.wait_for(asyncio.gather(*asked), 30))[::-1]


def changed_shards(sizes, shape):
    """Shards of teams of these sizes, each with a change that waits; few of them change all of W."""
    rng = np.random.default_rng(7)
    W, changes, keys = rng.normal(size=shape), [], []
    for t, size in enumerate(sizes):
        keys.append(tuple(f"shard {t} {s}" for s in range(size)))
        changes.append([random_change(rng, shape[0], share, shape[1]) for share in (0.05, None, 0.2)[:size]])
        for key, change in zip(keys[-1], changes[-1], strict=True):
            shards._SHARDS[key] = shards.Shard([], restarts={"0": shards.RestartState(W.copy(), [], change)})
    return W, changes, keys


@pytest.fixture
def _no_shards_left():
    yield
    shards._SHARDS.clear()


@pytest.mark.usefixtures("_no_shards_left")
@pytest.mark.parametrize("shape", [(50, 3), (9_000, 3)], ids=["one piece", "three pieces"])
@pytest.mark.parametrize("homes", ["aaaa", "abab", "abcd", "dcba", "abbb"])
def test_the_sum_of_all_teams_is_the_same_bit_for_bit_wherever_they_live(homes, shape):
    W, changes, keys = changed_shards((1, 3, 2, 1), shape)
    of_teams = [Change(None, in_order(own, shape[0])) for own in changes]
    expected = W + in_order(of_teams, shape[0])
    assert not np.array_equal(expected, W + in_order(of_teams[::-1], shape[0]))  # the order can be seen
    together = Boards([Team(home, own) for home, own in zip(homes, keys, strict=True)])
    asyncio.run(together.add(Sum("fit", 1, "0", anew=False)))
    for key in (key for own in keys for key in own):
        assert np.array_equal(shards.visit(key, shard_weights.weights, "0", False), expected)
    assert (together.n_asked > 0) == (len(set(homes)) > 1)


def one_more(shard, count, others):
    """A visit that adds numbers that are its own to rows that others change too."""
    here = shard.restarts["0"]
    shard_weights.follow(shard, "0", others)
    own = next(g for g, one in enumerate(shards._SHARDS.values()) if one is shard)
    change = change_of(own, count)
    add_to(here.W, [Piece(0, len(here.W), change)], anew=False)
    return (own, count), change


def change_of(own, count):
    return random_change(np.random.default_rng((own, count)), 60, (0.3, None)[(own + count) % 2], 3)


def until(last, count, answers):
    assert answers == [(g, count) for g in range(6)]
    return count >= last


@pytest.mark.usefixtures("_no_shards_left")
@pytest.mark.parametrize("homes", ["aaa", "aba", "abc"])
@pytest.mark.parametrize(("n_turns", "last"), [(1, 1), (5, 1), (3, 99), (9, 3)])
def test_shards_take_turns_until_it_is_over_and_all_have_the_same_weights_bit_for_bit(homes, n_turns, last):
    keys = [(f"shard {t}", f"shard {t} too") for t in range(3)]
    for key in (key for own in keys for key in own):
        shards._SHARDS[key] = shards.Shard([], restarts={"0": shards.RestartState(np.zeros((60, 3)), [])})
    together = Boards([Team(home, own) for home, own in zip(homes, keys, strict=True)])
    which = Sum("fit", 1, "0", n_turns=n_turns, is_over=functools.partial(until, last))
    answers = asyncio.run(together.take_turns(which, one_more))
    counts = range(1, min(n_turns, last) + 1)
    assert answers == [[(g, count) for count in counts] for g in range(6)]
    changes = [change_of(g, count) for count in counts for g in range(6)]
    W = in_order(changes, 60)
    assert not np.array_equal(W, in_order([*changes[1:], changes[0]], 60))  # the order can be seen
    for key in (key for own in keys for key in own):
        assert np.array_equal(shards.visit(key, shard_weights.weights, "0", False), W)
    assert sum(len(board.slots) for board in together.boards.values()) == 6  # those of the last turn alone are held


def never(count, answers):
    return False


def third_fails(shard, count, others):
    if count == 2 and shard is shards._SHARDS["shard 2"]:
        raise ZeroDivisionError("the third")
    return one_more(shard, count, others)


@pytest.mark.usefixtures("_no_shards_left")
def test_a_turn_that_fails_ends_those_of_all():
    keys = [(f"shard {t}",) for t in range(5)]
    for (key,) in keys:
        shards._SHARDS[key] = shards.Shard([], restarts={"0": shards.RestartState(np.zeros((60, 3)), [])})
    together = Boards([Team(home, own) for home, own in zip("ababa", keys, strict=True)])
    answers = asyncio.run(together.take_turns(Sum("fit", 1, "0", n_turns=4, is_over=never), third_fails))
    errors = [answer.error for answer in answers]
    assert [type(error) for error in errors].count(ZeroDivisionError) == 1
    assert all(isinstance(error, (ZeroDivisionError, shards.GoneError)) for error in errors)
