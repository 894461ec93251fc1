"""Why counts cannot be met: the classes that forbidden labels cut off (Hall's condition).

Given labels from which no further row can be moved, let a set of classes be all those that rows in excess can reach, or
all those from which a class that lacks rows can be reached. In the first case no row of the set is allowed outside it,
and in the second every row that is allowed inside is there already. So either the set has too little capacity, or too
few rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.class_prior.bounds import Groups
from transduce.errors import Record
from transduce.label_step.count_tree import CountTree
from transduce.label_step.problem import LabelProblem
from transduce.label_step.row_blocks import BoolArray, IntArray
from transduce.suggest import name_list


@dataclass(frozen=True)
class NodeNames:
    """Classes and groups that a sentence lists: by number, or by name where `named`.

    >>> f"{NodeNames((0, 2), (1,))} must get 5 rows."
    'classes 0 and 2 and group 1 must get 5 rows.'
    """

    classes: tuple[Any, ...] = ()
    groups: tuple[Any, ...] = ()
    named: bool = False

    def with_names(self, classes: Sequence[Any], groups: Sequence[Any]) -> "NodeNames":
        """The same by name."""
        return NodeNames(tuple(classes[k] for k in self.classes), tuple(groups[g] for g in self.groups), named=True)

    def __format__(self, spec: str) -> str:
        kind = "class" if len(self.classes) == 1 else "classes"
        kind = "" if self.named and all(isinstance(name, str) for name in self.classes) else f"{kind} "
        above = ("branch", "branches") if self.named else ("group", "groups")
        listed = [f"{kind}{name_list(self.classes)}"] if self.classes else []
        listed += [f"{above[len(self.groups) > 1]} {name_list(self.groups)}"] if self.groups else []
        return " and ".join(listed)


class InfeasibleKind(Enum):
    """Why counts cannot be met; the value is the sentence for Python users.

    Fields: `needing`, `holding` and `limiting` are NodeNames; `needed` rows must go to the first, the rows allowed to
    take the second are `held`, and the third may get `limit` rows at most; `missing` is the number of rows, or places,
    that lack. `opening`, `allow` and `sizes` are how the caller speaks of the constraints.
    """

    TOO_FEW_ROWS = (
        "{opening}: {needing} must get {needed} rows, but the rows allowed to take {pronoun} are {held}, {missing} too "
        "few. {allow}, or lower the {sizes}."
    )
    TOO_LITTLE_ROOM = (
        "{opening}: {held} rows are allowed to take {holding} only, with room for at most {limit}, {missing} too few. "
        "{allow}, or raise the high {sizes}."
    )
    GROUP_TOO_FEW_ROWS = (
        "{opening}: {needing} must get {needed} rows, but the rows allowed to take {holding} are {held}. "
        "{allow}, or widen these {sizes}."
    )
    GROUP_LIMITED = (
        "{opening}: {needing} must get {needed} rows, but {limiting} may get at most {limit}. "
        "{allow}, or widen these {sizes}."
    )
    GROUP_TOO_FEW_ROWS_AND_LIMITED = (
        "{opening}: {needing} must get {needed} rows, but the rows allowed to take {holding} are {held} and {limiting} "
        "may get at most {limit}. {allow}, or widen these {sizes}."
    )
    GROUP_TOO_LITTLE_ROOM = (
        "{opening}: {held} rows are allowed to take {holding} only, but {limiting} may get at most {limit}. "
        "{allow}, or widen these {sizes}."
    )
    GROUP_TOO_LITTLE_ROOM_AND_NEEDED = (
        "{opening}: {held} rows are allowed to take {holding} only, and {needing} must get {needed} others, but "
        "{limiting} may get at most {limit}. {allow}, or widen these {sizes}."
    )


COUNTS = {"opening": "the counts cannot be met", "allow": "Forbid fewer labels", "sizes": "counts"}
CLASS_PRIOR = {
    "opening": "class_prior cannot be met beside the partial labels in y",
    "allow": "Leave more classes open in y",
    "sizes": "sizes in class_prior",
}


class InfeasibleError(Record, ValueError):
    """Counts that forbidden labels make impossible; `kind` and `fields` say why."""

    def with_names(self, classes: NDArray[Any], groups: Groups | None) -> "InfeasibleError":
        """The same for someone who gave class names, a class_prior and partial labels."""
        names = classes.tolist(), () if groups is None else groups.names or range(groups.n_groups)
        fields = {
            name: own.with_names(*names) if isinstance(own, NodeNames) else own for name, own in self.fields.items()
        }
        return InfeasibleError(self.kind, **(fields | CLASS_PRIOR))


def explain_infeasible(
    tree: CountTree, tally: IntArray, allowed: BoolArray, excess: IntArray, flow: IntArray
) -> InfeasibleError:
    """Find the classes that fall short, given counts (K,) of labels from which no further row can be moved.

    allowed  (K, K) whether a row of a class may move to another
    """
    steps = _steps(tree, allowed, flow)
    lacking = _closure(steps.T, excess < 0)
    if tree.n_groups:
        return _explain_groups(tree, tally, lacking)
    full = _closure(steps, excess > 0)
    if full[-1] or tree.exact:
        short = lacking[:-1]
        needing, needed, held = short & (tree.low > 0), int(tree.low[short].sum()), int(tally[short].sum())
        return _error(InfeasibleKind.TOO_FEW_ROWS, tree, needing, needed, short, held, missing=needed - held)
    full = full[:-1]
    held, limit = int(tally[full].sum()), int(tree.high[full].sum())
    return _error(InfeasibleKind.TOO_LITTLE_ROOM, tree, ~full & full, 0, full, held, full, limit, held - limit)


def _explain_groups(tree: CountTree, tally: IntArray, lacking: BoolArray) -> InfeasibleError:
    """The same with groups, from the nodes from which one that lacks rows can be reached.

    Those of them whose node above is not one need their low counts. Rows come to them from the rows that hold their
    classes, and from nodes outside whose node above is inside, which are at their high counts.
    """
    K, inside, over = tree.n_classes, lacking[:-1], lacking[tree.above]
    needing, limiting = inside & ~over & (tree.low > 0), ~inside & over
    needed, limit = int(tree.low[needing].sum()), int(tree.high[limiting].sum())
    holding, held = inside[:K], int(tally[inside[:K]].sum())
    if lacking[-1]:  # classes outside hold more than their bounds let through
        kind = InfeasibleKind.GROUP_TOO_LITTLE_ROOM_AND_NEEDED if needed else InfeasibleKind.GROUP_TOO_LITTLE_ROOM
        return _error(kind, tree, needing, needed, ~holding, tree.n_rows - held, limiting, limit)
    kind = InfeasibleKind.GROUP_TOO_FEW_ROWS_AND_LIMITED if holding.any() else InfeasibleKind.GROUP_LIMITED
    kind = kind if limiting.any() else InfeasibleKind.GROUP_TOO_FEW_ROWS
    return _error(kind, tree, needing, needed, holding, held, limiting, limit)


def _error(
    kind: InfeasibleKind,
    tree: CountTree,
    needing: BoolArray,
    needed: int,
    holding: BoolArray,
    held: int,
    limiting: BoolArray | None = None,
    limit: int = 0,
    missing: int = 0,
) -> InfeasibleError:
    """Name the nodes that are flagged."""
    fields: dict[str, Any] = {"needed": needed, "held": held, "limit": limit, "missing": missing}
    for name, flags in (("needing", needing), ("holding", holding), ("limiting", limiting)):
        nodes = np.flatnonzero(flags if flags is not None else ())
        classes, groups = nodes[nodes < tree.n_classes], nodes[nodes >= tree.n_classes] - tree.n_classes
        fields[name] = NodeNames(tuple(classes.tolist()), tuple(groups.tolist()))
    pronoun = "it" if np.count_nonzero(needing) == 1 else "one of them"
    return InfeasibleError(kind, **fields, pronoun=pronoun, **COUNTS)


def can_move_more(tree: CountTree, allowed: BoolArray, excess: IntArray, flow: IntArray) -> bool:
    """Whether rows in excess can reach a node that lacks some."""
    return bool(np.any(_closure(_steps(tree, allowed, flow), excess > 0) & (excess < 0)))


def allowed_moves(problem: LabelProblem, labels: IntArray) -> BoolArray:
    """Whether some row of a class may take the label of another (K, K)."""
    allowed = np.zeros((problem.n_classes, problem.n_classes), bool)
    for rows, costs in problem.blocks():
        np.logical_or.at(allowed, labels[rows], costs < np.inf)
    return allowed


def _steps(tree: CountTree, allowed: BoolArray, flow: IntArray) -> BoolArray:
    """Whether a row can be passed from one node to another (N+1, N+1); all rows come last."""
    steps = np.zeros((tree.above.size + 1, tree.above.size + 1), bool)
    steps[: tree.n_classes, : tree.n_classes] = allowed
    nodes = np.arange(tree.above.size)
    steps[nodes, tree.above] = flow < tree.high - tree.low
    steps[tree.above, nodes] = flow > 0
    return steps


def _closure(steps: BoolArray, seeds: BoolArray) -> BoolArray:
    """All nodes that can be reached from the seeds (N+1,), and the seeds."""
    reached = seeds
    while True:
        wider = reached | steps[reached].any(axis=0)
        if np.array_equal(wider, reached):
            return reached
        reached = wider
