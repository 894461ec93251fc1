"""The result of a label step: labels, prices, and a certificate of how far the labels can be from the optimum."""

from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from transduce.label_step.row_blocks import FloatArray, IntArray


class Status(Enum):
    """How a label step ended; the value is the sentence for the user."""

    OPTIMAL = "The labels are optimal: their cost equals the dual value of the prices."
    SWITCHED_OUT = "No single switch of two rows lowers the cost; the gap bounds the distance from the optimum."
    ROUNDS_SPENT = "The maximum number of switching rounds was reached; more may lower the cost further."
    ONE_SWITCH = "The best switch was made; more may lower the cost further."
    GREEDY = "The labels meet the counts and were chosen greedily; the gap bounds the distance from the optimum."
    ROUNDED = "The labels are optimal up to rounding, which the gap bounds; the costs differ much in size."
    OUT_OF_TIME = "The time limit was reached before the optimum; raise max_seconds, or use method='exact'."


@dataclass(frozen=True)
class TracePoint:
    """Progress of a solver.

    Attributes
    ----------
    seconds : float
        Time since its start.
    n_steps : int
        Steps made.
    cost : float
        Cost of the labels.
    """

    seconds: float
    n_steps: int
    cost: float


@dataclass(frozen=True, eq=False)
class LabelSolution:
    """Labels that meet the counts, with their prices and a certificate.

    Attributes
    ----------
    labels : ndarray of shape (n,)
        Class of each row.
    prices : ndarray of shape (K,)
        Dual variables of the counts, those of the groups of a class included: what a class pays its rows to come.
    cost : float
        Σ_i costs[i, labels[i]].
    dual_value : float
        Lower bound on the cost of any labels that meet the counts.
    gap : float
        cost − dual_value, never negative.
    n_moves : int
        Moves of a row from one class to another that the search made.
    n_rounds : int
        Searches (exact), rounds that switched rows (switching) or pivots (simplex).
    status : Status
        How the label step ended.
    trace : tuple of TracePoint, default=()
        Cost against time, where a solver records it.
    group_prices : ndarray of shape (G,)
        Multiplier of each group's own bounds; empty without groups.
    """

    labels: IntArray
    prices: FloatArray
    cost: float
    dual_value: float
    gap: float
    n_moves: int
    n_rounds: int
    status: Status
    trace: tuple[TracePoint, ...] = ()
    group_prices: FloatArray = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True, eq=False, kw_only=True)
class PartitionedSolution(LabelSolution):
    """The same for labels that stay in their partitions, as state["labels"]; `labels` is empty."""

    n_changed: int  # rows whose label is not the present one
    n_gathered: int  # rows whose costs were sent to the driver
