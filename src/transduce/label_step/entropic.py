"""The entropic label step: a distribution over labels for every row, with the counts met exactly, at a temperature T.

    min over q of Σ_ik q_ik costs[i, k] + T Σ_ik q_ik log q_ik     subject to     low_k ≤ Σ_i q_ik ≤ high_k

With a belief about the counts, their cost is added (see `class_prior.belief`).

The solution is q_ik ∝ exp((v_k − costs[i, k]) / T) with one price v_k per class, so the search is for K numbers. They
maximise a smooth concave function (`dual_newton`). Where that fails, they come down from higher temperatures, and then
from the exact label step, to whose labels q tends as T falls. Reference: Cuturi (2013) for entropic transport.
"""

from dataclasses import dataclass, field, replace
from enum import Enum

import numpy as np

from transduce.arrays import Array, FloatArray
from transduce.class_prior.bounds import Bounds
from transduce.label_step.dual_newton import DualNewton, Point
from transduce.label_step.partitions import Partitions
from transduce.label_step.problem import LabelProblem
from transduce.label_step.soft_partitions import SoftPartitions
from transduce.parallel import Threads

FLAT, N_FLAT = 1e-3, 2
"""Slope of log entropy in log T below which the temperature makes no difference, and how often it is seen in a row."""
COOLING, LOOSE_TOL = 0.25, 0.05
"""Factor between temperatures on the way down, and the relative tolerance of the counts there."""
BEYOND_FLOATS = 1e6
"""Costs larger than this many T leave too few digits for the entropy, if the counts cannot be met."""
HOTTEST = 1e3
"""Highest temperature tried, in units of the largest cost: no temperature makes up for forbidden labels."""
MAX_STEPS, MAX_TEMPERATURES = 500, 12
"""Steps of one search for prices, and temperatures tried for one entropy."""


class SoftStatus(Enum):
    """How an entropic label step ended; the value is the sentence for the user."""

    CONVERGED = "The counts are met to the tolerance."
    AS_EXACT = (
        "The temperature is too small to differ from 0 in floating point: rows have the labels of the exact step."
    )
    STALLED = "The counts are met as well as rounding and max_steps allow; the residual says how well."


@dataclass(frozen=True, eq=False)
class SoftLabelSolution:
    """Distributions over labels that meet the counts, with their prices.

    Attributes
    ----------
    posterior : ndarray of shape (n, K)
        Distribution of each row; empty where distributions stay in their partitions, as state["posterior"].
    prices : ndarray of shape (K,)
        Prices of the classes, in the units of the costs.
    value : float
        Σ q costs + T Σ q log q, and the cost of the counts where there is a belief about them.
    gap : float
        Value less its lower bound at the prices, never negative: what the residual counts are worth.
    entropy : float
        Mean of −Σ_k q_k log q_k over the rows.
    residual : float
        Largest violation of a count of a class or group, in rows.
    n_steps : int
        Steps of the search.
    status : SoftStatus
        How the search ended.
    group_prices : ndarray of shape (G,)
        Multiplier of each group's own bounds; empty without groups.
    temperature : float
        T.
    v : ndarray of shape (K,)
        q_ik ∝ exp(v_k − costs[i, k] / T), unless the labels are those of the exact step.
    """

    posterior: Array
    prices: FloatArray
    value: float
    gap: float
    entropy: float
    residual: float
    n_steps: int
    status: SoftStatus
    group_prices: FloatArray = field(default_factory=lambda: np.zeros(0))
    temperature: float = np.nan
    v: FloatArray = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True)
class Entropic:
    """Soft labels at a temperature.

    With more than one thread the result is the same to the last digit, if BLAS has one thread for each.

    Parameters
    ----------
    temperature : float
        T, above 0.
    tol : float, default=1e-6
        Tolerance of the counts, relative to each count (to one row, where it is less).
    max_steps : int, default=500
        Maximum number of steps of one search for prices.
    n_threads : int or transduce.parallel.Threads, default=1
        Number of threads, or running threads.

    Examples
    --------
    >>> problem = LabelProblem.create([[0.0, 1.0], [0.0, 3.0], [2.0, 0.0]], counts=[1, 2])
    >>> soft = Entropic(temperature=0.5).solve(problem)
    >>> soft.posterior.round(2).tolist(), soft.posterior.sum(axis=0).round(4).tolist()
    ([[0.12, 0.88], [0.88, 0.12], [0.0, 1.0]], [1.0, 2.0])
    """

    temperature: float
    tol: float = 1e-6
    max_steps: int = MAX_STEPS
    n_threads: int | Threads = 1

    def __post_init__(self) -> None:
        if not 0.0 < self.temperature < np.inf:
            raise ValueError(f"temperature must be a number above 0, but is {self.temperature!r}.")
        if not self.tol > 0.0 or self.max_steps < 1:
            found = f"{self.tol!r} and {self.max_steps!r}"
            raise ValueError(f"tol must be above 0 and max_steps 1 or more, but are {found}.")

    def solve(
        self, problem: LabelProblem, prices: FloatArray | None = None, *, out: Array | None = None
    ) -> SoftLabelSolution:
        """Solve from the prices of an earlier solution, if given; the posterior is written to `out`, if given."""
        rows = SoftPartitions.of_problem(problem, self.n_threads, out)
        return _finished(rows, _solve_at(rows, self.temperature, prices, self.tol, self.max_steps))

    def solve_partitions(
        self, partitions: Partitions, bounds: Bounds, prices: FloatArray | None = None
    ) -> SoftLabelSolution:
        """Leave the distributions in state["posterior"] of every partition, which has `n_threads` threads."""
        rows = SoftPartitions.of_partitions(partitions, bounds, self.n_threads)
        return _finished(rows, _solve_at(rows, self.temperature, prices, self.tol, self.max_steps))


