"""transduce labels a pile of documents from labels for a few of them and the size of each class.

The public names, all of them:

    TransductiveClassifier             a scikit-learn classifier from labelled and unlabelled rows together
    Taxonomy                           classes in a tree
    solve_labels                       the cheapest labels for given class sizes, optimal, with a certificate
    RuledOut                           an entry of y: labels that a row does not have
    PriorWarning                       class sizes and labels disagree

    EntropyRegularizedClassifier       the methods that the paper compares itself with, for any number of classes
    ExpectationConstrainedClassifier
    ExpectationRegularizedClassifier
    PosteriorRegularizedClassifier

and, one module down, `transduce.label_step` (the label steps as objects), `transduce.losses`, `transduce.class_prior.bounds`,
`transduce.datasets` (the built-in corpus), `transduce.model_selection` (choosing alpha without being fooled),
`transduce.plots`, and `transduce.testing` (what any semi-supervised classifier should do).
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transduce.baselines import (
        EntropyRegularizedClassifier,
        ExpectationConstrainedClassifier,
        ExpectationRegularizedClassifier,
        PosteriorRegularizedClassifier,
    )
    from transduce.errors import PriorWarning
    from transduce.estimators import TransductiveClassifier
    from transduce.label_step import solve_labels
    from transduce.labels.partial import RuledOut
    from transduce.taxonomy import Taxonomy

__all__ = [
    "EntropyRegularizedClassifier",
    "ExpectationConstrainedClassifier",
    "ExpectationRegularizedClassifier",
    "PosteriorRegularizedClassifier",
    "PriorWarning",
    "RuledOut",
    "Taxonomy",
    "TransductiveClassifier",
    "solve_labels",
]
__version__ = "0.1.0"

_MODULE_OF = {
    "EntropyRegularizedClassifier": "baselines",
    "ExpectationConstrainedClassifier": "baselines",
    "ExpectationRegularizedClassifier": "baselines",
    "PosteriorRegularizedClassifier": "baselines",
    "PriorWarning": "errors",
    "RuledOut": "labels.partial",
    "Taxonomy": "taxonomy",
    "TransductiveClassifier": "estimators",
    "solve_labels": "label_step",
}
_MODULES = ("class_prior", "datasets", "label_step", "losses", "model_selection", "plots", "testing")


def __getattr__(name: str) -> object:
    """Import a public name when it is first used, so that `transduce --help` needs no numerical package."""
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES, "__version__"})
