"""The fit behind `label` and `queue`: checkpoints, files without a row to label, and rows without a word."""

import json
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from helpers.commands import QUICK, read
from helpers.documents import documents, vectors_of
from scipy import sparse

from transduce.cli import label_fit
from transduce.cli.main import run
from transduce.cli.progress import Progress


def test_a_checkpoint_resumes_a_killed_fit(example, run_ok, tmp_path, monkeypatch):
    whole, out, stages = tmp_path / "whole.csv", tmp_path / "out.csv", tmp_path / "stages"
    run_ok("label", example.file, "-o", whole, "--quiet")

    def killed(*arguments, **options):
        raise SystemError

    with monkeypatch.context() as patch:
        patch.setattr("transduce.cli.label_fit.make_model", killed)
        with pytest.raises(SystemError):
            run(["label", str(example.file), "-o", str(out), "--checkpoint", str(stages), "--quiet"])
    assert not out.exists()
    resumed = run_ok("label", example.file, "-o", out, "--checkpoint", stages)
    assert resumed.err.count(f"Resuming the fit from the checkpoint {stages}.") == 1
    assert out.read_bytes() == whole.read_bytes()


def test_a_checkpoint_of_the_first_stages_resumes_before_the_next_round(example, run_command, tmp_path, monkeypatch):
    command = (
        "label",
        example.file,
        "-o",
        tmp_path / "out.csv",
        "--annealing",
        "paper",
        "--checkpoint",
        tmp_path / "s",
    )

    def stop(self, row):
        if row.restart == 0 and row.stage == 3:
            raise SystemError

    with monkeypatch.context() as patch:
        patch.setattr(Progress, "show_round", stop)
        with pytest.raises(SystemError):
            run_command(*command)
    monkeypatch.setattr(Progress, "show_round", lambda self, row: self.say(f"stage {row.stage}"))
    lines = run_command(*command).err.splitlines()
    first = next(k for k, line in enumerate(lines) if line.startswith("stage "))
    assert lines[first - 1] == f"Resuming the fit from the checkpoint {tmp_path / 's'}."


def test_a_checkpoint_of_another_fit_is_refused_in_one_sentence(example, run_command, run_ok, tmp_path):
    command = (
        "label",
        example.file,
        "-o",
        tmp_path / "out.csv",
        *QUICK,
        "--checkpoint",
        tmp_path / "stages",
    )
    run_ok(*command)
    result = run_command(*command, "--alpha", "0.01")
    assert result.code == 2
    assert "Resuming" not in result.err
    last = result.err.splitlines()[-1]
    assert "belongs to a fit with other data or parameters. Choose another folder, or delete it." in last


@pytest.mark.parametrize(
    ("options", "expected"),
    [((), 3), (("--vectors", "v.npy"), 1), (("--vectors", "v.npy", "--annealing", "soft"), 3), (QUICK, 1)],
    ids=["words", "vectors", "vectors, soft", "words, none"],
)
def test_all_parts_of_the_fit_are_planned(options, expected, example, run_ok, tmp_path, monkeypatch):
    np.save(tmp_path / "v.npy", vectors_of(example.frame))
    monkeypatch.chdir(tmp_path)
    shown, show_round = [], Progress.show_round

    def show(self, row):
        show_round(self, row)
        shown.append((self.plan.fraction, row.restart))

    monkeypatch.setattr(Progress, "show_round", show)
    run_ok("label", example.file, "-o", tmp_path / "o.csv", *options)
    fractions, restarts = zip(*shown, strict=True)
    assert 1 + max(restarts) == expected
    assert fractions[0] < 0.3
    assert 0.85 < fractions[-1] <= 1.0


@pytest.mark.parametrize("prior", [(), ("--prior", "travel=0.5")])
def test_a_file_without_a_row_to_label_is_reported_and_written(run_ok, tmp_path, prior):
    frame = documents().with_columns(label="truth")
    frame.write_csv(tmp_path / "documents.csv")
    result = run_ok("label", tmp_path / "documents.csv", "-o", tmp_path / "out.csv", *QUICK, *prior)
    assert f"every row of {tmp_path / 'documents.csv'} has a label, so there is nothing to label." in result.err
    assert "'label' is not the column of labels, name another with --label." in result.err
    assert "Estimating" not in result.err
    assert "to meet the class sizes" not in result.err
    assert "Labelled 0" not in result.err
    assert "All rows are labelled, so the model learnt from your labels alone. Wrote" in result.err
    assert read(tmp_path / "out.csv")["label"].to_list() == frame["label"].to_list()


EMPTY = {5: "", 17: "  ", 40: "...", 50: None}
"""Texts without a word, by row number."""


def with_empty_texts(n_empty):
    """Documents of which the first rows of EMPTY have neither a word nor a label."""
    texts = documents()["text"].to_list()
    rows = dict(list(EMPTY.items())[:n_empty])
    for row, text in rows.items():
        texts[row - 1] = text
    is_empty = pl.int_range(1, pl.len() + 1).is_in(list(rows))
    return documents().with_columns(text=pl.Series(texts), label=pl.when(~is_empty).then("label"))


