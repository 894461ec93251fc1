"""Every command from end to end, in process: what was typed, what lies in the folder afterwards, what was said."""

import errno
import gzip
import hashlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest
import zstandard
from helpers.command_result import Tell, Told
from helpers.documents import DOMAINS, N_LABELLED, N_ROWS, pile, vectors_of
from polars.testing import assert_frame_equal
from sklearn.datasets import dump_svmlight_file
from sklearn.metrics import accuracy_score, confusion_matrix, precision_recall_fscore_support

import transduce
from transduce.class_prior.resolve import prior_bounds
from transduce.cli import progress
from transduce.cli.commands import demo
from transduce.cli.formats import read_table, write_table
from transduce.cli.main import cli, run
from transduce.cli.model_file import load_model

EXACT = {"auto_and_commute": 30, "banking": 40, "travel": 26}
N_OPEN = N_ROWS - N_LABELLED
ADDED = ["confidence", "runner_up", "overruled", "given"]
QUICK = ("--annealing", "paper")


@pytest.fixture
def good(tell: Tell) -> Tell:
    """The same for a command that must succeed."""

    def typed(*arguments: object) -> Told:
        told = tell(*arguments)
        assert told.code == 0, told.err
        return told

    return typed


class Place(NamedTuple):
    """A folder with a pile, and what was made of it."""

    path: Path
    frame: pl.DataFrame
    pile: Path
    out: Path
    model: Path
    page: Path


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    path = tmp_path_factory.mktemp("place")
    found = Place(path, pile(), *(path / name for name in ("pile.csv", "out.csv", "m.safetensors", "r.html")))
    write_table(found.frame, str(found.pile))
    sizes = [word for name, rows in EXACT.items() for word in ("--prior", f"{name}={rows}")]
    where = ["-o", str(found.out), "--model", str(found.model), "--report", str(found.page), "--truth", "truth"]
    assert run(["label", str(found.pile), *where, *QUICK, *sizes, "--quiet"]) == 0
    return found


def read(path: object) -> pl.DataFrame:
    return read_table(str(path)).frame


def sizes_of(frame: pl.DataFrame, label: str = "label") -> dict[str, int]:
    """Rows of each class among those whose label was not given."""
    return dict(frame.filter(pl.col("given") == "false")[label].value_counts().rows())


def digests(path: Path) -> dict[str, str]:
    files = (each for each in path.rglob("*") if each.is_file())
    return {each.relative_to(path).as_posix(): hashlib.sha256(each.read_bytes()).hexdigest() for each in files}


# label


def test_label_keeps_rows_columns_and_given_labels(place):
    done = read(place.out)
    assert done.columns == [*place.frame.columns, *ADDED]
    for name in ("id", "text", "truth"):
        assert done[name].to_list() == place.frame[name].cast(pl.String).to_list()
    given = place.frame["label"].is_not_null()
    assert done["given"].to_list() == [str(one).lower() for one in given]
    assert done["label"].filter(given).to_list() == place.frame["label"].drop_nulls().to_list()


def test_label_says_how_sure_it_is_and_what_else_it_might_be(place):
    done = read(place.out).with_columns(pl.col("confidence").cast(pl.Float64))
    given, other = (done.filter(pl.col("given") == word) for word in ("true", "false"))
    assert (given["confidence"] == 1.0).all()
    assert set(given["runner_up"]) == {""}
    assert set(given["overruled"]) == {"false"}
    assert other["confidence"].is_between(0, 1).all()
    assert set(other["runner_up"]) <= set(DOMAINS)
    assert (other["runner_up"] != other["label"]).all()


def test_exact_sizes_are_met_and_better_than_chance(place):
    done = read(place.out)
    assert sizes_of(done) == EXACT
    assert (done["label"] == done["truth"]).mean() > 0.6


@pytest.mark.parametrize(
    ("prior", "bounds"),
    [
        (["travel=0.5", "banking=25%", "auto_and_commute=0.25"], {"travel": (48, 48), "banking": (24, 24)}),
        (["travel=0.6:0.7", "banking=0.05:0.1"], {"travel": (58, 67), "banking": (5, 9)}),
        (["travel=70"], {"travel": (70, 70)}),
        (["travel=?", "banking=8:9"], {"banking": (8, 9)}),
        (["travel=0"], {"travel": (0, 0)}),
        (["travel=0.331", "banking=0.331", "auto_and_commute=0.331"], dict.fromkeys(DOMAINS, (32, 32))),
    ],
)
def test_stated_sizes_are_met(place, good, tmp_path, prior, bounds):
    options = [word for one in prior for word in ("--prior", one)]
    good("label", place.pile, "-o", tmp_path / "out.csv", *QUICK, *options)
    sizes = sizes_of(read(tmp_path / "out.csv"))
    assert sum(sizes.values()) == N_OPEN
    for name, (low, high) in bounds.items():
        assert low <= sizes.get(name, 0) <= high


def test_without_sizes_the_labelled_shares_are_used_and_that_is_said(place, good, tmp_path):
    told = good("label", place.pile, "-o", tmp_path / "out.csv", *QUICK)
    codes = np.array([DOMAINS.index(name) for name in place.frame["label"].drop_nulls()])
    bounds = prior_bounds("labeled", np.array(DOMAINS), codes, N_OPEN)
    sizes = sizes_of(read(tmp_path / "out.csv"))
    for name, low, high in zip(DOMAINS, bounds.low, bounds.high, strict=True):
        assert low <= sizes[name] <= high
    assert "Note: no class sizes were stated" in told.err
    assert "Took it that texts are in column 'text'." in told.err
    assert "Took it that labels are in column 'label'." in told.err


