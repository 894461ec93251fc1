"""Class sizes: what users state, how it becomes bounds on class counts, estimates and diagnostics."""

from transduce.class_prior.bounds import Bounds
from transduce.class_prior.groups import Groups
from transduce.class_prior.rounding import counts_from_fractions

__all__ = ["Bounds", "Groups", "counts_from_fractions"]