@pytest.mark.parametrize(
    ("n_empty", "features"),
    [
        (0, "tfidf"),
        (1, "hashing"),
        (4, "tfidf"),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in ((0, "hashing"), (1, "tfidf"), (4, "hashing"))),
    ],
)
def test_rows_without_a_word_are_reported(run_ok, tmp_path, features, n_empty):
    frame, page, model = with_empty_texts(n_empty), tmp_path / "r.html", tmp_path / "m.safetensors"
    frame.write_csv(tmp_path / "documents.csv")
    outputs = ("-o", tmp_path / "out.csv", "--report", page, "--model", model)
    result = run_ok("label", tmp_path / "documents.csv", *outputs, *QUICK, "--features", features, "--json")
    n_rows = frame["label"].null_count()
    assert json.loads(result.out)["n_empty"] == n_empty
    notes = {
        0: "",
        1: f"Note: 1 of {n_rows} rows to label is empty or has no word that occurs in enough texts, "
        "so its label is a guess by class size (row 5, which is line 6 of the file).",
        4: f"Note: 4 of {n_rows} rows to label are empty or have no word that occurs in enough texts, "
        "so their labels are guesses by class size (rows 5, 17, 40 and 50; row 5 is line 6 of the file).",
    }
    assert notes[n_empty] in result.err
    assert ("by class size" in result.err) == (n_empty > 0)
    sentence = f"{n_empty} document{' has' if n_empty == 1 else 's have'} nothing to be labelled by"
    assert (sentence in page.read_text()) == (n_empty > 0)
    again = tmp_path / "again.html"
    run_ok("report", model, tmp_path / "out.csv", "-o", again)
    assert (sentence in again.read_text()) == (n_empty > 0)


@pytest.mark.parametrize(("n_empty", "guess"), [(1, "its label is a guess"), (4, "their labels are guesses")])
def test_with_none_empty_rows_may_stay_without_a_label(run_ok, tmp_path, n_empty, guess):
    with_empty_texts(n_empty).write_csv(tmp_path / "documents.csv")
    result = run_ok("label", tmp_path / "documents.csv", "-o", tmp_path / "out.csv", *QUICK, "--none", "4")
    assert f"{guess} by class size, or none by --none (row" in result.err


@pytest.mark.parametrize(
    ("rows", "needs_supervised", "asks"),
    [(50.0, True, True), (50.0, False, False), (4.0, True, False), (0.0, True, False)],
)
def test_predictions_of_a_fit_ask_whether_rows_were_meant_as_per_cents(rows, needs_supervised, asks):
    task = SimpleNamespace(plain_rows={"tea": rows}, n_unlabeled=4000, parsed=SimpleNamespace(classes=("milk", "tea")))
    found = SimpleNamespace(needs_supervised=needs_supervised, predicted=np.array([0.6, 0.4]))
    notes = list(label_fit._percent_notes(task, SimpleNamespace(prior_diagnostics_=found)))
    sentence = "Note: --prior tea=50 is 50 rows (1.25 %), but the supervised classifier gives it 40%. Did you mean 50%?"
    assert [note.startswith(sentence) for note in notes] == [True] * asks


def test_empty_rows_with_a_label_are_counted_apart(run_ok, tmp_path):
    labeled = pl.col("label").is_not_null()
    documents().with_columns(text=pl.when(~labeled | (labeled.cum_sum() > 1)).then("text")).write_csv(
        tmp_path / "documents.csv"
    )
    result = run_ok("label", tmp_path / "documents.csv", "-o", tmp_path / "out.csv", *QUICK, "--json")
    assert json.loads(result.out)["n_empty"] == 0
    assert "by class size" not in result.err
    first = documents()["label"].is_not_null().arg_true()[0] + 1
    note = (
        "Note: 1 of 24 labelled rows is empty or has no word that occurs in enough texts, so nothing is learnt from it"
    )
    assert f"{note} (row {first}, which is line {first + 1} of the file)." in result.err


def test_features_are_described_in_words():
    def text(kind, n_columns, words=(), ngrams=1):
        features = SimpleNamespace(kind=kind, ngrams=ngrams)
        return label_fit._features_text(SimpleNamespace(features=features, vocabulary=words), n_columns)

    assert text("tfidf", 2, ("tea", "milk")) == "2 different words"
    assert text("tfidf", 3, ("tea", "milk", "milk tea"), 2) == "3 different words and pairs of words"
    assert text("hashing", 1024) == "words hashed to 1024 numbers"
    assert text("vectors", 384) == text("embeddings", 384) == "384 numbers per text"
    assert text("mix", 386, ("tea", "milk")) == "2 different words and 384 numbers per text"


def test_vectors_of_zeros_are_reported(example, run_ok, tmp_path):
    rng = np.random.default_rng(0)
    vectors = sparse.csr_matrix(rng.normal(size=(example.frame.height, 5)))
    empty = example.frame["label"].is_null().arg_true()[3]
    vectors.data[vectors.indptr[empty] : vectors.indptr[empty + 1]] = 0.0  # stored zeros
    sparse.save_npz(tmp_path / "vectors.npz", vectors)
    result = run_ok("label", example.file, "-o", tmp_path / "out.csv", "--vectors", tmp_path / "vectors.npz", *QUICK)
    guess = f"so its label is a guess by class size (row {empty + 1}, which is line {empty + 2} of the file)."
    assert f"rows to label has a vector of zeros, {guess}" in result.err
