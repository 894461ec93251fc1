"""What a worker holds and does: blocks of rows with their labels, and for each way its weights' dual and its scores.

A shard is a few blocks that one thread of a worker looks after. It lives in the worker's process, beside what Dask
stores there, because its arrays change in place. Everything here is a function of a shard and small arguments, or of
the weights, that answers small things; the weights and their changes are the only large arrays that leave.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from distributed.protocol.pickle import dumps, loads
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array

from transduce.candidates import from_matrix
from transduce.checkpoints import Disk, Shelf
from transduce.design import Design
from transduce.fingerprints import fingerprint
from transduce.inputs import check_rows, plain, row_weights
from transduce.label_step.spread.parts import Part
from transduce.local import (
    finite_costs,
    first_targets,
    own_counts,
    own_posterior,
    packed_state,
    unpacked_state,
)
from transduce.losses import Loss, softened
from transduce.markers import find_labeled
from transduce.problem import TrainingProblem
from transduce.taxonomy import Taxonomy
from transduce.threads import one_blas_thread
from transduce.weight_step import WeightState, weight_step_for
from transduce.weight_step.dual import Dual, DualMaxEnt, visiting_order

Array = NDArray[Any]

FORGOTTEN = 3600.0
"""Seconds without a visit after which a shard makes room for others: whoever placed it is gone."""


class GoneError(Exception):
    """The shard is not in this process: it has been started anew since."""


@dataclass(frozen=True, eq=False)
class Block:
    """Rows of one block, labelled ones first, with the labels given (n,), and their places in the user's block.

    `heft` (n − n_labeled,) is what rows without a full label weigh against the mean of all of them, or None where all
    weigh the same.
    """

    problem: TrainingProblem
    codes: Array
    order: Array
    heft: Array | None = None


@dataclass(eq=False)
class Stand:
    """Where one way stands on one block: labels kept, the dual state, scores that are looked at, and the label part."""

    block: Block
    problem: TrainingProblem
    labels: Array
    state: WeightState
    seen: Array | None = None
    part: Part | None = None
    chosen: Array | None = None

    @property
    def unlabeled(self) -> slice:
        """Rows without a full label."""
        return slice(self.problem.n_labeled, None)


@dataclass(eq=False)
class Way:
    """One way on all blocks of a shard; their states share W, which is the same on all shards when a visit is over.

    What a visit changes in W waits in `change`, to be added up over all shards. The first shard has the weights that
    are `kept`.
    """

    W: Array
    stands: list[Stand]
    change: Array | None = None
    kept: Array | None = None


@dataclass(eq=False)
class Shard:
    """Blocks as they came, X and row weights; as they are when labels have been read; and ways that are under way."""

    raw: list[tuple[Any, Array | None]]
    blocks: list[Block] = field(default_factory=list)
    ways: dict[str, Way] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    visited: float = field(default_factory=time.monotonic)


_SHARDS: dict[str, Shard] = {}


class Facts(NamedTuple):
    """What the driver learns of a block: rows, columns and type of X, entries of y that say something, their weights.

    `places` are the rows of those entries, `weight` is the sum of the weights of all rows, `kind` the type of y, and
    `digest` stands for all of X and the weights, if asked for.
    """

    n_rows: int
    n_values: int
    n_features: int
    dtype: str
    places: Array
    entries: list[Any]
    kind: str
    names: list[Any]
    weights: Array | None
    weight: float
    digest: str


class Labels(NamedTuple):
    """What a block is told of its rows: places, and for each the class or −1, and the labels it may get or None."""

    places: Array
    codes: Array
    partial: Array
    allowed: Array | None


class Making(NamedTuple):
    """How rows become a problem: `known` and `rest` are total weights of the rows that count as labelled, and others.

    `mean` is the mean share of rows without a full label where these weigh differently, else None.
    """

    loss: Loss
    alpha: float
    taxonomy: Taxonomy
    n_threads: int
    fit_intercept: bool
    dtype: str
    heavy: bool
    known: float
    rest: float
    mean: float | None
    forbids: bool


def hold(key: str, X: Sequence[Any], y: Sequence[Any], weights: Sequence[Any], unlabeled: object, digest: bool) -> Any:
    """Give blocks a place in this process; answers the facts of each, or a sentence that says what is wrong."""
    raw: list[tuple[Any, Array | None]] = []
    facts: list[Facts | str] = []
    for rows, labels, own in zip(X, y, weights, strict=True):
        try:
            one, fact = _read(rows, labels, own, unlabeled, digest)
        except (ValueError, TypeError) as error:
            facts.append(f"{error}")
            continue
        raw.append(one)
        facts.append(fact)
    forgotten = [old for old, shard in list(_SHARDS.items()) if time.monotonic() - shard.visited > FORGOTTEN]
    drop(forgotten)
    _SHARDS[key] = Shard(raw)
    return facts


def _read(X: Any, y: Any, weights: Any, unlabeled: object, digest: bool) -> tuple[tuple[Any, Array | None], Facts]:
    if isinstance(X, list):  # a partition of a bag: rows, or matrices of them
        X = sparse.vstack([sparse.csr_matrix(one) for one in X], format="csr")
    X = check_array(
        X, accept_sparse="csr", dtype=(np.float64, np.float32), accept_large_sparse=True, ensure_min_samples=0
    )
    entries, names = from_matrix(y)
    values, labeled = find_labeled(entries, unlabeled, whole=False)
    if values.size != X.shape[0]:
        raise ValueError(f"X has {X.shape[0]} rows and y {values.size}: inconsistent numbers of samples. Match them.")
    if values.dtype.kind == "f" and labeled.any():
        check_rows(X.shape[0], values, labeled)
    weights = row_weights(weights, X.shape[0], np.zeros(0, np.int64), whole=False)
    places = np.flatnonzero(labeled)
    content = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)
    stamp = fingerprint({"X": content, "weights": weights}) if digest else ""
    total = float(X.shape[0]) if weights is None else float(weights.sum())
    facts = Facts(
        X.shape[0], X.nnz if sparse.issparse(X) else X.size, X.shape[1], X.dtype.name, places, plain(values[places]),
        values.dtype.str, names,
        None if weights is None else weights[places], total, stamp,
    )  # fmt: skip
    return (X, weights), facts


def make(shard: Shard, making: Making, labels: Sequence[Labels]) -> list[tuple[int, int]]:
    """Turn raw blocks into problems; answers labelled rows and rows in all, of each block."""
    shard.blocks = [_block(raw, making, own) for raw, own in zip(shard.raw, labels, strict=True)]
    shard.raw = []
    return [(block.problem.n_labeled, block.problem.n_rows) for block in shard.blocks]


def _block(raw: tuple[Any, Array | None], making: Making, labels: Labels) -> Block:
    X, weights = raw
    n_rows = X.shape[0]
    codes, partial = np.full(n_rows, -1, np.int64), np.zeros(n_rows, bool)
    codes[labels.places], partial[labels.places] = labels.codes, labels.partial
    order = np.lexsort((codes < 0, ~partial & (codes < 0)))
    n_labeled, n_partial = int((codes >= 0).sum()), int(partial.sum()) if making.heavy else 0
    forbidden = None
    if making.forbids:
        forbidden = np.zeros((n_rows, making.taxonomy.n_classes), bool)
        if labels.allowed is not None:
            forbidden[labels.places] = ~labels.allowed
        forbidden = forbidden[order[n_labeled:]]
    X = X.astype(making.dtype, copy=False)
    if making.fit_intercept:
        constant = np.ones((n_rows, 1), X.dtype)
        X = sparse.hstack((X, constant), format="csr") if sparse.issparse(X) else np.hstack((X, constant))
    design = Design.create(X, making.taxonomy, making.n_threads, order)
    shares = np.ones(n_rows) if weights is None else weights[order]
    shares[: n_labeled + n_partial] /= making.known or 1.0
    shares[n_labeled + n_partial :] /= making.rest or 1.0
    problem = TrainingProblem(design, making.loss, making.alpha, n_labeled, shares, n_partial, forbidden)
    heft = None if making.mean is None else shares[n_labeled:] / making.mean
    return Block(problem, np.maximum(codes[order], 0), order, heft)


def drop(keys: Sequence[str]) -> None:
    """Let go of shards."""
    for key in keys:
        _SHARDS.pop(key, None)


async def call(visits: Sequence[tuple[str, Callable[..., Any], Sequence[Any]]], dask_worker: Any = None) -> list[Any]:
    """Answers of visits to shards of this worker, made by its threads while it goes on listening."""
    loop, threads = asyncio.get_running_loop(), dask_worker.executors["default"]
    try:
        return await asyncio.gather(*(loop.run_in_executor(threads, _caught, *one) for one in visits))
    except RuntimeError as error:  # the worker is closing, and takes no more work
        return [Raised(GoneError(str(error))) for _ in visits]


class Raised(NamedTuple):
    """What a visit has raised, apart from what the way there may raise."""

    error: Exception


def _caught(key: str, function: Callable[..., Any], args: Sequence[Any]) -> Any:
    try:
        return visit(key, function, *args)
    except Exception as error:
        try:
            loads(dumps(error))
        except Exception:
            return Raised(RuntimeError(f"{type(error).__name__}: {error}"))
        return Raised(error)


def visit(key: str, function: Callable[..., Any], *args: Any) -> Any:
    """The answer of a function of the shard with this key."""
    shard = _SHARDS.get(key)
    if shard is None:
        raise GoneError("the rows of this answer are not on the worker any more; fit again, or fetch answers sooner")
    with shard.lock, one_blas_thread():
        try:
            return function(shard, *args)
        finally:
            shard.visited = time.monotonic()


def visit_parts(shard: Shard, way: str, function: Callable[..., Any], args: Any, kwargs: Any) -> list[Any]:
    """Answers of a function of each label part."""
    return [function(stand.part, *args, **kwargs) for stand in shard.ways[way].stands]


def visit_parts_with(shard: Shard, way: str, function: Callable[..., Any], own: Sequence[Any]) -> list[Any]:
    """Answers of a function of each label part, and what is its own."""
    return [function(stand.part, mine) for stand, mine in zip(shard.ways[way].stands, own, strict=True)]


# Weights


def start(shard: Shard, way: str) -> None:
    """Weights 0 for the labels that the way has, or those given; the state begins anew."""
    old = shard.ways.get(way)
    labels = [block.codes.copy() for block in shard.blocks] if old is None else [stand.labels for stand in old.stands]
    shard.ways[way] = _way(shard, [block.problem for block in shard.blocks], labels, labels)


def _way(shard: Shard, problems: Sequence[TrainingProblem], labels: Sequence[Array], targets: Sequence[Array]) -> Way:
    W = shard.blocks[0].problem.design.zeros()
    stands = []
    for block, problem, own, goal in zip(shard.blocks, problems, labels, targets, strict=True):
        state = weight_step_for(problem.loss, 0).start(problem, goal)
        state.W = W
        stands.append(Stand(block, problem, own, state))
    return Way(W, stands)


def retarget(shard: Shard, way: str, weight: float) -> bool:
    """Hand the states their labels and row weights; what that changes in W waits to be taken.

    Answers whether a label is new.
    """
    here, changed = shard.ways[way], False
    before = here.W.copy()
    for stand in here.stands:
        changed |= not np.array_equal(stand.labels, stand.state.targets)
        step = weight_step_for(stand.problem.loss, 0)
        step.retarget(stand.problem, stand.state, stand.labels, stand.problem.kappa(weight))
    here.change = here.W - before
    here.W[...] = before
    return changed


def sweep(shard: Shard, way: str, seed: int, whole: bool, sigma: float, n_times: int) -> tuple[float, float, int]:
    """Visit rows, so many times, as if they were all, but cautiously: W bends by sigma times what they know of.

    The change of W waits to be taken. Answers rows visited, the sum of their gaps, and rows that count.
    """
    here = shard.ways[way]
    before = here.W.copy()
    rng, visited, seen, n_live = np.random.default_rng(seed), 0, 0.0, 0
    for turn in range(n_times):
        seen, n_live = 0.0, 0
        for stand in here.stands:
            step, state = weight_step_for(stand.problem.loss, 0), stand.state
            assert isinstance(step, Dual)
            live = np.flatnonzero(state.kappa > 0)
            if not live.size:
                continue
            order = visiting_order(state.gaps, live, rng, whole and turn == 0)
            state.scores = None
            step.sweep(replace(stand.problem, alpha=stand.problem.alpha / sigma), state, order)
            visited, seen, n_live = visited + order.size, seen + float(state.gaps[live].sum()), n_live + live.size
    here.change = here.W - before
    here.change /= sigma
    here.W[...] = before
    return visited, seen, n_live


def take_change(shard: Shard, way: str) -> Array:
    """What the last visit would change in W."""
    here = shard.ways[way]
    if here.change is None:
        raise GoneError("what a shard changes in the weights can be taken once only")
    change, here.change = here.change, None
    return change


def receive(shard: Shard, way: str, total: Array, anew: bool) -> None:
    """Add the changes of all shards to W; or let them be W."""
    here = shard.ways[way]
    if anew:
        here.W[...] = total
    else:
        here.W += total


def keep(shard: Shard, way: str, share: float) -> None:
    """Keep W, or the point a share of the way from what was kept to it."""
    here = shard.ways[way]
    if share == 1.0:
        here.kept = here.W.copy()
    elif share > 0.0 and here.kept is not None:
        here.kept *= 1.0 - share
        here.kept += share * here.W


def weights(shard: Shard, way: str, kept: bool) -> Array:
    """W, or the weights that are kept: a copy, since both change in place."""
    here = shard.ways[way]
    return here.W.copy() if not kept or here.kept is None else here.kept.copy()


def dots(shard: Shard, way: str) -> tuple[float, float, float]:
    """Products of the weights that are kept and W with themselves and each other."""
    here = shard.ways[way]
    assert here.kept is not None
    return float(np.vdot(here.kept, here.kept)), float(np.vdot(here.kept, here.W)), float(np.vdot(here.W, here.W))


def measure(shard: Shard, way: str, fresh: bool) -> tuple[float, float, float]:
    """Loss and gap of the rows that count, and ‖W‖²; scores are kept. `fresh` says that they are those at W already."""
    here, loss, gap = shard.ways[way], 0.0, 0.0
    for stand in here.stands:
        step, state = weight_step_for(stand.problem.loss, 0), stand.state
        assert isinstance(step, Dual)
        if not fresh or state.scores is None:
            state.scores = stand.problem.design.scores(here.W)
        live = np.flatnonzero(state.kappa > 0)
        if live.size:
            loss += step.measure(stand.problem, state, live, state.scores)
            gap += float(state.gaps[live].sum())
    return loss, gap, float(np.vdot(here.W, here.W))


def loss_and_slope(shard: Shard, way: str) -> float:
    """Loss of the rows that count at W; its gradient in W waits to be taken. For losses without a dual."""
    here, loss = shard.ways[way], 0.0
    slope = np.zeros_like(here.W)
    for stand in here.stands:
        problem, state = stand.problem, stand.state
        live = state.kappa > 0
        state.scores = problem.design.scores(here.W)
        R = np.zeros_like(state.scores)
        if live.any():
            loss += float(np.dot(state.kappa[live], problem.loss.value(state.scores[live], state.targets[live])))
            R[live] = problem.loss.gradient(state.scores[live], state.targets[live]) * state.kappa[live, None]
            slope += problem.design.pullback(R)
    here.change = slope
    return loss


def combine(*changes: Array) -> Array:
    """The sum of changes."""
    total = changes[0].copy()
    for change in changes[1:]:
        total += change
    return total


# Labels


def rest(shard: Shard, way: str) -> None:
    """Keep nothing of a way but its labels."""
    here = shard.ways[way]
    here.W, here.change, here.kept = np.zeros((0, 0), here.W.dtype), None, None
    for stand in here.stands:
        stand.state, stand.seen, stand.part, stand.chosen = _nothing(here.W), None, None, None


def _nothing(W: Array) -> WeightState:
    none = np.zeros(0)
    return WeightState(W, none, none, none, none)


def loss_between(shard: Shard, way: str, share: float) -> float:
    """Loss of the rows that count, a share of the way from the scores seen last to those of the state."""
    loss = 0.0
    for stand in shard.ways[way].stands:
        live = stand.state.kappa > 0
        if live.any():
            losses = stand.problem.loss.value(_between(stand, share)[live], stand.labels[live])
            loss += float(np.dot(stand.state.kappa[live], losses))
    return loss


def _between(stand: Stand, share: float) -> Array:
    scores = stand.state.scores
    assert scores is not None
    if share == 1.0 or stand.seen is None:
        return scores
    return stand.seen if share == 0.0 else (1.0 - share) * stand.seen + share * scores


def offer(shard: Shard, way: str, kind: str, share: float | None = None) -> None:
    """Make the label parts: costs of the rows without a full label by their scores.

    With a share, the scores that are seen first go that share of the way to those of the state.

    kind   "scores": minus the scores of the state; "hard", "soft": the loss at the scores seen, or of the state;
           "posterior": minus the logarithm of the posterior
    """
    for stand in shard.ways[way].stands:
        if share is not None:
            stand.seen = _between(stand, share)
        labels = stand.labels[stand.unlabeled]
        if kind == "scores":
            assert stand.state.scores is not None
            costs, heft = -stand.state.scores[stand.unlabeled], None
        elif kind == "posterior":
            assert stand.state.scores is not None
            posterior = own_posterior(replace(stand.problem, forbidden=None), stand.state.scores[stand.unlabeled])
            costs, heft = -np.log(np.maximum(posterior, np.finfo(posterior.dtype).tiny)), None
        else:
            scores = stand.seen if kind == "hard" else stand.state.scores
            assert scores is not None
            costs, heft = finite_costs(stand.problem.loss, scores[stand.unlabeled]), stand.block.heft
            if kind == "soft":
                labels = np.full(labels.size, -1, np.int64)
                heft = None if stand.problem.n_partial else heft
        if heft is not None:
            costs = costs * heft[:, None]
        if stand.problem.forbidden is not None:
            costs = np.where(stand.problem.forbidden, np.inf, costs)
        stand.part = Part(costs, labels)


def weigh(shard: Shard, way: str) -> tuple[int, float, float]:
    """Rows whose proposed label is new, what that changes in the loss, and the loss of the labels they have."""
    n_moved, change, old = 0, 0.0, 0.0
    for stand in shard.ways[way].stands:
        assert stand.part is not None
        assert stand.seen is not None
        now, new = stand.labels[stand.unlabeled], stand.part.notes["labels"]
        kappa = stand.state.kappa[stand.unlabeled]
        costs = finite_costs(stand.problem.loss, stand.seen[stand.unlabeled])
        every = np.arange(now.size)
        own = costs[every, now]
        moved = np.flatnonzero(new != now)
        n_moved += int(moved.size)
        change += float(np.dot(kappa[moved], costs[moved, new[moved]] - own[moved]))
        old += float(np.dot(kappa, own))
    return n_moved, change, old


def settle(shard: Shard, way: str, take: bool, share: float | None = None) -> None:
    """Take the proposed labels, or leave them; and keep weights a share of the way to W, where some are kept."""
    if share is not None and shard.ways[way].kept is not None:
        keep(shard, way, share)
    for stand in shard.ways[way].stands:
        if take:
            assert stand.part is not None
            stand.labels[stand.unlabeled] = stand.part.notes["labels"]
        stand.part = None


# Soft labels


def begin_soft(shard: Shard, way: str, bounds: Any, n_unlabeled: int) -> None:
    """Given labels, and distributions of all others that know nothing but the class sizes; weights 0."""
    problems = [replace(block.problem, loss=softened(block.problem.loss)) for block in shard.blocks]
    targets = [
        first_targets(problem, block.codes, bounds, n_unlabeled)
        for problem, block in zip(problems, shard.blocks, strict=True)
    ]
    labels = [block.codes.copy() for block in shard.blocks]
    here = shard.ways[way] = _way(shard, problems, labels, targets)
    for stand in here.stands:
        stand.chosen = np.full(stand.problem.n_rows - stand.problem.n_labeled, -1)


def soften(shard: Shard, way: str, weight: float, fresh: bool) -> int:
    """Take the distributions of the label parts as targets; what all rows then put into W waits to be taken.

    Answers rows whose likeliest label is new. `fresh` says that there are no distributions yet but the first.
    """
    here, n_moved = shard.ways[way], 0
    here.change = np.zeros_like(here.W)
    for stand in here.stands:
        targets = stand.state.targets.copy()
        if not fresh:
            assert stand.part is not None
            assert stand.chosen is not None
            posterior = stand.part.notes["posterior"]
            targets[stand.unlabeled] = posterior
            now = posterior.argmax(axis=1)
            n_moved, stand.chosen, stand.part = n_moved + int((now != stand.chosen).sum()), now, None
        step, kappa = weight_step_for(stand.problem.loss, 0), stand.problem.kappa(weight)
        if isinstance(step, DualMaxEnt):
            step.soften(stand.problem, stand.state, targets, kappa)
            here.change += stand.problem.design.pullback(step.pull_of_all(stand.problem, stand.state))
        else:
            step.retarget(stand.problem, stand.state, targets, kappa)
    return n_moved


def harden(shard: Shard, way: str, from_way: str) -> None:
    """Begin a way with the labels that the label parts of another have found."""
    labels = []
    for stand in shard.ways[from_way].stands:
        assert stand.part is not None
        own = stand.block.codes.copy()
        own[stand.unlabeled] = stand.part.notes["labels"]
        labels.append(own)
    shard.ways[way] = _way(shard, [block.problem for block in shard.blocks], labels, labels)
    shard.ways.pop(from_way)


def look_hard(shard: Shard, way: str) -> None:
    """Judge the scores of soft labels by the hard loss."""
    for stand in shard.ways[way].stands:
        stand.problem = stand.block.problem
        stand.seen = stand.state.scores


# Sums


def tallies(shard: Shard, W: Array) -> tuple[Array, Array]:
    """Rows without a full label of each class by their best scores, and the sum of their posteriors."""
    problem = shard.blocks[0].problem
    counts, mass = np.zeros(problem.n_classes, np.int64), np.zeros(problem.n_classes)
    for block in shard.blocks:
        scores = block.problem.design.scores(W)[block.problem.n_labeled :]
        if len(scores):
            counts += own_counts(block.problem, scores)
            mass += own_posterior(block.problem, scores).sum(axis=0, dtype=np.float64)
    return counts, mass


def class_counts(shard: Shard, way: str) -> Array:
    """Rows without a full label of each class, by the labels that the way has kept."""
    stands = shard.ways[way].stands
    n_classes = stands[0].problem.n_classes
    return np.asarray(np.sum([np.bincount(s.labels[s.unlabeled], minlength=n_classes) for s in stands], axis=0))


def judge(shard: Shard, way: str, W: Array) -> None:
    """Scores at W, for the distributions over labels."""
    for stand in shard.ways[way].stands:
        stand.state.scores = stand.problem.design.scores(W)


def labels_of(shard: Shard, way: str, place: int, classes: Array) -> Array:
    """Names of the labels of one block, in the order of its rows."""
    stand = shard.ways[way].stands[place]
    labels = np.empty(stand.labels.size, np.int64)
    labels[stand.block.order] = stand.labels
    return np.asarray(classes[labels])


def distributions_of(shard: Shard, way: str, place: int) -> Array:
    """Distributions over the labels of one block (n, K), in the order of its rows."""
    stand = shard.ways[way].stands[place]
    assert stand.part is not None
    n_labeled, posterior = stand.problem.n_labeled, stand.part.notes["posterior"]
    out = np.zeros((stand.problem.n_rows, stand.problem.n_classes), posterior.dtype)
    out[stand.block.order[:n_labeled], stand.labels[:n_labeled]] = 1.0
    out[stand.block.order[n_labeled:]] = posterior
    return out


# On disk


def save(shard: Shard, way: str, path: str, done: bool) -> str | None:
    """Keep what the way holds for each row in a file, labels alone if it is done; why not, where that fails."""
    arrays: dict[str, Array] = {}
    for place, stand in enumerate(shard.ways[way].stands):
        kept = {"labels": stand.labels} | ({} if done else packed_state(stand.state))
        kept.pop("state_W", None)
        if stand.chosen is not None:
            kept["chosen"] = stand.chosen
        arrays |= {f"{place} {name}": array for name, array in kept.items()}
    disk = _Telling()
    Shelf(Path(path), disk=disk).save(arrays, {"blocks": len(shard.blocks)})
    return disk.reason


class _Telling(Disk):
    """A disk whose trouble is told to whoever asked, instead of here."""

    reason: str | None = None

    def fail(self, folder: Path, error: OSError) -> None:
        self.reason = error.strerror or str(error)


def load(shard: Shard, way: str, path: str, soft: bool) -> bool:
    """Be as when this was kept; False where there is no such file, or it is damaged."""
    saved = Shelf(Path(path)).load()
    if saved is None:
        return False
    mine = shard.blocks[0].problem.design.zeros()
    stands = []
    for place, block in enumerate(shard.blocks):
        prefix = f"{place} "
        arrays = {n.removeprefix(prefix): a for n, a in saved.arrays.items() if n.startswith(prefix)} | {
            "state_W": mine
        }
        problem = replace(block.problem, loss=softened(block.problem.loss)) if soft else block.problem
        state = unpacked_state(problem, arrays) if "state_kappa" in arrays else _nothing(mine)
        state.scores = None
        stands.append(Stand(block, problem, arrays["labels"], state, chosen=arrays.get("chosen")))
    shard.ways[way] = Way(mine, stands)
    return True


def show(shard: Shard, way: str) -> None:
    """Scores at W, as they were when a stage was kept."""
    here = shard.ways[way]
    for stand in here.stands:
        stand.state.scores = stand.problem.design.scores(here.W)
