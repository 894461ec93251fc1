"""TextClassifier: texts to labels, by words, vectors of an encoder or both, saved as the command line does."""

import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

import transduce
from transduce.arrays import Array
from transduce.class_prior.rounding import outlier_counts
from transduce.engines.common import Calibration
from transduce.errors import InputError, LabelError, LabelErrorKind
from transduce.estimators import LOSSES, TransductiveClassifier
from transduce.evidence import NamedScores
from transduce.features.class_names import describe_classes, name_scores
from transduce.features.embeddings import Encoding
from transduce.features.encode import checked_texts
from transduce.features.text_rows import TEXT_KINDS, TextRows, fit_texts, transform_texts
from transduce.features.training_rows import digest_training_rows, row_contents
from transduce.labels.classes import as_objects
from transduce.labels.encode import find_full_labels
from transduce.labels.missing import is_missing
from transduce.parallel import effective_n_jobs
from transduce.provenance import class_weights, describe_fit
from transduce.taxonomy import Taxonomy
from transduce.validation import check_fractions, check_path
from transduce.words_share import choose_share

_PRIORS = {
    "estimate": "Class sizes are estimated from the labels and the texts.",
    "labeled": "Class sizes follow the labelled rows.",
}


@dataclass(kw_only=True, eq=False, repr=False)
class TextClassifier(TransductiveClassifier):
    """`TransductiveClassifier` for texts: wherever a method takes X, pass texts.

    Texts are a list, an array, or a column of pandas or polars; a missing one is an empty text. `docs/features.md` says
    when words and when vectors are better.

    Parameters
    ----------
    features : {"auto", "tfidf", "hashing", "embeddings", "mix"}, default="auto"
        What texts become: words, weighted by tf-idf; hashed words; vectors of an encoder, centred; or words and vectors
        side by side. "auto" is a mix that suits the length of the texts, words alone if vectors do not help, or vectors
        alone if the texts have no words. It uses words if no encoder is on this machine or named by `encoder`.
    encoder : Encoder, callable, str, Path or None, default=None
        Encoder of the vectors, in any form that `features.encode_texts` takes. None is the one that
        `features.load_encoder` chooses; after `load`, the one that the model was trained with.
    ngrams : {1, 2}, default=1
        2 adds pairs of adjacent words.
    words_share : float or None, default=None
        Share of the words in a mix, above 0 and below 1: the squared length of their part of a row. None for one that
        follows the length of the texts.
    cache : bool, str or Path, default=True
        Where vectors are stored, as in `features.encode_texts`.
    loss, alpha, unlabeled_weight, class_prior, taxonomy, label_step, annealing, partial_weight
        See `transduce.TransductiveClassifier`.
    price_shift, outlier_fraction, estimate_accuracy, fit_intercept, tol, early_tol, max_iter, unlabeled, random_state
        See `transduce.TransductiveClassifier`.
    n_jobs, verbose, checkpoint
        See `transduce.TransductiveClassifier`.

    Attributes
    ----------
    vectorizer_ : Vectorizer
        Turns texts into rows: `features` says how, `vocabulary` has the words of the first columns of `coef_`.
    choice_ : Choice or None
        The share of words that "auto" or "mix" chose, and the reason; None for other features, and after `load`.
    about_ : dict
        How the classifier was trained, as the model file records it.
    **attributes
        All other attributes are those of `transduce.TransductiveClassifier`. After `load` there are only those that
        prediction needs: a model file holds no training rows.

    Examples
    --------
    >>> texts = ["green tea", "black tea, milk", "an espresso", "one more espresso", "tea for two", "espresso again"]
    >>> y = ["tea", None, "coffee", None, None, None]
    >>> clf = TextClassifier(features="tfidf", class_prior={"tea": 2, "coffee": 2}).fit(texts, y)
    >>> clf.transduction_.tolist()
    ['tea', 'tea', 'coffee', 'coffee', 'tea', 'coffee']
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     clf.save(os.path.join(folder, "drinks.safetensors"))
    ...     TextClassifier.load(os.path.join(folder, "drinks.safetensors")).predict(["black tea, please"]).tolist()
    ['tea']
    """

    features: str = "auto"
    encoder: Any = None
    ngrams: int = 1
    words_share: float | None = None
    cache: bool | str | Path = True

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        sampled: Any = None,
        scores: Any = None,
        guesses: Any = None,
        class_names: Any = None,
    ) -> Self:
        """Learn from labelled and unlabelled texts together; see `transduce.TransductiveClassifier.fit`.

        Parameters
        ----------
        X : sequence of str
            Texts.
        y, sample_weight, sampled, scores, guesses
            As in `transduce.TransductiveClassifier.fit`; y may be left out with scores, guesses or class names.
        class_names : list of str or dict, default=None
            Names of classes, or a mapping from names to descriptions: texts that an encoder finds near a name are the
            first labels of its class. Classes with labels need no name.

        Returns
        -------
        self : object
        """
        start, texts = time.perf_counter(), read_texts(X)
        y = np.full(len(texts), None) if y is None and not (scores is guesses is class_names is None) else y
        y = list(y) if isinstance(y, Iterator) else y  # it is read more than once
        self._check_fit(y)
        if hasattr(y, "__len__") and len(y) != len(texts):
            raise LabelError(LabelErrorKind.LENGTH, n_rows=len(texts), n_labels=len(y))
        if class_names is not None:
            if scores is not None or guesses is not None:
                raise ValueError("class_names, scores and guesses cannot be combined. Pass one of them.")
            descriptions = describe_classes(class_names)
            scores = NamedScores([*descriptions], name_scores(texts, descriptions, self._encoding()))
        self.vectorizer_, rows, self.choice_ = self._fit_texts(texts, y)
        super().fit(rows, y, sample_weight, sampled, scores, guesses)
        self.about_ = self._describe(texts, rows, y) | {"seconds": round(time.perf_counter() - start, 3)}
        return self

    def hidden_log_likelihood(self, X: Any, y: Any, sample_weight: Any = None, sampled: Any = None) -> float:
        """Return a score of features or parameters; see `transduce.TransductiveClassifier.hidden_log_likelihood`."""
        self._check_fit(y)
        rows = self._fit_texts(read_texts(X), y).X
        return self._inner().hidden_log_likelihood(rows, y, sample_weight, sampled)

    def decision_function(self, X: Any) -> Array:
        """Return the scores of the classes; see `transduce.TransductiveClassifier.decision_function`."""
        check_is_fitted(self)
        return super().decision_function(transform_texts(self.vectorizer_, read_texts(X), self._encoding()))

    def save(self, path: str | Path) -> None:
        """Write a model file, which `transduce predict` and `TextClassifier.load` read.

        It needs the extra `app`, and a loss given by its name. Classes are stored as strings; only whole numbers come
        back as numbers, and a path of a taxonomy as "a/b".

        Parameters
        ----------
        path : str or Path
            File to write, usually with the suffix .safetensors.
        """
        from transduce.model_file import make_model, save_model

        check_is_fitted(self)
        if not isinstance(self.loss, str):
            raise ValueError(f"loss must be one of {', '.join(LOSSES)} to be saved, but is {self.loss!r}.")
        names = self._names()
        tree = self.taxonomy is not None and names == ["/".join(path) for path in self.taxonomy_.leaf_paths]
        save_model(make_model(self, names, self.vectorizer_, self.about_, tree=tree), check_path("path", path))

    @classmethod
    def load(cls, path: str | Path, *, encoder: Any = None, cache: bool | str | Path = True) -> "TextClassifier":
        """Read a model file that `save` or `transduce label --model` wrote; nothing in it is executed.

        Parameters
        ----------
        path : str or Path
            File to read.
        encoder : Encoder, callable, str, Path or None, default=None
            The encoder that the model was trained with, if it is a function or in a folder that has moved. Another one
            is refused when texts are encoded.
        cache : bool, str or Path, default=True
            Where vectors are stored, as in `features.encode_texts`.

        Returns
        -------
        TextClassifier
            A classifier that predicts as the saved one, with the same probabilities. Its scores are those of the saved
            one divided by the temperature of `calibration_`, which is 1 now.
        """
        from transduce.model_file import load_model

        model = load_model(check_path("path", path))
        kind = model.vectorizer.features.kind
        if kind == "vectors":
            raise InputError(f"{path} was trained on vectors, not on texts. Use it by transduce predict --vectors.")
        paths, distance = list(model.classes) if model.tree else None, 1
        features = model.vectorizer.features
        clf = cls(features=kind, encoder=encoder, cache=cache, loss=model.loss, taxonomy=paths)
        clf.set_params(ngrams=features.ngrams, words_share=features.words_share)
        clf.classes_ = np.array(model.classes, dtype=object)
        if model.about.get("class_type") == "int":
            clf.classes_ = clf.classes_.astype(np.int64)
        clf.taxonomy_ = Taxonomy.flat(clf.classes_.tolist()) if paths is None else Taxonomy.create(paths)
        clf.coef_, clf.intercept_, clf.price_shift_ = model.coef, model.intercept, model.shift
        if len(model.classes) == 2:
            clf.coef_, clf.intercept_, distance = np.diff(model.coef, axis=0), np.diff(model.intercept), 2
        clf.outlier_score_ = distance * model.none_score if "none" in model.about else None
        clf.calibration_, clf.loss_ = Calibration(smoothing=model.about.get("smoothing", 0.0)), LOSSES[model.loss]()
        clf.vectorizer_, clf.choice_, clf.about_ = model.vectorizer, None, dict(model.about)
        clf.n_features_in_ = clf.coef_.shape[1]
        return clf

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.features not in TEXT_KINDS:
            raise ValueError(f"features must be one of {', '.join(TEXT_KINDS)}, but is {self.features!r}.")
        share = self.words_share
        if share is not None and (self.features != "mix" or not 0 < share < 1):
            raise ValueError(
                f"words_share must be above 0 and below 1 for features='mix', else None, but is {share!r}."
            )

    def _inner(self) -> TransductiveClassifier:
        """Return the classifier of the rows."""
        return TransductiveClassifier(
            **{name: getattr(self, name) for name in TransductiveClassifier._get_param_names()}
        )

    def _fit_texts(self, texts: list[str], y: Any) -> TextRows:
        choose = partial(choose_share, y=y, estimator=self._inner())
        return fit_texts(texts, self.features, self._encoding(), self.ngrams, self.words_share, choose)

    def _encoding(self) -> Encoding:
        return Encoding(self.encoder, self.cache, None if self.n_jobs is None else effective_n_jobs(self.n_jobs))

    def _names(self) -> list[str]:
        """Class names as a model file has them."""
        return ["/".join(label) if isinstance(label, tuple) else str(label) for label in as_objects(self.classes_)]

    def _describe(self, texts: list[str], X: Any, y: Any) -> dict[str, Any]:
        """Describe the fit as the command line does."""
        classes, names = as_objects(self.classes_), self._names()
        with warnings.catch_warnings(action="ignore"):  # the fit has given them
            is_labeled = find_full_labels(y, self.unlabeled, self.taxonomy, classes)[1]
        index = {label: k for k, label in enumerate(classes)}
        labels = np.array([index.get(label, -1) for label in as_objects(self.transduction_)], dtype=np.int64)
        codes, none = np.where(is_labeled, labels, -1), None
        if self.outlier_fraction is not None:
            fractions = check_fractions("outlier_fraction", self.outlier_fraction)
            none = outlier_counts(fractions, int(np.count_nonzero(codes < 0)))
        coef, intercept, shift = class_weights(self)
        scores = X @ coef.T + (intercept - shift)
        contents = row_contents(texts, X, self.vectorizer_.features.kind)
        has_values = X.getnnz(axis=1) > 0 if sparse.issparse(X) else X.any(axis=1)
        prior = self.class_prior if isinstance(self.class_prior, str) else "stated"
        return {
            **describe_fit(self, names, codes, labels, scores, none),
            "transduce": transduce.__version__,
            "source": "TextClassifier",
            "prior": _PRIORS.get(prior, "Class sizes were stated."),
            "labelled_rows": digest_training_rows(contents, [names[k] if k >= 0 else None for k in codes.tolist()]),
            "n_empty": int(np.count_nonzero((codes < 0) & ~has_values)),
            **({"class_type": "int"} if type(classes[0]) is int and max(map(abs, classes)) < 2**63 else {}),
            **({} if self.choice_ is None else {"choice": str(self.choice_)}),
        }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.two_d_array = False
        tags.input_tags.string = tags.input_tags.one_d_array = True
        return tags


def read_texts(X: Any) -> list[str]:
    """Return texts as a list of strings; missing ones are empty."""
    shape = getattr(X, "shape", None)
    if shape is not None and len(shape) != 1:
        raise ValueError(f"X must be one column of texts, but has the shape {shape}. Pass a column, as frame['text'].")
    is_list = np.iterable(X) and not isinstance(X, (str, Mapping))
    texts = checked_texts(map(_as_text, X) if is_list else X)
    if not texts:
        raise ValueError("X has no texts. Pass a list with at least one text.")
    return texts


def _as_text(value: Any) -> Any:
    return "" if not hasattr(value, "__len__") and is_missing(value) else value
