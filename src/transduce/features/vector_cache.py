"""Vectors on disk, by encoder and text digest, so that no text is encoded twice.

Each encoder has a folder. There, D.keys has a record for each vector of D numbers, the digest of its text and a
checksum of both, and D.vectors has the vectors in the same order. Batches are appended under a lock, vectors first:
what a killed process leaves unfinished is cut off by the next one, and a record whose checksum is wrong counts as
missing.
"""

import hashlib
import os
import re
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from zlib import crc32

import numpy as np

from transduce.arrays import Array
from transduce.features.encoders import Encoder
from transduce.io.file_lock import FileLock
from transduce.validation import check_path

LOCK_SECONDS = 30
_RECORD = np.dtype([("key", "V16"), ("checksum", "<u4")])
_NUMBER = np.dtype("<f4")


def text_key(text: str) -> bytes:
    """Return the digest by which a text is found."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def cache_root(chosen: bool | str | Path) -> Path | None:
    """Return the folder of the caches; None if nothing is to be stored. `chosen` is that of `encode_texts`."""
    chosen = os.environ.get("TRANSDUCE_CACHE") or True if chosen is True else chosen
    if chosen is not True:
        if chosen is False or chosen == "none":
            return None
        if chosen == "":
            raise ValueError("cache must be a folder, True or False, but is ''. Name a folder, or pass False.")
        return Path(check_path("cache", chosen)).expanduser()
    home = Path.home()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "transduce" / "Cache"
    usual = home / "Library" / "Caches" if sys.platform == "darwin" else home / ".cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or usual) / "transduce"


class VectorCache:
    """Vectors of one encoder in a folder; without one, or once the disk has failed, nothing is stored."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    @classmethod
    def of(cls, encoder: Encoder, chosen: bool | str | Path = True) -> "VectorCache":
        """Return the cache of an encoder; `chosen` is that of `encode_texts`."""
        root = cache_root(chosen) if encoder.revision else None
        return cls(None if root is None else root / _folder_name(encoder.name, encoder.revision))

    @property
    def dimension(self) -> int | None:
        """How many numbers the stored vectors have, if there are any."""
        found = [] if self.folder is None else [path.stem for path in self.folder.glob("*.keys")]
        return int(found[0]) if len(found) == 1 and found[0].isdecimal() else None

    def read(self, row_of: Mapping[bytes, int], out: Array) -> set[bytes]:
        """Copy stored vectors to rows of `out` (n, d), and return the keys that were found intact."""
        found: set[bytes] = set()
        try:
            records, vectors = self._stored(out.shape[1])
        except OSError as error:
            self._fail(error)
            return found
        place_of = {key: place for place, key in enumerate(records["key"].tolist()) if key in row_of}
        for key, place in place_of.items():
            if _checksum(key, vectors[place]) == records["checksum"][place]:
                out[row_of[key]] = vectors[place]
                found.add(key)
        return found

    def append(self, keys: Sequence[bytes], vectors: Array) -> None:
        """Store vectors (m, d) with their keys."""
        if self.folder is None:
            return
        vectors = np.ascontiguousarray(vectors, dtype=_NUMBER)
        records = [(key, _checksum(key, vector)) for key, vector in zip(keys, vectors, strict=True)]
        paths, sizes = _files(self.folder, vectors.shape[1])
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with FileLock(self.folder / "lock", timeout=LOCK_SECONDS):
                n = _n_complete(paths, sizes)
                for path, size, content in zip(paths, sizes, (vectors, np.array(records, _RECORD)), strict=True):
                    with open(path, "ab") as file:
                        file.truncate(n * size)
                        file.write(content.tobytes())
        except OSError as error:
            self._fail(error)

    def _stored(self, dimension: int) -> tuple[Array, Array]:
        """Records and vectors (n, d) of the batches that are complete."""
        if self.folder is None or not self.folder.exists():
            return np.empty(0, _RECORD), np.empty((0, dimension), _NUMBER)
        paths, sizes = _files(self.folder, dimension)
        n = _n_complete(paths, sizes)
        vectors = np.memmap(paths[0], _NUMBER, "r", shape=(n, dimension)) if n else np.empty((0, dimension), _NUMBER)
        return np.fromfile(paths[1], _RECORD, n) if n else np.empty(0, _RECORD), vectors.view(np.ndarray)

    def _fail(self, error: OSError) -> None:
        problem = f"vectors cannot be stored in {self.folder} ({error.strerror or error})"
        warnings.warn(f"{problem}, so texts are encoded each time. Choose another folder for the cache.", stacklevel=4)
        self.folder = None


def _folder_name(name: str, revision: str) -> str:
    """Name the folder of an encoder so that people recognise it.

    >>> _folder_name("minishlab/potion-base-8M", "1f2e")
    'minishlab_potion-base-8M-c6e11230a3da'
    """
    digest = hashlib.blake2b(f"{name}\0{revision}".encode("utf-8", "replace"), digest_size=6).hexdigest()
    return f"{re.sub(r'[^A-Za-z0-9.-]+', '_', name)[-60:]}-{digest}"


def _files(folder: Path, dimension: int) -> tuple[list[Path], list[int]]:
    """Paths of the vectors and of their records, and the size of an entry of each."""
    paths = [folder / f"{dimension}.{name}" for name in ("vectors", "keys")]
    return paths, [_NUMBER.itemsize * dimension, _RECORD.itemsize]


def _n_complete(paths: Sequence[Path], sizes: Sequence[int]) -> int:
    """How many vectors have a record and are complete."""
    return min(path.stat().st_size // size if path.exists() else 0 for path, size in zip(paths, sizes, strict=True))


def _checksum(key: bytes, vector: Array) -> int:
    return crc32(vector.tobytes(), crc32(key))
