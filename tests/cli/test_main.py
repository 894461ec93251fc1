"""What all commands have in common: output streams, interruption, failures, help."""

import errno
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from helpers.commands import QUICK, digests, read, run_in_new_process
from helpers.documents import DOMAINS, documents

import transduce
from transduce.cli import progress
from transduce.cli.main import cli
from transduce.model_file import load_model


def commands(example, folder: Path) -> dict[str, list[object]]:
    """Every command that reads a file, with what it writes in the folder."""
    return {
        "label": ["label", example.file, "-o", folder / "o.csv", *QUICK],
        "predict": ["predict", example.model, example.file, "-o", folder / "p.csv"],
        "evaluate": ["evaluate", example.model, example.file, "--label", "truth"],
        "check": ["check", example.file],
        "queue": ["queue", example.file, "-o", folder / "q.csv", "-n", 3, *QUICK],
        "report": ["report", example.model, example.file, "-o", folder / "r.html"],
    }


COMMANDS = ("label", "predict", "evaluate", "check", "queue", "report")


@pytest.mark.parametrize("name", COMMANDS)
def test_only_json_goes_to_standard_output(example, run_ok, tmp_path, name):
    result = run_ok(*commands(example, tmp_path)[name], "--json")
    found = json.loads(result.out)
    assert isinstance(found, dict)
    for path in found.get("written", []):
        assert Path(path).is_file()


@pytest.mark.parametrize("name", COMMANDS)
def test_quiet_prints_nothing_else(example, run_ok, tmp_path, name):
    result = run_ok(*commands(example, tmp_path)[name], "--quiet")
    assert result.err == ""
    assert (result.out != "") == (name in ("evaluate", "check"))


@pytest.mark.parametrize("name", COMMANDS)
def test_inputs_are_not_changed(example, run_ok, tmp_path, name):
    before = digests(example.folder)
    run_ok(*commands(example, tmp_path)[name])
    assert digests(example.folder) == before


@pytest.mark.parametrize("name", COMMANDS)
def test_nothing_leaves_the_machine(example, run_ok, tmp_path, monkeypatch, name):
    def connect(*_: object) -> None:
        pytest.fail("the command opened a connection")

    for method in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, method, connect, raising=False)
    run_ok(*commands(example, tmp_path)[name])


@pytest.mark.parametrize("name", ["label", "predict", "queue"])
def test_a_dash_writes_the_table_to_standard_output(example, run_ok, tmp_path, name):
    arguments = commands(example, tmp_path)[name]
    run_ok(*arguments)
    out = arguments[arguments.index("-o") + 1]
    result = run_ok(*("-" if one == out else one for one in arguments))
    assert result.out == Path(str(out)).read_text()


def test_no_escape_sequence_reaches_the_terminal(run_ok, tmp_path):
    frame = documents().with_columns(pl.col("label").str.replace("banking", "\x1b[31mred"))
    frame.write_parquet(tmp_path / "documents.parquet")
    model = tmp_path / "m.safetensors"
    run_ok("label", tmp_path / "documents.parquet", "-o", tmp_path / "a.csv", "--model", model, *QUICK)
    documents(seed=4).with_columns(label=pl.lit("\x1b[31mred")).write_parquet(tmp_path / "fresh.parquet")
    for result in (
        run_ok("inspect", model),
        run_ok("evaluate", model, tmp_path / "fresh.parquet", "--label", "label"),
    ):
        assert "\x1b" not in result.out
        assert r"\x1b[31mred" in result.out


@pytest.fixture(params=["soft", "paper"])
def interrupted_fit(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Ctrl-C comes after some rounds."""
    rounds: Iterator[int] = iter(range(10**9))

    def stop(self: object, row: object) -> None:
        if next(rounds) >= 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(progress.Progress, "show_round", stop)
    return str(request.param)


def test_ctrl_c_during_the_fit_writes_partial_results(example, run_command, tmp_path, interrupted_fit):
    out, model, page = (tmp_path / name for name in ("o.csv", "m.safetensors", "r.html"))
    result = run_command(
        "label", example.file, "-o", out, "--model", model, "--report", page, "--annealing", interrupted_fit
    )
    assert result.code == 1
    assert result.err.splitlines()[-1].startswith("transduce: interrupted.")
    assert "The labels found so far are in" in result.err
    assert set(read(out)["label"]) <= set(DOMAINS)
    assert load_model(str(model)).about["interrupted"] is True
    assert "Interrupted." in page.read_text()
    assert len(list(tmp_path.iterdir())) == 3


def test_ctrl_c_while_class_sizes_are_estimated_writes_partial_results(run_command, tmp_path, interrupted_fit):
    data, out, model, page = (tmp_path / name for name in ("documents.csv", "o.csv", "m.safetensors", "r.html"))
    is_labeled = pl.int_range(pl.len()).over("truth") < 8
    documents().with_columns(label=pl.when(is_labeled).then("truth")).write_csv(data)
    result = run_command("label", data, "-o", out, "--model", model, "--report", page, "--annealing", interrupted_fit)
    assert "Estimating them from the texts, because" in result.err
    assert result.code == 1
    assert result.err.splitlines()[-1].startswith("transduce: interrupted.")
    assert {row["restart"] for row in load_model(str(model)).about["history"]} == {-1}
    assert "with hidden labels (kept)" in page.read_text()


def test_ctrl_c_during_the_fit_of_a_queue(example, run_command, tmp_path, interrupted_fit):
    result = run_command(
        "queue", example.file, "-o", tmp_path / "q.csv", "-n", 4, "--annealing", interrupted_fit, "--quiet"
    )
    assert result.code == 1
    assert result.err.startswith("transduce: interrupted.")
    assert result.err.endswith("q.csv.\n")
    assert read(tmp_path / "q.csv").height == 4


@pytest.mark.parametrize("module", ["transduce.cli.label_fit.fit_texts", "transduce.cli.labeled_table.read_table"])
def test_ctrl_c_before_the_fit_writes_nothing(example, run_command, tmp_path, monkeypatch, module):
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, stop)
    result = run_command("label", example.file, "-o", tmp_path / "o.csv", "--model", tmp_path / "m.safetensors")
    assert result.code == 1
    assert result.err.splitlines()[-1] == "transduce: interrupted before anything was written."
    assert list(tmp_path.iterdir()) == []


CTRL_C_AT_IMPORT = """
import sys
class Finder:
    def find_spec(self, name, path, target=None):
        if name == {module!r}:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Finder())
