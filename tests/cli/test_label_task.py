"""Partial labels and class sizes: what is understood is reported, what is impossible is refused."""

import json

import polars as pl
import pytest
from helpers.commands import QUICK
from helpers.documents import documents

from transduce.cli import label_fit
from transduce.cli.errors import InputError
from transduce.cli.formats import write_table
from transduce.errors import LabelError, LabelErrorKind, PriorError, PriorErrorKind
from transduce.model_file import load_model


@pytest.fixture
def label(run_command, tmp_path):
    """Label documents after some of their labels are changed, and return the result of the command."""

    def typed(changes, *options, paths=False, file="documents.csv", command="label"):
        frame = documents(paths=paths)
        labels = [changes.get(row, name) for row, name in enumerate(frame["label"], 1)]
        write_table(frame.with_columns(pl.Series("label", labels)), str(tmp_path / file))
        out = ("-o", tmp_path / "out.csv", *QUICK) if command == "label" else ()
        return run_command(command, tmp_path / file, *out, *options)

    return typed


def test_an_unknown_candidate_is_refused(label, tmp_path):
    result = label({60: "bankin|travel"})
    assert (result.code, (tmp_path / "out.csv").exists()) == (2, False)
    assert "row 60 of column 'label'" in result.err
    assert "no row is labelled 'bankin'. Did you mean 'banking'?" in result.err
    checked = label({60: "bankin|travel", 61: "|"}, "--strict", command="check")
    assert checked.code == 1
    assert "Did you mean 'banking'?" in " ".join(checked.out.split())
    assert "'|', a set of candidate classes with an empty part" in checked.out


def test_a_class_that_occurs_in_sets_only_can_have_a_size(label, tmp_path):
    never = {row: None for row, name in enumerate(documents()["label"], 1) if name == "travel"}
    result = label(never | {60: "banking|travel", 61: "auto_and_commute|travel"}, "--prior", "travel=30")
    assert result.code == 0, result.err
    assert "'travel' is a class that occurs in partial labels only." in result.err
    assert "Class sizes: travel: 30 rows" in result.err
    labels = pl.read_csv(tmp_path / "out.csv")["label"].to_list()
    assert labels.count("travel") == 30
    assert set(labels) == {"auto_and_commute", "banking", "travel"}


def test_labels_that_contain_the_separator_are_plain_names(label):
    result = label({row: f"x|{name}" for row, name in enumerate(documents()["label"], 1) if name})
    assert result.code == 0, result.err
    assert "as part of a plain name, because no part" in result.err


@pytest.mark.parametrize(
    ("sizes", "figures"),
    [
        (("banking=2", "travel=3"), ("40 rows", "'banking' and 'travel'", "at most 5")),
        (("auto_and_commute=90",), ("'auto_and_commute' must get 90 rows", "56")),
    ],
)
def test_sizes_that_contradict_partial_labels_are_refused(label, sizes, figures):
    options = [word for size in sizes for word in ("--prior", size)]
    result = label(dict.fromkeys(range(41, 81), "banking|travel"), *options)
    last = result.err.splitlines()[-1]
    assert result.code == 2
    assert "Reading 120 texts" not in result.err
    assert "the class sizes of --prior and the partial labels cannot both be met" in last
    assert all(figure in last for figure in figures)
    assert not any(word in last for word in ("class_prior", "count", "group", "orbid", "class 0"))


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (PriorError(PriorErrorKind.LOW_SUM, total=12, n_rows=10, fraction=1.2), "--prior cannot be used: they ask for"),
        (LabelError(LabelErrorKind.NOTHING_LABELED), "cannot be used: there are none. Label a few rows"),
    ],
)
def test_errors_of_the_fit_are_reported_without_python_parameters(label, monkeypatch, error, sentence):
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("transduce.cli.label_fit.TransductiveClassifier.fit", fail)
    result = label({})
    last = result.err.splitlines()[-1]
    assert result.code == 2
    assert sentence in last
    assert not any(word in last for word in ("class_prior", " y "))


