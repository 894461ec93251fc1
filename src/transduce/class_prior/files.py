"""Class priors in small files: TOML, JSON or CSV text that maps each class to its size.

    sport = 0.2                    rec = "10%:30%"             other = "=5%"           (TOML)
    {"sport": 0.2, "rec": [0.1, 0.3], "other": "?"}                                    (JSON)
    sport,0.2                      rec,10%,30%                 other,?                 (CSV)

TOML and JSON may hold the mapping under the key "prior".
"""

import csv
import io
import tomllib

from transduce.class_prior.spec import Prior, parse_size
from transduce.errors import PriorError, PriorErrorKind
from transduce.io.strict_json import JsonError, loads
from transduce.suggest import as_sentence

FORMATS = ("toml", "json", "csv")


def parse_prior(text: str, file_format: str, source: str) -> Prior:
    """Read a class prior from the text of a file; `source` is the file's name for error messages.

    >>> prior = parse_prior('{"tea": 0.3, "milk": "?"}', "json", "prior.json")
    >>> prior["tea"].low, prior["milk"].is_known
    (0.3, False)
    """
    if file_format == "csv":
        return _parse_csv(text, source)
    try:
        content = tomllib.loads(text) if file_format == "toml" else loads(text)
    except (ValueError, RecursionError) as error:
        reason = as_sentence(error.problem if isinstance(error, JsonError) else str(error))
        raise PriorError(PriorErrorKind.BAD_FILE, source=source, format=file_format.upper(), reason=reason) from None
    if isinstance(content, dict) and isinstance(content.get("prior"), dict):
        content = content["prior"]
    if not isinstance(content, dict) or not content:
        raise PriorError(PriorErrorKind.NOT_A_MAPPING, source=source)
    return {str(name): parse_size(value, f"{source}, class {name!r},") for name, value in content.items()}


def _parse_csv(text: str, source: str) -> Prior:
    """Read lines of class, size or class, low, high; the first line may be a header."""
    prior: Prior = {}
    try:
        rows = _csv_rows(text)
    except csv.Error as error:
        reason = as_sentence(str(error).partition(" - ")[0])
        raise PriorError(PriorErrorKind.BAD_FILE, source=source, format="CSV", reason=reason) from None
    for position, (line, row) in enumerate(rows):
        where, name = f"{source}, line {line},", row[0].strip()
        if len(row) not in (2, 3) or not name:
            raise PriorError(PriorErrorKind.CSV_LINE, source=where, value=",".join(row))
        try:
            size = parse_size(row[1] if len(row) == 2 else f"{row[1]}:{row[2]}", where)
        except PriorError:
            if position == 0 and len(rows) > 1:
                continue
            raise
        if name in prior:
            raise PriorError(PriorErrorKind.TWICE, source=where, name=name)
        prior[name] = size
    if not prior:
        raise PriorError(PriorErrorKind.EMPTY_FILE, source=source)
    return prior


def _csv_rows(text: str) -> list[tuple[int, list[str]]]:
    """Lines that are not blank, with their numbers; cells are separated by semicolons or by commas.

    >>> _csv_rows("sport;0,2")
    [(1, ['sport', '0,2'])]
    """
    first = next((line for line in text.splitlines() if line.strip()), "")
    delimiter = ";" if ";" in first and first.count(";") >= first.count(",") else ","
    reader = csv.reader(io.StringIO(text), delimiter=delimiter)
    return [(line, row) for line, row in enumerate(reader, 1) if any(cell.strip() for cell in row)]