def solve_at_entropy(
    problem: LabelProblem,
    fraction: float,
    temperature: float | None,
    prices: FloatArray | None,
    tol: float = 1e-3,
    n_threads: int | Threads = 1,
    out: Array | None = None,
) -> tuple[SoftLabelSolution, float]:
    """Soft labels whose mean entropy is a fraction of the greatest that the counts allow, to a tenth; and their T.

    The greatest is that of the class proportions, as if nothing were known about any row. So a schedule of fractions
    means the same for every loss and every number of classes. The search starts at `temperature`, if given. The
    posterior is written to `out` (n, K), if given.

    >>> problem = LabelProblem.create([[0.0, 1.0], [0.0, 3.0], [2.0, 0.0]], counts=[1, 2])
    >>> soft, T = solve_at_entropy(problem, 0.5, None, None)
    >>> bool(abs(soft.entropy - 0.5 * 0.6365) < 0.04)
    True
    """
    rows = SoftPartitions.of_problem(problem, n_threads, out)
    found = _finished(rows, _solve_at_entropy(rows, fraction, temperature, prices, tol))
    return found, found.temperature


def solve_partitions_at_entropy(
    partitions: Partitions,
    bounds: Bounds,
    fraction: float,
    temperature: float | None,
    prices: FloatArray | None,
    tol: float = 1e-3,
) -> SoftLabelSolution:
    """The same over partitions; distributions stay there, in state["posterior"]."""
    rows = SoftPartitions.of_partitions(partitions, bounds, 1)
    return _finished(rows, _solve_at_entropy(rows, fraction, temperature, prices, tol))


def mean_entropy(posterior: FloatArray) -> float:
    """Mean of −Σ_k q_k log q_k over the rows."""
    logs = np.log(np.maximum(posterior, np.finfo(np.float64).tiny))
    return float(-np.vdot(posterior, logs) / max(len(posterior), 1))


def _finished(rows: SoftPartitions, found: SoftLabelSolution) -> SoftLabelSolution:
    """Write the distributions where the rows are."""
    if found.status is SoftStatus.AS_EXACT:
        rows.write_exact()
    else:
        rows.write(found.v, found.temperature)
    return found if rows.posterior is None else replace(found, posterior=rows.posterior)


def _solve_at(
    rows: SoftPartitions, T: float, prices: FloatArray | None, tol: float, max_steps: int = MAX_STEPS
) -> SoftLabelSolution:
    """Find prices at a temperature, starting from given ones; counts are met to `tol` relative to each."""
    if rows.statistics.least == np.inf:
        rows.solve_exactly()  # raises InfeasibleError
    search = DualNewton(rows.tree, T, rows)
    v = np.zeros(rows.tree.n_classes) if prices is None else np.array(prices, dtype=np.float64)
    point, n_steps, met = search.maximize(v / T, tol, max_steps)
    if not met:
        point, steps, met = _cool_down(search, tol, max_steps)
        n_steps += steps
    if met:
        return _solution(search, point, n_steps, SoftStatus.CONVERGED)
    exact = rows.solve_exactly()  # raises InfeasibleError if the counts cannot be met at all
    point, steps, met = search.maximize(exact.prices / T, tol, max_steps)
    n_steps += steps
    if not met and rows.statistics.largest > BEYOND_FLOATS * T:
        known = (exact.prices, exact.cost, exact.gap, 0.0, 0.0, n_steps, SoftStatus.AS_EXACT, exact.group_prices)
        return SoftLabelSolution(np.empty((0, point.v.size)), *known, T, point.v)
    return _solution(search, point, n_steps, SoftStatus.CONVERGED if met else SoftStatus.STALLED)


