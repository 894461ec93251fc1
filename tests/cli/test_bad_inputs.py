"""Every bad input ends with exit code 2 and one sentence that names the cause and a remedy, and leaves no file."""

import gzip
import io
import json
import os
import pickle
import re
import shlex
import shutil
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import zstandard
from helpers.documents import documents, vectors_of
from safetensors.numpy import load, save
from scipy import sparse

from transduce.cli.formats import write_table
from transduce.cli.main import run

Content = bytes | str | Callable[[Path], object]

GOOD = "text,label\ngreen tea with milk,tea\nblack coffee to go,coffee\nanother cup of tea,\na mug of coffee,\n"
"""Two labelled rows and two that are not."""
FULL = "text,label\ngreen tea with milk,tea\nblack coffee to go,coffee\n"
TREE = GOOD.replace(",tea", ",hot/tea").replace(",coffee", ",hot/coffee")
LABEL, PREDICT = "label documents.csv -o out.csv ", "predict m.safetensors documents.csv -o out.csv "
ASSUMED = re.compile(
    r"Using column |Note: |Class sizes: |Filled in \d+ answer|Reading \d+ texts|\d+ labelled rows, |"
    r"\S+ holds no results "
)
"""Messages that may precede the error."""


@dataclass(frozen=True)
class Case:
    """The command, what its last line must match, and the files to create besides the valid ones."""

    typed: str
    expected: str
    files: dict[str, Content]
    stdin: bytes = b""


def case(typed: str, expected: str, stdin: bytes = b"", **files: Content) -> Case:
    """Names of files are keywords, with "__" for the dot and "___" for the slash."""
    named = {name.replace("___", "/").replace("__", "."): content for name, content in files.items()}
    return Case(typed, expected, named, stdin)


def on_file(name: str, content: Content, expected: str, options: str = "") -> Case:
    """The main job on a bad file, named in the sentence."""
    return Case(f"label {shlex.quote(name)} -o out.csv {options}", f"{re.escape(name)}{expected}", {name: content})


def written(frame: pl.DataFrame, *, cut: int | None = None) -> bytes:
    """A frame as Parquet."""
    file = io.BytesIO()
    frame.write_parquet(file)
    return file.getvalue()[:cut]


def numpy_file(array: object) -> bytes:
    file = io.BytesIO()
    np.save(file, np.asarray(array), allow_pickle=True)
    return file.getvalue()


def numpy_archive(**arrays: object) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def zipped(name: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, "nothing")
    return file.getvalue()


def saved_sparse(n_rows: int) -> bytes:
    file = io.BytesIO()
    sparse.save_npz(file, sparse.random(n_rows, 5, 0.5, format="csr", random_state=0))
    return file.getvalue()


def changed_model(change: Callable[[dict[str, object], dict[str, np.ndarray]], object]) -> Callable[[Path], object]:
    """A model file of its own with something changed in its description or its tensors."""

    def write(path: Path) -> None:
        whole = path.with_name("m.safetensors").read_bytes()
        header = json.loads(whole[8 : 8 + int.from_bytes(whole[:8], "little")])
        description, tensors = json.loads(header["__metadata__"]["transduce"]), load(whole)
        change(description, tensors)
        path.write_bytes(save(tensors, {"transduce": json.dumps(description)}))

    return write


def cut_model(fraction: float) -> Callable[[Path], object]:
    def write(path: Path) -> None:
        whole = path.with_name("m.safetensors").read_bytes()
        path.write_bytes(whole[: int(len(whole) * fraction)])

    return write


def link(to: str) -> Callable[[Path], object]:
    return lambda path: path.symlink_to(to)


def folder(path: Path) -> None:
    path.mkdir()


def studio(*tasks: dict[str, object]) -> bytes:
    return json.dumps([{"id": 1, "data": {"text": "a good cup of tea"}, **task} for task in tasks]).encode()


def choice(*names: object, key: str = "choices") -> dict[str, object]:
    return {"annotations": [{"result": [{"value": {key: list(names)}}]}]}


LONG = "a text that is long enough to be one"

FILES = {
    "missing": case("label missing.csv -o out.csv", r"missing\.csv.*no such file.*Check"),
    "missing folder": case("label there/is/none.jsonl -o out.csv", r"there/is/none\.jsonl.*no such file.*Check"),
    "Excel": on_file("a.xlsx", zipped("xl/workbook.xml"), r".*Excel files are not supported.*CSV UTF-8"),
    "unknown suffix": on_file("notes.txt", GOOD, r".*cannot tell the format.*Pass --format"),
    "no suffix": on_file("notes", GOOD, r".*cannot tell the format.*Pass --format"),
    "unknown suffix within gz": on_file(
        "notes.doc.gz", gzip.compress(GOOD.encode()), r".*cannot tell the format.*Pass --format"
    ),
    "output in the folder": case(
        "label place -o place/out.csv", r"place/out\.csv is in the folder place.*Name", place=folder
    ),
    "folder as csv": case(
        "label place -o out.csv --format csv", r"place.*expected a csv file.*Name a file", place=folder
    ),
    "csv as folder": case(
        LABEL + "--format folder", r"documents\.csv.*expected a folder.*this is a file.*Leave out --format"
    ),
    "missing as folder": case("label no -o out.csv --format folder", r"no: expected a folder.*does not exist.*Check"),
    "csv as svmlight": case(LABEL + "--format svmlight", r"documents\.csv, line 1.*target.*check --format"),
    "csv as parquet": case(LABEL + "--format parquet", r"documents\.csv.*Parquet.*again"),
    "csv as jsonl": case(LABEL + "--format jsonl", r"documents\.csv, line 1.*JSON.*--format"),
    "plain list as Label Studio": on_file(
        "p.json", '[{"text": "a"}]', r", row 1.*data.*Export", "--format label-studio"
    ),
    "folder on standard input": case("label - -o out.csv --format folder", "standard input.*Name a folder"),
    "empty standard input": case("label - -o out.csv", "standard input.*empty.*Add"),
    "noise on standard input": case(
        "label - -o out.csv", "standard input, line 1.*UTF-8.*Save", stdin=b"\x93\xa0\xff\n"
    ),
    "name with a line end": case("label 'a\nb.csv' -o out.csv", r"a\\nb\.csv.*no such file.*Check"),
    "name that no file can have": case("label 'a\0b.csv' -o out.csv", r"a\\x00b\.csv.*cannot be read.*Check"),
}

