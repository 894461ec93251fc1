"""The entropic label step: a distribution over labels for every row, with the counts met exactly, at a temperature T.

    min over q of Σ_ik q_ik costs[i, k] + T Σ_ik q_ik log q_ik     subject to     low_k ≤ Σ_i q_ik ≤ high_k

The answer is q_ik ∝ exp((v_k − costs[i, k]) / T), with one price v_k a class, so the search is for K numbers. They
maximise a smooth concave function (with a corner at v_k = 0 where a count has room), by Newton's method. A step that
would not raise it gives way to a scaling step, which always does. Where that leads nowhere, prices come down from
higher temperatures. As T falls, q goes to the labels of the exact step, and takes them where T is too small for floats
to tell.

With bounds on groups of classes, v_k is the sum of multipliers u_j of the class and its groups (see `nodes`), each with
a corner at 0 of its own. Many u give the same v; the search takes those at which the bounds are worth most.
Reference: Cuturi (2013) for entropic transport; the scaling step is Sinkhorn's.
"""

from dataclasses import dataclass, field, replace
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from transduce.label_step.assignment import normalise
from transduce.label_step.exact import Exact
from transduce.label_step.nodes import Nodes
from transduce.label_step.problem import FloatArray, IntArray, LabelProblem

COOLING = 0.25
"""Each temperature on the way down from far-off prices, as a share of the one before."""
LOOSE = 0.05
"""Share of the counts to which they are met there."""
LONGEST_STEP = 8.0
"""Largest change of a price in one step, in units of T: the curvature is trusted no further."""
LONGEST_SCALING = 300.0
"""The same for a scaling step."""
RIDGE = 1e-9
"""Curvature lent to directions that have none, as a share of the counts."""
BEYOND_FLOATS = 1e6
"""Costs of so many T leave too few digits for the entropy, if counts cannot be met."""
DIGITS = 1e6
"""Costs of more T than this would leave too few digits in an entropy that is found as a difference."""
HOTTEST = 1e3
"""Temperature, in units of the largest cost, that is not gone beyond: what forbidden labels rule out is not there."""
TRIES = 12
"""Temperatures tried for one entropy."""
STALLED = 8
"""Steps without a smaller residual after which rounding is taken to be all that is left."""


class SoftStatus(Enum):
    """How an entropic label step ended; the value is the sentence for the user."""

    CONVERGED = "The counts are met to the tolerance."
    AS_EXACT = "The temperature is too small for floats to tell from 0: every row has the label of the exact step."
    STALLED = "The counts are met as well as rounding and max_steps allow; the residual says how well."


@dataclass(frozen=True, eq=False)
class SoftAssignment:
    """Distributions over labels that meet the counts, and what is known about them.

    posterior     (n, K) a distribution for each row
    prices        (K,) of the classes, in the units of the costs
    value         Σ q costs + T Σ q log q
    gap           value less its lower bound at the prices: what the residual counts are worth, never negative
    entropy       mean of −Σ_k q_k log q_k over the rows
    residual      largest violation of a count of a class or group, in rows
    n_steps       passes over the costs
    status        how it ended
    group_prices  (G,) the part of the prices that is due to each group's own bounds; empty without groups
    """

    posterior: FloatArray
    prices: FloatArray
    value: float
    gap: float
    entropy: float
    residual: float
    n_steps: int
    status: SoftStatus
    group_prices: FloatArray = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True)
