"""Tables that cannot be read, or whose columns or labels cannot be used."""

import gzip

import polars as pl
import zstandard

from helpers.bad_inputs.case import (
    FULL,
    GOOD,
    LABEL,
    LONG,
    PREDICT,
    TREE,
    case,
    choice,
    folder,
    folder_of,
    link,
    on_file,
    studio,
    written,
    zipped,
)
from helpers.documents import documents

FILES = {
    "missing": case("label missing.csv -o out.csv", r"missing\.csv.*no such file.*Check"),
    "missing folder": case("label there/is/none.jsonl -o out.csv", r"there/is/none\.jsonl.*no such file.*Check"),
    "Excel": on_file("a.xlsx", zipped("xl/workbook.xml"), r".*Excel files are not supported.*CSV UTF-8"),
    "Excel by another name": case(
        "label a.csv -o out.csv",
        r"a\.csv is an Excel workbook, whatever its name\. In Excel, save it as CSV UTF-8",
        a__csv=zipped("xl/workbook.xml"),
    ),
    "zip archive by another name": on_file("a.csv", zipped("content.xml"), r".*zip archive.*Extract it"),
    "unknown suffix": on_file("notes.txt", GOOD, r".*cannot tell the format.*Pass --format"),
    "no suffix": on_file("notes", GOOD, r".*cannot tell the format.*Pass --format"),
    "unknown suffix within gz": on_file(
        "notes.doc.gz", gzip.compress(GOOD.encode()), r".*cannot tell the format.*Pass --format"
    ),
    "output in the folder": case(
        "label place -o place/out.csv", r"place/out\.csv is in the folder place.*Name", place=folder
    ),
    "folder of tables": case(
        "label place -o out.csv",
        r"place has no folder for each class\. Name a file, such as place/slips\.csv",
        place=folder_of("notes.txt", "slips.csv"),
    ),
    "folder without classes": case(
        "label place -o out.csv",
        r"place has no folder for each class\. Without labels, begin with `.*review place`",
        place=folder_of("notes.txt"),
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
    "only a text": on_file(
        "a.csv", f"text\n{LONG}\n{LONG}\n", r".*only column is 'text'\. Name.*--label\. Without labels.*review a\.csv"
    ),
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
        "predict m.safetensors a.csv -o out.csv", r"which a\.csv does not have.*--text", a__csv="a,b\n1,2\n"
    ),
    "no text to report": case(
        "report m.safetensors a.csv -o r.html", r"which a\.csv does not have.*--text", a__csv="a,b\n1,2\n"
    ),
    "all texts empty": on_file(
        "a.csv", "text,label\n,tea\n,coffee\n,\n", r".*none of the 3 texts contains a word.*text column"
    ),
    "no words": on_file(
        "a.csv", 'text,label\n"!!",tea\n"??",coffee\n"..",\n', r".*none of the 3 texts contains a word.*text column"
    ),
}

LABELS = {
    "none": case(
        "label a.csv -o out.csv",
        r"'label' of a\.csv.*no labels.*Fill.*review a\.csv",
        a__csv="text,label\na b,\nc d,\n",
    ),
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
