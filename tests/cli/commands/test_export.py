"""transduce export: corrections in either label column are read back, none is lost, random documents stay known."""

import json

import polars as pl
import pytest
from helpers.commands import read
from helpers.reviews import CLASSES, TEXTS, TRUTH, decide

from transduce.cli.formats import write_table
from transduce.reviewing.log import DecisionLog


@pytest.fixture
def topics(tickets, run_ok):
    """Documents with labels in `topic`, two decisions, and what `export` wrote; returns a way to edit that."""
    write_table(read(tickets).rename({"label": "topic"}), str(tickets))
    decide(tickets, {"op": "decide", "rows": [20, 21], "label": CLASSES[0], "how": "queue"})
    out = tickets.with_name("out.csv")
    run_ok("export", tickets, "-o", out, "--label", "topic")
    exported = read(out)

    def edit(**cells):
        frame = exported
        for place, value in cells.items():
            column, row = place.rsplit("_", 1)
            labels = frame[column].to_list()
            labels[int(row)] = value
            frame = frame.with_columns(pl.Series(column, labels))
        write_table(frame, str(out))
        return out

    edit.exported = exported
    return edit


@pytest.mark.parametrize("row", [5, 20, 30], ids=["label of the file", "decision", "proposal"])
@pytest.mark.parametrize("columns", [["topic"], ["label"], ["topic", "label"]])
def test_a_correction_counts_in_the_column_of_the_file_and_in_that_of_all_labels(tickets, topics, run_ok, columns, row):
    new = next(name for name in CLASSES if name != topics.exported["label"][row])
    out, again = topics(**{f"{column}_{row}": new for column in columns}), tickets.with_name("again.csv")
    run_ok("label", tickets, "--label", "topic", "--answers", out, "-o", again, "--annealing", "none")
    expected = topics.exported["topic"].to_list()
    expected[row] = new
    assert read(again)["topic"].to_list() == expected
    again.unlink()
    run_ok("export", tickets, "--label", "topic", "--answers", out, "-o", again, "--decisions-only")
    assert read(again)["topic"].to_list() == expected


def test_a_correction_that_is_no_class_is_refused_in_either_column(tickets, topics, run_command):
    for column in ("topic", "label"):
        typed = ("--label", "topic", "--answers", topics(**{f"{column}_30": "bankin/balance"}))
        for command in ("label", "export"):
            result = run_command(command, tickets, *typed, "-o", tickets.with_name("again.csv"))
            assert result.code == 2
            assert "Did you mean 'banking/balance'?" in result.err


@pytest.mark.parametrize("command", ["label", "export"])
def test_corrections_that_contradict_each_other_are_refused(tickets, topics, run_command, command):
    first, second = [name for name in CLASSES if name != topics.exported["label"][30]][:2]
    out = topics(topic_30=first, label_30=second)
    result = run_command(command, tickets, "--label", "topic", "--answers", out, "-o", tickets.with_name("b.csv"))
    assert result.code == 2
    assert f"row 31 of {out} was corrected to {first!r} in 'topic' and to {second!r} in 'label'." in result.err
    assert "Write the same label into both columns." in result.err


@pytest.mark.parametrize("row", [20, 30])
@pytest.mark.parametrize("command", ["label", "export"])
def test_the_column_exported_is_no_place_for_corrections(tickets, topics, run_command, command, row):
    new = next(name for name in CLASSES if name != topics.exported["label"][row])
    out = topics(**{f"exported_{row}": new})
    result = run_command(command, tickets, "--label", "topic", "--answers", out, "-o", tickets.with_name("b.csv"))
    assert result.code == 2
    assert f"row {row + 1} of {out} has another label in 'exported' than was exported." in result.err
    assert "correct 'topic' instead" in result.err


def test_exports_of_earlier_versions_are_read(tickets, topics, run_ok):
    out, again = topics(topic_30="weather"), tickets.with_name("again.csv")
    write_table(read(out).drop("exported_check"), str(out))
    run_ok("label", tickets, "--label", "topic", "--answers", out, "-o", again, "--annealing", "none")
    assert read(again)["topic"][30] == "weather"


