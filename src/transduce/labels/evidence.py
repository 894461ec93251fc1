"""Scores and guesses as users pass them, read as one score for each row and class."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from transduce.arrays import Array
from transduce.contract import check_scores
from transduce.labels.classes import as_objects, class_names, sorted_names
from transduce.labels.missing import find_labeled
from transduce.labels.partial import is_partial
from transduce.taxonomy import Taxonomy


@dataclass(eq=False)
class EvidenceSource:
    """Scores (n, m) in the order of `names`; names are None if the columns of an array have none."""

    names: list[Any] | None
    scores: Array

    def names_for(self, labels: Array, class_prior: object, taxonomy: object) -> Sequence[Any]:
        """Names of the columns: their own; else those in the labels, sizes and taxonomy, sorted, or 0 to m − 1."""
        if self.names is None:
            tree = None if taxonomy is None else Taxonomy.create(taxonomy)
            found = class_names(as_objects(labels), tree)
            stated = [*class_prior] if isinstance(class_prior, Mapping) else []
            found = [*tree.labels] if tree is not None else [*dict.fromkeys([*found, *stated])]
            n_columns = self.scores.shape[1]
            if not found or (0 in found and {*found} <= {*range(n_columns)} and tree is None and not stated):
                found = [*range(n_columns)]
            if len(found) != n_columns:
                raise ValueError(
                    f"scores must have a column for each of the {len(found)} classes that y, class_prior and taxonomy "
                    f"name, but have {n_columns}. Pass a data frame whose columns are the names of the classes."
                )
            self.names = sorted_names(found)
        return self.names

    def in_order_of(self, classes: list[Any]) -> Array:
        """Scores (n, K) of all classes, NaN for those without a column."""
        assert self.names is not None
        position = {name: k for k, name in enumerate(classes)}
        inner = next((name for name in self.names if name not in position), None)
        if inner is not None:
            raise ValueError(
                f"scores and guesses must name classes, but {inner!r} is an inner node of the taxonomy. Name a class "
                "under it, or leave it out."
            )
        found = np.full((len(self.scores), len(classes)), np.nan)
        found[:, [position[name] for name in self.names]] = self.scores
        return found


def read_evidence(scores: Any, guesses: Any, n_rows: int, unlabeled: object) -> EvidenceSource | None:
    """Read scores (n, m), or guesses (n,) as scores of 1 for the class and 0 for others; None without either."""
    if scores is not None and guesses is not None:
        raise ValueError("scores and guesses cannot be combined. Pass one of them.")
    if scores is not None:
        return EvidenceSource(*check_scores(scores, n_rows))
    if guesses is None:
        return None
    values, known = find_labeled(guesses, unlabeled)
    if values.shape != (n_rows,):
        raise ValueError(f"guesses must have one entry for each of the {n_rows} rows, but have shape {values.shape}.")
    entries = as_objects(values)
    several = next((row for row in np.flatnonzero(known) if not _is_one_class(entries[row])), None)
    if several is not None:
        raise ValueError(
            f"guesses must name one class each, but row {several} has {entries[several]!r}. Leave out guesses of "
            "several classes."
        )
    names = sorted_names([*{entries[row] for row in np.flatnonzero(known)}])
    if len(names) < 2:
        raise ValueError(f"guesses must name two or more classes, but name {len(names)}. Leave them out.")
    index, one_hot = {name: k for k, name in enumerate(names)}, np.full((n_rows, len(names)), np.nan)
    one_hot[known] = np.eye(len(names))[[index[entries[row]] for row in np.flatnonzero(known)]]
    return EvidenceSource(names, one_hot)


def _is_one_class(entry: Any) -> bool:
    try:
        hash(entry)
    except TypeError:
        return False
    return not is_partial(entry)
