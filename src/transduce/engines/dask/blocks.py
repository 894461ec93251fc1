"""Blocks at the door: what users pass as rows and labels, as lists of local blocks, futures or delayed objects.

Futures stay where they are: those of one worker are looked after there. Delayed objects and local blocks are shared out
among the threads of all workers in their order, neighbours together, so that the result does not depend on where they
happen to be computed. What a shard was made of is remembered, so that it can be made again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from dask import is_dask_collection
from dask.delayed import Delayed
from distributed import Future
from scipy import sparse

from transduce.engines.dask import shards
from transduce.engines.dask.shards import Facts
from transduce.engines.dask.worker_pool import ClusterError, WorkerLostError, WorkerPool


def as_blocks(thing: Any, name: str) -> list[Any]:
    """A list of blocks, whatever came.

    >>> [block.shape for block in as_blocks(np.zeros((5, 2)), "X")]
    [(5, 2)]
    """
    if isinstance(thing, (Future, Delayed)) or sparse.issparse(thing) or isinstance(thing, np.ndarray):
        return [thing]
    if is_dask_collection(thing):
        if getattr(thing, "ndim", 1) == 2 and hasattr(thing, "rechunk"):
            thing = thing.rechunk({1: -1})
        if not hasattr(thing, "to_delayed"):
            raise TypeError(f"{name} must be a dask array, bag or frame, or a list of blocks, but is a {_kind(thing)}.")
        return list(np.ravel(np.asarray(thing.to_delayed(), dtype=object)))
    if isinstance(thing, (list, tuple)):
        return list(thing)
    raise TypeError(
        f"{name} must be a list of blocks, each a matrix, a future or a delayed object, or a dask collection, but is a "
        f"{_kind(thing)}. Pass [{name}] for a single block."
    )


def _kind(thing: object) -> str:
    return type(thing).__name__


def matching(X: Any, y: Any, sample_weight: Any) -> tuple[list[Any], list[Any], list[Any]]:
    """Blocks of rows, labels and weights, as many of each."""
    rows = as_blocks(X, "X")
    single = isinstance(X, (Future, Delayed, np.ndarray)) or sparse.issparse(X)
    if single:
        y, sample_weight = [y], None if sample_weight is None else [sample_weight]
    labels = as_blocks(y, "y")
    weights = [None] * len(rows) if sample_weight is None else as_blocks(sample_weight, "sample_weight")
    if not rows:
        raise ValueError("X must have at least one block of rows, but the list is empty. Pass the blocks.")
    for name, blocks in (("y", labels), ("sample_weight", weights)):
        if len(blocks) != len(rows):
            raise ValueError(f"X has {len(rows)} blocks and {name} {len(blocks)}. Match them, one for each block.")
    return rows, labels, weights


@dataclass(eq=False)
class Source:
    """Blocks of a fit, and which of them make up each shard of each team."""

    X: list[Any]
    y: list[Any]
    weights: list[Any]
    teams: list[list[list[int]]]
    made: list[Future] = field(default_factory=list)

    @property
    def is_local(self) -> bool:
        """Whether all rows came from this process."""
        return not any(isinstance(block, (Future, Delayed)) for block in self.X)

    @property
    def groups(self) -> list[list[int]]:
        """Blocks of each shard."""
        return [group for team in self.teams for group in team]

    @classmethod
    def create(cls, X: Any, y: Any, sample_weight: Any, teams: list[list[list[int]]] | None = None) -> "Source":
        """Blocks as they came; in these teams, if they are of as many blocks."""
        source = cls(*matching(X, y, sample_weight), teams or [])
        if sorted(b for group in source.groups for b in group) != list(range(len(source.X))):
            source.teams = []
        return source

    def _team_up(self, pool: WorkerPool) -> list[list[list[int]]]:
        """Share out blocks among the threads of all workers; those of one worker are a team."""
        n_threads = {address: max(1, int(facts["nthreads"])) for address, facts in sorted(pool.workers().items())}
        if not any(isinstance(block, Future) for block in self.X):
            groups = _split(list(range(len(self.X))), sum(n_threads.values()))
            ends = np.cumsum((0, *n_threads.values())) * len(groups) // sum(n_threads.values())
            return [groups[a:b] for a, b in pairwise(ends) if b > a]
        holders, addresses = _holders(pool, self.X), list(n_threads)
        at_home: dict[str, list[int]] = {}
        for b in range(len(self.X)):
            there = [address for address in holders.get(b, ()) if address in n_threads]
            at_home.setdefault(min(there) if there else addresses[b % len(addresses)], []).append(b)
        homes = sorted(at_home, key=lambda one: at_home[one][0])
        return [_split(at_home[address], n_threads[address]) for address in homes]

    def place(self, pool: WorkerPool, unlabeled: object, digest: bool) -> list[Facts]:
        """Let shards be made of the blocks; gives the facts of every block, in the order of blocks."""
        pool.drop()
        try:
            if self.made:
                pool.cancel(self.made)
                self.made = []
            self.teams = self.teams or self._team_up(pool)
            sizes = [len(team) for team in self.teams]
            homes = [home for home, size in zip(self._homes(pool), sizes, strict=True) for _ in range(size)]
            makers = [
                partial(_hold, pool, home, blocks, (unlabeled, digest))
                for home, blocks in zip(homes, self._sent(pool, homes), strict=True)
            ]
            answers = pool.place(makers, homes, sizes)
        except WorkerLostError:
            self._check_futures()
            raise
        self.made = []
        facts: dict[int, Facts] = {}
        for group, answer in zip(self.groups, answers, strict=True):
            for b, fact in zip(group, answer, strict=True):
                if isinstance(fact, str):
                    raise ValueError(f"block {b}: {fact}")
                facts[b] = fact
        return [facts[b] for b in range(len(self.X))]

    def _homes(self, pool: WorkerPool) -> list[str]:
        """Where each team goes: to the worker that has most of its blocks, else to the one with the least to do."""
        workers = pool.workers()
        holders = _holders(pool, self.X)
        load = dict.fromkeys(sorted(workers), 0.0)
        homes = []
        for team in self.teams:
            blocks = [b for group in team for b in group]
            found = [address for b in blocks for address in holders.get(b, ()) if address in load]
            best = max(sorted(set(found)), key=found.count) if found else min(load, key=lambda one: load[one])
            load[best] += len(team) / max(1, int(workers[best]["nthreads"]))
            homes.append(best)
        return homes

    def _sent(self, pool: WorkerPool, homes: Sequence[str]) -> list[list[list[Any]]]:
        """Blocks of each shard as futures, or nothing; those that are here are sent to their homes."""
        local: list[tuple[Any, str]] = []
        there = list(pool.workers())
        found = [
            [
                [self._find(pool, there, home, blocks[b], local) for b in group]
                for blocks in (self.X, self.y, self.weights)
            ]
            for home, group in zip(homes, self.groups, strict=True)
        ]
        sent = pool.send_all(local)
        return [[[sent[one] if isinstance(one, int) else one for one in kind] for kind in mine] for mine in found]

    def _find(self, pool: WorkerPool, there: list[str], home: str, block: Any, local: list[tuple[Any, str]]) -> Any:
        """The future of a block, or its place among those to be sent; workers that are there now make delayed ones."""
        if block is None or isinstance(block, Future):
            return block
        if is_dask_collection(block):
            self.made.append(pool.client.compute(block, workers=there, allow_other_workers=False))
            return self.made[-1]
        local.append((block, home))
        return len(local) - 1

    def _check_futures(self) -> None:
        """Say which futures are gone for good."""
        for name, blocks in (("X", self.X), ("y", self.y), ("sample_weight", self.weights)):
            for b, block in enumerate(blocks):
                if isinstance(block, Future) and block.status in ("cancelled", "lost", "error"):
                    raise ClusterError(
                        f"block {b} of {name} was lost with its worker, and cannot be made again. Pass delayed objects "
                        "or local blocks, or scatter it anew and call fit again."
                    )


def _hold(pool: WorkerPool, home: str, blocks: list[list[Any]], how: tuple[object, bool], key: str) -> Future:
    return pool.submit(shards.hold, key, *blocks, *how, home=home)


def _split(blocks: list[int], n_shards: int) -> list[list[int]]:
    """Neighbours together, in at most so many groups.

    >>> _split([0, 1, 2, 3, 4], 2)
    [[0, 1], [2, 3, 4]]
    """
    ends = np.linspace(0, len(blocks), min(n_shards, len(blocks)) + 1).astype(int)
    return [blocks[a:b] for a, b in pairwise(ends)]


def _holders(pool: WorkerPool, blocks: Sequence[Any]) -> dict[int, list[str]]:
    """Workers that have each of the futures among the blocks."""
    futures = {b: block for b, block in enumerate(blocks) if isinstance(block, Future)}
    if not futures:
        return {}
    known = pool.holders(list(futures.values()))
    return {b: list(known.get(future.key, ())) for b, future in futures.items()}
