"""What a careful colleague would notice first in a file of documents; the same file always gets the same findings."""

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from transduce.cli.classes import read_class_names
from transduce.cli.validation.findings import NOTE, PROBLEM, WARNING, Documents, Finding
from transduce.cli.validation.label_checks import LABEL_CHECKS, NOTED
from transduce.cli.validation.prior_checks import PRIOR_CHECKS
from transduce.cli.validation.text_checks import TEXT_CHECKS

_WIDTH, _INDENT = 100, 9


def check_documents(
    texts: Sequence[str],
    labels: Sequence[str | None],
    prior: Mapping[str, tuple[float, float]] | None,
    *,
    tree: bool,
    flat: bool = False,
) -> list[Finding]:
    """Findings, the most severe first; labels are None or blank where there is none, prior is the share low..high.

    `tree` says whether labels are paths, `flat` that all of them, even "a|b", are names of classes.

    >>> found = check_documents(["tea, please", "Tea,  please", ""], ["tea", "coffee", None], None, tree=False)
    >>> for one in found:
    ...     print(one.severity, one.what)
    warning 2 classes with one label only: 'coffee' and 'tea'.
    warning Empty texts: 1 of 3 (row 3).
    warning 1 text has different labels in different rows, such as 'tea' in row 1 and 'coffee' in row 2.
    note 1 text comes more than once, in 2 rows; the most frequent one 2 times (rows 1 and 2).
    """
    if len(texts) != len(labels):
        raise ValueError(f"every text needs a label or None, but {len(texts)} texts and {len(labels)} labels came.")
    given = [label if label is not None and label.strip() else None for label in labels]
    documents = Documents(texts, given, prior, tree, flat)
    found = [one for check in (*LABEL_CHECKS, *PRIOR_CHECKS, *TEXT_CHECKS) for one in check(documents)]
    return sorted(found, key=lambda one: (PROBLEM, WARNING, NOTE).index(one.severity))


def label_notes(labels: Sequence[str | None], *, flat: bool = False) -> list[str]:
    """What is plainly odd about labels, in sentences; the texts are not looked at, so that it takes no time.

    >>> label_notes(["tea", "tea", "?", "?", None])
    ["'?' (rows 3 and 4) counts as a class, but may stand for no label. Leave the cells empty where there is none."]
    """
    tree = read_class_names(Counter(label for label in labels if label is not None), flat=flat).tree
    documents = Documents((), labels, None, tree, flat)
    found = [one for check in NOTED for one in check(documents) if one.severity in (PROBLEM, WARNING)]
    return [f"{one.what} {one.advice}" for one in found]


def is_odd(findings: Sequence[Finding]) -> bool:
    """Whether there is a problem or a warning among them."""
    return any(one.severity in (PROBLEM, WARNING) for one in findings)


def render_findings(findings: Sequence[Finding]) -> str:
    """Plain text for a terminal: a paragraph a finding, its advice below.

    >>> print(render_findings([Finding("note", "2 texts are odd.", (1, 2), "Look at them.")]))
    note     2 texts are odd.
             Look at them.
    """
    if not findings:
        return "Nothing stands out."
    return "\n".join(_paragraph(one.what, one.severity) + "\n" + _paragraph(one.advice, "") for one in findings)


def _paragraph(sentence: str, head: str) -> str:
    return textwrap.fill(
        sentence,
        width=_WIDTH,
        initial_indent=head.ljust(_INDENT),
        subsequent_indent=" " * _INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )


def as_json(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """Findings as plain objects, ready for json.dumps.

    >>> as_json([Finding("note", "2 texts are odd.", (1, 2), "Look at them.")])
    [{'severity': 'note', 'what': '2 texts are odd.', 'rows': [1, 2], 'advice': 'Look at them.'}]
    """
    return [{**asdict(one), "rows": list(one.rows)} for one in findings]
