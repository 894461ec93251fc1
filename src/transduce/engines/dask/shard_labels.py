"""What a shard does to labels: it offers its rows to a label step, hard or soft, takes what that finds, and counts."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.engines.common import finite_costs, first_targets, model_posterior, predicted_counts
from transduce.engines.dask.shard_weights import keep
from transduce.engines.dask.shards import Shard, Stand, new_restart, nothing
from transduce.engines.dask.weight_deltas import Change, Piece, add_to
from transduce.label_step.partitions import Partition
from transduce.losses import smoothed
from transduce.problem import TrainingProblem
from transduce.weight_step import weight_step_for
from transduce.weight_step.dual import DualMaxEnt

Array = NDArray[Any]


def rest(shard: Shard, restart: str) -> None:
    """Keep nothing of a way but its labels."""
    here = shard.restarts[restart]
    here.W, here.change, here.kept, here.before = np.zeros((0, 0), here.W.dtype), None, None, None
    for stand in here.stands:
        stand.state, stand.seen, stand.part, stand.chosen = nothing(here.W), None, None, None


def loss_between(shard: Shard, restart: str, share: float) -> float:
    """Loss of the rows that count, a share of the way from the scores seen last to those of the state."""
    loss = 0.0
    for stand in shard.restarts[restart].stands:
        live = stand.state.kappa > 0
        if live.any():
            losses = stand.problem.loss.value(_between(stand, share)[live], stand.labels[live])
            loss += float(np.dot(stand.state.kappa[live], losses))
    return loss


def _between(stand: Stand, share: float) -> Array:
    scores = stand.state.scores
    assert scores is not None
    if share == 1.0 or stand.seen is None:
        return scores
    return stand.seen if share == 0.0 else (1.0 - share) * stand.seen + share * scores


def offer(shard: Shard, restart: str, kind: str, share: float | None = None) -> None:
    """Make the label parts: costs of the rows without a full label by their scores.

    With a share, the scores that are seen first go that share of the way to those of the state.

    kind   "scores": minus the scores of the state; "hard", "soft": the loss at the scores seen, or of the state;
           "posterior": minus the logarithm of the posterior
    """
    for stand in shard.restarts[restart].stands:
        if share is not None:
            stand.seen = _between(stand, share)
        labels = stand.labels[stand.unlabeled]
        if kind == "scores":
            assert stand.state.scores is not None
            costs, heft = -stand.state.scores[stand.unlabeled], None
        elif kind == "posterior":
            assert stand.state.scores is not None
            posterior = model_posterior(replace(stand.problem, forbidden=None), stand.state.scores[stand.unlabeled])
            costs, heft = -np.log(np.maximum(posterior, np.finfo(posterior.dtype).tiny)), None
        else:
            scores = stand.seen if kind == "hard" else stand.state.scores
            assert scores is not None
            costs, heft = finite_costs(stand.problem.loss, scores[stand.unlabeled]), stand.block.heft
            if kind == "soft":
                labels = np.full(labels.size, -1, np.int64)
                heft = None if stand.problem.n_partial else heft
        if heft is not None:
            costs = costs * heft[:, None]
        if stand.problem.forbidden is not None:
            costs = np.where(stand.problem.forbidden, np.inf, costs)
        stand.part = Partition(costs, labels)


def weigh(shard: Shard, restart: str) -> tuple[int, float, float]:
    """Rows whose proposed label is new, what that changes in the loss, and the loss of the labels they have."""
    n_moved, change, old = 0, 0.0, 0.0
    for stand in shard.restarts[restart].stands:
        assert stand.part is not None
        assert stand.seen is not None
        now, new = stand.labels[stand.unlabeled], stand.part.state["labels"]
        kappa = stand.state.kappa[stand.unlabeled]
        same = stand.block.heft is None  # then the label step has seen these very costs
        costs = stand.part.costs if same else finite_costs(stand.problem.loss, stand.seen[stand.unlabeled])
        every = np.arange(now.size)
        own = costs[every, now]
        moved = np.flatnonzero(new != now)
        n_moved += int(moved.size)
        change += float(np.dot(kappa[moved], costs[moved, new[moved]] - own[moved]))
        old += float(np.dot(kappa, own))
    return n_moved, change, old


def settle(shard: Shard, restart: str, take: bool, share: float | None = None) -> None:
    """Take the proposed labels, or leave them; and keep weights a share of the way to W, where some are kept."""
    if share is not None and shard.restarts[restart].kept is not None:
        keep(shard, restart, share)
    for stand in shard.restarts[restart].stands:
        if take:
            assert stand.part is not None
            stand.labels[stand.unlabeled] = stand.part.state["labels"]
        stand.part = None


def begin_soft(shard: Shard, restart: str, bounds: Any, n_unlabeled: int) -> None:
    """Given labels, and distributions of all others that know nothing but the class sizes; weights 0."""
    problems = [replace(block.problem, loss=smoothed(block.problem.loss)) for block in shard.blocks]
    targets = [
        first_targets(problem, block.codes, bounds, n_unlabeled)
        for problem, block in zip(problems, shard.blocks, strict=True)
    ]
    labels = [block.codes.copy() for block in shard.blocks]
    here = shard.restarts[restart] = new_restart(shard, problems, labels, targets)
    for stand in here.stands:
        stand.chosen = np.full(stand.problem.n_rows - stand.problem.n_labeled, -1)


def soften(shard: Shard, restart: str, weight: float, fresh: bool) -> int:
    """Take the distributions of the label parts as targets; what all rows then put into W waits to be taken.

    Answers rows whose likeliest label is new. `fresh` says that there are no distributions yet but the first.
    """
    here, n_moved = shard.restarts[restart], 0
    total = np.zeros_like(here.W)
    for stand in here.stands:
        targets = stand.state.targets.copy()
        if not fresh:
            assert stand.part is not None
            assert stand.chosen is not None
            posterior = stand.part.state["posterior"]
            targets[stand.unlabeled] = posterior
            now = posterior.argmax(axis=1)
            n_moved, stand.chosen, stand.part = n_moved + int((now != stand.chosen).sum()), now, None
        step, kappa = weight_step_for(stand.problem.loss, 0), stand.problem.kappa(weight)
        if isinstance(step, DualMaxEnt):
            step.set_soft_targets(stand.problem, stand.state, targets, kappa)
            total += stand.problem.design.pullback(step.contributions(stand.problem, stand.state))
        else:
            step.retarget(stand.problem, stand.state, targets, kappa)
    here.change = Change(None, total)
    return n_moved


def harden(shard: Shard, restart: str, from_way: str) -> None:
    """Begin a way with the labels that the label parts of another have found."""
    labels = []
    for stand in shard.restarts[from_way].stands:
        assert stand.part is not None
        own = stand.block.codes.copy()
        own[stand.unlabeled] = stand.part.state["labels"]
        labels.append(own)
    shard.restarts[restart] = new_restart(shard, [block.problem for block in shard.blocks], labels, labels)
    shard.restarts.pop(from_way)


def look_hard(shard: Shard, restart: str) -> None:
    """Judge the scores of soft labels by the hard loss."""
    for stand in shard.restarts[restart].stands:
        stand.problem = stand.block.problem
        stand.seen = stand.state.scores


def tallies(shard: Shard, W: Change) -> tuple[Array, Array]:
    """Rows without a full label of each class by their best scores, and the sum of their posteriors."""
    dense = _dense(shard, W)
    return _tallies([(block.problem, block.problem.design.scores(dense)) for block in shard.blocks])


def tallies_of(shard: Shard, restart: str) -> tuple[Array, Array]:
    """The same by the scores of a way."""
    stands = shard.restarts[restart].stands
    return _tallies([(stand.problem, np.asarray(stand.state.scores)) for stand in stands])


def _tallies(blocks: Sequence[tuple[TrainingProblem, Array]]) -> tuple[Array, Array]:
    n_classes = blocks[0][0].n_classes
    counts, mass = np.zeros(n_classes, np.int64), np.zeros(n_classes)
    for problem, all_scores in blocks:
        scores = all_scores[problem.n_labeled :]
        if len(scores):
            counts += predicted_counts(problem, scores)
            mass += model_posterior(problem, scores).sum(axis=0, dtype=np.float64)
    return counts, mass


def _dense(shard: Shard, W: Change) -> Array:
    out = shard.blocks[0].problem.design.zeros()
    add_to(out, [Piece(0, len(out), W)], anew=False)
    return out


def class_counts(shard: Shard, restart: str) -> Array:
    """Rows without a full label of each class, by the labels that the way has kept."""
    stands = shard.restarts[restart].stands
    n_classes = stands[0].problem.n_classes
    return np.asarray(np.sum([np.bincount(s.labels[s.unlabeled], minlength=n_classes) for s in stands], axis=0))


def judge(shard: Shard, restart: str, W: Change) -> None:
    """Scores at W, for the distributions over labels."""
    dense = _dense(shard, W)
    for stand in shard.restarts[restart].stands:
        stand.state.scores = stand.problem.design.scores(dense)


def labels_of(shard: Shard, restart: str, place: int, classes: Array) -> Array:
    """Names of the labels of one block, in the order of its rows."""
    stand = shard.restarts[restart].stands[place]
    labels = np.empty(stand.labels.size, np.int64)
    labels[stand.block.order] = stand.labels
    return np.asarray(classes[labels])


def distributions_of(shard: Shard, restart: str, place: int) -> Array:
    """Distributions over the labels of one block (n, K), in the order of its rows."""
    stand = shard.restarts[restart].stands[place]
    assert stand.part is not None
    n_labeled, posterior = stand.problem.n_labeled, stand.part.state["posterior"]
    out = np.zeros((stand.problem.n_rows, stand.problem.n_classes), posterior.dtype)
    out[stand.block.order[:n_labeled], stand.labels[:n_labeled]] = 1.0
    out[stand.block.order[n_labeled:]] = posterior
    return out