from transduce.cli import entry_point
entry_point()
"""


@pytest.mark.parametrize("module", ["click", "transduce.cli.commands.label", "transduce.cli.label_fit", "numba"])
def test_ctrl_c_while_modules_are_loading_gives_no_traceback(example, tmp_path, module):
    code = CTRL_C_AT_IMPORT.format(module=module)
    result = run_in_new_process("label", example.file, "-o", tmp_path / "o.csv", code=code)
    assert result.returncode == 1
    assert result.stderr.strip() == "transduce: interrupted before anything was written."
    assert list(tmp_path.iterdir()) == []


WRITING = {
    "o.csv": ["label", "{documents}", "-o", "o.csv", *QUICK],
    "o.parquet": ["predict", "{model}", "{documents}", "-o", "o.parquet"],
    "m.safetensors": ["label", "{documents}", "-o", "-", "--model", "m.safetensors", *QUICK],
    "r.html": ["report", "{model}", "{documents}", "-o", "r.html"],
    "q.csv": ["queue", "{documents}", "-o", "q.csv", *QUICK],
    "q.xml": ["queue", "{documents}", "-o", "q.json", *QUICK],
}


@pytest.mark.parametrize("name", WRITING)
@pytest.mark.parametrize("before", [None, b'<View>\n  <Text name="what stood there"/>'])
def test_a_failed_write_leaves_no_partial_file(example, run_command, tmp_path, monkeypatch, name, before):
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.chdir(tmp_path)
    if before is not None:
        (tmp_path / name).write_bytes(before)
    monkeypatch.setattr(os, "replace", full)
    result = run_command(*(word.format(documents=example.file, model=example.model) for word in WRITING[name]))
    assert result.code == 1
    last = result.err.splitlines()[-1]
    assert last.startswith("transduce: ")
    assert name in last
    assert "No space left on device" in last
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == ({} if before is None else {name: before})


def test_a_write_protected_folder_is_detected_first(example, run_command, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    result = run_command("label", example.file, "-o", tmp_path / "o.csv")
    assert result.code == 2
    assert re.fullmatch(r"transduce: the output .*o\.csv cannot be written: .* write-protected\. .*\n", result.err)


def test_a_closed_pipe_gives_no_traceback(example):
    command = f"{sys.executable} -m transduce predict {example.model} {example.file} -o - --quiet | head -n 1"
    result = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert result.stdout.startswith("id,text")
    assert "Traceback" not in result.stderr


def test_out_of_memory_is_reported(example, run_command, tmp_path, monkeypatch):
    def greedy(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("transduce.cli.label_fit.fit_texts", greedy)
    result = run_command("label", example.file, "-o", tmp_path / "o.csv")
    assert result.code == 1
    assert "--features hashing" in result.err.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


def test_version_and_help(run_command):
    assert run_command("--version") == (0, f"transduce, version {transduce.__version__}\n", "")
    for name in cli.commands:
        result = run_command(name, "--help")
        assert result.code == 0
        assert result.out.startswith(f"Usage: transduce {name} ")
    assert run_in_new_process("--version").stdout == f"transduce, version {transduce.__version__}\n"


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from transduce.cli.main import run; code = run(['--help']); "
        "heavy = {'numpy', 'scipy', 'polars', 'sklearn', 'numba', 'matplotlib', 'jinja2', 'rich', 'safetensors'}; "
        "print(code, sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    result = run_in_new_process(code=code)
    assert "Usage: transduce" in result.stdout
    assert result.stderr == "0 []\n"


def test_a_missing_extra_is_reported():
    result = run_in_new_process(
        code="import sys; sys.modules['click'] = None; from transduce.cli import entry_point; entry_point()"
    )
    assert result.returncode == 1
    advice = "In the checkout of transduce, run: pip install '.[app]'"
    assert result.stderr == f"transduce: the command line needs the extra 'app'. {advice}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("label", "", "-o", "o.csv"), "the name of the file is empty. Name a file, or - for standard input."),
        (("tag", "", "-o", "o.conll"), "the name of the file is empty. Name a file."),
        (("inspect", ""), "a file without a name does not exist."),
        (("label", "x.csv", "-o", "o.csv", "--seed", "x"), "'x' is not a valid whole number."),
        (("label", "x.csv", "-o", "o.csv", "--alpha", "x"), "'x' is not a valid number."),
    ],
)
def test_empty_names_and_words_for_numbers(arguments, message, run_command):
    result = run_command(*arguments)
    assert result.code == 2
    assert message in result.err
