"""Checkpoints: the last complete stage of a fit on disk, from which a killed fit resumes to the same result.

A checkpoint is a folder. `fit.json` holds the fingerprint of the fit and its seeds; every restart has a slot, a file
with its last complete stage. Both have a digest of their content, so that a damaged one is never read. While a fit runs
it holds `fit.lock`, which the operating system releases when the process ends.
"""

import hashlib
import io
import json
import os
import re
import threading
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import scipy

from transduce.arrays import Array
from transduce.history import HistoryRow
from transduce.io.atomic_write import WriteError, atomic_write
from transduce.io.file_lock import FileLock, LockedError
from transduce.io.strict_json import loads

FORMAT = 7
VERSIONS = {module.__name__: module.__version__ for module in (import_module("transduce"), np, scipy, numba)}
"""Other versions may round differently."""
_LEFTOVER = re.compile(r"fit\.lock|\.transduce-[0-9a-f]{12}\.part")
"""Files that a fit leaves behind when it is killed before its folder has a `fit.json`."""
_ADVICE = "Choose another folder, or delete it"
_METADATA, _DIGEST_SIZE = "metadata", 32


class Stage(NamedTuple):
    """Content of a checkpoint slot: arrays by name, and metadata that JSON can hold."""

    arrays: dict[str, Array]
    metadata: dict[str, Any]


class Disk:
    """Whether stages can still be written; all slots of a fit share one."""

    def __init__(self) -> None:
        self.is_writable = True
        self._lock = threading.Lock()

    def fail(self, folder: Path, error: WriteError) -> None:
        """Stop writing stages, and warn once."""
        with self._lock:
            is_first, self.is_writable = self.is_writable, False
        if is_first:
            warnings.warn(
                f"the checkpoint {folder} can no longer be written ({error.reason}). The fit continues without it.",
                stacklevel=3,
            )


