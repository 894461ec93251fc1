"""Checks of the class sizes: their names, their sum, and how they compare with the labels."""

from collections.abc import Iterator, Mapping

import numpy as np
from scipy.special import betaincinv

from transduce.arrays import FloatArray
from transduce.class_prior.diagnostics import HARMFUL_DISAGREEMENT, diagnose_prior
from transduce.class_prior.proportions import are_balanced_by_design
from transduce.class_prior.resolve import ResolvedPrior
from transduce.class_prior.stated_sizes import ROUNDING
from transduce.cli.classes import parents_of
from transduce.cli.prior_options import rows_text
from transduce.cli.validation.findings import Documents, Finding, finding, first_of, merged, name_list
from transduce.errors import PriorError
from transduce.suggest import find_misspelled, number_of
from transduce.taxonomy import Taxonomy

_CONFIDENCE, _ROUNDING = 0.95, 1e-6
_MAX_UNKNOWN, _MAX_NAMES = 50, 300
_FAR_BELOW = 5
"""A number of rows is far below a fraction if this many times as many are below its interval."""
_UNKNOWN = "The class sizes name {!r}, which no row has as its label; did you mean {!r}?"


def names_in_prior(documents: Documents) -> Iterator[Finding]:
    """Classes with a size but no label, and classes with labels but no size."""
    prior, rows_of = documents.prior, documents.rows_of
    if not prior or not rows_of:
        return
    unlabeled = [name for name in prior if not documents.classes_under(name)]
    unsized = [name for name in rows_of if not _sized_nodes(name, documents)]
    others = (unsized or list(rows_of))[:_MAX_NAMES]
    similar = {name: near for name in unlabeled[:_MAX_UNKNOWN] if (near := find_misspelled(name, others))}
    yield from first_of(
        finding(
            "problem", _UNKNOWN.format(name, near), rows_of[near], "Use the same name in the sizes and in the labels."
        )
        for name, near in similar.items()
    )
    alone = [name for name in unlabeled if name not in similar]
    if alone:
        message = f"{number_of(len(alone), 'class', 'classes')} with a size but without any label: {name_list(alone)}."
        yield finding("warning", message, (), "Label a few rows of each: a class can be learnt from labels only.")
    if unsized:
        yield _unsized(unsized, documents)


def _unsized(names: list[str], documents: Documents) -> Finding:
    """Labelled classes that no size is stated for."""
    left = 1 - sum(low for low, _ in _topmost(documents))
    classes = f"{number_of(len(names), 'labelled class', 'labelled classes')} without a size: {name_list(names)}"
    message = f"{classes}; the sizes leave {max(left, 0.0):.1%} for them."
    rows = merged(names, documents.rows_of)
    if left <= _ROUNDING:
        return finding("problem", message, rows, "Lower the other sizes, or state 0 for classes without further rows.")
    advice = "Their sizes will be estimated. State what you know, if only roughly."
    return finding("note", message, rows, advice)


def _sized_nodes(name: str, documents: Documents) -> list[str]:
    """Which of a class, or a branch, and the branches above it have a size."""
    nodes = [*parents_of(name), name] if documents.tree else [name]
    return [node for node in nodes if node in documents.prior]


def _topmost(documents: Documents) -> list[tuple[float, float]]:
    """Sizes of classes and branches that are in no branch with a size."""
    return [bounds for name, bounds in documents.prior.items() if _sized_nodes(name, documents) == [name]]


def sum_of_prior(documents: Documents) -> Iterator[Finding]:
    """Sizes that are no fractions, or cannot sum to 1."""
    prior = documents.prior
    impossible = [name for name, (low, high) in prior.items() if not 0 <= low <= high <= 1]
    if impossible:
        low, high = prior[impossible[0]]
        message = f"The size of {name_list(impossible)} cannot be used: it ranges from {low:g} to {high:g}."
        yield finding("problem", message, (), "State fractions from 0 to 1, the lower one first.")
        return
    least, most = (sum(bounds[end] for bounds in _topmost(documents)) for end in (0, 1))
    complete = all(_sized_nodes(name, documents) for name in documents.rows_of)
    if prior and (least > 1 + _ROUNDING or (most < 1 - _ROUNDING and complete)):
        total, bound = (least, "at least") if least > 1 else (most, "at most")
        if f"{total:.4g}" == "1":
            return
        is_rounded = abs(total - 1) <= ROUNDING
        advice = (
            "They will be divided by their sum."
            if is_rounded
            else "Correct them, or leave out a class to get the rest."
        )
        message = f"The class sizes sum to {bound} {total:.4g}, not to 1."
        yield finding("note" if is_rounded else "problem", message, (), advice)


