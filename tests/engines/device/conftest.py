"""Device tests need array-api-compat, and one thread, because every operation on a small array has its price."""

import pytest
from helpers.device_arrays import on_one_thread


@pytest.fixture(autouse=True)
def one_thread():
    on_one_thread()