@dataclass(eq=False)
class CheckpointSlot:
    """The file of one restart; without a path nothing is stored.

    `reported` holds the history rows reported so far; they are stored with every stage and restored with it.
    """

    path: Path | None = None
    reported: list[HistoryRow] = field(default_factory=list)
    disk: Disk = field(default_factory=Disk)

    def save(self, arrays: Mapping[str, Array], metadata: Mapping[str, Any]) -> None:
        """Replace the stored stage; if the disk fails, warn and store nothing from then on."""
        if self.path is None or not self.disk.is_writable:
            return
        text = json.dumps({"metadata": dict(metadata), "reported": [asdict(row) for row in self.reported]})
        packed = io.BytesIO()
        np.savez(packed, **arrays, **{_METADATA: np.frombuffer(text.encode(), np.uint8)})  # type: ignore[arg-type]
        try:
            with atomic_write(self.path) as file:
                file.write(_digest(packed.getbuffer()))
                file.write(packed.getbuffer())
        except WriteError as error:
            self.disk.fail(self.path.parent, error)

    def load(self) -> Stage | None:
        """Return the stored stage, or None if there is none."""
        if self.path is None or not self.path.exists():
            return None
        content = self.path.read_bytes()
        body = memoryview(content)[_DIGEST_SIZE:]
        if _digest(body) != content[:_DIGEST_SIZE]:
            warnings.warn(f"{self.path} is damaged, so this part of the fit starts again.", stacklevel=2)
            return None
        with np.load(io.BytesIO(body), allow_pickle=False) as packed:
            arrays = dict(packed)
        text = json.loads(arrays.pop(_METADATA).tobytes())
        self.reported[:] = [HistoryRow(**row) for row in text["reported"]]
        return Stage(arrays, text["metadata"])


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The folder of a fit and the seeds that it started with, or none; a context manager that releases the folder."""

    folder: Path | None = None
    seeds: tuple[int, ...] = ()
    lock: FileLock | None = None
    disk: Disk = field(default_factory=Disk)

    @classmethod
    def open(cls, path: object, fingerprint: str, seeds: Iterable[int] = ()) -> "Checkpoint":
        """Open the folder of the fit with this fingerprint and its seeds, or create it with these seeds."""
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"checkpoint must be the path of a folder, or None, but is {path!r}.")
        folder = Path(path)
        _check_folder(folder)
        lock = FileLock(folder / "fit.lock")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock.acquire()
        except LockedError:
            raise _error(folder, "is in use by another fit. Wait until it ends, or choose another folder") from None
        except OSError as error:
            raise _error(folder, f"cannot be written ({error.strerror or error}). Choose another place") from error
        try:
            return cls(folder, _stored_seeds(folder, fingerprint, tuple(seeds)), lock)
        except BaseException:
            lock.release()
            raise

    def __enter__(self) -> "Checkpoint":
        return self

    def __exit__(self, *error: object) -> None:
        if self.lock is not None:
            self.lock.release()

    def note(self, name: str, text: str) -> None:
        """Store a small file beside the stages, unless there is one of this name."""
        if self.folder is not None and not (self.folder / name).exists():
            with atomic_write(self.folder / name) as file:
                file.write(text.encode())

    def slot(self, name: str) -> CheckpointSlot:
        """Return the slot of this name."""
        return CheckpointSlot(None if self.folder is None else self.folder / f"{name}.stage", disk=self.disk)


def _check_folder(folder: Path) -> None:
    if not folder.exists():
        return
    if not folder.is_dir():
        raise _error(folder, "must be a folder, but is a file. Choose another place")
    if not (folder / "fit.json").exists() and any(not _LEFTOVER.fullmatch(path.name) for path in folder.iterdir()):
        raise _error(folder, "holds other files. Choose a new or empty folder, or that of this fit")


def _stored_seeds(folder: Path, fingerprint: str, seeds: tuple[int, ...]) -> tuple[int, ...]:
    """Return the seeds in `fit.json`; write it with these seeds if there is none."""
    for leftover in folder.glob(".transduce-*.part"):
        leftover.unlink(missing_ok=True)
    path = folder / "fit.json"
    if not path.exists():
        header = {"format": FORMAT, "fingerprint": fingerprint, "versions": VERSIONS, "seeds": list(seeds)}
        try:
            with atomic_write(path) as file:
                file.write(json.dumps({**header, "digest": _header_digest(header)}).encode())
        except WriteError as error:
            raise _error(folder, f"cannot be written ({error.reason}). Choose another place") from error
        return seeds
    return _read_seeds(folder, fingerprint)


def _read_seeds(folder: Path, fingerprint: str) -> tuple[int, ...]:
    """Return the seeds in `fit.json`, which must belong to the fit with this fingerprint."""
    try:
        header = loads((folder / "fit.json").read_bytes())
        is_whole = header["format"] == FORMAT and header.pop("digest") == _header_digest(header)
    except (KeyError, TypeError, AttributeError, ValueError):
        is_whole = False
    if not is_whole:
        raise _error(folder, f"was written by another version of transduce, or is damaged. {_ADVICE}")
    stored, seeds, versions = header["fingerprint"], tuple(header["seeds"]), header["versions"]
    if stored != fingerprint:
        problem = "belongs to a fit with other data or parameters"
    elif versions != VERSIONS:
        name = next(name for name in VERSIONS if versions.get(name) != VERSIONS[name])
        problem = f"was written with {name} {versions.get(name)}, but {VERSIONS[name]} is installed"
    else:
        return seeds
    raise _error(folder, f"{problem}. {_ADVICE}")


def _header_digest(header: Mapping[str, Any]) -> str:
    return _digest(memoryview(json.dumps(header, sort_keys=True).encode())).hex()


def _error(folder: Path, problem: str) -> ValueError:
    return ValueError(f"checkpoint {folder} {problem}.")


def _digest(content: memoryview) -> bytes:
    return hashlib.blake2b(content, digest_size=_DIGEST_SIZE).digest()
