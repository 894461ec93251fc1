"""svmlight files: "target index:value ... # comment", one row a line; target 0 marks a row without a label.

Index j is column j, whether a file counts from 0 or from 1: a guess from its smallest index could differ between two
files of one kind. A line that one regular expression accepts is split at once; any other line is gone through token by
token, to say what is wrong with it.
"""

import re
from array import array
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from transduce.cli.formats.errors import fault, quoted
from transduce.cli.formats.table import Table

Array = NDArray[Any]

_NUMBER = rb"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?"
_LINE = re.compile(rb"(%b)(?:\s+qid:[0-9]+)?((?:\s+[0-9]{1,10}:%b)*+)" % (_NUMBER, _NUMBER))
_PAIR = re.compile(rb"([0-9]+):(%b)" % _NUMBER)
_NUMBER_ONLY = re.compile(_NUMBER)
_LARGEST_INDEX = 2**31 - 1
_INDEX_TOO_LARGE = f"expected feature indices up to {_LARGEST_INDEX}, but one is larger. Number the features anew."
_EXACT_IN_FLOAT = 2**53


def read_svmlight(data: bytes, name: str) -> Table:
    r"""Read rows and their labels.

    >>> table = read_svmlight(b"+1 1:0.5 3:1\n0 2:2 # not labelled\n", "data.svm")
    >>> table.frame.rows(), table.vectors.shape
    ([(1, '1'), (2, None)], (2, 4))
    """
    rows = _scan(data, name)
    _check(rows, name)
    labels = pl.Series("label", [_label(target) for target in rows.targets.tolist()], dtype=pl.String)
    numbers = pl.Series("row", np.arange(1, len(labels) + 1))
    return Table(name, pl.DataFrame([numbers, labels]), "svmlight", vectors=_matrix(rows), label="label")


class _Rows(NamedTuple):
    """targets (n,), lines (n,) and ends (n + 1,) of the rows; indices and values of all features one after another."""

    targets: Array
    indices: Array
    values: Array
    ends: Array
    lines: Array


def _scan(data: bytes, name: str) -> _Rows:
    targets, indices, values, ends, lines = array("d"), array("q"), array("d"), array("q", [0]), array("q")
    for line, content in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        content = content.partition(b"#")[0].strip()
        if not content:
            continue
        match = _LINE.fullmatch(content)
        if match is None:
            raise fault(name, _what_is_wrong(content), line=line)
        tokens = match[2].replace(b":", b" ").split()
        targets.append(float(match[1]))
        indices.extend(map(int, tokens[::2]))
        values.extend(map(float, tokens[1::2]))
        ends.append(len(indices))
        lines.append(line)
    return _Rows(*map(np.asarray, (targets, indices, values, ends, lines)))


def _what_is_wrong(content: bytes) -> str:
    """Find the first token that is none."""
    target, *pairs = content.split()
    if not _NUMBER_ONLY.fullmatch(target):
        several = all(map(_NUMBER_ONLY.fullmatch, target.split(b",")))
        advice = "Keep one label a row." if several else "Write class numbers, and 0 for none, or mend --format."
        return f"expected a number as target, but found {_shown(target)}. {advice}"
    if pairs and re.fullmatch(rb"qid:[0-9]+", pairs[0]):
        pairs = pairs[1:]
    wrong = next((pair for pair in pairs if not _PAIR.fullmatch(pair)), None)
    if wrong is not None:
        return f"expected index:value, two finite numbers, but found {_shown(wrong)}. Correct it."
    return _INDEX_TOO_LARGE


def _check(rows: _Rows, name: str) -> None:
    """Check what can be seen for all rows at once."""
    targets, indices, values, ends, lines = rows
    if len(targets) == 0:
        raise fault(name, "there is no row in it. Give one line a document.")
    if len(indices) == 0:
        raise fault(name, "no row has a feature. Write them as index:value.", line=int(lines[0]))
    line_of_feature = np.repeat(lines, np.diff(ends))
    unsorted = np.zeros(len(indices), bool)
    unsorted[1:] = (np.diff(indices) <= 0) & (np.diff(line_of_feature) == 0)
    for wrong, line_of, what in (
        (~np.isfinite(targets), lines, "the target is too large for a number. Write class numbers."),
        (~np.isfinite(values), line_of_feature, "a value is too large for a number. Scale the features."),
        (indices > _LARGEST_INDEX, line_of_feature, _INDEX_TOO_LARGE),
        (unsorted, line_of_feature, "expected indices that rise, but one comes again or too late. Sort them."),
    ):
        if wrong.any():
            raise fault(name, what, line=int(line_of[np.argmax(wrong)]))


def _matrix(rows: _Rows) -> csr_matrix:
    shape = (len(rows.targets), int(rows.indices.max()) + 1)
    return csr_matrix((rows.values, rows.indices, rows.ends), shape=shape)


def _label(target: float) -> str | None:
    if target == 0:
        return None
    return str(int(target)) if target.is_integer() and abs(target) <= _EXACT_IN_FLOAT else repr(target)


def _shown(token: bytes) -> str:
    return quoted(token.decode("utf-8", "replace"))
