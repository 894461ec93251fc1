"""The smooth margin: between maxent and the large margin, for distributions, and at extreme values."""

import numpy as np
import pytest
from helpers.loss_problems import (
    MARGINS,
    K,
    any_margins,
    by_definition,
    some_labels,
    some_posteriors,
    some_scores,
)

from transduce.losses import LargeMargin, MaxEnt, SmoothMargin


def smooth_value_by_definition(loss: SmoothMargin, scores: np.ndarray, posteriors: np.ndarray) -> np.ndarray:
    """γ log Σ_k exp((Σ_y q_y Δ(y, k) + s_k) / γ) − q·s, one row at a time."""
    margins = 1.0 - np.eye(K) if loss.margins is None else loss.margins
    rows = zip(scores, posteriors, strict=True)
    return np.array([loss.width * np.logaddexp.reduce((q @ margins + s) / loss.width) - q @ s for s, q in rows])


smooth_margins = pytest.mark.parametrize("margins", MARGINS.values(), ids=MARGINS)


@smooth_margins
@pytest.mark.parametrize("width", [0.02, 0.1, 1.0, 10.0])
def test_a_distribution_has_the_mean_of_its_margins(margins, width):
    loss, scores, posteriors = SmoothMargin(width, margins), some_scores(), some_posteriors()
    expected = smooth_value_by_definition(loss, scores, posteriors)
    np.testing.assert_allclose(loss.value(scores, posteriors), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(loss.label_costs(scores), by_definition(loss, scores), rtol=1e-9, atol=1e-9)


@smooth_margins
@pytest.mark.parametrize("width", [0.02, 0.1, 1.0, 10.0])
def test_the_smooth_margin_of_a_distribution_is_at_most_the_mean_over_its_labels(margins, width):
    loss, scores, posteriors = SmoothMargin(width, margins), some_scores(), some_posteriors()
    mean = (posteriors * loss.label_costs(scores)).sum(axis=1)
    value = loss.value(scores, posteriors)
    assert np.all(value <= mean + 1e-9 * (1 + mean))
    assert np.any(value < (1 - 1e-5) * mean) or (margins is not None and not margins.any())


@smooth_margins
def test_a_certain_distribution_is_its_label(margins):
    loss, scores, labels = SmoothMargin(0.1, margins), some_scores(), some_labels()
    certain = np.eye(K)[labels]
    np.testing.assert_allclose(loss.value(scores, certain), loss.value(scores, labels), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(loss.gradient(scores, certain), loss.gradient(scores, labels), atol=1e-12)


@smooth_margins
def test_the_smooth_margin_lies_above_the_large_margin_by_at_most_its_width_times_log_k(margins):
    scores = some_scores()
    hinge = LargeMargin(margins).label_costs(scores)
    for width in (1.0, 0.1, 0.02):
        above = SmoothMargin(width, margins).label_costs(scores) - hinge
        assert above.min() >= -1e-9
        assert above.max() <= width * np.log(K) + 1e-9
    assert SmoothMargin(0.1, margins).label_costs(scores) == pytest.approx(hinge, abs=0.1 * np.log(K))


def test_the_smooth_margin_of_width_one_without_margins_is_maxent():
    loss, scores = SmoothMargin(1.0, np.zeros((K, K))), some_scores()
    np.testing.assert_allclose(loss.label_costs(scores), MaxEnt().label_costs(scores), rtol=1e-12, atol=1e-12)
    for targets in (some_labels(), some_posteriors()):
        np.testing.assert_allclose(loss.value(scores, targets), MaxEnt().value(scores, targets), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(loss.gradient(scores, targets), MaxEnt().gradient(scores, targets), atol=1e-12)


@smooth_margins
def test_a_common_shift_of_the_scores_changes_nothing(margins):
    loss, scores = SmoothMargin(0.1, margins), np.random.default_rng(0).normal(size=(60, K))
    shift = np.linspace(-50.0, 50.0, 60)[:, None]
    np.testing.assert_allclose(loss.label_costs(scores + shift), loss.label_costs(scores), atol=1e-11)
    for targets in (some_labels(), some_posteriors()):
        np.testing.assert_allclose(loss.value(scores + shift, targets), loss.value(scores, targets), atol=1e-11)
        np.testing.assert_allclose(loss.gradient(scores + shift, targets), loss.gradient(scores, targets), atol=1e-11)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1.0, 1e4, 1e8])
@pytest.mark.parametrize("width", [1e-3, 0.1, 10.0])
def test_huge_scores_and_huge_margins_stay_finite(dtype, size, width):
    scores = (size * some_scores()).astype(dtype)
    for margins in (None, any_margins(), size * any_margins()):
        loss = SmoothMargin(width, margins)
        costs = loss.label_costs(scores)
        assert np.all(np.isfinite(costs))
        assert np.all(costs >= 0)
        for targets in (some_labels(), some_posteriors().astype(dtype)):
            assert np.all(np.isfinite(loss.value(scores, targets)))
            gradient = loss.gradient(scores, targets)
            assert np.all(np.abs(gradient) <= 1 + 1e-6)


def test_large_margins_follow_the_definition():
    margins = np.array([[0.0, 100.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    loss, scores = SmoothMargin(0.1, margins), np.array([[0.0, 0.0, 0.0], [1.0, 0.0, -1.0]])
    np.testing.assert_allclose(loss.label_costs(scores), by_definition(loss, scores), rtol=1e-9)
