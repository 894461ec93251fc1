"""transduce label: every format gives the same labels, and files are written in the format of the input."""

import io
import json
import sys
from typing import Any

import numpy as np
import polars as pl
import pytest
from helpers.commands import ADDED, QUICK, read
from helpers.documents import DOMAINS, N_LABELED, N_ROWS, documents, vectors_of
from polars.testing import assert_frame_equal
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from transduce.cli.formats import write_table


def studio_of(frame: pl.DataFrame) -> bytes:
    """A Label Studio export of documents."""

    def task(row: dict[str, Any]) -> dict[str, Any]:
        result = [{"type": "choices", "value": {"choices": [row["label"]]}}]
        annotations = [{"result": result}] if row["label"] else []
        return {"id": row["id"], "data": {"text": row["text"]}, "annotations": annotations}

    return json.dumps([task(row) for row in frame.rows(named=True)]).encode()


@pytest.mark.parametrize("suffix", ["tsv", "jsonl", "parquet", "csv.gz", "jsonl.zst", "parquet.gz", "ndjson"])
def test_every_table_format_gives_the_same_labels(example, expected_labels, run_ok, tmp_path, suffix):
    write_table(example.frame, str(tmp_path / f"documents.{suffix}"))
    run_ok("label", tmp_path / f"documents.{suffix}", "-o", tmp_path / "out.csv", *QUICK)
    assert read(tmp_path / "out.csv")["label"].to_list() == expected_labels


def test_label_studio_gives_the_same_labels(example, expected_labels, run_ok, tmp_path):
    (tmp_path / "export.json").write_bytes(studio_of(example.frame))
    run_ok("label", tmp_path / "export.json", "-o", tmp_path / "out.csv", *QUICK)
    done = read(tmp_path / "out.csv")
    assert done["label"].to_list() == expected_labels
    assert done["id"].to_list() == example.frame["id"].cast(pl.String).to_list()


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet", "csv.gz"])
def test_standard_input_gives_the_same_labels(example, expected_labels, run_ok, tmp_path, monkeypatch, suffix):
    write_table(example.frame, str(tmp_path / f"documents.{suffix}"))
    content = (tmp_path / f"documents.{suffix}").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    run_ok("label", "-", "-o", tmp_path / "out.csv", *QUICK)
    assert read(tmp_path / "out.csv")["label"].to_list() == expected_labels


def test_a_folder_gives_the_same_labels(example, run_ok, tmp_path):
    for row in example.frame.rows(named=True):
        path = tmp_path / "documents" / (row["label"] or "unlabelled") / f"{row['id']:03}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(row["text"])
    as_table = read(tmp_path / "documents")
    write_table(as_table, str(tmp_path / "same.csv"))
    run_ok("label", tmp_path / "documents", "-o", tmp_path / "a.csv", *QUICK)
    run_ok("label", tmp_path / "same.csv", "-o", tmp_path / "b.csv", *QUICK)
    a, b = read(tmp_path / "a.csv"), read(tmp_path / "b.csv")
    assert_frame_equal(a, b)
    assert a.filter(pl.col("given") == "true").height == N_LABELED


def test_svmlight_gives_the_same_labels_as_sparse_vectors(example, run_ok, tmp_path):
    X = vectors_of(example.frame).astype(np.float64)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    codes = [0 if label is None else DOMAINS.index(label) + 1 for label in example.frame["label"]]
    dump_svmlight_file(X, codes, str(tmp_path / "documents.svm"), zero_based=False)
    sparse.save_npz(tmp_path / "v.npz", sparse.csr_matrix(X))
    run_ok("label", example.file, "--vectors", tmp_path / "v.npz", "-o", tmp_path / "a.csv", *QUICK)
    run_ok("label", tmp_path / "documents.svm", "-o", tmp_path / "b.csv", *QUICK, "--model", tmp_path / "m.safetensors")
    a, b = read(tmp_path / "a.csv")["label"], read(tmp_path / "b.csv")["label"]
    assert [DOMAINS[int(code) - 1] for code in b] == a.to_list()
    run_ok("predict", tmp_path / "m.safetensors", tmp_path / "documents.svm", "-o", tmp_path / "p.csv")
    assert read(tmp_path / "p.csv").height == N_ROWS