CSV = {
    "empty": on_file("a.csv", b"", r".*empty.*Add a header"),
    "blank lines only": on_file("a.csv", "\n\n\n", r".*empty.*Add a header"),
    "header only": on_file("a.csv", "text,label\n", r".*no rows.*Add"),
    "nameless header": on_file("a.csv", " ,\na,b\n", r", line 1.*no column names.*Write"),
    "column twice": on_file("a.csv", "text,label,text\na,b,c\n", r', line 1.*"text" twice.*Use'),
    "cell missing": on_file("a.csv", GOOD + "only one\n", r", line 6.*expected 2 cells.*found 1.*quotes"),
    "cell too many": on_file("a.csv", GOOD + "a,b,c\n", r", line 6.*expected 2 cells.*found 3.*quotes"),
    "open quote": on_file("a.csv", GOOD + '"never closed,tea\n', r", line 6.*never closed.*Close"),
    "text after a quote": on_file("a.csv", GOOD + '"a" b,tea\n', r", line 6.*after a closing quote.*Double"),
    "Latin-1": on_file("a.csv", GOOD.replace("mug", "müg").encode("latin-1"), r", line 5.*UTF-8.*Save"),
    "NUL": on_file("a.csv", GOOD.replace("mug", "m\0g"), r", line 5.*NUL.*Save"),
    "half a UTF-16 character": on_file("a.csv", GOOD.encode("utf-16")[:-1], r", line 5.*UTF-16.*Save"),
    "UTF-16 without a mark": on_file("a.csv", GOOD.encode("utf-16-le"), r", line 1.*NUL.*Save"),
    "TSV with commas": on_file("a.tsv", GOOD, r" holds the labels.*--label"),
    "gzip cut": on_file("a.csv.gz", gzip.compress(GOOD.encode())[:-9], r".*gzip.*truncated.*again"),
    "gzip in name only": on_file("a.csv.gz", GOOD, r".*gzip.*corrupt.*again"),
    "gzip with a wrong sum": on_file("a.csv.gz", gzip.compress(GOOD.encode())[:-8] + b"12345678", r".*gzip.*corrupt"),
    "zstd cut": on_file("a.csv.zst", zstandard.compress(GOOD.encode())[:-5], r".*zstd.*truncated.*again"),
    "zstd in name only": on_file("a.csv.zst", GOOD, r".*zstd.*corrupt.*again"),
    "gzip of nothing": on_file("a.csv.gz", gzip.compress(b""), r".*empty.*Add"),
}

JSON = {
    "empty": on_file("a.jsonl", b"", r".*no objects.*Write one"),
    "broken": on_file("a.jsonl", '{"text": "a"}\n{"text": \n', r", line 2.*invalid.*Correct"),
    "a list a line": on_file("a.jsonl", '{"text": "a"}\n["text"]\n', r", line 2.*a list.*Write an object"),
    "NaN": on_file("a.jsonl", '{"text": NaN}\n', r", line 1.*NaN.*Write null"),
    "key twice": on_file("a.jsonl", '{"text": "a", "text": "b"}\n', r', line 1.*"text" appears twice.*Keep'),
    "two objects a line": on_file("a.jsonl", '{"text": "a"} {"text": "b"}\n', r", line 1.*more after it.*Put"),
    "deep": on_file("a.jsonl", '{"text": ' + "[" * 5000 + "]" * 5000 + "}\n", r", line 1.*nested deeper.*Flatten"),
    "half a character": on_file("a.jsonl", '{"text": "\\ud800"}\n', r", line 1.*surrogate.*Write"),
    "objects without keys": on_file("a.jsonl", "{}\n{}\n", r".*row 1.*Give each document its text"),
    "number past float64": on_file("a.jsonl", '{"text": 1e999}\n', r", line 1.*1e999 is too large.*Write"),
    "number of many digits": on_file("a.jsonl", '{"text": ' + "9" * 9999 + "}\n", r", line 1.*too many digits.*Write"),
    "open list": on_file(
        "a.json", '[{"text": "a"}', r', line 1, row 1.*expected "," or "\]".*the file ends.*End the list'
    ),
    "no comma": on_file("a.json", '[{"text": "a"}\n{"text": "b"}]', r", line 2, row 1.*Separate objects"),
    "a number": on_file("a.json", "17", r", line 1.*expected a JSON list.*Write \["),
    "more after the list": on_file("a.json", '[{"text": "a"}]\n]', r", line 2.*end of the file.*Keep one list"),
    "number in the list": on_file("a.json", '[{"text": "a"},\n 3]', r", line 2, row 2.*a number.*Write"),
    "empty list": on_file("a.json", "[]", r".*no objects.*Write one"),
    "object as label": on_file(
        "a.jsonl", f'{{"text": "{LONG}", "label": {{"a": 1}}}}\n', r', row 1.*"label" has an object.*Use a text'
    ),
    "slash in a path": on_file(
        "a.jsonl", f'{{"text": "{LONG}", "label": ["a/b", "c"]}}\n', r', row 1.*"label".*"a/b".*Rename'
    ),
    "empty step in a path": on_file(
        "a.jsonl", f'{{"text": "{LONG}", "label": ["a", " "]}}\n', r', row 1.*"label".*Rename it.*not be empty'
    ),
}

