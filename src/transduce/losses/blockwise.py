"""Losses that are computed in blocks of rows, and what they need to handle labels and distributions alike."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from transduce.contract import read_numbers
from transduce.losses.base import FloatArray, Targets
from transduce.parallel import Threads, row_blocks
from transduce.suggest import short_repr

DType: TypeAlias = np.dtype[Any]
Result = TypeVar("Result")

BLOCK_SCORES, MIN_BLOCK_ROWS = 1 << 16, 64
"""About so many scores make a block, to stay in the cache; and the fewest rows, for products with the margins."""
MIN_BLOCKS_PER_THREAD = 4
"""Blocks that make it worth starting one more thread, where none are running."""


class PreparedLoss(ABC):
    """A loss as it is applied to the scores S of one block of rows, after its margins have been prepared."""

    @abstractmethod
    def write_costs(self, S: FloatArray, out: FloatArray) -> None:
        """Write the costs of every label."""

    @abstractmethod
    def write_gradient(self, S: FloatArray, targets: Targets, out: FloatArray) -> None:
        """Write the gradient to `out`, which does not overlap S."""

    def costs(self, S: FloatArray) -> FloatArray:
        """Return the costs of every label as a new array."""
        out = np.empty_like(S)
        self.write_costs(S, out)
        return out

    def values(self, S: FloatArray, targets: Targets) -> FloatArray:
        """Return the losses."""
        return at_targets(self.costs(S), targets)


class BlockwiseLoss(ABC):
    """A loss that is computed block by block; float32 stays float32."""

    @abstractmethod
    def _prepared(self, n_classes: int, dtype: DType) -> PreparedLoss:
        """Prepare for blocks of scores of this type, once for all of them."""

    def label_costs(self, scores: ArrayLike) -> FloatArray:
        """Compute the loss (n, K) of every row under every label; see `Loss.label_costs`."""
        return self._threaded_costs(scores, 1)

    def value(self, scores: ArrayLike, targets: ArrayLike) -> FloatArray:
        """Compute the loss (n,) of every row at labels or distributions; see `Loss.value`."""
        S = score_matrix(scores)
        targets = checked_targets(targets, S.shape)
        loss = self._prepared(S.shape[1], S.dtype)
        return np.concatenate(map_blocks(S, 1, lambda rows: loss.values(S[rows], targets[rows])))

    def gradient(self, scores: ArrayLike, targets: ArrayLike) -> FloatArray:
        """Compute the gradient (n, K) of the losses with respect to the scores; see `Loss.gradient`."""
        S = score_matrix(scores)
        targets = checked_targets(targets, S.shape)
        out, loss = np.empty_like(S), self._prepared(S.shape[1], S.dtype)
        map_blocks(S, 1, lambda rows: loss.write_gradient(S[rows], targets[rows], out[rows]))
        return out

    def _threaded_costs(self, scores: ArrayLike, threads: int | Threads) -> FloatArray:
        S = score_matrix(scores)
        costs, loss = np.empty_like(S), self._prepared(S.shape[1], S.dtype)
        map_blocks(S, threads, lambda rows: loss.write_costs(S[rows], costs[rows]))
        return costs

    def _threaded_value_and_gradient(
        self, scores: FloatArray, targets: Targets, weights: FloatArray, n_threads: int
    ) -> float:
        """Return Σ_i w_i ξ(s_i, y_i); its gradient (n, K) overwrites the scores."""
        loss = self._prepared(scores.shape[1], scores.dtype)

        def in_place(rows: slice) -> float:
            S, gradient = scores[rows], np.empty_like(scores[rows])
            value = float(np.dot(weights[rows], loss.values(S, targets[rows])))
            loss.write_gradient(S, targets[rows], gradient)
            np.multiply(gradient, weights[rows, None], out=S, casting="same_kind")
            return value

        return sum(map_blocks(scores, n_threads, in_place))


def map_blocks(S: FloatArray, threads: int | Threads, function: Callable[[slice], Result]) -> list[Result]:
    """Apply a function to each block of rows, of which there is at least one, and return the results in order."""
    blocks = row_blocks(len(S), max(MIN_BLOCK_ROWS, BLOCK_SCORES // max(1, S.shape[1]))) or [slice(0, 0)]
    if isinstance(threads, Threads):
        return threads.each(function, blocks)
    with Threads(min(threads, len(blocks) // MIN_BLOCKS_PER_THREAD)) as started:
        return started.each(function, blocks)


def score_matrix(scores: ArrayLike) -> FloatArray:
    """Return scores as a float matrix in C order; float32 stays float32."""
    S = scores if isinstance(scores, np.ndarray) and scores.dtype.kind == "f" else _as_numbers(scores)
    if S.ndim != 2:
        raise ValueError(
            f"scores must be a matrix, a row per document and a column per class, but have shape {S.shape}."
        )
    return np.ascontiguousarray(S, dtype=np.float32 if S.dtype == np.float32 else np.float64)


def _as_numbers(scores: ArrayLike) -> FloatArray:
    return read_numbers(scores, "scores", "a matrix of numbers, a row per document and a column per class")


def checked_targets(targets: ArrayLike, shape: tuple[int, ...]) -> Targets:
    """Return targets as an array: the class of each row, or its distribution over the classes."""
    found = np.asarray(targets)
    if found.shape == shape and found.dtype.kind in "fiub":
        return found
    is_listed = found.shape == shape[:1] and found.dtype.kind in "iu"
    if not is_listed or (found.size and not 0 <= found.min() <= found.max() < shape[1]):
        raise ValueError(
            f"targets must be the class of each of the {shape[0]} rows, from 0 to {shape[1] - 1}, or a matrix of shape "
            f"{shape} with its distribution, but are {short_repr(targets)}."
        )
    return found


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


def as_distributions(targets: Targets, n_classes: int, dtype: Any = np.float64) -> FloatArray:
    """Return targets as distributions (n, K); labels become one-hot rows of the given type."""
    if targets.ndim == 2:
        return targets
    out = np.zeros((len(targets), n_classes), dtype)
    out[np.arange(len(targets)), targets] = 1.0
    return out
