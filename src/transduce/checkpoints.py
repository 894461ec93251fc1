"""Stages of a fit on disk: one that was killed goes on where it was, to the same result bit for bit.

A checkpoint is a folder. `fit.json` says which fit it belongs to; every way to the labels has a file of its own, with
its last complete stage. A file is written beside its place and put there whole, and begins with a digest of the rest:
what was killed half-way, or damaged since, is never read.
"""

import hashlib
import io
import json
import os
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transduce.history import HistoryRow

Array = NDArray[Any]

FORMAT = 1
_FACTS, _DIGEST_SIZE = "facts", 32


class Stage(NamedTuple):
    """What a shelf gives back: arrays by name, and plain facts."""

    arrays: dict[str, Array]
    facts: dict[str, Any]


@dataclass(eq=False)
class Shelf:
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

    def save(self, arrays: Mapping[str, Array], facts: Mapping[str, Any]) -> None:
        """Keep a stage in the place of the last one."""
        if self.path is None:
            return
        text = json.dumps({"facts": dict(facts), "told": [asdict(row) for row in self.told]})
        packed = io.BytesIO()
        np.savez(packed, **arrays, **{_FACTS: np.frombuffer(text.encode(), np.uint8)})  # type: ignore[arg-type]
        _write(self.path, packed.getbuffer())

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


@dataclass(frozen=True)
class Checkpoint:
    """The folder of a fit, or no folder at all."""

    folder: Path | None = None

    @classmethod
    def open(cls, path: object, fingerprint: str) -> "Checkpoint":
        """The folder at `path`, made if it is not there; it must belong to the fit with this fingerprint.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Checkpoint.open(folder, "one")
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
        if about.exists():
            try:
                known = json.loads(about.read_text(encoding="utf-8"))
            except ValueError:
                known = {}
            if known != {"format": FORMAT, "fingerprint": fingerprint}:
                raise ValueError(
                    f"checkpoint {folder} belongs to a fit of other data or parameters. Name another, or remove it."
                )
            return cls(folder)
        if folder.exists() and any(folder.iterdir()):
            raise ValueError(f"checkpoint must be a new or empty folder, or one of this fit, but {folder} holds files.")
        folder.mkdir(parents=True, exist_ok=True)
        _put(about, json.dumps({"format": FORMAT, "fingerprint": fingerprint}).encode())
        return cls(folder)

    def shelf(self, name: str) -> Shelf:
        """The place of the way of this name."""
        return Shelf(None if self.folder is None else self.folder / f"{name}.stage")


def fingerprint(parts: Iterable[object]) -> str:
    """A digest of arrays, numbers and words in their order; objects that do not tell their content count by class.

    >>> fingerprint([np.arange(3), "hinge"]) == fingerprint([np.arange(3), "hinge"])
    True
    >>> fingerprint([np.arange(3), "hinge"]) == fingerprint([np.arange(4), "hinge"])
    False
    """
    total = hashlib.blake2b(digest_size=16)
    for part in parts:
        if isinstance(part, np.ndarray):
            total.update(f"{part.dtype}{part.shape}".encode())
            total.update(np.ascontiguousarray(part).data)
        else:
            told = repr(part)
            total.update(f"{type(part).__qualname__} {'' if ' at 0x' in told else told};".encode())
    return total.hexdigest()


def _write(path: Path, body: memoryview) -> None:
    _put(path, hashlib.blake2b(body, digest_size=_DIGEST_SIZE).digest(), body)


def _put(path: Path, *parts: bytes | memoryview) -> None:
    """Write a file beside its place, see it on the disk, and put it there."""
    beside = path.with_suffix(".part")
    with beside.open("wb") as file:
        for part in parts:
            file.write(part)
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)
