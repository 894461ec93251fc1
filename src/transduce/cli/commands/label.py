"""The main job: from a table with some labels to labels for all its rows, a model, and what the report needs.

Given labels come back unchanged; the others meet the class sizes that were asked for.
"""

import re
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from transduce.class_prior.bounds import Bounds
from transduce.class_prior.diagnostics import PriorWarning, warn_harmful_prior
from transduce.class_prior.proportions import are_balanced_by_design
from transduce.class_prior.resolve import prior_bounds
from transduce.cli.classes import classes_of, paths_of_classes
from transduce.cli.columns import Columns, choose_columns
from transduce.cli.dask_cluster import fit_over_workers
from transduce.cli.errors import InputError
from transduce.cli.features import Features, Vectorizer, fit_vectorizer, read_vectors, unit_rows
from transduce.cli.formats import Table, labels_of, texts_of
from transduce.cli.formats.errors import shown
from transduce.cli.model_file import Model
from transduce.cli.prior_conflicts import ADVICE as CLASH_ADVICE
from transduce.cli.prior_conflicts import BOTH, clash_of
from transduce.cli.prior_options import Prior, Share, complete_prior, is_covered, understood
from transduce.cli.progress import Listener
from transduce.cli.provenance import branches_of, sizes_of, told_by
from transduce.cli.results import ResultNames, Verdict, add_results, judge
from transduce.estimators import TransductiveClassifier
from transduce.taxonomy import Taxonomy

Array = NDArray[Any]

_WORDS = {
    "class_prior": "the prior",
    "counts of classes and groups": "sizes of classes and branches",
    "low count": "low end",
    "high count": "high end",
}
"""What the library calls class sizes, and what the command line does."""
ALPHAS = {"hinge": 1e-3, "squared_hinge": 1e-3, "maxent": 1e-4}


@dataclass(frozen=True)
class LabelSettings:
    """What was asked for; every field has the default that suits most piles."""

    text: tuple[str, ...] = ()
    label: str | None = None
    prior: Mapping[str, Share] = field(default_factory=dict)
    features: Features = field(default_factory=Features)
    vectors: str | None = None
    flat: bool = False
    loss: str = "hinge"
    alpha: float | None = None
    annealing: str | None = "soft"
    seed: int = 0
    n_jobs: int | None = None
    checkpoint: str | None = None
    dask: str | None = None
    workers: int | None = None


@dataclass(frozen=True, eq=False)
class Task:
    """All that is read and checked before the fit; codes (n,) are indices of classes, -1 where there is no label."""

    table: Table
    columns: Columns
    labels: list[str | None]
    classes: tuple[str, ...]
    tree: bool
    codes: NDArray[np.int64]
    open: Mapping[int, frozenset[str]]
    prior: Prior | str
    prior_sentence: str
    bounds: Bounds


@dataclass(frozen=True, eq=False)
class Labelled:
    """What came: the model, the table with its results, their names, the verdict on every row, and feature rows."""

    model: Model
    frame: pl.DataFrame
    names: ResultNames
    verdict: Verdict
    X: Any
    interrupted: bool


def label_table(table: Table, settings: LabelSettings, listener: Listener) -> Labelled:
    """Label the rows of a table that have no label yet."""
    begin = time.perf_counter()
    task = read_task(table, settings, listener)
    vectorizer, X = features_of(table, task.columns, settings, listener)
    n_labelled = int((task.codes >= 0).sum())
    listener.say(
        f"{n_labelled} labelled rows, {task.codes.size - n_labelled} to label, {len(task.classes)} classes"
        f"{' in a tree' if task.tree else ''}, {X.shape[1]} features."
    )
    clf = _fit(task, X, settings, listener)
    model = _model(clf, task, vectorizer, settings)
    own_scores = model.scores(X) - model.shift
    verdict = judge(np.asarray(clf.transduction_), clf.label_distributions_, own_scores.argmax(axis=1))
    own = model.probabilities(own_scores[task.codes < 0])
    unstated = [name for name in task.classes if isinstance(task.prior, str) or task.prior[name] is None]
    sizes = sizes_of(task.classes, task.codes, clf.bounds_, verdict, own, clf.prices_, unstated)
    about = {**told_by(clf), **_asked(task, settings, float(clf.alpha)), "sizes": sizes}
    if task.bounds.groups is not None and not isinstance(task.prior, str):
        about["branches"] = branches_of(task.bounds.groups, sizes, task.prior)
    model = replace(model, about={**about, "seconds": round(time.perf_counter() - begin, 3)})
    in_place = task.columns.label if task.columns.label == "label" else None
    frame, names = add_results(table.frame, task.columns.text, task.classes, verdict, task.labels, in_place)
    return Labelled(model, frame, names, verdict, X, bool(model.about["interrupted"]))


