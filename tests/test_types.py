"""Types that users see: a program that uses the public names passes mypy --strict, and a wrong one does not."""

import subprocess
import sys
from pathlib import Path

import pytest

import transduce

SOURCES = Path(transduce.__file__).parent.parent
USER = Path(__file__).parent / "data" / "typed_user.py"
CONFIG = f"""[mypy]
strict = True
mypy_path = {SOURCES}
[mypy-transduce.*]
follow_imports = silent
"""
"""A user's settings; like an installed package, the sources are read for their types and not judged."""


def check(path, tmp_path):
    (tmp_path / "mypy.ini").write_text(CONFIG)
    options = ["--config-file", str(tmp_path / "mypy.ini"), "--cache-dir", str(tmp_path / "cache")]
    return subprocess.run([sys.executable, "-m", "mypy", *options, str(path)], capture_output=True, text=True)


def test_types_are_shipped():
    assert (SOURCES / "transduce" / "py.typed").exists()


@pytest.mark.slow
def test_a_program_that_uses_the_public_names_is_typed(tmp_path):
    done = check(USER, tmp_path)
    assert done.returncode == 0, done.stdout
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "from transduce import TextClassifier, solve_labels\n"
        "TextClassifier(ngrams='two')\nsolve_labels([[1.0]], [1]).gapp\n"
    )
    done = check(wrong, tmp_path)
    assert 'incompatible type "str"; expected "int"' in done.stdout
    assert 'has no attribute "gapp"' in done.stdout
