"""Rows in blocks of a fixed size, which threads may share: what comes out depends on neither their number nor order."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from transduce.losses.base import FloatArray, Targets

Kind: TypeAlias = np.dtype[Any]
Answer = TypeVar("Answer")
Writer: TypeAlias = Callable[[FloatArray, FloatArray], None]
"""write(S, out)"""
Valuer: TypeAlias = Callable[[FloatArray, Targets], FloatArray]
"""values(S, targets)"""
SlopeWriter: TypeAlias = Callable[[FloatArray, Targets, FloatArray], None]
"""write(S, targets, out), where out is not the array of the scores"""

BLOCK = 1 << 16
"""Scores in a block of rows, about: what is computed on the way stays in the cache."""
FEWEST = 64
"""Rows that a block has at least: products with margins want some."""
BLOCKS_A_THREAD = 4
"""Blocks that a thread must do to be worth starting."""


class ByRows(ABC):
    """A loss that works on one block of rows after the other; float32 stays float32.

    It is asked once for what does the work on a block, given the number of classes and the type of the scores.
    """

    @abstractmethod
    def _cost_writer(self, n_classes: int, kind: Kind) -> Writer:
        """What writes the costs of every label for the rows of a block."""

    @abstractmethod
    def _valuer(self, n_classes: int, kind: Kind) -> Valuer:
        """What gives the losses of the rows of a block."""

    @abstractmethod
    def _slope_writer(self, n_classes: int, kind: Kind) -> SlopeWriter:
        """What writes the gradient for the rows of a block."""

    def label_costs(self, scores: ArrayLike) -> FloatArray:
        """Costs (n, K): the loss of each row if its label were k."""
        return costs_by_rows(self, scores, 1)

    def value(self, scores: ArrayLike, targets: ArrayLike) -> FloatArray:
        """Losses (n,) at the targets."""
        S, targets = score_matrix(scores), np.asarray(targets)
        values = self._valuer(S.shape[1], S.dtype)
        return np.concatenate(in_blocks(S, 1, lambda rows: values(S[rows], targets[rows])))

    def gradient(self, scores: ArrayLike, targets: ArrayLike) -> FloatArray:
        """Gradient (n, K) of the losses in the scores; a subgradient where there is a corner."""
        S, targets = score_matrix(scores), np.asarray(targets)
        out, write = np.empty_like(S), self._slope_writer(S.shape[1], S.dtype)
        in_blocks(S, 1, lambda rows: write(S[rows], targets[rows], out[rows]))
        return out


def costs_by_rows(loss: ByRows, scores: ArrayLike, n_threads: int) -> FloatArray:
    """Costs (n, K) of every label, in threads."""
    S = score_matrix(scores)
    costs, write = np.empty_like(S), loss._cost_writer(S.shape[1], S.dtype)
    in_blocks(S, n_threads, lambda rows: write(S[rows], costs[rows]))
    return costs


def slope_by_rows(
    loss: ByRows, scores: FloatArray, targets: Targets, weights: FloatArray, n_threads: int
) -> tuple[float, FloatArray]:
    """Σ_i w_i ξ(s_i, y_i) and its gradient (n, K) in the scores, which is written in their place, in threads."""
    values, write = loss._valuer(scores.shape[1], scores.dtype), loss._slope_writer(scores.shape[1], scores.dtype)

    def in_place(rows: slice) -> float:
        S, slopes = scores[rows], np.empty_like(scores[rows])
        value = float(np.dot(weights[rows], values(S, targets[rows])))
        write(S, targets[rows], slopes)
        np.multiply(slopes, weights[rows, None], out=S, casting="same_kind")
        return value

    return sum(in_blocks(scores, n_threads, in_place)), scores


def in_blocks(S: FloatArray, n_threads: int, work: Callable[[slice], Answer]) -> list[Answer]:
    """What `work` says of each block of rows, in their order; there is at least one."""
    step = max(FEWEST, BLOCK // max(1, S.shape[1]))
    blocks = [slice(begin, begin + step) for begin in range(0, max(1, len(S)), step)]
    n_threads = min(n_threads, len(blocks) // BLOCKS_A_THREAD)
    if n_threads < 2:
        return [work(rows) for rows in blocks]
    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(work, blocks))


def score_matrix(scores: ArrayLike) -> FloatArray:
    """Scores as floats in C order; float32 stays float32."""
    S = np.asarray(scores)
    if S.ndim != 2:
        raise ValueError(f"scores must be a matrix, a row a document and a column a class, but have shape {S.shape}.")
    return np.ascontiguousarray(S, dtype=np.float32 if S.dtype == np.float32 else np.float64)


def written(write: Writer, S: FloatArray) -> FloatArray:
    """What is written for scores, as a new array."""
    out = np.empty_like(S)
    write(S, out)
    return out
