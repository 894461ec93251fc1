"""Calls to shards in the process of a worker, without the scheduler between them and the driver."""

import asyncio
import contextlib
import signal
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from transduce.engines.dask import shards
from transduce.engines.dask.exchange import FITS, Mailbox, deliver, in_thread
from transduce.engines.dask.shards import Function, sendable
from transduce.parallel import one_blas_thread

Call: TypeAlias = tuple[str, Function, Sequence[Any]]
"""Key of a shard, a function, and further arguments."""


class ShardGroup(NamedTuple):
    """Shards that always share a worker, and are summed first: its address, and their keys."""

    address: str
    keys: tuple[str, ...]


_process_settings = contextlib.ExitStack()


async def join_fit(fit: str, keys: Sequence[str], dask_worker: Any = None) -> None:
    """Register a fit with these shards on this worker; forget fits whose shards are gone.

    Meanwhile this process uses one BLAS thread, and leaves Ctrl-C to the driver, whose terminal it may share.
    """
    for old, known in list(FITS.items()):
        if not any(key in shards.SHARDS for key in known.keys):
            _end_fit(old)
    FITS[fit] = Mailbox(tuple(keys))
    dask_worker.handlers["transduce_deliver"] = deliver
    _process_settings.close()
    _process_settings.enter_context(one_blas_thread())
    if getattr(dask_worker, "nanny", None) and threading.current_thread() is threading.main_thread():
        _process_settings.callback(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.SIG_IGN))


async def release(fit: str, keys: Sequence[str]) -> None:
    """Remove the shards of a fit from this worker."""
    shards.drop(keys)
    _end_fit(fit)


def _end_fit(fit: str) -> None:
    if fit in FITS:
        FITS.pop(fit).close()
    if not FITS:
        _process_settings.close()


async def run_calls(calls: Sequence[Call], dask_worker: Any = None) -> list[Any]:
    """Return function(shard, *args) of calls to shards of this worker, in order; where one raised, its exception."""

    async def run(key: str, function: Function, args: Sequence[Any]) -> Any:
        try:
            return await in_thread(dask_worker, shards.call, key, function, *args)
        except Exception as error:
            return sendable(error)

    return list(await asyncio.gather(*(run(*one) for one in calls)))
