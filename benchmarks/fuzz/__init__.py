"""Mutated files for every reader and loader; `python -m benchmarks.fuzz` runs them."""
