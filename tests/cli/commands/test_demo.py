"""transduce demo, on a small corpus."""

import re
import shlex
import sys

import polars as pl
from helpers.commands import read
from helpers.documents import documents

from transduce.cli.commands import demo


def test_the_demo_writes_table_model_and_report(run_ok, tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "demo_frame", lambda seed: documents(n_rows=200, n_labeled=40, seed=seed).drop("id"))
    result = run_ok("demo", "-o", tmp_path / "new" / "demo", "--seed", 1)
    names = {path.name for path in (tmp_path / "new" / "demo").iterdir()}
    assert names == {"requests.csv", "labelled.csv", "model.safetensors", "report.html", "new.csv"}
    assert re.search(r"Macro F on the 160 requests without a label: supervised 0\.\d+, transduce 0\.\d+", result.out)
    done = read(tmp_path / "new" / "demo" / "labelled.csv").filter(pl.col("given") == "false")
    rows, right = (dict(done[name].value_counts().rows()) for name in ("label", "truth"))
    assert all(0.8 * right[name] < rows[name] < 1.2 * right[name] for name in right)
    assert "of the new labels are right (90 % interval" in result.err
    assert run_ok("demo", "-o", tmp_path / "again", "--quiet")[1:] == ("", "")


def test_the_command_that_the_demo_suggests_can_be_typed(run_ok, tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "demo_frame", lambda seed: documents(n_rows=200, n_labeled=40, seed=seed).drop("id"))
    monkeypatch.setattr(sys, "argv", [".venv/bin/transduce", "demo"])
    suggested = shlex.split(run_ok("demo", "-o", tmp_path / "my demo").out.splitlines()[-1])
    assert suggested[:2] == [".venv/bin/transduce", "predict"]
    run_ok(*suggested[1:])
    done = read(suggested[-1])
    assert done.columns == ["text", "label", "confidence", "runner_up", "overruled"]
    assert done.height == len(demo.NEW_REQUESTS)
