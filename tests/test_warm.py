"""After `transduce warm`, a fit in a new process compiles nothing."""

import os
import subprocess
import sys

import pytest

from transduce.cli.main import run

FITS = """
import sys
import numpy as np
from numba.core.dispatcher import Dispatcher
from scipy import sparse
from transduce import TransductiveClassifier

rng = np.random.default_rng(1)
X, y = rng.random((200, 30)), np.where(np.arange(200) < 50, np.arange(200) % 5, -1)
for rows in (X, X.astype("f4"), sparse.csr_matrix(X), sparse.csr_array(X.astype("f4"))):
    for options in ({}, {"annealing": "paper", "class_prior": "labeled"}, {"class_prior": [0.1, 0.2, 0.2, 0.2, 0.3]}):
        clf = TransductiveClassifier(random_state=0, **options).fit(rows, y)
        clf.predict_proba(rows)
modules = [module for name, module in sys.modules.items() if name.startswith("transduce.")]
kernels = {value for module in modules for value in vars(module).values() if isinstance(value, Dispatcher)}
print([kernel.__name__ for kernel in kernels if kernel.stats.cache_misses])
"""


def test_the_command_says_what_it_compiled(capsys):
    assert run(["warm"]) == 0
    *kinds, last = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in kinds] == [
        "sparse float32", "sparse float64", "dense float32", "dense float64",
    ]  # fmt: skip
    assert last.startswith("Compiled code is ready for 4 kinds of fits")


@pytest.mark.slow
def test_a_fit_in_a_new_process_compiles_nothing(tmp_path):
    options = {"capture_output": True, "text": True, "check": True}
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-m", "transduce.warm"], env=environment, **options)
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FITS], env=environment, **options)
    assert done.stdout == "[]\n"
