"""Proposals: what a fit on the present decisions says about every document, and why.

Documents of none of the classes take no part. A decision for an inner node of a tree is a partial label. Without two
classes that have labels or hints there is nothing to fit, and `propose` returns None.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from transduce.arrays import Array
from transduce.class_prior.proportions import are_balanced_by_design
from transduce.class_prior.resolve import ResolvedPrior
from transduce.label_step import solve_labels
from transduce.provenance import class_weights
from transduce.reviewing.estimates import MIN_RANDOM
from transduce.reviewing.hints import NO_HINTS, Hints, rows_of
from transduce.reviewing.state import HOW, NO_CLASS, RANDOM, SINGLE, UNDECIDED, ReviewState
from transduce.reviewing.warm_start import Start, WarmClassifier
from transduce.taxonomy import Taxonomy

MIN_SAMPLE = 50
"""Random labels from which class sizes are estimated."""
STOP_WORDS = ENGLISH_STOP_WORDS | {"did", "does", "doing", "don"}
MIN_WEIGHT = 0.15
"""Weight of a word that explains a proposal, as a part of that of the first one."""
GROWTH = 1.25
"""A fit starts from nothing again when labels, or random ones, grew or fell by this factor since the last such fit."""


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels of all documents at one moment, as the state has them.

    codes  (n,) classes as numbers, UNDECIDED or NO_CLASS
    how    (n,) how the decided documents were chosen; 0 for labels of the file, and "bulk" for copies of a text
    names  names of the classes
    sizes  class sizes that were edited
    n      number of texts that a person labelled one by one
    named  classes that hints name, and what the hints say
    """

    codes: Array
    how: Array
    names: Sequence[str]
    sizes: Mapping[str, str]
    n: int = 0
    named: tuple[str, ...] = ()
    evidence: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, state: ReviewState, group: Array, hints: Hints = NO_HINTS) -> Self:
        """Copy the labels of a state; documents (n,) of one group have the same text, which counts once."""
        codes, how = state.codes(), np.where(state.decided == UNDECIDED, 0, state.how)
        single = np.flatnonzero(np.isin(how, SINGLE))
        first = single[np.unique(group[single], return_index=True)[1]]
        how[np.setdiff1d(single, first)] = HOW.index("bulk")
        by_hand = group[(codes >= 0) & np.isin(how, (0, *SINGLE, HOW.index("file")))]
        found = cls(codes, how, list(state.names), dict(state.sizes), np.unique(by_hand).size)
        named = replace(found, named=tuple(dict.fromkeys(state.name_now(name) for name in hints.names)))
        evidence = hints.arguments(state, named.leaves)
        return replace(named, evidence=evidence) if evidence else found

    @cached_property
    def used(self) -> list[str]:
        """Names of the classes that have labels or hints, sorted."""
        return sorted({self.names[k] for k in np.unique(self.codes[self.codes >= 0]).tolist()}.union(self.named))

    @cached_property
    def leaves(self) -> list[str]:
        """Those without another one below them: the classes of a fit."""
        inner = {name[:end] for name in self.used for end, letter in enumerate(name) if letter == "/"}
        return [name for name in self.used if name not in inner]

    @property
    def taxonomy(self) -> Taxonomy | None:
        """Tree of the leaves, None if no two of them share a branch."""
        tops = [name.split("/")[0] for name in self.leaves if "/" in name]
        return Taxonomy.create(self.leaves) if len(set(tops)) < len(tops) else None

    def targets(self) -> Array:
        """Labels (n,) as a classifier takes them: "" without one, sets for inner nodes."""
        leaves = self.leaves
        below = {name: {leaf for leaf in leaves if f"{leaf}/".startswith(f"{name}/")} for name in self.used}
        values: list[Any] = [frozenset(below[n]) if n in below and n not in self.leaves else n for n in self.names]
        values.append("")
        y = np.empty(self.codes.size, object)
        y[:] = [values[k] if k >= 0 else "" for k in self.codes.tolist()]
        return y

    def sampled(self) -> Array:
        """Which labels are a random sample (n,): random documents, and labels of the file unless equal by design.

        A few of them say less about class sizes than the texts do, so fewer than MIN_SAMPLE count as none.
        """
        of_file = (self.codes >= 0) & (self.how == 0)
        counts = np.bincount(self.codes[of_file], minlength=1)
        is_sample = of_file.any() and not are_balanced_by_design(counts[counts > 0])
        found = (self.how == RANDOM) | (of_file & is_sample)
        return found if np.count_nonzero(found) >= MIN_SAMPLE else np.zeros_like(found)


