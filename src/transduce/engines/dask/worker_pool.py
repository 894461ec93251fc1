"""The workers of a fit: shards are placed on them and called, and a worker that is lost ends the call.

A call goes to all shards in one round trip: a message to each worker, which runs its shards in threads. An exchange is
such a call in which workers add up arrays among themselves. While results are awaited, heartbeats are checked. After a
WorkerLostError the caller can place the shards again on the workers that are left, or that come back.
"""

import asyncio
import contextlib
import secrets
from asyncio import CancelledError
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from distributed import Client, Future
from distributed.client import FutureCancelledError, FuturesCancelledError
from distributed.scheduler import KilledWorker

from transduce.engines.dask import shards
from transduce.engines.dask.exchange import Step, Steps, run_exchange
from transduce.engines.dask.heartbeat import POLL_SECONDS, ClusterError, Heartbeats, WorkerLostError, run_on_each
from transduce.engines.dask.shard_calls import Call, ShardGroup, join_fit, release, run_calls
from transduce.engines.dask.shards import Function, ShardLostError

CANCELLED = (FutureCancelledError, FuturesCancelledError)
UNREACHABLE = (OSError, KeyError, CancelledError, *CANCELLED)
"""Raised when a worker is asked that is not there any more; the scheduler may not know its address."""


@dataclass(eq=False)
class WorkerPool:
    """The workers of a fit, and the groups of shards that they hold.

    After Ctrl-C it is `interrupted`, and a fit that loses a worker then ends. It counts calls to shards and sums over
    them.
    """

    client: Client
    groups: list[ShardGroup] = field(default_factory=list)
    fit: str = ""
    n_round_trips: int = 0
    n_sums: int = 0
    interrupted: bool = False
    heartbeats: Heartbeats = field(init=False)

    def __post_init__(self) -> None:
        self.heartbeats = Heartbeats(self.client)

    @property
    def shards(self) -> list[tuple[str, str]]:
        """Address and key of each shard."""
        return [(group.address, key) for group in self.groups for key in group.keys]

    @property
    def n_shards(self) -> int:
        return len(self.shards)

    def workers(self) -> dict[str, Any]:
        """Return the workers that respond, by address."""
        return self.heartbeats.wait_for_workers()

    def place(self, arguments: Sequence[Sequence[Any]], addresses: Sequence[str], sizes: Sequence[int]) -> list[Any]:
        """Create shards from these arguments; the first sizes[0] of them are a group on worker addresses[0], and so on.

        Returns what `shards.create` says about each shard.
        """
        self.release()
        self._assign(addresses, sizes)
        tasks = [
            self.submit(shards.create, key, *args, address=address)
            for (address, key), args in zip(self.shards, arguments, strict=True)
        ]
        found = self.results(tasks)
        joined = dict.fromkeys(addresses, (self.fit, [key for _, key in self.shards]))
        self._await(run_on_each, self.client, join_fit, joined)
        return found

    def _assign(self, addresses: Sequence[str], sizes: Sequence[int]) -> None:
        """Give all shards keys that no others have."""
        self.fit, keys = secrets.token_hex(6), 0
        for address, size in zip(addresses, sizes, strict=True):
            self.groups.append(ShardGroup(address, tuple(f"{self.fit} {keys + s}" for s in range(size))))
            keys += size

    def release(self) -> None:
        """Drop all shards, on workers that respond soon."""
        if self.groups and self.client.status == "running":
            keys = [key for _, key in self.shards]
            arguments = dict.fromkeys([group.address for group in self.groups], (self.fit, keys))
            with contextlib.suppress(Exception):
                self.client.sync(run_on_each, self.client, release, arguments, POLL_SECONDS)
        self.groups = []

    def call(
        self, function: Function, *args: Any, per_shard: Sequence[Any] | None = None, uninterrupted: bool = False
    ) -> list[Any]:
        """Return function(shard, *args, *per_shard[s]) of all shards s, in one round trip.

        An `uninterrupted` call completes on all shards before Ctrl-C takes effect.
        """
        own = [()] * self.n_shards if per_shard is None else per_shard
        return self._round_trip(function, [(*args, *mine) for mine in own], uninterrupted)

    def call_first(self, function: Function, *args: Any) -> Any:
        """Return function(shard, *args) of the first shard."""
        return self._round_trip(function, [args])[0]

    def _round_trip(self, function: Function, arguments: Sequence[Any], uninterrupted: bool = False) -> list[Any]:
        """Call the first shards, as many as there are arguments: one message to each of their workers, and one back."""
        self.n_round_trips += 1
        called = self.shards[: len(arguments)]
        calls: dict[str, list[Call]] = {}
        for (address, key), args in zip(called, arguments, strict=True):
            calls.setdefault(address, []).append((key, function, args))
        sent = {address: (own,) for address, own in calls.items()}
        found = self._await(run_on_each, self.client, run_calls, sent, uninterrupted=uninterrupted)
        return self._answers(found, called)

    def _answers(self, found: dict[str, Any], called: Sequence[tuple[str, str]]) -> list[Any]:
        """Put the answers of workers into the order of shards, and raise errors."""
        errors = [result for results in found.values() for result in results if isinstance(result, Exception)]
        if errors:  # the others were lost because of the first that was not
            _raise(min(errors, key=lambda one: isinstance(one, ShardLostError)))
        answers = {address: iter(own) for address, own in found.items()}
        return [next(answers[address]) for address, _ in called]

    def exchange(self, part: Step = (), combine: Step = (), take: Step = (), value: Any = None) -> list[Any]:
        """Sum `part` over shards, hand the sum to `combine` on the first shard, and its result to `take` on all.

        Each is a function and its arguments after the shard; without the first, a value is handed on. Returns the
        answers of all shards; without `take`, the result only. It ends before Ctrl-C takes effect.
        """
        self.n_round_trips += 1
        self.n_sums += bool(part)
        plan, own = (self.fit, self.n_round_trips, [group.address for group in self.groups]), dict[str, Any]()
        for number, group in enumerate(self.groups):
            own.setdefault(group.address, {})[number] = group.keys
        steps, first = Steps(part, combine, take), self.groups[0].address
        sent = {address: (plan, groups, steps, value if address == first else None) for address, groups in own.items()}
        found = self._await(_until_error, self.client, run_exchange, sent, uninterrupted=True)
        return self._answers(found, self.shards if take else self.shards[:1])

    def start(self, shard: int, function: Function, *args: Any) -> Future:
        """Return a future of function(shard, *args), which stays on the worker of the shard."""
        address, key = self.shards[shard]
        return self.submit(shards.call, key, function, *args, address=address)

    def submit(self, function: Function, *args: Any, address: str) -> Future:
        """Start a task on the worker at this address."""
        where = {"workers": [address], "allow_other_workers": False}
        return self.client.submit(function, *args, pure=False, retries=0, **where)

    def results(self, futures: Sequence[Future], fetch: bool = True) -> list[Any]:
        """Wait for tasks, raise what they raised, and return their results if these are to be fetched."""
        for future, error in zip(futures, self._await(_exceptions, futures), strict=True):
            if future.status in ("cancelled", "lost"):
                raise WorkerLostError("a result was lost with its worker")
            if error is not None:
                _raise(error)
        if not fetch:
            return []
        return list(self._await(self.client.gather, list(futures), asynchronous=True))

    def send(self, things: Sequence[tuple[Any, str]]) -> list[Future]:
        """Send objects to the workers at these addresses, one after the other, to save memory on the scheduler."""
        return list(self._await(_scatter, self.client, things))

    def cancel(self, futures: Sequence[Future]) -> None:
        """Let the scheduler forget tasks."""
        self._await(self.client.cancel, list(futures), asynchronous=True, force=True)

    def find_holders(self, futures: Sequence[Future]) -> dict[str, list[str]]:
        """Return the addresses of the workers that hold each result, by its key."""
        self.results(futures, fetch=False)
        return dict(self._await(self.client.who_has, list(futures)))

    def _await(self, function: Function, *args: Any, uninterrupted: bool = False, **kwargs: Any) -> Any:
        """Return function(*args), awaited in the event loop of the client while heartbeats are checked."""

        async def run() -> Any:
            return await function(*args, **kwargs)

        self.heartbeats.reset()
        running = asyncio.run_coroutine_threadsafe(run(), self.client.loop.asyncio_loop)
        interrupt: KeyboardInterrupt | None = None
        try:
            while not running.done():
                try:
                    with contextlib.suppress(TimeoutError):
                        running.result(timeout=POLL_SECONDS)
                    if not running.done():
                        self.heartbeats.check(group.address for group in self.groups)
                except KeyboardInterrupt as error:
                    self.interrupted, interrupt = True, error
                    if not uninterrupted:
                        raise
            answer = running.result()
        except UNREACHABLE as error:
            raise WorkerLostError(f"a worker could not be reached ({type(error).__name__})") from error
        finally:
            running.cancel()
        if interrupt is not None:
            raise interrupt
        return answer


