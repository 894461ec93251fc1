"""Shards: blocks of rows in the memory of a worker, and the state of each restart on them.

A shard holds the blocks that one thread of a worker works on. It lives in the worker's process, beside what Dask stores
there, because its arrays change in place. The driver sends functions and small arguments, and small results come back;
weights and their deltas are the only large arrays that leave.
"""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from distributed.protocol.pickle import dumps, loads
from scipy import sparse

from transduce.arrays import Array
from transduce.design import Design
from transduce.engines.common import first_targets, model_posterior, packed_state, predicted_counts, unpacked_state
from transduce.engines.dask.block_rows import BlockInfo, ProblemSpec, build_block, read_block
from transduce.engines.dask.block_state import Block, BlockState
from transduce.engines.dask.restart_state import RestartState, as_array, empty_state
from transduce.engines.dask.weight_deltas import ShardLostError, TrackedWeights, WeightDelta
from transduce.io.atomic_write import WriteError
from transduce.io.checkpoint import CheckpointSlot, Disk
from transduce.labels.encode import EncodedLabels
from transduce.losses import smoothed
from transduce.problem import TrainingProblem
from transduce.weight_step import weight_step_for

Function: TypeAlias = Callable[..., Any]
ORPHAN_SECONDS = 3600.0
"""Seconds without a call after which a shard is dropped when another arrives: its driver is gone."""


@dataclass(eq=False)
class Shard:
    """Blocks as they arrived, X and sample weights; as training problems, once labels are encoded; and restarts."""

    raw: list[tuple[Any, Array | None]]
    blocks: list[Block] = field(default_factory=list)
    restarts: dict[str, RestartState] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    last_call: float = field(default_factory=time.monotonic)

    def build(self, spec: ProblemSpec, labels: Sequence[tuple[Array, EncodedLabels]]) -> tuple[int, int, bool]:
        """Turn raw blocks and the labels of some of their rows, with their positions, into training problems.

        Returns the number of labelled rows, of their stored values, and whether rows are memory-mapped.
        """
        self.blocks = [build_block(*raw, spec, *own) for raw, own in zip(self.raw, labels, strict=True)]
        self.raw = []
        designs = [_labeled_design(block) for block in self.blocks]
        is_mapped = any(block.problem.design.is_mapped for block in self.blocks)
        return sum(design.n_rows for design in designs), sum(design.n_values for design in designs), is_mapped

    def labeled_rows(self) -> list[tuple[sparse.csr_matrix, Array, Array]]:
        """Return X of the labelled rows of each block, their row weights and their labels."""
        return [
            (_labeled_design(block).matrix(), block.problem.row_weights[:n], block.labels[:n])
            for block, n in ((block, block.problem.n_labeled) for block in self.blocks)
        ]

    def count_unlabeled(self) -> list[int]:
        """Return the number of rows without a full label in each block."""
        return [block.n_unlabeled for block in self.blocks]

    def sample_rows(self, chosen: Sequence[Array]) -> list[tuple[Any, ...]]:
        """Return X, row weights, forbidden labels and whether they weigh as labelled, of chosen rows of each block."""
        return [_sampled_rows(block, rows) for block, rows in zip(self.blocks, chosen, strict=True)]

    def column_counts(self) -> WeightDelta:
        """Return the number of values in each column (d, 1), to be added up as deltas of weights are."""
        counts = np.sum([block.problem.design.column_counts for block in self.blocks], axis=0)
        return WeightDelta(None, counts[:, None])

    def reorder_columns(self, counts: WeightDelta) -> None:
        """Reorder columns by these frequencies, which are those of all shards; one block at a time, to save memory."""
        for b, block in enumerate(self.blocks):
            design = block.problem.design.reordered_by_frequency(counts.values[:, 0])
            self.blocks[b] = replace(block, problem=replace(block.problem, design=design))

    def start(self, restart: str, soft: str | None = None) -> None:
        """Start at weights 0, with the given labels and the hard labels that a label step has found for soft labels."""
        labels = [block.labels.copy() for block in self.blocks]
        if soft is not None:
            for own, block in zip(labels, self.restarts.pop(soft).blocks, strict=True):
                own[block.unlabeled] = block.found("labels")
        self._start(restart, [block.problem for block in self.blocks], labels, labels)

    def start_soft(self, restart: str, bounds: Any, n_unlabeled: int) -> None:
        """Start at weights 0, with distributions over labels that follow from the class sizes alone."""
        problems = [smoothed_problem(block.problem) for block in self.blocks]
        labels = [block.labels.copy() for block in self.blocks]
        targets = [first_targets(one, own, bounds, n_unlabeled) for one, own in zip(problems, labels, strict=True)]
        self._start(restart, problems, labels, targets)
        for block in self.restarts[restart].blocks:
            block.best = np.full(block.block.n_unlabeled, -1)

    def _start(
        self, restart: str, problems: Iterable[TrainingProblem], labels: Iterable[Array], targets: Iterable[Array]
    ) -> None:
        weights, blocks = TrackedWeights.create(self.blocks[0].problem.design.zeros()), []
        for block, problem, own, goal in zip(self.blocks, problems, labels, targets, strict=True):
            state = weight_step_for(problem.loss, 0).start(problem, goal)
            state.W = weights.W
            blocks.append(BlockState(problem, own, state, block))
        self.restarts[restart] = RestartState(weights, blocks=blocks)

    def save(self, restart: str, done: bool, path: str) -> tuple[Any, ...] | None:
        """Write the state of all blocks, or their labels alone if the restart is done; returns the error, if any."""
        arrays: dict[str, Array] = {}
        for b, block in enumerate(self.restarts[restart].blocks):
            own = {"labels": block.labels} | ({} if done else packed_state(block.state))
            own.pop("state_W", None)
            if block.best is not None:
                own["best"] = block.best
            arrays |= {f"{b} {name}": array for name, array in own.items()}
        disk = _ReportingDisk()
        CheckpointSlot(Path(path), disk=disk).save(arrays, {"blocks": len(self.blocks)})
        return None if disk.error is None else disk.error.args

    def load(self, restart: str, soft: bool, path: str) -> bool:
        """Restore the state of all blocks, but for W; returns False where the file is missing or damaged."""
        saved = CheckpointSlot(Path(path)).load()
        if saved is None:
            return False
        weights = TrackedWeights.create(self.blocks[0].problem.design.zeros())
        W, blocks = weights.W, []
        for b, block in enumerate(self.blocks):
            prefix = f"{b} "
            arrays = {name.removeprefix(prefix): a for name, a in saved.arrays.items() if name.startswith(prefix)}
            problem = smoothed_problem(block.problem) if soft else block.problem
            state = unpacked_state(problem, arrays | {"state_W": W}) if "state_kappa" in arrays else empty_state(W)
            state.scores = None
            blocks.append(BlockState(problem, arrays["labels"], state, block, best=arrays.get("best")))
        self.restarts[restart] = RestartState(weights, blocks=blocks)
        return True

    def predictions(self, W: WeightDelta) -> list[Array]:
        """Return class counts of the rows without a full label predicted at W, and the sum of their posteriors."""
        dense = as_array(W, self.blocks[0].problem.design.zeros())
        return add_up(_predictions(block.problem, dense) for block in self.blocks)


