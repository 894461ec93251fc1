"""Wrong input to public functions: one clear sentence of this package, and no error of NumPy, SciPy or pandas."""

import datetime
import re
from array import array
from collections import deque

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from transduce import (
    ClassSizeAdjuster,
    RuledOut,
    Taxonomy,
    TextClassifier,
    TransductiveClassifier,
    match_class_sizes,
    select_rows,
    solve_labels,
)
from transduce.class_prior import Groups, counts_from_fractions
from transduce.features import CenteredNormalizer, FunctionEncoder, encode_texts, load_encoder
from transduce.io import memmap
from transduce.label_step import Simplex, Switching
from transduce.losses import Averaged, LargeMargin, MaxEnt
from transduce.model_selection import TransductiveClassifierCV, learning_curve
from transduce.sequences import (
    TransductiveTagger,
    block_scores,
    blocks,
    find_scheme,
    save_tagger,
    token_features,
    token_matrix,
)

X = np.arange(16.0).reshape(8, 2) % 5
Y = ["a", "b", "a", "b", None, None, None, None]
TRUTH = ["a", "b"] * 4
COSTS = np.array([[0.0, 1.0], [1.0, 0.0]])
PAPER = TransductiveClassifier(annealing="paper", class_prior="equal", random_state=0)
TOKENS, LABELS = [["J.", "Smith"], ["Tea"]], [["author", "author"], ["title"]]


def fitted():
    return TransductiveClassifier(annealing="paper", class_prior="equal", random_state=0).fit(X, Y)


def fit(**parameters):
    return TransductiveClassifier(**parameters).fit(X, Y)


def search(**parameters):
    return TransductiveClassifierCV(**{"alphas": [1e-3], "estimator": PAPER, "cv": 2} | parameters).fit(X, TRUTH)


ROWS = {
    "none": (None, "X must be a matrix .* but is None. Pass an array"),
    "a set": ({1, 2}, "X must be a matrix"),
    "a dict": ({"a": 1}, "X must be a matrix"),
    "a generator": ((row for row in X), "X must be a matrix"),
    "one dimension": (X[:, 0], r"has shape \(8,\). Reshape your data, with X.reshape\(-1, 1\) .* one row.$"),
    "a flat list": ([1.0, 2.0], r"has shape \(2,\)"),
    "unequal lengths": ([[1.0, 2.0], [1.0]] * 4, "rows of equal length, but some have 1 and 2"),
    "complex": (
        X + 1j,
        "Complex data not supported: X must hold real numbers, but has dtype complex128. Pass X.real.$",
    ),
    "masked": (np.ma.masked_array(X, X > 3), "X has masked values. Fill them"),
    "dates": (np.full((8, 2), np.datetime64("2020-01-01")), "must hold numbers, but has dtype datetime64"),
    "dates beside numbers": ([[datetime.date(2020, 1, 1), 1.0]] * 8, "X must hold numbers only"),
    "bytes": (np.full((8, 2), b"a"), "X must hold numbers only"),
}


@pytest.mark.parametrize("rows", ROWS)
def test_rows_that_are_no_matrix_of_numbers(rows):
    bad, message = ROWS[rows]
    for function in (TransductiveClassifier().fit, lambda X, y: fitted().predict(X)):
        with pytest.raises((TypeError, ValueError), match=message) as caught:
            function(bad, Y)
        assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "rows",
    [
        [row if k % 2 else row.tolist() for k, row in enumerate(X)],
        [pd.Series(row) if k else tuple(row) for k, row in enumerate(X)],
        [array("d", row) for row in X],
        [deque(row) for row in X],
        sparse.dok_matrix(X),
        sparse.dok_array(X),
    ],
    ids=["lists and arrays", "a tuple and Series", "arrays of Python", "deques", "dok_matrix", "dok_array"],
)
def test_other_forms_of_rows_are_rows(rows):
    model = fitted()
    np.testing.assert_array_equal(model.predict(rows), model.predict(X))


def test_arrays_of_unequal_length_are_rows_of_unequal_length():
    with pytest.raises(ValueError, match="rows of equal length, but some have 2 and 3"):
        fitted().predict([np.ones(2), np.ones(3)])


class Texts:
    """A sequence by __getitem__ alone, as some data sets are."""

    def __getitem__(self, place):
        return ["green tea", "black tea", "cold milk", "warm milk"][place]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("texts", [Texts(), iter(Texts()), pd.Index(list(Texts()))])
