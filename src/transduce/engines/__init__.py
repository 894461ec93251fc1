"""Engines: where the rows live. The local engine keeps them in memory, the Dask engine on the workers of a cluster."""
