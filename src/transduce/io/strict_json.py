"""Strict JSON: no NaN or infinity, no repeated keys, no lone surrogates, limited nesting and limited numbers.

What it accepts can be written back by the same library at any depth of the call stack.
"""

import json
import re
from typing import Any

MAX_DEPTH = 100
_TYPE_NAMES = {list: "a list", str: "a text", bool: "a boolean", type(None): "null"}
_NEEDS_CAREFUL_PARSE = re.compile(r"[0-9.][eE]\+?[0-9]{2}|[0-9]{200}|\\u[dD][89a-fA-F]")


class JsonError(ValueError):
    """JSON that is not accepted: `problem` is what was found, `advice` what to do, `is_syntax` if it is no JSON."""

    def __init__(self, problem: str, advice: str, is_syntax: bool = False) -> None:
        super().__init__(f"{problem}. {advice}")
        self.problem, self.advice, self.is_syntax = problem, advice, is_syntax


def loads(text: str | bytes) -> Any:
    """Parse a whole document."""
    try:
        text = text.decode("utf-8") if isinstance(text, bytes) else text
    except UnicodeDecodeError:
        raise JsonError("the text is not UTF-8", "Save it as UTF-8.") from None
    text = text.strip(" \t\r\n")
    value, end = parse(text)
    if end != len(text):
        raise JsonError(f"the JSON value ends at character {end}, but more text follows", "Remove it.", is_syntax=True)
    return value


def parse(text: str, start: int = 0) -> tuple[Any, int]:
    """Parse the value that starts at a position; return it and the position after it."""
    try:
        value, end = _DECODER.raw_decode(text, start)
        if _NEEDS_CAREFUL_PARSE.search(text, start, end):  # rare, and the slow checks are needed only then
            value, end = _CAREFUL_DECODER.raw_decode(text, start)
            json.dumps(value, ensure_ascii=False).encode()
    except JsonError:
        raise
    except RecursionError:
        raise _too_deep() from None
    except json.JSONDecodeError as error:
        where = f"{error.msg.lower()} at character {error.pos - start + 1}"
        raise JsonError(f"the JSON is invalid ({where})", "Correct it there.", is_syntax=True) from None
    except UnicodeEncodeError:
        raise JsonError("the JSON holds half of a surrogate pair", "Write the character in full.") from None
    except ValueError:  # Python's limit on the digits of an integer
        raise JsonError("the JSON holds a number of too many digits", "Write it as text, in quotes.") from None
    if text.count("[", start, end) + text.count("{", start, end) > MAX_DEPTH:
        _check_depth(value)
    return value, end


def parse_object(text: str, start: int = 0) -> tuple[dict[str, Any], int]:
    """Parse the object that starts at a position; return it and the position after it."""
    value, end = parse(text, start)
    if not isinstance(value, dict):
        raise JsonError(f"the JSON value is {_TYPE_NAMES.get(type(value), 'a number')}", "Write an object, {...}.")
    return value, end


def dumps(value: Any) -> str:
    """Write JSON with letters as they are, and without NaN."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    built = dict(pairs)
    if len(built) == len(pairs):
        return built
    keys = [key for key, _ in pairs]
    repeated = next(key for key in keys if keys.count(key) > 1)
    raise JsonError(f"the key {json.dumps(repeated[:40])} appears twice in one object", "Keep one of them.")


def _refuse_constant(constant: str) -> None:
    raise JsonError(f"{constant} is not a JSON number", "Write null where a number is missing.")


def _finite(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise JsonError(f"the number {digits[:40]} is too large", "Write it as text, in quotes.")
    return number


def _check_depth(value: Any) -> None:
    """Walk down level by level, without recursion."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        nested = [child for child in level if isinstance(child, dict | list)]
        if not nested:
            return
        level = [part for child in nested for part in (child.values() if isinstance(child, dict) else child)]
    raise _too_deep()


def _too_deep() -> JsonError:
    return JsonError(f"the JSON is nested deeper than {MAX_DEPTH} levels", "Flatten it.")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_refuse_constant)
_CAREFUL_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_refuse_constant, parse_float=_finite)