def test_texts_and_labels_may_be_any_iterable(texts):
    model = TextClassifier(features="tfidf", annealing="paper", class_prior="equal", random_state=0)
    labels = model.fit(texts, iter(["tea", None, "milk", None])).transduction_
    assert labels.tolist() == ["tea", "tea", "milk", "milk"]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("score", [np.array(0.5), np.bool_(True), 1])
def test_a_scorer_may_return_anything_that_is_a_number(score):
    assert search(scoring=lambda *arguments: score).best_score_ == float(score)


def test_masked_rows_without_a_masked_value_are_rows():
    assert fitted().predict(np.ma.masked_array(X, X > 99)).shape == (8,)


def encode_with(function):
    return encode_texts(["tea"], function)


CALLS = {
    "score, short y": (lambda: fitted().score(X, Y[:-1]), "X has 8 rows and y has 7"),
    "score, short weights": (lambda: fitted().score(X, TRUTH, [1.0]), "sample_weight must have one number for each"),
    "alpha, huge": (lambda: fit(alpha=10**400), "alpha must be a number above 0"),
    "tol, huge": (lambda: fit(tol=10**400), "tol must be a number above 0, but is 10+…"),
    "fit_intercept, a word": (lambda: fit(fit_intercept="no"), "fit_intercept must be True or False, but is 'no'"),
    "random_state": (lambda: fit(random_state=-1), r"random_state must be a whole number from 0 to 2\*\*32 - 1"),
    "weights, huge": (lambda: PAPER.fit(X, Y, [10**400] * 8), "sample_weight must be numbers, one for each row"),
    "scores, huge": (lambda: PAPER.fit(X, Y, scores=X * 1e200), "scores must be at most 1e.15 in size"),
    "unlabeled, a list": (lambda: fit(unlabeled=[-1, 0]), "unlabeled must be 'auto', None or one value"),
    "class_prior, a generator": (lambda: fit(class_prior=(p for p in (0.5, 0.5))), "must be a list with one size"),
    "class_prior, huge": (lambda: fit(class_prior={"a": 1e300}), "must be from 0 to 1e15, but is 1e.300"),
    "class_prior, a long value": (lambda: fit(class_prior={"a": list(range(999))}), "…. Write one of these"),
    "taxonomy, a number": (lambda: fit(taxonomy=[1]), r"a taxonomy must be .* but is of type list: \[1\]"),
    "proba, texts": (lambda: match_class_sizes([["a", "b"]], [1, 0]), "proba must be a matrix of probabilities"),
    "proba, sparse": (lambda: match_class_sizes(sparse.eye(2), [1, 1]), "proba must be a matrix of probabilities"),
    "proba, complex": (lambda: match_class_sizes(COSTS + 1j, [1, 1]), "proba must be a matrix of probabilities"),
    "proba, huge": (lambda: match_class_sizes(COSTS + 1e308, [1, 1]), "proba must be 0 or more and finite"),
    "prior, none": (lambda: match_class_sizes(COSTS, None), "class_prior must state class sizes, but is None"),
    "prior, too few": (lambda: match_class_sizes(COSTS, [3, 3]), "there are 2 rows to label. Correct the counts"),
    "classes, twice": (lambda: match_class_sizes(COSTS, [1, 1], ["a", "a"]), "some are the same: 'a' and 'a'"),
    "adjuster, no label": (
        lambda: ClassSizeAdjuster(LogisticRegression()).fit(X, Y),
        "row 4 has none. Pass such rows as X_unlabeled",
    ),
    "counts, huge": (lambda: solve_labels(COSTS, [10**400, 1]), "counts must be whole numbers, one for each class"),
    "fractions, words": (lambda: counts_from_fractions(["a"], 3), "fractions must be a list with one number"),
    "n_rows, huge": (lambda: counts_from_fractions([1.0], 10**400), r"n_rows must be a whole number from 0 to 2\*\*53"),
    "names of groups": (
        lambda: Groups([2, 2, 3], [1], [2], names=1),
        "names must be one for each of the 1 groups, in a tuple",
    ),
    "max_seconds": (lambda: solve_labels(COSTS, [1, 1], Simplex("x")), "max_seconds must be 0 or more, or None"),
    "max_rounds": (lambda: solve_labels(COSTS, [1, 1], Switching("x")), "max_rounds must be 1 or more, or None"),
    "select, no classifier": (lambda: select_rows("x", X, 2), "clf must be a fitted classifier with predict_proba"),
    "select, n": (lambda: select_rows(None, X, "x"), "n must be a whole number of rows, 1 or more, but is 'x'"),
    "select, fraction": (lambda: select_rows(None, X, 2, random_fraction="x"), "random_fraction must be from 0 to 1"),
    "select, short y": (lambda: select_rows(None, X, 2, y=Y[:-1]), "X has 8 rows and y has 7"),
    "scores, words": (lambda: MaxEnt().label_costs([["a", "b"]]), "scores must be a matrix of numbers"),
    "scores, complex": (lambda: MaxEnt().label_costs(COSTS + 1j), "scores must be a matrix of numbers"),
    "targets, none": (lambda: MaxEnt().value(COSTS, None), "targets must be the class of each of the 2 rows"),
    "targets, too high": (lambda: LargeMargin().gradient(COSTS, [0, 2]), "from 0 to 1, or a matrix"),
    "targets, negative": (lambda: LargeMargin().value(COSTS, [0, -1]), "from 0 to 1, or a matrix"),
    "margins, words": (lambda: LargeMargin([["a", "b"]] * 2).value(COSTS, [0, 1]), "margins must be a matrix of num"),
    "averaged": (lambda: Averaged("hinge"), "loss must be a Loss such as LargeMargin"),
    "flat classes, none": (lambda: Taxonomy.flat(None), "expected a list of classes, but got None"),
    "flat classes, lists": (lambda: Taxonomy.flat([["a"]]), "a class must be a name, a number or a tuple"),
    "taxonomy, arrays": (lambda: Taxonomy(np.array(["a"]), np.array(["a"])), "must be tuples. Use Taxonomy.create"),
    "taxonomy, lengths": (lambda: Taxonomy(("a",), (("a",), ("b",))), "have 1 and 2. Use Taxonomy.create"),
    "ruled out, a dict": (lambda: RuledOut({"a": 1}), "RuledOut takes a label, list or set"),
    "ruled out, a frame": (lambda: RuledOut(pd.Series(["a"])), "RuledOut takes a label, list or set"),
    "texts, none": (
        lambda: TextClassifier(features="tfidf").fit(None, Y),
        "texts must be a list of texts, but is None",
    ),
    "texts, empty": (lambda: TextClassifier(features="tfidf").fit([], []), "X has no texts"),
    "texts, too few": (lambda: TextClassifier(features="tfidf").fit(["tea"], Y), "X has 1 rows and y has 8"),
    "load, a number": (lambda: TextClassifier.load(5), "path must be a path, as a str or Path, but is 5"),
    "encoder, one vector": (lambda: encode_with(lambda texts: np.ones(3)), "returned an array of shape"),
    "encoder, none": (lambda: encode_with(lambda texts: None), "must return one vector for each text"),
    "encoder, words": (lambda: encode_with(lambda texts: [["a"]]), "must return 1 numbers for each text"),
    "encoder, no function": (lambda: FunctionEncoder("x"), "function must take texts and return vectors"),
    "encoder, name": (lambda: FunctionEncoder(len, name=1), "name must be a string, but is 1"),
    "encoder, a number": (lambda: load_encoder(5), "encoder must be a path"),
    "cache": (lambda: encode_texts(["a"], FunctionEncoder(len, revision="1"), cache=""), "cache must be a folder"),
    "normalizer": (lambda: CenteredNormalizer().fit([["a"]]), "X must be rows of numbers, but holds texts"),
    "pack, a matrix": (lambda: memmap.pack_rows(sparse.eye(2, format="csr"), "rows"), r"Pass \[X\] for one matrix"),
    "open, none": (lambda: memmap.open_rows(None), "folder must be a path"),
    "alphas": (lambda: search(alphas=[[1e-3]]), "alphas must be one or more numbers above 0"),
    "losses": (lambda: search(losses=5), "losses must be a list of one or more losses, or None, but are 5"),
    "estimator": (lambda: search(estimator="x"), "estimator must be a classifier of this package, but is 'x'"),
    "cv, empty": (lambda: search(cv=[]), "cv must have at least one split"),
    "scoring, none": (
        lambda: search(scoring=lambda *arguments: None),
        "must return a finite number, but returned None",
    ),
    "n_jobs": (lambda: search(n_jobs=0), "n_jobs must be a whole number other than 0"),
    "curve, estimator": (lambda: learning_curve(None, X, TRUTH, [2]), "estimator must be a classifier, but is None"),
    "curve, repeats": (lambda: learning_curve(PAPER, X, TRUTH, [2], n_repeats=0), "n_repeats must be a whole number"),
    "tagger, loss": (lambda: TransductiveTagger(loss=np.ones(2)).fit(TOKENS, LABELS), "loss must be 'maxent' or"),
    "tagger, scheme": (lambda: TransductiveTagger(scheme=[]).fit(TOKENS, LABELS), "scheme must be None, 'BIO'"),
    "tagger, features": (lambda: TransductiveTagger(features=5).fit(TOKENS, LABELS), "features must be 'auto' or a fu"),
    "tagger, blocks": (
        lambda: TransductiveTagger(block_prior=pd.Series({"title": 1})).fit(TOKENS, LABELS),
        "block_prior must be a dict",
    ),
    "save, no tagger": (lambda: save_tagger(None, "x"), "tagger must be a TransductiveTagger, but is None"),
    "blocks, none": (lambda: blocks(None), "labels must be a list of strings, but are None"),
    "blocks, scheme": (lambda: blocks(["B-a"], "IOB"), "scheme must be None, 'BIO' or 'BIOES', but is 'IOB'"),
    "blocks, numbers": (lambda: block_scores([[1]], [[1]], "BIO"), "labels must be a list of strings"),
    "scores, no list": (lambda: block_scores(None, None), "y_true must be a list with the labels of each sequence"),
    "scheme of numbers": (lambda: find_scheme([1]), "labels must be a list of strings"),
    "features, none": (lambda: token_features(None, 0), "a sequence must be a list of strings"),
    "features, place": (lambda: token_features(["a"], 1), "i must be the position of a token, from 0 to 0, but is 1"),
    "features, empty": (lambda: token_features([], 0), "tokens is empty"),
    "matrix, numbers": (lambda: token_matrix([[1]]), "a sequence must be a list of strings"),
}


