"""Soft labels of an instance, and the check that they meet its counts."""

import numpy as np

from helpers.problems import Instance
from transduce.label_step import LabelProblem
from transduce.label_step.entropic import Entropic, SoftLabelSolution, SoftStatus

TOL = 1e-6


def solve(
    problem: Instance, temperature: float, scale: float = 1.0, tol: float = TOL, prices=None
) -> SoftLabelSolution:
    return Entropic(temperature, tol).solve(LabelProblem.create(scale * problem.costs, problem.counts), prices)


def check_counts(problem: Instance, answer: SoftLabelSolution, tol: float = TOL) -> None:
    """Distributions over allowed labels, whose sums meet the counts."""
    q = answer.posterior
    assert np.all(np.isfinite(q))
    assert np.all(np.isfinite(answer.prices))
    assert np.all(q >= 0)
    np.testing.assert_allclose(q.sum(axis=1), 1.0, rtol=1e-12)
    assert not q[np.isinf(problem.costs)].any(), problem.name
    mass, slack = q.sum(axis=0), tol * np.maximum(problem.low, 1) + 1e-12 * len(q)
    assert np.all(mass >= problem.low - slack), problem.name
    assert np.all(mass <= problem.high + slack), problem.name
    assert answer.status is not SoftStatus.STALLED, problem.name
