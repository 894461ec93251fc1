"""One restart on a shard: sweeps over its rows, the change of W they cause, losses and gaps at W, and results."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from transduce.arrays import Array
from transduce.engines.dask.bias import Bias
from transduce.engines.dask.block_state import Block, BlockState
from transduce.engines.dask.shared_weights import SharedWeights
from transduce.weight_step import WeightState, weight_step_for
from transduce.weight_step.dual import DualStep

HEAVY_SWEEPS = 4
"""Sweeps over the labelled rows after each sum."""


@dataclass(eq=False)
class RestartState(SharedWeights):
    """One restart on all blocks of a shard.

    heavy       the labelled rows of all shards, if they are apart; on the first shard only
    mover       moves b; on the first shard only
    retargeted  whether labels, and W with them, changed since the last sweep
    beta        of the present round
    """

    blocks: list[BlockState] = field(default_factory=list)
    heavy: BlockState | None = None
    mover: Bias = field(default_factory=Bias)
    retargeted: bool = False
    beta: float = 0.0

    @property
    def _all_blocks(self) -> list[BlockState]:
        return self.blocks if self.heavy is None else [*self.blocks, self.heavy]

    def retarget(self, weight: float) -> tuple[int]:
        """Hand labels and row weights to the state of the weight step; returns the number of rows with a new label.

        Rows with a new label withdraw their part of W, which is summed with the change of the next sweep.
        """
        n_new = 0
        for block in self._all_blocks:
            step, state, kappa = weight_step_for(block.problem.loss, 0), block.state, block.problem.kappa(weight)
            n_new += int(np.sum(block.labels != state.targets))
            step.retarget(block.problem, state, block.labels, kappa)
        self.retargeted |= n_new > 0
        return (n_new,)

    def sweep(self, seed: int, beta: float, sigma: float) -> tuple[tuple[Array, Array], Array]:
        """Visit all rows at the same time as all other shards; returns what b depends on, and the change of W.

        Rows start from their dual variables plus beta times the last change of them. Here W changes by sigma times what
        rows imply, so that changes of `sigma` shards can be added safely (Ma et al., 2015).
        """
        self.beta = beta
        self.start_round(beta)
        if self.retargeted and sigma != 1.0:
            self.amplify(sigma)
        self.retargeted = False
        rng, answers = np.random.default_rng(seed), []
        for block in self.blocks:
            block.start_round(beta)
            answers.append(block.sweep(rng, self.bias, sigma))
        sums, slopes = (np.sum(parts, axis=0) for parts in zip(*answers, strict=True))
        return (sums, slopes), self.change(1.0 / sigma)

    def combine(self, seed: int, total: tuple[Sequence[Array], Array]) -> tuple[Array, Array]:
        """Add the changes of all shards to W, visit labelled rows that are apart, and move b; returns b and W."""
        (sums, slopes), change = total
        self.W[...] = self.base
        self.W += change
        if self.heavy is not None:
            self.heavy.start_round(self.beta)
            rng = np.random.default_rng(seed)
            for _ in range(HEAVY_SWEEPS):
                own = self.heavy.sweep(rng, self.bias, 1.0)
            sums, slopes = sums + own[0], slopes + own[1]
        bias, first = self.bias, self.blocks[0]
        if bias.size:
            bias = self.mover.move(bias, sums, slopes, first.block.constant, first.problem)
        return bias, self.W.copy()

    def receive(self, found: tuple[Array, Array]) -> tuple[float, float, float]:
        """Take b and W, and measure."""
        bias, W = found
        self.base[...] = self.W[...] = W
        self.bias = np.array(bias)
        return self.measure(False)

    def measure(self, has_scores: bool) -> tuple[float, float, float]:
        """Return the loss and gap of the rows with a weight, and ‖W‖²; `has_scores` says that scores at W are known."""
        loss, gap = 0.0, self.mover.gap
        for block in self._all_blocks:
            step, state = weight_step_for(block.problem.loss, 0), block.state
            assert isinstance(step, DualStep)
            if not has_scores or state.scores is None:
                state.scores = block.block.scores(self.W, self.bias)
            live = np.flatnonzero(state.kappa > 0)
            if live.size:
                loss += step.loss_and_gaps(block.problem, state, live, state.scores)
                gap += float(state.gaps[live].sum())
        return loss, gap, float(np.vdot(self.W, self.W)) + float(np.vdot(self.bias, self.bias))

    def loss_and_gradient(self) -> tuple[tuple[float], Array]:
        """Return the loss of the rows with a weight and its gradient. For smooth losses."""
        loss, gradient = 0.0, np.zeros((len(self.W) + bool(self.bias.size), self.W.shape[1]))
        for block in self.blocks:
            problem, state = block.problem, block.state
            live = state.kappa > 0
            state.scores = block.block.scores(self.W, self.bias)
            R = np.zeros_like(state.scores)
            if live.any():
                loss += float(np.dot(state.kappa[live], problem.loss.value(state.scores[live], state.targets[live])))
                R[live] = problem.loss.gradient(state.scores[live], state.targets[live]) * state.kappa[live, None]
                gradient += block.block.pullback(R)
        return (loss,), gradient

    def compute_scores(self, W: Array | None = None) -> None:
        """Compute the scores at the weights of the restart, or at others, whose b it then takes."""
        at = self.W
        if W is not None:
            at, self.bias = split_weights(W, self.blocks[0].block)
        for block in self._all_blocks:
            block.state.scores = block.block.scores(at, self.bias)

    def set_hard_costs(self, step_length: float = 1.0) -> None:
        """Move the scores that labels are chosen by this far to those at W, and make the loss there the costs."""
        for block in self.blocks:
            block.set_hard_costs(step_length)
        if self.heavy is not None:  # it has no labels to choose, but `loss_between` needs its scores
            self.heavy.scores = self.heavy.scores_between(step_length)

    def loss_between(self, step_length: float) -> float:
        """Return the loss of the rows with a weight this far between those scores and the ones at W."""
        return sum(block.loss_between(step_length) for block in self._all_blocks)

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
        self.W = self.base = self.last = np.zeros((0, 0), self.W.dtype)
        self.accepted = self.heavy = None
        for block in self.blocks:
            block.state, block.scores, block.partition, block.last_dual = empty_state(self.W), None, None, None

    def label_names(self, b: int, classes: Array) -> Array:
        """Return the labels of block b in the order of the user's rows."""
        block = self.blocks[b]
        return np.asarray(classes[block.block.in_order_of_y(block.labels)])

    def distributions(self, b: int) -> Array:
        """Return the distributions (n, K) over labels of block b in the order of the user's rows."""
        block = self.blocks[b]
        return block.block.distributions(block.labels, block.found("posterior"))


def split_weights(W: Array, block: Block) -> tuple[Array, Array]:
    """Return W and b of weights that were sent, b last, as arrays that products with the rows take."""
    found = block.problem.design.zeros()
    found[...] = W[: len(found)]
    return found, np.array(W[len(found) :]).reshape(-1)


def empty_state(W: Array) -> WeightState:
    """Return the state of the weight step of a restart that is finished: nothing."""
    none = np.zeros(0)
    return WeightState(W, none, none, none, none)
