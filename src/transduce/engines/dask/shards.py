"""Shards: blocks of rows in the memory of a worker, and the state of each restart on them.

A shard holds the blocks that one thread of a worker works on. It lives in the worker's process, beside what Dask stores
there, because its arrays change in place. The driver sends functions and small arguments, and small results come back;
weights and their changes are the only large arrays that leave.
"""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from distributed.protocol.pickle import dumps, loads
from scipy import sparse

from transduce.arrays import Array
from transduce.design import Design
from transduce.engines.common import predicted_counts
from transduce.engines.dask.block_rows import BlockInfo, ProblemSpec, build_block, read_block
from transduce.engines.dask.block_state import Block, BlockState
from transduce.engines.dask.restart_state import RestartState, empty_state, split_weights
from transduce.labels.encode import EncodedLabels
from transduce.problem import TrainingProblem

Function: TypeAlias = Callable[..., Any]
ORPHAN_SECONDS = 3600.0
"""Seconds without a call after which a shard is dropped when another arrives: its driver is gone."""


class ShardLostError(Exception):
    """The shard is not in this process."""


@dataclass(eq=False)
class Shard:
    """Blocks as they arrived, X and sample weights; as training problems, once labels are encoded; and restarts.

    `heavy` are the labelled rows of all shards, if they are apart; on the first shard only.
    """

    raw: list[tuple[Any, Array | None]]
    blocks: list[Block] = field(default_factory=list)
    heavy: Block | None = None
    restarts: dict[str, RestartState] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    last_call: float = field(default_factory=time.monotonic)

    def build(self, spec: ProblemSpec, labels: Sequence[tuple[Array, EncodedLabels]]) -> bool:
        """Turn raw blocks and the labels of some of their rows, with their positions, into training problems.

        Returns whether rows are memory-mapped.
        """
        self.blocks = [build_block(*raw, spec, *own) for raw, own in zip(self.raw, labels, strict=True)]
        self.raw = []
        return any(block.problem.design.is_mapped for block in self.blocks)

    def labeled_rows(self) -> list[tuple[sparse.csr_matrix, Array, Array]]:
        """Return X of the labelled rows of each block, their row weights and their labels."""
        return [
            (block.problem.design.select_rows(np.arange(n)).matrix(), block.problem.row_weights[:n], block.labels[:n])
            for block, n in ((block, block.problem.n_labeled) for block in self.blocks)
        ]

    def drop_labeled(self) -> None:
        """Let labelled rows weigh nothing here."""
        for b, block in enumerate(self.blocks):
            weights = block.problem.row_weights.copy()
            weights[: block.problem.n_labeled] = 0.0
            self.blocks[b] = replace(block, problem=replace(block.problem, row_weights=weights))

    def add_heavy(self, X: Any, weights: Array, labels: Array) -> None:
        """Take the labelled rows of all shards."""
        first = self.blocks[0]
        design = Design.create(X, first.problem.design.taxonomy, first.problem.design.n_threads)
        problem = TrainingProblem(design, first.problem.loss, first.problem.alpha, labels.size, weights)
        self.heavy = Block(problem, labels, constant=first.constant)

    def count_unlabeled(self) -> list[int]:
        """Return the number of rows without a full label in each block."""
        return [block.n_unlabeled for block in self.blocks]

    def sample_rows(self, chosen: Sequence[Array]) -> list[tuple[Any, ...]]:
        """Return X, row weights, forbidden labels and whether they weigh as labelled, of chosen rows of each block."""
        return [_sampled_rows(block, rows) for block, rows in zip(self.blocks, chosen, strict=True)]

    def column_counts(self) -> tuple[tuple[()], Array]:
        """Return no numbers and the number of values in each column (d,), to be added up as changes of W are."""
        return (), np.sum([block.problem.design.column_counts for block in self.blocks], axis=0)

    def reorder_columns(self, total: tuple[Any, Array]) -> None:
        """Reorder columns by these frequencies, which are those of all shards; one block at a time, to save memory."""
        for b, block in enumerate(self.blocks):
            design = block.problem.design.reordered_by_frequency(total[1])
            self.blocks[b] = replace(block, problem=replace(block.problem, design=design))

    def start(self, restart: str) -> None:
        """Start at weights 0, with the given labels."""
        W = self.blocks[0].problem.design.zeros()
        bias = np.zeros(W.shape[1] if self.blocks[0].constant else 0)

        def start(block: Block) -> BlockState:
            state = BlockState(block.problem, block.labels.copy(), empty_state(W), block)
            state.start_weights(W)
            return state

        heavy = None if self.heavy is None else start(self.heavy)
        self.restarts[restart] = RestartState(
            W, W.copy(), W.copy(), bias, blocks=list(map(start, self.blocks)), heavy=heavy
        )

    def predicted_counts(self, found: tuple[Any, Array]) -> Array:
        """Return class counts (K,) of the rows without a full label predicted at weights that were sent."""
        at = split_weights(found[1], self.blocks[0])
        return np.asarray(sum(_predicted_counts(block, *at) for block in self.blocks))


