"""Fixtures of the application's tests."""

import pytest
from told import Tell, Told

from transduce.app.cli import run


@pytest.fixture
def tell(capsysbinary: pytest.CaptureFixture[bytes]) -> Tell:
    """Run a command and hear what it says."""

    def typed(*arguments: object) -> Told:
        code = run([str(argument) for argument in arguments])
        out, err = capsysbinary.readouterr()
        return Told(code, out.decode(), err.decode())

    return typed
