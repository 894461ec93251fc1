"""transduce labels a pile of documents from labels for a few of them and the size of each class.

The public names, all of them:

    TransductiveClassifier             a scikit-learn classifier from labelled and unlabelled rows together
    Taxonomy                           classes in a tree
    solve_labels                       the cheapest labels for given class sizes, optimal, with a certificate

    EntropyRegularizedClassifier       the methods that the paper compares itself with, for any number of classes
    ExpectationConstrainedClassifier
    ExpectationRegularizedClassifier
    PosteriorRegularizedClassifier

and, one module down, `transduce.label_step` (the label steps as objects), `transduce.losses`, `transduce.counts`,
`transduce.corpora` (the built-in corpus) and `transduce.checks` (what any semi-supervised classifier should do).
"""

from transduce.comparisons import (
    EntropyRegularizedClassifier,
    ExpectationConstrainedClassifier,
    ExpectationRegularizedClassifier,
    PosteriorRegularizedClassifier,
)
from transduce.estimators import TransductiveClassifier
from transduce.label_step import solve_labels
from transduce.taxonomy import Taxonomy

__all__ = [
    "EntropyRegularizedClassifier",
    "ExpectationConstrainedClassifier",
    "ExpectationRegularizedClassifier",
    "PosteriorRegularizedClassifier",
    "Taxonomy",
    "TransductiveClassifier",
    "solve_labels",
]
__version__ = "0.1.0"