def test_what_is_named_is_not_said_to_be_guessed(place, good, tmp_path):
    told = good("label", place.pile, "-o", tmp_path / "out.csv", *QUICK, "--text", "text", "--label", "label")
    assert "Took it" not in told.err


@pytest.mark.parametrize(
    ("renamed", "options", "added"),
    [
        ({"label": "category"}, [], ["label", *ADDED]),
        ({"label": "category", "truth": "label"}, ["--label", "category"], ["label_2", *ADDED]),
        ({"id": "confidence", "truth": "given"}, [], ["confidence_2", "runner_up", "overruled", "given_2"]),
        ({"label": "Label"}, [], ["label", *ADDED]),
    ],
)
def test_names_that_are_taken_get_a_number(good, tmp_path, renamed, options, added):
    frame = pile().rename(renamed)
    write_table(frame, str(tmp_path / "pile.csv"))
    good("label", tmp_path / "pile.csv", "-o", tmp_path / "out.csv", *QUICK, *options)
    done = read(tmp_path / "out.csv")
    assert done.columns == [*frame.columns, *added]
    before = frame.with_columns(pl.all().cast(pl.String).fill_null(""))
    kept = [name for name in frame.columns if name != "label" or "label_2" in added]
    assert_frame_equal(done.select(kept), before.select(kept))


def test_several_texts_are_joined(good, tmp_path):
    frame = pile()
    words = frame["text"].str.split(" ")
    apart = frame.with_columns(
        words.list.head(3).list.join(" ").alias("text"), words.list.slice(3).list.join(" ").alias("rest")
    )
    write_table(frame, str(tmp_path / "one.csv"))
    write_table(apart, str(tmp_path / "two.csv"))
    good("label", tmp_path / "one.csv", "-o", tmp_path / "a.csv", *QUICK)
    good("label", tmp_path / "two.csv", "-o", tmp_path / "b.csv", *QUICK, "--text", "text", "--text", "rest")
    assert read(tmp_path / "a.csv")["label"].to_list() == read(tmp_path / "b.csv")["label"].to_list()


def test_paths_make_a_tree(good, tmp_path):
    frame = pile(n_labelled=48, paths=True)
    lists = frame.with_columns(pl.col("label").str.split("/"))
    write_table(frame, str(tmp_path / "paths.jsonl"))
    write_table(lists, str(tmp_path / "lists.jsonl"))
    assert '"label": ["auto_and_commute", ' in (tmp_path / "lists.jsonl").read_text()
    for name in ("paths", "lists"):
        where = ("-o", tmp_path / f"{name}.csv", "--model", tmp_path / f"{name}.safetensors")
        good("label", tmp_path / f"{name}.jsonl", *where, *QUICK, "--report", tmp_path / f"{name}.html")
    assert read(tmp_path / "paths.csv")["label"].to_list() == read(tmp_path / "lists.csv")["label"].to_list()
    assert load_model(str(tmp_path / "lists.safetensors")).tree
    assert "in a tree" in good("inspect", tmp_path / "paths.safetensors").out
    assert 'id="tree"' in (tmp_path / "paths.html").read_text()


def test_flat_paths_are_plain_names(good, tmp_path):
    write_table(pile(n_labelled=48, paths=True), str(tmp_path / "pile.csv"))
    good(
        "label",
        tmp_path / "pile.csv",
        "-o",
        tmp_path / "o.csv",
        "--model",
        tmp_path / "m.safetensors",
        "--flat",
        *QUICK,
    )
    model = load_model(str(tmp_path / "m.safetensors"))
    assert not model.tree
    assert any("/" in name for name in model.classes)


@pytest.mark.parametrize(
    "options",
    [
        ("--loss", "maxent"), ("--loss", "squared_hinge", "--annealing", "none"), ("--features", "hashing"),
        ("--ngrams", "2", "--jobs", "1"), ("--annealing", "soft", "--alpha", "0.01"),
    ],
)  # fmt: skip
def test_other_settings_meet_the_sizes_too(place, good, tmp_path, options):
    sizes = [word for name, rows in EXACT.items() for word in ("--prior", f"{name}={rows}")]
    good("label", place.pile, "-o", tmp_path / "o.csv", *options, *sizes, "--model", tmp_path / "m.safetensors")
    assert sizes_of(read(tmp_path / "o.csv")) == EXACT
    good("predict", tmp_path / "m.safetensors", place.pile, "-o", tmp_path / "p.csv")
    good("inspect", tmp_path / "m.safetensors")


# formats


def studio_of(frame: pl.DataFrame) -> bytes:
    """A Label Studio export of a pile."""

    def task(row: dict[str, Any]) -> dict[str, Any]:
        result = [{"type": "choices", "value": {"choices": [row["label"]]}}]
        annotations = [{"result": result}] if row["label"] else []
        return {"id": row["id"], "data": {"text": row["text"]}, "annotations": annotations}

    return json.dumps([task(row) for row in frame.rows(named=True)]).encode()


@pytest.fixture(scope="module")
def expected(place: Place) -> list[str]:
    """Labels of the pile from its CSV."""
    out = place.path / "expected.csv"
    assert run(["label", str(place.pile), "-o", str(out), *QUICK, "--quiet"]) == 0
    return read(out)["label"].to_list()


@pytest.mark.parametrize("suffix", ["tsv", "jsonl", "parquet", "csv.gz", "jsonl.zst", "parquet.gz", "ndjson"])
def test_every_table_leads_to_the_same_labels(place, expected, good, tmp_path, suffix):
    write_table(place.frame, str(tmp_path / f"pile.{suffix}"))
    good("label", tmp_path / f"pile.{suffix}", "-o", tmp_path / "out.csv", *QUICK)
    assert read(tmp_path / "out.csv")["label"].to_list() == expected


