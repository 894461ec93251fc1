"""InfeasibleError: a record that front ends can rephrase, by number or by name."""

import pickle

import numpy as np
import pytest

from transduce import solve_labels
from transduce.class_prior.groups import Groups
from transduce.label_step.infeasible import InfeasibleError, InfeasibleKind, NodeNames

INF = np.inf
COSTS = [[0.0, INF, INF], [0.0, INF, INF], [0.0, 1.0, INF]]


def error_of(counts, groups=None, costs=COSTS) -> InfeasibleError:
    with pytest.raises(InfeasibleError) as caught:
        solve_labels(costs, counts, groups=groups)
    return caught.value


def test_too_few_rows_are_counted():
    error = error_of([1, 2, 0])
    assert error.kind is InfeasibleKind.TOO_FEW_ROWS
    assert (error.needing, error.needed, error.held) == (NodeNames((1,)), 2, 1)
    assert str(error) == (
        "the counts cannot be met: class 1 must get 2 rows, but only 1 row may take it, 1 too few. "
        "Forbid fewer labels, or widen these counts."
    )


def test_too_many_rows_are_counted():
    error = error_of(([0, 0, 0], [1, 3, 3]))
    assert error.kind is InfeasibleKind.TOO_MANY_ROWS
    assert (error.holding, error.held, error.limit) == (NodeNames((0,)), 2, 1)


def test_names_replace_numbers():
    groups = Groups([4, 3, 3, 4], [2], [3], names=("cold drinks",))
    error = error_of(([0] * 3, [3] * 3), groups).with_names(np.array(["tea", "milk", "juice"]), groups)
    assert str(error).startswith(
        "class_prior and the partial labels in y cannot both be met: branch 'cold drinks' must get 2"
    )
    assert "only 1 row may take 'milk' and 'juice', 1 too few. Allow more classes in the partial labels" in str(error)
    numbers = error_of([1, 2, 0]).with_names(np.array([5, 7, 9]), None)
    assert "class 7 must get 2 rows" in str(numbers)


def test_an_error_survives_pickling():
    error = error_of([1, 2, 0])
    again = pickle.loads(pickle.dumps(error))
    assert isinstance(again, ValueError)
    assert (str(again), again.kind, again.needed) == (str(error), error.kind, 2)
