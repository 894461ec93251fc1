"""Clusters of processes, and the fit that those give on which nothing happens."""

import pytest
from helpers.dask_blocks import BLOCKS, QUICK
from helpers.dask_cluster import cluster, wait_for_both
from helpers.inline_pool import fit_inline

from transduce.dask import TransductiveClassifier


@pytest.fixture(scope="module")
def steady():
    """Two workers that nothing happens to."""
    with cluster() as client:
        yield client


@pytest.fixture(scope="module")
def _mortal():
    with cluster() as client:
        yield client


@pytest.fixture
def mortal(_mortal):
    """Two workers that may be killed: others come in their place."""
    wait_for_both(_mortal)
    return _mortal


@pytest.fixture(scope="module")
def expected():
    """The fit over two shards in this process, which nothing happens to."""
    clf = TransductiveClassifier(**QUICK)
    fit_inline(clf, *BLOCKS, n_workers=2)
    return clf
