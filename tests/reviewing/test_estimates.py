"""Estimates: intervals cover, the learning curve is found again, and the advice follows."""

import numpy as np
import pytest

from transduce.reviewing.estimates import Accuracy, advice, estimate_accuracy, expected_gain, open_questions, pays


@pytest.mark.parametrize("n", [15, 40])
def test_intervals_cover_the_truth_nine_times_in_ten(n):
    rng, covered = np.random.default_rng(0), 0
    for accuracy in rng.uniform(0.5, 0.98, 400):
        too_sure = rng.normal(0, 0.1)  # not calibrated
        confidence, others = (np.clip(rng.normal(accuracy + too_sure, 0.1, m), 0, 1) for m in (n, 1000))
        hits = rng.random(n) < accuracy
        found = estimate_accuracy(hits - confidence, float(others.mean()))
        covered += found.low <= accuracy <= found.high
    assert 0.85 <= covered / 400 <= 0.95


def test_only_random_documents_count_and_few_show_nothing():
    surprise = np.r_[np.full(12, 0.1), np.full(30, np.nan)]
    found = estimate_accuracy(surprise, 0.8)
    assert found.n == 12
    assert found.mean == pytest.approx(0.9)
    assert estimate_accuracy(surprise[3:], 0.8) is None
    assert estimate_accuracy(None, 0.8) is None


@pytest.mark.parametrize("slope", [0.2, 0.5, 0.8])
def test_the_learning_curve_is_found_again(slope):
    n = np.array([20, 40, 80, 160, 320, 640])
    curve = [(int(k), float(2.0 * k**-slope / 2.0)) for k in n]
    true = curve[-1][1] - 640.0**-slope * (690 / 640) ** -slope
    assert expected_gain(curve) == pytest.approx(true, rel=0.25)


def test_the_gain_falls_and_is_never_negative():
    assert expected_gain([]) is None
    assert expected_gain([(50, 0.3), (100, 0.4)]) >= 0
    assert expected_gain([(100, 0.3)]) > expected_gain([(1000, 0.3)]) > 0


def test_going_on_pays_until_the_gain_is_small_and_known():
    sure = Accuracy(0.9, 0.85, 0.94, 40)
    assert not pays(100, sure, 0.002)
    assert pays(20, sure, 0.002)
    assert pays(100, sure, 0.05)
    assert pays(100, None, 0.002)
    assert pays(100, sure, None)


@pytest.mark.parametrize(
    ("low", "decided", "proposed", "expected"),
    [(0.85, 5, 30, []), (0.85, 4, 4, []), (0.85, 4, 5, ["ship has 4 labels"]), (0.73, 9, 30, ["within 21 points"])],
)
def test_a_wide_interval_and_classes_with_few_labels_speak_against_stopping(low, decided, proposed, expected):
    ship = {"name": "ship", "decided": decided, "proposed": proposed}
    accuracy = Accuracy(0.9, low, 0.94, 40)
    found = open_questions(accuracy, [{"name": "earn", "decided": 40, "proposed": 300}, ship])
    assert bool(found) == bool(expected)
    assert all(words in found for words in expected)
    assert pays(100, accuracy, 0.002, found) == bool(expected)
    stop = not expected
    assert ("you can stop" in advice(1000, 0.002, stop=stop, questions=found)) == stop
    assert all(words in advice(1000, 0.002, stop=stop, questions=found) for words in expected)


def test_at_most_three_classes_with_few_labels_are_named():
    classes = [{"name": name, "decided": 1, "proposed": 9} for name in "abcde"]
    found = open_questions(Accuracy(0.9, 0.85, 0.94, 40), classes)
    assert "fewer than 5 labels" in found
    assert "c" in found.split(" have ")[0]
    assert "d" not in found.split(" have ")[0].split()


def test_advice_says_when_to_stop():
    assert "you can stop" in advice(1000, 0.002, stop=True)
    assert "about 50 of 1000" in advice(1000, 0.05, stop=False)
    assert "you can stop" not in advice(1000, 0.05, stop=False)
    assert advice(1000, None, stop=False) == ""
    assert "Every document" in advice(0, None, stop=False)