def test_vectors_need_no_text(example, run_ok, tmp_path):
    """Every command with a column of lists."""
    X = vectors_of(example.frame)
    frame = example.frame.drop("text").with_columns(pl.Series("vector", X.tolist()))
    frame.write_parquet(tmp_path / "documents.parquet")
    file, model = tmp_path / "documents.parquet", tmp_path / "m.safetensors"
    options = ("--vectors", "vector")
    run_ok(
        "label", file, *options, "-o", tmp_path / "o.parquet", "--model", model, "--report", tmp_path / "r.html", *QUICK
    )
    assert read(tmp_path / "o.parquet")["vector"].to_list() == frame["vector"].to_list()
    run_ok("predict", model, file, *options, "-o", tmp_path / "p.csv")
    assert "macro F" in run_ok("evaluate", model, file, *options, "--label", "truth").out
    run_ok("queue", file, *options, "-n", 3, "-o", tmp_path / "q.csv", *QUICK)
    run_ok("queue", file, *options, "-n", 3, "-o", tmp_path / "q2.csv", "--model", model)
    run_ok("check", file, *options)
    (tmp_path / "answers.csv").write_text("row,label\n30,travel\n")
    run_ok("label", file, *options, "--answers", tmp_path / "answers.csv", "-o", tmp_path / "o2.csv", *QUICK)
    assert read(tmp_path / "o2.csv")["label"][29] == "travel"
    run_ok("report", model, tmp_path / "o.parquet", "-o", tmp_path / "r2.html")


def european(frame: pl.DataFrame) -> bytes:
    """As Excel writes "CSV UTF-8" in much of Europe."""
    cells = [frame.columns, *frame.with_columns(pl.all().cast(pl.String).fill_null("")).rows()]
    return ("\ufeff" + "".join(";".join(f'"{c}"' if ";" in c else c for c in row) + "\r\n" for row in cells)).encode()


def test_a_european_file_is_written_as_one(example, run_command, tmp_path):
    frame = documents().with_columns(note=pl.lit("a, b; c"))
    (tmp_path / "documents.csv").write_bytes(european(frame))
    for name, command in {
        "out.csv": ("label", tmp_path / "documents.csv", *QUICK),
        "new.csv": ("predict", example.model, tmp_path / "documents.csv"),
        "ask.csv": ("queue", tmp_path / "documents.csv", "-n", 3, *QUICK),
    }.items():
        result = run_command(*command, "-o", tmp_path / name)
        assert result.code == 0, result.err
        content = (tmp_path / name).read_bytes()
        assert content.startswith(b"\xef\xbb\xbf")
        header = content.decode("utf-8-sig").splitlines()[0]
        assert header.count(";") == len(read(tmp_path / name).columns) - 1
        assert "," not in header
    assert read(tmp_path / "out.csv").select(pl.exclude(*ADDED, "label")).rows() == (
        read(tmp_path / "documents.csv").drop("label").rows()
    )


@pytest.mark.parametrize("name", ["out.tsv", "out.jsonl"])
def test_other_formats_have_no_dialect(run_command, tmp_path, name):
    (tmp_path / "documents.csv").write_bytes(european(documents()))
    run_command("label", tmp_path / "documents.csv", "-o", tmp_path / name, *QUICK)
    assert not (tmp_path / name).read_bytes().startswith(b"\xef\xbb\xbf")


def test_excel_files_that_are_not_utf8_are_refused_with_advice(run_command, tmp_path):
    (tmp_path / "a.csv").write_bytes(european(documents()).replace(b"travel", "vögel".encode("cp1252")))
    assert 'in Excel choose "CSV UTF-8"' in run_command("check", tmp_path / "a.csv").err
    (tmp_path / "a.xlsx").write_bytes(b"PK\x03\x04")
    result = run_command("label", tmp_path / "a.xlsx", "-o", tmp_path / "o.csv")
    assert (result.code, "Excel" in result.err, "CSV UTF-8" in result.err) == (2, True, True)
