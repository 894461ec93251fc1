"""One fit over Dask: blocks become shards, what they say of their labels becomes a problem, and labels come back."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.base import Given
from transduce.class_prior.bounds import Bounds
from transduce.engines.dask import shard_labels, shards
from transduce.engines.dask.blocks import Source
from transduce.engines.dask.engine import DaskEngine, distribute, gather_labeled, rank
from transduce.engines.dask.shards import Facts, Labels, Making
from transduce.engines.dask.worker_pool import WorkerPool
from transduce.estimators import TransductiveClassifier
from transduce.history import FitResult
from transduce.io.checkpoint import Checkpoint
from transduce.io.fingerprint import fingerprint
from transduce.labels.encode import class_kind, classes_and_tree, read_prior, warn_similar_names
from transduce.labels.missing import AUTO, warn_sign_labels
from transduce.labels.partial import code

Array = NDArray[Any]

TEAMS = "shards.json"
"""Which blocks make up each shard of each team, beside the stages of a fit."""


class Attempt:
    """Everything of a fit that stays the same when it begins again."""

    def __init__(self, clf: TransductiveClassifier, pool: WorkerPool, source: Source) -> None:
        self.clf, self.pool, self.source = clf, pool, source
        self.seeds: list[int] | None = None

    def run(self) -> None:
        """Place the blocks, read their labels, and fit."""
        clf, source = self.clf, self.source
        facts = source.place(self.pool, clf.unlabeled, clf.checkpoint is not None)
        rows, given, labels = self._read(facts)
        if self.seeds is None:
            self.seeds = clf._seeds(2 if given.estimated and rows.n_unlabeled else 1)

        def keep(outcome: FitResult, bounds: Bounds) -> Array:
            clf._keep_model(outcome, rows.in_original_order(outcome.W), bounds, facts[0].n_features)
            return self._keep_labels(rows, outcome, bounds)

        clf._learn(rows, given, self.seeds, self._open(given, facts, labels, rows.column_order is not None), keep)

    def _read(self, facts: list[Facts]) -> tuple[DaskEngine, Given, list[Labels]]:
        """Classes, class sizes and labels from what the blocks say; blocks become problems."""
        clf, prior = self.clf, read_prior(self.clf.class_prior)
        _check_widths(facts)
        clf.n_features_in_ = facts[0].n_features
        entries = [entry for fact in facts for entry in fact.entries]
        if not entries:
            raise ValueError(
                "y must label at least one row, but every row is unlabelled. Label a few, each class if you can."
            )
        columns, n_rows = next((fact.names for fact in facts if fact.names), []), sum(fact.n_rows for fact in facts)
        values = _array_of(entries, [fact.kind for fact in facts if len(fact.entries)])
        told = np.ones(len(entries), bool)
        clf.classes_, clf.taxonomy_ = classes_and_tree(values, told, prior, clf.taxonomy, columns)
        read = code(entries, told, clf.classes_.tolist(), clf.taxonomy_, clf.taxonomy is not None)
        clf._check_labels(read)
        if self.seeds is None and clf.taxonomy is None and not columns:
            warn_similar_names(values, told, prior, stacklevel=6)
        if self.seeds is None and clf.unlabeled == AUTO and n_rows > len(entries):
            warn_sign_labels([*entries, -1])
        full = read.codes >= 0
        weights = None if facts[0].weights is None else np.concatenate([_of(fact.weights) for fact in facts])
        n_unlabeled = n_rows - int(full.sum())
        allowed = None if read.allowed is None else read.allowed[~full]
        of_labels = None if weights is None else weights[full]
        if of_labels is not None and not of_labels.any():
            raise ValueError(
                "sample_weight must be above 0 for a labelled row, but every weight is zero. Give one a weight."
            )
        forbidden = None if allowed is None else ~allowed
        given = clf._given(prior, read.codes[full], n_unlabeled, of_labels, forbidden)
        labels, begin = [], 0
        for fact in facts:
            mine = slice(begin, begin + len(fact.entries))
            own = None if read.allowed is None else read.allowed[mine]
            labels.append(Labels(fact.places, read.codes[mine], read.partial[mine], own))
            begin = mine.stop
        heavy = clf.partial_weight == "labeled" and bool(read.partial.any())
        each = np.ones(len(entries)) if weights is None else weights
        known = full | read.partial if heavy else full
        making = self._making(facts, float(each[known].sum()), float(each[known & ~full].sum()), n_unlabeled, heavy)
        making = making._replace(forbids=read.allowed is not None)
        found = self.pool.each_with(shards.make, [(making, [labels[b] for b in group]) for group in self.source.groups])
        total = (1.0, making.mean * n_unlabeled if making.mean is not None else float(n_unlabeled > 0))
        shape = (facts[0].n_features + clf.fit_intercept, clf.taxonomy_.n_nodes)
        sizes, n_values = tuple(len(group) for group in self.source.groups), sum(fact.n_values for fact in facts)
        features = rank(self.pool, found, shape, np.dtype(making.dtype).itemsize, n_values)
        labeled = gather_labeled(self.pool, found, making, shape)
        rows = DaskEngine(
            self.pool, making.loss, making.alpha, n_unlabeled, len(clf.classes_), np.dtype(making.dtype), total,
            sizes, making.n_threads, labeled, making.forbids, features,
        )  # fmt: skip
        return rows, given, labels

    def _making(self, facts: list[Facts], known: float, heavy_weight: float, n_unlabeled: int, heavy: bool) -> Making:
        clf = self.clf
        rest = sum(fact.weight for fact in facts) - known
        uneven = (facts[0].weights is not None or heavy) and n_unlabeled > 0
        mean = (heavy_weight / known + float(rest > 0)) / n_unlabeled if uneven else None
        dtype = np.result_type(*(fact.dtype for fact in facts)).name
        n_threads = 1 if clf.n_jobs is None else clf.n_jobs
        return Making(
            clf._loss(), float(clf.alpha), clf.taxonomy_, n_threads, clf.fit_intercept, dtype, heavy, known, rest, mean,
            False,
        )  # fmt: skip

    def _open(
        self, given: Given, facts: list[Facts], labels: list[Labels], is_ranked: bool
    ) -> Callable[[], Checkpoint]:
        """Opens the folder that stages are kept in, which remembers the shards too."""
        clf = self.clf

        def opened() -> Checkpoint:
            if clf.checkpoint is None:
                return Checkpoint()
            assert self.seeds is not None
            parts = clf._fingerprint(given.bounds, self.seeds)
            parts["X"] = (is_ranked, *(fact.digest for fact in facts))
            parts["y"] = tuple(tuple(one) for one in labels)
            checkpoint = Checkpoint.open(clf.checkpoint, fingerprint(parts), self.seeds)
            try:
                checkpoint.note(TEAMS, json.dumps(self.source.teams))
            except OSError as error:
                checkpoint.__exit__(None, None, None)
                raise ValueError(
                    f"checkpoint {clf.checkpoint} cannot be written ({error.strerror}). Name another place."
                ) from error
            return checkpoint

        return opened

    def _keep_labels(self, rows: DaskEngine, outcome: FitResult, bounds: Bounds) -> Array:
        """Labels of all blocks, as fitted attributes; returns the counts (K,) that the scores alone would give."""
        clf, pool, restart = self.clf, self.pool, str(outcome.labels)
        clf.class_counts_ = np.sum(pool.each(shard_labels.class_counts, restart), axis=0)
        clf.transduction_ = self._of_each(shard_labels.labels_of, restart, clf.classes_)
        clf.__dict__.pop("label_distributions_", None)
        if hasattr(rows.loss, "posterior"):
            distribute(rows, restart, outcome.W, bounds)
            clf.label_distributions_ = self._of_each(shard_labels.distributions_of, restart)
            return rows.predicted_counts_of(restart)
        return rows.predicted_counts(outcome.W)

    def _of_each(self, function: Callable[..., Any], restart: str, *args: Any) -> list[Any]:
        """What a function says of each block: here where blocks are local, else where they are."""
        answers: list[Any] = [None] * len(self.source.X)
        for g, group in enumerate(self.source.groups):
            for place, b in enumerate(group):
                answers[b] = self.pool.task(g, function, restart, place, *args)
        arrays = self.pool.answers(answers) if self.source.is_local else None
        if arrays is None:
            self.pool.finish(answers)
        return answers if arrays is None else arrays


def _check_widths(facts: list[Facts]) -> None:
    widths = [fact.n_features for fact in facts]
    for b, width in enumerate(widths):
        if width != widths[0]:
            raise ValueError(
                f"blocks must have {widths[0]} columns as the first has, but block {b} has {width}. Match them."
            )


def _array_of(entries: list[Any], kinds: list[str]) -> Array:
    """Entries of y as an array of the kind that the blocks came in, if that is one."""
    kind = class_kind(kinds)
    if kind is not None:
        return np.array(entries, dtype=kind)
    values = np.empty(len(entries), dtype=object)
    values[:] = entries
    return values


def _of(weights: Array | None) -> Array:
    if weights is None:
        raise ValueError("sample_weight must be given for every block, or for none, but some have none.")
    return weights
