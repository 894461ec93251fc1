"""Shortest augmenting paths on the graph of classes: the exact label step moves its last rows along them.

Problem. Rows have labels that are cheapest at the prices v, but some classes hold too many rows (excess > 0), some too
few. Move rows along paths of classes a → b → ... so that every excess becomes 0 and labels stay cheapest at the prices.

Arrays.  costs (m, K)   the rows that may move            labels (m,)   in and out
         prices (N+1,)  in and out, those of all nodes    moves         in and out, see `shortlists`
         tree           above (N,) the node that a node is part of: a group of classes, or all rows
                        flow (N,) rows of a node beyond its low count; in and out, 0 ≤ flow ≤ spare
                        spare (N,) high count − low count
                        excess (N+1,) in and out
         belief         base, mean, strength (N,) of the belief about the count base + flow (see `class_prior.belief`)
                        marginal (N, 2) in and out: the cost of the last row, and of one more; 0 without a belief
         search         distance (N+1,), parent (N+1,), done (N+1,), movers (N+1,): scratch of a shortest path
Nodes 0 to K−1 are classes, then come groups of classes, then all rows, node N. What a node gets goes up to the node
above: its low count in any case, and `flow` of the `spare` rows, at their marginal costs. Without groups all rows are
a pool.

Update.  The length of a → b is the least reduced cost (costs[i, b] − v_b) − (costs[i, a] − v_a) of a row in a, read
from the short lists. Dijkstra from a class with excess to the nearest class with a deficit; prices of the classes
passed fall by the rest of the distance, so lengths stay ≥ 0 and the path becomes tight.

Trust.   Rows that are not among these would pay at least `radius` for any other label at the prices of entry. As long
as the prices have not drifted apart by more than that, none of them can shorten a path.
Reference: the successive shortest path method (Ahuja, Magnanti and Orlin, 1993, section 9.7).
"""

from typing import TypeAlias

import numpy as np

from transduce.kernels import allocating_kernel, kernel
from transduce.label_step._kernels import Flags, Floats, Labels
from transduce.label_step._kernels.shortlists import Ints, Moves, join, leave, refill

Tree: TypeAlias = tuple[Labels, Labels, Labels, Labels, tuple[Floats, Floats, Floats, Floats]]
Search: TypeAlias = tuple[Floats, Ints, Flags, Ints]

SETTLED, DRIFTED, CUT_OFF = 0, 1, 2
"""Every excess is 0, prices would leave the trust radius, or an excess has no path."""


@kernel
def marginal_cost(n: float, mean: float, strength: float) -> float:
    """Cost of one more row than n: f(n + 1) − f(n)."""
    return float(strength * (np.log((n + 1.0) / mean) + (n * np.log1p(1.0 / n) if n > 0.0 else 0.0) - 1.0))


@kernel
def update_marginals(node: int, tree: Tree) -> None:
    """Compute the marginal costs of a node at its present flow."""
    base, mean, strength, marginal = tree[4]
    if strength[node] > 0.0:
        n = base[node] + tree[1][node]
        marginal[node, 0] = marginal_cost(max(n - 1.0, 0.0), mean[node], strength[node])
        marginal[node, 1] = marginal_cost(n, mean[node], strength[node])


@kernel
def relax(node: int, lengths: Floats, prices: Floats, tree: Tree, search: Search) -> None:
    """Shorten the distances of all other nodes by the edges out of one."""
    above, flow, spare, _, (_, _, _, marginal) = tree
    distance, parent, done, _ = search
    n_classes = lengths.shape[0]
    here = distance[node] + prices[node]
    if node < n_classes:
        for k in range(n_classes):
            through = here + lengths[node, k] - prices[k]
            if through < distance[k] and not done[k]:
                distance[k] = max(through, distance[node])
                parent[k] = node
    else:
        for part in range(node):
            if above[part] == node and flow[part] > 0 and not done[part]:
                through = here - prices[part] - marginal[part, 0]
                if through < distance[part]:
                    distance[part] = max(through, distance[node])
                    parent[part] = node
    if node < above.size and flow[node] < spare[node]:
        over = above[node]
        through = here + marginal[node, 1] - prices[over]
        if not done[over] and through < distance[over]:
            distance[over] = max(through, distance[node])
            parent[over] = node


