"""Labels of sequences as users write them, encoded as the labels that each token may have.

y has an entry for each sequence: None if nothing is known, or one for each token: a label; None, NaN, -1 or "" if it is
unknown; a set of candidates; or `RuledOut` labels.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transduce.arrays import Array, FloatArray, IntArray, object_array
from transduce.errors import InputError
from transduce.labels.classes import sorted_names
from transduce.labels.missing import is_missing
from transduce.labels.partial import RuledOut, is_partial, names_in
from transduce.sequences.automaton import Rules
from transduce.sequences.chains import Bias
from transduce.sequences.constraints import Pattern
from transduce.suggest import did_you_mean, name_list, number_of


class EncodedLabels(NamedTuple):
    """Names of the labels (K,), which of them each token may have, and the label (N,) of each, −1 if not known."""

    classes: Array
    allowed: Bias
    codes: IntArray


def encode_labels(y: Sequence[Any], lengths: IntArray, more: Iterable[Any] = ()) -> EncodedLabels:
    """Encode the labels of sequences with these lengths (n,); `more` are labels that y need not have.

    >>> encoded = encode_labels([["a", None, {"a", "b"}], None], np.array([3, 2]))
    >>> encoded.classes.tolist(), encoded.codes.tolist()
    (['a', 'b'], [0, -1, -1, -1, -1])
    """
    entries = _entries(y, lengths)
    names: dict[Any, None] = {}
    for entry in entries:
        if not isinstance(entry, RuledOut):
            names.update(dict.fromkeys(names_in(entry) if is_partial(entry) else () if entry is None else (entry,)))
    for name in (each for each in more if each not in names):
        hint = did_you_mean(name, set(names).difference(more))
        if hint:
            raise InputError(f"label_prior states a size for {name!r}, which y does not have.{hint} Correct it.")
    classes = object_array(sorted_names(list(dict.fromkeys([*names, *more]))))
    if len(classes) < 2:
        found = f"only {classes[0]!r}" if len(classes) else "no label"
        raise InputError(f"y must have at least two labels, but has {found}. Label a few sequences.")
    return _encoded(entries, classes)


def encode_known(y: Sequence[Any], lengths: IntArray, classes: Array) -> EncodedLabels:
    """Encode labels of a fitted tagger; raises InputError for one that it does not have.

    >>> encode_known([["b", None]], np.array([2]), np.array(["a", "b"], dtype=object)).codes.tolist()
    [1, -1]
    """
    entries, known = _entries(y, lengths), set(classes.tolist())
    for entry in entries:
        name = None if entry is None else next((name for name in names_in(entry) if name not in known), None)
        if name is not None:
            hint = f"{did_you_mean(name, known)} The labels are {name_list(classes.tolist())}."
            raise InputError(f"y has the label {name!r}, which the tagger does not know.{hint} Correct it.")
    return _encoded(entries, classes)


def _encoded(entries: list[Any], classes: Array) -> EncodedLabels:
    table, rows = _table(entries, classes.tolist())
    K = classes.size
    codes = np.where((rows > 0) & (rows <= K), rows - 1, -1).astype(np.int64)
    return EncodedLabels(classes, Bias(table, rows), codes)


def _entries(y: Any, lengths: IntArray) -> list[Any]:
    """Entries of all tokens; None where the label is unknown."""
    if isinstance(y, (str, Mapping)) or not hasattr(y, "__len__"):
        raise InputError(f"y must be a list with the labels of each sequence, but is a {type(y).__name__}.")
    if len(y) != lengths.size:
        raise InputError(
            f"X has {number_of(lengths.size, 'sequence')}, but y has {len(y)}. Pass None for unlabelled sequences."
        )
    found: list[Any] = []
    for i, (labels, length) in enumerate(zip(y, lengths.tolist(), strict=True)):
        if labels is None:
            found += [None] * length
            continue
        if isinstance(labels, str) or not hasattr(labels, "__len__"):
            raise InputError(f"Entry {i} of y is {labels!r}, but must be a list of labels, or None. Correct it.")
        if len(labels) != length:
            found_labels = number_of(len(labels), "label")
            raise InputError(f"Sequence {i} has {number_of(length, 'token')}, but {found_labels}. Correct one of them.")
        wrong = next((label for label in labels if isinstance(label, (list, dict, np.ndarray))), None)
        if wrong is not None:
            raise InputError(f"Sequence {i} has the label {wrong!r}. Pass a set for candidates, a tuple for a name.")
        found += [None if _is_unknown(label) else label for label in labels]
    return found


def _is_unknown(label: Any) -> bool:
    if is_partial(label):
        return False
    if isinstance(label, str):
        return not label.strip()
    is_number = isinstance(label, (int, float, np.number)) and not isinstance(label, bool)
    return is_missing(label) or bool(is_number and label == -1)


def _table(entries: list[Any], names: list[Any]) -> tuple[FloatArray, NDArray[np.int32]]:
    """Rows of what is allowed: 0 for anything, k + 1 for label k alone, then one for each set that occurs."""
    K = len(names)
    table, index = [np.zeros(K), *np.where(np.eye(K, dtype=bool), 0.0, -np.inf)], {n: k for k, n in enumerate(names)}
    rows = np.zeros(len(entries), np.int32)
    known: dict[Any, int] = {None: 0, **{name: k + 1 for name, k in index.items()}}
    for t, entry in enumerate(entries):
        if entry is None:
            continue
        key = entry if isinstance(entry, RuledOut) else frozenset(entry) if is_partial(entry) else entry
        if key not in known:
            known[key] = _row_of(key, index, table)
        rows[t] = known[key]
    return np.array(table), rows


def _row_of(entry: Any, index: Mapping[Any, int], table: list[FloatArray]) -> int:
    """The row for a set or for ruled-out labels, which is added to the table unless it has one label."""
    unknown = [name for name in names_in(entry) if name not in index]
    if unknown:
        known = f"{did_you_mean(unknown[0], index)} The labels are {name_list(index)}."
        raise InputError(f"y rules out {unknown[0]!r}, which is not a label.{known}")
    is_named = np.isin(np.arange(len(index)), [index[name] for name in names_in(entry)])
    is_allowed = ~is_named if isinstance(entry, RuledOut) else is_named
    if not is_allowed.any():
        raise InputError(f"An entry of y is {entry!r}, which allows no label. Use None for an unknown label.")
    if is_allowed.sum() == 1:
        return int(np.argmax(is_allowed)) + 1
    table.append(np.where(is_allowed, 0.0, -np.inf))
    return len(table) - 1


def with_patterns(allowed: Bias | None, X: Sequence[Sequence[str]], patterns: Sequence[Pattern], rules: Rules) -> Bias:
    """Add what patterns say about tokens whose label is not known."""
    K, n = rules.field.size, sum(map(len, X))
    table, rows = (np.zeros((1, K)), np.zeros(n, np.int32)) if allowed is None else allowed
    matches = [re.compile(each.pattern).search for each in patterns]
    hits: dict[str, tuple[int, ...]] = {}
    more, known = list(table), {}
    rows = rows.copy()
    for t, token in enumerate(chain.from_iterable(X)):
        if token not in hits:
            hits[token] = tuple(i for i, match in enumerate(matches) if match(token))
        row = int(rows[t])
        if hits[token] and not (allowed is not None and 0 < row <= K):
            key = row, hits[token]
            if key not in known:
                known[key] = len(more)
                more.append(table[row] - sum(_pattern_costs(patterns[i], rules) for i in hits[token]))
            rows[t] = known[key]
    return Bias(np.array(more), rows)


def _pattern_costs(pattern: Pattern, rules: Rules) -> FloatArray:
    """Cost (K,) of each label for a token that matches."""
    named = rules.field == rules.names.index(pattern.label)
    return np.where(named == pattern.forbids, pattern.cost, 0.0)