OTHER_FORMATS = {
    "Parquet cut": on_file("a.parquet", written(documents(9, 4), cut=300), r".*Parquet.*truncated.*again"),
    "Parquet in name only": on_file("a.parquet", GOOD, r".*Parquet.*corrupt.*again"),
    "Parquet without rows": on_file("a.parquet", written(pl.DataFrame({"text": []})), r".*no rows.*Write one"),
    "Parquet with noise": on_file("a.parquet", b"PAR1" + bytes(range(256)) + b"PAR1", r".*Parquet.*corrupt.*again"),
    "infinity in Parquet": on_file(
        "a.parquet",
        written(pl.DataFrame({"text": [LONG] * 2, "label": [1.0, float("inf")]})),
        r', row 2.*"label".*finite',
    ),
    "svmlight target": on_file("a.svm", "1 1:1\ntea 1:1\n", r', line 2.*"tea".*Write class numbers'),
    "svmlight pair": on_file("a.svm", "1 1:1\n2 1:x\n", r', line 2.*"1:x".*Correct'),
    "svmlight NaN": on_file("a.svm", "1 1:1\n2 1:nan\n", r', line 2.*"1:nan".*Correct'),
    "svmlight overflow": on_file("a.svm", "1 1:1\n2 1:1e999\n", r", line 2.*too large.*Scale"),
    "svmlight order": on_file("a.svm", "1 1:1\n2 2:1 1:1\n", r", line 2.*increasing.*Sort"),
    "svmlight index": on_file("a.svm", "1 1:1\n2 99999999999:1\n", r", line 2.*indices up to.*Renumber"),
    "svmlight labels": on_file("a.svm", "1,2 1:1\n", r', line 1.*"1,2".*Keep one label'),
    "svmlight without features": on_file("a.svm", "1\n2\n", r", line 1.*no row has a feature.*index:value"),
    "svmlight of nothing": on_file("a.svm", "# nothing\n", r".*no rows.*Write one"),
    "svmlight with one class": on_file("a.svm", "1 1:1\n0 2:1\n", r".*only one class, '1'.*Label rows"),
    "empty folder": on_file("place", folder, r".*no files.*Use one subfolder"),
    "folder with a link out": case(
        "label place -o out.csv", r'place.*"tea/x".*outside the folder.*Copy', place___tea___x=link("/etc/hostname")
    ),
    "folder with Latin-1": case(
        "label place -o out.csv", r"place/tea/1\.txt, line 1.*UTF-8.*Save", place___tea___1__txt=b"th\xe9"
    ),
    "folder with one class": case(
        "label place -o out.csv",
        r"place.*only one class, 'tea'",
        place___tea___1__txt=LONG,
        place___unlabelled___2__txt=LONG,
    ),
    "two choices": on_file(
        "a.json", studio(choice("tea", "coffee")), r', row 1.*found 2: "tea" and "coffee".*Keep one'
    ),
    "task without data": on_file("a.json", studio(choice("tea"), {"data": 3}), r', row 2.*"data".*Export'),
    "annotations of another kind": on_file("a.json", studio({"annotations": 3}), r', row 1.*"annotations".*Export'),
    "choice of another kind": on_file("a.json", studio(choice(3)), r', row 1.*"choices".*Export'),
    "taxonomy with a slash": on_file("a.json", studio(choice(["a/b"], key="taxonomy")), r', row 1.*"a/b".*Rename'),
}

COLUMNS = {
    "text": case(LABEL + "--text txt", r'documents\.csv.*"txt".*Did you mean "text"'),
    "label": case(LABEL + "--label lable", r'documents\.csv.*"lable".*Did you mean "label"'),
    "truth": case(LABEL + "--truth turth --report r.html", r'documents\.csv.*"turth".*Did you mean "truth"'),
    "text is label": case(LABEL + "--text label --label label", r"'label' of documents\.csv.*both.*Name two"),
    "text twice": case(LABEL + "--text text --text text", r"'text' of documents\.csv.*twice.*once"),
    "no text": on_file("a.csv", "a,label\nx,y\nz,\n", r".*no column that could be the text.*'a'.*--text"),
    "several texts": on_file("a.csv", f"a,b,label\n{LONG},{LONG},y\n", r".*several columns.*'a', 'b'.*--text"),
    "no labels": on_file("a.csv", f"text,b\n{LONG},1\n{LONG},2\n", r" holds the labels.*'text' and 'b'.*--label"),
    "predict": case(PREDICT + "--text body", r'documents\.csv.*"body"'),
    "evaluate": case(
        "evaluate m.safetensors documents.csv --label nope", r'documents\.csv.*"nope".*The columns are: id, text'
    ),
    "check": case("check documents.csv --label nope", r'documents\.csv.*"nope".*The columns are: id, text'),
    "queue": case("queue documents.csv -o q.csv --text nope", r'documents\.csv.*"nope".*The columns are: id, text'),
    "report": case(
        "report m.safetensors documents.csv -o r.html --truth nope",
        r'documents\.csv.*"nope".*The columns are: id, text',
    ),
    "no text to predict": case(
        "predict m.safetensors a.csv -o out.csv", r"a\.csv has no column.*--text", a__csv="a,b\n1,2\n"
    ),
    "no text to report": case(
        "report m.safetensors a.csv -o r.html", r"a\.csv has no column.*--text", a__csv="a,b\n1,2\n"
    ),
    "all texts empty": on_file(
        "a.csv", "text,label\n,tea\n,coffee\n,\n", r".*None of the 3 texts contains a word.*text column"
    ),
    "no words": on_file(
        "a.csv", 'text,label\n"!!",tea\n"??",coffee\n"..",\n', r".*None of the 3 texts contains a word.*text column"
    ),
}

