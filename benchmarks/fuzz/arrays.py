"""Vectors as fuzz targets: files of the user, parts of rows to be packed, and the cache of an encoder."""

import io
import tempfile
import warnings
from pathlib import Path

import numpy as np
import polars as pl
from scipy import sparse

from benchmarks.fuzz.target import joined, split, target
from transduce.cli.features import read_vectors
from transduce.cli.formats import Table
from transduce.features.vector_cache import VectorCache, text_key
from transduce.io.memmap import npz_parts, pack_rows

TABLE = Table("teas.csv", pl.DataFrame({"text": ["a", "b", "c"]}), "csv")
KEYS = [text_key(text) for text in ("a", "b", "c")]
STORED = np.arange(12, dtype=np.float32).reshape(3, 4)
CACHE = ("cache/4.vectors", "cache/4.keys")


def _saved() -> list[bytes]:
    dense, packed = io.BytesIO(), io.BytesIO()
    np.save(dense, np.eye(3, 4, dtype=np.float32))
    sparse.save_npz(packed, sparse.csr_matrix(np.eye(3, 4)))
    return [dense.getvalue(), packed.getvalue()]


@target("vectors", _saved)
def _read_vectors(data: bytes, folder: Path) -> None:
    name = str(folder / ("v.npz" if data[:2] == b"PK" else "v.npy"))
    Path(name).write_bytes(data)
    rows = read_vectors(name, TABLE)
    assert rows.shape[0] == 3
    assert np.isfinite(rows.sum())


def _parts() -> list[bytes]:
    """Parts in the common layouts, not compressed, so that mutations reach the arrays."""
    found = []
    for layout in ("csr", "csc", "coo", "bsr"):
        file = io.BytesIO()
        sparse.save_npz(file, sparse.csr_matrix(np.eye(4, 4)).asformat(layout), compressed=False)
        found.append(file.getvalue())
    return found


@target("parts", _parts, (ValueError,))
def _pack_parts(data: bytes, folder: Path) -> None:
    (folder / "parts").mkdir(exist_ok=True)
    (folder / "parts" / "0.npz").write_bytes(data)
    with tempfile.TemporaryDirectory(dir=folder) as packed:
        X = pack_rows(npz_parts(folder / "parts"), packed)
        assert X.indices.size == 0 or 0 <= X.indices.min() <= X.indices.max() < X.shape[1]


def _caches() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        VectorCache(Path(folder, "cache")).append(KEYS, STORED)
        return [joined([Path(folder, name).read_bytes() for name in CACHE])]


@target("cache", _caches, ())
def _read_cache(data: bytes, folder: Path) -> None:
    """A vector is that of its text or missing; what is missing can be stored again."""
    split(data, folder, CACHE)
    cache = VectorCache(folder / "cache")
    found = _check_stored(cache)
    missing = [row for row, key in enumerate(KEYS) if key not in found]
    cache.append([KEYS[row] for row in missing], STORED[missing])
    assert _check_stored(cache) == set(KEYS)


def _check_stored(cache: VectorCache) -> set[bytes]:
    out = np.full(STORED.shape, -1.0, np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = cache.read({key: row for row, key in enumerate(KEYS)}, out)
    for row, key in enumerate(KEYS):
        assert np.array_equal(out[row], STORED[row] if key in found else np.full(4, -1.0)), "a vector was altered"
    return found
