"""The engine over Dask: the verbs of `engines`, each a trip or two to all shards; only weights and prices travel.

Every shard has the weights; what shards change in them is added up on the workers, and the sum comes back to all. The
driver sees their length, and the weights themselves when a stage is kept or a way is done. Dual steps are swept on all
shards at once, each bending W by `sigma` times what it knows of, so that changes can safely be added (Ma and others,
2015); losses without a dual are minimised by exact sums.
"""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count, pairwise
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
from distributed import Future
from numpy.typing import NDArray

from transduce.checkpoints import Shelf
from transduce.counts import Bounds
from transduce.dask import shards
from transduce.dask.crew import Crew
from transduce.engines import Proposal, Rows, SoftRound, Step, Task
from transduce.history import Outcome
from transduce.label_step.spread.entropic import distribute_spread, soften_spread
from transduce.label_step.spread.exact import solve_spread
from transduce.label_step.spread.greedy import greedy_spread
from transduce.label_step.spread.parts import Part
from transduce.local import FIRST_SWEEPS, FIRST_TOL, ITERATIONS, SHARES, SWEEPS
from transduce.losses import Loss, softened
from transduce.weight_step import Smooth, weight_step_for
from transduce.weight_step.dual import ascend
from transduce.weight_step.smooth import lowest

Array = NDArray[Any]
Answer = TypeVar("Answer")
Arguments = ParamSpec("Arguments")

FAN_IN = 8
"""Changes of the weights that one task adds up."""
SMALL = 1 << 18
"""Bytes of weights below which the driver adds up changes: they are no larger than other messages then."""
WORTH_A_TRIP, MOST_SWEEPS = 2e7, 16
"""Multiplications that a shard should do before changes are added up, and sweeps that it may take for it."""


