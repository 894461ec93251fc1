"""What transduce label prints: columns, odd labels and class sizes, the table of results, and warnings after it."""

import json
import re

import polars as pl
import pytest
from helpers.commands import N_UNLABELED, QUICK, read
from helpers.documents import N_LABELED, documents

from transduce.cli.formats import write_table


def test_the_normal_output_has_a_table_with_a_header_and_no_jargon(example, run_ok, tmp_path):
    result = run_ok("label", example.file, "-o", tmp_path / "o.csv", *QUICK)
    assert "features" not in result.err
    assert "Converged" not in result.err
    assert re.search(
        rf"{N_LABELED} labelled rows, {N_UNLABELED} to label, 3 classes, \d+ different words\.", result.err
    )
    assert f"measured by hiding your {N_LABELED} labels in turn." in result.err
    header, *rows = result.err.splitlines()[-4:]
    assert re.fullmatch("  class +new labels  share", header)
    assert {len(line) for line in rows} == {len(header)}
    counts = read(tmp_path / "o.csv").filter(given="false")["label"].value_counts()
    assert {(row.split()[0], int(row.split()[1])) for row in rows} == set(counts.iter_rows())


def test_columns_that_are_guessed_are_reported(example, run_ok, tmp_path):
    result = run_ok("label", example.file, "-o", tmp_path / "out.csv", *QUICK)
    assert "Using column 'text' as the text." in result.err
    assert "Using column 'label' as the label." in result.err


def test_named_columns_are_not_reported_as_guesses(example, run_ok, tmp_path):
    result = run_ok("label", example.file, "-o", tmp_path / "out.csv", *QUICK, "--text", "text", "--label", "label")
    assert "Using column" not in result.err


def test_class_sizes_are_reported(example, run_command, tmp_path):
    result = run_command("label", example.file, "-o", tmp_path / "o.csv", *QUICK, "--prior", "travel=0.5")
    assert "Class sizes: travel: about 48 rows (50 %)." in result.err
    counts = dict(read(tmp_path / "o.csv").filter(given="false")["label"].value_counts().rows())
    found = re.findall(r"^  (\w+) +(\d+) +\d+ %$", result.err, re.M)
    assert {name: int(count) for name, count in found} == counts
    assert [int(count) for _, count in found] == sorted(counts.values(), reverse=True)


@pytest.mark.parametrize(
    ("keyword", "sentence"),
    [("equal", "were stated"), ("labeled", "follow the labelled rows"), ("estimate", "are estimated from the labels")],
)
def test_keywords_are_reported(example, run_ok, tmp_path, keyword, sentence):
    result = run_ok("label", example.file, "-o", tmp_path / "o.csv", *QUICK, "--prior", keyword, "--json")
    assert sentence in json.loads(result.out)["prior"]
    assert "Note: no class sizes were stated" not in result.err


def test_twenty_of_many_classes_are_reported(run_command, tmp_path):
    frame = pl.DataFrame({"text": [f"word{k % 25} thing" for k in range(75)]}).with_row_index("k")
    label = pl.when(pl.col("k") < 25).then(pl.format("c{}", pl.col("k"))).alias("label")
    write_table(frame.select("text", label), str(tmp_path / "a.csv"))
    result = run_command("label", tmp_path / "a.csv", "-o", tmp_path / "o.csv", *QUICK)
    assert len(re.findall(r"^  c\d+ ", result.err, re.M)) == 20
    assert "  and 5 more\n" in result.err


def test_odd_labels_are_reported_before_the_fit(run_command, tmp_path):
    frame = documents().with_columns(
        pl.when(pl.col("id") == 1).then(pl.lit("Travel ")).when(pl.col("id") == 2).then(pl.lit("N/A"))
        .otherwise("label").alias("label")
    )  # fmt: skip
    write_table(frame, str(tmp_path / "documents.csv"))
    for command in ("label", "queue"):
        result = run_command(command, tmp_path / "documents.csv", "-o", tmp_path / "o.csv", *QUICK)
        notes = [line for line in result.err.splitlines() if line.startswith("Note: ")]
        assert any("'Travel'" in line and "'travel'" in line for line in notes)
        assert any("'N/A'" in line and "row 2" in line for line in notes)
    assert run_command("label", tmp_path / "documents.csv", "-o", tmp_path / "o.csv", *QUICK, "--quiet").err == ""
    assert "'N/A'" in run_command("check", tmp_path / "documents.csv").out


def test_rows_with_a_misspelled_label_are_counted_after_the_table(run_command, tmp_path):
    is_travel = pl.col("label") == "travel"
    is_first = is_travel & (is_travel.cum_sum() == 1)
    frame = documents().with_columns(label=pl.when(is_first).then(pl.lit("travle")).otherwise("label"))
    write_table(frame, str(tmp_path / "documents.csv"))
    result = run_command("label", tmp_path / "documents.csv", "-o", tmp_path / "o.csv", *QUICK, "--prior", "travle==8")
    notes = [line for line in result.err.splitlines() if line.startswith("Note: ")]
    assert "'travle'" in notes[0]
    assert "close to 'travel'" in notes[0]
    assert "only one label" not in result.err
    table, last = result.err.rpartition("%\n")[::2]
    assert "  travle" in table
    assert "8 rows got the label 'travle', which is probably a misspelling of 'travel'." in last


def test_a_size_that_is_far_off_is_a_warning_in_the_words_of_the_report(example, run_ok, tmp_path):
    options = ("-o", tmp_path / "o.csv", "--report", tmp_path / "r.html", *QUICK)
    result = run_ok("label", example.file, *options, "--prior", "travel=90%")
    (warning,) = (line for line in result.err.splitlines() if line.startswith("Warning: "))
    page = (tmp_path / "r.html").read_text().replace("\u00a0", " ")
    found = re.fullmatch(r"Warning: for 'travel', (your 90 % looks high: the texts suggest .* %)\. (.*)", warning)
    assert f"<span>{found[1]}</span>" in page
    got = (read(tmp_path / "o.csv").filter(given="false")["label"] == "travel").mean()
    became = re.fullmatch(r"A size without == is rough: .* it became (\d+) %\.", found[2])
    assert int(became[1]) == round(100 * got) < 90


@pytest.mark.parametrize("sizes", [("equal",), ("travel=30%", "banking=40%"), ("travel=25%:40%",)])
def test_sizes_that_may_be_right_are_not_warned_of(example, run_ok, tmp_path, sizes):
    stated = [word for size in sizes for word in ("--prior", size)]
    assert "Warning" not in run_ok("label", example.file, "-o", tmp_path / "o.csv", *QUICK, *stated).err
