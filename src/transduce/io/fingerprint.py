"""A digest of the data and parameters of a fit, by which a checkpoint recognises the fit it belongs to."""

import pickle
from collections.abc import Mapping
from numbers import Real

import joblib


def fingerprint(parts: Mapping[str, object]) -> str:
    """Return a digest of named values: arrays by dtype, shape and content, other objects as they would be pickled.

    Numbers are compared by value: 1, 1.0 and np.float64(1) have the same digest.
    """
    digests = {}
    for name, value in parts.items():
        try:
            digests[name] = joblib.hash(float(value) if isinstance(value, Real) else value, coerce_mmap=True)
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            problem = f"checkpoint needs parameters that can be pickled, but {name} cannot be ({error})"
            raise TypeError(f"{problem}. Define functions at module level, or fit without checkpoint.") from error
    return str(joblib.hash(digests))
