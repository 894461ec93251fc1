"""Classifiers for tests of model selection: a quick one, one that records its fits, and an interrupted label step."""

import numpy as np

from transduce import TransductiveClassifier

PAPER = TransductiveClassifier(annealing="paper")


class RecordingClassifier(TransductiveClassifier):
    """Records X and y of every fit, of all clones, in `fits`."""

    fits: list = []  # noqa: RUF012 -- shared by clones on purpose

    def fit(self, X, y, sample_weight=None):
        RecordingClassifier.fits.append((X, np.array(y)))
        return super().fit(X, y, sample_weight)


class InterruptedLabelStep:
    """A label step during which the user presses Ctrl-C."""

    def solve(self, problem, prices=None, start=None):
        raise KeyboardInterrupt
