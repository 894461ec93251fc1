"""Fit a tagger to a file of sequences with some labels, and describe the fit for its model file."""

import math
import time
import warnings
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

import transduce
from transduce.cli.errors import InputError
from transduce.cli.fit_messages import describe_warning
from transduce.cli.progress import Progress
from transduce.cli.tagging.corpus import Corpus
from transduce.cli.tagging.evaluation import sequence_contents
from transduce.cli.tagging.results import Tagging
from transduce.cli.tagging.statements import Counts, check_counts, choose_scheme, statement_errors
from transduce.features.training_rows import digest_training_rows
from transduce.history import FitStatus, HistoryRow
from transduce.labels.partial import RuledOut, names_in
from transduce.sequences import TransductiveTagger
from transduce.sequences.sizes import token_bounds
from transduce.sequences.training import cooling
from transduce.solvers.schedule import PAPER
from transduce.suggest import number_of


class StagePlan:
    """How much of a fit is done, by its stages."""

    def __init__(self, annealing: str) -> None:
        self.n_stages = {"soft": len(cooling(1.0)), "paper": len(PAPER)}.get(annealing, 1)
        self.fraction = 0.0

    def add(self, row: HistoryRow) -> None:
        """Count a round; the fraction never falls."""
        self.fraction = max(self.fraction, min(1.0, row.stage / self.n_stages))


def fit_tagger(
    corpus: Corpus, counts: Counts, options: Mapping[str, Any], progress: Progress
) -> tuple[Tagging, dict[str, Any]]:
    """Label all tokens of a corpus; return the labels, and what the model file says about the fit."""
    start, n_labeled = time.perf_counter(), sum(corpus.is_labeled)
    entries = (entry for entries in corpus.given for entry in entries if entry is not None)
    known = {name for entry in entries if not isinstance(entry, RuledOut) for name in names_in(entry)}
    if len(known) < 2:
        raise InputError(f"{corpus.name} must have at least two labels, but has {len(known)}. Label a few sequences.")
    corpus.layout.check_names(known)
    scheme, notes = choose_scheme(corpus, known, options["scheme"])
    check_counts(counts, known, scheme)
    n_other, n_tokens = len(corpus.tokens) - n_labeled, sum(map(len, corpus.tokens))
    sequences = f"{number_of(n_labeled, 'labelled sequence')} and {number_of(n_other, 'other')}"
    labels = number_of(len(known), "label") + ("" if scheme is None else f" in the {scheme} scheme")
    progress.say(f"{sequences}, {number_of(n_tokens, 'token')}, {labels}.", *notes)
    tagger = _tagger(counts, scheme, options).set_params(verbose=progress.show_round)
    progress.start_fit(StagePlan(options["annealing"]))
    with warnings.catch_warnings(record=True) as caught, statement_errors():
        warnings.simplefilter("ignore")  # numpy's warnings, about which a user can do nothing
        warnings.simplefilter("always", UserWarning)
        tagger.fit(corpus.tokens, corpus.given)
    progress.say(*(f"Note: {note}" for note in map(describe_warning, caught) if note is not None))
    tagging = Tagging.create(corpus, tagger, tagger.transduction_, tagger.marginals_)
    return tagging, {**_about(tagging, options), "seconds": round(time.perf_counter() - start, 3)}


def _tagger(counts: Counts, scheme: str | None, options: Mapping[str, Any]) -> TransductiveTagger:
    return TransductiveTagger(
        loss=options["loss"],
        alpha="auto" if options["alpha"] is None else options["alpha"],
        label_prior=counts[0] or "labeled",
        block_prior=counts[1] or None,
        constraints=options["constraint"],
        scheme=scheme,
        annealing=None if options["annealing"] == "none" else options["annealing"],
        random_state=options["seed"],
        n_jobs=options["jobs"],
    )


def _about(tagging: Tagging, options: Mapping[str, Any]) -> dict[str, Any]:
    tagger, corpus = tagging.tagger, tagging.corpus
    settings = {key: options[key] for key in ("text", "label", "loss", "annealing", "seed")}
    return {
        "transduce": transduce.__version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "source": Path(corpus.name).name,
        "n_labelled": sum(corpus.is_labeled),
        "n_unlabelled": len(corpus.tokens) - sum(corpus.is_labeled),
        "n_tokens": sum(map(len, corpus.tokens)),
        "n_broken": len(tagging.broken),
        "objective": float(tagger.objective_),
        "gap": float(tagger.gap_) if math.isfinite(tagger.gap_) else None,  # a count was not met
        "ending": tagger.termination_condition_,
        "interrupted": tagger.termination_condition_ == FitStatus.INTERRUPTED.value,
        "counts": _counts(tagging),
        "labelled_rows": digest_training_rows(*sequence_contents(corpus)),
        "settings": {"format": corpus.format, "alpha": float(tagger.alpha_), **settings},
    }


def _counts(tagging: Tagging) -> list[dict[str, Any]]:
    """For each label: labelled tokens, and of the others those asked for and assigned."""
    tagger, (given, new) = tagging.tagger, tagging.counts
    names = tagger.classes_.tolist()
    code = {name: k for k, name in enumerate(names)}
    codes = np.array([code.get(entry, -1) if isinstance(entry, str) else -1 for entry in chain(*tagging.corpus.given)])
    tree, n_new = token_bounds(tagger.label_prior, tagger.classes_, codes), new.total()
    found = []
    for k, name in enumerate(names):
        low, high = (0, n_new) if tree is None else (int(tree.low[k]), int(min(tree.high[k], n_new)))
        about = {} if tree is None or not tree.believed[k] else {"rough": float(tree.belief.mean[k])}
        sizes = {"labelled": given[name], "asked_low": low, "asked_high": high, "assigned": new[name], **about}
        found.append({"label": name, **sizes, "price": float(tagger.prices_[k])})
    return found
