"""--none: rows that fit no class stay without a label, from the option to the model that labels the next file."""

import json

import numpy as np
import polars as pl
import pytest
from helpers.commands import EXACT_SIZES, N_UNLABELED, QUICK, Example, read, sizes_of, without_features
from helpers.documents import DOMAINS, N_LABELED, documents

from transduce.class_prior.spec import parse_size
from transduce.cli.errors import InputError
from transduce.cli.formats import write_table
from transduce.cli.main import run
from transduce.cli.none_option import divide_sizes, none_rows, read_none
from transduce.cli.predictions import predict_rows
from transduce.model_file import load_model

N_NONE = 10
PLAIN = N_LABELED + N_UNLABELED


@pytest.fixture(scope="module")
def labelled(tmp_path_factory) -> Example:
    """Documents of which ten of 96 without a label get none."""
    folder = tmp_path_factory.mktemp("none")
    names = ("documents.csv", "out.csv", "m.safetensors", "r.html")
    found = Example(folder, documents(), *(folder / name for name in names))
    write_table(found.frame, str(found.file))
    outputs = ["-o", str(found.out), "--model", str(found.model), "--report", str(found.report), "--truth", "truth"]
    assert run(["label", str(found.file), *outputs, *QUICK, "--none", str(N_NONE), "--quiet"]) == 0
    return found


@pytest.fixture(scope="module")
def new_file(labelled) -> str:
    """Other documents: the classifier has not seen them, so some of them fit no class."""
    write_table(documents(PLAIN, seed=1), str(labelled.folder / "new.csv"))
    return str(labelled.folder / "new.csv")


def without_label(frame: pl.DataFrame, label: str = "label") -> pl.DataFrame:
    return frame.filter(pl.col(label).fill_null("") == "")


def test_rows_without_a_label_show_their_best_class(labelled):
    rows = without_label(read(labelled.out)).with_columns(pl.col("confidence").cast(pl.Float64))
    assert rows.height == N_NONE
    assert set(rows["given"]) == set(rows["overruled"]) == {"false"}
    assert set(rows["runner_up"]) <= set(DOMAINS)
    assert rows["confidence"].is_between(1 / len(DOMAINS), 1, closed="none").all()
    others = read(labelled.out).filter((pl.col("label") != "") & (pl.col("given") == "false"))
    assert rows["confidence"].mean() < others["confidence"].cast(pl.Float64).mean()
    assert (others["label"] != others["runner_up"]).all()


@pytest.mark.parametrize(
    ("size", "n_none"), [("12.5%", 12), ("0.125", 12), ("1/8", 12), ("7", 7), ("3:3", 3), ("0", 0)]
)
def test_sizes_of_all_spellings(labelled, run_ok, tmp_path, size, n_none):
    result = run_ok("label", labelled.file, "-o", tmp_path / "o.jsonl", *QUICK, "--none", size, "--json")
    found = read(tmp_path / "o.jsonl")
    assert found["label"].null_count() == n_none
    assert f"Rows that fit no class: {n_none} row" in result.err
    about = json.loads(result.out)
    assert (about["none"]["asked_low"], about["none"]["asked_high"], about["none"]["assigned"]) == (n_none,) * 3
    assert ("score" in about["none"]) == (n_none > 0)
    assert sum(size["assigned"] for size in about["sizes"]) == N_UNLABELED - n_none
    assert sum(size["own"] for size in about["sizes"]) == N_UNLABELED - n_none
    labels = f"Labelled {N_UNLABELED - n_none} rows"
    assert (
        f"{labels} and left {n_none} that fit no class without a label in" if n_none else f"{labels} in"
    ) in result.err
    assert f"(no class)  {n_none:>16}".split() == result.err.splitlines()[-1].split()[:3]


def test_a_range_is_kept(labelled, run_ok, tmp_path):
    run_ok("label", labelled.file, "-o", tmp_path / "o.csv", *QUICK, "--none", "2%:25%")
    assert 1 <= without_label(read(tmp_path / "o.csv")).height <= 24


