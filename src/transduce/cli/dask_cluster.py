"""Fit on a Dask cluster: one that is running, given by its address, or new workers on this machine."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.cli.errors import InputError
from transduce.estimators import TransductiveClassifier

ADDRESS = re.compile(r"((tcp|tls|ucx|ws|wss)://)?[^\s/]+:\d+")
EXPECTED = "the address of a scheduler, such as tcp://host:8786"
CONNECT_TIMEOUT = 10
"""Seconds that a scheduler has to answer."""


def check_cluster(address: str | None, n_workers: int | None, none: str | None = None) -> None:
    """Check the options for a cluster, before anything is read."""
    if address is None and n_workers is None:
        return
    if address is not None and n_workers is not None:
        raise InputError("--dask uses a running cluster and --workers starts one. Leave one of them out.")
    if none is not None:
        option = "--dask" if n_workers is None else "--workers"
        raise InputError(f"--none needs all rows in one process, but {option} distributes them. Leave one of them out.")
    if address is not None and not ADDRESS.fullmatch(address):
        raise InputError(f"--dask must be {EXPECTED}, but is {address!r}. Correct it.")
    try:
        import transduce.dask  # noqa: F401
    except ImportError as error:
        raise InputError(str(error)) from None


def fit_on_cluster(
    clf: TransductiveClassifier,
    X: Any,
    y: NDArray[Any],
    address: str | None,
    n_workers: int | None,
    *,
    sampled: bool | None = None,
) -> TransductiveClassifier:
    """Fit a classifier like this one on a cluster, with one block of rows for each thread of its workers.

    `sampled` says whether all labels are a random sample.
    """
    from transduce.dask import ClusterError
    from transduce.dask import TransductiveClassifier as DaskClassifier

    with _client(address, n_workers) as client:
        fitted = DaskClassifier(**clf.get_params(deep=False) | {"client": client, "n_jobs": None})
        n_threads = sum(client.nthreads().values())
        ends = np.linspace(0, len(y), min(len(y), max(1, n_threads)) + 1).astype(int)
        blocks = [slice(start, end) for start, end in pairwise(ends)]
        try:
            fitted.fit([X[block] for block in blocks], [y[block] for block in blocks], sampled=sampled)
        except ClusterError as error:
            raise InputError(f"the workers could not label the rows: {error}") from None
    fitted.transduction_ = np.concatenate(fitted.transduction_)
    fitted.label_distributions_ = np.concatenate(fitted.label_distributions_)
    fitted.client = None
    return fitted


@contextmanager
def _client(address: str | None, n_workers: int | None) -> Iterator[Any]:
    """A client of the scheduler at this address, or of new workers with one thread each."""
    from distributed import Client, LocalCluster

    if address is None:
        workers = LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=None)
        with workers, Client(workers) as client:
            yield client
        return
    try:
        client = Client(address, timeout=CONNECT_TIMEOUT, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise InputError(
            f"no scheduler answered at {address} within {CONNECT_TIMEOUT} s ({type(error).__name__}). --dask must be "
            f"{EXPECTED}. Start it, or correct the address."
        ) from None
    with client:
        yield client
