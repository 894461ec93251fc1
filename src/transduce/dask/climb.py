"""One weight step over all shards: sweeps of their duals until the gap is met, or exact sums for L-BFGS."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from distributed import Future
from numpy.typing import NDArray

from transduce.dask import shard_labels, shard_weights
from transduce.dask.changes import Change, Piece, total
from transduce.dask.crew import Crew
from transduce.dask.shard_weights import Swept
from transduce.engines import Step
from transduce.losses import Loss, softened
from transduce.weight_step import Smooth, weight_step_for
from transduce.weight_step.dual import Enough, Tour, ascend, tour
from transduce.weight_step.smooth import lowest

Array = NDArray[Any]

FAN_IN = 8
"""Changes that one task adds up."""
IN_TURN = 2
"""Shards that take turns; more of them sweep at once, which needs more sums but no waiting."""
GROWN = 0.5
"""Share of the rows above which, if these have new weights, nobody waits for a turn: most are to be visited."""


class Weighed(Protocol):
    """What a weight step must know of the rows."""

    @property
    def crew(self) -> Crew:
        """Who has them."""
        ...

    @property
    def loss(self) -> Loss:
        """The loss."""
        ...

    @property
    def alpha(self) -> float:
        """λ."""
        ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """Their type."""
        ...

    def spread(self, way: str, W: Array) -> None:
        """Give all shards these weights."""
        ...

    def fetch(self, way: str, kept: bool) -> Array:
        """Weights of a way."""
        ...


@dataclass(eq=False)
class Climb:
    """One weight step over all shards, from the weights they have.

    Two shards take turns, as if their rows were in one place, but when row weights have grown and most rows are to be
    visited. Then, or where there are more shards, they visit their rows at once, each bending W by `sigma` times what
    it knows of, so that changes can safely be added.
    """

    rows: Weighed
    way: str
    rng: np.random.Generator
    weights_grew: bool = True

    @property
    def _crew(self) -> Crew:
        return self.rows.crew

    @property
    def _sigma(self) -> float:
        """How much more a shard bends W than it knows of, where all visit their rows at once."""
        return float(len(self._crew.keys))

    def retarget(self, weight: float) -> bool:
        """Hand labels and row weights to the states; says whether a label, and so W, has changed.

        What that changes in W is added up with the first sweep.
        """
        changed, n_unknown, n_live = zip(*self._crew.each(shard_weights.retarget, self.way, weight), strict=True)
        self.weights_grew = sum(n_unknown) > GROWN * sum(n_live)
        return any(changed)

    def soften(self, weight: float, fresh: bool) -> int:
        """Hand distributions to the states: W is what all rows put into it."""
        arguments = (shard_labels.soften, self.way, weight, fresh)
        if isinstance(weight_step_for(softened(self.rows.loss), 0), Smooth):
            return int(sum(self._crew.each(*arguments)))
        return int(sum(self._crew.each_and_add(self.way, True, *arguments)))

    def solve(self, step: Any, tol: float, most: float, fresh: bool, last: float = np.inf) -> Step:
        """Sweep until the gap is at most tol · J; or minimise, where the loss has no dual.

        J is at most `most`, that of weights 0, and was `last` in the step before; `fresh` says that scores are known.
        """
        expected = min(last, most)
        if isinstance(step, Smooth):
            return self._minimise(step, tol)
        if fresh:
            known = self._report(0.0, tol, fresh=True)
            if known.converged:
                return known
            expected = min(known.objective, most)

        return ascend(step.max_sweeps, tol, expected, self._go, lambda n: self._report(n, tol, fresh=False))

    def _go(self, enough: Enough, most: int) -> Tour:
        """Sweeps in turn, or at once. When row weights have grown it is one sweep: then J gives gaps of all rows."""
        seed = int(self.rng.integers(2**63))
        if not self.weights_grew and len(self._crew.keys) <= IN_TURN:
            is_over = partial(_is_over, enough)
            swept = self._crew.each_in_turn(self.way, most, is_over, shard_weights.turn, self.way, seed)
            turns = [_of_all(turn) for turn in zip(*swept, strict=True)]
            return Tour(len(turns), sum(share for share, _ in turns), turns[-1][1])

        def sweep(count: int) -> tuple[float, float]:
            how = (self.way, seed, count, self._sigma)
            return _of_all(self._crew.each_and_add(self.way, False, shard_weights.sweep, *how))

        most = 1 if self.weights_grew else most
        self.weights_grew = False
        return tour(sweep, enough, most)

    def _report(self, n_sweeps: float, tol: float, fresh: bool) -> Step:
        losses, gaps, squares = zip(*self._crew.each(shard_weights.measure, self.way, fresh), strict=True)
        objective, gap = 0.5 * self.rows.alpha * squares[0] + sum(losses), sum(gaps)
        return Step(objective, gap, n_sweeps, gap <= tol * objective)

    def _minimise(self, step: Smooth, tol: float) -> Step:

        def value_and_gradient(W: Array) -> tuple[float, Array]:
            self.rows.spread(self.way, W)
            losses = self._crew.each(shard_weights.loss_and_slope, self.way)
            _, slope = fetched_sum(self._crew, shard_weights.take_change, self.way)
            return float(sum(losses)), np.asarray(slope.values)

        W = self.rows.fetch(self.way, kept=False)
        low = lowest(value_and_gradient, W, self.rows.alpha, tol, step.max_iter)
        self.rows.spread(self.way, low.W.astype(self.rows.dtype))
        self._crew.each(shard_weights.show, self.way)
        return Step(low.value, low.left, low.n_passes, low.converged)


def _of_all(swept: Sequence[Swept]) -> tuple[float, float]:
    """The share of all rows that the shards have visited, and what gaps add up to."""
    n_visited, n_live = sum(one.n_visited for one in swept), sum(one.n_live for one in swept)
    return n_visited / max(n_live, 1), sum(one.seen for one in swept)


def _is_over(enough: Enough, count: int, swept: Sequence[Swept]) -> bool:
    return enough.after(count, *_of_all(swept))


def fetched_sum(crew: Crew, function: Callable[..., Change], *args: Any) -> tuple[Future, Change]:
    """The sum of what a function says of all shards, there and here; added up on the workers, a few at a time."""
    parts = [crew.task(g, function, *args) for g in range(len(crew.keys))]
    while len(parts) > 1:
        groups = [parts[i : i + FAN_IN] for i in range(0, len(parts), FAN_IN)]
        parts = [crew.submit(combine, *group, home=crew.homes[g * FAN_IN]) for g, group in enumerate(groups)]
    return parts[0], crew.answers(parts)[0]


def combine(*changes: Change) -> Change:
    """The sum of changes of all of W."""
    return total([Piece(0, len(change.values), change) for change in changes]).change
