"""TransductiveClassifier over the workers of a Dask cluster: rows stay where they are, weights and prices travel."""

try:
    import distributed  # noqa: F401
except ImportError as error:
    raise ImportError(
        "transduce.dask needs the package distributed, which is not installed. Run: pip install 'transduce[dask]'."
    ) from error

from transduce.dask.crew import ClusterError
from transduce.dask.estimator import TransductiveClassifier

__all__ = ["ClusterError", "TransductiveClassifier"]
