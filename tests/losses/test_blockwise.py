"""Losses computed in blocks: independent of blocks and threads, with little memory, and in float32 throughout."""

import threading
import tracemalloc

import numpy as np
import pytest

from transduce.losses import (
    Averaged,
    LargeMargin,
    MaxEnt,
    SmoothMargin,
    SquaredLargeMargin,
    blockwise,
    costs_of,
    is_builtin,
    smoothed,
    value_and_gradient,
)

K = 6
MARGINS = np.random.default_rng(9).random((K, K)) * (1.0 - np.eye(K))
LOSSES = {
    "large-margin": LargeMargin(),
    "large-margin-any": LargeMargin(MARGINS),
    "squared": SquaredLargeMargin(),
    "squared-any": SquaredLargeMargin(MARGINS),
    "maxent": MaxEnt(),
    "smooth": SmoothMargin(),
    "smooth-any": SmoothMargin(0.1, MARGINS),
    "smooth-narrow": SmoothMargin(1e-3),
}
every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
both_types = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def some_scores(n=500, dtype=np.float64, n_classes=K):
    return (3.0 * np.random.default_rng(0).normal(size=(n, n_classes))).astype(dtype)


def some_targets(n=500, n_classes=K):
    rng = np.random.default_rng(1)
    return rng.integers(n_classes, size=n), rng.dirichlet(np.full(n_classes, 0.3), n)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(blockwise, "BLOCK_SCORES", 40)
    monkeypatch.setattr(blockwise, "MIN_BLOCK_ROWS", 1)
    monkeypatch.setattr(blockwise, "MIN_BLOCKS_PER_THREAD", 1)


@every_loss
@both_types
def test_results_do_not_depend_on_blocks(loss, dtype, monkeypatch):
    S, targets = some_scores(dtype=dtype), some_targets()

    def answers():
        yield loss.label_costs(S)
        yield loss.posterior(S)
        for of in targets:
            yield loss.value(S, of)
            yield loss.gradient(S, of)

    whole = list(answers())
    monkeypatch.setattr(blockwise, "BLOCK_SCORES", 40)
    monkeypatch.setattr(blockwise, "MIN_BLOCK_ROWS", 1)
    for one, other in zip(whole, answers(), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-5 if dtype == np.float32 else 1e-12, atol=1e-6)


@pytest.mark.usefixtures("small_blocks")
@every_loss
@both_types
def test_results_do_not_depend_on_threads(loss, dtype):
    S, kappa = some_scores(dtype=dtype), np.random.default_rng(2).random(500)
    np.testing.assert_array_equal(costs_of(loss, S, 3), costs_of(loss, S, 1))
    np.testing.assert_array_equal(costs_of(loss, S, 1), loss.label_costs(S))
    for targets in some_targets():
        one, many = (value_and_gradient(loss, S.copy(), targets, kappa, n) for n in (1, 3))
        assert one[0] == many[0] == pytest.approx(float(np.dot(kappa, loss.value(S, targets))), rel=1e-5)
        np.testing.assert_array_equal(one[1], many[1])
        np.testing.assert_allclose(one[1], kappa[:, None] * loss.gradient(S, targets), rtol=1e-5, atol=1e-6)


@every_loss
@pytest.mark.parametrize("kind", [np.float32, np.float64], ids=["float32-targets", "float64-targets"])
def test_float32_stays_float32_for_any_targets(loss, kind):
    S, (labels, posteriors) = some_scores(dtype=np.float32), some_targets()
    assert loss.label_costs(S).dtype == loss.posterior(S).dtype == costs_of(loss, S).dtype == np.float32
    for soft in (loss, Averaged(loss)):
        for targets in (labels, posteriors.astype(kind)):
            assert soft.value(S, targets).dtype == soft.gradient(S, targets).dtype == np.float32
            assert value_and_gradient(soft, S.copy(), targets, np.ones(500))[1].dtype == np.float32


@pytest.mark.parametrize("n_classes", [1, 2, 50])
@pytest.mark.parametrize("width", [0.02, 0.1, 1.0])
def test_unit_margins_in_float32_lose_no_digits(n_classes, width):
    S = some_scores(n_classes=n_classes, dtype=np.float32)
    S[:50] *= 10.0
    S[50:60] = np.rint(S[50:60])
    one, other = (SmoothMargin(width, m) for m in (None, 1.0 - np.eye(n_classes)))
    exact = other.label_costs(S.astype(np.float64))
    np.testing.assert_allclose(one.label_costs(S), exact, rtol=1e-5, atol=3e-6 * max(width, 0.1))


def test_unit_margins_have_the_gradient_of_a_matrix_of_ones():
    S = some_scores()
    S[:200] = np.rint(S[:200] / 3.0)
    for targets in some_targets():
        for kind in (LargeMargin, SquaredLargeMargin):
            one, other = kind().gradient(S, targets), kind(1.0 - np.eye(K)).gradient(S, targets)
            np.testing.assert_allclose(one, other, atol=1e-12)


@every_loss
def test_peak_memory_is_the_result_and_a_block(loss):
    n = 20 * blockwise.BLOCK_SCORES // K
    S, labels, kappa = some_scores(n, np.float32), some_targets(n)[0], np.ones(n)
    for work in (
        lambda: loss.label_costs(S),
        lambda: loss.gradient(S, labels),
        lambda: loss.posterior(S),
        lambda: loss.value(S, labels),
        lambda: value_and_gradient(loss, S, labels, kappa),
    ):
        work()
        tracemalloc.start()
        answer = work()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak - (answer.nbytes if isinstance(answer, np.ndarray) else 0) < 0.4 * S.nbytes


class Own:
    """A user-defined loss that records how it was called."""

    def __init__(self):
        self.calls = []

    def label_costs(self, scores):
        self.calls.append((len(scores), threading.current_thread()))
        return MaxEnt().label_costs(scores)

    def value(self, scores, targets):
        return MaxEnt().value(scores, targets)

    def gradient(self, scores, targets):
        return MaxEnt().gradient(scores, targets)


@pytest.mark.usefixtures("small_blocks")
def test_a_user_defined_loss_is_called_once_with_all_rows():
    own, S = Own(), some_scores()
    for loss in (own, smoothed(own)):
        own.calls.clear()
        np.testing.assert_array_equal(costs_of(loss, S, 3), MaxEnt().label_costs(S))
        assert own.calls == [(500, threading.current_thread())]


@pytest.mark.usefixtures("small_blocks")
def test_a_subclass_of_a_builtin_loss_is_user_defined():
    class Twice(MaxEnt):
        def label_costs(self, scores):
            return 2.0 * super().label_costs(scores)

    S = some_scores()
    assert not is_builtin(Twice())
    np.testing.assert_array_equal(costs_of(Twice(), S, 3), 2.0 * MaxEnt().label_costs(S))


@every_loss
def test_labels_out_of_range_raise(loss):
    with pytest.raises(ValueError, match="the class of each of the 500 rows"):
        loss.value(some_scores(), np.full(500, K))


@every_loss
def test_empty_scores_give_empty_results(loss):
    nothing = np.zeros((0, K))
    assert loss.label_costs(nothing).shape == loss.gradient(nothing, np.zeros(0, int)).shape == (0, K)
    assert loss.value(nothing, np.zeros(0, int)).shape == (0,)
