"""Common problems in a file of documents, as `transduce check` reports them."""

from transduce.cli.validation.checks import (
    as_json,
    check_documents,
    count_findings,
    has_warnings,
    label_warnings,
    misspelled_labels,
    render_findings,
    verdict,
)
from transduce.cli.validation.findings import Finding

__all__ = [
    "Finding",
    "as_json",
    "check_documents",
    "count_findings",
    "has_warnings",
    "label_warnings",
    "misspelled_labels",
    "render_findings",
    "verdict",
]
