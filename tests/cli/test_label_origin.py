"""Where labels come from: those that were chosen, by a queue or from earlier results, say nothing about class sizes."""

import json

import numpy as np
import polars as pl
import pytest
from helpers.commands import ADDED, QUICK, read
from helpers.documents import N_LABELED, documents, vectors_of

from transduce.cli.formats import write_table
from transduce.estimators import TransductiveClassifier

ANSWERED = (30, 31, 40)


@pytest.fixture
def fitted(monkeypatch):
    """What `sampled` was in each fit."""
    found = []
    fit = TransductiveClassifier.fit

    def recorded(self, X, y, sample_weight=None, sampled=None):
        found.append(sampled)
        return fit(self, X, y, sample_weight, sampled)

    monkeypatch.setattr(TransductiveClassifier, "fit", recorded)
    return found


@pytest.fixture
def answered(example, run_ok, tmp_path):
    """A file that was labelled with answers to a queue."""
    (tmp_path / "ask.csv").write_text("row,label\n" + "".join(f"{row},travel\n" for row in ANSWERED))
    out = tmp_path / "answered.csv"
    return out, run_ok("label", example.file, "--answers", tmp_path / "ask.csv", "-o", out, *QUICK, "--json", "--quiet")


def origins(path) -> list[str]:
    return read(path)["origin"].to_list()


def test_answers_are_not_a_random_sample(fitted, answered):
    out, result = answered
    (sampled,) = fitted
    assert np.flatnonzero(sampled).tolist() == list(range(N_LABELED))
    assert json.loads(result.out)["prior"].endswith(
        f"estimated from the texts and the {N_LABELED} labels that are a random sample."
    )
    rows = [row - 1 for row in ANSWERED]
    assert [row for row, origin in enumerate(origins(out)) if origin == "answered"] == rows
    assert [row for row, origin in enumerate(origins(out)) if origin == "given"] == list(range(N_LABELED))
    assert read(out)["given"].to_list() == [str(origin != "predicted").lower() for origin in origins(out)]


def test_the_accuracy_says_how_many_labels_are_answers(example, run_ok, tmp_path):
    rows = "".join(f"{row},{example.frame['truth'][row - 1]}\n" for row in ANSWERED)
    (tmp_path / "ask.csv").write_text(f"row,label\n{rows}101,new\n")  # the only label of a class is not hidden
    model, report = tmp_path / "m.safetensors", tmp_path / "r.html"
    typed = ("label", example.file, "-o", tmp_path / "o.csv", "--model", model, "--report", report, *QUICK)
    note = "This estimate is probably too low: 3 of the "
    result = run_ok(*typed, "--answers", tmp_path / "ask.csv", "--json")
    assert json.loads(result.out)["accuracy"]["n_answered"] == len(ANSWERED)
    for text in (result.err, run_ok("inspect", model).out, report.read_text(encoding="utf-8")):
        assert note in text
    for options in ((), ("--answers", tmp_path / "ask.csv", "--labels-are", "random")):
        assert "because they are difficult" not in run_ok(*typed, *options).err + report.read_text(encoding="utf-8")


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_answers_stay_known_when_results_are_labelled_again(fitted, answered, run_ok, tmp_path, suffix):
    first, second = tmp_path / f"first.{suffix}", tmp_path / f"second.{suffix}"
    write_table(read(answered[0]), str(first))
    run_ok("label", first, "-o", second, *QUICK)
    assert np.array_equal(fitted[0], fitted[1])
    assert read(second).columns == read(first).columns
    assert origins(second) == origins(first)


def test_a_checked_result_is_not_a_random_sample(example, fitted, run_ok, tmp_path):
    row = N_LABELED + 5
    edited = read(example.out).with_row_index("n")
    edited = edited.with_columns(given=pl.when(pl.col("n") == row).then(pl.lit("true")).otherwise("given")).drop("n")
    write_table(edited, str(tmp_path / "edited.csv"))
    run_ok("label", tmp_path / "edited.csv", "-o", tmp_path / "b.csv", *QUICK)
    assert np.flatnonzero(fitted[-1]).tolist() == list(range(N_LABELED))
    assert origins(tmp_path / "b.csv")[row] == "answered"


def test_without_answers_there_is_no_origin(example, fitted, run_ok, tmp_path):
    run_ok("label", example.file, "-o", tmp_path / "o.csv", *QUICK)
    assert fitted == [None]
    assert read(tmp_path / "o.csv").columns[-len(ADDED) :] == ADDED


def test_a_column_of_the_user_called_origin_is_kept(answered, run_ok, tmp_path):
    ours = read(answered[0]).rename({"id": "origin", "origin": "origin_2"})
    write_table(ours, str(tmp_path / "a.csv"))
    run_ok("label", tmp_path / "a.csv", "-o", tmp_path / "b.csv", *QUICK)
    done = read(tmp_path / "b.csv")
    assert done["origin"].to_list() == ours["origin"].to_list()
    assert done["origin_2"].to_list() == ours["origin_2"].to_list()


@pytest.mark.parametrize(
    ("option", "is_random", "basis"),
    [("random", True, "the labels and the texts."), ("chosen", False, "the labels are not a random sample.")],
)
def test_the_user_says_whether_labels_are_random(example, fitted, run_ok, tmp_path, option, is_random, basis):
    result = run_ok("label", example.file, "-o", tmp_path / "o.csv", *QUICK, "--labels-are", option, "--json")
    assert [bool(np.all(sampled == is_random)) for sampled in fitted] == [True]
    assert json.loads(result.out)["prior"].endswith(basis)


def lopsided() -> pl.DataFrame:
    """Vectors of three equal classes that are far apart, with most of the labels in one of them."""
    n_labels = pl.col("truth").replace_strict({"travel": 30, "banking": 5, "auto_and_commute": 4})
    is_labeled = pl.int_range(pl.len()).over("truth") < n_labels
    frame = documents(n_rows=300).with_columns(label=pl.when(is_labeled).then("truth"))
    return frame.with_columns(pl.Series("vector", vectors_of(frame, seed=3).tolist()))


def test_labels_that_do_not_look_random_are_reported(run_ok, tmp_path):
    write_table(lopsided(), str(tmp_path / "d.jsonl"))
    where = ("--vectors", "vector", "-o", tmp_path / "o.csv", "--report", tmp_path / "r.html")
    result = run_ok("label", tmp_path / "d.jsonl", *where, *QUICK, "--json")
    assert "the labels do not look like a random sample of the rows" in result.err
    found = json.loads(result.out)
    assert found["contradicted"]
    assert found["prior"].endswith("because the labels do not look like a random sample.")
    page = (tmp_path / "r.html").read_text()
    assert "Your labels do not look like a random sample." in page
    assert "--labels-are random" in page
    believed = run_ok("label", tmp_path / "d.jsonl", *where, *QUICK, "--labels-are", "random", "--json")
    assert "do not look like" not in believed.err + (tmp_path / "r.html").read_text()
    travel = [
        next(size["estimated"] for size in json.loads(each.out)["sizes"] if size["class"] == "travel")
        for each in (result, believed)
    ]
    assert travel[0] < 0.4 < travel[1]