def prior_against_labels(documents: Documents) -> Iterator[Finding]:
    """Sizes outside the exact 95 % confidence interval of the labelled fraction."""
    prior, n = documents.prior, documents.n_labeled
    if not n:
        return
    counts_of = {name: len(merged(documents.classes_under(name), documents.rows_of)) for name in prior}
    counts_of = {name: count for name, count in counts_of.items() if count}
    intervals = exact_interval(np.array(list(counts_of.values()), np.float64), n)
    outside = []
    for (name, count), least, most in zip(counts_of.items(), *intervals, strict=True):
        low, high = prior[name]
        if high < least or low > most:
            stated = " to ".join(f"{end:.1%}" for end in dict.fromkeys((low, high)))
            outside.append(f"{name!r} (labels {count / n:.1%}, {least:.1%} to {most:.1%}; stated {stated})")
    if not outside:
        return
    sizes = "The size of 1 class differs" if len(outside) == 1 else f"The sizes of {len(outside)} classes differ"
    message = f"{sizes} from the {n} labels by more than chance (95 %): {name_list(outside, quote=False)}."
    if _is_harmful(documents):
        advice = "Check the sizes: if the labels are a random sample, expect worse results than without sizes."
        yield finding("warning", message, (), advice)
    else:
        advice = "This is fine if the labels are not a random sample. If they are, check the sizes."
        yield finding("note", message, (), advice)


def rows_or_percents(documents: Documents) -> Iterator[Finding]:
    """Numbers of rows that were probably meant as per cents."""
    counts = {name: len(rows) for name, rows in documents.rows_of.items()}
    n_rows = len(documents.labels) - documents.n_labeled
    for found, advice in mistaken_percents(documents.plain_rows, counts, n_rows):
        yield finding("problem", found, (), advice)


def mistaken_percents(
    stated: Mapping[str, float], labeled: Mapping[str, int], n_rows: int
) -> Iterator[tuple[str, str]]:
    """Plain numbers of rows far below what the labels suggest, where as many per cent agree: sentences and advice.

    `labeled` has the number of labels of each class, `n_rows` is the number of rows to label. Labels whose numbers are
    equal by design suggest nothing.

    >>> print(*next(mistaken_percents({"earn": 51.0}, {"earn": 42, "ship": 28}, 5000)), sep="\\n")
    --prior earn=51 is 51 rows (1.02 %), but 42 of the 70 labels are 'earn'. Did you mean 51%?
    Write earn=51% for per cent, or earn==51 for exactly 51 rows.
    """
    n_labeled = sum(labeled.values())
    if not n_labeled or not n_rows or are_balanced_by_design(list(labeled.values())):
        return
    for name, rows in stated.items():
        count = sum(n for other, n in labeled.items() if other == name or other.startswith(f"{name}/"))
        (least,), (most,) = exact_interval(np.array([count], np.float64), n_labeled)
        if is_mistaken_percent(rows, n_rows, least, most):
            labels = f"{count} of the {number_of(n_labeled, 'label')} {'is' if count == 1 else 'are'} {name!r}"
            found = f"--prior {name}={rows:g} is {rows_text(rows, rows, n_rows)}, but {labels}. Did you mean {rows:g}%?"
            yield found, f"Write {name}={rows:g}% for per cent, or {name}=={rows:g} for exactly {rows:g} rows."


def is_mistaken_percent(rows: float, n_rows: int, least: float, most: float) -> bool:
    """Whether a number of rows is far below a fraction from least to most, where as many per cent are within."""
    return rows >= 1 and _FAR_BELOW * rows / n_rows < least <= rows / 100 <= most


def _is_harmful(documents: Documents) -> bool:
    """Whether sizes and labels disagree so much that harm is likely; other checks report unusable sizes and paths."""
    classes, n_rows = list(documents.rows_of), len(documents.labels) - documents.n_labeled
    counts = np.array([len(rows) for rows in documents.rows_of.values()])
    stated = {name: low if low == high else (low, high) for name, (low, high) in documents.prior.items()}
    if documents.tree and any("" in name.split("/") for name in classes):
        return False
    try:
        taxonomy = Taxonomy.create(classes) if documents.tree else None
        labels = np.repeat(np.arange(len(classes)), counts)
        prior = ResolvedPrior.create(stated, np.array(classes, dtype=object), labels, n_rows, None, taxonomy)
    except PriorError:
        return False
    predicted = np.where(np.arange(len(classes)) == 0, n_rows, 0)  # there is no classifier yet, and none is needed
    found = diagnose_prior(prior.statement.likely_bounds(), counts, predicted, np.zeros(len(classes)))
    return found.disagreement > HARMFUL_DISAGREEMENT and not found.balanced_labels


def exact_interval(counts: FloatArray, n: int) -> tuple[FloatArray, FloatArray]:
    """Clopper-Pearson 95 % confidence interval of a fraction, from `counts` out of n."""
    tail = (1 - _CONFIDENCE) / 2
    low = np.where(counts > 0, betaincinv(np.maximum(counts, 1), n - counts + 1, tail), 0.0)
    high = np.where(counts < n, betaincinv(counts + 1, np.maximum(n - counts, 1), 1 - tail), 1.0)
    return low, high


PRIOR_CHECKS = (names_in_prior, sum_of_prior, rows_or_percents, prior_against_labels)
