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


def _steps(problem: LabelProblem, labels: IntArray, flow: IntArray) -> Flags:
    """Whether a row can be passed from one class to another; the pool comes last."""
    n = problem.n_classes
    steps = np.zeros((n + 1, n + 1), bool)
    for part, block in problem.blocks():
        np.logical_or.at(steps[:, :n], labels[part], block < np.inf)
    steps[:n, n] = flow < problem.high - problem.low
    steps[n, :n] = flow > 0
    return steps


def _closure(steps: Flags, seeds: Flags) -> Flags:
    """Everything that can be reached from the seeds."""
    reached = seeds
    while True:
        wider = reached | steps[reached].any(axis=0)
        if np.array_equal(wider, reached):
            return reached
        reached = wider


def _names(chosen: Flags) -> str:
    names = [str(k) for k in np.flatnonzero(chosen)]
    if len(names) == 1:
        return f"class {names[0]}"
    if len(names) > _NAMED:
        return f"classes {', '.join(names[:_NAMED])} and {len(names) - _NAMED} more"
    return f"classes {', '.join(names[:-1])} and {names[-1]}"