class Entropic:
    """Soft labels at a temperature; counts are met to `tol` as a share of each (of one row, where it is less).

    >>> problem = LabelProblem.create([[0.0, 1.0], [0.0, 3.0], [2.0, 0.0]], counts=[1, 2])
    >>> soft = Entropic(temperature=0.5).solve(problem)
    >>> soft.posterior.round(2).tolist(), soft.posterior.sum(axis=0).round(4).tolist()
    ([[0.12, 0.88], [0.88, 0.12], [0.0, 1.0]], [1.0, 2.0])
    """

    temperature: float
    tol: float = 1e-6
    max_steps: int = 500

    def __post_init__(self) -> None:
        if not 0.0 < self.temperature < np.inf:
            raise ValueError(f"temperature must be a number above 0, but is {self.temperature!r}.")
        if not self.tol > 0.0 or self.max_steps < 1:
            raise ValueError(
                f"tol must be above 0 and max_steps 1 or more, but are {self.tol!r} and {self.max_steps!r}."
            )

    def solve(self, problem: LabelProblem, prices: FloatArray | None = None) -> SoftAssignment:
        """Solve from the prices of an earlier answer, if there are any."""
        v = np.zeros(problem.n_classes) if prices is None else np.array(prices, dtype=np.float64)
        return self._solve(_Search.of(problem, self.temperature), v)

    def _solve(self, search: "_Search", v: FloatArray) -> SoftAssignment:
        problem = search.problem
        if not search.open_to_all:
            Exact().solve(problem)  # says that the counts cannot be met
        point, n_steps, met = search.climb(v / search.T, self.tol, self.max_steps)
        if not met:
            point, steps, met = self._cooled(search)
            n_steps += steps
        if met:
            return search.answer(point, n_steps, SoftStatus.CONVERGED)
        exact = Exact().solve(problem)  # says so if the counts cannot be met at all
        point, steps, met = search.climb(exact.prices / search.T, self.tol, self.max_steps)
        n_steps += steps
        if met:
            return search.answer(point, n_steps, SoftStatus.CONVERGED)
        if search.largest > BEYOND_FLOATS * search.T:
            posterior = np.zeros((problem.n_rows, problem.n_classes))
            posterior[np.arange(problem.n_rows), exact.labels] = 1.0
            ends = (0.0, 0.0, n_steps, SoftStatus.AS_EXACT)
            return SoftAssignment(posterior, exact.prices, exact.cost, exact.gap, *ends, exact.group_prices)
        return search.answer(point, n_steps, SoftStatus.STALLED)

    def _cooled(self, search: "_Search") -> tuple["_Point", int, bool]:
        """Prices by way of higher temperatures, at which they are easy to find."""
        v, n_steps, T = np.zeros(search.problem.n_classes), 0, search.spread
        while T > search.T:
            point, steps, _ = replace(search, T=T).climb(v / T, LOOSE, self.max_steps)
            v, n_steps, T = T * search.problem.nodes.prices(point.u), n_steps + steps, T * COOLING
        point, steps, met = search.climb(v / search.T, self.tol, self.max_steps)
        return point, n_steps + steps, met


def solve_at_entropy(
    problem: LabelProblem, share: float, temperature: float | None, prices: FloatArray | None, tol: float = 1e-3
) -> tuple[SoftAssignment, float]:
    """Soft labels whose mean entropy is a share of the greatest that the counts allow, to a tenth; and their T.

    The greatest is that of the class sizes themselves, as if nothing were known about any row. So a schedule in shares
    means the same for every loss and every number of classes. The search starts at `temperature`, if there is one.

    >>> problem = LabelProblem.create([[0.0, 1.0], [0.0, 3.0], [2.0, 0.0]], counts=[1, 2])
    >>> soft, T = solve_at_entropy(problem, 0.5, None, None)
    >>> bool(abs(soft.entropy - 0.5 * 0.6365) < 0.04)
    True
    """
    wanted = share * mean_entropy(_middle(problem)[None, :])
    search = _Search.of(problem, 1.0)
    T = temperature or search.spread or 1.0
    coldest = 1e-3 * min(T, search.spread) if temperature else 1e-9 * search.spread
    v = np.zeros(problem.n_classes) if prices is None else np.array(prices, dtype=np.float64)
    tied = np.flatnonzero(search.costs.max(axis=1) == 0.0) if search.all_allowed else np.zeros(0, np.int64)
    least, most, slope, last = 0.0, np.inf, 2.0, (0.0, 0.0)
    for attempt in range(TRIES):
        answer = Entropic(T, tol=tol)._solve(replace(search, T=T), v)
        v, entropy = answer.prices, answer.entropy
        if 0 < tied.size < problem.n_rows:  # rows that no temperature can tell anything about
            same = mean_entropy(answer.posterior[tied[:1]])
            entropy = (problem.n_rows * entropy - tied.size * same) / (problem.n_rows - tied.size)
        if search.spread == 0.0 or abs(entropy - wanted) <= 0.1 * wanted or attempt == TRIES - 1:
            break
        least, most = (least, T) if entropy > wanted else (T, most)
        here = (np.log(T), np.log(max(entropy, 1e-12)))
        if attempt and here[0] != last[0]:
            slope = float(np.clip((here[1] - last[1]) / (here[0] - last[0]), 0.5, 6.0))
        last = here
        guess = T * float(np.exp(np.clip((np.log(max(wanted, 1e-12)) - here[1]) / slope, -2.0, 2.0)))
        if not least < guess < most:
            guess = float(np.sqrt(least * most))
        if not coldest < guess < HOTTEST * search.largest:
            break
        T = guess
    return answer, T


def _middle(problem: LabelProblem) -> FloatArray:
    """Shares of the classes in the middle of their bounds."""
    if problem.nodes.n_groups and problem.groups is not None:
        return problem.groups.shares(problem.low, problem.high, problem.n_rows)
    low, high, n_rows = problem.low, problem.high, problem.n_rows
    least = np.maximum(
        low, n_rows - (high.sum() - high)
    )  # what is left when all others have their most, or their least
    most = np.minimum(high, n_rows - (low.sum() - low))
    middle = np.maximum(least + most, 0) / 2.0
    return np.asarray(middle / max(middle.sum(), 1.0))