LABELS = {
    "none": case("label a.csv -o out.csv", r"'label' of a\.csv.*no labels.*Fill", a__csv="text,label\na b,\nc d,\n"),
    "blanks": case("label a.csv -o out.csv", r"'label' of a\.csv.*no labels", a__csv="text,label\na b, \nc d,  \n"),
    "one class": case(
        "label a.csv -o out.csv", r"'label' of a\.csv.*only one class, 'x'.*two", a__csv="text,label\na,x\nb,\n"
    ),
    "empty part": on_file("a.csv", TREE + "x,hot//tea\n", r" has 'hot//tea'.*empty part.*--flat"),
    "leading slash": on_file("a.csv", TREE + "x,/cold\n", r" has '/cold'.*empty part.*--flat"),
    "trailing slash": on_file("a.csv", TREE + "x,hot/\n", r" has 'hot/'.*empty part.*--flat"),
    "evaluate without": case(
        "evaluate m.safetensors a.csv", r"'label' of a\.csv.*no label to compare.*--label", a__csv="text,label\na b,\n"
    ),
    "queue with none left": case(
        "queue full.csv -o q.csv", r"every row of full\.csv has a label.*--label", full__csv=FULL
    ),
    "queue by model with none left": case(
        "queue full.csv -o q.csv --model m.safetensors",
        r"every row of full\.csv has a label.*--label",
        full__csv=FULL,
    ),
    "queue with a text called row": case(
        "queue a.csv -o q.csv --text row", r"'row'.*Rename", a__csv=GOOD.replace("text", "row", 1)
    ),
    "class that XML cannot hold": case(
        "queue a.csv -o q.json", r"'t\\x01a'.*Rename", a__csv=GOOD.replace(",tea", ",t\x01a")
    ),
}


def stated(*sizes: str) -> str:
    return LABEL + " ".join(f"--prior {shlex.quote(size)}" for size in sizes)


PRIORS = {
    "no value": case(stated("travel"), r"--prior must be NAME=SIZE.*'travel'"),
    "no name": case(stated("=0.2"), r"--prior must be NAME=SIZE.*'=0\.2'"),
    "nothing": case(stated(""), r"--prior must be NAME=SIZE.*''"),
    "a word": case(stated("travel=much"), r"--prior travel=much.*'much'"),
    "half a row": case(
        stated("travel=1.5"), r"--prior travel=1\.5.*1\.5.*neither a fraction nor a whole number of rows"
    ),
    "twice": case(stated("travel=0.2", "travel=0.3"), r"'travel' twice; keep one"),
    "several in one": case(stated("travel=0.4,banking=0.1"), r"one --prior for each class"),
    "three numbers": case(stated("travel=1:2:3"), r"--prior travel=1:2:3.*a range such as"),
    "negative": case(stated("travel=-0.1"), r"--prior travel=-0\.1"),
    "infinite": case(stated("travel=inf"), r"--prior travel=inf"),
    "NaN": case(stated("travel=nan"), r"--prior travel=nan"),
    "exchanged": case(stated("travel=0.5:0.1"), r"--prior travel=0\.5:0\.1.*low end is above.*Swap"),
    "more than all": case(
        stated("travel=0.9", "banking=0.9", "auto_and_commute=0.2"), r"class sizes.*sum to 2, not 1.*Divide them"
    ),
    "less than all": case(
        stated("travel=0.1", "banking=0.1", "auto_and_commute=0.1"),
        r"class sizes.*sum to 0\.3, not 1.*Divide them",
    ),
    "more than all by two": case(stated("travel=0.7", "banking=0.7"), r"class sizes.*sum to 1\.4, not 1.*leave out"),
    "low ends too high": case(
        stated("travel=0.6:0.9", "banking=0.6:0.9"), r"class sizes.*at least 116 rows.* 96 .*Lower"
    ),
    "high ends too low": case(
        stated("travel=0:0.1", "banking=0:0.1", "auto_and_commute=0:0.1"),
        r"class sizes.*at most 27 of the 96 rows.*Raise",
    ),
    "too many rows": case(stated("travel=5000"), r"--prior gives 'travel' 5000 rows.*only 96"),
    "rows that do not add up": case(
        stated("travel=10", "banking=10", "auto_and_commute=10"),
        r"count 30 rows, but there are 96 rows to label and 120 with the labelled ones.*Correct",
    ),
    "fewer rows than labels": case(
        stated("travel=2", "banking=60", "auto_and_commute=58"),
        r"give 'travel' 2 of them, but \d+ are labelled so already",
    ),
    "from a fraction to rows": case(stated("travel=0.5:40"), r"--prior travel=0\.5:40.*Use one unit"),
    "thousands": case(stated("travel=1,200"), r"--prior travel=1,200.*thousands.*without a comma"),
    "more than all rows": case(stated("travel=120%"), r"--prior travel=120% is '120%', more than all rows"),
    "exact range": case(stated("travel==5:9"), r"--prior travel==5:9 must be a fraction.*'=5:9'"),
    "keyword and sizes": case(stated("equal", "travel=0.3"), r"--prior equal is about all classes.*keep one"),
    "unknown class": case(stated("football=0.2"), r"no row is labelled 'football'.*Label a row.*'banking'"),
    "nearly a class": case(stated("traval=0.2"), r"'traval'.*Did you mean 'travel'"),
    "branch of flat names": Case(
        "label a.csv -o out.csv --flat --prior hot=0.5", r"'hot'.*'hot/coffee'.*sizes", {"a.csv": TREE}
    ),
    "missing file": case(stated("p.toml"), r"p\.toml does not exist.*Check"),
    "a folder": case(stated("p.toml"), r"p\.toml cannot be read.*Name a file", p__toml=folder),
    "broken TOML": case(stated("p.toml"), r"p\.toml is not valid TOML.*line 1.*Correct", p__toml="travel = = 1"),
    "broken JSON": case(stated("p.json"), r"p\.json is not valid JSON: .*Correct", p__json='{"travel": 1'),
    "JSON list": case(stated("p.json"), r"p\.json must map each class", p__json="[1, 2]"),
    "JSON key twice": case(stated("p.json"), r"p\.json.*twice", p__json='{"travel": 1, "travel": 2}'),
    "JSON of another kind": case(
        stated("p.json"), r"p\.json, class 'travel',.*must be a fraction", p__json='{"travel": {"low": 1}}'
    ),
    "class twice": case(
        stated("p.csv"), r"p\.csv, line 2,.*'travel' a second time.*Remove one", p__csv="travel,1\ntravel,2\n"
    ),
    "four cells": case(stated("p.csv"), r"p\.csv, line 1, must be class, size", p__csv="travel,1,2,3\n"),
    "a word in a file": case(stated("p.csv"), r"p\.csv, line 2,.*'much'", p__csv="class,share\ntravel,much\n"),
    "Latin-1": case(stated("p.csv"), r"p\.csv is not UTF-8.*Save", p__csv=b"travel,1\nm\xe9tro,2\n"),
    "empty": case(stated("p.csv"), r"p\.csv.*empty", p__csv=""),
    "empty TOML": case(stated("p.toml"), r"p\.toml must map each class", p__toml=""),
    "CSV with a broken quote": case(stated("p.csv"), r"p\.csv, line 1, must be class, size", p__csv='"travel,1\n'),
    "unknown class for queue": case("queue documents.csv -o q.csv --prior football=0.2", r"'football'.*Label a row"),
    "check": case("check documents.csv --prior travel=much", r"--prior travel=much.*'much'"),
}


