"""Checks of --none, the rows that are to stay without a label because they fit no class."""

from collections.abc import Iterator

from transduce.cli.validation.findings import Documents, Finding, finding, merged, name_list

MIN_ROWS = 500
"""Rows without a label below which those that fit no class are hard to tell from the others."""
CATCH_ALL = frozenset(
    ("other", "others", "misc", "miscellaneous", "rest", "none of these", "none of the above", "no class", "oos",
     "out of scope", "out-of-scope", "off topic", "off-topic", "irrelevant")
)  # fmt: skip
"""Names of classes for everything else."""


def none_among_few_rows(documents: Documents) -> Iterator[Finding]:
    """Rows that fit no class among so few that each looks like itself only."""
    n_rows = len(documents.labels) - documents.n_labeled
    if documents.none is None or documents.none[1] == 0 or n_rows >= MIN_ROWS:
        return
    message = f"--none is to find rows that fit no class among {n_rows} without a label, which is hard among so few."
    yield finding("warning", message, (), "Look at every row that stays without a label, or leave out --none.")


def none_beside_catch_all(documents: Documents) -> Iterator[Finding]:
    """Classes for everything else, which compete with --none."""
    names = [name for name in documents.rows_of if name.split("/")[-1].strip().lower() in CATCH_ALL]
    if documents.none is None or not names:
        return
    message = f"Rows that fit no other class may get {name_list(names)} or, by --none, no label."
    advice = "If the class is meant for them, leave out --none. If it is not, clear those labels."
    yield finding("note", message, merged(names, documents.rows_of), advice)


NONE_CHECKS = (none_among_few_rows, none_beside_catch_all)
