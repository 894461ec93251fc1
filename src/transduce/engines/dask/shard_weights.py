"""What a shard does to weights: it sweeps its rows, says what they change in W, and measures the loss there."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transduce.engines.dask.shards import GoneError, RestartState, Shard, Stand, new_restart
from transduce.engines.dask.weight_deltas import Before, Change, Piece, add_to
from transduce.problem import TrainingProblem
from transduce.weight_step import weight_step_for
from transduce.weight_step.dual import DualStep
from transduce.weight_step.sweep_schedule import sweep_order

Array = NDArray[Any]

WORTH_A_TRIP, MOST_SWEEPS = 5e6, 4
"""Multiplications that a shard should do before changes of all are added up, and sweeps that it may take for it."""


def start(shard: Shard, restart: str) -> None:
    """Weights 0 for the labels that the way has, or those given; the state begins anew."""
    old = shard.restarts.get(restart)
    labels = [block.codes.copy() for block in shard.blocks] if old is None else [stand.labels for stand in old.stands]
    shard.restarts[restart] = new_restart(shard, [block.problem for block in shard.blocks], labels, labels)


def retarget(shard: Shard, restart: str, weight: float) -> tuple[bool, int, int]:
    """Hand the states their labels and row weights; says whether a label is new.

    Rows with a new label give back what they had put into W, which is taken with the sweep that is to follow. Answers
    also of how many rows the gap is not known, and how many count.
    """
    here, changed, n_unknown, n_live = shard.restarts[restart], False, 0, 0
    for stand in here.stands:
        step, kappa = weight_step_for(stand.problem.loss, 0), stand.problem.kappa(weight)
        new = np.flatnonzero(stand.labels != stand.state.targets)
        changed = changed or new.size > 0
        if new.size and isinstance(step, DualStep):
            _before(here).touch(here.W, stand.problem.design, new)
        step.retarget(stand.problem, stand.state, stand.labels, kappa)
        if isinstance(step, DualStep):
            n_unknown += int(np.sum(np.isinf(stand.state.gaps) & (kappa > 0)))
            n_live += int(np.sum(kappa > 0))
    return changed, n_unknown, n_live


def _before(here: RestartState) -> Before:
    if here.before is None:
        here.before = Before.create(here.W)
    return here.before


def _cautious(stand: Stand, sigma: float) -> TrainingProblem:
    """The problem of the rows, which bends W sigma times as much."""
    return replace(stand.problem, alpha=stand.problem.alpha / sigma)


def adopt(shard: Shard, restart: str, dual: Array, gaps: Array) -> None:
    """Let the labelled rows alone count, whose dual is known from elsewhere; their weights W are to follow."""
    begin = 0
    for stand in shard.restarts[restart].stands:
        step, state, n_labeled = weight_step_for(stand.problem.loss, 0), stand.state, stand.problem.n_labeled
        step.retarget(stand.problem, state, state.targets, stand.problem.kappa(0.0))
        if isinstance(step, DualStep):
            mine = slice(begin, begin + n_labeled)
            state.dual[:n_labeled], state.gaps[:n_labeled] = dual[mine], gaps[mine]
        begin += n_labeled


class Swept(NamedTuple):
    """How many rows were visited, what the gaps of all add up to, and how many rows count."""

    n_visited: int
    seen: float
    n_live: int


def sweep(shard: Shard, restart: str, seed: int, count: int, sigma: float) -> Swept:
    """Visit rows as if they were all, but cautiously: W bends by sigma times what they know of.

    This is sweep `count` since gaps were computed. The change of W waits to be taken.
    """
    here = _in_use(shard, restart)
    before = _before(here)
    if sigma != 1.0:
        before.stretch(here.W, sigma)
    swept = _visit_rows(here, before, np.random.default_rng((seed, count)), count, sigma, MOST_SWEEPS)
    here.change = before.take(here.W, 1.0 / sigma)
    return swept


def turn(shard: Shard, restart: str, seed: int, count: int, others: Sequence[Change]) -> tuple[Swept, Change]:
    """Visit rows when others have changed W, one after the other, since the last visit; and what that changes in W."""
    follow(shard, restart, others)
    here = _in_use(shard, restart)
    before = _before(here)
    swept = _visit_rows(here, before, np.random.default_rng((seed, count)), count, 1.0, 1)
    return swept, before.take(here.W, put_back=False)


def follow(shard: Shard, restart: str, others: Sequence[Change]) -> None:
    """Add to W what others have changed in it."""
    here = _in_use(shard, restart)
    for change in others:
        _before(here).follow(here.W, change)


def _visit_rows(
    here: RestartState, before: Before, rng: np.random.Generator, count: int, sigma: float, most: int
) -> Swept:
    """Visit rows that need it; where these are few, again, at most so many times, until it was worth the trip."""
    visited, seen, n_live, work = 0, 0.0, 0, 0
    for again in range(most):
        seen, n_live = 0.0, 0
        for stand in here.stands:
            step, state, design = weight_step_for(stand.problem.loss, 0), stand.state, stand.problem.design
            assert isinstance(step, DualStep)
            live = np.flatnonzero(state.kappa > 0)
            if not live.size:
                continue
            order = sweep_order(state.gaps, live, rng, count if again == 0 else 1)
            before.touch(here.W, design, order)
            state.scores = None
            step.sweep(_cautious(stand, sigma), state, order)
            visited, seen, n_live = visited + order.size, seen + float(state.gaps[live].sum()), n_live + live.size
            work += order.size * here.W.shape[1] * design.n_values // design.n_rows
        if work > WORTH_A_TRIP:
            break
    return Swept(visited, seen, n_live)


def take_change(shard: Shard, restart: str) -> Change:
    """What the last visit would change in W."""
    here = shard.restarts[restart]
    if here.change is None:
        raise GoneError("what a shard changes in the weights can be taken once only")
    change, here.change = here.change, None
    return change


def shape(shard: Shard, restart: str) -> tuple[int, int]:
    """Rows and columns of W."""
    n_features, n_nodes = shard.restarts[restart].W.shape
    return n_features, n_nodes


def receive(shard: Shard, restart: str, pieces: list[Piece], anew: bool) -> None:
    """Add the changes of all shards to W; or let them be W."""
    add_to(_in_use(shard, restart).W, pieces, anew)


def _in_use(shard: Shard, restart: str) -> RestartState:
    """A way that has not been put to rest meanwhile, as Ctrl-C in the middle of a sum does."""
    here = shard.restarts[restart]
    if not here.W.size:
        raise GoneError("this way has come to its end")
    return here


def take_weights(shard: Shard, restart: str, W: Change) -> None:
    """Let these be the weights."""
    here = shard.restarts[restart].W
    add_to(here, [Piece(0, len(here), W)], anew=True)


def keep(shard: Shard, restart: str, share: float) -> None:
    """Keep W, or the point a share of the way from what was kept to it."""
    here = shard.restarts[restart]
    if share == 1.0:
        here.kept = here.W.copy()
    elif share > 0.0 and here.kept is not None:
        here.kept *= 1.0 - share
        here.kept += share * here.W


def weights(shard: Shard, restart: str, kept: bool) -> Array:
    """W, or the weights that are kept: a copy, since both change in place."""
    here = shard.restarts[restart]
    return here.W.copy() if not kept or here.kept is None else here.kept.copy()


def dots(shard: Shard, restart: str) -> tuple[float, float, float]:
    """Products of the weights that are kept and W with themselves and each other."""
    here = shard.restarts[restart]
    assert here.kept is not None
    return float(np.vdot(here.kept, here.kept)), float(np.vdot(here.kept, here.W)), float(np.vdot(here.W, here.W))


def measure(shard: Shard, restart: str, fresh: bool) -> tuple[float, float, float]:
    """Loss and gap of the rows that count, and ‖W‖²; scores are kept. `fresh` says that they are those at W already."""
    here, loss, gap = shard.restarts[restart], 0.0, 0.0
    for stand in here.stands:
        step, state = weight_step_for(stand.problem.loss, 0), stand.state
        assert isinstance(step, DualStep)
        if not fresh or state.scores is None:
            state.scores = stand.problem.design.scores(here.W)
        live = np.flatnonzero(state.kappa > 0)
        if live.size:
            loss += step.loss_and_gaps(stand.problem, state, live, state.scores)
            gap += float(state.gaps[live].sum())
    return loss, gap, float(np.vdot(here.W, here.W))


def loss_and_slope(shard: Shard, restart: str) -> float:
    """Loss of the rows that count at W; its gradient in W waits to be taken. For losses without a dual."""
    here, loss = shard.restarts[restart], 0.0
    slope = np.zeros_like(here.W)
    for stand in here.stands:
        problem, state = stand.problem, stand.state
        live = state.kappa > 0
        state.scores = problem.design.scores(here.W)
        R = np.zeros_like(state.scores)
        if live.any():
            loss += float(np.dot(state.kappa[live], problem.loss.value(state.scores[live], state.targets[live])))
            R[live] = problem.loss.gradient(state.scores[live], state.targets[live]) * state.kappa[live, None]
            slope += problem.design.pullback(R)
    here.change = Change(None, slope)
    return loss


def show(shard: Shard, restart: str) -> None:
    """Scores at W."""
    here = shard.restarts[restart]
    for stand in here.stands:
        stand.state.scores = stand.problem.design.scores(here.W)
