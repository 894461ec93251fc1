"""Calls to shards in the process of a worker, made in its threads while it keeps answering messages."""

import asyncio
import contextlib
import signal
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from transduce.engines.dask.failure import Failure
from transduce.engines.dask.shards import ShardLostError, call
from transduce.parallel import one_blas_thread

Call: TypeAlias = tuple[str, Callable[..., Any], Sequence[Any]]
"""Key of a shard, a function of the shard, and further arguments."""


async def run_in_thread(worker: Any, function: Callable[..., Any], *args: Any) -> Any:
    """Run a function in a thread of the worker, which keeps answering messages meanwhile."""
    try:
        running = asyncio.get_running_loop().run_in_executor(worker.executors["default"], function, *args)
    except RuntimeError as error:  # the worker is closing
        raise ShardLostError(str(error)) from error
    return await running


async def run_calls(calls: Sequence[Call], dask_worker: Any = None) -> list[Any]:
    """Return the results of calls to shards of this worker, in order; a Failure where a call raised."""

    async def run(key: str, function: Callable[..., Any], args: Sequence[Any]) -> Any:
        try:
            return await run_in_thread(dask_worker, call, key, function, *args)
        except Exception as error:
            return Failure.create(error)

    return list(await asyncio.gather(*(run(*one) for one in calls)))


_process_settings = contextlib.ExitStack()


def enter_fit(dask_worker: Any) -> None:
    """Use one BLAS thread in this process, and leave Ctrl-C to the driver, whose terminal a child process may share."""
    leave_fit()
    _process_settings.enter_context(one_blas_thread())
    if getattr(dask_worker, "nanny", None) and threading.current_thread() is threading.main_thread():
        _process_settings.callback(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.SIG_IGN))


def leave_fit() -> None:
    """Restore the settings of this process."""
    _process_settings.close()
