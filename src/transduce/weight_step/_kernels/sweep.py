"""A sweep of dual ascent over rows in batches, by threads that share the work.

    for each batch   S = X_b W Pᵀ + c b Pᵀ, then new dual variables of each row at these scores, and R, its change of λW
                     W += X_bᵀ R P / λ, and b moves after some batches (see `intercept`)

Rows of a batch are updated as if all others stayed. Rows are divided among the threads, then columns of X (for dense
rows, nodes), with the constant c as one more. A thread takes the next piece while there is one, so results do not
depend on their number.
"""

from transduce.kernels import Array, kernel
from transduce.kernels.pullback import add_dense_part, add_part, find_cuts_of_change
from transduce.kernels.rows import class_scores, class_to_node, n_nodes, node_scores
from transduce.kernels.shared_work import take_next, wait_until
from transduce.weight_step._kernels import GAP_LEFT, MARGIN, SQUARED, intercept, margin, maxent, squared

MAX_ROWS, PIECES = 8, 16
"""Most rows in a piece of work, and the pieces that a batch of at least as many rows has."""
update_margin, update_squared, update_maxent = margin.update_row, squared.update_row, maxent.update_row
add_compliance, move_intercept = intercept.add_compliance, intercept.move
STAY, STEP, JUMP = intercept.STAY, intercept.STEP, intercept.JUMP


@kernel
def update_row(
    loss: int, i: int, s: Array, labels: Array, margins: Array, offsets: Array, width: float, overlap: Array,
    is_flat: bool, weight: float, curvature: float, p: Array, new: Array, logs: Array,
) -> tuple[float, float]:  # fmt: skip
    """Update the dual variables p (K,) of row i; s (K,) becomes its change of λW. Returns its gap and its gain.

    `new` (K,) and `logs` (K,) are scratch space.
    """
    if loss == MARGIN:
        return update_margin(s, margins[labels[i]], weight, curvature, overlap, is_flat, p, new)
    if loss == SQUARED:
        return update_squared(s, labels[i], margins, weight, curvature, p, new)
    own = offsets[i] if offsets.size > 0 else s[:0]
    return update_maxent(s, own, width, weight, curvature, p, new, logs)


@kernel
def add_to_intercept(
    R: Array, D: Array, moves: int, constant: float, alpha: float, starts: Array, nodes: Array,
    b: Array, balance: Array, rates: Array, residual: Array, slopes: Array, total: Array, by_node: Array,
) -> float:  # fmt: skip
    """Add the changes R and D (r, K) of a batch to the balance (M,) and the slopes (K,), and move b if it is time.

    Returns what the dual objective rises by: at the present b, or with b = b(p) if it jumps there. `total` (K,) and
    `by_node` (M,) are scratch space.
    """
    total[:] = 0.0
    for r in range(R.shape[0]):
        for k in range(R.shape[1]):
            total[k] += R[r, k]
    for r in range(D.shape[0]):
        for k in range(D.shape[1]):
            slopes[k] += D[r, k]
    class_to_node(total, starts, nodes, by_node)
    gain = 0.0
    for j in range(b.size):
        change = constant * by_node[j]
        balance[j] += change
        gain -= alpha * (b[j] * change + (0.5 * change * change if moves == JUMP else 0.0))
    if moves == JUMP:
        for j in range(b.size):
            b[j] = balance[j]
    elif moves == STEP:
        for k in range(total.size):  # P diag(slopes) Pᵀ is at most its row sums: it has no negative entries
            total[k] = slopes[k] * (starts[k + 1] - starts[k]) if nodes.size > 0 else slopes[k]
        class_to_node(total, starts, nodes, by_node)
        move_intercept(b, balance, rates, residual, by_node, constant * constant / alpha)
    return gain


