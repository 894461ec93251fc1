"""Workers and what they look after: shards are placed, visited, and missed when a worker is gone.

A visit goes to all shards at once. While answers are awaited, workers are watched: one that has left, stands still or
says nothing, and a scheduler that does not answer, end the wait within half a minute, never later. Whoever called can
then place the shards anew among the workers that are left, or that come back.
"""

import asyncio
import contextlib
import os
import secrets
import time
from asyncio import CancelledError
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Any

from distributed import Client, Future, fire_and_forget
from distributed.client import FutureCancelledError, FuturesCancelledError
from distributed.scheduler import KilledWorker

from transduce.engines.dask import shards
from transduce.engines.dask.all_reduce import Sum, Team, abandon, call_and_add, join, leave
from transduce.engines.dask.shards import GoneError, Raised
from transduce.engines.dask.weight_deltas import Change

GLANCE = 0.5
"""Seconds between two looks at the workers while answers are awaited."""
SILENCE = 15.0
"""Seconds without a sign of life, or paused, after which a worker is taken to be lost, and a scheduler to be gone."""
PATIENCE = 25.0
"""Seconds to wait for a worker to come where there is none."""
CANCELLED = (FutureCancelledError, FuturesCancelledError)
UNREACHABLE = (OSError, KeyError, CancelledError, *CANCELLED)
"""What is raised when something was asked of a worker that is not there any more; the scheduler may not know it."""


class WorkerLostError(Exception):
    """Workers are gone, with what they looked after."""


class ClusterError(RuntimeError):
    """The cluster cannot go on with the fit; the sentence says why, and what to do."""