def test_an_export_with_corrections_is_not_overwritten(tickets, topics, run_ok, run_command):
    typed = ("export", tickets, "--label", "topic", "--decisions-only", "-o")
    for edits in ({"topic_30": "weather"}, {"label_30": "weather"}, {"exported_30": "weather"}):
        out = topics(**edits)
        before = out.read_bytes()
        result = run_command(*typed, out)
        assert result.code == 2
        assert f"{out} has 1 correction made after the export, which would be lost." in result.err
        assert f"--answers {out}." in result.err
        assert out.read_bytes() == before
    decide(tickets, {"op": "add_class", "name": "weather"}, {"op": "decide", "rows": [30], "label": "weather"})
    run_ok(*typed, topics(topic_30="weather"))  # the review has it by now
    run_ok(*typed, topics(note_30="look again"))
    out.write_text("mine\n")
    run_ok(*typed, out)


def test_answers_are_counted_apart_from_labels_that_were_known(tickets, topics, run_ok):
    out = topics(topic_30="weather")
    typed = (tickets, "--label", "topic", "--answers", out, "-o", tickets.with_name("again.csv"))
    said = run_ok("label", *typed, "--annealing", "none").err
    assert f"3 answers from {out}; 12 labels were in {tickets} already.\n" in said
    said = run_ok("export", *typed, "--decisions-only").err
    assert f"1 answer from {out}; 14 labels were in {tickets} or its review already.\n" in said


def test_documents_that_were_drawn_at_random_are_no_difficult_ones(tickets, run_ok):
    """The mark survives the export, corrections in it, and labelling the result again; one of two copies has it."""
    texts = [*TEXTS, TEXTS[25].upper()]
    write_table(pl.DataFrame({"text": texts, "topic": [*TRUTH[:12], *[None] * 29]}), str(tickets))
    rows = {"queue": [20, 21], "random": [22, 23, 24, 25, 40]}
    with DecisionLog(tickets.with_name(f"{tickets.name}.review"), texts) as log:
        for how, of in rows.items():
            for row in of:
                log.append({"op": "decide", "rows": [row], "label": [*TRUTH, TRUTH[25]][row], "how": how})
    out, again, third = (tickets.with_name(name) for name in ("out.csv", "again.csv", "third.csv"))
    run_ok("export", tickets, "-o", out, "--label", "topic")
    origins = read(out)["origin"].to_list()
    assert [row for row, origin in enumerate(origins) if origin == "answered at random"] == [22, 23, 24, 25]
    assert [row for row, origin in enumerate(origins) if origin == "answered"] == [20, 21, 40]
    frame = read(out)
    corrected = [CLASSES[0] if row == 22 else name for row, name in enumerate(frame["topic"])]
    write_table(frame.with_columns(pl.Series("topic", corrected)), str(out))
    typed = ("--label", "topic", "--annealing", "none", "--json", "--quiet")
    for arguments in ((tickets, "--answers", out, "-o", again), (again, "-o", third)):
        found = json.loads(run_ok("label", *arguments, *typed).out)
        assert found["accuracy"]["n_answered"] == 3
        assert "the 16 labels that are a random sample" in found["prior"]
        assert read(arguments[-1])["origin"].to_list() == origins


def test_exports_without_marks_of_random_documents_are_read(tickets, topics, run_ok):
    decide(tickets, {"op": "decide", "rows": [22], "label": CLASSES[1], "how": "random"})
    out, again = tickets.with_name("out.csv"), tickets.with_name("again.csv")
    run_ok("export", tickets, "-o", out, "--label", "topic")
    old = read(out).with_columns(pl.col("origin").str.replace(" at random", "")).drop("exported_check")
    write_table(old, str(out))
    run_ok("label", tickets, "--label", "topic", "--answers", out, "-o", again, "--annealing", "none")
    assert read(again)["origin"].to_list() == old["origin"].to_list()
