"""Device tests need array-api-compat, and few batches, because every operation on a small array has its price."""

import pytest
from helpers.device_arrays import on_one_thread

from transduce.engines.device import rows


@pytest.fixture(autouse=True)
def few_batches(monkeypatch):
    on_one_thread()
    pass
