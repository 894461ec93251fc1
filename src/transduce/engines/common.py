"""What the local engine and workers share: the state of a restart on some rows, label costs, predictions."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax

from transduce.arrays import Array
from transduce.class_prior.bounds import Bounds
from transduce.losses import Loss, costs_of, is_builtin
from transduce.parallel import Threads, row_blocks
from transduce.problem import TrainingProblem
from transduce.weight_step import Intercept, WeightState

STEP_LENGTHS = (0.6, 0.2)
"""Step lengths to try between the accepted weights and new ones at which J is higher."""
FIRST_TOL, FIRST_SWEEPS = 1e-2, 1000
"""Relative accuracy and most sweeps of the supervised weights that soft labels start from."""
SOFT_SWEEPS, SOFT_ITERATIONS, SOFT_TOL = 1, 10, 1e-2
"""A round with soft labels: sweeps of a dual step or iterations of L-BFGS, and relative tolerance of the counts."""
BLOCK_CELLS = 1 << 16
"""Scores or costs in a block of rows, which one thread works on."""
_STATE = ("W", "targets", "kappa", "dual", "gaps")


@dataclass(eq=False)
class RowState:
    """One restart on some rows: all rows in memory, or one block of a shard.

    labels   (n,) accepted labels
    state    state of the weight step, with the weights of the last one and the scores at them
    scores   (n, K) that labels are chosen by, between those at the accepted weights and those of the state
    """

    problem: TrainingProblem
    labels: Array
    state: WeightState
    scores: Array | None = field(default=None, init=False)

    @property
    def unlabeled(self) -> slice:
        """Rows without a full label."""
        return slice(self.problem.n_labeled, None)

    @property
    def new_scores(self) -> Array:
        """Scores (n, K) at the weights of the state."""
        assert self.state.scores is not None
        return self.state.scores

    def scores_between(self, t: float) -> Array:
        """Return the scores (n, K) this far between `scores` and those of the state; they are linear in W."""
        if t == 1.0 or self.scores is None:
            return self.new_scores
        if t == 0.0:
            return self.scores
        out = np.empty_like(self.new_scores)

        def write(rows: slice) -> None:
            out[rows] = self._mixed_scores(t, rows)

        self.problem.design.threads.each(write, row_blocks(len(out), rows_of_block(out)))
        return out

    def _mixed_scores(self, t: float, rows: slice) -> Array:
        new = self.new_scores[rows]
        return new if self.scores is None else (1.0 - t) * self.scores[rows] + t * new

    def loss_between(self, t: float) -> float:
        """Return the weighted loss at these scores; a user's loss is called once."""

        def loss_of(rows: slice) -> float:
            kappa, live = self.state.kappa[rows], self.state.kappa[rows] > 0
            if not live.any():
                return 0.0
            losses = self.problem.loss.value(self._mixed_scores(t, rows)[live], self.labels[rows][live])
            return float(np.dot(kappa[live], losses))

        n_at_once = rows_of_block(self.new_scores) if is_builtin(self.problem.loss) else max(self.problem.n_rows, 1)
        return sum(self.problem.design.threads.each(loss_of, row_blocks(self.problem.n_rows, n_at_once)), 0.0)

    def label_costs(self, threads: Threads | None = None) -> Array:
        """Return the loss of every label at `scores`, for rows without a full label."""
        assert self.scores is not None
        return finite_costs(self.problem.loss, self.scores[self.unlabeled], threads)

    def weigh_proposal(self, costs: Array, new: Array) -> tuple[int, float, float]:
        """Return the rows that would change label, the change of the loss, and the loss of the accepted labels."""
        old, kappa = self.labels[self.unlabeled], self.state.kappa[self.unlabeled]
        old_costs = np.take_along_axis(costs, old[:, None], axis=1)[:, 0]
        moved = np.flatnonzero(new != old)
        change = float(np.dot(kappa[moved], costs[moved, new[moved]] - old_costs[moved]))
        return int(moved.size), change, float(np.dot(kappa, old_costs))


def best_step(
    objective: float, alpha: float, products: tuple[float, float, float], loss_between: Callable[[float], float]
) -> tuple[float, float]:
    """Find the lowest J below `objective` between accepted weights V and W; return it and the step length, or 0.

    `products` are ⟨V, V⟩, ⟨V, W⟩ and ⟨W, W⟩. J is convex in W, and no step length needs a product with X.
    """
    best, best_length = objective, 0.0
    for t in STEP_LENGTHS:
        square = (1.0 - t) ** 2 * products[0] + 2.0 * t * (1.0 - t) * products[1] + t**2 * products[2]
        value = 0.5 * alpha * square + loss_between(t)
        if value < best:
            best, best_length = value, t
    return best, best_length


