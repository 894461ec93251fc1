"""One review: the state and its log, a thread that fits while people decide, and the queue.

`submit` saves each event in the log before it changes the state. Fits run in a thread on a copy of the labels; what
they find replaces the proposals at once, and never a decision.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from transduce.arrays import Array
from transduce.errors import InputError
from transduce.placement import place_points
from transduce.reviewing.documents import Documents
from transduce.reviewing.estimates import MIN_RANDOM, advice, estimate_accuracy, expected_gain, open_questions, pays
from transduce.reviewing.log import DecisionLog, Event
from transduce.reviewing.proposals import Labels, Proposals, propose
from transduce.reviewing.state import HOW, RANDOM, SINGLE, UNDECIDED, replay
from transduce.selection import spread_rows

FIT_AFTER, FIT_SECONDS = 10, 3.0
"""A fit begins after so many decisions, or so many seconds after the last one."""
N_QUEUE, RANDOM_EVERY = 60, 5
"""Documents that are planned ahead, and one in how many of them is random."""
MAX_EVENTS, MAX_IDS = 1000, 10_000
UPDATE_SOON = "The proposals will be updated soon."
_LABELS = ("decide", "clear", "rename_class", "merge_class", "sizes", "undo", "redo")
"""Events that may change what a fit finds."""


class Session:
    """A review of documents.

    Parameters
    ----------
    documents : Documents
    log : DecisionLog
        Log to read earlier events from and to append to.
    given : sequence of str or None, default=None
        Labels that the file has.
    fits : bool, default=True
        Whether a thread fits in the background; False for tests, which call `fit_now`.
    """

    def __init__(
        self, documents: Documents, log: DecisionLog, given: Sequence[str | None] | None = None, *, fits: bool = True
    ) -> None:
        self.documents, self.log = documents, log
        self.state = replay(documents.n, given, log.events, documents.hints.names)
        self.lock = threading.RLock()
        self.proposals: Proposals | None = None
        self._fitted: Proposals | None = None
        self.planned: list[int] = []
        self.points = np.zeros((documents.n, 2))
        self.curve: list[tuple[int, float]] = []
        self.status, self.revision = "Reading.", 0
        self._random = np.random.default_rng(documents.n).permutation(documents.n)
        self._seen: dict[str, None] = {}
        self._pending, self._last, self._stopped = 1, time.monotonic() - FIT_SECONDS, False
        self._wake = threading.Condition(self.lock)
        for event in log.events:
            self._remember(event)
        self._thread = threading.Thread(target=self._fit_forever, daemon=True)
        if fits:
            self._thread.start()

    def submit(self, events: Sequence[Event]) -> list[str]:
        """Save and apply events, and say what each did; an event whose id was seen before is not applied again."""
        if len(events) > MAX_EVENTS:
            raise InputError(f"at most {MAX_EVENTS} events can be saved at once, but there are {len(events)}.")
        with self.lock:
            return [self._submit(event) for event in events]

    def _submit(self, event: Event) -> str:
        if not isinstance(event, Mapping):
            raise InputError("an event must be an object.")
        if not isinstance(event.get("id"), str | None):
            raise InputError(f"the id of an event must be a text, but is {event['id']!r}.")
        if event.get("id") in self._seen:
            return ""
        self.state.check(event)
        event = self._with_copies(event)
        self.log.append({**event, "at": round(time.time(), 3)})
        title = self.state.apply(event)
        self._remember(event)
        if event["op"] in _LABELS:
            if event["op"] not in ("decide", "clear") and self._fitted is not None:
                self.proposals = self._fitted.follow(self.state)
            self._pending += 1
            self._last = time.monotonic()
            self._wake.notify_all()
        self.revision += 1
        return title

    def _with_copies(self, event: Event) -> Event:
        """Decide documents with the same text together: those without a decision, and those with the same one."""
        if event["op"] != "decide" or event.get("how") == "file":
            return event
        codes, copies = self.state.codes(), self.documents.copies
        more = {int(c) for row in event["rows"] for c in copies(row) if codes[c] in (UNDECIDED, codes[row])}
        return {**event, "rows": sorted(more.union(event["rows"]))}

    def _remember(self, event: Event) -> None:
        if isinstance(event.get("id"), str):
            self._seen[event["id"]] = None
            if len(self._seen) > MAX_IDS:
                del self._seen[next(iter(self._seen))]

    def labels(self) -> Labels:
        """Copy the labels for a fit."""
        with self.lock:
            return Labels.of(self.state, self.documents.group, self.documents.hints)

    def fit_now(self) -> None:
        """Fit the present labels and plan the queue; what fails is in the status, and the last proposals stay."""
        with self.lock:
            self._pending, self.status = 0, "Learning from your decisions."
        labels, found, planned, points, problem = self.labels(), self._fitted, self.planned, self.points, ""
        changed = found is not None and tuple(labels.leaves) != found.classes
        try:
            found = propose(self.documents.X, labels, None if changed else found, n_jobs=1)
        except Exception as error:  # such as class sizes that cannot be met
            problem = f"The last fit failed: {error or type(error).__name__}"
        try:
            planned, points = self._plan(found, labels), self._place(found)
        except Exception as error:
            problem = problem or f"The last fit failed: {error or type(error).__name__}"
        with self.lock:
            self._fitted, self.planned, self.points, self.status = found, planned, points, problem or "Up to date."
            self.proposals = None if found is None else found.follow(self.state)
            if found is not None and found.surprise is not None and not problem:
                self.curve = [point for point in self.curve if point[0] < labels.n]
                self.curve.append((labels.n, found.error))
            self.revision += 1

    def _plan(self, proposals: Proposals | None, labels: Labels) -> list[int]:
        """Choose the documents to ask about next; typical and diverse ones while nothing could be fitted."""
        rows = np.flatnonzero((labels.codes == UNDECIDED) & ~self.state.skipped)
        Z = self.documents.vectors
        p = None if proposals is None else proposals.probabilities[rows]
        X, seed = self.documents.X[rows], int(labels.codes.size)
        chosen = rows[spread_rows(p, Z[rows], N_QUEUE, Z[labels.codes >= 0], X=X, seed=seed)]
        return [int(row) for row in chosen]

    def _place(self, proposals: Proposals | None) -> Array:
        """Place all documents on a map (n, 2), by classes if they are known."""
        if proposals is not None:
            return place_points(np.log(np.maximum(proposals.probabilities, 1e-6)), self.documents.X)
        Z = np.pad(self.documents.vectors, ((0, 0), (0, 3)))[:, 1:3]
        return np.asarray(Z / max(float(np.abs(Z).max(initial=0.0)), 1e-9))

    def _fit_forever(self) -> None:
        while True:
            with self._wake:
                while not self._stopped and not self._is_due():
                    self._wake.wait(FIT_SECONDS / 3 if self._pending else None)
                if self._stopped:
                    return
            self.fit_now()

    def _is_due(self) -> bool:
        waited = time.monotonic() - self._last >= FIT_SECONDS
        return self._pending >= FIT_AFTER or (self._pending > 0 and waited)

    def queue(self, n: int, without: Sequence[int] = ()) -> list[tuple[int, bool]]:
        """Return the next documents, and whether each is random; skipped ones come when all others are decided."""
        with self.lock:
            is_open = (self.state.codes() == UNDECIDED) & ~self.state.skipped
            if not is_open.any():
                is_open = self.state.codes() == UNDECIDED
            for shown in without:
                if 0 <= shown < is_open.size:
                    is_open[self.documents.copies(shown)] = False
            chosen, drawn = iter(self.planned), iter(self._random.tolist())
            n_done = int(np.count_nonzero((self.state.how == RANDOM) | (self.state.how == HOW.index("queue"))))
        found: list[tuple[int, bool]] = []
        for place in range(n):
            is_random = (n_done + len(without) + place) % RANDOM_EVERY == RANDOM_EVERY - 1
            row = None if is_random else next((r for r in chosen if is_open[r]), None)
            is_random = row is None
            row = next((r for r in drawn if is_open[r]), None) if row is None else row
            if row is None:
                break
            found.append((row, is_random))
            is_open[self.documents.copies(row)] = False
        return found

    def summary(self) -> dict[str, Any]:
        """Everything that is always in sight."""
        with self.lock:
            state, proposals = self.state, self.proposals
            codes = state.codes()
            undecided, here = codes == UNDECIDED, state.decided != UNDECIDED
            n_undecided, n_decided = int(np.count_nonzero(undecided)), int(np.count_nonzero(here))
            accuracy = None if proposals is None else estimate_accuracy(proposals.surprise, 1.0 - proposals.error)
            gain, group = expected_gain(self.curve), self.documents.group
            n_single = np.unique(group[here & np.isin(state.how, SINGLE)]).size
            classes = self._classes(codes, undecided)
            questions = "" if accuracy is None else open_questions(accuracy, classes)
            stop = n_undecided > 0 and not pays(n_single, accuracy, gain, questions)
            n_random = np.unique(group[here & (state.how == RANDOM)]).size
            text = "" if accuracy is None and n_undecided else advice(n_undecided, gain, stop=stop, questions=questions)
            return {
                "name": self.documents.name,
                "is_short": self.documents.is_short,
                "has_guesses": self.documents.hints.guesses is not None,
                "n": state.n_rows,
                "n_decided": n_decided,
                "n_given": int(np.count_nonzero(codes >= 0)) - int(np.count_nonzero(here & (codes >= 0))),
                "n_undecided": n_undecided,
                "n_random": n_random,
                "n_until_accuracy": RANDOM_EVERY * max(MIN_RANDOM - n_random, 0),
                "accuracy": None if accuracy is None else accuracy.__dict__,
                "gain": gain,
                "stop": stop,
                "advice": text,
                "status": self.status if not self._pending or self.status.startswith("Learn") else UPDATE_SOON,
                "revision": self.revision,
                "undo": state.undoable[-1].title if state.undoable else None,
                "redo": state.redoable[-1].title if state.redoable else None,
                "classes": classes,
            }

    def _classes(self, codes: Array, undecided: Array) -> list[dict[str, Any]]:
        """Every class with its numbers of decisions and proposals, and its believed size as rows.

        They are sorted by name; `place` is the order in which they appeared, which new classes do not change.
        """
        state, p = self.state, self.proposals
        decided = np.bincount(codes[codes >= 0], minlength=len(state.names) + 1)
        index = {} if p is None else {name: k for k, name in enumerate(p.classes)}
        proposed = np.zeros(1) if p is None else np.bincount(p.label[undecided], minlength=len(p.classes))
        found = []
        for name in state.classes:
            k = index.get(name)
            rows = None if k is None or p is None else (p.sizes[:, k] * undecided.sum()).round().astype(int).tolist()
            numbers = {
                "decided": int(decided[state.names.index(name)]),
                "proposed": 0 if k is None else int(proposed[k]),
                "place": state.names.index(name),
            }
            found.append({"name": name, **numbers, "believed": rows, "size": state.sizes.get(name)})
        return found

    def close(self) -> None:
        """Stop fitting and let other processes open the log."""
        with self._wake:
            self._stopped = True
            self._wake.notify_all()
        if self._thread.is_alive():
            self._thread.join(timeout=30)
        self.log.close()
