"""Requests from the built-in corpus as tables of documents, for tests of the command line."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from transduce.datasets import load_clinc150

DOMAINS = ("auto_and_commute", "banking", "travel")
N_ROWS, N_LABELED = 120, 24


def documents(n_rows: int = N_ROWS, n_labeled: int = N_LABELED, *, paths: bool = False, seed: int = 0) -> pl.DataFrame:
    """Return columns id, text, label (null after the first rows) and truth; three domains, or six intents of two."""
    texts, intents, _ = load_clinc150()
    domain = np.array([path.split("/")[0] for path in intents])
    if paths:
        wanted = [np.unique(intents[domain == name])[:3] for name in DOMAINS[:2]]
        truth, rows = intents, np.flatnonzero(np.isin(intents, np.concatenate(wanted)))
    else:
        truth, rows = domain, np.flatnonzero(np.isin(domain, DOMAINS))
    rows = np.random.default_rng(seed).permutation(rows)[:n_rows]
    right = truth[rows].tolist()
    label = [name if place < n_labeled else None for place, name in enumerate(right)]
    return pl.DataFrame({"id": range(1, n_rows + 1), "text": texts[rows].tolist(), "label": label, "truth": right})


def vectors_of(frame: pl.DataFrame, n_columns: int = 8, seed: int = 0) -> NDArray[np.float32]:
    """Return one vector per row, clustered by class."""
    rng = np.random.default_rng(seed)
    names = frame["truth"].unique().sort().to_list()
    centre = rng.standard_normal((len(names), n_columns))
    noise = rng.standard_normal((frame.height, n_columns))
    return (centre[[names.index(name) for name in frame["truth"]]] + 0.3 * noise).astype(np.float32)