@pytest.mark.parametrize("value", ['"10"', "10", "[10, 10]", '["10", "10"]'])
def test_the_option_can_be_in_a_config(labelled, run_ok, tmp_path, value):
    (tmp_path / "c.toml").write_text(f'none = {value}\nannealing = "none"\n')
    run_ok("label", labelled.file, "-o", tmp_path / "o.csv", "--config", tmp_path / "c.toml")
    assert (tmp_path / "o.csv").read_bytes() == labelled.out.read_bytes()
    run_ok("predict", labelled.model, labelled.file, "-o", tmp_path / "p.csv", "--config", tmp_path / "c.toml")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--none", "?"], "--none must be a fraction or a number of rows"),
        (["--none", "many"], "--none must be a fraction (0.2, 20% or 1/5), rows"),
        (["--none", "100%"], "--none must be below 100 % of the rows, but is '100%'"),
        (["--none", "20%:10%"], "the low end is above the high end"),
        (["--none", "-3"], "--none must be from 0 to 1e15"),
        (["--none", "96"], "--none leaves 96 rows without a label, but 96 are to be labelled"),
        (["--none", "5%", "--workers", "2"], "--none needs all rows in one process, but --workers distributes them"),
        (["--none", "5%", "--dask", "tcp://host:8786"], "but --dask distributes them. Leave one of them out"),
    ],
)
def test_options_that_cannot_be_used_are_refused_in_one_sentence(labelled, run_command, tmp_path, options, sentence):
    result = run_command("label", labelled.file, "-o", tmp_path / "o.csv", *QUICK, *options)
    assert result.code == 2
    assert sentence in result.err.splitlines()[-1]
    assert not (tmp_path / "o.csv").exists()


def test_a_config_must_hold_a_size(labelled, run_command, tmp_path):
    (tmp_path / "c.toml").write_text("none = true\n")
    result = run_command("label", labelled.file, "-o", tmp_path / "o.csv", "--config", tmp_path / "c.toml")
    assert (result.code, "sets 'none' to True, but it must be a number or a list" in result.err) == (2, True)


def test_the_result_can_be_labelled_again(labelled, run_ok, tmp_path):
    result = run_ok("label", labelled.out, "-o", tmp_path / "again.csv", *QUICK, "--none", N_NONE)
    assert f"keeping the {N_LABELED} labels with given = true" in result.err
    assert (tmp_path / "again.csv").read_bytes() == labelled.out.read_bytes()
    every = read(labelled.out).with_columns(
        given=pl.when(pl.col("label") == "").then(pl.lit("true")).otherwise("given"),
        label=pl.when(pl.col("label") == "").then("truth").otherwise("label"),
    )
    write_table(every, str(tmp_path / "checked.csv"))
    run_ok("label", tmp_path / "checked.csv", "-o", tmp_path / "more.csv", *QUICK)
    origins = read(tmp_path / "more.csv")["origin"].to_list()
    assert origins.count("answered") == N_NONE


def test_predict_leaves_rows_below_the_score_without_a_label(labelled, new_file, run_ok, tmp_path):
    model = load_model(str(labelled.model))
    result = run_ok("predict", labelled.model, new_file, "-o", tmp_path / "p.jsonl", "--json")
    frame = read(tmp_path / "p.jsonl")
    scores = model.scores(model.vectorizer.transform(frame["text"].to_list(), 1))
    below = scores.max(axis=1) < model.none_score
    assert 0 < below.sum() < 3 * N_NONE
    assert frame["label_2"].is_null().to_list() == below.tolist()
    assert frame["runner_up"].filter(below).to_list() == [model.classes[k] for k in scores.argmax(axis=1)[below]]
    found = json.loads(result.out)
    assert found["none"] == below.sum()
    assert sum(found["labels"].values()) == PLAIN - below.sum()
    assert f"and left {below.sum()} that fit no class without a label" in result.err


def test_two_classes_have_one_score_too(labelled, run_ok, tmp_path):
    two = labelled.frame.filter(pl.col("truth") != DOMAINS[0])
    write_table(two, str(tmp_path / "two.csv"))
    outputs = ["-o", tmp_path / "o.csv", "--model", tmp_path / "m.safetensors"]
    run_ok("label", tmp_path / "two.csv", *outputs, *QUICK, "--none", "10%")
    model = load_model(str(tmp_path / "m.safetensors"))
    unlabeled = two.filter(pl.col("label").is_null())
    scores = model.scores(model.vectorizer.transform(unlabeled["text"].to_list(), 1))
    n_none = without_label(read(tmp_path / "o.csv")).height
    assert n_none == round(0.1 * unlabeled.height)
    assert np.array_equal(predict_rows(model, scores).label < 0, np.abs(scores[:, 0]) < model.none_score)
    assert model.none_score < np.median(np.abs(scores[:, 0]))


def test_a_model_without_none_labels_every_row(example, run_ok, tmp_path):
    result = run_ok("predict", example.model, example.file, "-o", tmp_path / "p.csv", "--json")
    assert without_label(read(tmp_path / "p.csv"), "label_2").height == 0
    assert "none" not in json.loads(result.out)


def test_inspect_says_what_predict_does(labelled, run_ok):
    text, score = run_ok("inspect", labelled.model).out, load_model(str(labelled.model)).none_score
    assert f"{N_NONE} unlabelled rows fit no class ({N_NONE} asked for)" in text
    assert f"predict leaves rows with a best score below {score:.4g} without a label" in text


