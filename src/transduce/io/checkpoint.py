"""Stages of a fit on disk: one that was killed goes on where it was, to the same result bit for bit.

A checkpoint is a folder. `fit.json` says which fit it belongs to, and with which seeds; every way to the labels has a
file of its own, with its last complete stage. A file is written beside its place and put there whole, and begins with a
digest of the rest: what was killed half-way, or damaged since, is never read. While a fit runs, `fit.lock` has its
process: no other fit takes the folder, unless that process is dead.
"""

import hashlib
import io
import json
import os
import re
import secrets
import threading
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numba
import numpy as np
import scipy
from numpy.typing import NDArray

from transduce.history import HistoryRow
from transduce.io.locks import Lock

Array = NDArray[Any]

FORMAT = 3
VERSIONS = {module.__name__: module.__version__ for module in (import_module("transduce"), np, scipy, numba)}
"""Other versions may give other digits."""
_OWN = re.compile(
    r"fit\.lock|(fit|shards|(first fit|(restart|cooling) \d+)( [0-9a-f]+ shard \d+)?)(\.[0-9a-f]{12})?\.part"
)
"""Names of files that a fit leaves behind when it is killed before its folder has a `fit.json`."""
_FACTS, _DIGEST_SIZE = "facts", 32


class Stage(NamedTuple):
    """What a shelf gives back: arrays by name, and plain facts."""

    arrays: dict[str, Array]
    facts: dict[str, Any]


class Disk:
    """Whether stages can still be kept; all shelves of a fit share one."""

    def __init__(self) -> None:
        self.works = True
        self._lock = threading.Lock()

    def fail(self, folder: Path, error: OSError) -> None:
        """Keep no more stages, and say so once."""
        with self._lock:
            first, self.works = self.works, False
        if first:
            warnings.warn(
                f"Stages cannot be kept in {folder} any more ({error.strerror or error}): the fit goes on without.",
                stacklevel=3,
            )


