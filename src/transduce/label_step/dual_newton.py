"""The way to the multipliers u at which distributions meet the counts: Newton's method on the smooth concave dual.

    max over u of Σ_j (low_j u_j if u_j > 0 else high_j u_j) − Σ_i log Σ_k exp(v_k − costs[i, k] / T)

u_j belongs to class or group j, in units of T, and v_k is the sum of those on the way up (see `nodes`). There is a
corner at u_j = 0 where a count has room. A step that would not raise the dual gives way to a scaling step, which always
does. The rows are seen through their sums alone, so they may be anywhere.

Minus the second derivative in v is the Laplacian of a graph of the classes: l and k ≠ l are joined by Σ_i q_ik q_il.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from transduce.label_step.cost_statistics import BoolArray, CostStatistics
from transduce.label_step.count_tree import Nodes
from transduce.label_step.problem import FloatArray, IntArray, LabelProblem
from transduce.label_step.softmax_sums import Sums, asked_for

LONGEST_STEP = 8.0
"""Largest change of a price in one step, in units of T: the curvature is trusted no further."""
LONGEST_SCALING = 300.0
"""The same for a scaling step."""
RIDGE = 1e-9
"""Curvature lent to directions that have none, as a share of the counts."""
LAST = 2.0
"""A step is taken to be the last if the square of the share of a count that lacks is at most so many tolerances."""
STALLED = 8
"""Steps without a smaller residual after which rounding is taken to be all that is left."""


class Rows(Protocol):
    """Rows in one place or many, as a search sees them.

    `products_at_once` says that products are best made together with the other sums, if they may be needed: a pass of
    their own would take longer than products that turn out to be of no use.
    """

    @property
    def facts(self) -> CostStatistics:
        """What is known about the costs of all rows."""
        ...

    @property
    def products_at_once(self) -> bool:
        """Whether to ask for products before it is known that they are needed."""
        ...

    def at(self, v: FloatArray, T: float, columns: IntArray | None) -> Sums:
        """Sums over all rows at prices v (K,) in units of T; with products of the columns, if there are any."""
        ...


@dataclass(frozen=True, eq=False)
class Point:
    """Multipliers u (N,) and prices v (K,) in units of T, the rows (N,) of each node, and the value of the dual."""

    u: FloatArray
    v: FloatArray
    mass: FloatArray
    value: float
    sums: Sums


@dataclass(frozen=True, eq=False)
class Search:
    """The search for multipliers at a temperature; of the problem only the bounds and the size are looked at."""

    problem: LabelProblem
    T: float
    rows: Rows
    closed: BoolArray

    @property
    def nodes(self) -> Nodes:
        """Classes and groups, with their bounds."""
        return self.problem.nodes

    @property
    def open_classes(self) -> IntArray:
        """Classes that may have rows."""
        return np.flatnonzero(~self.closed[: self.problem.n_classes])

    def at(self, u: FloatArray, products: bool = False) -> Point:
        """Sums at these multipliers, and the value of the dual."""
        nodes, v = self.nodes, self.nodes.prices(u)
        if nodes.n_groups:
            u = nodes.differences(nodes.potentials(v))
        columns = asked_for(self.open_classes, v.size) if products else None
        sums = self.rows.at(v, self.T, columns)
        bounds = np.where(u > 0, nodes.low, nodes.high)
        return Point(u, v, nodes.sums(sums.mass), float(np.dot(bounds, u)) - sums.normaliser, sums)

    def lacking(self, point: Point) -> FloatArray:
        """Rows that each node still lacks, below 0 for those it has too many: the slope of the dual."""
        low, high, u = self.nodes.low, self.nodes.high, point.u
        at_corner = np.clip(point.mass, low, high)
        return np.asarray(np.where(u > 0, low, np.where(u < 0, high, at_corner)) - point.mass)

    def climb(self, v: FloatArray, tol: float, max_steps: int) -> tuple[Point, int, bool]:
        """Raise the dual from prices v until the counts are met; returns where it ends, steps, and whether they are."""
        allowed = tol * np.maximum(self.nodes.low, 1.0)
        start = np.append(np.where(self.closed[: v.size], 0.0, v), np.zeros(self.nodes.n_groups))
        point = self.at(start, self.rows.products_at_once)
        best, since, step = np.inf, 0, 0
        for step in range(1, max_steps + 1):
            lacking = self.lacking(point)
            if np.all(np.abs(lacking) <= allowed):
                return point, step, True
            worst = float(np.abs(lacking).max())
            best, since = (worst, 0) if worst < 0.7 * best else (best, since + 1)
            if since > STALLED:
                break
            last = tol * float(np.abs(lacking / allowed).max()) ** 2 <= LAST
            point = self._step(point, lacking, self.rows.products_at_once and not last)
        return point, step, False

    def _step(self, point: Point, lacking: FloatArray, products: bool) -> Point:
        """A Newton step within the orthant of u, shortened while it fails; or a scaling step."""
        direction = self._newton(point, lacking)
        slope = float(np.dot(lacking, direction))
        shares = [1.0, self._to_a_corner(point.u, direction), 0.3, 0.1]
        for share in shares if slope > 0 else ():
            u = self._in_orthant(point.u, point.u + share * direction, lacking)
            further = self.at(u, products and share == 1.0)
            if further.value >= point.value + 1e-4 * share * slope:
                return further
        for level in self.nodes.levels:
            u = point.u.copy()
            u[level] = self._scaled(point)[level]
            point = self.at(u, products and level is self.nodes.levels[-1])
        return point

    def _newton(self, point: Point, lacking: FloatArray) -> FloatArray:
        """The Newton direction in what wants to move, no longer than the curvature is to be trusted.

        Between groups and their parts there are directions without curvature. None of them leads up at the u that
        bounds are worth most at, except from a corner to its wrong side: what would go there stays.
        """
        moving = np.flatnonzero((lacking != 0) & ~self.closed)
        H = self._curvature(point, moving)
        direction = np.zeros_like(point.u)
        direction[moving] = np.linalg.solve(H, lacking[moving])
        cornered = (point.u == 0) & (self.nodes.low < self.nodes.high) if self.nodes.n_groups else self.closed
        while np.any(wrong := (cornered & (direction * lacking < 0))[moving]):
            direction[moving[wrong]] = 0.0
            moving, H = moving[~wrong], H[np.ix_(~wrong, ~wrong)]
            direction[moving] = np.linalg.solve(H, lacking[moving])
        length = float(np.abs(direction).max())
        return direction * min(1.0, LONGEST_STEP / length) if length > 0 else direction

    def _curvature(self, point: Point, moving: IntArray) -> FloatArray:
        """Minus the second derivative of the dual in some of the multipliers, and a ridge."""
        columns, L = self._laplacian(point, self.open_classes if self.nodes.n_groups else moving)
        if self.nodes.n_groups:
            A = np.vstack((np.eye(self.problem.n_classes, dtype=bool), self.nodes.members))
            A = A[np.ix_(moving, columns)].astype(np.float64)
            H = A @ L @ A.T
        else:
            among = np.searchsorted(columns, moving)
            H = L if among.size == columns.size else L[np.ix_(among, among)]
        H[np.diag_indices_from(H)] += RIDGE * (1.0 + self.nodes.high[moving])
        if self.problem.exact_counts:
            H += 1.0  # the constant direction, along which nothing changes
        return np.asarray(H)

    def _laplacian(self, point: Point, wanted: IntArray) -> tuple[IntArray, FloatArray]:
        """Minus the second derivative in the prices of some classes, which hold those that are wanted."""
        n_classes = self.problem.n_classes
        if point.sums.products is None:
            columns = asked_for(wanted, n_classes)
            products = self.rows.at(point.v, self.T, columns).products
        else:
            columns, products = asked_for(self.open_classes, n_classes), point.sums.products
        L = -np.asarray(products, dtype=np.float64)
        np.fill_diagonal(L, 0.0)
        np.fill_diagonal(L, -L.sum(axis=1))  # from what is left out, not as a small difference of large numbers
        return columns, L[: columns.size, : columns.size]

    def _to_a_corner(self, u: FloatArray, direction: FloatArray) -> float:
        """How far along the first price comes to 0 whose count has room; or half way."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            shares = np.where((direction != 0) & (self.nodes.low < self.nodes.high), -u / direction, np.inf)
        first = float(np.where(shares > 0, shares, np.inf).min(initial=np.inf))
        return first if first < 1.0 else 0.5

    def _in_orthant(self, u: FloatArray, further: FloatArray, lacking: FloatArray) -> FloatArray:
        """Stop prices at 0 where they would cross it and their count has room: the slope is another beyond."""
        side = np.where(u != 0, np.sign(u), np.sign(lacking))
        crossing = (further * side < 0) & (self.nodes.low < self.nodes.high)
        return np.where(crossing, 0.0, further)

    def _scaled(self, point: Point) -> FloatArray:
        """Each class or group alone at its best multiplier, were the rows' normalisers to stay."""
        u = point.u
        with np.errstate(divide="ignore", invalid="ignore"):
            bare = np.log(point.mass) - u
            low, high = np.log(self.nodes.low) - bare, np.log(self.nodes.high) - bare
        further = low if self.problem.exact_counts else np.where(low > 0, low, np.where(high < 0, high, 0.0))
        further = np.where(np.isfinite(further), further, u)
        return np.clip(further, u - LONGEST_SCALING, u + LONGEST_SCALING)


def closed_nodes(problem: LabelProblem) -> BoolArray:
    """Classes and groups (N,) that may have no rows at all, by their own high count or that of a group they are in."""
    nodes = problem.nodes
    closed = np.append(nodes.high == 0, False)
    for j in range(nodes.above.size - 1, -1, -1) if nodes.n_groups else ():
        closed[j] |= closed[nodes.above[j]]
    return closed[:-1]
