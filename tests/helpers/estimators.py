"""Classifiers that general checks run on: two that stand for all, quick ones, and the others."""

from transduce import (
    EntropyRegularizedClassifier,
    ExpectationConstrainedClassifier,
    ExpectationRegularizedClassifier,
    PosteriorRegularizedClassifier,
    TransductiveClassifier,
)

COMMON = [TransductiveClassifier(), EntropyRegularizedClassifier()]
QUICK = [TransductiveClassifier("maxent", annealing="paper"), PosteriorRegularizedClassifier()]
SLOW = [
    TransductiveClassifier("maxent"),
    TransductiveClassifier("squared_hinge"),
    TransductiveClassifier(annealing="paper"),
    ExpectationConstrainedClassifier(),
    ExpectationRegularizedClassifier(),
]
