"""transduce label: rows are kept, sizes are met, and what was guessed or found is reported."""

import json
import re

import polars as pl
import pytest
from helpers.commands import ADDED, EXACT_SIZES, N_UNLABELED, QUICK, read, sizes_of
from helpers.documents import DOMAINS, N_LABELED, N_ROWS, documents
from polars.testing import assert_frame_equal

from transduce.cli.formats import write_table
from transduce.model_file import load_model


def test_rows_columns_and_given_labels_are_kept(example):
    done = read(example.out)
    assert done.columns == [*example.frame.columns, *ADDED]
    for name in ("id", "text", "truth"):
        assert done[name].to_list() == example.frame[name].cast(pl.String).to_list()
    given = example.frame["label"].is_not_null()
    assert done["given"].to_list() == [str(one).lower() for one in given]
    assert done["label"].filter(given).to_list() == example.frame["label"].drop_nulls().to_list()


def test_confidence_and_runner_up_are_added(example):
    done = read(example.out).with_columns(pl.col("confidence").cast(pl.Float64))
    given, other = (done.filter(pl.col("given") == word) for word in ("true", "false"))
    assert (given["confidence"] == 1.0).all()
    assert set(given["runner_up"]) == {""}
    assert set(given["overruled"]) == {"false"}
    assert other["confidence"].is_between(0, 1).all()
    assert set(other["runner_up"]) <= set(DOMAINS)
    assert (other["runner_up"] != other["label"]).all()


def test_exact_sizes_are_met_and_better_than_chance(example):
    done = read(example.out)
    assert sizes_of(done) == EXACT_SIZES
    assert (done["label"] == done["truth"]).mean() > 0.6


@pytest.mark.parametrize(
    ("prior", "bounds"),
    [
        (["travel==0.5", "banking==25%", "auto_and_commute==1/4"], {"travel": (48, 48), "banking": (24, 24)}),
        (["travel=0.6:0.7", "banking=0.05:0.1"], {"travel": (58, 67), "banking": (5, 9)}),
        (["travel=70"], {"travel": (70, 70)}),
        (["travel=?", "banking=8:9"], {"banking": (8, 9)}),
        (["travel=0"], {"travel": (0, 0)}),
        (["travel==50%", "banking=~24"], {"travel": (48, 48)}),
    ],
)
def test_stated_sizes_are_met(example, run_ok, tmp_path, prior, bounds):
    options = [word for one in prior for word in ("--prior", one)]
    run_ok("label", example.file, "-o", tmp_path / "out.csv", *QUICK, *options)
    sizes = sizes_of(read(tmp_path / "out.csv"))
    assert sum(sizes.values()) == N_UNLABELED
    for name, (low, high) in bounds.items():
        assert low <= sizes.get(name, 0) <= high


@pytest.mark.parametrize(
    "prior",
    [
        ["travel=0.5", "banking=25%", "auto_and_commute=0.25"],
        ["travel=50", "banking=25", "auto_and_commute=25"],
        ["travel=1/2", "banking=0,25"],
        ["travel=~48"],
    ],
)
def test_rough_sizes_are_followed_and_reported(example, run_ok, tmp_path, prior):
    """The labels and texts say about a third for each class, so results lie between that and the stated size."""
    options = [word for one in prior for word in ("--prior", one)]
    result = run_ok("label", example.file, "-o", tmp_path / "out.csv", *QUICK, *options)
    assert "travel: about 48 rows (50 %)" in result.err
    assert 38 <= sizes_of(read(tmp_path / "out.csv"))["travel"] <= 48


def test_sizes_that_are_not_stated_are_estimated_and_reported(example, run_ok, tmp_path):
    result = run_ok("label", example.file, "-o", tmp_path / "out.csv", *QUICK, "--json")
    assert "Note: no class sizes were stated. Estimating them from the labels and the texts." in result.err
    found = json.loads(result.out)
    assert found["prior"] == "Class sizes are estimated from the labels and the texts."
    assert sum(size["estimated"] for size in found["sizes"]) == pytest.approx(1)
    for size in found["sizes"]:
        assert size["estimated_low"] < size["estimated"] < size["estimated_high"]
        assert size["estimated_low"] < size["assigned"] / N_UNLABELED < size["estimated_high"]


