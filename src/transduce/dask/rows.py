"""The engine over Dask: the verbs of `engines`, each a trip or two to all shards; only weights and prices travel.

Every shard has the weights; what shards change in them is added up on the workers, and the sum comes back to all. The
driver sees their length, and the weights themselves when a stage is kept or a way is done. Dual steps are swept by two
shards in turn, by more at once, each bending W by `sigma` times what it knows of, so that changes can safely be added
(Ma and others, 2015); losses without a dual are minimised by exact sums.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, pairwise
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

import numpy as np
from distributed import Future
from numpy.typing import NDArray
from scipy import sparse

from transduce.checkpoints import Shelf
from transduce.counts import Bounds
from transduce.dask import shard_labels, shard_weights, shards
from transduce.dask.changes import as_change
from transduce.dask.climb import Climb, fetched_sum
from transduce.dask.crew import Crew
from transduce.dask.shards import Made, Making
from transduce.dask.shelves import load, save
from transduce.design import Design, is_worth_ranking, ranking, unranked
from transduce.engines import Proposal, Rows, SoftRound, Step, Task
from transduce.history import Outcome
from transduce.label_step.spread.entropic import distribute_spread, soften_spread
from transduce.label_step.spread.exact import solve_spread
from transduce.label_step.spread.greedy import greedy_spread
from transduce.label_step.spread.parts import Part
from transduce.local import FIRST_SWEEPS, FIRST_TOL, ITERATIONS, SHARES, SWEEPS
from transduce.losses import Loss, softened
from transduce.problem import TrainingProblem
from transduce.weight_step import Smooth, WeightStep, weight_step_for
from transduce.weight_step.dual import as_posterior

Array = NDArray[Any]
Answer = TypeVar("Answer")
Arguments = ParamSpec("Arguments")

SMALL = 1 << 18
"""Bytes of labelled rows that come here in any case."""


class Labeled(NamedTuple):
    """The labelled rows of all shards, gathered: a problem of their own, their labels, and how many a shard has."""

    problem: TrainingProblem
    labels: Array
    sizes: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class DaskRows:
    """Rows on the workers of a crew: how many, of which classes, with which loss; labelled ones are here, if few."""

    crew: Crew
    loss: Loss
    alpha: float
    n_unlabeled: int
    n_classes: int
    dtype: np.dtype[Any]
    total_weight: tuple[float, float]
    sizes: tuple[int, ...]
    n_threads: int = 1
    labeled: Labeled | None = None
    forbids: bool = False
    features: Array | None = None
    names: Any = field(default_factory=count)

    def engine(self, task: Task, rng: np.random.Generator) -> "DaskEngine":
        """A new way to the labels."""
        return DaskEngine(self, task, rng, str(next(self.names)))

    def by_column(self, W: Array) -> Array:
        """Weights with a row for each column of X, as users count them."""
        return W if self.features is None else unranked(W, self.features)

    def side_by_side(self, n_ways: int) -> tuple[int, Rows]:
        """One at a time: each has all workers."""
        return 1, self

    def own_counts(self, W: Array) -> Array:
        """Rows without a full label of each class (K,) by the best scores, heeding what is forbidden."""
        return np.asarray(np.sum([counts for counts, _ in self._tallies(W)], axis=0))

    def own_counts_of(self, way: str) -> Array:
        """The same by the scores that a way was judged by."""
        return np.asarray(np.sum([counts for counts, _ in self.crew.each(shard_labels.tallies_of, way)], axis=0))

    def own_shares(self, W: Array) -> Array:
        """Class shares (K,) of these rows by the posterior alone; by the best scores, where there is none."""
        return np.asarray(np.sum([mass for _, mass in self._tallies(W)], axis=0) / max(self.n_unlabeled, 1))

    def _tallies(self, W: Array) -> list[tuple[Array, Array]]:
        sent = self.send(W)
        return self.crew.answers([self.crew.task(g, shard_labels.tallies, sent) for g in range(len(self.crew.keys))])

    def send(self, W: Array) -> Future:
        """Weights, as a change of 0, on a worker, from where the others fetch them."""
        return self.crew.send(as_change(W), self.crew.homes[0])

    def spread(self, way: str, W: Array) -> None:
        """Give all shards these weights."""
        sent = self.send(W)
        self.crew.finish([self.crew.task(g, shard_weights.take_weights, way, sent) for g in range(len(self.crew.keys))])

    def fetch(self, way: str, kept: bool) -> Array:
        """Weights of a way, from the first shard."""
        return np.asarray(self.crew.answers([self.crew.task(0, shard_weights.weights, way, kept)])[0])


@dataclass(frozen=True, eq=False)
class _Parts:
    """The label parts of a way, as label steps see them."""

    crew: Crew
    way: str
    sizes: tuple[int, ...]

    def each(
        self,
        function: Callable[Concatenate[Part, Arguments], Answer],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> list[Answer]:
        """Answers of function(part, *args), in the order of the parts."""
        answers = self.crew.each(shards.visit_parts, self.way, function, args, kwargs)
        return [answer for of_shard in answers for answer in of_shard]

    def each_with(self, function: Callable[[Part, Any], Answer], own: Sequence[Any]) -> list[Answer]:
        """Answers of function(part, own[p]) for part p."""
        ends = np.cumsum((0, *self.sizes))
        mine = [(self.way, function, list(own[a:b])) for a, b in pairwise(ends)]
        answers = self.crew.each_with(shards.visit_parts_with, mine)
        return [answer for of_shard in answers for answer in of_shard]


@dataclass(eq=False)
class DaskEngine:
    """One way; `fresh` says that shards have scores at their weights."""

    rows: DaskRows
    task: Task
    rng: np.random.Generator
    way: str
    fresh: bool = False
    share: float = 1.0
    step: Step | None = None

    @property
    def n_unlabeled(self) -> int:
        """Rows without a full label."""
        return self.rows.n_unlabeled

    @property
    def n_classes(self) -> int:
        """Classes."""
        return self.rows.n_classes

    @property
    def _crew(self) -> Crew:
        return self.rows.crew

    @property
    def _parts(self) -> _Parts:
        return _Parts(self._crew, self.way, self.rows.sizes)

    def supervise(self, tol: float) -> Step:
        """Weights of the labelled rows alone, which are kept."""
        self._crew.each(shard_weights.start, self.way)
        self.begin()
        labeled = self.rows.labeled
        if labeled is None:
            self.step = self.weights(0.0, tol)
        else:
            step = weight_step_for(self.rows.loss, self.task.max_sweeps)
            self.step = _learn_here(self.rows, self.way, labeled.problem, step, labeled.labels, tol, self.rng)
            self.fresh = True
        self._crew.one(shard_weights.keep, self.way, 1.0)
        return self.step

    def begin(self) -> None:
        """Forget what was known of the weights: they are 0."""
        self.fresh, self.step = False, None
        self._crew.one(shard_weights.keep, self.way, 1.0)

    def greedy(self) -> None:
        """Steps 3 to 9: greedy labels; the best ones under bounds on groups, which no greedy choice is sure to meet."""
        low, high, groups = self.task.bounds
        self._crew.each(shard_labels.offer, self.way, "scores")
        if groups is None:
            greedy_spread(self._parts, low, high)
        else:
            solve_spread(self._parts, low, high, groups, None)
        self._crew.each(shard_labels.settle, self.way, True)

    def weights(self, weight: float, tol: float) -> Step:
        """Step 12: weights for the present labels."""
        labeled, unlabeled = self.rows.total_weight
        climb = Climb(self.rows, self.way, self.rng)
        changed = climb.retarget(weight)
        self.fresh = self.fresh and not changed
        step, last = weight_step_for(self.rows.loss, self.task.max_sweeps), self.step.objective if self.step else np.inf
        self.step = climb.solve(step, tol, labeled + weight * unlabeled, self.fresh, last)
        self.fresh = True
        return self.step

    def descend(self, objective: float) -> tuple[float, float]:
        """J is convex in W, and scores are linear in it, so no product with the rows is needed on the way."""
        assert self.step is not None
        best, self.share = self.step.objective, 1.0
        if best > objective:
            square = self._crew.one(shard_weights.dots, self.way)
            best, self.share = objective, 0.0
            for part in SHARES:
                norm = (1 - part) ** 2 * square[0] + 2 * part * (1 - part) * square[1] + part**2 * square[2]
                loss = sum(self._crew.each(shard_labels.loss_between, self.way, part))
                value = 0.5 * self.rows.alpha * norm + loss
                if value < best:
                    best, self.share = value, part
        return best, self.share

    def propose(self, weight: float, prices: Array) -> Proposal:
        """Step 13: the best labels at the weights that are looked at."""
        self._crew.each(shard_labels.offer, self.way, "hard", self.share)
        answer = solve_spread(self._parts, *self.task.bounds, prices)
        moved, change, old = zip(*self._crew.each(shard_labels.weigh, self.way), strict=True)
        return Proposal(answer.prices, sum(moved), sum(change), sum(old))

    def settle(self, take_labels: bool) -> None:
        """Keep the weights that are looked at, and the proposed labels or the old ones."""
        self._crew.each(shard_labels.settle, self.way, take_labels, self.share, surely=True)

    def cooling(self) -> "DaskCooling":
        """The soft labels of this way."""
        return DaskCooling(self)

    def result(self, outcome: Outcome) -> None:
        """Weights come here; labels stay on the workers, under the name of the way."""
        outcome.W = self.rows.fetch(self.way, kept=True)
        self._crew.each(shard_labels.rest, self.way)
        outcome.labels = np.array(self.way)

    def save(self, shelf: Shelf, arrays: dict[str, Array], facts: dict[str, Any], done: bool) -> None:
        """Keep all that is needed to go on: weights by the driver, what rows have by the workers, in one folder."""
        if shelf.path is None or not shelf.disk.works:
            return
        kept = {"W": self.rows.fetch(self.way, kept=True)}
        if not done:
            kept["now"] = self.rows.fetch(self.way, kept=False)
        step = None if self.step is None else list(self.step)
        mine = {"rng": self.rng.bit_generator.state, "fresh": self.fresh, "step": step}
        save(self._crew, shelf, self.way, arrays | kept, facts | mine, done)

    def load(self, shelf: Shelf) -> tuple[dict[str, Array], dict[str, Any]] | None:
        """Be as when this was kept."""
        saved = load(self._crew, shelf, self.way, soft=False)
        if saved is None:
            return None
        arrays, facts = saved
        self.rows.spread(self.way, arrays["W"])
        self._crew.one(shard_weights.keep, self.way, 1.0)
        if "now" in arrays:
            self.rows.spread(self.way, arrays["now"])
            self.rng.bit_generator.state, self.fresh = facts["rng"], facts["fresh"]
            self.step = None if facts["step"] is None else Step(*facts["step"])
            if self.fresh:
                self._crew.each(shard_weights.show, self.way)
        return arrays, facts


@dataclass(eq=False)
class DaskCooling:
    """Distributions over labels; a way of their own on the shards, until they are hard."""

    engine: DaskEngine
    prices: Array = field(init=False)
    temperature: float | None = None

    @property
    def _way(self) -> str:
        return f"{self.engine.way} soft"

    @property
    def _crew(self) -> Crew:
        return self.engine.rows.crew

    @property
    def _parts(self) -> _Parts:
        return _Parts(self._crew, self._way, self.engine.rows.sizes)

    def begin(self) -> None:
        """Weights of the labelled rows alone; of the others nothing is known but the class sizes."""
        rows, bounds = self.engine.rows, self.engine.task.bounds
        self._crew.each(shard_labels.begin_soft, self._way, bounds, rows.n_unlabeled)
        self.prices = np.zeros(rows.n_classes)
        step, labeled = weight_step_for(softened(rows.loss), FIRST_SWEEPS), rows.labeled
        if labeled is None:
            climb = Climb(rows, self._way, self.engine.rng)
            climb.soften(0.0, fresh=True)
            climb.solve(step, FIRST_TOL, rows.total_weight[0], False)
        else:
            problem = replace(labeled.problem, loss=softened(rows.loss))
            targets = as_posterior(labeled.labels, rows.n_classes, rows.dtype)
            _learn_here(rows, self._way, problem, step, targets, FIRST_TOL, self.engine.rng)

    def round(self, weight: float, entropy: float) -> SoftRound:
        """Distributions of this entropy at the present weights, then a little work on weights for them."""
        rows = self.engine.rows
        self._crew.each(shard_labels.offer, self._way, "soft")
        bounds = self.engine.task.bounds
        soft = soften_spread(self._parts, bounds, entropy, self.temperature, self.prices, n_threads=rows.n_threads)
        self.prices, self.temperature = soft.prices, soft.temperature
        climb = Climb(rows, self._way, self.engine.rng)
        n_moved = climb.soften(weight, fresh=False)
        step = weight_step_for(softened(rows.loss), SWEEPS)
        most = rows.total_weight[0] + weight * rows.total_weight[1]
        report = climb.solve(Smooth(ITERATIONS) if isinstance(step, Smooth) else step, 0.0, most, False)
        return SoftRound(report.objective, report.gap, n_moved, soft.temperature)

    def harden(self, weight: float) -> None:
        """Hand the engine the best hard labels at the present weights, and weights 0."""
        self._crew.each(shard_labels.look_hard, self._way)
        self._crew.each(shard_labels.offer, self._way, "hard")
        solve_spread(self._parts, *self.engine.task.bounds, None)
        self._crew.each(shard_labels.harden, self.engine.way, self._way)
        self.engine.begin()

    def save(self, shelf: Shelf, facts: dict[str, Any]) -> None:
        """Keep all that is needed to go on."""
        if shelf.path is None or not shelf.disk.works:
            return
        arrays = {"now": self.engine.rows.fetch(self._way, kept=False), "prices": self.prices}
        mine = {"T": self.temperature, "rng": self.engine.rng.bit_generator.state}
        save(self._crew, shelf, self._way, arrays, facts | mine, False)

    def load(self, shelf: Shelf) -> dict[str, Any] | None:
        """Be as when this was kept."""
        saved = load(self._crew, shelf, self._way, soft=True)
        if saved is None:
            return None
        arrays, facts = saved
        self.prices = arrays["prices"]
        self.engine.rows.spread(self._way, arrays["now"])
        self.temperature, self.engine.rng.bit_generator.state = facts["T"], facts["rng"]
        self._crew.each(shard_weights.show, self._way)
        return facts


def _learn_here(
    rows: DaskRows,
    way: str,
    problem: TrainingProblem,
    step: WeightStep,
    targets: Array,
    tol: float,
    rng: np.random.Generator,
) -> Step:
    """Weights of the labelled rows, which are here; shards are told what theirs have put into them."""
    assert rows.labeled is not None
    state = step.start(problem, targets)
    step.retarget(problem, state, targets, problem.kappa(0.0))
    report = step.solve(problem, state, tol, rng)
    ends = np.cumsum((0, *rows.labeled.sizes))
    rows.crew.each_with(shard_weights.adopt, [(way, state.posterior[a:b], state.gaps[a:b]) for a, b in pairwise(ends)])
    rows.spread(way, state.W)
    rows.crew.each(shard_weights.show, way)
    return Step(report.objective, report.gap, report.n_sweeps, report.converged)


def rank(crew: Crew, found: Sequence[Made], shape: tuple[int, int], itemsize: int, n_values: int) -> Array | None:
    """Let features that are met often lie side by side on all shards; answers their order, or None if it stays."""
    if not is_worth_ranking(shape, itemsize, n_values) or any(made.is_mapped for made in found):
        return None
    there, counts = fetched_sum(crew, shards.column_counts)
    crew.finish([crew.task(g, shards.rank, there) for g in range(len(crew.keys))])
    return ranking(counts.values[:, 0])


def gather_labeled(crew: Crew, found: Sequence[Made], making: Making, shape: tuple[int, int]) -> Labeled | None:
    """The labelled rows of all shards, if they and their dual are no larger than the weights, which travel anyway."""
    n_rows, n_values = sum(made.n_labeled for made in found), sum(made.n_values for made in found)
    itemsize = np.dtype(making.dtype).itemsize
    allowed = max(shape[0] * shape[1] * itemsize, SMALL)
    if making.heavy or n_values * (itemsize + 8) > allowed or n_rows * shape[1] * itemsize > allowed:
        return None
    X, shares, labels = zip(*(block for of_shard in crew.each(shards.labeled_rows) for block in of_shard), strict=True)
    design = Design.create(sparse.vstack(X, format="csr"), making.taxonomy, making.n_threads)
    problem = TrainingProblem(design, making.loss, making.alpha, n_rows, np.concatenate(shares))
    return Labeled(problem, np.concatenate(labels), tuple(made.n_labeled for made in found))


def distribute(rows: DaskRows, way: str, W: Array, bounds: Bounds) -> None:
    """Distributions over labels at these weights that meet the counts; they stay on the workers."""
    crew, sent = rows.crew, rows.send(W)
    crew.finish([crew.task(g, shard_labels.judge, way, sent) for g in range(len(crew.keys))])
    crew.each(shard_labels.offer, way, "posterior")
    distribute_spread(_Parts(crew, way, rows.sizes), *bounds, 1.0, None, 1e-3, rows.n_threads)
