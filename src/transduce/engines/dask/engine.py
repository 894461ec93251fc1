"""Blocks of a fit over Dask, whose labels are encoded together, and the engine over their shards.

Every shard has the weights W. Their changes are summed on the workers, so the driver sees W itself only when a restart
begins or ends, and for a loss of your own in each evaluation. Otherwise prices, class counts and sums travel.
"""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from transduce.arrays import Array
from transduce.class_prior.bounds import Bounds
from transduce.contract import check_largest, check_sampled, check_weight_range
from transduce.design import frequency_order, mean_squared_length, pays_to_reorder, undo_order
from transduce.engines.base import FittedLabels, LabelOptions, LabelSummary, ProblemSettings, StepSettings
from transduce.engines.common import Calibration, follows_prices
from transduce.engines.dask.block_rows import BlockInfo, ProblemSpec
from transduce.engines.dask.block_state import BlockState
from transduce.engines.dask.blocks import BlockSource
from transduce.engines.dask.fetched_rows import LabeledRows, fetch_labeled, fetch_sample
from transduce.engines.dask.restart import DaskRestart
from transduce.engines.dask.restart_state import RestartState
from transduce.engines.dask.sharded_state import ShardedState
from transduce.engines.dask.shards import Shard, call_restart
from transduce.engines.dask.worker_pool import WorkerPool
from transduce.engines.local import LocalEngine, encode_entries
from transduce.errors import LabelError, LabelErrorKind
from transduce.history import FitResult
from transduce.io.atomic_write import WriteError
from transduce.io.checkpoint import Checkpoint
from transduce.io.fingerprint import fingerprint
from transduce.io.strict_json import loads
from transduce.label_step.entropic import Entropic
from transduce.labels.classes import common_dtype
from transduce.labels.encode import EncodedLabels
from transduce.labels.missing import AUTO, warn_sign_labels
from transduce.weight_step import weight_step_for
from transduce.weight_step.dual import DualStep

GROUPS_FILE = "shards.json"
"""File of a checkpoint with the blocks of each shard in each group."""
MIN_PARTS = 8
"""Labelled rows are few if all others are so many times as many, and at least as many for each shard."""