@kernel
def relax_into(k: int, lengths: Floats, prices: Floats, tree: Tree, search: Search) -> None:
    """Recompute the distance of one class from all nodes that are done."""
    above, flow, _, _, (_, _, _, marginal) = tree
    distance, parent, done, _ = search
    distance[k] = np.inf
    for node in range(lengths.shape[0]):
        if done[node]:
            through = distance[node] + prices[node] + lengths[node, k] - prices[k]
            if through < distance[k]:
                distance[k] = max(through, distance[node])
                parent[k] = node
    over = above[k]
    if done[over] and flow[k] > 0:
        through = distance[over] + prices[over] - prices[k] - marginal[k, 0]
        if through < distance[k]:
            distance[k] = max(through, distance[over])
            parent[k] = over


@kernel
def nearest(distance: Floats, done: Flags) -> int:
    """The nearest node that is not done; −1 if none can be reached."""
    node, least = -1, np.inf
    for k in range(distance.size):
        if distance[k] < least and not done[k]:
            least = distance[k]
            node = k
    return node


@kernel
def nearest_deficit(source: int, costs: Floats, prices: Floats, tree: Tree, moves: Moves, search: Search) -> int:
    """Dijkstra from `source` to the nearest node with a deficit; −1 if none can be reached.

    A node whose shortest edge is only the limit of an empty list waits until the list is filled.
    """
    (_, _, size, _, lengths), _ = moves
    distance, parent, done, _ = search
    excess, n_classes = tree[3], costs.shape[1]
    distance[:] = np.inf
    done[:] = False
    distance[source] = 0.0
    node = source
    while node >= 0 and excess[node] >= 0:
        done[node] = True
        relax(node, lengths, prices, tree, search)
        node = nearest(distance, done)
        while 0 <= node < n_classes and parent[node] < n_classes and size[parent[node], node] == 0:
            refill(parent[node], node, costs, moves)
            relax_into(node, lengths, prices, tree, search)
            node = nearest(distance, done)
    return node


@kernel
def augment(source: int, target: int, costs: Floats, labels: Labels, tree: Tree, moves: Moves, search: Search) -> int:
    """Pass one row on along each edge of the path found; return how many rows took a new label."""
    rows, flow = moves[0][1], tree[1]
    _, parent, _, movers = search
    n_classes = costs.shape[1]
    node = target
    while node != source:
        if node < n_classes and parent[node] < n_classes:
            movers[node] = rows[parent[node], node, 0]
        node = parent[node]
    n_moves = 0
    node = target
    while node != source:
        a = parent[node]
        if node >= n_classes and a < node:
            flow[a] += 1
            update_marginals(a, tree)
        elif a >= n_classes:
            flow[node] -= 1
            update_marginals(node, tree)
        else:
            labels[movers[node]] = node
            leave(a, movers[node], labels, moves)
            join(node, movers[node], costs, moves)
            n_moves += 1
        node = a
    return n_moves


@kernel
def lower_prices(
    n_classes: int, prices: Floats, reference: Floats, radius: float, reach: float, distance: Floats, done: Flags
) -> bool:
    """Lower the prices of the nodes passed, unless those of the classes would then drift apart beyond the radius."""
    lowest, highest = np.inf, -np.inf
    for k in range(n_classes):
        drift = prices[k] - reference[k]
        if done[k]:
            drift += distance[k] - reach
        lowest = min(lowest, drift)
        highest = max(highest, drift)
    if highest - lowest > radius:
        return False
    for k in range(prices.size):
        if done[k]:
            prices[k] += distance[k] - reach
    return True


@allocating_kernel
def settle(
    costs: Floats, labels: Labels, prices: Floats, tree: Tree, radius: float, moves: Moves, search: Search
) -> tuple[int, int]:
    """Make every excess 0 as far as the trust radius allows; return the outcome and the number of moves."""
    reference = prices.copy()
    distance, _, done, _ = search
    excess = tree[3]
    outcome, n_moves = SETTLED, 0
    for source in range(prices.size):
        while excess[source] > 0:
            target = nearest_deficit(source, costs, prices, tree, moves, search)
            if target < 0:
                outcome = CUT_OFF
                break
            if not lower_prices(costs.shape[1], prices, reference, radius, distance[target], distance, done):
                return DRIFTED, n_moves
            n_moves += augment(source, target, costs, labels, tree, moves, search)
            excess[source] -= 1
            excess[target] += 1
    return outcome, n_moves
