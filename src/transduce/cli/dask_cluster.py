"""A Dask cluster for a fit: one that runs, known by its address, or workers of its own on this machine."""

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.cli.errors import InputError
from transduce.estimators import TransductiveClassifier

Array = NDArray[Any]

ADDRESS = re.compile(r"((tcp|tls|ucx|ws|wss)://)?[^\s/]+:\d+")
"""Host and port, and how to speak to them."""
CONNECT = 10
"""Seconds that a scheduler has to answer."""


def check_cluster(address: str | None, n_workers: int | None) -> None:
    """See that a cluster can be reached or made, as far as that is known before anything is read."""
    if address is not None and n_workers is not None:
        raise InputError("--dask names a cluster and --workers makes one, but both came. Leave one of them out.")
    if address is not None and not ADDRESS.fullmatch(address):
        raise InputError(
            f"--dask must be the address of a scheduler, such as tcp://host:8786, but is {address!r}. Correct it."
        )
    if address is not None or n_workers is not None:
        try:
            import transduce.engines.dask  # noqa: F401
        except ImportError as error:
            raise InputError(str(error)) from None


def fit_over_workers(
    clf: TransductiveClassifier, X: Any, y: Array, address: str | None, n_workers: int | None
) -> TransductiveClassifier:
    """Fit a classifier like this one on the workers of a cluster, rows in a block for each of their threads.

    Labels and distributions come back as arrays of all rows.
    """
    from transduce.dask import TransductiveClassifier as OverWorkers
    from transduce.engines.dask.worker_pool import ClusterError

    with _client(address, n_workers) as client:
        params = clf.get_params(deep=False) | {"client": client, "n_jobs": None}
        spread = OverWorkers(**params)
        n_threads = sum(client.nthreads().values())
        ends = np.linspace(0, len(y), min(len(y), max(1, n_threads)) + 1).astype(int)
        spans = [slice(begin, end) for begin, end in pairwise(ends)]
        try:
            spread.fit([X[span] for span in spans], [y[span] for span in spans])
        except ClusterError as error:
            raise InputError(f"the workers could not label the rows: {error}") from None
    spread.transduction_ = np.concatenate(spread.transduction_)
    spread.label_distributions_ = np.concatenate(spread.label_distributions_)
    spread.client = None
    return spread


@contextmanager
def _client(address: str | None, n_workers: int | None) -> Iterator[Any]:
    """A client of the scheduler at this address, or of so many new workers of one thread each."""
    from distributed import Client, LocalCluster

    with ExitStack() as stack:
        if address is None:
            cluster = LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=None)
            yield stack.enter_context(Client(stack.enter_context(cluster)))
            return
        try:
            client = Client(address, timeout=CONNECT, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise InputError(
                f"--dask must be the address of a scheduler, such as tcp://host:8786, but at {address} none answered "
                f"in {CONNECT} s ({type(error).__name__}). Start it, or correct the address."
            ) from None
        yield stack.enter_context(client)