@dataclass(frozen=True, eq=False)
class Proposals:
    """What a fit says about every document.

    classes        names of the classes (K,)
    probabilities  (n, K) float32
    label          (n,) class of each document
    overruled      (n,) whether class sizes overruled the best score
    numbers        numbers of the classes in the state
    n_labels       labels that the fit had, and those of the last fit from nothing
    n_random       random labels of the last fit from nothing
    surprise       (n,) for random documents, by a fit that did not see the label: 1 if it was predicted, else 0, less
                   the confidence in the prediction; NaN for all others; None if no label was hidden
    sizes          estimated class sizes as fractions, with the ends of 90 % intervals (3, K)
    error          estimated fraction of wrong labels among documents without one, by calibrated confidence
    coef           (K, d) weights and (K,) intercepts, for words that explain a proposal and for other documents
    """

    classes: tuple[str, ...]
    probabilities: Array
    label: Array
    overruled: Array
    numbers: tuple[int, ...]
    n_labels: tuple[int, int]
    n_random: int
    surprise: Array | None
    sizes: Array
    error: float
    coef: tuple[Array, Array]
    start: Start | None

    @cached_property
    def confidence(self) -> Array:
        """Probability (n,) of the proposed class."""
        return np.asarray(np.take_along_axis(self.probabilities, self.label[:, None], axis=1)[:, 0])

    @cached_property
    def runner_up(self) -> Array:
        """The most probable class (n,) beside the proposed one."""
        others = self.probabilities.copy()
        np.put_along_axis(others, self.label[:, None], -1.0, axis=1)
        return np.asarray(others.argmax(axis=1))

    def follow(self, state: ReviewState) -> "Proposals":
        """These proposals after classes were renamed or merged, until the next fit."""
        n = len(state.names)
        names = [state.names[state.merged[k]] if k < n else "" for k in self.numbers]
        names = [new or old for new, old in zip(names, self.classes, strict=True)]
        if names == list(self.classes):
            return self
        classes = list(dict.fromkeys(names))
        if len(classes) == len(names):
            return replace(self, classes=tuple(names), start=None)
        to, first = [classes.index(name) for name in names], [names.index(name) for name in classes]
        merge = np.eye(len(classes), dtype=np.float32)[to]
        numbers, coef = tuple(self.numbers[k] for k in first), (self.coef[0][first], self.coef[1][first])
        found = replace(self, classes=tuple(classes), numbers=numbers, coef=coef, sizes=self.sizes @ merge, start=None)
        return replace(found, probabilities=self.probabilities @ merge, label=np.array(to)[self.label])


def propose(X: Any, labels: Labels, earlier: Proposals | None = None, n_jobs: int | None = None) -> Proposals | None:
    """Fit the labels, from an earlier fit if that is close; None if fewer than two classes have labels or hints."""
    if len(labels.leaves) < 2:
        return None
    used = np.flatnonzero(labels.codes != NO_CLASS)
    y, sampled = labels.targets()[used], labels.sampled()[used]
    n_labels = int(np.count_nonzero(labels.codes >= 0))
    sizes = {name: size for name, size in labels.sizes.items() if name in labels.used}
    clf = WarmClassifier(class_prior=sizes or "estimate", taxonomy=labels.taxonomy, annealing="paper", n_jobs=n_jobs)
    clf.set_params(unlabeled="", random_state=0, estimate_accuracy=True)
    if earlier is not None and _is_close(earlier, n_labels, int(np.count_nonzero(labels.how == RANDOM))):
        clf.start = earlier.start
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf.fit(X[used], y, sampled=sampled, **rows_of(labels.evidence, used))
    return _describe(clf, X, used, labels, n_labels, earlier)


def _is_close(earlier: Proposals, n_labels: int, n_random: int) -> bool:
    """Whether a fit can continue an earlier one; accuracy is estimated by fits from nothing only."""
    most = GROWTH * earlier.n_random if earlier.n_random >= MIN_RANDOM else MIN_RANDOM
    return earlier.n_labels[1] / GROWTH <= n_labels < GROWTH * earlier.n_labels[1] and n_random < most


