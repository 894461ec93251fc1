"""Label steps on a shard or a block: label costs, the labels that a label step finds for them, and class counts."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.engines.common import finite_costs, first_targets, model_posterior, predicted_counts
from transduce.engines.dask.shard_weights import accept_weights, as_array
from transduce.engines.dask.shards import BlockState, RestartState, Shard, empty_state, new_restart
from transduce.engines.dask.weight_deltas import TrackedWeights, WeightDelta
from transduce.label_step.partitions import Partition
from transduce.losses import smoothed
from transduce.problem import TrainingProblem, allowed_costs
from transduce.weight_step import weight_step_for
from transduce.weight_step.dual import DualMaxEnt

Array = NDArray[Any]


def finish_restart(shard: Shard, restart: str) -> None:
    """Keep the labels of a restart, and nothing else."""
    here = shard.restarts[restart]
    weights = TrackedWeights.create(np.zeros((0, 0), here.W.dtype))
    blocks = [BlockState(b.block, b.problem, weights, b.labels, empty_state(weights.W)) for b in here.blocks]
    shard.restarts[restart] = RestartState(weights, blocks)


def loss_between(block: BlockState, step_length: float) -> float:
    """Return the loss this far between the scores that labels were chosen by and those at W."""
    live = block.state.kappa > 0
    if not live.any():
        return 0.0
    losses = block.problem.loss.value(_scores_between(block, step_length)[live], block.labels[live])
    return float(np.dot(block.state.kappa[live], losses))


def _scores_between(block: BlockState, t: float) -> Array:
    at_weights = _scores(block)
    if t == 1.0 or block.scores is None:
        return at_weights
    return block.scores if t == 0.0 else (1.0 - t) * block.scores + t * at_weights


def _scores(block: BlockState) -> Array:
    assert block.state.scores is not None
    return block.state.scores


def set_costs(block: BlockState, kind: str, step_length: float | None = None) -> None:
    """Compute the label costs of the rows without a full label.

    With a step length, the scores that labels are chosen by first move this far to those at W.

    kind   "scores": minus the scores at W; "hard": the loss at the scores that labels are chosen by; "soft": the loss
           at W; "posterior": minus the logarithm of the posterior at W
    """
    if step_length is not None:
        block.scores = _scores_between(block, step_length)
    labels, weights = block.labels[block.unlabeled], None
    if kind == "scores":
        costs = -_scores(block)[block.unlabeled]
    elif kind == "posterior":
        posterior = model_posterior(replace(block.problem, forbidden=None), _scores(block)[block.unlabeled])
        costs = -np.log(np.maximum(posterior, np.finfo(posterior.dtype).tiny))
    elif kind == "soft":
        costs, labels = _loss_costs(block, _scores(block)), np.full(labels.size, -1, np.int64)
        weights = None if block.problem.n_partial else block.block.relative_weight
    else:
        costs, weights = _loss_costs(block, block.scores), block.block.relative_weight
    if weights is not None:
        costs = costs * weights[:, None]
    block.partition = Partition(allowed_costs(block.problem, costs), labels)


def _loss_costs(block: BlockState, scores: Array | None) -> Array:
    assert scores is not None
    return finite_costs(block.problem.loss, scores[block.unlabeled])


def weigh_proposal(block: BlockState) -> tuple[int, float, float]:
    """Return the rows whose proposed label is new, the change of the loss, and the loss of the present labels."""
    assert block.partition is not None
    now, new, kappa = block.labels[block.unlabeled], _found(block, "labels"), block.state.kappa[block.unlabeled]
    costs = block.partition.costs if block.block.relative_weight is None else _loss_costs(block, block.scores)
    own = costs[np.arange(now.size), now]
    moved = np.flatnonzero(new != now)
    change = float(np.dot(kappa[moved], costs[moved, new[moved]] - own[moved]))
    return int(moved.size), change, float(np.dot(kappa, own))


def _found(block: BlockState, name: str) -> Array:
    """Return the labels or the posterior that a label step has left with the costs."""
    assert block.partition is not None
    return np.asarray(block.partition.state[name])


def accept(shard: Shard, restart: str, take_labels: bool, step_length: float | None = None) -> None:
    """Accept the proposed labels, or not; and the weights this far to W, on the shard that stores them."""
    here = shard.restarts[restart]
    if step_length is not None and here.accepted is not None:
        accept_weights(shard, restart, step_length)
    for block in here.blocks:
        if take_labels:
            block.labels[block.unlabeled] = _found(block, "labels")
        block.partition = None


def start_soft(shard: Shard, restart: str, bounds: Any, n_unlabeled: int) -> None:
    """Begin at weights 0, with distributions over labels that follow from the class sizes alone."""
    problems = [replace(block.problem, loss=smoothed(block.problem.loss)) for block in shard.blocks]
    labels = [block.labels.copy() for block in shard.blocks]
    targets = [first_targets(problem, own, bounds, n_unlabeled) for problem, own in zip(problems, labels, strict=True)]
    here = shard.restarts[restart] = new_restart(shard, problems, labels, targets)
    for block in here.blocks:
        block.best = np.full(block.block.n_unlabeled, -1)


def retarget_soft(shard: Shard, restart: str, weight: float, first: bool) -> int:
    """Make the distributions that a label step has left the targets, unless these are the first.

    W follows from all rows: the part of these rows waits to be reduced. Returns rows whose most probable label is new.
    """
    here, n_moved = shard.restarts[restart], 0
    total = np.zeros_like(here.W)
    for block in here.blocks:
        targets = block.state.targets.copy()
        if not first:
            targets[block.unlabeled] = _found(block, "posterior")
            best = _found(block, "posterior").argmax(axis=1)
            n_moved, block.best, block.partition = n_moved + int((best != block.best).sum()), best, None
        step, kappa = weight_step_for(block.problem.loss, 0), block.problem.kappa(weight)
        if isinstance(step, DualMaxEnt):
            step.set_soft_targets(block.problem, block.state, targets, kappa)
            total += block.problem.design.pullback(step.contributions(block.problem, block.state))
        else:
            step.retarget(block.problem, block.state, targets, kappa)
    here.delta = WeightDelta(None, total)
    return n_moved


def set_hard_costs(block: BlockState) -> None:
    """Compute label costs by the hard loss at the scores of soft labels."""
    block.problem, block.scores = block.block.problem, block.state.scores
    set_costs(block, "hard")


def harden(shard: Shard, restart: str, soft: str) -> None:
    """Begin a restart with the hard labels that a label step has found for its soft labels."""
    labels = [block.labels.copy() for block in shard.blocks]
    for own, block in zip(labels, shard.restarts.pop(soft).blocks, strict=True):
        own[block.unlabeled] = _found(block, "labels")
    shard.restarts[restart] = new_restart(shard, [block.problem for block in shard.blocks], labels, labels)


def predictions_at(shard: Shard, W: WeightDelta) -> list[tuple[Array, Array]]:
    """Return the predictions of each block at these weights."""
    dense = as_array(shard, W)
    return [_predictions(block.problem, block.problem.design.scores(dense)) for block in shard.blocks]


def predictions(block: BlockState) -> tuple[Array, Array]:
    """Return the predicted class counts of the rows without a full label, and the sum of their posteriors."""
    return _predictions(block.problem, _scores(block))


def _predictions(problem: TrainingProblem, scores: Array) -> tuple[Array, Array]:
    scores = scores[problem.n_labeled :]
    if not len(scores):
        return np.zeros(problem.n_classes, np.int64), np.zeros(problem.n_classes)
    return predicted_counts(problem, scores), model_posterior(problem, scores).sum(axis=0, dtype=np.float64)


def class_counts(block: BlockState) -> Array:
    """Return the class counts of the rows without a full label, by the accepted labels."""
    return np.bincount(block.labels[block.unlabeled], minlength=block.problem.n_classes)


def label_names(shard: Shard, restart: str, b: int, classes: Array) -> Array:
    """Return the labels of block b in the order of the user's rows."""
    block = shard.restarts[restart].blocks[b]
    labels = np.empty(block.labels.size, np.int64)
    labels[block.block.order] = block.labels
    return np.asarray(classes[labels])


def distributions(shard: Shard, restart: str, b: int) -> Array:
    """Return the distributions (n, K) over labels of block b in the order of the user's rows."""
    block = shard.restarts[restart].blocks[b]
    posterior, order, n_labeled = _found(block, "posterior"), block.block.order, block.problem.n_labeled
    assert order is not None
    out = np.zeros((block.problem.n_rows, block.problem.n_classes), posterior.dtype)
    out[order[:n_labeled], block.labels[:n_labeled]] = 1.0
    out[order[n_labeled:]] = posterior
    return out
