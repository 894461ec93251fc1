"""A digest of values by what they hold: arrays by their bytes, objects by their class and state, all the way down."""

import hashlib
import struct
from collections.abc import Iterable, Mapping
from copyreg import dispatch_table
from dataclasses import fields, is_dataclass
from functools import cached_property
from numbers import Complex, Integral, Real
from types import BuiltinFunctionType, CodeType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

import numpy as np

_SIZE = 16


def fingerprint(parts: Mapping[str, object]) -> str:
    """A digest of named values; equal numbers of other types are equal, and so are lists and tuples.

    >>> fingerprint({"X": np.arange(3), "tol": 0.5}) == fingerprint({"X": np.arange(3), "tol": np.float32(0.5)})
    True
    >>> fingerprint({"X": np.arange(3), "tol": 0.5}) == fingerprint({"X": np.arange(4), "tol": 0.5})
    False
    >>> fingerprint({"loss": (n for n in range(3))})
    Traceback (most recent call last):
    TypeError: checkpoint must know what loss holds, but a generator does not tell; ...
    """
    total = hashlib.blake2b(digest_size=_SIZE)
    for name, value in parts.items():
        try:
            total.update(_joined(name.encode(), _digest(value, ())))
        except _SilentError as error:
            raise TypeError(
                f"checkpoint must know what {name} holds, but a {error} does not tell; give its class a __getstate__, "
                "or leave checkpoint out."
            ) from error
    return total.hexdigest()


class _SilentError(Exception):
    """A value that does not tell what it holds; the message is its class."""


def _digest(value: object, above: tuple[int, ...]) -> bytes:
    """Of one value; `above` are the objects that it is part of, so that one that holds itself comes to an end."""
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        rows = np.ascontiguousarray(value)
        return _hashed("array", [f"{value.dtype!r} {value.shape}".encode(), rows.reshape(-1).view(np.uint8).data])
    if isinstance(value, np.ndarray):
        return _hashed("objects", [str(value.shape).encode(), _digest(value.ravel().tolist(), above)])
    plain = _plain(value)
    if plain is not None:
        return _hashed(*plain)
    if id(value) in above:
        return _hashed("above", [str(len(above) - above.index(id(value))).encode()])
    kind, members = _parts(value)
    inside = (*above, id(value))
    found = [_digest(member, inside) for member in members]
    return _hashed(kind, sorted(found) if kind == "unordered" else found)


def _plain(value: object) -> tuple[str, list[Any]] | None:
    """Kind and bytes of a value without parts."""
    if value is None or value is Ellipsis or value is NotImplemented:
        return repr(value), []
    if isinstance(value, (str, bytes)):
        return ("text", [value.encode(errors="surrogatepass")]) if isinstance(value, str) else ("bytes", [value])
    if isinstance(value, (Integral, np.bool_)) or (isinstance(value, Real) and float(value).is_integer()):
        return "number", [str(int(value)).encode()]  # type: ignore[arg-type]
    if isinstance(value, Complex):
        number = complex(value)
        return "number", [struct.pack("<dd", number.real, number.imag)]
    if isinstance(value, (type, np.ufunc, ModuleType)):
        return "name", [_name(value)]
    return None


def _parts(value: object) -> tuple[str, Iterable[object]]:
    """Kind and parts of a value."""
    if type(value) in (list, tuple):
        return "sequence", value  # type: ignore[return-value]
    if isinstance(value, MappingProxyType) or type(value) is dict:
        return "unordered", list(value.items())
    if type(value) in (set, frozenset):
        return "unordered", value  # type: ignore[return-value]
    if isinstance(value, np.random.RandomState):
        return "random", [value.get_state(legacy=False)]
    if isinstance(value, np.random.Generator):
        return "random", [value.bit_generator.state]
    if isinstance(value, np.generic):
        return "scalar", [np.asarray(value)]
    function = _of_function(getattr(value, "py_func", value))
    if function is not None:
        return "function", function
    if is_dataclass(value):
        return "object", [type(value), {field.name: getattr(value, field.name, None) for field in fields(value)}]
    return "object", _state(value)


def _of_function(value: object) -> list[object] | None:
    """Name of a function, and what it does; None for anything else."""
    if isinstance(value, FunctionType):
        cells = [_content(cell) for cell in value.__closure__ or ()]
        return [_name(value), value.__code__, value.__defaults__, value.__kwdefaults__, cells]
    if isinstance(value, CodeType):
        return [value.co_code, value.co_consts, value.co_names]
    if isinstance(value, MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, BuiltinFunctionType):
        return [_name(value), value.__self__]
    return None


def _content(cell: Any) -> object:
    try:
        return cell.cell_contents
    except ValueError:
        return Ellipsis


def _state(value: object) -> list[object]:
    """Class and state of an object as it would be pickled, without properties that were only computed."""
    kind = type(value)
    if kind is object:
        raise _SilentError("plain object")
    try:
        reduced: Any = dispatch_table[kind](value) if kind in dispatch_table else value.__reduce_ex__(4)
    except Exception as error:
        raise _SilentError(kind.__qualname__) from error
    if isinstance(reduced, str):
        return [kind, reduced]
    maker, arguments, state, members, items = (*reduced, None, None, None)[:5]
    if isinstance(state, dict):
        state = {k: v for k, v in state.items() if not isinstance(getattr(kind, str(k), None), cached_property)} or None
    items_of = [None if each is None else list(each) for each in (members, items)]
    return [kind, maker, arguments, state, *items_of]


def _name(value: Any) -> bytes:
    name = getattr(value, "__qualname__", None) or value.__name__
    return f"{getattr(value, '__module__', None)} {name}".encode()


def _hashed(kind: str, parts: Iterable[Any]) -> bytes:
    total = hashlib.blake2b(kind.encode() + b";", digest_size=_SIZE)
    for part in parts:
        total.update(_joined(part) if isinstance(part, bytes) else part)
    return total.digest()


def _joined(*parts: bytes) -> bytes:
    """Parts one after the other, each with its length, so that none can be read as two."""
    return b"".join(struct.pack("<q", len(part)) + part for part in parts)
