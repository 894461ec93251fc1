"""How workers add up what their shards change in the weights: each adds up a piece of W for all, and hands it round.

Shards that began on one worker are a team, and are added up before anything travels; then teams are, in their order.
So a sum is the same, bit for bit, wherever teams are. Or shards take turns, again and again: each is told what others
have changed since its last turn, in their order, so that all have the same W in the end. Workers ask one another
without the scheduler between them; whoever asks early waits, until the answer is there or the sum has failed.
"""

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from distributed.protocol.pickle import dumps

from transduce.engines.dask import process, shard_weights, shards
from transduce.engines.dask.shards import GoneError, Raised
from transduce.engines.dask.weight_deltas import Change, Piece, bounds_of_pieces, cut, total


class Team(NamedTuple):
    """Shards that are added up first: the worker they are on, and their keys."""

    home: str
    keys: tuple[str, ...]


class Sum(NamedTuple):
    """One sum of a fit: which, of the changes of which way, and whether it is to be W or to be added to it.

    Shards visit their rows at once; or they take at most so many turns each, until it is over: a function of the
    number of turns and of what all have answered in the last.
    """

    fit: str
    number: int
    restart: str
    anew: bool = False
    n_turns: int = 0
    is_over: Callable[[int, list[Any]], bool] | None = None


class Told(NamedTuple):
    """What a shard has to say after its turn: the answer of the visit, and what it has changed in W."""

    answer: Any
    change: Change


@dataclass(eq=False)
class _Board:
    """What a worker has for the others in one sum, or will have."""

    slots: dict[str, asyncio.Future[Any]] = field(default_factory=dict)
    error: Exception | None = None

    def check(self) -> None:
        """See that the sum has not failed."""
        if self.error is not None:
            raise self.error

    def put(self, name: str, thing: Any) -> None:
        """Let others have this, by this name."""
        self.check()
        self.slot(name).set_result(thing)

    def forget(self, name: str) -> None:
        """Nobody will ask for this any more."""
        self.slots.pop(name, None)

    def slot(self, name: str) -> asyncio.Future[Any]:
        """What goes by this name, when it is there."""
        if name not in self.slots:
            self.slots[name] = asyncio.get_running_loop().create_future()
            if self.error is not None:
                self.slots[name].set_exception(self.error)
                self.slots[name].exception()
        return self.slots[name]

    def fail(self, error: Exception) -> None:
        """Let nobody wait for what will not come."""
        self.error = error
        for slot in self.slots.values():
            if not slot.done():
                slot.set_exception(error)
                slot.exception()  # it has been seen, if nobody waits


@dataclass(eq=False)
class _Fit:
    """The teams of a fit, as this worker knows them, and the sum that is under way."""

    teams: tuple[Team, ...]
    loop: asyncio.AbstractEventLoop
    number: int = -1
    board: _Board = field(default_factory=_Board)

    def at(self, number: int) -> _Board:
        """The board of a sum; all of the last have ended when the next begins."""
        if number > self.number:
            self.number, self.board = number, _Board()
        if number < self.number:
            raise GoneError("this sum is over")
        return self.board


_FITS: dict[str, _Fit] = {}
_RECEIVED = [0]
_lock = threading.Lock()


def received() -> int:
    """Bytes of changes that this process has had from other workers."""
    return _RECEIVED[0]


async def join(fit: str, teams: Sequence[Team], dask_worker: Any = None) -> None:
    """Let this worker know the teams of a fit; and forget those of drivers that are gone."""
    for old, known in list(_FITS.items()):
        if not any(shards.is_held(key) for team in known.teams for key in team.keys):
            leave(old)
    _FITS[fit] = _Fit(tuple(teams), asyncio.get_running_loop())
    process.begin(dask_worker)


def leave(fit: str) -> None:
    """Forget a fit; whoever still waits is told."""
    mine = _FITS.pop(fit, None)
    if mine is not None:
        mine.loop.call_soon_threadsafe(_end, mine.board)


def _end(board: _Board) -> None:
    board.fail(GoneError("the fit has ended"))
    if not _FITS:
        process.end()


async def call_and_add(visits: Sequence[Any], which: Sum, dask_worker: Any = None) -> list[Any]:
    """Answers of visits to the shards of this worker; what they change in W is then added up, here and elsewhere."""
    mine = _FITS.get(which.fit)
    if mine is None:
        return [Raised(GoneError("this worker is not part of the fit")) for _ in visits]
    board = mine.at(which.number)
    process.ease(dask_worker)
    if which.is_over is not None:
        links = [(team.home, key) for team in mine.teams for key in team.keys]
        return list(await asyncio.gather(*(_take_turns(links, board, which, one, dask_worker) for one in visits)))
    answers = await shards.call(visits, dask_worker)
    try:
        for answer in answers:
            if isinstance(answer, Raised):
                raise answer.error
        await _add(mine.teams, board, which, dask_worker)
    except Exception as error:
        board.fail(GoneError(f"a worker could not add up its changes ({type(error).__name__})"))
        known = any(isinstance(answer, Raised) for answer in answers)
        return answers if known else [Raised(error) for _ in visits]
    return answers


async def abandon(which: Sum) -> None:
    """Let nobody go on with a sum that the driver does not wait for any more."""
    mine = _FITS.get(which.fit)
    if mine is not None and which.number >= mine.number:
        mine.at(which.number).fail(GoneError("the sum was given up"))


async def _take_turns(
    links: Sequence[tuple[str, str]], board: _Board, which: Sum, one: tuple[str, Callable[..., Any], Any], worker: Any
) -> Any:
    """Answers of function(shard, *args, count, changes), turn after turn, until it is over.

    All add the changes of all to W in the same order, and stop after the same turn.
    """
    key, function, args = one
    own = [link for _, link in links].index(key)

    async def told(count: int, by: range) -> list[Told]:
        return await _all(board, which, worker, [(links[g][0], f"turn {count} of {g}") for g in by])

    async def visit(function: Callable[..., Any], *args: Any) -> Any:
        found = await _in_thread(worker, shards.caught, key, function, args)
        if isinstance(found, Raised):
            raise found.error
        return found

    answers, missed = [], list[Told]()
    assert which.is_over is not None
    try:
        for count in range(1, which.n_turns + 1):
            sooner = await told(count, range(own))
            board.check()
            now = Told(*await visit(function, *args, count, [each.change for each in (*missed, *sooner)]))
            answers.append(now.answer)
            board.forget(f"turn {count - 1} of {own}")  # all have had it, or this turn would not have come
            board.put(f"turn {count} of {own}", now)
            missed = await told(count, range(own + 1, len(links)))
            if which.is_over(count, [each.answer for each in (*sooner, now, *missed)]):
                break
        await visit(shard_weights.follow, which.restart, [each.change for each in missed])
    except Exception as error:
        board.fail(GoneError(f"a worker could not take its turn ({type(error).__name__})"))
        return Raised(error)
    return answers


async def _in_thread(worker: Any, function: Callable[..., Any], *args: Any) -> Any:
    try:
        answer = asyncio.get_running_loop().run_in_executor(worker.executors["default"], function, *args)
    except RuntimeError as error:  # the worker is closing, and takes no more work
        raise GoneError(str(error)) from error
    return await answer


async def _add(teams: Sequence[Team], board: _Board, which: Sum, worker: Any) -> None:
    here = worker.address
    own = [t for t, team in enumerate(teams) if team.home == here]

    cuts = [await _in_thread(worker, _pieces_of, teams[t], which.restart, len(teams)) for t in own]
    for t, pieces in zip(own, cuts, strict=True):
        for p, piece in enumerate(pieces):
            board.put(f"{t} of {p}", piece)
    n_pieces = len(cuts[0])
    for p in [t for t in own if t < n_pieces]:
        parts = await _all(board, which, worker, [(team.home, f"{t} of {p}") for t, team in enumerate(teams)])
        board.put(f"sum {p}", await _in_thread(worker, total, parts))
    sums = await _all(board, which, worker, [(teams[p].home, f"sum {p}") for p in range(n_pieces)])
    for t in own:
        for key in teams[t].keys:
            await _in_thread(worker, shards.visit, key, shard_weights.receive, which.restart, sums, which.anew)


def _pieces_of(team: Team, restart: str, n_teams: int) -> list[Piece]:
    """What a team changes in W, cut into pieces."""
    changes = [shards.visit(key, shard_weights.take_change, restart) for key in team.keys]
    return pieces_of_sum(changes, shards.visit(team.keys[0], shard_weights.shape, restart), n_teams)


def pieces_of_sum(changes: Sequence[Any], shape: tuple[int, int], n_teams: int) -> list[Piece]:
    """The sum of changes of W of this shape, cut into pieces."""
    bounds = bounds_of_pieces(shape, changes[0].values.itemsize, n_teams)
    together = total([Piece(0, shape[0], change) for change in changes])
    return cut(together.change, bounds)


async def _all(board: _Board, which: Sum, worker: Any, wanted: Sequence[tuple[str, str]]) -> list[Any]:
    """What goes by these names on the boards of these workers, with one question to each of them."""
    names: dict[str, list[str]] = {}
    for home, name in wanted:
        names.setdefault(home, []).append(name)
    homes = list(names)
    found = await asyncio.gather(
        *(
            asyncio.gather(*map(board.slot, names[home]))
            if home == worker.address
            else _ask(worker, home, which, names[home])
            for home in homes
        )
    )
    answers = {
        (home, name): thing
        for home, things in zip(homes, found, strict=True)
        for name, thing in zip(names[home], things, strict=True)
    }
    return [answers[one] for one in wanted]


async def _ask(worker: Any, home: str, which: Sum, names: Sequence[str]) -> list[Any]:
    try:
        answer = await worker.rpc(home).run(function=dumps(give), args=dumps((which.fit, which.number, tuple(names))))
    except (TimeoutError, OSError, RuntimeError) as error:  # it is not there any more, or this one is closing
        raise GoneError(str(error)) from error
    if answer["status"] != "OK":
        raise GoneError("a worker has nothing to give")
    things = list(answer["result"])
    with _lock:
        _RECEIVED[0] += sum(thing.change.n_bytes for thing in things)
    return things


async def give(fit: str, number: int, names: Sequence[str]) -> list[Any]:
    """What another worker asks for, when it is there."""
    mine = _FITS.get(fit)
    if mine is None:
        raise GoneError("this worker is not part of the fit")
    board = mine.at(number)
    return list(await asyncio.gather(*map(board.slot, names)))
