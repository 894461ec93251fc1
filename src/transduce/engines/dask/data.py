"""Blocks of a fit over Dask: their labels are encoded together, and they become the shards of an engine."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from transduce.arrays import Array
from transduce.design import Design, frequency_order, pays_to_reorder
from transduce.engines.base import LabelOptions, LabelSummary, ProblemSettings
from transduce.engines.dask.block_rows import BlockInfo, ProblemSpec
from transduce.engines.dask.blocks import BlockSource
from transduce.engines.dask.engine import DaskEngine, LabeledRows
from transduce.engines.dask.sharded_state import tree_sum
from transduce.engines.dask.shards import Shard
from transduce.engines.dask.worker_pool import WorkerPool
from transduce.engines.local import encode_entries
from transduce.errors import LabelError, LabelErrorKind
from transduce.labels.classes import common_dtype
from transduce.labels.encode import EncodedLabels
from transduce.labels.missing import AUTO, warn_sign_labels
from transduce.problem import TrainingProblem

MIN_GATHERED_BYTES = 1 << 18
"""Bytes of labelled rows that are fetched by the driver in any case."""


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
    labels: LabelSummary = field(init=False)

    def encode(self, options: LabelOptions) -> LabelSummary:
        """Place the blocks, and read and check their labels."""
        infos = self.infos = self.source.place(self.pool, options.unlabeled, self.hashed)
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
        return self.labels

    def build(self, settings: ProblemSettings) -> DaskEngine:
        infos, source, spec = self.infos, self.source, self._spec(settings)
        ends = np.cumsum([0, *(len(info.entries) for info in infos)])
        labels = [(i.positions, _rows(self.encoded, slice(*ends[b : b + 2]))) for b, i in enumerate(infos)]
        own = [([labels[b] for b in blocks],) for blocks in source.shards]
        sizes, n_values, mapped = zip(*self.pool.call(Shard.build, spec, per_shard=own), strict=True)
        shape = (infos[0].n_features + settings.fit_intercept, spec.taxonomy.n_nodes)
        column_order = None if any(mapped) else self._reorder(shape, np.dtype(spec.dtype).itemsize)
        rows = self._gather_labeled(spec, shape, sizes, sum(n_values))
        content = {
            "X": (column_order is not None, *(info.digest for info in infos)),
            "y": tuple((positions, part.codes, part.partial, part.allowed) for positions, part in labels),
        }
        return DaskEngine(self.pool, source, spec, self.labels.n_unlabeled, content, rows, column_order)

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
        if not pays_to_reorder(shape, itemsize, sum(info.n_values for info in self.infos)):
            return None
        future, counts = tree_sum(self.pool, Shard.column_counts)
        self.pool.run_all(Shard.reorder_columns, future)
        return frequency_order(counts.values[:, 0])

    def _gather_labeled(
        self, spec: ProblemSpec, shape: tuple[int, int], sizes: Sequence[int], n_values: int
    ) -> LabeledRows | None:
        """Fetch the labelled rows, if they and their dual are no larger than the weights, which are sent anyway."""
        settings, itemsize = spec.settings, np.dtype(spec.dtype).itemsize
        limit = max(shape[0] * shape[1] * itemsize, MIN_GATHERED_BYTES)
        n_bytes = max(n_values * (itemsize + 8), sum(sizes) * shape[1] * itemsize)
        if settings.partial_as_labeled or n_bytes > limit:
            return None
        blocks = [block for of_shard in self.pool.call(Shard.labeled_rows) for block in of_shard]
        X, weights, labels = zip(*blocks, strict=True)
        design = Design.create(sparse.vstack(X, format="csr"), spec.taxonomy, settings.n_jobs)
        problem = TrainingProblem(design, settings.loss, settings.alpha, sum(sizes), np.concatenate(weights))
        return LabeledRows(problem, np.concatenate(labels), tuple(sizes))


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
