"""The estimator over Dask: the same parameters and attributes, with rows in blocks that live on the workers."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

try:
    from dask.delayed import Delayed
    from distributed import Client, Future, get_client
except ImportError as error:
    raise ImportError(
        "transduce.dask needs the package distributed, which is not installed. Run: pip install 'transduce[dask]'."
    ) from error
from distributed.protocol.pickle import dumps
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from transduce import estimators
from transduce.base import EARLY_TOL
from transduce.class_prior.bounds import Bounds
from transduce.engines.dask.blocks import Source, as_blocks
from transduce.engines.dask.engine import TEAMS
from transduce.engines.dask.fit import DaskData
from transduce.engines.dask.worker_pool import ClusterError, WorkerLostError, WorkerPool
from transduce.history import HistoryRow
from transduce.label_step import Exact
from transduce.labels.encode import full_labels
from transduce.labels.missing import AUTO, find_labeled
from transduce.taxonomy import Taxonomy

Array = NDArray[Any]

LOST_IN_VAIN = 5
"""Times that workers may be lost again without the fit getting further than the time before."""


class TransductiveClassifier(estimators.TransductiveClassifier):
    """TransductiveClassifier over the workers of a `distributed.Client`; of the one in use, if client is None.

    fit takes lists of blocks of rows and of labels: local matrices and arrays, futures, or delayed objects; or dask
    arrays, bags and frames. Parameters and attributes are those of transduce.TransductiveClassifier, with these
    differences: label_step is "exact", n_jobs are the threads of each shard (one, if None), and `transduction_` and
    `label_distributions_` are lists with an entry for each block, arrays where the blocks are local, else futures.

    Where workers are lost, the fit goes on with those that are left, or that come back: from the last stage that is
    kept in `checkpoint`, a folder that all workers must see; without one, from the start. The result is the same.
    """

    def __init__(
        self,
        loss: Any = "hinge",
        *,
        client: Client | None = None,
        alpha: float = 1e-3,
        unlabeled_weight: float = 1.0,
        class_prior: object = "estimate",
        taxonomy: object = None,
        label_step: Any = "exact",
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
        super().__init__(
            loss, alpha=alpha, unlabeled_weight=unlabeled_weight, class_prior=class_prior, taxonomy=taxonomy,
            label_step=label_step, annealing=annealing, partial_weight=partial_weight, price_shift=price_shift,
            fit_intercept=fit_intercept, tol=tol, early_tol=early_tol, max_iter=max_iter, unlabeled=unlabeled,
            random_state=random_state, n_jobs=n_jobs, verbose=verbose, checkpoint=checkpoint,
        )  # fmt: skip
        self.client = client

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "TransductiveClassifier":
        """Learn from labelled and unlabelled rows together, in blocks."""
        self._check_fit(y)
        pool = WorkerPool(self._client())
        try:
            source = Source.create(X, y, sample_weight, self._kept_teams())
            self._fit_until_done(DaskData(pool, source, self.checkpoint is not None), self._draw_seeds())
        finally:
            pool.drop()
        return self

    def _fit_until_done(self, data: DaskData, seeds: list[int]) -> None:
        """Try until it is done, while each loss of workers comes later than the last."""
        pool, best, in_vain = data.pool, -1, 0
        while True:
            kept, self._n_rounds = pool.n_kept, 0
            try:
                self._fit_data(data, seeds)
                return
            except WorkerLostError as error:
                if pool.interrupted:
                    raise KeyboardInterrupt from error
                in_vain = 0 if self._n_rounds > best or pool.n_kept > kept else in_vain + 1
                best = max(best, self._n_rounds)
                if in_vain >= LOST_IN_VAIN:
                    raise ClusterError(
                        f"workers must live through a round, but were lost {in_vain + 1} times at the same place, the "
                        f"last time because {error}. Give them more memory, or look at their logs.{self._advice()}"
                    ) from None
            except ClusterError as error:
                raise ClusterError(f"{error}{self._advice()}") from None

    def _advice(self) -> str:
        return "" if self.checkpoint is None else f" Stages are kept in {self.checkpoint}: fit goes on from them."

    def _client(self) -> Client:
        if self.client is not None:
            if not isinstance(self.client, Client):
                raise ValueError(
                    f"client must be a distributed.Client, but is {self.client!r}. Pass Client(address), or None."
                )
            if self.client.status == "closed":
                raise ClusterError("the client must be connected, but is closed. Connect a new one, and pass it.")
            return self.client
        try:
            return get_client()
        except ValueError:
            raise ValueError(
                "there must be a client to work with, but none is in use. Make one, distributed.Client(), or pass it."
            ) from None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.label_step != "exact" and not isinstance(self.label_step, Exact):
            raise ValueError(
                f"label_step must be 'exact' where rows are in many places, but is {self.label_step!r}; others need "
                "all costs in one."
            )
        try:
            dumps(self.loss)
        except Exception as error:
            raise ValueError(f"loss must be such that it can be sent to workers, but is {self.loss!r}.") from error

    def _kept_teams(self) -> list[list[list[int]]] | None:
        """Blocks of each shard of each team in the fit that the checkpoint is of, if there is one."""
        if self.checkpoint is None or not isinstance(self.checkpoint, (str, os.PathLike)):
            return None
        path = Path(self.checkpoint) / TEAMS
        try:
            teams = json.loads(path.read_text(encoding="utf-8"))
            return [[[int(b) for b in group] for group in team] for team in teams]
        except (OSError, ValueError, TypeError):
            return None

    def _progress_callback(self) -> Callable[[HistoryRow], None]:
        tell = super()._progress_callback()

        def count_and_tell(row: HistoryRow) -> None:
            self._n_rounds += 1
            tell(row)

        return count_and_tell

    def _fingerprint(self, bounds: Bounds, seeds: list[int]) -> dict[str, Any]:
        parts = super()._fingerprint(bounds, seeds)
        del parts["client"]
        return parts

    def decision_function(self, X: Any) -> Any:
        """Scores of one block, or a list of those of many; futures where the blocks are."""
        return self._of_blocks("decision_function", X)

    @available_if(lambda self: hasattr(self._loss(), "posterior"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """Probabilities of one block, or a list of those of many; futures where the blocks are."""
        return self._of_blocks("predict_proba", X)

    def predict(self, X: Any) -> Any:
        """Classes of one block, or a list of those of many; futures where the blocks are."""
        return self._of_blocks("predict", X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy on the rows with one label, of one block or of many."""
        guesses = self._here(self.predict(X))
        truth = self._here([y] if not isinstance(guesses, list) else as_blocks(y, "y"))
        weights = (
            [None] * len(truth) if sample_weight is None else self._here(as_blocks(sample_weight, "sample_weight"))
        )
        guesses = guesses if isinstance(guesses, list) else [guesses]
        sizes, given = [len(labels) for labels in guesses], [len(entries) for entries in truth]
        if sizes != given:
            raise ValueError(f"y must have blocks of {sizes} rows, as X has, but has {given}. Match them.")
        weighed = [size if own is None else len(own) for size, own in zip(sizes, weights, strict=False)]
        if weighed != sizes:
            raise ValueError(
                f"sample_weight must have blocks of {sizes} rows, as X has, but has {weighed}. Match them."
            )
        tree = None if self.taxonomy is None else Taxonomy.create(self.taxonomy)
        right, of = 0.0, 0.0
        for labels, entries, own in zip(guesses, truth, weights, strict=True):
            values, labeled = find_labeled(entries, self.unlabeled)
            names, labeled = full_labels(values.tolist(), labeled, tree, self.classes_.tolist())
            own = np.ones(len(names)) if own is None else np.asarray(own)
            rows = np.flatnonzero(labeled)
            right += float(sum(own[row] for row in rows if labels[row] == names[row]))
            of += float(own[rows].sum())
        if not of:
            raise ValueError("y must label at least one row to be scored, but every row is unlabelled. Pass the truth.")
        return right / of

    def _here(self, blocks: Any) -> Any:
        """The same with futures and delayed objects computed and fetched, while workers are watched."""
        several = blocks if isinstance(blocks, list) else [blocks]
        there = [self._client().compute(block) if isinstance(block, Delayed) else block for block in several]
        futures = [block for block in there if isinstance(block, Future)]
        try:
            found = iter(WorkerPool(self._client()).answers(futures) if futures else ())
        except WorkerLostError as error:
            raise ClusterError(
                "blocks to be scored must be there, but are cancelled or were lost with their worker. Make them again, "
                "and keep futures in variables while they are in use."
            ) from error
        here = [next(found) if isinstance(block, Future) else block for block in there]
        return here if isinstance(blocks, list) else here[0]

    def _of_blocks(self, method: str, X: Any) -> Any:
        check_is_fitted(self)
        several = isinstance(X, (list, tuple)) and X and _is_block(X[0])
        several = several or (hasattr(X, "to_delayed") and not isinstance(X, Delayed))
        blocks, model, answers = as_blocks(X, "X") if several else [X], self._plain(), []
        sent = None
        for block in blocks:
            if isinstance(block, (Future, Delayed)):
                client = self._client()
                sent = _sent_to_some(client, model) if sent is None else sent
                block = client.compute(block) if isinstance(block, Delayed) else block
                answers.append(client.submit(_apply, sent, method, block, pure=False))
            else:
                answers.append(_apply(model, method, block))
        return answers if several else answers[0]

    def _plain(self) -> estimators.TransductiveClassifier:
        """The classifier without its cluster."""
        params = {name: value for name, value in self.get_params(deep=False).items() if name != "client"}
        plain = estimators.TransductiveClassifier(**params)
        for name in ("classes_", "coef_", "intercept_", "n_features_in_"):
            setattr(plain, name, getattr(self, name))
        return plain

    def __sklearn_clone__(self) -> "TransductiveClassifier":
        return type(self)(**self.get_params(deep=False))

    def __getstate__(self) -> dict[str, Any]:
        """A client stays in its process; another is found, or passed, where the classifier is unpacked."""
        return {**super().__getstate__(), "client": None}


def _is_block(thing: object) -> bool:
    return isinstance(thing, (Future, Delayed)) or sparse.issparse(thing) or getattr(thing, "ndim", 0) == 2


def _sent_to_some(client: Any, model: estimators.TransductiveClassifier) -> Future:
    try:
        return client.scatter([model], hash=False)[0]
    except TimeoutError as error:
        raise ClusterError("there must be a worker to work on, but none has come. Start workers.") from error


def _apply(model: estimators.TransductiveClassifier, method: str, X: Any) -> Any:
    if getattr(X, "shape", (1,))[0] == 0:
        return getattr(model, method)(np.zeros((1, model.n_features_in_)))[:0]
    return getattr(model, method)(X)