def with_vectors(content: Content, expected: str, name: str = "v.npy") -> Case:
    return Case(LABEL + f"--vectors {name}", expected, {name: content})


VECTORS = {
    "missing": case(LABEL + "--vectors nope.npy", r"nope\.npy does not exist.*Check"),
    "another suffix": case(LABEL + "--vectors v.txt", r"'v\.txt' is neither.*columns are id, text", v__txt="1 2 3"),
    "text column": case(LABEL + "--vectors text", r"'text' of documents\.csv must contain lists.*Name"),
    "too few": with_vectors(numpy_file(np.ones((7, 3))), r"v\.npy has 7 rows, but documents\.csv has 120.*Provide"),
    "one-dimensional": with_vectors(numpy_file(np.ones(120)), r"v\.npy must contain a matrix.*Save"),
    "three-dimensional": with_vectors(numpy_file(np.ones((120, 2, 2))), r"v\.npy must contain a matrix.*Save"),
    "no columns": with_vectors(numpy_file(np.ones((120, 0))), r"v\.npy must contain a matrix.*Save"),
    "NaN": with_vectors(numpy_file(np.where(np.eye(120) > 0, np.nan, 1)), r"row 1 of 'v\.npy' contains nan.*again"),
    "infinity": with_vectors(
        numpy_file(np.where(np.arange(240).reshape(120, 2) == 9, np.inf, 1)), r"row 5 of 'v\.npy' contains inf.*again"
    ),
    "pickled objects": with_vectors(
        numpy_file(np.array([{"a": 1}] * 120, dtype=object)), r"v\.npy cannot be read.*Save"
    ),
    "pickle": with_vectors(pickle.dumps(np.ones((120, 2))), r"v\.npy cannot be read.*Save"),
    "texts": with_vectors(numpy_file(np.full((120, 2), "a")), r"v\.npy must contain numbers.*Save"),
    "cut": with_vectors(numpy_file(np.ones((120, 2)))[:200], r"v\.npy cannot be read.*Save"),
    "two arrays": with_vectors(numpy_archive(a=np.ones((120, 2)), b=np.ones(3)), r"v\.npz.*2 arrays.*Save", "v.npz"),
    "another archive": with_vectors(zipped("x"), r"v\.npz cannot be read.*'x' is not an array.*Save", "v.npz"),
    "sparse with too few rows": with_vectors(saved_sparse(9), r"v\.npz has 9 rows.*Provide", "v.npz"),
    "lists of two lengths": Case(
        "label a.jsonl -o out.csv --vectors v",
        r"'v' of a\.jsonl.*row 2 has length 1 instead of 2.*Complete",
        {
            "a.jsonl": "".join(
                f'{{"text": "{LONG}", "label": "{c}", "v": {v}}}\n'
                for c, v in zip("aba", ([1, 2], [1], [3, 4]), strict=True)
            )
        },
    ),
    "empty lists": Case(
        "label a.jsonl -o out.csv --vectors v",
        r"'v' of a\.jsonl.*",
        {"a.jsonl": "".join(f'{{"text": "{LONG}", "label": "{c}", "v": []}}\n' for c in "ab")},
    ),
    "for a model of texts": case(
        PREDICT + "--vectors v.npy", r"model needs texts.*v\.npy.*--text", v__npy=numpy_file(np.ones((120, 2)))
    ),
}

