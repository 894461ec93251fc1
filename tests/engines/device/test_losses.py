"""Losses on a device: costs, values and posteriors are those of the losses in memory, at extreme scores too."""

import numpy as np
import pytest
from helpers.device_arrays import strict, torch_dense
from helpers.weight_problems import smooth_margin, soft_targets

from transduce.engines.device.arrays import Arrays, to_host
from transduce.engines.device.losses import device_loss
from transduce.losses import LargeMargin, MaxEnt, SmoothMargin, SquaredLargeMargin

K = 4
MARGINS = smooth_margin("random", K).margins
LOSSES = {
    "hinge": LargeMargin(), "hinge-margins": LargeMargin(MARGINS), "squared": SquaredLargeMargin(),
    "squared-margins": SquaredLargeMargin(MARGINS), "maxent": MaxEnt(), "smooth": SmoothMargin(0.1),
    "smooth-margins": SmoothMargin(0.3, MARGINS), "smooth-narrow": SmoothMargin(0.01),
}  # fmt: skip
every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
dense = pytest.mark.parametrize("on_device", [torch_dense, strict], ids=["torch", "strict"])


def scores() -> np.ndarray:
    S = np.random.default_rng(0).normal(size=(12, K))
    S[0], S[1], S[2] = 0.0, [1e3, -1e3, 0.0, 1e3], [5.0, 5.0, -5.0, 0.0]
    return S


@dense
@every_loss
def test_costs_values_and_posteriors(loss, on_device):
    S, found = on_device(scores()), None
    here = device_loss(loss, K, Arrays.of(S))
    np.testing.assert_allclose(to_host(here.costs(S)), loss.label_costs(scores()), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(to_host(here.posterior(S)), loss.posterior(scores()), atol=1e-12)
    labels = np.arange(12) % K
    q = on_device(np.eye(K)[labels])
    found, _ = here.values_and_gaps(S, q, q)
    np.testing.assert_allclose(to_host(found), loss.value(scores(), labels), rtol=1e-9, atol=1e-9)


@dense
@pytest.mark.parametrize("loss", [MaxEnt(), SmoothMargin(0.1), SmoothMargin(0.3, MARGINS)], ids=str)
def test_values_of_soft_labels(loss, on_device):
    S, q = on_device(scores()), soft_targets(K, n=12)
    found, _ = device_loss(loss, K, Arrays.of(S)).values_and_gaps(S, on_device(q), on_device(q))
    np.testing.assert_allclose(to_host(found), loss.value(scores(), q), rtol=1e-9, atol=1e-9)


@dense
@every_loss
@pytest.mark.parametrize("curvature", [1e-6, 0.5, 30.0])
def test_dual_steps_end_at_the_optimum_of_their_row(loss, on_device, curvature):
    """Steps at a curvature, with scores that answer to them, close the gap of a row; dual variables stay feasible."""
    S = scores()[2:]
    here, q = device_loss(loss, K, Arrays.of(on_device(S))), on_device(np.eye(K)[np.arange(10) % K])
    B, p = on_device(np.full(10, curvature)), here.dual_at_zero(q)
    for _ in range(300):
        answered = on_device(S + curvature * to_host(here.contribution(q, p)))
        p = here.dual_step(answered, q, p, B).dual
    values, gaps = map(to_host, here.values_and_gaps(on_device(S + curvature * to_host(here.contribution(q, p))), q, p))
    assert np.all(to_host(p) >= 0)
    if not isinstance(loss, SquaredLargeMargin):
        np.testing.assert_allclose(to_host(p).sum(axis=1), 1.0)
    assert np.all(np.abs(gaps) <= 2e-3 * (1.0 + np.abs(values)))


def test_a_loss_of_ones_own_is_refused():
    arrays = Arrays.of(strict(np.zeros((2, 2))))
    with pytest.raises(ValueError, match="built-in loss"):
        device_loss(object(), 2, arrays)
