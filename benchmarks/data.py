"""The paper's data sets from a folder that the user names: features scaled to rows of length 1, labels, and splits.

The folder comes from --data or the environment variable TRANSDUCE_DATA; each set is a folder with X.npz and y.npy.
"""

import gzip
import json
import os
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer, TfidfVectorizer
from sklearn.preprocessing import normalize

from transduce.datasets import load_clinc150

TEXTS = {"dmoz4": "dmoz4_raw", "20ng_raw": "20ng_raw", "r8_text": "r8_text"}
"""Sets of plain text, and their folders; bodies without headers for 20 newsgroups."""
ALREADY_WEIGHTED = {"rcv_mcat", "rcv1_topics", "sector_part", "usps", "mnist"}


def data_folder(option: str | None) -> Path:
    """The folder of data sets, or a clear end of the script."""
    name = option or os.environ.get("TRANSDUCE_DATA")
    if not name or not Path(name).is_dir():
        raise SystemExit("This needs the paper's data sets: pass --data DIR, or set TRANSDUCE_DATA to their folder.")
    return Path(name)


def load(folder: Path, name: str) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Rows of length 1 (tf-idf of counts, other values as they are) and labels."""
    if name == "clinc150":
        texts, labels, _ = load_clinc150()
        domains = np.unique([label.split("/")[0] for label in labels], return_inverse=True)[1]
        return TfidfVectorizer(sublinear_tf=True).fit_transform(texts).tocsr(), domains.astype(np.int64)
    if name in TEXTS:
        return _text_set(folder, name)
    X = sparse.load_npz(folder / name / "X.npz").tocsr().astype(np.float64)
    y = np.load(folder / name / "y.npy").astype(np.int64)
    X = normalize(X) if name in ALREADY_WEIGHTED else TfidfTransformer(sublinear_tf=True).fit_transform(X)
    return X.tocsr(), y


def _text_set(folder: Path, name: str) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Plain texts as tf-idf; labels are the first names of their paths, or the names themselves."""
    with gzip.open(folder / TEXTS[name] / "docs.jsonl.gz", "rt", encoding="utf-8") as file:
        documents = [json.loads(line) for line in file]
    labels = [d["label"][0] if isinstance(d["label"], list) else d["label"] for d in documents]
    texts = [d["text"].split("\n\n", 1)[-1] if name == "20ng_raw" else d["text"] for d in documents]
    X = TfidfVectorizer(sublinear_tf=True).fit_transform(texts).tocsr()
    return X, np.unique(labels, return_inverse=True)[1].astype(np.int64)


def paths_of(folder: Path, name: str) -> list[str]:
    """Paths of the classes of a data set with a hierarchy, joined by "/"."""
    paths = json.loads((folder / name / "hierarchy.json").read_text())["paths"]
    classes = (folder / name / "classes.txt").read_text().split()
    return ["/".join(paths[leaf]) for leaf in classes]


def paper_split(
    y: np.ndarray, n_labeled: int, seed: int, pool: int | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labelled, unlabelled and test rows as in the paper: half unlabelled, a fifth for labels, the rest test."""
    rows = np.random.default_rng(seed).permutation(len(y))
    half, pool = len(y) // 2, len(y) // 5 if pool is None else pool
    return rows[half : half + n_labeled], rows[:half], rows[half + pool :]