@pytest.mark.parametrize("call", CALLS)
def test_wrong_input_gives_one_clear_sentence(call):
    function, message = CALLS[call]
    with pytest.raises((TypeError, ValueError), match=message):
        function()


def test_nothing_is_selected_where_every_row_has_a_label():
    assert select_rows(fitted(), X, 2, y=TRUTH).size == 0


def test_packing_into_a_file(tmp_path):
    (tmp_path / "file").write_bytes(b"kept")
    with pytest.raises(ValueError, match=r"is a file. Name another"):
        memmap.pack_rows([sparse.eye(2, format="csr")], tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == b"kept"


@pytest.mark.parametrize("part", [None, "x", sparse.csr_matrix(np.eye(2) * 1j)])
def test_parts_to_pack_are_matrices_of_real_numbers(part, tmp_path):
    with pytest.raises(ValueError, match="a part must be a sparse matrix or an array of real numbers"):
        memmap.pack_rows([part], tmp_path / "rows")


def test_an_unfitted_tagger_is_not_saved(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        save_tagger(TransductiveTagger(), tmp_path / "tagger.safetensors")
    assert not list(tmp_path.iterdir())


REVIEWS = {
    "no frame": (["tea"], {}, "frame must be a DataFrame of pandas or polars"),
    "no column": (pd.DataFrame({"t": ["tea"]}), {}, "the frame has no column 'text', but 't'. Name others by text="),
    "no label": (pd.DataFrame({"text": ["tea"]}), {"label": "l"}, "the frame has no column 'l'"),
    "no columns": (pd.DataFrame(), {}, "the frame has no column 'text', but none"),
    "project": (pd.DataFrame({"text": ["tea", "milk"] * 9}), {"project": 5}, "project must be a path"),
}


def test_columns_of_a_frame_may_be_numbers():
    from transduce import review

    frame = pd.DataFrame({0: ["green tea", "black tea", "cold milk"] * 4, 1: ["tea", None, "milk"] * 4})
    with review(frame, text=0, label=1, open_browser=False, features="tfidf") as found:
        assert found.frame().columns.tolist() == [0, 1, "decision", "proposal"]


@pytest.mark.parametrize("problem", REVIEWS)
def test_frames_that_cannot_be_reviewed(problem):
    from transduce import review

    frame, options, message = REVIEWS[problem]
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        review(frame, open_browser=False, features="tfidf", **options)


def test_a_review_whose_project_is_a_file(tmp_path):
    from transduce import review

    (tmp_path / "file").write_bytes(b"kept")
    frame = pd.DataFrame({"text": ["green tea", "black tea", "cold milk"] * 4})
    with pytest.raises(ValueError, match=r"is a file. Name another folder"):
        review(frame, open_browser=False, features="tfidf", project=tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == b"kept"
