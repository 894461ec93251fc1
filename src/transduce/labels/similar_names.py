"""Warnings about names in y and class_prior that may be mistakes: misspellings, and inner nodes taken for classes."""

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from numpy.typing import NDArray

from transduce.errors import LabelWarning, LabelWarningKind, user_stacklevel
from transduce.labels.classes import as_objects
from transduce.labels.partial import RuledOut, names_in
from transduce.suggest import find_misspelled

Array = NDArray[Any]

_MOST_NAMES = 100
"""At most so many names without full labels are compared with others."""


def warn_similar_names(values: Array, labeled: Array, class_prior: object) -> None:
    """Without a taxonomy, warn of names without full labels that resemble a labelled one, and of inner nodes."""
    full: dict[Any, None] = {}
    in_sets: dict[Any, None] = {}
    for entry in as_objects(values[labeled]):
        if not isinstance(entry, RuledOut):
            (in_sets if len(names_in(entry)) > 1 else full).update(dict.fromkeys(names_in(entry)))
    stated = dict.fromkeys(class_prior) if isinstance(class_prior, Mapping) else {}
    for name in sorted((name for name in in_sets | stated if name not in full), key=repr)[:_MOST_NAMES]:
        near = find_misspelled(name, full)
        if near is not None:
            kind = LabelWarningKind.SIMILAR_IN_Y if name in in_sets else LabelWarningKind.SIMILAR_IN_PRIOR
            warnings.warn(LabelWarning(kind, name=name, near=near), stacklevel=user_stacklevel() - 1)
    warn_inner_nodes([*full, *in_sets])


def warn_inner_nodes(names: Iterable[Any]) -> None:
    """Without a taxonomy, warn if a label such as "hot" stands beside "hot/tea", once."""
    paths = {tuple(name.split("/")) if isinstance(name, str) else name: name for name in names}
    paths = {path: name for path, name in paths.items() if isinstance(path, tuple)}
    above = {path[:k]: name for path, name in paths.items() for k in range(1, len(path))}
    inner = next((path for path in paths if path in above), None)
    if inner is not None:
        warning = LabelWarning(LabelWarningKind.INNER_NODE, name=paths[inner], near=above[inner])
        warnings.warn(warning, stacklevel=user_stacklevel() - 1)
