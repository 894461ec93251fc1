"""Names of the classes of the studies in plain words, and their vectors.

`python -m experiments.encode` writes NAME.names.npy beside the vectors of the texts. Names are what an owner of the
data would write: the labels, with words in place of abbreviations; no name was chosen by results.
"""

import os
from pathlib import Path

import numpy as np

from experiments.data import Source
from experiments.vectors import FOLDER, load
from transduce.datasets import load_clinc150

R8 = (
    "mergers and acquisitions", "crude oil", "earnings", "grain", "interest rates", "money and foreign exchange",
    "shipping", "trade",
)  # fmt: skip
NEWSGROUPS = (
    "atheism", "computer graphics", "Microsoft Windows", "IBM PC hardware", "Apple Macintosh hardware",
    "X Window System", "items for sale", "cars", "motorcycles", "baseball", "hockey", "cryptography", "electronics",
    "medicine", "space", "Christianity", "gun politics", "Middle East politics", "politics", "religion",
)  # fmt: skip
SETS = ("r8_text", "20ng_raw", "clinc150 domains", "clinc150 intents", "dmoz4_raw")
N_EXAMPLES = 3
"""Rows whose mean stands for a name in the built-in corpus without vectors."""


def names_of(name: str) -> list[str]:
    """Names of the classes of a set, in the order of their numbers.

    >>> names_of("dmoz4_raw"), names_of("clinc150 domains")[0]
    (['Computers', 'Health', 'Science', 'Sports'], 'auto and commute')
    """
    if name.startswith("clinc150"):
        paths = sorted({*load_clinc150()[1]})
        found = [path.split("/")[1] for path in paths]
        if name.endswith("domains"):
            found = sorted({path.split("/")[0] for path in paths})
        return [each.replace("_", " ") for each in found]
    return {"r8_text": [*R8], "20ng_raw": [*NEWSGROUPS], "dmoz4_raw": ["Computers", "Health", "Science", "Sports"]}[
        name
    ]


def names_file(name: str) -> str:
    """Name of the file of vectors of the names of a set."""
    return f"{name.replace(' ', '_')}.names.npy"


def load_with_names(source: Source, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Vectors (n, d), classes, and vectors of the class names (K, d), all of length 1."""
    V, y = load(source, name)
    if source.folder is None:
        N = np.array([V[y == k][:N_EXAMPLES].mean(axis=0) for k in range(int(y.max()) + 1)])
    else:
        N = np.load(Path(os.environ[FOLDER]) / names_file(name))
    return V / np.linalg.norm(V, axis=1, keepdims=True), y, N / np.linalg.norm(N, axis=1, keepdims=True)


def lacking_vectors(source: Source, sets: list[str]) -> str | None:
    """Why sets cannot be used: vectors that are not there."""
    folder = os.environ.get(FOLDER)
    lacking = [name for name in sets if not folder or not (Path(folder) / names_file(name)).exists()]
    if source.folder is None or not lacking:
        return None
    return (
        f"This needs vectors of the class names of {', '.join(lacking)}: pass --vectors DIR, or set {FOLDER}. "
        "python -m experiments.encode writes them."
    )
