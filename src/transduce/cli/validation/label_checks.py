"""Checks of the labels; linear in the number of rows, since only small sets of names are compared with each other."""

import re
from collections.abc import Iterator, Mapping

from transduce.cli.classes import ADVICE, are_paths, parents_of
from transduce.cli.validation.findings import (
    Documents,
    Finding,
    Severity,
    finding,
    first_of,
    merged,
    name_list,
    row_list,
)
from transduce.suggest import differ_in_one_letter, is_misspelling, normalize_name, number_of

FEW = 5
_RARE, _FREQUENT = 2, 5
"""A label of at most 2 rows that is close to one with 5 times as many is probably a misspelling."""
_MAX_RARE, _MAX_NAMES = 50, 300
_MIN_IDENTIFIERS = 10
PLACEHOLDERS = frozenset((
    "?", "??", "???", "-", "--", "---", ".", "...", "/", "n/a", "#n/a", "na", "n.a.", "nan", "none", "null", "nil",
    "todo", "tbd", "tba", "unknown", "unlabelled", "unlabeled", "not labelled", "not labeled", "undefined", "missing",
    "empty", "blank", "no label", "(blank)", "<na>", "xxx",
))  # fmt: skip
"""What people write for a missing label, in lower case."""
_DECIMAL = re.compile(r"[+-]?\d*[.,]\d+(?:[eE][+-]?\d+)?")


def labels_present(documents: Documents) -> Iterator[Finding]:
    """Whether there are labels, at least two classes, and rows left to label."""
    n, n_labeled = len(documents.labels), documents.n_labeled
    if not n_labeled:
        yield finding("problem", f"None of {number_of(n, 'row')} has a label.", (), "Label a few rows of every class.")
    elif len(set(documents.rows_of) | set(documents.prior)) < 2:
        ((only, rows),) = documents.rows_of.items()
        all_labels = "The only label is" if n_labeled == 1 else f"All {n_labeled} labels are"
        message = f"{all_labels} {only!r}: there is only one class."
        yield finding("problem", message, rows, "Label rows of at least one other class.")
    if n and n_labeled == n:
        all_rows = "The only row has" if n == 1 else f"All {n} rows have"
        message = f"{all_rows} a label: there is nothing left to label."
        yield finding("warning", message, (), "Add unlabelled rows, or check that this is the label column.")


def scarce_classes(documents: Documents) -> Iterator[Finding]:
    """Classes with one label or few, or labels that are all different and hardly classes."""
    rows_of, n_labeled = documents.rows_of, documents.n_labeled
    all_different = n_labeled == len(rows_of) >= _MIN_IDENTIFIERS
    if all_different and not set(rows_of) <= set(documents.prior):
        message = f"All {n_labeled} labels are different, such as {name_list(rows_of)}."
        advice = "Check that this is the label column and not an identifier or a text."
        yield finding("warning", message, merged(rows_of, rows_of), advice)
        return
    full = "full " if sum(map(len, documents.rows_with.values())) > n_labeled else ""
    slips = other_spellings(documents)  # to be corrected, not to get more labels
    single = [name for name, rows in rows_of.items() if len(rows) == 1 and name not in slips]
    if single:
        message = f"{number_of(len(single), 'class has', 'classes have')} only one {full}label: {name_list(single)}."
        yield finding("warning", message, merged(single, rows_of), "Label a few more rows of each.")
    few = [name for name, rows in rows_of.items() if 1 < len(rows) < FEW and name not in slips]
    if few:
        classes = number_of(len(few), "class has", "classes have")
        message = f"{classes} fewer than {FEW} {full}labels: {_counted(few, rows_of)}."
        yield finding("note", message, merged(few, rows_of), "More labels help most here.")


def _counted(names: list[str], rows_of: Mapping[str, list[int]]) -> str:
    return name_list((f"{name!r} ({len(rows_of[name])})" for name in names), quote=False)


def candidate_sets(documents: Documents) -> Iterator[Finding]:
    """Sets of candidates with a part that is no class, classes that only sets name, and names that look like sets."""
    sets, rows_with = documents.names.sets, documents.rows_with
    wrong = {one: rows_with[one.label] for one in sets.unknown}
    yield from first_of(
        finding("problem", f"The label of {row_list(rows)} is {one}", rows, ADVICE) for one, rows in wrong.items()
    )
    if sets.only_in_sets:
        classes = number_of(len(sets.only_in_sets), "class has", "classes have")
        message = f"{classes} only partial labels: {name_list(sets.only_in_sets)}."
        advice = "Add a few full labels, or correct the name if it is a misspelling."
        yield finding("note", message, merged(sets.only_in_sets, documents.rows_naming), advice)
    if sets.plain:
        example = sets.plain[0]
        message = f'Labels with "|" are read as plain names, such as {example!r}: no part occurs as a label on its own.'
        advice = "If they mean one of several classes, give a few rows of each class a full label."
        yield finding("note", message, merged(sets.plain, rows_with), advice)


def decimal_labels(documents: Documents) -> Iterator[Finding]:
    """Labels that are measurements, or integers that were stored as floats."""
    decimals = [name for name in documents.rows_with if _DECIMAL.fullmatch(name)]
    if 2 * len(decimals) > len(documents.rows_with):
        of_all = f"{len(decimals)} of {number_of(len(documents.rows_with), 'different label')}"
        message = f"{of_all} are decimal numbers, such as {decimals[0]!r}."
        advice = "Check that this is the label column; write classes as 1, not 1.0."
        yield finding("warning", message, merged(decimals, documents.rows_with), advice)