def test_accuracy_is_estimated_and_reported(example, run_ok, run_command, tmp_path):
    where = ("-o", tmp_path / "o.csv", "--model", tmp_path / "m.safetensors", "--report", tmp_path / "r.html")
    result = run_ok("label", example.file, *where, *QUICK, "--json")
    found = json.loads(result.out)["accuracy"]
    done = read(tmp_path / "o.csv").filter(given="false")
    assert abs((done["label"] == done["truth"]).mean() - found["mean"]) < 0.2  # of 24 labels
    assert found["low"] < found["mean"] < found["high"]
    assert found["n_labels"] == N_LABELED
    sentence = f"About {found['mean']:.0%} of the new labels are right (90 % interval ".replace("%", " %", 1)
    assert sentence in result.err
    assert sentence in run_ok("inspect", tmp_path / "m.safetensors").out
    assert load_model(str(tmp_path / "m.safetensors")).about["accuracy"] == found
    page = (tmp_path / "r.html").read_text()
    assert "labels that are right (estimate)" in page
    assert "Estimated (90\u00a0% interval)" in page
    assert "All your class sizes look right" not in page
    refused = run_command("evaluate", tmp_path / "m.safetensors", example.file, "--label", "label")
    assert (refused.code, sentence in refused.err) == (2, True)


def test_exact_sizes_stay_exact_whether_accuracy_is_estimated_or_not(example, run_ok, tmp_path):
    about = load_model(str(example.model)).about
    assert about["accuracy"]["n_labels"] == N_LABELED
    assert not any("estimated" in size for size in about["sizes"])
    sizes = [word for name, rows in EXACT_SIZES.items() for word in ("--prior", f"{name}={rows}")]
    options = ("--annealing", "paper", "--no-accuracy", "--json")
    result = run_ok("label", example.file, "-o", tmp_path / "o.csv", *sizes, *options)
    assert "accuracy" not in json.loads(result.out)
    assert "labels are right" not in result.err
    assert read(tmp_path / "o.csv")["label"].to_list() == read(example.out)["label"].to_list()


def test_classes_with_one_label_make_the_estimate_rough_and_macro_f_unknown(example, run_ok, run_command, tmp_path):
    few = example.frame.with_columns(label=pl.when(pl.int_range(pl.len()) < 4).then("truth"))
    names = few["label"].drop_nulls().value_counts()
    n_single = names.filter(pl.col("count") == 1).height
    assert 0 < n_single < names.height
    write_table(few, str(tmp_path / "few.csv"))
    model, report = tmp_path / "m.safetensors", tmp_path / "r.html"
    result = run_ok(
        "label", tmp_path / "few.csv", "-o", tmp_path / "o.csv", "--model", model, "--report", report, *QUICK
    )
    page, shown = report.read_text(encoding="utf-8"), run_ok("inspect", model).out
    advice = "review FILE` estimates the accuracy from a random sample"
    assert all(advice in text for text in (page, shown))
    assert f"review {tmp_path / 'few.csv'}` estimates the accuracy from a random sample" in result.err
    assert load_model(str(model)).about["accuracy"]["n_single"] == n_single
    few_labels = f"{n_single} of {names.height} classes {'has' if n_single == 1 else 'have'} fewer than two labels, so "
    assert "fewer than two labels" not in example.report.read_text(encoding="utf-8")
    n_hidden, n_labels = load_model(str(model)).about["accuracy"]["n_labels"], few["label"].drop_nulls().len()
    assert f"measured by hiding {n_hidden} of your {n_labels} labels in turn." in result.err
    for text in (result.err, page, shown, run_command("evaluate", model, tmp_path / "few.csv", "--label", "label").err):
        assert text.count(few_labels) == 1
        assert "macro F (each class counts equally)" not in text
        assert "macro F1 of hidden labels" not in text
    assert "macro F1 of hidden labels" in example.report.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("renamed", "options", "added"),
    [
        ({"label": "category"}, [], ["label", *ADDED]),
        ({"label": "category", "truth": "label"}, ["--label", "category"], ["label_2", *ADDED]),
        ({"id": "confidence", "truth": "given"}, [], ["confidence_2", "runner_up", "overruled", "given_2"]),
        ({"label": "Label"}, [], ["label", *ADDED]),
    ],
)
def test_column_names_that_are_taken_get_a_number(run_ok, tmp_path, renamed, options, added):
    frame = documents().rename(renamed)
    write_table(frame, str(tmp_path / "documents.csv"))
    said = run_ok("label", tmp_path / "documents.csv", "-o", tmp_path / "out.csv", *QUICK, *options).err
    done = read(tmp_path / "out.csv")
    assert done.columns == [*frame.columns, *added]
    new = next((name for name in added if name.startswith("label")), None)
    assert (f"New labels are in column {new!r}." in said) == (new is not None)
    before = frame.with_columns(pl.all().cast(pl.String).fill_null(""))
    kept = [name for name in frame.columns if name != "label" or "label_2" in added]
    assert_frame_equal(done.select(kept), before.select(kept))


