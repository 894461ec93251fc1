"""What the page shows of a session: cards of documents, filtered lists, the map, and class sizes that are tried out."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from transduce.arrays import Array
from transduce.class_prior.spec import read_prior
from transduce.errors import InputError
from transduce.reviewing.proposals import Proposals, explain_words, relabel
from transduce.reviewing.session import Session
from transduce.reviewing.state import HOW, UNDECIDED

MAX_LIST, MAX_POINTS, MAX_TEXT, MAX_SELECTIONS = 100, 4000, 20_000, 50
N_NEIGHBOURS, MAX_NEAR = 2, 2000
STATUSES = ("all", "undecided", "decided", "skipped", "noted")


class Views:
    """Read-only views of a session; the rows of the last selections are remembered for bulk decisions."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._selections: OrderedDict[str, Array] = OrderedDict()
        self._n_selections = 0

    def card(self, row: int, *, is_random: bool = False, explain: bool = True) -> dict[str, Any]:
        """Everything about one document."""
        session, documents = self.session, self.session.documents
        if not 0 <= row < documents.n:
            raise InputError(f"documents are numbered from 0 to {documents.n - 1}, but this is {row}.")
        with session.lock:
            state, p = session.state, session.proposals
            code = int(state.codes()[row])
            found: dict[str, Any] = {
                "row": row,
                "text": documents.texts[row][:MAX_TEXT],
                "random": is_random,
                "decision": None if code == UNDECIDED else {"label": state.names[code] if code >= 0 else None},
                "of_file": bool(state.decided[row] == UNDECIDED and code >= 0),
                "note": state.notes.get(row, ""),
                "copies": int(documents.copies(row).size) - 1,
                "guess": documents.hints.guesses_now(state, row) if documents.hints.guesses is not None else "",
            }
            if p is None:
                return found
            k, second = int(p.label[row]), int(p.runner_up[row])
            found["proposed"] = {"label": p.classes[k], "confidence": float(p.confidence[row])}
            found["runner_up"] = {"label": p.classes[second], "confidence": float(p.probabilities[row, second])}
            found["overruled"] = bool(p.overruled[row])
            if explain:
                found["words"] = explain_words(p, documents.X[[row]], k, documents.vocabulary)
                found["near"] = self._nearest_labeled(row)
            return found

    def queue(self, n: int, without: Sequence[int] = ()) -> list[dict[str, Any]]:
        """Cards of the next documents."""
        return [self.card(row, is_random=random) for row, random in self.session.queue(min(n, MAX_LIST), without)]

    def _nearest_labeled(self, row: int) -> list[dict[str, Any]]:
        state = self.session.state
        codes = state.codes()
        cosines = np.where(codes >= 0, self.session.documents.similarity(row), 0.0)
        cosines[row] = 0.0
        best, texts = np.argpartition(-cosines, range(min(N_NEIGHBOURS, cosines.size))), self.session.documents.texts
        found = [row for row in best[:N_NEIGHBOURS].tolist() if cosines[row] > 0]
        return [{"row": row, "label": state.names[codes[row]], "text": texts[row][:300]} for row in found]

    def select(self, filter: Mapping[str, Any]) -> tuple[str, Array]:
        """Return rows that meet a filter, the nearest or least sure first, and a name to refer to them."""
        contains = self.session.documents.containing(str(filter.get("query") or ""))  # slow: not while others wait
        with self.session.lock:
            keep, order = self._filtered(filter)
        rows = np.flatnonzero(keep & contains)
        rows = rows[np.argsort(order[rows], kind="stable")] if order is not None else rows
        if filter.get("near") is not None:
            rows = rows[: min(max(int(_number(filter, "k", 50)), 0), MAX_NEAR)]
        self._n_selections += 1
        name = f"s{self._n_selections}"
        self._selections[name] = rows
        if len(self._selections) > MAX_SELECTIONS:
            self._selections.popitem(last=False)
        return name, rows

    def selected(self, name: object) -> Array:
        """Rows of a selection."""
        if name not in self._selections:
            raise InputError("this selection is too old. Select the documents again.")
        return self._selections[str(name)]

    def _filtered(self, filter: Mapping[str, Any]) -> tuple[Array, Array | None]:
        state, p, documents = self.session.state, self.session.proposals, self.session.documents
        codes = state.codes()
        keep, order = _by_status(str(filter.get("status", "undecided")), state, codes), None
        if filter.get("cluster") is not None:
            keep = keep & (documents.cluster == int(_number(filter, "cluster", 0)))
        if filter.get("label"):
            keep = keep & self._of_class(str(filter["label"]), codes)
        if p is not None:
            low, high = _number(filter, "low", 0.0), _number(filter, "high", 1.0)
            keep = keep & ((p.confidence >= low) & (p.confidence <= high) | (codes != UNDECIDED))
            keep = keep & p.overruled if filter.get("overruled") else keep
            keep = keep & self._unlike_guess(p, codes) if filter.get("unlike_guess") else keep
            order = p.confidence
        if filter.get("near") is not None:
            order = -documents.similarity(int(_number(filter, "near", 0)))
        if filter.get("polygon"):
            keep = keep & self._in_polygon(filter["polygon"])
        return keep, order

    def _unlike_guess(self, p: Proposals, codes: Array) -> Array:
        """Documents whose decision, else proposal, differs from their guess."""
        state, hints = self.session.state, self.session.documents.hints
        if hints.guesses is None:
            raise InputError("there are no guesses to compare with. Name their column with --guess.")
        guesses, names = hints.guesses_now(state), np.array([*state.names, "", ""], object)
        label = np.where(codes == UNDECIDED, np.array(p.classes, object)[p.label], names[codes])
        return np.asarray((guesses != "") & (guesses != label))

    def _of_class(self, name: str, codes: Array) -> Array:
        """Documents decided or proposed to be of a class or below it."""
        state, p = self.session.state, self.session.proposals
        inside = [each == name or each.startswith(f"{name}/") for each in [*state.names, ""]]
        found = (codes >= 0) & np.array(inside)[codes]
        if p is not None:
            of = np.array([each == name or each.startswith(f"{name}/") for each in p.classes])
            found |= (codes == UNDECIDED) & of[p.label]
        return np.asarray(found)

    def page(self, filter: Mapping[str, Any], offset: int = 0, n: int = 20) -> dict[str, Any]:
        """One page of the documents that meet a filter; with `selection`, of those selected before."""
        if filter.get("selection") is not None:
            name, rows = str(filter["selection"]), self.selected(filter["selection"])
        else:
            name, rows = self.select(filter)
        shown = rows[max(offset, 0) : max(offset, 0) + min(n, MAX_LIST)].tolist()
        with self.session.lock:
            cards = [self.card(row, explain=False) for row in shown]
        sample = np.random.default_rng(len(rows)).permutation(rows)[:12].tolist() if offset == 0 else []
        texts = [self.session.documents.texts[row][:200] for row in sample]
        return {"selection": name, "total": int(rows.size), "documents": cards, "sample": texts}

    def bulk_event(self, selection: object, label: object, how: object) -> dict[str, Any]:
        """Return the event that decides all documents of a selection that have no decision yet."""
        rows = self.selected(selection)
        with self.session.lock:
            rows = rows[self.session.state.codes()[rows] == UNDECIDED]
        if not rows.size:
            raise InputError("none of these documents is undecided.")
        return {"op": "decide", "rows": rows.tolist(), "label": label, "how": how if how in HOW[4:] else "bulk"}

    def clusters(self) -> list[dict[str, Any]]:
        """Clusters with their numbers of undecided documents, and the text nearest to the middle of each."""
        documents = self.session.documents
        cluster, Z = documents.cluster, documents.vectors
        with self.session.lock:
            is_open = self.session.state.codes() == UNDECIDED
        found = []
        for number in range(int(cluster.max(initial=-1)) + 1):
            rows = np.flatnonzero((cluster == number) & is_open)
            if rows.size:
                middle = rows[int((Z[rows] @ Z[rows].mean(axis=0)).argmax())]
                found.append({"cluster": number, "n": int(rows.size), "text": documents.texts[middle][:120]})
        return sorted(found, key=lambda one: -int(one["n"]))

    def points(self) -> dict[str, Any]:
        """Points of at most MAX_POINTS documents: places from -1 to 1, numbers of the classes, and whether decided."""
        session = self.session
        points = session.points
        shown = np.sort(np.random.default_rng(0).permutation(len(points))[:MAX_POINTS])
        with session.lock:
            codes, p = session.state.codes()[shown], session.proposals
            names = session.state.classes
            index = {name: k for k, name in enumerate(names)}
            of_state = [index.get(name, -1) for name in session.state.names]
            of_fit = [] if p is None else [index.get(name, -1) for name in p.classes]
            label = [of_state[c] if c >= 0 else (of_fit[p.label[r]] if p and c == UNDECIDED else -1)
                     for c, r in zip(codes.tolist(), shown.tolist(), strict=True)]  # fmt: skip
        places = points[shown].round(3).T.tolist()
        decided = (codes != UNDECIDED).tolist()
        return {"classes": names, "x": places[0], "y": places[1], "label": label, "decided": decided}

    def _in_polygon(self, polygon: Any) -> Array:
        """Whether each document (n,) is inside a polygon of places on the map, by the rule of even and odd."""
        corners = np.asarray(polygon, dtype=np.float64)
        is_list = corners.ndim == 2 and corners.shape[1] == 2 and 3 <= len(corners) <= 2000
        if not is_list or not np.isfinite(corners).all():
            raise InputError("a lasso must have 3 to 2000 corners, each with two numbers.")
        x, y = self.session.points.T
        inside = np.zeros(x.size, bool)
        for (x1, y1), (x2, y2) in zip(corners, np.roll(corners, 1, axis=0), strict=True):
            if y1 != y2:
                inside ^= ((y1 > y) != (y2 > y)) & (x < (x2 - x1) * (y - y1) / (y2 - y1) + x1)
        return inside

    def preview_sizes(self, sizes: Mapping[str, str]) -> dict[str, Any]:
        """Return how many proposals these class sizes would change, and how many each class would have."""
        p = self.session.proposals
        if p is None:
            raise InputError("class sizes can be tried out once two classes have decisions.")
        read_prior(dict(sizes)) if sizes else None
        labels = self.session.labels()
        used = {name: size for name, size in sizes.items() if name in labels.used}
        label, undecided = relabel(p, labels, used), labels.codes == UNDECIDED
        counts = np.bincount(label[undecided], minlength=len(p.classes)).tolist()
        changed = np.flatnonzero((label != p.label) & undecided)
        return {"changed": int(changed.size), "counts": dict(zip(p.classes, counts, strict=True))}


def _by_status(status: str, state: Any, codes: Array) -> Array:
    if status not in STATUSES:
        raise InputError(f"status must be one of {', '.join(STATUSES)}, but is {status!r}.")
    if status == "noted":
        found = np.zeros(codes.size, bool)
        found[list(state.notes)] = True
        return found
    masks = {"undecided": codes == UNDECIDED, "decided": codes != UNDECIDED, "skipped": state.skipped}
    return np.asarray(masks.get(status, np.ones(codes.size, bool)))


def _number(filter: Mapping[str, Any], key: str, default: float) -> float:
    value = filter.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
        raise InputError(f"{key} must be a number, but is {value!r}.")
    return float(value)
