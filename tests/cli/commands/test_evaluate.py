"""transduce evaluate: scores against those of scikit-learn, and which labels count as true."""

import json
import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from helpers.commands import QUICK, read
from helpers.documents import N_LABELED, N_ROWS, documents, vectors_of
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score, precision_recall_fscore_support

from transduce.cli.commands.evaluate import as_text, score_labels
from transduce.cli.errors import InputError
from transduce.cli.formats import write_table
from transduce.features import training_rows
from transduce.model_file import load_model, save_model

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
    known = example.frame["text"].head(N_LABELED).to_list()
    fresh = documents(n_rows=340, n_labeled=0, seed=7).drop("label").filter(~pl.col("text").is_in(known)).head(300)
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
    assert (found["rows"], found["trained"]) == (N_ROWS - 48, 48)
    done = read(tmp_path / "p.csv")[48:]
    top = [[path.split("/")[0] for path in done[name]] for name in ("truth", "label_2")]
    assert [level["depth"] for level in found["levels"]] == [1]
    assert found["levels"][0]["micro_f"] == pytest.approx(accuracy_score(*top))
    assert found["levels"][0]["micro_f"] >= found["micro_f"]


def test_unknown_labels_are_reported(example, run_ok, tmp_path):
    write_table(example.frame.with_columns(truth=pl.lit("else")), str(tmp_path / "other.csv"))
    result = run_ok("evaluate", example.model, tmp_path / "other.csv", "--label", "truth")
    assert "none of the true labels is a class of the model ('else', for example)" in result.err


# ---- labels that are not evidence: those of the model itself, and those that it was fitted with

MEANINGLESS = r"the model was trained with every label in column '\w+' of .*meaningless. Pass other labelled rows."
LEFT_OUT = f"{N_LABELED} rows left out, because the model was trained with their labels"


def test_the_labels_of_a_labelled_output_are_refused(example, run_command):
    result = run_command("evaluate", example.model, example.out)
    assert result.code == 2
    assert re.search(MEANINGLESS, result.err)
    assert "macro F" not in result.out


def test_the_labels_that_the_model_was_fitted_with_are_refused(example, run_command):
    result = run_command("evaluate", example.model, example.file, "--label", "label")
    assert result.code == 2
    assert re.search(MEANINGLESS, result.err)


def test_labels_that_a_person_checked_later_are_scored(example, run_ok, tmp_path):
    checked = pl.int_range(pl.len()) < N_LABELED + 30
    frame = read(example.out).with_columns(pl.when(checked).then(pl.lit("true")).otherwise("given").alias("given"))
    write_table(frame, str(tmp_path / "checked.csv"))
    result = run_ok("evaluate", example.model, tmp_path / "checked.csv")
    assert f"only the {N_LABELED + 30} rows with given = true" in result.err
    note = "because they are difficult, so the scores are probably too low"
    assert "30 of the 30 labels" in result.err
    assert note in result.err
    assert "too low" not in run_ok("evaluate", example.model, example.out, "--label", "truth").err
    assert f"30 rows with a known label, {N_ROWS - N_LABELED - 30} without\n{LEFT_OUT}" in result.out


def test_a_true_column_is_scored_where_it_was_not_used_in_training(example, run_ok):
    for file in (example.file, example.out):
        result = run_ok("evaluate", example.model, file, "--label", "truth")
        assert f"{N_ROWS - N_LABELED} rows with a known label\n{LEFT_OUT}\n" in result.out
        assert "Using only" not in result.err
    found = json.loads(run_ok("evaluate", example.model, example.out, "--label", "truth", "--json").out)
    assert (found["rows"], found["left_out"], found["trained"]) == (N_ROWS - N_LABELED, 0, N_LABELED)
    run_ok("predict", example.model, example.out, "-o", example.folder / "again.csv")
    done = read(example.folder / "again.csv")[N_LABELED:]
    assert found["micro_f"] == pytest.approx(accuracy_score(done["truth"], done["label_2"]))


def test_a_training_row_with_another_label_is_scored(example, run_ok, tmp_path):
    wrong = example.frame.with_columns(truth=pl.lit("banking"))
    write_table(wrong, str(tmp_path / "wrong.csv"))
    n_banking = example.frame.head(N_LABELED)["label"].to_list().count("banking")
    found = json.loads(run_ok("evaluate", example.model, tmp_path / "wrong.csv", "--label", "truth", "--json").out)
    assert found["trained"] == n_banking


