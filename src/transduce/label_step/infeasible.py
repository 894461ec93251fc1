"""Why counts cannot be met: the classes that forbidden labels cut off, by name and number (Hall's condition).

What falls short is found once, as flags and figures; `Words` make a sentence of it, by number for `solve_labels`, by
name and in the user's terms for an estimator.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from transduce.class_prior.bounds import Groups
from transduce.label_step.problem import IntArray, LabelProblem
from transduce.suggest import name_list

Flags: TypeAlias = NDArray[np.bool_]

_NAMED = 10


@dataclass(frozen=True)
class Words:
    """How to speak of counts: names of classes and groups, none for their numbers, and the terms of whoever asks."""

    classes: tuple[Any, ...] = ()
    groups: tuple[str, ...] = ()
    opening: str = "the counts cannot be met"
    allow: str = "Forbid fewer labels"
    sizes: str = "counts"

    def of(self, chosen: Flags, n_classes: int) -> str:
        """Classes, then groups, that are chosen among them all."""
        kinds = (("class", "classes", self.classes, chosen[:n_classes]), self._groups(chosen[n_classes:]))
        return " and ".join(_listed(*kind) for kind in kinds if kind[-1].any())

    def _groups(self, chosen: Flags) -> tuple[str, str, tuple[Any, ...], Flags]:
        one, many = ("branch", "branches") if self.groups else ("group", "groups")
        return one, many, self.groups, chosen


BY_NUMBER = Words()


@dataclass(frozen=True, eq=False)
class Shortfall:
    """Nodes (K+G,) that must get rows and how many; nodes that these could come from, and how many they are."""

    kind: str
    n_classes: int
    needing: Flags
    needed: int
    holding: Flags
    held: int
    feeding: Flags
    fed: int = 0

    def sentence(self, words: Words = BY_NUMBER) -> str:
        """What falls short, and what to do."""
        return f"{words.opening}: {getattr(self, f'_{self.kind}')(words)}"

    def _short(self, words: Words) -> str:
        """Too few rows for some classes."""
        it = "it" if self.needing.sum() == 1 else "one of them"
        return (
            f"{words.of(self.needing, self.n_classes)} must get {self.needed} rows, but the rows allowed to take {it} "
            f"are {self.held}, {self.needed - self.held} too few. {words.allow}, or lower the {words.sizes}."
        )

    def _full(self, words: Words) -> str:
        """Too little room for some rows."""
        return (
            f"{self.held} rows are allowed to take {words.of(self.holding, self.n_classes)} only, with room for at "
            f"most {self.fed}, {self.held - self.fed} too few. {words.allow}, or raise the high {words.sizes}."
        )

    def _groups_short(self, words: Words) -> str:
        """Too few rows for some classes and groups."""
        rows = (
            [f"the rows allowed to take {words.of(self.holding, self.n_classes)} are {self.held}"]
            if self.holding.any()
            else []
        )
        reasons = " and ".join(rows + [self._limit(words)] * bool(self.feeding.any()))
        those = words.of(self.needing, self.n_classes)
        return f"{those} must get {self.needed} rows, but {reasons}. {words.allow}, or widen these {words.sizes}."

    def _groups_full(self, words: Words) -> str:
        """Classes outside hold more than their bounds let through."""
        those = words.of(self.needing, self.n_classes)
        demand = f", and {those} must get {self.needed} others" if self.needed else ""
        return (
            f"{self.held} rows are allowed to take {words.of(self.holding, self.n_classes)} only{demand}, but "
            f"{self._limit(words)}. {words.allow}, or widen these {words.sizes}."
        )

    def _limit(self, words: Words) -> str:
        return f"{words.of(self.feeding, self.n_classes)} may get at most {self.fed}"


class InfeasibleError(ValueError):
    """Counts that forbidden labels make impossible."""

    def __init__(self, message: str, shortfall: Shortfall | None = None) -> None:
        super().__init__(message)
        self.shortfall = shortfall


def in_users_words(error: InfeasibleError, classes: NDArray[Any], groups: Groups | None) -> InfeasibleError:
    """The same for those who gave names, a class_prior and partial labels."""
    if error.shortfall is None:
        return error
    words = Words(
        tuple(classes.tolist()),
        () if groups is None else groups.names,
        "class_prior cannot be met beside the partial labels in y",
        "Leave more classes open in y",
        "sizes in class_prior",
    )
    return InfeasibleError(error.shortfall.sentence(words), error.shortfall)


def explain_infeasible(problem: LabelProblem, labels: IntArray, excess: IntArray, flow: IntArray) -> InfeasibleError:
    """Say in one sentence which classes fall short, given labels from which no further row can be moved."""
    shortfall = find_shortfall(problem, labels, excess, flow)
    return InfeasibleError(shortfall.sentence(), shortfall)


def find_shortfall(problem: LabelProblem, labels: IntArray, excess: IntArray, flow: IntArray) -> Shortfall:
    """Find the classes that fall short, given labels from which no further row can be moved.

    Classes that rows in excess can reach keep their rows: nothing outside is allowed for them. Classes from which one
    that lacks rows can be reached hold every row that is allowed there. So either the first have too little room, or
    the second too few rows.
    """
    allowed = steps(problem, labels, flow)
    if problem.nodes.n_groups:
        return _with_groups(problem, labels, closure(allowed.T, excess < 0))
    tally, none = problem.tally(labels), np.zeros(problem.n_classes, bool)
    full = closure(allowed, excess > 0)
    if full[-1] or problem.exact_counts:
        short = closure(allowed.T, excess < 0)[:-1]
        needed, had = int(problem.low[short].sum()), int(tally[short].sum())
        return Shortfall("short", problem.n_classes, short & (problem.low > 0), needed, short, had, none)
    full = full[:-1]
    room, had = int(problem.high[full].sum()), int(tally[full].sum())
    return Shortfall("full", problem.n_classes, none, 0, full, had, full, room)


def _with_groups(problem: LabelProblem, labels: IntArray, short: Flags) -> Shortfall:
    """The same of nodes from which one that lacks rows can be reached.

    Those of them whose node above is not one need their low counts. Rows come to them from the rows that hold their
    classes, and from nodes outside whose node above is inside, which are at their high counts.
    """
    nodes, n_classes = problem.nodes, problem.n_classes
    inside, over = short[:-1], short[nodes.above]
    needing, feeding = inside & ~over & (nodes.low > 0), ~inside & over
    needed, fed = int(nodes.low[needing].sum()), int(nodes.high[feeding].sum())
    held = int(problem.tally(labels)[inside[:n_classes]].sum())
    if short[-1]:  # all rows lack some: classes outside hold more than their bounds let through
        kind, holding, held = "groups_full", ~inside[:n_classes], problem.n_rows - held
    else:
        kind, holding = "groups_short", inside[:n_classes]
    return Shortfall(kind, n_classes, needing, needed, holding, held, feeding, fed)


def steps(problem: LabelProblem, labels: IntArray, flow: IntArray) -> Flags:
    """Whether a row can be passed from one node to another (N+1, N+1), given these labels; all rows come last."""
    n, nodes = problem.n_classes, problem.nodes
    allowed = np.zeros((nodes.above.size + 1, nodes.above.size + 1), bool)
    for part, block in problem.blocks():
        np.logical_or.at(allowed[:, :n], labels[part], block < np.inf)
    parts = np.arange(nodes.above.size)
    allowed[parts, nodes.above] = flow < nodes.high - nodes.low
    allowed[nodes.above, parts] = flow > 0
    return allowed


def closure(allowed: Flags, seeds: Flags) -> Flags:
    """All nodes that can be reached from the seeds (N+1,) by allowed steps, the seeds among them."""
    reached = seeds
    while True:
        wider = reached | allowed[reached].any(axis=0)
        if np.array_equal(wider, reached):
            return reached
        reached = wider


def _listed(one: str, many: str, names: tuple[Any, ...], chosen: Flags) -> str:
    """Those chosen, by name or by number: class 1; 'tea', 'milk' and 3 more."""
    found = [repr(names[k]) if names else str(k) for k in np.flatnonzero(chosen)]
    speaking = one == "class" and bool(names) and all(isinstance(name, str) for name in names)
    kind = "" if speaking else f"{one} " if len(found) == 1 else f"{many} "
    return f"{kind}{name_list(found, _NAMED, quote=False)}"
