"""Rows that the driver fetches from shards: the labelled ones, and a sample of the others to be annealed."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from transduce.arrays import Array
from transduce.design import Design
from transduce.engines.dask.block_rows import ProblemSpec
from transduce.engines.dask.blocks import BlockSource
from transduce.engines.dask.shards import Shard
from transduce.engines.dask.worker_pool import WorkerPool
from transduce.engines.local import LocalEngine
from transduce.problem import TrainingProblem

LabeledRows: TypeAlias = tuple[Any, Array, Array]
"""X of labelled rows, their row weights and their labels."""


def fetch_labeled(pool: WorkerPool, source: BlockSource) -> LabeledRows:
    """Fetch all labelled rows, in the order of the blocks."""
    X, weights, labels = zip(*_by_block(source, pool.call(Shard.labeled_rows)), strict=True)
    return _stacked(X), np.concatenate(weights), np.concatenate(labels)


def fetch_sample(
    pool: WorkerPool,
    source: BlockSource,
    spec: ProblemSpec,
    labeled: LabeledRows,
    n_unlabeled: int,
    max_rows: int,
    rng: np.random.Generator,
) -> LocalEngine:
    """Fetch at most so many of the rows without a full label; returns the problem of these and the labelled rows."""
    chosen = np.arange(n_unlabeled)
    if n_unlabeled > max_rows:
        chosen = np.sort(rng.choice(n_unlabeled, max_rows, replace=False))
    first = np.cumsum([0, *_by_block(source, pool.call(Shard.count_unlabeled))])
    own = [chosen[(chosen >= a) & (chosen < b)] - a for a, b in pairwise(first)]
    fetched = pool.call(Shard.sample_rows, per_shard=[([own[b] for b in blocks],) for blocks in source.shards])
    X, weights, forbidden, counted = zip(*_by_block(source, fetched), strict=True)
    labeled_X, labeled_weights, labels = labeled
    as_labeled = np.concatenate(counted)
    last = np.argsort(~as_labeled, kind="stable")  # partial labels that weigh as labelled rows come first
    order = np.concatenate((np.arange(labels.size), labels.size + last))
    problem = TrainingProblem.create(
        Design.create(_stacked((labeled_X, *X)), spec.taxonomy, None, order, spec.constant),
        spec.settings.loss,
        spec.settings.alpha,
        labels.size,
        np.concatenate((labeled_weights, *weights))[order],
        int(as_labeled.sum()),
        None if forbidden[0] is None else np.vstack(forbidden)[last],
    )
    return LocalEngine(problem, np.concatenate((labels, np.zeros(chosen.size, np.int64))))


def _by_block(source: BlockSource, of_shards: list[list[Any]]) -> list[Any]:
    """Put answers for the blocks of each shard into the order of the blocks."""
    numbers = [b for blocks in source.shards for b in blocks]
    answers = dict(zip(numbers, (answer for of_shard in of_shards for answer in of_shard), strict=True))
    return [answers[b] for b in sorted(answers)]


def _stacked(blocks: Sequence[Any]) -> Any:
    """Return rows of several blocks as one matrix: dense if all are."""
    return sparse.vstack(blocks, format="csr") if any(map(sparse.issparse, blocks)) else np.vstack(blocks)
