"""What rows change in the weights, and sums of it: where few rows are visited few rows of W change, and these travel.

before    what W was where rows have bent it, so that it can be put back
change    rows of W and what is added to each; all of them in order, where there are many
piece     the same between two rows of W: what one worker adds up for all
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transduce.design import Design
from transduce.kernels import kernel

Array = NDArray[Any]

DENSE = 0.5
"""Share of the rows of W above which all of them are sent."""
WORTH_A_PIECE = 1 << 16
"""Bytes of W that a worker should add up, if it is to add up any."""


class Change(NamedTuple):
    """What is added (t, M) to some rows (t,) of W, ascending; to all of them where `places` is None."""

    places: Array | None
    values: Array

    @property
    def n_bytes(self) -> int:
        """Bytes that travel."""
        return int(self.values.nbytes + (0 if self.places is None else self.places.nbytes))


def as_change(W: Array) -> Change:
    """Weights as what is added to 0: few rows, where others are 0.

    >>> as_change(np.array([[0.0], [0.0], [3.0]]))
    Change(places=array([2]), values=array([[3.]]))
    """
    places = np.flatnonzero(W.any(axis=1))
    return Change(None, W) if places.size > DENSE * len(W) else Change(places, W[places])


class Piece(NamedTuple):
    """A change of the rows of W from `low` to `high`; places count from `low`."""

    low: int
    high: int
    change: Change


@dataclass(eq=False)
class Before:
    """What W (d, M) was, in the rows that are touched: row j of W is kept as row `where[j]`, if that is not −1.

    If it is `whole`, every row is kept, in order.
    """

    kept: Array
    where: Array
    n_kept: int = 0
    whole: bool = False

    @classmethod
    def create(cls, W: Array) -> "Before":
        """Nothing is touched yet."""
        return cls(np.empty_like(W), np.full(len(W), -1))

    def touch(self, W: Array, design: Design, rows: Array) -> None:
        """Remember the weights that these rows may change: all, if they are most rows, and these have many values."""
        if rows.size > DENSE * design.n_rows and design.n_values >= len(W):
            self._touch_all(W)
        elif not self.whole:
            self.n_kept = _keep_of_rows(rows, design.indices, design.spans, W, self.kept, self.where, self.n_kept)

    def _touch_all(self, W: Array) -> None:
        if self.n_kept == 0 and not self.whole:
            self.kept[...] = W
        elif not self.whole:
            now, touched = W.copy(), np.flatnonzero(self.where >= 0)
            now[touched] = self.kept[self.where[touched]]
            self.kept = now
        self.whole = True

    def follow(self, W: Array, change: Change) -> None:
        """Add to W what others have changed: it is as if W had been so from the beginning."""
        pieces = [Piece(0, len(W), change)]
        add_to(W, pieces, anew=False)
        if self.whole:
            add_to(self.kept, pieces, anew=False)
        elif self.n_kept:
            places, values = change
            if places is None:
                places = np.flatnonzero(self.where >= 0)
                values = values[places]
            _add_to_kept(self.kept, self.where, places, values)

    def stretch(self, W: Array, times: float) -> None:
        """Let W have changed so many times as much."""
        if self.whole:
            W -= self.kept
            W *= W.dtype.type(times)
            W += self.kept
        else:
            places = np.flatnonzero(self.where >= 0)
            kept = self.kept[self.where[places]]
            W[places] = kept + W.dtype.type(times) * (W[places] - kept)

    def take(self, W: Array, share: float = 1.0, put_back: bool = True) -> Change:
        """This share of what has changed in W since; W is put back, or is what it was and the change, rounded."""
        if self.whole:
            places, values = None, np.empty_like(W)
            _split_off(W.reshape(-1), self.kept.reshape(-1), share, put_back, values.reshape(-1))
        else:
            places = np.flatnonzero(self.where >= 0)
            values = np.empty((places.size, W.shape[1]), W.dtype)
            _split_off_some(W, self.kept, self.where, places, share, put_back, values)
        self.where[:], self.n_kept, self.whole = -1, 0, False
        return Change(places, values)


def add_to(W: Array, pieces: Sequence[Piece], anew: bool) -> None:
    """Add pieces to W in place; or let them be W."""
    for low, high, (places, values) in pieces:
        part = W[low:high]
        if anew:
            part[...] = 0.0
        if places is None:
            part += values
        else:
            _add_some(part, places, values)


def cut(change: Change, bounds: Sequence[int]) -> list[Piece]:
    """Pieces of a change of all of W, between each two bounds.

    >>> cut(Change(np.array([1, 3]), np.array([[1.0], [2.0]])), [0, 2, 4])[1]
    Piece(low=2, high=4, change=Change(places=array([1]), values=array([[2.]])))
    """
    pieces = []
    for low, high in pairwise(bounds):
        if change.places is None:
            part = Change(None, change.values[low:high])
        else:
            a, b = np.searchsorted(change.places, (low, high))
            part = Change(change.places[a:b] - low, change.values[a:b])
        pieces.append(Piece(low, high, part))
    return pieces


def total(pieces: Sequence[Piece]) -> Piece:
    """The sum of pieces between the same bounds, in the order given.

    >>> one = Piece(0, 3, Change(np.array([0]), np.array([[1.0]])))
    >>> total([one, one]).change
    Change(places=array([0]), values=array([[2.]]))
    """
    low, high, first = pieces[0]
    if len(pieces) == 1:
        return pieces[0]
    size, many = high - low, any(piece.change.places is None for piece in pieces)
    if not many:
        union = np.zeros(size, np.bool_)
        for piece in pieces:
            union[piece.change.places] = True
        places = np.flatnonzero(union)
        many = places.size > DENSE * size
    if many:
        out = np.zeros((size, first.values.shape[1]), first.values.dtype)
        add_to(out, [Piece(0, size, piece.change) for piece in pieces], anew=False)
        return Piece(low, high, Change(None, out))
    where = np.empty(size, np.int64)
    where[places] = np.arange(places.size)
    out = np.zeros((places.size, first.values.shape[1]), first.values.dtype)
    for piece in pieces:
        out[where[piece.change.places]] += piece.change.values
    return Piece(low, high, Change(places, out))


def bounds_of_pieces(shape: tuple[int, ...], itemsize: int, n_owners: int) -> list[int]:
    """Where W of this shape is cut, so that each of at most so many owners adds up a piece that is worth it.

    >>> bounds_of_pieces((100_000, 20), 4, 2), bounds_of_pieces((10, 2), 4, 2)
    ([0, 50000, 100000], [0, 10])
    """
    n_bytes = int(np.prod(shape)) * itemsize
    n_pieces = int(np.clip(n_bytes // WORTH_A_PIECE, 1, min(n_owners, shape[0])))
    return [int(bound) for bound in np.linspace(0, shape[0], n_pieces + 1)]


@kernel
def _keep_of_rows(rows: Array, indices: Array, spans: Array, W: Array, kept: Array, where: Array, n_kept: int) -> int:
    """Keep the weights of all columns of these rows; says how many are kept."""
    for i in rows:
        n_kept = _keep(indices[spans[i, 0] : spans[i, 1]], W, kept, where, n_kept)
    return n_kept


@kernel
def _keep(places: Array, W: Array, kept: Array, where: Array, n_kept: int) -> int:
    for j in places:
        if where[j] < 0:
            for m in range(W.shape[1]):
                kept[n_kept, m] = W[j, m]
            where[j] = n_kept
            n_kept += 1
    return n_kept


@kernel
def _split_off(W: Array, before: Array, share: float, put_back: bool, out: Array) -> None:
    """Write share · (W − before) to `out`, and `before` to W, or `before` + `out` to it."""
    for i in range(W.size):
        out[i] = (W[i] - before[i]) * share
        W[i] = before[i]
        if not put_back:
            W[i] += out[i]


@kernel
def _split_off_some(
    W: Array, kept: Array, where: Array, places: Array, share: float, put_back: bool, out: Array
) -> None:
    """The same for some rows of W, of which those before are kept elsewhere."""
    for r in range(places.size):
        now, before = W[places[r]], kept[where[places[r]]]
        for m in range(now.size):
            out[r, m] = (now[m] - before[m]) * share
            now[m] = before[m]
            if not put_back:
                now[m] += out[r, m]


@kernel
def _add_to_kept(kept: Array, where: Array, places: Array, values: Array) -> None:
    """Add to those rows of W, at these places, that are kept."""
    for r in range(places.size):
        if where[places[r]] >= 0:
            before = kept[where[places[r]]]
            for m in range(before.size):
                before[m] += values[r, m]


@kernel
def _add_some(W: Array, places: Array, values: Array) -> None:
    """Add to some rows of W."""
    for r in range(places.size):
        now = W[places[r]]
        for m in range(now.size):
            now[m] += values[r, m]
