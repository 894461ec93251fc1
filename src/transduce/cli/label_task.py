"""What `transduce label` and `queue` read and check before the fit: columns, labels, classes and class sizes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.class_prior.bounds import Bounds
from transduce.class_prior.resolve import ResolvedPrior
from transduce.class_prior.spec import Prior, read_sizes
from transduce.class_prior.statement import Statement
from transduce.cli.classes import ParsedLabels, paths_of_classes
from transduce.cli.columns import Say, choose_text
from transduce.cli.errors import InputError
from transduce.cli.evidence_options import check_evidence, parse_with_evidence
from transduce.cli.fit_messages import describe_infeasible
from transduce.cli.formats import Table
from transduce.cli.label_origin import CONTRADICTED, find_sample
from transduce.cli.labeled_table import LabeledTable
from transduce.cli.none_option import Rows, divide_sizes, fraction_left, none_rows, read_none
from transduce.cli.prior_options import (
    assumptions,
    has_size,
    library_prior,
    plain_rows,
    prior_errors,
    rows_text,
    stated_counts,
    unstated,
)
from transduce.cli.results import ANSWERED
from transduce.cli.validation.prior_checks import mistaken_percents
from transduce.features.tfidf import ENCODER_KINDS, WORD_KINDS
from transduce.label_step import InfeasibleError, solve_labels
from transduce.suggest import name_list

MAX_LISTED = 4


@dataclass(frozen=True, eq=False)
class LabelTask:
    """Everything that is known before the fit.

    table         the documents
    text          text columns
    label         label column
    parsed        classes, full and partial labels
    codes         (n,) the class index of each row, -1 where there is none or no single one
    prior         class prior by class or branch name, or "labeled" or "estimate"
    statement     stated sizes as numbers of rows to label
    origin        (n,) number of the origin of each label that a person gave
    sampled       (n,) whether a label is one of a random sample; None if the fit is to find out
    basis         what class sizes are estimated from
    none          least and greatest number of rows to label that fit no class; None if all have one
    """

    table: Table
    text: tuple[str, ...]
    label: str
    parsed: ParsedLabels
    codes: NDArray[np.int64]
    prior: Prior | str
    statement: Statement
    origin: NDArray[np.int64]
    sampled: NDArray[np.bool_] | None
    basis: str
    none: Rows | None = None

    @property
    def answered(self) -> NDArray[np.bool_]:
        """Whether a label (n,) was given to a row that was chosen, by a queue or from earlier results."""
        return np.asarray(self.origin == ANSWERED)

    @property
    def n_unlabeled(self) -> int:
        """Number of rows to label, including those with a partial label."""
        return int(np.count_nonzero(self.codes < 0))

    @property
    def plain_rows(self) -> dict[str, float]:
        """Stated numbers of rows that may have been meant as per cents."""
        if isinstance(self.prior, str):
            return {}
        n_rows = self.n_unlabeled
        return plain_rows(self.prior, self.parsed.classes, n_rows, self.codes.size - n_rows, tree=self.parsed.tree)

    def describe_prior(self, *, contradicted: bool) -> str:
        """Where class sizes come from, in a sentence; `contradicted`: the labels do not look like a random sample."""
        estimated = f"estimated from {CONTRADICTED if contradicted else self.basis}"
        if isinstance(self.prior, str):
            is_labeled = self.prior == "labeled"
            return f"Class sizes {'follow the labelled rows' if is_labeled else f'are {estimated}'}."
        if all(has_size(name, self.prior, tree=self.parsed.tree) for name in self.parsed.classes):
            return "Class sizes were stated."
        return f"Some class sizes were stated; the others are {estimated}."


def read_task(source: LabeledTable, stated: Prior | str, options: Mapping[str, Any], say: Say) -> LabelTask:
    """Read columns, labels and classes, complete the stated class sizes, and report what had to be guessed."""
    table, column = source.table, source.column
    _check_encoder(table, options)
    check_evidence(options)
    guess = () if options.get("guess") is None else (options["guess"],)
    readable = replace(table, frame=table.frame.drop(guess))
    text = choose_text(readable, options["text"], column, say, required=options["vectors"] is None)
    parsed = parse_with_evidence(table, source.labels, f"column {column!r} of {table.name}", options)
    say(*_label_notes(source, parsed))
    codes = parsed.encode(parsed.full)
    sampled, basis = find_sample(options.get("labels_are"), codes, source.origin == ANSWERED, len(parsed.classes))
    prior = read_sizes(stated, parsed.classes) if stated == "equal" else stated or "estimate"
    if not stated and np.any(codes < 0):
        say(f"Note: no class sizes were stated. Estimating them from {basis}. State what you know with --prior.")
    n_rows = int(np.count_nonzero(codes < 0))
    none = none_rows(read_none(options.get("none")), n_rows)
    if none is not None:
        prior = _without_none(prior, parsed, codes, none, say)
    statement = _resolve(prior, parsed, codes, fraction_left(none, n_rows), say)
    task = LabelTask(table, text, column, parsed, codes, prior, statement, source.origin, sampled, basis, none)
    _check_units(task)
    return task


def _check_encoder(table: Table, options: Mapping[str, Any]) -> None:
    """Refuse options that contradict each other."""
    vectors = table.name if table.vectors is not None else options["vectors"]
    kind, has_encoder = options["features"], options["encoder"] is not None
    if has_encoder and kind in WORD_KINDS:
        raise InputError(f"--encoder is for --features embeddings, mix and auto, not {kind}. Leave out one of them.")
    if kind != "mix" and options["words_share"] is not None:
        raise InputError("--words-share is for --features mix. Add that, or leave out --words-share.")
    if vectors is not None and (has_encoder or kind in ENCODER_KINDS):
        asked = f"--features {kind}" if kind in ENCODER_KINDS else "--encoder"
        raise InputError(f"{vectors} has vectors already, so no texts are encoded. Leave out {asked}.")


def _without_none(
    prior: Prior | str, parsed: ParsedLabels, codes: NDArray[np.int64], none: Rows, say: Say
) -> Prior | str:
    """Class sizes of the rows that get a class, and reports how many do not."""
    n_rows = int(np.count_nonzero(codes < 0))
    say(f"Rows that fit no class: {rows_text(*none, n_rows)}. They stay without a label.")
    if isinstance(prior, str):
        return prior
    labeled = dict(zip(parsed.classes, np.bincount(codes[codes >= 0], minlength=len(parsed.classes)), strict=True))
    with prior_errors():
        divided = divide_sizes(prior, parsed.classes, labeled, none, n_rows, tree=parsed.tree)
    if divided is not prior:
        say("Note: the class sizes and --none add up to all rows, so the sizes are fractions of all rows.")
    return divided


def _check_units(task: LabelTask) -> None:
    """Refuse a plain number of rows that was probably meant as per cents.

    A class that gets a hundredth of its rows spoils the whole fit, and NAME==SIZE states a number of rows beyond doubt.
    """
    codes = task.codes if task.sampled is None else task.codes[task.sampled]
    counts = np.bincount(codes[codes >= 0], minlength=len(task.parsed.classes))
    labeled = dict(zip(task.parsed.classes, counts.tolist(), strict=True))
    for found, advice in mistaken_percents(task.plain_rows, labeled, task.n_unlabeled):
        raise InputError(f"{found} {advice}")


def _resolve(prior: Prior | str, parsed: ParsedLabels, codes: NDArray[np.int64], left: float, say: Say) -> Statement:
    """Stated sizes in rows; reports how they were read, and refuses those that cannot be met.

    `left` is the fraction of the rows to label that gets a class.
    """
    n_rows, classes = int((codes < 0).sum()), np.array(parsed.classes, object)
    with prior_errors():
        resolved = ResolvedPrior.create(
            library_prior(prior, parsed.classes), classes, codes[codes >= 0], n_rows, None, parsed.taxonomy, None
        )
    if not isinstance(prior, str):
        without = unstated(prior, parsed.classes, tree=parsed.tree)
        say(*(f"Note: {note}." for note in assumptions(without, resolved.statement)))
        say(*stated_counts(prior, resolved.statement, left))
        _check_feasible(parsed, codes, resolved.statement.hard_bounds)
    return resolved.statement


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