@dataclass(frozen=True, eq=False)
class DaskRows:
    """Rows on the workers of a crew: how many, of which classes, with which loss."""

    crew: Crew
    loss: Loss
    alpha: float
    n_unlabeled: int
    n_classes: int
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    total_weight: tuple[float, float]
    sizes: tuple[int, ...]
    n_values: int
    forbids: bool = False
    names: Any = field(default_factory=count)

    @property
    def is_small(self) -> bool:
        """Whether weights are so few that they travel like prices."""
        return self.shape[0] * self.shape[1] * self.dtype.itemsize <= SMALL

    def engine(self, task: Task, rng: np.random.Generator) -> "DaskEngine":
        """A new way to the labels."""
        return DaskEngine(self, task, rng, str(next(self.names)))

    def side_by_side(self, n_ways: int) -> tuple[int, Rows]:
        """One at a time: each has all workers."""
        return 1, self

    def own_counts(self, W: Array) -> Array:
        """Rows without a full label of each class (K,) by the best scores, heeding what is forbidden."""
        return np.asarray(np.sum([counts for counts, _ in self._tallies(W)], axis=0))

    def own_shares(self, W: Array) -> Array:
        """Class shares (K,) of these rows by the posterior alone; by the best scores, where there is none."""
        return np.asarray(np.sum([mass for _, mass in self._tallies(W)], axis=0) / max(self.n_unlabeled, 1))

    def _tallies(self, W: Array) -> list[tuple[Array, Array]]:
        sent = self.send(W)
        return self.crew.answers([self.crew.task(g, shards.tallies, sent) for g in range(len(self.crew.keys))])

    def send(self, W: Array) -> Future:
        """Weights, on a worker, from where the others fetch them."""
        return self.crew.send(W, self.crew.homes[0])

    def spread(self, way: str, W: Array) -> None:
        """Give all shards these weights."""
        sent = self.send(W)
        self.crew.finish([self.crew.task(g, shards.receive, way, sent, True) for g in range(len(self.crew.keys))])

    def fetch(self, way: str, kept: bool) -> Array:
        """Weights of a way, from the first shard."""
        return np.asarray(self.crew.answers([self.crew.task(0, shards.weights, way, kept)])[0])


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
        self._crew.each(shards.start, self.way)
        self.begin()
        step = self.weights(0.0, tol)
        self._crew.one(shards.keep, self.way, 1.0)
        return step

    def begin(self) -> None:
        """Forget what was known of the weights: they are 0."""
        self.fresh, self.step = False, None
        self._crew.one(shards.keep, self.way, 1.0)

    def greedy(self) -> None:
        """Steps 3 to 9: greedy labels; the best ones under bounds on groups, which no greedy choice is sure to meet."""
        low, high, groups = self.task.bounds
        self._crew.each(shards.offer, self.way, "scores")
        if groups is None:
            greedy_spread(self._parts, low, high)
        else:
            solve_spread(self._parts, low, high, groups, None)
        self._crew.each(shards.settle, self.way, True)

    def weights(self, weight: float, tol: float) -> Step:
        """Step 12: weights for the present labels."""
        labeled, unlabeled = self.rows.total_weight
        climb = _Climb(self.rows, self.way, self.rng)
        changed = climb.retarget(weight)
        self.fresh = self.fresh and not changed
        expected = min(self.step.objective if self.step else np.inf, labeled + weight * unlabeled)
        self.step = climb.solve(weight_step_for(self.rows.loss, self.task.max_sweeps), tol, expected, self.fresh)
        self.fresh = True
        return self.step

    def descend(self, objective: float) -> tuple[float, float]:
        """J is convex in W, and scores are linear in it, so no product with the rows is needed on the way."""
        assert self.step is not None
        best, self.share = self.step.objective, 1.0
        if best > objective:
            square = self._crew.one(shards.dots, self.way)
            best, self.share = objective, 0.0
            for part in SHARES:
                norm = (1 - part) ** 2 * square[0] + 2 * part * (1 - part) * square[1] + part**2 * square[2]
                loss = sum(self._crew.each(shards.loss_between, self.way, part))
                value = 0.5 * self.rows.alpha * norm + loss
                if value < best:
                    best, self.share = value, part
        return best, self.share

    def propose(self, weight: float, prices: Array) -> Proposal:
        """Step 13: the best labels at the weights that are looked at."""
        self._crew.each(shards.offer, self.way, "hard", self.share)
        answer = solve_spread(self._parts, *self.task.bounds, prices)
        moved, change, old = zip(*self._crew.each(shards.weigh, self.way), strict=True)
        return Proposal(answer.prices, sum(moved), sum(change), sum(old))

    def settle(self, take_labels: bool) -> None:
        """Keep the weights that are looked at, and the proposed labels or the old ones."""
        self._crew.each(shards.settle, self.way, take_labels, self.share, surely=True)

    def cooling(self) -> "DaskCooling":
        """The soft labels of this way."""
        return DaskCooling(self)

    def result(self, outcome: Outcome) -> None:
        """Weights come here; labels stay on the workers, under the name of the way."""
        outcome.W = self.rows.fetch(self.way, kept=True)
        self._crew.each(shards.rest, self.way)
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
        _save(self._crew, shelf, self.way, arrays | kept, facts | mine, done)

    def load(self, shelf: Shelf) -> tuple[dict[str, Array], dict[str, Any]] | None:
        """Be as when this was kept."""
        saved = _load(self._crew, shelf, self.way, soft=False)
        if saved is None:
            return None
        arrays, facts = saved
        self.rows.spread(self.way, arrays["W"])
        self._crew.one(shards.keep, self.way, 1.0)
        if "now" in arrays:
            self.rows.spread(self.way, arrays["now"])
            self.rng.bit_generator.state, self.fresh = facts["rng"], facts["fresh"]
            self.step = None if facts["step"] is None else Step(*facts["step"])
            if self.fresh:
                self._crew.each(shards.show, self.way)
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
        self._crew.each(shards.begin_soft, self._way, bounds, rows.n_unlabeled)
        self.prices = np.zeros(rows.n_classes)
        climb = _Climb(rows, self._way, self.engine.rng)
        climb.soften(0.0, fresh=True)
        climb.solve(weight_step_for(softened(rows.loss), FIRST_SWEEPS), FIRST_TOL, rows.total_weight[0], False)

    def round(self, weight: float, entropy: float) -> SoftRound:
        """Distributions of this entropy at the present weights, then a little work on weights for them."""
        rows = self.engine.rows
        self._crew.each(shards.offer, self._way, "soft")
        soft = soften_spread(self._parts, self.engine.task.bounds, entropy, self.temperature, self.prices)
        self.prices, self.temperature = soft.prices, soft.temperature
        climb = _Climb(rows, self._way, self.engine.rng)
        n_moved = climb.soften(weight, fresh=False)
        step = weight_step_for(softened(rows.loss), SWEEPS)
        report = climb.solve(Smooth(ITERATIONS) if isinstance(step, Smooth) else step, 0.0, np.inf, False)
        return SoftRound(report.objective, report.gap, n_moved, soft.temperature)

    def harden(self, weight: float) -> None:
        """Hand the engine the best hard labels at the present weights, and weights 0."""
        self._crew.each(shards.look_hard, self._way)
        self._crew.each(shards.offer, self._way, "hard")
        solve_spread(self._parts, *self.engine.task.bounds, None)
        self._crew.each(shards.harden, self.engine.way, self._way)
        self.engine.begin()

    def save(self, shelf: Shelf, facts: dict[str, Any]) -> None:
        """Keep all that is needed to go on."""
        if shelf.path is None or not shelf.disk.works:
            return
        arrays = {"now": self.engine.rows.fetch(self._way, kept=False), "prices": self.prices}
        mine = {"T": self.temperature, "rng": self.engine.rng.bit_generator.state}
        _save(self._crew, shelf, self._way, arrays, facts | mine, False)

    def load(self, shelf: Shelf) -> dict[str, Any] | None:
        """Be as when this was kept."""
        saved = _load(self._crew, shelf, self._way, soft=True)
        if saved is None:
            return None
        arrays, facts = saved
        self.prices = arrays["prices"]
        self.engine.rows.spread(self._way, arrays["now"])
        self.temperature, self.engine.rng.bit_generator.state = facts["T"], facts["rng"]
        self._crew.each(shards.show, self._way)
        return facts


