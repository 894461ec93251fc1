"""All losses against their definitions, gradients against finite differences, and error messages."""

import numpy as np
import pytest
from helpers.loss_problems import (
    MEANS,
    K,
    by_definition,
    every_loss,
    mean_losses,
    plain_losses,
    smooth_losses,
    some_labels,
    some_posteriors,
    some_scores,
)

from transduce.losses import LargeMargin, MaxEnt, SmoothMargin, SquaredLargeMargin


@every_loss
def test_costs_follow_the_definition(loss):
    scores = some_scores()
    np.testing.assert_allclose(loss.label_costs(scores), by_definition(loss, scores), rtol=1e-12, atol=1e-12)


@plain_losses
@pytest.mark.parametrize("n_classes", [1, 2, 3, 7])
def test_costs_follow_the_definition_for_few_and_many_classes(loss, n_classes):
    scores = some_scores(n_classes, n_classes=n_classes)
    np.testing.assert_allclose(loss.label_costs(scores), by_definition(loss, scores), rtol=1e-12, atol=1e-12)


@plain_losses
def test_one_class_costs_nothing(loss):
    scores = np.array([[0.0], [1e3], [-1e3]])
    assert not loss.label_costs(scores).any()
    assert not loss.gradient(scores, np.zeros(3, int)).any()


@every_loss
def test_the_cost_of_a_label_is_the_value_at_it(loss):
    scores = some_scores()
    costs = loss.label_costs(scores)
    for y in range(K):
        np.testing.assert_allclose(loss.value(scores, np.full(len(scores), y)), costs[:, y], rtol=1e-9, atol=1e-9)


@mean_losses
def test_the_value_of_a_distribution_is_the_mean_over_its_labels(loss):
    scores, posteriors = some_scores(), some_posteriors()
    hard = np.stack([loss.value(scores, np.full(len(scores), y)) for y in range(K)], axis=1)
    np.testing.assert_allclose(loss.value(scores, posteriors), (posteriors * hard).sum(axis=1), rtol=1e-12)
    np.testing.assert_array_equal(loss.value(scores, np.eye(K)[some_labels()]), loss.value(scores, some_labels()))


@mean_losses
def test_the_gradient_of_a_distribution_is_the_mean_over_its_labels(loss):
    scores, posteriors = some_scores(), some_posteriors()
    hard = np.stack([loss.gradient(scores, np.full(len(scores), y)) for y in range(K)], axis=1)
    mean = (posteriors[:, :, None] * hard).sum(axis=1)
    np.testing.assert_allclose(loss.gradient(scores, posteriors), mean, rtol=1e-9, atol=1e-9)


@smooth_losses
@pytest.mark.parametrize("targets", [some_labels(), some_posteriors()], ids=["labels", "distributions"])
def test_gradients_equal_differences_of_values(loss, targets):
    scores = np.random.default_rng(3).normal(size=(60, K))
    step, differences = 1e-6, np.empty_like(scores)
    for k in range(K):
        up, down = scores.copy(), scores.copy()
        up[:, k] += step
        down[:, k] -= step
        differences[:, k] = (loss.value(up, targets) - loss.value(down, targets)) / (2 * step)
    np.testing.assert_allclose(loss.gradient(scores, targets), differences, rtol=1e-5, atol=1e-7)


@every_loss
@pytest.mark.parametrize("targets", [some_labels(), some_posteriors()], ids=["labels", "distributions"])
def test_gradients_are_subgradients_everywhere(loss, targets):
    """value(T) >= value(S) + gradient(S)·(T − S), also at corners and extreme scores."""
    scores = some_scores()
    value, gradient = loss.value(scores, targets), loss.gradient(scores, targets)
    rng = np.random.default_rng(4)
    for size in (1e-3, 0.1, 1.0, 30.0):
        moves = size * rng.normal(size=scores.shape)
        other = loss.value(scores + moves, targets)
        bound = value + (gradient * moves).sum(axis=1)
        assert np.all(other >= bound - 1e-9 * (1.0 + np.abs(value) + np.abs(bound)))


@every_loss
def test_gradients_sum_to_zero(loss):
    for targets in (some_labels(), some_posteriors()):
        gradient = loss.gradient(some_scores(), targets)
        assert np.abs(gradient.sum(axis=1)).max() <= 1e-12 * max(np.abs(gradient).max(), 1.0)


@pytest.mark.parametrize("loss", [*MEANS.values(), SmoothMargin()], ids=[*MEANS, "smooth-margin-unit"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_dtype_is_kept_and_inputs_are_untouched(loss, dtype):
    scores, labels, posteriors = some_scores().astype(dtype), some_labels(), some_posteriors().astype(dtype)
    copies = scores.copy(), labels.copy(), posteriors.copy()
    for targets in (labels, posteriors):
        assert loss.value(scores, targets).dtype == dtype
        assert loss.gradient(scores, targets).dtype == dtype
    costs = loss.label_costs(scores)
    assert costs.dtype == dtype
    np.testing.assert_allclose(costs, loss.label_costs(scores.astype(float)), rtol=3e-5, atol=1e-3)
    for array, copy in zip((scores, labels, posteriors), copies, strict=True):
        np.testing.assert_array_equal(array, copy)


@plain_losses
def test_scores_may_be_lists_integers_or_fortran_ordered(loss):
    whole = np.random.default_rng(0).integers(-3, 4, size=(20, 4))
    expected = loss.label_costs(whole.astype(float))
    for scores in (whole, whole.tolist(), np.asfortranarray(whole, dtype=float), whole.astype(float)[::-1][::-1]):
        np.testing.assert_array_equal(loss.label_costs(scores), expected)


def test_the_posterior_of_maxent_is_a_distribution_at_any_size_of_the_scores():
    posterior = MaxEnt().posterior(some_scores())
    assert np.all(posterior >= 0)
    np.testing.assert_allclose(posterior.sum(axis=1), 1.0, rtol=1e-12)
    costs = MaxEnt().label_costs(some_scores())
    np.testing.assert_allclose(posterior, np.exp(-costs), rtol=1e-12, atol=1e-300)


def test_margins_of_ones_are_the_unit_margin():
    ones = 1.0 - np.eye(K)
    for kind in (LargeMargin, SquaredLargeMargin):
        np.testing.assert_array_equal(kind(ones).label_costs(some_scores()), kind().label_costs(some_scores()))
    for targets in (some_labels(), some_posteriors()):
        soft, plain = SmoothMargin(0.1, ones), SmoothMargin(0.1)
        np.testing.assert_allclose(soft.value(some_scores(), targets), plain.value(some_scores(), targets), rtol=1e-12)
        np.testing.assert_allclose(soft.margin_offsets(targets, K), plain.margin_offsets(targets, K), atol=1e-12)


def test_row_y_of_the_margins_belongs_to_the_right_label():
    margins = np.array([[0.0, 5.0], [2.0, 0.0]])  # 5 for predicting 1 where 0 is right
    assert LargeMargin(margins).label_costs([[0.0, 0.0]]).tolist() == [[5.0, 2.0]]


@pytest.mark.parametrize("kind", [LargeMargin, SquaredLargeMargin, lambda margins: SmoothMargin(0.1, margins)])
@pytest.mark.parametrize(
    ("margins", "sentence"),
    [
        (np.zeros((2, 2)), r"margins must have shape \(3, 3\), one row per class, but have shape \(2, 2\)\."),
        (np.zeros(3), r"shape \(3,\)"),
        (np.ones((3, 3)), "0 on the diagonal"),
        (np.eye(3) - 1.0, "at least 0"),
        (np.where(np.eye(3) > 0, 0.0, np.nan), "finite"),
        (np.where(np.eye(3) > 0, 0.0, np.inf), "finite"),
    ],
)
def test_bad_margins_raise(kind, margins, sentence):
    loss = kind(margins)
    with pytest.raises(ValueError, match=sentence):
        loss.label_costs(np.zeros((4, 3)))
    with pytest.raises(ValueError, match=sentence):
        loss.gradient(np.zeros((4, 3)), np.zeros(4, int))


@plain_losses
def test_scores_must_be_a_matrix(loss):
    with pytest.raises(ValueError, match="scores must be a matrix"):
        loss.label_costs([0.0, 1.0])
