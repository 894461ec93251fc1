"""All targets of the fuzzer: each of these modules adds those of one kind of file."""

from benchmarks.fuzz import arrays, fits, options, reviews, sequences, tables
from benchmarks.fuzz.target import TARGETS

MODULES = (arrays, fits, options, reviews, sequences, tables)

__all__ = ["MODULES", "TARGETS"]
