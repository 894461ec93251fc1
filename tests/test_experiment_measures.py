"""Measures of experiments: scenarios of class sizes, estimates, coverage, peers and verdicts."""

import numpy as np
import pytest
from helpers.studies import row_of

from experiments import cells, quantifiers, size_measures, study
from experiments.class_sizes import NOISE, PARTIAL, stated
from experiments.data import Source, Split


def learning_curve(lifts, name="la1"):
    return [
        {"set": name, "n_labeled": n, "seed": 0, "method": method, "macro_f": 0.5 + lift * (method == "paper")}
        for n, lift in lifts.items()
        for method in ("supervised", "paper")
    ]


@pytest.mark.parametrize(
    ("lifts", "word"),
    [
        ({20: 0.2, 40: 0.1, 80: 0.05}, study.AGREES),
        ({20: 0.05, 40: 0.1, 80: 0.2}, study.PARTLY),  # most where labels are many
        ({20: 0.02, 40: 0.01}, study.PARTLY),
        ({20: 0.04, 40: -0.1}, study.DIFFERS),
    ],
)
def test_the_lift_must_be_largest_where_labels_are_sparse(lifts, word):
    assert cells.module("figure4").verdicts(learning_curve(lifts))[0].word == word


@pytest.mark.parametrize(
    ("others", "words"),
    [
        ({20: 0.1, 80: 0.0}, [study.AGREES]),
        ({20: 0.18, 80: 0.0}, [study.PARTLY]),
        ({20: 0.3, 80: 0.2}, [study.DIFFERS]),
        ({40: 0.1}, []),
    ],
)
def test_two_sets_are_compared_at_the_label_numbers_that_both_have(others, words):
    rows = learning_curve({20: 0.1, 80: 0.0}, "usps") + learning_curve(others, "mnist")
    found = cells.module("figure4").verdicts(rows)
    assert [verdict.word for verdict in found if "similarly" in verdict.claim] == words


@pytest.mark.parametrize(
    ("curve", "word"),
    [((0.4, 0.5, 0.6), study.AGREES), ((0.4, 0.6, 0.5), study.PARTLY), ((0.4, 0.5, 0.3), study.DIFFERS)],
)
def test_a_curve_that_ends_below_its_beginning_does_not_rise(curve, word):
    rows = [row_of(seed=seed, n_unlabeled=n, macro_f=f) for seed in (0, 1) for n, f in enumerate(curve)]
    verdict = cells.module("figure2").verdicts(rows)[0]
    assert verdict.word == word
    assert ("on 2 splits" in verdict.reason) == (word != study.AGREES)


def small_split(seed=0):
    return Split(*Source(None).load("r8"), seed, 40)


def test_scenarios_state_the_true_sizes_of_some_classes():
    split = small_split()
    fractions = split.counts / split.counts.sum()
    assert stated(split, "none", 0) == "estimate"
    assert stated(split, "labeled", 0) == "labeled"
    assert stated(split, "exact", 0) == dict(enumerate(split.counts.tolist()))
    assert stated(split, "largest", 0) == {int(fractions.argmax()): fractions.max()}
    assert len(stated(split, "random", 0)) == 1
    assert len(stated(split, "half", 0)) == np.unique(split.given).size // 2
    for scenario in PARTIAL:
        assert all(fractions[k] == size for k, size in stated(split, scenario, 0).items())
        assert all(type(size) is float for size in stated(split, scenario, 0).values())
    assert len({tuple(stated(split, "random", seed)) for seed in range(20)}) > 1


def test_noisy_sizes_are_fractions_near_the_true_ones():
    split = small_split()
    fractions = split.counts / split.counts.sum()
    ratios = np.array([list(stated(split, "noisy", seed).values()) / fractions for seed in range(200)])
    assert np.allclose(ratios @ fractions, 1)
    assert np.abs(ratios.mean() - 1) < 0.02
    assert np.abs(ratios.std() - NOISE) < 0.03
    assert stated(split, "noisy", 0) == stated(split, "noisy", 0)


class Estimate:
    def __init__(self, mean, low, high):
        self.mean, self.low, self.high = mean, low, high


def test_size_estimates_are_measured_over_all_classes():
    truth = np.array([0.5, 0.3, 0.2, 0.0, 0.0])
    estimate = Estimate(np.array([0.6, 0.3, 0.1]), np.array([0.5, 0.29, 0.05]), np.array([0.7, 0.31, 0.15]))
    found = size_measures.size_measures(estimate, np.array([0, 1, 3]), truth)
    assert found["size_l1"] == pytest.approx(0.1 + 0 + 0.2 + 0.1 + 0)
    assert found["size_coverage"] == pytest.approx(2 / 3, abs=1e-5)  # 3 is estimated above 0; 2 has no interval
    assert set(size_measures.size_measures(None, np.arange(3), truth).values()) == {None}


@pytest.mark.parametrize(("accuracy", "covered"), [(0.7, 1), (0.8, 1), (0.69, 0), (0.95, 0)])
def test_an_accuracy_interval_covers_or_not(accuracy, covered):
    found = size_measures.accuracy_measures(Estimate(0.8, 0.7, 0.9), accuracy)
    assert found == {"accuracy_estimate": 0.8, "accuracy_covered": covered}
    assert set(size_measures.accuracy_measures(None, accuracy).values()) == {None}


