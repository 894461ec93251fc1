"""What a worker holds and does: blocks of rows with their labels, and for each way its weights' dual and its scores.

A shard is a few blocks that one thread of a worker looks after. It lives in the worker's process, beside what Dask
stores there, because its arrays change in place. Everything here is a function of a shard and small arguments, or of
the weights, that answers small things; the weights and their changes are the only large arrays that leave. What is
done to weights is in `shard_weights`, to labels in `shard_labels`, to files in `shard_files`.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from distributed.protocol.pickle import dumps, loads
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array

from transduce.design import Design
from transduce.engines.dask.weight_deltas import Before, Change
from transduce.io.fingerprint import fingerprint
from transduce.label_step.partitions import Partition
from transduce.labels.classes import as_objects
from transduce.labels.encode import check_labels
from transduce.labels.missing import find_labeled
from transduce.labels.partial import read_matrix
from transduce.losses import Loss
from transduce.parallel import one_blas_thread
from transduce.problem import TrainingProblem
from transduce.taxonomy import Taxonomy
from transduce.validation import check_sample_weight
from transduce.weight_step import WeightState, weight_step_for

Array = NDArray[Any]

FORGOTTEN = 3600.0
"""Seconds without a visit after which a shard makes room for others: whoever placed it is gone."""


class GoneError(Exception):
    """The shard is not in this process: it has been started anew since."""


@dataclass(frozen=True, eq=False)
class Block:
    """Rows of one block, labelled ones first, with the labels given (n,), and their places in the user's block.

    `heft` (n − n_labeled,) is what rows without a full label weigh against the mean of all of them, or None where all
    weigh the same.
    """

    problem: TrainingProblem
    codes: Array
    order: Array
    heft: Array | None = None


@dataclass(eq=False)
class Stand:
    """Where one way stands on one block: labels kept, the dual state, scores that are looked at, and the label part."""

    block: Block
    problem: TrainingProblem
    labels: Array
    state: WeightState
    seen: Array | None = None
    part: Partition | None = None
    chosen: Array | None = None

    @property
    def unlabeled(self) -> slice:
        """Rows without a full label."""
        return slice(self.problem.n_labeled, None)


@dataclass(eq=False)
class RestartState:
    """One way on all blocks of a shard; their states share W, which is the same on all shards after each sum.

    What a visit changes in W waits in `change`, to be added up over all shards. The first shard has the weights that
    are `kept`. While rows bend W here, `before` has what it was.
    """

    W: Array
    stands: list[Stand]
    change: Change | None = None
    kept: Array | None = None
    before: Before | None = None


@dataclass(eq=False)
class Shard:
    """Blocks as they came, X and row weights; as they are when labels have been read; and ways that are under way."""

    raw: list[tuple[Any, Array | None]]
    blocks: list[Block] = field(default_factory=list)
    restarts: dict[str, RestartState] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    visited: float = field(default_factory=time.monotonic)


_SHARDS: dict[str, Shard] = {}


class Facts(NamedTuple):
    """What the driver learns of a block: rows, columns and type of X, entries of y that say something, their weights.

    `places` are the rows of those entries, `weight` is the sum of the weights of all rows, `kind` the type of y, and
    `digest` stands for all of X and the weights, if asked for.
    """

    n_rows: int
    n_values: int
    n_features: int
    dtype: str
    places: Array
    entries: list[Any]
    kind: str
    names: list[Any]
    weights: Array | None
    weight: float
    digest: str


class Labels(NamedTuple):
    """What a block is told of its rows: places, and for each the class or −1, and the labels it may get or None."""

    places: Array
    codes: Array
    partial: Array
    allowed: Array | None


class Making(NamedTuple):
    """How rows become a problem: `known` and `rest` are total weights of the rows that count as labelled, and others.

    `mean` is the mean share of rows without a full label where these weigh differently, else None.
    """

    loss: Loss
    alpha: float
    taxonomy: Taxonomy
    n_threads: int
    fit_intercept: bool
    dtype: str
    heavy: bool
    known: float
    rest: float
    mean: float | None
    forbids: bool


class Made(NamedTuple):
    """What the driver learns of a shard: labelled rows, values stored for these, whether rows are read from a file."""

    n_labeled: int
    n_values: int
    is_mapped: bool


def hold(key: str, X: Sequence[Any], y: Sequence[Any], weights: Sequence[Any], unlabeled: object, digest: bool) -> Any:
    """Give blocks a place in this process; answers the facts of each, or a sentence that says what is wrong."""
    raw: list[tuple[Any, Array | None]] = []
    facts: list[Facts | str] = []
    for rows, labels, own in zip(X, y, weights, strict=True):
        try:
            one, fact = _read(rows, labels, own, unlabeled, digest)
        except (ValueError, TypeError) as error:
            facts.append(f"{error}")
            continue
        raw.append(one)
        facts.append(fact)
    forgotten = [old for old, shard in list(_SHARDS.items()) if time.monotonic() - shard.visited > FORGOTTEN]
    drop(forgotten)
    _SHARDS[key] = Shard(raw)
    return facts


def _read(X: Any, y: Any, weights: Any, unlabeled: object, digest: bool) -> tuple[tuple[Any, Array | None], Facts]:
    if isinstance(X, list):  # a partition of a bag: rows, or matrices of them
        X = sparse.vstack([sparse.csr_matrix(one) for one in X], format="csr")
    X = check_array(
        X, accept_sparse="csr", dtype=(np.float64, np.float32), accept_large_sparse=True, ensure_min_samples=0
    )
    entries, names = read_matrix(y)
    values, labeled = find_labeled(entries, unlabeled, warn=False)
    if values.size != X.shape[0]:
        raise ValueError(f"X has {X.shape[0]} rows and y {values.size}: inconsistent numbers of samples. Match them.")
    if values.dtype.kind == "f" and labeled.any():
        check_labels(X.shape[0], values, labeled)
    weights = check_sample_weight(weights, X.shape[0])
    places = np.flatnonzero(labeled)
    content = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)
    stamp = fingerprint({"X": content, "weights": weights}) if digest else ""
    total = float(X.shape[0]) if weights is None else float(weights.sum())
    facts = Facts(
        X.shape[0], X.nnz if sparse.issparse(X) else X.size, X.shape[1], X.dtype.name, places,
        as_objects(values[places]), values.dtype.str, names,
        None if weights is None else weights[places], total, stamp,
    )  # fmt: skip
    return (X, weights), facts


def make(shard: Shard, making: Making, labels: Sequence[Labels]) -> Made:
    """Turn raw blocks into problems."""
    shard.blocks = [_block(raw, making, own) for raw, own in zip(shard.raw, labels, strict=True)]
    shard.raw = []
    labeled = [_labeled(block) for block in shard.blocks]
    n_labeled, n_values = sum(design.n_rows for design in labeled), sum(design.n_values for design in labeled)
    return Made(n_labeled, n_values, any(block.problem.design.is_mapped for block in shard.blocks))


def column_counts(shard: Shard) -> Change:
    """Values that the rows have in each column (d, 1), which are added up as changes of weights are."""
    return Change(None, np.sum([block.problem.design.column_counts for block in shard.blocks], axis=0)[:, None])


def rank(shard: Shard, counts: Change) -> None:
    """Let features lie in the order of these counts, which all shards have; a block at a time, to spare memory."""
    for b, block in enumerate(shard.blocks):
        design = block.problem.design.reordered_by_frequency(counts.values[:, 0])
        shard.blocks[b] = replace(block, problem=replace(block.problem, design=design))


def labeled_rows(shard: Shard) -> list[tuple[sparse.csr_matrix, Array, Array]]:
    """X of the labelled rows of each block, their row weights and their labels."""
    n_labeled = [block.problem.n_labeled for block in shard.blocks]
    return [
        (_labeled(block).matrix(), block.problem.row_weights[:n], block.codes[:n])
        for block, n in zip(shard.blocks, n_labeled, strict=True)
    ]


def _labeled(block: Block) -> Design:
    return block.problem.design.select_rows(np.arange(block.problem.n_labeled))


def _block(raw: tuple[Any, Array | None], making: Making, labels: Labels) -> Block:
    X, weights = raw
    n_rows = X.shape[0]
    codes, partial = np.full(n_rows, -1, np.int64), np.zeros(n_rows, bool)
    codes[labels.places], partial[labels.places] = labels.codes, labels.partial
    order = np.lexsort((codes < 0, ~partial & (codes < 0)))
    n_labeled, n_partial = int((codes >= 0).sum()), int(partial.sum()) if making.heavy else 0
    forbidden = None
    if making.forbids:
        forbidden = np.zeros((n_rows, making.taxonomy.n_classes), bool)
        if labels.allowed is not None:
            forbidden[labels.places] = ~labels.allowed
        forbidden = forbidden[order[n_labeled:]]
    X = X.astype(making.dtype, copy=False)
    if making.fit_intercept:
        constant = np.ones((n_rows, 1), X.dtype)
        X = sparse.hstack((X, constant), format="csr") if sparse.issparse(X) else np.hstack((X, constant))
    design = Design.create(X, making.taxonomy, making.n_threads, order)
    row_weights = np.ones(n_rows) if weights is None else weights[order]
    row_weights[: n_labeled + n_partial] /= making.known or 1.0
    row_weights[n_labeled + n_partial :] /= making.rest or 1.0
    problem = TrainingProblem(design, making.loss, making.alpha, n_labeled, row_weights, n_partial, forbidden)
    heft = None if making.mean is None else row_weights[n_labeled:] / making.mean
    return Block(problem, np.maximum(codes[order], 0), order, heft)


def drop(keys: Sequence[str]) -> None:
    """Let go of shards."""
    for key in keys:
        _SHARDS.pop(key, None)


async def call(visits: Sequence[tuple[str, Callable[..., Any], Sequence[Any]]], dask_worker: Any = None) -> list[Any]:
    """Answers of visits to shards of this worker, made by its threads while it goes on listening."""
    loop, threads = asyncio.get_running_loop(), dask_worker.executors["default"]
    try:
        return await asyncio.gather(*(loop.run_in_executor(threads, caught, *one) for one in visits))
    except RuntimeError as error:  # the worker is closing, and takes no more work
        return [Raised(GoneError(str(error))) for _ in visits]


class Raised(NamedTuple):
    """What a visit has raised, apart from what the way there may raise."""

    error: Exception


def caught(key: str, function: Callable[..., Any], args: Sequence[Any]) -> Any:
    """The answer of a visit, or what it has raised, if that can be told."""
    try:
        return visit(key, function, *args)
    except Exception as error:
        try:
            loads(dumps(error))
        except Exception:
            return Raised(RuntimeError(f"{type(error).__name__}: {error}"))
        return Raised(error)


def visit(key: str, function: Callable[..., Any], *args: Any) -> Any:
    """The answer of a function of the shard with this key."""
    shard = _SHARDS.get(key)
    if shard is None:
        raise GoneError("the rows of this answer are not on the worker any more; fit again, or fetch answers sooner")
    with shard.lock, one_blas_thread():
        try:
            return function(shard, *args)
        finally:
            shard.visited = time.monotonic()


def is_held(key: str) -> bool:
    """Whether the shard with this key is here."""
    return key in _SHARDS


def visit_parts(shard: Shard, restart: str, function: Callable[..., Any], args: Any, kwargs: Any) -> list[Any]:
    """Answers of a function of each label part."""
    return [function(stand.part, *args, **kwargs) for stand in shard.restarts[restart].stands]


def visit_parts_with(shard: Shard, restart: str, function: Callable[..., Any], own: Sequence[Any]) -> list[Any]:
    """Answers of a function of each label part, and what is its own."""
    return [function(stand.part, mine) for stand, mine in zip(shard.restarts[restart].stands, own, strict=True)]


def new_restart(
    shard: Shard, problems: Sequence[TrainingProblem], labels: Sequence[Array], targets: Sequence[Array]
) -> RestartState:
    """Weights 0, of these problems on the blocks with these labels and targets."""
    W = shard.blocks[0].problem.design.zeros()
    stands = []
    for block, problem, own, goal in zip(shard.blocks, problems, labels, targets, strict=True):
        state = weight_step_for(problem.loss, 0).start(problem, goal)
        state.W = W
        stands.append(Stand(block, problem, own, state))
    return RestartState(W, stands)


def nothing(W: Array) -> WeightState:
    """What a way that is done holds in place of a state."""
    none = np.zeros(0)
    return WeightState(W, none, none, none, none)
