"""Weights of the constant feature: they reach their optimum, however much rows answer, and the gap is what is left."""

import numpy as np
import pytest
from scipy import sparse

from transduce.design import Design
from transduce.engines.dask.bias import Bias
from transduce.losses import LargeMargin
from transduce.problem import TrainingProblem
from transduce.taxonomy import Taxonomy

CONSTANT, ALPHA = 0.7, 1e-2


def make_problem(taxonomy):
    return TrainingProblem.create(Design.create(sparse.eye(2, format="csr"), taxonomy), LargeMargin(), ALPHA, 2)


@pytest.mark.parametrize("share", [1.0, 0.3, 0.02])
def test_it_converges_where_rows_together_answer_less_than_alone(share):
    """Sums of κ (q − p) fall with b by this share of the slopes; b = c/λ sums(b) is a linear equation."""
    problem, slopes = make_problem(Taxonomy.flat("abc")), np.array([2.0, 0.5, 1.0])
    at_zero, answer = np.array([0.02, -0.03, 0.01]), share * CONSTANT * slopes
    optimum = CONSTANT / ALPHA * at_zero / (1.0 + CONSTANT / ALPHA * answer)
    bias, mover = np.zeros(3), Bias()
    for _ in range(60):
        bias = mover.move(bias, at_zero - answer * bias, slopes, CONSTANT, problem)
    np.testing.assert_allclose(bias, optimum, rtol=1e-3)


def test_the_gap_is_that_of_the_weights_it_returns():
    problem, sums = make_problem(Taxonomy.flat("abc")), np.array([0.02, -0.03, 0.01])
    mover = Bias()
    bias = mover.move(np.ones(3), sums, np.full(3, 5.0), CONSTANT, problem)
    assert mover.gap == pytest.approx(0.5 * ALPHA * np.sum((bias - CONSTANT / ALPHA * sums) ** 2))


def test_without_an_answer_it_takes_the_whole_step_in_every_node_of_a_tree():
    tree = Taxonomy.create(["a/x", "a/y", "b"])
    sums, mover = np.array([0.02, -0.03, 0.01]), Bias()
    bias = mover.move(np.zeros(tree.n_nodes), sums, np.zeros(3), CONSTANT, make_problem(tree))
    np.testing.assert_allclose(bias, CONSTANT / ALPHA * (sums @ tree.paths))
    assert mover.gap == pytest.approx(0.0, abs=1e-12)
