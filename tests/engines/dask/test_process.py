"""What a worker's process does while a fit lasts: freed memory is kept, and goes back to the system after it."""

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the allocator of Linux")

ARRAYS = """
import json, resource
from types import SimpleNamespace
import numpy as np
from threadpoolctl import threadpool_info
from transduce.engines.dask import process

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

def blas():
    return max(one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas")

def hold_much():
    "Bytes that are held after arrays of 60 MiB have been dropped."
    many = [np.ones(1 << 17) for _ in range(60)]
    del many
    return now()

worker = SimpleNamespace(
    nanny=NANNY,
    memory_manager=SimpleNamespace(memory_limit=200 << 20),
    monitor=SimpleNamespace(get_process_memory=now),
)
found = {"threads": [blas()], "faults": [faults()], "can": process.set_allocator({})}
process.begin(worker)
process.begin(worker)
found["threads"].append(blas())
found["faults"].append(faults())
held = hold_much()
process.ease(worker)
found["eased"] = held - now()
held = hold_much()
process.ease(worker)
found["eased again"] = held - now()
process.end()
found["given back"] = held - now()
found["threads"].append(blas())
found["faults"].append(faults())
print(json.dumps(found))
"""


PAGES = 10 * (1 << 20) // os.sysconf("SC_PAGE_SIZE")


def told(nanny, threshold="65536"):
    """What happens in a process that is started as a nanny starts its worker."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    environment |= {"OPENBLAS_NUM_THREADS": "2"} | ({} if threshold is None else {"MALLOC_TRIM_THRESHOLD_": threshold})
    code = ARRAYS.replace("NANNY", repr(nanny))
    out = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    found = json.loads(out.stdout)
    if not found["can"]:
        pytest.skip("an allocator without these settings")
    return found


@pytest.mark.parametrize("threshold", ["65536", "", "99999999999"])
def test_arrays_of_a_fit_get_the_pages_of_those_before_them(threshold):
    found = told("tcp://nanny", threshold)
    before, within, after = found["faults"]
    assert within < 0.05 * PAGES
    assert found["threads"] == [2, 1, 2]
    assert found["eased"] > 25 << 20  # when the worker had not much left
    assert abs(found["eased again"]) < 10 << 20  # though not twice at once
    assert found["given back"] > 25 << 20
    if threshold == "65536":
        assert min(before, after) > 0.9 * PAGES


def test_a_process_without_a_nanny_is_left_alone():
    """It may be that of the driver, whose environment has the settings that nannies took for their workers."""
    found = told(None)
    assert min(found["faults"]) > 0.9 * PAGES
    assert found["threads"] == [2, 2, 2]


def test_an_allocator_that_nobody_has_set_is_left_alone():
    _, within, after = told("tcp://nanny", None)["faults"]
    assert max(within, after) < 0.05 * PAGES  # it has learned by itself to keep what is freed, and still does
