"""Methods of others with the exact class sizes of the unlabelled rows: two of benchmarks.methods, and self-training.

Their settings are those of the comparison in benchmarks.methods. Sizes enter through the exact label step: as labels
that have these counts, or as prices that shift the scores of every row.
"""

from collections.abc import Callable

import numpy as np
from sklearn.semi_supervised import SelfTrainingClassifier

from benchmarks.methods import Split, logistic, logistic_twice, shifted_svc
from transduce import solve_labels

FLOOR = 1e-12


def self_training(split: Split) -> Callable:
    """Self-training with logistic regression, its log probabilities shifted by the prices of the true counts."""
    model = SelfTrainingClassifier(logistic(split.n_labeled)).fit(split.X, split.marked)

    def scores(rows) -> np.ndarray:
        return np.log(np.maximum(model.predict_proba(rows), FLOOR))

    prices = solve_labels(-scores(split.X[split.n_labeled :]), split.present()).prices
    return lambda rows: model.classes_[(scores(rows) + prices).argmax(axis=1)]


SIZED_PEERS: dict[str, Callable[[Split], Callable]] = {
    "LogisticRegression twice": logistic_twice,
    "LinearSVC shifted": shifted_svc,
    "SelfTraining shifted": self_training,
}
"""By name, a function of a split of benchmarks.methods that returns a function of new rows."""
