"""The version of the code that a cell depends on: a digest of what it computes, not of how it is written down.

Of a study what its `run` reaches counts, not what it merely shows; comments, docstrings and layout never do, nor does
the application. A peer's cell depends on scikit-learn and the module of peers, not on our method.
"""

import ast
import hashlib
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import sklearn

import transduce
from experiments.peers import PEERS

CORE = Path(transduce.__file__).parent
HERE = Path(__file__).parent
NOT_OF_THE_METHOD = {"app", "checks.py", "corpora", "model_selection", "plots.py", "__main__.py"}


def version(study: ModuleType, cell: dict[str, Any]) -> str:
    """A short name of the code behind a cell."""
    shared = _digest((HERE / "data.py",)) + _reached(Path(str(study.__file__)), "run")
    if cell.get("method") in PEERS:
        own = _digest((HERE / "peers.py",)) + sklearn.__version__
    else:
        own = _digest(_core()) + _digest((HERE / "methods.py",))
    return hashlib.sha256((shared + own).encode()).hexdigest()[:10]


@cache
def _core() -> tuple[Path, ...]:
    return tuple(
        path for path in sorted(CORE.rglob("*.py")) if path.relative_to(CORE).parts[0] not in NOT_OF_THE_METHOD
    )


@cache
def _digest(paths: tuple[Path, ...]) -> str:
    """A digest of the statements of files."""
    total = hashlib.sha256()
    for path in paths:
        total.update(ast.dump(_without_text(path)).encode())
    return total.hexdigest()


@cache
def _reached(path: Path, name: str) -> str:
    """A digest of a function of a file, and of everything at its top level that it uses."""
    made: dict[str, ast.stmt] = {}
    for statement in _without_text(path).body:
        for node in ast.walk(statement) if isinstance(statement, ast.Assign) else [statement]:
            names = [alias.asname or alias.name for alias in getattr(node, "names", [])]
            named = getattr(node, "name", None) or (node.id if isinstance(node, ast.Name) else None)
            made |= dict.fromkeys([*names, *([named] if named else [])], statement)
    found, left = {}, [name]
    while left:
        here = left.pop()
        if here in made and here not in found:
            found[here] = ast.dump(made[here])
            left += [node.id for node in ast.walk(made[here]) if isinstance(node, ast.Name)]
    return hashlib.sha256("".join(found[key] for key in sorted(found)).encode()).hexdigest()


def _without_text(path: Path) -> ast.Module:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [s for s in body if not _is_text(s)]  # type: ignore[attr-defined]
    return tree


def _is_text(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )
