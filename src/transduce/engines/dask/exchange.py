"""Sums over the shards of a fit, which workers exchange directly: the driver calls each of them once per sum.

    every group      adds up (numbers, array) of its shards, and sends one part of the array to each group
    every group      adds up the parts that it is sent, and sends the sum to the first group
    the first group  turns the sums into what all shards take, and sends one part of it to each group
    every group      sends that part to all groups

For an array of w bytes a group receives 2 w, and the first one 3 w, however many groups there are. Parts are added up
in the order of the groups, so the sum is bit for bit the same wherever they are placed. An error travels in the place
of a part; when a message cannot be delivered, the driver gets an error, and ends the fit on all workers.
"""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from distributed.protocol import to_serialize

from transduce.arrays import Array
from transduce.engines.dask import shards
from transduce.engines.dask.shards import Function, ShardLostError, add_up, sendable

Step: TypeAlias = tuple[Any, ...]
"""A function and its arguments between the shard and what it takes."""


class Steps(NamedTuple):
    """What shards do in an exchange: `part` is summed over all, `combine` is for the first, and `take` for all."""

    part: Step = ()
    combine: Step = ()
    take: Step = ()


@dataclass(eq=False)
class Mailbox:
    """Messages to the groups of a fit in this process; `keys` are those of all shards of the fit."""

    keys: tuple[str, ...]
    messages: dict[str, Any] = field(default_factory=dict)

    def message(self, tag: str) -> Any:
        """Return the future of a message."""
        return self.messages.setdefault(tag, asyncio.get_running_loop().create_future())

    async def receive(self, tag: str) -> Any:
        """Wait for a message."""
        try:
            return await self.message(tag)
        finally:
            self.messages.pop(tag, None)

    def close(self) -> None:
        """End all waiting."""
        for message in self.messages.values():
            if not message.done():
                message.set_exception(ShardLostError("The fit has ended on this worker."))
                message.exception()  # or asyncio reports the ones that nobody waits for


FITS: dict[str, Mailbox] = {}
"""Fits that this worker takes part in."""


async def deliver(fit: str, tag: str, value: Any) -> None:
    """Receive a message, as a handler of the worker; one of a fit that has ended is dropped."""
    if fit in FITS:
        FITS[fit].message(tag).set_result(value)


async def run_exchange(
    plan: tuple[str, int, Sequence[str]],
    groups: Mapping[int, Sequence[str]],
    steps: Steps,
    value: Any,
    dask_worker: Any = None,
) -> list[Any]:
    """Run an exchange on the groups of this worker, by number with the keys of their shards.

    Returns the answers of these shards to the last step, or an error. The plan is the fit, the number of the exchange
    and the addresses of all groups. Without a step that is summed, the first group starts with this value.
    """
    try:
        running = (Exchange(dask_worker, *plan, *group).run(steps, value) for group in groups.items())
        return [answer for answers in await asyncio.gather(*running) for answer in answers]
    except Exception as error:
        return [sendable(error)]


@dataclass(eq=False)
class Exchange:
    """One group in an exchange."""

    worker: Any
    fit: str
    number: int
    addresses: Sequence[str]
    group: int
    keys: Sequence[str]

    async def run(self, steps: Steps, value: Any) -> list[Any]:
        """Return the answers of all shards, or of the first one if there is no step for all."""
        if steps.part:
            value = await _or_error(self._total(steps.part))
        if steps.combine and not self.group and not isinstance(value, Exception):
            value = await _or_error(in_thread(self.worker, shards.call, self.keys[0], *steps.combine, value))
        if not steps.take:
            return [] if self.group else [value]
        return await self._call((*steps.take, await self._copy(value)))

    async def _total(self, part: Step) -> Any:
        """Return the sum over all groups, to the first one."""
        mine = await _or_error(self._sum(self._call(part)))
        pieces: list[Any] = [mine] * len(self.addresses)
        if not isinstance(mine, Exception):
            pieces = [(() if to else mine[0], piece) for to, piece in enumerate(self._split(mine[1]))]
        await self._send_all("part", pieces)
        await self._send("sum", 0, await _or_error(self._sum(self._receive_all("part"))))
        if self.group:
            return None
        sums = await self._receive_all("sum")
        return sums[0][0], _joined([piece for _, piece in sums], mine[1].shape)

    async def _sum(self, parts: Awaitable[Sequence[Any]]) -> Any:
        return await in_thread(self.worker, sum_parts, *await parts)

    async def _copy(self, value: Any) -> Any:
        """Return on all groups what the first one has."""
        if not self.group:
            pieces: list[Any] = [value] * len(self.addresses)
            if not isinstance(value, Exception):
                pieces = [(value[0], value[1].shape, piece) for piece in self._split(value[1])]
            await self._send_all("found", pieces)
        mine = await _or_error(self._receive("found", 0))
        await self._send_all("copy", [mine] * len(self.addresses))
        copies = await self._receive_all("copy")
        return copies[0][0], _joined([piece for *_, piece in copies], copies[0][1])

    def _split(self, array: Array) -> list[Array]:
        return np.array_split(array.reshape(-1), len(self.addresses))

    async def _call(self, step: Step) -> list[Any]:
        return list(await asyncio.gather(*(in_thread(self.worker, shards.call, key, *step) for key in self.keys)))

    async def _send_all(self, phase: str, values: Sequence[Any]) -> None:
        await asyncio.gather(*(self._send(phase, to, value) for to, value in enumerate(values)))

    async def _send(self, phase: str, to: int, value: Any) -> None:
        address, tag = self.addresses[to], f"{self.number} {phase} {self.group} {to}"
        message = {"fit": self.fit, "tag": tag, "value": value}
        if address == self.worker.address:
            return await deliver(**message)
        try:
            await self.worker.rpc(address).transduce_deliver(**message | {"value": to_serialize(value)})
        except OSError as error:
            raise ShardLostError(str(error)) from error

    async def _receive_all(self, phase: str) -> list[Any]:
        return list(await asyncio.gather(*(self._receive(phase, sender) for sender in range(len(self.addresses)))))

    async def _receive(self, phase: str, sender: int) -> Any:
        """Wait for a message, and raise the error that came in its place."""
        mailbox = FITS.get(self.fit)
        if mailbox is None:
            raise ShardLostError("The fit has ended on this worker.")
        value = await mailbox.receive(f"{self.number} {phase} {sender} {self.group}")
        if isinstance(value, Exception):
            raise value
        return value


async def _or_error(running: Awaitable[Any]) -> Any:
    """Return a result or an error, which then travels in its place; a shard that is lost ends the exchange at once."""
    try:
        return await running
    except ShardLostError:
        raise
    except Exception as error:
        return sendable(error)


def sum_parts(*parts: tuple[Sequence[Any], Array]) -> tuple[Sequence[Any], Array]:
    """Add up numbers, and arrays of one shape, of one part or more."""
    numbers, arrays = zip(*parts, strict=True)
    if len(parts) == 1:
        return parts[0]
    total = arrays[0] + arrays[1]
    for array in arrays[2:]:
        total += array
    return add_up(numbers), total


def _joined(pieces: Sequence[Array], shape: tuple[int, ...]) -> Array:
    return (pieces[0] if len(pieces) == 1 else np.concatenate(pieces)).reshape(shape)


async def in_thread(worker: Any, function: Function, *args: Any) -> Any:
    """Run a function in a thread of the worker, which keeps answering messages meanwhile."""
    try:
        running = asyncio.get_running_loop().run_in_executor(worker.executors["default"], function, *args)
    except RuntimeError as error:  # the worker is closing
        raise ShardLostError(str(error)) from error
    return await running