def count_cost(bounds: Bounds, counts: Array, weight: float) -> float:
    """Cost of class counts (K,) in J by the belief about them, if unlabelled rows weigh `weight` together."""
    belief = bounds.belief
    return 0.0 if belief is None else weight / max(int(counts.sum()), 1) * float(belief.cost(counts).sum())


def inner_products(V: Array, W: Array) -> tuple[float, float, float]:
    """⟨V, V⟩, ⟨V, W⟩ and ⟨W, W⟩."""
    return float(np.vdot(V, V)), float(np.vdot(V, W)), float(np.vdot(W, W))


def move_towards(accepted: Array, W: Array, step_length: float) -> None:
    """Move the accepted weights this far to W, in place, and not in threads: Ctrl-C would leave some rows behind."""
    if step_length == 1.0:
        accepted[...] = W
    elif step_length > 0.0:
        accepted *= 1.0 - step_length
        accepted += step_length * W


def packed_state(state: WeightState) -> dict[str, Array]:
    """Return the state of a weight step as arrays; scores are computed again from the weights."""
    scalars = np.array([state.objective, state.scores is not None, state.sigma], dtype=np.float64)
    own = [] if state.intercept is None else [state.intercept.balance, state.intercept.rates, state.intercept.residual]
    more = {"state_scalars": scalars, "state_intercept": np.array(own)}
    return {f"state_{name}": getattr(state, name) for name in _STATE} | more


def unpacked_state(problem: TrainingProblem, saved: dict[str, Array]) -> WeightState:
    """Rebuild the state of a weight step from its arrays."""
    W, targets, kappa, dual, gaps = (saved[f"state_{name}"] for name in _STATE)
    objective, with_scores, sigma = saved["state_scalars"].tolist()
    scores = problem.design.scores(W) if with_scores else None
    intercept = Intercept(*saved["state_intercept"].copy()) if saved["state_intercept"].size else None
    return WeightState(W, targets, kappa, dual, gaps, objective, scores, sigma, intercept)


def finite_costs(loss: Loss, scores: Array, threads: Threads | None = None) -> Array:
    """Costs of every label at these scores; raise if a user's loss returns NaN or infinity."""
    threads = threads or Threads()
    costs = costs_of(loss, scores, threads)
    sums = threads.each(lambda rows: float(costs[rows].sum()), row_blocks(len(costs), rows_of_block(costs)))
    if not np.isfinite(sum(sums)):
        raise ValueError("the loss must give finite label costs, but label_costs returned NaN or infinity. Correct it.")
    return costs


