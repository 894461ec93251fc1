"""transduce export beside columns of the user's own, and with labels that are no texts."""

import polars as pl
import pytest
from helpers.commands import read
from helpers.reviews import CLASSES, TEXTS, TRUTH, decide

from transduce.cli.formats import write_table

OWN = {"note": "my note", "exported": "by ship", "exported_check": "passed", "row": 9}


@pytest.fixture
def decided(tmp_path):
    """Documents with columns that `export` and a queue would write themselves, twelve labels and two decisions."""
    topics = [label if row < 12 else None for row, label in enumerate(TRUTH)]
    own = {name: [value] * len(TEXTS) for name, value in OWN.items()}
    tickets = tmp_path / "tickets.csv"
    write_table(pl.DataFrame({"text": TEXTS, "topic": topics} | own), str(tickets))
    decide(tickets, {"op": "decide", "rows": [20, 21], "label": CLASSES[0], "how": "queue"})
    return tickets


def test_columns_of_the_users_own_stay_and_only_decisions_are_read_back(decided, run_ok):
    out, again = decided.with_name("out.csv"), decided.with_name("again.csv")
    run_ok("export", decided, "-o", out, "--label", "topic")
    before, after = read(decided), read(out)
    assert after.select(*OWN).equals(before.select(*OWN))
    said = run_ok("label", decided, "--label", "topic", "--answers", out, "-o", again, "--annealing", "none").err
    assert f"2 answers from {out}; 12 labels were in {decided} already." in said
    expected = before["topic"].to_list()
    expected[20] = expected[21] = CLASSES[0]
    assert read(again)["topic"].to_list() == expected


@pytest.mark.parametrize("missing", [[], ["note_2"]])
def test_corrections_are_safe_without_some_of_the_columns(decided, run_ok, run_command, missing):
    out, again = decided.with_name("out.csv"), decided.with_name("again.csv")
    run_ok("export", decided, "-o", out, "--label", "topic")
    frame = read(out).drop(missing)
    new = next(name for name in CLASSES if name != frame["label"][30])
    labels = frame["label"].to_list()
    labels[30] = new
    write_table(frame.with_columns(pl.Series("label", labels)), str(out))
    run_ok("label", decided, "--label", "topic", "--answers", out, "-o", again, "--annealing", "none")
    assert read(again)["topic"][30] == new
    result = run_command("export", decided, "-o", out, "--label", "topic")
    assert result.code == 2
    assert "1 correction made after the export, which would be lost" in result.err


def test_labels_that_are_paths_in_lists_are_exported(tmp_path, run_ok):
    tickets, out = tmp_path / "tickets.jsonl", tmp_path / "out.csv"
    topics = [label.split("/") if row < 12 else None for row, label in enumerate(TRUTH)]
    write_table(pl.DataFrame({"text": TEXTS, "topic": topics}), str(tickets))
    decide(tickets, {"op": "decide", "rows": [20], "label": CLASSES[0], "how": "queue"})
    run_ok("export", tickets, "-o", out, "--label", "topic")
    assert read(out)["topic"].to_list()[:12] == TRUTH[:12]
    assert read(out)["topic"][20] == CLASSES[0]