@dataclass(eq=False)
class _Climb:
    """One weight step over all shards, from the weights they have."""

    rows: DaskRows
    way: str
    rng: np.random.Generator

    @property
    def _crew(self) -> Crew:
        return self.rows.crew

    def retarget(self, weight: float) -> bool:
        """Hand labels and row weights to the states; says whether a label, and so W, has changed."""
        changed = any(self._crew.each(shards.retarget, self.way, weight))
        if changed:
            self._add()
        return changed

    def soften(self, weight: float, fresh: bool) -> int:
        """Hand distributions to the states: W is what all rows put into it."""
        n_moved = sum(self._crew.each(shards.soften, self.way, weight, fresh))
        if not isinstance(weight_step_for(softened(self.rows.loss), 0), Smooth):
            self._add(anew=True)
        return int(n_moved)

    def solve(self, step: Any, tol: float, expected: float, fresh: bool) -> Step:
        """Sweep until the gap is at most tol · J; or minimise, where the loss has no dual."""
        if isinstance(step, Smooth):
            return self._minimise(step, tol)
        if fresh:
            known = self._report(0.0, tol, fresh=True)
            if known.converged:
                return known
        sigma = float(len(self._crew.keys))
        work = self.rows.n_values * self.rows.shape[1] / sigma
        n_times = 1 if step.max_sweeps == SWEEPS else int(np.clip(WORTH_A_TRIP / max(work, 1), 1, MOST_SWEEPS))

        def sweep(whole: bool) -> tuple[float, float]:
            seed = int(self.rng.integers(2**63))
            swept = self._crew.each(shards.sweep, self.way, seed, whole, sigma, n_times)
            self._add()
            visited, seen, n_live = (sum(column) for column in zip(*swept, strict=True))
            return visited / max(n_live, 1), seen

        return ascend(step.max_sweeps, tol, expected, sweep, lambda n: self._report(n, tol, fresh=False))

    def _report(self, n_sweeps: float, tol: float, fresh: bool) -> Step:
        losses, gaps, squares = zip(*self._crew.each(shards.measure, self.way, fresh), strict=True)
        objective, gap = 0.5 * self.rows.alpha * squares[0] + sum(losses), sum(gaps)
        return Step(objective, gap, n_sweeps, gap <= tol * objective)

    def _add(self, anew: bool = False) -> None:
        """Add what shards would change in W, on the workers, and let all have the sum."""
        if self.rows.is_small:
            changes = self._crew.each(shards.take_change, self.way)
            self._crew.each(shards.receive, self.way, shards.combine(*changes), anew)
            return
        total = self._sum()
        self._crew.finish(
            [self._crew.task(g, shards.receive, self.way, total, anew) for g in range(len(self._crew.keys))]
        )

    def _sum(self) -> Future:
        """What waits on the shards, added up on the workers, a few at a time."""
        crew = self._crew
        parts = [crew.task(g, shards.take_change, self.way) for g in range(len(crew.keys))]
        while len(parts) > 1:
            groups = [parts[i : i + FAN_IN] for i in range(0, len(parts), FAN_IN)]
            parts = [crew.submit(shards.combine, *group, home=crew.homes[g]) for g, group in enumerate(groups)]
        return parts[0]

    def _minimise(self, step: Smooth, tol: float) -> Step:

        def value_and_gradient(W: Array) -> tuple[float, Array]:
            self.rows.spread(self.way, W)
            losses = self._crew.each(shards.loss_and_slope, self.way)
            return float(sum(losses)), np.asarray(self._crew.answers([self._sum()])[0])

        W = self.rows.fetch(self.way, kept=False)
        low = lowest(value_and_gradient, W, self.rows.alpha, tol, step.max_iter)
        self.rows.spread(self.way, low.W.astype(self.rows.dtype))
        self._crew.each(shards.show, self.way)
        return Step(low.value, low.left, low.n_passes, low.converged)


