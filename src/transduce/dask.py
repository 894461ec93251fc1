"""The estimator over Dask: the same parameters and attributes, with rows in blocks on the workers of a cluster."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from transduce.suggest import install_advice

try:
    from dask.delayed import Delayed
    from distributed import Client, Future, get_client
except ImportError as error:
    raise ImportError(
        f"transduce.dask needs the package distributed, which is not installed. {install_advice('dask')}."
    ) from error
from distributed.protocol.pickle import dumps
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from transduce import estimators
from transduce.engines.dask.blocks import BlockSource, as_blocks, is_single_block
from transduce.engines.dask.engine import DaskData, stored_groups
from transduce.engines.dask.heartbeat import ClusterError, WorkerLostError
from transduce.engines.dask.worker_pool import WorkerPool
from transduce.history import FitResult, FitStatus
from transduce.label_step import Exact
from transduce.labels.classes import as_objects
from transduce.labels.partial import read_matrix

__all__ = ["ClusterError", "TransductiveClassifier"]

MAX_RETRIES = 5
"""Times that a fit starts again after the loss of a worker without getting further than the time before."""


@dataclass(kw_only=True, eq=False, repr=False)
class TransductiveClassifier(estimators.TransductiveClassifier):
    """`transduce.TransductiveClassifier` over the workers of a Dask cluster.

    Rows, labels and weights are blocks: a list of local matrices, futures or delayed objects, or a dask array, bag or
    frame. `predict`, `predict_proba` and `decision_function` take these or a single block, and their results are where
    the blocks are: arrays for local ones, else futures.

    The driver anneals a sample of the rows, and the workers refine the result on all rows. When a worker is lost, that
    continues on those that are left or that come back: from the last stage in `checkpoint`, a folder of the driver, or
    else from the start. The result is the same. A cluster that cannot complete the fit raises `ClusterError`.

    Parameters
    ----------
    client : distributed.Client or None, default=None
        The cluster; None for the client in use.
    label_step : "exact" or label_step.Exact, default="exact"
        The label step.
    n_jobs : int or None, default=None
        Threads of each shard; one if None. The driver uses all of its cores.
    loss, alpha, class_prior, taxonomy, fit_intercept, tol, max_iter, unlabeled, random_state, verbose
        See `transduce.TransductiveClassifier`.
    unlabeled_weight, annealing, partial_weight, price_shift, estimate_accuracy, early_tol, checkpoint
        See `transduce.TransductiveClassifier`.

    Attributes
    ----------
    transduction_ : list
        Labels of each block: arrays where the blocks are local, else futures.
    label_distributions_ : list
        Distributions over the classes of each block, likewise.
    **attributes
        All other attributes are those of `transduce.TransductiveClassifier`.

    Examples
    --------
    >>> from transduce.testing import blobs
    >>> X, _, y = blobs()
    >>> clf = TransductiveClassifier(client=Client(processes=False))  # doctest: +SKIP
    >>> clf.fit([X[:60], X[60:]], [y[:60], y[60:]]).transduction_  # doctest: +SKIP
    """

    client: Client | None = None

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, sampled: Any = None, scores: Any = None, guesses: Any = None
    ) -> "TransductiveClassifier":
        """Learn from labelled and unlabelled rows together.

        Parameters
        ----------
        X, y : list of blocks, dask array, bag or frame
            Features and labels in the same blocks.
        sample_weight : list of blocks, dask array, bag or frame, default=None
            Weights of the rows; all equal if None.
        sampled : bool, default=None
            Whether the labels were drawn at random, as in `transduce.TransductiveClassifier.fit`, for all rows.
        scores, guesses : object, default=None
            Refused: evidence is for rows in memory.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._check_fit(y)
        if scores is not None or guesses is not None:
            raise ValueError("scores and guesses are for rows in memory, but these are on a cluster. Leave them out.")
        if self.outlier_fraction is not None:
            raise ValueError("outlier_fraction is for rows in memory, but these are on a cluster. Leave it out.")
        if sampled is not None and not isinstance(sampled, (bool, np.bool_)):
            raise ValueError(
                f"sampled must be True, False or None over Dask, the same for all rows, but is {sampled!r}."
            )
        self._fit_blocks(WorkerPool(self._client()), X, y, sample_weight, None if sampled is None else bool(sampled))
        return self

    def _fit_blocks(self, pool: WorkerPool, X: Any, y: Any, sample_weight: Any, sampled: bool | None = None) -> None:
        source = BlockSource.create(X, y, sample_weight, stored_groups(self.checkpoint))
        try:
            self._fit_with_retries(
                DaskData(pool, source, self.checkpoint is not None, sampled=sampled), self._draw_seeds()
            )
        except ClusterError as error:
            error.checkpoint = self.checkpoint
            raise
        finally:
            pool.release()

    def _fit_with_retries(self, data: DaskData, seeds: list[int]) -> None:
        """Start again when a worker is lost, as long as the fit gets further from time to time; not after Ctrl-C."""
        pool, furthest, n_retries = data.pool, -1, 0
        while True:
            n_round_trips = pool.n_round_trips
            try:
                return self._fit_data(data, seeds)
            except WorkerLostError as error:
                if pool.interrupted:
                    raise KeyboardInterrupt from error
                reached = pool.n_round_trips - n_round_trips
                n_retries = 0 if reached > furthest else n_retries + 1
                furthest = max(furthest, reached)
                if n_retries >= MAX_RETRIES:
                    raise ClusterError(
                        f"Workers were lost {n_retries + 1} times at the same point, the last time because {error}. "
                        "Give them more memory, or look at their logs."
                    ) from None

    def _set_fitted(self, engine: Any, prior: Any, result: FitResult, *args: Any) -> None:
        engine.pool.interrupted |= result.status is FitStatus.INTERRUPTED  # Ctrl-C came between two calls to the pool
        super()._set_fitted(engine, prior, result, *args)

    def _client(self) -> Client:
        if self.client is None:
            try:
                return get_client()
            except ValueError:
                raise ValueError("No Dask client is in use. Create one, or pass it as client.") from None
        if not isinstance(self.client, Client):
            raise ValueError(f"client must be a distributed.Client, but is {self.client!r}. Pass one, or None.")
        if self.client.status == "closed":
            raise ClusterError("The client is closed. Pass a new one.")
        return self.client

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.label_step != "exact" and not isinstance(self.label_step, Exact):
            raise ValueError(
                f"label_step must be 'exact' over Dask, but is {self.label_step!r}; others need all costs in one place."
            )
        try:
            dumps(self.loss)
        except Exception as error:
            raise ValueError(f"loss must be an object that can be pickled, but is {self.loss!r}.") from error

    def decision_function(self, X: Any) -> Any:
        """Return the scores of one block or many; see `transduce.TransductiveClassifier.decision_function`."""
        return self._map_blocks("decision_function", X)

    @available_if(lambda self: hasattr(self._loss(), "posterior"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of one block or many; see `transduce.TransductiveClassifier.predict_proba`."""
        return self._map_blocks("predict_proba", X)

    def predict(self, X: Any) -> Any:
        """Return the classes of the rows of one block or many; see `transduce.TransductiveClassifier.predict`."""
        return self._map_blocks("predict", X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on the rows of y with a full label.

        Parameters
        ----------
        X, y : block, list of blocks, dask array, bag or frame
            Features and true labels in the same blocks.
        sample_weight : block, list of blocks, dask array, bag or frame, default=None
            Weights of the rows.

        Returns
        -------
        accuracy : float
        """
        single = not self._is_list(X)
        given = {"X": self.predict(X), "y": y} | ({} if sample_weight is None else {"sample_weight": sample_weight})
        blocks = {name: self._fetch([v] if single else as_blocks(v, name)) for name, v in given.items()}
        sizes = {name: [len(block) for block in own] for name, own in blocks.items()}
        for name, own in sizes.items():
            if own != sizes["X"]:
                raise ValueError(f"{name} must have blocks of {sizes['X']} rows, as X has, but has {own}.")
        entries = [
            entry for block in blocks["y"] for entry in as_objects(np.asarray(read_matrix(block)[0], dtype=object))
        ]
        weights = np.concatenate(blocks["sample_weight"]) if "sample_weight" in blocks else None
        return self._accuracy(np.concatenate(blocks["X"]), entries, weights)

    def _fetch(self, blocks: list[Any]) -> list[Any]:
        """Compute and fetch futures and delayed objects, while heartbeats are checked."""
        started = [self._client().compute(block) if isinstance(block, Delayed) else block for block in blocks]
        futures = [block for block in started if isinstance(block, Future)]
        try:
            fetched = iter(WorkerPool(self._client()).results(futures) if futures else ())
        except WorkerLostError as error:
            raise ClusterError(
                "Blocks to be scored were lost or cancelled. Compute them again, and keep them."
            ) from error
        return [next(fetched) if isinstance(block, Future) else block for block in started]

    @staticmethod
    def _is_list(X: Any) -> bool:
        if isinstance(X, (list, tuple)):
            return bool(X) and (is_single_block(X[0]) or getattr(X[0], "ndim", 0) == 2)
        return hasattr(X, "to_delayed") and not isinstance(X, Delayed)

    def _map_blocks(self, method: str, X: Any) -> Any:
        """Apply a method of the model to one block or to many, on the workers where the blocks are futures."""
        check_is_fitted(self)
        model, sent, results = self._local_model(), None, []
        for block in as_blocks(X, "X") if self._is_list(X) else [X]:
            if not isinstance(block, (Future, Delayed)):
                results.append(_apply(model, method, block))
                continue
            client = self._client()
            if sent is None:
                WorkerPool(client).workers()
                sent = client.scatter([model], hash=False)[0]
            block = client.compute(block) if isinstance(block, Delayed) else block
            results.append(client.submit(_apply, sent, method, block, pure=False))
        return results if self._is_list(X) else results[0]

    def _local_model(self) -> estimators.TransductiveClassifier:
        """Return the classifier without its cluster."""
        parameters = {name: value for name, value in self.get_params(deep=False).items() if name != "client"}
        model = estimators.TransductiveClassifier(**parameters)
        for name in ("classes_", "coef_", "intercept_", "n_features_in_", "calibration_", "outlier_score_"):
            setattr(model, name, getattr(self, name))
        return model

    def __sklearn_clone__(self) -> "TransductiveClassifier":
        return type(self)(**self.get_params(deep=False))

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the client, which cannot leave its process."""
        return {**super().__getstate__(), "client": None}


def _apply(model: estimators.TransductiveClassifier, method: str, X: Any) -> Any:
    if getattr(X, "shape", (1,))[0] == 0:
        return getattr(model, method)(np.zeros((1, model.n_features_in_)))[:0]
    return getattr(model, method)(X)
