"""Stages of a fit over Dask in a folder: weights by the driver, what rows have by their workers, in files it names."""

import secrets
from typing import Any

from numpy.typing import NDArray

from transduce.checkpoints import Shelf
from transduce.dask import shard_files
from transduce.dask.crew import Crew

Array = NDArray[Any]


def save(crew: Crew, shelf: Shelf, way: str, arrays: dict[str, Array], facts: dict[str, Any], done: bool) -> None:
    """Let every shard keep its rows' state beside the shelf, then the shelf itself: it names their files."""
    assert shelf.path is not None
    folder, stem, token = shelf.path.parent, shelf.path.stem, secrets.token_hex(6)
    names = [f"{stem} {token} shard {g}.stage" for g in range(len(crew.keys))]
    own = [(way, str(folder / name), done) for name in names]
    reasons = [reason for reason in crew.each_with(shard_files.save, own) if reason is not None]
    if reasons:
        shelf.disk.fail(folder, OSError(reasons[0]))
        return
    shelf.save(arrays, facts | {"shards": names})
    for old in folder.glob(f"{stem} * shard *.stage"):
        if old.name not in names:
            old.unlink(missing_ok=True)
    crew.n_kept += 1


def load(crew: Crew, shelf: Shelf, way: str, soft: bool) -> tuple[dict[str, Array], dict[str, Any]] | None:
    """What was kept; None where there is nothing, or a shard's file is not whole."""
    saved = shelf.load()
    if saved is None or shelf.path is None or len(saved.facts["shards"]) != len(crew.keys):
        return None
    own = [(way, str(shelf.path.with_name(name)), soft) for name in saved.facts["shards"]]
    return saved if all(crew.each_with(shard_files.load, own)) else None
