"""A worker pool without a cluster: shards live in this process, and every result is there at once."""

from transduce.dask import TransductiveClassifier
from transduce.engines.dask import shards
from transduce.engines.dask.exchange import sum_parts
from transduce.engines.dask.heartbeat import WorkerLostError
from transduce.engines.dask.shards import ShardLostError
from transduce.engines.dask.worker_pool import WorkerPool


class InlinePool(WorkerPool):
    """As many workers as requested; loses them all at each of the calls counted in `lost_at`."""

    def __init__(self, n_workers: int, lost_at: tuple[int, ...] = ()) -> None:
        super().__init__(client=None)
        self.n_workers, self.lost_at, self.n_calls = n_workers, lost_at, 0

    def workers(self):
        return {f"inline-{w}": {"nthreads": 1} for w in range(self.n_workers)}

    def place(self, arguments, addresses, sizes):
        self.release()
        self._assign(addresses, sizes)
        return [shards.create(key, *args) for (_, key), args in zip(self.shards, arguments, strict=True)]

    def release(self):
        shards.drop([key for _, key in self.shards])
        self.groups = []

    def _round_trip(self, function, arguments, uninterrupted=False):
        self.n_round_trips += 1
        return [self.start(s, function, *args) for s, args in enumerate(arguments)]

    def exchange(self, part=(), combine=(), take=(), value=None):
        self.n_round_trips += 1
        if part:
            self.n_sums += 1
            parts = iter([self.start(s, *part) for s in range(self.n_shards)])
            value = sum_parts(*[sum_parts(*[next(parts) for _ in group.keys]) for group in self.groups])
        if combine:
            value = self.start(0, *combine, value)
        return [self.start(s, *take, value) for s in range(self.n_shards)] if take else [value]

    def submit(self, function, *args, address):
        self.n_calls += 1
        if self.n_calls in self.lost_at:
            shards.drop([key for _, key in self.shards])
        try:
            return function(*args)
        except ShardLostError as error:
            raise WorkerLostError(str(error)) from error

    def results(self, futures, fetch=True):
        return list(futures)

    def send(self, things):
        return [thing for thing, _ in things]


def fit_inline(clf: TransductiveClassifier, X, y, n_workers=2, sample_weight=None, lost_at=()) -> InlinePool:
    """Fit on blocks over an inline pool."""
    clf._check_fit(y)
    pool = InlinePool(n_workers, lost_at)
    clf._fit_blocks(pool, X, y, sample_weight)
    return pool
