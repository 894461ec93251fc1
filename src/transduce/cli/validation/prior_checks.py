"""Checks of the class sizes: by themselves, and against the labels."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from transduce.class_prior.diagnostics import HARMFUL_DISAGREEMENT, diagnose_prior
from transduce.class_prior.resolve import prior_bounds
from transduce.class_prior.spec import ROUNDING, complete_prior
from transduce.cli.classes import parents_of
from transduce.cli.validation.findings import (
    NOTE,
    PROBLEM,
    WARNING,
    Documents,
    Finding,
    finding,
    first_of,
    name_list,
    number_of,
)
from transduce.errors import PriorError
from transduce.suggest import find_misspelled
from transduce.taxonomy import Taxonomy

FloatArray = NDArray[np.float64]

_SURE, _EXACT = 0.95, 1e-6
_MOST_UNKNOWN, _MOST_NAMES = 50, 300


def names_in_prior(documents: Documents) -> Iterator[Finding]:
    """Classes with a size but no label, and with labels but no size."""
    prior, rows_of = documents.prior, documents.rows_of
    if prior is None or not rows_of:
        return
    unlabelled = [name for name in prior if not documents.knows(name)]
    unsized = [name for name in rows_of if not _is_sized(name, documents)]
    others = (unsized or list(rows_of))[:_MOST_NAMES]
    meant = {name: near for name in unlabelled[:_MOST_UNKNOWN] if (near := find_misspelled(name, others))}
    yield from first_of(_unknown(name, near, rows_of[near]) for name, near in meant.items())
    alone = [name for name in unlabelled if name not in meant]
    if alone:
        what = f"{number_of(len(alone), 'class', 'classes')} of the class sizes without any label: {name_list(alone)}."
        yield finding(WARNING, what, (), "Label a few rows of each: what such a class is like, only labels can tell.")
    if unsized:
        left = 1 - sum(low for low, _ in _topmost(documents))
        what = (
            f"{number_of(len(unsized), 'labelled class', 'labelled classes')} without a size: {name_list(unsized)}; "
            f"the sizes leave {max(left, 0.0):.1%} for them."
        )
        rows = (row for name in unsized for row in rows_of[name])
        if left <= _EXACT:
            yield finding(PROBLEM, what, rows, "Lower the other sizes, or give these classes 0 if no row is theirs.")
        else:
            advice = "No trouble: they get what the texts suggest. State their sizes too, if you know them."
            yield finding(NOTE, what, rows, advice)


def _is_sized(name: str, documents: Documents) -> bool:
    """Whether a class has a size, or a branch above it in a tree."""
    above = parents_of(name) if documents.tree else ()
    return any(each in (documents.prior or {}) for each in (name, *above))


def _topmost(documents: Documents) -> list[tuple[float, float]]:
    """Sizes of classes and branches that are part of no other one with a size."""
    prior = documents.prior or {}
    parents = {name: parents_of(name) if documents.tree else [] for name in prior}
    return [bounds for name, bounds in prior.items() if not any(above in prior for above in parents[name])]


def _unknown(name: str, near: str, rows: list[int]) -> Finding:
    what = f"The class sizes name {name!r}, which no row has as its label; did you mean {near!r}?"
    return finding(PROBLEM, what, rows, "Write the class alike in the sizes and in the labels.")


def sums_of_prior(documents: Documents) -> Iterator[Finding]:
    """Shares that cannot be, or that cannot sum to 1."""
    prior = documents.prior or {}
    impossible = [name for name, (low, high) in prior.items() if not 0 <= low <= high <= 1]
    if impossible:
        low, high = prior[impossible[0]]
        what = f"The share of {name_list(impossible)} cannot be: it goes from {low:g} to {high:g}."
        yield finding(PROBLEM, what, (), "Give shares from 0 to 1, the low end first.")
        return
    least, most = (sum(bounds[end] for bounds in _topmost(documents)) for end in (0, 1))
    others = not all(_is_sized(name, documents) for name in documents.rows_of)
    if prior and (least > 1 + _EXACT or (most < 1 - _EXACT and not others)):
        total, bound = (least, "at least") if least > 1 else (most, "at most")
        severity = NOTE if abs(total - 1) <= ROUNDING else PROBLEM
        advice = (
            "Divide them by their sum." if severity == NOTE else "Correct them, or leave out a class to have the rest."
        )
        yield finding(severity, f"The class sizes sum to {bound} {total:.4g}, not to 1.", (), advice)


def prior_against_labels(documents: Documents) -> Iterator[Finding]:
    """Classes and branches whose stated share lies outside the exact 95 % interval of their share of the labels."""
    prior, n = documents.prior or {}, documents.n_labelled
    if not n:
        return
    names = [name for name in prior if documents.rows_under(name)]
    counts = np.array([len(documents.rows_under(name)) for name in names], dtype=np.float64)
    low, high = exact_interval(counts, n)
    outside = []
    for name, count, least, most in zip(names, counts, low, high, strict=True):
        stated_low, stated_high = prior[name]
        if stated_high < least or stated_low > most:
            stated = f"{stated_low:.1%}" if stated_low == stated_high else f"{stated_low:.1%} to {stated_high:.1%}"
            outside.append(f"{name!r} (labels {count / n:.1%}, {least:.1%} to {most:.1%}; stated {stated})")
    if outside:
        sizes = "The size of 1 class differs" if len(outside) == 1 else f"The sizes of {len(outside)} classes differ"
        what = f"{sizes} from the {n} labels by more than chance (95 %): {name_list(outside, quote=False)}."
        if _is_harmful(documents):
            advice = (
                "Check the sizes: if rows were labelled at random, labels are likely to come out worse than without "
                "any. If they were not, pass over this."
            )
            yield finding(WARNING, what, (), advice)
        else:
            advice = "No trouble if rows were not labelled at random; if they were, check the sizes."
            yield finding(NOTE, what, (), advice)


def _is_harmful(documents: Documents) -> bool:
    """Whether sizes and labels disagree so much that harm is likely; unusable sizes are reported elsewhere."""
    classes, n_rows = list(documents.rows_of), len(documents.labels) - documents.n_labelled
    counts = np.array([len(rows) for rows in documents.rows_of.values()])
    stated = {name: low if low == high else (low, high) for name, (low, high) in (documents.prior or {}).items()}
    try:
        full = complete_prior(stated, classes, tree=documents.tree).sizes
        taxonomy = Taxonomy.create(classes) if documents.tree else None
        labels = np.repeat(np.arange(len(classes)), counts)
        bounds = prior_bounds(full, np.array(classes, dtype=object), labels, n_rows, None, taxonomy)
    except PriorError:
        return False
    if not n_rows:
        return False
    predicted = np.where(np.arange(len(classes)) == 0, n_rows, 0)  # there is no classifier yet, and none is needed
    found = diagnose_prior(bounds, counts, predicted, np.zeros(len(classes)))
    return found.disagreement > HARMFUL_DISAGREEMENT and not found.balanced_labels


def exact_interval(counts: FloatArray, n: int) -> tuple[FloatArray, FloatArray]:
    """Clopper and Pearson's 95 % interval of a share, from `counts` out of n.

    >>> low, high = exact_interval(np.array([0.0, 5.0]), 10)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.0, 0.187], [0.308, 0.813])
    """
    tail = (1 - _SURE) / 2
    low = np.where(counts > 0, betaincinv(np.maximum(counts, 1), n - counts + 1, tail), 0.0)
    high = np.where(counts < n, betaincinv(counts + 1, np.maximum(n - counts, 1), 1 - tail), 1.0)
    return low, high


PRIOR_CHECKS: tuple[Callable[[Documents], Iterator[Finding]], ...] = (
    names_in_prior,
    sums_of_prior,
    prior_against_labels,
)