def _predicted_counts(block: Block, W: Array, bias: Array) -> Array:
    return predicted_counts(block.problem, block.scores(W, bias)[block.problem.n_labeled :])


def _sampled_rows(block: Block, chosen: Array) -> tuple[sparse.csr_matrix, Array, Array | None, Array]:
    problem, rows = block.problem, block.problem.n_labeled + chosen
    forbidden = None if problem.forbidden is None else problem.forbidden[chosen]
    return problem.design.select_rows(rows).matrix(), problem.row_weights[rows], forbidden, chosen < problem.n_partial


def add_up(tuples: Iterable[Iterable[Any]]) -> list[Any]:
    """Return the sums of the first, the second, ... numbers or arrays of these tuples."""
    return [sum(numbers) for numbers in zip(*tuples, strict=True)]


# ---- the shards of this process, and calls to them

SHARDS: dict[str, Shard] = {}
"""All shards of this process by key."""


def create(
    key: str, X: Sequence[Any], y: Sequence[Any], weights: Sequence[Any], unlabeled: object, digest: bool
) -> list[BlockInfo | Exception]:
    """Store blocks in this process; returns what is known about each, or what is wrong with it."""
    shard, found = Shard([]), list[BlockInfo | Exception]()
    for block in zip(X, y, weights, strict=True):
        try:
            rows, info = read_block(*block, unlabeled, digest)
        except (ValueError, TypeError) as error:
            found.append(sendable(error))
            continue
        shard.raw.append(rows)
        found.append(info)
    drop([old for old, other in list(SHARDS.items()) if time.monotonic() - other.last_call > ORPHAN_SECONDS])
    SHARDS[key] = shard
    return found


def sendable(error: Exception) -> Exception:
    """Return an exception that travels as a result; one that cannot be pickled is replaced by its text."""
    try:
        loads(dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def drop(keys: Sequence[str]) -> None:
    """Remove shards from this process."""
    for key in keys:
        SHARDS.pop(key, None)


def call(key: str, function: Function, *args: Any) -> Any:
    """Return function(shard, *args)."""
    shard = SHARDS.get(key)
    if shard is None:
        raise ShardLostError("The rows of this result are no longer on the worker. Fit again, or fetch results sooner.")
    with shard.lock:
        try:
            return function(shard, *args)
        finally:
            shard.last_call = time.monotonic()


def call_restart(shard: Shard, restart: str, function: Function, *args: Any) -> Any:
    """Return function(restart, *args)."""
    return function(shard.restarts[restart], *args)


def call_with_weights(shard: Shard, restart: str, function: Function, found: tuple[Any, Array]) -> Any:
    """Return function(restart, W) for weights W that were sent, at the end of a tuple."""
    return function(shard.restarts[restart], found[1])


def call_blocks(shard: Shard, restart: str, function: Function, *args: Any) -> list[Any]:
    """Return function(block, *args) of each block of a restart."""
    return [function(block, *args) for block in shard.restarts[restart].blocks]


def call_partitions(shard: Shard, restart: str, function: Function, args: Sequence[Any]) -> list[Any]:
    """Return function(partition, *args[b]) of the label costs of each block b."""
    blocks = shard.restarts[restart].blocks
    return [function(block.partition, *own) for block, own in zip(blocks, args, strict=True)]
