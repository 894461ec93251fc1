"""Pivots of the transportation simplex on a spanning tree of rows and columns.

Problem.  min Σ costs[i, k] x_ik   s.t.   Σ_k x_ik = supply_i,  Σ_i x_ik = demand_k,  x ≥ 0.
Basis.    n + K − 1 cells (2, ·) with flows: the edges of a tree whose nodes are the rows 0..n−1 and columns n..n+K−1.
Pivot.    Potentials u, v with costs = u + v on the tree give reduced costs, costs − u − v, elsewhere. The most negative
          cell enters, flow goes round the one cycle it closes, and the cell that first falls to 0 leaves.
Stop.     No reduced cost is below −tolerance.
Supplies and demands come perturbed so that no tree flow is ever 0: every pivot lowers the cost and none repeats.
Reference: Hadley (1963), chapter 9; the perturbation is Orden's (1956).
"""

from typing import TypeAlias

import numpy as np

from transduce.kernels import allocating_kernel, kernel
from transduce.label_step._kernels import Floats, Labels

Tree: TypeAlias = tuple[Labels, Labels, Labels, Labels]


@allocating_kernel
def list_neighbours(cells: Labels, first: Labels, touching: Labels) -> None:
    """Write the tree cells that touch each node: touching[first[node] : first[node + 1]]."""
    first[:] = 0
    for cell in range(cells.shape[1]):
        first[cells[0, cell] + 1] += 1
        first[cells[1, cell] + 1] += 1
    for node in range(first.size - 1):
        first[node + 1] += first[node]
    place = first.copy()
    for cell in range(cells.shape[1]):
        for node in (cells[0, cell], cells[1, cell]):
            touching[place[node]] = cell
            place[node] += 1


@kernel
def walk_tree(costs: Floats, cells: Labels, potential: Floats, first: Labels, touching: Labels, tree: Tree) -> None:
    """Walk the tree from the last column: potentials, and for each node its parent, the cell to it, and its depth."""
    parent, parent_cell, depth, stack = tree
    root = parent.size - 1
    potential[root], parent[root], parent_cell[root], depth[root] = 0.0, -1, -1, 0
    stack[0] = root
    size = 1
    while size:
        size -= 1
        node = stack[size]
        for place in range(first[node], first[node + 1]):
            cell = touching[place]
            if cell == parent_cell[node]:
                continue
            row, column = cells[0, cell], cells[1, cell]
            other = row if node == column else column
            potential[other] = costs[row, column - costs.shape[0]] - potential[node]
            parent[other], parent_cell[other], depth[other] = node, cell, depth[node] + 1
            stack[size] = other
            size += 1


@kernel
def entering_cell(costs: Floats, potential: Floats) -> tuple[float, int, int]:
    """The most negative reduced cost, with the row and the column of its cell."""
    n_rows, n_columns = costs.shape
    least, row, column = 0.0, -1, -1
    for i in range(n_rows):
        best = np.inf
        for k in range(n_columns):
            best = min(best, costs[i, k] - potential[n_rows + k])
        if best - potential[i] < least:
            least, row = best - potential[i], i
    if row >= 0:
        for k in range(n_columns):
            if costs[row, k] - potential[n_rows + k] - potential[row] <= least:
                column = n_rows + k
    return least, row, column


@kernel
def turn_cycle(row: int, column: int, tree: Tree, flow: Labels) -> int:
    """Send as much flow as possible round the cycle that the entering cell closes; return the cell that leaves.

    Seen from either end of the entering cell, the tree cells up to where the ends meet alternate: minus, plus, minus...
    The leaving cell's flow is set to what was sent, since the entering cell takes its place in the basis.
    """
    parent, parent_cell, depth, _ = tree
    amount = np.iinfo(np.int64).max
    leaving = -1
    for sending in (False, True):
        one, other = row, column
        one_loses, other_loses = True, True
        while one != other:
            climb_one = depth[one] >= depth[other]
            node, loses = (one, one_loses) if climb_one else (other, other_loses)
            cell = parent_cell[node]
            if sending:
                flow[cell] += -amount if loses else amount
            elif loses and flow[cell] < amount:
                amount = flow[cell]
                leaving = cell
            if climb_one:
                one, one_loses = parent[node], not loses
            else:
                other, other_loses = parent[node], not loses
    flow[leaving] = amount
    return leaving


@allocating_kernel
def pivot(costs: Floats, cells: Labels, flow: Labels, tolerance: float, max_pivots: int) -> tuple[int, bool]:
    """Make up to `max_pivots` pivots on the basis, in place; return how many, and whether the optimum is reached."""
    n_nodes = costs.shape[0] + costs.shape[1]
    first, touching = np.empty(n_nodes + 1, np.int64), np.empty(2 * flow.size, np.int64)
    potential, scratch = np.empty(n_nodes), np.empty((4, n_nodes), np.int64)
    tree = (scratch[0], scratch[1], scratch[2], scratch[3])
    for done in range(max_pivots + 1):
        list_neighbours(cells, first, touching)
        walk_tree(costs, cells, potential, first, touching, tree)
        least, row, column = entering_cell(costs, potential)
        if least >= -tolerance:
            return done, True
        if done < max_pivots:
            leaving = turn_cycle(row, column, tree, flow)
            cells[0, leaving], cells[1, leaving] = row, column
    return max_pivots, False
