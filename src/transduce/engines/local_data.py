"""Rows in memory as the user passed them: encoded labels and the training problem."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

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

Array = NDArray[Any]


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
        prior, taxonomy = options.class_prior, options.taxonomy
        y, columns = read_matrix(self.y)
        values, labeled = find_labeled(y, options.unlabeled)
        check_labels(self.X.shape[0], values, labeled)
        classes, self.taxonomy = find_classes(values, labeled, prior, taxonomy, columns)
        self.encoded = encode_labels(as_objects(values), labeled, classes.tolist(), self.taxonomy, taxonomy is not None)
        if taxonomy is None and not columns:
            warn_similar_names(values, labeled, prior)
        codes, allowed = self.encoded.codes, self.encoded.allowed
        full = codes >= 0
        if not full.any():
            raise LabelError(LabelErrorKind.NOTHING_LABELED_IN_FULL)
        self.sample_weight = check_sample_weight(self.sample_weight, codes.size)
        weights = None if self.sample_weight is None else self.sample_weight[full]
        check_labeled_weight(weights)
        return LabelSummary(
            self.X.shape[1],
            classes,
            self.taxonomy,
            codes[full],
            weights,
            int((~full).sum()),
            None if allowed is None else ~allowed[~full],
        )

    def build(self, settings: ProblemSettings) -> LocalEngine:
        """Build the training problem."""
        engine = self.build_block(settings)
        design = engine.problem.design.reordered_by_frequency()
        return replace(engine, problem=replace(engine.problem, design=design))

    def build_block(self, settings: ProblemSettings, total_weights: tuple[float, float] | None = None) -> LocalEngine:
        """Order rows by label (full, partial, none), and build a problem whose columns keep their order.

        Where the rows are one block of many, `total_weights` are the sample weights of all rows that count as labelled,
        and of all others.
        """
        codes, partial, allowed = self.encoded.codes, self.encoded.partial, self.encoded.allowed
        order = np.lexsort((codes < 0, ~partial & (codes < 0)))
        n_labeled = int((codes >= 0).sum())
        X = with_constant(self.X) if settings.fit_intercept else self.X
        problem = TrainingProblem.create(
            Design.create(X, self.taxonomy, settings.n_jobs, order),
            settings.loss,
            settings.alpha,
            n_labeled,
            None if self.sample_weight is None else self.sample_weight[order],
            int(partial.sum()) if settings.partial_as_labeled else 0,
            None if allowed is None else ~allowed[order[n_labeled:]],
            total_weights,
        )
        return LocalEngine(problem, np.maximum(codes[order], 0), order)


def with_constant(X: Any) -> Any:
    """Append a column of ones."""
    constant = np.ones((X.shape[0], 1), X.dtype)
    return sparse.hstack((X, constant), format="csr") if sparse.issparse(X) else np.hstack((X, constant))
