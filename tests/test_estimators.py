"""TransductiveClassifier: null forms, interrupts, a loss of one's own, probabilities and error messages."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from helpers.estimators import COMMON, QUICK, SLOW
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from transduce import EntropyRegularizedClassifier, Taxonomy, TransductiveClassifier, solve_labels
from transduce.label_step import Exact, Greedy
from transduce.label_step.entropic import Entropic
from transduce.losses import Averaged, LargeMargin, MaxEnt
from transduce.model_selection import TransductiveClassifierCV
from transduce.testing import blobs, labels_as, true_counts

every_estimator = pytest.mark.parametrize("estimator", [*COMMON, *QUICK, *SLOW], ids=str)


STATED = TransductiveClassifier(annealing="paper", class_prior=[56, 36, 16], random_state=0)
"""A quick fit of the blobs, with their true counts."""


@pytest.mark.parametrize(
    "form",
    [
        lambda v: pd.Series(v),
        lambda v: pd.Series(v, dtype="string"),
        lambda v: pd.Series(v, dtype="category"),
        lambda v: pl.Series(v.tolist(), dtype=pl.String),
    ],
    ids=["pandas objects", "pandas strings", "pandas category", "polars"],
)
def test_nulls_of_data_frames_mean_unlabeled(form):
    X, _, y = blobs()
    names = labels_as(y, None)
    plain, model = (clone(STATED).fit(X, each) for each in (names, form(names)))
    assert model.transduction_.tolist() == plain.transduction_.tolist()


def test_nullable_numbers_mean_unlabeled():
    X, _, y = blobs()
    plain = clone(STATED).fit(X, y)
    numbers = [None if label < 0 else int(label) for label in y]
    for form in (pd.Series(numbers, dtype="Int64"), pl.Series(numbers), pd.Series(np.where(y < 0, np.nan, y))):
        model = clone(STATED).fit(X, form)
        assert [int(label) for label in model.transduction_] == plain.transduction_.tolist()


class Interrupting:
    """The exact step, until Ctrl-C is pressed during the third call."""

    def __init__(self):
        self.calls = 0

    def solve(self, problem, prices=None, start=None):
        self.calls += 1
        if self.calls == 3:
            raise KeyboardInterrupt
        return Exact().solve(problem, prices, start)


def test_ctrl_c_leaves_a_usable_model():
    X, truth, y = blobs()
    counts = true_counts(truth, y)
    model = TransductiveClassifier(label_step=Interrupting(), class_prior=counts, random_state=0).fit(X, y)
    assert "interrupted" in model.termination_condition_
    assert np.array_equal(np.bincount(model.transduction_[y < 0]), counts)
    assert model.predict(X).shape == (len(y),)


class HuberMargin:
    """A smooth margin: quadratic up to a loss of 1, linear beyond."""

    def label_costs(self, scores):
        margins = np.stack([self._hinge(scores, np.full(len(scores), k)) for k in range(scores.shape[1])], axis=1)
        return np.where(margins < 1, 0.5 * margins**2, margins - 0.5)

    def value(self, scores, targets):
        return self.label_costs(scores)[np.arange(len(scores)), targets]

    def gradient(self, scores, targets):
        rows = np.arange(len(scores))
        slope = np.minimum(self._hinge(scores, targets), 1.0)
        lifted = scores + 1.0
        lifted[rows, targets] -= 1.0
        gradient = np.zeros_like(scores)
        np.add.at(gradient, (rows, lifted.argmax(axis=1)), slope)
        gradient[rows, targets] -= slope
        return gradient

    @staticmethod
    def _hinge(scores, targets):
        rows = np.arange(len(scores))
        lifted = scores + 1.0
        lifted[rows, targets] -= 1.0
        return lifted.max(axis=1) - scores[rows, targets]


def test_a_loss_of_ones_own_end_to_end():
    X, truth, y = blobs()
    model = TransductiveClassifier(HuberMargin(), class_prior=true_counts(truth, y), random_state=0).fit(X, y)
    assert np.mean(model.transduction_ == truth) > 0.9
    assert np.mean(model.predict(X) == truth) > 0.85


@pytest.mark.parametrize("label_step", ["exact", "switching", "multi_switch", "single_switch", "simplex"])
def test_any_label_step_meets_the_counts(label_step):
    X, truth, y = blobs()
    counts = true_counts(truth, y)
    model = TransductiveClassifier(label_step=label_step, class_prior=counts, random_state=0).fit(X, y)
    assert np.array_equal(np.bincount(model.transduction_[y < 0]), counts)


def test_paths_as_labels_make_classes():
    X, _, y = blobs()
    names = [("a", "x"), ("a", "y"), ("b",)]
    labels = [None if label < 0 else names[label] for label in y]
    model = TransductiveClassifier(taxonomy=names, annealing="paper", random_state=0).fit(X, labels)
    assert set(model.classes_.tolist()) == set(names)
    assert isinstance(model.taxonomy_, Taxonomy)


@every_estimator
def test_probabilities_agree_with_predictions_and_meet_the_counts(estimator):
    X, truth, y = blobs()
    counts = true_counts(truth, y)
    model = clone(estimator).set_params(class_prior=counts, random_state=0).fit(X, y)
    proba = model.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-6)
    assert np.array_equal(model.classes_[proba.argmax(axis=1)], model.predict(X))
    np.testing.assert_allclose(model.label_distributions_.sum(axis=1), 1.0)
    np.testing.assert_allclose(model.label_distributions_[y < 0].sum(axis=0), counts, rtol=2e-3)
    assert np.array_equal(model.label_distributions_[y >= 0], np.eye(3)[y[y >= 0]])


def test_a_loss_without_a_posterior_has_no_probabilities():
    X, _, y = blobs()
    model = TransductiveClassifier(Averaged(MaxEnt()), annealing="paper").fit(X, y)
    assert not hasattr(model, "predict_proba")
    assert not hasattr(model, "label_distributions_")


EXACT = {"class_prior": ["=50%", "=33%", "=17%"], "annealing": None, "random_state": 0}


@pytest.mark.parametrize(
    "estimator",
    [
        TransductiveClassifier(**EXACT),
        EntropyRegularizedClassifier(class_prior=EXACT["class_prior"], random_state=0),
        TransductiveClassifierCV((1e-3,), cv=2, estimator=TransductiveClassifier(**EXACT), random_state=0),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_fit_predict_returns_the_labels_of_all_rows_also_of_a_pipeline(estimator):
    X, _, y = blobs()
    expected = estimator.fit_predict(X, y)
    assert expected is estimator.transduction_
    pipeline = make_pipeline(FunctionTransformer(), clone(estimator))
    assert np.array_equal(pipeline.fit_predict(X, y), expected)
    assert np.array_equal(pipeline[-1].transduction_, expected)


def test_score_looks_at_labelled_rows_only():
    X, truth, y = blobs()
    model = TransductiveClassifier(class_prior=true_counts(truth, y), random_state=0).fit(X, y)
    assert model.score(X, y) == np.mean(model.predict(X)[y >= 0] == y[y >= 0])
    assert model.score(X, truth) == np.mean(model.predict(X) == truth)
    assert np.array_equal(model.class_counts_, true_counts(truth, y))


def test_a_weight_step_that_does_not_converge_warns():
    X, truth, _ = blobs()
    with pytest.warns(ConvergenceWarning, match="before it reached its tolerance"):
        TransductiveClassifier(max_iter=1, alpha=1e-9, tol=1e-12, random_state=0).fit(X, truth)


def test_an_interrupt_keeps_weights_labels_and_objective_together():
    X, truth, y = blobs()
    interrupting = Interrupting()
    interrupting.calls = -4
    counts = true_counts(truth, y)
    how = {"class_prior": counts, "annealing": "paper", "fit_intercept": False, "random_state": 0}
    model = TransductiveClassifier(label_step=interrupting, **how).fit(X, y)
    last = model.history_[-1]
    losses = LargeMargin().value(X @ model.coef_.T, model.transduction_)
    kappa = np.where(y >= 0, 1 / (y >= 0).sum(), last.unlabeled_weight / (y < 0).sum())
    objective = 0.5e-3 * np.sum(model.coef_**2) + kappa @ losses
    assert model.objective_ == last.objective == pytest.approx(objective, rel=1e-9)


@pytest.mark.parametrize("labels", [{"a": 1}, 3, "text", {1, 2}])
def test_labels_that_are_no_list_get_one_sentence(labels):
    with pytest.raises(ValueError, match="y must be a list or array"):
        TransductiveClassifier().fit(blobs()[0], labels)


def test_labels_of_several_kinds_get_one_sentence():
    X, _, y = blobs()
    mixed = [None if label < 0 else ("a", 1, 2.0)[label] for label in y]
    with pytest.raises(ValueError, match="must have one type that can be sorted, but are float, int, str"):
        TransductiveClassifier().fit(X, mixed)


def test_verbose_prints_a_line_a_round(capsys):
    X, _, y = blobs()
    model = TransductiveClassifier(class_prior=[56, 36, 16], annealing="paper", verbose=1).fit(X, y)
    assert len(capsys.readouterr().out.splitlines()) == len(model.history_)


def test_verbose_counts_restarts_and_fits_with_hidden_labels_from_1(capsys):
    X, _, y = blobs()
    model = TransductiveClassifier(verbose=1, random_state=0).fit(X, y)
    shown = [line.split("  stage ")[0] for line in capsys.readouterr().out.splitlines()]
    assert {name for name in shown if name.startswith("hidden")} == {f"hidden labels {k}" for k in range(1, 6)}
    n_restarts = 1 + max(row.restart for row in model.history_)
    assert {name for name in shown if name.startswith("restart")} == {f"restart {k + 1}" for k in range(n_restarts)}


def test_verbose_may_be_a_function():
    rows = []
    X, y = np.eye(6), np.array([0, 1, -1, -1, -1, -1])
    model = TransductiveClassifier(class_prior="labeled", verbose=rows.append).fit(X, y)
    assert len(rows) == model.n_iter_


def test_huge_indices_and_no_intercept():
    X, _, y = blobs()
    wide = sparse.csr_matrix(
        (X.ravel(), (np.repeat(np.arange(len(y)), 8), np.tile(np.arange(8) * 1000, len(y)))), (len(y), 9000)
    )
    model = TransductiveClassifier(fit_intercept=False, price_shift=False, random_state=0).fit(wide, y)
    assert model.coef_.shape == (3, 9000)
    assert not model.intercept_.any()


@pytest.mark.parametrize("loss", ["hinge", "maxent"])
def test_new_rows_are_labelled_as_the_label_step_would(loss):
    X, _, y = blobs()
    skewed = np.array([15, 40, 53])
    model = TransductiveClassifier(loss, class_prior=skewed, random_state=0).fit(X, y)
    plain = TransductiveClassifier(loss, class_prior=skewed, price_shift=False, random_state=0).fit(X, y)
    assert np.array_equal(model.transduction_, plain.transduction_)
    unlabeled = y < 0
    agree, before = (np.mean(m.predict(X)[unlabeled] == m.transduction_[unlabeled]) for m in (model, plain))
    assert agree >= max(before, 0.95)


def test_an_own_loss_that_gives_no_numbers_gets_one_sentence():
    class Broken(Averaged):
        def label_costs(self, scores):
            return np.full(np.shape(scores), np.nan)

    X, _, y = blobs()
    with pytest.raises(ValueError, match="finite label costs"):
        TransductiveClassifier(Broken(MaxEnt()), annealing="paper").fit(X, y)


def test_a_refit_with_another_loss_forgets_probabilities():
    X, _, y = blobs()
    model = TransductiveClassifier("maxent", annealing="paper").fit(X, y)
    model.set_params(loss=Averaged(MaxEnt())).fit(X[:60], y[:60])
    assert not hasattr(model, "label_distributions_")


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"alpha": 0}, 'alpha must be a number above 0, or "auto", but is 0'),
        ({"alpha": "small"}, "alpha must be a number above 0"),
        ({"loss": "log"}, "loss must be one of hinge"),
        ({"loss": 3}, "loss must be one of hinge"),
        ({"loss": LargeMargin}, "loss must be one of hinge"),
        ({"label_step": 3}, "label_step must be one of exact"),
        ({"label_step": "magic"}, "label_step must be one of exact"),
        ({"annealing": "slow"}, "annealing must be 'auto', 'soft', 'paper'"),
        ({"annealing": [1.0, 0.5]}, "increasing weights"),
        ({"max_iter": 0}, "max_iter must be a whole number"),
        ({"taxonomy": ["0", "1"]}, "2"),
    ],
)
def test_bad_parameters_get_one_sentence(parameters, sentence):
    X, _, y = blobs()
    with pytest.raises(ValueError, match=sentence):
        TransductiveClassifier(**parameters).fit(X, y)


@pytest.mark.parametrize("loss", ["hinge", "maxent"])
@pytest.mark.parametrize("annealing", ["soft", "paper"])
def test_prices_are_those_of_the_final_weights(loss, annealing):
    X, _, y = blobs()
    model = TransductiveClassifier(
        loss, class_prior=[20, 40, 48], annealing=annealing, price_shift=False, fit_intercept=False, random_state=0
    ).fit(X, y)
    costs = model.loss_.label_costs(X[y < 0] @ model.coef_.T)
    best = solve_labels(costs, [20, 40, 48])
    dual = np.dot(model.class_counts_, model.prices_) + (costs - model.prices_).min(axis=1).sum()
    assert dual == pytest.approx(best.cost, rel=1e-6)


def test_numpy_strings_in_lists_are_plain_names():
    X, _, y = blobs()
    names = [None if label < 0 else np.str_("abc"[label]) for label in y]
    model = TransductiveClassifier(class_prior={"a": 0.3, "b": 0.3, "c": 0.3, "d": 0.1}, annealing=None).fit(X, names)
    assert {type(name) for name in model.classes_.tolist()} == {str}


def test_a_label_step_that_gives_distributions_is_refused():
    with pytest.raises(ValueError, match=r"label_step must be .* that gives every row one label, but is Entropic\("):
        TransductiveClassifier(label_step=Entropic(1.0)).fit(np.eye(3), [0, 1, -1])
    with pytest.raises(ValueError, match=r"method must be one of .*, but is Entropic\("):
        solve_labels(np.zeros((2, 2)), [1, 1], Entropic(1.0))


@pytest.mark.parametrize("label_step", ["switching", "multi_switch", "single_switch", "simplex", "greedy", Greedy()])
def test_a_label_step_without_branches_is_called_by_its_parameter(label_step):
    model = TransductiveClassifier(
        class_prior={"hot": "=50%", "cold": "=50%"}, taxonomy=["hot/a", "hot/b", "cold"], label_step=label_step
    )
    with pytest.raises(ValueError, match=r"cannot bound branches .* Use label_step='exact'"):
        model.fit(np.eye(5), ["hot/a", "hot/b", "cold", "", ""])