def _cool_down(search: DualNewton, tol: float, max_steps: int) -> tuple[Point, int, bool]:
    """Find prices through a sequence of falling temperatures: they are easy to find at high ones."""
    v, n_steps, T = np.zeros(search.tree.n_classes), 0, search.rows.statistics.spread
    while T > search.T:
        point, steps, _ = replace(search, T=T).maximize(v / T, LOOSE_TOL, max_steps)
        v, n_steps, T = T * point.v, n_steps + steps, T * COOLING
    point, steps, met = search.maximize(v / search.T, tol, max_steps)
    return point, n_steps + steps, met


def _solution(search: DualNewton, point: Point, n_steps: int, status: SoftStatus) -> SoftLabelSolution:
    """Put the solution together; value and entropy follow from sums already computed."""
    tree, T = search.tree, search.T
    weighted_mass = float(np.dot(point.mass, point.u))
    outside = point.mass - np.clip(point.mass, tree.low, tree.high)
    return SoftLabelSolution(
        posterior=np.empty((0, tree.n_classes)),
        prices=tree.normalized(T * point.v),
        value=T * (weighted_mass - point.sums.normalizer) + search.rows.statistics.least + tree.count_cost(point.mass),
        gap=max(0.0, _count_gap(search, point)),
        entropy=max(point.sums.entropy / max(tree.n_rows, 1), 0.0),
        residual=float(np.abs(np.where(tree.believed, search.deficit(point), outside)).max(initial=0.0)),
        n_steps=n_steps,
        status=status,
        group_prices=T * point.u[tree.n_classes :] if tree.n_groups else tree.no_group_prices,
        temperature=T,
        v=point.v,
    )


def _count_gap(search: DualNewton, point: Point) -> float:
    """What the sizes cost more than those at which the bounds are worth most."""
    tree, best = search.tree, point.mass + search.deficit(point)
    return search.T * float(np.dot(point.mass - best, point.u)) + tree.count_cost(point.mass) - tree.count_cost(best)


def _solve_at_entropy(
    rows: SoftPartitions, fraction: float, temperature: float | None, prices: FloatArray | None, tol: float
) -> SoftLabelSolution:
    """Find the temperature by the secant method in log T and log entropy, within a bracket.

    Where colder labels have the same entropy, as those of equal rows have, it stays at the first temperature.
    """
    statistics, tree = rows.statistics, rows.tree
    wanted, spread = fraction * mean_entropy(tree.bounds.center(tree.n_rows)[None, :]), statistics.spread
    T = temperature or spread or 1.0
    coldest = 1e-3 * min(T, spread) if temperature else 1e-9 * spread
    lowest, highest, slope, last = 0.0, np.inf, 2.0, (0.0, 0.0)
    first, n_flat = None, 0
    for attempt in range(MAX_TEMPERATURES):
        answer = _solve_at(rows, T, prices, tol)
        prices, entropy = answer.prices, _entropy_of_untied(answer, rows)
        if spread == 0.0 or abs(entropy - wanted) <= 0.1 * wanted:
            break
        lowest, highest = (lowest, T) if entropy > wanted else (T, highest)
        here = (float(np.log(T)), float(np.log(max(entropy, 1e-12))))
        if attempt and here[0] != last[0]:
            found = (here[1] - last[1]) / (here[0] - last[0])
            slope = float(np.clip(found, 0.5, 6.0))
            n_flat = n_flat + 1 if abs(found) < FLAT and entropy > wanted and spread > T else 0
        first = first or answer
        if n_flat == N_FLAT:
            return first
        last = here
        guess = T * float(np.exp(np.clip((np.log(max(wanted, 1e-12)) - here[1]) / slope, -2.0, 2.0)))
        if not lowest < guess < highest:
            guess = float(np.sqrt(lowest * highest))
        if not coldest < guess < HOTTEST * statistics.largest:
            break
        T = guess
    return answer


def _entropy_of_untied(answer: SoftLabelSolution, rows: SoftPartitions) -> float:
    """Mean entropy of the rows that depend on the temperature: rows with equal costs do not."""
    n_rows, n_tied, n_finite = rows.statistics.n_rows, rows.statistics.n_tied, rows.statistics.n_finite
    if not 0 < n_tied < n_rows or n_finite < n_rows * rows.tree.n_classes or rows.tree.closed.any():
        return answer.entropy
    q = np.exp(answer.v - answer.v.max())
    same = 0.0 if answer.status is SoftStatus.AS_EXACT else mean_entropy(q[None, :] / q.sum())
    return (n_rows * answer.entropy - n_tied * same) / (n_rows - n_tied)
