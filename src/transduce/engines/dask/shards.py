"""Shards: blocks of rows in the memory of a worker, and the state of each restart on them.

A shard holds the blocks that one thread of a worker works on. It lives in the worker's process, beside what Dask stores
there, because its arrays change in place. The driver calls functions of a shard and small arguments that return small
results; weights and their deltas are the only large arrays that leave.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array

from transduce.design import Design
from transduce.engines.base import ProblemSettings
from transduce.engines.dask.failure import Failure
from transduce.engines.dask.weight_deltas import TrackedWeights, WeightDelta
from transduce.engines.local import LocalEngine
from transduce.engines.local_data import LocalData
from transduce.errors import LabelError, LabelErrorKind
from transduce.io.fingerprint import fingerprint
from transduce.label_step.partitions import Partition
from transduce.labels.classes import as_objects
from transduce.labels.encode import EncodedLabels, check_labels
from transduce.labels.missing import find_labeled
from transduce.labels.partial import read_matrix
from transduce.problem import TrainingProblem
from transduce.taxonomy import Taxonomy
from transduce.validation import check_sample_weight
from transduce.weight_step import WeightState, weight_step_for

Array = NDArray[Any]

ORPHAN_SECONDS = 3600.0
"""Seconds without a call after which a shard is dropped when another arrives: its driver is gone."""


class ShardLostError(Exception):
    """The shard is not in this process, or the reduction it takes part in cannot be completed."""


@dataclass(frozen=True, eq=False)
class Block(LocalEngine):
    """The rows of one block.

    `relative_weight` (n_unlabeled,) is the weight of each row without a full label divided by their mean over all
    blocks, or None where all are equal.
    """

    relative_weight: Array | None = None


@dataclass(eq=False)
class BlockState:
    """One restart on one block.

    weights   W, which all blocks of the shard share
    labels    (n,) accepted labels
    state     state of the weight step
    scores    (n, K) that labels are chosen by
    partition label costs, and what a label step has left with them
    best      (n_unlabeled,) class of the largest probability in the last round of soft labels
    """

    block: Block
    problem: TrainingProblem
    weights: TrackedWeights
    labels: Array
    state: WeightState
    scores: Array | None = None
    partition: Partition | None = None
    best: Array | None = None

    @property
    def unlabeled(self) -> slice:
        """Rows without a full label."""
        return slice(self.problem.n_labeled, None)


@dataclass(eq=False)
class RestartState:
    """One restart on all blocks of a shard.

    W is the same on all shards after every reduction; `delta` waits to be reduced. The first shard has the `accepted`
    weights.
    """

    weights: TrackedWeights
    blocks: list[BlockState]
    delta: WeightDelta | None = None
    accepted: Array | None = None

    @property
    def W(self) -> Array:  # noqa: N802 -- the notation of the paper
        """The weights."""
        return self.weights.W


@dataclass(eq=False)
class Shard:
    """Blocks as they arrived, X and sample weights; as training problems, once labels are encoded; and restarts."""

    raw: list[tuple[Any, Array | None]]
    blocks: list[Block] = field(default_factory=list)
    restarts: dict[str, RestartState] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    last_call: float = field(default_factory=time.monotonic)


SHARDS: dict[str, Shard] = {}
"""All shards of this process by key."""


class BlockInfo(NamedTuple):
    """What the driver learns about a block.

    `positions` are the rows whose entry of y says something, `entries` and `weights` those entries and their sample
    weights; `total_weight` is the sum over all rows, `kind` the dtype of y, `columns` the class names of a label
    matrix, and `digest` a hash of X and the weights, if requested.
    """

    n_rows: int
    n_values: int
    n_features: int
    dtype: str
    positions: Array
    entries: list[Any]
    kind: str
    columns: list[Any]
    weights: Array | None
    total_weight: float
    digest: str


class ProblemSpec(NamedTuple):
    """How rows become a training problem.

    `total_weights` are the sample weights of the rows that count as labelled and of the others, `mean_weight` the mean
    row weight of rows without a full label where these differ, else None.
    """

    settings: ProblemSettings
    taxonomy: Taxonomy
    dtype: str
    total_weights: tuple[float, float]
    mean_weight: float | None
    has_forbidden: bool


def create(
    key: str, X: Sequence[Any], y: Sequence[Any], weights: Sequence[Any], unlabeled: object, digest: bool
) -> list[BlockInfo | Failure]:
    """Store blocks in this process; returns what is known about each, or what is wrong with it."""
    raw: list[tuple[Any, Array | None]] = []
    found: list[BlockInfo | Failure] = []
    for block in zip(X, y, weights, strict=True):
        try:
            rows, info = _read_block(*block, unlabeled, digest)
        except (ValueError, TypeError) as error:
            found.append(Failure.create(error))
            continue
        raw.append(rows)
        found.append(info)
    drop([old for old, shard in list(SHARDS.items()) if time.monotonic() - shard.last_call > ORPHAN_SECONDS])
    SHARDS[key] = Shard(raw)
    return found


def drop(keys: Sequence[str]) -> None:
    """Remove shards from this process."""
    for key in keys:
        SHARDS.pop(key, None)


def _read_block(
    X: Any, y: Any, weights: Any, unlabeled: object, digest: bool
) -> tuple[tuple[Any, Array | None], BlockInfo]:
    if isinstance(X, list):  # a partition of a bag: rows, or matrices of rows
        X = sparse.vstack([sparse.csr_matrix(one) for one in X], format="csr")
    X = check_array(
        X, accept_sparse="csr", dtype=(np.float64, np.float32), accept_large_sparse=True, ensure_min_samples=0
    )
    n_rows, n_features = X.shape
    entries, columns = read_matrix(y)
    values, labeled = find_labeled(entries, unlabeled, warn=False)
    if values.size != n_rows:
        raise LabelError(LabelErrorKind.LENGTH, n_rows=n_rows, n_labels=values.size)
    if values.dtype.kind == "f" and labeled.any():
        check_labels(n_rows, values, labeled)
    weights = check_sample_weight(weights, n_rows)
    positions = np.flatnonzero(labeled)
    own = None if weights is None else weights[positions]
    total = float(n_rows if weights is None else weights.sum())
    content = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)
    stamp = fingerprint({"X": content, "weights": weights}) if digest else ""
    info = BlockInfo(
        n_rows, X.nnz if sparse.issparse(X) else X.size, n_features, X.dtype.name, positions,
        as_objects(values[positions]), values.dtype.str, columns, own, total, stamp,
    )  # fmt: skip
    return (X, weights), info


def build(shard: Shard, spec: ProblemSpec, labels: Sequence[tuple[Array, EncodedLabels]]) -> tuple[int, int, bool]:
    """Turn raw blocks and the labels of some of their rows, with their positions, into training problems.

    Returns the number of labelled rows, of their stored values, and whether rows are memory-mapped.
    """
    shard.blocks = [_build_block(*raw, spec, *own) for raw, own in zip(shard.raw, labels, strict=True)]
    shard.raw = []
    designs = [_labeled_design(block) for block in shard.blocks]
    is_mapped = any(block.problem.design.is_mapped for block in shard.blocks)
    return sum(design.n_rows for design in designs), sum(design.n_values for design in designs), is_mapped


def _build_block(X: Any, weights: Array | None, spec: ProblemSpec, positions: Array, known: EncodedLabels) -> Block:
    n_rows, allowed = X.shape[0], None
    codes, partial = np.full(n_rows, -1, np.int64), np.zeros(n_rows, bool)
    codes[positions], partial[positions] = known.codes, known.partial
    if spec.has_forbidden:
        allowed = np.ones((n_rows, spec.taxonomy.n_classes), bool)
        if known.allowed is not None:
            allowed[positions] = known.allowed
    data = LocalData(X.astype(spec.dtype, copy=False), None, weights)
    data.taxonomy, data.encoded = spec.taxonomy, EncodedLabels(codes, partial, allowed)
    built = data.build_block(spec.settings, spec.total_weights)
    unlabeled_weights = built.problem.row_weights[built.problem.n_labeled :]
    relative = None if spec.mean_weight is None else unlabeled_weights / spec.mean_weight
    return Block(built.problem, built.labels, built.order, relative)


def _labeled_design(block: Block) -> Design:
    return block.problem.design.select_rows(np.arange(block.problem.n_labeled))


def labeled_rows(shard: Shard) -> list[tuple[sparse.csr_matrix, Array, Array]]:
    """Return X of the labelled rows of each block, their row weights and their labels."""
    n_labeled = [block.problem.n_labeled for block in shard.blocks]
    return [
        (_labeled_design(block).matrix(), block.problem.row_weights[:n], block.labels[:n])
        for block, n in zip(shard.blocks, n_labeled, strict=True)
    ]


def column_counts(shard: Shard) -> WeightDelta:
    """Return the number of values in each column (d, 1), to be added up as deltas of weights are."""
    return WeightDelta(None, np.sum([block.problem.design.column_counts for block in shard.blocks], axis=0)[:, None])


def reorder_columns(shard: Shard, counts: WeightDelta) -> None:
    """Reorder columns by these frequencies, which are those of all shards; one block at a time, to save memory."""
    for b, block in enumerate(shard.blocks):
        design = block.problem.design.reordered_by_frequency(counts.values[:, 0])
        shard.blocks[b] = replace(block, problem=replace(block.problem, design=design))


def new_restart(
    shard: Shard, problems: Sequence[TrainingProblem], labels: Sequence[Array], targets: Sequence[Array]
) -> RestartState:
    """Return the state at weights 0 for these problems on the blocks, with these labels and targets."""
    weights = TrackedWeights.create(shard.blocks[0].problem.design.zeros())
    blocks = []
    for block, problem, own, goal in zip(shard.blocks, problems, labels, targets, strict=True):
        state = weight_step_for(problem.loss, 0).start(problem, goal)
        state.W = weights.W
        blocks.append(BlockState(block, problem, weights, own, state))
    return RestartState(weights, blocks)


def empty_state(W: Array) -> WeightState:
    """Return the state of the weight step of a restart that is finished: nothing."""
    none = np.zeros(0)
    return WeightState(W, none, none, none, none)


def call(key: str, function: Callable[..., Any], *args: Any) -> Any:
    """Return function(shard, *args)."""
    shard = SHARDS.get(key)
    if shard is None:
        raise ShardLostError("The rows of this result are no longer on the worker. Fit again, or fetch results sooner.")
    with shard.lock:
        try:
            return function(shard, *args)
        finally:
            shard.last_call = time.monotonic()


def call_blocks(shard: Shard, restart: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> list[Any]:
    """Return function(block, *args) for the state of a restart on each block."""
    return [function(block, *args, **kwargs) for block in shard.restarts[restart].blocks]


def call_partitions(
    shard: Shard, restart: str, function: Callable[..., Any], args: Sequence[Any], kwargs: Any
) -> list[Any]:
    """Return function(partition, *args[b]) for the label costs of each block b."""
    blocks = shard.restarts[restart].blocks
    return [function(block.partition, *own, **kwargs) for block, own in zip(blocks, args, strict=True)]
