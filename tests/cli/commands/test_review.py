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
from helpers.reviews import CLASSES, Client, corpus

from transduce.cli.formats import write_table
from transduce.cli.main import run
from transduce.reviewing import server as server_module
from transduce.reviewing.log import DecisionLog

TEXTS, TRUTH = corpus(40)


@pytest.fixture
def tickets(tmp_path):
    """Documents of which twelve are labelled."""
    labels = [label if row < 12 else None for row, label in enumerate(TRUTH)]
    write_table(pl.DataFrame({"text": TEXTS, "label": labels}), str(tmp_path / "tickets.csv"))
    return tmp_path / "tickets.csv"


def decide(file, *events):
    with DecisionLog(file.with_name(f"{file.name}.review"), TEXTS) as log:
        for event in events:
            log.append(event)


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