def test_evaluate_counts_rows_without_a_label_as_wrong(labelled, new_file, run_ok, tmp_path):
    run_ok("predict", labelled.model, new_file, "-o", tmp_path / "p.csv")
    found = json.loads(run_ok("evaluate", labelled.model, new_file, "--label", "truth", "--json").out)
    rows = read(tmp_path / "p.csv")
    assert found["micro_f"] == pytest.approx((rows["label_2"] == rows["truth"]).mean())
    assert found["names"] == list(DOMAINS)
    assert sum(found["none"]) == without_label(rows, "label_2").height > 0
    assert sum(map(sum, found["confusion"])) + sum(found["none"]) == found["rows"]
    text = run_ok("evaluate", labelled.model, new_file, "--label", "truth").out
    assert f"{sum(found['none'])} rows left without a label, because they fit no class" in text
    assert "-> (no class)" in text


def test_the_queue_asks_about_rows_that_fit_no_class(labelled, run_ok, tmp_path):
    run_ok("queue", labelled.file, "-o", tmp_path / "ask.csv", "-n", 20, *QUICK, "--none", N_NONE)
    asked = read(tmp_path / "ask.csv")
    empty = asked.filter(pl.col("suggested") == "")
    assert N_NONE / 2 < empty.height <= N_NONE
    numbers = without_label(read(labelled.out).with_row_index("place", 1))["place"]
    assert set(empty["row"].cast(pl.Int64)) <= set(numbers.to_list())
    run_ok("queue", labelled.file, "-o", tmp_path / "plain.csv", "-n", 20, *QUICK)
    before = set(read(tmp_path / "plain.csv")["row"].cast(pl.Int64)) & set(numbers.to_list())
    assert empty.height >= len(before)


def test_a_queue_of_new_rows_asks_about_those_that_the_model_leaves_out(labelled, new_file, run_ok, tmp_path):
    run_ok("queue", new_file, "-o", tmp_path / "ask.csv", "-n", 30, "--model", labelled.model)
    run_ok("predict", labelled.model, new_file, "-o", tmp_path / "p.csv")
    left_out = without_label(read(tmp_path / "p.csv").with_row_index("place", 1), "label_2")["place"].to_list()
    asked = read(tmp_path / "ask.csv").filter(pl.col("suggested") == "")["row"].cast(pl.Int64).to_list()
    assert asked
    assert set(asked) <= set(left_out)


def test_label_studio_gets_no_prediction_for_them(labelled, new_file, run_ok, tmp_path):
    run_ok("queue", new_file, "-o", tmp_path / "ask.json", "-n", 20, "--model", labelled.model)
    tasks = json.loads((tmp_path / "ask.json").read_text(encoding="utf-8"))
    n_without = sum("predictions" not in task for task in tasks)
    assert 0 < n_without < len(tasks)


def test_the_report_shows_the_surest_rows(labelled, new_file, run_ok, tmp_path):
    page = labelled.report.read_text(encoding="utf-8")
    start = page.index('<section id="no_class">')
    section = page[start : page.index("</section>", start)]
    rows = without_label(read(labelled.out).with_row_index("place", 1))
    first = rows.sort(pl.col("confidence").cast(pl.Float64), "place")["place"].to_list()
    numbers = [int(part.split("<")[0]) for part in section.split('<td class="number row">')[1:]]
    assert numbers == first
    assert f"You asked for {N_NONE}." in section
    uncertain = page[page.index('<section id="uncertain">') :]
    assert all(f'<td class="number row">{number}</td>' not in uncertain for number in first)
    assert f"of which {N_NONE} are without a label and so wrong" in page
    run_ok("report", labelled.model, labelled.out, "-o", tmp_path / "r.html", "--truth", "truth")
    again = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert without_features(again) == without_features(page)
    assert "The labels with the lowest confidence" in again
    run_ok("report", labelled.model, new_file, "-o", tmp_path / "new.html")
    assert "their number need not be the one you asked for" in (tmp_path / "new.html").read_text(encoding="utf-8")


def test_exact_sizes_and_none_add_up(labelled, run_ok, tmp_path):
    """Counts of the classes and of no class together are those of all rows to label, or of all rows."""
    given = labelled.frame["label"].drop_nulls().value_counts()
    less = {name: size - 2 for name, size in EXACT_SIZES.items()}
    whole = {name: size + given.filter(pl.col("label") == name)["count"].sum() for name, size in less.items()}
    for counts in (less, whole):
        sizes = [word for name, size in counts.items() for word in ("--prior", f"{name}={size}")]
        result = run_ok("label", labelled.file, "-o", tmp_path / "o.csv", *QUICK, "--none", 6, *sizes)
        assert "class sizes and --none add up to all rows" in result.err
        found = read(tmp_path / "o.csv").filter(pl.col("label") != "")
        assert sizes_of(found) == less


