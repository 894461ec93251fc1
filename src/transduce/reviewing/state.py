"""The state of a review as a fold over its events: decisions, classes, notes, class sizes, undo and redo.

Events are plain mappings with the key "op", as the log holds them. Rows are numbered from 0. Classes are numbered in
the order in which they appear, so that a decision survives when its class is renamed or merged.

    decide  rows, label, how             label None is "none of these"
    clear   rows                         takes decisions back
    skip    rows
    note    row, text
    add_class  name        rename_class  name, to        merge_class  name, into
    sizes   sizes                        {class: size as --prior takes it}
    undo    redo                         `event` may name the id of the event that is meant

Every change has an inverse of the same kind, so that undo and redo are the same operation.
"""

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from transduce.arrays import Array
from transduce.errors import InputError
from transduce.reviewing.log import Event
from transduce.suggest import closest_name, did_you_mean

UNDECIDED, NO_CLASS = -1, -2
HOW = ("", "queue", "random", "list", "keyword", "neighbours", "cluster", "map", "file", "bulk")
"""How a document was chosen; only random ones say something about accuracy."""
RANDOM = HOW.index("random")
SINGLE = (HOW.index("queue"), RANDOM, HOW.index("list"))
"""Documents that were decided one by one."""
MAX_NAME, MAX_NOTE = 200, 10_000


@dataclass
class Change:
    """Values to put back, of rows and of whole attributes, and the id of the event that they belong to."""

    title: str
    rows: Array
    columns: dict[str, Array]
    others: dict[str, Any]
    event: object = None


