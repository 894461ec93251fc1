"""Partitions of a label problem on other machines, where messages are pickled and counted."""

import pickle

import numpy as np

from transduce.label_step.partitions import LocalPartitions, Partition


class Remote:
    """Partitions that are reached through pickles only; records calls, and the size of the largest message."""

    def __init__(self, parts: list[Partition]) -> None:
        self.here, self.calls, self.largest_message = LocalPartitions(parts), [], 0

    def each(self, function, *args, **kwargs):
        self.calls.append(function.__name__)
        return self._received(self.here.each(*self._sent(function, *args), **kwargs))

    def each_with(self, function, own):
        self.calls.append(function.__name__)
        function, *own = self._sent(function, *own)
        return self._received(self.here.each_with(function, own))

    def _sent(self, *things):
        return [self._measured(pickle.dumps(thing)) for thing in things]

    def _received(self, answers):
        return [self._measured(pickle.dumps(answer)) for answer in answers]

    def _measured(self, pickled: bytes):
        self.largest_message = max(self.largest_message, len(pickled))
        return pickle.loads(pickled)

    @property
    def labels(self) -> np.ndarray:
        """The new labels; nothing else may be left."""
        assert all(list(part.state) == ["labels"] for part in self.here.partitions)
        assert all(part.state["labels"].dtype == np.int64 for part in self.here.partitions)
        assert not any(
            np.shares_memory(part.state["labels"], part.labels) for part in self.here.partitions if part.n_rows
        )
        return np.concatenate([part.state["labels"] for part in self.here.partitions])


def cut(costs: np.ndarray, rng: np.random.Generator, labels: np.ndarray | None = None) -> Remote:
    """One to seven partitions of uneven sizes, some of them perhaps empty."""
    labels = np.full(len(costs), -1) if labels is None else labels.copy()
    ends = np.sort(rng.integers(0, len(costs) + 1, size=rng.integers(7)))
    return Remote([Partition(*pair) for pair in zip(np.split(costs, ends), np.split(labels, ends), strict=True)])
