"""Pairing heaps in one pool of nodes: many small priority queues, each a root index, that never move in memory.

A node is an index into four parallel arrays: `keys`, `rows` (what is queued), `child` and `sibling` (−1: none). A
heap is the index of its smallest node, or −1. Push costs O(1), pop O(log n) amortised (Fredman, Sedgewick, Sleator
and Tarjan, 1986). The arrays are written in place; the caller owns them.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from transduce.kernels import kernel

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int32]


@kernel
def link(keys: Floats, child: Ints, sibling: Ints, one: int, other: int) -> int:
    """Join two heaps; the smaller root becomes the parent and is returned."""
    if one < 0:
        return other
    if other < 0:
        return one
    if keys[other] < keys[one]:
        one, other = other, one
    sibling[other] = child[one]
    child[one] = other
    return one


@kernel
def push(keys: Floats, child: Ints, sibling: Ints, root: int, node: int) -> int:
    """Add a fresh node, its key already written; return the new root."""
    child[node] = -1
    sibling[node] = -1
    return link(keys, child, sibling, root, node)


@kernel
def pop(keys: Floats, child: Ints, sibling: Ints, root: int) -> int:
    """Drop the root by two-pass pairing of its children; return the new root."""
    node = child[root]
    paired = -1
    while node >= 0:
        partner = sibling[node]
        if partner < 0:
            sibling[node] = paired
            paired = node
            break
        rest = sibling[partner]
        winner = link(keys, child, sibling, node, partner)
        sibling[winner] = paired
        paired = winner
        node = rest
    merged = -1
    while paired >= 0:
        rest = sibling[paired]
        merged = link(keys, child, sibling, merged, paired)
        paired = rest
    if merged >= 0:
        sibling[merged] = -1
    return merged