def test_training_rows_are_recognised_in_any_order_and_format(example, run_ok, tmp_path):
    frame = example.frame.reverse().with_columns(pl.col("text").str.to_uppercase() + "  !")
    write_table(frame, str(tmp_path / "other.jsonl"))
    assert LEFT_OUT in run_ok("evaluate", example.model, tmp_path / "other.jsonl", "--label", "truth").out


@pytest.mark.parametrize("features", ["hashing", "vectors"])
def test_training_rows_of_other_features_are_recognised(features, example, run_ok, run_command, tmp_path):
    frame = example.frame.with_columns(pl.Series("vector", vectors_of(example.frame).tolist()))
    frame.write_parquet(tmp_path / "rows.parquet")
    file, model = tmp_path / "rows.parquet", tmp_path / "m.safetensors"
    options = ("--vectors", "vector") if features == "vectors" else ()
    fit = ("--features", features) if features == "hashing" else options
    run_ok("label", file, *fit, "-o", tmp_path / "o.parquet", "--model", model, *QUICK)
    assert LEFT_OUT in run_ok("evaluate", model, file, *options, "--label", "truth").out
    assert run_command("evaluate", model, tmp_path / "o.parquet", *options).code == 2


def test_the_labels_of_predict_are_refused(example, run_command, run_ok, tmp_path):
    write_table(documents(seed=4).drop("label"), str(tmp_path / "fresh.csv"))
    run_ok("predict", example.model, tmp_path / "fresh.csv", "-o", tmp_path / "p.csv")
    result = run_command("evaluate", example.model, tmp_path / "p.csv")
    assert result.code == 2
    assert "column 'label' of" in result.err
    assert "holds the labels that `transduce predict` wrote" in result.err
    assert "macro F" in run_ok("evaluate", example.model, tmp_path / "p.csv", "--label", "truth").out
    frame = read(tmp_path / "p.csv").rename({"label": "checked"})
    write_table(frame, str(tmp_path / "checked.csv"))
    assert "macro F 1.0000" in run_ok("evaluate", example.model, tmp_path / "checked.csv", "--label", "checked").out


def test_predictions_for_a_labelled_output_do_not_hide_that_label_wrote_it(example, run_command, run_ok, tmp_path):
    run_ok("predict", example.model, example.out, "-o", tmp_path / "p.csv")
    for column in ("label", "label_2"):
        result = run_command("evaluate", example.model, tmp_path / "p.csv", "--label", column)
        assert result.code == 2
        assert ("transduce predict" if column == "label_2" else "was trained with every label") in result.err


def test_a_model_without_digests_says_that_scores_are_optimistic(example, run_ok, tmp_path):
    model = load_model(str(example.model))
    about = {key: value for key, value in model.about.items() if key != "labelled_rows"}
    save_model(replace(model, about=about), str(tmp_path / "old.safetensors"))
    for file, label in ((example.out, "label"), (example.file, "truth")):
        assert OPTIMISTIC in run_ok("evaluate", tmp_path / "old.safetensors", file, "--label", label).err


def test_with_a_sample_of_the_digests_the_rest_is_called_optimistic(example, run_ok, tmp_path, monkeypatch):
    monkeypatch.setattr(training_rows, "MAX_DIGESTS", 10)
    run_ok("label", example.file, "-o", tmp_path / "o.csv", "--model", tmp_path / "m.safetensors", *QUICK)
    result = run_ok("evaluate", tmp_path / "m.safetensors", tmp_path / "o.csv")
    assert OPTIMISTIC in result.err
    assert f"{N_LABELED - 10} rows with a known label" in result.out
    assert "10 rows left out" in result.out


def test_evaluate_without_a_given_label_is_refused(example, run_command, tmp_path):
    frame = read(example.out).with_columns(given=pl.lit("false"))
    write_table(frame, str(tmp_path / "none.csv"))
    result = run_command("evaluate", example.model, tmp_path / "none.csv")
    assert result.code == 2
    assert "only the model's own labels" in result.err


def test_scores_on_other_rows_are_not_called_optimistic(example, run_ok, tmp_path):
    write_table(documents(seed=4), str(tmp_path / "fresh.csv"))
    assert OPTIMISTIC not in run_ok("evaluate", example.model, tmp_path / "fresh.csv", "--label", "truth").err


def test_one_class_is_scored_without_a_warning():
    found = score_labels(["tea", "tea"], ["tea", "tea"], "here")
    assert found["confusion"] == [[2]]
    assert found["macro_f"] == 1.0
