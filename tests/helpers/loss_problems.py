"""Losses with many margins, scores of all sizes, and costs by the definition of each loss."""

import numpy as np
import pytest

from transduce.losses import LargeMargin, MaxEnt, SmoothMargin, SquaredLargeMargin
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
