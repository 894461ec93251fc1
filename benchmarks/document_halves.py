"""Rows made of halves of real documents, as many as wanted, in any number of classes.

A row has a random half of the words of each of two documents of its class; words are counted, weighted and scaled as
those of 20 newsgroups are.
"""

import gzip
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

from transduce.io.memmap import HEADER, open_rows, pack_rows
from transduce.kernels import allocating_kernel, kernel

CHUNK = 20_000


@dataclass(frozen=True)
class RowsSpec:
    """Rows to generate: number, classes (None for the newsgroups themselves) and size of the vocabulary."""

    data: Path
    cache: Path
    n: int
    seed: int = 0
    n_classes: int | None = None
    pool: float = 0.3
    n_words: int | None = None

    @property
    def folder(self) -> Path:
        classes = "groups" if self.n_classes is None else f"{self.n_classes}-{self.pool:g}"
        return self.cache / f"{self.n}-{classes}-{self.n_words or 'all'}-{self.seed}"


def make_rows(
    folder: Path, n: int, seed: int, cache: Path, n_labels: int = 10, **options: Any
) -> tuple[sparse.csr_matrix, np.ndarray, np.ndarray]:
    """Rows mapped from the cache, generated first if they are missing; their classes; which of them are labelled."""
    spec = RowsSpec(folder, cache, n, seed, **options)
    make_if_missing(spec)
    y = np.load(spec.folder / "classes.npy")
    return open_rows(spec.folder / "store"), y, _labelled(y, n_labels, np.random.default_rng([seed, 1]))


def make_if_missing(spec: RowsSpec) -> None:
    """Generate rows, unless they are in the cache."""
    begin = time.perf_counter()
    if not (spec.folder / "store" / HEADER).exists():
        _make(spec)
        print(f"{spec.n:,} rows generated in {time.perf_counter() - begin:.0f} s", flush=True)


def _make(spec: RowsSpec) -> None:
    counts, groups, idf = _documents(spec.data, spec.cache, spec.n_words)
    rng = np.random.default_rng([spec.seed, spec.n, spec.n_classes or 0])
    if spec.n_classes is None:
        pools = [np.flatnonzero(groups == group) for group in range(groups.max() + 1)]
        y = rng.choice(groups, spec.n)
    else:
        pools = [_pool(np.flatnonzero(groups == c % (groups.max() + 1)), spec.pool, rng) for c in range(spec.n_classes)]
        y = rng.permutation(np.arange(spec.n) % spec.n_classes)
    spec.folder.mkdir(parents=True, exist_ok=True)
    np.save(spec.folder / "classes.npy", y)
    pack_rows(_parts(counts, idf, pools, y, rng), spec.folder / "store")


def _documents(folder: Path, cache: Path, n_words: int | None) -> tuple[sparse.csr_matrix, np.ndarray, np.ndarray]:
    """Counts of the most frequent words in the bodies of 20 newsgroups, the groups, and the idf of each word."""
    cached = cache / "counts.npz"
    if not cached.exists():
        with gzip.open(folder / "20ng_raw" / "docs.jsonl.gz", "rt", encoding="utf-8") as file:
            documents = [json.loads(line) for line in file]
        counts = CountVectorizer(dtype=np.int32).fit_transform(d["text"].split("\n\n", 1)[-1] for d in documents)
        groups = np.unique([d["label"] for d in documents], return_inverse=True)[1]
        cache.mkdir(parents=True, exist_ok=True)
        np.save(cache / "groups.npy", groups)
        counts.sort_indices()
        sparse.save_npz(cache / "part.npz", counts, compressed=False)
        os.replace(cache / "part.npz", cached)
    counts, groups = sparse.load_npz(cached), np.load(cache / "groups.npy")
    frequencies = np.bincount(counts.indices, minlength=counts.shape[1])
    if n_words is not None and n_words < counts.shape[1]:
        common = np.sort(np.argsort(-frequencies, kind="stable")[:n_words])
        counts, frequencies = counts[:, common].tocsr(), frequencies[common]
    idf = 1.0 + np.log((1 + counts.shape[0]) / (1 + frequencies))
    full = np.flatnonzero(np.diff(counts.indptr))
    return counts[full], groups[full], idf.astype(np.float32)


