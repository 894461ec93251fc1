"""The page of all commands and their options, written from the same records as `--help`."""

import inspect
import re
from pathlib import Path

import click

INTRO = """Every command with all its options, as ``--help`` prints them.
:doc:`/command-line` shows by example when to use them.
"""
LITERAL = re.compile(r"`([^`]+)`|(?<![\w'])('[^']+'|\"[^\"]+\")(?!\w)|(?<![\w-])(--?[a-z][\w-]*)")
"""What stands in help texts for itself: `code`, a quoted value, or an option."""


def write(group, program, folder: Path):
    """Write the page to the folder, if it changes."""
    path, text = folder / "index.rst", page(group, program)
    folder.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def page(group, program):
    """Return the page in reStructuredText, with a section for the program and one for each of its commands."""
    root = click.Context(group, info_name=program, **group.context_settings)
    commands = [group.get_command(root, name) for name in group.list_commands(root)]
    contexts = [click.Context(command, root, command.name) for command in commands if not command.hidden]
    return "\n".join([_title("Commands and options", "="), INTRO, *map(_section, [root, *contexts])])


def _section(context):
    command, path = context.command, context.command_path
    usage = f"{path} {' '.join(command.collect_usage_pieces(context))}"
    parts = [_title(path, "-"), f".. program:: {path}\n\n.. code-block:: text\n\n   {usage}\n"]
    parts += [_paragraph(text) for text in inspect.cleandoc(command.help or "").split("\n\n")]
    options = [_option(parameter, context) for parameter in command.get_params(context)]
    return "\n".join([*parts, *filter(None, options)])


def _title(text, line):
    return f"{text}\n{line * len(text)}\n"


def _paragraph(text):
    """Return a paragraph of a docstring; one that begins with a backspace stays as it is, line by line."""
    if text.startswith("\b"):
        return "::\n\n" + "\n".join(f"   {line}" for line in text.splitlines()[1:]) + "\n"
    return f"{_prose(' '.join(text.split()))}\n"


def _option(parameter, context):
    """Return the entry of an option; an argument is in the usage, and a hidden option nowhere."""
    record = parameter.get_help_record(context)
    if record is None or not isinstance(parameter, click.Option):
        return ""
    names, text = record
    return f".. option:: {names.replace(' / ', ', ')}\n\n   {_prose(text)}\n"


def _prose(text):
    """Return text in which nothing but code is marked up."""
    parts, end = [], 0
    for found in LITERAL.finditer(text):
        parts += [_escaped(text[end : found.start()]), f"``{found[1] or found[2] or found[3]}``"]
        end = found.end()
    return "".join([*parts, _escaped(text[end:])])


def _escaped(text):
    return re.sub(r"([\\`*_|])", r"\\\1", text)
