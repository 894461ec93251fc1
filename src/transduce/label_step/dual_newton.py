"""Newton's method on the smooth concave dual of the entropic label step.

    max over u of Σ_j (low_j u_j if u_j > 0 else high_j u_j) − Σ_i log Σ_k exp(v_k − costs[i, k] / T)

The multiplier u_j belongs to class or group j, in units of T, and the price v_k of a class is the sum of those from the
class up to the root (see `count_tree`). Where low_j < high_j the dual has a kink at u_j = 0. With a belief about j the
first term is the least f_j(n) / T + u_j n, which is smooth. A step that would not raise the dual gives way to
Sinkhorn's scaling step, which always does.
Minus the second derivative in v is the Laplacian of a graph of the classes: k and l ≠ k are joined by Σ_i q_ik q_il.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from transduce.label_step.count_tree import CountTree
from transduce.label_step.row_blocks import BoolArray, FloatArray, IntArray
from transduce.label_step.soft_partitions import SoftPartitions
from transduce.label_step.softmax_sums import Sums, product_columns

LONGEST_STEP, LONGEST_SCALING = 8.0, 300.0
"""Largest change of a price in a Newton step, whose curvature is not trusted beyond it, and in a scaling step."""
RIDGE = 1e-9
"""Curvature added to directions that have none, as a fraction of the counts."""
LAST = 2.0
"""A step is expected to be the last if the squared relative residual is at most this many tolerances."""
STALLED = 8
"""Steps without a smaller residual after which only rounding is left."""


@dataclass(frozen=True, eq=False)
class Point:
    """Multipliers u (N,) and prices v (K,) in units of T, the mass (N,) of each node, and the value of the dual."""

    u: FloatArray
    v: FloatArray
    mass: FloatArray
    value: float
    sums: Sums


@dataclass(frozen=True, eq=False)
class DualNewton:
    """The search for multipliers at a temperature T."""

    tree: CountTree
    T: float
    rows: SoftPartitions

    @cached_property
    def has_kink(self) -> BoolArray:
        """Nodes (N,) whose count may vary without a belief about it."""
        return np.asarray((self.tree.low < self.tree.high) & ~self.tree.believed)

    @property
    def open_classes(self) -> IntArray:
        """Classes that may have rows."""
        return np.flatnonzero(~self.tree.closed_classes)

    def at(self, u: FloatArray, products: bool = False) -> Point:
        """Sums at these multipliers, and the value of the dual."""
        tree, v = self.tree, self.tree.prices(u)
        if tree.n_groups and not tree.believed.any():
            u = tree.differences(tree.potentials(v))
        columns = product_columns(self.open_classes, v.size) if products else None
        sums = self.rows.sums(v, self.T, columns)
        best = tree.best_masses(self.T * u)
        value = float(np.dot(best, u)) + tree.count_cost(best) / self.T
        return Point(u, v, tree.sums(sums.mass), value - sums.normalizer, sums)

    def deficit(self, point: Point) -> FloatArray:
        """Rows that each node lacks, negative where it has too many: the slope of the dual."""
        best = self.tree.best_masses(self.T * point.u)
        at_kink = np.clip(point.mass, self.tree.low, self.tree.high)
        return np.asarray(np.where((point.u == 0) & ~self.tree.believed, at_kink, best) - point.mass)

    def maximize(self, v: FloatArray, tol: float, max_steps: int) -> tuple[Point, int, bool]:
        """Maximise the dual from prices v until the counts are met; return the end, the steps, and whether they are."""
        believed = np.where(self.tree.believed, self.tree.belief.mean, 0.0)
        allowed = tol * np.maximum(np.maximum(self.tree.low, np.minimum(believed, self.tree.high)), 1.0)
        start = np.append(np.where(self.tree.closed_classes, 0.0, v), np.zeros(self.tree.n_groups))
        point = self.at(start, self.rows.eager_products)
        best, since, step = np.inf, 0, 0
        for step in range(1, max_steps + 1):
            deficit = self.deficit(point)
            if np.all(np.abs(deficit) <= allowed):
                return point, step, True
            worst = float(np.abs(deficit).max())
            best, since = (worst, 0) if worst < 0.7 * best else (best, since + 1)
            if since > STALLED:
                break
            last = tol * float(np.abs(deficit / allowed).max()) ** 2 <= LAST
            point = self._step(point, deficit, self.rows.eager_products and not last)
        return point, step, False

    def _step(self, point: Point, deficit: FloatArray, products: bool) -> Point:
        """A Newton step within the orthant of u, shortened while it fails; or a scaling step."""
        direction = self._newton(point, deficit)
        slope = float(np.dot(deficit, direction))
        lengths = [1.0, self._to_kink(point.u, direction), 0.3, 0.1]
        for length in lengths if slope > 0 else ():
            u = self._in_orthant(point.u, point.u + length * direction, deficit)
            new = self.at(u, products and length == 1.0)
            if new.value >= point.value + 1e-4 * length * slope:
                return new
        for level in self.tree.levels:
            u = point.u.copy()
            u[level] = self._scaled(point)[level]
            point = self.at(u, products and level is self.tree.levels[-1])
        return point

    def _newton(self, point: Point, deficit: FloatArray) -> FloatArray:
        """The Newton direction of the nodes that are off their bounds, no longer than the curvature is trusted.

        Between groups and their parts there are directions without curvature. At the u that bounds are worth most at,
        none of them leads up, except from a kink to its wrong side: multipliers that would go there stay.
        """
        moving = np.flatnonzero((deficit != 0) & ~self.tree.closed)
        H = self._curvature(point, moving)
        direction = np.zeros_like(point.u)
        direction[moving] = np.linalg.solve(H, deficit[moving])
        at_kink = (point.u == 0) & self.has_kink if self.tree.n_groups else self.tree.closed
        while np.any(wrong := (at_kink & (direction * deficit < 0))[moving]):
            direction[moving[wrong]] = 0.0
            moving, H = moving[~wrong], H[np.ix_(~wrong, ~wrong)]
            direction[moving] = np.linalg.solve(H, deficit[moving])
        length = float(np.abs(direction).max())
        return direction * min(1.0, LONGEST_STEP / length) if length > 0 else direction

    def _curvature(self, point: Point, moving: IntArray) -> FloatArray:
        """Minus the second derivative of the dual in some of the multipliers, and a ridge."""
        columns, L = self._laplacian(point, self.open_classes if self.tree.n_groups else moving)
        if self.tree.n_groups:
            A = np.vstack((np.eye(self.tree.n_classes, dtype=bool), self.tree.members))
            A = A[np.ix_(moving, columns)].astype(np.float64)
            H = A @ L @ A.T
        else:
            among = np.searchsorted(columns, moving)
            H = L if among.size == columns.size else L[np.ix_(among, among)]
        H[np.diag_indices_from(H)] += RIDGE * (1.0 + self.tree.high[moving]) + self._belief_curvature(point.u)[moving]
        if self.tree.exact:
            H += 1.0  # the constant direction, along which nothing changes
        return np.asarray(H)

    def _belief_curvature(self, u: FloatArray) -> FloatArray:
        """How fast the best count of each node (N,) falls with its multiplier: 0 without a belief, and at a bound."""
        tree, best = self.tree, self.tree.best_masses(self.T * u)
        varies = tree.believed & (best > tree.low) & (best < tree.high)
        return np.where(varies, self.T * (best + tree.belief.offset) / np.where(varies, tree.belief.strength, 1.0), 0.0)

    def _laplacian(self, point: Point, wanted: IntArray) -> tuple[IntArray, FloatArray]:
        """Minus the second derivative in the prices of some classes, at least those wanted."""
        n_classes = self.tree.n_classes
        if point.sums.products is None:
            columns = product_columns(wanted, n_classes)
            products = self.rows.sums(point.v, self.T, columns).products
        else:
            columns, products = product_columns(self.open_classes, n_classes), point.sums.products
        L = -np.asarray(products, dtype=np.float64)
        np.fill_diagonal(L, 0.0)
        np.fill_diagonal(L, -L.sum(axis=1))  # from the products, not as a small difference of large numbers
        return columns, L[: columns.size, : columns.size]

    def _to_kink(self, u: FloatArray, direction: FloatArray) -> float:
        """The step length at which the first multiplier with a kink reaches 0; or one half."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            lengths = np.where((direction != 0) & self.has_kink, -u / direction, np.inf)
        first = float(np.where(lengths > 0, lengths, np.inf).min(initial=np.inf))
        return first if first < 1.0 else 0.5

    def _in_orthant(self, u: FloatArray, new: FloatArray, deficit: FloatArray) -> FloatArray:
        """Stop multipliers at a kink that they would cross: the slope changes there."""
        side = np.where(u != 0, np.sign(u), np.sign(deficit))
        crossing = (new * side < 0) & self.has_kink
        return np.where(crossing, 0.0, new)

    def _scaled(self, point: Point) -> FloatArray:
        """The best multiplier of each class or group alone, if the rows' normalizers stayed (Sinkhorn's step)."""
        u = point.u
        with np.errstate(divide="ignore", invalid="ignore"):
            bare = np.log(point.mass) - u
            low, high = np.log(self.tree.low) - bare, np.log(self.tree.high) - bare
        new = low if self.tree.exact else np.where(low > 0, low, np.where(high < 0, high, 0.0))
        if self.tree.believed.any():
            belief, scale = self.tree.belief, np.where(self.tree.believed, self.tree.belief.strength / self.T, 1.0)
            within = (np.log(belief.mean) - bare) * scale / (1.0 + scale)
            new = np.where(self.tree.believed, np.clip(within, low, np.maximum(low, high)), new)
        new = np.where(np.isfinite(new), new, u)
        return np.clip(new, u - LONGEST_SCALING, u + LONGEST_SCALING)
