"""Tables of documents in and out: many formats, one frame, and never a guess where a file is broken."""

from transduce.cli.formats.cells import labels_of, texts_of
from transduce.cli.formats.read import read_table
from transduce.cli.formats.table import Dialect, Table, free_name
from transduce.cli.formats.write import write_table

__all__ = ["Dialect", "Table", "free_name", "labels_of", "read_table", "texts_of", "write_table"]
