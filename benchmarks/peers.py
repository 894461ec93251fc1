"""The peers: solvers of the same problem in other packages. Each returns (seconds to solve, optimal cost).

Building the peer's own data structures from the cost matrix is left out of its time; ours has no such part.
"""

import time

import numpy as np
import ot
from ortools.graph.python import min_cost_flow

from benchmarks.instances import UNIT, Instance


def ortools(instance: Instance) -> tuple[float, float]:
    """SimpleMinCostFlow of OR-tools: cost-scaling push-relabel on integer costs."""
    n, n_classes = instance.costs.shape
    solver = min_cost_flow.SimpleMinCostFlow()
    solver.add_arcs_with_capacity_and_unit_cost(
        np.repeat(np.arange(n), n_classes),
        n + np.tile(np.arange(n_classes), n),
        np.ones(n * n_classes, np.int64),
        np.rint(instance.costs / UNIT).astype(np.int64).ravel(),
    )
    solver.set_nodes_supplies(np.arange(n + n_classes), np.concatenate((np.ones(n, np.int64), -instance.counts)))
    begin = time.perf_counter()
    status = solver.solve()
    seconds = time.perf_counter() - begin
    if status != solver.OPTIMAL:
        raise RuntimeError(f"OR-tools ended with status {status}.")
    return seconds, solver.optimal_cost() * UNIT


def pot(instance: Instance) -> tuple[float, float]:
    """ot.emd of POT: network simplex on float costs."""
    rows, classes = np.ones(len(instance.costs)), instance.counts.astype(float)
    begin = time.perf_counter()
    plan, log = ot.emd(rows, classes, instance.costs, numItermax=10**9, log=True)
    seconds = time.perf_counter() - begin
    if log["warning"]:
        raise RuntimeError(f"POT said: {log['warning']}")
    return seconds, float((plan * instance.costs).sum())


PEERS = {"OR-tools": ortools, "POT": pot}
