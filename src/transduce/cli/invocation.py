"""How this program was called, so that a suggested command can be typed as it is."""

import shlex
import shutil
import sys
from pathlib import Path

NAME = "transduce"


def command_line(*arguments: str) -> str:
    """A command line that calls this program again.

    >>> command_line("predict", "my model.safetensors").endswith("predict 'my model.safetensors'")
    True
    """
    return " ".join([_program(), *map(shlex.quote, arguments)])


def _program() -> str:
    called = sys.argv[0]
    if Path(called).stem == NAME and shutil.which(NAME) != called:
        return shlex.quote(called)
    if Path(called).name == "__main__.py" and Path(called).parent.name == NAME:
        return f"{shlex.quote(sys.executable)} -m {NAME}"
    return NAME