def test_a_report_of_exact_sizes_finds_them_met(labelled, run_ok, tmp_path):
    sizes = [word for name, size in EXACT_SIZES.items() for word in ("--prior", f"{name}={size}")]
    result = run_ok(
        "label",
        labelled.file,
        "-o",
        tmp_path / "o.csv",
        "--report",
        tmp_path / "r.html",
        *QUICK,
        *sizes,
        "--none",
        "12",
    )
    assert "add up" not in result.err
    assert "all class sizes met" in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert f"banking: {round(40 * 84 / 96)} rows" in result.err


@pytest.mark.parametrize(
    ("sizes", "none", "expected"),
    [
        ({"a": "60%", "b": "35%"}, (5, 5), [60 / 95, 35 / 95]),
        ({"a": "60%", "b": "40%"}, (5, 5), [0.6, 0.4]),
        ({"a": "60%", "b": "39%"}, (1, 1), [0.6, 0.39]),  # rounded fractions are divided later
        ({"a": "60%", "b": "30%"}, (0, 20), [2 / 3, 1 / 3]),
        ({"a": "60%", "b": "30%"}, (0, 5), [0.6, 0.3]),
        ({"a": "60%"}, (40, 40), [0.6]),
        ({"a": "60%", "b": "?"}, (40, 40), [0.6, 0]),
        ({"a": "50%:60%", "b": "35%"}, (5, 5), [0.5, 0.35]),
        ({"a": "70", "b": "25"}, (5, 5), [70 / 95, 25 / 95]),
        ({"a": "75", "b": "30"}, (5, 5), [70 / 95, 25 / 95]),  # with the ten labelled rows
        ({"a": "70", "b": "30"}, (5, 5), [70, 30]),  # all rows to label
        ({"a": "70", "b": "20"}, (5, 5), [70, 20]),
    ],
)
def test_sizes_that_add_up_with_none(sizes, none, expected):
    prior = {name: parse_size(size, name) for name, size in sizes.items()}
    found = divide_sizes(prior, ["a", "b"], {"a": 5, "b": 5}, none, 100, tree=False)
    assert [size.low for size in found.values()] == pytest.approx(expected)


def test_branches_add_up_with_none():
    prior = {name: parse_size(size, name) for name, size in {"x": "60%", "x/a": "20%", "y": "30%"}.items()}
    found = divide_sizes(prior, ["x/a", "x/b", "y"], {}, (10, 10), 100, tree=True)
    assert [size.low for size in found.values()] == pytest.approx([2 / 3, 2 / 9, 1 / 3])


def test_rows_of_the_option():
    assert read_none(None) is None
    assert none_rows(None, 100) is None
    assert none_rows(read_none("5%"), 0) is None
    assert none_rows(read_none("99%"), 5) == (4, 4)
    assert none_rows(read_none("2:inf"), 5) == (2, 4)
    with pytest.raises(InputError, match="leaves 5 rows"):
        none_rows(read_none("5"), 5)


def test_check_reports_what_makes_none_difficult(labelled, run_ok, run_command, tmp_path):
    text = run_ok("check", labelled.file, "--none", "5%").out
    assert f"--none is to find rows that fit no class among {N_UNLABELED} without a label" in " ".join(text.split())
    odd = labelled.frame.with_columns(pl.col("label").str.replace("travel", "Other"))
    write_table(odd, str(tmp_path / "odd.csv"))
    found = json.loads(run_ok("check", tmp_path / "odd.csv", "--none", "5%", "--json").out)["findings"]
    assert [one["severity"] for one in found if one["check"] == "none_beside_catch_all"] == ["note"]
    assert "none_" not in run_ok("check", tmp_path / "odd.csv", "--json").out
    assert run_command("check", labelled.file, "--none", "?").code == 2
    sizes = [f"--prior={name}=30%" for name in DOMAINS]
    assert "sum to" not in run_ok("check", labelled.file, *sizes, "--none", "10%").out
    assert "they sum to 0.9, not 1." in run_ok("check", labelled.file, *sizes).out


@pytest.mark.parametrize(
    "none",
    [[], {}, {"asked_low": 1, "asked_high": 2}, {"asked_low": 1, "asked_high": 2, "assigned": -1},
     {"asked_low": 1, "asked_high": 2, "assigned": 1, "score": "low"},
     {"asked_low": 1, "asked_high": 2, "assigned": 1, "score": 1e40}],
)  # fmt: skip
def test_a_model_file_with_a_wrong_none_is_refused(labelled, tmp_path, none):
    from safetensors import safe_open
    from safetensors.numpy import save_file

    with safe_open(str(labelled.model), framework="numpy") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 -- not a mapping
        said = json.loads(file.metadata()["transduce"])
    said["about"]["none"] = none
    save_file(tensors, str(tmp_path / "m.safetensors"), {"transduce": json.dumps(said)})
    with pytest.raises(InputError, match="none"):
        load_model(str(tmp_path / "m.safetensors"))
