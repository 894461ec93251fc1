"""Methods of transductive few-shot learning, reimplemented from their papers in numpy, and classifiers to compare with.

A method is a function of a setting and a `Task` that returns the scores of unlabelled and new rows (`Fitted`). Rows
should be centred by the mean of all training rows and have length 1. Settings are those of the papers and a few around
them; which one is used is decided on hidden labels (`task.chosen`). Where class sizes are known, methods that have a
place for them use them there; the scores of the others are transported to the sizes, which is OTTER.
"""

from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from experiments.few_shot import information
from experiments.few_shot.classifiers import label_spreading, logistic, self_training
from experiments.few_shot.information import Setting, information_maximized
from experiments.few_shot.laplacian import laplacian_shot
from experiments.few_shot.prototypes import bd_cspn, nearest_mean
from experiments.few_shot.task import Fit, Fitted, Task, chosen, transported
from experiments.few_shot.transport import PowerSetting, ShiftSetting, otter, pt_map

PRIORS = ("uniform", "labeled")
STRENGTHS = (10.0, 1.0, 100.0)


class Method(NamedTuple):
    """How to fit, the settings to choose from, the published one first, and whether it uses class sizes itself.

    `trial` fits while a setting is chosen: fewer and longer steps for methods of gradient descent. In this choice
    `n_beside` unlabelled rows take part, more for graphs, whose best number of neighbours grows with the rows.
    """

    fit: Fit
    settings: Sequence[Any]
    uses_sizes: bool = False
    trial: Fit | None = None
    n_beside: int = 1000


def _information(name: str, settings: Sequence[tuple[float, float, float]]) -> Method:
    quick = {"n_steps": information.N_STEPS // 10, "step": 10 * information.STEP}
    return Method(
        partial(information_maximized, name),
        [Setting(*setting, prior) for prior in PRIORS for setting in settings],
        uses_sizes=True,
        trial=partial(information_maximized, name, **quick),
    )


METHODS: dict[str, Method] = {
    "TIM": _information("TIM", [(15.0, 0.1, 0.1), (30.0, 1.0, 0.1), (15.0, 1.0, 1.0), (30.0, 1.0, 1.0)]),
    "alpha-TIM": _information("alpha-TIM", [(15.0, 1.0, 2.0), (15.0, 1.0, 7.0), (15.0, 1.0, 1.3), (30.0, 1.0, 1.3)]),
    "Fisher-Rao": _information("Fisher-Rao", [(15.0, 1.0, 1.0), (15.0, 0.1, 1.0), (30.0, 1.0, 1.0)]),
    "PT-MAP": Method(
        pt_map, [PowerSetting(p, s, prior) for prior in PRIORS for p, s in product((0.5, 1.0), (10.0, 5.0))], True
    ),
    "BD-CSPN": Method(bd_cspn, (0.5, 0.1, 1.0)),
    "LaplacianShot": Method(laplacian_shot, (0.7, 0.3, 1.0, 3.0), n_beside=4000),
    "OTTER": Method(otter, [ShiftSetting(C, prior) for C in STRENGTHS for prior in ("estimate", "labeled")], True),
    "nearest class mean": Method(nearest_mean, (None,)),
    "LogisticRegression": Method(logistic, STRENGTHS),
    "SelfTraining": Method(self_training, list(product((10.0, 100.0), (0.75, 0.5)))),
    "LabelSpreading": Method(label_spreading, list(product((7, 30, 100), (0.2, 0.8))), n_beside=4000),
}
"""By name; SelfTraining has LogisticRegression inside, OTTER its probabilities."""


def fit(name: str, task: Task) -> tuple[Fitted, Any]:
    """Scores of a method with the setting that hidden labels prefer, and this setting."""
    method = METHODS[name]
    settings = method.settings
    if task.proportions is not None or np.ptp(task.labeled_fractions) == 0:  # both priors are the same
        settings = [s for s in settings if getattr(s, "prior", "uniform") != "labeled"]
    setting = chosen(settings, partial(_sized, method, method.trial or method.fit), task, method.n_beside)
    return _sized(method, method.fit, setting, task), setting


def _sized(method: Method, fit: Fit, setting: Any, task: Task) -> Fitted:
    fitted = fit(setting, task)
    if task.proportions is None or method.uses_sizes:
        return fitted
    return transported(fitted, task.proportions)
