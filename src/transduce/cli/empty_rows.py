"""Rows without a value in any feature, such as empty texts: which ones they are, and what commands say of them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from transduce.cli.formats import Table
from transduce.cli.validation.findings import row_list
from transduce.features.tfidf import ENCODER_KINDS


def rows_without_values(X: Any) -> NDArray[np.bool_]:
    """Whether each row of sparse or dense features is zero."""
    return np.asarray(X.getnnz(axis=1) == 0 if sparse.issparse(X) else ~np.any(X != 0, axis=1))


def what_lacks(kind: str, known_word: str) -> tuple[str, str]:
    """What one or several rows of zeros lack, by the kind of features.

    >>> what_lacks("tfidf", "word that the model knows")
    ('is empty or has no word that the model knows', 'are empty or have no word that the model knows')
    """
    if kind == "vectors":
        return "has a vector of zeros", "have a vector of zeros"
    word = "word that the encoder knows" if kind in ENCODER_KINDS else known_word
    return f"is empty or has no {word}", f"are empty or have no {word}"


def empty_rows_note(
    is_empty: NDArray[np.bool_],
    among: NDArray[np.bool_],
    table: Table,
    what: str,
    lack: tuple[str, str],
    so: tuple[str, str],
) -> list[str]:
    """Say how many of some rows are empty, and what follows from that; nothing if none is.

    among  (n,) the rows that are counted, which are called `what`
    lack   what one row and what several rows lack; `so`: what follows then

    >>> import polars as pl
    >>> table, both = Table("a.csv", pl.DataFrame(), "csv"), np.array([True, True])
    >>> so = "its label is a guess", "their labels are guesses"
    >>> empty_rows_note(np.array([False, True]), both, table, "rows", ("is empty", "are empty"), so)
    ['Note: 1 of 2 rows is empty, so its label is a guess (row 2).']
    """
    rows, n_rows = np.flatnonzero(is_empty & among) + 1, np.count_nonzero(among)
    if not rows.size:
        return []
    place = row_list(rows.tolist(), is_line=table.row_is_line)
    which = int(rows.size > 1)
    return [f"Note: {rows.size} of {n_rows} {what} {lack[which]}, so {so[which]} ({place})."]
