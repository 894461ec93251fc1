"""Fit a classifier to a table with some labels: given labels come back unchanged, others meet the class sizes."""

import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from transduce.cli.dask_cluster import fit_on_cluster
from transduce.cli.device import fit_on_device
from transduce.cli.empty_rows import empty_rows_note, rows_without_values, what_lacks
from transduce.cli.errors import InputError
from transduce.cli.evidence_options import SUSPICION, fit_evidence, is_filled_in
from transduce.cli.features import read_vectors, unit_rows
from transduce.cli.features.encoding import encoding_of
from transduce.cli.fit_messages import describe_error, describe_unexpected, describe_warning
from transduce.cli.formats import texts_of, unused_name
from transduce.cli.label_task import LabelTask
from transduce.cli.predictions import make_predictions
from transduce.cli.prior_options import library_prior, rows_text
from transduce.cli.progress import Progress
from transduce.cli.provenance import describe_fit
from transduce.cli.results import ResultNames, add_results
from transduce.cli.validation.prior_checks import is_mistaken_percent
from transduce.estimators import TransductiveClassifier
from transduce.features.embeddings import fit_vectors
from transduce.features.encoders import EncoderError
from transduce.features.pretrained import local_encoder
from transduce.features.text_rows import TextRows, fit_texts
from transduce.features.tfidf import Vectorizer
from transduce.features.training_rows import digest_training_rows, row_contents
from transduce.history import HistoryRow
from transduce.model_file import Model, make_model
from transduce.parallel import effective_n_jobs
from transduce.solvers.plan import FitPlan
from transduce.words_share import choose_share

UNLABELED = ""
NOT_RANDOM = (
    "the labels do not look like a random sample of the rows, so class sizes were estimated from the texts. If they "
    "are one, pass --labels-are random."
)
NOT_RANDOM_OR_WRONG = (
    "the labels do not look like a random sample of rows with these class sizes. Check the sizes; if they are right "
    "and the labels are a random sample, pass --labels-are random."
)

ROUGHLY = 1.5
"""The supervised classifier finds class sizes to about this factor."""


@dataclass(frozen=True, eq=False)
class LabelResult:
    """The model, the table with its results, the names of their columns, the feature rows, and how the fit ended.

    `ending` is empty if the fit converged.
    """

    model: Model
    frame: pl.DataFrame
    names: ResultNames
    X: Any
    ending: str


def label_rows(task: LabelTask, options: Mapping[str, Any], progress: Progress) -> LabelResult:
    """Label the rows of a table that have no label yet; `options` are those of the command line."""
    start = time.perf_counter()
    clf, y = _classifier(task, options), _labels(task)
    vectorizer, X, choice = _features(task, y, clf, options, progress)
    unlabeled = task.codes < 0
    n_unlabeled, tree = int(unlabeled.sum()), " in a tree" if task.parsed.tree else ""
    classes = f"{len(task.parsed.classes)} classes{tree}, {_features_text(vectorizer, X.shape[1])}."
    progress.say(f"{unlabeled.size - n_unlabeled} labelled rows, {n_unlabeled} to label, {classes}")
    is_empty = rows_without_values(X)
    progress.say(*_row_notes(task, is_empty, vectorizer.features.kind))
    progress.start_fit(
        FitPlan.create(n_unlabeled, len(task.parsed.classes), clf.annealing, not sparse.issparse(X), _threads(options))
    )
    evidence = fit_evidence(task.table, task.text, options, progress)
    clf = _fit(clf, task, X, y, options, progress, evidence)
    model = make_model(clf, task.parsed.classes, vectorizer, {}, tree=task.parsed.tree)
    unpriced = model.scores(X) - model.shift
    labels = task.parsed.encode(name or None for name in clf.transduction_.tolist())
    own, column = unpriced.argmax(axis=1), unused_name(SUSPICION, task.table.frame.columns)
    if "guesses" in evidence:  # a guess that decided is not overruled by class sizes
        own = np.where(evidence["guesses"] == clf.transduction_, labels, own)
    predictions = make_predictions(labels, clf.label_distributions_, own)
    about = describe_fit(clf, task, options["flat"], labels, unpriced)
    contents = row_contents(texts_of(task.table, task.text) if task.text else (), X, vectorizer.features.kind)
    about |= {
        "labelled_rows": digest_training_rows(contents, task.parsed.full),
        "n_empty": int(np.count_nonzero(is_empty & unlabeled)),
    }
    about |= {} if choice is None else {"choice": str(choice)}
    about |= {} if options.get("guess") is None else {"guess": options["guess"], "suspicion": column}
    model = replace(model, about={**about, "seconds": round(time.perf_counter() - start, 3)})
    in_place = task.label if is_filled_in(task.label, options) else None
    labeled = predictions, task.parsed.full, in_place, task.origin
    frame, names = add_results(task.table.frame, task.text, task.parsed.classes, *labeled)
    if "guesses" in evidence:
        n_wrong, n_guesses = np.count_nonzero(clf.suspicion_), np.count_nonzero(evidence["guesses"][unlabeled] != "")
        progress.say(f"{n_wrong} of {n_guesses} guesses look wrong; column {column!r} says how clearly.")
        shown = np.where(clf.suspicion_ > 0, np.maximum(clf.suspicion_, 0.001), 0.0)  # as far as it is rounded
        frame = frame.with_columns(pl.Series(column, np.round(shown, 3)))
    return LabelResult(model, frame, names, X, describe_unexpected(clf._status))


