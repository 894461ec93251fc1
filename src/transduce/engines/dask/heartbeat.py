"""Detection of lost workers: heartbeats as the scheduler sees them, with a timeout.

Timeouts are settings of Dask:

    dask.config.set({"transduce.heartbeat-timeout": "60s", "transduce.worker-timeout": "5m"})
"""

import asyncio
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dask
from dask.utils import parse_timedelta
from distributed import Client

POLL_SECONDS = 0.5
"""Seconds between two looks at the workers."""


class WorkerLostError(Exception):
    """A worker is gone, and its shards with it."""


class ClusterError(RuntimeError):
    """The cluster cannot complete the fit.

    Parameters
    ----------
    problem : str
        What is wrong, and what to do.
    checkpoint : path or None, default=None
        The folder from which another call of fit can continue.
    """

    def __init__(self, problem: str, checkpoint: object = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.checkpoint = checkpoint

    def __str__(self) -> str:
        if self.checkpoint is None:
            return self.problem
        return f"{self.problem} Completed stages are in {self.checkpoint}; call fit again to continue from them."


def _seconds(name: str, default: str) -> float:
    return float(parse_timedelta(dask.config.get(f"transduce.{name}", default)))


@dataclass(eq=False)
class Heartbeats:
    """When the scheduler last answered, and when each worker last sent a heartbeat while it was running."""

    client: Client
    timeout: float = field(default_factory=lambda: _seconds("heartbeat-timeout", "15s"))
    worker_timeout: float = field(default_factory=lambda: _seconds("worker-timeout", "25s"))
    _answered: float = field(default_factory=time.monotonic)
    _heartbeats: dict[str, tuple[Any, float]] = field(default_factory=dict)
    _no_worker_since: float | None = None

    @property
    def scheduler(self) -> str:
        """Address of the scheduler."""
        scheduler = getattr(self.client, "scheduler", None)
        return "unknown address" if scheduler is None else str(scheduler.address)

    def reset(self) -> None:
        """Start to wait: what happened before does not count."""
        self._answered, self._no_worker_since = time.monotonic(), None
        self._heartbeats.clear()

    def wait_for_workers(self) -> dict[str, Any]:
        """Return the workers that respond, by address; wait until there is one."""
        begin = self._answered = time.monotonic()
        while True:
            known = self.workers() or {}
            running = {address: info for address, info in known.items() if info["status"] == "running"}
            answers = self.client.sync(
                run_on_each, self.client, os.getpid, dict.fromkeys(running, ()), self.timeout / 3
            )
            found = {address: running[address] for address, answer in answers.items() if isinstance(answer, int)}
            if found:
                return found
            if time.monotonic() - begin > self.worker_timeout:
                raise ClusterError(
                    f"No worker has connected to the scheduler at {self.scheduler} in {self.worker_timeout:.0f} s. "
                    "Start workers, then call fit again."
                )
            time.sleep(POLL_SECONDS)

    def workers(self) -> dict[str, Any] | None:
        """Return all workers by address; None where the scheduler does not answer, which may be temporary."""
        try:
            if self.client.status != "running":
                raise OSError(f"the client is {self.client.status}")
            identity = self.client.sync(self.client.scheduler.identity, callback_timeout=self.timeout / 3)
        except (OSError, TimeoutError, RuntimeError, ValueError) as error:
            if time.monotonic() - self._answered > self.timeout or self.client.status == "closed":
                raise ClusterError(
                    f"The scheduler at {self.scheduler} has not answered for {self.timeout:.0f} s. Start it again, "
                    "connect a new client, and call fit again."
                ) from error
            return None
        now = self._answered = time.monotonic()
        known = dict(identity["workers"])
        for address, info in known.items():
            last, _ = self._heartbeats.setdefault(address, (info["last_seen"], now))
            if last != info["last_seen"] and info["status"] == "running":
                self._heartbeats[address] = (info["last_seen"], now)
        return known

    def check(self, addresses: Iterable[str]) -> None:
        """Raise WorkerLostError unless all these workers are at work; without addresses, see that there is a worker."""
        known, now = self.workers(), time.monotonic()
        if known is None:
            return
        addresses = set(addresses)
        if not addresses:
            self._no_worker_since = None if known else self._no_worker_since or now
            if self._no_worker_since is not None and now - self._no_worker_since > self.worker_timeout:
                raise ClusterError(
                    f"No worker is left at the scheduler at {self.scheduler}. Start workers, then call fit again."
                )
        for address in addresses:
            if known.get(address) is None:
                raise WorkerLostError(f"worker {address} has left")
            silence = now - self._heartbeats[address][1]
            if silence > self.timeout:
                raise WorkerLostError(f"worker {address} has sent no heartbeat for {silence:.0f} s")


async def run_on_each(
    client: Client, function: Any, arguments: Mapping[str, Sequence[Any]], timeout: float | None = None
) -> dict[str, Any]:
    """Return function(*arguments[address]) of each worker, all at once; with a timeout, exceptions as results."""
    running = [
        asyncio.wait_for(client.run(function, *args, workers=[address]), timeout) for address, args in arguments.items()
    ]
    answers = await asyncio.gather(*running, return_exceptions=timeout is not None)
    return {
        address: answer if isinstance(answer, BaseException) else answer[address]
        for address, answer in zip(arguments, answers, strict=True)
    }
