"""Rows on a device: X as the user passed it, and the engine over it. Labels, class sizes and prices stay in memory."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from transduce.arrays import Array
from transduce.class_prior.bounds import Bounds
from transduce.contract import check_largest, not_finite
from transduce.design import mean_squared_length
from transduce.engines.base import FittedLabels, ProblemSettings, StepSettings
from transduce.engines.common import Calibration, follows_prices
from transduce.engines.device.arrays import (
    Arrays,
    DeviceArray,
    csr_cells,
    csr_rows,
    device_memory,
    in_blocks,
    is_sparse,
    sum_of_squares,
    to_host,
)
from transduce.engines.device.label_rows import device_partitions
from transduce.engines.device.losses import DeviceLoss, device_loss
from transduce.engines.device.restart import DeviceRestart, DeviceRowState
from transduce.engines.device.rows import DeviceRows
from transduce.engines.local import LocalData, LocalEngine, build_rows
from transduce.history import FitResult
from transduce.label_step.entropic import Entropic
from transduce.losses import Loss

NO_OUTLIERS = "outlier_fraction is for rows in memory, but X is on a device. Leave it out, or pass NumPy rows."
GIGABYTE = 1e9


@dataclass(frozen=True, eq=False)
class DeviceEngine(LocalEngine):
    """A training problem on a device."""

    @property
    def rows(self) -> DeviceRows:
        """The rows."""
        return cast(DeviceRows, self.problem.design)

    @property
    def loss(self) -> DeviceLoss:
        """The loss."""
        return device_loss(self.problem.loss, self.n_classes, self.rows.arrays)

    def new_restart(self, settings: StepSettings, rng: np.random.Generator) -> Any:
        return DeviceRestart(self.problem, self.labels.copy(), settings, rng)

    @property
    def is_dense(self) -> bool:
        return not is_sparse(self.rows.X)

    def split_threads(self, n_restarts: int) -> tuple[int, "DeviceEngine"]:
        """A device is busy with one restart."""
        return 1, self

    def in_memory(self) -> LocalEngine:
        design = self.rows.in_memory(np.arange(self.problem.n_rows))
        return LocalEngine(replace(self.problem, design=design), self.labels)

    def in_single_precision(self) -> "DeviceEngine":
        return self

    def in_original_order(self, W: DeviceArray) -> Array:
        return to_host(W)

    def like_rows(self, values: Array) -> DeviceArray:
        """Copy fitted attributes to the device of X."""
        return self.rows.arrays.floats(values)

    def predicted_counts(self, W: DeviceArray) -> Array:
        return self._counts(self._device_scores(W))

    def fitted_labels(
        self, result: FitResult, bounds: Bounds, classes: Array, calibration: Calibration
    ) -> FittedLabels:
        problem, scores, xp = self.problem, self._device_scores(result.W), self.rows.arrays.xp
        counts = np.bincount(result.labels[problem.n_labeled :], minlength=self.n_classes)
        scale = getattr(problem.loss, "price_scale", 0.0)
        priced = probabilities(self.loss, scores + self.like_rows(scale * result.prices), calibration)
        confidence = float(xp.mean(xp.max(priced, axis=1))) if self.n_unlabeled else np.nan
        if not self.n_unlabeled or follows_prices(problem.loss, bounds, self.n_unlabeled):
            posterior = self._allowed(priced)
        else:
            costs = -xp.log(xp.clip(probabilities(self.loss, scores, calibration), min=1e-37))
            costs = DeviceRowState(problem).weighted_costs(costs)
            partitions = device_partitions(costs, None, self.rows.arrays)
            Entropic(1.0, tol=1e-3).solve_partitions(partitions, bounds)
            posterior = partitions.partitions[0].state["posterior"]
        labeled = self.rows.arrays.ints(result.labels[: problem.n_labeled])
        distributions = xp.concat((self.rows.arrays.one_hot(labeled, self.n_classes), posterior))
        assert self.order is not None
        distributions = xp.take(distributions, self.rows.arrays.ints(np.argsort(self.order)), axis=0)
        transduction = classes[self.in_order_of_y(result.labels)]
        return FittedLabels(transduction, counts, self._counts(scores), distributions, confidence)

    def held_out_scores(self, result: FitResult) -> Array:
        raise ValueError(NO_OUTLIERS)

    def set_aside(self, result: FitResult, *_: Any) -> tuple[Array, float]:
        raise ValueError(NO_OUTLIERS)

    def _device_scores(self, W: DeviceArray) -> DeviceArray:
        """Scores of the rows without a full label; W may be in memory."""
        W = self.like_rows(W) if isinstance(W, np.ndarray) else W
        return DeviceRowState(self.problem).unlabeled(self.rows.scores(W))

    def _counts(self, scores: DeviceArray) -> Array:
        """Count rows by the class of their best allowed score."""
        xp, forbidden = self.rows.arrays.xp, self.rows.arrays.bools(self.problem.forbidden)
        best = xp.argmax(scores if forbidden is None else xp.where(forbidden, -xp.inf, scores), axis=1)
        return np.bincount(to_host(best), minlength=self.n_classes)

    def _allowed(self, posterior: DeviceArray) -> DeviceArray:
        """Set forbidden labels to 0 and normalise."""
        xp, forbidden = self.rows.arrays.xp, self.rows.arrays.bools(self.problem.forbidden)
        if forbidden is None:
            return posterior
        allowed = xp.where(forbidden, 0.0, xp.clip(posterior, min=1e-37))
        return allowed / xp.sum(allowed, axis=1, keepdims=True)


@dataclass(eq=False)
class DeviceData(LocalData):
    """X on a device, with y, sample weights and the origin of the labels as users have them."""

    def mean_squared_length(self, n_jobs: int | None) -> float:
        values = csr_cells(self.X)[2] if is_sparse(self.X) else self.X
        return mean_squared_length(sum_of_squares(Arrays.of(self.X), values), self.X.shape[0])

    def build(self, settings: ProblemSettings) -> DeviceEngine:
        device_loss(settings.loss, 2, Arrays.of(self.X))  # refuses a loss that is not built in
        made = build_rows(
            self.X, self.sample_weight, self.encoded, self.taxonomy, settings, create=DeviceRows.create
        )  # fmt: skip
        return DeviceEngine(made.problem, made.labels, made.order)


def check_rows(X: Any, *, to_fit: bool = False) -> tuple[int, int]:
    """Check that X is a matrix of finite numbers, which can be squared if it is to be fitted, and return its shape."""
    if len(X.shape) != 2 or not all(X.shape):
        raise ValueError(f"X must be a matrix, a row per document, but has shape {tuple(X.shape)}.")
    if str(getattr(X, "layout", "torch.strided")) not in ("torch.strided", "torch.sparse_csr"):
        raise ValueError(f"X must be dense or CSR, but has layout {X.layout}. Convert it by X.to_sparse_csr().")
    if getattr(X, "format", "csr") != "csr":
        raise ValueError(f"X must be dense or CSR, but has format {X.format!r}. Convert it by X.tocsr().")
    xp, values = Arrays.of(X).xp, X
    if is_sparse(X):
        starts, columns, values = csr_cells(X)
        is_bad = bool(xp.any(starts[1:] < starts[:-1])) or int(starts[0]) != 0 or int(starts[-1]) != values.shape[0]
        if is_bad or (values.shape[0] and not 0 <= int(xp.min(columns)) <= int(xp.max(columns)) < X.shape[1]):
            raise ValueError("X must have indices within its shape, but has others. Build the matrix again.")
    largest = max(float(xp.max(values)), -float(xp.min(values))) if values.shape[0] else 0.0
    if not np.isfinite(largest):
        raise _not_finite(X, values)
    if to_fit:
        check_largest(largest, str(values.dtype))
    return int(X.shape[0]), int(X.shape[1])


def _not_finite(X: Any, values: DeviceArray) -> ValueError:
    """The error about the first value of X that is not finite."""
    flat = np.asarray(to_host(values)).ravel()
    place = int(np.argmax(~np.isfinite(flat)))
    if not is_sparse(X):
        row, column = divmod(place, int(X.shape[1]))
        return not_finite(row, column, float(flat[place]))
    starts, columns, _ = (np.asarray(to_host(cells)) for cells in csr_cells(X))
    return not_finite(int(np.searchsorted(starts, place, "right")) - 1, int(columns[place]), float(flat[place]))


def probabilities(loss: DeviceLoss, scores: DeviceArray, calibration: Calibration) -> DeviceArray:
    """Calibrated probabilities (n, K) at these scores; see `Calibration`."""

    def of_rows(S: DeviceArray) -> DeviceArray:
        found = loss.posterior(S / calibration.temperature)
        return (1.0 - calibration.smoothing) * found + calibration.smoothing / scores.shape[1]

    return in_blocks(loss.arrays, of_rows, scores)


def predict_probabilities(loss: Loss, scores: DeviceArray, calibration: Calibration) -> DeviceArray:
    """Calibrated probabilities of new rows with scores (n, K), or (n,) in favour of the second of two classes."""
    arrays = Arrays.of(scores)
    if scores.ndim == 1:
        scores = arrays.xp.stack((arrays.xp.zeros_like(scores), scores), axis=1)
    return probabilities(device_loss(loss, scores.shape[1], arrays), scores, calibration)


def linear_scores(X: Any, coef: DeviceArray, intercept: DeviceArray) -> DeviceArray:
    """X coefᵀ + intercept, on the device of X."""
    if type(X).__module__.split(".")[0] not in (type(coef).__module__.split(".")[0], "cupyx"):
        raise TypeError(f"X must be on a device as in fit, but is {type(X).__name__}. Convert it, or fit NumPy rows.")
    if check_rows(X)[1] != coef.shape[1]:
        raise ValueError(f"X has {X.shape[1]} features, but the classifier is expecting {coef.shape[1]} features.")
    xp, (indptr, indices, values) = Arrays.of(X).xp, csr_cells(X) if is_sparse(X) else (None, None, X)
    values = xp.astype(values, coef.dtype, copy=False)
    X = csr_rows(X, (indptr, indices, values), tuple(X.shape)) if is_sparse(X) else values
    return X @ coef.T + intercept


@contextmanager
def memory_explained(X: Any) -> Iterator[None]:
    """Where the device runs out of memory, say how many rows would fit."""
    try:
        yield
    except Exception as error:
        if type(error).__name__ != "OutOfMemoryError":
            raise
        raise MemoryError(_memory_message(X)) from None  # without the frames that hold arrays on the device


def _memory_message(X: Any) -> str:
    """Say how many rows fit: besides X there are a copy, of sparse rows its transpose, and floats for each class."""
    bytes_of = 8 * csr_cells(X)[2].shape[0] if is_sparse(X) else 4 * X.shape[0] * X.shape[1]
    needed, total = 3.5 * bytes_of, device_memory(Arrays.of(X))
    fits = "fewer rows" if total is None else f"at most {int(X.shape[0] * min(total / needed, 0.9))} rows"
    there = "" if total is None else f", of {total / GIGABYTE:.1f} GB there"
    return (
        f"the device has too little memory for X with {X.shape[0]} rows (about {needed / GIGABYTE:.1f} GB are needed"
        f"{there}). Fit {fits}, or pass NumPy rows."
    )
