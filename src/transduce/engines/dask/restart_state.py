"""One restart on a shard: sweeps over its rows, the change of W they cause, losses and gaps at W, and results."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from transduce.arrays import Array
from transduce.design import Design
from transduce.engines.dask.block_state import BlockState
from transduce.engines.dask.shared_weights import SharedWeights
from transduce.weight_step import WeightState, weight_step_for
from transduce.weight_step.dual import DualStep
from transduce.weight_step.sweep_schedule import sweep_order

MIN_WORK, MAX_SWEEPS = 5e6, 4
"""Multiplications that a shard should do before a sum over shards, and sweeps that it may take for them."""
SweepStats: TypeAlias = tuple[int, float, int]
"""Rows visited, the sum of the gaps of all rows as last seen, and rows with a weight."""


@dataclass(eq=False)
class RestartState(SharedWeights):
    """One restart on all blocks of a shard; `retargeted` if labels, and W with them, changed since the last sweep."""

    blocks: list[BlockState] = field(default_factory=list)
    retargeted: bool = False

    def retarget(self, weight: float) -> tuple[int, int, int]:
        """Hand labels and row weights to the state of the weight step.

        Rows with a new label withdraw their part of W, which is summed with the change of the next sweep. Returns the
        number of these rows, of rows whose gap is unknown, and of rows with a weight.
        """
        n_new = n_unknown = n_live = 0
        for block in self.blocks:
            step, state, kappa = weight_step_for(block.problem.loss, 0), block.state, block.problem.kappa(weight)
            n_new += int(np.sum(block.labels != state.targets))
            step.retarget(block.problem, state, block.labels, kappa)
            n_live += int(np.sum(kappa > 0))
            if isinstance(step, DualStep):
                n_unknown += int(np.sum(np.isinf(state.gaps) & (kappa > 0)))
        self.retargeted |= n_new > 0
        return n_new, n_unknown, n_live

    def sweep(self, seed: int, count: int, sigma: float) -> tuple[SweepStats, Array]:
        """Visit rows at the same time as all other shards; returns the change of W too, which all shards then add.

        Here W changes by sigma times what the rows imply, so that changes of `sigma` shards can be added safely (Ma et
        al., 2015). This is sweep `count` since gaps were computed.
        """
        if self.retargeted and sigma != 1.0:
            self.amplify(sigma)
        self.retargeted = False
        stats = self._visit_rows(np.random.default_rng((seed, count)), count, sigma)
        return stats, self.change(1.0 / sigma)

    def receive(self, total: tuple[Sequence[Any], Array]) -> Sequence[Any]:
        """Add the sum of the changes of all shards to W; returns the numbers that were summed with it."""
        numbers, change = total
        self.add_change(change)
        return numbers

    def _visit_rows(self, rng: np.random.Generator, count: int, sigma: float) -> SweepStats:
        """Visit the rows that need it; again, where these are few, until it was worth a sum."""
        n_visited, gap, n_live, work = 0, 0.0, 0, 0
        for again in range(MAX_SWEEPS):
            gap, n_live = 0.0, 0
            for block in self.blocks:
                step, state, design = weight_step_for(block.problem.loss, 0), block.state, block.problem.design
                assert isinstance(step, DualStep)
                live = np.flatnonzero(state.kappa > 0)
                if not live.size:
                    continue
                order = sweep_order(state.gaps, live, rng, count if again == 0 else 1)
                state.scores = None
                step.sweeps(replace(block.problem, alpha=block.problem.alpha / sigma), state).sweep(order)
                n_visited, gap, n_live = n_visited + order.size, gap + float(state.gaps[live].sum()), n_live + live.size
                work += order.size * self.W.shape[1] * design.n_values // design.n_rows
            if work > MIN_WORK:
                break
        return n_visited, gap, n_live

    def measure(self, has_scores: bool) -> tuple[float, float, float]:
        """Return the loss and gap of the rows with a weight, and ‖W‖²; `has_scores` says that scores at W are known."""
        loss, gap = 0.0, 0.0
        for block in self.blocks:
            step, state = weight_step_for(block.problem.loss, 0), block.state
            assert isinstance(step, DualStep)
            if not has_scores or state.scores is None:
                state.scores = block.problem.design.scores(self.W)
            live = np.flatnonzero(state.kappa > 0)
            if live.size:
                loss += step.loss_and_gaps(block.problem, state, live, state.scores)
                gap += float(state.gaps[live].sum())
        return loss, gap, float(np.vdot(self.W, self.W))

    def loss_and_gradient(self, W: Array) -> tuple[tuple[float], Array]:
        """Set W, and return the loss of the rows with a weight and its gradient. For smooth losses."""
        self.set_weights(W)
        loss, gradient = 0.0, np.zeros_like(self.W)
        for block in self.blocks:
            problem, state = block.problem, block.state
            live = state.kappa > 0
            state.scores = problem.design.scores(self.W)
            R = np.zeros_like(state.scores)
            if live.any():
                loss += float(np.dot(state.kappa[live], problem.loss.value(state.scores[live], state.targets[live])))
                R[live] = problem.loss.gradient(state.scores[live], state.targets[live]) * state.kappa[live, None]
                gradient += problem.design.pullback(R)
        return (loss,), gradient

    def compute_scores(self, W: Array | None = None) -> None:
        """Compute the scores at the weights of the restart, or at others."""
        at = self.W if W is None else as_weights(W, self.blocks[0].problem.design)
        for block in self.blocks:
            block.state.scores = block.problem.design.scores(at)

    def accept(self, take_labels: bool, step_length: float | None = None) -> None:
        """Accept the proposed labels, or not; and the weights this far to W, on the shard that stores them."""
        if step_length is not None and self.accepted is not None:
            self.accept_weights(step_length)
        for block in self.blocks:
            if take_labels:
                block.labels[block.unlabeled] = block.found("labels")
            block.partition = None

    def start_weights(self) -> None:
        """Accept the labels that a label step has found, and start the weight step at 0 for them."""
        self.accept(True)
        for block in self.blocks:
            block.start_weights(self.W)

    def finish(self) -> None:
        """Keep the labels, and nothing else."""
        self.W = self.base = np.zeros((0, 0), self.W.dtype)
        self.accepted = None
        for block in self.blocks:
            block.state, block.scores, block.partition = empty_state(self.W), None, None

    def label_names(self, b: int, classes: Array) -> Array:
        """Return the labels of block b in the order of the user's rows."""
        block = self.blocks[b]
        return np.asarray(classes[block.block.in_order_of_y(block.labels)])

    def distributions(self, b: int) -> Array:
        """Return the distributions (n, K) over labels of block b in the order of the user's rows."""
        block = self.blocks[b]
        return block.block.distributions(block.labels, block.found("posterior"))


def empty_state(W: Array) -> WeightState:
    """Return the state of the weight step of a restart that is finished: nothing."""
    none = np.zeros(0)
    return WeightState(W, none, none, none, none)


def as_weights(W: Array, design: Design) -> Array:
    """Return weights that were sent as an array that products with the rows take."""
    found = design.zeros()
    found[...] = W
    return found
