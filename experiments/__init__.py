"""Studies on real data that take minutes; results are kept beside them. `python -m experiments.NAME --data DIR`."""