class ReviewState:
    """Decisions about n documents.

    Parameters
    ----------
    n_rows : int
        Number of documents.
    given : sequence of str or None
        Labels that the file has.
    named : sequence of str
        More classes that are there from the beginning.

    Attributes
    ----------
    names : list of str
        Names of the classes, in the order in which they appeared; "" for one that was merged into another.
    decided : ndarray of shape (n_rows,)
        Number of the class that a person decided on here, UNDECIDED or NO_CLASS.
    given : ndarray of shape (n_rows,)
        The same for labels of the file.
    how : ndarray of shape (n_rows,)
        How decided documents were chosen, as numbers of HOW.
    skipped : ndarray of bool of shape (n_rows,)
        Documents that were skipped.
    notes : dict
        Notes by row.
    sizes : dict
        Class sizes that were edited, by class name.

    Examples
    --------
    >>> state = ReviewState(3, ["tea", None, None])
    >>> state.apply({"op": "decide", "rows": [1], "label": "tea"})
    '1 document as tea'
    >>> state.apply({"op": "rename_class", "name": "tea", "to": "teas"})
    'tea renamed to teas'
    >>> state.labels()
    ['teas', 'teas', None]
    """

    def __init__(self, n_rows: int, given: Sequence[str | None] | None = None, named: Sequence[str] = ()) -> None:
        given = [None] * n_rows if given is None else given
        self.names: list[str] = sorted({name for name in given if name is not None})
        self.names += [name for name in dict.fromkeys(named) if name not in self.names]
        self._first = list(self.names)
        index = {name: k for k, name in enumerate(self.names)}
        self.given = np.array([UNDECIDED if name is None else index[name] for name in given], dtype=np.int32)
        self.merged: list[int] = list(range(len(self.names)))
        self.decided = np.full(n_rows, UNDECIDED, np.int32)
        self.how, self.skipped = np.zeros(n_rows, np.int8), np.zeros(n_rows, bool)
        self.notes: dict[int, str] = {}
        self.sizes: dict[str, str] = {}
        self.undoable: list[Change] = []
        self.redoable: list[Change] = []
        self.n_events, self._is_replay = 0, False
        self._codes: Array | None = None

    def copy(self) -> Self:
        """Copy what may change while another thread reads; the rest is only ever replaced."""
        found = copy(self)
        found.decided = self.decided.copy()
        return found

    @property
    def n_rows(self) -> int:
        """Number of documents."""
        return int(self.decided.size)

    @property
    def classes(self) -> list[str]:
        """Names of all classes, sorted."""
        return sorted(name for name in self.names if name)

    def codes(self) -> Array:
        """Class of each document (n,): decided here, else that of the file; merged classes are resolved. Read-only."""
        if self._codes is None:
            codes = np.where(self.decided == UNDECIDED, self.given, self.decided)
            self._codes = np.where(codes < 0, codes, np.array([*self.merged, 0])[codes]) if self.merged else codes
            self._codes.setflags(write=False)
        return self._codes

    def labels(self) -> list[str | None]:
        """Names of the classes of all documents; None without a decision, and for none of the classes."""
        return [self.names[code] if code >= 0 else None for code in self.codes().tolist()]

    def name_now(self, name: str) -> str:
        """Return what a class is called now that was there from the beginning."""
        return self.names[self.merged[self._first.index(name)]]

    def number_of(self, name: str) -> int:
        """Return the number of a class; an unknown one is an error that suggests a similar name."""
        if name and name in self.names:
            return self.names.index(name)
        raise InputError(f"there is no class {name!r}.{did_you_mean(name, self.classes)} Add it first.")

    def similar_class(self, name: str) -> str | None:
        """Return the class, or the last part of its path, that a new name may be a misspelling of; None without one."""
        return closest_name(name, {part for each in self.classes for part in (each, each.rpartition("/")[2])})

    def check(self, event: Event) -> None:
        """Raise an InputError if the event cannot be applied; the state stays as it is."""
        getattr(self, f"_{self._op(event)}")(event, True)

    def apply(self, event: Event) -> str:
        """Apply an event, and return what it did in a few words."""
        op = self._op(event)
        if op in ("undo", "redo"):
            title = str(getattr(self, f"_{op}")(event, False))
        else:
            change = getattr(self, f"_{op}")(event, False)
            change.event = event.get("id")
            self.undoable.append(self._swap(change))
            self.redoable.clear()
            title = change.title
        self.n_events += 1
        return title

    def _op(self, event: Event) -> str:
        op = event.get("op")
        if not isinstance(op, str) or op not in OPERATIONS:
            raise InputError(f"an event must be one of {', '.join(OPERATIONS)}, but is {op!r}.")
        return op

    def _swap(self, change: Change) -> Change:
        """Put the values of a change in place, and return those that were there."""
        rows = change.rows
        self._codes = None
        before = Change(
            change.title, rows, {name: getattr(self, name)[rows] for name in change.columns}, {}, change.event
        )
        for name, values in change.columns.items():
            getattr(self, name)[rows] = values
        for name, value in change.others.items():
            before.others[name] = getattr(self, name)
            setattr(self, name, value)
        return before

    def _undo(self, event: Event, dry: bool) -> str:
        return self._reverse(self.undoable, self.redoable, event, dry)

    def _redo(self, event: Event, dry: bool) -> str:
        return self._reverse(self.redoable, self.undoable, event, dry)

    def _reverse(self, source: list[Change], target: list[Change], event: Event, dry: bool) -> str:
        if not source:
            raise InputError(f"there is nothing to {event['op']}.")
        if event.get("event") not in (None, source[-1].event):
            raise InputError("Another tab has decided since. Look at what it did, and decide again.")
        if not dry:
            target.append(self._swap(source.pop()))
        return source[-1].title if dry else target[-1].title

    def _rows(self, event: Event) -> Array:
        rows = event.get("rows")
        if not isinstance(rows, list) or not rows or not all(type(row) is int for row in rows):
            raise InputError("an event needs the rows that it is about, as a list of whole numbers.")
        outside = next((row for row in (min(rows), max(rows)) if not 0 <= row < self.n_rows), None)
        if outside is not None:  # which may have more digits than NumPy, or an error message, can hold
            found = outside if abs(outside) < 10**18 else "larger"
            raise InputError(f"rows must be from 0 to {self.n_rows - 1}, but one is {found}.")
        return np.unique(np.array(rows, dtype=np.int64))

    def _decide(self, event: Event, dry: bool) -> Change:
        rows, label = self._rows(event), event.get("label")
        code = NO_CLASS if label is None else self.number_of(_name(label, "label"))
        how = event.get("how", "queue")
        if how not in HOW[1:]:
            raise InputError(f"`how` must be one of {', '.join(HOW[1:])}, but is {how!r}.")
        columns: dict[str, Array] = {
            "decided": np.full(rows.size, code, np.int32),
            "skipped": np.zeros(rows.size, bool),
        }
        columns["how"] = np.full(rows.size, HOW.index(how), np.int8)
        return Change(f"{_documents(rows)} as {'none of these' if label is None else label}", rows, columns, {})

    def _clear(self, event: Event, dry: bool) -> Change:
        rows = self._rows(event)
        decided, how = np.full(rows.size, UNDECIDED, np.int32), np.zeros(rows.size, np.int8)
        return Change(f"{_documents(rows)} without a decision", rows, {"decided": decided, "how": how}, {})

    def _skip(self, event: Event, dry: bool) -> Change:
        rows = self._rows(event)
        return Change(f"{_documents(rows)} skipped", rows, {"skipped": np.ones(rows.size, bool)}, {})

    def _note(self, event: Event, dry: bool) -> Change:
        row, text = self._rows({"rows": [event.get("row")]})[0], event.get("text")
        if not isinstance(text, str) or len(text) > MAX_NOTE:
            raise InputError(f"a note must be a text of at most {MAX_NOTE} letters.")
        notes = {key: value for key, value in {**self.notes, int(row): text.strip()}.items() if value}
        return Change("a note", np.zeros(0, np.int64), {}, {"notes": notes})

    def _add_class(self, event: Event, dry: bool) -> Change:
        name = self._unused(event.get("name"))
        new = {"names": [*self.names, name], "merged": [*self.merged, len(self.merged)]}
        others = {} if name in self.names else new
        return Change(f"new class {name}", np.zeros(0, np.int64), {}, others)

    def _rename_class(self, event: Event, dry: bool) -> Change:
        """Rename a class, or a branch of the tree with all that is below it."""
        old, new = _name(event.get("name"), "name"), _name(event.get("to"), "to")
        below = [name for name in self.names if name == old or name.startswith(f"{old}/")]
        if not below:
            self.number_of(old)
        renamed = {name: self._unused(new + name[len(old) :], set(below)) for name in below}
        # a name that the file has taken on since: its documents follow the class that was renamed
        follow = {self.names.index(to): self.names.index(name) for name, to in renamed.items()
                  if to in self.names and to not in renamed}  # fmt: skip
        others = {
            "names": ["" if k in follow else renamed.get(name, name) for k, name in enumerate(self.names)],
            "merged": [follow.get(k, k) for k in self.merged],
            "sizes": {renamed.get(name, name): size for name, size in self.sizes.items()},
        }
        return Change(f"{old} renamed to {new}", np.zeros(0, np.int64), {}, others)

    def _merge_class(self, event: Event, dry: bool) -> Change:
        old, new = _name(event.get("name"), "name"), _name(event.get("into"), "into")
        source, target = self.number_of(old), self.number_of(new)
        if source == target:
            raise InputError(f"{old!r} cannot be merged into itself. Name another class.")
        others = {
            "names": ["" if k == source else name for k, name in enumerate(self.names)],
            "merged": [target if k == source else k for k in self.merged],
            "sizes": {name: size for name, size in self.sizes.items() if name not in (old, new)},
        }
        return Change(f"{old} merged into {new}", np.zeros(0, np.int64), {}, others)

    def _sizes(self, event: Event, dry: bool) -> Change:
        sizes = event.get("sizes")
        if not isinstance(sizes, Mapping):
            raise InputError("class sizes must be a mapping from class names to sizes.")
        for name, size in sizes.items():
            self.number_of(name)
            if not isinstance(size, str):
                raise InputError(f"the size of {name!r} must be a text such as 20% or 10%:30%, but is {size!r}.")
        return Change("class sizes", np.zeros(0, np.int64), {}, {"sizes": dict(sizes)})

    def _unused(self, name: object, besides: Iterable[str] = ()) -> str:
        name = _name(name, "name")
        if name in self.names and name not in besides and not self._is_replay:
            raise InputError(f"there is a class {name!r} already. Merge them, or choose another name.")
        return name


