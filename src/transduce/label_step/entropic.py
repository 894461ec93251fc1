"""The entropic label step: a distribution over labels for every row, with the counts met exactly, at a temperature T.

    min over q of Σ_ik q_ik costs[i, k] + T Σ_ik q_ik log q_ik     subject to     low_k ≤ Σ_i q_ik ≤ high_k

The solution is q_ik ∝ exp((v_k − costs[i, k]) / T) with one price v_k per class, so the search is for K numbers. They
maximise a smooth concave function (see `dual_newton`), of which one pass over the costs gives value, slope and
curvature (see `softmax_sums`). As T falls, q tends to the labels of the exact step (see `temperature_search`).

With bounds on groups of classes, v_k is the sum of the multipliers u_j of the class and its groups (see `count_tree`).
Many u give the same v; the search takes those at which the bounds are worth most.
Reference: Cuturi (2013) for entropic transport; the scaling step is Sinkhorn's.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.class_prior.bounds import Bounds
from transduce.label_step.partitions import Partitions
from transduce.label_step.problem import FloatArray, LabelProblem
from transduce.label_step.soft_partitions import SoftPartitions
from transduce.label_step.temperature_search import (
    MAX_STEPS,
    SoftLabelSolution,
    SoftStatus,
    mean_entropy,
    solve_at,
    solve_at_relative_entropy,
)

__all__ = [
    "Entropic",
    "SoftLabelSolution",
    "SoftStatus",
    "mean_entropy",
    "solve_at_entropy",
    "solve_partitions_at_entropy",
]


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
    n_threads : int, default=1
        Number of threads.

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
    n_threads: int = 1

    def __post_init__(self) -> None:
        if not 0.0 < self.temperature < np.inf:
            raise ValueError(f"temperature must be a number above 0, but is {self.temperature!r}.")
        if not self.tol > 0.0 or self.max_steps < 1:
            raise ValueError(
                f"tol must be above 0 and max_steps 1 or more, but are {self.tol!r} and {self.max_steps!r}."
            )

    def solve(
        self, problem: LabelProblem, prices: FloatArray | None = None, *, out: NDArray[Any] | None = None
    ) -> SoftLabelSolution:
        """Solve from the prices of an earlier solution, if given; the posterior is written to `out`, if given."""
        rows = SoftPartitions.of_problem(problem, self.n_threads)
        return _with_posterior(rows, solve_at(rows, self.temperature, prices, self.tol, self.max_steps), out)

    def solve_partitions(
        self, partitions: Partitions, bounds: Bounds, prices: FloatArray | None = None
    ) -> SoftLabelSolution:
        """Leave the distributions in state["posterior"] of every partition, which has `n_threads` threads.

        >>> from transduce.label_step.partitions import LocalPartitions, Partition
        >>> costs, labels = np.array([[0.0, 1.0], [0.0, 3.0], [2.0, 0.0]]), np.full(3, -1)
        >>> rows = LocalPartitions([Partition(costs[:1], labels[:1]), Partition(costs[1:], labels[1:])])
        >>> soft = Entropic(temperature=0.5).solve_partitions(rows, Bounds(np.array([1, 2]), np.array([1, 2])))
        >>> rows.each(lambda partition: partition.state["posterior"].round(2).tolist())
        [[[0.12, 0.88]], [[0.88, 0.12], [0.0, 1.0]]]
        """
        rows = SoftPartitions.of_partitions(partitions, bounds, self.n_threads)
        return _in_place(rows, solve_at(rows, self.temperature, prices, self.tol, self.max_steps))


def solve_at_entropy(
    problem: LabelProblem,
    fraction: float,
    temperature: float | None,
    prices: FloatArray | None,
    tol: float = 1e-3,
    n_threads: int = 1,
    out: NDArray[Any] | None = None,
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
    rows = SoftPartitions.of_problem(problem, n_threads)
    found = solve_at_relative_entropy(rows, fraction, temperature, prices, tol)
    return _with_posterior(rows, found, out), found.temperature


def solve_partitions_at_entropy(
    partitions: Partitions,
    bounds: Bounds,
    fraction: float,
    temperature: float | None,
    prices: FloatArray | None,
    tol: float = 1e-3,
    n_threads: int = 1,
) -> SoftLabelSolution:
    """The same over partitions, each with `n_threads` threads; distributions stay there, in state["posterior"]."""
    rows = SoftPartitions.of_partitions(partitions, bounds, n_threads)
    return _in_place(rows, solve_at_relative_entropy(rows, fraction, temperature, prices, tol))


def _with_posterior(rows: SoftPartitions, found: SoftLabelSolution, out: NDArray[Any] | None) -> SoftLabelSolution:
    shape = (rows.tree.n_rows, rows.tree.n_classes)
    posterior = np.empty(shape) if out is None else out
    if posterior.shape != shape or posterior.dtype.kind != "f":
        raise ValueError(f"out must be floats of shape {shape}, but are {posterior.dtype} of {posterior.shape}.")
    return replace(_in_place(rows, found, posterior), posterior=posterior)


def _in_place(rows: SoftPartitions, found: SoftLabelSolution, out: NDArray[Any] | None = None) -> SoftLabelSolution:
    """Write the distributions where the rows are."""
    if found.status is SoftStatus.AS_EXACT:
        rows.write_exact(out)
    else:
        rows.write(found.v, found.temperature, out)
    return found
