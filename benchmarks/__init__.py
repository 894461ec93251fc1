"""Benchmarks: peers and ours side by side in one run, on the same instances, with the optimum of each checked."""
