"""Feature rows from a folder of Parquet files: texts are hashed in batches, so that one batch is in memory at a time.

    1 + log tf in the column of each word's hash, each row scaled to length 1, float32

Rows follow the order of the file names, and the order within each file. There are no document frequencies, since those
would need a first pass over all texts: words that occur everywhere weigh as much as others.
"""

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
from transduce.cli.formats import Table, labels_of, texts_of
from transduce.cli.formats.decoding import expansion_limit
from transduce.cli.formats.errors import FileError
from transduce.cli.formats.parquet import CORRUPT, READ_ERRORS, succeeds
from transduce.features.word_counts import hash_words, map_chunks
from transduce.io.memmap import pack_rows

BATCH_ROWS = 50_000
"""Number of texts in memory at a time."""
MAX_BITS = 30
_TRIAL = """
import sys, polars
n_rows, *columns = sys.argv[1:]
for path in sys.stdin.buffer.read().decode().split("\\0"):
    frame = polars.scan_parquet(path, glob=False)
    names = [name for name in frame.collect_schema().names() if name in columns]
    for begin in range(0, frame.select(polars.len()).collect().item(), int(n_rows)):
        frame.select(names).slice(begin, int(n_rows)).collect()
"""


class Batch(NamedTuple):
    """Consecutive rows of a file: features (n, d), and the labels of each label column as text, null where missing."""

    rows: csr_matrix
    labels: dict[str, pl.Series]


def pack_shards(
    folder: str | Path,
    store: str | Path,
    text_column: str,
    n_features: int = 2**20,
    *,
    label_columns: Sequence[str] = (),
    **options: Any,
) -> tuple[csr_matrix, dict[str, NDArray[Any]]]:
    """Hash the texts of a folder of Parquet files into a new store, and open it.

    Returns the rows, memory-mapped from the store, and the labels of each label column as `fit` takes them: texts, or
    None where missing. See `hash_shards` for the other parameters and the options.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     teas = pl.DataFrame({"text": ["green tea", "black tea"], "label": ["tea", None]})
    ...     teas.write_parquet(f"{folder}/0.parquet")
    ...     X, labels = pack_shards(folder, f"{folder}/store", "text", label_columns=["label"])
    ...     X.shape, labels["label"].tolist()
    ((2, 1048576), ['tea', None])
    """
    labels: dict[str, list[pl.Series]] = {name: [] for name in label_columns}

    def rows() -> Iterator[csr_matrix]:
        batch: Batch | None
        for batch in hash_shards(folder, text_column, n_features, label_columns=tuple(labels), **options):
            for name, series in batch.labels.items():
                labels[name].append(series)
            yield batch.rows
            batch = None  # free it before the next one is made

    X = pack_rows(rows(), store)
    return X, {name: pl.concat(series).to_numpy() for name, series in labels.items()}


def hash_shards(
    folder: str | Path,
    text_column: str,
    n_features: int = 2**20,
    *,
    label_columns: Sequence[str] = (),
    ngrams: int = 1,
    sublinear: bool = True,
    batch_rows: int = BATCH_ROWS,
    n_jobs: int | None = None,
) -> Iterator[Batch]:
    """Hash the texts of a folder of Parquet files, one batch of rows at a time; a missing text is an empty row.

    With sublinear=False, rows are those of scikit-learn's HashingVectorizer(alternate_sign=False). `n_jobs` is the
    number of processes for large batches (None: one per core); it does not change the result.
    """
    bits = int(n_features).bit_length() - 1
    if not 1 <= bits <= MAX_BITS or n_features != 1 << bits:
        raise InputError(f"n_features must be a power of 2 from 2 to 2**{MAX_BITS}, but is {n_features!r}.")
    if batch_rows < 1:
        raise InputError(f"batch_rows must be at least 1, but is {batch_rows!r}.")
    count = partial(hash_words, ngrams=ngrams, bits=bits)
    for path, height in _checked_heights(folder, (text_column, *label_columns), batch_rows).items():
        table = _read(path, label_columns, 0, height)
        labels = {name: labels_of(table, name) for name in label_columns}
        for start in range(0, height, batch_rows):
            texts = texts_of(_read(path, [text_column], start, batch_rows), [text_column])
            counts = sparse.vstack(list(map_chunks(count, texts.to_list(), n_jobs)), format="csr", dtype=np.float32)
            some = {name: series.slice(start, batch_rows) for name, series in labels.items()}
            yield Batch(unit_hashed_rows(counts, sublinear), some)


def unit_hashed_rows(counts: csr_matrix, sublinear: bool) -> csr_matrix:
    """Scale rows of counts, or of 1 + log counts, to length 1 in place; empty rows stay empty."""
    from sklearn.preprocessing import normalize  # slow to import

    if sublinear:
        np.log(counts.data, out=counts.data)
        counts.data += 1
    return normalize(counts, copy=False)


def _checked_heights(folder: str | Path, columns: Sequence[str], batch_rows: int) -> dict[Path, int]:
    """Return the number of rows of each file; a child process reads all first, since a corrupt file may abort it."""
    paths = sorted(path for path in Path(folder).glob("*") if path.suffix.lower() in (".parquet", ".pq"))
    if not paths:
        raise FileError(str(folder), "it has no .parquet files. Name the folder that contains the shards.")

    def is_readable(some: list[Path]) -> bool:
        n_bytes = sum(path.stat().st_size for path in some)
        return succeeds(
            _TRIAL, "\0".join(map(str, some)).encode(), str(batch_rows), *columns, limit=expansion_limit(n_bytes)
        )

    if not is_readable(paths):
        raise FileError(str(next((path for path in paths if not is_readable([path])), paths[-1])), CORRUPT)
    heights = {path: _height(path, columns) for path in paths}
    if not any(heights.values()):
        raise FileError(str(folder), "its Parquet files have no rows. Write one row per document.")
    return heights


def _height(path: Path, columns: Sequence[str]) -> int:
    """Return the number of rows of a file, after checking that it has the columns."""
    frame = pl.scan_parquet(path, glob=False)
    empty = Table(str(path), pl.DataFrame(schema=frame.collect_schema()), "parquet")
    for name in columns:
        empty.column(name)
    return int(frame.select(pl.len()).collect().item())


def _read(path: Path, columns: Sequence[str], start: int, n_rows: int) -> Table:
    try:
        frame = pl.scan_parquet(path, glob=False).select(columns).slice(start, n_rows).collect()
    except READ_ERRORS:
        raise FileError(str(path), CORRUPT) from None
    return Table(str(path), frame, "parquet")
