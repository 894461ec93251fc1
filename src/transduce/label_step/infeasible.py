"""Why counts cannot be met: the classes that forbidden labels cut off (Hall's condition).

If no further row can be moved, take the set of all nodes from which one that lacks rows can be reached. Every row that
is allowed inside the set is there already. So the set has too few rows, or the classes outside it have too many.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.class_prior.groups import Groups
from transduce.errors import Record
from transduce.label_step.count_tree import Imbalance
from transduce.label_step.problem import LabelProblem
from transduce.label_step.row_blocks import BoolArray, IntArray
from transduce.suggest import name_list


@dataclass(frozen=True)
class NodeNames:
    """Classes and groups that a sentence lists: by number, or by name where `named`."""

    classes: tuple[Any, ...] = ()
    groups: tuple[Any, ...] = ()
    named: bool = False

    def with_names(self, classes: Sequence[Any], groups: Sequence[Any]) -> "NodeNames":
        """The same by name."""
        return NodeNames(tuple(classes[k] for k in self.classes), tuple(groups[g] for g in self.groups), named=True)

    def __bool__(self) -> bool:
        return bool(self.classes or self.groups)

    def __str__(self) -> str:
        kind = "class" if len(self.classes) == 1 else "classes"
        kind = "" if self.named and all(isinstance(name, str) for name in self.classes) else f"{kind} "
        above = ("branch", "branches") if self.named else ("group", "groups")
        listed = [f"{kind}{name_list(self.classes)}"] if self.classes else []
        listed += [f"{above[len(self.groups) > 1]} {name_list(self.groups)}"] if self.groups else []
        return " and ".join(listed)


class InfeasibleKind(Enum):
    """Why counts cannot be met; the value is the sentence for Python users."""

    TOO_FEW_ROWS = (
        "{opening}: {needing} must get {needed}, but {limits}, {gap} too few. {allow}, or widen these {sizes}."
    )
    TOO_MANY_ROWS = (
        "{opening}: {held} may take {holding} only{others}, but {limits}, {gap} too many. {allow}, or widen these "
        "{sizes}."
    )


COUNTS = {"opening": "the counts cannot be met", "allow": "Forbid fewer labels", "sizes": "counts"}
CLASS_PRIOR = {
    "opening": "class_prior and the partial labels in y cannot both be met",
    "allow": "Allow more classes in the partial labels",
    "sizes": "sizes in class_prior",
}


class InfeasibleError(Record, ValueError):
    """Counts that forbidden labels make impossible.

    Fields: NodeNames `needing` must get `needed` rows; only `held` rows may take `holding`, or nothing else; `limiting`
    may get at most `limit` rows. `opening`, `allow` and `sizes` are how the caller speaks of the constraints.
    """

    def __str__(self) -> str:
        too_few = self.kind is InfeasibleKind.TOO_FEW_ROWS
        limits = [f"{self.limiting} may get at most {self.limit}"] if self.limiting else []
        if too_few and self.holding:
            pronoun = "it" if len(self.needing.classes) == 1 else "them"
            holding = pronoun if self.holding == self.needing else self.holding
            limits = [f"{f'only {_rows(self.held)}' if self.held else 'no row'} may take {holding}", *limits]
        texts = {
            "needed": _rows(self.needed),
            "held": _rows(self.held),
            "limits": " and ".join(limits),
            "others": f", and {self.needing} must get {self.needed} others" if self.needed else "",
            "gap": self.needed - self.held - self.limit if too_few else self.held + self.needed - self.limit,
        }
        return str(self.kind.value).format_map(self.fields | texts)

    def with_names(self, classes: NDArray[Any], groups: Groups | None) -> "InfeasibleError":
        """Return the same error in terms of class names, class_prior and partial labels.

        Parameters
        ----------
        classes : ndarray of shape (K,)
            Names of the classes.
        groups : Groups or None
            Groups of classes with their names.
        """
        names = classes.tolist(), () if groups is None else groups.names or range(groups.n_groups)
        nodes = {key: own.with_names(*names) for key, own in self.fields.items() if isinstance(own, NodeNames)}
        return InfeasibleError(self.kind, **(self.fields | nodes | CLASS_PRIOR))


def _rows(n: int) -> str:
    return "1 row" if n == 1 else f"{n} rows"


def explain_infeasible(now: Imbalance, tally: IntArray, allowed: BoolArray) -> InfeasibleError:
    """Find the classes that fall short, given counts (K,) of labels from which no further row can be moved.

    Of the nodes in the set, those whose node above is not in it need their low counts. Rows come to them from the rows
    that hold their classes, and from nodes outside whose node above is inside, which are at their high counts.
    """
    tree, K, deficient = now.tree, now.tree.n_classes, _closure(_steps(now, allowed).T, now.excess < 0)
    inside, over = deficient[:-1], deficient[tree.above]
    needing, limiting, holding = inside & ~over & (tree.low > 0), ~inside & over, inside[:K]
    fields = {"needed": int(tree.low[needing].sum()), "limit": int(tree.high[limiting].sum())}
    kind, held = InfeasibleKind.TOO_FEW_ROWS, int(tally[holding].sum())
    if deficient[-1]:  # classes outside hold more than their bounds let through
        kind, holding, held = InfeasibleKind.TOO_MANY_ROWS, ~holding, tree.n_rows - held
    names = {
        name: NodeNames(tuple(np.flatnonzero(flags[:K]).tolist()), tuple(np.flatnonzero(flags[K:]).tolist()))
        for name, flags in (("needing", needing), ("holding", holding), ("limiting", limiting))
    }
    return InfeasibleError(kind, held=held, **names, **fields, **COUNTS)


def can_move_more(now: Imbalance, allowed: BoolArray) -> bool:
    """Whether rows in excess can reach a node that lacks some."""
    return bool(np.any(_closure(_steps(now, allowed), now.excess > 0) & (now.excess < 0)))


def allowed_moves(problem: LabelProblem, labels: IntArray) -> BoolArray:
    """Whether some row of a class may take the label of another (K, K)."""
    allowed = np.zeros((problem.n_classes, problem.n_classes), bool)
    for rows, costs in problem.blocks():
        np.logical_or.at(allowed, labels[rows], costs < np.inf)
    return allowed


def _steps(now: Imbalance, allowed: BoolArray) -> BoolArray:
    """Whether a row can be passed from one node to another (N+1, N+1); all rows come last."""
    tree, nodes = now.tree, np.arange(now.flow.size)
    steps = np.zeros((nodes.size + 1, nodes.size + 1), bool)
    steps[: tree.n_classes, : tree.n_classes] = allowed
    steps[nodes, tree.above] = now.flow < tree.high - tree.low
    steps[tree.above, nodes] = now.flow > 0
    return steps


def _closure(steps: BoolArray, seeds: BoolArray) -> BoolArray:
    """All nodes that can be reached from the seeds (N+1,), and the seeds."""
    reached = seeds
    while True:
        wider = reached | steps[reached].any(axis=0)
        if np.array_equal(wider, reached):
            return reached
        reached = wider
