"""Why counts cannot be met: the classes that forbidden labels cut off, by name and number (Hall's condition)."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from transduce.label_step.problem import IntArray, LabelProblem

Flags: TypeAlias = NDArray[np.bool_]

_NAMED = 10


def explain_infeasible(problem: LabelProblem, labels: IntArray, excess: IntArray, flow: IntArray) -> str:
    """Say in one sentence which classes fall short, given labels from which no further row can be moved.

    Classes that rows in excess can reach keep their rows: nothing outside is allowed for them. Classes from which one
    that lacks rows can be reached hold every row that is allowed there. So either the first have too little room, or
    the second too few rows.
    """
    steps = _steps(problem, labels, flow)
    if problem.nodes.n_groups:
        return _with_groups(problem, labels, _closure(steps.T, excess < 0))
    tally = problem.tally(labels)
    full = _closure(steps, excess > 0)
    if full[-1] or problem.exact_counts:
        short = _closure(steps.T, excess < 0)[:-1]
        needed, had = int(problem.low[short].sum()), int(tally[short].sum())
        wanted = short & (problem.low > 0)
        return (
            f"the counts cannot be met: {_names(wanted)} must get {needed} rows, but the rows allowed to take "
            f"{'it' if wanted.sum() == 1 else 'one of them'} are {had}, {needed - had} too few. "
            "Forbid fewer labels, or lower the counts."
        )
    full = full[:-1]
    room, had = int(problem.high[full].sum()), int(tally[full].sum())
    return (
        f"the counts cannot be met: {had} rows are allowed to take {_names(full)} only, with room for at most {room}, "
        f"{had - room} too few. Forbid fewer labels, or raise the high counts."
    )


def _with_groups(problem: LabelProblem, labels: IntArray, short: Flags) -> str:
    """The same of nodes from which one that lacks rows can be reached.

    Those of them whose node above is not one need their low counts. Rows come to them from the rows that hold their
    classes, and from nodes outside whose node above is inside, which are at their high counts.
    """
    nodes, n_classes = problem.nodes, problem.n_classes
    inside, over = short[:-1], short[nodes.above]
    needing, feeding = inside & ~over & (nodes.low > 0), ~inside & over
    needed, fed = int(nodes.low[needing].sum()), int(nodes.high[feeding].sum())
    held = int(problem.tally(labels)[inside[:n_classes]].sum())
    those, limit = _node_names(needing, n_classes), f"{_node_names(feeding, n_classes)} may get at most {fed}"
    if short[-1]:  # all rows lack some: classes outside hold more than their bounds let through
        demand = f", and {those} must get {needed} others" if needed else ""
        reason = (
            f"{problem.n_rows - held} rows are allowed to take {_names(~inside[:n_classes])} only{demand}, but {limit}"
        )
    else:
        rows = [f"the rows allowed to take {_names(inside[:n_classes])} are {held}"] if inside[:n_classes].any() else []
        reason = f"{those} must get {needed} rows, but {' and '.join(rows + [limit] * bool(feeding.any()))}"
    return f"the counts cannot be met: {reason}. Forbid fewer labels, or widen these counts."


def _node_names(chosen: Flags, n_classes: int) -> str:
    """Classes and groups by number."""
    classes, groups = chosen[:n_classes], chosen[n_classes:]
    kinds = [_names(classes)] if classes.any() else []
    return " and ".join([*kinds, _names(groups, "group", "groups")] if groups.any() else kinds)


def _steps(problem: LabelProblem, labels: IntArray, flow: IntArray) -> Flags:
    """Whether a row can be passed from one node to another; all rows come last."""
    n, nodes = problem.n_classes, problem.nodes
    steps = np.zeros((nodes.above.size + 1, nodes.above.size + 1), bool)
    for part, block in problem.blocks():
        np.logical_or.at(steps[:, :n], labels[part], block < np.inf)
    parts = np.arange(nodes.above.size)
    steps[parts, nodes.above] = flow < nodes.high - nodes.low
    steps[nodes.above, parts] = flow > 0
    return steps


def _closure(steps: Flags, seeds: Flags) -> Flags:
    """Everything that can be reached from the seeds."""
    reached = seeds
    while True:
        wider = reached | steps[reached].any(axis=0)
        if np.array_equal(wider, reached):
            return reached
        reached = wider


def _names(chosen: Flags, one: str = "class", many: str = "classes") -> str:
    names = [str(k) for k in np.flatnonzero(chosen)]
    if len(names) == 1:
        return f"{one} {names[0]}"
    if len(names) > _NAMED:
        return f"{many} {', '.join(names[:_NAMED])} and {len(names) - _NAMED} more"
    return f"{many} {', '.join(names[:-1])} and {names[-1]}"