def test_several_texts_are_joined(run_ok, tmp_path):
    frame = documents()
    words = frame["text"].str.split(" ")
    apart = frame.with_columns(
        words.list.head(3).list.join(" ").alias("text"), words.list.slice(3).list.join(" ").alias("rest")
    )
    write_table(frame, str(tmp_path / "one.csv"))
    write_table(apart, str(tmp_path / "two.csv"))
    run_ok("label", tmp_path / "one.csv", "-o", tmp_path / "a.csv", *QUICK)
    run_ok("label", tmp_path / "two.csv", "-o", tmp_path / "b.csv", *QUICK, "--text", "text", "--text", "rest")
    assert read(tmp_path / "a.csv")["label"].to_list() == read(tmp_path / "b.csv")["label"].to_list()


def test_paths_make_a_tree(run_ok, tmp_path):
    frame = documents(n_labeled=48, paths=True)
    lists = frame.with_columns(pl.col("label").str.split("/"))
    write_table(frame, str(tmp_path / "paths.jsonl"))
    write_table(lists, str(tmp_path / "lists.jsonl"))
    assert '"label": ["auto_and_commute", ' in (tmp_path / "lists.jsonl").read_text()
    for name in ("paths", "lists"):
        where = ("-o", tmp_path / f"{name}.csv", "--model", tmp_path / f"{name}.safetensors")
        run_ok("label", tmp_path / f"{name}.jsonl", *where, *QUICK, "--report", tmp_path / f"{name}.html")
    assert read(tmp_path / "paths.csv")["label"].to_list() == read(tmp_path / "lists.csv")["label"].to_list()
    assert load_model(str(tmp_path / "lists.safetensors")).tree
    assert "in a tree" in run_ok("inspect", tmp_path / "paths.safetensors").out
    assert 'id="tree"' in (tmp_path / "paths.html").read_text()


