"""Stages of a fit over Dask in a folder: weights by the driver, what rows have by their workers, in files it names."""

import secrets
from typing import Any

from numpy.typing import NDArray

from transduce.engines.dask import shard_checkpoint
from transduce.engines.dask.worker_pool import WorkerPool
from transduce.io.atomic_write import WriteError
from transduce.io.checkpoint import CheckpointSlot

Array = NDArray[Any]


def save(
    pool: WorkerPool, slot: CheckpointSlot, restart: str, arrays: dict[str, Array], facts: dict[str, Any], done: bool
) -> None:
    """Let every shard keep its rows' state beside the shelf, then the shelf itself: it names their files."""
    assert slot.path is not None
    folder, stem, token = slot.path.parent, slot.path.stem, secrets.token_hex(6)
    names = [f"{stem} {token} shard {g}.stage" for g in range(len(pool.keys))]
    own = [(restart, str(folder / name), done) for name in names]
    reasons = [reason for reason in pool.each_with(shard_checkpoint.save, own) if reason is not None]
    if reasons:
        slot.disk.fail(folder, WriteError(folder, OSError(reasons[0])))
        return
    slot.save(arrays, facts | {"shards": names})
    for old in folder.glob(f"{stem} * shard *.stage"):
        if old.name not in names:
            old.unlink(missing_ok=True)
    pool.n_kept += 1


def load(
    pool: WorkerPool, slot: CheckpointSlot, restart: str, soft: bool
) -> tuple[dict[str, Array], dict[str, Any]] | None:
    """What was kept; None where there is nothing, or a shard's file is not whole."""
    saved = slot.load()
    if saved is None or slot.path is None or len(saved.metadata["shards"]) != len(pool.keys):
        return None
    own = [(restart, str(slot.path.with_name(name)), soft) for name in saved.metadata["shards"]]
    return saved if all(pool.each_with(shard_checkpoint.load, own)) else None