@dataclass(eq=False)
class WorkerPool:
    """The workers of a fit; shard g is looked after at address `homes[g]`, under the key `keys[g]`.

    `teams` are runs of shards that share a home; `token` names them all.
    """

    client: Client
    homes: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    teams: list[list[int]] = field(default_factory=list)
    token: str = ""
    n_sums: int = 0
    interrupted: bool = False
    n_trips: int = 0
    n_kept: int = 0
    _paused: dict[str, float] = field(default_factory=dict)
    _signs: dict[str, tuple[float, float]] = field(default_factory=dict)
    _heard: float = field(default_factory=time.monotonic)
    _alone: float | None = None

    def workers(self) -> dict[str, Any]:
        """Workers that answer, as the scheduler knows them now; waits a while for the first to come."""
        begin = self._heard = time.monotonic()
        while True:
            known = self._known() or {}
            alive = {address: facts for address, facts in known.items() if facts["status"] == "running"}
            answered = self.client.sync(_ping_all, self.client, list(alive)) if alive else []
            if answered:
                return {address: alive[address] for address in answered}
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

    def _known(self) -> dict[str, Any] | None:
        """All workers by address, asked afresh; None where the scheduler does not answer, which may not last."""
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
            return None
        now = self._heard = time.monotonic()
        for address, facts in answer["workers"].items():
            if self._signs.get(address, (None, 0.0))[0] != facts["last_seen"]:
                self._signs[address] = (facts["last_seen"], now)
        return dict(answer["workers"])

    def _silent(self, address: str) -> bool:
        """Whether the scheduler has heard nothing new of a worker for long."""
        return time.monotonic() - self._signs[address][1] > SILENCE

    def place(self, makers: Sequence[Callable[[str], Future]], homes: Sequence[str], sizes: Sequence[int]) -> list[Any]:
        """Let a shard be made at each home: a maker gets the key of its shard and the address; answers of all.

        The first sizes[0] of them are a team, which has one home, and so on.
        """
        self.drop()
        self._name(homes, sizes)
        answers = self.answers([maker(key) for maker, key in zip(makers, self.keys, strict=True)])
        teams = [Team(self.homes[team[0]], tuple(self.keys[g] for g in team)) for team in self.teams]
        self._await(_join_all(self.client, sorted(set(homes)), self.token, teams))
        return answers

    def _name(self, homes: Sequence[str], sizes: Sequence[int]) -> None:
        """Give all shards names that no others have."""
        self.token, self.homes = secrets.token_hex(6), list(homes)
        self.keys = [f"{self.token} {g}" for g in range(len(homes))]
        ends = [0, *accumulate(sizes)]
        self.teams = [list(range(a, b)) for a, b in pairwise(ends)]

    def drop(self) -> None:
        """Let go of all shards, where that can still be said."""
        homes = sorted(set(self.homes))
        if self.keys and homes and self.client.status == "running":
            with contextlib.suppress(Exception):
                known, end = self._known() or {}, time.monotonic() + GLANCE
                told = [self.submit(_let_go, self.keys, self.token, home=home) for home in homes if home in known]
                while time.monotonic() < end and not all(future.done() for future in told):
                    time.sleep(0.002)
                fire_and_forget([future for future in told if not future.done()])  # those done would never be forgotten
        self.keys, self.homes, self.teams = [], [], []

    def each(self, function: Callable[..., Any], *args: Any, surely: bool = False) -> list[Any]:
        """Answers of function(shard, *args) for all shards; `surely` lets no Ctrl-C come between them."""
        return self.visit(range(len(self.keys)), function, [args] * len(self.keys), surely)

    def each_with(self, function: Callable[..., Any], own: Sequence[Sequence[Any]]) -> list[Any]:
        """Answers of function(shard, *own[g]) for each shard g."""
        return self.visit(range(len(self.keys)), function, own)

    def one(self, function: Callable[..., Any], *args: Any) -> Any:
        """The answer of function(shard, *args) for the first shard."""
        return self.visit([0], function, [args])[0]

    def each_and_add(self, restart: str, anew: bool, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Answers of function(shard, *args) for all shards; what that changes in W is added up, and all have the sum.

        The sum is added to W, or is W where it is made `anew`.
        """
        self.n_sums += 1
        return self._visit_and_add(Sum(self.token, self.n_sums, restart, anew), function, args)

    def each_in_turn(
        self,
        restart: str,
        n_turns: int,
        is_over: Callable[[int, list[Any]], bool],
        function: Callable[..., tuple[Any, Change]],
        *args: Any,
    ) -> list[list[Any]]:
        """Answers of function(shard, *args, count, changes), one shard after the other, for several turns of each.

        It is told how many turns there were, with this one, and what others have changed in W since the last; with its
        answer it gives its own change. There are at most so many turns, and none after one that `is_over(count,
        answers)`.
        """
        self.n_sums += 1
        return self._visit_and_add(Sum(self.token, self.n_sums, restart, False, n_turns, is_over), function, args)

    def _visit_and_add(self, which: Sum, function: Callable[..., Any], args: Sequence[Any]) -> list[Any]:
        return self._visit(range(len(self.keys)), function, [args] * len(self.keys), False, which)

    def visit(
        self, which: Sequence[int], function: Callable[..., Any], own: Sequence[Sequence[Any]], surely: bool = False
    ) -> list[Any]:
        """Answers of function(shard, *own) for some shards: one message to each of their workers, and one back."""
        return self._visit(which, function, own, surely, None)

    def _visit(
        self,
        which: Sequence[int],
        function: Callable[..., Any],
        own: Sequence[Sequence[Any]],
        surely: bool,
        added: Sum | None,
    ) -> list[Any]:
        self.n_trips += 1
        places: dict[str, list[int]] = {}
        for place, g in enumerate(which):
            places.setdefault(self.homes[g], []).append(place)
        visits = {home: [(self.keys[which[p]], function, own[p]) for p in mine] for home, mine in places.items()}
        try:
            found = self._await(_call_all(self.client, visits, added), surely)
        except KeyboardInterrupt:
            if added is not None:  # whoever waits for a turn need not take it
                with contextlib.suppress(WorkerLostError, ClusterError):
                    self._await(_abandon_all(self.client, list(visits), added))
            raise
        answers: list[Any] = [None] * len(which)
        for home, mine in places.items():
            for place, answer in zip(mine, found[home], strict=True):
                answers[place] = answer
        errors = [answer.error for answer in answers if isinstance(answer, Raised)]
        for error in sorted(errors, key=lambda one: isinstance(one, GoneError)):  # what others miss comes of the first
            self._raise(error)
        return answers

    def _await(self, question: Coroutine[Any, Any, Any], surely: bool = False) -> Any:
        """What the cluster answers; LostError if a worker is gone before it does.

        What is to be done `surely` is waited for, even where Ctrl-C is pressed, which then has its way.
        """
        self._begin_to_wait()
        asked = asyncio.run_coroutine_threadsafe(question, self.client.loop.asyncio_loop)
        pressed: KeyboardInterrupt | None = None
        try:
            while not asked.done():
                try:
                    with contextlib.suppress(TimeoutError):
                        asked.result(timeout=GLANCE)
                    if not asked.done():
                        self.look()
                except KeyboardInterrupt as interrupt:
                    self.interrupted, pressed = True, interrupt
                    if not surely:
                        raise
            answer = asked.result()
        except UNREACHABLE as error:
            raise WorkerLostError(f"a worker could not be reached ({type(error).__name__})") from error
        finally:
            asked.cancel()
        if pressed is not None:
            raise pressed
        return answer

    def _begin_to_wait(self) -> None:
        """What was heard before does not count."""
        self._heard, self._alone = time.monotonic(), None
        self._paused.clear()

    def task(self, g: int, function: Callable[..., Any], *args: Any) -> Future:
        """The answer of function(shard, *args) for shard g, which may be large, as a future that stays there."""
        return self.submit(shards.visit, self.keys[g], function, *args, home=self.homes[g])

    def submit(self, function: Callable[..., Any], *args: Any, home: str | None = None) -> Future:
        """A task, at an address if one is named."""
        where: dict[str, Any] = {} if home is None else {"workers": [home], "allow_other_workers": False}
        return self.client.submit(function, *args, pure=False, retries=0, **where)

    def answers(self, futures: Sequence[Future]) -> list[Any]:
        """What these tasks answer; LostError if a worker is gone before they do."""
        self.finish(futures)
        return list(self._await(_gather(self.client, list(futures))))

    def cancel(self, futures: Sequence[Future]) -> None:
        """Let the scheduler forget these tasks."""
        self._await(_cancel(self.client, list(futures)))

    def holders(self, futures: Sequence[Future]) -> dict[str, list[str]]:
        """Addresses of the workers that have each of these, by their keys."""
        self.finish(futures)
        return dict(self._await(_who_has(self.client, list(futures))))

    def finish(self, futures: Sequence[Future]) -> None:
        """Wait until these tasks have answered; LostError if a worker is gone before they do."""
        self._begin_to_wait()
        pause, looked = 0.001, time.monotonic()
        while not all(future.done() for future in futures):
            time.sleep(pause)
            pause = min(2 * pause, 0.02)
            if time.monotonic() - looked > 2 * GLANCE:
                self.look()
                looked = time.monotonic()
        for future in futures:
            if future.status in ("cancelled", "lost"):
                raise WorkerLostError("an answer went with its worker")
            if future.status == "error":
                self._raise(self._await(_exception(future)))

    def _raise(self, error: BaseException) -> None:
        """Raise what a task has raised."""
        if isinstance(error, KilledWorker):
            raise _killer(error)
        if isinstance(error, (GoneError, *CANCELLED)):
            raise WorkerLostError("an answer went with its worker") from error
        raise error

    def send(self, thing: Any, home: str) -> Future:
        """Something that is here, on the worker at this address."""
        return self.send_all([(thing, home)])[0]

    def send_all(self, things: Sequence[tuple[Any, str]]) -> list[Future]:
        """The same for several, one after the other: the scheduler need not hold them all."""
        return list(self._await(_scatter_all(self.client, things)))

    def look(self) -> None:
        """See that every home is still there and at work; that there is some worker, where there are no homes yet."""
        known, now = self._known(), time.monotonic()
        if known is None:
            return
        if not self.homes:
            self._alone = None if known else self._alone or now
            if self._alone is not None and now - self._alone > PATIENCE:
                raise ClusterError(
                    f"there must be a worker to work on, but none is left at {self._scheduler}. Start workers, then "
                    "call fit again."
                )
        for home in set(self.homes):
            facts = known.get(home)
            if facts is None:
                raise WorkerLostError(f"worker {home} has left")
            if self._silent(home):
                raise WorkerLostError(f"worker {home} says nothing")
            if facts["status"] == "running":
                self._paused.pop(home, None)
            elif now - self._paused.setdefault(home, now) > SILENCE:
                raise WorkerLostError(f"worker {home} is {facts['status']}")


def _killer(error: KilledWorker) -> ClusterError:
    return ClusterError(
        f"a block must be made without killing its worker, but several died of it ({error.task}). Make it smaller, or "
        "give workers more memory."
    )


async def _call_all(client: Client, visits: dict[str, list[Any]], added: Sum | None) -> dict[str, Any]:
    """Make visits on several workers at once."""
    asked = [
        client.run(shards.call, mine, workers=[home])
        if added is None
        else client.run(call_and_add, mine, added, workers=[home])
        for home, mine in visits.items()
    ]
    answers = await asyncio.gather(*asked)
    return {home: answer[home] for home, answer in zip(visits, answers, strict=True)}


async def _abandon_all(client: Client, homes: list[str], which: Sum) -> None:
    """Let workers that answer soon give up a sum."""
    asked = [asyncio.wait_for(client.run(abandon, which, workers=[home]), GLANCE) for home in homes]
    await asyncio.gather(*asked, return_exceptions=True)


async def _join_all(client: Client, homes: list[str], token: str, teams: list[Team]) -> None:
    await client.run(join, token, teams, workers=homes)


def _let_go(keys: Sequence[str], token: str) -> None:
    shards.drop(keys)
    leave(token)


async def _gather(client: Client, futures: list[Future]) -> Any:
    return await client.gather(futures, asynchronous=True)


async def _exception(future: Future) -> Any:
    return await future.exception()


async def _who_has(client: Client, futures: list[Future]) -> Any:
    return await client.who_has(futures)


async def _scatter_all(client: Client, things: Sequence[tuple[Any, str]]) -> list[Any]:
    sent = [await client.scatter([thing], workers=[home], hash=False, asynchronous=True) for thing, home in things]
    return [future for (future,) in sent]


async def _cancel(client: Client, futures: list[Future]) -> None:
    await client.cancel(futures, asynchronous=True, force=True)


async def _ping_all(client: Client, addresses: list[str]) -> list[str]:
    """Those of the workers that answer soon."""
    asked = [asyncio.wait_for(client.run(os.getpid, workers=[address]), 5.0) for address in addresses]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    return [
        address for address, answer in zip(addresses, answers, strict=True) if not isinstance(answer, BaseException)
    ]


async def _identity(client: Client) -> Any:
    return await client.scheduler.identity()
