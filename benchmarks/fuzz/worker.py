"""Run inputs in a child process with limits, and tell crashes, tracebacks, and too much memory or time."""

import multiprocessing
import resource
import tempfile
import time
import traceback
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from benchmarks.fuzz.corpus import past_findings
from benchmarks.fuzz.mutate import mutate
from benchmarks.fuzz.targets import TARGETS

SPARE_BYTES, PER_BYTE = 200_000_000, 4
SECONDS, PATIENCE = 10.0, 600.0
"""Processor time that an input may take, and how long a child that says nothing is waited for."""
KILL_SECONDS, ADDRESS_SPACE = 20, 16 << 30
"""Limits of the operating system: processor time of an input, and memory of the child."""
MAX_DEATHS = 20
"""Findings after which no further child is started."""


class Finding(NamedTuple):
    """An input by its target and number, which is negative for past findings, and what went wrong."""

    target: str
    number: int
    problem: str


class Summary(NamedTuple):
    """How many inputs were accepted and refused, the most memory and time of one, and what went wrong."""

    n_accepted: int
    n_refused: int
    most_bytes: int
    most_seconds: float
    findings: list[Finding]


def replay(target: str) -> Summary:
    """Run the past findings of a target again."""
    return fuzz(target, range(-len(past_findings(target)), 0))


def input_of(target: str, number: int) -> bytes:
    """The input with this number: a mutated file, or a past finding if it is negative."""
    return past_findings(target)[number][1] if number < 0 else mutate(TARGETS[target].seeds, number)


def fuzz(target: str, numbers: range) -> Summary:
    """Run the inputs with these numbers; after a crash a new child goes on with the next one."""
    n_accepted = n_refused = most_bytes = 0
    most_seconds, findings, left = 0.0, [], numbers
    while left:
        last = left.start - 1
        for number, ending, n_bytes, seconds in _child(target, left):
            last = number
            n_accepted, n_refused = n_accepted + (ending == "accepted"), n_refused + (ending == "refused")
            most_bytes, most_seconds = max(most_bytes, n_bytes), max(most_seconds, seconds)
            if ending not in ("accepted", "refused"):
                findings.append(Finding(target, number, ending))
        if last < left.stop - 1:
            findings.append(Finding(target, last + 1, "the process died, or did not end"))
            if len(findings) > MAX_DEATHS:
                break
            last += 1
        left = range(last + 1, left.stop)
    return Summary(n_accepted, n_refused, most_bytes, most_seconds, findings)


def _child(target: str, numbers: range) -> Iterator[tuple[int, str, int, float]]:
    """Yield what a child process says of each input, until it ends or dies."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(target, numbers, sender), daemon=True)
    process.start()
    sender.close()
    try:
        while receiver.poll(PATIENCE):
            yield receiver.recv()
    except EOFError:
        pass
    process.kill()
    process.join()


def _run(target: str, numbers: range, sender: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    with tempfile.TemporaryDirectory() as folder:
        _judge(target, TARGETS[target].seeds[0], Path(folder))  # imports and caches are not the first input's
        for number in numbers:
            _, hard = resource.getrlimit(resource.RLIMIT_CPU)
            resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + KILL_SECONDS, hard))
            sender.send((number, *_judge(target, input_of(target, number), Path(folder))))


def _judge(target: str, data: bytes, folder: Path) -> tuple[str, int, float]:
    """Read an input; return how it ended, and the memory and processor time that it took."""
    before, begin = _start_of_memory(), time.process_time()
    ending = "accepted"
    try:
        TARGETS[target].read(data, folder)
    except TARGETS[target].errors as error:
        sentence = str(error)
        if not sentence.endswith((".", ")")) or not sentence.isprintable() or len(sentence) > 1000:
            ending = f"not a sentence: {sentence!r}"
        else:
            ending = "refused"
    except Exception:
        ending = "".join(traceback.format_exc(limit=-3)).strip()
    seconds, n_bytes = time.process_time() - begin, max(0, _peak_of_memory() - before)
    if n_bytes > SPARE_BYTES and n_bytes > SPARE_BYTES + PER_BYTE * (size := TARGETS[target].size(data)):
        ending = f"{n_bytes / 1e6:.0f} MB for an input of {size} bytes"
    if seconds > SECONDS:
        ending = f"{seconds:.1f} s"
    return ending, n_bytes, seconds


def _start_of_memory() -> int:
    """Forget the peak, where the system can (Linux), and return the memory in use in bytes."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return _peak_of_memory()


def _peak_of_memory() -> int:
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return 1024 * int(status.split("VmHWM:")[1].split()[0])
