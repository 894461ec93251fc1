"""A crew without a cluster: shards live in this process, and every answer is there at once."""

from transduce.dask import TransductiveClassifier
from transduce.engines.dask import shard_weights, shards
from transduce.engines.dask.all_reduce import pieces_of_sum
from transduce.engines.dask.blocks import Source
from transduce.engines.dask.fit import DaskData
from transduce.engines.dask.weight_deltas import total
from transduce.engines.dask.worker_pool import WorkerLostError, WorkerPool


class InlinePool(WorkerPool):
    """As many workers as are asked for; loses them all at each of the visits named in `lost_at`."""

    def __init__(self, n_workers: int, lost_at: tuple[int, ...] = ()) -> None:
        super().__init__(client=None)
        self.n_workers, self.lost_at, self.n_visits = n_workers, lost_at, 0

    def workers(self):
        return {f"inline-{w}": {"nthreads": 1} for w in range(self.n_workers)}

    def place(self, makers, homes, sizes):
        self.drop()
        self._name(homes, sizes)
        return [make(key) for make, key in zip(makers, self.keys, strict=True)]

    def drop(self):
        shards.drop(self.keys)
        self.keys, self.homes, self.teams = [], [], []

    def each_and_add(self, restart, anew, function, *args):
        answers = self.each(function, *args)
        shape = self.one(shard_weights.shape, restart)
        of_teams = [
            pieces_of_sum([self.task(g, shard_weights.take_change, restart) for g in team], shape, len(self.teams))
            for team in self.teams
        ]
        self.each(shard_weights.receive, restart, [total(pieces) for pieces in zip(*of_teams, strict=True)], anew)
        return answers

    def each_in_turn(self, restart, n_turns, is_over, function, *args):
        answers, missed = [[] for _ in self.keys], [[] for _ in self.keys]
        for count in range(1, n_turns + 1):
            for g in range(len(self.keys)):
                answer, change = self.task(g, function, *args, count, missed[g])
                answers[g].append(answer)
                missed = [[] if h == g else [*one, change] for h, one in enumerate(missed)]
            if is_over(count, [own[-1] for own in answers]):
                break
        for g, changes in enumerate(missed):
            self.task(g, shard_weights.follow, restart, changes)
        return answers

    def visit(self, which, function, own, surely=False):
        self.n_trips += 1
        return [self.task(g, function, *mine) for g, mine in zip(which, own, strict=True)]

    def task(self, g, function, *args):
        self.n_visits += 1
        if self.n_visits in self.lost_at:
            shards.drop(self.keys)
        try:
            return shards.visit(self.keys[g], function, *args)
        except shards.GoneError as error:
            raise WorkerLostError(str(error)) from error

    def submit(self, function, *args, home=None):
        return function(*args)

    def answers(self, futures):
        return list(futures)

    def finish(self, futures):
        pass

    def send_all(self, things):
        return [thing for thing, _ in things]


def fit_inline(clf: TransductiveClassifier, X, y, n_workers=2, sample_weight=None, lost_at=()) -> InlinePool:
    """Fit on blocks over an inline crew."""
    clf._check_parameters()
    pool = InlinePool(n_workers, lost_at)
    try:
        source = Source.create(X, y, sample_weight, clf._kept_teams())
        clf._fit_until_done(DaskData(pool, source, clf.checkpoint is not None), clf._draw_seeds())
    finally:
        pool.drop()
    return pool
