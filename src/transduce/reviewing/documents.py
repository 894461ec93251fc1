"""Documents of a review: texts, feature rows, copies of the same text, clusters and neighbours."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.cluster import MiniBatchKMeans

from transduce.arrays import Array
from transduce.reviewing.hints import NO_HINTS, Hints
from transduce.selection import reduce_rows

SHORT_TEXT = 250
MAX_CLUSTERS, CLUSTER_ROWS = 60, 40
"""Most clusters, and documents that a cluster has on average if there are fewer."""


@dataclass(eq=False)
class Documents:
    """Texts with their feature rows, sparse or dense, of length 1.

    vocabulary  words of the first columns of X; empty where these are not words
    name        what the page calls the documents
    hints       what class names or guesses say about them
    """

    texts: list[str]
    X: Any
    vocabulary: Sequence[str] = ()
    name: str = "documents"
    hints: Hints = NO_HINTS

    @cached_property
    def _lowered(self) -> list[str]:
        return [text.casefold() for text in self.texts]

    @property
    def n(self) -> int:
        """Number of documents."""
        return len(self.texts)

    @cached_property
    def is_short(self) -> bool:
        """Whether nine in ten texts fit a few lines."""
        return bool(self.n and np.quantile([len(text) for text in self.texts], 0.9) < SHORT_TEXT)

    @cached_property
    def group(self) -> Array:
        """Number (n,) of the distinct text of each document; spaces and case make no difference."""
        first: dict[str, int] = {}
        texts = (" ".join(text.casefold().split()) for text in self.texts)
        return np.array([first.setdefault(text, len(first)) for text in texts], dtype=np.int64)

    @cached_property
    def _by_group(self) -> tuple[Array, Array]:
        order = np.argsort(self.group, kind="stable")
        return order, np.searchsorted(self.group[order], np.arange(self.group.max(initial=-1) + 2))

    def copies(self, row: int) -> Array:
        """Rows with the same text as this one, itself included."""
        order, start = self._by_group
        return order[start[self.group[row]] : start[self.group[row] + 1]]

    @cached_property
    def vectors(self) -> Array:
        """Dense rows (n, d) of few dimensions, for clusters and for the queue."""
        return reduce_rows(self.X)

    @cached_property
    def cluster(self) -> Array:
        """Cluster (n,) of each document."""
        k = int(np.clip(self.n // CLUSTER_ROWS, 1, MAX_CLUSTERS))
        found = MiniBatchKMeans(k, n_init=1, random_state=0, batch_size=2048).fit(self.vectors)
        return np.asarray(found.labels_)

    def similarity(self, row: int) -> Array:
        """Cosine of a document with all."""
        x = self.X[[row]]
        return np.asarray(self.X @ (x.toarray() if sparse.issparse(x) else x).ravel(), dtype=np.float64)

    def containing(self, query: str) -> Array:
        """Whether each text (n,) contains all words of a query; "in quotes" for a phrase."""
        parts = query.casefold().strip()
        phrase = len(parts) > 2 and parts[0] == parts[-1] == '"'
        words = [parts[1:-1]] if phrase else parts.split()
        found = np.ones(self.n, bool)
        for word in words:
            found &= np.array([word in text for text in self._lowered], bool)
        return found
