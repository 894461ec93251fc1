"""What a user says about class sizes, in options or a small file, read into what `class_prior` takes.

    --prior sport=0.2  --prior rec=10%:30%  --prior other=?  --prior prior.toml

Every value is a share (up to 1: 0.2, 20%), a number of rows (whole, above 1: 120), a range of either (low:high), or "?"
for not known; classes that are not named are not known either. Shares that miss 1 by rounding are divided by their sum.
"""

import csv
import io
import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from transduce.cli.candidate_syntax import nodes_of
from transduce.cli.errors import InputError
from transduce.cli.small_files import read_small
from transduce.suggest import closest_name, name_list

Share: TypeAlias = float | tuple[float, float] | None
Prior: TypeAlias = dict[str, Share]

ROUNDING = 0.021
"""By how much shares may miss 1 and still be taken as rounded ones."""
MOST_TOLD = 12
"""So many sizes are told again; a line is no table."""
_SEVERAL = re.compile(r"=\s*[0-9.?][^=]*[,;]")
"""What the name of a class looks like when several were written into one option."""


def read_prior(options: Iterable[str]) -> Prior:
    """Options, each NAME=VALUE or a file, as one mapping; an option goes before a file, a later file before an earlier.

    >>> read_prior(["sport=0.2", "rec=10%:30%", "other=?"])
    {'sport': 0.2, 'rec': (0.1, 0.3), 'other': None}
    """
    of_files: Prior = {}
    stated: Prior = {}
    for option in options:
        name, equals, value = (part.strip() for part in option.rpartition("="))
        if Path(option).suffix.lower() in (".toml", ".json", ".csv") and not (equals and not Path(option).exists()):
            of_files.update(_read_file(option))
        elif not equals or not name:
            raise InputError(
                f"--prior must be NAME=SHARE, such as sport=0.2 or sport=0.1:0.3, or a .toml, .json or .csv file, "
                f"but is {option!r}."
            )
        elif not value:
            raise InputError(f"--prior {option} states no size; write {name}=? for a class you know nothing about.")
        elif _SEVERAL.search(name):
            raise InputError(f"--prior {option} names several classes; give one --prior for each class.")
        elif name in stated:
            raise InputError(f"--prior states the size of {name!r} twice; keep one of them.")
        else:
            stated[name] = parse_share(value, f"--prior {option}")
    return of_files | stated


def parse_share(value: object, where: str) -> Share:
    """A number, a range or None from what a user wrote.

    >>> parse_share("12 %", "here"), parse_share([0.1, 0.2], "here"), parse_share("?", "here")
    (0.12, (0.1, 0.2), None)
    """
    if isinstance(value, str):
        value = value.strip()
        if value in ("", "?"):
            return None
        parts: Sequence[object] = value.split(":")
    else:
        parts = value if isinstance(value, list) else [value]
    if len(parts) not in (1, 2):
        raise InputError(f"{where} must be one number, or low:high, but is {value!r}.")
    numbers = [_number(part, where) for part in parts]
    if len(numbers) == 1:
        return numbers[0]
    if numbers[0] > numbers[1]:
        raise InputError(f"{where} has a low end above its high end; exchange them.")
    return numbers[0], numbers[1]


def _number(part: object, where: str) -> float:
    written, scale = part, 1.0
    if isinstance(part, str) and part.strip().endswith("%"):
        part, scale = part.strip()[:-1], 0.01
    try:
        if isinstance(part, bool) or not isinstance(part, (str, int, float)):
            raise ValueError
        number = float(part) * scale
    except (ValueError, OverflowError):
        raise InputError(
            f"{where} must be a share such as 0.2 or 20%, a number of rows, or ?, but is {part!r}."
        ) from None
    if not 0 <= number < 1e15:
        raise InputError(f"{where} must be 0 or more and finite, but is {written!r}.")
    number = round(number, 12)
    if number > 1 and (scale < 1 or not number.is_integer()):
        raise InputError(
            f"{where} cannot be used: {written} is neither a share nor a whole number of rows; up to 1 (100%) is a "
            "share, above are rows."
        )
    return number


