"""Shortest augmenting paths on the graph of classes: the last rows of the exact label step find their place.

Problem. Rows hold labels that are cheapest at the prices v, but some classes hold too many rows (excess > 0) and some
too few (excess < 0). Move rows along paths of classes a → b → ... so that every excess becomes 0 and every row stays
on a label that is cheapest at the prices.

Arrays.  costs (m, K)   the rows that may move            labels (m,)   in and out
         prices (K+1,)  in and out; entry K is the pool   excess (K+1,) in and out
         flow (K,)      rows of class k beyond its low count, drawn from the pool; in and out, 0 ≤ flow ≤ spare
         lists, members in and out, see `shortlists`
The pool is a node of its own: counts in a range [low, high] leave `spare` = high − low rows to be placed at no cost.

Update.  The length of a → b is the least reduced cost (costs[i, b] − v_b) − (costs[i, a] − v_a) of a row in a, read
from the short lists. Dijkstra from a class with excess, up to the nearest class with a lack; prices of the classes
passed fall by what their distance lacks, so lengths stay ≥ 0 and the path becomes tight.

Trust.   Rows that are not given here would pay at least `radius` for any other label at the prices of entry. As long
as the prices have not drifted apart by more than that, none of them can shorten a path.

Returns  (outcome, moves): outcome 0 all settled, 1 the prices would leave the trust radius, 2 some excess has no path.
Reference: the successive shortest path method (Ahuja, Magnanti and Orlin, 1993, section 9.7).
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from transduce.kernels import kernel
from transduce.label_step._kernels.shortlists import Floats, Ints, Labels, Lists, Members, join, leave, refill

Flags: TypeAlias = NDArray[np.bool_]

SETTLED, DRIFTED, CUT_OFF = 0, 1, 2


@kernel
def relax(
    node: int, lengths: Floats, prices: Floats, flow: Labels, spare: Labels, distance: Floats, parent: Ints, done: Flags
) -> None:
    """Shorten the distances of all other nodes by the edges out of one; edges from and to the pool cost nothing."""
    pool = lengths.shape[0]
    here = distance[node] + prices[node]
    if node == pool:
        for k in range(pool):
            if flow[k] > 0 and not done[k] and here - prices[k] < distance[k]:
                distance[k] = max(here - prices[k], distance[node])
                parent[k] = node
        return
    for k in range(pool):
        through = here + lengths[node, k] - prices[k]
        if through < distance[k] and not done[k]:
            distance[k] = max(through, distance[node])
            parent[k] = node
    if flow[node] < spare[node] and not done[pool] and here - prices[pool] < distance[pool]:
        distance[pool] = max(here - prices[pool], distance[node])
        parent[pool] = node


@kernel
def relax_into(
    k: int, lengths: Floats, prices: Floats, flow: Labels, distance: Floats, parent: Ints, done: Flags
) -> None:
    """Find the distance of one class anew, from all nodes that are done."""
    pool = lengths.shape[0]
    distance[k] = np.inf
    for node in range(pool + 1):
        if done[node] and (node < pool or flow[k] > 0):
            length = lengths[node, k] if node < pool else 0.0
            through = distance[node] + prices[node] + length - prices[k]
            if through < distance[k]:
                distance[k] = max(through, distance[node])
                parent[k] = node


@kernel
def nearest(distance: Floats, done: Flags) -> int:
    """The nearest node that is not done; −1 when none can be reached."""
    node, least = -1, np.inf
    for k in range(distance.size):
        if distance[k] < least and not done[k]:
            least = distance[k]
            node = k
    return node


@kernel
def nearest_lack(
    source: int,
    costs: Floats,
    prices: Floats,
    excess: Labels,
    flow: Labels,
    spare: Labels,
    lists: Lists,
    members: Members,
    distance: Floats,
    parent: Ints,
    done: Flags,
) -> int:
    """Dijkstra from `source` to the nearest node with a lack; −1 when none can be reached.

    A node whose shortest edge is only the limit of an empty list waits until the list is filled.
    """
    _, _, size, _, lengths = lists
    pool = costs.shape[1]
    distance[:] = np.inf
    done[:] = False
    distance[source] = 0.0
    node = source
    while node >= 0 and excess[node] >= 0:
        done[node] = True
        relax(node, lengths, prices, flow, spare, distance, parent, done)
        node = nearest(distance, done)
        while 0 <= node < pool and parent[node] < pool and size[parent[node], node] == 0:
            refill(parent[node], node, costs, lists, members)
            relax_into(node, lengths, prices, flow, distance, parent, done)
            node = nearest(distance, done)
    return node


@kernel
def augment(
    source: int,
    target: int,
    costs: Floats,
    labels: Labels,
    flow: Labels,
    lists: Lists,
    members: Members,
    parent: Ints,
    movers: Ints,
) -> int:
    """Pass one row on along each edge of the path found; returns how many rows took a new label."""
    rows = lists[1]
    pool = costs.shape[1]
    node = target
    while node != source:
        if node < pool and parent[node] < pool:
            movers[node] = rows[parent[node], node, 0]
        node = parent[node]
    moves = 0
    node = target
    while node != source:
        a = parent[node]
        if node == pool:
            flow[a] += 1
        elif a == pool:
            flow[node] -= 1
        else:
            labels[movers[node]] = node
            leave(a, movers[node], labels, lists, members)
            join(node, movers[node], costs, lists, members)
            moves += 1
        node = a
    return moves


@kernel
def lower_prices(prices: Floats, reference: Floats, radius: float, reach: float, distance: Floats, done: Flags) -> bool:
    """Lower the prices of the nodes passed, unless those of the classes would then drift apart beyond the radius."""
    lowest, highest = np.inf, -np.inf
    for k in range(prices.size - 1):
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


@kernel
def settle(
    costs: Floats,
    labels: Labels,
    prices: Floats,
    excess: Labels,
    flow: Labels,
    spare: Labels,
    radius: float,
    lists: Lists,
    members: Members,
) -> tuple[int, int]:
    """Settle every excess, or stop with what was settled; the module's docstring has the problem."""
    reference = prices.copy()
    distance = np.empty(prices.size)
    parent = np.empty(prices.size, np.int32)
    done = np.empty(prices.size, np.bool_)
    movers = np.empty(prices.size, np.int32)
    outcome, moves = SETTLED, 0
    for source in range(prices.size):
        while excess[source] > 0:
            target = nearest_lack(source, costs, prices, excess, flow, spare, lists, members, distance, parent, done)
            if target < 0:
                outcome = CUT_OFF
                break
            if not lower_prices(prices, reference, radius, distance[target], distance, done):
                return DRIFTED, moves
            moves += augment(source, target, costs, labels, flow, lists, members, parent, movers)
            excess[source] -= 1
            excess[target] += 1
    return outcome, moves
