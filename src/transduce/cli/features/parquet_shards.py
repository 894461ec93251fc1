"""Rows from a folder of Parquet files: texts are hashed batch by batch, so that no more than one batch is in memory.

    1 + log tf in the column of each word's hash, each row scaled to length 1, float32

Words are those of the other texts here. Hashing needs no look at all texts first; the price is that words which stand
everywhere weigh as much as others. Rows come in the order of the files' names, and in each file in its own.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csr_matrix

from transduce.cli.errors import InputError
from transduce.cli.features.tokenize import hash_words, in_chunks
from transduce.cli.formats import Table, labels_of, texts_of
from transduce.cli.formats.errors import fault
from transduce.io.memmap import pack_rows

BATCH_ROWS = 50_000
"""Texts that are in memory at a time."""
MOST_BITS = 30
_TRIAL = """
import sys, polars
n_rows, *columns = sys.argv[1:]
for path in sys.stdin.buffer.read().decode().split("\\0"):
    frame = polars.scan_parquet(path, glob=False)
    names = [name for name in frame.collect_schema().names() if name in columns]
    for begin in range(0, frame.select(polars.len()).collect().item(), int(n_rows)):
        frame.select(names).slice(begin, int(n_rows)).collect()
    print(flush=True)
"""
_TROUBLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, MemoryError)


class ShardPart(NamedTuple):
    """Neighbouring rows of a file: features (n, d), and labels as text for each column of them, null where none is."""

    rows: csr_matrix
    labels: dict[str, pl.Series]


def pack_shards(
    folder: str | Path,
    store: str | Path,
    text_column: str,
    n_features: int = 2**20,
    *,
    label_columns: Sequence[str] = (),
    ngrams: int = 1,
    sublinear: bool = True,
    batch_rows: int = BATCH_ROWS,
    n_jobs: int | None = None,
) -> tuple[csr_matrix, dict[str, NDArray[Any]]]:
    """Hash the texts of a folder of Parquet files into a new store, and open it: rows, and labels by column.

    The rows are mapped from the store, and labels are texts or None, as fit takes them.

    >>> import tempfile
    >>> from transduce import TransductiveClassifier
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     teas = pl.DataFrame({"text": ["green tea", "black tea", "herbal tea"], "label": ["tea", None, None]})
    ...     coffees = pl.DataFrame({"text": ["filter coffee", "coffee beans"], "label": ["coffee", None]})
    ...     teas.write_parquet(f"{folder}/0.parquet")
    ...     coffees.write_parquet(f"{folder}/1.parquet")
    ...     X, labels = pack_shards(folder, f"{folder}/store", "text", label_columns=["label"])
    ...     fit = TransductiveClassifier("maxent", class_prior={"tea": 2, "coffee": 1}).fit(X, labels["label"])
    ...     X.shape, fit.transduction_.tolist()
    ((5, 1048576), ['tea', 'tea', 'tea', 'coffee', 'coffee'])
    """
    columns = tuple(label_columns)
    kept: dict[str, list[pl.Series]] = {name: [] for name in columns}

    def rows() -> Iterator[csr_matrix]:
        options: dict[str, Any] = {"ngrams": ngrams, "sublinear": sublinear, "batch_rows": batch_rows, "n_jobs": n_jobs}
        part: ShardPart | None
        for part in parquet_parts(folder, text_column, n_features, label_columns=columns, **options):
            for name in columns:
                kept[name].append(part.labels[name])
            yield part.rows
            part = None  # before the next is made

    X = pack_rows(rows(), store)
    return X, {name: pl.concat(series).to_numpy() for name, series in kept.items()}


def parquet_parts(
    folder: str | Path,
    text_column: str,
    n_features: int = 2**20,
    *,
    label_columns: Sequence[str] = (),
    ngrams: int = 1,
    sublinear: bool = True,
    batch_rows: int = BATCH_ROWS,
    n_jobs: int | None = None,
) -> Iterator[ShardPart]:
    """Hash the texts of a folder of Parquet files, a batch of rows at a time; a missing text is an empty row.

    With sublinear=False rows are those of scikit-learn's HashingVectorizer(alternate_sign=False). n_jobs is the number
    of processes for large batches, None for one a core; rows do not depend on it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for shard, texts in {"b": ["mint tea"], "a": ["tea", None, "tea, tea or coffee"]}.items():
    ...         pl.DataFrame({"text": texts}).write_parquet(f"{folder}/{shard}.parquet")
    ...     [part.rows.data.astype(float).round(2).tolist() for part in parquet_parts(folder, "text", 2**10)]
    [[1.0, 0.45, 0.77, 0.45], [0.71, 0.71]]
    """
    bits = _bits(n_features)
    if batch_rows < 1:
        raise InputError(f"batch_rows must be 1 or more, but is {batch_rows!r}.")
    columns = (text_column, *label_columns)
    paths = _shards(folder)
    _refuse_damaged(paths, columns, batch_rows)
    sizes = [_checked_size(path, columns) for path in paths]
    if not any(sizes):
        raise fault(str(folder), "there is no row in its Parquet files. Give one row a document.")
    hashed = partial(hash_words, ngrams=ngrams, bits=bits)
    for path, size in zip(paths, sizes, strict=True):
        table = Table(str(path), _read(path, list(label_columns), 0, size), "parquet")
        labels = {name: labels_of(table, name) for name in label_columns}
        for begin in range(0, size, batch_rows):
            texts = texts_of(Table(str(path), _read(path, [text_column], begin, batch_rows), "parquet"), [text_column])
            counts = sparse.vstack(list(in_chunks(hashed, texts.to_list(), n_jobs)), format="csr", dtype=np.float32)
            some = {name: series.slice(begin, batch_rows) for name, series in labels.items()}
            yield ShardPart(_weighted(counts, sublinear), some)


def _bits(n_features: int) -> int:
    bits = int(n_features).bit_length() - 1
    if not 1 <= bits <= MOST_BITS or n_features != 1 << bits:
        raise InputError(f"n_features must be a power of 2 from 2 to 2**{MOST_BITS}, but is {n_features!r}.")
    return bits


def _shards(folder: str | Path) -> list[Path]:
    paths = sorted(path for path in Path(folder).glob("*") if path.suffix.lower() in (".parquet", ".pq"))
    if not paths:
        raise fault(str(folder), "there is no .parquet file in it. Name the folder that holds the shards.")
    return paths


def _refuse_damaged(paths: list[Path], columns: Sequence[str], batch_rows: int) -> None:
    """Let a process of its own read all files first: a corrupt one can end a process without an error to catch."""
    if not sys.executable:
        return
    here = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-P", "-c", _TRIAL, str(batch_rows), *columns]
    names = "\0".join(map(str, paths)).encode()
    trial = subprocess.run(command, input=names, env=here, capture_output=True, check=False)
    if trial.returncode:
        raise _corrupt(paths[min(trial.stdout.count(b"\n"), len(paths) - 1)])


def _checked_size(path: Path, columns: Sequence[str]) -> int:
    """Rows of a file that has the columns."""
    frame = pl.scan_parquet(path, glob=False)
    empty = Table(str(path), pl.DataFrame(schema=frame.collect_schema()), "parquet")
    for name in columns:
        empty.column(name)
    return int(frame.select(pl.len()).collect().item())


def _read(path: Path, columns: list[str], begin: int, n_rows: int) -> pl.DataFrame:
    try:
        return pl.scan_parquet(path, glob=False).select(columns).slice(begin, n_rows).collect()
    except _TROUBLE:
        raise _corrupt(path) from None


def _corrupt(path: Path) -> InputError:
    return fault(str(path), "expected a whole Parquet file, but it is cut short or corrupt. Fetch or write it again.")


def _weighted(counts: csr_matrix, sublinear: bool) -> csr_matrix:
    """Rows of length 1, or empty ones."""
    from sklearn.preprocessing import normalize  # as long to load as all else here

    if sublinear:
        np.log(counts.data, out=counts.data)
        counts.data += 1
    return normalize(counts, copy=False)
