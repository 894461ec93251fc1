"""Options from a TOML file: those at the top are for all commands, those in a table for the command of that name."""

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from transduce.cli.errors import InputError
from transduce.suggest import as_sentence

COMMANDS = ("label", "predict", "review", "export", "evaluate", "check", "queue", "report", "tag")
RENAMED = {"format": "format_", "json": "as_json"}
OPTION_TYPES: Mapping[type, tuple[tuple[type, ...], str]] = {
    click.types.BoolParamType: ((bool,), "true or false"),
    click.IntRange: ((int,), "a whole number"),
    click.FloatRange: ((int, float), "a number"),
}
"""The TOML types of options of each kind; all other options take a string."""
MAX_BYTES = 10_000_000


def use_config(context: click.Context, parameter: click.Parameter, name: str | None) -> str | None:
    """Make the options in a TOML file the defaults of a command; the callback of --config."""
    if name is not None:
        group = context.find_root().command
        commands = group.commands.values() if isinstance(group, click.Group) else ()
        context.default_map = _defaults(name, str(context.info_name), _options([context.command]), _options(commands))
    return name


def _options(commands: Iterable[click.Command]) -> dict[str, click.Option]:
    """Options by name, without --config itself."""
    found = [one for command in commands for one in command.params if isinstance(one, click.Option)]
    return {one.name: one for one in found if one.name and one.name != "config"}


def _defaults(
    name: str, command: str, options: Mapping[str, click.Option], known: Mapping[str, click.Option]
) -> dict[str, Any]:
    """Values for a command's options; names are those of the command line without the dashes."""
    try:
        content = tomllib.loads(read_small(name, "config file"))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"the config file {name} is not valid TOML: {as_sentence(str(error))} Correct it.") from None
    tables = {key: value for key, value in content.items() if key in COMMANDS and isinstance(value, dict)}
    shared, own = {key: value for key, value in content.items() if key not in tables}, tables.get(command, {})
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


def _checked(option: click.Option, value: Any, what: str) -> Any:
    """Check and convert a value as the command line would; a table of class sizes becomes NAME=SIZE."""
    if option.name == "prior" and isinstance(value, dict):
        return [f"{name}={_size(size, f'{what} to {size!r} for class {name!r}')}" for name, size in value.items()]
    if option.name == "none":
        return _size(value, f"{what} to {value!r}")
    if option.multiple:
        values = value if isinstance(value, list) else [value]
        if not all(isinstance(one, str) for one in values):
            raise InputError(f"{what} to {value!r}, but it must be a string or a list of strings.")
        return values
    kinds = [known for kind, known in OPTION_TYPES.items() if isinstance(option.type, kind)]
    types, expected = kinds[0] if kinds else ((str,), "a string")
    if type(value) not in types:
        raise InputError(f"{what} to {value!r}, but it must be {expected}.")
    try:
        return option.type.convert(value, option, None)
    except click.BadParameter as error:
        raise InputError(f"{what} to an invalid value: {error.message}") from None


def _size(size: Any, what: str) -> str:
    """A size as the command line takes it, from a number, a string or a list of low and high."""
    ends = size if isinstance(size, list) else [size]
    if not all(type(end) in (int, float, str) for end in ends):
        raise InputError(f"{what}, but it must be a number or a list of low and high.")
    return ":".join(map(str, ends))


def read_small(name: str, what: str) -> str:
    """Return the text of a file that a user writes by hand; `what` says what it should be, such as "config file"."""
    path = Path(name)
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InputError(f"the {what} {name} is larger than 10 MB. Check its name.")
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"the {what} {name} does not exist. Check its name.") from None
    except OSError as error:
        raise InputError(f"the {what} {name} cannot be read ({error.strerror}). Name a file.") from None
    except UnicodeDecodeError:
        raise InputError(f"the {what} {name} is not UTF-8 text. Save it as UTF-8.") from None