def mean_entropy(posterior: FloatArray) -> float:
    """Mean of −Σ_k q_k log q_k over the rows."""
    logs = np.log(np.maximum(posterior, np.finfo(np.float64).tiny))
    return float(-np.vdot(posterior, logs) / max(len(posterior), 1))


@dataclass(frozen=True, eq=False)
class _Point:
    """Multipliers u (N,) in units of T, the distributions, their sums (N,), and what was added up for each row."""

    u: FloatArray
    Q: FloatArray
    mass: FloatArray
    normaliser: float
    value: float


@dataclass(frozen=True, eq=False)
class _Search:
    """The search for prices at a temperature; costs (n, K) are counted from the least of each row."""

    problem: LabelProblem
    T: float
    costs: FloatArray
    least: float
    spread: float
    largest: float
    closed: NDArray[np.bool_]
    all_allowed: bool
    open_to_all: bool

    @classmethod
    def of(cls, problem: LabelProblem, T: float) -> "_Search":
        costs = np.array(problem.costs, dtype=np.float64)
        least = costs.min(axis=1)
        all_allowed = bool(costs.size == 0 or costs.max() < np.inf)
        largest = float(np.abs(costs if all_allowed else costs[costs < np.inf]).max(initial=0.0))
        costs -= least[:, None]
        spread = float((costs if all_allowed else costs[costs < np.inf]).mean()) if costs.size else 0.0
        closed = _closed(problem)
        if np.any(closed):
            costs[:, closed[: problem.n_classes]] = np.inf
            all_allowed = False
        open_to_all = all_allowed or bool(np.all(costs.min(axis=1) < np.inf))
        return cls(problem, T, costs, float(least.sum()), spread, largest, closed, all_allowed, open_to_all)

    @property
    def nodes(self) -> Nodes:
        """Classes and groups, with their bounds."""
        return self.problem.nodes

    def at(self, u: FloatArray) -> _Point:
        """The distributions at these multipliers, and the value of the dual, in units of T."""
        nodes, v = self.nodes, self.nodes.prices(u)
        if nodes.n_groups:
            u = nodes.differences(nodes.potentials(v))
        Q = np.multiply(self.costs, -1.0 / self.T)
        Q += v
        top = Q.max(axis=1)
        Q -= top[:, None]
        np.exp(Q, out=Q)
        total = Q.sum(axis=1)
        Q /= total[:, None]
        normaliser = float(top.sum() + np.log(total).sum())
        bounds = np.where(u > 0, nodes.low, nodes.high)
        return _Point(u, Q, nodes.sums(Q.sum(axis=0)), normaliser, float(np.dot(bounds, u)) - normaliser)

    def lacking(self, point: _Point) -> FloatArray:
        """Rows that each node still lacks, below 0 for those it has too many: the slope of the dual."""
        low, high, u = self.nodes.low, self.nodes.high, point.u
        at_corner = np.clip(point.mass, low, high)
        return np.asarray(np.where(u > 0, low, np.where(u < 0, high, at_corner)) - point.mass)

    def climb(self, v: FloatArray, tol: float, max_steps: int) -> tuple[_Point, int, bool]:
        """Raise the dual from prices v until the counts are met; returns where it ends, steps, and whether they are."""
        allowed = tol * np.maximum(self.nodes.low, 1.0)
        point = self.at(np.append(np.where(self.closed[: v.size], 0.0, v), np.zeros(self.nodes.n_groups)))
        best, since, step = np.inf, 0, 0
        for step in range(1, max_steps + 1):
            lacking = self.lacking(point)
            if np.all(np.abs(lacking) <= allowed):
                return point, step, True
            worst = float(np.abs(lacking).max())
            best, since = (worst, 0) if worst < 0.7 * best else (best, since + 1)
            if since > STALLED:
                break
            point = self._step(point, lacking)
        return point, step, False

    def _step(self, point: _Point, lacking: FloatArray) -> _Point:
        """A Newton step within the orthant of u, shortened while it fails; or a scaling step."""
        direction = self._newton(point, lacking)
        slope = float(np.dot(lacking, direction))
        shares = [1.0, self._to_a_corner(point.u, direction), 0.3, 0.1]
        for share in shares if slope > 0 else ():
            further = self.at(self._in_orthant(point.u, point.u + share * direction, lacking))
            if further.value >= point.value + 1e-4 * share * slope:
                return further
        for level in self.nodes.levels:
            u = point.u.copy()
            u[level] = self._scaled(point)[level]
            point = self.at(u)
        return point

    def _newton(self, point: _Point, lacking: FloatArray) -> FloatArray:
        """The Newton direction in what wants to move, no longer than the curvature is to be trusted.

        Between groups and their parts there are directions without curvature. None of them leads up at the u that
        bounds are worth most at, except from a corner to its wrong side: what would go there stays.
        """
        moving = np.flatnonzero((lacking != 0) & ~self.closed)
        H = self._curvature(point, moving)
        direction = np.zeros_like(point.u)
        direction[moving] = np.linalg.solve(H, lacking[moving])
        cornered = (point.u == 0) & (self.nodes.low < self.nodes.high) if self.nodes.n_groups else self.closed
        while np.any(wrong := (cornered & (direction * lacking < 0))[moving]):
            direction[moving[wrong]] = 0.0
            moving, H = moving[~wrong], H[np.ix_(~wrong, ~wrong)]
            direction[moving] = np.linalg.solve(H, lacking[moving])
        length = float(np.abs(direction).max())
        return direction * min(1.0, LONGEST_STEP / length) if length > 0 else direction

    def _curvature(self, point: _Point, moving: IntArray) -> FloatArray:
        """Minus the second derivative of the dual in some of the multipliers, and a ridge."""
        if self.nodes.n_groups:
            n_classes = self.problem.n_classes
            A = np.vstack((np.eye(n_classes, dtype=bool), self.nodes.members))[moving].astype(np.float64)
            H = A @ (np.diag(point.mass[:n_classes]) - point.Q.T @ point.Q) @ A.T
        else:
            Q = point.Q if moving.size == point.u.size else point.Q[:, moving]
            H = np.diag(point.mass[moving]) - Q.T @ Q
        H[np.diag_indices_from(H)] += RIDGE * (1.0 + self.nodes.high[moving])
        if self.problem.exact_counts:
            H += 1.0  # the constant direction, along which nothing changes
        return np.asarray(H)

    def _to_a_corner(self, u: FloatArray, direction: FloatArray) -> float:
        """How far along the first price comes to 0 whose count has room; or half way."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            shares = np.where((direction != 0) & (self.nodes.low < self.nodes.high), -u / direction, np.inf)
        first = float(np.where(shares > 0, shares, np.inf).min(initial=np.inf))
        return first if first < 1.0 else 0.5

    def _in_orthant(self, u: FloatArray, further: FloatArray, lacking: FloatArray) -> FloatArray:
        """Stop prices at 0 where they would cross it and their count has room: the slope is another beyond."""
        side = np.where(u != 0, np.sign(u), np.sign(lacking))
        crossing = (further * side < 0) & (self.nodes.low < self.nodes.high)
        return np.where(crossing, 0.0, further)

    def _scaled(self, point: _Point) -> FloatArray:
        """Each class or group alone at its best multiplier, were the rows' normalisers to stay."""
        u = point.u
        with np.errstate(divide="ignore", invalid="ignore"):
            bare = np.log(point.mass) - u
            low, high = np.log(self.nodes.low) - bare, np.log(self.nodes.high) - bare
        further = low if self.problem.exact_counts else np.where(low > 0, low, np.where(high < 0, high, 0.0))
        further = np.where(np.isfinite(further), further, u)
        return np.clip(further, u - LONGEST_SCALING, u + LONGEST_SCALING)

    def answer(self, point: _Point, n_steps: int, status: SoftStatus) -> SoftAssignment:
        """What the user gets; value and entropy follow from sums already made."""
        lacking, n_rows = self.lacking(point), max(self.problem.n_rows, 1)
        pull = float(np.dot(point.mass, point.u))
        value = self.T * (pull - point.normaliser) + self.least
        if self.all_allowed and self.largest < DIGITS * self.T:
            entropy = (point.normaliser - pull + float(np.vdot(point.Q, self.costs)) / self.T) / n_rows
        else:
            entropy = mean_entropy(point.Q)
        return SoftAssignment(
            point.Q,
            normalise(self.problem, self.T * self.nodes.prices(point.u)),
            value,
            self.T * max(0.0, -float(np.dot(lacking, point.u))),
            max(entropy, 0.0),
            float(np.abs(point.mass - np.clip(point.mass, self.nodes.low, self.nodes.high)).max(initial=0.0)),
            n_steps,
            status,
            self.T * point.u[self.problem.n_classes :] if self.nodes.n_groups else np.zeros(self.problem.n_groups),
        )


def _closed(problem: LabelProblem) -> NDArray[np.bool_]:
    """Classes and groups (N,) that may have no rows at all, by their own high count or that of a group they are in."""
    nodes = problem.nodes
    closed = np.append(nodes.high == 0, False)
    for j in range(nodes.above.size - 1, -1, -1) if nodes.n_groups else ():
        closed[j] |= closed[nodes.above[j]]
    return closed[:-1]
