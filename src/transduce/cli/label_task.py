"""What `transduce label` and `queue` read and check before the fit: columns, labels, classes and class sizes."""

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.class_prior.bounds import Bounds
from transduce.class_prior.proportions import are_balanced_by_design
from transduce.class_prior.resolve import prior_bounds
from transduce.class_prior.spec import Prior, complete_prior, has_size
from transduce.cli.classes import ParsedLabels, parse_labels, paths_of_classes
from transduce.cli.columns import Say, choose_text
from transduce.cli.errors import InputError
from transduce.cli.fit_messages import describe_infeasible
from transduce.cli.formats import Table
from transduce.cli.labeled_table import LabeledTable
from transduce.cli.prior_options import assumptions, prior_errors, stated_counts
from transduce.label_step import InfeasibleError, solve_labels
from transduce.suggest import name_list

MAX_LISTED = 4
ESTIMATED = "Class sizes are estimated from all rows, because the numbers of labels are too equal to show them."


@dataclass(frozen=True, eq=False)
class LabelTask:
    """Everything that is known before the fit.

    table         the documents
    text          text columns
    label         label column
    parsed        classes, full and partial labels
    codes         (n,) the class index of each row, -1 where there is none or no single one
    prior         class prior by class or branch name, or "labeled" or "estimate"
    prior_source  where class sizes came from, in a sentence
    bounds        stated sizes as numbers of rows to label
    """

    table: Table
    text: tuple[str, ...]
    label: str
    parsed: ParsedLabels
    codes: NDArray[np.int64]
    prior: Prior | str
    prior_source: str
    bounds: Bounds


def read_task(source: LabeledTable, stated: Prior, options: Mapping[str, Any], say: Say) -> LabelTask:
    """Read columns, labels and classes, complete the stated class sizes, and report what had to be guessed."""
    table, column = source.table, source.column
    text = choose_text(table, options["text"], column, say, required=options["vectors"] is None)
    parsed = parse_labels(source.labels, f"column {column!r} of {table.name}", flat=options["flat"])
    say(*_label_notes(source, parsed))
    codes = parsed.encode(parsed.full)
    prior, prior_source = _choose_prior(stated, parsed, codes, say)
    n_rows = int((codes < 0).sum())
    known = "labeled" if isinstance(prior, str) else library_prior(prior, parsed.classes)
    with prior_errors():
        bounds = prior_bounds(known, np.array(parsed.classes, object), codes[codes >= 0], n_rows, None, parsed.taxonomy)
    if not isinstance(prior, str):
        say(*stated_counts(prior, parsed.classes, bounds, n_rows))
        _check_feasible(parsed, codes, bounds)
    return LabelTask(table, text, column, parsed, codes, prior, prior_source, bounds)


def library_prior(prior: Prior | str, classes: Container[str]) -> object:
    """The class prior as the library takes it: a branch is a path, which no class can be confused with."""
    if isinstance(prior, str):
        return prior
    return {name if name in classes else tuple(name.split("/")): size for name, size in prior.items()}


def _check_feasible(parsed: ParsedLabels, codes: NDArray[np.int64], bounds: Bounds) -> None:
    """Refuse stated class sizes that partial labels rule out, before features are computed."""
    if not parsed.partial:
        return
    position = np.cumsum(codes < 0) - 1
    costs = np.zeros((int(position[-1]) + 1, len(parsed.classes)), np.float32)
    for row, candidates in parsed.partial.items():
        costs[position[row]] = [0 if name in candidates else np.inf for name in parsed.classes]
    try:
        solve_labels(costs, bounds[:2], groups=bounds.groups)
    except InfeasibleError as error:
        named = error.with_names(np.array(parsed.classes, object), bounds.groups)
        raise InputError(describe_infeasible(named)) from None


def _label_notes(source: LabeledTable, parsed: ParsedLabels) -> Iterator[str]:
    """Interpretations of labels that the user may not have meant."""
    yield from parsed.notes
    for name in paths_of_classes(source.labels)[:1] if parsed.tree else ():
        parts = name.split("/")
        label = parts if source.table.frame[source.column].dtype.is_nested() else repr(name)
        yield f'Reading {label} as a path. For one of several classes, write "{"|".join(parts)}".'
    if parsed.partial:
        first, n_rows = min(parsed.partial), len(parsed.partial)
        rows = "1 row has a partial label" if n_rows == 1 else f"{n_rows} rows have partial labels"
        candidates = name_list(sorted(parsed.partial[first]), MAX_LISTED)
        yield f"{rows}: {source.labels[first]} is one of {candidates}."


def _choose_prior(stated: Prior, parsed: ParsedLabels, codes: NDArray[Any], say: Say) -> tuple[Prior | str, str]:
    """The class prior, and where it came from."""
    if stated:
        with prior_errors():
            prior = complete_prior(stated, parsed.classes, tree=parsed.tree)
        say(*(f"Note: {note}." for note in assumptions(prior)))
        covered = all(has_size(name, stated, tree=parsed.tree) for name in parsed.classes)
        return prior.sizes, "Class sizes were stated." if covered else "Some class sizes were stated."
    if are_balanced_by_design(np.bincount(codes[codes >= 0], minlength=len(parsed.classes))):
        say(
            "Note: no class sizes were stated, and the numbers of labels are so equal that they say nothing about "
            "class sizes. Estimating class sizes from all rows. State what you know with --prior."
        )
        return "estimate", ESTIMATED
    say(
        "Note: no class sizes were stated. Using about the proportions of the labelled rows, as if these were a random "
        "sample. State what you know with --prior."
    )
    return "labeled", "Class sizes follow the labelled rows, as if these were a random sample."