def test_branch_sizes_are_reported_and_totalled(label, run_command, tmp_path):
    where = ("--model", tmp_path / "m.safetensors", "--report", tmp_path / "r.html")
    result = label({}, "--prior", "banking==25%", *where, paths=True)
    assert result.code == 0, result.err
    assert "Class sizes: banking: 24 rows (25 %)." in result.err
    note = next(line for line in result.err.splitlines() if "without a stated size" in line)
    assert "auto_and_commute/" in note
    assert "banking/" not in note
    assert "  banking, total" in result.err
    about = load_model(str(tmp_path / "m.safetensors")).about
    (branch,) = about["branches"]
    assert (branch["branch"], branch["asked_low"], branch["asked_high"], branch["assigned"]) == ("banking", 24, 24, 24)
    assert branch["labelled"] == sum(size["labelled"] for size in about["sizes"] if "banking/" in size["class"])
    assert about["prior"] == "Some class sizes were stated; the others are estimated from the labels and the texts."
    assert "<bdi>banking</bdi>" in (tmp_path / "r.html").read_text()
    assert "banking, total" in run_command("inspect", tmp_path / "m.safetensors").out


def test_sizes_of_all_branches_are_all_sizes(label):
    result = label({}, "--prior", "banking=0.25", "--prior", "auto_and_commute=0.7:0.8", "--json", paths=True)
    assert "without a stated size" not in result.err
    assert "auto_and_commute: 68 to 76 rows" in result.err
    assert json.loads(result.out)["prior"] == "Class sizes were stated."


def test_a_branch_that_may_have_any_size_has_no_total(label):
    result = label({}, "--prior", "banking=?", paths=True)
    assert result.code == 0, result.err
    assert ", total" not in result.err
    assert "Class sizes:" not in result.err


def test_impossible_branch_sizes_are_refused(label):
    result = label({}, "--prior", "banking=0.3", "--prior", "auto_and_commute=0.3", paths=True)
    assert result.code == 2
    assert not any(word in result.err for word in ("class_prior", "counts", "group"))


@pytest.mark.parametrize("is_list", [True, False])
def test_a_path_of_two_classes_may_have_been_meant_as_a_set(run_command, tmp_path, is_list):
    rows = documents().select("text", "label").to_dicts()
    rows[50]["label"] = ["banking", "travel"] if is_list else "banking/travel"
    (tmp_path / "documents.jsonl").write_text("\n".join(map(json.dumps, rows)))
    result = run_command("label", tmp_path / "documents.jsonl", "-o", tmp_path / "out.csv", *QUICK)
    name = "['banking', 'travel']" if is_list else "'banking/travel'"
    assert f'Reading {name} as a path. For one of several classes, write "banking|travel".' in result.err


def test_classes_without_a_size_give_no_warning(label):
    result = label({}, "--prior", "banking=0.33", "--strict", command="check")
    assert result.code == 0, result.out
    assert "note     2 labelled classes without a size" in result.out


def test_an_answer_that_is_a_set_is_not_a_new_class(label, tmp_path):
    (tmp_path / "ask.csv").write_text("row,label\n60,banking|travel\n61,banking|travl\n")
    result = label({}, "--answers", tmp_path / "ask.csv")
    assert "'banking|travel'" not in result.err.split("transduce:")[0]
    assert "the answer 'travl', which is no class. Did you mean 'travel'?" in result.err
    assert result.code == 2


@pytest.mark.parametrize("size", ["33", "=33", "33%"])
def test_a_number_of_rows_that_was_meant_as_per_cents_is_refused(run_command, tmp_path, size):
    write_table(documents(3000, 60), str(tmp_path / "documents.csv"))
    checked = run_command("check", tmp_path / "documents.csv", "--prior", f"banking={size}")
    assert ("Did you mean 33%?" in " ".join(checked.out.split())) == (size == "33")
    if size == "33":
        result = run_command("label", tmp_path / "documents.csv", "-o", tmp_path / "o.csv", "--prior", "banking=33")
        assert (result.code, (tmp_path / "o.csv").exists()) == (2, False)
        assert "--prior banking=33 is 33 rows (1.12 %), but " in result.err
        assert "Did you mean 33%? Write banking=33% for per cent, or banking==33 for exactly 33 rows." in result.err


@pytest.mark.parametrize("labels_are", ["random", "chosen"])
def test_labels_that_are_chosen_do_not_tell_rows_from_per_cents(run_command, tmp_path, monkeypatch, labels_are):
    def stop(task, *_):
        raise InputError(f"to be fitted with {task.plain_rows}")

    monkeypatch.setattr(label_fit, "label_rows", stop)
    write_table(documents(3000, 60), str(tmp_path / "documents.csv"))
    options = ("--prior", "banking=33", "--labels-are", labels_are)
    result = run_command("label", tmp_path / "documents.csv", "-o", tmp_path / "o.csv", *options)
    assert ("Did you mean 33%?" in result.err) == (labels_are == "random")
    assert ("to be fitted with {'banking': 33.0}" in result.err) == (labels_are == "chosen")
