"""Classifiers that general checks run on: quick ones, and the others."""

from sklearn.base import clone

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
STATED = [TransductiveClassifier(), *(clone(each).set_params(class_prior="labeled") for each in FAST[1:])]
"""The quick ones, of which only the first estimates class sizes, by six fits in place of one."""
SLOW = [
    TransductiveClassifier("maxent"),
    TransductiveClassifier("squared_hinge"),
    TransductiveClassifier(annealing="paper"),
    ExpectationConstrainedClassifier(),
    ExpectationRegularizedClassifier(),
]