def test_label_studio_leads_to_the_same_labels(place, expected, good, tmp_path):
    (tmp_path / "export.json").write_bytes(studio_of(place.frame))
    good("label", tmp_path / "export.json", "-o", tmp_path / "out.csv", *QUICK)
    done = read(tmp_path / "out.csv")
    assert done["label"].to_list() == expected
    assert done["id"].to_list() == place.frame["id"].cast(pl.String).to_list()


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet", "csv.gz"])
def test_standard_input_leads_to_the_same_labels(place, expected, good, tmp_path, monkeypatch, suffix):
    write_table(place.frame, str(tmp_path / f"pile.{suffix}"))
    content = (tmp_path / f"pile.{suffix}").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    good("label", "-", "-o", tmp_path / "out.csv", *QUICK)
    assert read(tmp_path / "out.csv")["label"].to_list() == expected


def test_a_folder_leads_to_the_same_labels(place, good, tmp_path):
    for row in place.frame.rows(named=True):
        path = tmp_path / "pile" / (row["label"] or "unlabelled") / f"{row['id']:03}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(row["text"])
    as_table = read(tmp_path / "pile")
    write_table(as_table, str(tmp_path / "same.csv"))
    good("label", tmp_path / "pile", "-o", tmp_path / "a.csv", *QUICK)
    good("label", tmp_path / "same.csv", "-o", tmp_path / "b.csv", *QUICK)
    a, b = read(tmp_path / "a.csv"), read(tmp_path / "b.csv")
    assert_frame_equal(a, b)
    assert a.filter(pl.col("given") == "true").height == N_LABELLED


def test_svmlight_leads_to_the_same_labels_as_vectors(place, good, tmp_path):
    X = vectors_of(place.frame).astype(np.float64)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    codes = [0 if label is None else DOMAINS.index(label) + 1 for label in place.frame["label"]]
    dump_svmlight_file(X, codes, str(tmp_path / "pile.svm"), zero_based=False)
    np.save(tmp_path / "v.npy", X)
    good("label", place.pile, "--vectors", tmp_path / "v.npy", "-o", tmp_path / "a.csv", *QUICK)
    good("label", tmp_path / "pile.svm", "-o", tmp_path / "b.csv", *QUICK, "--model", tmp_path / "m.safetensors")
    a, b = read(tmp_path / "a.csv")["label"], read(tmp_path / "b.csv")["label"]
    assert [DOMAINS[int(code) - 1] for code in b] == a.to_list()
    good("predict", tmp_path / "m.safetensors", tmp_path / "pile.svm", "-o", tmp_path / "p.csv")
    assert read(tmp_path / "p.csv").height == N_ROWS


def test_vectors_need_no_text(place, good, tmp_path):
    """From a column of lists, through all that a model of vectors can do."""
    X = vectors_of(place.frame)
    frame = place.frame.drop("text").with_columns(pl.Series("vector", X.tolist()))
    frame.write_parquet(tmp_path / "pile.parquet")
    file, model = tmp_path / "pile.parquet", tmp_path / "m.safetensors"
    options = ("--vectors", "vector")
    good(
        "label", file, *options, "-o", tmp_path / "o.parquet", "--model", model, "--report", tmp_path / "r.html", *QUICK
    )
    assert read(tmp_path / "o.parquet")["vector"].to_list() == frame["vector"].to_list()
    good("predict", model, file, *options, "-o", tmp_path / "p.csv")
    assert "macro F" in good("evaluate", model, file, *options, "--label", "truth").out
    good("queue", file, *options, "-n", 3, "-o", tmp_path / "q.csv")
    good("queue", file, *options, "-n", 3, "-o", tmp_path / "q2.csv", "--model", model)
    good("check", file, *options)
    (tmp_path / "answers.csv").write_text("row,label\n30,travel\n")
    good("label", file, *options, "--answers", tmp_path / "answers.csv", "-o", tmp_path / "o2.csv", *QUICK)
    assert read(tmp_path / "o2.csv")["label"][29] == "travel"
    good("report", model, tmp_path / "o.parquet", "-o", tmp_path / "r2.html")


@pytest.mark.parametrize(
    ("suffix", "magic"),
    [
        ("csv", b"id,text"), ("tsv", b"id\ttext"), ("jsonl", b'{"id":'), ("parquet", b"PAR1"), ("csv.gz", b"\x1f\x8b"),
        ("tsv.zst", b"\x28\xb5\x2f\xfd"), ("pq", b"PAR1"), ("ndjson.gz", b"\x1f\x8b"),
    ],
)  # fmt: skip
def test_every_output_holds_the_same(place, good, tmp_path, suffix, magic):
    out = tmp_path / f"out.{suffix}"
    good("predict", place.model, place.pile, "-o", out)
    good("predict", place.model, place.pile, "-o", tmp_path / "plain.csv")
    assert out.read_bytes().startswith(magic)
    assert_frame_equal(*(read(path).with_columns(pl.all().cast(pl.String)) for path in (out, tmp_path / "plain.csv")))


def test_compressed_outputs_are_whole(place, good, tmp_path):
    for suffix, undo in (("gz", gzip.decompress), ("zst", zstandard.decompress)):
        good("predict", place.model, place.pile, "-o", tmp_path / f"out.csv.{suffix}")
        content = (tmp_path / f"out.csv.{suffix}").read_bytes()
        text = undo(content) if suffix == "gz" else zstandard.ZstdDecompressor().decompressobj().decompress(content)
        assert text.count(b"\n") == N_ROWS + 1


# predict, evaluate, inspect, check


