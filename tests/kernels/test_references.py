"""Kernels that threads share count no references to arrays: threads at the same count would wait for each other."""

import numba
import numpy as np
import pytest
from scipy import sparse

from transduce import TransductiveClassifier
from transduce.design import Design
from transduce.kernels import pullback, rows
from transduce.taxonomy import Taxonomy
from transduce.weight_step._kernels import sweep


def compiled_again(kernel, **changed):
    """Code of the same kernel for the first of its types, compiled here: what comes from a cache cannot be read."""
    options = {name: value for name, value in kernel.targetoptions.items() if name not in ("nopython", "boundscheck")}
    again = numba.njit(**(options | changed))(kernel.py_func)
    again.compile(kernel.signatures[0])
    return again.inspect_llvm(again.signatures[0])


@pytest.mark.parametrize(
    "kernel", [pullback.pullback, rows.all_scores, sweep.sweep], ids=lambda kernel: kernel.__name__
)
def test_kernels_count_no_references(kernel):
    X = sparse.random(40, 20, 0.3, format="csr", random_state=0)
    design = Design.create(X, Taxonomy.flat("abc"), 1)
    design.scores(design.pullback(np.ones((40, 3))))
    TransductiveClassifier(class_prior="equal", annealing=None).fit(X, np.repeat([0, 1, 2, -1], 10))
    assert "NRT_incref" in compiled_again(kernel, _nrt=True)
    assert "NRT_incref" not in compiled_again(kernel)