def placeholder_labels(documents: Documents) -> Iterator[Finding]:
    """Labels that probably mean a missing label, but would become classes."""
    found = [name for name in documents.rows_naming if name.casefold() in PLACEHOLDERS]
    if found:
        rows = merged(found, documents.rows_naming)
        are = "is read as a class" if len(found) == 1 else "are read as classes"
        message = f"{name_list(found)} {documents.list_rows(rows)} {are}, but may mean that there is no label."
        yield finding("warning", message, rows, "Leave the cell empty then.")


def variant_labels(documents: Documents) -> Iterator[Finding]:
    """Names that differ only in case, spacing, punctuation or Unicode form, and rare names close to a frequent one."""
    rows_of = documents.rows_naming
    yield from first_of(_differ_in_style(usual, names, documents) for usual, names in _variants(rows_of).items())
    yield from first_of(_misspellings(documents))


def other_spellings(documents: Documents) -> dict[str, str]:
    """Names that are probably written wrongly, and the names that are probably meant."""
    rows_of = documents.rows_naming
    variants = {name: usual for usual, names in _variants(rows_of).items() for name in names if name != usual}
    return variants | {name: other for name, other, is_probable in _similar_names(rows_of) if is_probable}


def _variants(rows_of: Mapping[str, list[int]]) -> dict[str, list[str]]:
    """Names that differ only in style from each other, by the most frequent of them."""
    variants: dict[str, list[str]] = {}
    for name in rows_of:
        variants.setdefault(normalize_name(name), []).append(name)
    several = [names for names in variants.values() if len(names) > 1]
    return {max(names, key=lambda name: len(rows_of[name])): names for names in several}


def _differ_in_style(usual: str, names: list[str], documents: Documents) -> Finding:
    rows_of = documents.rows_naming
    rows = merged((name for name in names if name != usual), rows_of)
    differ = "differ only in case, spacing, punctuation or Unicode form"
    message = f"The labels {_counted(names, rows_of)} {differ} {documents.list_rows(rows)}."
    return finding("problem", message, rows, "Write them the same way: they are different classes now.")


def _misspellings(documents: Documents) -> Iterator[Finding]:
    rows_of = documents.rows_naming
    for name, other, is_probable in _similar_names(rows_of):
        close = f"close to {other!r} ({number_of(len(rows_of[other]), 'row')})"
        message = f"The label {name!r} {documents.list_rows(rows_of[name])} is rare and {close}."
        severity: Severity = "warning" if is_probable else "note"
        yield finding(severity, message, rows_of[name], "Correct it if it is a misspelling.")


def _similar_names(rows_of: Mapping[str, list[int]]) -> Iterator[tuple[str, str, bool]]:
    """Rare names, a frequent name close to each, and whether a misspelling is probable.

    A name of four letters that differs in one of them may well be another word.
    """
    rare = [name for name, rows in rows_of.items() if len(rows) <= _RARE]
    by_size = sorted(rows_of, key=lambda name: -len(rows_of[name]))[:_MAX_NAMES]
    for name in rare if len(rare) <= _MAX_RARE else ():
        frequent = [other for other in by_size if len(rows_of[other]) >= _FREQUENT * len(rows_of[name])]
        usual = next((other for other in frequent if is_misspelling(name, other)), None)
        similar = usual or next((other for other in frequent if differ_in_one_letter(name, other)), None)
        if similar is not None:
            yield name, similar, usual is not None


def class_tree(documents: Documents) -> Iterator[Finding]:
    """Names that cannot be classes of a tree, and paths that are read as flat classes."""
    rows_of, names = documents.rows_naming, sorted(set(documents.rows_naming) | set(documents.prior))
    if not documents.tree:
        if are_paths(rows_of) and all(map(parents_of, rows_of)):
            message = f"All {len(rows_of)} labels are paths, such as {min(rows_of)!r}, but are read as flat classes."
            yield finding("note", message, (), "Leave out --flat if the parts are levels of a tree.")
        return
    inner = {node for name in names for node in parents_of(name)}
    both = [name for name in rows_of if name in inner]
    if both:
        below = next(name for name in names if name.startswith(both[0] + "/"))
        verb = "is" if len(both) == 1 else "are"
        message = f"{name_list(both)} {verb} above other classes, such as {below!r}, and therefore a partial label."
        advice = f"If it is a class, rename it, for example to {both[0] + '/other'!r}."
        yield finding("note", message, merged(both, rows_of), advice)
    gaps = [name for name in names if not all(part.strip() for part in name.split("/"))]
    if gaps:
        message = f"{number_of(len(gaps), 'path has', 'paths have')} an empty part: {name_list(gaps)}."
        advice = 'Name every level: no "/" at the start or end, and no "//".'
        yield finding("problem", message, merged(gaps, rows_of), advice)


CHECKS_BEFORE_FIT = (variant_labels, scarce_classes, decimal_labels, placeholder_labels)
"""Checks that also run before a fit; the fit itself refuses what the others find."""
LABEL_CHECKS = (labels_present, candidate_sets, *CHECKS_BEFORE_FIT, class_tree)