def _describe(
    clf: WarmClassifier, X: Any, used: Array, labels: Labels, n_labels: int, earlier: Proposals | None
) -> Proposals:
    """Collect what the page needs of a fit."""
    coef, intercept, shift = class_weights(clf)
    scores = np.asarray(X @ coef.T) + intercept
    index = {name: k for k, name in enumerate(clf.classes_.tolist())}
    probabilities = clf.predict_proba(X).astype(np.float32)
    label = scores.argmax(axis=1)
    label[used] = [index.get(name, 0) for name in clf.transduction_.tolist()]
    probabilities[used] = clf.label_distributions_
    is_random, cold = labels.how == RANDOM, earlier if clf._hidden is None and clf.start is not None else None
    sure = np.take_along_axis(probabilities, label[:, None], axis=1)[:, 0]
    surprise = _surprise(clf, labels, used, sure) if cold is None else cold.surprise
    surprise = None if surprise is None else np.where(is_random, surprise, np.nan)
    sure = sure[labels.codes == UNDECIDED]
    return Proposals(
        tuple(index),
        probabilities,
        label,
        (scores - shift).argmax(axis=1) != label,
        tuple(labels.names.index(name) for name in index),
        (n_labels, n_labels if cold is None else cold.n_labels[1]),
        int(np.count_nonzero(is_random)) if cold is None else cold.n_random,
        surprise,
        np.array([clf.size_estimate_.mean, clf.size_estimate_.low, clf.size_estimate_.high]),
        1.0 - float(sure.mean()) if sure.size else 0.0,
        (coef, intercept),
        clf.next_start,
    )


def _surprise(clf: WarmClassifier, labels: Labels, used: Array, confidence: Array) -> Array | None:
    """How much better predictions of hidden labels are than their confidence (n,); NaN without such a prediction.

    No proposal is right for a document of none of the classes, nor for the only label of a class once it is hidden.
    """
    if clf._hidden is None:
        return None
    leaves, hidden = set(labels.leaves), clf._hidden
    full = [row for row in used.tolist() if labels.codes[row] >= 0 and labels.names[labels.codes[row]] in leaves]
    right, found = hidden.predicted.argmax(axis=1) == hidden.labels, np.full(labels.codes.size, np.nan)
    found[full] = np.where(hidden.was_hidden, right - hidden.predicted.max(axis=1), -hidden.confidence)
    is_none = labels.codes == NO_CLASS
    found[is_none] = -confidence[is_none]
    return found


def relabel(proposals: Proposals, labels: Labels, sizes: Mapping[str, str]) -> Array:
    """Return the class (n,) of each document if class sizes were these: the label step at the present probabilities."""
    undecided = labels.codes == UNDECIDED
    index = {name: k for k, name in enumerate(proposals.classes)}
    known = np.array([index.get(labels.names[k], -1) for k in labels.codes[labels.codes >= 0].tolist()], np.int64)
    classes, n_rows = np.array(proposals.classes, object), int(undecided.sum())
    stated = dict(sizes) or "estimate"
    prior = ResolvedPrior.create(stated, classes, known[known >= 0], n_rows, None, labels.taxonomy, None)
    if proposals.start is None or not undecided.any():
        return proposals.label
    bounds = prior.bounds(proposals.start.sizes)
    costs = -np.log(np.maximum(proposals.probabilities[undecided], 1e-6))
    found = proposals.label.copy()
    found[undecided] = solve_labels(costs, (bounds.low, bounds.high), groups=bounds.groups, belief=bounds.belief).labels
    return found


def explain_words(proposals: Proposals, x: Any, k: int, vocabulary: Sequence[str], n: int = 5) -> list[str]:
    """Words of a document that speak most for class k, most telling first; none where features are not words.

    Stop-words, and words that say little beside the first one, explain nothing and are left out.
    """
    if not sparse.issparse(x) or not vocabulary:
        return []
    row = x.tocsr()
    weights = row.data * (proposals.coef[0][k] - proposals.coef[0].mean(axis=0))[row.indices]
    known = [j for j in np.argsort(-weights).tolist() if weights[j] > 0 and row.indices[j] < len(vocabulary)]
    found = [(vocabulary[row.indices[j]], weights[j]) for j in known]
    found = [(word, weight) for word, weight in found if word not in STOP_WORDS]
    return [word for word, weight in found[:n] if weight >= MIN_WEIGHT * found[0][1]]