def in_new_process(*arguments: object, code: str | None = None) -> subprocess.CompletedProcess[str]:
    first = ["-c", code] if code else ["-m", "transduce"]
    return subprocess.run([sys.executable, *first, *map(str, arguments)], capture_output=True, text=True, check=False)


def test_a_new_process_predicts_what_the_model_says_here(place, good, tmp_path):
    fresh = pile(n_rows=300, n_labelled=0, seed=5)
    write_table(fresh, str(tmp_path / "fresh.csv"))
    told = in_new_process("predict", place.model, tmp_path / "fresh.csv", "-o", tmp_path / "there.csv")
    assert told.returncode == 0, told.stderr
    good("predict", place.model, tmp_path / "fresh.csv", "-o", tmp_path / "here.csv")
    assert (tmp_path / "there.csv").read_bytes() == (tmp_path / "here.csv").read_bytes()
    model = load_model(str(place.model))
    scores = model.scores(model.vectorizer.transform(fresh["text"].to_list()))
    done = read(tmp_path / "there.csv")
    assert done["label_2"].to_list() == [model.classes[k] for k in scores.argmax(axis=1)]
    own = (scores - model.shift).argmax(axis=1) != scores.argmax(axis=1)
    assert done["overruled"].to_list() == [str(one).lower() for one in own]
    assert done.columns == [*fresh.columns, "label_2", "confidence", "runner_up", "overruled"]


def test_evaluate_agrees_with_scikit_learn(place, good, tmp_path):
    fresh = pile(n_rows=300, n_labelled=0, seed=7).drop("label")
    write_table(fresh, str(tmp_path / "fresh.jsonl"))
    found = json.loads(good("evaluate", place.model, tmp_path / "fresh.jsonl", "--label", "truth", "--json").out)
    good("predict", place.model, tmp_path / "fresh.jsonl", "-o", tmp_path / "p.csv")
    truth, guess = fresh["truth"].to_list(), read(tmp_path / "p.csv")["label"].to_list()
    p, r, f, rows = precision_recall_fscore_support(truth, guess, labels=found["names"], zero_division=0)
    assert found["names"] == sorted({*truth, *guess})
    assert found["rows"] == 300
    assert found["macro_f"] == pytest.approx(f.mean())
    assert found["micro_f"] == pytest.approx(accuracy_score(truth, guess))
    assert [one["rows"] for one in found["classes"]] == rows.tolist()
    for name, values in (("precision", p), ("recall", r), ("f", f)):
        assert [one[name] for one in found["classes"]] == pytest.approx(values)
    assert found["confusion"] == confusion_matrix(truth, guess, labels=found["names"]).tolist()
    text = good("evaluate", place.model, tmp_path / "fresh.jsonl", "--label", "truth").out
    assert f"macro F {f.mean():.4f}" in text
    assert "most frequent confusions" in text


def test_evaluate_shows_the_levels_of_a_tree(good, tmp_path):
    write_table(pile(n_labelled=48, paths=True), str(tmp_path / "pile.csv"))
    good("label", tmp_path / "pile.csv", "-o", tmp_path / "o.csv", "--model", tmp_path / "m.safetensors", *QUICK)
    found = json.loads(
        good("evaluate", tmp_path / "m.safetensors", tmp_path / "pile.csv", "--label", "truth", "--json").out
    )
    good("predict", tmp_path / "m.safetensors", tmp_path / "pile.csv", "-o", tmp_path / "p.csv")
    done = read(tmp_path / "p.csv")
    top = [[path.split("/")[0] for path in done[name]] for name in ("truth", "label_2")]
    assert [level["depth"] for level in found["levels"]] == [1]
    assert found["levels"][0]["micro_f"] == pytest.approx(accuracy_score(*top))
    assert found["levels"][0]["micro_f"] >= found["micro_f"]


def test_inspect_shows_classes_words_and_settings(place, good):
    text = good("inspect", place.model).out
    for shown in (
        *DOMAINS,
        "loss hinge",
        "annealing paper",
        "seed 0",
        "pile.csv",
        transduce.__version__,
        "sizes were stated",
    ):
        assert shown in text
    found = json.loads(good("inspect", place.model, "--json", "--words", 3).out)
    assert {one["class"]: one["assigned"] for one in found["classes"]} == EXACT
    assert [len(one["words"]) for one in found["classes"]] == [3, 3, 3]
    vocabulary = set(load_model(str(place.model)).vectorizer.vocabulary)
    assert all(word in vocabulary for one in found["classes"] for word in one["words"])
    assert json.loads(good("inspect", place.model, "--json", "--words", 0).out)["classes"][0]["words"] == []


def test_no_training_text_is_in_the_model(place, good):
    content = place.model.read_bytes() + good("inspect", place.model, "--words", 1000).out.encode()
    sentences = [text for text in place.frame["text"] if len(text.split()) > 2]
    assert len(sentences) > 100
    assert not [text for text in sentences if text.encode() in content]


def test_check_points_out_what_is_odd(good, tmp_path):
    frame = pile()
    frame = pl.concat(
        [frame, frame.head(1).with_columns(label=pl.lit("weather")), frame.head(1).with_columns(text=pl.lit(""))]
    )
    write_table(frame, str(tmp_path / "pile.csv"))
    told = good("check", tmp_path / "pile.csv", "--prior", "football=0.5")
    assert "Empty texts: 1 of 122" in told.out
    assert "'weather'" in told.out
    assert "'football'" in told.out
    found = json.loads(good("check", tmp_path / "pile.csv", "--prior", "football=0.5", "--json").out)
    assert {"severity", "what", "rows", "advice"} == set(found["findings"][0])
    assert any(122 in one["rows"] for one in found["findings"])


