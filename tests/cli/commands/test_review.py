"""transduce review and export: decisions of a session come out in every format, and corrections are read back."""

import json
import shlex
import signal
import subprocess
import sys
import threading

import polars as pl
import pytest
from helpers.commands import read
from helpers.reviews import CLASSES, TEXTS, TRUTH, Client, decide

from transduce.cli.formats import write_table
from transduce.cli.main import run
from transduce.reviewing import server as server_module


def test_export_writes_decisions_and_labels_the_rest(tickets, run_ok):
    before = tickets.read_bytes()
    decide(
        tickets,
        {"op": "decide", "rows": [20], "label": CLASSES[0], "how": "queue"},
        {"op": "decide", "rows": [21], "label": None},
        {"op": "decide", "rows": [0], "label": CLASSES[1]},
        {"op": "note", "row": 20, "text": "=sure"},
        {"op": "rename_class", "name": CLASSES[0], "to": "banking/money"},
    )
    out = tickets.with_name("out.csv")
    run_ok("export", tickets, "-o", out)
    frame = read(out)
    assert frame["text"].to_list() == TEXTS
    assert frame["label"][20] == "banking/money"
    assert frame["label"][0] == CLASSES[1]
    assert frame["label"][21] == ""
    assert set(frame["label"]) <= {"banking/money", *CLASSES[1:], ""}
    assert (frame["label"] == "").sum() == 1
    assert [frame["origin"][row] for row in (0, 1, 20, 30)] == ["answered", "given", "answered", "predicted"]
    assert frame["note"][20] == "'=sure"
    assert tickets.read_bytes() == before


def test_guesses_label_documents_without_decisions(tmp_path, run_ok, run_command):
    guesses = [CLASSES[(CLASSES.index(name) + (k % 5 == 0)) % 4] for k, name in enumerate(TRUTH)]
    file, out = tmp_path / "tickets.csv", tmp_path / "out.csv"
    write_table(pl.DataFrame({"text": TEXTS, "llm": guesses}), str(file))
    decide(file, {"op": "decide", "rows": [0], "label": TRUTH[0], "how": "queue"})
    run_ok("export", file, "-o", out, "--guess", "llm")
    frame = read(out)
    assert frame["label"][0] == TRUTH[0]
    assert sum(frame["label"][row] == TRUTH[row] for row in range(40)) >= 28
    assert 'there is no column "lm"' in run_command("export", file, "-o", out, "--guess", "lm").err


def test_guesses_that_name_several_classes_count_as_none(tmp_path, run_ok):
    file, out = tmp_path / "tickets.csv", tmp_path / "out.csv"
    write_table(pl.DataFrame({"text": TEXTS, "llm": [f"{CLASSES[0]}|{CLASSES[1]}", *TRUTH[1:]]}), str(file))
    decide(file, {"op": "decide", "rows": [5], "label": TRUTH[5], "how": "queue"})
    said = run_ok("export", file, "-o", out, "--guess", "llm")
    assert 'guesses with "|" name several classes' in said.err
    assert set(read(out)["label"]) <= set(CLASSES)
    assert read(out)["llm"][0] == f"{CLASSES[0]}|{CLASSES[1]}"


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet", "json"])
def test_every_format_holds_the_decisions(tickets, run_ok, suffix):
    decide(tickets, {"op": "decide", "rows": [20], "label": CLASSES[0], "how": "queue"})
    out = tickets.with_name(f"out.{suffix}")
    result = json.loads(run_ok("export", tickets, "-o", out, "--decisions-only", "--json", "--quiet").out)
    assert (result["n_decided"], result["n_rows"]) == (1, 40)
    frame = read(out)
    assert frame["label"][20] == CLASSES[0]
    assert (frame["label"][30] or "") == ""