def test_calibration_error_of_right_and_wrong_confidence():
    levels = np.linspace(0.2, 0.9, size_measures.N_BINS)  # one level for each bin, right exactly that often
    order = np.random.default_rng(0).permutation(200 * levels.size)
    confidence = np.repeat(levels, 200)[order]
    is_right = np.concatenate([np.arange(200) < level * 200 - 0.5 for level in levels])[order]
    labeled = np.ones(7)
    error = size_measures.calibration_error
    assert error(np.concatenate((labeled, confidence)), is_right, 7) < 1 / 200
    assert error(np.concatenate((labeled, confidence - 0.1)), is_right, 7) == pytest.approx(0.1, abs=1 / 200)
    assert error(np.ones(107), np.arange(100) < 60, 7) == pytest.approx(0.4)
    assert error(None, is_right, 7) is None


def test_fitted_estimates_are_measured_on_unlabelled_rows_only():
    split = small_split()
    fractions = split.counts / split.counts.sum()

    class Model:
        classes_ = split.names
        transduction_ = split.truth.copy()
        size_estimate_ = Estimate(fractions, fractions, fractions)
        accuracy_estimate_ = Estimate(0.9, 0.8, 1.0)
        label_distributions_ = np.ones((split.truth.size, len(split.names)))

    expected = {"size_l1": 0.0, "size_coverage": 1.0, "accuracy_estimate": 0.9, "accuracy_covered": 1, "ece": 0.0}
    assert size_measures.measures(Model(), split) == expected
    Model.transduction_[: split.n_labeled] = split.names[0]
    assert size_measures.measures(Model(), split) == expected
    del Model.size_estimate_, Model.accuracy_estimate_, Model.label_distributions_
    assert size_measures.measures(Model(), split) == dict.fromkeys(expected)


def scenario_rows(values, name="r8", **results):
    blank = dict.fromkeys(cells.module("class_sizes").RESULTS, "")
    return [
        {"set": name, "n_labeled": 80, "seed": seed, "scenario": scenario} | blank | results | {"macro_f": f}
        for scenario, found in values.items()
        for seed, f in enumerate(found)
    ]


def test_measures_of_scenarios_compare_runs_of_the_same_split():
    class_sizes = cells.module("class_sizes")
    rows = scenario_rows({"supervised": [0.4, 0.6], "exact": [0.6, 0.8], "none": [0.5, 0.58], "half": [0.45, 0.7]})
    assert class_sizes.lift_kept(rows, "none") == pytest.approx(0.2)
    assert class_sizes.hurt(rows, "none") == 0.5
    assert class_sizes.mean_difference(rows, "half") == pytest.approx(0.035)
    assert class_sizes.lift_kept(rows, "half", "none") == pytest.approx(0.15 / 0.08)
    assert np.isnan(class_sizes.lift_kept(rows, "random"))
    claims = {verdict.claim: verdict.word for verdict in class_sizes.verdicts(rows)}
    assert claims["nothing stated keeps 90 % of the lift of exact sizes"] == study.DIFFERS
    assert claims["stated sizes cost at most .02 on any set's mean"] == study.AGREES
    assert claims["at most 2 % of all runs are hurt"] == study.DIFFERS
    assert not any("intervals" in claim for claim in claims)


def test_coverage_and_calibration_appear_where_they_were_measured():
    class_sizes = cells.module("class_sizes")
    values = {"supervised": [0.4], "exact": [0.6], "none": [0.5]}
    assert "covers" not in class_sizes.table(scenario_rows(values))
    rows = scenario_rows(values, size_coverage=0.875, accuracy_covered=1, ece=0.0625)
    text = class_sizes.table(rows)
    assert all(title in text for title in ("size interval covers", "accuracy interval covers", "calibration error"))
    assert "| none | .062 | .062 |" in text
    words = [verdict.word for verdict in class_sizes.verdicts(rows)[-4:]]
    assert words == [study.AGREES, study.PARTLY, study.PARTLY, study.AGREES]


@pytest.mark.filterwarnings("ignore:scipy.misc:DeprecationWarning")  # abstention, below QuaPy, imports scipy.misc
def test_quantifiers_find_the_sizes_of_classes_that_are_apart():
    rng = np.random.default_rng(0)
    y = rng.choice(3, 900, p=[0.6, 0.3, 0.1])
    X = np.eye(3)[y] + 0.05 * rng.standard_normal((900, 3))
    p = quantifiers.fit(X[:60], y[:60], X[60:])
    truth = np.bincount(y[60:]) / 840
    for name, quantify in quantifiers.quantifiers().items():
        found = quantify(p)
        assert found.sum() == pytest.approx(1), name
        assert np.abs(found - truth).sum() < (0.25 if name == quantifiers.LABELED else 0.1), name


def test_the_only_row_of_a_class_is_never_hidden():
    y = np.array([0, 0, 2, 1, 1, 1, 1, 1, 1])
    fold = quantifiers.folds(y)
    assert (fold == -1).tolist() == (y == 2).tolist()
    assert len(set(fold[y == 1])) == quantifiers.N_FOLDS
    assert fold[0] != fold[1]
    P = quantifiers.hidden_posteriors(np.eye(9), y, fold, 1.0)
    assert np.allclose(P.sum(axis=1), 1)
