"""A crew without a cluster: shards live in this process, and every answer is there at once."""

from transduce.dask import TransductiveClassifier, shard_weights, shards
from transduce.dask.attempt import Attempt
from transduce.dask.blocks import Source
from transduce.dask.changes import total
from transduce.dask.crew import Crew, LostError
from transduce.dask.exchange import pieces_of_sum


class InlineCrew(Crew):
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

    def each_and_add(self, way, anew, function, *args):
        answers = self.each(function, *args)
        shape = self.one(shard_weights.shape, way)
        of_teams = [
            pieces_of_sum([self.task(g, shard_weights.take_change, way) for g in team], shape, len(self.teams))
            for team in self.teams
        ]
        self.each(shard_weights.receive, way, [total(pieces) for pieces in zip(*of_teams, strict=True)], anew)
        return answers

    def each_in_turn(self, way, n_turns, is_over, function, *args):
        answers, missed = [[] for _ in self.keys], [[] for _ in self.keys]
        for count in range(1, n_turns + 1):
            for g in range(len(self.keys)):
                answer, change = self.task(g, function, *args, count, missed[g])
                answers[g].append(answer)
                missed = [[] if h == g else [*one, change] for h, one in enumerate(missed)]
            if is_over(count, [own[-1] for own in answers]):
                break
        for g, changes in enumerate(missed):
            self.task(g, shard_weights.follow, way, changes)
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
            raise LostError(str(error)) from error

    def submit(self, function, *args, home=None):
        return function(*args)

    def answers(self, futures):
        return list(futures)

    def finish(self, futures):
        pass

    def send_all(self, things):
        return [thing for thing, _ in things]


def fit_inline(clf: TransductiveClassifier, X, y, n_workers=2, sample_weight=None, lost_at=()) -> InlineCrew:
    """Fit on blocks over an inline crew."""
    clf._check_parameters()
    crew = InlineCrew(n_workers, lost_at)
    try:
        source = Source.create(X, y, sample_weight, clf._kept_teams())
        clf._go(Attempt(clf, crew, source))
    finally:
        crew.drop()
    return crew