@kernel
def sweep(
    order: Array, batches: Array, moves: Array, ends: Array, counters: Array,
    loss: int, labels: Array, margins: Array, offsets: Array, width: float, overlap: Array,
    kappa: Array, curvatures: Array, alpha: float,
    data: Array, indices: Array, spans: Array, constant: float, starts: Array, nodes: Array,
    W: Array, p: Array, gaps: Array, gains: Array, R: Array, D: Array, cuts: Array,
    b: Array, balance: Array, rates: Array, residual: Array, slopes: Array, work: Array, doubles: Array,
) -> None:  # fmt: skip
    """Update the rows of `order` (t,) in batches; every thread calls this with the same arguments.

    batches (g + 1,)  where batches begin and end in `order`
    moves (g,)        how b moves after each batch: STAY, STEP towards b(p) or JUMP there
    ends              columns (or nodes) of W in each piece of work
    counters          zeros, four for each batch: pieces of rows and of columns that are taken, and that are done
    curvatures (n,)   κ_i ‖x_i‖² / λ, or an upper bound on the curvature of a row
    gains (t + g,)    written: rise of the dual objective by each row, and by b in each batch, without ‖W‖²
    R, D (batch, K)   scratch space; D only if b moves in steps
    cuts (batch, ...) scratch space for where the parts of sparse rows begin and end
    b ... slopes      see `intercept`; unused without a constant
    work, doubles     scratch space of this thread, two rows of M numbers (or of K, if these are more) each
    """
    n_classes, n_parts, is_flat, is_dense = R.shape[1], ends.size - 1, nodes.size == 0, indices.size == 0
    by_node, new, logs = work[0, : n_nodes(indices, W)], work[1, :n_classes], doubles[0, :n_classes]
    n_tasks = n_parts + (constant != 0.0)
    for g in range(moves.size):
        first, c, n_rows = batches[g], 4 * g, batches[g + 1] - batches[g]
        rows, size = order[first : first + n_rows], max(1, min(MAX_ROWS, n_rows // PIECES))
        n_pieces = (n_rows + size - 1) // size
        while True:
            piece = take_next(counters, c)
            if piece >= n_pieces:
                break
            for r in range(size * piece, min(size * piece + size, n_rows)):
                i, s = rows[r], R[r]
                node_scores(i, data, indices, spans, 0.0, W, by_node)
                if constant != 0.0:
                    for j in range(by_node.size):
                        by_node[j] += constant * b[j]
                if D.size > 0:
                    label = labels[i] if labels.size > 0 else 0
                    D[r] = 0.0
                    add_compliance(loss, label, curvatures[i], width, -kappa[i], p[i], D[r])
                class_scores(by_node, starts, nodes, s)
                gap, gain = update_row(
                    loss, i, s, labels, margins, offsets, width, overlap, is_flat, kappa[i], curvatures[i], p[i],
                    new, logs,
                )  # fmt: skip
                if D.size > 0:
                    add_compliance(loss, label, curvatures[i], width, kappa[i], p[i], D[r])
                gaps[i], gains[first + r] = GAP_LEFT * gap, gain
                for k in range(s.size):
                    s[k] *= kappa[i] / alpha
                if not is_dense:
                    find_cuts_of_change(i, s, indices, spans, ends, cuts[r])
            take_next(counters, c + 1)
        wait_until(counters, c + 1, n_pieces)
        while True:
            part = take_next(counters, c + 2)
            if part >= n_tasks:
                break
            if part == n_parts:
                gains[order.size + g] = add_to_intercept(
                    R[:n_rows], D[:n_rows], moves[g], constant, alpha, starts, nodes,
                    b, balance, rates, residual, slopes, doubles[0, :n_classes], doubles[1, : b.size],
                )  # fmt: skip
            elif is_dense:
                add_dense_part(rows, data, spans, starts, nodes, R[:n_rows], ends[part], ends[part + 1], W, by_node)
            else:
                add_part(part, cuts[:n_rows], data, indices, starts, nodes, R[:n_rows], W, by_node)
            take_next(counters, c + 3)
        wait_until(counters, c + 3, n_tasks)