# queue and answers


@pytest.mark.parametrize("options", [(), ("--model",)])
def test_a_queue_is_filled_in_and_read_back(place, good, tmp_path, options):
    queue, done = tmp_path / "queue.csv", tmp_path / "done.csv"
    good("queue", place.pile, "-o", queue, "-n", 10, *QUICK, *options, *([place.model] if options else []))
    asked = read(queue)
    rows = asked["row"].cast(pl.Int64).to_list()
    assert asked.columns == ["row", "label", "suggested", "confidence", "text"]
    assert len(set(rows)) == 10
    assert min(rows) > N_LABELLED
    assert asked["text"].to_list() == place.frame["text"][[row - 1 for row in rows]].to_list()
    truth = place.frame["truth"][[row - 1 for row in rows]]
    write_table(asked.with_columns(truth.alias("label")), str(queue))
    good("label", place.pile, "--answers", queue, "-o", done, *QUICK)
    labelled = read(done)
    assert labelled["label"][[row - 1 for row in rows]].to_list() == truth.to_list()
    given = {place + 1 for place, one in enumerate(labelled["given"]) if one == "true"}
    assert given == {*range(1, N_LABELLED + 1), *rows}


def test_a_queue_goes_through_label_studio(place, good, tmp_path):
    good("queue", place.pile, "-o", tmp_path / "tasks.json", "-n", 6, *QUICK)
    tasks = json.loads((tmp_path / "tasks.json").read_text())
    assert all(f'"{name}"' in (tmp_path / "tasks.xml").read_text() for name in DOMAINS)
    for task in tasks:
        choice = {"type": "choices", "value": {"choices": [place.frame["truth"][task["data"]["row"] - 1]]}}
        task["annotations"] = [{"result": [choice]}]
    (tmp_path / "export.json").write_text(json.dumps(tasks))
    good("label", place.pile, "--answers", tmp_path / "export.json", "-o", tmp_path / "done.csv", *QUICK)
    done = read(tmp_path / "done.csv")
    for task in tasks:
        row = done.row(task["data"]["row"] - 1, named=True)
        assert (row["label"], row["given"]) == (row["truth"], "true")


def test_answers_do_not_ask_for_the_text_column(place, good, tmp_path):
    """Two columns could be the text; --text says which, for the answers as well."""
    frame = place.frame.with_columns(pl.col("text").str.reverse().alias("b")).rename({"text": "a", "label": "topic"})
    write_table(frame, str(tmp_path / "pile.csv"))
    (tmp_path / "q.csv").write_text("row,label\n30,travel\n")
    good(
        "label", tmp_path / "pile.csv", "--text", "a", "--answers", tmp_path / "q.csv", "-o", tmp_path / "o.csv", *QUICK
    )
    assert read(tmp_path / "o.csv")["label"][29] == "travel"


def test_a_queue_by_a_model_reads_the_column_that_it_was_trained_on(good, tmp_path):
    frame = pile().rename({"text": "body"}).with_columns(pl.lit("nothing to see").alias("text"))
    write_table(frame, str(tmp_path / "pile.csv"))
    good(
        "label",
        tmp_path / "pile.csv",
        "--text",
        "body",
        "-o",
        tmp_path / "o.csv",
        "--model",
        tmp_path / "m.safetensors",
    )
    good("queue", tmp_path / "pile.csv", "--model", tmp_path / "m.safetensors", "-n", 5, "-o", tmp_path / "q.csv")
    assert "body" in read(tmp_path / "q.csv").columns
    assert "text" not in read(tmp_path / "q.csv").columns


# report


def test_a_report_of_the_output_is_that_of_the_fit(place, good, tmp_path):
    told = good("report", place.model, place.out, "-o", tmp_path / "r.html", "--truth", "truth")
    assert "predicted" not in told.err
    assert (tmp_path / "r.html").read_text() == place.page.read_text()


def test_a_report_shows_texts_of_any_kind(place, good, tmp_path):
    frame = place.frame.with_columns(pl.col("text").str.split(" "))
    frame.write_parquet(tmp_path / "lists.parquet")
    named = ("--text", "text", "--report", tmp_path / "r.html")
    good("label", tmp_path / "lists.parquet", "-o", tmp_path / "a.csv", *named, *QUICK)
    assert "&#34;" in (tmp_path / "r.html").read_text()  # a list is shown as JSON


def test_truth_without_a_report_is_told(place, good, tmp_path):
    told = good("label", place.pile, "-o", tmp_path / "a.csv", "--truth", "truth", *QUICK)
    assert "--truth is for the report alone" in told.err


def test_labels_that_are_no_classes_are_told(place, good, tmp_path):
    write_table(place.frame.with_columns(truth=pl.lit("else")), str(tmp_path / "other.csv"))
    told = good("evaluate", place.model, tmp_path / "other.csv", "--label", "truth")
    assert "none of the true labels is a class of the model ('else', for one)" in told.err


def test_what_a_queue_cannot_hold_is_refused_before_the_fit(place, tell, tmp_path, monkeypatch):
    monkeypatch.setattr("transduce.cli.queue.table.label_table", lambda *_: pytest.fail("fitted"))
    write_table(place.frame.rename({"text": "row"}), str(tmp_path / "row.csv"))
    assert "'row'" in tell("queue", tmp_path / "row.csv", "--text", "row", "-o", tmp_path / "q.csv").err
    odd = place.frame.with_columns(pl.col("label").str.replace("banking", "\x01"))
    odd.write_parquet(tmp_path / "odd.parquet")
    assert "XML" in tell("queue", tmp_path / "odd.parquet", "-o", tmp_path / "q.json").err