@dataclass(eq=False)
class CheckpointSlot:
    """The place of one way to the labels; without a path nothing is kept.

    `told` are the rounds that were told of so far; they are kept with every stage, and come back with it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     shelf = Shelf(Path(folder, "way"))
    ...     shelf.save({"W": np.eye(2)}, {"stage": 3})
    ...     Shelf(Path(folder, "way")).load().facts
    {'stage': 3}
    """

    path: Path | None = None
    told: list[HistoryRow] = field(default_factory=list)
    disk: Disk = field(default_factory=Disk)

    def save(self, arrays: Mapping[str, Array], facts: Mapping[str, Any]) -> None:
        """Keep a stage in the place of the last one; where the disk fails, warn, and keep none from then on."""
        if self.path is None or not self.disk.works:
            return
        text = json.dumps({"facts": dict(facts), "told": [asdict(row) for row in self.told]})
        packed = io.BytesIO()
        np.savez(packed, **arrays, **{_FACTS: np.frombuffer(text.encode(), np.uint8)})  # type: ignore[arg-type]
        body = packed.getbuffer()
        try:
            _put(self.path, hashlib.blake2b(body, digest_size=_DIGEST_SIZE).digest(), body)
        except OSError as error:
            self.disk.fail(self.path.parent, error)

    def load(self) -> Stage | None:
        """The last stage, or None where there is none."""
        if self.path is None or not self.path.exists():
            return None
        content = self.path.read_bytes()
        body = memoryview(content)[_DIGEST_SIZE:]
        if hashlib.blake2b(body, digest_size=_DIGEST_SIZE).digest() != content[:_DIGEST_SIZE]:
            warnings.warn(f"{self.path} is damaged, so its part of the fit begins anew.", stacklevel=2)
            return None
        with np.load(io.BytesIO(body), allow_pickle=False) as packed:
            arrays = dict(packed)
        text = json.loads(arrays.pop(_FACTS).tobytes())
        self.told[:] = [HistoryRow(**row) for row in text["told"]]
        return Stage(arrays, text["facts"])


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The folder of a fit, or no folder at all; `seeds` are those that the fit began with.

    It is a context: at its end other fits may have the folder.
    """

    folder: Path | None = None
    seeds: tuple[int, ...] = ()
    lock: Lock | None = None
    disk: Disk = field(default_factory=Disk)

    @classmethod
    def open(cls, path: object, fingerprint: str, seeds: Iterable[int] = ()) -> "Checkpoint":
        """The folder at `path`, made if it is not there; it must belong to the fit with this fingerprint.

        A new one keeps the seeds, an old one gives back those that it has.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with Checkpoint.open(folder, "one"):
        ...         pass
        ...     Checkpoint.open(folder, "other")
        Traceback (most recent call last):
        ValueError: checkpoint ... belongs to a fit of other data or parameters. Name another, or remove it.
        """
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"checkpoint must be the path of a folder, or None, but is {path!r}.")
        folder = Path(path)
        about = folder / "fit.json"
        if folder.exists() and not folder.is_dir():
            raise ValueError(f"checkpoint must be a folder, but {folder} is a file. Name another place.")
        if folder.exists() and not about.exists() and any(not _OWN.fullmatch(p.name) for p in folder.iterdir()):
            raise ValueError(f"checkpoint must be a new or empty folder, or one of this fit, but {folder} holds files.")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = Lock.take(folder / "fit.lock")
        except OSError as error:
            raise ValueError(
                f"checkpoint {folder} cannot be written ({error.strerror or error}). Name another place."
            ) from error
        if lock is None:
            raise ValueError(
                f"checkpoint {folder} is in use by another fit. Wait for it, or name another; if there is none, remove "
                f"{folder / 'fit.lock'}."
            )
        try:
            return cls(folder, _kept_seeds(about, fingerprint, tuple(seeds)), lock)
        except BaseException:
            lock.release()
            raise

    def __enter__(self) -> "Checkpoint":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.lock is not None:
            self.lock.release()

    def note(self, name: str, text: str) -> None:
        """Keep a small file beside the stages, if there is none of this name yet."""
        if self.folder is not None and not (self.folder / name).exists():
            _put(self.folder / name, text.encode())

    def slot(self, name: str) -> CheckpointSlot:
        """The place of the way of this name."""
        return CheckpointSlot(None if self.folder is None else self.folder / f"{name}.stage", disk=self.disk)


def _kept_seeds(about: Path, fingerprint: str, seeds: tuple[int, ...]) -> tuple[int, ...]:
    """Seeds of the fit that a folder belongs to; a folder without any belongs to this one from now on."""
    folder = about.parent
    for left in folder.iterdir():
        if left.suffix == ".part" and _OWN.fullmatch(left.name):
            left.unlink(missing_ok=True)
    if not about.exists():
        facts = {"format": FORMAT, "fingerprint": fingerprint, "versions": VERSIONS, "seeds": seeds}
        try:
            _put(about, json.dumps(facts).encode())
        except OSError as error:
            raise ValueError(
                f"checkpoint {folder} cannot be written ({error.strerror or error}). Name another place."
            ) from error
        return seeds
    try:
        known = json.loads(about.read_text(encoding="utf-8"))
    except ValueError:
        known = None
    if not isinstance(known, dict) or (known.get("format"), known.get("fingerprint")) != (FORMAT, fingerprint):
        raise ValueError(
            f"checkpoint {folder} belongs to a fit of other data or parameters. Name another, or remove it."
        )
    for name, version in VERSIONS.items():
        if known["versions"].get(name) != version:
            raise ValueError(
                f"checkpoint {folder} was made with {name} {known['versions'].get(name)}, but this is {version}. "
                "Name another, or remove it."
            )
    return tuple(known["seeds"])


def _put(path: Path, *parts: bytes | memoryview) -> None:
    """Write a file beside its place, see it on the disk, and put it there."""
    beside = path.with_suffix(f".{secrets.token_hex(6)}.part")
    try:
        with beside.open("xb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
