"""The estimator of the paper and past it: `TransductiveClassifier`, with scikit-learn's conventions and names."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.base import EARLY_TOL, BaseTransductiveClassifier, FitContext
from transduce.class_prior.bounds import Bounds
from transduce.engines.base import Engine, StepSettings
from transduce.history import FitResult
from transduce.io.checkpoint import Checkpoint
from transduce.label_step import METHODS, LabelStep, is_label_step
from transduce.labels.encode import can, check_above_zero
from transduce.labels.missing import AUTO
from transduce.losses import LargeMargin, Loss, MaxEnt, SquaredLargeMargin
from transduce.solvers.alternating import Settings
from transduce.solvers.annealing import SoftAnnealing
from transduce.solvers.schedule import cooling_schedules, stages

Array = NDArray[Any]

LOSSES: Mapping[str, Callable[[], Loss]] = {
    "hinge": LargeMargin,
    "squared_hinge": SquaredLargeMargin,
    "maxent": MaxEnt,
}
NOT_OF_THE_RESULT = ("class_prior", "taxonomy", "unlabeled", "random_state", "n_jobs", "verbose", "checkpoint")
"""Parameters that a fit's result does not depend on, or by what they are read into only."""


class TransductiveClassifier(BaseTransductiveClassifier):
    """A linear classifier from a few labels, many unlabelled rows and the class sizes.

    y may hold, beside labels and markers of unlabelled rows, sets of candidate labels, inner nodes of the taxonomy, and
    `RuledOut` labels; or it is a boolean matrix (n, K) of the classes that each row may have.

    Parameters
    ----------
    loss : "hinge", "squared_hinge", "maxent", or an object with label_costs, value and gradient

    alpha : weight of the regulariser; for rows of length 1 between 1e-4 and 1e-3

    unlabeled_weight : weight of all unlabelled rows together, where the labelled ones weigh 1

    class_prior : shares of the rows without a full label: fractions or counts in the order of `classes_`, or a mapping
        by name (of a class, or of an inner node of the taxonomy); each a number, (low, high), or None for "not known";
        "estimate" for sizes that all rows suggest together; "labeled" for ranges by the labelled rows alone

    taxonomy : the tree of classes, or anything that Taxonomy.create takes; None for flat classes

    label_step : "exact", "switching", "multi_switch", "single_switch", "simplex", "greedy", or a LabelStep

    annealing : "soft" lets labels cool from distributions to hard ones, in several ways, and keeps the best; "paper"
        lets the unlabelled rows gain weight in nine stages, ten times as fast; None, or growing weights of your own,
        which then stand in the place of unlabeled_weight

    partial_weight : whether a row that y leaves several classes open for (by a set of them, or an inner node of the
        taxonomy) weighs as an unlabelled row or as a labelled one; the first has been better

    price_shift : whether new rows are labelled as the label step would label them, with the prices of the class sizes
        in `intercept_`; False goes by the scores alone, as the paper does

    fit_intercept : whether to add a constant feature, regularised like the others; texts do better without

    tol : relative accuracy of the last weight steps

    early_tol : that of weight steps while labels still move; small ones are slow, and lead to the same labels whatever
        the order of the rows, the number of threads or workers

    max_iter : rounds a stage, and sweeps a weight step in hundreds

    unlabeled : "auto" reads -1, None, NaN and blanks in y as unlabelled; a value, that one and missing ones; None, only
        missing ones

    random_state : seed of the order in which rows are visited

    n_jobs : threads for large problems; None or -1 for one a core. Results do not depend on it

    verbose : whether to print a line a round; or a function, called with each row of the history as it comes, and with
        those of the fit that class_prior="estimate" begins with

    checkpoint : a folder to keep every complete stage in; a fit that was killed goes on from there when it is called
        again with the same data and parameters, and ends as if nothing had happened. Where random_state is None, it
        goes on with the seed that it began with

    Attributes
    ----------
    classes_ : names of the classes, sorted; coef_, intercept_ : weights; transduction_ : labels of all training rows

    class_counts_ : rows of each class among the unlabelled; prices_ : of the classes, where counts pull; price_shift_ :
        the part of them in `intercept_`; bounds_ : class sizes as they were read; doubts_ : whether they fit the data

    label_distributions_ : probabilities (n, K) of the training rows, which meet the counts and the given labels

    objective_, history_, n_iter_, termination_condition_ : what happened; taxonomy_, n_features_in_

    >>> X = np.array([[0.0, 1.0], [0.1, 1.0], [1.0, 0.0], [1.0, 0.1], [0.2, 0.9], [0.9, 0.2]])
    >>> y = ["tea", "", "coffee", "", "", ""]
    >>> clf = TransductiveClassifier(class_prior={"tea": 0.5, "coffee": 0.5}).fit(X, y)
    >>> clf.transduction_.tolist()
    ['tea', 'tea', 'coffee', 'coffee', 'tea', 'coffee']
    >>> clf.predict([[0.0, 2.0]]).tolist()
    ['tea']
    """

    def __init__(
        self,
        loss: str | Loss = "hinge",
        *,
        alpha: float = 1e-3,
        unlabeled_weight: float = 1.0,
        class_prior: object = "estimate",
        taxonomy: object = None,
        label_step: str | LabelStep = "exact",
        annealing: object = "soft",
        partial_weight: str = "unlabeled",
        price_shift: bool = True,
        fit_intercept: bool = False,
        tol: float = 1e-3,
        early_tol: float = EARLY_TOL,
        max_iter: int = 100,
        unlabeled: object = AUTO,
        random_state: object = None,
        n_jobs: int | None = None,
        verbose: object = 0,
        checkpoint: object = None,
    ) -> None:
        self.loss = loss
        self.alpha = alpha
        self.unlabeled_weight = unlabeled_weight
        self.class_prior = class_prior
        self.taxonomy = taxonomy
        self.label_step = label_step
        self.annealing = annealing
        self.partial_weight = partial_weight
        self.price_shift = price_shift
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.early_tol = early_tol
        self.max_iter = max_iter
        self.unlabeled = unlabeled
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.checkpoint = checkpoint

    def _price_shift(self, loss: Loss, prices: Array) -> Array:
        scale = getattr(loss, "price_scale", 0.0) if self.price_shift else 0.0
        return np.asarray(scale * prices)

    def _loss(self) -> Loss:
        return LOSSES[self.loss]() if isinstance(self.loss, str) else self.loss

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_above_zero(self, "unlabeled_weight", "early_tol")
        if self.partial_weight not in ("unlabeled", "labeled"):
            raise ValueError(f"partial_weight must be 'unlabeled' or 'labeled', but is {self.partial_weight!r}.")
        named = isinstance(self.loss, str) and self.loss in LOSSES
        if not named and not can(self.loss, "label_costs", "value", "gradient"):
            raise ValueError(f"loss must be one of {', '.join(LOSSES)}, or a loss of your own, but is {self.loss!r}.")
        named = isinstance(self.label_step, str) and self.label_step in METHODS
        if not named and not is_label_step(self.label_step):
            raise ValueError(
                f"label_step must be one of {', '.join(METHODS)}, or your own with solve(problem, prices, start) that "
                f"gives every row one label, but is {self.label_step!r}."
            )

    def _open_checkpoint(self, engine: Engine, bounds: Bounds, seeds: list[int]) -> Checkpoint:
        if self.checkpoint is None:
            return Checkpoint()
        return engine.open_checkpoint(self.checkpoint, self._fingerprint(bounds, seeds), seeds)

    def _fingerprint(self, bounds: Bounds, seeds: list[int]) -> dict[str, Any]:
        """All that a fit's result depends on but the rows."""
        groups = bounds.groups
        parts = {name: value for name, value in self.get_params(deep=False).items() if name not in NOT_OF_THE_RESULT}
        parts["taxonomy"] = self.taxonomy_.paths
        parts["class_prior"] = (
            isinstance(self.class_prior, str) and self.class_prior == "estimate",
            *bounds[:2],
            None if groups is None else (groups.above, groups.low, groups.high),
        )
        drawn = self.random_state is None or self.random_state is np.random
        parts["random_state"] = None if drawn else seeds
        return parts

    def _solve(self, engine: Engine, bounds: Bounds, context: FitContext) -> FitResult:
        weights = stages(self.annealing, float(self.unlabeled_weight))  # type: ignore[arg-type]
        step = METHODS[self.label_step] if isinstance(self.label_step, str) else self.label_step
        if bounds.groups is not None and not getattr(step, "takes_groups", True):
            raise ValueError(
                f"label_step {self.label_step!r} cannot bound branches of the taxonomy, but class_prior does. "
                "Use label_step='exact', or state sizes of classes only."
            )
        steps = StepSettings(bounds, step, 100 * int(self.max_iter))
        settings = Settings(
            weights if engine.n_unlabeled else (),
            float(self.tol),
            max(float(self.tol), float(self.early_tol)),
            int(self.max_iter),
        )
        is_soft = isinstance(self.annealing, str) and self.annealing == "soft"
        schedules = cooling_schedules(float(self.unlabeled_weight)) if is_soft else ()
        return SoftAnnealing(
            engine, steps, settings, context.rng, context.on_round, schedules, context.checkpoint
        ).run()
