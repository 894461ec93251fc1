"""Fit a classifier to a table with some labels: labels for all its rows, a model, and what the report needs.

Given labels come back unchanged; the others meet the stated class sizes.
"""

import time
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from transduce.cli.dask_cluster import fit_on_cluster
from transduce.cli.errors import InputError
from transduce.cli.features import Features, Vectorizer, fit_vectorizer, read_vectors, unit_rows
from transduce.cli.fit_messages import describe_label_error, describe_prior_error, describe_warning
from transduce.cli.formats import texts_of
from transduce.cli.label_task import LabelSettings, LabelTask, library_prior
from transduce.cli.model_file import Model
from transduce.cli.progress import Progress
from transduce.cli.provenance import branch_sizes, class_sizes, describe_fit
from transduce.cli.results import ResultNames, add_results, make_predictions
from transduce.errors import LabelError, PriorError
from transduce.estimators import TransductiveClassifier

Array = NDArray[Any]

ALPHAS = {"hinge": 1e-3, "squared_hinge": 1e-3, "maxent": 1e-4}
UNLABELED = ""


@dataclass(frozen=True, eq=False)
class LabelResult:
    """The model, the table with its results, the names of their columns, and the feature rows."""

    model: Model
    frame: pl.DataFrame
    names: ResultNames
    X: Any

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C stopped the fit."""
        return bool(self.model.about["interrupted"])


def label_rows(task: LabelTask, settings: LabelSettings, progress: Progress) -> LabelResult:
    """Label the rows of a table that have no label yet."""
    start = time.perf_counter()
    codes = task.codes
    vectorizer, X = _features(task, settings, progress)
    n_labeled, tree = int((codes >= 0).sum()), "" if task.taxonomy is None else " in a tree"
    progress.say(
        f"{n_labeled} labelled rows, {codes.size - n_labeled} to label, {len(task.classes)} classes{tree}, "
        f"{X.shape[1]} features."
    )
    clf = _fit(task, X, settings, progress)
    model = _model(clf, task, vectorizer, settings)
    unpriced = model.scores(X) - model.shift
    index = {name: k for k, name in enumerate(task.classes)}
    labels = np.array([index[name] for name in clf.transduction_.tolist()], dtype=np.int64)
    predictions = make_predictions(labels, clf.label_distributions_, unpriced.argmax(axis=1))
    probabilities = model.probabilities(unpriced[codes < 0])
    sizes = class_sizes(
        task.classes, codes, clf.bounds_, predictions, probabilities, clf.prices_, unstated=task.unstated
    )
    about = {**describe_fit(clf), **_describe_task(task, settings, float(clf.alpha)), "sizes": sizes}
    if task.bounds.groups is not None and not isinstance(task.prior, str):
        about["branches"] = branch_sizes(task.bounds.groups, sizes, task.prior)
    model = replace(model, about={**about, "seconds": round(time.perf_counter() - start, 3)})
    in_place = task.label if task.label == "label" else None
    frame, names = add_results(task.table.frame, task.text, task.classes, predictions, task.parsed.full, in_place)
    return LabelResult(model, frame, names, X)


def _features(task: LabelTask, settings: LabelSettings, progress: Progress) -> tuple[Vectorizer, Any]:
    """Vectorizer and feature rows, from texts or from vectors that were computed before."""
    table = task.table
    if table.vectors is None and settings.vectors is None:
        texts = texts_of(table, task.text).to_list()
        progress.say(f"Reading {len(texts)} texts.")
        try:
            return fit_vectorizer(texts, settings.features, settings.n_jobs)
        except InputError as error:
            columns = ", ".join(map(repr, task.text))
            raise InputError(f"column {columns} of {table.name} cannot be used as text: {error}") from None
    X: Any = unit_rows(table.vectors, table.name) if settings.vectors is None else read_vectors(settings.vectors, table)
    features = Features(kind="vectors", n_features=X.shape[1])
    return Vectorizer(features, (), np.zeros(0, np.float32)), X


def _fit(task: LabelTask, X: Any, settings: LabelSettings, progress: Progress) -> TransductiveClassifier:
    """Fit the classifier on class names, and report its warnings."""
    clf = TransductiveClassifier(
        settings.loss,
        alpha=ALPHAS[settings.loss] if settings.alpha is None else settings.alpha,
        class_prior=library_prior(task.prior, task.classes),
        taxonomy=task.taxonomy,
        annealing=settings.annealing,
        random_state=settings.seed,
        n_jobs=settings.n_jobs,
        verbose=progress.show_round,
        checkpoint=settings.checkpoint,
        unlabeled=UNLABELED,
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")  # numpy's warnings, about which a user can do nothing
        warnings.simplefilter("always", UserWarning)
        try:
            if settings.dask is None and settings.workers is None:
                clf.fit(X, _target(task))
            else:
                clf = fit_on_cluster(clf, X, _target(task), settings.dask, settings.workers)
        except PriorError as error:
            raise InputError(describe_prior_error(error)) from None
        except LabelError as error:
            raise InputError(describe_label_error(error, task.table.name)) from None
        except ValueError as error:
            raise InputError(f"{task.table.name} cannot be labelled: {error}") from None
    progress.say(*(f"Note: {note}" for note in map(describe_warning, caught) if note is not None))
    return clf


def _target(task: LabelTask) -> Array:
    """The class name of each row, "" for an unlabelled row and a set of candidates for a partial label."""
    y = np.array([UNLABELED if label is None else label for label in task.parsed.full], dtype=object)
    for row, candidates in task.parsed.partial.items():
        y[row] = candidates
    return y


def _model(clf: TransductiveClassifier, task: LabelTask, vectorizer: Vectorizer, settings: LabelSettings) -> Model:
    """The fitted classifier with one row of weights for each class, also where there are two classes."""
    coef, intercept = clf.coef_, clf.intercept_
    shift = np.asarray(clf.price_shift_, dtype=intercept.dtype)
    if len(task.classes) == 2:
        coef, intercept = np.vstack((-coef / 2, coef / 2)), np.concatenate((-intercept / 2, intercept / 2))
        shift = shift - shift.mean()
    return Model(task.classes, coef, intercept, shift, vectorizer, task.taxonomy is not None, settings.loss, {})


def _describe_task(task: LabelTask, settings: LabelSettings, alpha: float) -> dict[str, Any]:
    n_labeled = int((task.codes >= 0).sum())
    return {
        "source": Path(task.table.name).name,
        "seed": settings.seed,
        "n_labelled": n_labeled,
        "n_unlabelled": task.codes.size - n_labeled,
        "prior": task.prior_source,
        "settings": {
            "loss": settings.loss,
            "alpha": alpha,
            "annealing": settings.annealing,
            "flat": settings.flat,
            "text": list(task.text),
            "label": task.label,
        },
    }
