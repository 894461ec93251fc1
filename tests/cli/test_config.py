"""Options from a TOML file."""

import json
from pathlib import Path

from helpers.commands import QUICK, read, sizes_of


def test_config_gives_defaults_and_the_command_line_wins(example, run_ok, tmp_path):
    config = tmp_path / "c.toml"
    config.write_text(
        'seed = 5\nannealing = "paper"\ntext = "text"\nwords = 3\n[prior]\ntravel = 70\nbanking = [8, 9]\n'
        '[label]\nloss = "maxent"\nkeep-formulas = true\n[predict]\nkeep-formulas = true\n'
    )
    result = run_ok("label", example.file, "-o", tmp_path / "o.csv", "--config", config, "--json")
    found = json.loads(result.out)
    settings = found["settings"]
    assert (found["seed"], settings["annealing"], settings["loss"]) == (5, "paper", "maxent")
    assert "as the text" not in result.err
    sizes = sizes_of(read(tmp_path / "o.csv"))
    assert sizes["travel"] == 70
    assert sizes["banking"] in (8, 9)
    options = ("--seed", 6, "--loss", "hinge", "--prior", "travel=60")
    found = json.loads(
        run_ok("label", example.file, "-o", tmp_path / "o.csv", "--config", config, "--json", *options).out
    )
    assert (found["seed"], found["settings"]["loss"]) == (6, "hinge")
    assert sizes_of(read(tmp_path / "o.csv"))["travel"] == 60


def test_config_sets_outputs_but_not_arguments(example, run_ok, tmp_path, monkeypatch):
    """The model that `label` writes is not what `predict` reads: it must be given on its command line."""
    monkeypatch.chdir(tmp_path)
    Path("c.toml").write_text(
        'model = "new.safetensors"\nannealing = "none"\nout = "out.csv"\n[report]\nout = "page.html"\n'
    )
    run_ok("label", example.file, "--config", "c.toml")
    run_ok("predict", "new.safetensors", example.file, "--config", "c.toml")
    run_ok("report", "new.safetensors", example.file, "--config", "c.toml")
    assert {path.name for path in tmp_path.iterdir()} == {"c.toml", "new.safetensors", "out.csv", "page.html"}


def test_every_kind_of_option_can_be_in_a_config(example, run_ok, tmp_path):
    values = {
        "json": "true",
        "quiet": "true",
        "flat": "true",
        "alpha": "1",
        "jobs": "1",
        "ngrams": "2",
        "format": '"csv"',
    }
    (tmp_path / "c.toml").write_text("".join(f"{key} = {value}\n" for key, value in values.items()))
    result = run_ok("label", example.file, "-o", tmp_path / "o.csv", "--config", tmp_path / "c.toml", *QUICK)
    assert result.err == ""
    assert json.loads(result.out)["settings"]["alpha"] == 1.0