def _features(
    task: LabelTask, y: NDArray[Any], clf: TransductiveClassifier, options: Mapping[str, Any], progress: Progress
) -> TextRows:
    """Feature rows, from texts or from vectors that were computed before; says what `--features auto` chose."""
    table, vectors = task.table, options["vectors"]
    if table.vectors is not None or vectors is not None:
        X = unit_rows(table.vectors, table.name) if vectors is None else read_vectors(vectors, table)
        return TextRows(*fit_vectors(X))
    texts = texts_of(table, task.text).to_list()
    progress.say(f"Reading {len(texts)} texts.")
    kind = options["features"]
    if kind is None:
        kind = "tfidf" if options["encoder"] is None and local_encoder() is None else "auto"
    try:
        with encoding_of(options, progress) as encoding:
            choose = partial(choose_share, y=y, estimator=clf)
            rows = fit_texts(texts, kind, encoding, options["ngrams"], options["words_share"], choose)
    except EncoderError:
        raise
    except InputError as error:
        columns = ", ".join(map(repr, task.text))
        raise InputError(f"column {columns} of {table.name} cannot be used as text: {error}") from None
    if rows.choice is not None:
        progress.say(f"{rows.choice}")
    return rows


def _features_text(vectorizer: Vectorizer, n_columns: int) -> str:
    """How many features there are, in words."""
    kind, n_words = vectorizer.features.kind, len(vectorizer.vocabulary)
    if kind == "hashing":
        return f"words hashed to {n_columns} numbers"
    words = f"{n_words} different words{' and pairs of words' if vectorizer.features.ngrams == 2 else ''}"
    numbers = f"{n_columns - n_words} numbers per text"
    return {"tfidf": words, "mix": f"{words} and {numbers}"}.get(kind, numbers)


def _row_notes(task: LabelTask, is_empty: NDArray[np.bool_], kind: str) -> Iterator[str]:
    """Say where there is nothing to label, or nothing to label rows by; `is_empty` (n,): rows without features."""
    unlabeled, lack = task.codes < 0, what_lacks(kind, "word that occurs in enough texts")
    if not unlabeled.any():
        advice = f"If {task.label!r} is not the column of labels, name another with --label."
        yield f"Note: every row of {task.table.name} has a label, so there is nothing to label. {advice}"
    or_none = "" if task.none is None else ", or none by --none"
    guess = f"its label is a guess by class size{or_none}", f"their labels are guesses by class size{or_none}"
    yield from empty_rows_note(is_empty, unlabeled, task.table, "rows to label", lack, guess)
    useless = "nothing is learnt from it", "nothing is learnt from them"
    yield from empty_rows_note(is_empty, ~unlabeled, task.table, "labelled rows", lack, useless)


def _labels(task: LabelTask) -> NDArray[Any]:
    """Class names, sets of them for partial labels, and "" for rows without a label."""
    y = np.array([UNLABELED if label is None else label for label in task.parsed.full], dtype=object)
    for row, candidates in task.parsed.partial.items():
        y[row] = candidates
    return y


