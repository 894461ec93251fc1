"""What labels break: blocks that come too often, too early or without another one.

Problem     for each chain with labels y, the blocks of each field in their order, checked against costs
Arrays      field   (K,) field of each label, −1 for none
            starts  (K + 1, K) whether a label after another one starts a block; row K is for the first token
            most    (F,) cost of every block after the first; 0 if there is no such constraint
            before  (F, F) cost of a block of a after one of b
            least   (F,) cost of no block
            needs   (F, F) cost of a block of a without any of b
"""

from transduce.kernels import Array, kernel


@kernel
def chain_violations(
    y: Array, field: Array, starts: Array, most: Array, before: Array, least: Array, needs: Array, seen: Array,
    broken: Array,
) -> float:  # fmt: skip
    """Return the cost of labels y (T,), and mark the fields (F,) to watch in broken; `seen` (F,) is scratch space."""
    F, cost, previous = most.size, 0.0, field.size
    seen[:] = 0
    for t in range(y.size):
        k = y[t]
        f = field[k]
        if f >= 0 and starts[previous, k]:
            if seen[f] and most[f] > 0.0:
                cost += most[f]
                broken[f] = True
            for b in range(F):
                if seen[b] and before[f, b] > 0.0:
                    cost += before[f, b]
                    broken[b] = True
            seen[f] += 1
        previous = k
    for f in range(F):
        if least[f] > 0.0 and not seen[f]:
            cost += least[f]
            broken[f] = True
        if seen[f]:
            for b in range(F):
                if needs[f, b] > 0.0 and not seen[b]:
                    cost += needs[f, b]
                    broken[f] = broken[b] = True
    return cost


@kernel
def batch_violations(
    y: Array, spans: Array, field: Array, starts: Array, most: Array, before: Array, least: Array, needs: Array,
    costs: Array, broken: Array, blocks: Array,
) -> None:  # fmt: skip
    """Write costs (n,) of all chains, and blocks (n, F) of each field; mark fields to watch in broken (n, F)."""
    for i in range(spans.shape[0]):
        own = y[spans[i, 0] : spans[i, 1]]
        costs[i] = chain_violations(own, field, starts, most, before, least, needs, blocks[i], broken[i])
