"""The version of the code that a cell depends on: a digest of what it computes, not of how it is written down.

Of a study what its `run` reaches counts, not what it merely shows; comments, docstrings, layout and the words of errors
never do, nor do the application and the engines that cells do not use. Of a library its major version counts: others
change rounding. How data are read and the built-in corpus count for all cells. A peer's cell depends on the module of
peers and the libraries below it, not on our method. A study whose peers are elsewhere defines `peer_code(cell)`: files,
as paths or patterns below the root, and names of libraries with their versions; nothing for a cell of ours. MORE_CODE
of a study are files of the application that its own cells depend on.
"""

import ast
import hashlib
from collections import Counter
from collections.abc import Iterable
from functools import cache
from importlib.metadata import version as installed
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import transduce
from experiments.peers import PEERS

CORE = Path(transduce.__file__).parent
HERE = Path(__file__).parent
NOT_OF_THE_METHOD = {
    "cli", "testing", "datasets", "model_selection", "text.py", "model_file.py", "provenance.py", "plots.py",
    "__init__.py", "__main__.py", "reviewing", "selection.py", "placement.py", "sequences", "errors",
    "contract", "dask.py", "features",
}  # fmt: skip
UNUSED_ENGINES = ("engines/dask", "engines/device")
BELOW_PEERS = ("numpy", "scipy", "scikit-learn")
BELOW_OURS = (*BELOW_PEERS, "numba")


def version(study: ModuleType, cell: dict[str, Any], root: Path | None = None) -> str:
    """A short name of the code behind a cell: of this code, or of the checkout in the folder `root`.

    Libraries are those that are installed here, either way.
    """
    here = HERE if root is None else Path(root) / "experiments"
    core = CORE if root is None else Path(root) / "src" / "transduce"
    datasets = (core / "datasets" / "__init__.py", *sorted((core / "datasets").glob("*.gz")))
    parts = [_digest((here / "data.py", here.parent / "benchmarks" / "data.py", *datasets))]
    parts.append(_reached(here / Path(str(study.__file__)).name, "run"))
    peer_code = study.peer_code(cell) if hasattr(study, "peer_code") else ()
    if peer_code:
        parts += [*_named(here.parent, peer_code), _libraries(BELOW_PEERS)]
    elif cell.get("method") in PEERS:
        parts += [_digest((here / "peers.py",)), _libraries(BELOW_PEERS)]
    else:
        parts += [_digest(_core(core)), _digest((here / "methods.py",)), _libraries(BELOW_OURS)]
        parts += _named(here.parent, getattr(study, "MORE_CODE", ()))
    return hashlib.sha256("".join(parts).encode()).hexdigest()[:10]


class Stamp(NamedTuple):
    """A version that stored results have, the number of their cells, and whether the present code would give it."""

    version: str
    n_cells: int
    is_present: bool


def stamps(study: ModuleType, rows: Iterable[dict[str, Any]]) -> list[Stamp]:
    """The versions of the cells in rows of results, in the order in which they come."""
    cells = {tuple(str(row[key]) for key in study.KEYS): row for row in rows}
    counts = Counter((str(row["version"]), row["version"] == version(study, row)) for row in cells.values())
    return [Stamp(name, n, is_present) for (name, is_present), n in counts.items()]


@cache
def _named(root: Path, names: tuple[str, ...]) -> tuple[str, ...]:
    """Digests of files, each name a path or a pattern; the name itself if it is that of a library."""
    return tuple(_digest(tuple(sorted(root.glob(name)))) if name.endswith(".py") else name for name in names)


@cache
def _libraries(names: tuple[str, ...]) -> str:
    return " ".join(f"{name} {installed(name).split('.')[0]}" for name in names)


@cache
def _core(core: Path) -> tuple[Path, ...]:
    found = ((path, path.relative_to(core)) for path in sorted(core.rglob("*.py")))
    return tuple(
        path
        for path, inside in found
        if inside.parts[0] not in NOT_OF_THE_METHOD and not inside.as_posix().startswith(UNUSED_ENGINES)
    )


@cache
def _digest(paths: tuple[Path, ...]) -> str:
    """A digest of the statements of files of code, and of the bytes of others."""
    total = hashlib.sha256()
    for path in paths:
        total.update(_dump(_without_text(path)).encode() if path.suffix == ".py" else path.read_bytes())
    return total.hexdigest()


@cache
def _reached(path: Path, name: str) -> str:
    """A digest of a function of a file, and of everything at its top level that it uses."""
    made: dict[str, list[ast.stmt]] = {}
    for statement in _without_text(path).body:
        for part in _parts(statement):
            for made_here in _defined(part):
                made.setdefault(made_here, []).append(part)
    found: dict[str, str] = {}
    left = [name]
    while left:
        here = left.pop()
        if here in made and here not in found:
            found[here] = "".join(map(_dump, made[here]))
            left += [node.id for s in made[here] for node in ast.walk(s) if isinstance(node, ast.Name)]
    return hashlib.sha256("".join(found[key] for key in sorted(found)).encode()).hexdigest()


def _parts(statement: ast.stmt) -> list[ast.stmt]:
    """A statement for each name that is imported, so that what else is imported beside it does not count."""
    if isinstance(statement, ast.Import):
        return [ast.Import([alias]) for alias in statement.names]
    if isinstance(statement, ast.ImportFrom):
        return [ast.ImportFrom(statement.module, [alias], statement.level) for alias in statement.names]
    return [statement]


def _defined(statement: ast.stmt) -> set[str]:
    """Names that a statement at the top level defines, or changes by writing into what they stand for."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    nodes = list(ast.walk(statement))
    inner = {name for node in nodes if isinstance(node, ast.comprehension) for name in ast.walk(node.target)}
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            found |= {alias.asname or alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(getattr(node, "ctx", None), ast.Store) and node not in inner:
            while isinstance(node, ast.Attribute | ast.Subscript):
                node = node.value
            if isinstance(node, ast.Name):
                found.add(node.id)
    return found


def _without_text(path: Path) -> ast.Module:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            node.exc.args, node.exc.keywords = [], []  # the words of the error
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [s for s in body if not _is_text(s)]  # type: ignore[attr-defined]
    return tree


def _dump(node: Any) -> str:
    """A text of a syntax tree that is the same in all versions of Python: fields that are empty do not count."""
    if isinstance(node, ast.AST):
        fields = ((name, value) for name, value in ast.iter_fields(node) if value is not None and value != [])
        return f"{type(node).__name__}({', '.join(f'{name}={_dump(value)}' for name, value in fields)})"
    return f"[{', '.join(map(_dump, node))}]" if isinstance(node, list) else ascii(node)


def _is_text(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )
