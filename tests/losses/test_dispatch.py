"""The loss that is used while labels are soft."""

import numpy as np
import pytest
from helpers.loss_problems import (
    any_margins,
    mean_losses,
    some_labels,
    some_posteriors,
    some_scores,
)

from transduce.losses import LargeMargin, MaxEnt, SmoothMargin, SquaredLargeMargin, smoothed


@pytest.mark.parametrize("kind", [LargeMargin, SquaredLargeMargin])
def test_margin_losses_are_smoothed_to_the_smooth_margin_with_their_margins(kind):
    for margins in (None, any_margins()):
        soft = smoothed(kind(margins))
        assert isinstance(soft, SmoothMargin)
        assert soft.margins is margins


def test_smooth_losses_are_used_as_they_are_for_soft_labels():
    for loss in (MaxEnt(), SmoothMargin()):
        assert smoothed(loss) is loss


class OfLabels:
    """A loss that takes labels only."""

    def __init__(self, loss):
        self.label_costs, self.loss = loss.label_costs, loss

    def value(self, scores, labels):
        assert np.ndim(labels) == 1
        return self.loss.value(scores, labels)

    def gradient(self, scores, labels):
        assert np.ndim(labels) == 1
        return self.loss.gradient(scores, labels)


def test_a_user_defined_loss_may_choose_its_smoothed_loss():
    class Own(OfLabels):
        def smoothed(self):
            return MaxEnt()

    assert smoothed(Own(LargeMargin())) == MaxEnt()


@mean_losses
def test_other_losses_are_averaged_over_labels(loss):
    soft, scores = smoothed(OfLabels(loss)), some_scores()
    np.testing.assert_array_equal(soft.label_costs(scores), loss.label_costs(scores))
    for targets in (some_labels(), some_posteriors()):
        np.testing.assert_allclose(soft.value(scores, targets), loss.value(scores, targets), rtol=1e-12)
        np.testing.assert_allclose(soft.gradient(scores, targets), loss.gradient(scores, targets), atol=1e-9)
