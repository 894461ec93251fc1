"""The built-in corpus: real text with class paths, small enough to ship, always in the same order.

CLINC150 by Larson et al. (EMNLP-IJCNLP 2019), used under CC BY 3.0; `CLINC150.md` beside this file holds the
attribution and says what was changed.
"""

import gzip
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Corpus(NamedTuple):
    """Three arrays of the same length, one entry a document.

    texts   (n,) the documents
    labels  (n,) class paths from the top of the tree, "domain/intent"
    split   (n,) "train", "val" or "test", as published
    """

    texts: NDArray[Any]
    labels: NDArray[np.str_]
    split: NDArray[np.str_]


def load_clinc150() -> Corpus:
    """Load 22 500 requests to a voice assistant: ten domains, fifteen intents each, 150 requests an intent.

    >>> texts, labels, split = load_clinc150()
    >>> len(texts), len(set(labels)), len({label.split("/")[0] for label in labels})
    (22500, 150, 10)
    >>> texts[0], str(labels[0]), str(split[0])
    ('check maps for my location', 'auto_and_commute/current_location', 'train')
    """
    packed = resources.files(__package__).joinpath("clinc150.txt.gz").read_bytes()
    texts: list[str] = []
    labels: list[str] = []
    split: list[str] = []
    label = part = ""
    for line in gzip.decompress(packed).decode("utf-8").splitlines():
        if line.startswith("# "):
            _, label, part = line.split(" ")
        else:
            texts.append(line)
            labels.append(label)
            split.append(part)
    return Corpus(np.array(texts, dtype=object), np.array(labels), np.array(split))