OPERATIONS = ("decide", "clear", "skip", "note", "add_class", "rename_class", "merge_class", "sizes", "undo", "redo")


def replay(
    n_rows: int, given: Sequence[str | None] | None, events: Sequence[Event], named: Sequence[str] = ()
) -> ReviewState:
    """Return the state after the events of a log, in order.

    The file may have changed since the events were written: classes that only it named exist also without it, and
    names that it took over from the review, by way of an exported file, are those of the review.
    """
    known = {name for name in given or () if name is not None}.union(named)
    lost: set[str] = set()
    for event in events:
        used, made = _names_in(event)
        branches = {name for name in used if name and any(other.startswith(f"{name}/") for other in known | lost)}
        lost |= used - known - branches
        known |= made
    state = ReviewState(n_rows, given, named)
    state.names += sorted(lost)
    state.merged += range(len(state.merged), len(state.names))
    state._is_replay = True
    for event in events:
        state.apply(event)
    state._is_replay = False
    return state


def _names_in(event: Event) -> tuple[set[str], set[str]]:
    """Class names that an event of a log uses, and those that exist after it."""
    label, name, into, to = (event.get(key) for key in ("label", "name", "into", "to"))
    sizes = event.get("sizes")
    used = [label, into, *(sizes if isinstance(sizes, Mapping) else ())]
    used += [] if event.get("op") == "add_class" else [name]
    return {each for each in used if isinstance(each, str)}, {each for each in (name, to) if isinstance(each, str)}


def _name(value: object, field: str) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > MAX_NAME:
        raise InputError(f"{field!r} must be the name of a class, of 1 to {MAX_NAME} letters, but is {value!r}.")
    if "" in value.strip().split("/"):
        raise InputError(f"{value!r} is a path with an empty part. Write 'top/below'.")
    return value.strip()


def _documents(rows: Array) -> str:
    return "1 document" if rows.size == 1 else f"{rows.size} documents"
