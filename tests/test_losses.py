"""Label costs of the losses against their definitions."""

import numpy as np
import pytest

from transduce.losses import LargeMargin


def large_margin_by_definition(scores):
    n, k = scores.shape
    costs = np.empty((n, k))
    for i in range(n):
        for y in range(k):
            costs[i, y] = max((j != y) + scores[i, j] - scores[i, y] for j in range(k))
    return costs


@pytest.mark.parametrize("n_classes", [1, 2, 3, 7])
def test_large_margin_costs_follow_the_definition(n_classes):
    scores = np.random.default_rng(n_classes).normal(size=(50, n_classes))
    scores[:10] = np.rint(scores[:10])  # ties
    np.testing.assert_allclose(LargeMargin().label_costs(scores), large_margin_by_definition(scores), atol=1e-12)


def test_label_costs_keep_float32_and_the_input():
    scores = np.array([[1.0, 2.0]], dtype=np.float32)
    costs = LargeMargin().label_costs(scores)
    assert costs.dtype == np.float32
    assert scores.tolist() == [[1.0, 2.0]]
