"""Calls to shards in the process of a worker, and sums of weight deltas that the workers compute among themselves.

All-reduce: deltas of the shards of a group are summed first; then group c sums chunk c of W over all groups, and every
worker fetches all chunks. The order of additions depends on the groups alone, so the sum is bit for bit the same
wherever groups are placed.

Workers request values from one another without the scheduler between them. A request waits until the value is published
or the reduction has failed.
"""

import asyncio
import contextlib
import signal
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

from distributed.protocol.pickle import dumps

from transduce.engines.dask import shards
from transduce.engines.dask.restart_state import RestartState
from transduce.engines.dask.shards import Function, call_restart, sendable
from transduce.engines.dask.weight_deltas import ShardLostError, WeightDelta, chunk_bounds, split_delta, sum_deltas
from transduce.parallel import one_blas_thread

Call: TypeAlias = tuple[str, Function, Sequence[Any]]
"""Key of a shard, a function, and further arguments."""


class ShardGroup(NamedTuple):
    """Shards that always share a worker, and are summed first: its address, and their keys."""

    address: str
    keys: tuple[str, ...]


class Reduction(NamedTuple):
    """One reduction of a fit: its number, and the restart to whose W the sum is added."""

    fit: str
    number: int
    restart: str


@dataclass(eq=False)
class Exchange:
    """Values that a worker publishes for the others in one reduction."""

    values: dict[str, asyncio.Future[Any]] = field(default_factory=dict)
    error: Exception | None = None

    def value(self, name: str) -> asyncio.Future[Any]:
        """Return a future of the value of this name."""
        if name not in self.values:
            self.values[name] = asyncio.get_running_loop().create_future()
            if self.error is not None:
                self.fail(self.error)
        return self.values[name]

    def publish(self, name: str, value: Any) -> None:
        """Provide a value; raises where the reduction has failed."""
        if self.error is not None:
            raise self.error
        self.value(name).set_result(value)

    def fail(self, error: Exception) -> None:
        """Fail all pending requests: their values will not come."""
        self.error = error
        for value in self.values.values():
            if not value.done():
                value.set_exception(error)
                value.exception()  # retrieved, even if nobody waits


@dataclass(eq=False)
class _Fit:
    """Groups of a fit, and the current reduction."""

    groups: tuple[ShardGroup, ...]
    number: int = -1
    exchange: Exchange = field(default_factory=Exchange)

    def exchange_of(self, number: int) -> Exchange:
        """Return the exchange of a reduction; a new one ends the last, which the driver no longer waits for."""
        if number < self.number:
            raise ShardLostError("this reduction is over")
        if number > self.number:
            self.exchange.fail(ShardLostError("this reduction is over"))
            self.number, self.exchange = number, Exchange()
        return self.exchange


FITS: dict[str, _Fit] = {}
"""Fits that this worker takes part in."""
_bytes_received = [0]
_process_settings = contextlib.ExitStack()


def bytes_received() -> int:
    """Return the bytes of deltas that this process has received from other workers."""
    return _bytes_received[0]


async def join_fit(fit: str, groups: Sequence[ShardGroup], dask_worker: Any = None) -> None:
    """Register the groups of a fit on this worker; forget fits whose shards are gone.

    Meanwhile this process uses one BLAS thread, and leaves Ctrl-C to the driver, whose terminal it may share.
    """
    for old, known in list(FITS.items()):
        if not any(key in shards.SHARDS for group in known.groups for key in group.keys):
            _end_fit(old)
    FITS[fit] = _Fit(tuple(groups))
    _process_settings.close()
    _process_settings.enter_context(one_blas_thread())
    if getattr(dask_worker, "nanny", None) and threading.current_thread() is threading.main_thread():
        _process_settings.callback(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.SIG_IGN))


async def release(fit: str, keys: Sequence[str]) -> None:
    """Remove the shards of a fit from this worker, and end its reduction."""
    shards.drop(keys)
    _end_fit(fit)


def _end_fit(fit: str) -> None:
    known = FITS.pop(fit, None)
    if known is not None:
        known.exchange.fail(ShardLostError("the fit has ended"))
    if not FITS:
        _process_settings.close()


async def run_calls(calls: Sequence[Call], dask_worker: Any = None) -> list[Any]:
    """Return function(shard, *args) of calls to shards of this worker, in order; where one raised, its exception."""

    async def run(key: str, function: Function, args: Sequence[Any]) -> Any:
        try:
            return await _in_thread(dask_worker, shards.call, key, function, *args)
        except Exception as error:
            return sendable(error)

    return list(await asyncio.gather(*(run(*one) for one in calls)))


