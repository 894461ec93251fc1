"""The queue: unlabelled rows where a person's label would help most, written as a table or for Label Studio.

A row is worth asking for when the classifier hesitates (uncertainty), when many rows are like it (density), and when
nothing like it is in the queue yet (novelty); no text is asked for twice:

    worth(i) = (1 - (p_best - p_runner_up)) * mean_j x_i·x_j * (1 - max_{c chosen} x_i·x_c)^4
"""

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix, diags

from transduce.cli.errors import InputError
from transduce.cli.formats import Dialect, Table, texts_of, write_table
from transduce.cli.queue.answers import CONFIDENCE, LABEL, ROW, SUGGESTED
from transduce.io.atomic_write import atomic_write

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

NOVELTY_POWER = 4
POOL_AT_LEAST, POOL_A_ROW = 1000, 10
"""The queue is chosen among so many rows of the best uncertainty times density, which keeps a million rows quick."""
_LEAST = 1e-9
_PLAIN = Dialect()


def choose_rows(probabilities: NDArray[Any], X: csr_matrix, n: int, *, seed: int = 0) -> IntArray:
    """The n rows to ask for, most useful first; fewer where there are fewer different texts.

    probabilities (m, K) of the classes and X (m, d), one feature row each, are those of unlabelled rows only; the
    numbers returned count these rows from 0. The seed decides between rows of equal worth.

    >>> P = np.array([[0.5, 0.5], [0.5, 0.5], [0.9, 0.1], [0.6, 0.4]])
    >>> X = csr_matrix(np.array([[1.0, 0.0], [1.0, 0.0], [0.8, 0.6], [0.0, 1.0]]))
    >>> choose_rows(P, X, 2).tolist()
    [0, 3]
    """
    P, X = np.asarray(probabilities, dtype=np.float64), csr_matrix(X)
    _check(P, X, n)
    X, empty = _unit_rows(X)
    jitter = np.random.default_rng(seed).random(len(P))
    worth = np.maximum(_uncertainty(P), _LEAST) * np.maximum(_density(X), _LEAST) * (1 + _LEAST * jitter)
    worth[empty] = 0.0
    different = _first_of_duplicates(X, seed)
    n_pool = min(different.size, max(POOL_AT_LEAST, POOL_A_ROW * n))
    pool = different[np.argsort(-worth[different], kind="stable")[:n_pool]]
    return np.asarray(pool[_spread_out(worth[pool], X[pool], min(n, n_pool))])


def _check(P: FloatArray, X: csr_matrix, n: int) -> None:
    if n < 1:
        raise InputError(f"the number of rows to queue must be 1 or more, but is {n}.")
    if P.ndim != 2 or P.shape[0] != X.shape[0] or P.shape[1] == 0:
        raise ValueError(f"probabilities must be (rows, classes) for the {X.shape[0]} rows of X, but are {P.shape}.")
    if not np.isfinite(P).all() or not np.isfinite(X.data).all():
        raise ValueError("probabilities and X must be finite, but hold NaN or infinity.")


def _unit_rows(X: csr_matrix) -> tuple[csr_matrix, NDArray[np.bool_]]:
    """Rows of length 1, copied only where they are not yet, and which are empty."""
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel())
    empty = norms == 0
    if np.any(np.abs(norms[~empty] - 1) > 1e-3):
        X = csr_matrix(diags(1 / np.where(empty, 1.0, norms)) @ X)
    return X, empty


def _uncertainty(P: FloatArray) -> FloatArray:
    """1 where best and runner-up are equally probable, 0 where the best is certain."""
    if P.shape[1] == 1:
        return 1 - P[:, 0]
    two = np.partition(P, P.shape[1] - 2, axis=1)[:, -2:]
    return np.asarray(1 - (two[:, 1] - two[:, 0]))


def _density(X: csr_matrix) -> FloatArray:
    """The mean cosine of each row with all rows, without the matrix of cosines."""
    total = X.T @ np.ones(X.shape[0])
    return np.asarray(X @ total / max(X.shape[0], 1))


def _first_of_duplicates(X: csr_matrix, seed: int) -> IntArray:
    """The first row of each group of equal rows, in order: equal rows have equal products with random vectors."""
    X = X if X.has_sorted_indices else X.sorted_indices()  # sums of the same numbers in the same order are equal
    rng = np.random.default_rng(seed)
    keys = X @ rng.standard_normal(X.shape[1]) + 1j * (X @ rng.standard_normal(X.shape[1]))
    return np.sort(np.unique(keys, return_index=True)[1])


def _spread_out(worth: FloatArray, X: csr_matrix, n: int) -> IntArray:
    """Greedily the row of most worth, discounted by its cosine with the nearest row chosen before."""
    by_feature, nearest = csr_matrix(X.T), np.zeros(len(worth))
    value, chosen = worth.copy(), np.empty(n, np.int64)
    for place in range(n):
        best = chosen[place] = int(value.argmax())
        cosines = X[best] @ by_feature
        near = cosines.indices
        nearest[near] = np.maximum(nearest[near], np.clip(cosines.data, 0, 1))
        taken = value[near] < 0
        value[near] = np.where(taken, -1.0, worth[near] * (1 - nearest[near]) ** NOVELTY_POWER)
        value[best] = -1.0
    return chosen