def read_task(table: Table, settings: LabelSettings, listener: Listener) -> Task:
    """Columns, labels, classes and class sizes; what had to be guessed is said."""
    columns = choose_columns(table, settings.text, settings.label, texts=settings.vectors is None)
    for sentence in columns.said:
        listener.say(f"Took it that {sentence}.")
    assert columns.label is not None
    given = labels_of(table, columns.label).to_list()
    named = classes_of(given, f"column {columns.label!r} of {table.name}", flat=settings.flat)
    classes, index = named.classes, {name: k for k, name in enumerate(named.classes)}
    codes = np.array([-1 if label is None else index[label] for label in named.full], dtype=np.int64)
    paths = paths_of_classes(given) if named.tree else []
    is_list = table.frame[columns.label].dtype.is_nested()
    for taken in (*named.said, *(_told_path(name, is_list=is_list) for name in paths[:1])):
        listener.say(shown(f"Took it that {taken}."))
    if named.open:
        listener.say(shown(_told_open(given, named.open)))
    prior, said, sentence = _stated(settings.prior, classes, named.tree, codes)
    for assumption in said:
        listener.say(f"Note: {assumption}.")
    bounds = _bounds(prior, classes, codes, named.tree)
    if not isinstance(prior, str):
        n_rows = int((codes < 0).sum())
        told = _understood(prior, classes, bounds, n_rows)
        if told:
            listener.say(shown(told))
        clash = clash_of(classes, bounds, named.open.values(), n_rows) if named.open else None
        if clash is not None:
            raise InputError(f"{BOTH}: {clash}. {CLASH_ADVICE}.")
    return Task(table, columns, list(named.full), classes, named.tree, codes, named.open, prior, sentence, bounds)


def _understood(prior: Prior, classes: Sequence[str], bounds: Bounds, n_rows: int) -> str:
    """Stated sizes of classes and branches as rows."""
    low, high = (dict(zip(classes, map(int, end), strict=True)) for end in (bounds.low, bounds.high))
    if bounds.groups is not None:
        low |= dict(zip(bounds.groups.names, map(int, bounds.groups.low), strict=True))
        high |= dict(zip(bounds.groups.names, map(int, bounds.groups.high), strict=True))
    return understood({name: share for name, share in prior.items() if name in low}, low, high, n_rows)


def _told_path(name: str, *, is_list: bool) -> str:
    """A path that may have been meant as a set."""
    parts = name.split("/")
    return f'{parts if is_list else repr(name)} is a path; write "{"|".join(parts)}" for one of several'


def _told_open(given: Sequence[str | None], open_rows: Mapping[int, frozenset[str]]) -> str:
    """Partial labels in a sentence, with the first of them."""
    first = min(open_rows)
    meant = ", ".join(sorted(open_rows[first])[:4]) + (" and others" if len(open_rows[first]) > 4 else "")
    return f"Took it that {len(open_rows)} rows are labelled in part: {given[first]} is one of {meant}."


def features_of(table: Table, columns: Columns, settings: LabelSettings, listener: Listener) -> tuple[Vectorizer, Any]:
    """Vectoriser and feature rows: from texts, or vectors that were computed before."""
    if table.vectors is None and settings.vectors is None:
        texts = texts_of(table, columns.text).to_list()
        listener.say(f"Reading words of {len(texts)} texts.")
        try:
            return fit_vectorizer(texts, settings.features, settings.n_jobs)
        except InputError as error:
            names = ", ".join(map(repr, columns.text))
            raise InputError(f"column {names} of {table.name} cannot be used as text: {error}") from None
    X: Any = unit_rows(table.vectors, table.name) if settings.vectors is None else read_vectors(settings.vectors, table)
    features = Features(kind="vectors", n_features=X.shape[1])
    return Vectorizer(features, (), np.zeros(0, np.float32)), X


def _stated(
    prior: Mapping[str, Share], classes: Sequence[str], tree: bool, codes: NDArray[np.int64]
) -> tuple[Prior | str, list[str], str]:
    """The prior for every class, assumptions, and the sentence on where the sizes came from."""
    if prior:
        full, said = complete_prior(prior, classes, tree=tree)
        whole = all(is_covered(name, prior, tree=tree) for name in classes)
        return full, said, "Class sizes were stated." if whole else "Some class sizes were stated."
    if are_balanced_by_design(np.bincount(codes[codes >= 0], minlength=len(classes))):
        assumption = (
            "no class sizes were stated, and the classes have so equal numbers of labels that these say nothing of "
            "sizes, so they are estimated from all rows; state what you know by --prior"
        )
        return "estimate", [assumption], "Class sizes are estimated from all rows: the labels are too even to tell."
    assumption = (
        "no class sizes were stated, so about the shares of the labelled rows are used, as if they had been drawn at "
        "random; state what you know by --prior"
    )
    return "labeled", [assumption], "Class sizes are those of the labelled rows, as if drawn at random."