def distribute(rows: DaskRows, way: str, W: Array, bounds: Bounds) -> None:
    """Distributions over labels at these weights that meet the counts; they stay on the workers."""
    crew, sent = rows.crew, rows.send(W)
    crew.finish([crew.task(g, shards.judge, way, sent) for g in range(len(crew.keys))])
    crew.each(shards.offer, way, "posterior")
    distribute_spread(_Parts(crew, way, rows.sizes), *bounds, 1.0, None, 1e-3)


def _save(crew: Crew, shelf: Shelf, way: str, arrays: dict[str, Array], facts: dict[str, Any], done: bool) -> None:
    """Let every shard keep its rows' state beside the shelf, then the shelf itself: it names their files."""
    assert shelf.path is not None
    folder, stem, token = shelf.path.parent, shelf.path.stem, secrets.token_hex(6)
    names = [f"{stem} {token} shard {g}.stage" for g in range(len(crew.keys))]
    own = [(way, str(folder / name), done) for name in names]
    reasons = [reason for reason in crew.each_with(shards.save, own) if reason is not None]
    if reasons:
        shelf.disk.fail(folder, OSError(reasons[0]))
        return
    shelf.save(arrays, facts | {"shards": names})
    for old in folder.glob(f"{stem} * shard *.stage"):
        if old.name not in names:
            old.unlink(missing_ok=True)
    crew.n_kept += 1


def _load(crew: Crew, shelf: Shelf, way: str, soft: bool) -> tuple[dict[str, Array], dict[str, Any]] | None:
    """What was kept; None where there is nothing, or a shard's file is not whole."""
    saved = shelf.load()
    if saved is None or shelf.path is None or len(saved.facts["shards"]) != len(crew.keys):
        return None
    own = [(way, str(shelf.path.with_name(name)), soft) for name in saved.facts["shards"]]
    return saved if all(crew.each_with(shards.load, own)) else None
