"""Hints of a review: what class names, or guesses such as those of a language model, say about its documents."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from transduce.arrays import Array
from transduce.evidence import NamedScores
from transduce.reviewing.state import ReviewState


@dataclass(frozen=True, eq=False)
class Hints:
    """Scores of named classes (n, K), a guess for each document (n,), "" without one, or nothing.

    Classes are called as they were when the review began; hints follow them when they are renamed or merged.
    """

    scores: NamedScores | None = None
    guesses: Array | None = None

    @cached_property
    def names(self) -> list[str]:
        """Classes that the hints name."""
        return [*self.scores.columns] if self.scores is not None else [name for name in self._coded[0] if name]

    @cached_property
    def _coded(self) -> tuple[list[str], Array]:
        if self.guesses is None:
            return [], np.zeros(0, np.int64)
        names, number = np.unique(self.guesses.astype(str), return_inverse=True)
        return names.tolist(), number

    def guesses_now(self, state: ReviewState, rows: Any = slice(None)) -> Any:
        """Guesses (n,) under the present names of the classes, or those of some rows, or that of a row."""
        names, number = self._coded
        return np.array([name and state.name_now(name) for name in names], object)[number[rows]]

    def arguments(self, state: ReviewState, leaves: Sequence[str]) -> dict[str, Any]:
        """Arguments of a fit about classes that are leaves; none if there are fewer than two.

        >>> hints = Hints(NamedScores(["tea", "milk", "rum"], np.array([[0.1, 0.2, 0.3]])))
        >>> state = ReviewState(1, None, hints.names)
        >>> _ = state.apply({"op": "merge_class", "name": "milk", "into": "tea"})
        >>> hints.arguments(state, ["tea", "rum"])["scores"].values.tolist()
        [[0.2, 0.3]]
        """
        if self.scores is None:
            found = self.guesses_now(state)
            found = np.where(np.isin(found, list(leaves)), found, "")
            return {"guesses": found} if len({*found.tolist()} - {""}) > 1 else {}
        now = [state.name_now(name) for name in self.scores.columns]
        kept = [name for name in dict.fromkeys(now) if name in leaves]
        best = [self.scores.values[:, [other == name for other in now]].max(axis=1) for name in kept]
        return {"scores": NamedScores(kept, np.stack(best, axis=1))} if len(kept) > 1 else {}


NO_HINTS = Hints()


def rows_of(evidence: Mapping[str, Any], rows: Array) -> dict[str, Any]:
    """Select rows of the arguments of a fit."""
    return {
        name: NamedScores(value.columns, value.values[rows]) if isinstance(value, NamedScores) else value[rows]
        for name, value in evidence.items()
    }