class _ReportingDisk(Disk):
    """A disk that leaves a failure to the driver."""

    error: WriteError | None = None

    def fail(self, folder: Path, error: WriteError) -> None:
        self.error = error


def _labeled_design(block: Block) -> Design:
    return block.problem.design.select_rows(np.arange(block.problem.n_labeled))


def smoothed_problem(problem: TrainingProblem) -> TrainingProblem:
    """Return the problem of soft labels."""
    return replace(problem, loss=smoothed(problem.loss))


def _predictions(problem: TrainingProblem, W: Array) -> tuple[Array, Array]:
    scores = problem.design.scores(W)[problem.n_labeled :]
    if not len(scores):
        return np.zeros(problem.n_classes, np.int64), np.zeros(problem.n_classes)
    return predicted_counts(problem, scores), model_posterior(problem, scores).sum(axis=0, dtype=np.float64)


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


def call_blocks(shard: Shard, restart: str, function: Function, *args: Any) -> list[Any]:
    """Return function(block, *args) of each block of a restart."""
    return [function(block, *args) for block in shard.restarts[restart].blocks]


def call_partitions(shard: Shard, restart: str, function: Function, args: Sequence[Any]) -> list[Any]:
    """Return function(partition, *args[b]) of the label costs of each block b."""
    blocks = shard.restarts[restart].blocks
    return [function(block.partition, *own) for block, own in zip(blocks, args, strict=True)]
