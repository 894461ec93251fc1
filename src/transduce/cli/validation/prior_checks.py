"""Checks of the class sizes: their names, their sum, and how they compare with the labels."""

from collections.abc import Iterator, Mapping

import numpy as np
from scipy.special import betaincinv

from transduce.arrays import FloatArray
from transduce.class_prior.diagnostics import HARMFUL_DISAGREEMENT, diagnose_prior
from transduce.class_prior.proportions import are_balanced_by_design
from transduce.class_prior.stated_sizes import read_statement, topmost
from transduce.class_prior.statement import Statement
from transduce.cli.classes import parents_of
from transduce.cli.fit_messages import describe_prior_error
from transduce.cli.prior_options import assumptions, has_size, library_prior, rows_text
from transduce.cli.size_sentences import ROUGH_SLACK, compare_sizes
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
    unsized = [name for name in rows_of if not has_size(name, prior, tree=documents.tree)]
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
    message = f"{number_of(len(names), 'labelled class', 'labelled classes')} without a size: {name_list(names)}"
    rows, advice = (
        merged(names, documents.rows_of),
        "Their sizes will be estimated. State what you know, if only roughly.",
    )
    stated, _ = _read(documents)
    if stated is None or not stated.n_rows:
        return finding("note", f"{message}.", rows, advice)
    left = max(1.0 - float(stated.low[topmost(stated.members)].sum()) / stated.n_rows, 0.0)
    message = f"{message}; the sizes leave {left:.1%} for them."
    if left > _ROUNDING:
        return finding("note", message, rows, advice)
    return finding("problem", message, rows, "Lower the other sizes, or state 0 for classes without further rows.")


def _read(documents: Documents) -> tuple[Statement | None, PriorError | None]:
    """The stated sizes, or why they cannot be used; neither without sizes, or if paths are faulty."""
    above = {node for name in documents.prior for node in parents_of(name)} if documents.tree else set()
    alone = [name for name in documents.prior if not documents.classes_under(name) and name not in above]
    classes, rows_of = [*documents.rows_of, *alone], documents.rows_of
    if not documents.prior or (documents.tree and any("" in name.split("/") for name in classes)):
        return None, None
    labels = np.repeat(np.arange(len(classes)), [len(rows_of.get(name, ())) for name in classes])
    try:
        taxonomy = Taxonomy.create(classes) if documents.tree else None
        prior, n_rows = library_prior(documents.prior, classes), len(documents.labels) - labels.size
        return read_statement(prior, np.array(classes, dtype=object), labels, n_rows, taxonomy), None
    except PriorError as error:
        return None, error


def sum_of_prior(documents: Documents) -> Iterator[Finding]:
    """Sizes that cannot be used, or that are divided by their sum."""
    if not documents.prior or not documents.rows_of:
        return
    stated, error = _read(documents)
    if error is not None:
        sentence = describe_prior_error(error)
        advice = "Until then, `transduce label` refuses the sizes."
        yield finding("problem", sentence[:1].upper() + sentence[1:], (), advice)
    elif stated is not None and assumptions([], stated):
        message = f"The class sizes sum to {stated.divided_by:.4g}, not to 1."
        yield finding("note", message, (), "They will be divided by their sum.")


def prior_against_labels(documents: Documents) -> Iterator[Finding]:
    """Sizes outside the exact 95 % confidence interval of the labelled fraction."""
    stated, _ = _read(documents)
    n = documents.n_labeled
    if stated is None or not n or not stated.n_rows:
        return
    labeled = np.array([len(documents.rows_of.get(name, ())) for name in stated.names[: stated.n_classes]])
    counts, low, high = stated.members @ labeled, stated.low / stated.n_rows, stated.high / stated.n_rows
    least, most = exact_interval(counts.astype(np.float64), n)
    is_outside = (counts > 0) & ((high < least) | (low > most))
    outside = [
        f"{stated.names[k]!r} (labels {counts[k] / n:.1%}, {least[k]:.1%} to {most[k]:.1%}; stated "
        f"{' to '.join(dict.fromkeys(f'{end:.1%}' for end in (low[k], high[k])))})"
        for k in np.flatnonzero(is_outside)
    ]
    if not outside:
        return
    sizes = "The size of 1 class differs" if len(outside) == 1 else f"The sizes of {len(outside)} classes differ"
    message = f"{sizes} from the {n} labels by more than chance (95 %): {name_list(outside, quote=False)}."
    predicted = np.where(np.arange(labeled.size) == 0, stated.n_rows, 0)  # there is no classifier yet
    found = diagnose_prior(stated.likely_bounds(), labeled, predicted, np.zeros(labeled.size))
    is_far = any(
        compare_sizes((low[k], high[k]), (least[k], most[k]), ROUGH_SLACK) != "right"
        for k in np.flatnonzero(is_outside)
    )
    if (found.disagreement > HARMFUL_DISAGREEMENT or is_far) and not found.balanced_labels:
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


def exact_interval(counts: FloatArray, n: int) -> tuple[FloatArray, FloatArray]:
    """Clopper-Pearson 95 % confidence interval of a fraction, from `counts` out of n."""
    tail = (1 - _CONFIDENCE) / 2
    low = np.where(counts > 0, betaincinv(np.maximum(counts, 1), n - counts + 1, tail), 0.0)
    high = np.where(counts < n, betaincinv(counts + 1, np.maximum(n - counts, 1), 1 - tail), 1.0)
    return low, high


PRIOR_CHECKS = (names_in_prior, sum_of_prior, rows_or_percents, prior_against_labels)
