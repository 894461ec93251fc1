"""The Dask engine: rows stay on the workers of a cluster, weights and prices travel."""
