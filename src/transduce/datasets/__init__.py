"""The built-in corpus, CLINC150 by Larson et al. (EMNLP-IJCNLP 2019).

It is used under CC BY 3.0; `CLINC150.md` in this folder gives the attribution and lists the changes.
"""

import gzip
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Corpus(NamedTuple):
    """Documents with labels.

    Attributes
    ----------
    texts : ndarray of str objects, shape (n_documents,)
        Documents.
    labels : ndarray of str, shape (n_documents,)
        Class paths such as "banking/transfer".
    split : ndarray of str, shape (n_documents,)
        Published split: "train", "val" or "test".
    """

    texts: NDArray[Any]
    labels: NDArray[np.str_]
    split: NDArray[np.str_]


def load_clinc150() -> Corpus:
    """Load CLINC150: 22 500 requests to a voice assistant in 10 domains with 15 intents each, in a fixed order.

    Returns
    -------
    Corpus
        Texts, labels of the form "domain/intent" and the published split; 150 texts for each intent.

    Examples
    --------
    >>> corpus = load_clinc150()
    >>> len(corpus.texts), len(set(corpus.labels)), len({label.split("/")[0] for label in corpus.labels})
    (22500, 150, 10)
    >>> corpus.texts[0], str(corpus.labels[0]), str(corpus.split[0])
    ('check maps for my location', 'auto_and_commute/current_location', 'train')
    """
    packed = resources.files(__package__).joinpath("clinc150.txt.gz").read_bytes()
    documents: list[tuple[str, str, str]] = []
    label = split = ""
    for line in gzip.decompress(packed).decode("utf-8").splitlines():
        if line.startswith("# "):
            _, label, split = line.split(" ")
        else:
            documents.append((line, label, split))
    texts, labels, splits = zip(*documents, strict=True)
    return Corpus(np.array(texts, dtype=object), np.array(labels), np.array(splits))
