"""Errors of fits over shards in this process: they name the block."""

import warnings

import numpy as np
import pytest
from helpers.dask_blocks import make_rows, split
from helpers.inline_pool import fit_inline

from transduce.dask import TransductiveClassifier as OverDask
from transduce.errors import LabelError, LabelErrorKind


def test_sampled_is_one_answer_for_all_blocks():
    with pytest.raises(ValueError, match="sampled must be True, False or None over Dask, the same for all rows"):
        OverDask().fit([np.eye(3)], [[0, 1, -1]], sampled=[True, True, False])


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([np.eye(3), np.eye(4)], [[0, 1, -1], [0, 1, -1, -1]], "Block 1 has 4 columns, but the first has 3"),
        ([np.eye(3)], [[0, 1, -1], [0, 1, 1]], "X has 1 blocks and y 2"),
        (
            [np.eye(3), np.eye(3)],
            [[0, 1, -1], [0, 1]],
            r"X has 3 rows and y has 2[^\n]*\nThis is block 1 of the 2 blocks",
        ),
        ([np.eye(3), np.eye(3)], [[-1] * 3, [-1] * 3], "every row is unlabelled"),
        (
            [np.eye(3), np.full((3, 3), np.nan)],
            [[0, 1, -1]] * 2,
            r"X\[\d+, \d+\] is NaN(?s:.*)\nThis is block 1 of the 2 blocks",
        ),
        ([], [], "at least one block"),
        ("rows", [0], "X must be a list of blocks"),
    ],
)
def test_errors_name_the_block(X, y, message):
    with pytest.raises((ValueError, TypeError), match=message):
        fit_inline(OverDask(), X, y)


def test_an_error_of_a_block_keeps_its_type_and_fields():
    with pytest.raises(LabelError) as caught:
        fit_inline(OverDask(), [np.eye(3), np.eye(3)], [[0, 1, -1], [0, 1]])
    assert (caught.value.kind, caught.value.n_rows, caught.value.n_labels) == (LabelErrorKind.LENGTH, 3, 2)
    with pytest.raises(TypeError):
        fit_inline(OverDask(), [np.eye(3)], [[0, 1, -1]], sample_weight=[["a", "b", "c"]])


def test_blocks_of_y_must_match_those_of_x_to_be_scored():
    X, truth = make_rows()
    X, y = split(X, (60, 99)), split(truth, (60, 99))
    clf = OverDask(alpha=1e-2, annealing=None, max_iter=2, random_state=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit_inline(clf, X, y)
    for wrong in (truth, [y[0][:-1], *y[1:]], y[:2]):
        with pytest.raises(ValueError, match="y must have blocks of"):
            clf.score(X, wrong)
    with pytest.raises(ValueError, match="y must have blocks of"):
        clf.score(X[0], y)
    for wrong in ([np.ones(len(y[0]) - 1), *(np.ones(len(one)) for one in y[1:])], [np.ones(len(y[0]))]):
        with pytest.raises(ValueError, match="sample_weight must have blocks of"):
            clf.score(X, y, wrong)
    weights = [np.ones(len(own)) for own in y]
    assert clf.score(X, y, weights) == pytest.approx(clf.score(X, y))
