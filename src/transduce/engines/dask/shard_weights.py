"""Weight steps on a shard or a block: sweeps over rows, the delta of W they cause, and losses and gaps at W."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transduce.engines.dask.shards import BlockState, RestartState, Shard, ShardLostError, new_restart
from transduce.engines.dask.weight_deltas import WeightDelta, add_delta
from transduce.weight_step import weight_step_for
from transduce.weight_step.dual import DualStep
from transduce.weight_step.sweep_schedule import sweep_order

Array = NDArray[Any]

MIN_WORK, MAX_SWEEPS = 5e6, 4
"""Multiplications that a shard should do before a reduction, and sweeps that it may take for them."""


class SweepStats(NamedTuple):
    """Rows visited, the sum of the gaps of all rows as last seen, and rows with a weight."""

    n_visited: int
    gap: float
    n_live: int


def start(shard: Shard, restart: str) -> None:
    """Begin at weights 0, with the given labels."""
    labels = [block.labels.copy() for block in shard.blocks]
    shard.restarts[restart] = new_restart(shard, [block.problem for block in shard.blocks], labels, labels)


def retarget(block: BlockState, weight: float) -> tuple[bool, int, int]:
    """Hand labels and row weights to the state of the weight step.

    Rows with a new label withdraw their part of W, which is reduced with the next sweep. Returns whether a label is
    new, the number of rows whose gap is unknown, and of rows with a weight.
    """
    step, state, kappa = weight_step_for(block.problem.loss, 0), block.state, block.problem.kappa(weight)
    new = np.flatnonzero(block.labels != state.targets)
    if not isinstance(step, DualStep):
        step.retarget(block.problem, state, block.labels, kappa)
        return new.size > 0, 0, 0
    block.weights.mark(block.problem.design, new)
    step.retarget(block.problem, state, block.labels, kappa)
    return new.size > 0, int(np.sum(np.isinf(state.gaps) & (kappa > 0))), int(np.sum(kappa > 0))


def adopt_dual(shard: Shard, restart: str, dual: Array, gaps: Array) -> None:
    """Give weight to the labelled rows alone, with the dual that the driver found for them; W is sent separately."""
    begin = 0
    for block in shard.restarts[restart].blocks:
        step, state, n_labeled = weight_step_for(block.problem.loss, 0), block.state, block.problem.n_labeled
        step.retarget(block.problem, state, state.targets, block.problem.kappa(0.0))
        if isinstance(step, DualStep):
            own = slice(begin, begin + n_labeled)
            state.dual[:n_labeled], state.gaps[:n_labeled] = dual[own], gaps[own]
        begin += n_labeled


def sweep(shard: Shard, restart: str, seed: int, count: int, sigma: float) -> SweepStats:
    """Visit rows at the same time as all other shards; the delta of W waits to be reduced.

    W changes by sigma times what the rows imply, and the delta by 1, so that deltas of `sigma` shards can be added
    safely (Ma et al., 2015). This is sweep `count` since gaps were computed.
    """
    here = _running(shard, restart)
    if sigma != 1.0:
        here.weights.amplify(sigma)
    stats = _visit_rows(here, np.random.default_rng((seed, count)), count, sigma, MAX_SWEEPS)
    here.delta = here.weights.take(1.0 / sigma)
    return stats


def turn(
    shard: Shard, restart: str, seed: int, count: int, others: Sequence[WeightDelta]
) -> tuple[SweepStats, WeightDelta]:
    """Add what other shards changed in W since the last turn, then visit rows; returns the delta of W as well."""
    add_deltas(shard, restart, others)
    here = _running(shard, restart)
    stats = _visit_rows(here, np.random.default_rng((seed, count)), count, 1.0, 1)
    return stats, here.weights.take(revert=False)


def _visit_rows(here: RestartState, rng: np.random.Generator, count: int, sigma: float, max_sweeps: int) -> SweepStats:
    """Visit the rows that need it; again, where these are few, until it was worth a reduction."""
    n_visited, gap, n_live, work = 0, 0.0, 0, 0
    for again in range(max_sweeps):
        gap, n_live = 0.0, 0
        for block in here.blocks:
            step, state, design = weight_step_for(block.problem.loss, 0), block.state, block.problem.design
            assert isinstance(step, DualStep)
            live = np.flatnonzero(state.kappa > 0)
            if not live.size:
                continue
            order = sweep_order(state.gaps, live, rng, count if again == 0 else 1)
            here.weights.mark(design, order)
            state.scores = None
            step.sweep(replace(block.problem, alpha=block.problem.alpha / sigma), state, order)
            n_visited, gap, n_live = n_visited + order.size, gap + float(state.gaps[live].sum()), n_live + live.size
            work += order.size * here.W.shape[1] * design.n_values // design.n_rows
        if work > MIN_WORK:
            break
    return SweepStats(n_visited, gap, n_live)


def take_delta(shard: Shard, restart: str) -> WeightDelta:
    """Return the delta that waits to be reduced."""
    here = shard.restarts[restart]
    if here.delta is None:
        raise ShardLostError("a delta can be taken only once")
    delta, here.delta = here.delta, None
    return delta


def shape(shard: Shard, restart: str) -> tuple[tuple[int, int], int]:
    """Return the shape of W, and the bytes of a number."""
    W = shard.restarts[restart].W
    return (W.shape[0], W.shape[1]), W.itemsize


def receive(shard: Shard, restart: str, chunks: Sequence[WeightDelta], bounds: Sequence[int], replace_w: bool) -> None:
    """Add the chunks of a sum over all shards to W, or replace W by them."""
    weights = _running(shard, restart).weights
    if replace_w:
        weights.clear()
    weights.add(chunks, bounds)


def add_deltas(shard: Shard, restart: str, deltas: Sequence[WeightDelta]) -> None:
    """Add deltas of other shards to W."""
    _running(shard, restart).weights.add(deltas)


def _running(shard: Shard, restart: str) -> RestartState:
    """Return a restart that was not finished meanwhile, as after Ctrl-C in the middle of a reduction."""
    here = shard.restarts[restart]
    if not here.W.size:
        raise ShardLostError("this restart is finished")
    return here


def set_weights(shard: Shard, restart: str, W: WeightDelta) -> None:
    """Replace W."""
    weights = shard.restarts[restart].weights
    weights.clear()
    weights.add([W])


def accept_weights(shard: Shard, restart: str, step_length: float) -> None:
    """Accept W, or the point this far between the accepted weights and W."""
    here = shard.restarts[restart]
    if step_length == 1.0:
        here.accepted = here.W.copy()
    elif step_length > 0.0 and here.accepted is not None:
        here.accepted *= 1.0 - step_length
        here.accepted += step_length * here.W


def get_weights(shard: Shard, restart: str, accepted: bool) -> Array:
    """Return a copy of W, or of the accepted weights."""
    here = shard.restarts[restart]
    return here.W.copy() if not accepted or here.accepted is None else here.accepted.copy()


def inner_products(shard: Shard, restart: str) -> tuple[float, float, float]:
    """Return ⟨V, V⟩, ⟨V, W⟩ and ⟨W, W⟩ for the accepted weights V."""
    W, V = shard.restarts[restart].W, shard.restarts[restart].accepted
    assert V is not None
    return float(np.vdot(V, V)), float(np.vdot(V, W)), float(np.vdot(W, W))


def measure(shard: Shard, restart: str, has_scores: bool) -> tuple[float, float, float]:
    """Return the loss and gap of the rows with a weight, and ‖W‖²; `has_scores` says that scores at W are known."""
    here, loss, gap = shard.restarts[restart], 0.0, 0.0
    for block in here.blocks:
        step, state = weight_step_for(block.problem.loss, 0), block.state
        assert isinstance(step, DualStep)
        if not has_scores or state.scores is None:
            state.scores = block.problem.design.scores(here.W)
        live = np.flatnonzero(state.kappa > 0)
        if live.size:
            loss += step.loss_and_gaps(block.problem, state, live, state.scores)
            gap += float(state.gaps[live].sum())
    return loss, gap, float(np.vdot(here.W, here.W))


def loss_and_gradient(shard: Shard, restart: str) -> float:
    """Return the loss at W of the rows with a weight; its gradient in W waits to be reduced. For smooth losses."""
    here, loss = shard.restarts[restart], 0.0
    gradient = np.zeros_like(here.W)
    for block in here.blocks:
        problem, state = block.problem, block.state
        live = state.kappa > 0
        state.scores = problem.design.scores(here.W)
        R = np.zeros_like(state.scores)
        if live.any():
            loss += float(np.dot(state.kappa[live], problem.loss.value(state.scores[live], state.targets[live])))
            R[live] = problem.loss.gradient(state.scores[live], state.targets[live]) * state.kappa[live, None]
            gradient += problem.design.pullback(R)
    here.delta = WeightDelta(None, gradient)
    return loss


def compute_scores(shard: Shard, restart: str, W: WeightDelta | None = None) -> None:
    """Compute the scores at the weights of the restart, or at others."""
    here = shard.restarts[restart]
    at = here.W if W is None else as_array(shard, W)
    for block in here.blocks:
        block.state.scores = block.problem.design.scores(at)


def as_array(shard: Shard, W: WeightDelta) -> Array:
    """Return weights that were sent as an array (d, M)."""
    out = shard.blocks[0].problem.design.zeros()
    add_delta(out, W)
    return out