def test_no_escape_sequence_reaches_the_terminal(good, tmp_path):
    frame = pile().with_columns(pl.col("label").str.replace("banking", "\x1b[31mred"))
    frame.write_parquet(tmp_path / "pile.parquet")
    model = tmp_path / "m.safetensors"
    good("label", tmp_path / "pile.parquet", "-o", tmp_path / "a.csv", "--model", model, *QUICK)
    for told in (good("inspect", model), good("evaluate", model, tmp_path / "pile.parquet", "--label", "label")):
        assert "\x1b" not in told.out
        assert r"\x1b[31mred" in told.out


def test_check_reads_trees_and_sizes_as_label_does(good, tell, tmp_path):
    frame = pile().with_columns(pl.col("label").str.replace("banking", "n/a/"))
    write_table(frame, str(tmp_path / "pile.csv"))
    assert "empty part" not in good("check", tmp_path / "pile.csv").out
    mixed = tell("check", tmp_path / "pile.csv", "--prior", "travel=0.2", "--prior", "n/a/=50")
    assert (mixed.code, "give shares for both" in mixed.err) == (2, True)


def test_a_report_of_a_fresh_file_is_predicted_first(place, good, tmp_path):
    write_table(pile(n_rows=50, n_labelled=0, seed=3), str(tmp_path / "fresh.csv"))
    told = good("report", place.model, tmp_path / "fresh.csv", "-o", tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "so its rows are predicted" in told.err
    assert "<script" not in page
    assert all(name in page.replace("<wbr>", "") for name in DOMAINS)


# what is said, and where


def commands(place: Place, folder: Path) -> dict[str, list[object]]:
    """Every command that reads a file, with what it writes in the folder."""
    return {
        "label": ["label", place.pile, "-o", folder / "o.csv", *QUICK],
        "predict": ["predict", place.model, place.pile, "-o", folder / "p.csv"],
        "evaluate": ["evaluate", place.model, place.pile, "--label", "truth"],
        "check": ["check", place.pile],
        "queue": ["queue", place.pile, "-o", folder / "q.csv", "-n", 3, *QUICK],
        "report": ["report", place.model, place.pile, "-o", folder / "r.html"],
    }


COMMANDS = ("label", "predict", "evaluate", "check", "queue", "report")


@pytest.mark.parametrize("name", COMMANDS)
def test_json_is_all_that_goes_to_standard_output(place, good, tmp_path, name):
    told = good(*commands(place, tmp_path)[name], "--json")
    found = json.loads(told.out)
    assert isinstance(found, dict)
    for path in found.get("written", []):
        assert Path(path).is_file()


@pytest.mark.parametrize("name", COMMANDS)
def test_quiet_is_quiet(place, good, tmp_path, name):
    told = good(*commands(place, tmp_path)[name], "--quiet")
    assert told.err == ""
    assert (told.out != "") == (name in ("evaluate", "check"))


@pytest.mark.parametrize("name", COMMANDS)
def test_inputs_stay_as_they_are(place, good, tmp_path, name):
    before = digests(place.path)
    good(*commands(place, tmp_path)[name])
    assert digests(place.path) == before


@pytest.mark.parametrize("name", ["label", "predict", "queue"])
def test_a_dash_writes_the_table_to_standard_output(place, good, tmp_path, name):
    arguments = commands(place, tmp_path)[name]
    good(*arguments)
    out = arguments[arguments.index("-o") + 1]
    told = good(*("-" if one == out else one for one in arguments))
    assert told.out == Path(str(out)).read_text()


def test_json_tells_the_sizes(place, good, tmp_path):
    found = json.loads(
        good("label", place.pile, "-o", tmp_path / "o.csv", "--prior", "travel=70", *QUICK, "--json").out
    )
    assert {one["class"]: one["assigned"] for one in found["sizes"]}["travel"] == 70
    assert found["n_unlabelled"] == N_OPEN
    predicted = json.loads(good("predict", place.model, place.pile, "-o", tmp_path / "p.csv", "--json").out)
    assert sum(predicted["labels"].values()) == predicted["rows"] == N_ROWS


# config


def test_config_gives_defaults_and_the_command_line_wins(place, good, tmp_path):
    config = tmp_path / "c.toml"
    config.write_text(
        'seed = 5\nannealing = "paper"\ntext = "text"\nwords = 3\n[prior]\ntravel = 70\nbanking = [8, 9]\n'
        '[label]\nloss = "maxent"\nkeep-formulas = true\n[predict]\nkeep-formulas = true\n'
    )
    told = good("label", place.pile, "-o", tmp_path / "o.csv", "--config", config, "--json")
    found = json.loads(told.out)
    settings = found["settings"]
    assert (found["seed"], settings["annealing"], settings["loss"]) == (5, "paper", "maxent")
    assert "texts are in" not in told.err
    sizes = sizes_of(read(tmp_path / "o.csv"))
    assert sizes["travel"] == 70
    assert sizes["banking"] in (8, 9)
    options = ("--seed", 6, "--loss", "hinge", "--prior", "travel=60")
    found = json.loads(good("label", place.pile, "-o", tmp_path / "o.csv", "--config", config, "--json", *options).out)
    assert (found["seed"], found["settings"]["loss"]) == (6, "hinge")
    assert sizes_of(read(tmp_path / "o.csv"))["travel"] == 60


def test_config_names_outputs_but_no_arguments(place, good, tmp_path, monkeypatch):
    """The model that `label` writes is not what `predict` reads: that is said on its command line."""
    monkeypatch.chdir(tmp_path)
    Path("c.toml").write_text(
        'model = "new.safetensors"\nannealing = "none"\nout = "out.csv"\n[report]\nout = "page.html"\n'
    )
    good("label", place.pile, "--config", "c.toml")
    good("predict", "new.safetensors", place.pile, "--config", "c.toml")
    good("report", "new.safetensors", place.pile, "--config", "c.toml")
    assert {path.name for path in tmp_path.iterdir()} == {"c.toml", "new.safetensors", "out.csv", "page.html"}


def test_every_option_can_stand_in_a_config(place, good, tmp_path):
    values = {
        "json": "true",
        "quiet": "true",
        "flat": "true",
        "alpha": "1",
        "jobs": "1",
        "ngrams": "2",
        "format": '"csv"',
    }
    (tmp_path / "c.toml").write_text("".join(f"{key} = {value}\n" for key, value in values.items()))
    told = good("label", place.pile, "-o", tmp_path / "o.csv", "--config", tmp_path / "c.toml", *QUICK)
    assert told.err == ""
    assert json.loads(told.out)["settings"]["alpha"] == 1.0


# the same again


def timeless(content: bytes) -> bytes:
    """A model file without the times in it, and without the length of the header, which depends on their digits."""
    return re.sub(rb'(\\"(?:created|seconds)\\":)(\\".*?\\"|[0-9.e-]+)', rb"\1", content[8:]).replace(b" ", b"")


@pytest.mark.parametrize("annealing", ["paper", "soft"])
def test_the_same_seed_gives_the_same_bytes(place, good, tmp_path, annealing):
    for name in ("a", "b"):
        where = ("-o", tmp_path / f"{name}.csv", "--model", tmp_path / f"{name}.safetensors")
        good("label", place.pile, *where, "--seed", 3, "--annealing", annealing)
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    a, b = (timeless((tmp_path / f"{name}.safetensors").read_bytes()) for name in ("a", "b"))
    assert a == b
    assert rb"\"created\":" in a


def test_the_queue_and_the_report_are_the_same_again(place, good, tmp_path):
    for name in ("a", "b"):
        good("queue", place.pile, "-o", tmp_path / f"{name}.csv", "-n", 20, *QUICK)
        good("report", place.model, place.pile, "-o", tmp_path / f"{name}.html")
    for suffix in ("csv", "html"):
        assert (tmp_path / f"a.{suffix}").read_bytes() == (tmp_path / f"b.{suffix}").read_bytes()


# formulas


@pytest.mark.parametrize(("option", "mark"), [((), "'"), (("--keep-formulas",), "")])
def test_formulas_are_neutralised_unless_they_are_to_stay(place, good, tmp_path, option, mark):
    cells = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "plain", "-3.5"]
    frame = place.frame.with_columns(pl.Series("note", (cells * 20)[:N_ROWS]))
    write_table(frame, str(tmp_path / "pile.csv"), keep_formulas=True)
    for out, more in (
        (tmp_path / "o.csv", ["label", tmp_path / "pile.csv"]),
        (tmp_path / "p.csv", ["predict", place.model, tmp_path / "pile.csv"]),
    ):
        good(*more, "-o", out, *(QUICK if more[0] == "label" else ()), *option)
        assert read(out)["note"][:6].to_list() == [f"{mark}{cell}" for cell in cells[:4]] + cells[4:]
    good("predict", place.model, tmp_path / "pile.csv", "-o", tmp_path / "p.jsonl")
    assert read(tmp_path / "p.jsonl")["note"][:6].to_list() == cells


