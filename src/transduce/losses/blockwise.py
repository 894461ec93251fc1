"""Losses that are computed in blocks of rows, and what they need to handle labels and distributions alike."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from transduce.losses.base import FloatArray, Targets
from transduce.parallel import Threads, row_blocks

DType: TypeAlias = np.dtype[Any]
Result = TypeVar("Result")
ScoreFunction: TypeAlias = Callable[[FloatArray, FloatArray], None]
"""write(S, out)"""
ValueFunction: TypeAlias = Callable[[FloatArray, Targets], FloatArray]
"""values = value(S, targets)"""
GradientFunction: TypeAlias = Callable[[FloatArray, Targets, FloatArray], None]
"""write(S, targets, out), where `out` does not overlap S"""

BLOCK_SCORES = 1 << 16
"""About so many scores make a block, so that intermediate results stay in the cache."""
MIN_BLOCK_ROWS = 64
"""Rows of the smallest block: products with the margins need some."""
MIN_BLOCKS_PER_THREAD = 4
"""Blocks that make it worth starting one more thread."""


class BlockwiseLoss(ABC):
    """A loss that is computed block by block; float32 stays float32.

    The three abstract methods are called once, and return the function that is applied to every block.
    """

    @abstractmethod
    def _cost_function(self, n_classes: int, dtype: DType) -> ScoreFunction:
        """Return the function that writes the costs of every label."""

    @abstractmethod
    def _value_function(self, n_classes: int, dtype: DType) -> ValueFunction:
        """Return the function that computes the losses."""

    @abstractmethod
    def _gradient_function(self, n_classes: int, dtype: DType) -> GradientFunction:
        """Return the function that writes the gradient."""

    def label_costs(self, scores: ArrayLike) -> FloatArray:
        """Compute the loss (n, K) of every row under every label; see `Loss.label_costs`."""
        return costs_in_blocks(self, scores, 1)

    def value(self, scores: ArrayLike, targets: ArrayLike) -> FloatArray:
        """Compute the loss (n,) of every row at labels or distributions; see `Loss.value`."""
        S, targets = score_matrix(scores), np.asarray(targets)
        values = self._value_function(S.shape[1], S.dtype)
        return np.concatenate(map_blocks(S, 1, lambda rows: values(S[rows], targets[rows])))

    def gradient(self, scores: ArrayLike, targets: ArrayLike) -> FloatArray:
        """Compute the gradient (n, K) of the losses with respect to the scores; see `Loss.gradient`."""
        S, targets = score_matrix(scores), np.asarray(targets)
        out, write = np.empty_like(S), self._gradient_function(S.shape[1], S.dtype)
        map_blocks(S, 1, lambda rows: write(S[rows], targets[rows], out[rows]))
        return out


def costs_in_blocks(loss: BlockwiseLoss, scores: ArrayLike, n_threads: int) -> FloatArray:
    """Compute the costs (n, K) of every label."""
    S = score_matrix(scores)
    costs, write = np.empty_like(S), loss._cost_function(S.shape[1], S.dtype)
    map_blocks(S, n_threads, lambda rows: write(S[rows], costs[rows]))
    return costs


def value_and_gradient_in_blocks(
    loss: BlockwiseLoss, scores: FloatArray, targets: Targets, weights: FloatArray, n_threads: int
) -> tuple[float, FloatArray]:
    """Compute Σ_i w_i ξ(s_i, y_i) and its gradient (n, K), which overwrites the scores."""
    value_of = loss._value_function(scores.shape[1], scores.dtype)
    write = loss._gradient_function(scores.shape[1], scores.dtype)

    def in_place(rows: slice) -> float:
        S, gradient = scores[rows], np.empty_like(scores[rows])
        value = float(np.dot(weights[rows], value_of(S, targets[rows])))
        write(S, targets[rows], gradient)
        np.multiply(gradient, weights[rows, None], out=S, casting="same_kind")
        return value

    return sum(map_blocks(scores, n_threads, in_place)), scores


def map_blocks(S: FloatArray, n_threads: int, function: Callable[[slice], Result]) -> list[Result]:
    """Apply a function to each block of rows, of which there is at least one, and return the results in order."""
    blocks = row_blocks(len(S), max(MIN_BLOCK_ROWS, BLOCK_SCORES // max(1, S.shape[1]))) or [slice(0, 0)]
    with Threads(min(n_threads, len(blocks) // MIN_BLOCKS_PER_THREAD)) as threads:
        return list(threads.map(function, blocks))


def score_matrix(scores: ArrayLike) -> FloatArray:
    """Return scores as a float matrix in C order; float32 stays float32."""
    S = np.asarray(scores)
    if S.ndim != 2:
        raise ValueError(
            f"scores must be a matrix with a row per document and a column per class, but have shape {S.shape}. "
            "Reshape them."
        )
    return np.ascontiguousarray(S, dtype=np.float32 if S.dtype == np.float32 else np.float64)


def evaluated(write: ScoreFunction, S: FloatArray) -> FloatArray:
    """Return what a function writes for these scores, as a new array."""
    out = np.empty_like(S)
    write(S, out)
    return out


def at_targets(values: FloatArray, targets: Targets) -> FloatArray:
    """Return the value (n,) of each row at its label, or the mean under its distribution."""
    if targets.ndim == 2:
        return np.asarray((values * targets).sum(axis=1), values.dtype)
    return np.asarray(values[np.arange(len(values)), targets])


def subtract_targets(targets: Targets, out: FloatArray) -> None:
    """Subtract one-hot labels, or distributions, in place."""
    if targets.ndim == 2:
        np.subtract(out, targets, out=out, casting="same_kind")
    else:
        out[np.arange(len(out)), targets] -= 1.0


def as_distributions(targets: Targets, S: FloatArray) -> FloatArray:
    """Return targets as distributions of the shape and type of the scores."""
    return targets.astype(S.dtype, copy=False) if targets.ndim == 2 else one_hot(targets, S.shape[1], S.dtype)


def one_hot(labels: Targets, n_classes: int, dtype: Any) -> FloatArray:
    """Return labels as one-hot rows (n, K)."""
    out = np.zeros((len(labels), n_classes), dtype)
    out[np.arange(len(labels)), labels] = 1.0
    return out
