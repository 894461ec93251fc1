"""Compiled kernels are stored beside their source, else in the user's cache folder, else not at all."""

import os
import subprocess
import sys

import pytest

MODULE = """
from transduce.kernels import kernel

@kernel
def double(number):
    return 2 * number
"""
PROGRAM = """
from example import double
assert double(21) == 42
stats = getattr(double, "stats")
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "example.py").write_text(MODULE)
    (tmp_path / "home").mkdir()
    return tmp_path


def hits_and_misses(folder, **environment):
    """Import and call the kernel in a new process."""
    paths = os.pathsep.join([str(folder / "package"), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": paths, "XDG_CACHE_HOME": str(folder / "home"), **environment}
    environment.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    return tuple(map(int, done.stdout.split()))


def refuse_files_beside_the_source(folder):
    """Let a file stand where numba makes a folder; read-only folders do not stop an administrator."""
    (folder / "package" / "__pycache__").write_text("")


def test_a_second_process_loads_what_the_first_compiled(folder):
    assert hits_and_misses(folder) == (0, 1)
    assert hits_and_misses(folder) == (1, 0)
    assert list((folder / "package" / "__pycache__").glob("example.double*.nbi"))


@pytest.mark.skipif(sys.platform != "linux", reason="XDG_CACHE_HOME is where Linux has its caches")
def test_where_the_package_is_read_only_the_cache_folder_of_the_user_is_used(folder):
    refuse_files_beside_the_source(folder)
    assert hits_and_misses(folder) == (0, 1)
    assert hits_and_misses(folder) == (1, 0)
    assert list((folder / "home").rglob("example.double*.nbi"))


@pytest.mark.skipif(sys.platform != "linux", reason="XDG_CACHE_HOME is where Linux has its caches")
def test_where_nothing_can_be_stored_kernels_are_compiled_each_time(folder):
    refuse_files_beside_the_source(folder)
    (folder / "full").write_text("")
    for _ in range(2):
        assert hits_and_misses(folder, XDG_CACHE_HOME=str(folder / "full"))[0] == 0