def test_corrections_in_an_exported_file_are_read_back(tickets, run_ok):
    decide(tickets, {"op": "decide", "rows": [20], "label": CLASSES[0], "how": "queue"})
    out, again = tickets.with_name("out.csv"), tickets.with_name("again.csv")
    run_ok("export", tickets, "-o", out)
    frame = read(out)
    wrong = next(row for row in range(24, 40) if frame["label"][row] != CLASSES[2])
    labels = frame["label"].to_list()
    labels[wrong] = CLASSES[2]
    write_table(frame.with_columns(pl.Series("label", labels)), str(out))
    for arguments in ((tickets, "--answers", out), (out,)):
        said = run_ok("label", *arguments, "-o", again, "--annealing", "none").err
        assert "was written by `label`" not in said
        found = read(again)
        assert found["label"][wrong] == CLASSES[2]
        assert found["given"][wrong] == "true"
        assert found["given"][20] == "true"
        assert found["given"].to_list().count("true") == 14


@pytest.mark.parametrize("has_labels", [True, False])
def test_a_corrected_export_changes_decisions_and_labels_of_the_file(tickets, run_ok, has_labels):
    if not has_labels:
        write_table(pl.DataFrame({"text": TEXTS}), str(tickets))
    decide(
        tickets,
        *([] if has_labels else [{"op": "add_class", "name": name} for name in CLASSES]),
        {"op": "decide", "rows": [0, 20, 22], "label": CLASSES[0], "how": "list"},
        {"op": "rename_class", "name": CLASSES[1], "to": "money"},
    )
    out, again = tickets.with_name("out.csv"), tickets.with_name("again.csv")
    run_ok("export", tickets, "-o", out, "--decisions-only")
    frame = read(out)
    labels = frame["label"].to_list()
    labels[20], labels[21] = "money", "weather"
    write_table(frame.with_columns(pl.Series("label", labels)), str(out))
    decide(tickets, {"op": "decide", "rows": [22], "label": CLASSES[2], "how": "list"})  # after the export
    run_ok("export", tickets, "-o", again, "--decisions-only", "--answers", out)
    found = read(again)["label"].to_list()
    labels[22] = CLASSES[2]
    assert found == labels
    if has_labels:
        run_ok("label", tickets, "--answers", out, "-o", again, "--annealing", "none")
        assert read(again)["label"].to_list()[:12] == labels[:12]


def test_decisions_are_in_the_label_column_of_the_file_as_after_label_with_answers(tickets, run_ok):
    topics = read(tickets).rename({"label": "topic"}).with_columns(pl.col("topic").replace("", None))
    topics[30, "topic"] = f"{CLASSES[0]}|{CLASSES[1]}"  # a label of several classes counts as undecided, and stays
    write_table(topics, str(tickets))
    decide(tickets, {"op": "decide", "rows": [20], "label": CLASSES[0], "how": "queue"})
    out, again = tickets.with_name("out.csv"), tickets.with_name("again.csv")
    said = run_ok("export", tickets, "-o", out, "--label", "topic").err
    assert "New labels are in column 'label'." in said
    said = run_ok("label", tickets, "--label", "topic", "--answers", out, "-o", again, "--annealing", "none").err
    assert "New labels are in column 'label'." in said
    expected = topics["topic"].to_list()
    expected[20] = CLASSES[0]
    assert expected[30] == f"{CLASSES[0]}|{CLASSES[1]}"
    for file in (out, again):
        assert read(file)["topic"].to_list() == [label or "" for label in expected]
        assert read(file)["label"][20] == CLASSES[0]
        assert "" not in read(file)["label"].to_list()


def test_export_without_a_review_says_how_to_begin(tickets, run_command):
    result = run_command("export", tickets, "-o", tickets.with_name("out.csv"))
    assert result.code == 2
    assert "transduce review" in result.err


def test_a_file_without_labels_can_be_reviewed(tmp_path, run_ok):
    write_table(pl.DataFrame({"text": TEXTS}), str(tmp_path / "tickets.csv"))
    decide(
        tmp_path / "tickets.csv",
        *({"op": "add_class", "name": name} for name in CLASSES[:2]),
        *({"op": "decide", "rows": [row], "label": TRUTH[row]} for row in range(40) if TRUTH[row] in CLASSES[:2]),
    )
    result = run_ok("export", tmp_path / "tickets.csv", "-o", tmp_path / "out.csv")
    assert "without labels" in result.err
    frame = read(tmp_path / "out.csv")
    assert set(frame["label"]) == set(CLASSES[:2])
    answers = ("--answers", tmp_path / "out.csv", "-o", tmp_path / "again.csv", "--annealing", "none")
    assert "no label column but the answers" in run_ok("label", tmp_path / "tickets.csv", *answers).err
    is_given = frame["given"] == "true"
    assert read(tmp_path / "again.csv").filter(is_given)["label"].equals(frame.filter(is_given)["label"])


