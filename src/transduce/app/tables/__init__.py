"""Tables of documents in and out: many formats, one frame, and never a guess where a file is broken."""

from transduce.app.tables.cells import labels_of, texts_of
from transduce.app.tables.reading import read_table
from transduce.app.tables.table import Dialect, Table, free_name
from transduce.app.tables.writing import write_table

__all__ = ["Dialect", "Table", "free_name", "labels_of", "read_table", "texts_of", "write_table"]
