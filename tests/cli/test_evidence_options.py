"""--classes and --guess: labels without labels, what is refused, and the suspicious guesses in results and queue."""

import numpy as np
import polars as pl
import pytest
from helpers.commands import QUICK, read
from helpers.documents import DOMAINS, documents

from transduce.cli.evidence_options import check_spelling
from transduce.cli.formats import write_table

WORDS = {
    "auto_and_commute": ("car ", "tire", "gas", "oil", "traffic", "directions"),
    "banking": ("bank", "bill", "account", "balance", "pin ", "transfer"),
    "travel": ("flight", "hotel", "travel", "luggage", "visa", "plug"),
}


@pytest.fixture(scope="module")
def guessed(tmp_path_factory):
    """Documents without labels, and a column of guesses of which a quarter is wrong."""
    frame, rng = documents(400), np.random.default_rng(0)
    wrong = rng.random(frame.height) < 0.25
    names = [DOMAINS[(DOMAINS.index(t) + 1) % 3] if bad else t for t, bad in zip(frame["truth"], wrong, strict=True)]
    path = tmp_path_factory.mktemp("guessed") / "documents.csv"
    write_table(frame.select("id", "text", "truth", pl.Series("llm", names)), str(path))
    return path


@pytest.fixture
def installed(monkeypatch):
    """Whether an encoder is installed does not matter."""
    monkeypatch.setattr("transduce.cli.evidence_options.default_encoder", lambda: "any")


@pytest.fixture
def encoder(monkeypatch, installed):
    """An encoder that knows which words belong to which class."""

    def scores(texts, descriptions, encoding):
        return np.array([[sum(w in text for w in WORDS[name]) for name in descriptions] for text in texts], float)

    monkeypatch.setattr("transduce.cli.evidence_options.name_scores", scores)


def test_guesses_are_corrected_and_listed(guessed, run_ok, tmp_path):
    out, report = tmp_path / "out.csv", tmp_path / "r.html"
    done = run_ok("label", guessed, "--guess", "llm", "--text", "text", "-o", out, "--report", report, *QUICK)
    assert "guesses look wrong" in done.err
    frame = read(out).with_columns(pl.col("suspicion").cast(pl.Float64))
    accuracy = [(frame[column] == frame["truth"]).mean() for column in ("llm", "label")]
    assert accuracy[1] > accuracy[0] + 0.05
    first = frame.sort("suspicion", descending=True).head(10)
    assert (first["llm"] != first["truth"]).mean() >= 0.9
    assert "Suspicious guesses" in report.read_text(encoding="utf-8")


def test_the_queue_begins_with_suspicious_guesses(guessed, run_ok, tmp_path):
    run_ok("queue", guessed, "--guess", "llm", "--text", "text", "-n", "8", "-o", tmp_path / "ask.csv", *QUICK)
    rows = read(tmp_path / "ask.csv")["row"].cast(pl.Int64).to_list()
    frame = read(guessed)[[row - 1 for row in rows]]
    assert (frame["llm"] != frame["truth"]).mean() >= 0.75


def test_class_names_start_without_labels(guessed, encoder, run_ok, tmp_path):
    out = tmp_path / "out.csv"
    run_ok("label", guessed, "--classes", ", ".join(DOMAINS), "--text", "text", "-o", out, "--prior", "equal", *QUICK)
    frame = read(out)
    assert (frame["label"] == frame["truth"]).mean() > 0.6
    assert set(frame["label"]) == set(DOMAINS)


def test_only_a_column_named_as_labels_is_one(guessed, encoder, run_ok, tmp_path):
    """Guesses in "label", and a column that is partly empty: neither has labels, and results get a column of theirs."""
    frame = read(guessed).rename({"llm": "label"})
    some = pl.when(pl.int_range(pl.len()) % 3 == 0).then(pl.lit("anna")).otherwise(pl.lit(None))
    write_table(frame.with_columns(some.alias("annotator"), pl.lit(7).alias("suspicion")), str(tmp_path / "in.csv"))
    done = run_ok(
        *("label", tmp_path / "in.csv", "--guess", "label", "--text", "text", "-o", tmp_path / "out.csv"), *QUICK
    )
    assert "Using no label column." in done.err
    out = read(tmp_path / "out.csv")
    added = out.columns[len(frame.columns) + 2 :]
    assert added == ["label_2", "confidence", "runner_up", "overruled", "given", "suspicion_2"]
    assert set(out["label_2"]) == set(DOMAINS)
    assert set(out["suspicion"].cast(pl.Int64)) == {7}
    wrong = out["label_2"] != out["label"]
    assert ((out["suspicion_2"].cast(pl.Float64) > 0) == wrong).all()
    assert not (out["overruled"].str.to_lowercase().eq("true") & ~wrong).any()
    names = ", ".join(DOMAINS)
    run_ok("label", tmp_path / "in.csv", "--classes", names, "--truth", "label", "-o", tmp_path / "out.csv", *QUICK)
    assert "label_2" in read(tmp_path / "out.csv").columns


