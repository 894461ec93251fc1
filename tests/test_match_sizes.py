"""match_class_sizes and ClassSizeAdjuster: optimal labels, prices for new rows, scikit-learn's checks."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.utils.estimator_checks import parametrize_with_checks

from transduce import ClassSizeAdjuster, match_class_sizes


@parametrize_with_checks([ClassSizeAdjuster(), ClassSizeAdjuster(LogisticRegression(), class_prior="equal")])
def test_class_size_adjuster_follows_scikit_learn(estimator, check):
    check(estimator)


def test_labels_are_the_likeliest_with_these_sizes():
    P = np.random.default_rng(0).dirichlet([1.0, 2.0, 0.5], size=60)
    counts = [10, 20, 30]
    found = match_class_sizes(P, counts)
    columns = np.repeat([0, 1, 2], counts)
    rows, chosen = linear_sum_assignment(-np.log(P)[:, columns])
    best = -np.log(P)[rows, columns[chosen]].sum()
    assert -np.log(P)[np.arange(60), found.labels].sum() == pytest.approx(best)
    assert np.bincount(found.labels).tolist() == counts
    assert found.gap == pytest.approx(0.0, abs=1e-9)


def test_prices_label_new_rows_as_the_matched_ones():
    P = np.random.default_rng(1).dirichlet([1.0, 2.0, 0.5], size=300)
    found = match_class_sizes(P, [100, 100, 100])
    again = (np.log(P) + found.prices).argmax(axis=1)
    assert np.mean(again == found.labels) > 0.98  # rows at the border are tied


def test_adjusted_predictions_have_the_sizes():
    rng = np.random.default_rng(0)
    X, y = rng.poisson(3.0, (200, 5)), rng.integers(0, 2, 200)
    model = ClassSizeAdjuster(MultinomialNB(), class_prior=["=25%", "=75%"]).fit(X, y)
    assert np.bincount(model.predict(X))[1] == pytest.approx(150, abs=2)
    assert np.allclose(model.predict_proba(X).sum(axis=1), 1.0)


@pytest.mark.parametrize(
    ("proba", "classes", "message"),
    [
        (np.ones(3), None, "a column for each class"),
        ([[0.0, 0.0]], None, "above 0 in each row"),
        ([[np.nan, 1.0]], None, "0 or more and finite"),
        ([[0.5, 0.5]], ["tea"], "must name the 2 columns"),
    ],
)
def test_unusable_probabilities_are_refused(proba, classes, message):
    with pytest.raises(ValueError, match=message):
        match_class_sizes(proba, "equal", classes)


@pytest.mark.parametrize("keyword", ["estimate", "labeled"])
def test_sizes_must_be_stated(keyword):
    with pytest.raises(ValueError, match=f"must state class sizes, but is '{keyword}'"):
        match_class_sizes([[0.5, 0.5]], keyword)
