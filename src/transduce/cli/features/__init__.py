"""Feature rows of a table: vectors provided by the user, progress of encoders, and texts of Parquet shards."""

from transduce.cli.features.vectors import read_vectors, unit_rows

__all__ = ["read_vectors", "unit_rows"]
