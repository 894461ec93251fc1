"""Blocks of rows and labels as users pass them: local matrices, futures, delayed objects or dask collections.

Futures stay on their workers. Delayed objects and local blocks are divided among the threads of all workers in their
order, so that the result does not depend on where they happen to be computed. The blocks of each shard are stored with
a fit, so that shards can be created again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Any

import numpy as np
from dask import is_dask_collection
from dask.delayed import Delayed
from distributed import Future
from scipy import sparse

from transduce.engines.dask.block_rows import BlockInfo
from transduce.engines.dask.heartbeat import ClusterError, WorkerLostError
from transduce.engines.dask.worker_pool import WorkerPool


def as_blocks(thing: Any, name: str) -> list[Any]:
    """Return what was passed as a list of blocks."""
    if is_single_block(thing):
        return [thing]
    if hasattr(thing, "to_delayed"):
        if getattr(thing, "ndim", 1) == 2 and hasattr(thing, "rechunk"):
            thing = thing.rechunk({1: -1})
        return list(np.ravel(np.asarray(thing.to_delayed(), dtype=object)))
    if isinstance(thing, (list, tuple)):
        return list(thing)
    raise TypeError(
        f"{name} must be a list of blocks, each a matrix, a future or a delayed object, or a dask array, bag or frame, "
        f"but is a {type(thing).__name__}. Pass [{name}] for a single block."
    )


def is_single_block(thing: object) -> bool:
    """Return whether this is one block: a matrix, an array, a future or a delayed object."""
    return isinstance(thing, (Future, Delayed, np.ndarray)) or sparse.issparse(thing)


@dataclass(eq=False)
class BlockSource:
    """Blocks of a fit, and the blocks of each shard in each group of shards."""

    X: list[Any]
    y: list[Any]
    weights: list[Any]
    groups: list[list[list[int]]]
    computing: list[Future] = field(default_factory=list)

    @classmethod
    def create(cls, X: Any, y: Any, sample_weight: Any, groups: list[list[list[int]]] | None = None) -> "BlockSource":
        """Match blocks of rows, labels and weights; use these groups, if they are of as many blocks."""
        if is_single_block(X):
            y, sample_weight = [y], None if sample_weight is None else [sample_weight]
        rows, labels = as_blocks(X, "X"), as_blocks(y, "y")
        weights = [None] * len(rows) if sample_weight is None else as_blocks(sample_weight, "sample_weight")
        if not rows:
            raise ValueError("X must have at least one block of rows, but the list is empty. Pass the blocks.")
        for name, blocks in (("y", labels), ("sample_weight", weights)):
            if len(blocks) != len(rows):
                raise ValueError(f"X has {len(rows)} blocks and {name} {len(blocks)}. Match them, one for each block.")
        source = cls(rows, labels, weights, groups or [])
        if sorted(chain.from_iterable(source.shards)) != list(range(len(rows))):
            source.groups = []
        return source

    @property
    def is_local(self) -> bool:
        """Whether all rows came from this process."""
        return not any(isinstance(block, (Future, Delayed)) for block in self.X)

    @property
    def shards(self) -> list[list[int]]:
        """Blocks of each shard."""
        return list(chain.from_iterable(self.groups))

    def place(self, pool: WorkerPool, unlabeled: object, digest: bool) -> list[BlockInfo]:
        """Create shards of the blocks on the workers; returns what is known about each block."""
        pool.release()
        try:
            if self.computing:
                pool.cancel(self.computing)
                self.computing = []
            workers, holders = pool.workers(), self._holders(pool)
            self.groups = self.groups or self._assign(workers, holders)
            addresses = self._addresses(workers, holders)
            arguments = [(*blocks, unlabeled, digest) for blocks in self._futures(pool, list(workers), addresses)]
            found = pool.place(arguments, addresses, [len(group) for group in self.groups])
        except WorkerLostError:
            self._check_futures()
            raise
        self.computing = []
        infos = dict(sorted(zip(chain.from_iterable(self.shards), chain.from_iterable(found), strict=True)))
        for b, info in infos.items():
            if isinstance(info, Exception):
                info.add_note(f"This is block {b} of the {len(infos)} blocks, counted from 0.")
                raise info
            if info.n_features != infos[0].n_features:
                expected = infos[0].n_features
                raise ValueError(f"Block {b} has {info.n_features} columns, but the first has {expected}. Match them.")
        return list(infos.values())

    def _assign(self, workers: dict[str, Any], holders: dict[int, list[str]]) -> list[list[list[int]]]:
        """Divide blocks among the threads of all workers; the shards of one worker are a group."""
        n_threads = {address: max(1, int(info["nthreads"])) for address, info in sorted(workers.items())}
        if not holders:
            shards = _split(list(range(len(self.X))), sum(n_threads.values()))
            ends = np.cumsum((0, *n_threads.values())) * len(shards) // sum(n_threads.values())
            return [shards[a:b] for a, b in pairwise(ends) if b > a]
        addresses = list(n_threads)
        by_worker: dict[str, list[int]] = {}
        for b in range(len(self.X)):
            known = [address for address in holders.get(b, ()) if address in n_threads]
            by_worker.setdefault(min(known) if known else addresses[b % len(addresses)], []).append(b)
        return [_split(blocks, n_threads[address]) for address, blocks in by_worker.items()]

    def _addresses(self, workers: dict[str, Any], holders: dict[int, list[str]]) -> list[str]:
        """Choose a worker for each group: the one that holds most of its blocks, or else the least loaded one."""
        load, addresses = dict.fromkeys(sorted(workers), 0.0), []
        for group in self.groups:
            known = [address for b in chain.from_iterable(group) for address in holders.get(b, ()) if address in load]
            best = max(sorted(set(known)), key=known.count) if known else min(load, key=lambda one: load[one])
            load[best] += len(group) / max(1, int(workers[best]["nthreads"]))
            addresses.append(best)
        return addresses

    def _futures(self, pool: WorkerPool, workers: list[str], addresses: Sequence[str]) -> list[list[list[Any]]]:
        """Return X, y and weights of each shard as lists of futures; local blocks are sent to its worker."""
        local: list[tuple[Any, str]] = []

        def future(block: Any, address: str) -> Any:
            if block is None or isinstance(block, Future):
                return block
            if is_dask_collection(block):
                self.computing.append(pool.client.compute(block, workers=workers, allow_other_workers=False))
                return self.computing[-1]
            local.append((block, address))
            return len(local) - 1

        shards = [(blocks, address) for group, address in zip(self.groups, addresses, strict=True) for blocks in group]
        found = [
            [[future(kind[b], address) for b in blocks] for kind in (self.X, self.y, self.weights)]
            for blocks, address in shards
        ]
        sent = pool.send(local)
        return [[[sent[one] if isinstance(one, int) else one for one in kind] for kind in mine] for mine in found]

    def _holders(self, pool: WorkerPool) -> dict[int, list[str]]:
        """Return the workers that hold each block of X that is a future."""
        futures = {b: block for b, block in enumerate(self.X) if isinstance(block, Future)}
        known = pool.find_holders(list(futures.values())) if futures else {}
        return {b: list(known.get(future.key, ())) for b, future in futures.items()}

    def _check_futures(self) -> None:
        """Raise an error that names a future that is lost for good."""
        for name, blocks in (("X", self.X), ("y", self.y), ("sample_weight", self.weights)):
            for b, block in enumerate(blocks):
                if isinstance(block, Future) and block.status in ("cancelled", "lost", "error"):
                    raise ClusterError(
                        f"Block {b} of {name} was lost with its worker, and cannot be computed again. Pass delayed "
                        "objects or local blocks, or scatter it again and call fit again."
                    )


def _split(blocks: list[int], n_shards: int) -> list[list[int]]:
    """Divide blocks into at most so many shards of neighbours."""
    ends = np.linspace(0, len(blocks), min(n_shards, len(blocks)) + 1).astype(int)
    return [blocks[a:b] for a, b in pairwise(ends)]
