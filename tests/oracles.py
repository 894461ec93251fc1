"""Other people's solvers, asked for the optimal cost of a label problem."""

import numpy as np
import ot
from ortools.graph.python import min_cost_flow
from problems import Instance
from scipy import sparse
from scipy.optimize import linprog


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
