"""Shortest augmenting paths on the graph of classes: the last rows of the exact label step find their place.

Problem. Rows hold labels that are cheapest at the prices v, but some classes hold too many rows (excess > 0) and some
too few (excess < 0). Move rows along paths of classes a → b → ... so that every excess becomes 0 and every row stays
on a label that is cheapest at the prices.

Arrays.  costs (m, K)   the rows that may move          labels (m,)  in and out
         prices (K+1,)  in and out; entry K is the pool   excess (K+1,) in and out
         flow (K,)      rows of class k beyond its low count, drawn from the pool; in and out, 0 ≤ flow ≤ spare
The pool is a node of its own: counts in a range [low, high] leave `spare` = high − low rows to be placed at no cost.

Update.  The length of a → b is the least reduced cost (costs[i,b] − v_b) − (costs[i,a] − v_a) of a row in a: one heap a
pair of classes, whose order does not depend on v. Dijkstra from a class with excess, up to the nearest class with a
lack; prices of the classes passed fall by what their distance lacks, so lengths stay ≥ 0 and the path becomes tight.

Trust.   Heaps list only moves whose reduced cost at the reference prices is below `radius`. As long as the prices
have not drifted apart by more than `radius`, an unlisted move has a reduced cost ≥ 0 and cannot shorten any path.

Returns  (outcome, moves): outcome 0 all settled, 1 the prices would leave the trust radius, 2 some
excess has no listed path.
Reference: the successive shortest path method (Ahuja, Magnanti and Orlin, 1993, section 9.7).
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from transduce.kernels import kernel
from transduce.label_step._kernels.heaps import pop, push

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int32]
Labels: TypeAlias = NDArray[np.int64]
Pool: TypeAlias = tuple[Floats, Ints, Ints, Ints]

SETTLED, DRIFTED, CUT_OFF = 0, 1, 2


@kernel
def list_moves(
    costs: Floats,
    i: int,
    a: int,
    reference: Floats,
    radius: float,
    pool: Pool,
    used: int,
    roots: Ints,
    lengths: Floats,
) -> tuple[Pool, int]:
    """Queue the moves of row i out of class a that lie within the radius; grow the pool when it is full."""
    keys, rows, child, sibling = pool
    n_classes = costs.shape[1]
    if used + n_classes > keys.size:
        size = 2 * keys.size + n_classes
        keys = np.concatenate((keys, np.empty(size, np.float64)))
        rows = np.concatenate((rows, np.empty(size, np.int32)))
        child = np.concatenate((child, np.empty(size, np.int32)))
        sibling = np.concatenate((sibling, np.empty(size, np.int32)))
    here = costs[i, a] - reference[a]
    for b in range(n_classes):
        if b != a and costs[i, b] - reference[b] - here < radius:
            keys[used] = costs[i, b] - costs[i, a]
            rows[used] = i
            root = push(keys, child, sibling, roots[a, b], used)
            roots[a, b] = root
            lengths[a, b] = keys[root]
            used += 1
    return (keys, rows, child, sibling), used


@kernel
def drop_departed(a: int, labels: Labels, pool: Pool, roots: Ints, lengths: Floats) -> None:
    """Take rows that have left class a off the top of its heaps."""
    keys, rows, child, sibling = pool
    for b in range(roots.shape[1]):
        root = roots[a, b]
        if root >= 0 and labels[rows[root]] != a:
            while root >= 0 and labels[rows[root]] != a:
                root = pop(keys, child, sibling, root)
            roots[a, b] = root
            lengths[a, b] = keys[root] if root >= 0 else np.inf


@kernel
def nearest_lack(
    source: int,
    lengths: Floats,
    prices: Floats,
    excess: Labels,
    flow: Labels,
    spare: Labels,
    distance: Floats,
    parent: Ints,
    done: NDArray[np.bool_],
) -> int:
    """Dijkstra from `source` to the nearest node with a lack; −1 when none can be reached."""
    pool_node = lengths.shape[0]
    distance[:] = np.inf
    done[:] = False
    distance[source] = 0.0
    node = source
    while True:
        if excess[node] < 0:
            return node
        done[node] = True
        here = distance[node] + prices[node]
        for k in range(pool_node):
            if node < pool_node:
                through = here + lengths[node, k] - prices[k]
            elif flow[k] > 0:
                through = here - prices[k]
            else:
                continue
            if not done[k] and through < distance[k]:
                distance[k] = max(through, distance[node])
                parent[k] = node
        if node < pool_node and flow[node] < spare[node] and not done[pool_node]:
            through = here - prices[pool_node]
            if through < distance[pool_node]:
                distance[pool_node] = max(through, distance[node])
                parent[pool_node] = node
        node = -1
        least = np.inf
        for k in range(pool_node + 1):
            if not done[k] and distance[k] < least:
                least = distance[k]
                node = k
        if node < 0:
            return -1


@kernel
def settle(
    costs: Floats, labels: Labels, prices: Floats, excess: Labels, flow: Labels, spare: Labels, radius: float
) -> tuple[int, int]:
    n_rows, n_classes = costs.shape
    reference = prices.copy()
    roots = np.full((n_classes, n_classes), -1, np.int32)
    lengths = np.full((n_classes, n_classes), np.inf)
    size = 4 * n_rows + n_classes
    pool = (np.empty(size), np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size, np.int32))
    used = 0
    for i in range(n_rows):
        pool, used = list_moves(costs, i, labels[i], reference, radius, pool, used, roots, lengths)

    distance = np.empty(n_classes + 1)
    parent = np.empty(n_classes + 1, np.int32)
    done = np.empty(n_classes + 1, np.bool_)
    path_rows = np.empty(n_classes + 1, np.int32)
    outcome, moves = SETTLED, 0
    for source in range(n_classes + 1):
        while excess[source] > 0:
            target = nearest_lack(source, lengths, prices, excess, flow, spare, distance, parent, done)
            if target < 0:
                outcome = CUT_OFF
                break
            reach = distance[target]
            lowest, highest = np.inf, -np.inf
            for k in range(n_classes):
                drift = prices[k] - reference[k]
                if done[k]:
                    drift += distance[k] - reach
                lowest = min(lowest, drift)
                highest = max(highest, drift)
            if highest - lowest > radius:
                return DRIFTED, moves
            for k in range(n_classes + 1):
                if done[k]:
                    prices[k] += distance[k] - reach

            node = target
            while node != source:
                before = parent[node]
                path_rows[node] = -1
                if node == n_classes:
                    flow[before] += 1
                elif before == n_classes:
                    flow[node] -= 1
                else:
                    path_rows[node] = pool[1][roots[before, node]]
                node = before
            node = target
            while node != source:
                row = path_rows[node]
                before = parent[node]
                if row >= 0:
                    labels[row] = node
                    drop_departed(before, labels, pool, roots, lengths)
                    pool, used = list_moves(costs, row, node, reference, radius, pool, used, roots, lengths)
                    moves += 1
                node = before
            excess[source] -= 1
            excess[target] += 1
    return outcome, moves
