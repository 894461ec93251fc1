"""A small model and its results as `build_report` takes them."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl

from transduce.cli.results import ResultNames

HISTORY = [
    {"restart": restart, "stage": stage, "objective": 1.0 / (stage + 1) + restart, "moved": 90 - 40 * stage}
    | {"seconds": 0.1 * stage, "temperature": 0.0, "weight": 1.0}
    for restart in (0, 1)
    for stage in (0, 1, 2)
]


def example_names(text: Sequence[str] = ("text",), given: str | None = "given") -> ResultNames:
    return ResultNames(tuple(text), "label", "confidence", "runner_up", "overruled", given)


def example_model(
    classes: Sequence[str], tree: bool = False, vocabulary: Sequence[str] = ("one", "two"), **about: Any
) -> Any:
    """Return a stand-in with the attributes of a model that a report reads; class k has 10 + k rows."""
    rng = np.random.default_rng(0)
    sizes = [
        {"class": name, "labelled": 2, "asked_low": 10 + k, "asked_high": 10 + k, "assigned": 10 + k, "own": 9 + k}
        | {"texts_low": 0.01, "texts_high": 0.02, "price": 0.0}
        for k, name in enumerate(classes)
    ]
    known = {
        **{
            "transduce": "0.1.0",
            "created": "2001-02-03T04:05:06",
            "source": "documents.csv",
            "seed": 0,
            "seconds": 4.2,
        },
        **{"settings": {"loss": "hinge", "features": {"kind": "tfidf"}}, "n_labelled": 2 * len(classes)},
        **{"n_unlabelled": sum(size["assigned"] for size in sizes), "prior": "All class sizes were stated."},
        **{"ending": "Converged.", "interrupted": False, "sizes": sizes, "history": HISTORY},
    }
    return SimpleNamespace(
        classes=tuple(classes),
        coef=rng.normal(size=(len(classes), len(vocabulary))),
        vectorizer=SimpleNamespace(vocabulary=tuple(vocabulary)),
        tree=tree,
        about=known | about,
    )


def example_results(classes: Sequence[str], texts: Sequence[str], column: str = "text") -> pl.DataFrame:
    """Return labels in turn with increasing confidence; every fifth label is given and every third overruled."""
    rows = np.arange(len(texts))
    given = rows % 5 == 4
    return pl.DataFrame(
        {
            column: list(texts),
            "label": [classes[i % len(classes)] for i in rows],
            "confidence": np.where(given, 1.0, 0.1 + 0.8 * rows / max(len(texts), 1)),
            "runner_up": [classes[(i + 1) % len(classes)] for i in rows],
            "overruled": (rows % 3 == 0) & ~given,
            "given": given,
        },
        schema_overrides={column: pl.String},
    )
