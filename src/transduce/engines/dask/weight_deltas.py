"""Changes of the weights W as they travel between workers: the rows of W that differ, and what is added to each.

Where few training rows were visited, few rows of W changed, and only these travel. For a sum over workers W is cut into
chunks, each summed by one worker.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from transduce.arrays import Array
from transduce.design import Design
from transduce.engines.common import inner_products, move_towards
from transduce.kernels import kernel

DENSE = 0.5
"""Fraction of the rows of W above which a delta holds all of them."""
MIN_CHUNK_BYTES = 1 << 16
"""Bytes of W that make it worth while to involve another worker in a sum."""


class WeightDelta(NamedTuple):
    """Values (t, M) to add to `rows` (t,) of W, ascending; to all rows where `rows` is None."""

    rows: Array | None
    values: Array

    @property
    def n_bytes(self) -> int:
        """Bytes that travel."""
        return int(self.values.nbytes + (0 if self.rows is None else self.rows.nbytes))


def as_delta(W: Array) -> WeightDelta:
    """Return weights as a delta from zero, without the rows that are zero."""
    rows = np.flatnonzero(W.any(axis=1))
    return WeightDelta(None, W) if rows.size > DENSE * len(W) else WeightDelta(rows, W[rows])


def add_delta(W: Array, delta: WeightDelta) -> None:
    """Add a delta to W in place."""
    if delta.rows is None:
        W += delta.values
    else:
        _add_rows(W, delta.rows, delta.values)


def split_delta(delta: WeightDelta, bounds: Sequence[int]) -> list[WeightDelta]:
    """Cut a delta into chunks between each two bounds; the rows of a chunk count from its lower bound."""
    if delta.rows is None:
        return [WeightDelta(None, delta.values[low:high]) for low, high in pairwise(bounds)]
    ends = np.searchsorted(delta.rows, bounds)
    return [
        WeightDelta(delta.rows[a:b] - low, delta.values[a:b])
        for low, (a, b) in zip(bounds[:-1], pairwise(ends), strict=True)
    ]


def sum_deltas(deltas: Sequence[WeightDelta], n_rows: int) -> WeightDelta:
    """Add up deltas of weights with this many rows, in the order given."""
    if len(deltas) == 1:
        return deltas[0]
    touched = np.zeros(n_rows, np.bool_)
    for delta in deltas:
        touched[slice(None) if delta.rows is None else delta.rows] = True
    rows = np.flatnonzero(touched)
    is_dense = rows.size > DENSE * n_rows
    position = np.arange(n_rows) if is_dense else np.cumsum(touched) - 1
    values = deltas[0].values
    out = np.zeros((n_rows if is_dense else rows.size, values.shape[1]), values.dtype)
    for delta in deltas:
        add_delta(out, delta if delta.rows is None else WeightDelta(position[delta.rows], delta.values))
    return WeightDelta(None if is_dense else rows, out)


def chunk_bounds(shape: tuple[int, int], itemsize: int, n_groups: int) -> list[int]:
    """Return the bounds of at most `n_groups` chunks of W that are each worth the messages."""
    n_bytes = shape[0] * shape[1] * itemsize
    n_chunks = int(np.clip(n_bytes // MIN_CHUNK_BYTES, 1, min(n_groups, shape[0])))
    return [int(bound) for bound in np.linspace(0, shape[0], n_chunks + 1)]


@dataclass(eq=False)
class TrackedWeights:
    """Weights W (d, M), the `base` (d, M) that all shards agree on, and the rows of W `changed` (d,) here since.

    Rows that are not marked as changed are equal in both.
    """

    W: Array
    base: Array
    changed: Array

    @classmethod
    def create(cls, W: Array) -> "TrackedWeights":
        """Track changes from these weights on."""
        return cls(W, W.copy(), np.zeros(len(W), np.bool_))

    def mark(self, design: Design, rows: Array) -> None:
        """Mark the weights that these training rows may change: all, if they are most rows and have many values."""
        many = rows.size > DENSE * design.n_rows and design.n_values >= len(self.W)
        if many or (design.is_dense and rows.size):
            self.changed[:] = True
        elif not self.changed.all():
            _mark_columns(rows, design.indices, design.spans, self.changed)

    def add(self, deltas: Sequence[WeightDelta], bounds: Sequence[int] | None = None) -> None:
        """Add deltas of other shards, or the chunks of one: W is as if the base had always been so."""
        chunks = [(0, len(self.W))] * len(deltas) if bounds is None else pairwise(bounds)
        for delta, (low, high) in zip(deltas, chunks, strict=True):
            add_delta(self.W[low:high], delta)
            add_delta(self.base[low:high], delta)

    def clear(self) -> None:
        """Set all weights to zero."""
        self.W[...] = self.base[...] = 0.0
        self.changed[:] = False

    def amplify(self, factor: float) -> None:
        """Multiply the changes since the base by a factor."""
        rows = np.flatnonzero(self.changed)
        base = self.base[rows]
        self.W[rows] = base + self.W.dtype.type(factor) * (self.W[rows] - base)

    def take(self, scale: float = 1.0, revert: bool = True) -> WeightDelta:
        """Return the changes since the base, scaled; W goes back to the base, or both become base + delta."""
        is_dense = bool(self.changed.all())
        rows = np.arange(len(self.W)) if is_dense else np.flatnonzero(self.changed)
        values = np.empty((rows.size, self.W.shape[1]), self.W.dtype)
        _take_rows(self.W, self.base, rows, scale, revert, values)
        self.changed[:] = False
        return WeightDelta(None if is_dense else rows, values)


@kernel
def _mark_columns(rows: Array, indices: Array, spans: Array, changed: Array) -> None:
    """Mark all columns in which these rows have values."""
    for i in rows:
        for p in range(spans[i, 0], spans[i, 1]):
            changed[indices[p]] = True


@kernel
def _add_rows(W: Array, rows: Array, values: Array) -> None:
    """Add values to some rows of W."""
    for r in range(rows.size):
        now = W[rows[r]]
        for m in range(now.size):
            now[m] += values[r, m]


@kernel
def _take_rows(W: Array, base: Array, rows: Array, scale: float, revert: bool, out: Array) -> None:
    """Write scale · (W − base) to `out`; then base to W, or base + out to both."""
    for r in range(rows.size):
        now, before = W[rows[r]], base[rows[r]]
        for m in range(now.size):
            out[r, m] = (now[m] - before[m]) * scale
            if not revert:
                before[m] += out[r, m]
            now[m] = before[m]


class ShardLostError(Exception):
    """The shard is not in this process, or the reduction it takes part in cannot be completed."""


@dataclass(eq=False)
class SharedWeights:
    """The weights W of one restart, the same on all shards after every reduction.

    `delta` waits to be reduced. The first shard has the `accepted` weights.
    """

    weights: TrackedWeights
    delta: WeightDelta | None = None
    accepted: Array | None = None

    @property
    def W(self) -> Array:  # noqa: N802 -- the notation of the paper
        return self.weights.W

    @property
    def _running(self) -> TrackedWeights:
        """The weights of a restart that was not finished meanwhile, as after Ctrl-C in a reduction."""
        if not self.W.size:
            raise ShardLostError("this restart is finished")
        return self.weights

    def take_delta(self) -> WeightDelta:
        """Return the delta that waits to be reduced."""
        if self.delta is None:
            raise ShardLostError("a delta can be taken only once")
        delta, self.delta = self.delta, None
        return delta

    def shape(self) -> tuple[tuple[int, int], int]:
        """Return the shape of W, and the bytes of a number."""
        return (self.W.shape[0], self.W.shape[1]), self.W.itemsize

    def products(self) -> tuple[float, float, float]:
        """Return ⟨V, V⟩, ⟨V, W⟩ and ⟨W, W⟩ for the accepted weights V."""
        assert self.accepted is not None
        return inner_products(self.accepted, self.W)

    def receive(self, chunks: Sequence[WeightDelta], bounds: Sequence[int]) -> None:
        """Add the chunks of a sum over all shards to W."""
        self._running.add(chunks, bounds)

    def set_weights(self, W: WeightDelta) -> None:
        self.weights.clear()
        self.weights.add([W])

    def set_accepted(self, W: WeightDelta) -> None:
        """Accept weights that were sent."""
        self.accepted = np.zeros_like(self.W)
        add_delta(self.accepted, W)

    def accept_weights(self, step_length: float = 1.0) -> None:
        """Accept W, or the point this far between the accepted weights and W."""
        if self.accepted is None:
            self.accepted = self.W.copy()
        move_towards(self.accepted, self.W, step_length)

    def get_weights(self, accepted: bool) -> Array:
        """Return a copy of W, or of the accepted weights."""
        return self.W.copy() if not accepted or self.accepted is None else self.accepted.copy()