@dataclass(frozen=True, eq=False)
class DaskEngine:
    """Rows on the workers of a pool.

    content       what the fingerprint of a checkpoint depends on
    is_dense      whether the rows of all blocks are dense
    column_order  column of X of every row of W but the intercept's, or None if it is the same
    heavy         the labelled rows, if they are apart from the shards
    """

    pool: WorkerPool
    source: BlockSource
    spec: ProblemSpec
    n_unlabeled: int
    content: dict[str, Any]
    is_dense: bool
    column_order: Array | None = None
    heavy: LabeledRows | None = None
    names: Any = field(default_factory=count)

    @property
    def n_classes(self) -> int:
        return self.spec.taxonomy.n_classes

    @property
    def n_threads(self) -> int:
        """Threads of each shard."""
        return self.spec.settings.n_jobs or 1

    def new_restart(self, settings: StepSettings, rng: np.random.Generator) -> DaskRestart:
        return DaskRestart(self, str(next(self.names)), settings, rng)

    def sample(self, max_rows: int, rng: np.random.Generator) -> LocalEngine:
        """Fetch all labelled rows, and at most so many others, in the order of the blocks; all cores may use it."""
        labeled = self.heavy or fetch_labeled(self.pool, self.source)
        return fetch_sample(self.pool, self.source, self.spec, labeled, self.n_unlabeled, max_rows, rng)

    def in_original_order(self, W: Array) -> Array:
        if self.column_order is None:
            return W
        d = self.column_order.size
        return np.vstack((undo_order(W[:d], self.column_order), W[d:]))

    def predicted_counts(self, W: Array) -> Array:
        return np.asarray(sum(self.pool.exchange(take=(Shard.predicted_counts,), value=(None, W))))

    def fitted_labels(
        self, result: FitResult, bounds: Bounds, classes: Array, calibration: Calibration
    ) -> FittedLabels:
        """Return labels and distributions of all blocks, as lists: arrays where the blocks are local, else futures."""
        state, distributions, confidence = ShardedState(self, str(result.labels)), None, np.nan
        state.run_with_weights(RestartState.compute_scores, result.W)
        counts, predicted = state.sum_blocks(BlockState.class_counts)
        transduction = self._each_block(state.name, RestartState.label_names, classes)
        if hasattr(self.spec.settings.loss, "posterior"):
            if follows_prices(self.spec.settings.loss, bounds, self.n_unlabeled):
                state.call_blocks(BlockState.set_posterior, result.prices, calibration)
            else:
                state.call_blocks(BlockState.set_posterior_costs, calibration)
                Entropic(1.0, tol=1e-3, n_threads=self.n_threads).solve_partitions(state, bounds)
            (total,) = state.sum_blocks(BlockState.total_confidence, result.prices, calibration)
            confidence = float(total) / max(self.n_unlabeled, 1)
            distributions = self._each_block(state.name, RestartState.distributions)
        return FittedLabels(transduction, counts, predicted, distributions, confidence)

    def held_out_scores(self, result: FitResult) -> Array:
        raise ValueError("outlier_fraction is for rows in memory, but these are on a cluster. Leave it out.")

    def set_aside(self, result: FitResult, *_: Any) -> tuple[Array, float]:
        raise ValueError("outlier_fraction is for rows in memory, but these are on a cluster. Leave it out.")

    def _each_block(self, restart: str, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Return function(restart, position of the block in its shard, *args) of all blocks; futures unless local."""
        tasks = {
            b: self.pool.start(s, call_restart, restart, function, position, *args)
            for s, blocks in enumerate(self.source.shards)
            for position, b in enumerate(blocks)
        }
        futures = [tasks[b] for b in sorted(tasks)]
        return self.pool.results(futures, fetch=self.source.is_local) or futures

    def open_checkpoint(self, path: object, parameters: dict[str, Any], seeds: list[int]) -> Checkpoint:
        """Open the checkpoint folder of the fit, which stores the groups of shards too."""
        checkpoint = Checkpoint.open(path, fingerprint(parameters | self.content), seeds)
        try:
            checkpoint.note(GROUPS_FILE, json.dumps(self.source.groups))
        except WriteError as error:
            checkpoint.__exit__(None, None, None)
            raise ValueError(f"checkpoint {path} cannot be written ({error.reason}). Choose another place.") from error
        return checkpoint

    def total_weight(self, weight: float) -> float:
        """Return the weight of all rows, where those without a full label weigh `weight` together."""
        mean = self.spec.mean_weight
        return 1.0 + weight * (float(self.n_unlabeled > 0) if mean is None else mean * self.n_unlabeled)


def stored_groups(checkpoint: object) -> list[list[list[int]]] | None:
    """Return the blocks of each shard in each group that a checkpoint has stored, if any."""
    if not isinstance(checkpoint, (str, os.PathLike)):
        return None
    try:
        groups = loads(Path(checkpoint, GROUPS_FILE).read_bytes())
        return [[[int(b) for b in shard] for shard in group] for group in groups]
    except (OSError, ValueError, TypeError):
        return None


@dataclass(eq=False)
class DaskData:
    """Blocks of X, y and sample weights, placed on the workers of a pool whenever labels are encoded."""

    pool: WorkerPool
    source: BlockSource
    hashed: bool
    warned: bool = False
    infos: list[BlockInfo] = field(init=False)
    encoded: EncodedLabels = field(init=False)
    weights: Array | None = None
    sampled: bool | None = None
    labels: LabelSummary = field(init=False)

    def encode(self, options: LabelOptions) -> LabelSummary:
        """Place the blocks, and read and check their labels."""
        infos = self.infos = self.source.place(self.pool, options.unlabeled, self.hashed)
        check_largest(max(info.largest for info in infos), infos[0].dtype)
        low, high = zip(*(info.weight_range for info in infos), strict=True)
        check_weight_range(min(low), max(high))
        entries = [entry for info in infos for entry in info.entries]
        if not entries:
            raise LabelError(LabelErrorKind.NOTHING_LABELED)
        columns = next((info.columns for info in infos if info.columns), [])
        shape = (sum(info.n_rows for info in infos), infos[0].n_features)
        values, labeled = _as_array(entries, [info.kind for info in infos if info.entries]), np.ones(len(entries), bool)
        self.weights, warn = _weights(infos), not self.warned
        self.encoded, self.labels = encode_entries(values, labeled, columns, self.weights, shape, options, warn)
        if warn and options.unlabeled == AUTO and shape[0] > len(entries):
            warn_sign_labels([*entries, -1])
        self.warned = True
        return self.labels._replace(sampled=check_sampled(self.sampled, self.encoded.codes >= 0))

    def mean_squared_length(self, n_jobs: int | None) -> float:
        return mean_squared_length(sum(info.squares for info in self.infos), sum(info.n_rows for info in self.infos))

    def build(self, settings: ProblemSettings) -> DaskEngine:
        infos, source, spec = self.infos, self.source, self._spec(settings)
        ends = np.cumsum([0, *(len(info.entries) for info in infos)])
        labels = [(i.positions, _rows(self.encoded, slice(*ends[b : b + 2]))) for b, i in enumerate(infos)]
        own = [([labels[b] for b in blocks],) for blocks in source.shards]
        mapped = self.pool.call(Shard.build, spec, per_shard=own)
        shape = (infos[0].n_features, spec.taxonomy.n_nodes)
        column_order = None if any(mapped) else self._reorder(shape, np.dtype(spec.dtype).itemsize)
        content = {
            "X": (column_order is not None, *(info.digest for info in infos)),
            "y": tuple((positions, part.codes, part.partial, part.allowed) for positions, part in labels),
        }
        is_dense, heavy = all(info.is_dense for info in infos), self._separate_labeled(spec)
        return DaskEngine(self.pool, source, spec, self.labels.n_unlabeled, content, is_dense, column_order, heavy)

    def _separate_labeled(self, spec: ProblemSpec) -> LabeledRows | None:
        """Move the labelled rows to the first shard if they are few, and return them.

        Each weighs as much as many others. Were they divided among shards, steps of them would be as many times too
        short as there are shards; the first shard visits them after the changes of all shards are added.
        """
        n_known, n_parts = int((self.encoded.codes >= 0).sum()), max(self.pool.n_shards, MIN_PARTS)
        has_dual = isinstance(weight_step_for(spec.settings.loss, 0), DualStep)
        if not has_dual or n_known * n_parts > self.labels.n_unlabeled:
            return None
        heavy = fetch_labeled(self.pool, self.source)
        self.pool.call(Shard.drop_labeled)
        self.pool.call_first(Shard.add_heavy, *heavy)
        return heavy

    def _spec(self, settings: ProblemSettings) -> ProblemSpec:
        encoded, n_unlabeled = self.encoded, self.labels.n_unlabeled
        as_labeled = settings.partial_as_labeled and bool(encoded.partial.any())
        weights, full = np.ones(encoded.codes.size) if self.weights is None else self.weights, encoded.codes >= 0
        is_known = full | encoded.partial if as_labeled else full
        known, partial = float(weights[is_known].sum()), float(weights[is_known & ~full].sum())
        rest = sum(info.total_weight for info in self.infos) - known
        differ = (self.weights is not None or as_labeled) and n_unlabeled > 0
        mean = (partial / known + float(rest > 0)) / n_unlabeled if differ else None
        dtype, n_jobs = np.result_type(*(info.dtype for info in self.infos)).name, settings.n_jobs or 1
        settings = settings._replace(partial_as_labeled=as_labeled, n_jobs=n_jobs)
        return ProblemSpec(settings, self.labels.taxonomy, dtype, (known, rest), mean, encoded.allowed is not None)

    def _reorder(self, shape: tuple[int, int], itemsize: int) -> Array | None:
        """Reorder columns by frequency on all shards, for cache locality; returns their order, or None if it stays."""
        is_full = any(0 < info.n_values == info.n_rows * info.n_features for info in self.infos)
        if is_full or not pays_to_reorder(shape, itemsize, sum(info.n_values for info in self.infos)):
            return None
        (total,) = self.pool.exchange((Shard.column_counts,))
        self.pool.exchange(take=(Shard.reorder_columns,), value=total)
        return frequency_order(total[1])


def _weights(infos: list[BlockInfo]) -> Array | None:
    weights = [info.weights for info in infos if info.weights is not None]
    if weights and len(weights) < len(infos):
        raise ValueError("sample_weight must be given for every block, or for none, but some have none.")
    return np.concatenate(weights) if weights else None


def _as_array(entries: list[Any], kinds: list[str]) -> Array:
    """Return entries of y as an array of the type that the blocks have in common, if any."""
    kind = common_dtype(kinds)
    if kind is not None:
        return np.array(entries, dtype=kind)
    values = np.empty(len(entries), dtype=object)
    values[:] = entries
    return values


def _rows(encoded: EncodedLabels, rows: slice) -> EncodedLabels:
    allowed = None if encoded.allowed is None else encoded.allowed[rows]
    return EncodedLabels(encoded.codes[rows], encoded.partial[rows], allowed)
