"""Places of documents on a map, by their class scores.

Classes lie on a circle, similar ones side by side, and a document at the mean of their positions, weighted by softmax
probabilities of its scores: the surer the classifier, the farther out. With two classes the circle would be a line, so
the axes are the difference of the scores and the leading direction of the rows that is orthogonal to it.
"""

from typing import Any

import numpy as np

from transduce.arrays import Array

_SPREAD, _POWER_STEPS = 0.7, 20


def place_points(scores: Array, X: Any) -> Array:
    """Return positions (n, 2) between -1 and 1 of documents with these scores (n, K) and rows (n, d)."""
    centered = np.asarray(scores, dtype=np.float64) - scores.mean(axis=1, keepdims=True)
    n_classes = centered.shape[1]
    if n_classes == 2:
        x = centered[:, 1]
        points: Array = np.column_stack((x, _leading_direction(X, x - x.mean())))
        points /= np.maximum(np.abs(points).max(axis=0), 1e-12)
        return points
    scale = (np.log(n_classes - 1) + _SPREAD) / max(float(np.median(centered.max(axis=1))), 1e-12)
    weights = np.exp(scale * (centered - centered.max(axis=1, keepdims=True)))
    weights /= weights.sum(axis=1, keepdims=True)
    directions = np.linalg.eigh(centered.T @ centered)[1][:, -2:]
    places = np.argsort(np.argsort(np.arctan2(directions[:, 0], directions[:, 1]), kind="stable"))
    angles = 2 * np.pi * places / n_classes
    points = weights @ np.column_stack((np.cos(angles), np.sin(angles)))
    points /= max(float(np.hypot(*points.T).max()), 1e-12)
    return points


def _leading_direction(X: Any, x: Array) -> Array:
    """Return the leading principal component (n,) of rows among those orthogonal to x, by power iteration."""
    y = np.random.default_rng(0).standard_normal(x.size)
    for _ in range(_POWER_STEPS):
        y = X @ (X.T @ (y - y.mean()))
        y = y - y.mean()
        y = y - x * (x @ y) / max(x @ x, 1e-12)
        y /= max(float(np.linalg.norm(y)), 1e-12)
    return y
