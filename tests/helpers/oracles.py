"""Independent solvers for the optimal cost of a label problem and for its soft labels."""

import numpy as np
import ot
from ortools.graph.python import min_cost_flow
from scipy import sparse
from scipy.optimize import linprog, minimize
from scipy.special import logsumexp

from helpers.problems import Instance


def payable(costs: np.ndarray) -> np.ndarray:
    """Forbidden labels at a finite price that no optimum pays."""
    finite = costs[np.isfinite(costs)]
    span = np.ptp(finite) if finite.size else 0.0
    return np.where(np.isfinite(costs), costs, 4 * (costs.shape[1] + 1) * (span + 1.0))


def pot_cost(instance: Instance) -> float:
    """Network simplex of POT, for real costs and exact counts."""
    costs = payable(instance.costs)
    unit = np.abs(costs).max(initial=np.finfo(float).tiny)  # its tolerances are absolute
    plan = ot.emd(np.ones(len(costs)), instance.low.astype(float), costs / unit, numItermax=10**7)
    return float((np.rint(plan) * costs).sum())


def ortools_cost(instance: Instance) -> float:
    """Cost-scaling min-cost flow of OR-tools, for whole-number costs and exact counts."""
    n, k = instance.costs.shape
    rows, classes = np.nonzero(np.isfinite(instance.costs))
    solver = min_cost_flow.SimpleMinCostFlow()
    solver.add_arcs_with_capacity_and_unit_cost(
        rows, n + classes, np.ones(rows.size, int), instance.costs[rows, classes].astype(np.int64)
    )
    solver.set_nodes_supplies(np.arange(n + k), np.concatenate((np.ones(n, int), -instance.low)))
    assert solver.solve() == solver.OPTIMAL
    return float(solver.optimal_cost())


def linear_programme_cost(instance: Instance) -> float:
    """HiGHS on the linear programme itself, for ranges; +inf when it says that there is no solution."""
    n, k = instance.costs.shape
    once = sparse.kron(sparse.eye(n), np.ones((1, k)))
    tally = sparse.kron(np.ones((1, n)), sparse.eye(k))
    finite = np.isfinite(instance.costs).ravel()
    costs = np.where(finite, instance.costs.ravel(), 0.0)
    unit = np.abs(costs).max(initial=np.finfo(float).tiny)  # its tolerances are absolute
    answer = linprog(
        costs / unit,
        A_eq=once,
        b_eq=np.ones(n),
        A_ub=sparse.vstack([tally, -tally]),
        b_ub=np.concatenate((instance.high, -instance.low)),
        bounds=np.column_stack((np.zeros(n * k), finite)),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert answer.status in (0, 2), answer.message
    return float(answer.fun) * unit if answer.status == 0 else np.inf


def optimal_cost(instance: Instance) -> float:
    return ortools_cost(instance) if instance.integral else pot_cost(instance)


def sinkhorn_posterior(costs: np.ndarray, counts: np.ndarray, temperature: float) -> np.ndarray:
    """Soft labels by POT's Sinkhorn iteration on logarithms, for exact counts."""
    plan = np.zeros_like(costs)
    wanted = counts > 0
    plan[:, wanted] = ot.sinkhorn(
        np.ones(len(costs)),
        counts[wanted].astype(float),
        costs[:, wanted],
        temperature,
        method="sinkhorn_log",
        stopThr=1e-11,
        numItermax=200_000,
    )
    return plan


def entropic_dual_posterior(costs: np.ndarray, low: np.ndarray, high: np.ndarray, temperature: float) -> np.ndarray:
    """Soft labels under ranges by L-BFGS-B on the dual, its prices split into what is above and what is below 0."""
    wanted = high > 0
    costs, low, high, k = costs[:, wanted], low[wanted], high[wanted], int(wanted.sum())

    def posterior(prices: np.ndarray) -> tuple[np.ndarray, float]:
        z = (prices - costs) / temperature
        normalizer = logsumexp(z, axis=1)
        return np.exp(z - normalizer[:, None]), temperature * float(normalizer.sum())

    def value_and_gradient(parts: np.ndarray) -> tuple[float, np.ndarray]:
        q, normalizer = posterior(parts[:k] - parts[k:])
        mass = q.sum(axis=0)
        return normalizer - low @ parts[:k] + high @ parts[k:], np.concatenate((mass - low, high - mass))

    options = {"maxiter": 20_000, "maxfun": 10**6, "ftol": 1e-16, "gtol": 1e-9, "maxcor": 30}
    bounds = [(0.0, None)] * (2 * k)
    answer = minimize(value_and_gradient, np.zeros(2 * k), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    q = np.zeros((len(costs), wanted.size))
    q[:, wanted] = posterior(answer.x[:k] - answer.x[k:])[0]
    return q
