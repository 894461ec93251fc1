"""Readers and writers for tables of documents; every format becomes one Polars frame."""

from transduce.cli.formats.read import read_table
from transduce.cli.formats.table import Dialect, Table, labels_of, texts_of, unused_name
from transduce.cli.formats.write import write_table

__all__ = ["Dialect", "Table", "labels_of", "read_table", "texts_of", "unused_name", "write_table"]
