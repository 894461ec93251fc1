"""Round trips of hostile frames, and arbitrary bytes to every reader."""

import gzip
import io
import json
import math
import tempfile
from pathlib import Path

import polars as pl
import pytest
import zstandard
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from transduce.cli.errors import InputError
from transduce.cli.formats import labels_of, parquet, read_table, texts_of, write_table

SETTINGS = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
COMPRESSIONS = ["", ".gz", ".zst"]
HOSTILE = [
    '"',
    "'",
    ",",
    ";",
    "\t",
    "\n",
    "\r",
    "\r\n",
    "\ufeff",
    "\u202e",
    "\u200f",
    "😀",
    "é",
    "=1",
    "-",
    "\u2028",
    "\x1c",
    "\\",
    "{",
    "[",
    " ",
]
TEXT = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    st.lists(st.sampled_from(HOSTILE), max_size=6).map("".join),
)
NAME = TEXT.filter(lambda name: name.strip() and "\0" not in name)


@st.composite
def text_frames(draw, without_nul):
    names = draw(st.lists(NAME, min_size=1, max_size=4, unique=True))
    height = draw(st.integers(1, 5))
    cell = TEXT.map(lambda text: text.replace("\0", "")) if without_nul else TEXT
    column = st.lists(cell, min_size=height, max_size=height)
    return pl.DataFrame({name: draw(column) for name in names}, schema=dict.fromkeys(names, pl.String))


def round_trip(frame, name, **options):
    with tempfile.TemporaryDirectory() as folder:
        target = str(Path(folder, name))
        write_table(frame, target, **options)
        return read_table(target).frame


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("suffix", ["csv", "tsv"])
@SETTINGS
@given(frame=text_frames(without_nul=True))
@example(frame=pl.DataFrame({"a;b": ["x"], "\ufeff": [""]}))
@example(frame=pl.DataFrame({'a";"': [";"]}))
def test_delimited_text_comes_back(frame, suffix, compression):
    assert_frame_equal(round_trip(frame, f"a.{suffix}{compression}", keep_formulas=True), frame)


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
@SETTINGS
@given(frame=text_frames(without_nul=False))
def test_text_comes_back_from_json_lines_and_parquet(frame, suffix, compression, monkeypatch):
    monkeypatch.setattr(parquet, "_is_readable", lambda data: True)  # a process an example would take minutes
    assert_frame_equal(round_trip(frame, f"a.{suffix}{compression}"), frame)


@SETTINGS
@given(frame=text_frames(without_nul=False))
def test_a_written_csv_opens_no_formula_and_can_always_be_read(frame):
    back = round_trip(frame, "a.csv")
    for column, disarmed in zip(frame.iter_columns(), back.iter_columns(), strict=True):
        for cell, written in zip(column, disarmed, strict=True):
            assert written.removeprefix("'") == cell.replace("\0", "\ufffd").removeprefix("'")
            assert written[:1] not in ("=", "@", "\t", "\r")
            assert written[:1] not in ("+", "-") or math.isfinite(float(written.replace(",", ".")))


NUMBERS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(allow_nan=False, allow_infinity=False)
)
VALUES = st.recursive(
    NUMBERS | TEXT, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=5
)
COLUMNS = st.sampled_from(
    [
        NUMBERS,
        TEXT,
        VALUES,
        st.lists(NUMBERS, max_size=3),
        st.lists(TEXT, max_size=2),
        st.floats(-1e9, 1e9),
        st.integers(),
    ]
)


@st.composite
def json_records(draw):
    names = draw(st.lists(TEXT, min_size=1, max_size=3, unique=True))
    kinds = {name: draw(COLUMNS) for name in names}
    return [{name: draw(kind) for name, kind in kinds.items()} for _ in range(draw(st.integers(1, 4)))]


@SETTINGS
@given(records=json_records(), escape=st.booleans())
def test_json_comes_back_value_by_value_and_goes_into_csv(records, escape):
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "a.jsonl"), Path(folder, "b.jsonl")
        source.write_text("\n".join(json.dumps(one, ensure_ascii=escape) for one in records), "utf-8", newline="")
        table = read_table(str(source))
        write_table(table.frame, str(target))
        written = [json.loads(line) for line in target.read_text("utf-8").split("\n")[:-1]]
        assert written == records
        write_table(table.frame, str(Path(folder, "c.csv")))
        assert texts_of(table, table.frame.columns).null_count() == 0


def parquet_of(frame):
    file = io.BytesIO()
    frame.write_parquet(file)
    return file.getvalue()


SEEDS = [
    b'text,label\n"a ""b""\nc",x\n\xc3\xbc,\n',
    b"a;b\n1;2\n",
    b'{"text": "\\ud83d\\ude00", "n": [1, 2.5e3], "o": {"k": null}}\n{"text": "b", "label": ["x", "y"]}\n',
    b'[{"id": 1, "data": {"text": "a"}, "annotations": [{"result": [{"value": {"taxonomy": [["a", "b"]]}}]}]}]',
    b"1 1:0.5 3:-2e1 # c\n-1 qid:3 2:1\n0 1:1\n",
    "\ufeffa,b\n1,2\n".encode("utf-16"),
    gzip.compress(b"a,b\n1,2\n"),
    zstandard.compress(b"a,b\n1,2\n"),
    parquet_of(pl.DataFrame({"a": ["x", "y"], "f": [0.5, 1e300], "l": [[1.0], [2.0]]})),
]
PIECES = [
    b'"',
    b"\n",
    b"\r",
    b",",
    b"\t",
    b"\0",
    b"\xff",
    b"\xed\xa0\x80",
    b"NaN",
    b"inf",
    b"1e999",
    b"{",
    b"}",
    b"[" * 50,
    b"]",
    b":",
    b"null",
    b"\\ud800",
    b"9" * 30,
]


@st.composite
def damaged(draw):
    data = draw(st.sampled_from(SEEDS))
    for _ in range(draw(st.integers(0, 3))):
        begin = draw(st.integers(0, len(data)))
        piece = draw(st.sampled_from(PIECES) | st.binary(max_size=4))
        data = data[:begin] + piece + data[begin + draw(st.integers(0, 5)) :]
    return data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data


def numbers_in(value):
    if isinstance(value, float):
        yield value
    elif isinstance(value, list | tuple | dict):
        for part in value.values() if isinstance(value, dict) else value:
            yield from numbers_in(part)


@pytest.mark.parametrize(
    "suffix", ["csv", "tsv", "jsonl", "json", "parquet", "svm", "csv.gz", "jsonl.zst", "label-studio"]
)
@settings(SETTINGS, max_examples=150)
@given(data=damaged() | st.binary(max_size=60))
def test_any_bytes_give_a_table_or_one_sentence(data, suffix):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"a.{suffix}")
        path.write_bytes(data)
        table = table_or_sentence(path, "label-studio" if suffix == "label-studio" else None)
        if table is None:
            return
        assert table.frame.height > 0
        assert all(map(math.isfinite, numbers_in(table.frame.rows())))
        if table.vectors is not None:
            assert all(map(math.isfinite, table.vectors.data))
            assert table.vectors.shape[0] == table.frame.height
        write_table(table.frame, str(Path(folder, "b.csv")))
        write_table(table.frame, str(Path(folder, "b.jsonl")))


def table_or_sentence(path, format):
    message = None
    try:
        table = read_table(str(path), format)
        for column in table.frame.columns:
            assert len(labels_of(table, column)) == len(texts_of(table, [column])) == table.frame.height
    except InputError as error:
        message = str(error)
    if message is None:
        return table
    assert message.startswith(str(path))
    assert message.isprintable()
    return None