def _bounds(prior: Prior | str, classes: Sequence[str], codes: NDArray[np.int64], tree: bool) -> Bounds:
    names, taxonomy = np.array(classes, dtype=object), Taxonomy.from_names(classes) if tree else None
    try:
        known = "labeled" if isinstance(prior, str) else prior
        return prior_bounds(known, names, codes[codes >= 0], int((codes < 0).sum()), None, taxonomy)
    except (ValueError, TypeError) as error:
        raise InputError(f"the class sizes cannot be used: {_in_words(error)}") from None


def _fit(task: Task, X: Any, settings: LabelSettings, listener: Listener) -> TransductiveClassifier:
    """Fit on indices of classes; warnings are told as sentences."""
    taxonomy = None
    if task.tree:
        taxonomy = Taxonomy(tuple(range(len(task.classes))), tuple(tuple(name.split("/")) for name in task.classes))
    index: dict[str, Any] = {name: k for k, name in enumerate(task.classes)}
    prior: Any = task.prior
    if not isinstance(task.prior, str):  # a branch is known by its path
        prior = {index.get(name, tuple(name.split("/"))): share for name, share in task.prior.items()}
    clf = TransductiveClassifier(
        settings.loss,
        alpha=ALPHAS[settings.loss] if settings.alpha is None else settings.alpha,
        class_prior=prior,
        taxonomy=taxonomy,
        annealing=settings.annealing,
        random_state=settings.seed,
        n_jobs=settings.n_jobs,
        verbose=listener.round,
        checkpoint=settings.checkpoint,
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")  # numpy's, which a user can do nothing about
        warnings.simplefilter("always", UserWarning)
        try:
            if settings.dask is None and settings.workers is None:
                clf.fit(X, _entries(task, index))
            else:
                clf = fit_over_workers(clf, X, _entries(task, index), settings.dask, settings.workers)
        except ValueError as error:
            if task.open and "cannot be met" in str(error):  # it speaks of numbers of classes
                raise InputError(f"{BOTH}. {CLASH_ADVICE}.") from None
            raise InputError(f"{task.table.name} cannot be labelled: {_in_words(error)}") from None
    for warning in caught:
        listener.say(f"Note: {_mendable(warning, clf, task)}")
    return clf


def _in_words(error: Exception) -> str:
    """A complaint about class sizes without the library's words for them."""
    said = str(error)
    for theirs, ours in _WORDS.items():
        said = said.replace(theirs, ours)
    return said


def _entries(task: Task, index: Mapping[str, int]) -> Array:
    """Labels as indices of classes, -1 where there are none, and sets where several are open."""
    if not task.open:
        return task.codes
    entries = task.codes.astype(object)
    for row, names in task.open.items():
        entries[row] = frozenset(index[name] for name in names)
    return entries


def _mendable(warning: warnings.WarningMessage, clf: TransductiveClassifier, task: Task) -> str:
    """A warning in the words of the command line: names of classes, and options instead of parameters."""
    if not issubclass(warning.category, PriorWarning):
        return str(warning.message).replace("raise max_iter, tol or alpha", "raise --alpha")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_harmful_prior(
            clf.prior_diagnostics_, np.array(task.classes, dtype=object), int((task.codes >= 0).sum()), stacklevel=1
        )
    said = str(caught[0].message if caught else warning.message)
    said = re.sub(r"\(([\d.e-]+), ([\d.e-]+)\) would", r"\1:\2 would", said)
    said = said.replace("class_prior='labeled' goes", "leaving --prior out goes").replace("class_prior", "--prior")
    return shown(said)


def _model(clf: TransductiveClassifier, task: Task, vectorizer: Vectorizer, settings: LabelSettings) -> Model:
    """The fitted classifier with one row of weights a class; two classes share the one that they have."""
    coef, intercept = clf.coef_, clf.intercept_
    shift = np.asarray(clf.price_shift_, dtype=intercept.dtype)
    if len(task.classes) == 2:
        coef, intercept = np.vstack((-coef / 2, coef / 2)), np.concatenate((-intercept / 2, intercept / 2))
        shift = shift - shift.mean()
    return Model(task.classes, coef, intercept, shift, vectorizer, task.tree, settings.loss, {})


def _asked(task: Task, settings: LabelSettings, alpha: float) -> dict[str, Any]:
    """What the fit was asked for."""
    n_labelled = int((task.codes >= 0).sum())
    return {
        "source": Path(task.table.name).name,
        "seed": settings.seed,
        "n_labelled": n_labelled,
        "n_unlabelled": task.codes.size - n_labelled,
        "prior": task.prior_sentence,
        "settings": {
            "loss": settings.loss,
            "alpha": alpha,
            "annealing": settings.annealing,
            "flat": settings.flat,
            "text": list(task.columns.text),
            "label": task.columns.label,
        },
    }
