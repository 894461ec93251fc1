"""Checks of X: texts in the place of numbers get one sentence that says what to do."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from helpers.inline_pool import fit_inline
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

from transduce import EntropyRegularizedClassifier, TransductiveClassifier
from transduce.contract import texts_explained
from transduce.dask import TransductiveClassifier as OverDask
from transduce.model_selection import TransductiveClassifierCV

TEXTS = ["green tea", "black coffee", "oolong tea", "filter coffee"]
Y = ["tea", "coffee", "", ""]
SENTENCE = (
    r"^X must be rows of numbers, but holds texts, such as 'green tea'\. Use transduce\.TextClassifier, or .*"
    r"TfidfVectorizer.*\.$"
)
KINDS = {
    "list": TEXTS,
    "tuple": tuple(TEXTS),
    "strings": np.array(TEXTS),
    "objects": np.array(TEXTS, dtype=object),
    "lists": [[text] for text in TEXTS],
    "pandas series": pd.Series(TEXTS),
    "pandas frame": pd.DataFrame({"length": [9, 12, 10, 13], "text": TEXTS}),
    "polars series": pl.Series(TEXTS),
    "polars frame": pl.DataFrame({"text": TEXTS}),
}


@pytest.mark.parametrize("X", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("classifier", [TransductiveClassifier, EntropyRegularizedClassifier, TransductiveClassifierCV])
def test_texts_are_refused_with_advice(classifier, X):
    with pytest.raises(ValueError, match=SENTENCE):
        classifier().fit(X, Y)


def test_texts_to_be_predicted_are_refused_with_advice():
    clf = TransductiveClassifier(class_prior="equal", annealing=None).fit(np.eye(4), Y)
    with pytest.raises(ValueError, match=SENTENCE):
        clf.predict(TEXTS)


@pytest.mark.parametrize(("X", "y"), [(TEXTS, Y), ([TEXTS], [Y]), ([np.array(TEXTS)], [Y])])
def test_texts_over_dask_are_refused_with_advice(X, y):
    with pytest.raises(ValueError, match="holds texts, such as 'green tea'"):
        fit_inline(OverDask(), X, y)


def test_the_advice_works():
    vectorized = TfidfVectorizer().fit_transform(TEXTS)
    clf = TransductiveClassifier(class_prior="equal", annealing=None).fit(vectorized, Y)
    assert clf.transduction_.tolist() == ["tea", "coffee", "tea", "coffee"]
    pipeline = make_pipeline(TfidfVectorizer(), TransductiveClassifier(class_prior="equal", annealing=None))
    assert pipeline.fit(TEXTS, Y).predict(["oolong"]).tolist() == ["tea"]


def test_a_long_text_is_quoted_in_one_short_line():
    with (
        pytest.raises(ValueError, match=r"such as 'green tea, green tea, green tea, green …'\. "),
        texts_explained([["green tea,\n" * 50]]),
    ):
        raise ValueError


@pytest.mark.parametrize("X", [np.array([[np.nan]]), [[1.0], [2.0, 3.0]], [[{"tea": 1}]], None, 3])
def test_other_errors_are_passed_on(X):
    with pytest.raises(TypeError, match="of its own"), texts_explained(X):
        raise TypeError("of its own")
