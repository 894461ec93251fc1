"""Our methods under the names that the studies use; all of them get the true class sizes."""

import time
from typing import Any

from experiments.data import Split
from transduce import TransductiveClassifier

AS_IN_THE_PAPER = {"annealing": "paper", "label_step": "switching", "price_shift": False, "fit_intercept": False}
SETTINGS: dict[str, dict[str, Any]] = {
    "supervised": {"fit_intercept": False},
    "all labels": {"fit_intercept": False},
    "paper": AS_IN_THE_PAPER,
    "no annealing": AS_IN_THE_PAPER | {"annealing": None},
    "default": {},
}
"""Parameters of each method; "all labels" is the supervised classifier that knows every label of the training rows."""
METHOD_NAMES = {
    "supervised": "supervised",
    "all labels": "all labels known",
    "paper": "the paper's method",
    "no annealing": "without annealing",
    "default": "transduce, default",
}


def fit(split: Split, method: str, seed: int, **parameters: Any) -> tuple[TransductiveClassifier, float]:
    """A fitted model and the seconds that it took."""
    model = TransductiveClassifier(random_state=seed, n_jobs=1, **SETTINGS[method] | parameters)
    n = split.n_labeled
    begin = time.perf_counter()
    if method == "supervised":
        model.fit(split.X[:n], split.given)
    elif method == "all labels":
        model.fit(split.X, split.truth)
    else:
        model.set_params(class_prior=split.sizes).fit(split.X, split.marked)
    return model, time.perf_counter() - begin


def measure(split: Split, method: str, seed: int, **parameters: Any) -> dict[str, float]:
    """Macro F on test rows, and seconds."""
    model, seconds = fit(split, method, seed, **parameters)
    return {"macro_f": round(split.macro_f(split.predictions(model)), 5), "seconds": round(seconds, 4)}
