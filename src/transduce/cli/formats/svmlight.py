"""svmlight files: "target index:value ... # comment", one row per line; target 0 means that the row has no label.

Index j is column j, whether the file counts from 0 or from 1: guessing from the smallest index could give two files of
one data set different columns.
"""

import re
from array import array
from codecs import BOM_UTF8
from typing import Any

import numpy as np
import polars as pl
from scipy.sparse import csr_matrix

from transduce.arrays import Array
from transduce.cli.formats.errors import ContentError, quoted
from transduce.cli.formats.table import Table

_NUMBER = rb"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?"
_LINE = re.compile(rb"(%b)(?:\s+qid:[0-9]+)?((?:\s+[0-9]{1,10}:%b)*+)" % (_NUMBER, _NUMBER))
_PAIR = re.compile(rb"[0-9]+:%b" % _NUMBER)
_NUMBER_ONLY = re.compile(_NUMBER)
_MAX_INDEX = 2**31 - 1
_INDEX_TOO_LARGE = f"expected feature indices up to {_MAX_INDEX}, but found a larger one. Renumber the features."
_MAX_EXACT_FLOAT = 2**53


def read_svmlight(data: bytes, name: str) -> Table:
    """Read rows and their labels."""
    targets, indices, values, indptr, lines = map(np.asarray, _scan(data))
    _check(targets, indices, values, np.diff(indptr), lines)
    labels = pl.Series("label", [_label(target) for target in targets.tolist()], dtype=pl.String)
    numbers = pl.Series("row", np.arange(1, len(labels) + 1))
    vectors = csr_matrix((values, indices, indptr), shape=(len(targets), int(indices.max()) + 1))
    return Table(name, pl.DataFrame([numbers, labels]), "svmlight", vectors=vectors, label="label")


def _scan(data: bytes) -> tuple["array[Any]", ...]:
    """Return the targets, the features in CSR layout (indices, values, indptr) and the line of each row."""
    targets, indices, values, indptr, lines = array("d"), array("q"), array("d"), array("q", [0]), array("q")
    for line, content in enumerate(data.removeprefix(BOM_UTF8).split(b"\n"), start=1):
        content = content.partition(b"#")[0].strip()
        if not content:
            continue
        match = _LINE.fullmatch(content)
        if match is None:
            raise ContentError(_diagnose(content), line)
        tokens = match[2].replace(b":", b" ").split()
        targets.append(float(match[1]))
        indices.extend(map(int, tokens[::2]))
        values.extend(map(float, tokens[1::2]))
        indptr.append(len(indices))
        lines.append(line)
    return targets, indices, values, indptr, lines


def _diagnose(content: bytes) -> str:
    """Describe the first invalid token of a line; valid lines are recognised as a whole."""
    target, *pairs = content.split()
    if not _NUMBER_ONLY.fullmatch(target):
        advice = "Write class numbers, with 0 for no label, or check --format."
        if all(map(_NUMBER_ONLY.fullmatch, target.split(b","))):
            advice = "Keep one label per row."
        return f"expected a number as the target, but found {quoted(target.decode(errors='replace'))}. {advice}"
    if pairs and re.fullmatch(rb"qid:[0-9]+", pairs[0]):
        pairs = pairs[1:]
    for pair in pairs:
        if not _PAIR.fullmatch(pair):
            found = quoted(pair.decode(errors="replace"))
            return f"expected index:value with two finite numbers, but found {found}. Correct it."
    return _INDEX_TOO_LARGE


def _check(targets: Array, indices: Array, values: Array, lengths: Array, lines: Array) -> None:
    """Check what can be checked for all rows at once."""
    if len(targets) == 0:
        raise ContentError("the file has no rows. Write one line per document.")
    if len(indices) == 0:
        raise ContentError("no row has a feature. Write features as index:value.", int(lines[0]))
    line_of_feature = np.repeat(lines, lengths)
    unsorted = np.zeros(len(indices), bool)
    unsorted[1:] = (np.diff(indices) <= 0) & (np.diff(line_of_feature) == 0)
    for wrong, line_of, problem in (
        (~np.isfinite(targets), lines, "the target is too large. Write class numbers."),
        (~np.isfinite(values), line_of_feature, "a value is too large. Scale the features."),
        (indices > _MAX_INDEX, line_of_feature, _INDEX_TOO_LARGE),
        (unsorted, line_of_feature, "expected increasing indices, but one is repeated or out of order. Sort them."),
    ):
        if wrong.any():
            raise ContentError(problem, int(line_of[np.argmax(wrong)]))


def _label(target: float) -> str | None:
    if target == 0:
        return None
    return str(int(target)) if target.is_integer() and abs(target) <= _MAX_EXACT_FLOAT else repr(target)
