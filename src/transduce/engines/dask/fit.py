"""The blocks of a fit over Dask: their labels are read together, and they become the shards of an engine."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.engines.base import LabelOptions, LabelSummary, ProblemSettings
from transduce.engines.dask import shards
from transduce.engines.dask.blocks import Source
from transduce.engines.dask.engine import DaskEngine, gather_labeled, rank
from transduce.engines.dask.shards import Facts, Labels, Making
from transduce.engines.dask.worker_pool import WorkerPool
from transduce.errors import LabelError, LabelErrorKind
from transduce.labels.classes import common_dtype, find_classes
from transduce.labels.encode import encode_labels
from transduce.labels.missing import AUTO, warn_sign_labels
from transduce.labels.similar_names import warn_similar_names
from transduce.validation import check_labeled_weight

Array = NDArray[Any]


class DaskData:
    """Blocks of X, y and sample weights on the workers of a pool; they are placed again whenever labels are encoded."""

    def __init__(self, pool: WorkerPool, source: Source, hashed: bool) -> None:
        self.pool, self.source, self.hashed = pool, source, hashed
        self.warned = False

    def encode(self, options: LabelOptions) -> LabelSummary:
        """Place the blocks and read their labels."""
        prior, taxonomy = options.class_prior, options.taxonomy
        facts = self.facts = self.source.place(self.pool, options.unlabeled, self.hashed)
        _check_widths(facts)
        entries = [entry for fact in facts for entry in fact.entries]
        if not entries:
            raise LabelError(LabelErrorKind.NOTHING_LABELED)
        columns, n_rows = next((fact.names for fact in facts if fact.names), []), sum(fact.n_rows for fact in facts)
        values = _array_of(entries, [fact.kind for fact in facts if len(fact.entries)])
        labeled = np.ones(len(entries), bool)
        classes, self.taxonomy = find_classes(values, labeled, prior, taxonomy, columns)
        read = self.read = encode_labels(entries, labeled, classes.tolist(), self.taxonomy, taxonomy is not None)
        full = read.codes >= 0
        if not full.any():
            raise LabelError(LabelErrorKind.NOTHING_LABELED_IN_FULL)
        if not self.warned and taxonomy is None and not columns:
            warn_similar_names(values, labeled, prior)
        if not self.warned and options.unlabeled == AUTO and n_rows > len(entries):
            warn_sign_labels([*entries, -1])
        self.warned = True
        weights = None if facts[0].weights is None else np.concatenate([_of(fact.weights) for fact in facts])
        self.weights, self.n_unlabeled = weights, n_rows - int(full.sum())
        of_labels = None if weights is None else weights[full]
        check_labeled_weight(of_labels)
        forbidden = None if read.allowed is None else ~read.allowed[~full]
        return LabelSummary(
            facts[0].n_features, classes, self.taxonomy, read.codes[full], of_labels, self.n_unlabeled, forbidden
        )

    def build(self, settings: ProblemSettings) -> DaskEngine:
        """Build the training problem of every shard."""
        facts, read, source, n_unlabeled = self.facts, self.read, self.source, self.n_unlabeled
        labels, begin = [], 0
        for fact in facts:
            mine = slice(begin, begin + len(fact.entries))
            own = None if read.allowed is None else read.allowed[mine]
            labels.append(Labels(fact.places, read.codes[mine], read.partial[mine], own))
            begin = mine.stop
        making = self._making(settings)
        found = self.pool.each_with(shards.make, [(making, [labels[b] for b in group]) for group in source.groups])
        total = (1.0, making.mean * n_unlabeled if making.mean is not None else float(n_unlabeled > 0))
        shape = (facts[0].n_features + making.fit_intercept, self.taxonomy.n_nodes)
        sizes, n_values = tuple(len(group) for group in source.groups), sum(fact.n_values for fact in facts)
        features = rank(self.pool, found, shape, np.dtype(making.dtype).itemsize, n_values)
        labeled = gather_labeled(self.pool, found, making, shape)
        content = {
            "X": (features is not None, *(fact.digest for fact in facts)),
            "y": tuple(tuple(one) for one in labels),
        }
        return DaskEngine(
            self.pool, making.loss, making.alpha, n_unlabeled, self.taxonomy.n_classes, np.dtype(making.dtype), total,
            sizes, source, content, making.n_threads, labeled, making.forbids, features,
        )  # fmt: skip

    def _making(self, settings: ProblemSettings) -> Making:
        facts, read, n_unlabeled = self.facts, self.read, self.n_unlabeled
        heavy = settings.partial_as_labeled and bool(read.partial.any())
        each, full = np.ones(read.codes.size) if self.weights is None else self.weights, read.codes >= 0
        is_known = full | read.partial if heavy else full
        known, heavy_weight = float(each[is_known].sum()), float(each[is_known & ~full].sum())
        rest = sum(fact.weight for fact in facts) - known
        uneven = (self.weights is not None or heavy) and n_unlabeled > 0
        mean = (heavy_weight / known + float(rest > 0)) / n_unlabeled if uneven else None
        dtype = np.result_type(*(fact.dtype for fact in facts)).name
        n_threads = 1 if settings.n_jobs is None else settings.n_jobs
        return Making(
            settings.loss, settings.alpha, self.taxonomy, n_threads, settings.fit_intercept, dtype, heavy, known, rest,
            mean, read.allowed is not None,
        )  # fmt: skip


def _check_widths(facts: list[Facts]) -> None:
    widths = [fact.n_features for fact in facts]
    for b, width in enumerate(widths):
        if width != widths[0]:
            raise ValueError(
                f"blocks must have {widths[0]} columns as the first has, but block {b} has {width}. Match them."
            )


def _array_of(entries: list[Any], kinds: list[str]) -> Array:
    """Entries of y as an array of the kind that the blocks came in, if that is one."""
    kind = common_dtype(kinds)
    if kind is not None:
        return np.array(entries, dtype=kind)
    values = np.empty(len(entries), dtype=object)
    values[:] = entries
    return values


def _of(weights: Array | None) -> Array:
    if weights is None:
        raise ValueError("sample_weight must be given for every block, or for none, but some have none.")
    return weights
