"""Workers and what they look after: shards are placed, visited, and missed when a worker is gone.

A visit goes to all shards at once. While answers are awaited, workers are watched: one that has left, stands still or
says nothing, and a scheduler that does not answer, end the wait within half a minute, never later. Whoever called can
then place the shards anew among the workers that are left, or that come back.
"""

import contextlib
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from distributed import Client, Future, fire_and_forget, wait
from distributed.client import FutureCancelledError
from distributed.scheduler import KilledWorker

from transduce.dask import shards
from transduce.dask.shards import GoneError

GLANCE = 0.5
"""Seconds between two looks at the workers while answers are awaited."""
SILENCE = 15.0
"""Seconds without a sign of life, or paused, after which a worker is taken to be lost, and a scheduler to be gone."""
PATIENCE = 25.0
"""Seconds to wait for a worker to come where there is none."""


class LostError(Exception):
    """Workers are gone, with what they looked after."""


class ClusterError(RuntimeError):
    """The cluster cannot go on with the fit; the sentence says why, and what to do."""


@dataclass(eq=False)
class Crew:
    """The workers of a fit; shard g is looked after at address `homes[g]`, under the key `keys[g]`."""

    client: Client
    homes: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    shunned: set[str] = field(default_factory=set)
    n_bytes: int = 0
    n_trips: int = 0
    n_kept: int = 0
    _paused: dict[str, float] = field(default_factory=dict)
    _heard: float = field(default_factory=time.monotonic)

    def workers(self) -> dict[str, Any]:
        """Workers that can be sent to, as the scheduler knows them now; waits a while for the first to come."""
        begin = time.monotonic()
        while True:
            known = self._known()
            alive = {
                address: facts
                for address, facts in known.items()
                if address not in self.shunned and facts["status"] == "running" and not _silent(facts, known)
            }
            if alive:
                return alive
            if time.monotonic() - begin > PATIENCE:
                raise ClusterError(
                    f"there must be a worker to work on, but none has come to {self._scheduler} in {PATIENCE:.0f} s. "
                    "Start workers, then call fit again."
                )
            time.sleep(GLANCE)

    @property
    def _scheduler(self) -> str:
        scheduler = getattr(self.client, "scheduler", None)
        return "the scheduler" if scheduler is None else str(scheduler.address)

    def _known(self) -> dict[str, Any]:
        """All workers by address, asked afresh; a scheduler that does not answer for long is gone."""
        try:
            if self.client.status != "running":
                raise OSError(f"the client is {self.client.status}")
            answer = self.client.sync(_identity, self.client, callback_timeout=5.0)
        except (OSError, TimeoutError, RuntimeError, ValueError) as error:
            if time.monotonic() - self._heard > SILENCE or self.client.status == "closed":
                raise ClusterError(
                    f"the scheduler at {self._scheduler} must answer, but has not for {SILENCE:.0f} s. Start it again, "
                    "connect a new client, and call fit again."
                ) from error
            time.sleep(GLANCE)
            return {home: {"status": "running", "last_seen": 0.0} for home in self.homes}
        self._heard = time.monotonic()
        return dict(answer["workers"])

    def place(self, makers: Sequence[Callable[[str], Future]], homes: Sequence[str]) -> list[Any]:
        """Let a shard be made at each home: a maker gets the key of its shard and the address; answers of all."""
        self.drop()
        token = secrets.token_hex(6)
        self.homes = list(homes)
        self.keys = [f"{token} {g}" for g in range(len(makers))]
        return self.answers([maker(key) for maker, key in zip(makers, self.keys, strict=True)])

    def drop(self) -> None:
        """Let go of all shards, where that can still be said."""
        homes = sorted(set(self.homes))
        if self.keys and homes and self.client.status == "running":
            with contextlib.suppress(Exception):
                known = self._known()
                for home in homes:
                    if home in known and home not in self.shunned:
                        fire_and_forget(self.submit(shards.drop, self.keys, home=home))
        self.keys = []

    def each(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Answers of function(shard, *args) for all shards."""
        return self.answers(self.ask(function, *args))

    def ask(self, function: Callable[..., Any], *args: Any) -> list[Future]:
        """Answers of function(shard, *args) for all shards, as they come."""
        return [self.ask_one(g, function, *args) for g in range(len(self.keys))]

    def each_with(self, function: Callable[..., Any], own: Sequence[Sequence[Any]]) -> list[Any]:
        """Answers of function(shard, *own[g]) for each shard g."""
        return self.answers([self.ask_one(g, function, *mine) for g, mine in enumerate(own)])

    def ask_one(self, g: int, function: Callable[..., Any], *args: Any) -> Future:
        """The answer of function(shard, *args) for shard g, as it comes."""
        return self.submit(shards.visit, self.keys[g], function, *args, home=self.homes[g])

    def submit(self, function: Callable[..., Any], *args: Any, home: str | None = None) -> Future:
        """A task, at an address if one is named."""
        where: dict[str, Any] = {} if home is None else {"workers": [home], "allow_other_workers": False}
        return self.client.submit(function, *args, pure=False, retries=0, **where)

    def answers(self, futures: Sequence[Future]) -> list[Any]:
        """What these tasks answer; LostError if a worker is gone before they do."""
        self.finish(futures)
        begin = time.monotonic()
        while True:
            try:
                return list(self.client.gather(list(futures), errors="raise", direct=False))
            except (GoneError, FutureCancelledError) as error:
                raise LostError(str(error)) from error
            except KilledWorker as error:
                raise _killer(error) from None
            except TimeoutError:
                self.look()
                if time.monotonic() - begin > SILENCE:
                    raise LostError("answers do not arrive") from None

    def finish(self, futures: Sequence[Future]) -> None:
        """Wait until these tasks have answered; LostError if a worker is gone before they do."""
        self.n_trips += 1
        waiting, glances = list(futures), 0
        while waiting:
            try:
                waiting = list(wait(waiting, timeout=GLANCE).not_done)
            except TimeoutError:
                waiting = [future for future in waiting if not future.done()]
                glances += 1
                if glances % 2 == 0:
                    self.look()
            except FutureCancelledError as error:
                raise LostError(str(error)) from error
        for future in futures:
            if future.status in ("cancelled", "lost"):
                raise LostError("an answer went with its worker")

    def send(self, thing: Any, home: str) -> Future:
        """Something that is here, on the worker at this address."""
        try:
            return self.client.scatter(thing, workers=[home], hash=False, timeout=PATIENCE)
        except (OSError, TimeoutError, ValueError) as error:
            self.look()
            raise LostError(f"worker {home} could not be reached") from error

    def look(self) -> None:
        """See that every home is still there and at work."""
        known, now = self._known(), time.monotonic()
        for home in set(self.homes):
            facts = known.get(home)
            if facts is None:
                raise LostError(f"worker {home} has left")
            if _silent(facts, known):
                self.shunned.add(home)
                raise LostError(f"worker {home} says nothing")
            if facts["status"] == "running":
                self._paused.pop(home, None)
            elif now - self._paused.setdefault(home, now) > SILENCE:
                self.shunned.add(home)
                raise LostError(f"worker {home} is {facts['status']}")


def _killer(error: KilledWorker) -> ClusterError:
    return ClusterError(
        f"a block must be made without killing its worker, but several died of it ({error.task}). Make it smaller, or "
        "give workers more memory."
    )


async def _identity(client: Client) -> Any:
    return await client.scheduler.identity()


def _silent(facts: dict[str, Any], known: dict[str, Any]) -> bool:
    """Whether a worker has given no sign of life for long, by the scheduler's own clock."""
    now = max((other["last_seen"] for other in known.values()), default=0.0)
    now = max(now, time.time()) if abs(time.time() - now) < 3600.0 else now
    return bool(facts["last_seen"] and now - facts["last_seen"] > SILENCE)
