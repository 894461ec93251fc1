"""Data sets of the studies and their splits; the built-in corpus replaces all of them if there is no data folder."""

from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import f1_score

import benchmarks.data
from benchmarks.data import paper_split
from transduce.datasets import load_clinc150

Rows = sparse.csr_matrix | np.ndarray
NEWSGROUPS = ("news20_train", "20ng_raw")
N_SMALL, DOMAINS, INTENTS = 600, 3, 4


class Source(NamedTuple):
    """Where data sets come from: a folder, or None for a small part of the built-in corpus in the place of each."""

    folder: str | None

    def load(self, name: str) -> tuple[Rows, np.ndarray]:
        """Rows of length 1 and classes 0 to K - 1."""
        return _load(self.folder, name)

    def tree(self, name: str) -> list[str]:
        """The path of each class, "top/.../leaf"."""
        if self.folder is None:
            return _small()[2]
        if name in NEWSGROUPS:
            return dotted((Path(self.folder) / name / "classes.txt").read_text().split())
        return benchmarks.data.paths_of(Path(self.folder), name)

    def binary(self, name: str) -> tuple[Rows, np.ndarray]:
        """Rows, and 0 for the first class, 1 for the rest: "gcat", or "comp" for comp.* of 20 newsgroups."""
        if name == "gcat":
            X, y = self.load("rcv1_topics")
            return X, (y == 0).astype(np.int64)
        X, y = self.load("news20_train")
        top = [path.split("/")[0] for path in self.tree("news20_train")]
        first = "comp" if "comp" in top else top[0]
        return X, np.array([branch != first for branch in top], dtype=np.int64)[y]


def dotted(names: list[str]) -> list[str]:
    """Paths of names such as rec.sport.hockey: beginnings that several names share are the nodes above them.

    >>> dotted(["rec.autos", "rec.sport.baseball", "rec.sport.hockey", "alt.atheism"])
    ['rec/rec.autos', 'rec/rec.sport/rec.sport.baseball', 'rec/rec.sport/rec.sport.hockey', 'alt.atheism']
    """
    found = []
    for name in names:
        parts = name.split(".")
        starts = [".".join(parts[:depth]) for depth in range(1, len(parts))]
        shared = [{other for other in names if other.startswith(f"{start}.")} for start in starts]
        nodes = [start for k, start in enumerate(starts) if len(shared[k]) > 1 and shared[k] not in shared[:k]]
        found.append("/".join([*nodes, name]))
    return found


@lru_cache(maxsize=2)
def _load(folder: str | None, name: str) -> tuple[Rows, np.ndarray]:
    return _small()[:2] if folder is None else benchmarks.data.load(Path(folder), name)


@lru_cache(maxsize=1)
def _small() -> tuple[Rows, np.ndarray, list[str]]:
    """A few intents of a few domains, N_SMALL requests in all."""
    texts, labels, _ = load_clinc150()
    paths = np.unique(labels)
    domains = np.unique([path.split("/")[0] for path in paths])[:DOMAINS]
    kept = [path for domain in domains for path in [p for p in paths if p.startswith(f"{domain}/")][:INTENTS]]
    rows = np.concatenate([np.flatnonzero(labels == path)[: N_SMALL // len(kept)] for path in kept])
    X = TfidfVectorizer(sublinear_tf=True).fit_transform(texts[rows]).tocsr()
    return X, np.searchsorted(kept, labels[rows]), kept


class Split:
    """Labelled, unlabelled and test rows of a set, with the class sizes of the unlabelled ones.

    Half of the rows are unlabelled, labels come from a pool of a fifth (or of `pool` rows), the rest is test. Labels
    are drawn at random, or `each` of every class; `names` (K,) are what classes are called, their numbers if left out.
    """

    def __init__(
        self,
        X: Rows,
        y: np.ndarray,
        seed: int,
        n_labeled: int | None = None,
        each: int | None = None,
        n_unlabeled: int | None = None,
        pool: int | None = None,
        names: list[str] | None = None,
    ) -> None:
        n_pool = len(y) // 5 if pool is None else pool
        given, unlabeled, test = paper_split(y, n_pool, seed, n_pool)
        if each is not None:
            given = given[np.sort(np.concatenate([np.flatnonzero(y[given] == k)[:each] for k in np.unique(y)]))]
        labeled, unlabeled = given[:n_labeled], unlabeled[:n_unlabeled]
        self.X_all, self.y_all, self.test = X, y, test
        self.names = np.arange(int(y.max()) + 1) if names is None else np.array(names, dtype=object)
        self.n_labeled, self.labeled, self.unlabeled = len(labeled), labeled, unlabeled
        self.rows = np.concatenate((labeled, unlabeled))
        self.X = X[self.rows]
        self.truth = self.names[y[self.rows]]
        self.given = self.truth[: self.n_labeled]
        missing = None if names is not None else -1
        self.marked = np.concatenate((self.given, np.full(len(unlabeled), missing)))
        self.counts = np.bincount(y[unlabeled], minlength=len(self.names))
        self.sizes = dict(zip(self.names.tolist(), self.counts.tolist(), strict=True))

    def macro_f(self, guesses: np.ndarray) -> float:
        """Mean F of the classes on test rows."""
        truth = self.names[self.y_all[self.test]]
        return float(f1_score(truth, guesses, average="macro", labels=self.names, zero_division=0))

    def predictions(self, model: Any) -> np.ndarray:
        """What a model says of the test rows."""
        return model.predict(self.X_all[self.test])
