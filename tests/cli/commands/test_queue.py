"""transduce queue: rows are chosen, answered and read back."""

import json

import polars as pl
import pytest
from helpers.commands import QUICK, read
from helpers.documents import DOMAINS, N_LABELED, documents

from transduce.cli.formats import write_table


@pytest.mark.parametrize("options", [(), ("--model",)])
def test_a_queue_is_filled_in_and_read_back(example, run_ok, tmp_path, options):
    queue, done = tmp_path / "queue.csv", tmp_path / "done.csv"
    run_ok("queue", example.file, "-o", queue, "-n", 10, *QUICK, *options, *([example.model] if options else []))
    asked = read(queue)
    rows = asked["row"].cast(pl.Int64).to_list()
    assert asked.columns == ["row", "label", "suggested", "confidence", "text"]
    assert len(set(rows)) == 10
    assert min(rows) > N_LABELED
    assert asked["text"].to_list() == example.frame["text"][[row - 1 for row in rows]].to_list()
    truth = example.frame["truth"][[row - 1 for row in rows]]
    write_table(asked.with_columns(truth.alias("label")), str(queue))
    run_ok("label", example.file, "--answers", queue, "-o", done, *QUICK)
    labelled = read(done)
    assert labelled["label"][[row - 1 for row in rows]].to_list() == truth.to_list()
    given = {place + 1 for place, one in enumerate(labelled["given"]) if one == "true"}
    assert given == {*range(1, N_LABELED + 1), *rows}


def test_a_queue_goes_through_label_studio(example, run_ok, tmp_path):
    run_ok("queue", example.file, "-o", tmp_path / "tasks.json", "-n", 6, *QUICK)
    tasks = json.loads((tmp_path / "tasks.json").read_text())
    assert all(f'"{name}"' in (tmp_path / "tasks.xml").read_text() for name in DOMAINS)
    for task in tasks:
        choice = {"type": "choices", "value": {"choices": [example.frame["truth"][task["data"]["row"] - 1]]}}
        task["annotations"] = [{"result": [choice]}]
    (tmp_path / "export.json").write_text(json.dumps(tasks))
    run_ok("label", example.file, "--answers", tmp_path / "export.json", "-o", tmp_path / "done.csv", *QUICK)
    done = read(tmp_path / "done.csv")
    for task in tasks:
        row = done.row(task["data"]["row"] - 1, named=True)
        assert (row["label"], row["given"]) == (row["truth"], "true")


def test_answers_do_not_ask_for_the_text_column(example, run_ok, tmp_path):
    """Two columns could be the text; --text says which, for the answers as well."""
    frame = example.frame.with_columns(pl.col("text").str.reverse().alias("b")).rename({"text": "a", "label": "topic"})
    write_table(frame, str(tmp_path / "documents.csv"))
    (tmp_path / "q.csv").write_text("row,label\n30,travel\n")
    run_ok(
        "label",
        tmp_path / "documents.csv",
        "--text",
        "a",
        "--answers",
        tmp_path / "q.csv",
        "-o",
        tmp_path / "o.csv",
        *QUICK,
    )
    assert read(tmp_path / "o.csv")["label"][29] == "travel"


def test_a_queue_by_a_model_reads_the_column_that_it_was_trained_on(run_ok, tmp_path):
    frame = documents().rename({"text": "body"}).with_columns(pl.lit("nothing to see").alias("text"))
    write_table(frame, str(tmp_path / "documents.csv"))
    model, outputs = tmp_path / "m.safetensors", ("-o", tmp_path / "o.csv", "--model", tmp_path / "m.safetensors")
    run_ok("label", tmp_path / "documents.csv", "--text", "body", *outputs, *QUICK)
    run_ok("queue", tmp_path / "documents.csv", "--model", model, "-n", 5, "-o", tmp_path / "q.csv")
    assert "body" in read(tmp_path / "q.csv").columns
    assert "text" not in read(tmp_path / "q.csv").columns


def test_what_a_queue_cannot_hold_is_refused_before_the_fit(example, run_command, tmp_path, monkeypatch):
    monkeypatch.setattr("transduce.cli.label_fit.label_rows", lambda *_: pytest.fail("fitted"))
    write_table(example.frame.rename({"text": "row"}), str(tmp_path / "row.csv"))
    assert "'row'" in run_command("queue", tmp_path / "row.csv", "--text", "row", "-o", tmp_path / "q.csv").err
    odd = example.frame.with_columns(pl.col("label").str.replace("banking", "\x01"))
    odd.write_parquet(tmp_path / "odd.parquet")
    assert "XML" in run_command("queue", tmp_path / "odd.parquet", "-o", tmp_path / "q.json").err


@pytest.mark.parametrize("name", ["ask.csv", "ask.jsonl", "ask.parquet", "ask.json"])
def test_a_queue_with_answers_is_not_overwritten(example, run_command, run_ok, tmp_path, name):
    queue = tmp_path / name
    typed = ("queue", example.file, "-o", queue, "-n", 5, "--model", example.model)
    run_ok(*typed)
    run_ok(*typed)  # nobody has answered it yet
    if name == "ask.json":
        tasks = json.loads(queue.read_text())
        choice = {"type": "choices", "value": {"choices": ["travel"]}}
        queue.write_text(json.dumps([task | {"annotations": [{"result": [choice]}]} for task in tasks[:2]]))
    else:
        write_table(read(queue).with_columns(label=pl.Series(["travel", " ", "banking", None, ""])), str(queue))
    before = queue.read_bytes()
    refused = run_command(*typed)
    assert refused.code == 2
    assert f"{queue} has 2 answers, which would be lost. Write to another file" in refused.err
    assert queue.read_bytes() == before
    run_ok(*typed[:3], tmp_path / "more.csv", *typed[4:], "--answers", queue)


def test_fewer_rows_than_asked_for_are_explained(run_command, tmp_path):
    frame = documents(n_rows=40)
    frame = frame.with_columns(pl.when(pl.col("id") > 30).then(pl.lit("the same text")).otherwise("text").alias("text"))
    write_table(frame, str(tmp_path / "a.csv"))
    result = run_command("queue", tmp_path / "a.csv", "-o", tmp_path / "q.csv", "-n", 12, *QUICK)
    assert "Chose 7 rows, not 12: texts repeat" in result.err
    assert (
        "not 99: texts repeat"
        in run_command("queue", tmp_path / "a.csv", "-o", tmp_path / "q.csv", "-n", 99, *QUICK).err
    )
    assert "Chose 3 rows. " in run_command("queue", tmp_path / "a.csv", "-o", tmp_path / "q.csv", "-n", 3, *QUICK).err
    assert all(len(cell) <= 6 for cell in read(tmp_path / "q.csv")["confidence"])


def test_a_queue_and_a_check_of_results_use_given_labels_only(example, run_command, tmp_path):
    assert run_command("queue", example.out, "-o", tmp_path / "q.csv", "-n", 3, *QUICK).code == 0
    (tmp_path / "q.csv").write_text("row,label\n100,travel\n")
    result = run_command("label", example.out, "--answers", tmp_path / "q.csv", "-o", tmp_path / "b.csv", *QUICK)
    assert result.code == 0, result.err
    assert f"{N_LABELED + 1} labelled rows" in result.err
    assert "nothing is left to be labelled" not in run_command("check", example.out).out
