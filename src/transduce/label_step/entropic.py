"""The entropic label step: a distribution over labels for every row, with the counts met exactly, at a temperature T.

    min over q of Σ_ik q_ik costs[i, k] + T Σ_ik q_ik log q_ik     subject to     low_k ≤ Σ_i q_ik ≤ high_k

The answer is q_ik ∝ exp((v_k − costs[i, k]) / T), with one price v_k a class, so the search is for K numbers. They
maximise a smooth concave function (see `ascent`), of which one pass over the costs gives value, slope and curvature
(see `softness`). As T falls, q goes to the labels of the exact step, and takes them where T is too small for floats to
tell (see `tempering`).

With bounds on groups of classes, v_k is the sum of multipliers u_j of the class and its groups (see `nodes`), each with
a corner at 0 of its own. Many u give the same v; the search takes those at which the bounds are worth most.
Reference: Cuturi (2013) for entropic transport; the scaling step is Sinkhorn's.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.label_step.cost_statistics import CostStatistics
from transduce.label_step.dual_newton import closed_nodes
from transduce.label_step.exact import Exact
from transduce.label_step.problem import FloatArray, IntArray, LabelProblem
from transduce.label_step.row_blocks import Threads
from transduce.label_step.softmax_sums import SoftRows, Sums
from transduce.label_step.solution import LabelSolution
from transduce.label_step.temperature_search import (
    MAX_STEPS,
    SoftStatus,
    Tempered,
    mean_entropy,
    temper,
    temper_to_entropy,
)

__all__ = ["Entropic", "SoftLabelSolution", "SoftStatus", "mean_entropy", "solve_at_entropy"]

AT_ONCE = 256
"""Classes up to which products are made with other sums in case they are needed: a pass of their own takes longer."""


@dataclass(frozen=True, eq=False)
class SoftLabelSolution:
    """Distributions over labels that meet the counts, and what is known about them.

    posterior     (n, K) a distribution for each row, in the precision of `out`, if that was given
    prices        (K,) of the classes, in the units of the costs
    value         Σ q costs + T Σ q log q
    gap           value less its lower bound at the prices: what the residual counts are worth, never negative
    entropy       mean of −Σ_k q_k log q_k over the rows
    residual      largest violation of a count of a class or group, in rows
    n_steps       steps of the search
    status        how it ended
    group_prices  (G,) the part of the prices that is due to each group's own bounds; empty without groups
    """

    posterior: NDArray[Any]
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

    With more than one thread the answer is the same to the last digit, if BLAS has but one for each.

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
        """Solve from the prices of an earlier answer, if there are any; the posterior is written to `out`, if given."""
        with Threads(self.n_threads) as threads:
            rows = _Rows.of(problem, threads)
            return rows.answer(temper(problem, rows, self.temperature, prices, self.tol, self.max_steps), out)


def solve_at_entropy(
    problem: LabelProblem,
    share: float,
    temperature: float | None,
    prices: FloatArray | None,
    tol: float = 1e-3,
    n_threads: int = 1,
    out: NDArray[Any] | None = None,
) -> tuple[SoftLabelSolution, float]:
    """Soft labels whose mean entropy is a share of the greatest that the counts allow, to a tenth; and their T.

    The greatest is that of the class sizes themselves, as if nothing were known about any row. So a schedule in shares
    means the same for every loss and every number of classes. The search starts at `temperature`, if there is one. The
    posterior is written to `out` (n, K), if there is one.

    >>> problem = LabelProblem.create([[0.0, 1.0], [0.0, 3.0], [2.0, 0.0]], counts=[1, 2])
    >>> soft, T = solve_at_entropy(problem, 0.5, None, None)
    >>> bool(abs(soft.entropy - 0.5 * 0.6365) < 0.04)
    True
    """
    with Threads(n_threads) as threads:
        rows = _Rows.of(problem, threads)
        found = temper_to_entropy(problem, rows, share, temperature, prices, tol)
        return rows.answer(found, out), found.temperature


@dataclass(eq=False)
class _Rows:
    """The rows of a problem in this process."""

    problem: LabelProblem
    rows: SoftRows
    threads: Threads
    exact: LabelSolution | None = None

    @classmethod
    def of(cls, problem: LabelProblem, threads: Threads) -> "_Rows":
        return cls(problem, SoftRows.of(problem.costs, closed_nodes(problem)[: problem.n_classes], threads), threads)

    @property
    def facts(self) -> CostStatistics:
        return self.rows.facts

    @property
    def products_at_once(self) -> bool:
        return self.problem.n_classes <= AT_ONCE

    def at(self, v: FloatArray, T: float, columns: IntArray | None) -> Sums:
        return self.rows.at(v, T, columns, self.threads)

    def label(self) -> LabelSolution:
        self.exact = Exact().solve(self.problem) if self.exact is None else self.exact
        return self.exact

    def answer(self, found: Tempered, out: NDArray[Any] | None) -> SoftLabelSolution:
        """Write the distributions."""
        shape = self.problem.costs.shape
        posterior = np.empty(shape) if out is None else out
        if posterior.shape != shape or posterior.dtype.kind != "f":
            raise ValueError(f"out must be floats of shape {shape}, but are {posterior.dtype} of {posterior.shape}.")
        if found.status is SoftStatus.AS_EXACT:
            posterior[...] = 0.0
            posterior[np.arange(shape[0]), self.label().labels] = 1.0
        else:
            self.rows.write(found.v, found.temperature, posterior, self.threads)
        known = (found.value, found.gap, found.entropy, found.residual, found.n_steps, found.status)
        return SoftLabelSolution(posterior, found.prices, *known, found.group_prices)
