"""Round trips of hostile frames, and damaged files for every reader; the slow run tries more examples."""

import gzip
import json
import math
import tempfile
from pathlib import Path

import polars as pl
import pytest
import zstandard
from helpers.tables import parquet_bytes
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from transduce.cli.errors import InputError
from transduce.cli.formats import labels_of, parquet, read_table, texts_of, write_table

SETTINGS = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
N_EXAMPLES = pytest.mark.parametrize("n_examples", [8, pytest.param(200, marks=pytest.mark.slow)])
HOSTILE = [
    '"', "'", ",", ";", "\t", "\n", "\r", "\r\n", "\ufeff", "\u202e",
    "\u200f", "😀", "é", "=1", "-", "\u2028", "\x1c", "\\", "{", "[", " ",
]  # fmt: skip
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


@N_EXAMPLES
@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.tsv", "a.tsv.zst"])
def test_delimited_text_round_trips(name, n_examples):
    @settings(SETTINGS, max_examples=n_examples)
    @given(frame=text_frames(without_nul=True))
    @example(frame=pl.DataFrame({"a;b": ["x"], "\ufeff": [""]}))
    @example(frame=pl.DataFrame({'a";"': [";"]}))
    def check(frame):
        assert_frame_equal(round_trip(frame, name, keep_formulas=True), frame)

    check()


@N_EXAMPLES
@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.parquet", "a.parquet.zst"])
def test_json_lines_and_parquet_text_round_trips(name, n_examples, monkeypatch):
    monkeypatch.setattr(parquet, "succeeds", lambda *_, **__: True)  # a process per example would take minutes

    @settings(SETTINGS, max_examples=n_examples)
    @given(frame=text_frames(without_nul=False))
    def check(frame):
        assert_frame_equal(round_trip(frame, name), frame)

    check()


@N_EXAMPLES
def test_written_csv_has_no_formulas_and_can_always_be_read(n_examples):
    @settings(SETTINGS, max_examples=n_examples)
    @given(frame=text_frames(without_nul=False))
    def check(frame):
        back = round_trip(frame, "a.csv")
        for column, written in zip(frame.iter_columns(), back.iter_columns(), strict=True):
            for cell, text in zip(column, written, strict=True):
                expected = cell.replace("\0", "\ufffd")
                assert text in (expected, f"'{expected}")
                assert text[:1] not in ("=", "@", "\t", "\r")
                assert text[:1] not in ("+", "-") or math.isfinite(float(text.replace(",", ".")))

    check()


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


@N_EXAMPLES
def test_json_values_round_trip_and_can_be_written_as_csv(n_examples):
    @settings(SETTINGS, max_examples=n_examples)
    @given(records=json_records(), escape=st.booleans())
    def check(records, escape):
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder, "a.jsonl"), Path(folder, "b.jsonl")
            source.write_text("\n".join(json.dumps(one, ensure_ascii=escape) for one in records), "utf-8", newline="")
            table = read_table(str(source))
            write_table(table.frame, str(target))
            assert [json.loads(line) for line in target.read_text("utf-8").split("\n")[:-1]] == records
            write_table(table.frame, str(Path(folder, "c.csv")))
            assert texts_of(table, table.frame.columns).null_count() == 0

    check()


SEEDS = [
    b'text,label\n"a ""b""\nc",x\n\xc3\xbc,\n',
    b"a;b\n1;2\n",
    b'{"text": "\\ud83d\\ude00", "n": [1, 2.5e3], "o": {"k": null}}\n{"text": "b", "label": ["x", "y"]}\n',
    b'[{"id": 1, "data": {"text": "a"}, "annotations": [{"result": [{"value": {"taxonomy": [["a", "b"]]}}]}]}]',
    b"1 1:0.5 3:-2e1 # c\n-1 qid:3 2:1\n0 1:1\n",
    "\ufeffa,b\n1,2\n".encode("utf-16"),
    gzip.compress(b"a,b\n1,2\n"),
    zstandard.compress(b"a,b\n1,2\n"),
    parquet_bytes(pl.DataFrame({"a": ["x", "y"], "f": [0.5, 1e300], "l": [[1.0], [2.0]]})),
]
PIECES = [
    b'"', b"\n", b"\r", b",", b"\t", b"\0", b"\xff", b"\xed\xa0\x80", b"NaN", b"inf",
    b"1e999", b"{", b"}", b"[" * 50, b"]", b":", b"null", b"\\ud800", b"9" * 30,
]  # fmt: skip


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


@pytest.mark.parametrize("n_examples", [15, pytest.param(400, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "suffix", ["csv", "tsv", "jsonl", "json", "parquet", "svm", "csv.gz", "jsonl.zst", "label-studio"]
)
def test_damaged_files_give_a_valid_table_or_an_input_error(suffix, n_examples):
    @settings(SETTINGS, max_examples=n_examples)
    @given(data=damaged() | st.binary(max_size=60))
    def check(data):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, f"a.{suffix}")
            path.write_bytes(data)
            table = table_or_none(path, "label-studio" if suffix == "label-studio" else None)
            if table is not None:
                assert_valid(table, folder)

    check()


def table_or_none(path, format):
    message = None
    try:
        table = read_table(str(path), format)
        for column in table.frame.columns:
            assert len(labels_of(table, column)) == len(texts_of(table, [column])) == table.frame.height
    except InputError as error:
        message = str(error)
    assert message is None or (message.startswith(str(path)) and message.isprintable())
    return table if message is None else None


def assert_valid(table, folder):
    assert table.frame.height > 0
    assert all(map(math.isfinite, numbers_in(table.frame.rows())))
    if table.vectors is not None:
        assert all(map(math.isfinite, table.vectors.data))
        assert table.vectors.shape[0] == table.frame.height
    write_table(table.frame, str(Path(folder, "b.csv")))
    write_table(table.frame, str(Path(folder, "b.jsonl")))