def _read_file(name: str) -> Prior:
    text, suffix = read_small(name, "file of class sizes"), Path(name).suffix.lower()
    if suffix == ".csv":
        return _from_csv(text, name)
    try:
        content = tomllib.loads(text) if suffix == ".toml" else json.loads(text, object_pairs_hook=_no_twins)
    except (ValueError, RecursionError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{name} is not valid {suffix[1:].upper()}: {reason}; correct it.") from None
    if isinstance(content, dict) and isinstance(content.get("prior"), dict):
        content = content["prior"]
    if not isinstance(content, dict) or not content:
        raise InputError(f"{name} must map each class to its share, such as {{sport = 0.2}}, but does not.")
    return {str(key): parse_share(value, f"{name}, class {key!r},") for key, value in content.items()}


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is given twice")
    return found


def _from_csv(text: str, name: str) -> Prior:
    """Rows of class, share; or of class, low, high; the first line may be a header.

    Where semicolons part the cells, as in much of Europe, commas are those of decimals.
    """
    prior: Prior = {}
    rows = _rows_of_csv(text)
    for place, (line, row) in enumerate(rows):
        if len(row) not in (2, 3) or not row[0].strip():
            raise InputError(f"{name}, line {line} must be class, share or class, low, high, but is {','.join(row)!r}.")
        where = f"{name}, line {line},"
        try:
            value = parse_share(row[1] if len(row) == 2 else f"{row[1]}:{row[2]}", where)
        except InputError:
            if place == 0 and len(rows) > 1:
                continue
            raise
        if row[0].strip() in prior:
            raise InputError(f"{where} names class {row[0].strip()!r} a second time; keep one of them.")
        prior[row[0].strip()] = value
    if not prior:
        raise InputError(f"{name} must have a line a class, class,share, but is empty.")
    return prior


def _rows_of_csv(text: str) -> list[tuple[int, list[str]]]:
    """Rows that are not blank, with their lines.

    >>> _rows_of_csv("sport;0,2")
    [(1, ['sport', '0.2'])]
    """
    first = next((line for line in text.splitlines() if line.strip()), "")
    european = ";" in first and first.count(";") >= first.count(",")
    reader = csv.reader(io.StringIO(text), delimiter=";" if european else ",")
    rows = [(line, row) for line, row in enumerate(reader, 1) if any(cell.strip() for cell in row)]
    if european:
        rows = [(line, [*row[:1], *(cell.replace(",", ".") for cell in row[1:])]) for line, row in rows]
    return rows


def complete_prior(
    prior: Mapping[str, Share], classes: Sequence[str], *, tree: bool = False
) -> tuple[Prior, list[str]]:
    """A share for every class, and for branches of a tree that are named; and what had to be assumed, in sentences.

    >>> full, said = complete_prior({"tea": 0.3}, ["coffee", "tea"])
    >>> full
    {'coffee': None, 'tea': 0.3}
    >>> said
    ["classes without a stated size ('coffee') get what the texts suggest within what is left"]
    """
    said = []
    branches = [name for name in prior if name not in classes]
    for name in branches:
        if not tree or not any(each.startswith(f"{name}/") for each in classes):
            raise InputError(_unknown(name, classes, tree=tree))
    _refuse_mixture(prior)
    missing = [name for name in classes if name not in prior and not is_covered(name, prior, tree=tree)]
    full: Prior = {name: prior.get(name) for name in (*classes, *branches)}
    if missing:
        said.append(
            f"classes without a stated size ({name_list(missing)}) get what the texts suggest within what is left"
        )
    numbers = [share for share in full.values() if isinstance(share, float)]
    total = sum(numbers)
    if len(numbers) == len(classes) and not branches and abs(total - 1) > 1e-9 and abs(total - 1) <= ROUNDING:
        full = {name: share / total for name, share in full.items()}  # type: ignore[operator]
        said.append(f"stated sizes sum to {total:.4g} and were divided by that")
    return full, said


def is_covered(name: str, prior: Mapping[str, Share], *, tree: bool) -> bool:
    """Whether a class has a stated size, or a branch above it has one.

    >>> is_covered("rec/chess", {"rec": 0.3}, tree=True), is_covered("sci", {"rec": 0.3, "sci": None}, tree=True)
    (True, False)
    """
    return any(prior.get(node) is not None for node in (nodes_of(name) if tree else [name]))


def _refuse_mixture(prior: Mapping[str, Share]) -> None:
    """Beside a number of rows, a share would be taken for a part of one row."""
    ends = [(name, end) for name, share in prior.items() for end in (share if isinstance(share, tuple) else (share,))]
    rows = next((name for name, end in ends if end is not None and end > 1), None)
    share = next((name for name, end in ends if end is not None and 0 < end < 1), None)
    if rows is not None and share is not None:
        raise InputError(
            f"the prior has a share for {share!r} and a number of rows for {rows!r}; give shares for both, or rows."
        )


def _unknown(name: str, classes: Sequence[str], *, tree: bool = False) -> str:
    inner = [each for each in classes if each.startswith(f"{name}/")]
    if inner:
        return f"the prior names {name!r}, which is not a class but holds {name_list(inner)}; state their sizes."
    known = dict.fromkeys(node for each in classes for node in (nodes_of(each) if tree else [each]))
    near = closest_name(name.strip("/ "), known)
    hint = "." if near is None else f"; did you mean {near!r}?"
    return (
        f"the prior names {name!r}, which no row is labelled with{hint} Label a row of it, or leave it out. "
        f"The labelled classes are {name_list(classes)}."
    )


def understood(prior: Mapping[str, Share], low: Mapping[str, int], high: Mapping[str, int], n_rows: int) -> str:
    """Stated sizes as rows and shares, in a sentence; low and high are the rows of each class.

    >>> understood({"tea": 0.4, "coffee": None}, {"tea": 40}, {"tea": 40}, 100)
    'Class sizes: tea: 40 rows (40 %).'
    """
    found = [f"{name}: {_rows(low[name], high[name], n_rows)}" for name, share in prior.items() if share is not None]
    more = f"; and {len(found) - MOST_TOLD} more" if len(found) > MOST_TOLD else ""
    return f"Class sizes: {'; '.join(found[:MOST_TOLD])}{more}." if found else ""


def _rows(low: int, high: int, n_rows: int) -> str:
    shares = [f"{100 * end / max(n_rows, 1):.3g}" for end in (low, high)]
    if low == high:
        return f"{low} row{'' if low == 1 else 's'} ({shares[0]} %)"
    return f"{low} to {high} rows ({shares[0]} to {shares[1]} %)"


def as_ranges(prior: Mapping[str, Share], n_rows: int) -> dict[str, tuple[float, float]]:
    """Shares of the unlabelled rows, low and high, for every class that is named.

    >>> as_ranges({"tea": 30.0, "coffee": (50.0, 70.0), "cocoa": None}, 100)
    {'tea': (0.3, 0.3), 'coffee': (0.5, 0.7), 'cocoa': (0.0, 1.0)}
    """
    _refuse_mixture(prior)
    pairs = {name: share if isinstance(share, tuple) else (share, share) for name, share in prior.items()}
    most = max((high for _, high in pairs.values() if high is not None), default=0.0)
    scale = max(n_rows, 1) if most > 1 else 1
    return {
        name: (0.0, 1.0) if low is None or high is None else (low / scale, high / scale)
        for name, (low, high) in pairs.items()
    }