def _pool(documents: np.ndarray, fraction: float, rng: np.random.Generator) -> np.ndarray:
    return np.sort(rng.choice(documents, max(2, round(fraction * documents.size)), replace=False))


def _parts(
    counts: sparse.csr_matrix, idf: np.ndarray, pools: list[np.ndarray], y: np.ndarray, rng: np.random.Generator
) -> Iterator[sparse.csr_matrix]:
    """Generate the rows in chunks."""
    documents, sizes = np.concatenate(pools), np.array([pool.size for pool in pools])
    starts = np.cumsum(sizes) - sizes
    n_tokens = np.asarray(counts.sum(axis=1)).ravel()
    for begin in range(0, y.size, CHUNK):
        classes = y[begin : begin + CHUNK]
        pairs = documents[starts[classes] + (rng.random((2, classes.size)) * sizes[classes]).astype(np.int64)]
        chance = rng.random(int(n_tokens[pairs].sum()), np.float32)
        capacity = int(np.diff(counts.indptr)[pairs].sum())
        data, columns = np.empty(capacity, np.float32), np.empty(capacity, np.int32)
        ends = np.zeros(classes.size + 1, np.int64)
        mix(pairs, counts.data, counts.indices, counts.indptr, idf, chance, data, columns, ends)
        yield sparse.csr_matrix((data[: ends[-1]], columns[: ends[-1]], ends), (classes.size, counts.shape[1]))


@allocating_kernel
def mix(
    pairs: np.ndarray,
    counts: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    idf: np.ndarray,
    chance: np.ndarray,
    data: np.ndarray,
    columns: np.ndarray,
    ends: np.ndarray,
) -> None:
    """Write a row for each pair of documents: half of the words of each, (1 + log tf) · idf, scaled to length 1."""
    size = 0
    for doc in pairs.ravel():
        size = max(size, indptr[doc + 1] - indptr[doc])
    words, tf_half = np.empty((2, size + 1), np.int64), np.empty((2, size + 1), np.int64)
    used, place = 0, 0
    for i in range(pairs.shape[1]):
        for half in range(2):
            used = thin(pairs[half, i], counts, indices, indptr, chance, used, words[half], tf_half[half])
        a, b, begin, square = 0, 0, place, 0.0
        while words[0, a] >= 0 or words[1, b] >= 0:
            here = words[0, a] if words[1, b] < 0 or 0 <= words[0, a] <= words[1, b] else words[1, b]
            tf = 0
            if words[0, a] == here:
                tf, a = tf + tf_half[0, a], a + 1
            if words[1, b] == here:
                tf, b = tf + tf_half[1, b], b + 1
            value = (1.0 + np.log(tf)) * idf[here]
            columns[place], data[place] = here, value
            square += value * value
            place += 1
        for p in range(begin, place):
            data[p] /= np.sqrt(square)
        ends[i + 1] = place


@kernel
def thin(
    doc: int,
    counts: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    chance: np.ndarray,
    used: int,
    words: np.ndarray,
    tf: np.ndarray,
) -> int:
    """Write a uniformly random half of a document's words and their counts; −1 marks the end."""
    left = 0
    for p in range(indptr[doc], indptr[doc + 1]):
        left += counts[p]
    wanted, place = (left + 1) // 2, 0
    for p in range(indptr[doc], indptr[doc + 1]):
        taken = 0
        for _ in range(counts[p]):
            if chance[used] * left < wanted:
                taken, wanted = taken + 1, wanted - 1
            left, used = left - 1, used + 1
        if taken > 0:
            words[place], tf[place] = indices[p], taken
            place += 1
    words[place] = -1
    return used


def _labelled(y: np.ndarray, n_labels: int, rng: np.random.Generator) -> np.ndarray:
    """Choose `n_labels` random rows of each class, but at most half of a class."""
    order = rng.permutation(y.size)
    order = order[np.argsort(y[order], kind="stable")]
    sizes = np.bincount(y)
    rank = np.arange(y.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    labelled = np.zeros(y.size, bool)
    labelled[order] = rank < np.minimum(n_labels, np.maximum(sizes // 2, 1))[y[order]]
    return labelled