def test_flat_paths_are_plain_names(run_ok, tmp_path):
    write_table(documents(n_labeled=48, paths=True), str(tmp_path / "documents.csv"))
    run_ok(
        "label",
        tmp_path / "documents.csv",
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
def test_every_setting_meets_the_sizes(example, run_ok, tmp_path, options):
    sizes = [word for name, rows in EXACT_SIZES.items() for word in ("--prior", f"{name}={rows}")]
    run_ok("label", example.file, "-o", tmp_path / "o.csv", *options, *sizes, "--model", tmp_path / "m.safetensors")
    assert sizes_of(read(tmp_path / "o.csv")) == EXACT_SIZES
    run_ok("predict", tmp_path / "m.safetensors", example.file, "-o", tmp_path / "p.csv")
    run_ok("inspect", tmp_path / "m.safetensors")


def test_truth_without_a_report_is_reported(example, run_ok, tmp_path):
    result = run_ok("label", example.file, "-o", tmp_path / "a.csv", "--truth", "truth", *QUICK)
    assert "--truth is used in the report only" in result.err


def test_json_holds_the_class_sizes(example, run_ok, tmp_path):
    found = json.loads(
        run_ok("label", example.file, "-o", tmp_path / "o.csv", "--prior", "travel=70", *QUICK, "--json").out
    )
    assert {one["class"]: one["assigned"] for one in found["sizes"]}["travel"] == 70
    assert found["n_unlabelled"] == N_UNLABELED
    assert found["settings"]["alpha"] == 1e-3
    assert "labelled_rows" not in found
    predicted = json.loads(run_ok("predict", example.model, example.file, "-o", tmp_path / "p.csv", "--json").out)
    assert sum(predicted["labels"].values()) == predicted["rows"] == N_ROWS


def timeless(content: bytes) -> bytes:
    """A model file without the times in it, and without the length of the header, which depends on their digits."""
    return re.sub(rb'(\\"(?:created|seconds)\\":)(\\".*?\\"|[0-9.e-]+)', rb"\1", content[8:]).replace(b" ", b"")


@pytest.mark.parametrize("annealing", ["paper", "soft"])
def test_the_same_seed_gives_the_same_bytes(example, run_ok, tmp_path, annealing):
    for name in ("a", "b"):
        where = ("-o", tmp_path / f"{name}.csv", "--model", tmp_path / f"{name}.safetensors")
        run_ok("label", example.file, *where, "--seed", 3, "--annealing", annealing)
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    a, b = (timeless((tmp_path / f"{name}.safetensors").read_bytes()) for name in ("a", "b"))
    assert a == b
    assert rb"\"created\":" in a


@pytest.mark.parametrize("loss", ["hinge", "maxent"])
def test_no_warning_of_numpy_reaches_the_user(example, run_command, tmp_path, loss):
    """One class gets all rows, which no temperature can spread over the others."""
    result = run_command("label", example.file, "-o", tmp_path / "o.csv", "--prior", "banking==100%", "--loss", loss)
    assert result.code == 0
    assert "encountered" not in result.err
    assert "Class sizes: banking: 96 rows (100 %)." in result.err
    assert "class_prior" not in result.err
    assert "--prior gives 'banking' 100.0% of the rows" in result.err


def test_answers_are_counted_and_new_classes_reported(example, run_command, tmp_path):
    (tmp_path / "q.csv").write_text("row,label\n30,travel\n31,\n32,traval\n33,\n")
    result = run_command("label", example.file, "--answers", tmp_path / "q.csv", "-o", tmp_path / "o.csv", *QUICK)
    assert result.code == 2
    assert "q.csv has the answer 'traval', which is no class. Did you mean 'travel'?" in result.err
    (tmp_path / "q.csv").write_text("row,label\n30,travel\n31,\n32,weather\n33,\n")
    result = run_command("label", example.file, "--answers", tmp_path / "q.csv", "-o", tmp_path / "o.csv", *QUICK)
    assert f"2 answers from {tmp_path / 'q.csv'}; 2 rows have none." in result.err
    assert "Note: the answer 'weather'" in result.err
    assert "is a new class." in result.err
    assert "the answer 'travel'" not in result.err


def test_the_report_shows_which_sizes_were_stated(example, run_command, tmp_path):
    options = ("-o", tmp_path / "o.csv", "--report", tmp_path / "r.html", *QUICK)
    run_command("label", example.file, *options, "--prior", "travel=30")
    page = (tmp_path / "r.html").read_text().replace("\u00a0", " ")
    assert "You stated no size for 2 classes." in page
    assert page.count("What the texts suggest for classes without a size") == 1
    assert page.count("<span>your ") == 1
    assert "0 to 100 %" not in page
    run_command("label", example.file, *options)
    page = (tmp_path / "r.html").read_text()
    assert "You stated no size" not in page
    assert page.count("What the texts suggest for classes without a size") == 1
    assert "You stated no class sizes." in page
    run_command("label", example.file, *options, "--prior", "travel=30%")
    assert '<td class="number">about 29</td>' in (tmp_path / "r.html").read_text()
