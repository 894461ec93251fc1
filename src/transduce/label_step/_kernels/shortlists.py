"""Short sorted lists of the best moves between every two classes, updated row by row.

For classes a and b the moves are the rows of a, with keys costs[i, b] − costs[i, a] that no price changes. A list
holds the least of them, and all below its limit. `Lists` are five arrays, written in place:

    keys, rows (K, K, m)   the moves listed, least first      size (K, K)   how many
    limit (K, K)           every move with a smaller key is listed
    lengths (K, K)         the least key, or where nothing is listed the limit: then a lower bound

`Members` are the rows of each class as doubly linked lists: first (K,), after (n,), before (n,), −1 at the ends. A
row that has left its class is dropped when it comes to the top of a list. All arrays are allocated in Python: a kernel
that passed its own on in a tuple would count references at every call.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from transduce.kernels import kernel
from transduce.label_step._kernels import Floats, Labels

Ints: TypeAlias = NDArray[np.int32]
Lists: TypeAlias = tuple[Floats, Ints, Ints, Floats, Floats]
Members: TypeAlias = tuple[Ints, Ints, Ints]
Moves: TypeAlias = tuple[Lists, Members]


@kernel
def offer(a: int, b: int, row: int, key: float, lists: Lists) -> None:
    """List a move whose key is below the limit; a full list drops its last move and lowers the limit to it."""
    keys, rows, size, limit, lengths = lists
    place = size[a, b]
    if place == keys.shape[2]:
        place -= 1
        limit[a, b] = max(key, keys[a, b, place])
        if key >= keys[a, b, place]:
            return
    else:
        size[a, b] += 1
    while place > 0 and keys[a, b, place - 1] > key:
        keys[a, b, place] = keys[a, b, place - 1]
        rows[a, b, place] = rows[a, b, place - 1]
        place -= 1
    keys[a, b, place] = key
    rows[a, b, place] = row
    lengths[a, b] = keys[a, b, 0]


@kernel
def refill(a: int, b: int, costs: Floats, moves: Moves) -> None:
    """Refill an empty list from a to b with rows of a, stopping when it is full of moves at the old limit."""
    lists, (first, after, _) = moves
    _, _, _, limit, lengths = lists
    least = limit[a, b]
    limit[a, b] = lengths[a, b] = np.inf
    row = first[a]
    while row >= 0 and limit[a, b] > least:
        key = costs[row, b] - costs[row, a]
        if key < limit[a, b]:
            offer(a, b, row, key, lists)
        row = after[row]


@kernel
def leave(a: int, row: int, labels: Labels, moves: Moves) -> None:
    """Take a row, its label changed already, out of class a and off the top of its lists."""
    (keys, rows, size, limit, lengths), (first, after, before) = moves
    if before[row] >= 0:
        after[before[row]] = after[row]
    else:
        first[a] = after[row]
    if after[row] >= 0:
        before[after[row]] = before[row]
    for b in range(size.shape[1]):
        if size[a, b] == 0 or rows[a, b, 0] != row:
            continue
        gone = 1
        while gone < size[a, b] and labels[rows[a, b, gone]] != a:
            gone += 1
        size[a, b] -= gone
        for place in range(size[a, b]):
            keys[a, b, place] = keys[a, b, place + gone]
            rows[a, b, place] = rows[a, b, place + gone]
        lengths[a, b] = keys[a, b, 0] if size[a, b] > 0 else limit[a, b]


@kernel
def offer_all(costs: Floats, rows: Labels, labels: Labels, lists: Lists) -> None:
    """List the moves of rows with these costs (n, K), numbers (n,) and labels (n,)."""
    limit = lists[3]
    for i in range(rows.size):
        a = labels[i]
        for b in range(costs.shape[1]):
            key = costs[i, b] - costs[i, a]
            if key < limit[a, b] and b != a:
                offer(a, b, rows[i], key, lists)


@kernel
def join(a: int, row: int, costs: Floats, moves: Moves) -> None:
    """Put a row at the head of class a and list its moves."""
    lists, (first, after, before) = moves
    limit = lists[3]
    after[row] = first[a]
    before[row] = -1
    if first[a] >= 0:
        before[first[a]] = row
    first[a] = row
    for b in range(costs.shape[1]):
        key = costs[row, b] - costs[row, a]
        if key < limit[a, b] and b != a:
            offer(a, b, row, key, lists)


@kernel
def join_all(costs: Floats, labels: Labels, moves: Moves) -> None:
    """Put every row into its class."""
    for row in range(labels.size):
        join(labels[row], row, costs, moves)