def _raise(error: BaseException) -> None:
    """Raise the error of a task or call."""
    if isinstance(error, KilledWorker):
        raise ClusterError(
            f"Several workers died while computing one block ({error.task}). Make blocks smaller, or give workers more "
            "memory."
        )
    if isinstance(error, (ShardLostError, *CANCELLED)):
        raise WorkerLostError("a result was lost with its worker") from error
    raise error


async def _until_error(client: Client, function: Function, arguments: dict[str, Any]) -> dict[str, Any]:
    """Run a function on workers until one has answered with an error, for which others may wait without end."""
    found: dict[str, Any] = {}
    calls = [asyncio.create_task(run_on_each(client, function, {name: own})) for name, own in arguments.items()]
    try:
        for one in asyncio.as_completed(calls):
            found |= await one
            if any(isinstance(answer, Exception) for answers in found.values() for answer in answers):
                break
    finally:
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
    return found


async def _exceptions(futures: Sequence[Future]) -> list[Any]:
    """Wait for tasks; returns the exception of each, or None."""
    return list(await asyncio.gather(*(future.exception() for future in futures)))


async def _scatter(client: Client, things: Sequence[tuple[Any, str]]) -> list[Any]:
    sent = [
        await client.scatter([thing], workers=[address], hash=False, asynchronous=True) for thing, address in things
    ]
    return [future for (future,) in sent]
