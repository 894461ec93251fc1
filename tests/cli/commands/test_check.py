"""transduce check: findings, JSON and exit codes."""

import json

import polars as pl
import pytest
from helpers.documents import DOMAINS, documents

from transduce.cli.formats import write_table

SEVERITIES = ("problem", "warning", "note")


def test_check_reports_problems(run_ok, tmp_path):
    frame = documents()
    frame = pl.concat(
        [frame, frame.head(1).with_columns(label=pl.lit("weather")), frame.head(1).with_columns(text=pl.lit(""))]
    )
    write_table(frame, str(tmp_path / "documents.csv"))
    result = run_ok("check", tmp_path / "documents.csv", "--prior", "football=0.5")
    assert "1 of 122 texts is empty" in result.out
    assert "'weather'" in result.out
    assert "'football'" in result.out
    found = json.loads(run_ok("check", tmp_path / "documents.csv", "--prior", "football=0.5", "--json").out)
    assert {"severity", "message", "rows", "advice", "check"} == set(found["findings"][0])
    assert any(122 in one["rows"] for one in found["findings"])
    severities = [one["severity"] for one in found["findings"]]
    assert [found[f"{one}s"] for one in SEVERITIES] == [severities.count(one) for one in SEVERITIES]
    assert (found["rows"], found["labelled"], found["classes"]) == (122, 26, 4)


@pytest.mark.parametrize(
    ("label", "severities", "sentence"),
    [
        (None, [], "no problem found."),
        ("?", ["warning", "warning"], "no problem found, 2 warnings."),
        ("TRAVEL", ["problem"], "1 problem."),
    ],
)
def test_the_last_line_is_the_verdict(run_ok, tmp_path, label, severities, sentence):
    frame = documents()
    row = frame["label"].is_null().arg_true()[0]
    frame = frame.with_columns(
        pl.when(pl.int_range(pl.len()) == row).then(pl.lit(label)).otherwise("label").alias("label")
    )
    write_table(frame, str(tmp_path / "documents.csv"))
    *shown, last = run_ok("check", tmp_path / "documents.csv").out.splitlines()
    n_labeled, n_classes = 24 + (label is not None), 3 + (label is not None)
    assert last == f"120 rows, {n_labeled} labelled, {n_classes} classes: {sentence}"
    assert [line.split()[0] for line in shown if not line.startswith(" ")] == severities


def test_check_reads_trees_and_sizes_as_label_does(run_ok, run_command, tmp_path):
    frame = documents().with_columns(pl.col("label").str.replace("banking", "n/a/"))
    write_table(frame, str(tmp_path / "documents.csv"))
    assert "empty part" not in run_ok("check", tmp_path / "documents.csv").out
    mixed = run_command("check", tmp_path / "documents.csv", "--prior", "travel=0.2", "--prior", "n/a/=12")
    assert (mixed.code, "the sizes leave 67.5% for them" in mixed.out) == (0, True)
    bad = run_command("check", tmp_path / "documents.csv", "--prior", "travel=1.5", "--strict")
    assert (bad.code, "--prior travel=1.5 has 1.5, which is neither" in bad.out) == (1, True)


def test_check_reads_equal_sizes_per_cents_and_counts_of_all_rows(run_ok, tmp_path):
    write_table(documents(), str(tmp_path / "documents.csv"))
    for sizes in ((34, 33, 33), (40, 40, 40), ("1/3", "1/3", "1/3")):
        stated = [f"--prior={name}={size}" for name, size in zip(DOMAINS, sizes, strict=True)]
        assert "sum to" not in run_ok("check", tmp_path / "documents.csv", *stated).out
    for keyword in ("equal", "labeled", "estimate"):
        assert "sum to" not in run_ok("check", tmp_path / "documents.csv", "--prior", keyword).out


def test_a_strict_check_fails_if_there_is_a_problem(example, run_command, tmp_path):
    write_table(documents(), str(tmp_path / "good.csv"))
    odd = documents().with_columns(pl.col("label").str.replace("travel", "?"))
    write_table(odd, str(tmp_path / "odd.csv"))
    assert [run_command("check", tmp_path / name, "--strict").code for name in ("good.csv", "odd.csv")] == [0, 1]
    assert run_command("check", tmp_path / "odd.csv").code == 0