# interruptions and failures


@pytest.fixture(params=["soft", "paper"])
def interrupted_fit(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Ctrl-C comes after some rounds."""
    rounds: Iterator[int] = iter(range(10**9))

    def hear(self: object, row: object) -> None:
        if next(rounds) >= 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(progress.Progress, "round", hear)
    return str(request.param)


def test_ctrl_c_during_the_fit_writes_what_there_is(place, tell, tmp_path, interrupted_fit):
    out, model, page = (tmp_path / name for name in ("o.csv", "m.safetensors", "r.html"))
    told = tell("label", place.pile, "-o", out, "--model", model, "--report", page, "--annealing", interrupted_fit)
    assert told.code == 1
    assert told.err.splitlines()[-1].startswith("transduce: interrupted;")
    assert "hold what there was" in told.err
    assert set(read(out)["label"]) <= set(DOMAINS)
    assert load_model(str(model)).about["interrupted"] is True
    assert "Interrupted." in page.read_text()
    assert len(list(tmp_path.iterdir())) == 3


def test_ctrl_c_during_the_fit_of_a_queue(place, tell, tmp_path, interrupted_fit):
    told = tell("queue", place.pile, "-o", tmp_path / "q.csv", "-n", 4, "--annealing", interrupted_fit, "--quiet")
    assert told.code == 1
    assert told.err.startswith("transduce: interrupted;")
    assert told.err.endswith("q.csv holds what there was.\n")
    assert read(tmp_path / "q.csv").height == 4


@pytest.mark.parametrize("module", ["transduce.cli.commands.label.fit_vectorizer", "transduce.cli.formats.read_table"])
def test_ctrl_c_before_the_fit_leaves_nothing(place, tell, tmp_path, monkeypatch, module):
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, stop)
    told = tell("label", place.pile, "-o", tmp_path / "o.csv", "--model", tmp_path / "m.safetensors")
    assert told.code == 1
    assert told.err.splitlines()[-1] == "transduce: interrupted before there was anything to write."
    assert list(tmp_path.iterdir()) == []


WRITING = {
    "o.csv": ["label", "{pile}", "-o", "o.csv", *QUICK],
    "o.parquet": ["predict", "{model}", "{pile}", "-o", "o.parquet"],
    "m.safetensors": ["label", "{pile}", "-o", "-", "--model", "m.safetensors", *QUICK],
    "r.html": ["report", "{model}", "{pile}", "-o", "r.html"],
    "q.csv": ["queue", "{pile}", "-o", "q.csv", *QUICK],
    "q.xml": ["queue", "{pile}", "-o", "q.json", *QUICK],
}


@pytest.mark.parametrize("name", WRITING)
@pytest.mark.parametrize("before", [None, b"what stood there"])
def test_a_failure_while_writing_leaves_nothing_half(place, tell, tmp_path, monkeypatch, name, before):
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.chdir(tmp_path)
    if before is not None:
        (tmp_path / name).write_bytes(before)
    monkeypatch.setattr(os, "replace", full)
    told = tell(*(word.format(pile=place.pile, model=place.model) for word in WRITING[name]))
    assert told.code == 1
    last = told.err.splitlines()[-1]
    assert last.startswith("transduce: ")
    assert name in last
    assert "No space left on device" in last
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == ({} if before is None else {name: before})


def test_a_folder_that_may_not_be_written_to_is_noticed_first(place, tell, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    told = tell("label", place.pile, "-o", tmp_path / "o.csv")
    assert told.code == 2
    assert re.fullmatch(r"transduce: the output .*o\.csv cannot be written: you may not .*; name another\.\n", told.err)


def test_a_pipe_that_closes_is_no_traceback(place):
    command = f"{sys.executable} -m transduce predict {place.model} {place.pile} -o - --quiet | head -n 1"
    told = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert told.stdout.startswith("id,text")
    assert "Traceback" not in told.stderr


def test_memory_that_runs_out_is_said(place, tell, tmp_path, monkeypatch):
    def greedy(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("transduce.cli.commands.label.fit_vectorizer", greedy)
    told = tell("label", place.pile, "-o", tmp_path / "o.csv")
    assert told.code == 1
    assert "--features hashing" in told.err.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


# the program itself


def test_version_and_help(tell):
    assert tell("--version") == (0, f"transduce, version {transduce.__version__}\n", "")
    for name in cli.commands:
        told = tell(name, "--help")
        assert told.code == 0
        assert told.out.startswith(f"Usage: transduce {name} ")
    assert in_new_process("--version").stdout == f"transduce, version {transduce.__version__}\n"


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from transduce.cli.main import run; code = run(['--help']); "
        "heavy = {'numpy', 'scipy', 'polars', 'sklearn', 'numba', 'matplotlib', 'jinja2', 'rich', 'safetensors'}; "
        "print(code, sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    told = in_new_process(code=code)
    assert "Usage: transduce" in told.stdout
    assert told.stderr == "0 []\n"


def test_a_missing_extra_is_named():
    told = in_new_process(code="import sys; sys.modules['click'] = None; from transduce.cli import main; main()")
    assert told.returncode == 1
    assert told.stderr == "transduce: the command line needs the extra app; run: pip install 'transduce[app]'\n"


def test_the_demo_leaves_table_model_and_report(good, tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "demo_frame", lambda seed: pile(n_rows=200, n_labelled=40, seed=seed).drop("id"))
    told = good("demo", "-o", tmp_path / "new" / "demo", "--seed", 1)
    names = {path.name for path in (tmp_path / "new" / "demo").iterdir()}
    assert names == {"requests.csv", "labelled.csv", "model.safetensors", "report.html", "new.csv"}
    assert re.search(r"Macro F on the 160 requests without a label: supervised 0\.\d+, transduce 0\.\d+", told.out)
    done = read(tmp_path / "new" / "demo" / "labelled.csv").filter(pl.col("given") == "false")
    assert sorted(done["label"].value_counts().rows()) == sorted(done["truth"].value_counts().rows())
    assert good("demo", "-o", tmp_path / "again", "--quiet")[1:] == ("", "")


def test_the_command_that_the_demo_suggests_can_be_typed(good, tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "demo_frame", lambda seed: pile(n_rows=200, n_labelled=40, seed=seed).drop("id"))
    monkeypatch.setattr(sys, "argv", [".venv/bin/transduce", "demo"])
    suggested = shlex.split(good("demo", "-o", tmp_path / "my demo").out.splitlines()[-1])
    assert suggested[:2] == [".venv/bin/transduce", "predict"]
    good(*suggested[1:])
    done = read(suggested[-1])
    assert done.columns == ["text", "label", "confidence", "runner_up", "overruled"]
    assert done.height == len(demo.NEW_REQUESTS)


def test_a_checkpoint_carries_a_fit_over_a_kill(place, good, tmp_path, monkeypatch):
    whole, out, stages = tmp_path / "whole.csv", tmp_path / "out.csv", tmp_path / "stages"
    good("label", place.pile, "-o", whole, "--quiet")

    def killed(*arguments):
        raise SystemError

    with monkeypatch.context() as patch:
        patch.setattr("transduce.cli.commands.label._model", killed)
        with pytest.raises(SystemError):
            run(["label", str(place.pile), "-o", str(out), "--checkpoint", str(stages), "--quiet"])
    assert not out.exists()
    good("label", place.pile, "-o", out, "--checkpoint", stages, "--quiet")
    assert out.read_bytes() == whole.read_bytes()


def test_a_checkpoint_of_another_fit_is_refused_in_one_sentence(place, tell, good, tmp_path):
    command = ("label", place.pile, "-o", tmp_path / "out.csv", *QUICK, "--checkpoint", tmp_path / "stages", "--quiet")
    good(*command)
    told = tell(*command, "--alpha", "0.01")
    assert told.code == 2
    assert "belongs to a fit with other data or parameters. Choose another folder, or delete it." in told.err
    assert told.err.count("\n") == 1