def test_results_with_guesses_are_labelled_again(guessed, run_ok, tmp_path):
    first, out = tmp_path / "first.csv", tmp_path / "out.csv"
    for source, target in ((guessed, first), (first, out)):
        run_ok("label", source, "--guess", "llm", "--text", "text", "-o", target, *QUICK)
    assert read(out).columns[4:] == ["label", "confidence", "runner_up", "overruled", "given", "suspicion"]


def test_answers_know_the_classes_of_the_guesses(guessed, run_ok, run_command, tmp_path):
    """The command that `queue` prints has the guesses, and a misspelled answer is refused."""
    ask = tmp_path / "ask.csv"
    done = run_ok("queue", guessed, "--guess", "llm", "--text", "text", "-n", "4", "-o", ask, *QUICK)
    assert f"label {guessed} --guess llm --answers {ask}" in done.err
    assert "not a random sample" not in done.err
    answers = read(ask).with_columns(pl.Series("label", ["travell", None, None, None]))
    write_table(answers, str(ask))
    command = "label", guessed, "--guess", "llm", "--text", "text", "--answers", ask, "-o", tmp_path / "out.csv"
    done = run_command(*command, *QUICK)
    assert done.code == 2
    assert "Did you mean 'travel'?" in done.err


def test_misspelled_guesses_are_noted(guessed, run_ok, tmp_path):
    frame = read(guessed)
    names = ["bankinng", *frame["llm"].to_list()[1:]]
    write_table(frame.with_columns(pl.Series("llm", names)), str(tmp_path / "in.csv"))
    done = run_ok(
        *("label", tmp_path / "in.csv", "--guess", "llm", "--text", "text", "-o", tmp_path / "out.csv"), *QUICK
    )
    assert "'bankinng' (row 1, which is line 2 of the file) is rare and close to 'banking'" in done.err


def test_class_names_without_an_encoder_say_what_to_install(guessed, run_command, tmp_path, monkeypatch):
    monkeypatch.setattr("transduce.cli.evidence_options.default_encoder", lambda: None)
    done = run_command("label", guessed, "--classes", "tea, coffee", "-o", tmp_path / "out.csv")
    assert done.err.startswith("transduce: --classes needs an encoder, but neither")
    assert "pip install" in done.err


@pytest.mark.parametrize("command", ["label", "export"])
def test_a_class_name_that_is_nearly_a_label_is_refused(encoder, run_command, tmp_path, command):
    write_table(documents(60), str(tmp_path / "in.csv"))
    names = "banking, travle, auto_and_commute"
    done = run_command(command, tmp_path / "in.csv", "--text", "text", "-o", tmp_path / "out.csv", "--classes", names)
    assert done.code == 2
    assert "--classes names 'travle', which no row is labelled with. Did you mean 'travel'?" in done.err
    check_spelling(["travle", "travel"], ["travel", None])  # both are named


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--classes", "tea, coffee", "--guess", "llm"), "cannot be combined"),
        (("--classes", "tea, "), "class name 2 is empty"),
        (("--classes", "tea, Tea"), "are the same"),
        (("--classes", "hot/tea, hot/milk, hot, cold"), "a branch with classes under it"),
        (("--guess", "nothing"), "nothing"),
        (("--guess", "llm", "--workers", "2"), "--guess is for rows in memory, not for --workers"),
        (("--guess", "llm", "--device", "cpu"), "--guess is for rows in memory, not for --device"),
    ],
)
def test_contradictory_options_are_refused(guessed, installed, run_command, tmp_path, options, message):
    done = run_command("label", guessed, *options, "--text", "text", "-o", tmp_path / "out.csv")
    assert done.code == 2
    assert message in done.err
    assert not (tmp_path / "out.csv").exists()
