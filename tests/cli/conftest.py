"""Fixtures of the application's tests."""

import pytest
from helpers.command_result import Tell, Told

from transduce.cli.main import run


@pytest.fixture
def tell(capsysbinary: pytest.CaptureFixture[bytes]) -> Tell:
    """Run a command and hear what it says."""

    def typed(*arguments: object) -> Told:
        code = run([str(argument) for argument in arguments])
        out, err = capsysbinary.readouterr()
        return Told(code, out.decode(), err.decode())

    return typed
