"""Label problems that every label step is tested on: a family is one function, an instance is a family and a seed.

To test a new family, add it to FAMILIES; to test a new label step, add it to the lists at the end.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from transduce.label_step import METHODS
from transduce.losses import LargeMargin

Rng = np.random.Generator


def seeds(n_quick: int, n_all: int):
    """Parametrise a test with `seeds`: some in the normal run, and the rest among the slow tests."""
    rest = pytest.param(range(n_quick, n_all), id="rest", marks=pytest.mark.slow)
    return pytest.mark.parametrize("seeds", [pytest.param(range(n_quick), id="some"), rest])


@dataclass(frozen=True, eq=False)
class Instance:
    name: str
    costs: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @property
    def counts(self):
        return self.low if np.array_equal(self.low, self.high) else (self.low, self.high)

    @property
    def scale(self) -> float:
        """What an error of the total cost is measured against."""
        finite = np.abs(self.costs[np.isfinite(self.costs)])
        return max(float(finite.sum()), np.finfo(float).tiny) if finite.size else 1.0

    @property
    def integral(self) -> bool:
        finite = self.costs[np.isfinite(self.costs)]
        return bool(np.all(finite == np.rint(finite)) and np.abs(finite).max(initial=0) < 1e6)


def size(rng: Rng, rows: int = 50, classes: int = 9) -> tuple[int, int]:
    return int(rng.integers(1, rows)), int(rng.integers(1, classes))


def random_counts(rng: Rng, n: int, n_classes: int) -> np.ndarray:
    return rng.multinomial(n, rng.dirichlet(np.full(n_classes, rng.choice([0.3, 1.0, 10.0]))))


def gaussian(rng: Rng):
    n, k = size(rng)
    return rng.normal(size=(n, k)), random_counts(rng, n, k)


def hinge(rng: Rng):
    n, k = size(rng)
    scores = rng.normal(size=(n, k)) + 2.0 * np.eye(k)[rng.integers(k, size=n)]
    return LargeMargin().label_costs(scores), random_counts(rng, n, k)


def heavy_ties(rng: Rng):
    n, k = size(rng)
    return rng.integers(0, rng.integers(1, 5), size=(n, k)).astype(float), random_counts(rng, n, k)


def duplicated_rows(rng: Rng):
    n, k = size(rng)
    return rng.integers(-9, 9, size=(3, k)).astype(float)[rng.integers(3, size=n)], random_counts(rng, n, k)


def empty_and_whole_classes(rng: Rng):
    n, k = size(rng)
    counts = np.zeros(k, dtype=int)
    counts[rng.integers(k)] = n
    return rng.normal(size=(n, k)), counts


def more_classes_than_rows(rng: Rng):
    n, k = int(rng.integers(1, 8)), int(rng.integers(8, 40))
    return rng.normal(size=(n, k)), random_counts(rng, n, k)


def extreme_scales(rng: Rng):
    n, k = size(rng)
    return rng.normal(size=(n, k)) * 10.0 ** rng.integers(-9, 9), random_counts(rng, n, k)


def uneven_scales(rng: Rng):
    n, k = size(rng)
    return rng.normal(size=(n, k)) * 10.0 ** rng.integers(-4, 4, size=(n, 1)), random_counts(rng, n, k)


def forbidden(rng: Rng):
    """Labels forbidden at random; counts are those of some allowed labelling, so that they can be met."""
    n, k = size(rng)
    allowed = rng.random((n, k)) < rng.choice([0.2, 0.6])
    witness = rng.integers(k, size=n)
    allowed[np.arange(n), witness] = True
    return np.where(allowed, rng.normal(size=(n, k)), np.inf), np.bincount(witness, minlength=k)


def two_classes(rng: Rng):
    n = int(rng.integers(1, 80))
    return rng.normal(size=(n, 2)), random_counts(rng, n, 2)


FAMILIES: dict[str, Callable] = {
    family.__name__: family
    for family in (
        gaussian,
        hinge,
        heavy_ties,
        duplicated_rows,
        empty_and_whole_classes,
        more_classes_than_rows,
        extreme_scales,
        uneven_scales,
        forbidden,
        two_classes,
    )
}


def instance(family: str, seed: int) -> Instance:
    """An instance with exact counts."""
    costs, counts = FAMILIES[family](np.random.default_rng([seed, *family.encode()]))
    return Instance(f"{family}-{seed}", costs, counts, counts)


def range_instance(family: str, seed: int) -> Instance:
    """The same costs, with counts opened to ranges of random width; some classes stay exact."""
    exact = instance(family, seed)
    rng = np.random.default_rng(seed)
    width = rng.integers(0, 5, size=(2, exact.low.size)) * rng.integers(0, 2, size=exact.low.size)
    low, high = np.maximum(exact.low - width[0], 0), np.minimum(exact.high + width[1], len(exact.costs))
    return Instance(f"{exact.name}-range", exact.costs, low, high)


def classifier_instance(n: int, n_classes: int, seed: int = 0, *, integral: bool = False) -> Instance:
    """Hinge costs of a linear classifier, counts about a fifth away from what its best scores give."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_classes, 24))
    features = 0.5 * centres[rng.integers(n_classes, size=n)] + rng.normal(size=(n, 24))
    costs = LargeMargin().label_costs(features @ (centres + 0.3 * rng.normal(size=centres.shape)).T / 5.0)
    if integral:
        costs = np.rint(costs * 1e4)
    weights = np.bincount(costs.argmin(axis=1), minlength=n_classes) * np.exp(0.25 * rng.normal(size=n_classes))
    counts = rng.multinomial(n, weights / weights.sum())
    return Instance(f"classifier-{n}x{n_classes}-{seed}", costs, counts, counts)


OPTIMAL_STEPS = ("exact", "simplex")
SWITCHING_STEPS = ("switching", "multi_switch", "single_switch")
ALL_STEPS = tuple(METHODS)
