"""Rows of one block as they arrive at a worker: they are checked, and become a training problem with their labels."""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from transduce.arrays import Array
from transduce.contract import (
    check_sample_weight,
    check_structure,
    largest_value,
    read_rows,
    texts_explained,
    weight_range,
)
from transduce.design import sum_of_squares
from transduce.engines.base import ProblemSettings
from transduce.engines.dask.block_state import Block
from transduce.engines.local import build_rows
from transduce.errors import LabelError, LabelErrorKind
from transduce.io.fingerprint import fingerprint
from transduce.labels.classes import as_objects
from transduce.labels.encode import EncodedLabels, check_labels
from transduce.labels.missing import find_labeled
from transduce.labels.partial import read_matrix
from transduce.taxonomy import Taxonomy


class BlockInfo(NamedTuple):
    """What the driver learns about a block.

    `positions` are the rows whose entry of y says something, `entries` and `weights` those entries and their sample
    weights; `total_weight` is the sum over all rows, `weight_range` the least and the largest above 0, `squares` the
    sum of all squared values of X, `largest` its largest absolute value, `kind` the dtype of y, `columns` the class
    names of a label matrix, and `digest` a hash of X and the weights, if requested.
    """

    n_rows: int
    n_values: int
    n_features: int
    is_dense: bool
    dtype: str
    positions: Array
    entries: list[Any]
    kind: str
    columns: list[Any]
    weights: Array | None
    total_weight: float
    squares: float
    largest: float
    weight_range: tuple[float, float]
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

    @property
    def constant(self) -> float:
        """Feature of the intercept, or 0."""
        return self.settings.constant if self.settings.fit_intercept else 0.0


def read_block(
    X: Any, y: Any, weights: Any, unlabeled: object, digest: bool
) -> tuple[tuple[Any, Array | None], BlockInfo]:
    """Check X, y and sample weights of a block; returns X and the weights, and what the driver learns."""
    with texts_explained(X):
        if isinstance(X, list):  # a partition of a bag: rows, or matrices of rows
            for one in X:
                check_structure(one)
            X = sparse.vstack([sparse.csr_matrix(one) for one in X], format="csr")
    X = read_rows(X, is_part=True)
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
        n_rows, X.nnz if sparse.issparse(X) else X.size, n_features, not sparse.issparse(X), X.dtype.name, positions,
        as_objects(values[positions]), values.dtype.str, columns, own, total,
        sum_of_squares(X), largest_value(X), weight_range(weights), stamp,
    )  # fmt: skip
    return (X, weights), info


def build_block(X: Any, weights: Array | None, spec: ProblemSpec, positions: Array, known: EncodedLabels) -> Block:
    """Build the training problem of a block, with these labels of the rows at these positions."""
    n_rows, allowed = X.shape[0], None
    codes, partial = np.full(n_rows, -1, np.int64), np.zeros(n_rows, bool)
    codes[positions], partial[positions] = known.codes, known.partial
    if spec.has_forbidden:
        allowed = np.ones((n_rows, spec.taxonomy.n_classes), bool)
        allowed[positions] = known.allowed
    encoded = EncodedLabels(codes, partial, allowed)
    settings = spec.settings._replace(fit_intercept=False)  # the constant is apart
    rows = build_rows(X.astype(spec.dtype, copy=False), weights, encoded, spec.taxonomy, settings, spec.total_weights)
    unlabeled_weights = rows.problem.row_weights[rows.problem.n_labeled :]
    relative = None if spec.mean_weight is None else unlabeled_weights / spec.mean_weight
    return Block(rows.problem, rows.labels, rows.order, relative, spec.constant)
