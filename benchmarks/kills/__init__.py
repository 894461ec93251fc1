"""Kills, interrupts and failing disks at random moments of every command; `python -m benchmarks.kills` runs them."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # threads of BLAS would not survive a fork
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
