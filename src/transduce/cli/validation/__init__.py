"""The check-up: what a careful colleague would notice first in a file of documents."""

from transduce.cli.validation.documents import as_json, check_documents, is_odd, label_notes, render_findings
from transduce.cli.validation.findings import Finding

__all__ = ["Finding", "as_json", "check_documents", "is_odd", "label_notes", "render_findings"]
