"""transduce evaluate: scores against those of scikit-learn, and which labels count as true."""

import json

import numpy as np
import polars as pl
import pytest
from helpers.commands import QUICK, read
from helpers.documents import N_LABELED, N_ROWS, documents
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score, precision_recall_fscore_support

from transduce.cli.commands.evaluate import as_text, score_labels
from transduce.cli.errors import InputError
from transduce.cli.formats import write_table

OPTIMISTIC = "too optimistic"


@pytest.mark.parametrize("seed", range(5))
def test_scores_are_those_of_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    names = np.array(["rec/a", "rec/b", "sci/a", "sci/b/c"])
    truth, guess = names[rng.integers(0, 4, 60)], names[rng.integers(0, 3, 60)]
    found = score_labels([*truth, None], [*guess, "rec/a"], "here", tree=True)
    labels = sorted({*truth, *guess})
    assert found["macro_f"] == pytest.approx(f1_score(truth, guess, average="macro", zero_division=0))
    assert found["micro_f"] == pytest.approx(f1_score(truth, guess, average="micro"))
    confusion = confusion_matrix(truth, guess, labels=labels)
    assert np.array_equal(found["confusion"], confusion)
    assert (found["rows"], found["left_out"], len(found["levels"])) == (60, 1, 2)
    top = [[name.split("/")[0] for name in side] for side in (truth, guess)]
    assert found["levels"][0]["macro_f"] == pytest.approx(f1_score(*top, average="macro"))
    text = as_text(found)
    assert "macro F" in text
    first = text.split("(true -> predicted):\n")[1].split()[0]
    assert int(first) == (confusion - np.diag(np.diag(confusion))).max()


def test_confusions_have_a_heading_only_where_there_are_any():
    assert "most frequent confusions (true -> predicted):\n       1  a -> b" in as_text(
        score_labels(["a", "b"], ["b", "b"], "here")
    )
    assert "confusions" not in as_text(score_labels(["a", "b"], ["a", "b"], "here"))


def test_nothing_to_compare_with():
    with pytest.raises(InputError, match="no label to compare with"):
        score_labels([None], ["a"], "here")


def test_evaluate_agrees_with_scikit_learn(example, run_ok, tmp_path):
    fresh = documents(n_rows=300, n_labeled=0, seed=7).drop("label")
    write_table(fresh, str(tmp_path / "fresh.jsonl"))
    found = json.loads(run_ok("evaluate", example.model, tmp_path / "fresh.jsonl", "--label", "truth", "--json").out)
    run_ok("predict", example.model, tmp_path / "fresh.jsonl", "-o", tmp_path / "p.csv")
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
    text = run_ok("evaluate", example.model, tmp_path / "fresh.jsonl", "--label", "truth").out
    assert f"macro F {f.mean():.4f}" in text
    assert "most frequent confusions" in text


def test_evaluate_shows_the_levels_of_a_tree(run_ok, tmp_path):
    write_table(documents(n_labeled=48, paths=True), str(tmp_path / "documents.csv"))
    run_ok("label", tmp_path / "documents.csv", "-o", tmp_path / "o.csv", "--model", tmp_path / "m.safetensors", *QUICK)
    found = json.loads(
        run_ok("evaluate", tmp_path / "m.safetensors", tmp_path / "documents.csv", "--label", "truth", "--json").out
    )
    run_ok("predict", tmp_path / "m.safetensors", tmp_path / "documents.csv", "-o", tmp_path / "p.csv")
    done = read(tmp_path / "p.csv")
    top = [[path.split("/")[0] for path in done[name]] for name in ("truth", "label_2")]
    assert [level["depth"] for level in found["levels"]] == [1]
    assert found["levels"][0]["micro_f"] == pytest.approx(accuracy_score(*top))
    assert found["levels"][0]["micro_f"] >= found["micro_f"]


def test_unknown_labels_are_reported(example, run_ok, tmp_path):
    write_table(example.frame.with_columns(truth=pl.lit("else")), str(tmp_path / "other.csv"))
    result = run_ok("evaluate", example.model, tmp_path / "other.csv", "--label", "truth")
    assert "none of the true labels is a class of the model ('else', for example)" in result.err


def test_evaluate_takes_only_labels_that_were_given(example, run_command):
    result = run_command("evaluate", example.model, example.out)
    assert result.code == 0
    assert f"only the {N_LABELED} rows with given = true" in result.err
    assert f"{N_LABELED} rows with a known label, {N_ROWS - N_LABELED} without" in result.out
    assert OPTIMISTIC in result.err


def test_evaluate_takes_the_truth_of_any_row_where_it_is_named(example, run_command):
    result = run_command("evaluate", example.model, example.out, "--label", "truth")
    assert f"{N_ROWS} rows with a known label" in result.out
    assert "Using only" not in result.err


def test_evaluate_without_a_given_label_is_refused(example, run_command, tmp_path):
    frame = read(example.out).with_columns(given=pl.lit("false"))
    write_table(frame, str(tmp_path / "none.csv"))
    result = run_command("evaluate", example.model, tmp_path / "none.csv")
    assert result.code == 2
    assert "only the model's own labels" in result.err


def test_scores_on_the_training_file_are_called_optimistic(example, run_command, tmp_path):
    assert OPTIMISTIC in run_command("evaluate", example.model, example.file, "--label", "truth").err
    write_table(documents(seed=4), str(tmp_path / "fresh.csv"))
    assert OPTIMISTIC not in run_command("evaluate", example.model, tmp_path / "fresh.csv", "--label", "truth").err


def test_one_class_is_scored_without_a_warning():
    found = score_labels(["tea", "tea"], ["tea", "tea"], "here")
    assert found["confusion"] == [[2]]
    assert found["macro_f"] == 1.0