MODELS = {
    "missing": case("predict nope.safetensors documents.csv -o out.csv", r"nope\.safetensors does not exist.*Correct"),
    "folder": case("predict place documents.csv -o out.csv", r"place is a folder.*Name", place=folder),
    "cut in its numbers": case(
        "predict cut.safetensors documents.csv -o out.csv",
        r"cut\.safetensors.*not a complete.*Copy it again",
        cut__safetensors=cut_model(0.9),
    ),
    "cut in its header": case(
        "inspect cut.safetensors", r"cut\.safetensors.*not a complete.*Copy it again", cut__safetensors=cut_model(0.02)
    ),
    "empty": case("inspect m", r"m is not a usable model.*empty.*Copy it again", m=b""),
    "pickle": case(
        "predict m.pkl documents.csv -o out.csv", r"m\.pkl.*pickle.*run code.*again", m__pkl=pickle.dumps({"a": 1})
    ),
    "archive": case("evaluate m.zip documents.csv", r"m\.zip.*zip archive.*again", m__zip=zipped("x")),
    "CSV": case("report documents.csv documents.csv -o r.html", r"documents\.csv is not a usable model.*again"),
    "exchanged with the file": case("predict documents.csv m.safetensors -o out.csv", r"The order is MODEL FILE"),
    "another's": case(
        "inspect o.safetensors", r"o\.safetensors.*not one of transduce.*again", o__safetensors=save({"a": np.ones(3)})
    ),
    "newer": case(
        "inspect n.safetensors",
        r"n\.safetensors.*version is 99.*Upgrade",
        n__safetensors=changed_model(lambda d, _: d.update(version=99)),
    ),
    "without words": case(
        "inspect n.safetensors",
        r"n\.safetensors.*again",
        n__safetensors=changed_model(lambda _, t: t.pop("vocabulary")),
    ),
    "class twice": case(
        "inspect n.safetensors",
        r"n\.safetensors.*class twice.*again",
        n__safetensors=changed_model(lambda d, _: d.update(classes=["a"] * 3)),
    ),
    "NaN": case(
        "inspect n.safetensors",
        r"n\.safetensors.*coef.*again",
        n__safetensors=changed_model(lambda _, t: t.update(coef=t["coef"] * np.nan)),
    ),
    "too few weights": case(
        "inspect n.safetensors",
        r"n\.safetensors.*coef.*shape.*again",
        n__safetensors=changed_model(lambda _, t: t.update(coef=t["coef"][:, 1:].copy())),
    ),
    "another loss": case(
        "inspect n.safetensors",
        r"n\.safetensors.*loss.*again",
        n__safetensors=changed_model(lambda d, _: d.update(loss="l0")),
    ),
    "header that is not JSON": case(
        "inspect n.safetensors",
        r"n\.safetensors.*JSON.*again",
        n__safetensors=(20).to_bytes(8, "little") + b"x" * 30,
    ),
    "huge header": case("inspect n.safetensors", r"n\.safetensors.*again", n__safetensors=b"\xff" * 64),
    "of texts for svmlight": case(
        "predict m.safetensors a.svm -o out.csv", r"needs texts.*a\.svm.*Pass a file", a__svm="1 1:1\n"
    ),
    "of vectors for texts": case(
        "predict v.safetensors documents.csv -o out.csv", r"vectors of 8 numbers.*documents\.csv.*--vectors"
    ),
    "of shorter vectors": case(
        "predict v.safetensors documents.csv -o out.csv --vectors w.npy",
        r"vectors of 8 numbers.*documents\.csv have 9.*Make",
        w__npy=numpy_file(np.ones((120, 9))),
    ),
    "of shorter svmlight": case(
        "predict v.safetensors a.svm -o out.csv", r"vectors of 8 numbers.*a\.svm have 9.*Make", a__svm="1 8:1\n"
    ),
    "of vectors for queue": case(
        "queue documents.csv -o q.csv --model v.safetensors", r"vectors of 8 numbers.*documents\.csv.*--vectors"
    ),
    "missing for queue": case(
        "queue documents.csv -o q.csv --model nope.safetensors", r"nope\.safetensors does not exist.*Correct"
    ),
}

