"""Fixtures for tests of the command line."""

import pytest
from helpers.commands import EXACT_SIZES, CommandResult, Example, RunCommand, read
from helpers.documents import documents

from transduce.cli.formats import write_table
from transduce.cli.main import run


@pytest.fixture
def run_command(capsysbinary: pytest.CaptureFixture[bytes]) -> RunCommand:
    """Run a command in this process and capture its output."""

    def typed(*arguments: object) -> CommandResult:
        code = run([str(argument) for argument in arguments])
        out, err = capsysbinary.readouterr()
        return CommandResult(code, out.decode(), err.decode())

    return typed


@pytest.fixture
def run_ok(run_command: RunCommand) -> RunCommand:
    """Run a command that must succeed."""

    def typed(*arguments: object) -> CommandResult:
        result = run_command(*arguments)
        assert result.code == 0, result.err
        return result

    return typed


@pytest.fixture(scope="session")
def example(tmp_path_factory: pytest.TempPathFactory) -> Example:
    """Documents that were labelled with exact class sizes."""
    folder = tmp_path_factory.mktemp("example")
    found = Example(
        folder, documents(), *(folder / name for name in ("documents.csv", "out.csv", "m.safetensors", "r.html"))
    )
    write_table(found.frame, str(found.file))
    sizes = [word for name, rows in EXACT_SIZES.items() for word in ("--prior", f"{name}={rows}")]
    outputs = ["-o", str(found.out), "--model", str(found.model), "--report", str(found.report), "--truth", "truth"]
    assert run(["label", str(found.file), *outputs, "--annealing", "paper", *sizes, "--quiet"]) == 0
    return found


@pytest.fixture(scope="session")
def expected_labels(example: Example) -> list[str]:
    """Labels of the example without stated class sizes."""
    out = example.folder / "expected.csv"
    assert run(["label", str(example.file), "-o", str(out), "--annealing", "none", "--quiet"]) == 0
    return read(out)["label"].to_list()
