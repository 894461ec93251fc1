"""The public names and their parameters, as lines.

`PYTHONPATH=src:tests python -m helpers.public_names` writes them anew.
"""

import inspect
import re
from enum import Enum
from importlib import import_module
from pathlib import Path

import transduce

MODULES = ("transduce", *re.findall(r"^    (transduce\.\S+)", str(transduce.__doc__), re.MULTILINE))
"""The package, and the modules that its docstring lists."""
PATH = Path(__file__).parent.parent / "data" / "public-names.txt"


def public_lines() -> list[str]:
    """One line for each public name, and for each public method of a class that is written in this package."""
    return [line for module in MODULES for line in _module_lines(module)]


def _module_lines(module_name: str) -> list[str]:
    module = import_module(module_name)
    names = getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module_name
    ]
    return [line for name in sorted(names) for line in _lines(f"{module_name}.{name}", getattr(module, name))]


def _lines(path: str, value: object) -> list[str]:
    if not inspect.isclass(value):
        return [path + (_parameters(value) if callable(value) else "")]
    methods = {name: method for base in reversed(_own_bases(value)) for name, method in vars(base).items()}
    return [
        path + _parameters(value),
        *(f"{path}.{name}{_parameters(getattr(value, name))}" for name in sorted(methods) if _is_method(value, name)),
    ]


def _own_bases(value: type) -> list[type]:
    return [base for base in value.__mro__ if base.__module__.startswith("transduce")]


def _is_method(value: type, name: str) -> bool:
    found = getattr(value, name, None)
    is_ours = not name.startswith("_") and not name.endswith("_request")  # scikit-learn makes those
    return is_ours and inspect.isroutine(found) and callable(found)


def _parameters(value: object) -> str:
    if inspect.isclass(value) and (issubclass(value, Enum) or getattr(value, "_is_protocol", False)):
        return ""  # depends on the version of Python
    try:
        signature = inspect.signature(value)
    except ValueError:  # an exception without a constructor of its own
        return ""
    return f"({', '.join(name for name in signature.parameters if name not in ('self', 'cls'))})"


if __name__ == "__main__":
    PATH.write_text("\n".join(public_lines()) + "\n", encoding="utf-8")
