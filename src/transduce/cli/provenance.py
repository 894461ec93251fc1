"""What a model file says about the table that it was fitted to, and the class sizes that were stated for it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import transduce
from transduce import provenance
from transduce.class_prior.spec import UNKNOWN
from transduce.cli.fit_messages import describe_status
from transduce.cli.label_task import LabelTask
from transduce.cli.none_option import fraction_left
from transduce.estimators import TransductiveClassifier


def describe_fit(
    clf: TransductiveClassifier, task: LabelTask, flat: bool, labels: NDArray[np.int64], scores: NDArray[Any]
) -> dict[str, Any]:
    """Everything but the time that it took; labels (n,) and scores (n, K) are those of `provenance.describe_fit`."""
    about = provenance.describe_fit(clf, task.parsed.classes, task.codes, labels, scores, task.none)
    sizes = _with_stated(about["sizes"], task)
    return about | {
        "transduce": transduce.__version__,
        "ending": describe_status(clf._status),
        "source": Path(task.table.name).name,
        "prior": task.describe_prior(contradicted=clf._contradicted),
        "settings": {**about["settings"], "flat": flat, "text": list(task.text), "label": task.label},
        "sizes": sizes,
        **({"accuracy": about["accuracy"] | _answered(task)} if "accuracy" in about else {}),
        **({"branches": branches} if (branches := _branch_sizes(task, sizes)) else {}),
    }


def _answered(task: LabelTask) -> dict[str, int]:
    """How many of the hidden labels are answers to a queue or a review, and no random sample, if any."""
    if task.sampled is None:
        return {}
    counts = np.bincount(task.codes[task.codes >= 0], minlength=len(task.parsed.classes))
    was_hidden = (task.codes >= 0) & (counts[task.codes] > 1)  # the only label of a class never is
    n_answered = int(np.count_nonzero(task.answered & ~task.sampled & was_hidden))
    return {"n_answered": n_answered} if n_answered else {}


def _with_stated(sizes: Sequence[Mapping[str, Any]], task: LabelTask) -> list[dict[str, Any]]:
    """Sizes of classes with what the user stated: whether there was anything, and rough sizes in rows."""
    prior = {} if isinstance(task.prior, str) else task.prior
    found = [{**size, "stated": prior.get(size["class"], UNKNOWN).is_known} for size in sizes]
    for k in np.flatnonzero(task.statement.is_rough[: len(sizes)]).tolist():
        found[k]["rough"] = fraction_left(task.none, task.n_unlabeled) * float(task.statement.low[k])
    return found


def _branch_sizes(task: LabelTask, sizes: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """For every branch with a stated size: rows asked for, and the sums over its classes."""
    n_rows = task.n_unlabeled
    stated, left = task.statement, fraction_left(task.none, n_rows)
    bounds = stated.hard_bounds if task.none is None else stated.hard_bounds.with_outliers(n_rows, *task.none)
    limits = {}
    if bounds.groups is not None:
        limits = dict(zip(bounds.groups.names, zip(bounds.groups.low, bounds.groups.high, strict=True), strict=True))
    found = []
    for node in range(len(sizes), len(stated.names)):
        name, inside = stated.names[node], [sizes[k] for k in np.flatnonzero(stated.members[node]).tolist()]
        low, high = limits.get(name, (0, n_rows))
        sums = {key: sum(one[key] for one in inside) for key in ("labelled", "assigned", "own")}
        rough = {"rough": left * float(stated.low[node])} if stated.is_rough[node] else {}
        found.append({"branch": name, **sums, "asked_low": int(low), "asked_high": int(high), **rough})
    return found
