"""Classifiers that general checks run on: quick ones, and the others."""

from transduce import (
    EntropyRegularizedClassifier,
    ExpectationConstrainedClassifier,
    ExpectationRegularizedClassifier,
    PosteriorRegularizedClassifier,
    TransductiveClassifier,
)

FAST = [
    TransductiveClassifier(),
    TransductiveClassifier("maxent", annealing="paper"),
    EntropyRegularizedClassifier(),
    PosteriorRegularizedClassifier(),
]
SLOW = [
    TransductiveClassifier("maxent"),
    TransductiveClassifier("squared_hinge"),
    TransductiveClassifier(annealing="paper"),
    ExpectationConstrainedClassifier(),
    ExpectationRegularizedClassifier(),
]
