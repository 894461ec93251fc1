"""What --classes and --guess say about the classes of the rows, as the fit takes it."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from transduce.cli import messages
from transduce.cli.classes import ParsedLabels, misspelled_names, parse_labels
from transduce.cli.columns import Say, choose_label, named_label
from transduce.cli.errors import InputError
from transduce.cli.features.encoding import encoding_of
from transduce.cli.formats import Table, labels_of, texts_of, unused_name
from transduce.cli.output_paths import TABLES
from transduce.cli.progress import Progress
from transduce.evidence import NamedScores
from transduce.features.class_names import name_scores, read_class_names
from transduce.features.pretrained import NONE_INSTALLED, default_encoder

SUSPICION = "suspicion"
"""Column that `label --guess` adds: how clearly text and class sizes contradict the guess of a row without a label."""


def has_evidence(options: Mapping[str, Any]) -> bool:
    """Whether rows may be labelled without labels."""
    return options.get("classes") is not None or options.get("guess") is not None


def evidence_arguments(options: Mapping[str, Any]) -> list[str]:
    """--classes or --guess as they were typed."""
    return [part for name in ("classes", "guess") if options.get(name) for part in (f"--{name}", options[name])]


def check_evidence(options: Mapping[str, Any]) -> None:
    """Refuse options that contradict each other."""
    if not has_evidence(options):
        return
    used = "--classes" if options.get("guess") is None else "--guess"
    if options.get("classes") is not None and used == "--guess":
        raise InputError("--classes and --guess cannot be combined: guesses name the classes. Leave out one of them.")
    for name in ("dask", "workers", "device"):
        if options.get(name) is not None:
            raise InputError(f"{used} is for rows in memory, not for --{name}. Leave out one of them.")
    if used == "--classes" and options["vectors"] is not None:
        raise InputError("--classes compares names with texts, so it needs no --vectors. Leave out one of them.")
    if used == "--classes" and default_encoder() is None:
        raise InputError(f"--classes needs an encoder, but {NONE_INSTALLED}")


def label_column(table: Table, options: Mapping[str, Any], say: Say) -> tuple[Table, str]:
    """The table and its label column; with other evidence, one that is named as such, or else an empty one is added."""
    if not has_evidence(options) or options["label"] is not None:
        return _chosen_column(table, options, say)
    guess = options.get("guess")
    if guess is not None:
        labels_of(table, guess)  # refuses a column that is not there
    found = named_label(table, (*options["text"], guess, options.get("truth")))
    say("Using no label column." if found is None else f"Using column {found!r} as the label.")
    return (table, found) if found is not None else _with_empty_column(table)


def _chosen_column(table: Table, options: Mapping[str, Any], say: Say) -> tuple[Table, str]:
    """The table and its label column; if there is none, answers need none."""
    try:
        return table, choose_label(table, options["label"], options["text"], say, f" {_start_advice(table)}")
    except InputError:
        if not options.get("answers"):
            raise
    say("Using no label column but the answers. If there is one, name it with --label.")
    return _with_empty_column(table)


def _with_empty_column(table: Table) -> tuple[Table, str]:
    name = unused_name("label", table.frame.columns)
    return replace(table, frame=table.frame.with_columns(pl.lit(None, pl.String).alias(name))), name


def _start_advice(table: Table) -> str:
    """How to begin with a table that has no labels."""
    review = f"`{messages.command_line('review', table.name)}` or " if os.path.exists(table.name) else ""
    return f"Without labels, begin with {review}`transduce label --classes`."


def is_filled_in(column: str, options: Mapping[str, Any]) -> bool:
    """Whether new labels go into the label column: it is called "label", or was added because there was none."""
    was_added = has_evidence(options) and options["label"] is None and re.fullmatch(r"label_\d+", column) is not None
    return column == "label" or was_added


def parse_with_evidence(
    table: Table, labels: Sequence[str | None], where: str, options: Mapping[str, Any]
) -> ParsedLabels:
    """Labels of a column, with the classes that --classes or --guess names."""
    flat, n_rows = options["flat"], len(labels)
    if not has_evidence(options):
        if not any(labels):
            raise InputError(_no_labels(table, where))
        return parse_labels(labels, where, flat=flat)
    names = class_names(table, options)
    if options.get("guess") is None:
        check_spelling(names, labels)
    source = "--classes" if options.get("guess") is None else f"column {options['guess']!r} of {table.name}"
    parsed = parse_labels([*labels, *names], source if not any(labels) else where, flat=flat)
    for name, found in zip(names, parsed.full[n_rows:], strict=True):
        if found is None:
            raise InputError(f"{source} names {name!r}, a branch with classes under it. Name a class, or pass --flat.")
    partial = {row: classes for row, classes in parsed.partial.items() if row < n_rows}
    return replace(parsed, full=parsed.full[:n_rows], partial=partial)


def _no_labels(table: Table, where: str) -> str:
    """What to do about a table without a label."""
    if table.format != "folder":
        return f"{where} has no labels. Fill in a few, at least one for each class. {_start_advice(table)}"
    tables = [name for name in table.frame["file"] if name.lower().endswith(TABLES)]
    advice = f"Name a file, such as {table.name.rstrip('/')}/{tables[0]}." if tables else _start_advice(table)
    return f"{table.name} has no folder for each class. {advice}"


def check_spelling(names: Sequence[str], labels: Iterable[str | None]) -> None:
    """Refuse a name of --classes that is nearly a label which --classes does not name."""
    known = {label for label in labels if label is not None}
    for name, near in misspelled_names([name for name in names if name not in known], sorted(known)).items():
        if near not in names:
            raise InputError(
                f"--classes names {name!r}, which no row is labelled with. Did you mean {near!r}? Correct it; if both "
                "are classes, name both."
            )


def class_names(table: Table, options: Mapping[str, Any]) -> list[str]:
    """Classes that --classes or --guess names, none without these."""
    if options.get("guess") is None:
        return [] if options.get("classes") is None else [*read_class_names(options["classes"])]
    return labels_of(table, options["guess"]).drop_nulls().unique().sort().to_list()


def fit_evidence(table: Table, text: Sequence[str], options: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    """Arguments of `fit` that hold the evidence: guesses (n,), or scores as `NamedScores`."""
    if options.get("guess") is not None:
        values = labels_of(table, options["guess"]).to_list()
        return {"guesses": np.array(["" if value is None else value for value in values], dtype=object)}
    if options.get("classes") is None:
        return {}
    if not text:
        raise InputError(f"--classes compares names with texts, but {table.name} has vectors only. Leave it out.")
    descriptions = read_class_names(options["classes"])
    with encoding_of(options, progress) as encoding:
        return {
            "scores": NamedScores([*descriptions], name_scores(texts_of(table, text).to_list(), descriptions, encoding))
        }