def test_review_serves_until_it_is_stopped(tickets, monkeypatch, capsys):
    started = threading.Event()
    servers = []
    begin = server_module.ReviewServer.run

    def run_and_tell(self, **options):
        assert options == {"open_browser": False}
        servers.append(self)
        started.set()
        begin(self)

    monkeypatch.setattr(server_module.ReviewServer, "run", run_and_tell)
    codes = []
    write_table(pl.DataFrame({"row": [22], "label": [CLASSES[1]]}), str(tickets.with_name("ask.csv")))
    arguments = ["review", str(tickets), "--no-browser", "--answers", str(tickets.with_name("ask.csv"))]
    thread = threading.Thread(target=lambda: codes.append(run(arguments)))
    thread.start()
    assert started.wait(60)
    client = Client(servers[0])
    client.post("events", {"events": [{"op": "decide", "rows": [20], "label": CLASSES[0], "how": "queue"}]})
    path = client.post("export", {"format": "jsonl"})["path"]
    assert read(path)["label"][20] == CLASSES[0]
    assert path.endswith("tickets-reviewed.jsonl")
    assert client.post("export", {"format": "jsonl"})["path"].endswith("tickets-reviewed-2.jsonl")
    using = [client.post("export", {"format": format})["next"] for format in ("csv", "json")]
    assert servers[0].session.state.labels()[21] == CLASSES[1]  # of --answers
    assert run(["review", str(tickets), "--no-browser", "--quiet"]) == 2  # a second process
    servers[0].stop()
    thread.join(60)
    assert codes == [0]
    printed = capsys.readouterr()
    assert printed.out.startswith(servers[0].url)
    assert "2 documents decided" in printed.err
    export, label = printed.err.splitlines()[-2:]
    assert run(shlex.split(export[export.index(" export ") :])) == 0  # commands that are advised run as they are
    for command in (label, *using):
        assert run([*shlex.split(command[command.rindex(" label ") :]), "--annealing", "none"]) == 0


def test_ctrl_c_ends_a_review_and_loses_nothing(tickets):
    command = [sys.executable, "-m", "transduce", "review", str(tickets), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline().startswith("http://127.0.0.1:")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert "0 documents decided" in errors


@pytest.mark.parametrize(("answer", "code"), [("bankng/balance", 2), ("weather", 0)])
def test_a_slip_in_an_answer_is_no_new_class(tickets, run_command, answer, code):
    asked = tickets.with_name("ask.csv")
    write_table(pl.DataFrame({"row": [30], "label": [answer]}), str(asked))
    arguments = ["label", tickets, "--answers", asked, "-o", tickets.with_name("out.csv"), "--annealing", "none"]
    result = run_command(*arguments)
    assert result.code == code
    if code:
        assert "Did you mean 'banking/balance'?" in result.err
        assert run_command(*arguments, "--new-class", answer).code == 0


def test_of_several_files_of_answers_the_last_word_counts(tickets, run_ok):
    names = []
    for number, rows in enumerate(({30: CLASSES[0], 31: CLASSES[0]}, {31: CLASSES[1]})):
        names.append(tickets.with_name(f"ask{number}.csv"))
        write_table(pl.DataFrame({"row": list(rows), "label": list(rows.values())}), str(names[-1]))
    out = tickets.with_name("out.csv")
    answers = [word for name in names for word in ("--answers", name)]
    result = run_ok("label", tickets, *answers, "-o", out, "--annealing", "none")
    assert f"row 31 was answered '{CLASSES[0]}' in an earlier file and '{CLASSES[1]}'" in result.err
    assert read(out)["label"][29] == CLASSES[0]
    assert read(out)["label"][30] == CLASSES[1]