OUTPUTS = {
    "suffix": case("label documents.csv -o out.txt", r"out\.txt must end in \.csv.*Rename"),
    "no suffix": case("predict m.safetensors documents.csv -o out", r"output out must end in \.csv.*Rename"),
    "svmlight": case("label documents.csv -o out.svm", r"out\.svm must end in \.csv.*Rename"),
    "folder missing": case("label documents.csv -o no/out.csv", r"no/out\.csv.*no folder no.*Make it"),
    "a folder": case("label documents.csv -o out.csv", r"out\.csv is a folder.*Name a file", out__csv=folder),
    "the input": case("label documents.csv -o documents.csv", r"documents\.csv is also an input.*Name another"),
    "the input by another path": case(
        "label documents.csv -o ./sub/../documents.csv", r"documents\.csv is also an input.*Name another", sub=folder
    ),
    "a link to the input": case(
        "label documents.csv -o l.csv", r"l\.csv is also an input.*Name another", l__csv=link("documents.csv")
    ),
    "the answers": case(
        LABEL.replace("out.csv", "q.csv") + "--answers q.csv",
        r"q\.csv is also an input.*Name another",
        q__csv="row,label\n30,travel\n",
    ),
    "the prior": case(
        LABEL.replace("out.csv", "p.csv") + "--prior p.csv",
        r"p\.csv is also an input.*Name another",
        p__csv="travel,0.3\n",
    ),
    "model suffix": case(LABEL + "--model m.pkl", r"m\.pkl must end in \.safetensors.*Rename"),
    "model folder missing": case(LABEL + "--model no/m.safetensors", r"no/m\.safetensors.*no folder no.*Make it"),
    "report suffix": case(LABEL + "--report r.pdf", r"r\.pdf must end in \.html.*Rename"),
    "report folder missing": case(LABEL + "--report no/r.html", r"no/r\.html.*no folder no.*Make it"),
    "report on standard output": case("report m.safetensors documents.csv -o -", r"- must end in \.html.*Rename"),
    "queue suffix": case("queue documents.csv -o q.xlsx", r"q\.xlsx must end in \.csv.*Rename"),
    "one file for two": case(
        LABEL + "--report r.html",
        r"out\.csv and r\.html.*Name them differently",
        r__html=link("out.csv"),
        out__csv="x\n",
    ),
    "two things on standard output": case("label documents.csv -o - --json", r"--json.*standard output.*Name a file"),
    "two things on standard output of predict": case(
        "predict m.safetensors documents.csv -o - --json", r"--json.*standard output.*Name a file"
    ),
    "two things on standard output of queue": case(
        "queue documents.csv -o - --json", r"--json.*standard output.*Name a file"
    ),
    "demo into a file": case("demo -o documents.csv", r"documents\.csv cannot be made.*Name another"),
}

OPTIONS = {
    "unknown": case(LABEL + "--losss hinge", r"--losss.*Try 'transduce label --help'"),
    "command": case("lable documents.csv", r"'lable'.*Try 'transduce --help'"),
    "no command": case("", r"Missing command.*Try 'transduce --help'"),
    "no file": case("label -o out.csv", r"'FILE'.*Try 'transduce label --help'"),
    "no output": case("label documents.csv", r"'-o' / '--out'.*Try 'transduce label --help'"),
    "too many files": case(LABEL + "more.csv", r"more\.csv.*Try 'transduce label --help'"),
    "no value": case("label documents.csv -o", r"'-o' requires.*Try 'transduce --help'"),
    "loss": case(LABEL + "--loss l0", r"'--loss'.*'l0'.*'hinge'"),
    "features": case(LABEL + "--features bert", r"'--features'.*'bert'.*'tfidf'"),
    "annealing": case(LABEL + "--annealing slow", r"'--annealing'.*'slow'.*'soft'"),
    "format": case(LABEL + "--format xlsx", r"'--format'.*'xlsx'.*'csv'"),
    "alpha in words": case(LABEL + "--alpha small", r"'--alpha'.*'small'"),
    "alpha 0": case(LABEL + "--alpha 0", r"'--alpha'.*0"),
    "alpha NaN": case(LABEL + "--alpha nan", r"'--alpha'.*nan"),
    "alpha infinite": case(LABEL + "--alpha inf", r"'--alpha'.*inf"),
    "ngrams": case(LABEL + "--ngrams 3", r"'--ngrams'.*3.*1<=x<=2"),
    "seed": case(LABEL + "--seed -1", r"'--seed'.*-1"),
    "seed in words": case(LABEL + "--seed x", r"'--seed'.*'x'"),
    "jobs": case(LABEL + "--jobs 0", r"'--jobs'.*0"),
    "number": case("queue documents.csv -o q.csv -n 0", r"'-n'.*0"),
    "words": case("inspect m.safetensors --words -1", r"'--words'.*-1"),
    "flag with a value": case(LABEL + "--quiet=yes", r"'--quiet'.*value"),
}


def configured(content: Content, expected: str, typed: str = LABEL) -> Case:
    return Case(typed + "--config c.toml", expected, {"c.toml": content})


CONFIGS = {
    "missing": case(LABEL + "--config nope.toml", r"nope\.toml does not exist.*Check"),
    "folder": configured(folder, r"c\.toml cannot be read.*Name a file"),
    "broken": configured("seed = = 1", r"c\.toml is not valid TOML.*line 1.*Correct"),
    "Latin-1": configured(b'text = "\xe9"', r"c\.toml is not UTF-8.*Save"),
    "unknown": configured("sede = 1", r"c\.toml sets 'sede'.*Correct or remove"),
    "unknown for one": configured("[label]\nwords = 1", r"c\.toml sets 'words' for label.*--help"),
    "a word for a number": configured('seed = "x"', r"c\.toml sets 'seed' to 'x', but it must be a whole number"),
    "a list for a number": configured(
        "seed = [1, 2]", r"c\.toml sets 'seed' to \[1, 2\], but it must be a whole number"
    ),
    "a fraction for a number": configured("seed = 1.5", r"c\.toml sets 'seed' to 1\.5, but it must be a whole number"),
    "a date for a number": configured("seed = 2024-01-01", r"c\.toml sets 'seed' to .*, but it must be a whole number"),
    "a truth value for a number": configured(
        "seed = true", r"c\.toml sets 'seed' to True, but it must be a whole number"
    ),
    "a number for a column": configured("label = 3", r"c\.toml sets 'label' to 3, but it must be a string"),
    "a number for columns": configured("text = 3", r"c\.toml sets 'text' to 3, but it must be a string or a list"),
    "numbers for columns": configured("text = [3]", r"c\.toml sets 'text' to \[3\], but it must be a string or a list"),
    "a number for the prior": configured("prior = 3", r"c\.toml sets 'prior' to 3, but it must be a string or a list"),
    "a list for one": configured('label = ["a"]', r"c\.toml sets 'label' to \['a'\], but it must be a string"),
    "a word for a flag": configured(
        'quiet = "maybe"', r"c\.toml sets 'quiet' to 'maybe', but it must be true or false"
    ),
    "a table for one value": configured(
        "[seed]\na = 1", r"c\.toml sets 'seed' to \{'a': 1\}, but it must be a whole number"
    ),
    "a value for a command": configured("predict = 3", r"c\.toml sets 'predict'.*Correct or remove"),
    "choice": configured('loss = "l0"', r"c\.toml sets 'loss' to an invalid value.*'l0'.*'hinge'"),
    "range": configured("alpha = -1", r"c\.toml sets 'alpha' to an invalid value.*-1.*1e-12<=x"),
    "NaN": configured("alpha = nan", r"c\.toml sets 'alpha' to an invalid value.*nan"),
    "fraction of a class": configured(
        "[prior]\ntravel = {a = 1}", r"c\.toml sets 'prior' to \{'a': 1\} for class 'travel', but it must"
    ),
    "a config in a config": configured('config = "d.toml"', r"c\.toml sets 'config'.*Correct or remove"),
    "an argument": configured(
        '[label]\nfile = "documents.csv"', r"c\.toml sets 'file' for label.*--help", "label -o out.csv "
    ),
    "unknown class": configured("[prior]\nfootball = 0.2", r"'football'.*Label a row"),
    "out": configured('out = "x.txt"', r"x\.txt must end in \.csv", "label documents.csv "),
}


