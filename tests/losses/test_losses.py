"""Losses against their definitions, gradients against finite differences, and error messages."""

import numpy as np
import pytest

from transduce.losses import LargeMargin, MaxEnt, SmoothMargin, SquaredLargeMargin, smoothed
from transduce.taxonomy import Taxonomy

TREE = Taxonomy.create(["a/x/1", "a/x/2", "a/y", "b", "c/z"])
K = TREE.n_classes


def any_margins(seed: int = 0) -> np.ndarray:
    """Margins without structure: not symmetric, some 0, no triangle inequality."""
    margins = 3.0 * np.random.default_rng(seed).random((K, K))
    margins[margins < 0.6] = 0.0
    np.fill_diagonal(margins, 0.0)
    return margins


MARGINS = {"unit": None, "any": any_margins(), "tree": TREE.margins(), "zero": np.zeros((K, K))}
LOSSES = {f"large-margin-{name}": LargeMargin(margins) for name, margins in MARGINS.items()}
LOSSES |= {f"squared-{name}": SquaredLargeMargin(margins) for name, margins in MARGINS.items()}
LOSSES["maxent"] = MaxEnt()
LOSSES |= {f"smooth-margin-{name}": SmoothMargin(0.1, margins) for name, margins in MARGINS.items()}
LOSSES["wide-smooth-margin"] = SmoothMargin(2.0, any_margins(1))
MEANS = {name: loss for name, loss in LOSSES.items() if not isinstance(loss, SmoothMargin)}
SMOOTH = {name: loss for name, loss in LOSSES.items() if not isinstance(loss, LargeMargin)}
PLAIN = (LargeMargin(), SquaredLargeMargin(), MaxEnt(), SmoothMargin())

every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
mean_losses = pytest.mark.parametrize("loss", MEANS.values(), ids=MEANS)
smooth_losses = pytest.mark.parametrize("loss", SMOOTH.values(), ids=SMOOTH)
plain_losses = pytest.mark.parametrize("loss", PLAIN, ids=lambda loss: type(loss).__name__)


def by_definition(loss, scores: np.ndarray) -> np.ndarray:
    """Costs one label at a time, by the formulas of the package's docstring."""
    n, k = scores.shape
    costs = np.empty((n, k))
    for i in range(n):
        for y in range(k):
            if isinstance(loss, MaxEnt):
                costs[i, y] = np.logaddexp.reduce(scores[i]) - scores[i, y]
                continue
            margins = 1.0 - np.eye(k) if loss.margins is None else loss.margins
            if isinstance(loss, SmoothMargin):
                lifted = margins[y] + scores[i] - scores[i, y]
                costs[i, y] = loss.width * np.logaddexp.reduce(lifted / loss.width)
                continue
            hinge = max(margins[y, j] + scores[i, j] - scores[i, y] for j in range(k))
            costs[i, y] = hinge**2 if isinstance(loss, SquaredLargeMargin) else hinge
    return costs


def some_scores(seed: int = 0, n: int = 60, n_classes: int = K) -> np.ndarray:
    """Scores of ordinary size, with ties in some rows and sizes up to 1e3 in others."""
    scores = np.random.default_rng(seed).normal(size=(n, n_classes))
    scores[:10] = np.rint(scores[:10])
    scores[10] = 0.0
    scores[11:20] *= 1e3
    scores[20, 0], scores[21, -1], scores[22] = 1e3, -1e3, 1e3
    scores[23] = np.where(np.arange(n_classes) % 2, 1e3, -1e3)
    return scores


def some_labels(n: int = 60, n_classes: int = K) -> np.ndarray:
    return np.random.default_rng(1).integers(n_classes, size=n)


def some_posteriors(n: int = 60, n_classes: int = K) -> np.ndarray:
    return np.random.default_rng(2).dirichlet(np.full(n_classes, 0.5), size=n)


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
    for kept, copy in zip((scores, labels, posteriors), copies, strict=True):
        np.testing.assert_array_equal(kept, copy)


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


# ---- the smooth margin


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


# ---- losses while labels are soft


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


def test_large_margins_follow_the_definition():
    margins = np.array([[0.0, 100.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    loss, scores = SmoothMargin(0.1, margins), np.array([[0.0, 0.0, 0.0], [1.0, 0.0, -1.0]])
    np.testing.assert_allclose(loss.label_costs(scores), by_definition(loss, scores), rtol=1e-9)
