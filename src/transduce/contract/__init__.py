"""The input contract: what rows, weights, scores and random samples must be before anything numerical sees them.

The library, the Dask workers, the device engine and the command line all call these functions, where data enter:

    X              a matrix of finite numbers whose squares its type can hold; sparse indices lie within its shape
    sample_weight  one finite number for each row, 0 or more, and above 0 for a labelled row
    scores         a number or NaN for each row and class, not the same for all classes
    sampled        True or False, for all rows or for each

Kernels assume all of it and check nothing. What y and class sizes must be depends on the classes: `labels.encode` and
`class_prior.resolve` check them next, before the problem is built. Errors name the place of the first bad value.
"""

from transduce.contract.rows import (
    LARGEST_FLOAT64,
    check_finite,
    check_largest,
    check_matrix,
    check_scale,
    largest_value,
    not_finite,
    read_numbers,
    read_rows,
    texts_explained,
)
from transduce.contract.sparse_structure import check_structure
from transduce.contract.weights import (
    check_labeled_weight,
    check_sample_weight,
    check_sampled,
    check_scores,
    check_weight_range,
    weight_range,
)

__all__ = [
    "LARGEST_FLOAT64",
    "check_finite",
    "check_labeled_weight",
    "check_largest",
    "check_matrix",
    "check_sample_weight",
    "check_sampled",
    "check_scale",
    "check_scores",
    "check_structure",
    "check_weight_range",
    "largest_value",
    "not_finite",
    "read_numbers",
    "read_rows",
    "texts_explained",
    "weight_range",
]
