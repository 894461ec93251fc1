"""Rows in memory as the user passed them: encoded labels and the training problem."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse

from transduce.arrays import Array
from transduce.design import Design
from transduce.engines.base import LabelOptions, LabelSummary, ProblemSettings
from transduce.engines.local import LocalEngine
from transduce.errors import LabelError, LabelErrorKind
from transduce.labels.classes import as_objects, find_classes, warn_similar_names
from transduce.labels.encode import EncodedLabels, check_labels, encode_labels
from transduce.labels.missing import find_labeled
from transduce.labels.partial import read_matrix
from transduce.problem import TrainingProblem
from transduce.taxonomy import Taxonomy
from transduce.validation import check_labeled_weight, check_sample_weight


@dataclass(eq=False)
class LocalData:
    """X (n, d), checked, with y and sample weights as users have them."""

    X: Any
    y: Any
    sample_weight: Any = None
    taxonomy: Taxonomy = field(init=False)
    encoded: EncodedLabels = field(init=False)

    def encode(self, options: LabelOptions) -> LabelSummary:
        """Read and check the labels."""
        y, columns = read_matrix(self.y)
        values, labeled = find_labeled(y, options.unlabeled)
        check_labels(self.X.shape[0], values, labeled)
        self.sample_weight = check_sample_weight(self.sample_weight, values.size)
        self.encoded, summary = encode_entries(values, labeled, columns, self.sample_weight, self.X.shape, options)
        self.taxonomy = summary.taxonomy
        return summary

    def build(self, settings: ProblemSettings) -> LocalEngine:
        """Build the training problem."""
        engine = build_rows(self.X, self.sample_weight, self.encoded, self.taxonomy, settings)
        design = engine.problem.design.reordered_by_frequency()
        return replace(engine, problem=replace(engine.problem, design=design))


def encode_entries(
    values: Array,
    labeled: Array,
    columns: Sequence[Any],
    weights: Array | None,
    shape: tuple[int, int],
    options: LabelOptions,
    warn: bool = True,
) -> tuple[EncodedLabels, LabelSummary]:
    """Find the classes, and encode these entries of y, those of all labelled rows among them; X has this shape."""
    prior, taxonomy = options.class_prior, options.taxonomy
    classes, tree = find_classes(values, labeled, prior, taxonomy, columns)
    encoded = encode_labels(as_objects(values), labeled, classes.tolist(), tree, taxonomy is not None)
    if warn and taxonomy is None and not columns:
        warn_similar_names(values, labeled, prior)
    full, allowed = encoded.codes >= 0, encoded.allowed
    if not full.any():
        raise LabelError(LabelErrorKind.NOTHING_LABELED_IN_FULL)
    own_weights, forbidden = None if weights is None else weights[full], None if allowed is None else ~allowed[~full]
    check_labeled_weight(own_weights)
    n_unlabeled, labels = shape[0] - int(full.sum()), encoded.codes[full]
    return encoded, LabelSummary(shape[1], classes, tree, labels, own_weights, n_unlabeled, forbidden)


def build_rows(
    X: Any,
    sample_weight: Array | None,
    encoded: EncodedLabels,
    taxonomy: Taxonomy,
    settings: ProblemSettings,
    total_weights: tuple[float, float] | None = None,
) -> LocalEngine:
    """Order rows by label (full, partial, none), and build a problem whose columns keep their order.

    `total_weights` are for rows that are one block of many, see TrainingProblem.create.
    """
    codes, partial, allowed = encoded.codes, encoded.partial, encoded.allowed
    order = np.lexsort((codes < 0, ~partial & (codes < 0)))
    n_labeled = int((codes >= 0).sum())
    problem = TrainingProblem.create(
        Design.create(_with_constant(X) if settings.fit_intercept else X, taxonomy, settings.n_jobs, order),
        settings.loss,
        settings.alpha,
        n_labeled,
        None if sample_weight is None else sample_weight[order],
        int(partial.sum()) if settings.partial_as_labeled else 0,
        None if allowed is None else ~allowed[order[n_labeled:]],
        total_weights,
    )
    return LocalEngine(problem, np.maximum(codes[order], 0), order)


def _with_constant(X: Any) -> Any:
    """Append a column of ones."""
    constant = np.ones((X.shape[0], 1), X.dtype)
    return sparse.hstack((X, constant), format="csr") if sparse.issparse(X) else np.hstack((X, constant))
