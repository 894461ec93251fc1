"""Exceptions as results, so that a worker can report which call or block failed."""

from typing import NamedTuple

from distributed.protocol.pickle import dumps, loads


class Failure(NamedTuple):
    """An exception in a form that can be sent."""

    error: Exception

    @classmethod
    def create(cls, error: Exception) -> "Failure":
        """Replace an exception that cannot be pickled by its text."""
        try:
            loads(dumps(error))
        except Exception:
            return cls(RuntimeError(f"{type(error).__name__}: {error}"))
        return cls(error)
