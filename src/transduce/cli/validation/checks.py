"""All checks of a file of documents, and their findings as text or JSON; the result is deterministic."""

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from transduce.class_prior.spec import Prior
from transduce.cli.classes import read_class_names
from transduce.cli.validation.findings import Documents, Finding
from transduce.cli.validation.label_checks import CHECKS_BEFORE_FIT, LABEL_CHECKS, other_spellings
from transduce.cli.validation.none_checks import NONE_CHECKS
from transduce.cli.validation.prior_checks import PRIOR_CHECKS
from transduce.cli.validation.text_checks import TEXT_CHECKS
from transduce.suggest import number_of

_WIDTH, _INDENT = 100, 9
_SEVERITIES = ("problem", "warning", "note")


def check_documents(
    texts: Sequence[str],
    labels: Sequence[str | None],
    prior: Prior | None,
    *,
    tree: bool,
    flat: bool = False,
    none: tuple[int, int] | None = None,
    plain_rows: Mapping[str, float] | None = None,
    row_is_line: bool = False,
) -> list[Finding]:
    """Return findings, the most severe first.

    Labels are None or blank where missing. `prior` has the stated size of each class. `tree` says whether labels are
    paths; with `flat`, all labels are plain names, even "a|b". `none` is the least and the greatest number of rows that
    are to stay without a label; `plain_rows` are sizes that may have been meant as per cents. `row_is_line`: row k is
    line k + 1 of the file.

    >>> for one in check_documents(["green tea", "coffee", ""], ["tea", "coffee", None], None, tree=False):
    ...     print(one.severity, one.message)
    warning 2 classes have only one label: 'coffee' and 'tea'.
    warning 1 of 3 texts is empty (row 3).
    """
    if len(texts) != len(labels):
        found = f"there are {len(texts)} texts and {len(labels)} labels"
        raise ValueError(f"every text needs a label or None, but {found}.")
    given = [label if label is not None and label.strip() else None for label in labels]
    documents = Documents(texts, given, prior or {}, tree, flat, none, plain_rows or {}, row_is_line)
    checks = (*LABEL_CHECKS, *PRIOR_CHECKS, *NONE_CHECKS, *TEXT_CHECKS)
    findings = [replace(one, check=check.__name__) for check in checks for one in check(documents)]
    return sorted(findings, key=lambda one: _SEVERITIES.index(one.severity))


def label_warnings(labels: Sequence[str | None], *, flat: bool = False, row_is_line: bool = False) -> list[str]:
    """Describe obvious problems of labels, to follow "Note:"; texts are not examined, so that this takes no time."""
    documents = replace(_without_texts(labels, flat), row_is_line=row_is_line)
    found = [one for check in CHECKS_BEFORE_FIT for one in check(documents)]
    return [f"{one.message[:1].lower()}{one.message[1:]} {one.advice}" for one in found if one.severity != "note"]


def misspelled_labels(labels: Sequence[str | None], *, flat: bool = False) -> dict[str, str]:
    """Labels that are probably misspelled, and those that are probably meant.

    >>> misspelled_labels(["travle", *["travel"] * 5, None])
    {'travle': 'travel'}
    """
    return other_spellings(_without_texts(labels, flat))


def _without_texts(labels: Sequence[str | None], flat: bool) -> Documents:
    tree = read_class_names(Counter(label for label in labels if label is not None), flat=flat).tree
    return Documents((), labels, {}, tree, flat)


def has_warnings(findings: Sequence[Finding]) -> bool:
    """Whether any finding is a problem or a warning."""
    return any(one.severity != "note" for one in findings)


def count_findings(findings: Sequence[Finding]) -> dict[str, int]:
    """Number of problems, warnings and notes."""
    counts = Counter[str](one.severity for one in findings)
    return {f"{severity}s": counts[severity] for severity in _SEVERITIES}


def verdict(n_rows: int, n_labeled: int, n_classes: int, findings: Sequence[Finding]) -> str:
    """What a file holds and how many findings there are, in a sentence.

    >>> verdict(2000, 60, 10, [Finding("note", "2 texts occur more than once.", (), "")])
    '2000 rows, 60 labelled, 10 classes: no problem found, 1 note.'
    """
    counts = Counter[str](one.severity for one in findings)
    found = [number_of(counts[severity], severity) for severity in _SEVERITIES if counts[severity]]
    found = found if counts["problem"] else ["no problem found", *found]
    rows, classes = number_of(n_rows, "row"), number_of(n_classes, "class", "classes")
    return f"{rows}, {n_labeled} labelled, {classes}: {', '.join(found)}."


def render_findings(findings: Sequence[Finding]) -> str:
    """Format findings for a terminal: one paragraph each, followed by its advice."""
    wrapper = textwrap.TextWrapper(_WIDTH, break_long_words=False, break_on_hyphens=False)
    wrapper.subsequent_indent = " " * _INDENT
    paragraphs = []
    for one in findings:
        for head, sentence in ((one.severity, one.message), ("", one.advice)):
            wrapper.initial_indent = head.ljust(_INDENT)
            paragraphs.append(wrapper.fill(sentence))
    return "\n".join(paragraphs)


def as_json(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """Return findings as plain objects for json.dumps."""
    return [{**asdict(one), "rows": list(one.rows)} for one in findings]
