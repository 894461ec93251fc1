"""Options of a command from a TOML file: those at the top for all commands, those in a table of its name for one."""

import tomllib
from collections.abc import Collection, Mapping
from typing import Any

import click

from transduce.cli.errors import InputError
from transduce.cli.small_files import read_small

COMMANDS = ("label", "predict", "evaluate", "check", "queue", "report")
RENAMED = {"format": "format_", "json": "as_json"}
KINDS: Mapping[type, tuple[tuple[type, ...], str]] = {
    click.types.BoolParamType: ((bool,), "true or false"),
    click.IntRange: ((int,), "a whole number"),
    click.FloatRange: ((int, float), "a number"),
}
"""What TOML must hold for options of a kind; the others take a text."""


def read_config(name: str, command: str, options: Mapping[str, click.Option], known: Collection[str]) -> dict[str, Any]:
    """Defaults of a command's options; names are those of the command line without dashes.

    `options` are the command's own, `known` the names of those of any command.
    """
    content = _load(name)
    found = {key: value for key, value in content.items() if not (key in COMMANDS and isinstance(value, dict))}
    own = content.get(command, {})
    found.update(own if isinstance(own, dict) else {})
    defaults = {}
    for key, value in found.items():
        option = RENAMED.get(key, key.replace("-", "_"))
        if option in options:
            defaults[option] = _checked(options[option], value, f"{name} sets {key!r}")
        elif key in own if isinstance(own, dict) else False:
            raise InputError(
                f"{name} sets {key!r} for {command}, which has no such option; see transduce {command} --help."
            )
        elif option not in known:
            raise InputError(f"{name} sets {key!r}, which is no option of any command; mend or remove it.")
    return defaults


def _load(name: str) -> dict[str, Any]:
    text = read_small(name, "config file")
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(
            f"the config file {name} is not valid TOML: {str(error).splitlines()[0]}; correct it."
        ) from None


def _checked(option: click.Option, value: Any, what: str) -> Any:
    """A value that the command line would take, as it would come from there."""
    if option.multiple:
        return _several(option, value, what)
    kinds, said = next((known for kind, known in KINDS.items() if isinstance(option.type, kind)), ((str,), "a text"))
    if type(value) not in kinds:
        raise InputError(f"{what} to {value!r}; give it {said}.")
    try:
        return option.type.convert(value, option, None)
    except click.BadParameter as error:
        raise InputError(f"{what} wrongly: {error.message}") from None


def _several(option: click.Option, value: Any, what: str) -> list[str]:
    """Values of an option that may be repeated; a table of class sizes becomes NAME=SHARE."""
    if option.name == "prior" and isinstance(value, dict):
        return [f"{name}={_share(share, what, name)}" for name, share in value.items()]
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(one, str) for one in values):
        raise InputError(f"{what} to {value!r}; give it a text, or a list of texts.")
    return values


def _share(share: Any, what: str, name: str) -> str:
    ends = share if isinstance(share, list) else [share]
    if not all(type(end) in (int, float, str) for end in ends):
        raise InputError(f"{what} to {share!r} for class {name!r}; give it a number, or a list of low and high.")
    return ":".join(map(str, ends))