def answered(content: Content, expected: str, typed: str = LABEL) -> Case:
    return Case(typed + "--answers q.csv", expected, {"q.csv": content})


ANSWERS = {
    "missing": case(LABEL + "--answers nope.csv", r"nope\.csv.*no such file.*Check"),
    "empty": answered("", r"q\.csv.*empty.*Add"),
    "no row": answered("label\ntravel\n", r"q\.csv needs.*no 'row'.*Add"),
    "no label": answered("row\n30\n", r"q\.csv needs.*no 'label'.*Add"),
    "row too large": answered("row,label\n30,travel\n121,travel\n", r"row 2 of q\.csv labels row 121.*1 to 120"),
    "row 0": answered("row,label\n0,travel\n", r"row 1 of q\.csv labels row 0.*1 to 120"),
    "row in words": answered("row,label\nthird,travel\n", r"row 1 of q\.csv.*'third'.*Correct"),
    "row missing": answered("row,label\n,travel\n", r"row 1 of q\.csv.*''.*Correct"),
    "against a label": answered(
        "row,label\n1,nonsense\n", r"row 1 has the label '\w+', but q\.csv says 'nonsense'.*Correct"
    ),
    "twice": answered("row,label\n30,travel\n30,banking\n", r"q\.csv labels row 30 twice.*Keep one"),
    "another text": answered("row,label,text\n30,travel,what?\n", r"row 30 of q\.csv.*'text'.*sorted\?.*Restore"),
    "queue": answered("row,label\n999,travel\n", r"row 1 of q\.csv labels row 999", "queue documents.csv -o new.csv "),
}

TABLES = {
    "file": FILES,
    "csv": CSV,
    "json": JSON,
    "format": OTHER_FORMATS,
    "column": COLUMNS,
    "label": LABELS,
    "prior": PRIORS,
    "vectors": VECTORS,
    "model": MODELS,
    "output": OUTPUTS,
    "option": OPTIONS,
    "config": CONFIGS,
    "answers": ANSWERS,
}
CASES = {f"{kind}: {name}": one for kind, table in TABLES.items() for name, one in table.items()}


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A documents, and a model of its texts and one of vectors."""
    place = tmp_path_factory.mktemp("good")
    frame = documents()
    write_table(frame, str(place / "documents.csv"))
    np.save(place / "vectors.npy", vectors_of(frame))
    typed = [
        "label",
        str(place / "documents.csv"),
        "--quiet",
        "--annealing",
        "none",
        "-o",
        str(place / "done.csv"),
        "--model",
    ]
    assert run([*typed, str(place / "m.safetensors")]) == 0
    assert run([*typed, str(place / "v.safetensors"), "--vectors", str(place / "vectors.npy")]) == 0
    return place


def contents(place: Path) -> dict[str, object]:
    """The content of a folder: bytes of files, targets of links."""
    return {
        path.relative_to(place).as_posix(): os.readlink(path)
        if path.is_symlink()
        else path.is_file() and path.read_bytes()
        for path in place.rglob("*")
    }


def lay(place: Path, files: dict[str, Content]) -> None:
    for name, content in files.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            path.write_bytes(content.encode())
        elif isinstance(content, bytes):
            path.write_bytes(content)
        else:
            content(path)


def test_cases_are_distinct():
    assert len(CASES) >= 100
    assert len({(one.typed, str(one.files), one.stdin) for one in CASES.values()}) == len(CASES)


@pytest.mark.parametrize("name", CASES)
def test_the_error_is_one_sentence_and_no_file_is_left(name, good, tmp_path, monkeypatch, capsys):
    one = CASES[name]
    for file in ("documents.csv", "m.safetensors", "v.safetensors"):
        shutil.copy(good / file, tmp_path)
    lay(tmp_path, one.files)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(one.stdin)))
    before = contents(tmp_path)
    code = run(shlex.split(one.typed))
    out, err = capsys.readouterr()
    *messages, last = err.splitlines()
    assert code == 2
    assert out == ""
    assert last.startswith("transduce: ")
    assert re.search(one.expected, last), last
    assert all(ASSUMED.match(line) for line in messages)
    assert contents(tmp_path) == before