def rows_of_block(cells: Array) -> int:
    """Number of rows of an array (n, K) in a block for a thread."""
    return max(1, BLOCK_CELLS // int(cells.shape[1]))


class Calibration(NamedTuple):
    """How scores become probabilities: (1 − smoothing) posterior(scores / temperature) + smoothing / K.

    The temperature says how much a difference of scores means. Smoothing stands for rows in a wrong cluster, whose
    scores are clear and wrong: without it, no temperature suits both these rows and the others.
    """

    temperature: float = 1.0
    smoothing: float = 0.0

    def probabilities(self, loss: Any, scores: Array) -> Array:
        """Probabilities (n, K) at these scores."""
        scaled = scores / self.temperature
        found = np.asarray(loss.posterior(scaled) if hasattr(loss, "posterior") else softmax(scaled, axis=1))
        if not self.smoothing:
            return found
        smoothed = (1.0 - self.smoothing) * found.astype(np.float64)  # in which small probabilities keep their order
        return np.asarray(smoothed + self.smoothing / scores.shape[1])


def doubtful_below(best: Array, confidence: Array, n_classes: int) -> float:
    """The largest of the best scores (n,) such that rows with no higher one are doubtful on average.

    Their mean confidence is then at most halfway between chance, 1/K, and certainty.

    >>> doubtful_below(np.array([0.3, -0.2, 0.9]), np.array([0.8, 0.6, 0.9]), 2)
    0.3
    """
    order = np.argsort(best)
    means = np.cumsum(confidence[order]) / np.arange(1, best.size + 1)
    doubtful = np.flatnonzero(means <= 0.5 + 0.5 / n_classes)
    return float(best[order[doubtful[-1]]] if doubtful.size else best.min(initial=0.0))


def best_scores(scores: Array) -> Array:
    """The best score of each row, of scores (n, K); for two classes, as for `decision_function`, their difference.

    Scores (n,) are those of `decision_function` for two classes.

    >>> best_scores(np.array([[0.5, 2.0, -1.0]])), best_scores(np.array([[0.5, -1.0]])), best_scores(np.array([-1.5]))
    (array([2.]), array([1.5]), array([1.5]))
    """
    if scores.ndim == 2 and scores.shape[1] != 2:
        return np.asarray(scores.max(axis=1))
    return np.asarray(np.abs(scores if scores.ndim == 1 else scores[:, 1] - scores[:, 0]))


def opposite_scores(scores: Array) -> Array:
    """Scores of both classes (2, ...) from those in favour of the second: opposite, with these as their difference.

    >>> opposite_scores(np.array([1.5]))
    array([[-0.75],
           [ 0.75]])
    """
    return np.stack((-scores / 2, scores / 2))


def threshold_below(values: Array, n: int) -> float:
    """A number that n of the values (m,) are below, halfway to the next one; -inf if n is 0.

    >>> threshold_below(np.array([0.5, -1.0, 2.0, 0.0]), 2)
    0.25
    """
    if n == 0:
        return -np.inf
    ordered = np.sort(values.astype(np.float64))
    return float(ordered[n - 1 : n + 1].mean() if n < ordered.size else np.nextafter(ordered[-1], np.inf))


def posterior_costs(loss: Any, scores: Array, calibration: Calibration, threads: Threads | None = None) -> Array:
    """Minus the logarithm of the probabilities (n, K) at these scores."""
    out = np.empty(scores.shape, np.float64 if calibration.smoothing else scores.dtype)

    def write(rows: slice) -> None:
        costs = calibration.probabilities(loss, scores[rows])
        np.maximum(costs, np.finfo(costs.dtype).tiny, out=costs)
        np.negative(np.log(costs, out=costs), out=out[rows])

    (threads or Threads()).each(write, row_blocks(len(scores), rows_of_block(scores)))
    return out


def priced_probabilities(problem: TrainingProblem, scores: Array, prices: Array, calibration: Calibration) -> Array:
    """Probabilities (n, K) of the rows without a full label after adding prices, 0 where a label is forbidden."""
    scale = getattr(problem.loss, "price_scale", 0.0)
    found = calibration.probabilities(problem.loss, scores + (scale * prices).astype(scores.dtype))
    return found if problem.forbidden is None else _allowed(problem.forbidden, found)


def follows_prices(loss: Any, bounds: Bounds, n_rows: int) -> bool:
    """Whether probabilities follow from the prices of the fit; else they are chosen so that they meet hard bounds."""
    is_hard = bounds.groups is not None or np.any(bounds.low > 0) or np.any(bounds.high < n_rows)
    return bounds.belief is not None and not is_hard and hasattr(loss, "price_scale")


def total_confidence(
    loss: Any,
    scores: Array,
    prices: Array,
    calibration: Calibration,
    chosen: Array | None = None,
    threads: Threads | None = None,
) -> float:
    """Sum of the largest probabilities of rows with these scores (n, K), after adding the prices of the classes.

    `chosen` (n,) says which rows count, by default all.
    """
    shift = getattr(loss, "price_scale", 0.0) * prices

    def total(rows: slice) -> float:
        largest = calibration.probabilities(loss, scores[rows] + shift).max(axis=1)
        return float((largest if chosen is None else largest[chosen[rows]]).sum(dtype=np.float64))

    blocks = row_blocks(len(scores), rows_of_block(scores))
    return sum((threads or Threads()).each(total, blocks), 0.0)


def predicted_counts(problem: TrainingProblem, scores: Array) -> Array:
    """Count rows by the class of their best allowed score (K,); scores are those of the rows without a full label."""

    def count(rows: slice) -> Array:
        S = scores[rows] if problem.forbidden is None else np.where(problem.forbidden[rows], -np.inf, scores[rows])
        return np.bincount(S.argmax(axis=1), minlength=problem.n_classes)

    counts = problem.design.threads.each(count, row_blocks(len(scores), rows_of_block(scores)))
    return np.asarray(sum(counts, np.zeros(problem.n_classes, np.int64)))


def first_targets(problem: TrainingProblem, labels: Array, bounds: Bounds, n_unlabeled: int) -> Array:
    """One-hot targets of the labelled rows, and the class proportions for all others.

    `n_unlabeled` are the rows that the bounds count, which may be more than those of this problem.
    """
    targets = np.zeros((problem.n_rows, problem.n_classes), problem.design.dtype)
    targets[np.arange(problem.n_labeled), labels[: problem.n_labeled]] = 1.0
    proportions = bounds.center(n_unlabeled)
    targets[problem.n_labeled :] = (
        proportions if problem.forbidden is None else _allowed(problem.forbidden, proportions)
    )
    return targets


def _allowed(forbidden: Array, distributions: Array) -> Array:
    """Set forbidden labels to 0 and normalise; a row whose allowed labels all had 0 gets them evenly."""
    allowed = np.where(forbidden, 0.0, np.maximum(distributions, np.finfo(np.float64).tiny))
    return np.asarray(allowed / allowed.sum(axis=1, keepdims=True))
