"""What a worker's process does while a fit lasts: freed memory is kept, and goes back to the system after it."""

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the allocator of Linux")

ARRAYS = """
import json, resource
import numpy as np
from transduce.dask import process

def faults():
    "Pages that arrays of 1 MiB are given, made and dropped ten times, but for the first."
    np.ones(1 << 17)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        np.ones(1 << 17)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def now():
    "Bytes that this process holds."
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()

found = [faults()]
process.begin(None)
found.append(faults())
many = [np.ones(1 << 17) for _ in range(100)]
del many
held = now()
process.end()
print(json.dumps([*found, faults(), held - now()]))
"""


def told(threshold):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    environment |= {} if threshold is None else {"MALLOC_TRIM_THRESHOLD_": threshold}
    out = subprocess.run([sys.executable, "-c", ARRAYS], env=environment, capture_output=True, text=True, check=True)
    return json.loads(out.stdout)


def test_arrays_of_a_fit_get_the_pages_of_those_before_them():
    before, within, after, given_back = told("65536")  # as a nanny starts its worker
    assert before > 1000
    assert within < 100
    assert after > 1000
    assert given_back > 50 << 20


def test_an_allocator_that_nobody_has_set_is_left_alone():
    _, within, after, _ = told(None)
    assert max(within, after) < 100  # it has learned by itself to keep what is freed, and still does