def check_columns(text_columns: Sequence[str], label_name: str = LABEL) -> None:
    """See that no text column has the name of a column of the queue."""
    for name in text_columns:
        if name in (ROW, label_name, SUGGESTED, CONFIDENCE):
            raise InputError(f"the text column {name!r} has the name of a column of the queue; rename it in the file.")


def queue_frame(
    table_frame: pl.DataFrame,
    rows: ArrayLike,
    suggestions: Sequence[str],
    confidences: ArrayLike,
    text_columns: Sequence[str],
    label_name: str = LABEL,
) -> pl.DataFrame:
    """What a person fills in: row (from 1), an empty label, what the classifier suggests, then the text.

    `rows` count the rows of the table from 0; suggestions and confidences are theirs, in the same order.

    >>> queue_frame(pl.DataFrame({"text": ["a", "b"]}), [1], ["tea"], [0.6], ["text"], "label").row(0, named=True)
    {'row': 2, 'label': '', 'suggested': 'tea', 'confidence': 0.6, 'text': 'b'}
    """
    check_columns(text_columns, label_name)
    index = np.asarray(rows, dtype=np.int64)
    head = {
        ROW: pl.Series(index + 1, dtype=pl.Int64),
        label_name: pl.Series([""] * len(index), dtype=pl.String),
        SUGGESTED: pl.Series(list(suggestions), dtype=pl.String),
        CONFIDENCE: pl.Series(np.round(np.asarray(confidences, dtype=np.float64), 4), dtype=pl.Float64),
    }
    return pl.DataFrame(head).hstack([table_frame[name][index] for name in text_columns])


def label_studio_tasks(
    frame: pl.DataFrame, text_columns: Sequence[str], classes: Sequence[str]
) -> list[dict[str, Any]]:
    """The queue in Label Studio's import format, each suggestion as a prediction.

    >>> frame = queue_frame(pl.DataFrame({"text": ["a"]}), [0], ["tea"], [0.6], ["text"])
    >>> task = label_studio_tasks(frame, ["text"], ["coffee", "tea"])[0]
    >>> task["data"], task["predictions"][0]["result"][0]["value"]
    ({'row': 1, 'text': 'a'}, {'choices': ['tea']})
    """
    known, table = set(classes), Table("the queue", frame, "")
    texts = {name: texts_of(table, [name]).to_list() for name in text_columns}
    shown = {_variable(name): column for name, column in texts.items()} | texts
    tasks = []
    for place, (row, suggested, confidence) in enumerate(frame.select(ROW, SUGGESTED, CONFIDENCE).iter_rows()):
        task: dict[str, Any] = {"data": {ROW: row, **{name: column[place] for name, column in shown.items()}}}
        if suggested in known:
            task["predictions"] = [_prediction(suggested, confidence)]
        tasks.append(task)
    return tasks


def _prediction(suggested: str, confidence: float) -> dict[str, Any]:
    result = {"from_name": "label", "to_name": "text", "type": "choices", "value": {"choices": [suggested]}}
    return {"model_version": "transduce", "score": confidence, "result": [result]}


def _variable(name: str) -> str:
    """The key by which Label Studio can refer to a column: its variables know letters, digits and "_" only."""
    return name if re.fullmatch(r"[A-Za-z0-9_]+", name) else "text_" + name.encode("utf-8").hex()


def label_studio_config(classes: Iterable[str], text_column: str | Sequence[str]) -> str:
    """The labelling interface as XML: the text, or several, above one choice among the classes.

    >>> print(label_studio_config(["R&D", "tea"], "body"))
    <View>
      <Text name="text" value="$body"/>
      <Choices name="label" toName="text" choice="single" showInline="true">
        <Choice value="R&amp;D"/>
        <Choice value="tea"/>
      </Choices>
    </View>
    """
    columns = [text_column] if isinstance(text_column, str) else list(text_column) or [ROW]
    names = ["text", *(f"text_{k}" for k in range(2, len(columns) + 1))]
    lines = [f'  <Text name="{n}" value="${_variable(c)}"/>' for n, c in zip(names, columns, strict=True)]
    lines.append('  <Choices name="label" toName="text" choice="single" showInline="true">')
    lines += [f"    <Choice value={quoteattr(_for_xml(name))}/>" for name in classes]
    return "\n".join(["<View>", *lines, "  </Choices>", "</View>"])


def _for_xml(name: str) -> str:
    if re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]", name):
        raise InputError(f"class {name!r} holds a character that Label Studio's XML cannot; rename the class.")
    return name


def interface_of(target: str) -> str | None:
    """Where the labelling interface goes: beside tasks for Label Studio, and nowhere for a table.

    >>> interface_of("ask.json"), interface_of("ask.csv")
    ('ask.xml', None)
    """
    path = Path(target)
    return str(path.with_suffix(".xml")) if path.suffix.lower() == ".json" else None


def write_queue(
    frame: pl.DataFrame,
    target: str,
    classes: Sequence[str],
    text_columns: Sequence[str],
    dialect: Dialect = _PLAIN,
) -> list[str]:
    """Write the queue by suffix, a table or tasks for Label Studio with their interface, and give the names written."""
    interface = interface_of(target)
    if interface is None:
        write_table(frame, target, dialect=dialect)
        return [target]
    config = label_studio_config(classes, text_columns)
    tasks = json.dumps(label_studio_tasks(frame, text_columns, classes), ensure_ascii=False, indent=1, allow_nan=False)
    for name, content in ((interface, config), (target, tasks)):
        with atomic_write(name) as file:
            file.write(f"{content}\n".encode())
    return [target, interface]
