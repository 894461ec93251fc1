"""Labelling a file that `label` wrote."""

import polars as pl
import pytest
from helpers.commands import ADDED, QUICK, read
from helpers.documents import N_LABELED, documents

from transduce.cli.formats import write_table


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_labelling_again_replaces_the_old_results(example, run_command, tmp_path, suffix):
    first, second = tmp_path / f"first.{suffix}", tmp_path / f"second.{suffix}"
    run_command("label", example.file, "-o", first, *QUICK, "--prior", "travel=30")
    result = run_command("label", first, "-o", second, *QUICK, "--prior", "travel=60")
    assert result.code == 0
    assert (
        f"{first} holds the results of an earlier run: keeping the {N_LABELED} labels with given = true" in result.err
    )
    done = read(second)
    assert done.columns == [*documents().columns, *ADDED]
    assert done["given"].cast(pl.String).to_list() == read(first)["given"].cast(pl.String).to_list()
    assert done.filter(pl.col("given").cast(pl.String) == "false")["label"].value_counts().filter(label="travel")[
        "count"
    ].to_list() == [60]


@pytest.mark.parametrize("options", [(), ("--label", "category")])
def test_labelling_again_where_the_labels_had_a_column_of_their_own(run_command, tmp_path, options):
    write_table(documents().rename({"label": "category"}), str(tmp_path / "documents.csv"))
    run_command("label", tmp_path / "documents.csv", "-o", tmp_path / "a.csv", *QUICK)
    result = run_command("label", tmp_path / "a.csv", "-o", tmp_path / "b.csv", *QUICK, *options)
    assert "results of an earlier run" in result.err
    assert read(tmp_path / "b.csv").rows() == read(tmp_path / "a.csv").rows()


def test_a_column_that_may_be_the_users_own_is_kept(run_command, tmp_path):
    frame = documents().rename({"truth": "label_2"})
    write_table(frame, str(tmp_path / "documents.csv"))
    run_command("label", tmp_path / "documents.csv", "-o", tmp_path / "a.csv", *QUICK)
    run_command("label", tmp_path / "a.csv", "-o", tmp_path / "b.csv", *QUICK)
    assert read(tmp_path / "b.csv")["label_2"].to_list() == frame["label_2"].to_list()


def test_a_checked_label_counts_as_given(example, run_command, tmp_path):
    row = N_LABELED + 5
    edited = read(example.out).with_row_index("n").with_columns(
        pl.when(pl.col("n") == row).then(pl.lit("true")).otherwise("given").alias("given"),
        pl.when(pl.col("n") == row).then(pl.lit("banking")).otherwise("label").alias("label"),
    )  # fmt: skip
    write_table(edited.drop("n"), str(tmp_path / "edited.csv"))
    run_command("label", tmp_path / "edited.csv", "-o", tmp_path / "b.csv", *QUICK)
    assert read(tmp_path / "b.csv").row(row, named=True)["label"] == "banking"


def test_corrections_of_results_count_as_answers_only_where_given_is_true(example, run_ok, tmp_path):
    """Without the old label, a corrected cell looks like one that `label` filled in."""
    corrected, marked = N_LABELED + 5, N_LABELED + 6
    edited = read(example.out).with_row_index("n").with_columns(
        pl.when(pl.col("n") == marked).then(pl.lit("true")).otherwise("given").alias("given"),
        pl.when(pl.col("n").is_in([corrected, marked])).then(pl.lit("banking")).otherwise("label").alias("label"),
    )  # fmt: skip
    write_table(edited.drop("n"), str(tmp_path / "edited.csv"))
    result = run_ok("label", example.file, "--answers", tmp_path / "edited.csv", "-o", tmp_path / "b.csv", *QUICK)
    note = f"{tmp_path / 'edited.csv'} was written by `label`: its labels count only where column 'given' is true"
    assert result.err.count(f"{note} ({N_LABELED + 1} rows). Set it to true in rows that you have corrected") == 1
    assert read(tmp_path / "b.csv")["given"][corrected : marked + 1].to_list() == ["false", "true"]
    every = edited.with_columns(given=pl.lit("true")).drop("n")
    write_table(every, str(tmp_path / "every.csv"))
    again = run_ok("label", example.file, "--answers", tmp_path / "every.csv", "-o", tmp_path / "c.csv", *QUICK)
    assert "was written by" not in again.err
