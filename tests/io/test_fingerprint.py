"""Fingerprints: equal data and parameters have the same one, others have another."""

import functools
import threading
from dataclasses import dataclass

import numpy as np
import pytest
from helpers.fits import rows
from scipy import sparse

from transduce.io.fingerprint import fingerprint


@dataclass(frozen=True)
class Parameter:
    """A parameter that is an object."""

    value: float


def test_types_shapes_and_order_are_distinguished():
    a = np.arange(4.0)
    parts = [[a], [a.astype(np.float32)], [a.reshape(2, 2)], [a, "x"], ["x", a], [a[::-1]], [a, 1], [a, "1"], [a, None]]
    assert len({fingerprint({"a": part}) for part in parts}) == len(parts)
    assert fingerprint({"a": 1}) != fingerprint({"b": 1})


def far(middle):
    return np.r_[np.zeros(2000), middle, np.zeros(2000)]


@pytest.mark.parametrize(
    "make",
    [
        Parameter, far, np.random.RandomState, np.random.default_rng,
        lambda a: {"k": a, "l": 0}, lambda a: {a, "x", None},
        lambda a: functools.partial(max, a), lambda a: np.array([a, "x", None], dtype=object),
        lambda a: sparse.csr_matrix(np.eye(2) * a), lambda a: (np.exp, np.log)[a - 1], lambda a: (rows, far)[a - 1],
    ],
)  # fmt: skip
def test_content_is_distinguished(make):
    one, again, other = (fingerprint({"a": make(a)}) for a in (1, 1, 2))
    assert one == again
    assert one != other


def test_the_order_of_sets_and_mappings_and_memory_mapping_are_ignored(tmp_path):
    assert fingerprint({"a": {"x": 1, "y": 2}}) == fingerprint({"a": {"y": 2, "x": 1}})
    assert fingerprint({"a": {"x", "y", "z"}}) == fingerprint({"a": {"z", "y", "x"}})
    np.save(tmp_path / "a.npy", far(1))
    assert fingerprint({"a": np.load(tmp_path / "a.npy", mmap_mode="r")}) == fingerprint({"a": far(1)})


def test_numbers_are_compared_by_value():
    assert len({fingerprint({"a": one}) for one in (1, 1.0, np.float64(1), np.int32(1), True)}) == 1


def test_a_value_that_cannot_be_pickled_is_named():
    with pytest.raises(TypeError, match="but b cannot be"):
        fingerprint({"a": 1, "b": [threading.Lock()]})
