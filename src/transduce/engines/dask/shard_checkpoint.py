"""What a shard keeps of a way in a file, and how it is again as when that was kept."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from transduce.engines.common import packed_state, unpacked_state
from transduce.engines.dask.shards import RestartState, Shard, Stand, nothing
from transduce.io.atomic_write import WriteError
from transduce.io.checkpoint import CheckpointSlot, Disk
from transduce.losses import smoothed

Array = NDArray[Any]


def save(shard: Shard, restart: str, path: str, done: bool) -> str | None:
    """Keep what the way holds for each row in a file, labels alone if it is done; why not, where that fails."""
    arrays: dict[str, Array] = {}
    for place, stand in enumerate(shard.restarts[restart].stands):
        kept = {"labels": stand.labels} | ({} if done else packed_state(stand.state))
        kept.pop("state_W", None)
        if stand.chosen is not None:
            kept["chosen"] = stand.chosen
        arrays |= {f"{place} {name}": array for name, array in kept.items()}
    disk = _Telling()
    CheckpointSlot(Path(path), disk=disk).save(arrays, {"blocks": len(shard.blocks)})
    return disk.reason


class _Telling(Disk):
    """A disk whose trouble is told to whoever asked, instead of here."""

    reason: str | None = None

    def fail(self, folder: Path, error: WriteError) -> None:
        self.reason = error.reason


def load(shard: Shard, restart: str, path: str, soft: bool) -> bool:
    """Be as when this was kept; False where there is no such file, or it is damaged."""
    saved = CheckpointSlot(Path(path)).load()
    if saved is None:
        return False
    mine = shard.blocks[0].problem.design.zeros()
    stands = []
    for place, block in enumerate(shard.blocks):
        prefix = f"{place} "
        arrays = {n.removeprefix(prefix): a for n, a in saved.arrays.items() if n.startswith(prefix)} | {
            "state_W": mine
        }
        problem = replace(block.problem, loss=smoothed(block.problem.loss)) if soft else block.problem
        state = unpacked_state(problem, arrays) if "state_kappa" in arrays else nothing(mine)
        state.scores = None
        stands.append(Stand(block, problem, arrays["labels"], state, chosen=arrays.get("chosen")))
    shard.restarts[restart] = RestartState(mine, stands)
    return True
