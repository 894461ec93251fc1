"""A target: a reader, files that it accepts, and what must be true of what it returns; `TARGETS` has all of them.

To add one, write a function in a module that `benchmarks.fuzz.targets` imports. Its input is in a file or folder of
which nothing else is known; it reads it, asserts what must hold, or raises one of the errors that say why not:

    @target("bio", [b"green B-tea\\ntea I-tea\\n"])
    def _read_bio(data: bytes, folder: Path) -> None:
        path = folder / "in.bio"
        path.write_bytes(data)
        assert all(len(one.tokens) == len(one.tags) for one in read_bio(path))
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from transduce.errors import InputError

Read = Callable[[bytes, Path], None]


@dataclass(frozen=True)
class Target:
    """Files that are accepted, and a function that reads a file or raises one of the errors that say why not."""

    make: Callable[[], list[bytes]] | list[bytes]
    read: Read
    errors: tuple[type[Exception], ...] = (InputError,)
    share: float = 1.0
    """Of the inputs of other targets: less where each one takes long."""
    size: Callable[[bytes], int] = len
    """Bytes of the content, decompressed."""

    @cached_property
    def seeds(self) -> list[bytes]:
        """The files, made once in a process."""
        return self.make() if callable(self.make) else self.make


TARGETS: dict[str, Target] = {}


def target(
    name: str,
    seeds: Callable[[], list[bytes]] | list[bytes],
    errors: tuple[type[Exception], ...] = (InputError,),
    share: float = 1.0,
    size: Callable[[bytes], int] = len,
) -> Callable[[Read], Read]:
    """Register a function that reads one input as the target of this name."""

    def register(read: Read) -> Read:
        TARGETS[name] = Target(seeds, read, errors, share, size)
        return read

    return register


def joined(files: list[bytes]) -> bytes:
    """Several files as one input: the length of each, then its content."""
    return b"".join(b"%8d" % len(file) + file for file in files)


def split(data: bytes, folder: Path, names: tuple[str, ...]) -> None:
    """Write the files of an input that `joined` made, however it was changed since, into a folder."""
    for name in names:
        length = int(data[:8]) if data[:8].strip().isdigit() else 0
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data[8 : 8 + length])
        data = data[8 + length :]
