"""Label many documents from labels for a few of them and the class sizes.

Classifiers, which follow scikit-learn's conventions:

    TextClassifier                      learns from labelled and unlabelled texts together
    TransductiveClassifier              the same for rows of numbers
    EntropyRegularizedClassifier        methods for comparison, for any number of classes
    ExpectationConstrainedClassifier
    ExpectationRegularizedClassifier
    PosteriorRegularizedClassifier

Their parts:

    Taxonomy                            hierarchy of classes
    RuledOut                            an entry of y: labels that a row does not have
    PriorWarning                        class sizes disagree with the data
    solve_labels                        the best labels for given costs and class counts, with a certificate
    match_class_sizes                   the likeliest labels that meet class sizes, given probabilities
    ClassSizeAdjuster                   any classifier with probabilities, adjusted to class sizes

People in the loop:

    review                              a review of documents in the browser, from a notebook or a script
    select_rows                         the rows where a person's label would help most

Public modules:

    transduce.label_step                label steps as objects
    transduce.losses                    losses
    transduce.features                  words and vectors of texts: encoders, centring and scaling
    transduce.class_prior               class sizes: what users write, resolved, estimated and checked
    transduce.model_selection           splitters, scorers and searches for partly labelled data
    transduce.datasets                  the built-in corpus
    transduce.sequences                 taggers: labels for the tokens of sequences
    transduce.plots                     plots of class sizes, prices and learning curves
    transduce.testing                   checks for any semi-supervised classifier
    transduce.io.memmap                 features in a memory-mapped file
    transduce.dask                      TransductiveClassifier over a Dask cluster
    transduce.errors                    errors and warnings that carry data
    transduce.warm                      kernels compiled ahead of the first fit
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transduce.baselines import EntropyRegularizedClassifier as EntropyRegularizedClassifier
    from transduce.baselines import ExpectationConstrainedClassifier as ExpectationConstrainedClassifier
    from transduce.baselines import ExpectationRegularizedClassifier as ExpectationRegularizedClassifier
    from transduce.baselines import PosteriorRegularizedClassifier as PosteriorRegularizedClassifier
    from transduce.errors import PriorWarning as PriorWarning
    from transduce.estimators import TransductiveClassifier as TransductiveClassifier
    from transduce.label_step import solve_labels as solve_labels
    from transduce.labels.partial import RuledOut as RuledOut
    from transduce.match_sizes import ClassSizeAdjuster as ClassSizeAdjuster
    from transduce.match_sizes import match_class_sizes as match_class_sizes
    from transduce.reviewing.notebook import review as review
    from transduce.selection import select_rows as select_rows
    from transduce.taxonomy import Taxonomy as Taxonomy
    from transduce.text import TextClassifier as TextClassifier

__version__ = "1.0.0"

_MODULE_OF = {
    "ClassSizeAdjuster": "match_sizes",
    "EntropyRegularizedClassifier": "baselines",
    "ExpectationConstrainedClassifier": "baselines",
    "ExpectationRegularizedClassifier": "baselines",
    "PosteriorRegularizedClassifier": "baselines",
    "PriorWarning": "errors",
    "RuledOut": "labels.partial",
    "Taxonomy": "taxonomy",
    "TextClassifier": "text",
    "TransductiveClassifier": "estimators",
    "match_class_sizes": "match_sizes",
    "review": "reviewing.notebook",
    "select_rows": "selection",
    "solve_labels": "label_step",
}
_MODULES = (
    "class_prior", "dask", "datasets", "errors", "features", "io", "label_step", "losses", "model_selection", "plots",
    "testing", "warm",
)  # fmt: skip

__all__ = [*_MODULE_OF]


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
