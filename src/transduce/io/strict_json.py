"""JSON as the standard has it, and no more: no NaN, no infinity, no key twice, no half characters, no endless nesting.

A value that passes can be written back by the same library at any depth of the call stack.
"""

import json
import re
from typing import Any

MOST_LEVELS = 100
_KINDS = {list: "a list", str: "a text", bool: "a boolean", type(None): "null"}
_NEEDS_A_CLOSE_LOOK = re.compile(r"[0-9.][eE]\+?[0-9]{2}|[0-9]{200}|\\u[dD][89a-fA-F]")


class RefusedError(ValueError):
    """JSON that is not taken; the message goes on after "expected a JSON object, "."""


def parse(text: str, begin: int = 0) -> tuple[Any, int]:
    """Return the value that begins at a position, and the position after it.

    >>> parse('{"a": [1, 2]} ...')
    ({'a': [1, 2]}, 13)
    """
    try:
        value, end = _DECODER.raw_decode(text, begin)
        if _NEEDS_A_CLOSE_LOOK.search(text, begin, end):  # seldom: only then are the slow checks worth their time
            value, end = _CAREFUL_DECODER.raw_decode(text, begin)
            json.dumps(value, ensure_ascii=False).encode()
    except RefusedError:
        raise
    except RecursionError:
        raise RefusedError(f"but JSON is nested deeper than {MOST_LEVELS} levels. Flatten it.") from None
    except json.JSONDecodeError as error:
        where = f"{error.msg.lower()} at character {error.pos - begin + 1}"
        raise RefusedError(
            f"but JSON is broken ({where}). Mend it there, or say by --format what the file is."
        ) from None
    except UnicodeEncodeError:
        raise RefusedError("but JSON holds half of a surrogate pair. Write the character in full.") from None
    except ValueError:  # Python's limit on the digits of a whole number
        raise RefusedError("but JSON holds a number of too many digits. Write it as text, in quotes.") from None
    if text.count("[", begin, end) + text.count("{", begin, end) > MOST_LEVELS:
        _check_depth(value)
    return value, end


def parse_object(text: str, begin: int = 0) -> tuple[dict[str, Any], int]:
    """Return the object that begins at a position, and the position after it.

    >>> parse_object("[1]")
    Traceback (most recent call last):
    transduce.io.strict_json.RefusedError: but found a list. Write {...}.
    """
    value, end = parse(text, begin)
    if not isinstance(value, dict):
        raise RefusedError(f"but found {_KINDS.get(type(value), 'a number')}. Write {{...}}.")
    return value, end


def dumps(value: Any) -> str:
    """Write JSON without escapes for letters, and without NaN."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    built = dict(pairs)
    if len(built) == len(pairs):
        return built
    keys = [key for key, _ in pairs]
    twice = next(key for key in keys if keys.count(key) > 1)
    raise RefusedError(
        f"but the key {json.dumps(twice[:40], ensure_ascii=True)} stands twice in one object. Keep one of them."
    )


def _refuse_constant(constant: str) -> None:
    raise RefusedError(f"but {constant} is not a JSON number. Write null where a number is missing.")


def _finite(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise RefusedError(f"but the number {digits[:40]} is too large. Write it as text, in quotes.")
    return number


def _check_depth(value: Any) -> None:
    """Go down level by level, without recursion."""
    level = [value]
    for _ in range(MOST_LEVELS + 1):
        nested = [child for child in level if isinstance(child, dict | list)]
        if not nested:
            return
        level = [part for child in nested for part in (child.values() if isinstance(child, dict) else child)]
    raise RefusedError(f"but JSON is nested deeper than {MOST_LEVELS} levels. Flatten it.")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_refuse_constant)
_CAREFUL_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_refuse_constant, parse_float=_finite)
