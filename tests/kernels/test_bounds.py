"""Kernels with numba's bounds checks, which are off otherwise: no index leaves its array in the tests of the steps."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
CHECKED = ("kernels/test_shared_work.py", "weight_step", "label_step", "losses")


@pytest.mark.slow
@pytest.mark.parametrize("part", CHECKED)
def test_no_index_leaves_its_array(part, tmp_path):
    environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(TESTS / part)]
    done = subprocess.run(command, cwd=TESTS.parent, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