async def _in_thread(worker: Any, function: Function, *args: Any) -> Any:
    """Run a function in a thread of the worker, which keeps answering messages meanwhile."""
    try:
        running = asyncio.get_running_loop().run_in_executor(worker.executors["default"], function, *args)
    except RuntimeError as error:  # the worker is closing
        raise ShardLostError(str(error)) from error
    return await running


async def call_and_reduce(calls: Sequence[Call], reduction: Reduction, dask_worker: Any = None) -> list[Any]:
    """Return function(restart, *args) of calls to shards of this worker, with their deltas reduced over all workers."""
    fit = FITS.get(reduction.fit)
    if fit is None or reduction.number < fit.number:
        return [ShardLostError("this worker is not part of the reduction")] * len(calls)
    here = Participant(fit.groups, fit.exchange_of(reduction.number), reduction, dask_worker)
    try:
        results = await asyncio.gather(*(here.call(key, function, *args) for key, function, args in calls))
        await here.all_reduce()
        return list(results)
    except Exception as error:
        here.exchange.fail(ShardLostError(f"a worker could not complete a reduction ({type(error).__name__})"))
        return [sendable(error)] * len(calls)


@dataclass(frozen=True, eq=False)
class Participant:
    """A worker in one reduction."""

    groups: Sequence[ShardGroup]
    exchange: Exchange
    reduction: Reduction
    worker: Any

    async def call(self, key: str, function: Function, *args: Any) -> Any:
        """Return function(restart, *args) of a shard."""
        return await _in_thread(self.worker, shards.call, key, call_restart, self.reduction.restart, function, *args)

    async def all_reduce(self) -> None:
        """Sum the deltas of all shards, and add the sum to W of the shards here."""
        groups = self.groups
        own = [g for g, group in enumerate(groups) if group.address == self.worker.address]
        shape, itemsize = await self.call(groups[own[0]].keys[0], RestartState.shape)
        bounds = chunk_bounds(shape, itemsize, len(groups))
        sizes = [high - low for low, high in pairwise(bounds)]
        for g in own:
            chunks = await _in_thread(self.worker, group_chunks, groups[g], self.reduction.restart, bounds)
            for c, chunk in enumerate(chunks):
                self.exchange.publish(f"chunk {c} of group {g}", chunk)
        for c in [g for g in own if g < len(sizes)]:
            parts = await self.fetch([(group.address, f"chunk {c} of group {g}") for g, group in enumerate(groups)])
            self.exchange.publish(f"sum {c}", await _in_thread(self.worker, sum_deltas, parts, sizes[c]))
        sums = await self.fetch([(groups[c].address, f"sum {c}") for c in range(len(sizes))])
        for key in (key for g in own for key in groups[g].keys):
            await self.call(key, RestartState.receive, sums, bounds)

    async def fetch(self, wanted: Sequence[tuple[str, str]]) -> list[Any]:
        """Return the values of these names from the exchanges at these addresses, with one request to each."""
        names: dict[str, list[str]] = {}
        for address, name in wanted:
            names.setdefault(address, []).append(name)
        answers = await asyncio.gather(*(self._request(address, own) for address, own in names.items()))
        by_address = {address: iter(values) for address, values in zip(names, answers, strict=True)}
        return [next(by_address[address]) for address, _ in wanted]

    async def _request(self, address: str, names: Sequence[str]) -> list[Any]:
        if address == self.worker.address:
            return list(await asyncio.gather(*map(self.exchange.value, names)))
        args = (self.reduction.fit, self.reduction.number, tuple(names))
        try:
            answer = await self.worker.rpc(address).run(function=dumps(values_of), args=dumps(args))
        except (TimeoutError, OSError, RuntimeError) as error:  # one of the two workers is closing
            raise ShardLostError(str(error)) from error
        if answer["status"] != "OK":
            raise ShardLostError("another worker has left the reduction")
        values = list(answer["result"])
        _bytes_received[0] += sum(delta.n_bytes for delta in values)  # only the event loop changes it
        return values


async def values_of(fit: str, number: int, names: Sequence[str]) -> list[Any]:
    """Return published values to another worker."""
    if fit not in FITS:
        raise ShardLostError("this worker is not part of the fit")
    exchange = FITS[fit].exchange_of(number)
    return list(await asyncio.gather(*map(exchange.value, names)))


def group_chunks(group: ShardGroup, restart: str, bounds: Sequence[int]) -> list[WeightDelta]:
    """Return the sum of the deltas of a group, in chunks."""
    deltas = [shards.call(key, call_restart, restart, RestartState.take_delta) for key in group.keys]
    return split_delta(sum_deltas(deltas, bounds[-1]), bounds)
