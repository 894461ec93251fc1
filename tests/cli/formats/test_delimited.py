"""CSV and TSV files."""

import polars as pl
import pytest
from helpers.tables import assert_refused, read

from transduce.cli.formats import delimited
from transduce.cli.formats.delimited import _column_names


@pytest.mark.parametrize(
    ("data", "columns", "rows"),
    [
        ("id,n\n007, 1.0 \n", ["id", "n"], [("007", " 1.0 ")]),
        ('a,b\n"x\r\ny","say ""hi"""\n', ["a", "b"], [("x\r\ny", 'say "hi"')]),
        ("a,b\n,\n", ["a", "b"], [("", "")]),
        ("a;b\n1,5;2\n", ["a", "b"], [("1,5", "2")]),
        ('"a;b",c\n1,2\n', ["a;b", "c"], [("1", "2")]),
        ('"a;b;c",d\n1,2\n', ["a;b;c", "d"], [("1", "2")]),
        ("\n\na,b\n\n1,2\n\n", ["a", "b"], [("1", "2")]),
        (",a,,b\n1,2,3,4\n", ["column_1", "a", "column_3", "b"], [("1", "2", "3", "4")]),
        ("column_2,\n1,2\n", ["column_2", "column_2_2"], [("1", "2")]),
        ('a\n""\nx\n', ["a"], [("",), ("x",)]),
        ("a,b\rx,y\r", ["a", "b"], [("x", "y")]),
        ("a,b\n6\" disk,it's\n", ["a", "b"], [('6" disk', "it's")]),
        ("a\n" + "x" * 300_000 + "\n", ["a"], [("x" * 300_000,)]),
        ("a,b\nx\u2028y,z\x0c\n", ["a", "b"], [("x\u2028y", "z\x0c")]),
    ],
)
def test_csv_cells_are_kept_exactly(tmp_path, data, columns, rows):
    frame = read(tmp_path, "a.csv", data).frame
    assert frame.columns == columns
    assert frame.rows() == rows
    assert set(frame.dtypes) == {pl.String}


@pytest.mark.parametrize(
    ("name", "data", "is_line"),
    [
        ("a.csv", "a,b\nx,y\nz,w\n\n", True),
        ("a.csv", "\ufeffa,b\r\nx,y\r\nz,w", True),
        ("a.tsv", "a\tb\rx\ty\r", True),
        ("a.csv", 'a,b\n"x, ""z""",y\n', True),
        ("a.csv", 'a,b\n"x\nz",y\n', False),
        ("a.csv", '"a\nc",b\nx,y\n', False),
        ("a.csv", "\na,b\nx,y\n", False),
        ("a.csv", "a,b\n\nx,y\n", False),
        ("a.jsonl", '{"a": "x"}\n{"a": "y"}\n', False),
    ],
)
def test_rows_are_lines_if_none_spans_several_and_none_is_empty(tmp_path, name, data, is_line):
    assert read(tmp_path, name, data).row_is_line == is_line


BAD = {
    "empty file": ("a.csv", "", "the file is empty"),
    "only line ends": ("a.csv", "\n\r\n\n", "the file is empty"),
    "only a mark": ("a.csv", b"\xef\xbb\xbf", "the file is empty"),
    "no rows": ("a.csv", "text,label\n", "a header but no rows"),
    "nameless header": ("a.csv", "\n, ,\n1,2,3\n", "line 2: the header has no column names"),
    "a name twice": ("a.csv", "text,x,text\n1,2,3\n", 'line 1: the header has the column "text" twice'),
    "too few cells": ("a.csv", 'a,b\n"x\n\ny",2\n1\n', "line 5: expected 2 cells as in the header, found 1"),
    "too many cells": ("a.csv", "a,b\n1,2\n1,2,3\n", "line 3: expected 2 cells as in the header, found 3"),
    "too many cells in TSV": ("a.tsv", "a\tb\n1\t2\t3\n", "line 2: expected 2 cells as in the header, found 3"),
    "too few cells after semicolons": ("a.csv", "a;b\n1,2\n", "line 2: expected 2 cells as in the header, found 1"),
    "unclosed quote": ("a.csv", 'a,b\n1,2\n1,"x\n1,2\n', "line 3: a quoted cell starts here and is never closed"),
    "unclosed quote in the header": ("a.csv", 'a,"b\n1,2\n', "line 1: a quoted cell starts here and is never closed"),
    "text after a quote": ("a.csv", 'a,b\n1,"x" y\n', "line 2: there is text after a closing quote"),
    "NUL": ("a.csv", "a,b\n1,2\n1,\0\n", "line 3: expected text, but found a NUL"),
    "UTF-16 without a mark": ("a.csv", "a,b\n1,2\n".encode("utf-16-le"), "line 1: expected text, but found a NUL"),
    "Latin-1": ("a.csv", "a,b\n1,2\ngrün,2\n".encode("latin-1"), "line 3: expected UTF-8 text.*Save the file as UTF-8"),
    "Latin-1 header": ("a.tsv", "größe\tb\n".encode("latin-1"), "line 1: expected UTF-8 text"),
    "half a UTF-16 character": ("a.csv", "\ufeffa,b\n1,2".encode("utf-16-le") + b"\n", "line 2: expected UTF-16 text"),
    "lone surrogate in UTF-16": ("a.csv", b"\xff\xfea\x00\n\x00\x00\xd8\n\x00", "line 2: expected UTF-16 text"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_refused_with_their_position(tmp_path, case):
    assert_refused(tmp_path, *BAD[case])


def test_column_names_are_not_compared_with_all_others():
    n_compared = 0

    class Name(str):
        __hash__ = str.__hash__

        def __eq__(self, other):
            nonlocal n_compared
            n_compared += 1
            return str.__eq__(self, other)

    names = [Name(f"column {number}") for number in range(1000)]
    assert _column_names(names, 1) == names
    assert n_compared < 10 * len(names)


def test_rows_are_read_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "_CELLS_AT_A_TIME", 5)
    rows = [(str(number), "x" * number) for number in range(9)]
    text = "a,b\n" + "".join(f"{one},{two}\n" for one, two in rows)
    assert read(tmp_path, "a.csv", text).frame.rows() == rows
    assert_refused(tmp_path, "a.csv", text + "1\n", "line 11: expected 2 cells")
