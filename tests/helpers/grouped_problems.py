"""Label problems with bounds on nested groups of classes."""

from dataclasses import dataclass, replace

import numpy as np

from helpers.problems import classifier_instance
from transduce import solve_labels
from transduce.class_prior.groups import Groups
from transduce.label_step import LabelProblem, LabelSolution


@dataclass(frozen=True, eq=False)
class Grouped:
    """A label problem, with groups as sets of classes: the oracles see no tree."""

    name: str
    costs: np.ndarray
    low: np.ndarray
    high: np.ndarray
    above: list[int]
    group_low: np.ndarray
    group_high: np.ndarray

    @property
    def sets(self) -> np.ndarray:
        """The classes of each class and group, (K+G, K), by walking up from each class."""
        n_classes = self.low.size
        sets = np.zeros((len(self.above), n_classes))
        for k in range(n_classes):
            node = k
            while node < len(self.above):
                sets[node, k] = 1.0
                node = self.above[node]
        return sets

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        return np.concatenate((self.low, self.group_low)), np.concatenate((self.high, self.group_high))

    @property
    def groups(self) -> Groups:
        return Groups(self.above, self.group_low, self.group_high)

    @property
    def problem(self) -> LabelProblem:
        return LabelProblem.create(self.costs, (self.low, self.high), self.groups)

    @property
    def scale(self) -> float:
        return max(float(np.abs(self.costs[np.isfinite(self.costs)]).sum()), np.finfo(float).tiny)

    def solve(self, **arguments) -> LabelSolution:
        return solve_labels(self.costs, (self.low, self.high), groups=self.groups, **arguments)


def random_tree(rng: np.random.Generator, n_classes: int) -> list[int]:
    """Up to three levels of groups, some of one class, some of the same classes as their only part, some empty."""
    above, level = {}, list(range(n_classes))
    n_nodes = n_classes
    for _ in range(rng.integers(1, 4)):
        n_groups = int(rng.integers(1, max(2, len(level) // 2 + 1)))
        joined = rng.integers(-1, n_groups, size=len(level))  # −1: waits for a later level
        for node, group in zip(level, joined.tolist(), strict=True):
            if group >= 0:
                above[node] = n_nodes + group
        level = [node for node in level if node not in above] + list(range(n_nodes, n_nodes + n_groups))
        n_nodes += n_groups
    return [above.get(node, n_nodes) for node in range(n_nodes)]


def opened(rng: np.random.Generator, sizes: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Bounds around sizes: exact, narrow, or none at all."""
    kind = rng.choice(3, p=rng.dirichlet(np.ones(3)), size=sizes.size)
    below, beyond = rng.integers(0, 4, size=(2, sizes.size))
    low = np.select([kind == 0, kind == 1], [sizes, np.maximum(sizes - below, 0)], 0)
    high = np.select([kind == 0, kind == 1], [sizes, np.minimum(sizes + beyond, n)], n)
    return low.astype(int), high.astype(int)


def grouped(seed: int, rows: int = 40) -> Grouped:
    """Random costs of four kinds; bounds that some labels meet, but for every sixth seed, where chance decides."""
    rng = np.random.default_rng([seed, 71])
    n, n_classes = int(rng.integers(1, rows)), int(rng.integers(2, 9))
    shape = (n, n_classes)
    costs = (
        lambda: rng.normal(size=shape),
        lambda: rng.integers(0, rng.integers(1, 5), size=shape).astype(float),
        lambda: rng.integers(-9, 9, size=(3, n_classes)).astype(float)[rng.integers(3, size=n)],
        lambda: rng.normal(size=shape) * 10.0 ** rng.integers(-6, 6),
    )[seed % 4]()
    witness = rng.choice(n_classes, p=rng.dirichlet(np.ones(n_classes)), size=n)
    if rng.random() < 0.4:
        forbidden = rng.random(shape) < rng.choice([0.3, 0.8])
        forbidden[np.arange(n), witness] = False
        costs[forbidden] = np.inf
    above = random_tree(rng, n_classes)
    made = Grouped(f"seed {seed}", costs, *np.zeros((2, n_classes), int), above, *np.zeros((2, 0), int))
    sizes = (made.sets @ np.bincount(witness, minlength=n_classes)).astype(int)
    if seed % 6 == 0:
        sizes = np.minimum(rng.poisson(sizes + 0.3), n)
    low, high = opened(rng, sizes, n)
    return replace(
        made,
        low=low[:n_classes],
        high=high[:n_classes],
        group_low=low[n_classes:],
        group_high=high[n_classes:],
    )


def large(seed: int, n: int = 5000, n_classes: int = 20) -> Grouped:
    """Costs of a classifier and two levels of groups, whose bounds are off what the cheapest labels give."""
    rng = np.random.default_rng(seed)
    base = classifier_instance(n, n_classes, seed)
    inner = rng.integers(4, size=n_classes)
    above = [*(n_classes + inner), n_classes + 4, n_classes + 4, n_classes + 5, n_classes + 6, n_classes + 6]
    above += [n_classes + 6] if len(above) < n_classes + 6 else []
    made = Grouped(f"large {seed}", base.costs, base.low, base.high, above, *np.zeros((2, 0), int))
    sizes = (made.sets @ base.low).astype(int)
    width = np.where(np.arange(sizes.size) < n_classes, rng.choice([0.3, 1.0, 9.0], size=sizes.size), 0.01)
    low, high = np.floor(sizes * np.maximum(1 - width, 0)), np.minimum(np.ceil(sizes * (1 + width)), n)
    low, high = low.astype(int), high.astype(int)
    return replace(
        made, low=low[:n_classes], high=high[:n_classes], group_low=low[n_classes:], group_high=high[n_classes:]
    )


def multipliers(made: Grouped, prices: np.ndarray, group_prices: np.ndarray) -> np.ndarray:
    n_classes = made.low.size
    return np.concatenate((prices - group_prices @ made.sets[n_classes:], group_prices))


def feasible(seeds: range) -> list[int]:
    return [seed for seed in seeds if seed % 6]
