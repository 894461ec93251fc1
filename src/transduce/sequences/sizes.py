"""Sizes of labels as users state them, resolved to bounds and beliefs on counts of tokens and of blocks."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from transduce.arrays import Array, IntArray
from transduce.class_prior.belief import Belief
from transduce.class_prior.bounds import Bounds
from transduce.class_prior.proportions import labeled_proportions
from transduce.class_prior.resolve import ResolvedPrior
from transduce.class_prior.spec import parse_size
from transduce.errors import InputError, PriorErrorKind
from transduce.label_step.count_tree import CountTree
from transduce.sequences.size_errors import SizeError, size_errors
from transduce.suggest import did_you_mean, name_list, short_repr

BLOCK_STRENGTH = 4.0
"""Strength of the belief in the middle of a range of blocks, and in a rough number of them."""


def token_bounds(label_prior: Any, classes: Array, codes: IntArray) -> CountTree | None:
    """Bounds and beliefs on the tokens without a known label, given the labels (N,) of all, −1 if not known."""
    known, n_free = codes[codes >= 0], int((codes < 0).sum())
    if label_prior is None or n_free == 0:
        return None
    with size_errors("label_prior", "tokens"):
        prior = ResolvedPrior.create(_parsed(label_prior, classes, "label_prior"), classes, known, n_free)
        estimate = labeled_proportions(np.bincount(known, minlength=classes.size))
        return CountTree.create(prior.bounds(estimate), n_free)


def _parsed(prior: Any, names: Sequence[Any] | Array, parameter: str) -> Any:
    """Sizes by name, each of which says where it is stated; other priors unchanged."""
    if isinstance(prior, (list, tuple, np.ndarray)) and len(prior) == len(names):
        prior = dict(zip(names, prior, strict=True))
    if not isinstance(prior, Mapping):
        return prior
    return {name: parse_size(size, f"{parameter}[{name!r}]") for name, size in prior.items()}


def block_bounds(block_prior: Any, fields: list[Any], n_sequences: int) -> tuple[CountTree | None, IntArray]:
    """Bounds and beliefs on the numbers of blocks, and the fields that they are about.

    >>> tree, stated = block_bounds({"title": (8, 12), "year": 1.0}, ["author", "title", "year"], 10)
    >>> tree.low.tolist(), tree.high.tolist(), stated.tolist()
    ([8, 0], [12, 1000000000], [1, 2])
    """
    block_prior = {} if block_prior is None else block_prior
    if not isinstance(block_prior, dict):
        found = f"but is {short_repr(block_prior)}"
        raise InputError(f"block_prior must be a dict from fields to numbers of blocks, {found}. Pass one, or None.")
    if not block_prior:
        return None, np.zeros(0, np.int64)
    for name in block_prior:
        if name not in fields:
            hint = f"{did_you_mean(name, fields)} The fields are {name_list(fields)}."
            raise InputError(f"block_prior names {name!r}, which is not a field.{hint}")
    with size_errors("block_prior", "blocks"):
        sizes = {name: size for name, size in _parsed(block_prior, fields, "block_prior").items() if size.is_known}
    if not sizes:
        return None, np.zeros(0, np.int64)
    most = 10**9
    ends = np.array([(size.low, min(size.high, most)) for size in sizes.values()])
    ends *= np.array([1.0 if size.in_rows else float(n_sequences) for size in sizes.values()])[:, None]
    is_rough = np.array([size.is_rough for size in sizes.values()])
    low, high = np.where(is_rough, 0, np.ceil(ends[:, 0])), np.where(is_rough, most, np.floor(ends[:, 1]))
    for name, (least, most_blocks), is_empty in zip(sizes, ends.tolist(), low > high, strict=True):
        if is_empty:
            about = {"parameter": "block_prior", "unit": "blocks", "name": name, "low": least, "high": most_blocks}
            raise SizeError(PriorErrorKind.NO_WHOLE_NUMBER, **about)
    belief = Belief.create(np.maximum(ends.mean(axis=1), 0.5), BLOCK_STRENGTH)
    bounds = Bounds(low.astype(np.int64), high.astype(np.int64), belief=belief)
    return CountTree.create(bounds, most), np.array([fields.index(name) for name in sizes])
