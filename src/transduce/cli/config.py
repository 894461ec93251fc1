"""Options from a TOML file: those at the top are for all commands, those in a table for the command of that name."""

import tomllib
from collections.abc import Collection, Mapping
from typing import Any

import click

from transduce.cli.errors import InputError
from transduce.cli.small_files import read_small
from transduce.suggest import as_sentence

COMMANDS = ("label", "predict", "evaluate", "check", "queue", "report")
RENAMED = {"format": "format_", "json": "as_json"}
OPTION_TYPES: Mapping[type, tuple[tuple[type, ...], str]] = {
    click.types.BoolParamType: ((bool,), "true or false"),
    click.IntRange: ((int,), "a whole number"),
    click.FloatRange: ((int, float), "a number"),
}
"""The TOML types of options of each kind; all other options take a string."""


def read_config(name: str, command: str, options: Mapping[str, click.Option], known: Collection[str]) -> dict[str, Any]:
    """Return defaults for a command's options; names are those of the command line without the dashes.

    `options` are those of the command, `known` the names of the options of all commands.
    """
    content = _load(name)
    own = content.get(command, {})
    own = own if isinstance(own, dict) else {}
    shared = {key: value for key, value in content.items() if not (key in COMMANDS and isinstance(value, dict))}
    defaults = {}
    for key, value in (shared | own).items():
        option = RENAMED.get(key, key.replace("-", "_"))
        if option in options:
            defaults[option] = _checked(options[option], value, f"{name} sets {key!r}")
        elif key in own:
            raise InputError(f"{name} sets {key!r} for {command}, which has no such option. See {command} --help.")
        elif option not in known:
            raise InputError(f"{name} sets {key!r}, which is not an option of any command. Correct or remove it.")
    return defaults


def _load(name: str) -> dict[str, Any]:
    text = read_small(name, "config file")
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"the config file {name} is not valid TOML: {as_sentence(str(error))} Correct it.") from None


def _checked(option: click.Option, value: Any, what: str) -> Any:
    """Check and convert a value as the command line would."""
    if option.multiple:
        return _several(option, value, what)
    types, expected = next(
        (known for kind, known in OPTION_TYPES.items() if isinstance(option.type, kind)), ((str,), "a string")
    )
    if type(value) not in types:
        raise InputError(f"{what} to {value!r}, but it must be {expected}.")
    try:
        return option.type.convert(value, option, None)
    except click.BadParameter as error:
        raise InputError(f"{what} to an invalid value: {error.message}") from None


def _several(option: click.Option, value: Any, what: str) -> list[str]:
    """Values of an option that may be repeated; a table of class sizes becomes NAME=SIZE."""
    if option.name == "prior" and isinstance(value, dict):
        return [f"{name}={_size(size, what, name)}" for name, size in value.items()]
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(one, str) for one in values):
        raise InputError(f"{what} to {value!r}, but it must be a string or a list of strings.")
    return values


def _size(size: Any, what: str, name: str) -> str:
    ends = size if isinstance(size, list) else [size]
    if not all(type(end) in (int, float, str) for end in ends):
        raise InputError(f"{what} to {size!r} for class {name!r}, but it must be a number or a list of low and high.")
    return ":".join(map(str, ends))