def _fit(
    clf: TransductiveClassifier,
    task: LabelTask,
    X: Any,
    y: NDArray[Any],
    options: Mapping[str, Any],
    progress: Progress,
    evidence: Mapping[str, Any],
) -> TransductiveClassifier:
    """Fit the classifier on class names, and report its warnings."""
    folder, cluster = options.get("checkpoint"), (options.get("dask"), options.get("workers"))
    resuming = []  # said in the first round: before it, the fit may refuse the checkpoint
    if folder is not None and any(Path(folder).glob("*.stage")):
        resuming.append(f"Resuming the fit from the checkpoint {folder}.")

    def show_round(row: HistoryRow) -> None:
        progress.say(*resuming)
        resuming.clear()
        progress.show_round(row)

    clf.set_params(verbose=show_round)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")  # numpy's warnings, about which a user can do nothing
        warnings.simplefilter("always", UserWarning)
        try:
            clf = _fitted(clf, X, y, task.sampled, cluster, options.get("device"), evidence)
        except InputError:
            raise
        except MemoryError as error:
            if not str(error):
                raise  # the command line says what to do
            raise InputError(str(error)) from None
        except ValueError as error:
            raise InputError(describe_error(error, task.table.name)) from None
    progress.say(*resuming, *(f"Note: {note}" for note in map(describe_warning, caught) if note is not None))
    progress.say(*_percent_notes(task, clf))
    if clf._contradicted:
        progress.say(f"Note: {NOT_RANDOM if isinstance(task.prior, str) else NOT_RANDOM_OR_WRONG}")
    return clf


def _threads(options: Mapping[str, Any]) -> int:
    """Threads that anneal: a device runs restarts one after another, and for a cluster all cores anneal the sample."""
    if options.get("device"):
        return 1
    on_cluster = options.get("dask") or options.get("workers")
    return effective_n_jobs(None if on_cluster else options["jobs"])


def _percent_notes(task: LabelTask, clf: TransductiveClassifier) -> Iterator[str]:
    """Ask whether a number of rows was meant as per cents, where the supervised classifier suggests so."""
    if not clf.prior_diagnostics_.needs_supervised:
        return
    of_classes = clf.prior_diagnostics_.predicted[: len(task.parsed.classes)].tolist()  # branches follow
    for name, predicted in zip(task.parsed.classes, of_classes, strict=True):
        rows = task.plain_rows.get(name, 0.0)
        if is_mistaken_percent(rows, task.n_unlabeled, predicted / ROUGHLY, predicted * ROUGHLY):
            stated = f"--prior {name}={rows:g} is {rows_text(rows, rows, task.n_unlabeled)}"
            suggested = f"the supervised classifier gives it {predicted:.0%}"
            yield f"Note: {stated}, but {suggested}. Did you mean {rows:g}%? Then label again with {name}={rows:g}%."


def _classifier(task: LabelTask, options: Mapping[str, Any]) -> TransductiveClassifier:
    return TransductiveClassifier(
        options["loss"],
        alpha="auto" if options["alpha"] is None else options["alpha"],
        class_prior=library_prior(task.prior, task.parsed.classes),
        taxonomy=task.parsed.taxonomy,
        annealing=None if options["annealing"] == "none" else options["annealing"],
        random_state=options["seed"],
        n_jobs=options["jobs"],
        checkpoint=options.get("checkpoint"),
        unlabeled=UNLABELED,
        estimate_accuracy=not options["no_accuracy"],
        outlier_fraction=None if task.none is None else tuple(rows / task.n_unlabeled for rows in task.none),
    )


def _fitted(
    clf: TransductiveClassifier,
    X: Any,
    y: NDArray[Any],
    sampled: NDArray[np.bool_] | None,
    cluster: tuple[str | None, int | None],
    device: str | None,
    evidence: Mapping[str, Any],
) -> TransductiveClassifier:
    if device is not None:
        return fit_on_device(clf, X, y, device, sampled)
    if cluster == (None, None):
        return clf.fit(X, y, sampled=sampled, **evidence)
    is_sample = None if sampled is None else bool(sampled.all())  # over Dask the same holds for all rows
    return fit_on_cluster(clf, X, y, *cluster, sampled=is_sample)
