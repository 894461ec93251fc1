"""What a newcomer meets: files that `label` wrote given back to it, Excel's files, odd labels, arguments exchanged."""

import re
from pathlib import Path

import polars as pl
import pytest
from helpers.documents import DOMAINS, N_LABELLED, N_ROWS, pile

from transduce.cli import progress
from transduce.cli.formats import read_table, write_table
from transduce.cli.main import run
from transduce.history import HistoryRow

QUICK = ("--annealing", "none")
ADDED = ["confidence", "runner_up", "overruled", "given"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pile, the table that `label` made of it, and the model."""
    path = tmp_path_factory.mktemp("place")
    write_table(pile(), str(path / "pile.csv"))
    where = ["-o", str(path / "out.csv"), "--model", str(path / "m.safetensors")]
    assert run(["label", str(path / "pile.csv"), *where, *QUICK, "--quiet", "--prior", "travel=30"]) == 0
    return path


def read(path: object) -> pl.DataFrame:
    return read_table(str(path)).frame


# a file that `label` wrote


def test_evaluate_takes_only_labels_that_were_given(place, tell):
    told = tell("evaluate", place / "m.safetensors", place / "out.csv")
    assert told.code == 0
    assert f"Took only the {N_LABELLED} rows whose label was given; the others hold the model's own labels." in told.err
    assert f"{N_LABELLED} rows with a known label, {N_ROWS - N_LABELLED} without" in told.out
    assert "the figures flatter" in told.err


def test_evaluate_takes_the_truth_of_any_row_where_it_is_named(place, tell):
    told = tell("evaluate", place / "m.safetensors", place / "out.csv", "--label", "truth")
    assert f"{N_ROWS} rows with a known label" in told.out
    assert "Took only" not in told.err


def test_evaluate_without_a_given_label_is_refused(place, tell, tmp_path):
    frame = read(place / "out.csv").with_columns(given=pl.lit("false"))
    write_table(frame, str(tmp_path / "none.csv"))
    told = tell("evaluate", place / "m.safetensors", tmp_path / "none.csv")
    assert told.code == 2
    assert "the model's own labels alone" in told.err


def test_figures_on_the_training_file_are_said_to_flatter(place, tell, tmp_path):
    said = "Note: the model was made from these rows, their labels among them, so the figures flatter it."
    assert said in tell("evaluate", place / "m.safetensors", place / "pile.csv", "--label", "truth").err
    write_table(pile(seed=4), str(tmp_path / "fresh.csv"))
    assert said not in tell("evaluate", place / "m.safetensors", tmp_path / "fresh.csv", "--label", "truth").err


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_labelling_again_replaces_the_old_results(place, tell, tmp_path, suffix):
    first, second = tmp_path / f"first.{suffix}", tmp_path / f"second.{suffix}"
    tell("label", place / "pile.csv", "-o", first, *QUICK, "--prior", "travel=30")
    told = tell("label", first, "-o", second, *QUICK, "--prior", "travel=60")
    assert told.code == 0
    assert f"{first} holds the results of an earlier run: the {N_LABELLED} labels with given = true" in told.err
    done = read(second)
    assert done.columns == [*pile().columns, *ADDED]
    assert done["given"].cast(pl.String).to_list() == read(first)["given"].cast(pl.String).to_list()
    assert done.filter(pl.col("given").cast(pl.String) == "false")["label"].value_counts().filter(label="travel")[
        "count"
    ].to_list() == [60]


@pytest.mark.parametrize("options", [(), ("--label", "category")])
def test_labelling_again_where_the_labels_had_a_column_of_their_own(tell, tmp_path, options):
    write_table(pile().rename({"label": "category"}), str(tmp_path / "pile.csv"))
    tell("label", tmp_path / "pile.csv", "-o", tmp_path / "a.csv", *QUICK)
    told = tell("label", tmp_path / "a.csv", "-o", tmp_path / "b.csv", *QUICK, *options)
    assert "results of an earlier run" in told.err
    assert read(tmp_path / "b.csv").rows() == read(tmp_path / "a.csv").rows()


def test_a_column_beside_the_results_that_may_be_a_persons_own_stays(tell, tmp_path):
    frame = pile().rename({"truth": "label_2"})
    write_table(frame, str(tmp_path / "pile.csv"))
    tell("label", tmp_path / "pile.csv", "-o", tmp_path / "a.csv", *QUICK)
    tell("label", tmp_path / "a.csv", "-o", tmp_path / "b.csv", *QUICK)
    assert read(tmp_path / "b.csv")["label_2"].to_list() == frame["label_2"].to_list()


def test_a_checked_label_counts_as_given(place, tell, tmp_path):
    row = N_LABELLED + 5
    edited = read(place / "out.csv").with_row_index("n").with_columns(
        pl.when(pl.col("n") == row).then(pl.lit("true")).otherwise("given").alias("given"),
        pl.when(pl.col("n") == row).then(pl.lit("banking")).otherwise("label").alias("label"),
    )  # fmt: skip
    write_table(edited.drop("n"), str(tmp_path / "edited.csv"))
    tell("label", tmp_path / "edited.csv", "-o", tmp_path / "b.csv", *QUICK)
    assert read(tmp_path / "b.csv").row(row, named=True)["label"] == "banking"


def test_a_queue_and_a_check_of_results_see_the_given_labels_alone(place, tell, tmp_path):
    assert tell("queue", place / "out.csv", "-o", tmp_path / "q.csv", "-n", 3, *QUICK).code == 0
    (tmp_path / "q.csv").write_text("row,label\n100,travel\n")
    told = tell("label", place / "out.csv", "--answers", tmp_path / "q.csv", "-o", tmp_path / "b.csv", *QUICK)
    assert told.code == 0, told.err
    assert f"{N_LABELLED + 1} labelled rows" in told.err
    assert "nothing is left to be labelled" not in tell("check", place / "out.csv").out


# labels


def test_odd_labels_are_noted_before_the_fit(tell, tmp_path):
    frame = pile().with_columns(
        pl.when(pl.col("id") == 1).then(pl.lit("Travel ")).when(pl.col("id") == 2).then(pl.lit("N/A"))
        .otherwise("label").alias("label")
    )  # fmt: skip
    write_table(frame, str(tmp_path / "pile.csv"))
    for command in ("label", "queue"):
        told = tell(command, tmp_path / "pile.csv", "-o", tmp_path / "o.csv", *QUICK)
        notes = [line for line in told.err.splitlines() if line.startswith("Note: ")]
        assert any("'Travel' (1)" in line and "Write them alike" in line for line in notes)
        assert any("'N/A' (row 2) counts as a class" in line and "empty" in line for line in notes)
    assert tell("label", tmp_path / "pile.csv", "-o", tmp_path / "o.csv", *QUICK, "--quiet").err == ""
    assert "'N/A' (row 2) counts as a class" in tell("check", tmp_path / "pile.csv").out


def test_answers_are_counted_and_new_classes_named(place, tell, tmp_path):
    (tmp_path / "q.csv").write_text("row,label\n30,travel\n31,\n32,traval\n33,\n")
    told = tell("label", place / "pile.csv", "--answers", tmp_path / "q.csv", "-o", tmp_path / "o.csv", *QUICK)
    assert "2 answers were filled in, 2 left empty." in told.err
    assert "Note: the answer 'traval'" in told.err
    assert "is a new class; the nearest known is 'travel'." in told.err
    assert "the answer 'travel'" not in told.err


# Excel


def european(frame: pl.DataFrame) -> bytes:
    """As Excel writes "CSV UTF-8" in much of Europe."""
    cells = [frame.columns, *frame.with_columns(pl.all().cast(pl.String).fill_null("")).rows()]
    return ("\ufeff" + "".join(";".join(f'"{c}"' if ";" in c else c for c in row) + "\r\n" for row in cells)).encode()


def test_a_european_file_is_written_as_one(place, tell, tmp_path):
    frame = pile().with_columns(note=pl.lit("a, b; c"))
    (tmp_path / "pile.csv").write_bytes(european(frame))
    for name, command in {
        "out.csv": ("label", tmp_path / "pile.csv", *QUICK),
        "new.csv": ("predict", place / "m.safetensors", tmp_path / "pile.csv"),
        "ask.csv": ("queue", tmp_path / "pile.csv", "-n", 3, *QUICK),
    }.items():
        told = tell(*command, "-o", tmp_path / name)
        assert told.code == 0, told.err
        content = (tmp_path / name).read_bytes()
        assert content.startswith(b"\xef\xbb\xbf")
        header = content.decode("utf-8-sig").splitlines()[0]
        assert header.count(";") == len(read(tmp_path / name).columns) - 1
        assert "," not in header
    assert read(tmp_path / "out.csv").select(pl.exclude(*ADDED, "label")).rows() == (
        read(tmp_path / "pile.csv").drop("label").rows()
    )


@pytest.mark.parametrize("name", ["out.tsv", "out.jsonl"])
def test_other_formats_know_no_dialect(tell, tmp_path, name):
    (tmp_path / "pile.csv").write_bytes(european(pile()))
    tell("label", tmp_path / "pile.csv", "-o", tmp_path / name, *QUICK)
    assert not (tmp_path / name).read_bytes().startswith(b"\xef\xbb\xbf")


def test_files_that_excel_did_not_save_as_utf8_are_refused_with_the_way_out(tell, tmp_path):
    (tmp_path / "a.csv").write_bytes(european(pile()).replace(b"travel", "vögel".encode("cp1252")))
    assert 'in Excel choose "CSV UTF-8"' in tell("check", tmp_path / "a.csv").err
    (tmp_path / "a.xlsx").write_bytes(b"PK\x03\x04")
    told = tell("label", tmp_path / "a.xlsx", "-o", tmp_path / "o.csv")
    assert (told.code, "Excel files are not read" in told.err, "CSV UTF-8" in told.err) == (2, True, True)


# what is said


def test_the_sizes_are_told_unless_it_is_quiet(place, tell, tmp_path):
    told = tell("label", place / "pile.csv", "-o", tmp_path / "o.csv", *QUICK, "--prior", "travel=0.5")
    assert "Class sizes: travel: 48 rows (50 %)." in told.err
    counts = dict(read(tmp_path / "o.csv").filter(given="false")["label"].value_counts().rows())
    found = re.findall(r"^  (\w+) +(\d+) +\d+ %$", told.err, re.M)
    assert {name: int(count) for name, count in found} == counts
    assert [int(count) for _, count in found] == sorted(counts.values(), reverse=True)


def test_of_many_classes_twenty_are_told(tell, tmp_path):
    frame = pl.DataFrame({"text": [f"word{k % 25} thing" for k in range(75)]}).with_row_index("k")
    label = pl.when(pl.col("k") < 25).then(pl.format("c{}", pl.col("k"))).alias("label")
    write_table(frame.select("text", label), str(tmp_path / "a.csv"))
    told = tell("label", tmp_path / "a.csv", "-o", tmp_path / "o.csv", *QUICK)
    assert len(re.findall(r"^  c\d+ ", told.err, re.M)) == 20
    assert "  and 5 more\n" in told.err


@pytest.mark.parametrize("loss", ["hinge", "maxent"])
def test_no_warning_of_numpy_reaches_the_user(place, tell, tmp_path, loss):
    """One class gets all rows, which no temperature can spread over the others."""
    told = tell("label", place / "pile.csv", "-o", tmp_path / "o.csv", "--prior", "banking=1", "--loss", loss)
    assert told.code == 0
    assert "encountered" not in told.err
    assert "Class sizes: banking: 96 rows (100 %)." in told.err
    assert "class_prior" not in told.err
    assert "'banking' is to get 100.0% of the rows" in told.err


def test_no_time_is_foretold_before_some_of_it_has_passed():
    row = HistoryRow(1, 0.01, 0.4, 12, 1e-3, 2.0)
    assert "left" not in progress.describe(row, 0.04, 2.0)
    assert "about 38 s left" in progress.describe(row, 0.05, 2.0)


def test_fewer_rows_than_asked_for_are_explained(tell, tmp_path):
    frame = pile(n_rows=40)
    frame = frame.with_columns(pl.when(pl.col("id") > 30).then(pl.lit("the same text")).otherwise("text").alias("text"))
    write_table(frame, str(tmp_path / "a.csv"))
    told = tell("queue", tmp_path / "a.csv", "-o", tmp_path / "q.csv", "-n", 12, *QUICK)
    assert "Chose 7 rows, not 12: texts repeat" in told.err
    assert "not 99: texts repeat" in tell("queue", tmp_path / "a.csv", "-o", tmp_path / "q.csv", "-n", 99, *QUICK).err
    assert "Chose 3 rows. " in tell("queue", tmp_path / "a.csv", "-o", tmp_path / "q.csv", "-n", 3, *QUICK).err
    assert all(len(cell) <= 6 for cell in read(tmp_path / "q.csv")["confidence"])


@pytest.mark.parametrize("command", [("predict", "-o", "o.csv"), ("evaluate",), ("report", "-o", "r.html")])
def test_exchanged_arguments_are_seen(place, tell, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    told = tell(command[0], place / "pile.csv", place / "m.safetensors", *command[1:])
    assert told.code == 2
    assert told.err.endswith("the order is MODEL FILE.\n")


@pytest.mark.parametrize("features", ["hashing", "vectors"])
def test_inspect_says_why_there_are_no_words(tell, tmp_path, features):
    name = "pile.svm" if features == "vectors" else "pile.csv"
    write_table(pile(), str(tmp_path / "pile.csv"))
    (tmp_path / "pile.svm").write_text("1 1:1\n2 2:1\n0 1:1 2:2\n0 1:2 2:1\n")
    options = ("--features", "hashing") if features == "hashing" else ()
    model = tmp_path / "m.safetensors"
    tell("label", tmp_path / name, "-o", tmp_path / "o.csv", "--model", model, *QUICK, *options)
    assert "(no words: " in tell("inspect", model).out
    assert tell("inspect", model, "--quiet") == (0, "", "")


def test_a_strict_check_fails_where_something_is_odd(place, tell, tmp_path):
    write_table(pile(), str(tmp_path / "good.csv"))
    odd = pile().with_columns(pl.col("label").str.replace("travel", "?"))
    write_table(odd, str(tmp_path / "odd.csv"))
    assert [tell("check", tmp_path / name, "--strict").code for name in ("good.csv", "odd.csv")] == [0, 1]
    assert tell("check", tmp_path / "odd.csv").code == 0


# the page of another file


def test_the_page_of_another_file_is_about_that_file(place, tell, tmp_path):
    write_table(pile(n_rows=50, n_labelled=0, seed=3), str(tmp_path / "next <week>.csv"))
    tell("report", place / "m.safetensors", tmp_path / "next <week>.csv", "-o", tmp_path / "r.html")
    tell("predict", place / "m.safetensors", tmp_path / "next <week>.csv", "-o", tmp_path / "p.csv")
    page = re.sub(r"<wbr>|</?bdi>", "", (tmp_path / "r.html").read_text())
    name = "next &lt;week&gt;.csv"
    assert f"<title>{name}: report" in page
    assert f"<h1>What became of {name}</h1>" in page
    assert f"{name}: 50 documents, labelled by a model of pile.csv (24 labelled, 96 unlabelled), 3 classes." in page
    assert "<h2>Progress in training, on pile.csv</h2>" in page
    assert "<h2>Your class sizes in training, on pile.csv</h2>" in page
    counts = dict(read(tmp_path / "p.csv")["label_2"].value_counts().rows())
    for each in DOMAINS:
        assert f'{each}</th><td class="number">{counts.get(each, 0)}</td>' in page


def test_a_class_without_a_size_is_not_said_to_have_one(place, tell, tmp_path):
    options = ("-o", tmp_path / "o.csv", "--report", tmp_path / "r.html", *QUICK)
    tell("label", place / "pile.csv", *options, "--prior", "travel=30")
    page = (tmp_path / "r.html").read_text().replace("\u00a0", " ")
    assert page.count("you stated no size; the texts suggest ") == 2
    assert page.count("<span>your ") == 1
    assert "0 to 100 %" not in page
    tell("label", place / "pile.csv", *options)
    assert (tmp_path / "r.html").read_text().count("you stated no size") == 3
