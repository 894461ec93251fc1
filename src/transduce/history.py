"""What happened, one row a round; whoever wants to see it renders it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class HistoryRow:
    """One round of the alternation: a weight step and a label step.

    stage             0 for the supervised start, then 1, 2, ...
    unlabeled_weight  C of the stage
    objective         J after the round
    n_moved           unlabelled rows whose label changed
    gap               what the weight step left open, a bound on J − J* for the losses with a dual
    seconds           since the start
    temperature       T of the soft labels, 0 where they are hard
    way               which of several ways to the labels: 0 for the first, or the only one
    """

    stage: int
    unlabeled_weight: float
    objective: float
    n_moved: int
    gap: float
    seconds: float
    temperature: float = 0.0
    way: int = 0
