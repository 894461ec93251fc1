"""Checkpoints of a fit over Dask: weights are stored by the driver, row states by the workers, in one folder."""

import secrets
from dataclasses import replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from transduce.engines.common import packed_state, unpacked_state
from transduce.engines.dask.shards import BlockState, RestartState, Shard, empty_state
from transduce.engines.dask.weight_deltas import TrackedWeights
from transduce.engines.dask.worker_pool import WorkerPool
from transduce.io.atomic_write import WriteError
from transduce.io.checkpoint import CheckpointSlot, Disk
from transduce.losses import smoothed

Array = NDArray[Any]


def save(
    pool: WorkerPool, slot: CheckpointSlot, restart: str, arrays: dict[str, Array], metadata: dict[str, Any], done: bool
) -> None:
    """Let every shard write its state, then write the slot, which names their files; remove older files."""
    assert slot.path is not None
    folder, stem, token = slot.path.parent, slot.path.stem, secrets.token_hex(6)
    names = [f"{stem} {token} shard {g}.stage" for g in range(pool.n_shards)]
    errors = pool.call(save_shard, restart, done, per_shard=[(str(folder / name),) for name in names])
    if any(errors):
        slot.disk.fail(folder, WriteError(folder, OSError(*next(filter(None, errors)))))
        return
    slot.save(arrays, metadata | {"shards": names})
    for old in folder.glob(f"{stem} * shard *.stage"):
        if old.name not in names:
            old.unlink(missing_ok=True)
    pool.n_checkpoints += 1


def load(
    pool: WorkerPool, slot: CheckpointSlot, restart: str, soft: bool
) -> tuple[dict[str, Array], dict[str, Any]] | None:
    """Restore the state of all shards; returns None where there is none, or the file of a shard is damaged."""
    saved = slot.load()
    if saved is None or slot.path is None or len(saved.metadata["shards"]) != pool.n_shards:
        return None
    paths = [(str(slot.path.with_name(name)),) for name in saved.metadata["shards"]]
    return saved if all(pool.call(load_shard, restart, soft, per_shard=paths)) else None


class _ReportingDisk(Disk):
    """A disk that leaves a failure to the driver."""

    error: WriteError | None = None

    def fail(self, folder: Path, error: WriteError) -> None:
        self.error = error


def save_shard(shard: Shard, restart: str, done: bool, path: str) -> tuple[Any, ...] | None:
    """Write the state of all blocks, or their labels alone if the restart is done; returns the error, if any."""
    arrays: dict[str, Array] = {}
    for b, block in enumerate(shard.restarts[restart].blocks):
        own = {"labels": block.labels} | ({} if done else packed_state(block.state))
        own.pop("state_W", None)
        if block.best is not None:
            own["best"] = block.best
        arrays |= {f"{b} {name}": array for name, array in own.items()}
    disk = _ReportingDisk()
    CheckpointSlot(Path(path), disk=disk).save(arrays, {"blocks": len(shard.blocks)})
    return None if disk.error is None else disk.error.args


def load_shard(shard: Shard, restart: str, soft: bool, path: str) -> bool:
    """Restore the state of all blocks, but for W; returns False where the file is missing or damaged."""
    saved = CheckpointSlot(Path(path)).load()
    if saved is None:
        return False
    weights = TrackedWeights.create(shard.blocks[0].problem.design.zeros())
    W, blocks = weights.W, []
    for b, block in enumerate(shard.blocks):
        prefix = f"{b} "
        arrays = {name.removeprefix(prefix): a for name, a in saved.arrays.items() if name.startswith(prefix)}
        problem = replace(block.problem, loss=smoothed(block.problem.loss)) if soft else block.problem
        state = unpacked_state(problem, arrays | {"state_W": W}) if "state_kappa" in arrays else empty_state(W)
        state.scores = None
        blocks.append(BlockState(block, problem, weights, arrays["labels"], state, best=arrays.get("best")))
    shard.restarts[restart] = RestartState(weights, blocks)
    return True
