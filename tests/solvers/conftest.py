"""Settings of all solver tests."""

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True)
def _one_thread_in_libraries():
    """Keep OpenBLAS to one thread: in the small systems of L-BFGS its threads only wait for each other."""
    with threadpool_limits(1):
        yield
